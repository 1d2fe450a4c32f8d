"""Where numbers go wrong: the first NaN, an overflow, what a conversion loses, a sum in too narrow a type.

Asked for (``run --numbers``, ``TILELANG_NPU_NUMBERS=1``), every op that writes numbers is looked at, before and behind it. What
is told is no fault as such: a kernel may want its infinities. Bytes that nothing wrote are left to the sanitizer: they are all
ones here, which no arithmetic makes, so that they are told from a NaN that an op has made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.display import Report
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.events import OpRecord
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.running_cores import CoreId

if TYPE_CHECKING:
    from xdsl.ir import Operation

CODES = {
    "S401": "NaN is born",
    "S402": "a finite number becomes infinite",
    "S403": "a conversion loses numbers",
    "S404": "a sum in half precision swallows what is added",
}
"""What is told, by code."""


@dataclass
class NumberFinding(Report):
    """Something that an op did to numbers, at one line of the kernel; counts are over all its runs.

    Attributes:
        code: one of :data:`CODES`.
        op: the HIVM op.
        location: the line of the kernel.
        core: the core that met it first.
        buffer: what was written, by name; empty where no name is known.
        block: the first block.
        index: the first element, in the op's destination.
        detail: what came in there and what went out.
        elements: how many elements.
        of: how many it wrote in the runs in which that happened.
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
        """Equal for the same line and kind in another run."""
        return self.code, self.op, self.location, self.core[:3]

    def __str__(self) -> str:
        name = f" of {self.buffer}" if self.buffer else ""
        text = self.location.source().strip() if self.location is not None else ""
        where = self.location.shown_line if self.location is not None else self.op
        return (f"numbers[{self.code}]: {CODES[self.code]}: {self.elements} of {self.of} elements{name}\n"
                f"  {where}  {text or self.op}\n"
                f"  first at {list(self.index)} in block {self.block}, {self.core}: {self.detail}")


class _Before(NamedTuple):
    """An op that is about to run: where, what it reads, what it writes to, and which operands it adds to themselves."""

    block: int
    sub: int
    record: OpRecord
    reads: list[Array]
    writes: Sequence[Array]
    sums: list[int]


class Numbers:
    """Watches the ops of a launch.

    Attributes:
        findings: what was seen, each line and kind once, in the order in which they were met.
    """

    def __init__(self) -> None:
        self._found: dict[object, NumberFinding] = {}

    @property
    def findings(self) -> list[NumberFinding]:
        return list(self._found.values())

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Keep what the op reads: it may write over it."""
        sums = [place for place, array in enumerate(reads) if record.name == "hivm.hir.vadd" and _same(array, writes[0])]
        return _Before(block, sub, record, [array.copy() for array in reads], writes, sums)

    def after(self, kept: object) -> None:
        """Look at what the op made of it."""
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
    """Names, with numbers where one stands for several."""
    return [f"{name}{names[:place].count(name)}" if names.count(name) > 1 else name for place, name in enumerate(names)]


def spreads(array: Array, other: Array) -> bool:
    """Whether each element of ``other`` has one of ``array`` that it comes from."""
    return array.ndim == other.ndim and all(have in (1, size) for have, size in zip(array.shape, other.shape, strict=True))


def _same(array: Array, other: Array) -> bool:
    """Whether both are the same elements of the same memory."""
    one, two = array.__array_interface__, other.__array_interface__
    return one["data"] == two["data"] and array.shape == other.shape and array.strides == other.strides


def _is_float(array: Array) -> bool:
    """Whether these are floating-point numbers; those of ml_dtypes are of kind V and no record."""
    kind = array.dtype
    return kind.kind == "f" or (kind.kind == "V" and kind.names is None and kind.type is not np.void)


def _nans(array: Array) -> NDArray[np.bool_]:
    """NaN that some op made: not the one of bytes that nothing wrote."""
    bits = np.dtype(f"u{array.dtype.itemsize}")
    unwritten = array.view(bits) == np.iinfo(bits).max
    found: NDArray[np.bool_] = np.isnan(array) & ~unwritten
    return found


def _lost(source: Array, result: Array) -> NDArray[np.bool_]:
    """Where a conversion gives zero for a number that is none, or another integer than it got."""
    if _is_float(source) and _is_float(result):
        vanished: NDArray[np.bool_] = (source != 0) & (result == 0)
        return vanished
    if _is_float(source):  # to integers: what is beyond rounding
        given = source.astype(np.float64)
        beyond: NDArray[np.bool_] = ~(np.abs(given - result.astype(np.float64)) <= 1)
        return beyond
    if _is_float(result):
        changed: NDArray[np.bool_] = source.astype(np.float64) != result.astype(np.float64)
        return changed
    other: NDArray[np.bool_] = source.astype(np.int64) != result.astype(np.int64)
    return other
