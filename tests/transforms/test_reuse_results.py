"""Tiles that are computed once for several loops have at each use the elements that the kernel computes there."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

HEAD = '''
import tilelang_npu as tilelang
import tilelang_npu.language as T


def kernel(rows, columns):
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float16"), Y: T.Tensor((rows, columns), "float32"),
             Z: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((rows, columns), "float16")
            y = T.alloc_shared((rows, columns), "float32")
            z = T.alloc_shared((rows, columns), "float32")
            T.copy(X, x)
            T.copy(Y, y)
            T.fill(z, 1)
'''
TAIL = '''
            T.copy(y, Y)
            T.copy(z, Z)

    return tilelang.compile(main, target="npuir")
'''
VALUES = ("T.cast(x[i, j], 'float32')", "T.cast(x[i, j], 'float32') * y[i, j]", "T.abs(y[i, j])", "y[i, j] * y[i, j]",
          "T.exp(-T.abs(z[i, j]))", "z[i, j] * 0.5", "T.cast(i, 'float32')")


def statements_of(rng: random.Random, depth: int, indent: str) -> list[str]:
    """Random loops of T.Parallel, some of them in serial loops and branches, which repeat few values."""
    lines = []
    for _ in range(rng.randint(2, 5)):
        kind = rng.random()
        if kind < 0.2 and depth:
            lines += [f"{indent}for t{depth} in T.serial({rng.randint(1, 3)}):",
                      *statements_of(rng, depth - 1, indent + "    ")]
        elif kind < 0.3 and depth:
            lines += [f"{indent}if Y[0, 0] > 0:", *statements_of(rng, depth - 1, indent + "    ")]
        else:
            lines.append(f"{indent}for i, j in T.Parallel(rows, columns):")
            for _ in range(rng.randint(1, 2)):
                one, other = rng.choice(VALUES), rng.choice(VALUES)
                target = rng.choice(("y[i, j] = {}", "z[i, j] = {}", "z[i, j] = {}", "x[i, j] = T.cast({}, 'float16')"))
                lines.append(f"{indent}    {target.format(f'({one}) * 0.5 - ({other}) * 0.25')}")
    return lines


@pytest.mark.parametrize("seed", range(30))
def test_random_kernels(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    text = HEAD + "\n".join(statements_of(rng, 2, " " * 12)) + TAIL
    path = tmp_path / f"kernel_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows, columns = rng.choice(((7, 48), (16, 64), (32, 120)))
    values = np.random.default_rng(seed)
    x = values.standard_normal((rows, columns)).astype(np.float16)
    y, z = (values.standard_normal((rows, columns)).astype(np.float32) for _ in range(2))
    assert module.kernel(rows, columns).check(x, y, z), text


def norms(M: int, N: int) -> Any:
    """Rows over their norms; three loops convert the same tile."""
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((M, N), "float16")
            square = T.alloc_fragment((M, N), "float32")
            total = T.alloc_fragment((M, 1), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(M, N):
                square[i, j] = T.cast(x[i, j], "float32") * T.cast(x[i, j], "float32")
            T.reduce_sum(square, total, dim=1)
            for i, j in T.Parallel(M, N):
                x[i, j] = T.cast(T.cast(x[i, j], "float32") / T.sqrt(total[i, 0] / N + 1e-5), "float16")
            T.copy(x, Y)

    return main


def test_a_loaded_tile_is_converted_once() -> None:
    kernel = tilelang.compile(norms(16, 256), target="npuir")
    text = kernel.mlir()
    assert text.count("hivm.hir.vcast") == 2, "to float32 and back"
    without = tilelang.compile(norms(16, 256), target="npuir", pass_configs={"tl.disable": ["reuse-results"]})
    assert without.mlir().count("hivm.hir.vcast") == 3
    assert kernel.trace().time_us < without.trace().time_us
    x = np.random.default_rng(0).standard_normal((16, 256)).astype(np.float16)
    assert kernel.check(x, np.zeros_like(x))


def test_kernels_whose_author_synchronises_stay_as_they_are() -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float16"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((8, 64), "float16")
            y = T.alloc_shared((8, 64), "float32")
            T.copy(X, x)
            T.barrier_all()
            for i, j in T.Parallel(8, 64):
                y[i, j] = T.cast(x[i, j], "float32") * 2.0
            T.barrier_all()
            for i, j in T.Parallel(8, 64):
                y[i, j] = T.cast(x[i, j], "float32") + y[i, j]
            T.barrier_all()
            T.copy(y, Y)

    assert tilelang.compile(main, target="npuir").mlir().count("hivm.hir.vcast") == 2


def scores(stages: int) -> Any:
    """A tile is converted before and after a product, in a pipelined loop."""
    @T.prim_func
    def main(X: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 64), "float16"), Y: T.Tensor((256, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((32, 64), "float16")
            a = T.alloc_shared((32, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((32, 64), "float32")
            y = T.alloc_shared((32, 64), "float32")
            T.copy(B, b)
            for t in T.Pipelined(8, num_stages=stages):
                T.copy(X[t * 32, 0], x)
                for i, j in T.Parallel(32, 64):
                    a[i, j] = T.cast(T.cast(x[i, j], "float32") * 2.0, "float16")
                T.gemm(a, b, c, initC=True)
                for i, j in T.Parallel(32, 64):
                    y[i, j] = c[i, j] + T.cast(x[i, j], "float32")
                T.copy(y, Y[t * 32, 0])

    return main


def test_no_tile_passes_from_one_stage_of_an_iteration_to_another() -> None:
    kernel = tilelang.compile(scores(2), target="npuir")
    assert not [one for one in kernel.explain(edits=False).remarks if one.about == "reuse-results"]
    rng = np.random.default_rng(0)
    x, b = (rng.integers(-3, 4, size).astype(np.float16) for size in ((256, 64), (64, 64)))
    y = np.zeros((256, 64), np.float32)
    kernel(x, b, y)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(y, 2 * wide @ b.astype(np.float32) + wide)
