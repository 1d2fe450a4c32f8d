"""Loops of elements, atomic additions and debug output: values against NumPy. The operations themselves: tests/ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import TileError, ops

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


def data(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> np.ndarray:
    return (rng.standard_normal(shape) * 8).astype(kind)


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


def test_an_atomic_addition_of_a_launch_with_is_npu_is_done_once(source: Any) -> None:
    """Nothing but the addition says whose dialect it is: a block has one Vector core there."""
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((10, 8), "float32"), B: T.Tensor((8,), "float32")):
            with T.Kernel(10, is_npu=True) as (cid, _):
                a = T.alloc_ub((8,), "float32")
                T.copy(A[cid, 0], a)
                T.atomic_add(B, a)
    """)
    a, b = np.arange(80, dtype=np.float32).reshape(10, 8), np.ones(8, np.float32)
    tilelang.compile(module.main)(a, b)
    np.testing.assert_array_equal(b, 1 + a.sum(0))


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (27, 19)])
def test_atomic_addition_out_of_l0c(source: Any, rng: np.random.Generator, kind: Any, rows: int, columns: int) -> None:
    """Split along K: each block adds its product to the same tile, which may extend past the end of the tensor."""
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((ROWS, 128), "float16"), B: T.Tensor((128, COLUMNS), "float16"),
                 C: T.Tensor((ROWS, COLUMNS), KIND)):
            with T.Kernel(4, is_npu=True) as (cid, vid):
                a = T.alloc_L1((32, 32), "float16")
                b = T.alloc_L1((32, 32), "float16")
                c = T.alloc_L0C((32, 32), "float32")
                with T.Scope("C"):
                    T.copy(A[0, cid * 32], a)
                    T.copy(B[cid * 32, 0], b)
                    T.barrier_all()
                    T.gemm_v0(a, b, c, init=True)
                    T.barrier_all()
                    T.tile.atomic_add(C[0, 0], c)
    """.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)).replace("KIND", repr(np.dtype(kind).name)))
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((rows, 128), (128, columns)))
    c = rng.integers(-9, 10, (rows, columns)).astype(kind)
    expected = c.astype(np.float32) + a.astype(np.float32) @ b.astype(np.float32)
    tilelang.compile(module.main, target="ascendc")(a, b, c)
    np.testing.assert_array_equal(c, expected.astype(kind))


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int32", "int16", "int8"])
@pytest.mark.parametrize("count", [64, 45])
def test_atomic_addition_of_every_type(source: Any, rng: np.random.Generator, kind: str, count: int) -> None:
    """Both Vector cores of three blocks add; elements past the end of the tensor are not added."""
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((6, 64), "{kind}"), B: T.Tensor(({count},), "{kind}")):
            with T.Kernel(3, is_npu=True) as (cid, vid):
                a = T.alloc_ub((64,), "{kind}")
                T.copy(A[cid * 2 + vid, :], a)
                T.barrier_all()
                T.tile.atomic_add(B[0], a)
    """)
    numpy = tilelang.DataType(kind).numpy
    a, b = rng.integers(-4, 5, (6, 64)).astype(numpy), rng.integers(-4, 5, count).astype(numpy)
    expected = b.astype(np.float32) + a[:, :count].astype(np.float32).sum(0)
    tilelang.compile(module.main, target="ascendc")(a, b)
    np.testing.assert_array_equal(b.astype(np.float32), expected)


def test_print_names_core_and_line(run: Any, capsys: Any) -> None:
    run("T.print(a[0:1, 0:2], 'here')", a=np.full((2, 8), 3, np.float32))
    assert "] here 1x2 float32\n[[3. 3.]]" in capsys.readouterr().out


def test_an_atomic_addition_needs_a_global_tensor(kernel: Any, refused: Any) -> None:
    with refused("T132", at="T.atomic_add(a, b)", message="adds a buffer on the chip to a global", help="tensor parameter"):
        kernel("T.atomic_add(a, b)", "npuir")


def test_sizes_of_parts(rng: np.random.Generator) -> None:
    """``size`` is the sources' extents: the other side of an interleave has twice the last, of a concat their sum."""
    import tilelang_npu as tilelang
    import tilelang_npu.language as T

    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), I: T.Tensor((8, 32), "float32"), C: T.Tensor((16, 16), "float32"),
             P: T.Tensor((8, 32), "float32"), F: T.Tensor((8, 16), "float32"), S: T.Tensor((8, 16), "float32"),
             D: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((8, 16), "float32")
            wide = T.alloc_ub((8, 32), "float32")
            tall = T.alloc_ub((16, 16), "float32")
            small = T.alloc_ub((8, 16), "float32")
            T.copy(X, x)
            T.fill(wide, -1)
            T.vinterleave(x, x, wide, size=[4, 8])
            T.copy(wide, I)
            T.fill(small, -1)
            T.vdeinterleave(wide, small, index_mode="CHANNEL_1", size=[4, 16])
            T.copy(small, D)
            T.fill(tall, -1)
            T.concat(x, x, tall, 0, size=[3, 16])
            T.copy(tall, C)
            T.fill(wide, -1)
            T.pad(x, wide, 0.5, [0, 2], [0, 4], size=[8, 10])
            T.copy(wide, P)
            T.fill(small, -1)
            T.vflip(x, small, 1, size=[8, 6])
            T.copy(small, F)
            T.fill(small, -1)
            T.vsin(x, small, size=[2, 16])
            T.copy(small, S)

    x = rng.standard_normal((8, 16)).astype(np.float32)
    shapes = ((8, 32), (16, 16), (8, 32), (8, 16), (8, 16), (8, 16))
    i, c, p, f, s, d = expected = [np.full(shape, -1, np.float32) for shape in shapes]
    i[:4, :16] = np.repeat(x[:4, :8], 2, 1)
    c[:6] = np.concatenate([x[:3], x[:3]])
    p[:, :16] = np.pad(x[:, :10], [(0, 0), (2, 4)], constant_values=0.5)
    f[:, :6] = x[:, 5::-1]
    s[:2] = np.sin(x[:2])
    d[:4, :8] = x[:4, :8]
    found = [np.zeros(shape, np.float32) for shape in shapes]
    tilelang.compile(main, target="npuir")(x, *found)
    for have, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6)


def test_bits_as_another_type(rng: np.random.Generator) -> None:
    import tilelang_npu as tilelang
    import tilelang_npu.language as T

    @T.prim_func
    def main(X: T.Tensor((6, 40), "float16"), Y: T.Tensor((6, 40), "int16"), Z: T.Tensor((4, 40), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((6, 40), "float16")
            T.copy(X, x)
            bits = T.vbitcast(x, "int16")
            T.vadd(bits, 1, bits)
            T.copy(bits, Y)
            T.copy(T.view_experiment(bits, dtype="float16")[2:6, :], Z)

    x = rng.standard_normal((6, 40)).astype(np.float16)
    y, z = np.zeros((6, 40), np.int16), np.zeros((4, 40), np.float16)
    tilelang.compile(main, target="npuir")(x, y, z)
    np.testing.assert_array_equal(y, x.view(np.int16) + 1)
    np.testing.assert_array_equal(z.view(np.int16), y[2:6])


@pytest.mark.parametrize(("statement", "code"), [
    ("T.vbitcast(a, 'float16')", "T110"), ("T.vbitcast(3, 'float16')", "T110"), ("T.view(a, dtype='int64')", "T110"),
    ("T.assert_(False, 'no')", "T148"), ("T.assert_(cid < 3, 'no')", "T190"),
    ("T.vinterleave(a, b, c, size=[8, 128])", "T130"), ("T.concat(a, b, c, 0, size=[5, 128])", "T130"),
])
def test_refused(kernel: Any, statement: str, code: str) -> None:
    with pytest.raises(TileError) as caught:
        kernel(statement, "npuir")
    assert caught.value.code == code


def test_assert_of_what_is_known(lines: Any) -> None:
    assert lines("T.assert_(8 * 16 == 128, 'sizes')", "npuir") == []


@pytest.mark.parametrize(("name", "meaning"), [("mul", np.multiply), ("sub", np.subtract), ("div", np.divide)])
def test_rows_meet_their_block_of_32_bytes(name: str, meaning: Any, rng: np.random.Generator) -> None:
    import tilelang_npu.language as T

    expand = getattr(T.tile, f"row_expand_{name}_experiment")

    @T.prim_func
    def main(X: T.Tensor((6, 32), "float32"), Y: T.Tensor((6, 8), "float32"), Z: T.Tensor((6, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((6, 32), "float32")
            y = T.alloc_ub((6, 8), "float32")
            T.copy(X, x)
            T.copy(Y, y)
            expand(x[:, 8:24], x[:, 8:24], y)
            T.copy(x, Z)

    x, y = (rng.uniform(1, 2, shape).astype(np.float32) for shape in ((6, 32), (6, 8)))
    wanted = x.copy()
    wanted[:, 8:24] = meaning(x[:, 8:24], np.tile(y, (1, 2)))
    z = tilelang.compile(main, target="ascendc", out_idx=[2], pass_configs={"tl.ascend_auto_sync": True})(x, y)
    np.testing.assert_array_equal(z, wanted)
