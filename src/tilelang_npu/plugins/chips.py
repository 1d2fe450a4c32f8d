"""``register_chip``, which registers a chip from a TOML file or from a ``Chip`` object."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tilelang_npu import target
from tilelang_npu.plugins.registry import add_registration, calling_globals
from tilelang_npu.target import Chip

__all__ = ["register_chip"]


def register_chip(described: str | os.PathLike[str] | Chip) -> Chip:
    """Registers a chip, so that kernels can name it (``chip="My910"``, ``--chip My910``), and returns the chip.

    Args:
        described: a ``Chip``, or the path of a TOML or Python file that describes one (docs/hardware.md#chips-of-your-own). A
            relative path is relative to the folder of the file that calls this function.

    Raises:
        TileError: T713, the file is wrong, the file's chip has the name of a chip of this package, or the chip has features
            that its HIVM target lacks. T821, another plug-in has registered a chip with this name.
    """
    names = calling_globals()
    found = described if isinstance(described, Chip) else target.chip(Path(str(names.get("__file__", ""))).parent / described)

    def add() -> Callable[[], None]:
        target.register(found)
        return lambda: target.unregister(found)

    add_registration("chip", found.name, str(names.get("__name__", "__main__")), found, add)
    return found
