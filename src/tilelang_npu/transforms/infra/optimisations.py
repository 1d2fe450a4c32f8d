"""The names of the compiler's optimisations.

Each optimisation can be switched off, and records what it did in a kernel or why it did nothing. A kernel computes the same
results without them. ``pass_configs={"tl.disable": ["banks"]}``, ``--without banks`` and ``Options.without`` switch
optimisations off; ``kernel.explain()`` shows what they did.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilelang_npu.dialects.ir.changes import Change
from tilelang_npu.errors import Location, TileError

OPTIMISATIONS = {
    "split-tiles": "tiles that do not fit are processed in strips of rows or columns; without it, they are an error",
    "vectorise-parallel": "loops of T.Parallel become vector operations; without it, their points are computed one by one",
    "drop-dead-stores": "a store that is overwritten before it is read is removed; without it, it is executed",
    "collapse-copies": "a tile that is only copied to another buffer is produced there directly; without it, it is copied",
    "fuse-fixpipe": "relu and conversions from L0C to GM are done by the fixpipe; without it, the data goes through UB",
    "bind-sub-blocks": "rows of vector work are divided between the Vector cores of a block; without it, one does all",
    "make-persistent": "one block for each core loops over the tiles of several; without it, all blocks are launched",
    "collapse-rows": "a loop of vector work on single rows becomes work on all rows; without it, it stays a loop",
    "hoist-loads": "loop-invariant loads and index computations move before the loop; without it, iterations repeat them",
    "reuse-results": "a tile that an earlier operation has computed is used again; without it, it is computed again",
    "pipeline-loops": "serial loops that load tiles run pipelined with two stages where the slots fit; without it, serially",
    "split-conversions": "where UB is short, what is loaded has slots, not what it is converted to; without it, the reverse",
    "fold-accumulator-clear": "T.clear of an accumulator becomes the start of the next gemm; without it, zeros are multiplied",
    "sink-buffers": "a buffer that only one loop uses lives for one iteration; without it, it lives where it is declared",
    "multi-buffer": "iterations of loops that pipeline or gather rows use different slots of a buffer; without it, one slot",
    "schedule-statements": "order and stage of T.Pipelined place statements in iterations; without it, they run as written",
    "overlap-iterations": "both cores work on several iterations of a pipelined loop at once; without it, on one",
    "banks": "the sources of a vector instruction start in different halves of the banks of UB; without it, anywhere",
    "keep-apart": "small buffers share no bytes while there is room, so as not to wait for each other; without it, they may",
}
"""For each optimisation, a text: what the optimisation does, and what the compiler does without it."""
UPSTREAM_LACKS = ("split-tiles", "drop-dead-stores", "collapse-copies", "collapse-rows", "make-persistent", "hoist-loads",
                  "reuse-results", "pipeline-loops", "split-conversions", "banks", "keep-apart")
"""The names of the optimisations that the compilers of TileLang-Ascend do not have."""


@dataclass(frozen=True)
class Refusal:
    """The reason why an optimisation was not done at one place of a kernel, and how the author can change that.

    Attributes:
        why: the reason, with source lines and sizes, as text.
        edit: the change to the kernel with which the optimisation applies, as text.
        change: the change as data, from which a tool can make it; None if no tool can.
    """

    why: str
    edit: str
    change: Change | None = None


def validate_optimisations(names: Iterable[str], at: Location | None = None) -> tuple[str, ...]:
    """Checks names of optimisations that are to be switched off; returns each name once, sorted.

    Args:
        names: the names that the user gave.
        at: the source location of the user's call, for the error.

    Raises:
        TileError: T712, a name is not that of an optimisation.
    """
    found = sorted(set(names))
    for name in found:
        if name not in OPTIMISATIONS:
            from difflib import get_close_matches

            near = get_close_matches(name, OPTIMISATIONS, n=1)
            raise TileError(f"there is no optimisation {name!r}", code="T712", location=at,
                            notes=["the optimisations are " + ", ".join(OPTIMISATIONS)],
                            help=f"did you mean {near[0]!r}?" if near else "remove the name")
    return tuple(found)


__all__ = ["OPTIMISATIONS", "Refusal", "validate_optimisations"]
