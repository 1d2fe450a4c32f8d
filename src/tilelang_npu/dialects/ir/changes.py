"""Edits of a kernel as data: what the author can change so that an optimisation is done, where a tool can make the change too.

A refusal says its edit in words; where it is one of these, the same is beside them as data, and ``kernel.explain()`` makes the
edit, times it and compares what it computes. What has to be written differently is words alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_npu.errors import Location

__all__ = ["Change", "InFront", "OwnBuffer", "Rounds", "Smaller", "Stages", "SwitchedOn", "Unpinned"]


@dataclass(frozen=True)
class Stages:
    """Another ``num_stages`` for a loop, which ``T.Pipelined`` makes of one of ``T.serial``.

    Attributes:
        loop: the line of the loop.
        stages: how many.
    """

    loop: Location | None
    stages: int


@dataclass(frozen=True)
class Smaller:
    """Smaller tiles: other numbers for the factory, with which less is allocated.

    Attributes:
        places: where the tiles are allocated that are to be smaller.
        percent: to how much of their bytes.
    """

    places: tuple[Location | None, ...]
    percent: int = 99


@dataclass(frozen=True)
class OwnBuffer:
    """A buffer of its own for what a line and those behind it do with one.

    Attributes:
        label: what the author calls the buffer.
        place: where it is allocated.
        at: the first line that uses the new one.
    """

    label: str
    place: Location | None
    at: Location | None


@dataclass(frozen=True)
class Unpinned:
    """An address that is left to the compiler.

    Attributes:
        place: where the buffer is allocated.
    """

    place: Location | None


@dataclass(frozen=True)
class SwitchedOn:
    """An optimisation that is taken out of ``tl.disable``.

    Attributes:
        name: the optimisation.
    """

    name: str


@dataclass(frozen=True)
class InFront:
    """A load that moves in front of its loop.

    Attributes:
        load: the line of the load.
        loop: that of the loop.
    """

    load: Location | None
    loop: Location | None


@dataclass(frozen=True)
class Rounds:
    """As many blocks as there are cores, each with a loop over what more blocks would do.

    Attributes:
        loop: the line of a loop in the launch.
        blocks: how many.
    """

    loop: Location | None
    blocks: int


Change = InFront | OwnBuffer | Rounds | Smaller | Stages | SwitchedOn | Unpinned
