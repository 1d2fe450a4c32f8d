"""Edits of a kernel as data: changes that make a refused optimisation possible and that a tool can apply.

A refusal (``dialects/ir/remarks.py``) describes its edit in words. If the edit is one of these, the refusal also has it as
data, and ``kernel.explain()`` applies the edit, times the kernel and compares its results.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_npu.errors import Location

__all__ = ["Change", "InFront", "OwnBuffer", "Rounds", "Smaller", "Stages", "SwitchedOn", "Unpinned"]


@dataclass(frozen=True)
class Stages:
    """Changes ``num_stages`` of a loop; a ``T.serial`` loop becomes ``T.Pipelined``.

    Attributes:
        loop: the line of the loop.
        stages: the new number of stages.
    """

    loop: Location | None
    stages: int


@dataclass(frozen=True)
class Smaller:
    """Makes tiles smaller, by other arguments of the kernel's factory.

    Attributes:
        places: the lines where the tiles are allocated.
        percent: the new size in percent of the present bytes.
    """

    places: tuple[Location | None, ...]
    percent: int = 99


@dataclass(frozen=True)
class OwnBuffer:
    """Gives the uses of a buffer from a line on a new buffer.

    Attributes:
        label: the author's name of the buffer.
        place: the line where it is allocated.
        at: the first line that uses the new buffer.
    """

    label: str
    place: Location | None
    at: Location | None


@dataclass(frozen=True)
class Unpinned:
    """Leaves the address of a buffer to the compiler.

    Attributes:
        place: the line where the buffer is allocated.
    """

    place: Location | None


@dataclass(frozen=True)
class SwitchedOn:
    """Removes an optimisation from ``tl.disable``.

    Attributes:
        name: the optimisation.
    """

    name: str


@dataclass(frozen=True)
class InFront:
    """Moves a load before its loop.

    Attributes:
        load: the line of the load.
        loop: the line of the loop.
    """

    load: Location | None
    loop: Location | None


@dataclass(frozen=True)
class Rounds:
    """Launches as many blocks as there are cores, each with a loop over the work of several blocks.

    Attributes:
        loop: the line of a loop in the launch.
        blocks: the new number of blocks.
    """

    loop: Location | None
    blocks: int


Change = InFront | OwnBuffer | Rounds | Smaller | Stages | SwitchedOn | Unpinned
