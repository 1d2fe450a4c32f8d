"""Numerical faults: the first NaN, an overflow, numbers that a conversion loses, a sum in too narrow a type.

On request (``run --numbers``, ``TILELANG_NPU_NUMBERS=1``) every op that writes numbers is examined before and after it runs. A
finding is not necessarily a fault: a kernel may intend its infinities. Uninitialised bytes are the sanitizer's task: they are
all ones here, which arithmetic never produces, so that they differ from a NaN that an op made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.display import Report
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import OpRecord

if TYPE_CHECKING:
    from xdsl.ir import Operation

CODES = {
    "S401": "NaN is born",
    "S402": "a finite number becomes infinite",
    "S403": "a conversion loses numbers",
    "S404": "a sum in half precision swallows what is added",
}
"""The findings by code."""


@dataclass
class NumberFinding(Report):
    """A numerical fault at one line of the kernel; counts are over all runs of the op.

    Attributes:
        code: one of :data:`CODES`.
        op: the HIVM op.
        location: the line of the kernel.
        core: the core on which it was first seen.
        buffer: the name of the destination; empty where unknown.
        block: the first block.
        index: the first element, in the op's destination.
        detail: the operands and the result there.
        elements: number of elements.
        of: number of elements written by the runs in which it happened.
    """

    code: str
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
        """A key that is equal for the same line and kind in another run."""
        return self.code, self.op, self.location, self.core[:3]

    def __str__(self) -> str:
        name = f" of {self.buffer}" if self.buffer else ""
        text = self.location.source().strip() if self.location is not None else ""
        where = self.location.shown_line if self.location is not None else self.op
        return (f"numbers[{self.code}]: {CODES[self.code]}: {self.elements} of {self.of} elements{name}\n"
                f"  {where}  {text or self.op}\n"
                f"  first at {list(self.index)} in block {self.block}, {self.core}: {self.detail}")


class _Before(NamedTuple):
    """An op before it runs: block and sub-block, record, copies of its operands, outputs, and in-place operands of an
    addition."""

    block: int
    sub: int
    record: OpRecord
    reads: list[Array]
    writes: Sequence[Array]
    sums: list[int]


class Numbers:
    """An observer that examines the ops of a launch.

    Attributes:
        findings: the findings, each line and kind once, in the order of their first occurrence.
    """

    def __init__(self) -> None:
        self._found: dict[object, NumberFinding] = {}

    @property
    def findings(self) -> list[NumberFinding]:
        return list(self._found.values())

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Keeps copies of the operands: the op may overwrite them."""
        sums = [place for place, array in enumerate(reads) if record.name == "hivm.hir.vadd" and _same(array, writes[0])]
        return _Before(block, sub, record, [array.copy() for array in reads], writes, sums)

    def after(self, kept: object) -> None:
        """Examines the results of the op."""
        assert isinstance(kept, _Before)
        block, sub, record, reads, writes, sums = kept
        numbers = [array for array in reads if _is_float(array)]
        targets = [access for access in record.accesses if access.writes and not access.scratch]
        for access, written in zip(targets, writes, strict=True):
            seen: list[tuple[str, NDArray[np.bool_]]] = []
            if _is_float(written) and reads:
                if not any(_nans(array).any() for array in numbers):
                    seen.append(("S401", _nans(written)))
                if not any(np.isinf(array).any() for array in numbers):
                    seen.append(("S402", np.isinf(written)))
            if len(reads) == 1 and reads[0].shape == written.shape and reads[0].dtype != written.dtype:
                seen.append(("S403", _lost(reads[0], written)))
            if len(sums) == 1 and len(reads) == 2 and _is_float(written) and written.dtype.itemsize < 4:
                added = np.broadcast_to(reads[1 - sums[0]], written.shape)
                seen.append(("S404", (written == reads[sums[0]]) & (added != 0) & np.isfinite(written)))
            for code, where in seen:
                if where.any():
                    self._tell(code, CoreId(block, record.core, sub), record, reads, written, where, access.label)

    def _tell(self, code: str, core: CoreId, record: OpRecord, reads: Sequence[Array], written: Array,
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
    """Returns names, numbered where one occurs several times."""
    return [f"{name}{names[:place].count(name)}" if names.count(name) > 1 else name for place, name in enumerate(names)]


def spreads(array: Array, other: Array) -> bool:
    """Whether each element of ``other`` corresponds to one of ``array``, by broadcasting."""
    return array.ndim == other.ndim and all(have in (1, size) for have, size in zip(array.shape, other.shape, strict=True))


def _same(array: Array, other: Array) -> bool:
    """Whether both are the same elements of the same memory."""
    one, two = array.__array_interface__, other.__array_interface__
    return one["data"] == two["data"] and array.shape == other.shape and array.strides == other.strides


def _is_float(array: Array) -> bool:
    """Whether these are floating-point numbers; types of ml_dtypes have kind V."""
    kind = array.dtype
    return kind.kind == "f" or (kind.kind == "V" and kind.names is None and kind.type is not np.void)


def _nans(array: Array) -> NDArray[np.bool_]:
    """Returns which elements are NaN, other than the NaN of uninitialised bytes."""
    bits = np.dtype(f"u{array.dtype.itemsize}")
    unwritten = array.view(bits) == np.iinfo(bits).max
    found: NDArray[np.bool_] = np.isnan(array) & ~unwritten
    return found


def _lost(source: Array, result: Array) -> NDArray[np.bool_]:
    """Returns where a conversion makes zero of a nonzero number, or changes an integer."""
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
