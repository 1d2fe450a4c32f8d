"""Running scripts that were written for TileLang-Ascend, unmodified.

``install()`` makes ``import tilelang`` and everything below it mean this package; ``tilelang-npu run`` does it for the script
that it runs. Nothing is installed by importing ``tilelang_npu``.
"""

from tilelang_npu.compat.alias import install, installed_elsewhere, uninstall

__all__ = ["install", "installed_elsewhere", "uninstall"]
