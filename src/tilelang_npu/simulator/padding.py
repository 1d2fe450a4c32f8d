"""Padding that decides a reduction: what ``T.copy`` filled in beyond a tensor is no number of the user's.

A tile at the edge is loaded in part, and the rest filled. The filling is harmless as long as it is neutral to what is made of
it: 0 in a sum, minus infinity in a maximum. Whether it is depends on what happened to it on the way (0 becomes 1 in ``exp``)
and on the other numbers (0 is neutral in a maximum of magnitudes). So a block in which a filled tile meets a reduction runs
once more, with a mark at every byte that padding reached, and each reduction is computed with it and without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tilelang_npu import ops
from tilelang_npu.dialects import hivm
from tilelang_npu.errors import Location
from tilelang_npu.ops import meaning
from tilelang_npu.simulator.cores import CoreId
from tilelang_npu.simulator.events import Access, OpRecord, number_of
from tilelang_npu.simulator.finding import Hazard, Site
from tilelang_npu.simulator.numbers import spreads
from tilelang_npu.simulator.program import BlockRun, Recorded
from tilelang_npu.target import SPOKEN

Array = NDArray[Any]
Marks = NDArray[np.int32]
"""Of each element the number of the op that filled it, counted from 1, or 0."""
_POINTWISE = (hivm.CopyOp, hivm.VCastOp, hivm.VBrcOp)
_ELEMENTWISE = frozenset(f"hivm.hir.{entry.hivm}" for entry in ops.elementwise())


def find_padding(recorded: Recorded, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Reductions that come to another result without what ``T.copy`` filled in.

    Args:
        recorded: the launch.
        blocks: the blocks to look at: one of each kind.
    """
    program = recorded.program
    fills = [_fills(function.records) for function in program.functions]
    folds = [any(record.name == hivm.VReduceOp.name for record in function.records) for function in program.functions]
    for run in blocks:
        if any(folds[index] and fills[index] and any(number_of(event) in fills[index] for event in stream)
               for (index, _), stream in zip(program.lanes, run.streams, strict=True)):
            watch = _Padding({function.core: filling for function, filling in zip(program.functions, fills, strict=True)})
            recorded.replay.after(run, observer=watch)
            yield from watch.found.values()
            if program.global_sync:
                return  # all blocks were in it


def _fills(records: Sequence[OpRecord]) -> dict[int, OpRecord]:
    """The ops that fill what a load of the same statement leaves, by number, with their loads."""
    loads = {key: record for record in records if record.name == hivm.LoadOp.name for key in _filled(record)}
    return {record.number: loads[key] for record in records
            if record.name == hivm.VBrcOp.name and record.location is not None for key in _filled(record) if key in loads}


def _filled(record: OpRecord) -> list[tuple[Location | None, str]]:
    """The statement of an op and what it writes, by name."""
    return [(record.location, access.label) for access in record.accesses if access.writes and access.name != "temp_buffer"]


class _Padding:
    """An observer that follows what was filled in.

    Args:
        fills: of each kind of core the ops that fill.

    Attributes:
        found: the reports, by op.
    """

    def __init__(self, fills: dict[str, dict[int, OpRecord]]) -> None:
        self.found: dict[int, Hazard] = {}
        self._fills = fills
        self._marks: dict[int, Marks] = {}
        self._runs: Counter[tuple[int, str, int, int]] = Counter()

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> Any:
        """Look at what the op reads: it may write over it."""
        run = self._runs[block, record.core, sub, record.number]
        self._runs[block, record.core, sub, record.number] += 1
        if record.core != "AIV" or len(writes) == 0:
            return None
        reading = [access for access in record.accesses if access.reads and access.name != "temp_buffer"]
        writing = [access for access in record.accesses if access.writes and access.name != "temp_buffer"]
        marks = [self._of(access, array)[..., 0] for access, array in zip(reading, reads, strict=True)]
        made: Marks = np.zeros((), np.int32)
        if record.number in self._fills[record.core]:
            made = np.array(record.number + 1, np.int32)
        elif any(mark.any() for mark in marks):
            if isinstance(op, hivm.VReduceOp):
                site = Site(record.mnemonic, record.location, "V", CoreId(block, record.core, sub).label, run, "src",
                            record.number)
                made = self._folded(block, site, op, reading[0], reads[0], marks[0])
            elif isinstance(op, _POINTWISE) or op.name in _ELEMENTWISE:
                return writing, writes, marks, [array.copy() for array in reads]
        return writing, writes, made, None

    def after(self, kept: Any) -> None:
        """Mark what it wrote."""
        if kept is None:
            return
        writing, writes, made, chosen = kept
        if chosen is not None:
            made = _combined(made, chosen, writes[0])
        for access, array in zip(writing, writes, strict=True):
            if access.memory != "gm":
                fits = made.ndim == 0 or made.shape == array.shape
                self._of(access, array)[...] = made[..., None] if fits else 0

    def _of(self, access: Access, array: Array) -> Marks:
        """The marks of an array's bytes, with the bytes of an element as last axis; of nothing filled in for global memory."""
        if access.memory == "gm":
            return np.zeros((*array.shape, 1), np.int32)
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        start = root.__array_interface__["data"][0]
        marks = self._marks.setdefault(start, np.zeros(root.nbytes, np.int32))
        at = array.__array_interface__["data"][0] - start
        return np.ndarray((*array.shape, array.itemsize), np.int32, marks, 4 * at,
                          tuple(4 * stride for stride in (*array.strides, 1)))

    def _folded(self, block: int, site: Site, op: hivm.VReduceOp, access: Access, source: Array, marks: Marks) -> Marks:
        """The marks of a reduction's result: only what comes of padding alone has one."""
        axes = tuple(op.dims)
        entry = meaning.reduction(op.mode.split("_")[0])
        padding = marks != 0
        alone = padding.all(axis=axes, keepdims=True)
        if entry is not None:
            numbers = source.view(f"u{source.itemsize}") if op.unsigned_src.value.data else source
            numbers = numbers.astype(np.float32) if numbers.dtype.kind in "fV" else numbers
            own = np.where(padding, np.asarray(entry.neutral(ops.dtype(numbers.dtype.name)), numbers.dtype), numbers)
            given, wanted = (entry.meaning(values, axis=axes) for values in (numbers, own))
            differ = ~alone & (given != wanted) & ~(_is_nan(given) & _is_nan(wanted))
            if differ.any():
                first = tuple(int(index) for index in np.argwhere(differ)[0])
                line = tuple(slice(None) if axis in axes else index for axis, index in enumerate(first))
                filled = marks[line][padding[line]]
                loaded, of = np.count_nonzero(~padding[line]), f" of {access.label}" if access.label else ""
                what = (f"padding changes {np.count_nonzero(differ)} of {differ.size} results of the {entry.mode}{of}: the "
                        f"first, of {loaded} loaded elements and {filled.size} of padding, is {given[first]}, and "
                        f"{wanted[first]} without")
                load = self._fills["AIV"][int(filled[0]) - 1]
                cause = Site(load.mnemonic, load.location, load.pipe, site.core, 0, "dst", load.number)
                hazard = Hazard("S224", "padding", site, cause, SPOKEN[access.memory], 0, 0, what, block, access.label,
                                "pad_value of T.copy says what is filled in")
                self.found.setdefault(site.number, hazard)
        return np.where(alone, marks.max(axis=axes, keepdims=True), 0).astype(np.int32)


def _is_nan(array: Array) -> NDArray[np.bool_]:
    """Where a number is none: nothing else differs from itself."""
    found: NDArray[np.bool_] = array != array
    return found


def _combined(marks: Sequence[Marks], sources: Sequence[Array], result: Array) -> Marks:
    """The marks of what comes of several operands, element by element: those that they have, but none where the result is that
    of an operand without any. There the padding was neutral (0 in a running sum), or something else was chosen."""
    made: Marks = np.zeros(result.shape, np.int32)
    clean = np.zeros(result.shape, np.bool_)
    for mark, source in zip(marks, sources, strict=True):
        if spreads(source, result):
            np.maximum(made, mark, out=made)
            if source.dtype == result.dtype:
                clean |= ((source == result) | (_is_nan(source) & _is_nan(result))) & (mark == 0)
    return np.where(clean, 0, made).astype(np.int32)
