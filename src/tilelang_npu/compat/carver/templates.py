"""The templates: one class for each kind of operation for which tile sizes can be recommended."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from tilelang_npu.compat.carver.arch import AscendArch
from tilelang_npu.math import cdiv
from tilelang_npu.target.dtypes import DType

__all__ = [
    "ElementwiseTemplate", "FlashAttentionTemplate", "GEMVTemplate", "GeneralReductionTemplate", "Hint", "MatmulTemplate",
    "NoRasterization",
]

_TILE = 500.0  # cycles to start and end a tile; only the ranking depends on it
_BYTES = 64.0  # bytes per cycle between GM and one core; only the ranking depends on it
_STAGES = 2  # a tile is loaded while another one is computed

TemplateT = TypeVar("TemplateT", bound="_Template")


class NoRasterization:
    """The block order of a hint without a swizzle: blocks run in the order of their numbers."""


@dataclass(frozen=True)
class Hint:
    """A recommended tile size.

    Attributes:
        block: the size of the tile along each spatial axis (each axis of the result).
        rstep: the size of the tile along each reduced axis.
        value: the estimated number of cycles of the whole operation, by which hints are ordered.
    """

    block: list[int]
    rstep: list[int] = field(default_factory=list)
    value: float = 0.0

    pipeline_stage: ClassVar[int] = _STAGES
    """The recommended number of stages of ``T.Pipelined``."""
    rasterization_plan: ClassVar[NoRasterization] = NoRasterization()
    """The recommended order of blocks."""

    @property
    def warp(self) -> list[int]:
        """The size of the part of a tile that a GPU's warp computes: the whole tile, because a core has no warps."""
        return self.block

    @property
    def kwargs(self) -> list[int]:
        """The sizes of the tile along all axes: first the spatial axes, then the reduced ones."""
        return [*self.block, *self.rstep]


def _bytes(dtype: object) -> int:
    return max(1, DType(str(dtype)).bits // 8)


def _sizes(extent: int, least: int = 1, most: int = 4096) -> list[int]:
    """Powers of two up to the extent, and the extent itself where it is no larger than ``most``."""
    found = [1 << power for power in range(20) if least <= 1 << power <= min(most, extent)]
    if extent <= most and extent not in found and extent >= least:
        found.append(extent)
    return found or [min(extent, most)]


class _Template:
    arch: AscendArch | None = None

    def with_arch(self: TemplateT, arch: AscendArch) -> TemplateT:
        """Sets the chip for which tile sizes are recommended, and returns the template itself."""
        self.arch = arch
        return self

    def equivalent_function(self: TemplateT) -> TemplateT:
        """Returns the template itself in place of the operation that TileLang for GPUs would build."""
        return self

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """Returns the ``topk`` tile sizes with the lowest estimates that fit into the chip's memories (fewer if there are
        fewer)."""
        return sorted(self._candidates(self.arch or AscendArch()), key=lambda hint: hint.value)[:topk]

    def _candidates(self, arch: AscendArch) -> Iterator[Hint]:
        raise AssertionError  # every template has its own


@dataclass
class ElementwiseTemplate(_Template):
    """The template of an elementwise operation on arrays of equal shape.

    Attributes:
        shape: the shape of the arrays.
        dtype: the element type of the arrays.
        custom_mem_mul: the number of tiles that the kernel holds in UB at the same time.
    """

    shape: Sequence[int]
    dtype: object = "float16"
    custom_mem_mul: float = 3.0

    def _candidates(self, arch: AscendArch) -> Iterator[Hint]:
        size = _bytes(self.dtype)
        axes = [_sizes(extent) for extent in self.shape]
        for block in itertools.product(*axes):
            bytes_ = math.prod(block) * size
            if bytes_ * self.custom_mem_mul * _STAGES > arch.ub_cap or (block[-1] * size < 32 and block[-1] < self.shape[-1]):
                continue
            count = math.prod(cdiv(extent, tile) for extent, tile in zip(self.shape, block, strict=True))
            run = block[-1] * size  # short runs waste bandwidth
            cycles = _TILE + 3 * bytes_ / _BYTES * max(1.0, 512 / run)
            yield Hint(list(block), [], cdiv(count, arch.aivector_core_num) * cycles)


@dataclass
class GeneralReductionTemplate(_Template):
    """The template of a reduction of an array along some axes.

    Attributes:
        structure: a letter for each axis: ``S`` for an axis of the result, ``R`` for a reduced axis.
        shape: the shape of the array.
        dtype: the element type of the array.
    """

    structure: Sequence[str]
    shape: Sequence[int]
    dtype: object = "float16"

    def _candidates(self, arch: AscendArch) -> Iterator[Hint]:
        size = _bytes(self.dtype)
        for block in itertools.product(*(_sizes(extent) for extent in self.shape)):
            bytes_ = math.prod(block) * size
            if bytes_ * 3 * _STAGES > arch.ub_cap or (block[-1] * size < 32 and block[-1] < self.shape[-1]):
                continue
            steps = [cdiv(extent, tile) for extent, tile in zip(self.shape, block, strict=True)]
            spatial = [tile for tile, kind in zip(block, self.structure, strict=True) if kind == "S"]
            reduced = [tile for tile, kind in zip(block, self.structure, strict=True) if kind == "R"]
            blocks = math.prod(step for step, kind in zip(steps, self.structure, strict=True) if kind == "S")
            inner = math.prod(step for step, kind in zip(steps, self.structure, strict=True) if kind == "R")
            yield Hint(spatial, reduced, cdiv(blocks, arch.aivector_core_num) * inner * (_TILE + bytes_ / _BYTES))


@dataclass
class MatmulTemplate(_Template):
    """The template of a matrix product ``C[M, N] = A[M, K] @ B[K, N]``.

    Only the sizes and ``in_dtype`` affect the recommended tile sizes, not the transpositions, the bias and the other types.
    """

    M: int
    N: int
    K: int
    trans_A: bool = False
    trans_B: bool = True
    in_dtype: object = "float16"
    out_dtype: object = "float16"
    accum_dtype: object = "float16"
    with_bias: bool = False

    def _candidates(self, arch: AscendArch) -> Iterator[Hint]:
        size = _bytes(self.in_dtype)
        sides = [_sizes(extent, 16, 256) for extent in (self.M, self.N)]
        for m, n, k in itertools.product(*sides, _sizes(self.K, 16, 512)):
            in_l1, in_l0c = (m + n) * k * size * _STAGES, m * n * 4
            if in_l1 > arch.l1_cap or in_l0c > arch.l0c_cap or max(m, n) * min(k, 64) * size * _STAGES > arch.l0a_cap:
                continue
            steps = cdiv(self.K, k)
            work = cdiv(m, 16) * cdiv(n, 16) * cdiv(k, 16)  # one fractal product per cycle
            cycles = steps * (_TILE + max(work, (m + n) * k * size / _BYTES)) + m * n * 4 / _BYTES
            waves = cdiv(cdiv(self.M, m) * cdiv(self.N, n), arch.aicube_core_num)
            yield Hint([m, n], [k], waves * cycles)


@dataclass
class GEMVTemplate(_Template):
    """The template of a matrix-vector product ``y[N] = A[N, K] @ x[K]`` on the Vector cores.

    Only the sizes and ``in_dtype`` affect the recommended tile sizes.
    """

    N: int
    K: int
    trans_B: bool = True
    in_dtype: object = "float16"
    out_dtype: object = "float16"
    accum_dtype: object = "float16"
    with_bias: bool = False

    def _candidates(self, arch: AscendArch) -> Iterator[Hint]:
        for n, k in itertools.product(_sizes(self.N, most=512), _sizes(self.K, 16)):
            bytes_ = n * k * _bytes(self.in_dtype)
            if (bytes_ + n * k * 4) * _STAGES > arch.ub_cap:
                continue
            waves = cdiv(cdiv(self.N, n), arch.aivector_core_num)
            yield Hint([1, n], [k], waves * cdiv(self.K, k) * (_TILE + bytes_ / _BYTES))


class FlashAttentionTemplate(_Template):
    """The template of attention; a tile size consists of the numbers of query rows and key rows, and the row length.

    Args:
        batch_size: the number of batches.
        num_heads: the number of heads per batch.
        head_dim: the length of a row.
        seq_length: the number of query rows per head.
        seq_kv_length: the number of key rows per head; 0 for ``seq_length``.
        in_dtype: the element type of the inputs.
    """

    def __init__(self, batch_size: int = 1, num_heads: int = 1, head_dim: int = 128, seq_length: int = 4096,
                 seq_kv_length: int = 0, in_dtype: object = "float16", **_: object) -> None:
        self.heads, self.dim, self.rows = batch_size * num_heads, head_dim, seq_length
        self.keys = seq_kv_length or seq_length
        self.size = _bytes(in_dtype)

    def _candidates(self, arch: AscendArch) -> Iterator[Hint]:
        for m, n in itertools.product(_sizes(self.rows, 16, 256), _sizes(self.keys, 16, 256)):
            in_l1 = (m + 2 * n * _STAGES) * self.dim * self.size + m * n * self.size
            in_ub = m // arch.chip.aiv_per_aic * (n * 4 * 3 + self.dim * 4 * 2)  # each Vector core has its part of the rows
            if in_l1 > arch.l1_cap or in_ub > arch.ub_cap or m * max(n, self.dim) * 4 > arch.l0c_cap:
                continue
            step = _TILE + max(m * n * self.dim * 2 / 4096, m * n * 4 * 8 / 256)
            waves = cdiv(cdiv(self.rows, m) * self.heads, arch.aicube_core_num)
            yield Hint([m, n], [self.dim], waves * cdiv(self.keys, n) * step)
