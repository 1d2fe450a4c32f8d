"""Runs scripts that were written for TileLang-Ascend unmodified.

``install()`` makes ``import tilelang`` and its submodules mean this package, and ``npu`` a device of torch, if the script uses
torch; ``tilelang-npu run`` does so for its script. Importing ``tilelang_npu`` installs nothing.
"""

from tilelang_npu.compat import alias, torch_npu
from tilelang_npu.compat.alias import installed_elsewhere

__all__ = ["install", "installed_elsewhere", "uninstall"]


def install() -> None:
    """Makes ``import tilelang`` mean this package, and torch's device ``npu`` the CPU, in the whole process. Idempotent."""
    alias.install()
    torch_npu.install()


def uninstall() -> None:
    """Undoes :func:`install`; modules that scripts have imported through the alias stay in them."""
    alias.uninstall()
    torch_npu.uninstall()
