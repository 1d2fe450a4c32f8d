"""Notes on tiles that do not fit at once, whose statements are executed for strips of the tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.dialects.ir.remarks import Strips, module_remarks

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def strip_notes(module: ModuleOp) -> tuple[str, ...]:
    """Returns a line for each group of statements that is executed for strips, in program order.

    Strips keep the results, but a tile that fits is often faster. ``explain()`` has the bytes that are missing, and the lines.

    Args:
        module: the kernel's module, with the remarks of ``split-tiles``.
    """
    found = []
    for remark in module_remarks(module, Strips):
        strips = remark.facts
        assert isinstance(strips, Strips)
        where = f"line {remark.place.line}: " if remark.place is not None else ""
        found.append(f"{where}the tiles do not fit at once: {strips.count} strips of {strips.size} of their {strips.extent} "
                     f"{strips.unit}; smaller tiles may be faster")
    return tuple(found)


__all__ = ["strip_notes"]
