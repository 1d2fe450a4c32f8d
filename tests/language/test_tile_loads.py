"""Tiles of L1 that several copies fill, and loops that load them (ascendc dialect)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang

KEYS = tilelang.PassConfigKey
SWITCHES = {KEYS.TL_ASCEND_AUTO_CV_COMBINE: True, KEYS.TL_ASCEND_AUTO_SYNC: True, KEYS.TL_ASCEND_MEMORY_PLANNING: True}
SPLICE = """
    import tilelang_npu.language as T

    split = T.symbolic("split")

    @T.prim_func
    def main(Q: T.Tensor((32, 48), "float16"), A: T.Tensor((split, 48), "float16"), B: T.Tensor(({rest}, 48), "float16"),
             S: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            q = T.alloc_L1((32, 48), "float16")
            k = T.alloc_L1((64, 48), "float16")
            c = T.alloc_L0C((32, 64), "float32")
            T.copy(Q, q)
            for turn in T.serial(2):
                {copies}
                T.gemm_v0(q, k, c, transpose_B=True, init=True)
            T.copy(c, S)
"""


def spliced(source: Any, rng: np.random.Generator, split: int, rest: str, rows: int, copies: str) -> tuple[Any, ...]:
    main = source(SPLICE.format(rest=rest, copies=copies.replace("\n", "\n                "))).main
    q, a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((32, 48), (split, 48), (rows, 48)))
    found = tilelang.compile(main, out_idx=[3], target="ascendc", pass_configs=SWITCHES)(q, a, b)
    return q.astype(np.float32), a.astype(np.float32), b.astype(np.float32), found


@pytest.mark.parametrize("split", [1, 13, 16, 33, 63])
def test_a_tile_of_two_parts_whose_border_only_run_time_knows(source: Any, rng: np.random.Generator, split: int) -> None:
    copies = "T.copy(A, k[0:split, :])\nT.copy(B, k[split:64, :])"
    q, a, b, found = spliced(source, rng, split, "64 - split", 64 - split, copies)
    np.testing.assert_array_equal(found, q @ np.concatenate([a, b]).T)


@pytest.mark.parametrize("split", [1, 16, 29])
def test_what_no_part_fills_is_zero(source: Any, rng: np.random.Generator, split: int) -> None:
    """The copy to the beginning of the tile clears it, the following one does not."""
    q, a, b, found = spliced(source, rng, split, "11", 11, "T.copy(A, k[0:split, :])\nT.copy(B, k[split:split + 11, :])")
    expected = np.zeros((64, 48), np.float32)
    expected[:split], expected[split:split + 11] = a, b
    np.testing.assert_array_equal(found, q @ expected.T)


LOOPS = """
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((70, 100), "float16"), B: T.Tensor((100, 32), "float16"), C: T.Tensor((70, 32), "{result}")):
        with T.Kernel(3, is_npu=True) as (cid, _):
            a = T.alloc_L1((32, 64), "float16")
            b = T.alloc_L1((64, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            with T.Scope("C"):
                for k in T.serial(2):
                    {loads}
                    T.barrier_all()
                    T.gemm_v0(a, b, c, init=(k == 0))
                    T.barrier_all()
                for i, j in T.Parallel(32, 32):
                    C[cid * 32 + i, j] = c[i, j]
"""


@pytest.mark.parametrize("result", ["float32", "float16"])
@pytest.mark.parametrize(("loads", "warned"), [
    ("for i, j in T.Parallel(32, 64):\n    a[i, j] = A[cid * 32 + i, k * 64 + j]\n"
     "for i, j in T.Parallel(64, 32):\n    b[i, j] = B[k * 64 + i, j]", []),
    ("for i, j in T.Parallel(32, 32):\n    a[i, j] = A[cid * 32 + i, k * 64 + j]\n    b[i, j] = B[i + k * 64, j]",
     ["32x32 loads all of a, 32x64", "32x32 loads all of b, 64x32"]),
    ("for i in T.Parallel(32):\n    a[i, 0] = A[i + cid * 32, k * 64]\nT.copy(B[k * 64, 0], b)", ["32 loads all of a, 32x64"]),
])
def test_loops_that_load_and_store_tiles_of_the_cube_core(source: Any, rng: np.random.Generator, loads: str, warned: list[str],
                                                          result: str) -> None:
    main = source(LOOPS.format(result=result, loads=loads.replace("\n", "\n                    "))).main
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((70, 100), (100, 32)))
    if warned:
        with pytest.warns(tilelang.TileWarning) as caught:
            kernel = tilelang.compile(main, out_idx=[2], target="ascendc", pass_configs=SWITCHES | {
                KEYS.TL_ASCEND_AUTO_CV_COMBINE: False})
        texts = [str(warning.message) for warning in caught]
        assert all(any(text in shown for shown in texts) for text in warned), texts
    else:
        kernel = tilelang.compile(main, out_idx=[2], target="ascendc", pass_configs=SWITCHES | {
            KEYS.TL_ASCEND_AUTO_CV_COMBINE: False})
    np.testing.assert_array_equal(kernel(a, b), (a.astype(np.float32) @ b.astype(np.float32)).astype(result))


def test_three_extents_are_refused_in_the_ascendc_dialect(source: Any, refused: Any) -> None:
    main = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((2, 4, 8), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((2, 4, 8), "float32")
                for i, j, k in T.Parallel(2, 4, 8):
                    a[i, j, k] = A[i, j, k]
    """).main
    with refused("T141", at="for i, j, k in T.Parallel(2, 4, 8):", message="T.Parallel over 3 extents"):
        tilelang.compile(main, target="ascendc")
