"""``T.copy``: how both sides get their extents, in both dialects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

A = "#hivm.address_space<gm>"


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize(("statement", "expected"), [
    # whole buffers
    ("T.copy(a, b)", ["tile.copy %a to %b"]),
    ("T.copy(V, T.alloc_ub((256,), 'float32'))", ["tile.copy %V to %"]),
    # the start of a tile takes the other side's extents
    ("T.copy(A[8, 0], a)", ["%0 = tile.region %A[8, 0] [8, 128] keep [0, 1]", "tile.copy %0 to %a"]),
    ("T.copy(a, A[cid * 8, 0])", ["%0 = arith.muli %cid, %c8", "%1 = tile.region %A[%0, 0] [8, 128] keep [0, 1]",
                                  "tile.copy %a to %1"]),
    ("T.copy(A[cid, 0], line)", ["%0 = tile.region %A[%cid, 0] [1, 128] keep [1]", "tile.copy %0 to %line"]),
    ("T.copy(W[1, cid, 0], a)", ["%0 = tile.region %W[1, %cid, 0] [1, 8, 128] keep [1, 2]", "tile.copy %0 to %a"]),
    ("T.copy(V[cid], row)", ["%0 = tile.region %V[%cid] [128] keep [0]", "%1 = tile.region %row[0, 0] [1, 128] keep [1]",
                             "tile.copy %0 to %1"]),
    ("T.copy(A[3, 4], a[2:4, 0:16])", ["%0 = tile.region %A[3, 4] [2, 16] keep [0, 1]",
                                       "%1 = tile.region %a[2, 0] [2, 16] keep [0, 1]",
                                       "tile.copy %0 to %1"]),
    ("T.copy(a[3, 0], line)", ["%0 = tile.region %a[3, 0] [1, 128] keep [1]", "tile.copy %0 to %line"]),
    ("T.copy(S[cid, 0], a)", ["%0 = tile.region %S_1[%cid, 0] [8, 128] keep [0, 1]", "tile.copy %0 to %a"]),
    # an indexed axis of the other operand keeps its position
    ("T.copy(a[:, 0], A[8, 3])", ["%0 = tile.region %a[0, 0] [8, 1] keep [0]", "%1 = tile.region %A[8, 3] [8, 1] keep [0]",
                                  "tile.copy %0 to %1"]),
    ("T.copy(A[8, 3], a[:, 2])", ["%0 = tile.region %A[8, 3] [8, 1] keep [0]", "%1 = tile.region %a[0, 2] [8, 1] keep [0]",
                                  "tile.copy %0 to %1"]),
    # slices
    ("T.copy(A[0:8, :], a)", ["%0 = tile.region %A[0, 0] [8, 128] keep [0, 1]", "tile.copy %0 to %a"]),
    ("T.copy(A[5, :], a[2, :])", ["%0 = tile.region %A[5, 0] [1, 128] keep [1]", "%1 = tile.region %a[2, 0] [1, 128] keep [1]",
                                  "tile.copy %0 to %1"]),
    ("T.copy(V[0:8], a[:, 3])", ["%0 = tile.region %V[0] [8] keep [0]", "%1 = tile.region %a[0, 3] [8, 1] keep [0]",
                                 "tile.copy %0 to %1"]),
    ("T.copy(V[8:16], a[:, 3:4])", ["%0 = tile.region %V[8] [8] keep [0]", "%1 = tile.region %a[0, 3] [8, 1] keep [0]",
                                    "tile.copy %0 to %1"]),
    ("T.copy(W[0, 0:8, 0:128], a)", ["%0 = tile.region %W[0, 0, 0] [1, 8, 128] keep [1, 2]", "tile.copy %0 to %a"]),
    ("T.copy(W[1:2, 0:8, :], a)", ["%0 = tile.region %W[1, 0, 0] [1, 8, 128] keep [1, 2]", "tile.copy %0 to %a"]),
    ("T.copy(col, eight)", ["%0 = tile.region %col[0, 0] [8, 1] keep [0]", "tile.copy %0 to %eight"]),
    ("T.copy(V[3:4], one)", ["%0 = tile.region %V[3] [1] keep [0]", "tile.copy %0 to %one"]),
    ("T.copy(V[3], a[0, 0:1])", ["%0 = tile.region %V[3] [1] keep [0]", "%1 = tile.region %a[0, 0] [1, 1] keep [1]",
                                 "tile.copy %0 to %1"]),
    # a whole buffer is cut to the run-time extent of the other operand
    ("T.copy(A[0:n, :], a)", ["%0 = arith.index_cast %n", "%1 = tile.region %A[0, 0] [%0, 128] keep [0, 1]",
                              "%2 = tile.region %a[0, 0] [%0, 128] keep [0, 1]", "tile.copy %1 to %2"]),
    ("T.copy(a, A[0:n, :])", ["%0 = arith.index_cast %n", "%1 = tile.region %a[0, 0] [%0, 128] keep [0, 1]",
                              "%2 = tile.region %A[0, 0] [%0, 128] keep [0, 1]", "tile.copy %1 to %2"]),
    # sizes
    ("T.copy(col, A[8, 0], size=[1, 8])", ["%0 = tile.region %col[0, 0] [8, 1] keep [0]",
                                           "%1 = tile.region %A[8, 0] [1, 8] keep [1]", "tile.copy %0 to %1"]),
    ("T.copy(A[8, 0], a, [8, 128])", ["%0 = tile.region %A[8, 0] [8, 128] keep [0, 1]", "tile.copy %0 to %a"]),
    ("T.copy(A[8, 0], a, size=[4, 64])", ["%0 = tile.region %A[8, 0] [4, 64] keep [0, 1]",
                                          "%1 = tile.region %a[0, 0] [4, 64] keep [0, 1]",
                                          "tile.copy %0 to %1"]),
    ("T.copy(A[8, 0], a[2, 0], [128])", ["%0 = tile.region %A[8, 0] [1, 128] keep [0, 1]",
                                         "%1 = tile.region %a[2, 0] [1, 128] keep [0, 1]", "tile.copy %0 to %1"]),
    ("T.copy(A[8, 0], line, [1, 128])", ["%0 = tile.region %A[8, 0] [1, 128] keep [1]", "tile.copy %0 to %line"]),
    ("T.copy(A[8, 0], a, None, [n, 128])", ["%0 = arith.index_cast %n", "%1 = tile.region %A[8, 0] [%0, 128] keep [0, 1]",
                                            "%2 = tile.region %a[0, 0] [%0, 128] keep [0, 1]", "tile.copy %1 to %2"]),
    # another type is a cast; options
    ("T.copy(a, h)", ["tile.copy %a to %h"]),
    ("T.copy(H[0, 0], a)", ["%0 = tile.region %H[0, 0] [8, 128] keep [0, 1]", "tile.copy %0 to %a"]),
    ("T.copy(A[60, 0], a, pad_value=1.5)", ["%0 = tile.region %A[60, 0] [8, 128] keep [0, 1]", "tile.copy %0 to %a pad %cst"]),
    ("T.copy(l0c, A, enable_relu=True)", ["tile.copy %l0c to %A relu"]),
    ("T.copy(l0c, A, True)", ["tile.copy %l0c to %A relu"]),
    ("T.copy(l1bt, T.alloc_L0B((32, 128), 'float16'), transpose=True)", ["tile.copy %l1bt to %buffer transpose"]),
    ("T.copy(l1bt[0, 0], T.alloc_L0B((32, 128), 'float16'), transpose=True)", ["tile.copy %l1bt to %buffer transpose"]),
    ("T.copy(A[0, 0], a, coalesced_width=4)", ["%0 = tile.region %A[0, 0] [8, 128] keep [0, 1]", "tile.copy %0 to %a"]),
    # a name bound to a loaded element still refers to the element's address
    ("start = A[cid, 0]\nT.copy(start, a)", ["%0 = tile.region %A[%cid, 0] [8, 128] keep [0, 1]", "tile.copy %0 to %a"]),
])
def test_extents(lines: Any, dialect: str, statement: str, expected: list[str]) -> None:
    found = [line.replace(", %", ", %") for line in lines(statement, dialect)]
    assert len(found) == len(expected), found
    for have, want in zip(found, expected, strict=True):
        assert have.startswith(want), found


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
def test_the_corner_of_a_buffer_is_stored_to_a_smaller_slice(lines: Any, dialect: str) -> None:
    assert lines("T.copy(a, A[0:4, 0:64])", dialect) == [
        "%0 = tile.region %a[0, 0] [4, 64] keep [0, 1]", "%1 = tile.region %A[0, 0] [4, 64] keep [0, 1] {tile.slice}",
        "tile.copy %0 to %1"]


@pytest.mark.parametrize(("statement", "expected"), [
    ("T.copy(A[0:4, 0:64], a)", ["%0 = tile.region %A[0, 0] [4, 64] keep [0, 1]", "tile.copy %0 to %a"]),
    ("T.copy(A[3, 0:64], line)", ["%0 = tile.region %A[3, 0] [1, 64] keep [1]", "tile.copy %0 to %line"]),
    ("T.copy(V[8], a)", ["%0 = tile.region %V[8] [128] keep [0]", "%1 = tile.view %0", "tile.copy %1 to %a"]),
    ("T.copy(a, V[8])", ["%0 = tile.region %a[0, 0] [1, 128] keep [1]", "%1 = tile.region %V[8] [128] keep [0]",
                         "tile.copy %0 to %1"]),
])
def test_a_smaller_slice_fills_the_corner_of_a_buffer_in_ascendc(lines: Any, statement: str, expected: list[str]) -> None:
    found = lines(statement, "ascendc")
    assert [have.split(" : ")[0] for have in found] == expected


@pytest.mark.parametrize("pad", [None, 2.5])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "int32", "uint8", "uint16", "uint32"])
def test_what_a_smaller_slice_leaves_is_padding(pad: float | None, dtype: str, rng: np.random.Generator) -> None:
    value = None if pad is None else (pad if dtype.startswith("float") else np.iinfo(dtype).max - 3)

    @T.prim_func
    def main(A: T.Tensor((5, 7), dtype), V: T.Tensor((21,), dtype), B: T.Tensor((8, 16), dtype), C: T.Tensor((4, 8), dtype),
             D: T.Tensor((2, 5), dtype)):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_ub((8, 16), dtype)
            v = T.alloc_ub((4, 8), dtype)
            T.tile.fill(a, 9)
            T.copy(A[2:5, 1:7], a, pad_value=value)
            T.copy(a, B)
            T.copy(V[15], v, pad_value=value)
            T.copy(v, C)
            T.copy(a, D[0:2, 0:5])

    a, v = (rng.integers(0, 9, shape).astype(dtype) for shape in ((5, 7), (21,)))
    b, c, d = (np.zeros(shape, dtype) for shape in ((8, 16), (4, 8), (2, 5)))
    switches = {"tl.ascend_auto_sync": True}
    tilelang.compile(main, target="ascendc", pass_configs=switches)(a, v, b, c, d)
    wanted_b, wanted_c = np.full_like(b, value or 0), np.full_like(c, value or 0)
    wanted_b[:3, :6] = a[2:5, 1:7]
    wanted_c[0, :6] = v[15:]
    np.testing.assert_array_equal(b, wanted_b)
    np.testing.assert_array_equal(c, wanted_c)
    np.testing.assert_array_equal(d, wanted_b[:2, :5])


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.copy(A[0:16, :], a)", "T131", "different shapes"),
    ("T.copy(stack, a)", "T131", r"source stack \[2, 8, 128\] float32 and destination a \[8, 128\] float32"),
    ("T.copy(A[0, 0], a, [2, 8, 128])", "T131", "3 sizes for"),
    ("T.copy(A[0, 0], a, [16, 128])", "T130", "elements 0 to 15 are outside axis 0 of a"),
    ("T.copy(A[0, 0], a, 'x', [8, 128], 3)", "T145", "takes at most 4 positional arguments here, not 5"),
    ("T.copy(i, i)", "T112", "source i .* and destination i .* share elements"),
    ("T.copy(l1bt, l1a, transpose=True)", "T131", r"source l1bt \[128, 32\] float16 and destination l1a \[64, 32\] float16"),
    ("T.copy(L[0, 0], T.alloc_ub((8, 128), 'int64'), pad_value=0.5)", "T110", "pad_value is 0.5, which int64 does not have"),
    ("T.copy('A', a)", "T110", "the source must be a buffer, a slice or the start of a tile, not 'A'"),
])
def test_copies_that_do_not_fit(kernel: Any, refused: Any, dialect: str, statement: str, code: str, message: str) -> None:
    with refused(code, at=statement.splitlines()[-1], message=message):
        kernel(statement, dialect)


def test_reshape_and_view(lines: Any) -> None:
    assert lines("v = T.view(a, (1024,))\nT.copy(v, flat)") == ["%v = tile.view %a", "tile.copy %v to %flat"]
    assert lines("v = T.reshape(flat, (8, 128))\nT.vadd(v, a, b)", "npuir") == [
        "%v = tile.view %flat", 'tile.elementwise "add" ins(%v, %a']
    assert lines("T.reshape(flat, a)", "npuir") == ["%0 = tile.view %flat", "tile.copy %0 to %a"]
    assert lines("T.reshape(stack[1, :, :], flat)", "npuir") == [
        "%0 = tile.region %stack[1, 0, 0] [1, 8, 128] keep [1, 2]", "%1 = tile.view %0", "tile.copy %1 to %flat"]


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.reshape(a, (9, 128))", "T111", r"a \[8, 128\] float32 has 1024 elements; \[9, 128\] has 1152"),
    ("T.view(a[:, 0:64], (512,))", "T111", "has gaps between its rows"),
    ("T.reshape(a, (8, cid))", "T111", "is not a positive constant"),
    ("T.reshape(3, (8,))", "T110", "the source must be a buffer"),
    ("T.reshape(a, h)", "T110", "differ in type"),
])
def test_shapes_that_cannot_be_seen(kernel: Any, refused: Any, statement: str, code: str, message: str) -> None:
    with refused(code, at=statement, message=message):
        kernel(statement)


# -- rows of a flat tensor, and whole matrices in L0C ---------------------------------------------------------------------


def rows_apart(total: int, rows: int, columns: int, dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((total,), dtype), places: T.Tensor((2,), "int32"), B: T.Tensor((rows, columns), dtype),
             D: T.Tensor((total,), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((rows, columns), dtype)
            with T.Scope("V"):
                apart = places[0]
                first = places[1]
                T.copy(A[first], x, stride=apart)
                T.copy(x, B)
                T.copy(x, D[first], stride=apart)

    return tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_rows_of_a_flat_tensor(dtype: str, rng: np.random.Generator) -> None:
    """``stride`` is the distance of rows: with gaps, without, from any element on, and past the end of the tensor."""
    kernel = rows_apart(1000, 7, 48, dtype)
    given = rng.integers(-99, 99, 1000).astype(dtype)
    for apart, first in ((100, 0), (100, 16), (48, 3), (200, 5), (160, 40)):
        loaded, stored = np.zeros((7, 48), dtype), np.zeros(1000, dtype)
        for row in range(7):
            part = given[first + row * apart:][:48]
            loaded[row, :len(part)] = part
            stored[first + row * apart:][:48] = part
        for run in (kernel, kernel.interpret):
            found = np.ones((7, 48), dtype), np.zeros(1000, dtype)
            run(given, np.array([apart, first], np.int32), *found)
            np.testing.assert_array_equal(found[0], loaded, err_msg=f"{apart} from {first} on")
            np.testing.assert_array_equal(found[1], stored, err_msg=f"{apart} from {first} on")


@pytest.mark.parametrize("shape", [(8, 4, 32), (1024,)])
def test_two_rows_in_ascending_order(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    """``jump`` is the signed distance of the second row, in elements of the tensor as one axis."""
    @T.prim_func
    def main(A: T.Tensor(shape, "float16"), P: T.Tensor((2,), "int64"), B: T.Tensor((4, 48), "float16"),
             C: T.Tensor((2, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x, y = T.alloc_ub((4, 48), "float16"), T.alloc_ub((2, 32), "float16")
            first, jump = P[0], P[1]
            T.fill(x, 0)
            if len(shape) == 1:
                T.copy(A[first], x[1:3, 16:48], jump=jump)
                T.copy(A[first], y[0, 0], size=[2, 32], jump=32)
            else:
                T.copy(A[first // 128, first % 128 // 32, first % 32], x[1:3, 16:48], jump=jump)
                T.copy(A[first // 128, first % 128 // 32, first % 32], y[0, 0], size=[2, 32], jump=32)
            T.copy(x, B)
            T.copy(y, C)

    kernel = tilelang.compile(main, out_idx=[2, 3], target="npuir")
    given = rng.integers(-99, 99, 1024).astype(np.float16)
    for first, jump in ((96, 160), (256, -160), (256, 0), (256, -1), (101, 32)):
        wanted = np.zeros((4, 48), np.float16)
        for row, start in enumerate(sorted((first, first + jump))):
            wanted[1 + row, 16:] = given[start:start + 32]
        for run in (kernel, kernel.interpret):
            b, c = run(given.reshape(shape), np.array([first, jump]))
            np.testing.assert_array_equal(b, wanted, err_msg=f"{first}, {jump}")
            np.testing.assert_array_equal(c, given[first:first + 64].reshape(2, 32))


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.copy(A[0, 0], a, stride=256)", "T231", "neither operand is a flat global tensor"),
    ("T.copy(a, b, stride=128)", "T231", "neither operand is a flat global tensor"),
    ("T.copy(V[0], a[0, 0], stride=128)", "T131", "element of a .* is not a matrix"),
    ("T.copy(V[0], line, stride=128)", "T131", r"line \[128\] float32 is not a matrix"),
    ("T.copy(V[0], a, stride=0)", "T145", "stride is 0"),
    ("T.copy(A[0, 0], a, tmp=3)", "T110", "tmp must be a buffer"),
    ("T.copy(A[0, 0], a, jump=8)", "T131", "has not two rows"),
    ("T.copy(a, b, jump=8)", "T231", "is no element of a global tensor"),
    ("T.copy(A[0, 0], a[0:2, 0:8], jump=True)", "T145", "jump is True"),
    ("T.copy(A[0, 0], a[0:2, 0:8], jump=8, pad_value=1)", "T145", "jump is given with"),
    ("T.copy(A[0, 0], a[0, 0], jump=8)", "T131", "neither operand has a shape"),
])
def test_wrong_strides(kernel: Any, refused: Any, statement: str, code: str, message: str) -> None:
    with refused(code, at=statement, message=message):
        kernel(statement)


@pytest.mark.parametrize("columns", [1, 40])
def test_a_part_of_a_matrix_in_l0c(columns: int, rng: np.random.Generator) -> None:
    """A slice of the tensor says how much of a matrix of a buffer in L0C is stored, a single column too."""
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, columns + 8), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((32, 32), "float16")
            b = T.alloc_L1((32, 64), "float16")
            acc = T.alloc_L0C((2, 32, 64), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(A, b[:, 0:32])
                T.copy(A, b[:, 32:64])
                T.gemm_v0(a, b, acc[1, :, :], init=True)
                T.copy(acc[1, :, :], C[:, 0:columns])
                T.copy(acc[1, :, :], C[:, columns:columns + 8])

    kernel = tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    given = rng.integers(-4, 5, (32, 32)).astype(np.float16)
    product = given.astype(np.float32) @ np.concatenate([given, given], 1).astype(np.float32)
    expected = np.concatenate([product[:, :columns], product[:, :8]], 1)
    for run in (kernel, kernel.interpret):
        found = np.full((32, columns + 8), 7, np.float32)
        run(given, found)
        np.testing.assert_array_equal(found, expected)


def test_rows_of_l0c_whose_number_is_known_at_run_time() -> None:
    """Of the 32 rows of a product, the first ``n`` are stored."""
    @tilelang.jit(target="npuir")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((32, 32), "float16"), n: T.int32, C: T.Tensor((32, 32), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_L1((32, 32), "float16")
                c = T.alloc_L0C((32, 32), "float32")
                T.copy(A, a)
                T.gemm(a, a, c, initC=True)
                T.copy(c[:n, :], C[0:n, :])

        return main

    a, c = np.eye(32, dtype=np.float16) * np.float16(2), np.full((32, 32), -1, np.float32)
    made()(a, 20, c)
    np.testing.assert_array_equal(c[:20], 4 * np.eye(32)[:20])
    np.testing.assert_array_equal(c[20:], -1)


def test_a_tile_of_more_axes_than_the_buffer() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 4, 5, 16), "float16"), B: T.Tensor((2, 4, 9), "float32"), C: T.Tensor((8, 16), "float16"),
             D: T.Tensor((2, 4, 9), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a, b = T.alloc_ub((8, 16), "float16"), T.alloc_ub((8, 9), "float32")
            T.copy(A[:, :, 2:3, :], a)
            T.copy(a, C)
            T.copy(B, b)
            T.tile.add(b, b, 1.0)
            T.copy(b, D)

    a = np.arange(640, dtype=np.float16).reshape(2, 4, 5, 16)
    b = np.arange(72, dtype=np.float32).reshape(2, 4, 9)
    kernel = tilelang.compile(main, out_idx=[2, 3], target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    for c, d in (kernel(a, b), kernel.interpret(a, b)):
        np.testing.assert_array_equal(c, a[:, :, 2].reshape(8, 16))
        np.testing.assert_array_equal(d, b + 1)


def test_a_tensor_without_axes() -> None:
    @T.prim_func
    def main(A: T.Tensor((), "float32"), B: T.Tensor((1, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            one, row = T.alloc_ub((1,), "float32"), T.alloc_ub((1, 32), "float32")
            T.copy(A, one)
            T.tile.fill(row, 0)
            row[0, 0] = one[0]
            T.copy(row, B)

    kernel = tilelang.compile(main, out_idx=[1], target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    for found in (kernel(np.array(2, np.float32)), kernel.interpret(np.array(2, np.float32))):
        np.testing.assert_array_equal(found, [[2.0] + [0.0] * 31])
