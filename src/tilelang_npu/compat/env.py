"""``tilelang.env``: the switches and directories of TileLang that exist here too, as names and as attributes of ``env``."""

from __future__ import annotations

from typing import NoReturn

from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.cache.entries import disable_cache, enable_cache, is_cache_enabled

__all__ = ["Environment", "disable_cache", "enable_cache", "env", "is_cache_enabled"]


class Environment:
    """The class of ``tilelang.env.env``, which switches the kernel cache and names its directory."""

    enable_cache = staticmethod(enable_cache)
    disable_cache = staticmethod(disable_cache)
    is_cache_enabled = staticmethod(is_cache_enabled)

    @property
    def TILELANG_CACHE_DIR(self) -> str:
        """The directory of the kernel cache on disk."""
        return str(entries.get_cache_dir())

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_missing(name))


env = Environment()
"""The object that scripts import."""


def _missing(name: str) -> str:
    return f"tilelang.env has no {name}: tilelang_npu uses no toolkit, no templates and no other cache"


def __getattr__(name: str) -> str:
    if name == "TILELANG_CACHE_DIR":
        return env.TILELANG_CACHE_DIR
    raise AttributeError(_missing(name))
