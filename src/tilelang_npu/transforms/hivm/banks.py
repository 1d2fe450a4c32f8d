"""Which buffers in UB should start in the other half of the banks, so that two operands of an instruction do not share them.

UB has groups of banks that addresses go through in turn; an instruction that reads both of its sources from the same ones takes
twice as long (docs/hardware.md#memories). A repeat takes half of the groups, so that two sources whose addresses lie half a
round apart never meet. The buffers are parted into those that start at a whole round and those that start at half of one, by
what would be lost most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.target import Chip
from tilelang_npu.transforms.ir.lifetimes import Life, root_of


def round_of(chip: Chip) -> int:
    """Bytes after which addresses come back to the same banks."""
    return chip.banks.groups * chip.banks.width


def _together(function: func.FuncOp, lives: Sequence[Life], chip: Chip) -> dict[Life, dict[Life, int]]:
    """What is read beside what by one instruction, and how many bytes."""
    by_value: dict[SSAValue, Life] = {value: life for life in lives for value in life.members}
    together: dict[Life, dict[Life, int]] = defaultdict(lambda: defaultdict(int))
    for op in function.walk():
        if isinstance(op, hivm.ElementwiseOp) and chip.vector[op.ENTRY.cost].banked:
            sources = [life for value in op.ins() if isinstance(value.type, MemRefType)
                       and (life := by_value.get(root_of(value))) is not None]
            if len(sources) == 2 and sources[0] is not sources[1]:
                one, other = sources
                nbytes = max(one.nbytes, other.nbytes)
                together[one][other] += nbytes
                together[other][one] += nbytes
    return together


def starts(function: func.FuncOp, lives: Sequence[Life], chip: Chip) -> dict[Life, int]:
    """Where in a round of the banks a buffer should start, in bytes; nothing for buffers to which it does not matter."""
    together = _together(function, lives, chip)
    half, found = round_of(chip) // 2, dict[Life, int]()
    for life in sorted(together, key=lambda each: (-sum(together[each].values()), each.start)):
        lost = [sum(nbytes for other, nbytes in together[life].items() if found.get(other) == start) for start in (0, half)]
        found[life] = 0 if lost[0] <= lost[1] else half
    return found


def met(function: func.FuncOp, addresses: Mapping[Life, Sequence[int]], chip: Chip) -> list[Life]:
    """Of the buffers that are read beside each other out of the same banks one each, in order."""
    together, half = _together(function, list(addresses), chip), round_of(chip) // 2
    begins, found = starts(function, list(addresses), chip), list[Life]()
    for one, others in together.items():
        for other in others:
            apart = (addresses[one][0] - addresses[other][0]) % (2 * half)
            if apart < chip.banks.width or 2 * half - apart < chip.banks.width:
                found.append(one if begins[one] > begins[other] or (begins[one] == begins[other] and one.start > other.start)
                             else other)
    return list(dict.fromkeys(found))


__all__ = ["met", "round_of", "starts"]
