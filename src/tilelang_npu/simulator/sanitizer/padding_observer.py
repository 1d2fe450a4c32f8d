"""Detection of padding that changes a result, while a block runs again; ``padding.py`` chooses the blocks.

Padding is the part of a tile that a load fills in because the tile extends beyond its tensor. Each byte whose value comes from
padding has a *mark*: the number of the op that filled it in. Marks move with the data from core to core. Each reduction and
product whose operands have marks is computed twice, with and without the marked elements; if the results differ, padding
changes the result. An element of a product is itself padding if all its terms are, because its row of A or its column of B
consists of padding. For the other elements of the product, the terms that are padding must add nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tilelang_npu import ops
from tilelang_npu.dialects import hivm
from tilelang_npu.ops import meaning
from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Access, Mmad, Multiply, OpRecord, Transfer
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Site
from tilelang_npu.simulator.sanitizer.numerics import spreads
from tilelang_npu.simulator.sanitizer.shadow_memory import Marks, ShadowMemory, laid_out, matrix
from tilelang_npu.target import name_of

_POINTWISE = (hivm.CopyOp, hivm.VCastOp, hivm.VBrcOp)
_MOVES = frozenset(f"hivm.hir.{name}" for name in ("load", "store", "copy", "nd2nz", "nz2nd", "fixpipe", "custom", "l12ub"))
"""Ops that move their source, possibly to another layout."""
_FILLED = "set the value of the padding with pad_value of T.copy"
CONSTANT = -1
"""Mark of elements that an op filled with a constant: neither padding nor the user's data."""
_SELECT = "hivm.hir.vsel"
_MADE = "mask the results of padding with T.if_then_else, or " + _FILLED
_ROUNDING = 4e-3
"""Difference, relative to the sum of the terms' magnitudes, up to which a product counts as equal to its value in 64 bits."""
_EXACT = 1e-9
"""Difference, relative to the sum of the terms' magnitudes, up to which two products in 64 bits count as equal."""


def _is_elementwise(op: Operation) -> bool:
    """Whether an op computes each element of its destination from the elements of its inputs with the same index."""
    if isinstance(op, hivm.CustomOp):
        entry = ops.operation_of_symbol(op.symbol)
        return isinstance(entry, ops.Elementwise) and entry.is_custom
    return isinstance(op, hivm.ElementwiseOp)


@dataclass
class _Kept:
    """What ``PaddingObserver.before`` computes for an op and ``PaddingObserver.after`` needs.

    Attributes:
        writing: the accesses of the op's outputs.
        writes: the arrays of the op's outputs.
        made: the marks of the first output, if they are known before the op runs.
        filled: for a load that fills its destination first under a condition: the old contents of the destination, and the
            marks if the load does fill it.
        mixed: for an elementwise op: the marks and values of its operands, and whether the op is a select.
        product: for a multiplication: its results with and without padding.
    """

    writing: Sequence[Access]
    writes: Sequence[Array]
    made: Marks | None = None
    filled: tuple[Array, Marks] | None = None
    mixed: tuple[Sequence[Marks], Sequence[Array], bool] | None = None
    product: _PaddedProduct | None = None


@dataclass
class _PaddedProduct:
    """A multiplication with padding in an operand. All arrays have an element for each row and column of the product.

    Attributes:
        block: the number of the block.
        site: the op, for a report.
        label: the name of the accumulator's buffer.
        given: the product including the terms that are padding.
        own: the product without the terms that are padding.
        alone: a mark if all terms of the element are padding, otherwise 0.
        some: a mark if any term of the element is padding, otherwise 0.
        terms: the number of terms of the element that are not padding.
        depth: the number of terms of each element (K).
        marked: the marks of the accumulator before the op.
        size: the sum of the magnitudes of the element's terms.
    """

    block: int
    site: Site
    label: str
    given: Array
    own: Array
    alone: Marks
    some: Marks
    terms: Array
    depth: int
    marked: Marks
    size: Array


class PaddingObserver:
    """An observer of a running block that tracks padding and reports reductions and products that padding changes.

    Args:
        fills: for each kind of core, the load that each filling op belongs to, by the number of the filling op.

    Attributes:
        found: the hazards found so far, by kind of core and number of the op: at most one for each op.
    """

    def __init__(self, fills: dict[str, dict[int, OpRecord]]) -> None:
        self.found: dict[tuple[str, int], Hazard] = {}
        loads = [(core, number) for core, filling in fills.items() for number in filling]
        self._numbers = {key: mark for mark, key in enumerate(loads, 1)}
        self._loads = [fills[core][number] for core, number in loads]
        self._marks = ShadowMemory()
        self._runs: Counter[tuple[int, str, int, int]] = Counter()

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> _Kept | None:
        """Examines the operands of an op before the op runs, because the op may overwrite them; returns the state for
        :meth:`after`, or None if the op has no outputs."""
        run = self._runs[block, record.core, sub, record.number]
        self._runs[block, record.core, sub, record.number] += 1
        if len(writes) == 0:
            return None
        reading = [access for access in record.accesses if access.reads and not access.scratch]
        writing = [access for access in record.accesses if access.writes and not access.scratch]
        origins = [self._marks.of(array) for array in reads]
        marks = [np.maximum(origin, 0) for origin in origins]
        kept = _Kept(writing, writes, np.zeros((), np.int32))
        fill = self._numbers.get((record.core, record.number), 0)
        site = Site(record.mnemonic, record.location, record.pipe, CoreId(block, record.core, sub).label, run, "src",
                    record.number)
        if isinstance(op, hivm.Nd2NzOp) and len(reads) == 1:
            kept.made = _filled_up(reading[0], marks[0], writing[0], writes[0], self._marks.of(writes[0]))
            if op.init_out_buffer.value.data:
                filled = _filled_up(reading[0], marks[0], writing[0], writes[0], np.array(fill, np.int32))
                if op.init_condition is None:
                    kept.made = filled
                else:  # the condition is not known here: a fill is recognised by changed contents
                    kept.filled = None if filled is None else (writes[0].copy(), filled)
        elif fill or (isinstance(op, hivm.VBrcOp) and not reads):
            kept.made = np.array(fill or CONSTANT, np.int32)
        elif not any(origin.any() for origin in origins):
            pass
        elif isinstance(op, _POINTWISE) or _is_elementwise(op):
            kept.mixed = origins, [array.copy() for array in reads], op.name == _SELECT
        elif not any(mark.any() for mark in marks):
            pass
        elif isinstance(op, hivm.VReduceOp):
            kept.made = self._folded(block, site, op, reading[0], reads[0], marks[0])
        elif isinstance(record.work, Mmad | Multiply):
            kept.product = _product(block, site, record.work, reading, reads, marks, writing[0], self._marks.of(writes[0]))
        elif op.name in _MOVES and isinstance(record.work, Transfer):
            kept.made = _moved(reading, marks, writing[0], writes[0], record.work)
        return kept

    def after(self, kept: object) -> None:
        """Sets the marks of the outputs of an op that has run, and reports a product that padding changed."""
        if not isinstance(kept, _Kept):
            return
        made = kept.made
        if kept.mixed is not None:
            made = _combined(*kept.mixed, kept.writes[0])
        elif kept.product is not None:
            made = self._multiplied(kept.product, kept.writing[0], kept.writes[0])
        elif kept.filled is not None and made is not None:
            held, filled = kept.filled
            made = np.where(held.view(f"u{held.itemsize}") != kept.writes[0].view(f"u{held.itemsize}"), filled, made)
        for array in kept.writes:
            fits = made is not None and (made.ndim == 0 or made.shape == array.shape)
            self._marks.put(array, made if fits and made is not None else np.zeros((), np.int32))

    def _multiplied(self, product: _PaddedProduct, access: Access, array: Array) -> Marks | None:
        """Returns the marks of an accumulator; reports padding that changed it."""
        after = matrix(access, array)
        assert after is not None
        rows, columns = product.given.shape
        with np.errstate(invalid="ignore", over="ignore"):
            fresh = np.abs(after[:rows, :columns].astype(np.float64) - product.given) <= _ROUNDING * product.size
        anew = bool((fresh | _is_nan(product.given)).all())  # the old contents were not added
        added_to = np.zeros(product.given.shape, np.bool_) if anew else product.marked[:rows, :columns] == 0
        with np.errstate(invalid="ignore"):
            same = (product.given == product.own) | (np.abs(product.given - product.own) <= _EXACT * product.size)
        differ = ((product.alone == 0) | added_to) & ~same & ~(_is_nan(product.given) & _is_nan(product.own))
        if differ.any():
            first = tuple(int(index) for index in np.argwhere(differ)[0])
            loaded = int(product.terms[first])
            of = f" in {product.label}" if product.label else ""
            what = (f"padding changes {np.count_nonzero(differ)} of {differ.size} results of the product{of}: the first has "
                    f"{loaded} loaded terms and {product.depth - loaded} of padding and is {product.given[first]:g}; without "
                    f"the padding it is {product.own[first]:g}")
            self._report(product.block, product.site, access, what, int(product.some[first]))
        made = matrix(access, np.zeros(array.shape, np.int32))
        assert made is not None
        made = made.copy()
        made[:rows, :columns] = np.where(added_to, 0, product.alone)
        return laid_out(access, array, made)

    def _report(self, block: int, site: Site, access: Access, what: str, mark: int) -> None:
        load = self._loads[mark - 1]
        core = site.core if site.core.startswith(load.core) else load.core
        cause = Site(load.mnemonic, load.location, load.pipe, core, 0, "dst", load.number)
        self.found.setdefault((site.core[:3], site.number), Hazard(
            "S224", "padding", site, cause, name_of(access.memory), 0, 0, what, block, access.label,
            _MADE if load.core == "AIC" else _FILLED))

    def _folded(self, block: int, site: Site, op: hivm.VReduceOp, access: Access, source: Array, marks: Marks) -> Marks:
        """Returns the marks of a reduction's result, which has a mark where all reduced elements are padding; reports a
        reduction that padding changes."""
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
                        f"first has {loaded} loaded elements and {filled.size} of padding and is {given[first]}; without "
                        f"the padding it is {wanted[first]}")
                self._report(block, site, access, what, int(filled[0]))
        return np.where(alone, marks.max(axis=axes, keepdims=True), 0).astype(np.int32)


def _filled_up(reading: Access, marks: Marks, writing: Access, target: Array, rest: Marks) -> Marks | None:
    """Returns the marks of a tile in L1 after a load: those of the loaded matrix, and ``rest`` elsewhere."""
    loaded = matrix(reading, marks)
    if loaded is None:
        return None
    inside = laid_out(writing, target, np.ones(loaded.shape, np.int32))
    moved = laid_out(writing, target, loaded)
    return None if inside is None or moved is None else np.where(inside == 1, moved, rest).astype(np.int32)


def _moved(reading: Sequence[Access], marks: Sequence[Marks], writing: Access, target: Array, work: Transfer) -> Marks | None:
    """Returns the marks after a move, in the layout of its destination; an atomic update keeps a mark only if both have one."""
    moved = marks[0]
    if moved.shape != target.shape or reading[0].memory != writing.memory or work.turned:
        by_row = matrix(reading[0], moved)
        if by_row is None:
            return moved if moved.shape == target.shape else None
        laid = laid_out(writing, target, by_row.T if work.turned else by_row)
        if laid is None:
            return None
        moved = laid
    if len(marks) > 1 and marks[1].shape == moved.shape:
        moved = np.where(marks[1] != 0, moved, 0).astype(np.int32)
    return moved


def _product(block: int, site: Site, work: Mmad | Multiply, reading: Sequence[Access], reads: Sequence[Array],
             marks: Sequence[Marks], writing: Access, marked: Marks) -> _PaddedProduct | None:
    """Returns a multiplication computed with and without padding; None if its sizes are not constants, if it has a bias, if an
    operand is no matrix or is packed, or if no operand has padding."""
    if not (isinstance(work.m, int) and isinstance(work.k, int) and isinstance(work.n, int)):
        return None
    m, k, n = work.m, work.k, work.n
    turned = work.turned if isinstance(work, Mmad) else (False, False)
    if work.element == "i4" or (isinstance(work, Mmad) and work.bias):
        return None
    values: list[Array] = []
    padding: list[Marks] = []
    for access, array, mark, turn in zip(reading[:2], reads[:2], marks[:2], turned, strict=True):
        numbers, given = matrix(access, array.astype(np.float64)), matrix(access, mark)
        if numbers is None or given is None:
            return None
        values.append(numbers.T if turn else numbers)
        padding.append(given.T if turn else given)
    (left, right), (rows, columns) = values, padding
    left, rows, right, columns = left[:m, :k], rows[:m, :k], right[:k, :n], columns[:k, :n]
    seen = matrix(writing, np.maximum(marked, 0))
    if seen is None or not (rows.any() or columns.any()):
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        given = left @ right
        own = np.where(rows != 0, 0, left) @ np.where(columns != 0, 0, right)
        size = np.abs(left) @ np.abs(right)
    terms = (rows == 0).astype(np.float32) @ (columns == 0).astype(np.float32)
    some = np.maximum(rows.max(axis=1)[:, None], columns.max(axis=0)[None, :])
    alone = np.where(terms == 0, some, 0).astype(np.int32)
    return _PaddedProduct(block, site, writing.label, given, own, alone, some, terms, k, seen.copy(), size)


def _is_nan(array: Array) -> NDArray[np.bool_]:
    """Returns which elements are NaN."""
    found: NDArray[np.bool_] = array != array
    return found


def _combined(marks: Sequence[Marks], sources: Sequence[Array], chooses: bool, result: Array) -> Marks:
    """Returns the marks of an elementwise op's result.

    An element has a mark if one of its operands has one, except where the result equals an operand element without a mark.
    There the padding was neutral (such as 0 in a running sum), or a select did not choose it. Equality with an element that an
    op filled with a constant does not count, because it does not show that the padding had no effect.

    Args:
        marks: the marks of the operands.
        sources: the values of the operands.
        chooses: whether the op is a select.
        result: the result.
    """
    made: Marks = np.full(result.shape, CONSTANT, np.int32)
    clean = np.zeros(result.shape, np.bool_)
    for mark, source in zip(marks, sources, strict=True):
        if spreads(source, result):
            made = np.where((made > 0) | (mark > 0), np.maximum(made, mark), np.where(mark == 0, 0, made)).astype(np.int32)
            if source.dtype == result.dtype:
                same = (source == result) | (_is_nan(source) & _is_nan(result))
                clean |= same & ((mark == 0) | (chooses & (mark == CONSTANT)))
        else:
            made = np.where(made > 0, made, 0).astype(np.int32)
    return np.where(clean, 0, made).astype(np.int32)
