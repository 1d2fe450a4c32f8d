"""What the compiler does for speed alone, by name: each can be switched off, and remarks what it did in a kernel, or left.

A kernel computes the same without any of them. ``pass_configs={"tl.disable": ["banks"]}``, ``--without banks`` and
``Options.without`` switch them off; ``kernel.explain()`` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilelang_npu.dialects.ir.changes import Change
from tilelang_npu.errors import Location, TileError

OPTIMISATIONS = {
    "vectorise-parallel": "loops of T.Parallel become vector work; without it their points are done one by one",
    "drop-dead-stores": "what is overwritten before anything reads it is not written; without it it is",
    "collapse-copies": "a tile that is only passed on to another buffer comes to it at once; without it it is copied",
    "fuse-fixpipe": "relu and conversions on the way from L0C to GM are the fixpipe's; without it they go through UB",
    "bind-sub-blocks": "rows of Vector work are divided between the two Vector cores of a block; without it one does all",
    "collapse-rows": "a loop of vector work on a row each does all rows at once; without it one by one",
    "hoist-loads": "what each iteration loads alike, or computes of places, goes in front of the loop; without it each does",
    "fold-accumulator-clear": "T.clear of an accumulator becomes the start of the next gemm; without it zeros are multiplied",
    "sink-buffers": "a buffer that one loop alone uses lives for one iteration; without it where the author placed it",
    "multi-buffer": "iterations of pipelined loops, or that gather rows, take slots of their buffers in turn; without it one",
    "schedule-statements": "order and stage of T.Pipelined put statements in their places; without it they stand as written",
    "overlap-iterations": "both cores of a pipelined loop work on several iterations at a time; without it on one",
    "banks": "operands of a vector instruction begin in different halves of the banks of UB; without it anywhere",
    "keep-apart": "small buffers share no bytes while there is room, and need not wait for each other; without it any may",
}
"""What each does, and what holds without it."""


@dataclass(frozen=True)
class Refusal:
    """Why an optimisation leaves what it looked at.

    Attributes:
        why: the reason, with lines and sizes.
        edit: what its author can change so that it is done.
        change: the same as data, where a tool can make it.
    """

    why: str
    edit: str
    change: Change | None = None


def checked(names: Iterable[str], at: Location | None = None) -> tuple[str, ...]:
    """The names of optimisations to switch off, each once and in order.

    Args:
        names: as the user gave them.
        at: where.

    Raises:
        TileError: T712, there is no such optimisation.
    """
    found = sorted(set(names))
    for name in found:
        if name not in OPTIMISATIONS:
            from difflib import get_close_matches

            near = get_close_matches(name, OPTIMISATIONS, n=1)
            raise TileError(f"there is no optimisation {name!r}", code="T712", location=at,
                            notes=["those that can be switched off are " + ", ".join(OPTIMISATIONS)],
                            help=f"did you mean {near[0]!r}?" if near else "remove the name")
    return tuple(found)


__all__ = ["OPTIMISATIONS", "Refusal", "checked"]
