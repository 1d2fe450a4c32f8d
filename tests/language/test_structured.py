"""Structured and composite operations: values against NumPy, and contracts that are refused at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import ops

RUN = """
    import tilelang_npu.language as T

    @T.prim_func
    def main({parameters}):
        with T.Kernel(1) as cid:
            {statements}
"""


@pytest.fixture
def run(source: Any) -> Callable[..., None]:
    """``run("T.flip(a, b, 1)", a=array, b=array)``: load all arrays, do it, store all arrays; on the npuir branch."""

    def execute(statement: str, **arrays: np.ndarray) -> None:
        kinds = {name: str(ops.dtype(array.dtype)) for name, array in arrays.items()}
        parameters = ", ".join(f"{name.upper()}: T.Tensor({array.shape}, {kinds[name]!r})" for name, array in arrays.items())
        lines = [f"{name} = T.alloc_ub({array.shape}, {kinds[name]!r})" for name, array in arrays.items()]
        lines += [f"T.copy({name.upper()}, {name})" for name in arrays]
        lines += [*statement.splitlines(), *(f"T.copy({name}, {name.upper()})" for name in arrays)]
        module = source(RUN.format(parameters=parameters, statements="\n            ".join(lines)))
        tilelang.compile(module.main, target="npuir")(*arrays.values())

    return execute


SHAPES = [(8, 16), (5, 13)]


def data(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> np.ndarray:
    return (rng.standard_normal(shape) * 8).astype(kind)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int32])
def test_moves(run: Any, rng: np.random.Generator, shape: tuple[int, int], kind: Any) -> None:
    a, rows, columns = data(rng, shape, kind), shape[0], shape[1]
    out = {name: np.zeros(size, kind) for name, size in (
        ("w", (columns, rows)), ("f", shape), ("c", (2 * rows, columns)), ("i", (rows, 2 * columns)),
        ("e", shape), ("o", shape), ("p", (rows + 3, columns)), ("s", shape))}
    run("T.vtranspose(a, w, [1, 0])\nT.flip(a, f, 1)\nT.npuir_concat(a, a, c, 0)\nT.npuir_interleave(a, f, i)\n"
        "T.deinterleave(i, e, o)\nT.npuir_pad(a, p, 7, [1, 0], [2, 0])\nT.cumsum(a, s, dim=0)", a=a, **out)
    np.testing.assert_array_equal(out["w"], a.T)
    np.testing.assert_array_equal(out["f"], a[:, ::-1])
    np.testing.assert_array_equal(out["c"], np.concatenate([a, a]))
    np.testing.assert_array_equal(out["i"], np.stack([a, a[:, ::-1]], -1).reshape(rows, -1))
    np.testing.assert_array_equal(out["e"], a)
    np.testing.assert_array_equal(out["o"], a[:, ::-1])
    np.testing.assert_array_equal(out["p"], np.pad(a, [(1, 2), (0, 0)], constant_values=7))
    wide = np.float32 if kind is np.float16 else kind
    np.testing.assert_array_equal(out["s"], np.cumsum(a.astype(wide), 0, dtype=wide).astype(kind))


def test_gather_and_arange(run: Any, rng: np.random.Generator) -> None:
    a, b = data(rng, (6, 10), np.float32), np.zeros((6, 10), np.float32)
    i, n = rng.integers(0, 10, (6, 10), np.int32), np.zeros((6, 10), np.int32)
    run("T.npuir_gather(a, b, i)\nT.arange(n, [100, 3], 5)", a=a, b=b, i=i, n=n)
    np.testing.assert_array_equal(b, np.take_along_axis(a, i, 1))
    np.testing.assert_array_equal(n, 5 + 100 * np.arange(6)[:, None] + 3 * np.arange(10))


def test_sorts(run: Any, rng: np.random.Generator) -> None:
    a = rng.permutation(64).astype(np.float32)
    pairs, best, values, index = (np.zeros(size, np.float32) for size in (128, 16, 8, 8))
    keep = a.copy()
    run("T.tile.sort(pairs, a, 64)\nT.tile.topk(best, a, 8, 64)\nT.tile.gather_mask(values, best, 'P0101')\n"
        "T.tile.gather_mask(index, best, 'P1010')", a=a, pairs=pairs, best=best, values=values, index=index)
    order = np.argsort(-keep)
    np.testing.assert_array_equal(pairs, np.stack([keep[order], order], -1).reshape(-1))
    np.testing.assert_array_equal(values, keep[order[:8]])
    np.testing.assert_array_equal(index, order[:8])


def test_masks_of_bits(run: Any, rng: np.random.Generator) -> None:
    a, b, m, c, offsets, d = (data(rng, (64,), np.float32), data(rng, (64,), np.float32), np.zeros(8, np.uint8),
                              np.zeros(64, np.float32),
                              (4 * rng.integers(0, 64, 64)).astype(np.uint32), np.zeros(64, np.float32))
    run("T.tile.compare(m, a, b, 'LT')\nT.tile.select(c, m, a, 0.5, 'VSEL_TENSOR_SCALAR_MODE')\n"
        "T.tile.gather(d, a, offsets, 0)",
        a=a, b=b, m=m, c=c, offsets=offsets, d=d)
    np.testing.assert_array_equal(m, np.packbits(a < b, bitorder="little"))
    np.testing.assert_array_equal(c, np.where(a < b, a, np.float32(0.5)))
    np.testing.assert_array_equal(d, a[offsets // 4])


@pytest.mark.parametrize("entry", list(ops.composites()), ids=lambda entry: entry.name)
@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("in_place", [False, True])
def test_composites(run: Any, rng: np.random.Generator, entry: ops.Composite, kind: Any, in_place: bool) -> None:
    if ops.computed_in(entry, ops.dtype(kind)) is None or (in_place and entry.accumulates):
        pytest.skip("not of this kind")
    a, b, d = (rng.standard_normal((5, 13)).astype(kind) for _ in range(3))
    extra: list[Any] = {0: [], 1: [b] if not entry.scalar else [0.25], 2: [-0.5, 0.75]}[entry.inputs - 1]
    wide = [np.asarray(value, np.float32) for value in (a, *extra, *([d] if entry.accumulates else []))]
    expected = entry.meaning(*wide).astype(kind)
    names = ["a" if in_place else "d", "a", *("b" if value is b else repr(value) for value in extra)]
    alias = next(alias for alias in entry.aliases if alias.startswith("tile."))
    run(f"T.{alias}({', '.join(names)})", a=a, b=b, d=d)
    tolerance = 4e-3 if kind is np.float16 else 1e-6
    np.testing.assert_allclose(a if in_place else d, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("statement", ["T.vadd(a, b, d)", "T.vmul(a, b, d)", "T.vexp(a, d)", "T.vsigmoid(a, d)"])
def test_bf16_is_computed_in_f32(run: Any, rng: np.random.Generator, statement: str) -> None:
    a, b, d = (data(rng, (4, 24), ml_dtypes.bfloat16) for _ in range(3))
    x, y = a.astype(np.float32) / 8, b.astype(np.float32) / 8
    a, b = x.astype(ml_dtypes.bfloat16), y.astype(ml_dtypes.bfloat16)
    expected = {"vadd": x + y, "vmul": x * y, "vexp": np.exp(x), "vsigmoid": 1 / (1 + np.exp(-x))}[statement[2:].split("(")[0]]
    run(statement, a=a, b=b, d=d)
    tolerance = 0 if "sigmoid" not in statement else 2e-2
    np.testing.assert_allclose(d.astype(np.float32), expected.astype(ml_dtypes.bfloat16).astype(np.float32), rtol=tolerance)


def test_loop_variables_as_data(run: Any) -> None:
    d = np.zeros((6, 10), np.int32)
    run("for i, j in T.Parallel(6, 10):\n    d[i, j] = i * 10 + j", d=d)
    np.testing.assert_array_equal(d, np.arange(60).reshape(6, 10))


def test_a_serial_loop_inside_parallel(run: Any, rng: np.random.Generator) -> None:
    a, d = data(rng, (6, 14), np.float32), np.zeros((6, 10), np.float32)
    run("for i, j in T.Parallel(6, 10):\n    d[i, j] = a[i, j]\n    for k in T.serial(4):\n"
        "        d[i, j] = T.max(d[i, j], a[i, j + k + 1])", a=a, d=d)
    np.testing.assert_array_equal(d, np.lib.stride_tricks.sliding_window_view(a, 5, 1).max(-1))


def test_atomic_addition(source: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((10, 8), "float32"), B: T.Tensor((8,), "float32")):
            with T.Kernel(10) as cid:
                a = T.alloc_ub((8,), "float32")
                T.copy(A[cid, 0], a)
                T.atomic_add(B[0], a, [5])
    """)
    a, b = np.arange(80, dtype=np.float32).reshape(10, 8), np.ones(8, np.float32)
    tilelang.compile(module.main, target="npuir")(a, b)
    np.testing.assert_array_equal(b, 1 + a.sum(0) * (np.arange(8) < 5))


def test_print_names_core_and_line(run: Any, capsys: Any) -> None:
    run("T.print(a[0:1, 0:2], 'here')", a=np.full((2, 8), 3, np.float32))
    assert "] here 1x2 float32\n[[3. 3.]]" in capsys.readouterr().out


def test_an_atomic_addition_needs_a_global_tensor(kernel: Any, refused: Any) -> None:
    with refused("T132", at="T.atomic_add(a, b)", message="adds a local tile to a global tensor", help="signature"):
        kernel("T.atomic_add(a, b)", "npuir")
