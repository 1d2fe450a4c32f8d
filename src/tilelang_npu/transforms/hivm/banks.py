"""Which buffers in UB should start in the other half of the banks, so that two operands of an instruction do not share them.

UB has groups of banks that addresses go through in turn; an instruction that reads both of its sources from the same ones takes
twice as long (docs/hardware.md#memories). A repeat takes half of the groups, so that two sources whose addresses lie half a
round apart never meet. The buffers are parted into those that start at a whole round and those that start at half of one, by
what would be lost most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.target import Chip
from tilelang_npu.transforms.ir.lifetimes import Life, root_of


def round_of(chip: Chip) -> int:
    """Bytes after which addresses come back to the same banks."""
    return chip.banks.groups * chip.banks.width


def starts(function: func.FuncOp, lives: Sequence[Life], chip: Chip) -> dict[Life, int]:
    """Where in a round of the banks a buffer should start, in bytes; nothing for buffers to which it does not matter."""
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
    half, found = round_of(chip) // 2, dict[Life, int]()
    for life in sorted(together, key=lambda each: (-sum(together[each].values()), each.start)):
        lost = [sum(nbytes for other, nbytes in together[life].items() if found.get(other) == start) for start in (0, half)]
        found[life] = 0 if lost[0] <= lost[1] else half
    return found


__all__ = ["round_of", "starts"]
