"""Edits of a kernel's source as data: changes that make a refused optimisation possible and that a tool can apply.

A remark about a refused optimisation (``dialects/ir/remarks.py``) describes the edit in words. If a class of this module
represents the edit, the remark also has it as data. ``kernel.explain()`` then applies the edit, measures the time of the edited
kernel and compares its results with those of the original.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_npu.errors import Location

__all__ = ["Change", "InFront", "OwnBuffer", "Rounds", "Smaller", "Stages", "SwitchedOn", "Unpinned"]


@dataclass(frozen=True)
class Stages:
    """Sets ``num_stages`` of a loop; a ``T.serial`` loop becomes ``T.Pipelined``.

    Attributes:
        loop: the line of the loop.
        stages: the new number of stages.
    """

    loop: Location | None
    stages: int


@dataclass(frozen=True)
class Smaller:
    """Makes tiles smaller, by calling the function that returns the kernel with other arguments.

    Attributes:
        places: the lines where the tiles are allocated.
        percent: the largest new size of the tiles, in percent of their present number of bytes.
    """

    places: tuple[Location | None, ...]
    percent: int = 99


@dataclass(frozen=True)
class OwnBuffer:
    """Splits a buffer in two: from a given line on, all uses of the buffer refer to a new buffer of the same type.

    Attributes:
        label: the name of the buffer in the source.
        place: the line where the buffer is allocated.
        at: the first line that uses the new buffer.
    """

    label: str
    place: Location | None
    at: Location | None


@dataclass(frozen=True)
class Unpinned:
    """Removes the address that the author chose for a buffer, so that the compiler chooses one.

    Attributes:
        place: the line where the buffer is allocated.
    """

    place: Location | None


@dataclass(frozen=True)
class SwitchedOn:
    """Removes an optimisation from ``tl.disable``, the list of switched-off optimisations, so that it runs.

    Attributes:
        name: the name of the optimisation.
    """

    name: str


@dataclass(frozen=True)
class InFront:
    """Moves a load out of a loop, to before the loop.

    Attributes:
        load: the line of the load.
        loop: the line of the loop.
    """

    load: Location | None
    loop: Location | None


@dataclass(frozen=True)
class Rounds:
    """Launches only as many blocks as the chip has cores, each of which loops over the work of several present blocks.

    Attributes:
        line: the line of a statement inside the launch.
        blocks: the new number of blocks.
    """

    line: Location | None
    blocks: int


Change = InFront | OwnBuffer | Rounds | Smaller | Stages | SwitchedOn | Unpinned
