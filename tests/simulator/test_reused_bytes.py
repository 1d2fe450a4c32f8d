"""Bytes of a buffer that are another one's, and the results that depend on them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.run.program import Program

ROWS, N = 8, 64


def shared(loaded: int, summed: int, dtype: str, *, first: bool = True, own: bool = True) -> Any:
    """The sum of a tile in the bytes of an earlier one; only its first columns are loaded."""

    @T.prim_func
    def main(X: T.Tensor((ROWS, N), dtype), Y: T.Tensor((ROWS, N), dtype), S: T.Tensor((ROWS, 1), dtype)):
        with T.Kernel(1, is_npu=True) as (_, _v):
            old = T.alloc_ub((ROWS, N), dtype)
            new = T.alloc_ub((ROWS, N), dtype)
            total = T.alloc_ub((ROWS, 1), dtype)
            T.annotate_address({old: 0, new: 0, total: 16384})
            if first:
                T.copy(X, old)
                T.tile.add(old, old, old)
                T.copy(old, Y)
            if own:
                T.copy(X[0:ROWS, 0:loaded], new[0:ROWS, 0:loaded])
            T.reduce_sum(new[0:ROWS, 0:summed], total, dim=-1)
            T.copy(total, S)

    return main


def hazards(function: Any, dtype: str) -> list[Any]:
    kernel = tilelang.compile(function, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    kernel(np.ones((ROWS, N), dtype), np.zeros((ROWS, N), dtype), np.zeros((ROWS, 1), dtype))
    return kernel.last_launch.hazards


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("loaded", "summed", "found"), [(N, N, False), (48, 48, False), (48, N, True), (32, N, True)])
def test_a_sum_over_more_than_was_loaded(dtype: str, loaded: int, summed: int, found: bool) -> None:
    met = hazards(shared(loaded, summed, dtype), dtype)
    assert bool(met) == found
    if found:
        (hazard,) = met
        size = np.dtype(dtype).itemsize
        assert (hazard.code, hazard.memory, hazard.buffer) == ("S222", "UB", "new")
        assert (hazard.start, hazard.end) == (loaded * size, ROWS * N * size)
        text = str(hazard)
        assert "are read though they hold data of another buffer" in text
        assert "T.reduce_sum(new[0:ROWS, 0:summed], total, dim=-1)" in text
        assert "T.copy(total, S)" in text
        assert "old wrote them at line " in text
        assert f"{ROWS * size} bytes of S depend on them" in text


def test_uninitialised_bytes_are_reported_as_such() -> None:
    with pytest.warns(tilelang.TileWarning, match="S221"):  # the old contents are NaN here: reported without a sanitizer
        (hazard,) = hazards(shared(48, N, "float32", first=False), "float32")
    assert hazard.code == "S221"


def test_one_buffer_under_another_name_is_meant() -> None:
    """All its bytes belong to the other buffer."""
    assert hazards(shared(48, N, "float32", own=False), "float32") == []


def test_nothing_comes_of_it() -> None:
    @T.prim_func
    def main(X: T.Tensor((ROWS, N), "float32"), Y: T.Tensor((ROWS, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            old = T.alloc_ub((ROWS, N), "float32")
            new = T.alloc_ub((ROWS, N), "float32")
            T.annotate_address({old: 0, new: 0})
            T.copy(X, old)
            T.copy(old, X)
            T.copy(X[0:ROWS, 0:48], new[0:ROWS, 0:48])
            T.tile.exp(new, new)
            T.copy(new[0:ROWS, 0:48], Y)

    kernel = tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    kernel(np.ones((ROWS, N), np.float32), np.zeros((ROWS, 48), np.float32))
    assert [hazard.code for hazard in kernel.last_launch.hazards if hazard.code == "S222"] == []


def last_tile(between: str, reduced: str) -> Any:
    """Two tiles of a tensor's rows; the second is loaded in part."""
    @T.prim_func
    def main(A: T.Tensor((8, 114), "float32"), S: T.Tensor((8, 2), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8, 64), "float32")
            s = T.alloc_ub((8, 1), "float32")
            for i in T.serial(2):
                if between == "clear":
                    T.tile.fill(x, 0.0)
                T.copy(A[0:8, i * 64:T.min(114, i * 64 + 64)], x[0:8, 0:T.min(64, 114 - i * 64)])
                T.tile.mul(x, x, 2.0)
                if reduced == "whole":
                    T.reduce_sum(x, s, dim=-1)
                else:
                    T.reduce_sum(x[0:8, 0:50], s, dim=-1)
                T.copy(s, S[0, i])

    return tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})


@pytest.mark.parametrize(("between", "reduced", "right"), [("", "whole", False), ("clear", "whole", True), ("", "part", True)])
def test_what_an_earlier_load_left(between: str, reduced: str, right: bool) -> None:
    kernel = last_tile(between, reduced)
    a, s = np.random.default_rng(0).random((8, 114)).astype(np.float32), np.zeros((8, 2), np.float32)
    kernel(a, s)
    hazards = kernel.last_launch.hazards
    if reduced == "whole":
        wanted = 2 * np.stack([a[:, :64].sum(1), a[:, 64:].sum(1)], 1)
        assert np.allclose(s, wanted, rtol=1e-5) == right
    if right:
        assert hazards == []
        return
    (hazard,) = hazards
    assert (hazard.code, hazard.memory, hazard.buffer, hazard.start) == ("S222", "UB", "x", 50 * 4)
    assert hazard.missing.startswith("an earlier load of x wrote them; 3")
    static = check(kernel.program, [a, s], 1)
    assert [(one.code, one.first.location) for one in static.hazards] == [(hazard.code, hazard.first.location)]


def product_of_two_tiles(rows: int, used: int, *, same: bool) -> Any:
    """Products of two tiles of 64 rows in the same bytes of L1, of the second of which only ``rows`` rows are loaded. Either
    they are two buffers, or one load in a loop loads both. The first ``used`` columns of the second product are stored."""
    if same:
        @T.prim_func
        def main(A: T.Tensor((16, 128), "float16"), B: T.Tensor((64, 128), "float16"), D: T.Tensor((16, used), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _v):
                a = T.alloc_shared((16, 128), "float16")
                b = T.alloc_shared((64, 128), "float16")
                c = T.alloc_fragment((16, 64), "float32")
                T.copy(A, a)
                for i in T.serial(2):
                    T.copy(B[0:64 - i * (64 - rows), :], b)
                    T.gemm(a, b, c, initC=True, b_transpose=True)
                T.copy(c[:, 0:used], D)
    else:
        @T.prim_func
        def main(A: T.Tensor((16, 128), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((16, 64), "float32"),
                 D: T.Tensor((16, used), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _v):
                a = T.alloc_shared((16, 128), "float16")
                first = T.alloc_shared((64, 128), "float16")
                b = T.alloc_shared((64, 128), "float16")
                c = T.alloc_fragment((16, 64), "float32")
                T.annotate_address({a: 0, first: 8192, b: 8192, c: 0})
                T.copy(A, a)
                T.copy(B, first)
                T.gemm(a, first, c, initC=True, b_transpose=True)
                T.copy(c, C)
                T.copy(B[0:rows, :], b)
                T.gemm(a, b, c, initC=True, b_transpose=True)
                T.copy(c[:, 0:used], D)

    return main


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize(("rows", "used", "found"), [
    (48, 64, True), (49, 64, True), (60, 64, True), (64, 64, False), (60, 60, False)])
def test_rows_of_a_fractal_that_an_earlier_load_wrote(
        rows: int, used: int, same: bool, found: bool, rng: np.random.Generator) -> None:
    kernel = tilelang.compile(product_of_two_tiles(rows, used, same=same), target="npuir")
    a, b = (rng.random(shape).astype(np.float16) for shape in ((16, 128), (64, 128)))
    kernel(a, b, *([] if same else [np.zeros((16, 64), np.float32)]), np.zeros((16, used), np.float32))
    hazards = kernel.last_launch.hazards
    assert [(hazard.code, hazard.memory, hazard.buffer) for hazard in hazards] == [("S222", "L1", "b")] * found
    if found:
        assert hazards[0].missing.startswith("an earlier load of b wrote them" if same else "first wrote them at line ")


def unwritten(kind: str) -> Any:
    """A kernel that reads all of a tile that nothing has written, on the line with the mark."""
    if kind == "read":
        @T.prim_func
        def main(X: T.Tensor((8, 64), "int32"), Y: T.Tensor((8, 64), "int32")):
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((8, 64), "int32")
                y = T.alloc_ub((8, 64), "int32")
                T.copy(X[0, 0], x)
                T.tile.add(y, x, y)  # reads y
                T.copy(y, Y[0, 0])
    elif kind == "element":
        @T.prim_func
        def main(X: T.Tensor((8, 64), "int32"), Y: T.Tensor((8, 64), "int32")):
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((8, 64), "int32")
                y = T.alloc_ub((8, 64), "int32")
                T.copy(X[0, 0], x)
                T.copy(x, Y[0, 0])
                Y[0, 0] = y[0, 0]  # reads y
    elif kind == "named alike":
        @T.macro
        def add(X, Y, number, full):
            y = T.alloc_ub((8, 64), "int32")
            if full:
                T.copy(X[0, 0], y)
            T.tile.add(y, y, number)  # reads y
            T.copy(y, Y[0, 0])

        @T.prim_func
        def main(X: T.Tensor((8, 64), "int32"), Y: T.Tensor((8, 64), "int32")):
            with T.Kernel(1, is_npu=True) as _:
                add(X, Y, 1, True)
                add(X, Y, 2, False)
    elif kind == "in every turn":
        @T.prim_func
        def main(X: T.Tensor((32, 64), "int32"), Y: T.Tensor((32, 64), "int32")):
            with T.Kernel(1, is_npu=True) as _:
                for i in T.serial(4):
                    x = T.alloc_ub((8, 64), "int32")
                    y = T.alloc_ub((8, 64), "int32")
                    T.copy(X[8 * i, 0], x)
                    T.tile.add(y, y, x)  # reads y
                    if i == 2:  # nothing comes of it before
                        T.copy(y, Y[8 * i, 0])
    else:
        @T.prim_func
        def main(X: T.Tensor((32, 64), "int32"), Y: T.Tensor((32, 64), "int32")):
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((8, 64), "int32")
                y = T.alloc_ub((8, 64), "int32")
                z = T.alloc_ub((8, 64), "int32")
                T.copy(X[0, 0], x)
                T.copy(x, Y[0, 0])
                for i in T.serial(4):
                    T.tile.add(z, y, 1)  # reads y
                    if i == 2:  # nothing comes of it before
                        T.copy(z, Y[8 * i, 0])
    return main


@pytest.mark.parametrize("planning", [True, False])
@pytest.mark.parametrize("kind", ["read", "element", "named alike", "of use later", "in every turn"])
def test_an_uninitialised_tile_is_reported_at_every_address(kind: str, planning: bool) -> None:
    kernel = tilelang.compile(unwritten(kind), target="ascendc", pass_configs={
        "tl.ascend_auto_sync": True, "tl.ascend_memory_planning": planning})
    x, y = (np.ones(parameter.shape, np.int32) for parameter in kernel.params)
    with pytest.warns(tilelang.TileWarning, match="S22") as caught:  # in the default run, too
        kernel(x, y)
    marked = Path(__file__).read_text().splitlines()[caught[0].lineno - 1]
    assert marked.endswith("# reads y")
    (hazard,) = [hazard for hazard in kernel.last_launch.hazards if hazard.code in ("S221", "S222")]
    assert hazard.buffer == "y"
    assert hazard.first.location is not None and hazard.first.location.line == caught[0].lineno
    if hazard.code == "S222":
        assert f"{'y' if kind == 'named alike' else 'x'} wrote them at line" in str(hazard)


# -- two buffers that need the same bytes at the same time -------------------------------------------------------------


UB = "memref<8x64xf32, #hivm.address_space<ub>>"
GM = "memref<8x64xf32, #hivm.address_space<gm>>"
IN_ORDER = "hivm.hir.pipe_barrier[<PIPE_ALL>]"


def given(body: list[str], places: dict[str, str | tuple[str, ...]]) -> str:
    """Returns HIVM with buffers at addresses; a buffer with several addresses has slots. A statement is ``load x``, ``store x
    N``, ``exp x y``, or a line of HIVM."""
    lines = []
    for name, at in places.items():
        slots = at if isinstance(at, tuple) else (at,)
        for number, address in enumerate(slots):
            slot = f"%{name}_{number}" if len(slots) > 1 else f"%{name}"
            lines += [f"{slot}_at = arith.constant {address} : i64", f"{slot} = hivm.hir.pointer_cast({slot}_at) : {UB}"]
    for line in body:
        word, *names = line.split()
        if word == "load":
            line = f"hivm.hir.load ins(%X : {GM}) outs(%{names[0]} : {UB})"
        elif word == "store":
            line = f"hivm.hir.store ins(%{names[0]} : {UB}) outs(%{names[1]} : {GM})"
        elif word == "exp":
            line = f"hivm.hir.vexp ins(%{names[0]} : {UB}) outs(%{names[1]} : {UB})"
        lines += [line] if line.startswith(("}", "%")) else [line, *([] if line.endswith("{") else [IN_ORDER])]
    text = "\n  ".join(lines)
    return f"""func.func @k(%X: {GM}, %Y: {GM}, %Z: {GM}) attributes {{hacc.entry,
      hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  {text}
  return
}}"""


def found_in(text: str) -> list[Any]:
    arrays = [np.random.default_rng(0).random((8, 64)).astype(np.float32), *np.zeros((2, 8, 64), np.float32)]
    module = parse_module(text)
    hazards_ = simulator.simulate(module, arrays, blocks=1, hazards=True).hazards
    arrays[1:] = np.zeros((2, 8, 64), np.float32)
    static = check(Program(module), arrays, 1).hazards
    assert [(hazard.code, hazard.start, hazard.end) for hazard in static] == [
        (hazard.code, hazard.start, hazard.end) for hazard in hazards_]
    return list(hazards_)


LIVE_TOGETHER: dict[str, tuple[list[str], dict[str, str | tuple[str, ...]], tuple[str, str, int, int]]] = {
    "one address": (["load a", "load b", "exp b b", "store b Y", "exp a a", "store a Z"], {"a": "0", "b": "0"},
                    ("a", "b overwrote them", 0, 2048)),
    "rows": (["load a", "load b", "exp b b", "store b Y", "exp a a", "store a Z"], {"a": "0", "b": "1792"},
             ("a", "b overwrote them", 1792, 2048)),
    "three": (["load a", "load b", "load c", "store c Y", "store b Y", "store a Z"], {"a": "0", "b": "4096", "c": "0"},
              ("a", "c overwrote them", 0, 2048)),
    "a third one in between": (["load a", "load b", "exp b c", "store c Y", "store a Z"], {"a": "0", "b": "0", "c": "0"},
                               ("a", "c overwrote them", 0, 2048)),
    "in a loop": (["load a", "scf.for %i = %c0 to %c4 step %c1 {", "load b", "exp b b", "store b Y", "}", "store a Z"],
                  {"a": "0", "b": "0"}, ("a", "b overwrote them", 0, 2048)),
    "of a loop": (["load a", "scf.for %i = %c0 to %c4 step %c1 {", "exp a b", "store b Y", "exp a a", "}", "store a Z"],
                  {"a": "0", "b": "256"}, ("a", "b overwrote them", 256, 2048)),
    "a slot": (["load a", "scf.for %i = %c0 to %c4 step %c1 {", "%r = arith.remui %i, %c2 : index",
                "%even = arith.cmpi eq, %r, %c0 : index", f"%b = arith.select %even, %b_0, %b_1 : {UB}", "load b", "exp b b",
                "store b Y", "}", "store a Z"], {"a": "4096", "b": ("0", "4096")}, ("a", "b overwrote them", 4096, 6144)),
}
"""The statements, the addresses, and the expected report: the buffer, its history, and the bytes."""


@pytest.mark.parametrize("case", LIVE_TOGETHER)
@pytest.mark.parametrize("named", [True, False])
def test_two_buffers_that_need_the_same_bytes(case: str, named: bool) -> None:
    """All bytes of the buffer belong to another one, so that it is regarded as an alias."""
    body, places, (buffer, what, start, end) = LIVE_TOGETHER[case]
    text = given(body, places)
    if not named:
        for number, name in enumerate(sorted({*re.findall(r"%[abc](?:_\d)?\b", text)}, key=len, reverse=True)):
            text = re.sub(rf"{name}\b", f"%{100 + number}", text)
    (hazard,) = found_in(text)
    assert (hazard.code, hazard.memory, hazard.start, hazard.end) == ("S222", "UB", start, end)
    assert hazard.buffer == (buffer if named else "")
    assert (what if named else "a buffer in UB overwrote them") in hazard.missing
    assert f"bytes of {'Y' if case == 'of a loop' else 'Z'} depend on them" in hazard.missing


@pytest.mark.parametrize(("body", "places"), [
    # one after the other, each filled before it is read
    (["load a", "store a Y", "load b", "exp b b", "store b Z"], {"a": "0", "b": "0"}),
    (["load a", "store a Y", "load b", "store b Z", "load a", "store a Y"], {"a": "0", "b": "0"}),
    (["scf.for %i = %c0 to %c4 step %c1 {", "load a", "exp a c", "store c Y", "load b", "exp b c", "store c Z", "}"],
     {"a": "0", "b": "256", "c": "4096"}),
    # two names of the same bytes, which go to and fro between them
    (["load a", "exp b b", "exp a a", "exp b b", "store a Z"], {"a": "0", "b": "0"}),
    (["scf.for %i = %c0 to %c4 step %c1 {", "load a", "store b Y", "exp b b", "store a Z", "}"], {"a": "0", "b": "0"}),
    (["load a", "load b", "exp c c", "exp d d", "store a Y", "store b Z"], {"a": "0", "b": "2048", "c": "0", "d": "2048"}),
    # in place
    (["load a", "exp a b", "store b Y", "load a", "store a Z"], {"a": "0", "b": "0"}),
    # overwritten values have no effect
    (["load a", "load b", "exp a c", "store b Y"], {"a": "0", "b": "0", "c": "4096"}),
    # slots of one buffer with different names
    (["load b_0", "load b_1", "scf.for %i = %c0 to %c4 step %c1 {", "%r = arith.remui %i, %c2 : index",
      "%even = arith.cmpi eq, %r, %c0 : index", f"%b = arith.select %even, %b_0, %b_1 : {UB}", "exp b b", "load b", "}",
      "store b_0 Y", "store b_1 Z"], {"b": ("0", "4096")}),
    (["load a", f"%one, %two = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a, %y = %b) -> ({UB}, {UB}) {{", "exp x y",
      f"%done = arith.constant 0 : i8\nscf.yield %y, %x : {UB}, {UB}", "}", "store a Y", "store b Z"], {"a": "0", "b": "4096"}),
])
def test_bytes_that_buffers_have_one_after_the_other_or_share_by_intention(body: list[str], places: Any) -> None:
    text = re.sub(r"(scf\.yield .*)\n  hivm\.hir\.pipe_barrier\[<PIPE_ALL>\]", r"\1", given(body, places))
    assert found_in(text) == []


@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float32", "float16"), ("float16", "int32")])
def test_addresses_that_the_author_of_a_kernel_gave_to_two_live_buffers(dtypes: tuple[str, str]) -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 64), dtypes[0]), Y: T.Tensor((8, 64), dtypes[1]), Z: T.Tensor((8, 64), dtypes[0])):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_ub((8, 64), dtypes[0])
            y = T.alloc_ub((8, 64), dtypes[1])
            T.annotate_address({x: 0, y: 0})
            T.copy(X, x)
            T.copy(Y, y)
            T.tile.add(y, y, y)
            T.copy(y, Y)
            T.tile.add(x, x, x)
            T.copy(x, Z)

    kernel = tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    kernel(np.ones((8, 64), dtypes[0]), np.ones((8, 64), dtypes[1]), np.zeros((8, 64), dtypes[0]))
    (hazard,) = [hazard for hazard in kernel.last_launch.hazards if hazard.code == "S222"]
    size = 512 * min(np.dtype(dtype).itemsize for dtype in dtypes)
    assert (hazard.buffer, hazard.start, hazard.end) == ("x", 0, size)
    assert "y overwrote them at line " in hazard.missing and "T.tile.add(x, x, x)" in str(hazard)


def test_one_byte_that_another_buffer_overwrote() -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 64), "int8"), Z: T.Tensor((8, 64), "int8")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_ub((8, 64), "int8")
            y = T.alloc_ub((8, 64), "int8")
            T.annotate_address({x: 0, y: 0})
            T.copy(X, x)
            y[1, 3] = 5
            T.copy(x, Z)

    kernel = tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    z = np.zeros((8, 64), np.int8)
    kernel(np.ones((8, 64), np.int8), z)
    assert (z[1, 3], z.sum()) == (5, 511 + 5)
    (hazard,) = [hazard for hazard in kernel.last_launch.hazards if hazard.code == "S222"]
    assert (hazard.buffer, hazard.start, hazard.end) == ("x", 67, 68)
    assert "y overwrote them at line " in hazard.missing
