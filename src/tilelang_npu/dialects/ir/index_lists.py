"""Dynamic index lists: the offsets, sizes and strides of an op, of which some are constants and others are operands."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerType
from xdsl.ir import SSAValue

__all__ = ["mixed_values"]


def mixed_values(static: DenseArrayBase[IntegerType], dynamic: Sequence[SSAValue]) -> list[SSAValue | int]:
    """Merges the two parts of a dynamic index list.

    Args:
        static: the constants, with ``DYNAMIC_INDEX`` at the position of each value that is not constant.
        dynamic: the SSA values for these positions, in order.

    Returns:
        An int for each constant and the SSA value for each other position.
    """
    values = iter(dynamic)
    return [next(values) if value == DYNAMIC_INDEX else int(value) for value in static.get_values()]
