"""Tracing of many blocks at once: the generated code runs once, with a batched integer in place of the block index.

As long as no value on which the control flow depends differs between blocks, the recorded events are those of each block, and
each GM offset is the sum of a constant and a term with one value per block (``machine/batched_integers.py``). If such a value
differs, the blocks are divided into groups with equal values, and each group is traced again. Only kernels whose ops do not
depend on data are traced in this way. After any error the caller traces block by block, so that the error message names the
block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.batched_integers import BatchedInt, BlockBatch, DivergedError, NotBatchableError, Numbers
from tilelang_npu.simulator.machine.cube_products import NoProducts
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Event, Stream
from tilelang_npu.simulator.machine.placeholder_data import PlaceholderData
from tilelang_npu.simulator.run.arguments import BoundArguments
from tilelang_npu.simulator.run.bound_core import LaunchResources, cores_of_block, run_cores
from tilelang_npu.simulator.run.recorded_launch import BatchedOffsets, BlockRun, OffsetsOfBlock

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.program import Program

MadeT = TypeVar("MadeT")
LEAST = 8
"""Least number of blocks that are traced at once. The attempt is given up if it needs more traces than half of the blocks."""


class _Unread:
    """A placeholder for an array whose address differs between blocks, so that its elements cannot be read."""

    def __init__(self, element: np.dtype[np.generic]) -> None:
        self.dtype = element


def viewed(shape: tuple[int, ...], element: np.dtype[np.generic], memory: Array, offset: BatchedInt | int,
           strides: tuple[int, ...]) -> Array | _Unread:
    """Replaces ``numpy.ndarray`` in generated code: creates an array at an offset that can differ between blocks.

    The array is created at the lowest and at the highest offset that any block has, so that NumPy checks the bounds of both.

    Args:
        shape, element, memory, offset, strides: as for ``numpy.ndarray``.

    Returns:
        the array; if the offset differs between blocks, an ``_Unread`` object, which has only the element type of the array.
    """
    if type(offset) is not BatchedInt:
        return np.ndarray(shape, element, memory, offset, strides)
    first, last = offset.ends()
    made = np.ndarray(shape, element, memory, first, strides)
    np.ndarray(shape, element, memory, last, strides)
    return _Unread(made.dtype)


class _BatchPlaceholders(PlaceholderData):
    """Supplies numbers in place of data for a trace of many blocks.

    Raises ``NotBatchableError`` where the control flow could depend on a number from memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.common: dict[int, list[object]] = {}
        self._guessed = False

    def read(self, element: Array | _Unread) -> float:
        """Returns 0 for a float; raises ``NotBatchableError`` for an integer or a truth value."""
        if element.dtype.kind in "iub":
            raise NotBatchableError
        self._guessed = True
        return 0.0

    def note_scalars(self, block: object, sub: int, *numbers: object) -> None:
        """Records scalar operands, which must be equal in all blocks."""
        for number in numbers:
            if isinstance(number, BatchedInt):
                number.__index__()  # raises DivergedError if they differ
            elif self._guessed and isinstance(number, float):
                raise NotBatchableError
        self.common.setdefault(sub, []).extend(int(number) if isinstance(number, BatchedInt) else number for number in numbers)


def trace_batched(program: Program, bound: BoundArguments, blocks: int, most_ops: int | None,
                  placeholders: Sequence[PlaceholderData]) -> list[BlockRun] | None:
    """Returns the records of all blocks of a launch, in the order of blocks; None if the blocks must be traced one by one.

    Args:
        program: the kernel.
        bound: the arguments of the launch.
        blocks: the number of blocks.
        most_ops: the limit of the ops of a core in a block; None for the default.
        placeholders: one for each device function; the trace adds the scalar operands of the blocks to them.
    """
    if blocks < LEAST or program.global_sync:
        return None
    found: list[BlockRun] = []
    interned: dict[Stream, Stream] = {}
    left = [np.arange(blocks, dtype=np.int64)]
    tries = max(LEAST, blocks) // 2
    while left:
        some = left.pop()
        if not tries:
            return None
        tries -= 1
        try:
            found += _traced(program, bound, blocks, some, most_ops, placeholders, interned)
        except DivergedError as parted:
            left += [some[group] for group in parted.groups]
            if len(left) > tries:
                return None
        except (TileError, NotBatchableError, ArithmeticError, ValueError, TypeError, IndexError):
            return None
    return sorted(found, key=lambda run: run.block)


def _traced(program: Program, bound: BoundArguments, blocks: int, some: Numbers, most_ops: int | None,
            placeholders: Sequence[PlaceholderData], interned: dict[Stream, Stream]) -> list[BlockRun]:
    """Traces blocks that have the same control flow at once, and returns their records."""
    numbers = BlockBatch(some)
    joint = [_BatchPlaceholders() for _ in program.traced]
    lanes = cores_of_block(program, bound, blocks, LaunchResources(program.traced, most_ops, NoProducts, 0, joint, viewed))
    for lane in lanes:
        lane.run = partial(_as_all, lane.run, numbers.number)
    run_cores(lanes, [int(some[0])], program)
    streams, places = [], []
    for lane in lanes:
        stream = tuple([event if isinstance(event, int) else _known(event) for event in lane.events])
        streams.append(interned.setdefault(stream, stream))
        places.append(BatchedOffsets(lane.gm, numbers))
    for placeholder, one in zip(placeholders, joint, strict=True):
        for sub, given in one.common.items():
            for block in some.tolist():
                placeholder.note_scalars(block, sub, *given)
    return [BlockRun(block, tuple(streams), tuple(OffsetsOfBlock(one, position) for one in places))
            for position, block in enumerate(some.tolist())]


def _as_all(run: Callable[..., MadeT], number: BatchedInt | int, block: int, *rest: object) -> MadeT:
    return run(number, *rest)


def _known(event: tuple[Any, ...]) -> Event:
    """Returns an event whose run-time numbers must be equal in all blocks, with these numbers as plain integers."""
    return tuple([int(fact) for fact in event]) if any(type(fact) is BatchedInt for fact in event) else event
