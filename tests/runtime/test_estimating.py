"""``kernel.estimate``: a run's times, without its values."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import doubled, scaled, symbolic_rows
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Program

HEADS = int(os.environ.get("TILELANG_NPU_HEADS", "2"))
"""Heads of the attention that is estimated; 32 take some seconds."""
MIXED = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


def gemm(m: int, n: int, k: int) -> Any:
    @T.prim_func
    def gemm(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(m, 128) * T.ceildiv(n, 256), is_npu=True) as (block, _):
            row, column = block // T.ceildiv(n, 256) * 128, block % T.ceildiv(n, 256) * 256
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 256), "float16")
            c = T.alloc_fragment((128, 256), "float32")
            for step in T.Pipelined(T.ceildiv(k, 64), num_stages=2):
                T.copy(A[row, step * 64], a)
                T.copy(B[step * 64, column], b)
                T.gemm(a, b, c, initC=(step == 0))
            T.copy(c, C[row, column])

    return tilelang.compile(gemm, target="npuir")


def attention(heads: int, length: int, tile: int = 128, dim: int = 64) -> Any:
    tiles = length // tile

    @T.prim_func
    def flash(Q: T.Tensor((heads * length, dim), "float16"), K: T.Tensor((heads * length, dim), "float16"),
              V: T.Tensor((heads * length, dim), "float16"), O: T.Tensor((heads * length, dim), "float32")):
        with T.Kernel(heads * tiles, threads=2, is_npu=True) as (block):
            first = block // tiles * length
            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, dim), "float16")
            p = T.alloc_shared((tile, tile), "float16")
            scores = T.alloc_fragment((tile, tile), "float32")
            product = T.alloc_fragment((tile, dim), "float32")
            s = T.alloc_shared((tile, tile), "float32")
            half = T.alloc_shared((tile, tile), "float16")
            part = T.alloc_shared((tile, dim), "float32")
            result = T.alloc_shared((tile, dim), "float32")
            T.copy(Q[block * tile, 0], q)
            T.tile.fill(result, 0.0)
            for i in T.serial(tiles):
                T.copy(K[first + i * tile, 0], k)
                T.gemm_v0(q, k, scores, transpose_B=True, init=True)
                T.copy(scores, s)
                T.tile.exp(s, s)
                T.copy(s, half)
                T.copy(half, p)
                T.copy(V[first + i * tile, 0], v)
                T.gemm_v0(p, v, product, init=True)
                T.copy(product, part)
                T.tile.add(result, result, part)
            T.copy(result, O[block * tile, 0])

    return tilelang.compile(flash, target="ascendc", pass_configs=MIXED)


@pytest.mark.parametrize(("kernel", "shapes"), [
    (lambda: gemm(384, 512, 256), [(384, 256), (256, 512), (384, 512)]),
    (lambda: gemm(300, 333, 211), [(300, 211), (211, 333), (300, 333)]),
    (lambda: attention(2, 256), [(512, 64)] * 4),
    (lambda: tilelang.compile(symbolic_rows(), target="ascendc", pass_configs=MIXED), [(100, 64), (100, 64)]),
    (lambda: doubled(100, 64), [(100, 64)]),
], ids=["equal blocks", "blocks of four kinds", "attention", "a size of the call", "an output"])
def test_the_times_are_a_runs(kernel: Any, shapes: list[tuple[int, ...]]) -> None:
    made = kernel()
    guessed = made.estimate(*shapes)
    inputs = [made.params[position] for position in made.signature.inputs]
    arrays = [np.zeros(shape, parameter.dtype.numpy) for parameter, shape in zip(inputs, shapes, strict=True)]
    made(*arrays)
    ran = made.last_launch
    assert guessed.time_us == ran.time_us and guessed.split == ran.split and guessed.pipes == ran.pipes
    assert guessed.moved == ran.moved and guessed.kind == ran.kind
    assert made.estimate(*arrays).time_us == ran.time_us
    named = {parameter.name: shape for parameter, shape in zip(inputs, shapes, strict=True)}
    assert made.estimate(**named).time_us == ran.time_us
    if not made.signature.symbols:
        assert made.estimate().time_us == ran.time_us


def test_nothing_is_computed_or_written(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = doubled(64, 64)
    a = np.ones((64, 64), np.float32)
    expected = kernel.trace(a).time_us
    monkeypatch.setattr(Program, "run", None)
    assert kernel.estimate((64, 64)).time_us == kernel.estimate((64, 64), (64, 64)).time_us == expected
    assert kernel.estimate(a).time_us == expected
    assert kernel.last_launch is None and (a == 1).all()


def test_numbers_stand_among_shapes() -> None:
    kernel = tilelang.compile(scaled(), target="ascendc", pass_configs=MIXED)
    a, b = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    kernel(a, 2.0, b)
    assert kernel.estimate((16, 64), 2.0, (16, 64)).time_us == kernel.last_launch.time_us


def test_shapes_are_checked_as_arrays_are() -> None:
    with pytest.raises(TileError, match=r"M is 32 according to dimension 0 of A, and 48 according to dim.* 0 of B") as found:
        tilelang.compile(symbolic_rows(), target="ascendc", pass_configs=MIXED).estimate((32, 64), (48, 64))
    assert found.value.code == "T403"
    with pytest.raises(TileError, match="takes 1 argument") as found:
        doubled(64, 64).estimate((64, 64), (64, 64), (64, 64))
    assert found.value.code == "T401"


def seconds(kernel: Any) -> float:
    started = time.process_time()
    assert kernel.estimate().time_us > 100
    return time.process_time() - started


def test_a_gemm_of_8192_is_estimated_at_once() -> None:
    assert seconds(gemm(8192, 8192, 8192)) < 2


def test_attention_over_8192_positions_is_estimated_within_seconds() -> None:
    """10 seconds for 32 heads."""
    assert seconds(attention(HEADS, 8192)) < max(10 * HEADS / 32, 1)
