"""Benchmarks of other interpreters of tile languages, if they are installed: Triton's, and Pallas' for TPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Work = Callable[..., Callable[[], object]]


@dataclass(frozen=True)
class Peer:
    """One interpreter: a function from the inputs to the call that is timed; None with the reason if it is not installed.

    Attributes:
        finds_races: whether it can detect races.
        races: the same function with race detection.
    """

    name: str
    work: Work | None = None
    missing: str = ""
    finds_races: bool = False
    races: Work | None = None


def of(benchmark: str) -> Iterator[Peer]:
    """Returns the peers that implement a benchmark."""
    known = (("Triton interpreter", ("triton", "torch"), TRITON), ("Pallas InterpretParams", ("jax",), PALLAS))
    for name, needs, works in known:
        if benchmark in works:
            absent = [package for package in needs if find_spec(package) is None]
            if absent:
                yield Peer(name, missing=f"{', '.join(absent)} not installed", finds_races=works is PALLAS)
            elif works is PALLAS:
                yield Peer(name, works[benchmark], finds_races=True, races=partial(works[benchmark], detect_races=True))
            else:
                yield Peer(name, works[benchmark])


def triton_gemm(a: Array, b: Array) -> Callable[[], object]:
    """128 x 128 x 64 tiles, fp32 accumulation."""
    os.environ["TRITON_INTERPRET"] = "1"
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(A, B, C, N: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr):
        rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
        columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
        depth = tl.arange(0, DEPTH)
        total = tl.zeros((TILE, TILE), dtype=tl.float32)
        for k in range(0, N, DEPTH):
            left = tl.load(A + rows[:, None] * N + (k + depth)[None, :])
            right = tl.load(B + (k + depth)[:, None] * N + columns[None, :])
            total += tl.dot(left, right)
        tl.store(C + rows[:, None] * N + columns[None, :], total.to(tl.float16))

    left, right = torch.from_numpy(a), torch.from_numpy(b)
    out = torch.empty_like(left)
    return lambda: kernel[(8, 8)](left, right, out, 1024, 128, 64)


def triton_softmax(x: Array) -> Callable[[], object]:
    """One row per program."""
    os.environ["TRITON_INTERPRET"] = "1"
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(X, Y, N: tl.constexpr):
        place = tl.program_id(0) * N + tl.arange(0, N)
        row = tl.load(X + place)
        row = tl.exp(row - tl.max(row, axis=0))
        tl.store(Y + place, row / tl.sum(row, axis=0))

    source = torch.from_numpy(x)
    out = torch.empty_like(source)
    return lambda: kernel[(1024,)](source, out, 1024)


def pallas_gemm(a: Array, b: Array, *, detect_races: bool = False) -> Callable[[], object]:
    """128 x 128 x 64 tiles, fp32 accumulation in the output block."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(left, right, out):
        @pl.when(pl.program_id(2) == 0)
        def _():
            out[...] = jnp.zeros_like(out)

        out[...] += jnp.dot(left[...], right[...], preferred_element_type=jnp.float32)

    call = pl.pallas_call(
        kernel,
        grid=(8, 8, 16),
        in_specs=[pl.BlockSpec((128, 64), lambda i, j, k: (i, k)), pl.BlockSpec((64, 128), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
        interpret=pltpu.InterpretParams(detect_races=detect_races),
    )
    left, right = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
    return lambda: jax.block_until_ready(call(left, right))


def pallas_softmax(x: Array, *, detect_races: bool = False) -> Callable[[], object]:
    """8 rows per block."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(source, out):
        row = jnp.exp(source[...] - jnp.max(source[...], axis=1, keepdims=True))
        out[...] = row / jnp.sum(row, axis=1, keepdims=True)

    call = pl.pallas_call(
        kernel,
        grid=(128,),
        in_specs=[pl.BlockSpec((8, 1024), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 1024), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
        interpret=pltpu.InterpretParams(detect_races=detect_races),
    )
    source = jnp.asarray(x)
    return lambda: jax.block_until_ready(call(source))


TRITON: dict[str, Work] = {"gemm": triton_gemm, "softmax": triton_softmax}
PALLAS: dict[str, Work] = {"gemm": pallas_gemm, "softmax": pallas_softmax}
