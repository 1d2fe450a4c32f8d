"""The start of a copy is checked at run time: a negative index is an error, even if the address is in another row of the
tensor."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError

PLANES, HEIGHT, WIDTH, TILE, BLOCKS = 3, 64, 16, 8, 32


@tilelang.jit(out_idx=[-1], target="npuir")
def gather(first: int, step: int, rank: int) -> object:
    """Each block takes the tile of plane 1 that starts at ``first + step * block``."""
    shape = (TILE, WIDTH) if rank == 2 else (1, TILE, 1, WIDTH)

    @T.prim_func
    def gather(X: T.Tensor((PLANES, HEIGHT, WIDTH), "float32"), Y: T.Tensor((BLOCKS, TILE, WIDTH), "float32")) -> None:
        with T.Kernel(BLOCKS, is_npu=True) as (block, _):
            x = T.alloc_shared(shape, "float32")
            start = first + step * block
            T.copy(X[1, start:start + TILE, 0:WIDTH], x)
            T.copy(x, Y[block, 0:TILE, 0:WIDTH])

    return gather


@pytest.mark.parametrize("rank", [2, 4])
@pytest.mark.parametrize(("first", "step"), [(0, 1), (50, -1), (25, 1), (-1, 1), (20, -1)])
def test_a_negative_start_on_an_inner_axis_is_not_the_plane_before(first: int, step: int, rank: int) -> None:
    given = np.random.default_rng(0).standard_normal((PLANES, HEIGHT, WIDTH), np.float32)
    starts = [first + step * block for block in range(BLOCKS)]
    kernel = gather(first, step, rank)
    wrong = next((block for block, start in enumerate(starts) if start < 0), None)
    if wrong is not None:
        problem = f"T502.*T.copy starts at -1 on axis 1 of X, which has 0..63 in block {wrong}"
        with pytest.raises(TileError, match=problem) as caught:
            kernel(given)
        assert "to their place in the tile" in caught.value.help
        return
    made = kernel(given)
    for block, start in enumerate(starts):
        assert np.array_equal(made[block], given[1, start:start + TILE])
