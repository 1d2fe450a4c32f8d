"""How tensors in GM have the scales of an MX matrix.

An MX matrix has one scale for 32 elements along K. The scales of a left matrix [M, K] are logically [M, K / 32], those of a
right matrix [K, N] are [K / 32, N]. In memory, the scales of two neighbouring groups of 32 elements are adjacent bytes, so that
a tensor has them as pairs along a last axis of size 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

GROUP = 32
"""Elements along K that share a scale (OCP Microscaling Formats, MX specification 1.0)."""


FORMATS: Mapping[str, int] = MappingProxyType({"e5m2": 1, "e4m3": 2, "e2m1": 3})
"""The numbers that ``hivm.hir.mmadmxL1`` has for what the bytes of an MX matrix hold: float8, or two elements of four bits."""


@dataclass(frozen=True)
class ScaleLayout:
    """An arrangement of scales in a tensor.

    Attributes:
        side: ``a`` for the left matrix, ``b`` for the right one.
        rows_first: whether the first axis of the tensor is the matrix's axis of rows (M) or columns (N), and the second one
            that of groups along K; otherwise the other way round.
    """

    side: str
    rows_first: bool

    def logical_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the logical shape of the scales in a tile of a tensor; -1 is a size that is not constant.

        Args:
            shape: the shape of the tile: ``[x, y, 2]`` for pairs of scales, or ``[x, y]`` where the axis of groups has one
                element for each scale. Other shapes are returned as they are.
        """
        if len(shape) not in (2, 3):
            return tuple(shape)
        lines, groups = shape[:2] if self.rows_first else shape[1::-1]
        if len(shape) == 3:
            groups = -1 if -1 in (groups, shape[2]) else groups * shape[2]
        return (lines, groups) if self.side == "a" else (groups, lines)


SCALE_LAYOUTS: Mapping[str, ScaleLayout] = MappingProxyType({
    "MX_A_ND": ScaleLayout("a", rows_first=True),
    "MX_A_DN": ScaleLayout("a", rows_first=False),
    "MX_B_ND": ScaleLayout("b", rows_first=False),
    "MX_B_DN": ScaleLayout("b", rows_first=True),
})
"""The layouts by the names of PTO-ISA (``Layout::MX_A_ND`` ...), which TileLang-Ascend uses too."""

__all__ = ["FORMATS", "GROUP", "SCALE_LAYOUTS", "ScaleLayout"]
