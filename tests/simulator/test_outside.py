"""Accesses outside of a buffer, an axis or a tensor: found when the kernel runs, with index, valid range and line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from simulator import texts
from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import simulate
from tilelang_npu.simulator.result.static_check import check

UB = f"memref<4x16xf32, {texts.UB}>"
GM = f"memref<4x16xf32, {texts.GM}>"
SCALARS = """    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = arith.index_cast %n : i64 to index"""


def run(body: str, n: int) -> Any:
    """A Vector kernel with two adjacent buffers in UB, x and y, and a tensor A."""
    text = texts.module(texts.kernel("AIV", [f"%A: {GM}", "%n: i64"], "\n".join(
        [SCALARS, texts.tile("x", 0, "4x16", "f32"), texts.tile("y", 256, "4x16", "f32"), body])))
    return simulate(parse_module(text, "kernel.mlir"), [np.zeros((4, 16), np.float32), n], blocks=1)


def refused(body: str, n: int) -> TileError:
    with pytest.raises(TileError) as raised:
        run(body, n)
    assert raised.value.code == "T502"
    assert raised.value.location is not None
    return raised.value


@pytest.mark.parametrize(("body", "axis", "extent"), [
    (f"    %v = memref.load %x[%i, %c0] : {UB}", 0, 4),
    (f"    %v = memref.load %x[%c1, %i] : {UB}", 1, 16),
    (f"    memref.store %zero, %x[%i, %c0] : {UB}", 0, 4),
    (f"    %v = memref.load %A[%c1, %i] : {GM}", 1, 16),
    (f"    memref.store %zero, %A[%i, %c1] : {GM}", 0, 4),
])
def test_an_element(body: str, axis: int, extent: int) -> None:
    """The second axis runs into the next row, and the first into the next buffer: memory that is there."""
    for index in (0, extent - 1):
        run(body, index)
    for index in (-1, extent):
        error = refused(body, index)
        if "touches bytes" not in error.message:  # bytes outside of the buffer or tensor may be found first
            assert f"index {index} is outside of axis {axis} of " in error.message
            assert error.message.endswith(f"in block 0: valid are 0 to {extent - 1}")
        else:
            assert axis == 0


@pytest.mark.parametrize(("rows", "checked"), [(1, True), (2, False), (3, False)])
def test_the_number_of_a_vector_core_is_checked_where_there_are_fewer_rows(rows: int, checked: bool) -> None:
    """A block has two Vector cores, 0 and 1: they index two rows without a check at run time."""
    kind = f"memref<{rows}x8xi64, {texts.GM}>"
    body = f"""    %zero = arith.constant 0 : index
    %ten = arith.constant 10 : i64
    %s = hivm.hir.get_sub_block_idx -> i64
    %i = arith.index_cast %s : i64 to index
    %v = arith.addi %s, %ten : i64
    memref.store %v, %A[%i, %zero] : {kind}"""
    functions = [texts.kernel(core, [f"%A: {kind}"], lines, f"k_mix_{core.lower()}")
                 for core, lines in (("AIC", ""), ("AIV", body))]
    program, left = simulator.Program(parse_module(texts.module(*functions))), np.zeros((rows, 8), np.int64)
    assert ("raise" in program.source()) is checked
    if checked:
        with pytest.raises(TileError, match=r"touches bytes 64\.\.71 of A, which has 64 bytes in block 0"):
            program.run([left], blocks=1)
        return
    program.run([left], blocks=1)
    assert left[:2, 0].tolist() == [10, 11]


@pytest.mark.parametrize("index", [-1, 8])
def test_an_element_of_a_variable(index: int) -> None:
    body = "    %l = memref.alloca() : memref<8xi64>\n    memref.store %n, %l[%i] : memref<8xi64>"
    run(body, 7)
    assert refused(body, index).message == f"index {index} is outside of axis 0 of a local buffer in block 0: valid are 0 to 7"


ROW = f"memref<1x16xf32, strided<[16, 1], offset: ?>, {texts.UB}>"


@pytest.mark.parametrize("op", [
    f"    hivm.hir.vbrc ins(%zero : f32) outs(%row : {ROW})",
    f"    hivm.hir.load ins(%g : memref<1x16xf32, strided<[16, 1]>, {texts.GM}>) outs(%row : {ROW})",
    f"    hivm.hir.store ins(%row : {ROW}) outs(%g : memref<1x16xf32, strided<[16, 1]>, {texts.GM}>)",
    f"    hivm.hir.vexp ins(%row : {ROW}) outs(%row : {ROW})",
])
def test_a_part_of_a_buffer(op: str) -> None:
    """The row after the last of x is the first of y: it is inside the memory, but outside of the buffer."""
    body = "\n".join([texts.view("%row", "%x", "%i, 0", "1, 16", UB, ROW),
                      texts.view("%g", "%A", "0, 0", "1, 16", GM, f"memref<1x16xf32, strided<[16, 1]>, {texts.GM}>"), op])
    run(body, 3)
    assert refused(body, 4).message.endswith(" takes 4..4 of axis 0 of x, which has 0..3 in block 0")


@pytest.mark.parametrize(("start", "report"), [
    (-1, "hivm.hir.vbrc starts at -1 on axis 1 of x"), (1, "hivm.hir.vbrc takes 1..16 of axis 1 of x")])
def test_a_part_that_leaves_an_inner_axis_is_no_part_of_the_next_row(start: int, report: str) -> None:
    """The bytes are in the previous or the next row: inside the buffer, but not the requested elements."""
    rows = f"memref<2x16xf32, strided<[16, 1], offset: ?>, {texts.UB}>"
    body = "\n".join([texts.view("%rows", "%x", "1, %i", "2, 16", UB, rows),
                      f"    hivm.hir.vbrc ins(%zero : f32) outs(%rows : {rows})"])
    run(body, 0)
    assert refused(body, start).message == f"{report}, which has 0..15 in block 0"


def test_a_part_that_is_known() -> None:
    row = f"memref<1x16xf32, strided<[16, 1], offset: ?>, {texts.UB}>"
    body = "\n".join(["    %c4 = arith.constant 4 : index", texts.view("%row", "%x", "%c4, 0", "1, 16", UB, row),
                      f"    hivm.hir.vbrc ins(%zero : f32) outs(%row : {row})"])
    assert refused(body, 0).message == "bytes 256..319 do not lie in x, which has 256 bytes"


@pytest.mark.parametrize(("given", "wrong"), [(1024, ""), (1000, "2048..3071 of workspace, which has 3000 bytes in block 2"),
                                             (512, "1024..2047 of workspace, which has 1536 bytes in block 1")])
def test_a_workspace_that_is_too_small(given: int, wrong: str) -> None:
    blocks = 3

    @T.prim_func
    def main(H: T.Tensor((blocks * 16, 16), "float16"), C: T.Tensor((blocks * 16, 16), "float32")):
        with T.Kernel(blocks, is_npu=True) as (cid, _):
            a = T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((16, 16), "float32")
            T.copy(H[cid * 16, 0], a)
            T.gemm(a, a, c, initC=True)
            T.vexp(c, c)
            T.copy(c, C[cid * 16, 0])

    text = tilelang.compile(main, target="npuir").mlir()
    head, function, rest = text.partition("@main_infer_workspace_shape_function()")
    program = simulator.Program(parse_module(head + function + rest.replace("constant 1024 :", f"constant {given} :", 1)))
    arguments = [np.zeros((blocks * 16, 16), np.float16), np.zeros((blocks * 16, 16), np.float32)]
    static = check(program, arguments, blocks)
    if not wrong:
        program.run(arguments, blocks=blocks)
        assert not static.errors
        return
    with pytest.raises(TileError, match=wrong) as caught:
        program.run(arguments, blocks=blocks)
    assert caught.value.code == "T502" and caught.value.location is not None
    assert caught.value.help == (f"main_infer_workspace_shape_function gives {given} bytes of workspace to each of 3 blocks, "
                                 "and a block needs more")
    assert [str(error) for error in static.errors] == [str(caught.value)]
