"""Reductions whose result depends on the padding of T.copy past the end of a tensor: S224."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.sanitizer.findings import brief
from tilelang_npu.simulator.sanitizer.hazard import Hazard

COUNT = int(os.environ.get("TILELANG_RANDOM_PADDING", "10"))
CONFIGS = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}


def findings(kernel: Any, *arrays: np.ndarray) -> list[Hazard]:
    kernel(*arrays)
    return [hazard for hazard in kernel.last_launch.hazards if hazard.code == "S224"]


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def extreme(columns: int, mode: str, dtype: str = "float32", pad: Any = None, magnitude: bool = False) -> Any:
    """Rows of a tile of 128 columns, of which ``columns`` are a tensor's, reduced."""
    fold = {"max": T.reduce_max, "min": T.reduce_min, "sum": T.reduce_sum}[mode]

    @T.prim_func
    def main(A: T.Tensor((32, columns), dtype), C: T.Tensor((32, 1), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 128), dtype)
            c = T.alloc_ub((32, 1), dtype)
            T.copy(A[0, 0], a, pad_value=pad)
            if magnitude:
                T.tile.abs(a, a)
            fold(a, c, dim=-1)
            T.copy(c, C)
    return main


def rows(columns: int, dtype: str, low: float, high: float) -> np.ndarray:
    return np.random.default_rng(0).uniform(low, high, (32, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "int32"])
@pytest.mark.parametrize(("mode", "low", "high"), [("max", -90, -10), ("min", 10, 90)])
def test_zero_beyond_an_extreme(mode: str, low: float, high: float, dtype: str) -> None:
    a, c = rows(100, dtype, low, high), np.ones((32, 1), dtype)
    (hazard,) = findings(extreme(100, mode, dtype), a, c)
    assert not c.any()  # as on a chip
    wanted = getattr(a, mode)(axis=1)[0]
    text = f"padding changes 32 of 32 results of the {mode} of a: the first has 100 loaded elements and 28 of padding and is 0"
    assert text in str(hazard)
    assert hazard.missing.endswith(f"without the padding it is {np.float32(wanted) if dtype == 'float16' else wanted}")
    assert (hazard.start, hazard.end) == (0, 0)  # the fault is the contents of a buffer, and has no range of bytes
    assert hazard.second is not None and hazard.first.location is not None and hazard.second.location is not None
    assert "fold(a, c" in hazard.first.location.source() and "T.copy(A" in hazard.second.location.source()


@pytest.mark.parametrize(("mode", "low", "high", "pad", "magnitude", "columns"), [
    ("max", 10, 90, None, False, 100),  # 0 is below all of them
    ("max", -90, -10, float("-inf"), False, 100),
    ("min", 10, 90, float("inf"), False, 100),
    ("sum", -90, 90, None, False, 100),
    ("max", -90, -10, None, True, 100),  # 0 is below each magnitude
    ("max", -90, -10, None, False, 128),  # nothing is filled in
])
def test_what_is_neutral(mode: str, low: float, high: float, pad: Any, magnitude: bool, columns: int) -> None:
    a, c = rows(columns, "float32", low, high), np.zeros((32, 1), np.float32)
    assert findings(extreme(columns, mode, "float32", pad, magnitude), a, c) == []
    np.testing.assert_allclose(c[:, 0], getattr(np.abs(a) if magnitude else a, mode)(axis=1), rtol=1e-5)


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def denominators(columns: int, masked: bool) -> Any:
    """The sums of a softmax over 128 columns, of which ``columns`` are a tensor's."""
    @T.prim_func
    def main(A: T.Tensor((32, columns), "float16"), C: T.Tensor((32, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 128), "float16")
            wide = T.alloc_ub((32, 128), "float32")
            c = T.alloc_ub((32, 1), "float32")
            T.copy(A[0, 0], a)
            T.copy(a, wide)
            T.tile.exp(wide, wide)
            if masked:
                for i, j in T.Parallel(32, 128):
                    wide[i, j] = T.if_then_else(j < columns, wide[i, j], 0.0)
            T.reduce_sum(wide, c, dim=-1)
            T.copy(c, C)
    return main


def test_zeros_that_became_ones() -> None:
    a, c = rows(90, "float16", -1, 1), np.zeros((32, 1), np.float32)
    (hazard,) = findings(denominators(90, False), a, c)
    np.testing.assert_allclose(c[:, 0], np.exp(a.astype(np.float32)).sum(axis=1) + 38, rtol=1e-4)
    assert "32 of 32 results of the sum of wide: the first has 90 loaded elements and 38 of padding" in hazard.missing


def test_padding_that_a_mask_takes_out() -> None:
    a, c = rows(90, "float16", -1, 1), np.zeros((32, 1), np.float32)
    assert findings(denominators(90, True), a, c) == []
    np.testing.assert_allclose(c[:, 0], np.exp(a.astype(np.float32)).sum(axis=1), rtol=1e-4)


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def in_parts(columns: int, larger: bool) -> Any:
    """Row sums of a tensor, 64 columns at a time: the padding of the last tile adds 0 to the sum of the earlier tiles."""
    @T.prim_func
    def main(A: T.Tensor((32, columns), "float32"), C: T.Tensor((32, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 64), "float32")
            total = T.alloc_ub((32, 64), "float32")
            c = T.alloc_ub((32, 1), "float32")
            T.tile.fill(total, 0.0)
            for part in T.serial(T.ceildiv(columns, 64)):
                T.copy(A[0, part * 64], a)
                if larger:
                    T.tile.add(a, a, 1.0)
                T.tile.add(total, total, a)
            T.reduce_sum(total, c, dim=-1)
            T.copy(c, C)
    return main


def test_a_running_sum_that_begins_with_padding() -> None:
    """0 that was filled and 0 that padding adds are no number of the user's: the ones that exp would make of them decide."""
    @T.prim_func
    def main(A: T.Tensor((32, 40), "float32"), C: T.Tensor((32, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 64), "float32")
            total = T.alloc_ub((32, 64), "float32")
            c = T.alloc_ub((32, 1), "float32")
            T.tile.fill(total, 0.0)
            T.copy(A[0, 0], a)
            T.tile.add(total, total, a)
            T.tile.exp(total, total)
            T.reduce_sum(total, c, dim=-1)
            T.copy(c, C)

    a, c = rows(40, "float32", 1, 2), np.zeros((32, 1), np.float32)
    (hazard,) = findings(tilelang.compile(main, target="ascendc", pass_configs=CONFIGS), a, c)
    np.testing.assert_allclose(c[:, 0], np.exp(a).sum(axis=1) + 24, rtol=1e-5)
    assert "40 loaded elements and 24 of padding" in hazard.missing


def test_padding_that_adds_nothing_to_a_running_sum() -> None:
    a, c = rows(100, "float32", 1, 2), np.zeros((32, 1), np.float32)
    assert findings(in_parts(100, False), a, c) == []
    np.testing.assert_allclose(c[:, 0], a.sum(axis=1), rtol=1e-5)
    (hazard,) = findings(in_parts(100, True), a, c)  # 0 has become 1 before it was added
    assert "32 of 32 results of the sum of total" in hazard.missing


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def whole_rows(lines: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((lines, 64), "float32"), C: T.Tensor((lines, 1), "float32"), S: T.Tensor((1, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 64), "float32")
            c = T.alloc_ub((32, 1), "float32")
            s = T.alloc_ub((1, 1), "float32")
            T.copy(A[0, 0], a)
            T.reduce_max(a, c, dim=-1)  # rows of padding give padding, which is not stored
            T.copy(c, C[0, 0])
            T.reduce_max(c, s, dim=0)  # and this takes it in
            T.copy(s, S)
    return main


def test_rows_of_padding() -> None:
    a = -1 - np.random.default_rng(0).random((20, 64), np.float32)
    c, s = np.zeros((20, 1), np.float32), np.ones((1, 1), np.float32)
    (hazard,) = findings(whole_rows(20), a, c, s)
    np.testing.assert_array_equal(c[:, 0], a.max(axis=1))
    assert s == 0
    assert "results of the max of c: the first has 20 loaded elements and 12 of padding and is 0.0" in hazard.missing


# -- through products --------------------------------------------------------------------------------------------------


@tilelang.jit(target="npuir")
def attention(length: int, masked: bool, tile: int = 64, dim: int = 64) -> Any:
    """Tiles of keys with a running softmax; the last one hangs over the end."""
    @T.prim_func
    def main(Q: T.Tensor((length, dim), "float16"), K: T.Tensor((length, dim), "float16"),
             V: T.Tensor((length, dim), "float16"), O: T.Tensor((length, dim), "float16")):
        with T.Kernel(T.ceildiv(length, tile), is_npu=True) as (block, _):
            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, dim), "float16")
            p = T.alloc_shared((tile, tile), "float16")
            scores = T.alloc_fragment((tile, tile), "float32")
            product = T.alloc_fragment((tile, dim), "float32")
            result = T.alloc_fragment((tile, dim), "float32")
            largest = T.alloc_fragment((tile, 1), "float32")
            before = T.alloc_fragment((tile, 1), "float32")
            total = T.alloc_fragment((tile, 1), "float32")
            share = T.alloc_fragment((tile, 1), "float32")
            T.copy(Q[block * tile, 0], q)
            T.clear(result)
            T.clear(total)
            T.fill(largest, -(2.0**30))
            for i in T.serial(T.ceildiv(length, tile)):
                T.copy(K[i * tile, 0], k)
                T.copy(V[i * tile, 0], v)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                T.vmul(scores, dim**-0.5, scores)
                if masked:
                    for row, column in T.Parallel(tile, tile):
                        scores[row, column] = T.if_then_else(i * tile + column < length, scores[row, column], -65504.0)
                T.copy(largest, before)
                T.reduce_max(scores, share, dim=-1)
                T.vmax(share, before, largest)
                T.vsub(before, largest, before)
                T.vexp(before, before)
                T.vsub(scores, largest, scores)
                T.vexp(scores, scores)
                T.copy(scores, p)
                T.reduce_sum(scores, share, dim=-1)
                T.vmul(total, before, total)
                T.vadd(total, share, total)
                T.gemm(p, v, product, initC=True)
                T.vmul(result, before, result)
                T.vadd(result, product, result)
            T.vdiv(result, total, result)
            T.copy(result, O[block * tile, 0])
    return main


def softmax_of(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = q.astype(np.float32) @ k.astype(np.float32).T * q.shape[1] ** -0.5
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True) @ v.astype(np.float32))


def test_keys_in_one_of_four_axes() -> None:
    """The rows that a load takes are not those of the first axis."""
    @T.prim_func
    def main(A: T.Tensor((1, 32, 1, 32), "float16"), B: T.Tensor((1, 20, 1, 32), "float16"), F: T.Tensor((32, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (_, __):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            x = T.alloc_fragment((32, 32), "float32")
            f = T.alloc_fragment((32, 1), "float32")
            T.copy(A[0, 0:32, 0, 0:32], a)
            T.copy(B[0, 0:32, 0, 0:32], b)
            T.gemm(a, b, x, initC=True, b_transpose=True)
            T.vexp(x, x)
            T.reduce_sum(x, f, dim=-1)
            T.copy(f, F[0, 0])

    arrays = np.zeros((1, 32, 1, 32), np.float16), np.zeros((1, 20, 1, 32), np.float16), np.zeros((32, 1), np.float32)
    found = findings(tilelang.compile(main, target="npuir"), *arrays)
    assert (arrays[2] == 32).all()
    assert found
    assert all("20 loaded elements and 12 of padding" in hazard.missing for hazard in found)


@pytest.mark.parametrize(("length", "masked"), [(100, False), (100, True), (128, False)])
def test_padding_of_keys_went_through_a_product_unseen(length: int, masked: bool) -> None:
    """Keys of 0 have scores of 0, which are no less than others: the weights of no key at all."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((length, 64)).astype(np.float16) for _ in range(3))
    out = np.zeros((length, 64), np.float16)
    found = findings(attention(length, masked), q, k, v, out)
    right = np.abs(out - softmax_of(q, k, v)).max() < 2e-3
    assert right == (not found) == (masked or length == 128)
    for hazard in found:
        assert "36 loaded elements and 28 of padding" in hazard.missing
        assert hazard.first.location is not None and "T.reduce_sum(scores" in hazard.first.location.source()
        assert hazard.second is not None and hazard.second.location is not None
        assert "T.copy(K[i * tile" in hazard.second.location.source()
        assert brief(hazard).endswith("  padding, UB of scores_ub")


STEPS: dict[str, Any] = {
    "nothing": lambda x: x, "onto zeros": lambda x: 0 + x, "add": lambda x: x + np.float32(0.5),
    "scale": lambda x: x * np.float32(-2), "relu": lambda x: np.maximum(x, 0), "square": np.square,
    "abs": np.abs, "exp": np.exp}


def pipeline(shape: tuple[int, int, int], steps: list[str], masked: bool, mode: str, right_rows: int) -> Any:
    """Rows of A times rows of B, some Vector operations, a reduction of their rows, and their product with C."""
    rows, keys, depth = shape
    fold = {"max": T.reduce_max, "min": T.reduce_min, "sum": T.reduce_sum}[mode]

    @T.macro
    def one(step: str, x: Any, y: Any):
        if step == "exp":
            T.vexp(x, x)
        if step == "add":
            T.vadd(x, 0.5, x)
        if step == "scale":
            T.vmul(x, -2.0, x)
        if step == "relu":
            T.vrelu(x, x)
        if step == "square":
            T.vmul(x, x, x)
        if step == "abs":
            T.vabs(x, x)
        if step == "onto zeros":
            T.clear(y)
            T.vadd(y, x, x)

    @T.prim_func
    def main(A: T.Tensor((rows, depth), "float16"), B: T.Tensor((keys, depth), "float16"),
             C: T.Tensor((right_rows, 32), "float16"), F: T.Tensor((rows, 1), "float32"), D: T.Tensor((rows, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, __):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_shared((32, 32), "float16")
            p = T.alloc_shared((32, 32), "float16")
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            f = T.alloc_fragment((32, 1), "float32")
            d = T.alloc_fragment((32, 32), "float32")
            T.copy(A[0, 0], a)
            T.copy(B[0, 0], b)
            T.copy(C[0, 0], c)
            T.gemm(a, b, x, initC=True, b_transpose=True)
            one(steps[0], x, y)
            one(steps[1], x, y)
            if masked:
                for i, j in T.Parallel(32, 32):
                    x[i, j] = T.if_then_else(j < keys, x[i, j], 0.0)
            fold(x, f, dim=-1)
            T.copy(x, p)
            T.gemm(p, c, d, initC=True)
            T.copy(f, F[0, 0])
            T.copy(d, D[0, 0])

    return tilelang.compile(main, target="npuir")


@settings(max_examples=COUNT, deadline=None)
@given(shape=st.tuples(st.sampled_from([32, 20]), st.sampled_from([32, 27, 16, 5]), st.sampled_from([32, 19])),
       steps=st.tuples(st.sampled_from(list(STEPS)), st.sampled_from(list(STEPS)[:-1])), masked=st.booleans(),
       mode=st.sampled_from(["max", "min", "sum"]), more=st.booleans(), seed=st.integers(0, 9))
def test_the_verdict_is_that_of_computing_without_padding(shape: tuple[int, int, int], steps: tuple[str, str], masked: bool,
                                                          mode: str, more: bool, seed: int) -> None:
    """Whether zeros beyond the ends of two matrices decide a reduction or a second product: NumPy computes both ways."""
    rows, keys, depth = shape
    right_rows = 32 if more else keys  # the second product's right side has rows where the first has padding
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(-3, 4, size).astype(np.float16) / 8 for size in ((rows, depth), (keys, depth), (right_rows, 32)))

    def computed(b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = a.astype(np.float32) @ b.astype(np.float32).T
        for step in steps:
            x = STEPS[step](x)
        if masked:
            x = np.where(np.arange(len(b)) < keys, x, 0)
        return getattr(x, mode)(axis=1, keepdims=True), x.astype(np.float16).astype(np.float32) @ c.astype(np.float32)

    filled = [np.concatenate([array, np.zeros((32 - len(array), array.shape[1]), array.dtype)]) for array in (b, c)]
    with_padding, without = computed(*filled), computed(b, c[:keys])
    wanted = {name for name, one, other in zip(("vreduce", "mmadL1"), with_padding, without, strict=True)
              if not np.allclose(one, other, rtol=1e-6, atol=1e-6)}
    f, d = np.zeros((rows, 1), np.float32), np.zeros((rows, 32), np.float32)
    found = findings(pipeline(shape, list(steps), masked, mode, right_rows), a, b, c, f, d)
    np.testing.assert_allclose(f, with_padding[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(d, with_padding[1], rtol=1e-2, atol=1e-2)
    assert {hazard.first.op for hazard in found} == wanted


# -- tiles of which a part is loaded again ------------------------------------------------------------------------------


@tilelang.jit(target="npuir")
def loaded_again(operand: str, dtype: str, rows: int, part: int, start: str, columns: int) -> Any:
    """A product with a tile of 32 rows, of which ``rows`` are a tensor's, and the first ``part`` of them are loaded again, from
    a row that is a constant or a number of the call."""
    total = "int32" if dtype == "int8" else "float32"

    @T.prim_func
    def main(A: T.Tensor((32, 32), dtype), B: T.Tensor((rows, 32), dtype), C: T.Tensor((40, 32), dtype),
             F: T.Tensor((32, 32), total), n: T.int32):
        with T.Kernel(1, is_npu=True) as (_, __):
            a = T.alloc_shared((32, 32), dtype)
            b = T.alloc_shared((32, 32), dtype)
            x = T.alloc_fragment((32, 32), total)
            y = T.alloc_shared((32, 32), total)
            T.copy(A[0, 0], a)
            T.copy(B[0, 0], b)
            if start == "constant":
                T.copy(C[4:4 + part, 0:columns], b[0:part, 0:columns])
            else:
                T.copy(C[n:n + part, 0:columns], b[0:part, 0:columns])
            if operand == "right":
                T.gemm(a, b, x, initC=True)
            else:
                T.gemm(b, a, x, initC=True)
            T.copy(x, y)
            T.vadd(y, 1, y)
            T.copy(y, F[0, 0])
    return main


@pytest.mark.parametrize("start", ["constant", "number"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize(("rows", "part", "columns"), [(32, 10, 32), (32, 16, 32), (32, 3, 16), (32, 32, 32), (20, 10, 32),
                                                       (20, 20, 32)])
@pytest.mark.parametrize("operand", ["left", "right"])
def test_what_is_loaded_again_fills_nothing(operand: str, rows: int, part: int, columns: int, dtype: str,
                                            start: str) -> None:
    """Rows of fractals are loaded again: the other rows hold data of the first load, and not padding."""
    rng = np.random.default_rng(0)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    a, b, c = (rng.integers(1, 4, shape).astype(kind) for shape in ((32, 32), (rows, 32), (40, 32)))
    if dtype == "int8" and columns == 16:
        columns = 32  # an element of a fractal's row is 32 wide
    f = np.zeros((32, 32), np.int32 if dtype == "int8" else np.float32)
    assert findings(loaded_again(operand, dtype, rows, part, start, columns), a, b, c, f, 4) == []
    whole = np.zeros((32, 32), f.dtype)
    whole[:rows] = b
    whole[:part, :columns] = c[4:4 + part, :columns]
    one, other = (a.astype(f.dtype), whole) if operand == "right" else (whole, a.astype(f.dtype))
    np.testing.assert_array_equal(f, one @ other + 1)


@pytest.mark.parametrize(("rows", "part", "reported"), [(32, 10, False), (20, 10, True), (20, 16, True), (20, 20, True),
                                                    (16, 16, True)])
@pytest.mark.parametrize("start", ["constant", "number"])
def test_padding_under_a_part_that_is_loaded_again(rows: int, part: int, reported: bool, start: str) -> None:
    """A part of the keys is loaded again: the scores of keys that are padding are reported, and no others."""
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((rows, 32), "float16"), C: T.Tensor((40, 32), "float16"),
             F: T.Tensor((32, 1), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (_, __):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            x = T.alloc_fragment((32, 32), "float32")
            f = T.alloc_fragment((32, 1), "float32")
            T.copy(A[0, 0], a)
            T.copy(B[0, 0], b)
            if start == "constant":
                T.copy(C[4:4 + part, 0:32], b[0:part, 0:32])
            else:
                T.copy(C[n:n + part, 0:32], b[0:part, 0:32])
            T.gemm(a, b, x, initC=True, b_transpose=True)
            T.vexp(x, x)
            T.reduce_sum(x, f, dim=-1)
            T.copy(f, F[0, 0])

    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-0.1, 0.1, shape).astype(np.float16) for shape in ((32, 32), (rows, 32), (40, 32))]
    found = findings(tilelang.compile(main, target="npuir"), *arrays, np.zeros((32, 1), np.float32), 4)
    assert bool(found) == reported
    for hazard in found:
        assert f"{rows} loaded elements and {32 - rows} of padding" in hazard.missing
        assert hazard.second is not None and hazard.second.location is not None
        assert "T.copy(B[0, 0], b)" in hazard.second.location.source()
