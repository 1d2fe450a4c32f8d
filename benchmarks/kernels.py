"""The measured kernels, each with its inputs and an equivalent NumPy function with the same tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T

Array = np.ndarray[Any, Any]

SWITCHES = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@dataclass(frozen=True)
class Case:
    """A kernel under measurement.

    Attributes:
        kernel: compiles the kernel for a size: rows and columns of the matrices, positions of a sequence.
        inputs: creates the inputs for a size.
        by_hand: the same computation in NumPy, tile by tile.
        grows: the exponent of the size in the number of operations.
    """

    kernel: Callable[[int], Any]
    inputs: Callable[[np.random.Generator, int], tuple[Array, ...]]
    by_hand: Callable[..., Array]
    grows: int = 3


def gemm(size: int) -> Any:
    """size x size x size in fp16, tiles of 128 x 128 x 64."""
    M, N, K, tile_M, tile_N, tile_K = size, size, size, 128, 128, 64
    columns = N // tile_N

    @T.prim_func
    def gemm(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(M // tile_M * columns, is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            for k in T.Pipelined(K // tile_K, num_stages=2):
                T.copy(A[block // columns * tile_M, k * tile_K], a)
                T.copy(B[k * tile_K, block % columns * tile_N], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C[block // columns * tile_M, block % columns * tile_N])

    return tilelang.compile(gemm, out_idx=[-1], target="npuir")


def gemm_inputs(rng: np.random.Generator, size: int) -> tuple[Array, ...]:
    return tuple(rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))


def gemm_by_hand(a: Array, b: Array) -> Array:
    size = len(a)
    c = np.empty((size, size), np.float16)
    for i in range(0, size, 128):
        for j in range(0, size, 128):
            tile = np.zeros((128, 128), np.float32)
            for k in range(0, size, 64):
                tile += a[i : i + 128, k : k + 64].astype(np.float32) @ b[k : k + 64, j : j + 128].astype(np.float32)
            c[i : i + 128, j : j + 128] = tile
    return c


def linear(size: int) -> Any:
    """x @ w + bias of size x size in fp16: the product on the Cube cores, the sum on the Vector cores."""
    M, N, K, tile_M, tile_N, tile_K = size, size, size, 64, 128, 64
    columns = N // tile_N

    @T.prim_func
    def linear(X: T.Tensor((M, K), "float16"), W: T.Tensor((K, N), "float16"), B: T.Tensor((1, N), "float32"),
               Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // tile_M * columns, is_npu=True) as (block, _):
            x = T.alloc_shared((tile_M, tile_K), "float16")
            w = T.alloc_shared((tile_K, tile_N), "float16")
            y = T.alloc_fragment((tile_M, tile_N), "float32")
            bias = T.alloc_shared((1, tile_N), "float32")
            T.copy(B[0, block % columns * tile_N], bias)
            for k in T.Pipelined(K // tile_K, num_stages=2):
                T.copy(X[block // columns * tile_M, k * tile_K], x)
                T.copy(W[k * tile_K, block % columns * tile_N], w)
                T.gemm(x, w, y, initC=(k == 0))
            T.vadd(y, bias, y)
            T.copy(y, Y[block // columns * tile_M, block % columns * tile_N])

    return tilelang.compile(linear, out_idx=[-1], target="npuir")


def linear_inputs(rng: np.random.Generator, size: int) -> tuple[Array, ...]:
    return (*gemm_inputs(rng, size), rng.standard_normal((1, size)).astype(np.float32))


def linear_by_hand(x: Array, w: Array, bias: Array) -> Array:
    size = len(x)
    y = np.empty((size, size), np.float32)
    for i in range(0, size, 64):
        for j in range(0, size, 128):
            tile = np.zeros((64, 128), np.float32)
            for k in range(0, size, 64):
                tile += x[i : i + 64, k : k + 64].astype(np.float32) @ w[k : k + 64, j : j + 128].astype(np.float32)
            y[i : i + 64, j : j + 128] = tile + bias[:, j : j + 128]
    return y


def softmax(size: int) -> Any:
    """size x size in fp32; each Vector core processes rows of 8192 elements in total at a time."""
    M, N, rows = size, size, 8192 // size

    @T.prim_func
    def softmax(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // (2 * rows), is_npu=True) as (block, half):
            x = T.alloc_ub((rows, N), "float32")
            largest = T.alloc_ub((rows, 1), "float32")
            total = T.alloc_ub((rows, 1), "float32")
            T.copy(X[(2 * block + half) * rows, 0], x)
            T.reduce_max(x, largest, dim=-1)
            T.tile.sub(x, x, largest)
            T.tile.exp(x, x)
            T.reduce_sum(x, total, dim=-1)
            T.tile.div(x, x, total)
            T.copy(x, Y[(2 * block + half) * rows, 0])

    return tilelang.compile(softmax, out_idx=[-1], target="ascendc", pass_configs=SWITCHES)


def softmax_inputs(rng: np.random.Generator, size: int) -> tuple[Array, ...]:
    return (rng.standard_normal((size, size)).astype(np.float32),)


def softmax_by_hand(x: Array) -> Array:
    y = np.empty_like(x)
    rows = 8192 // len(x)
    for i in range(0, len(x), rows):
        tile = x[i : i + rows].copy()
        tile -= tile.max(axis=1, keepdims=True)
        np.exp(tile, out=tile)
        tile /= tile.sum(axis=1, keepdims=True)
        y[i : i + rows] = tile
    return y


def rms_norm(size: int) -> Any:
    """size x size in fp32, each row divided by the root of the mean of its squares, each column multiplied by a weight."""
    M, N, rows = size, size, 8192 // size

    @T.prim_func
    def rms_norm(X: T.Tensor((M, N), "float32"), W: T.Tensor((1, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // (2 * rows), is_npu=True) as (block, half):
            x = T.alloc_ub((rows, N), "float32")
            square = T.alloc_ub((rows, N), "float32")
            weight = T.alloc_ub((1, N), "float32")
            total = T.alloc_ub((rows, 1), "float32")
            T.copy(X[(2 * block + half) * rows, 0], x)
            T.copy(W[0, 0], weight)
            T.tile.mul(square, x, x)
            T.reduce_sum(square, total, dim=-1)
            T.tile.mul(total, total, 1.0 / N)
            T.tile.add(total, total, 1e-6)
            T.tile.sqrt(total, total)
            T.tile.div(x, x, total)
            T.tile.mul(x, x, weight)
            T.copy(x, Y[(2 * block + half) * rows, 0])

    return tilelang.compile(rms_norm, out_idx=[-1], target="ascendc", pass_configs=SWITCHES)


def rms_norm_inputs(rng: np.random.Generator, size: int) -> tuple[Array, ...]:
    return rng.standard_normal((size, size)).astype(np.float32), rng.standard_normal((1, size)).astype(np.float32)


def rms_norm_by_hand(x: Array, weight: Array) -> Array:
    y = np.empty_like(x)
    rows = 8192 // len(x)
    for i in range(0, len(x), rows):
        tile = x[i : i + rows].copy()
        root = np.sqrt((tile * tile).sum(axis=1, keepdims=True) * np.float32(1 / len(x)) + np.float32(1e-6))
        tile /= root
        tile *= weight
        y[i : i + rows] = tile
    return y


PACKED = 256
"""Numbers of a row that are packed together: byte ``j`` has number ``j`` in its low and ``PACKED / 2 + j`` in its high half."""


def w4a8(size: int) -> Any:
    """size x size x size of int8 and packed int4, which the Vector cores unpack, in tiles of 128 x 128 x 256."""
    M, N, K, tile_M, tile_N, tile_K, packed_K = size, size, size, 128, 128, PACKED, PACKED // 2
    columns = N // tile_N

    @T.prim_func
    def w4a8(A: T.Tensor((M, K), "int8"), B: T.Tensor((N, K // 2), "uint8"), C: T.Tensor((M, N), "int32")):
        with T.Kernel(M // tile_M * columns, is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, tile_K), "int8")
            b = T.alloc_shared((tile_N, tile_K), "int8")
            packed = T.alloc_shared((tile_N, packed_K), "uint8")
            c = T.alloc_fragment((tile_M, tile_N), "int32")
            for k in T.Pipelined(K // tile_K, num_stages=2):
                T.copy(A[block // columns * tile_M, k * tile_K], a)
                T.copy(B[block % columns * tile_N, k * packed_K], packed)
                for i, j in T.Parallel(tile_N, packed_K):
                    b[i, j] = T.cast(packed[i, j] & 15, "int8") - T.cast(8, "int8")
                    b[i, packed_K + j] = T.cast(packed[i, j] >> 4, "int8") - T.cast(8, "int8")
                T.gemm(a, b, c, initC=(k == 0), b_transpose=True)
            T.copy(c, C[block // columns * tile_M, block % columns * tile_N])

    return tilelang.compile(w4a8, out_idx=[-1], target="npuir")


def w4a8_inputs(rng: np.random.Generator, size: int) -> tuple[Array, ...]:
    return rng.integers(-128, 128, (size, size), np.int8), rng.integers(0, 256, (size, size // 2), np.uint8)


def w4a8_by_hand(a: Array, packed: Array) -> Array:
    """The NumPy version, in f32, in which products of so few terms are exact."""
    size, half = len(a), PACKED // 2
    c = np.empty((size, size), np.int32)
    b = np.empty((128, PACKED), np.float32)
    for i in range(0, size, 128):
        for j in range(0, size, 128):
            tile = np.zeros((128, 128), np.int32)
            for k in range(0, size, PACKED):
                two = packed[j : j + 128, k // 2 : k // 2 + half]
                b[:, :half] = (two & 15).astype(np.int8) - np.int8(8)
                b[:, half:] = (two >> 4).astype(np.int8) - np.int8(8)
                tile += (a[i : i + 128, k : k + PACKED].astype(np.float32) @ b.T).astype(np.int32)
            c[i : i + 128, j : j + 128] = tile
    return c


HEADS, DIM, TILE = 2, 64, 64


def flash(size: int) -> Any:
    """Attention with an online softmax: 2 heads, size positions, 64 wide, tiles of 64 x 64."""
    SEQUENCE = size
    scale = DIM**-0.5
    tiles = SEQUENCE // TILE

    @T.prim_func
    def flash(
        Q: T.Tensor((HEADS * SEQUENCE, DIM), "float16"),
        K: T.Tensor((HEADS * SEQUENCE, DIM), "float16"),
        V: T.Tensor((HEADS * SEQUENCE, DIM), "float16"),
        O: T.Tensor((HEADS * SEQUENCE, DIM), "float16"),
    ):
        with T.Kernel(HEADS * tiles, threads=2, is_npu=True) as (block):
            first = block // tiles * SEQUENCE
            q = T.alloc_shared((TILE, DIM), "float16")
            k = T.alloc_shared((TILE, DIM), "float16")
            v = T.alloc_shared((TILE, DIM), "float16")
            p = T.alloc_shared((TILE, TILE), "float16")
            scores = T.alloc_fragment((TILE, TILE), "float32")
            product = T.alloc_fragment((TILE, DIM), "float32")

            s = T.alloc_shared((TILE, TILE), "float32")
            half = T.alloc_shared((TILE, TILE), "float16")
            part = T.alloc_shared((TILE, DIM), "float32")
            result = T.alloc_shared((TILE, DIM), "float32")
            rounded = T.alloc_shared((TILE, DIM), "float16")
            largest = T.alloc_shared((TILE,), "float32")
            before = T.alloc_shared((TILE,), "float32")
            total = T.alloc_shared((TILE,), "float32")
            share = T.alloc_shared((TILE,), "float32")

            T.copy(Q[block * TILE, 0], q)
            T.tile.fill(result, 0.0)
            T.tile.fill(total, 0.0)
            T.tile.fill(largest, -(2.0**30))
            for i in T.serial(tiles):
                T.copy(K[first + i * TILE, 0], k)
                T.gemm_v0(q, k, scores, transpose_B=True, init=True)
                T.copy(scores, s)
                T.copy(largest, before)
                for r, c in T.Parallel(TILE, TILE):
                    s[r, c] = s[r, c] * scale
                T.reduce_max(s, largest, dim=-1)
                for r in T.Parallel(TILE):
                    largest[r] = T.max(largest[r], before[r])
                    before[r] = T.exp(before[r] - largest[r])
                for r, c in T.Parallel(TILE, TILE):
                    s[r, c] = T.exp(s[r, c] - largest[r])
                T.reduce_sum(s, share, dim=-1)
                for r in T.Parallel(TILE):
                    total[r] = total[r] * before[r] + share[r]
                T.copy(s, half)
                T.copy(half, p)
                T.copy(V[first + i * TILE, 0], v)
                T.gemm_v0(p, v, product, init=True)
                T.copy(product, part)
                for r, c in T.Parallel(TILE, DIM):
                    result[r, c] = result[r, c] * before[r] + part[r, c]
            for r, c in T.Parallel(TILE, DIM):
                result[r, c] = result[r, c] / total[r]
            T.copy(result, rounded)
            T.copy(rounded, O[block * TILE, 0])

    return tilelang.compile(flash, out_idx=[-1], target="ascendc", pass_configs=SWITCHES)


def flash_inputs(rng: np.random.Generator, size: int) -> tuple[Array, ...]:
    return tuple(rng.standard_normal((HEADS * size, DIM)).astype(np.float16) for _ in range(3))


def flash_by_hand(q: Array, k: Array, v: Array) -> Array:
    out = np.empty_like(q)
    size = len(q) // HEADS
    scale = np.float32(DIM**-0.5)
    for row in range(0, HEADS * size, TILE):
        first = row // size * size
        rows = q[row : row + TILE].astype(np.float32)
        largest = np.full((TILE, 1), -(2.0**30), np.float32)
        total = np.zeros((TILE, 1), np.float32)
        result = np.zeros((TILE, DIM), np.float32)
        for column in range(first, first + size, TILE):
            s = rows @ k[column : column + TILE].astype(np.float32).T * scale
            new = np.maximum(largest, s.max(axis=1, keepdims=True))
            s = np.exp(s - new)
            fade = np.exp(largest - new)
            total = total * fade + s.sum(axis=1, keepdims=True)
            result = result * fade + s.astype(np.float16).astype(np.float32) @ v[column : column + TILE].astype(np.float32)
            largest = new
        out[row : row + TILE] = result / total
    return out


def convolution(size: int) -> Any:
    """A 3 x 3 convolution with ``size`` input and output channels, on 56 x 56 points, as scalar loops; a block for each row."""
    edge = 56

    @T.prim_func
    def convolution(
        X: T.Tensor((size, edge + 2, edge + 2), "float32"),
        F: T.Tensor((size, size * 9), "float32"),
        Y: T.Tensor((size, edge * edge), "float32"),
    ):
        with T.Kernel(size * edge, is_npu=True) as (block, _):
            x = T.alloc_shared((1, 1), "float32")
            f = T.alloc_shared((1, 1), "float32")
            y = T.alloc_shared((1, 1), "float32")
            for column in T.serial(edge):
                T.vbrc(0.0, y)
                for channel in T.serial(size):
                    for i in T.serial(3):
                        for j in T.serial(3):
                            T.copy(X[channel, block % edge + i, column + j : column + j + 1], x)
                            T.copy(F[block // edge, channel * 9 + i * 3 + j], f)
                            T.vmul(x, f, x)
                            T.vadd(y, x, y)
                T.copy(y, Y[block // edge, block % edge * edge + column])

    return tilelang.compile(convolution, out_idx=[-1], target="npuir")


def convolution_inputs(rng: np.random.Generator, size: int) -> tuple[Array, ...]:
    return rng.standard_normal((size, 58, 58)).astype(np.float32), rng.standard_normal((size, size * 9)).astype(np.float32)


def convolution_by_hand(x: Array, f: Array) -> Array:
    size = len(x)
    y = np.zeros((size, 56, 56), np.float32)
    for channel in range(size):
        for i in range(3):
            for j in range(3):
                y += f[:, channel * 9 + i * 3 + j, None, None] * x[channel, i : i + 56, j : j + 56]
    return y.reshape(size, -1)


def chain(ops: int) -> Any:
    """A chain of sums and products, each on the previous result, in a loop over four tiles; for the compilation time."""

    @tilelang.jit(out_idx=[-1], target="ascendc", pass_configs=SWITCHES)
    def factory(rows: int) -> Any:
        @T.prim_func
        def main(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):
            with T.Kernel(T.ceildiv(rows, 16), is_npu=True) as (block, half):
                a = T.alloc_ub((8, 64), "float32")
                b = T.alloc_ub((8, 64), "float32")
                T.tile.fill(b, 1.0)
                for _i in T.serial(4):
                    T.copy(X[block * 16 + half * 8, 0], a)
                    for _j in T.unroll(10):
                        for _k in T.unroll(ops // 20):
                            T.tile.add(a, a, b)
                            T.tile.mul(b, a, a)
                    T.copy(a, Y[block * 16 + half * 8, 0])

        return main

    return factory(64)


TILINGS = list(product((32, 64, 128), (32, 64, 128), (32, 64, 128), (1, 2)))[:50]
"""Rows, columns and depth of tiles, and stages."""


def tiled(rows: int, columns: int, depth: int, stages: int) -> Any:
    """A product of 512 x 512 x 512 in fp16 in tiles of some size."""
    across = 512 // columns

    @T.prim_func
    def tiled(A: T.Tensor((512, 512), "float16"), B: T.Tensor((512, 512), "float16"), C: T.Tensor((512, 512), "float32")):
        with T.Kernel(512 // rows * across, is_npu=True) as (block, _):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_fragment((rows, columns), "float32")
            for k in T.Pipelined(512 // depth, num_stages=stages):
                T.copy(A[block // across * rows, k * depth], a)
                T.copy(B[k * depth, block % across * columns], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C[block // across * rows, block % across * columns])

    return tilelang.compile(tiled, out_idx=[-1], target="npuir")


CASES = {
    "gemm": Case(gemm, gemm_inputs, gemm_by_hand),
    "linear": Case(linear, linear_inputs, linear_by_hand),
    "w4a8": Case(w4a8, w4a8_inputs, w4a8_by_hand),
    "softmax": Case(softmax, softmax_inputs, softmax_by_hand, 2),
    "rms_norm": Case(rms_norm, rms_norm_inputs, rms_norm_by_hand, 2),
    "flash": Case(flash, flash_inputs, flash_by_hand, 2),
}
SCALAR = Case(convolution, convolution_inputs, convolution_by_hand)
