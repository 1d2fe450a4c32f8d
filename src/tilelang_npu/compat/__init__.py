"""Running scripts that were written for TileLang-Ascend, unmodified.

``install()`` makes ``import tilelang`` and everything below it mean this package, and ``npu`` a device of torch, if the
script uses torch; ``tilelang-npu run`` does it for the script that it runs. Nothing is installed by importing
``tilelang_npu``.
"""

from tilelang_npu.compat import alias, torch_npu
from tilelang_npu.compat.alias import installed_elsewhere

__all__ = ["install", "installed_elsewhere", "uninstall"]


def install() -> None:
    """Make ``import tilelang`` mean this package, and torch's device ``npu`` the CPU, in the whole process. Twice is once."""
    alias.install()
    torch_npu.install()


def uninstall() -> None:
    """Undo :func:`install`; modules that scripts imported through the alias stay theirs."""
    alias.uninstall()
    torch_npu.uninstall()
