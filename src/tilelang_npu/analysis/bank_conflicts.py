"""Chooses start addresses of buffers in UB so that instructions do not read both sources from the same banks.

Successive addresses of UB belong to successive groups of banks; after one period of bytes the first group follows again. An
instruction that reads both of its sources from the same banks takes twice as long (docs/hardware.md#memories). A repeat of an
instruction reads half of the groups, so two sources whose addresses differ by half a period never conflict. Each buffer is
therefore placed either at a multiple of the period or half a period after one, such that few bytes are read with conflicts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from tilelang_npu.analysis.allocation_live_ranges import LiveRange
from tilelang_npu.analysis.view_chains import root_of
from tilelang_npu.dialects import hivm
from tilelang_npu.ops import rate_of
from tilelang_npu.target import Chip


def bank_period(chip: Chip) -> int:
    """Returns the period of the banks of UB: the distance in bytes after which addresses are in the same banks again."""
    return chip.banks.groups * chip.banks.width


def _bytes_read_together(function: func.FuncOp, ranges: Sequence[LiveRange], chip: Chip
                         ) -> dict[LiveRange, dict[LiveRange, int]]:
    """Returns, for each pair of buffers that an instruction reads as its two sources, the bytes that all such instructions
    read.
    """
    by_value: dict[SSAValue, LiveRange] = {value: one for one in ranges for value in one.members}
    found: dict[LiveRange, dict[LiveRange, int]] = defaultdict(lambda: defaultdict(int))
    for op in function.walk():
        if isinstance(op, hivm.ElementwiseOp) and rate_of(chip, op.ENTRY.cost).banked:
            sources = [source for value in op.ins() if isinstance(value.type, MemRefType)
                       and (source := by_value.get(root_of(value))) is not None]
            if len(sources) == 2 and sources[0] is not sources[1]:
                one, other = sources
                nbytes = max(one.nbytes, other.nbytes)
                found[one][other] += nbytes
                found[other][one] += nbytes
    return found


def bank_offsets(function: func.FuncOp, ranges: Sequence[LiveRange], chip: Chip) -> dict[LiveRange, int]:
    """Chooses for each buffer whether it should start at a multiple of the bank period or half a period after one.

    Args:
        function: the function whose instructions read the buffers.
        ranges: the live ranges of the buffers.
        chip: the chip.

    Returns:
        The start of each buffer modulo the period, in bytes: 0 or half the period. Buffers that no instruction reads as one of
        two sources have no entry.
    """
    together = _bytes_read_together(function, ranges, chip)
    half, found = bank_period(chip) // 2, dict[LiveRange, int]()
    for one in sorted(together, key=lambda each: (-sum(together[each].values()), each.start)):
        lost = [sum(nbytes for other, nbytes in together[one].items() if found.get(other) == start) for start in (0, half)]
        found[one] = 0 if lost[0] <= lost[1] else half
    return found


def conflicting_buffers(function: func.FuncOp, addresses: Mapping[LiveRange, Sequence[int]], chip: Chip) -> list[LiveRange]:
    """Returns buffers whose move to other banks would avoid all bank conflicts.

    For each pair of buffers that an instruction reads from the same banks, the result contains one of the two buffers. It
    contains no buffer twice.

    Args:
        function: the function whose instructions read the buffers.
        addresses: the planned addresses of each buffer, one per slot, in bytes.
        chip: the chip.
    """
    together, half = _bytes_read_together(function, list(addresses), chip), bank_period(chip) // 2
    offsets, found = bank_offsets(function, list(addresses), chip), list[LiveRange]()
    for one, others in together.items():
        for other in others:
            distance = (addresses[one][0] - addresses[other][0]) % (2 * half)
            if distance < chip.banks.width or 2 * half - distance < chip.banks.width:
                moved = offsets[one] > offsets[other] or (offsets[one] == offsets[other] and one.start > other.start)
                found.append(one if moved else other)
    return list(dict.fromkeys(found))


__all__ = ["bank_offsets", "bank_period", "conflicting_buffers"]
