"""Detection of numerical faults: a NaN from operands that are no NaN, an overflow, a conversion that changes values, and an
addition without effect because the element type is too narrow.

On request (``run --numbers``, ``TILELANG_NPU_NUMBERS=1``) the operands of every op that writes numbers are compared with its
results. A finding is not necessarily a fault: a kernel can intend its infinities. Uninitialised memory is not reported here but
by the other searches of the sanitizer: its bytes are all ones, a NaN that arithmetic never produces, and are recognised by it.
Ops that make another NaN of such an element, such as products, are not reported at the results that it reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.display import Report
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Access, Mmad, Multiply, OpRecord
from tilelang_npu.simulator.sanitizer.shadow_memory import laid_out, matrix

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from tilelang_npu.diagnostic_codes import Code

CODES: Mapping[Code, str] = {
    "S401": "an op makes NaN from operands that are no NaN",
    "S402": "an op makes an infinity from finite operands",
    "S403": "a conversion changes values",
    "S404": "an addition in 16 bits has no effect",
}
"""A short description of each code of a numerical fault."""


@dataclass
class NumberFinding(Report):
    """A numerical fault of one op at one line of the kernel, with counts over all executions of the op.

    Attributes:
        code: a key of :data:`CODES`.
        op: the name of the HIVM op.
        location: the source line of the op; None if unknown.
        core: the core on which the fault was first seen.
        buffer: the name of the destination buffer; empty if unknown.
        block: the number of the block in which the fault was first seen.
        index: the index of the first faulty element in the op's destination.
        detail: the values of the operands and of the result at that index, as text.
        elements: number of faulty elements, over all executions.
        of: number of elements that the executions with a faulty element wrote.
    """

    code: Code
    op: str
    location: Location | None
    core: str
    buffer: str
    block: int
    index: tuple[int, ...]
    detail: str
    elements: int = 0
    of: int = 0

    @property
    def key(self) -> object:
        """A key that is equal for findings with the same code, op and source line on the same kind of core."""
        return self.code, self.op, self.location, self.core[:3]

    def __str__(self) -> str:
        name = f" of {self.buffer}" if self.buffer else ""
        text = self.location.source().strip() if self.location is not None else ""
        where = self.location.shown_line if self.location is not None else self.op
        return (f"numbers[{self.code}]: {CODES[self.code]}: {self.elements} of {self.of} elements{name}\n"
                f"  {where}  {text or self.op}\n"
                f"  first at {list(self.index)} in block {self.block}, {self.core}: {self.detail}")


class _Before(NamedTuple):
    """An op that is about to run: the numbers of the block and sub-block, the op's record, copies of its operands, the arrays
    of its outputs, and for an addition the positions of the operands that are the destination too."""

    block: int
    sub: int
    record: OpRecord
    reads: list[Array]
    writes: Sequence[Array]
    sums: list[int]


class Numbers:
    """An observer that searches the ops of a running launch for numerical faults; ``findings`` has the results."""

    def __init__(self) -> None:
        self._found: dict[object, NumberFinding] = {}

    @property
    def findings(self) -> list[NumberFinding]:
        """The faults found so far, one for each op and code, in the order of their first occurrence."""
        return list(self._found.values())

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Returns copies of the operands of an op that is about to run, because the op may overwrite them."""
        sums = [place for place, array in enumerate(reads) if record.name == "hivm.hir.vadd" and _same(array, writes[0])]
        return _Before(block, sub, record, [array.copy() for array in reads], writes, sums)

    def after(self, kept: object) -> None:
        """Compares the results of an op that has run with its operands, and records the faults.

        Args:
            kept: the result of :meth:`before` for the op.
        """
        assert isinstance(kept, _Before)
        block, sub, record, reads, writes, sums = kept
        numbers = [array for array in reads if _is_float(array)]
        targets = [access for access in record.accesses if access.writes and not access.scratch]
        for access, written in zip(targets, writes, strict=True):
            seen: list[tuple[Code, NDArray[np.bool_]]] = []
            if _is_float(written) and reads:
                if (nans := _nans(written)).any() and not any(_nans(array).any() for array in numbers):
                    seen.append(("S401", nans & ~_reached_by_unwritten(record, reads, access, written)))
                if not any(np.isinf(array).any() for array in numbers):
                    seen.append(("S402", np.isinf(written)))
            if (len(reads) == 1 and reads[0].shape == written.shape and reads[0].dtype != written.dtype
                    and written.dtype != np.bool_):  # a truth value only says whether the number is 0
                seen.append(("S403", _lost(reads[0], written)))
            if len(sums) == 1 and len(reads) == 2 and _is_float(written) and written.dtype.itemsize < 4:
                added = np.broadcast_to(reads[1 - sums[0]], written.shape)
                seen.append(("S404", (written == reads[sums[0]]) & (added != 0) & np.isfinite(written)))
            for code, where in seen:
                if where.any():
                    self._tell(code, CoreId(block, record.core, sub), record, reads, written, where, access.label)

    def _tell(self, code: Code, core: CoreId, record: OpRecord, reads: Sequence[Array], written: Array,
              where: NDArray[np.bool_], label: str) -> None:
        key = code, record.name, record.location or record.number, record.core
        found = self._found.get(key)
        if found is None:
            index = tuple(int(number) for number in np.argwhere(where)[0])
            sources = [access.name for access in record.accesses if access.reads and not access.scratch]
            given = [f"{name} = {np.broadcast_to(array, written.shape)[index]}"
                     for name, array in zip(_numbered(sources), reads, strict=True) if spreads(array, written)]
            said = f"{', '.join(given) or record.name} gives {written[index]}"
            found = self._found[key] = NumberFinding(
                code, record.name, record.location, core.label, label, core.block, index, said)
        found.elements += int(np.count_nonzero(where))
        found.of += written.size


def _numbered(names: Sequence[str]) -> list[str]:
    """Returns the names, with a number appended to each name that occurs several times: ``src0``, ``src1``."""
    return [f"{name}{names[:place].count(name)}" if names.count(name) > 1 else name for place, name in enumerate(names)]


def spreads(array: Array, other: Array) -> bool:
    """Whether ``array`` can be broadcast to the shape of ``other`` and has the same number of axes."""
    return array.ndim == other.ndim and all(have in (1, size) for have, size in zip(array.shape, other.shape, strict=True))


def _same(array: Array, other: Array) -> bool:
    """Whether two arrays have the same address, shape and strides."""
    one, two = array.__array_interface__, other.__array_interface__
    return one["data"] == two["data"] and array.shape == other.shape and array.strides == other.strides


def _is_float(array: Array) -> bool:
    """Whether the elements of an array are floating-point numbers, including the types of ml_dtypes, whose NumPy kind is V."""
    kind = array.dtype
    return kind.kind == "f" or (kind.kind == "V" and kind.names is None and kind.type is not np.void)


def _nans(array: Array) -> NDArray[np.bool_]:
    """Returns a mask of the elements that are NaN, without those whose bytes are all ones (uninitialised memory)."""
    found: NDArray[np.bool_] = np.isnan(array) & ~_unwritten_nans(array)
    return found


def _unwritten_nans(array: Array) -> NDArray[np.bool_]:
    """Returns a mask of the elements that are NaN because their memory is uninitialised: all their bits are ones."""
    if not _is_float(array):
        return np.zeros(array.shape, np.bool_)
    bits = np.dtype(f"u{array.dtype.itemsize}")
    found: NDArray[np.bool_] = np.isnan(array) & (array.view(bits) == np.iinfo(bits).max)
    return found


def _reached_by_unwritten(record: OpRecord, reads: Sequence[Array], access: Access, written: Array) -> NDArray[np.bool_]:
    """Returns a mask of the elements of a result that are possibly computed from uninitialised elements of the operands.

    A product reads a row of one operand and a column of the other, a reduction a line of its operand, and an elementwise op the
    element of the same index. Of other ops, every element is possibly computed from every element of the operands.

    Args:
        record: the record of the op.
        reads: the operands before the op ran.
        access: the access of the result.
        written: the result.
    """
    unwritten = [_unwritten_nans(array) for array in reads]
    reached = np.zeros(written.shape, np.bool_)
    if not any(mask.any() for mask in unwritten):
        return reached
    if isinstance(record.work, Mmad | Multiply):
        return _reached_in_product(record, record.work, unwritten, access, written)
    for mask in unwritten:
        if spreads(mask, reached):
            reached |= mask
        elif spreads(reached, mask):  # a reduction
            axes = tuple(axis for axis in range(reached.ndim) if reached.shape[axis] == 1)
            reached |= np.any(mask, axis=axes, keepdims=True)
        elif mask.any():
            reached[...] = True
    return reached


def _reached_in_product(record: OpRecord, work: Mmad | Multiply, unwritten: Sequence[NDArray[np.bool_]], access: Access,
                        written: Array) -> NDArray[np.bool_]:
    """Returns a mask of the elements of an accumulator to which a product added terms with uninitialised elements.

    The accumulator itself is left out: a sum with its uninitialised elements keeps their bits.
    """
    reading = [one for one in record.accesses if one.reads and not one.scratch]
    turned = work.turned if isinstance(work, Mmad) else (False, False)
    lines: list[NDArray[np.bool_]] = []
    for number, (one, mask) in enumerate(zip(reading[:2], unwritten[:2], strict=True)):
        held = matrix(one, mask)
        if held is None:
            return np.ones(written.shape, np.bool_)
        along_k = held if turned[number] == bool(number) else held.T  # of A a row, of B a column, for each line of the result
        lines.append(np.asarray(along_k[:, :work.k if isinstance(work.k, int) else None].any(axis=1), np.bool_))
    marks = laid_out(access, written, (lines[0][:, None] | lines[1][None, :]).astype(np.int32))
    return np.ones(written.shape, np.bool_) if marks is None else marks != 0


def _lost(source: Array, result: Array) -> NDArray[np.bool_]:
    """Returns a mask of the elements that a conversion does not preserve: between floating-point types a nonzero number that
    becomes zero, from floating point to integer a difference of more than 1, otherwise any difference."""
    if _is_float(source) and _is_float(result):
        vanished: NDArray[np.bool_] = (source != 0) & (result == 0)
        return vanished
    if _is_float(source):  # to integers: a difference of up to 1 is rounding
        given = source.astype(np.float64)
        beyond: NDArray[np.bool_] = ~(np.abs(given - result.astype(np.float64)) <= 1)
        return beyond
    if _is_float(result):
        changed: NDArray[np.bool_] = source.astype(np.float64) != result.astype(np.float64)
        return changed
    other: NDArray[np.bool_] = source.astype(np.int64) != result.astype(np.int64)
    return other
