"""Serial loops that run as pipelined ones: the values of the loops as they are written, bit by bit, in less time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T

NAME = "pipeline-loops"
OFF = {"tl.disable": [NAME]}


def compiled(main: Any, *, on: bool = True, target: str = "npuir") -> Any:
    return tilelang.compile(main, target=target, pass_configs={} if on else OFF)


def results(kernel: Any, *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Runs a kernel with the sanitizer on copies of arrays; returns the copies."""
    copies = [array.copy() for array in arrays]
    kernel.sanitize = True
    kernel(*copies)
    return copies


def drawn(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def streamed(tiles: int, columns: int = 512, loop: Any = T.serial) -> Any:
    @T.prim_func
    def main(X: T.Tensor((16 * tiles, columns), "float32"), Y: T.Tensor((16 * tiles, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((16, columns), "float32")
            y = T.alloc_shared((16, columns), "float32")
            for i in loop(tiles):
                T.copy(X[i * 16, 0], x)
                T.vabs(x, y)
                T.vsqrt(y, y)
                T.vadd(x, y, y)
                T.copy(y, Y[i * 16, 0])

    return main


def test_a_serial_loop_runs_as_the_pipelined_one() -> None:
    x, y = drawn(16 * 9, 512), np.zeros((16 * 9, 512), np.float32)
    by_hand = streamed(9, loop=lambda tiles: T.Pipelined(tiles, num_stages=2))
    kernels = [compiled(streamed(9)), compiled(streamed(9), on=False), compiled(by_hand)]
    (_, first), *others = [results(kernel, x, y) for kernel in kernels]
    assert all(first.tobytes() == other.tobytes() for _, other in others)
    fast, slow, pipelined = (kernel.last_launch.time_us for kernel in kernels)
    assert fast == pytest.approx(pipelined)
    assert fast < 0.9 * slow


@settings(max_examples=10, deadline=None)
@given(tiles=st.integers(1, 7), columns=st.sampled_from([8, 100, 512, 1500]))
def test_values_at_all_sizes(tiles: int, columns: int) -> None:
    x, y = drawn(16 * tiles, columns), np.zeros((16 * tiles, columns), np.float32)
    on, off = (results(compiled(streamed(tiles, columns), on=way), x, y)[1] for way in (True, False))
    assert on.tobytes() == off.tobytes()


def test_rows_that_an_earlier_iteration_stored() -> None:
    """Each iteration loads data that the previous one has stored in GM."""
    @T.prim_func
    def main(Y: T.Tensor((9, 512), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((1, 512), "float32")
            for i in T.serial(8):
                T.copy(Y[i, 0], x)
                T.vadd(x, 1.0, x)
                T.copy(x, Y[i + 1, 0])

    kernel = compiled(main)
    assert NAME in str(kernel.explain())
    (got,) = results(kernel, np.zeros((9, 512), np.float32))
    np.testing.assert_array_equal(got, np.repeat(np.arange(9, dtype=np.float32)[:, None], 512, 1))


def test_a_sum_that_goes_round() -> None:
    """The sum stays in one buffer, and the tiles are loaded ahead."""
    @T.prim_func
    def main(X: T.Tensor((64, 512), "float32"), Y: T.Tensor((8, 512), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 512), "float32")
            total = T.alloc_shared((8, 512), "float32")
            T.clear(total)
            for i in range(8):
                T.copy(X[i * 8, 0], x)
                T.vadd(total, x, total)
            T.copy(total, Y)

    x, y = drawn(64, 512), np.zeros((8, 512), np.float32)
    kernels = [compiled(main), compiled(main, on=False)]
    on, off = (results(kernel, x, y)[1] for kernel in kernels)
    assert on.tobytes() == off.tobytes()
    assert kernels[0].last_launch.time_us < kernels[1].last_launch.time_us


def attention(stages: int | None) -> Any:
    @T.prim_func
    def main(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((448, 64), "float16"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            p = T.alloc_shared((64, 64), "float16")
            scores = T.alloc_fragment((64, 64), "float32")
            product = T.alloc_fragment((64, 64), "float32")
            result = T.alloc_shared((64, 64), "float32")
            T.copy(Q, q)
            T.clear(result)
            for i in (T.serial(7) if stages is None else T.Pipelined(7, num_stages=stages)):
                T.copy(K[i * 64, 0], k)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                T.copy(scores, p)
                T.gemm(p, k, product, initC=True)
                T.vadd(result, product, result)
            T.copy(result, O)

    return main


def test_both_cores_work_on_several_iterations() -> None:
    arrays = drawn(64, 64, dtype="float16"), drawn(448, 64, dtype="float16"), np.zeros((64, 64), np.float32)
    kernels = [compiled(attention(None)), compiled(attention(2)), compiled(attention(None), on=False)]
    values = [results(kernel, *arrays)[2].tobytes() for kernel in kernels]
    assert values[0] == values[1] == values[2]
    fast, pipelined, slow = (kernel.last_launch.time_us for kernel in kernels)
    assert fast == pytest.approx(pipelined)
    assert fast < slow


@pytest.mark.parametrize("stages", [0, 1])
def test_stages_of_the_author_are_kept(stages: int) -> None:
    assert compiled(attention(stages)).mlir() == compiled(attention(stages), on=False).mlir()


def test_stages_that_the_author_leaves_open() -> None:
    x, y = drawn(16 * 5, 512), np.zeros((16 * 5, 512), np.float32)
    kernels = [compiled(streamed(5, loop=loop)) for loop in (T.Pipelined, T.serial, range)]
    assert len({results(kernel, x, y)[1].tobytes() for kernel in kernels}) == 1
    assert len({kernel.last_launch.time_us for kernel in kernels}) == 1


def test_explain_says_which_loops_are_pipelined() -> None:
    report = str(compiled(streamed(9)).explain())
    assert "the loop runs as T.Pipelined with num_stages=2, because it loads tiles" in report


def test_a_loop_without_room_stays_serial() -> None:
    """Each tile takes 3/8 of UB."""
    main = streamed(9, columns=1150)
    on, off = compiled(main), compiled(main, on=False)
    assert on.mlir() == off.mlir()
    assert "the iterations of the loop do not overlap: UB has too little room" in str(on.explain())


def test_a_kernel_with_flags_of_its_author_stays() -> None:
    @T.prim_func
    def main(X: T.Tensor((64, 512), "float32"), Y: T.Tensor((64, 512), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 512), "float32")
            for i in range(8):
                T.copy(X[i * 8, 0], x)
                T.barrier_all()
                T.vexp(x, x)
                T.copy(x, Y[i * 8, 0])

    assert compiled(main).mlir() == compiled(main, on=False).mlir()


def test_a_scalar_of_the_author_together_with_the_tiles() -> None:
    """A local variable has no memory that slots could take."""
    @T.prim_func
    def main(X: T.Tensor((64, 512), "float32"), Y: T.Tensor((64, 512), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 512), "float32")
            row = T.alloc_var("int32")
            row = 0
            for _ in range(8):
                T.copy(X[row, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[row, 0])
                row = row + 8

    x, y = drawn(64, 512), np.zeros((64, 512), np.float32)
    kernel = compiled(main)
    _, got = results(kernel, x, y)
    np.testing.assert_allclose(got, np.exp(x), rtol=1e-5)
    assert "the loop runs as T.Pipelined" in str(kernel.explain())
