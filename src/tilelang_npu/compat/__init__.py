"""Makes scripts that were written for TileLang-Ascend, or for TileLang on GPUs, run unmodified.

After ``install()``, ``import tilelang`` and imports of its submodules import this package, and ``npu`` is a device of torch if
the script uses torch. ``import shmem`` imports :mod:`tilelang_npu.compat.shmem`, for scripts that use several cards. While
``TILELANG_NPU_GPU`` is set, ``cuda`` is a name of that device too. ``tilelang-npu run`` calls ``install()`` for its script, and
``--gpu`` sets the variable. Importing ``tilelang_npu`` does not.
"""

from tilelang_npu.compat import alias, profiler_program, torch_npu
from tilelang_npu.compat.alias import installed_elsewhere

__all__ = ["install", "installed_elsewhere", "uninstall", "uninstall_gpu"]


def install() -> None:
    """Makes ``import tilelang`` import this package, and maps torch's device ``npu`` to the CPU, in the whole process.

    ``msprof`` on the search path is then ``tilelang-npu msprof``, unless the vendor's program is there. While
    ``TILELANG_NPU_GPU`` is set, torch's device ``cuda`` is mapped too. Calling it again has no effect.
    """
    alias.install()
    torch_npu.install()
    profiler_program.install()


def uninstall() -> None:
    """Undoes :func:`install`. Scripts keep the modules that they have already imported under the name ``tilelang``."""
    alias.uninstall()
    torch_npu.uninstall()
    profiler_program.uninstall()


def uninstall_gpu() -> None:
    """Undoes what :func:`install` did for torch's device ``cuda``."""
    torch_npu.uninstall_gpu()
