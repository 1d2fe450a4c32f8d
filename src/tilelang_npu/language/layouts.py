"""The layouts that ``T.annotate_layout`` takes: those of buffers in L1, and those of a GPU, which have no effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelang_npu.language.elements import Extents

__all__ = [
    "BufferLayout", "Fragment", "Layout", "SwizzleMode", "make_col_major_layout", "make_full_bank_swizzled_layout",
    "make_fully_replicated_layout_fragment", "make_gemm_fragment_8x8", "make_gemm_fragment_8x8_transposed",
    "make_half_bank_swizzled_layout", "make_linear_layout", "make_mma_swizzle_layout", "make_nz_layout",
    "make_quarter_bank_swizzled_layout", "make_swizzled_layout", "make_tcgen05mma_swizzled_layout",
    "make_volta_swizzled_layout", "make_wgmma_swizzled_layout", "make_zn_layout",
]


@dataclass(frozen=True, eq=False)
class BufferLayout:
    """The order of a buffer's elements in memory. A fractal is a submatrix of 16 rows by 32 bytes.

    Attributes:
        name: ``"zN"``: each fractal is stored row by row, and the fractals column by column; ``"nZ"``: the transpose of that;
            ``"column"``: the matrix is stored column by column, without fractals; ``"swizzled"``: the order of a GPU's shared
            memory.
        buffer: the buffer that has this layout.
    """

    name: str
    buffer: object


def make_zn_layout(buf: object) -> BufferLayout:
    """Returns the layout that a load into L1 produces: fractals of 16 rows by 32 bytes, each stored row by row, and the
    fractals stored column by column.
    """
    return BufferLayout("zN", buf)


def make_nz_layout(buf: object) -> BufferLayout:
    """Returns the transpose of the layout of :func:`make_zn_layout`, for operands that the Cube core reads transposed."""
    return BufferLayout("nZ", buf)


def make_col_major_layout(buf: object) -> BufferLayout:
    """Returns the layout that stores a matrix column by column, without fractals."""
    return BufferLayout("column", buf)


def make_swizzled_layout(buffer: object, *_: object, **__: object) -> BufferLayout:
    """Returns the layout that avoids bank conflicts in a GPU's shared memory, which has no effect on an NPU."""
    return BufferLayout("swizzled", buffer)


make_full_bank_swizzled_layout = make_half_bank_swizzled_layout = make_quarter_bank_swizzled_layout = make_swizzled_layout
make_wgmma_swizzled_layout = make_mma_swizzle_layout = make_linear_layout = make_swizzled_layout
make_tcgen05mma_swizzled_layout = make_volta_swizzled_layout = make_swizzled_layout


class SwizzleMode(Enum):
    """The number of bytes within which a GPU's shared memory permutes the parts of a row, which has no effect on an NPU."""

    NONE = 1
    SWIZZLE_32B = 32
    SWIZZLE_64B = 64
    SWIZZLE_128B = 128


class Layout:
    """The order of a buffer's elements in a GPU's memory, which has no effect on an NPU: elements are where the compiler needs
    them, and those of a global tensor are in row-major order.

    Example: ``T.Layout([64, 64], lambda i, j: [j, i])``

    Args:
        shape: the sizes of the buffer.
        forward_fn: the function from an element's indices to its place.
    """

    def __init__(self, shape: Extents, forward_fn: Callable[..., object] | None = None, **_: object) -> None:
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.forward_fn = forward_fn

    def __repr__(self) -> str:
        return f"T.{type(self).__name__}({list(self.shape)})"


class Fragment(Layout):
    """The distribution of a buffer's elements over a GPU's threads and registers, which has no effect on an NPU.

    Example: ``T.Fragment([64, 64], replicate=2)``

    Args:
        shape: the sizes of the buffer.
        forward_fn: the function from an element's indices to its thread and its register.
        forward_thread_fn: the function from an element's indices to its thread.
        replicate: the number of threads that have the same element.
        forward_index_fn: the function from an element's indices to its register.
    """

    def __init__(self, shape: Extents, forward_fn: Callable[..., object] | None = None,
                 forward_thread_fn: Callable[..., object] | None = None, replicate: int = 1,
                 forward_index_fn: Callable[..., object] | None = None) -> None:
        super().__init__(shape, forward_fn)
        self.forward_thread_fn, self.forward_index_fn, self.replicated = forward_thread_fn, forward_index_fn, replicate

    def repeat(self, *_: object, **__: object) -> Fragment:
        """Returns the distribution itself, which has no effect."""
        return self

    replicate = condense_rep_var = repeat


def make_gemm_fragment_8x8() -> Fragment:
    """Returns the distribution of 8 by 8 elements over the threads of a GPU's warp, which has no effect on an NPU."""
    return Fragment((8, 8))


make_gemm_fragment_8x8_transposed = make_gemm_fragment_8x8


def make_fully_replicated_layout_fragment(buffer: Any, threads: int) -> Fragment:
    """Returns the distribution with which each thread of a GPU's block has all elements, which has no effect on an NPU.

    Args:
        buffer: the buffer, with the attribute ``shape``.
        threads: the number of threads.
    """
    return Fragment(buffer.shape, replicate=threads)
