"""Extreme numbers as sizes, offsets and counts of a module: a result, or an error with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator import texts
from simulator.test_scalars import evaluate
from tilelang_npu import simulator
from tilelang_npu.cli import main
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Program
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.run import loop_limits

FAR = 2**63 - 1
GM, UB = f"memref<64xf32, {texts.GM}>", f"memref<64xf32, {texts.UB}>"
BLOCK = "    %id = hivm.hir.get_block_idx -> i64\n    %b = arith.index_cast %id : i64 to index\n"


def kernel(body: str) -> Program:
    return Program(parse_module(texts.module(texts.kernel("AIV", [f"%A: {GM}"], body)), "kernel.mlir"))


def refused(program: Program, code: str) -> str:
    """The error of a run, which is that of every other way to look at the kernel."""
    report = []
    for way in (lambda: program.run([np.zeros(64, np.float32)], blocks=1),
                lambda: program.run([np.zeros(64, np.float32)], blocks=1, schedule="late")):
        with pytest.raises(TileError) as raised:
            way()
        assert raised.value.code == code
        assert raised.value.location is not None
        report.append(raised.value.message)
    found = check(program, [np.zeros(64, np.float32)], 1)
    assert [error.code for error in found.errors] == [code]
    assert len({*report, found.errors[0].message}) == 1
    return report[0]


def moved(source: str, target: str, before: str = "") -> str:
    """A load of a part of the tensor into a part of a buffer, each written as ``[offsets] [sizes] [steps]``."""
    inside = [f"memref<?xf32, strided<[1]{'' if part.startswith('[0]') else ', offset: ?'}>, {space}>"
              for part, space in ((source, texts.GM), (target, texts.UB))]
    return "\n".join([
        BLOCK, f"    %far = arith.constant {FAR} : index\n    %place = arith.addi %far, %b : index", before,
        texts.tile("x", 0, "64", "f32"),
        f"    %from = memref.subview %A{source} : {GM} to {inside[0]}",
        f"    %to = memref.subview %x{target} : {UB} to {inside[1]}",
        f"    hivm.hir.load ins(%from : {inside[0]}) outs(%to : {inside[1]})"])


@pytest.mark.parametrize(("source", "target", "report"), [
    ("[%place] [%n] [1]", "[0] [%n] [1]", f"touches bytes {FAR * 4}..{FAR * 4 + 3} of "),
    ("[0] [%n] [1]", "[%place] [%n] [1]", f"hivm.hir.load takes {FAR}..{FAR} of axis 0 of x, which has 0..63 in block 0")])
def test_a_place_beyond_all_memory(source: str, target: str, report: str) -> None:
    one = "    %one = arith.constant 1 : index\n    %n = arith.addi %b, %one : index"
    assert report in refused(kernel(moved(source, target, one)), "T502")


@pytest.mark.parametrize(("source", "target"), [("[%place] [%n] [1]", "[0] [%n] [1]"), ("[0] [%n] [1]", "[%place] [%n] [1]")])
def test_a_tile_of_no_elements_is_nowhere(source: str, target: str) -> None:
    program = kernel(moved(source, target, "    %n = arith.addi %b, %b : index"))
    launch = simulator.Launch(program.run([np.zeros(64, np.float32)], blocks=1), hazards=True)
    assert launch.hazards == []
    assert check(program, [np.zeros(64, np.float32)], 1).errors == []


@pytest.mark.parametrize(("op", "kind", "count", "report"), [
    ("shli", "index", 64, "64 bits by 64"), ("shli", "index", FAR, f"64 bits by {FAR}"), ("shrsi", "i32", 32, "32 bits by 32"),
    ("shrui", "i64", -1, "64 bits by -1"), ("shli", "i8", 8, "8 bits by 8")])
@pytest.mark.parametrize("known", [True, False])
def test_a_shift_by_more_than_there_is(op: str, kind: str, count: int, report: str, known: bool) -> None:
    number = {"index": "%b", "i64": "%id"}.get(kind) or f"%t = arith.trunci %id : i64 to {kind}"
    name = number if number.startswith("%b") or number == "%id" else "%t"
    setup = BLOCK + ("" if name != "%t" else f"    {number}\n") + f"    %far = arith.constant {count} : {kind}\n"
    setup += "" if known else f"    %places = arith.addi %far, {name} : {kind}\n"
    body = setup + (f"    %r = arith.{op} {name}, {'%far' if known else '%places'} : {kind}\n"
                    f"    %s = memref.alloca() : memref<1x{kind}>\n    %c0 = arith.constant 0 : index\n"
                    f"    memref.store %r, %s[%c0] : memref<1x{kind}>")
    if known:
        with pytest.raises(TileError, match=f"T509.*{report} is undefined"):
            kernel(body)
    else:
        assert f"{report} is undefined" in refused(kernel(body), "T509")


def square(value: str, times: int) -> str:
    """A number squared again and again, in a straight line."""
    return "\n".join(f"    %{value}{n + 1} = arith.muli %{value}{n}, %{value}{n} : index" for n in range(times))


def test_products_are_kept_as_a_word() -> None:
    three = pow(3, 2**40, 2**64)
    body = f"    %x0 = arith.index_cast %a : i64 to index\n{square('x', 40)}\n    %r = arith.index_cast %x40 : index to i64"
    assert evaluate({"r": "i64"}, body, ("%a: i64",), (3,)) == [(three + 2**63) % 2**64 - 2**63]


def test_a_product_that_goes_round_is_kept_as_a_word() -> None:
    body = """    %one = arith.constant 1 : index
    %n = arith.index_cast %a : i64 to index
    %x = scf.for %i = %zero to %n step %one iter_args(%y = %n) -> (index) {
      %z = arith.muli %y, %y : index
      scf.yield %z : index
    }
    %r = arith.index_cast %x : index to i64"""
    assert evaluate({"r": "i64"}, body, ("%a: i64",), (33,)) == [(pow(33, 2**33, 2**64) + 2**63) % 2**64 - 2**63]


@pytest.mark.parametrize("loop", [
    "scf.for %i = %c0 to %far step %one {\n      %t = arith.addi %i, %i : index\n    }",
    "scf.for %i = %c0 to %some step %one {\n      scf.for %j = %c0 to %some step %one {\n      }\n    }",
    "%l = scf.while (%x = %far) : (index) -> index {\n      %c = arith.cmpi sgt, %x, %c0 : index\n      scf.condition(%c) %x : "
    "index\n    } do {\n    ^bb0(%y: index):\n      %z = arith.subi %y, %one : index\n      scf.yield %z : index\n    }"],
    ids=["counted", "nested", "while"])
@pytest.mark.parametrize("schedule", [None, "late"])
def test_a_loop_that_does_nothing_comes_to_its_end(loop: str, schedule: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_limits, "IDLE", 2)
    constants = "\n".join(f"    %{name} = arith.constant {value} : index" for name, value in (
        ("c0", 0), ("one", 1), ("some", 9000), ("far", FAR)))
    program = kernel(f"{constants}\n    {loop}")
    with pytest.raises(TileError, match=r"S306.*AIV0 has run [\d ]+ iterations and has not left this loop") as raised:
        program.run([np.zeros(64, np.float32)], blocks=1, schedule=schedule, most_ops=100_000)
    assert raised.value.location is not None
    assert [error.code for error in check(program, [np.zeros(64, np.float32)], 1, most_ops=100_000).errors] == ["S306"]


def test_a_core_without_ops_runs_in_any_order() -> None:
    program = kernel("    %c0 = arith.constant 0 : index")
    for schedule in (None, "early", "late"):
        program.run([np.zeros(64, np.float32)], blocks=2, schedule=schedule)


@pytest.mark.parametrize("address", [-32, -(2**63), 2**62])
def test_an_address_that_no_memory_has(address: int) -> None:
    with pytest.raises(TileError, match=rf"T502.*bytes {address}\.\.{address + 255} do not lie in UB"):
        kernel(f"{texts.tile('x', address, '64', 'f32')}\n    hivm.hir.vabs ins(%x : {UB}) outs(%x : {UB})")


@pytest.mark.parametrize(("body", "report"), [
    (f"    %s = memref.alloca() : memref<{2**40}xi32>", f"scalar storage of {2**40} elements"),
    (f"    %far = arith.constant {FAR} : index\n    %c0 = arith.constant 0 : index\n    %n = memref.dim %A, %far : {GM}\n"
     "    %s = memref.alloca() : memref<1xindex>\n    memref.store %n, %s[%c0] : memref<1xindex>",
     f"axis {FAR} does not exist in a memref of rank 1"),
])
def test_what_there_is_no_room_for(body: str, report: str) -> None:
    with pytest.raises(TileError, match=report) as raised:
        kernel(body)
    assert raised.value.code == "T501"
    assert raised.value.location is not None


@pytest.mark.parametrize("command", ["sim", "check"])
@pytest.mark.parametrize(("sizes", "report"), [
    (f"{2**40}x4", f"takes {2**44} bytes"), ("1x" * 70 + "4", "cannot be generated"),
    (f"{FAR}x{FAR}", "bytes, Ascend910B2 has")])
def test_arrays_larger_than_memory(command: str, sizes: str, report: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "kernel.mlir"
    file.write_text(texts.module(texts.kernel("AIV", [f"%A: memref<{sizes}xf32, {texts.GM}>"], "")))
    assert main([command, str(file)]) == 1
    shown = capsys.readouterr().err
    assert "error[T808]: A: float32" in shown
    assert report in shown


@pytest.mark.parametrize("nbytes", [2**62, -1])
def test_a_workspace_that_no_chip_has(nbytes: int) -> None:
    ask = (f"  func.func @k_infer_workspace_shape_function() -> index {{\n    %n = arith.constant {nbytes} : index\n"
           "    return %n : index\n  }\n")
    given = f"%ws: memref<?xi8, {texts.GM}> {{hacc.arg_type = #hacc.arg_type<workspace>}}"
    program = Program(parse_module(texts.module(ask, texts.kernel("AIV", [given], ""))))
    with pytest.raises(TileError, match=f"T502.*asks for {nbytes} bytes for each of 2 blocks"):
        program.run([], blocks=2)
