"""A trace without values gives the same launch as a run; if the control flow depends on data, there is no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from captured import KERNELS, captured
from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.run.arguments import bind


@pytest.mark.parametrize("script", KERNELS, ids=lambda path: path.stem)
def test_the_trace_is_the_run(script: Path) -> None:
    for run in captured(script):
        program: Program = run.launch.recorded.program
        arguments = [value.copy() if isinstance(value, np.ndarray) else value for value in run.before]
        traced = program.trace(arguments, blocks=run.launch.blocks)
        if not program.data_free:
            assert script.stem == "attention_gather_vid_free"  # it reads from memory which rows it takes
            continue
        found, expected = ([(one.block, one.streams, [list(places) for places in one.gm]) for one in recorded.blocks]
                           for recorded in (traced, run.launch.recorded))
        assert found == expected
        assert Launch(traced).cycles == run.launch.cycles
        alone = Program(program.module, program.chip, entry=program.name, computes=False)
        again = alone.trace(arguments, blocks=run.launch.blocks)
        assert [(one.block, one.streams, [list(places) for places in one.gm]) for one in again.blocks] == expected
        assert Launch(again).cycles == run.launch.cycles
        for array, before in zip(arguments, run.before, strict=True):
            assert not isinstance(array, np.ndarray) or array.tobytes() == before.tobytes()


def test_a_program_that_was_made_to_be_traced_can_still_run() -> None:
    program = _with("memref.store %four, %g[%c1] : memref<64xi32, #hivm.address_space<gm>>\n")
    computing, tracing = program, Program(program.module, program.chip, computes=False)
    results = []
    for one in (computing, tracing):
        array = np.zeros(64, np.int32)
        one.run([array], blocks=1)
        results.append(array)
    assert results[0][1] == 4
    np.testing.assert_array_equal(*results)
    assert computing.source() != "" and tracing.source().count("\n") == computing.source().count("\n")


def _with(lines: str, arguments: str = "%g: memref<64xi32, #hivm.address_space<gm>>") -> Program:
    body = f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %four = arith.constant 4 : i32
    %a = hivm.hir.pointer_cast(%address) : memref<64xi32, #hivm.address_space<ub>>
    {lines}"""
    return Program(parse_module(texts.module(texts.kernel("AIV", [arguments], "    %address = arith.constant 0 : i64" + body))))


def _while(place: str, then: str, *, count: str = "%c0", first: bool = False) -> str:
    """A loop that counts to eight, and stores at a loop-carried index: after the counter, or as the first carried value."""
    def both(counter: str, other: str) -> str:
        return f"{other}, {counter}" if first else f"{counter}, {other}"

    return f"""
     %r, %s = scf.while ({both(f"%k = {count}", f"%m = {place}")}) : (index, index) -> (index, index) {{
       %t = arith.cmpi slt, %k, %c8 : index
       scf.condition(%t) {both("%k", "%m")} : index, index
     }} do {{
     ^bb0({both("%k0: index", "%m0: index")}):
       memref.store %four, %a[%m0] : memref<64xi32, #hivm.address_space<ub>>
       %k1 = arith.addi %k0, %c1 : index
       scf.yield {both("%k1", then)} : index, index
     }}"""


READ = "%n = memref.load %a[%c0] : memref<64xi32, #hivm.address_space<ub>>"
INDEX = f"{READ}\n%i = arith.index_cast %n : i32 to index"


@pytest.mark.parametrize(("lines", "free"), [
    (READ + "\nmemref.store %n, %a[%c8] : memref<64xi32, #hivm.address_space<ub>>", True),
    (INDEX + "\nmemref.store %n, %a[%i] : memref<64xi32, #hivm.address_space<ub>>", False),
    (INDEX + "\n%v = memref.load %a[%i] : memref<64xi32, #hivm.address_space<ub>>", False),
    (INDEX + "\nscf.for %k = %c0 to %i step %c1 {\n hivm.hir.pipe_barrier[<PIPE_V>]\n}", False),
    (INDEX + "\n%t = arith.cmpi slt, %i, %c8 : index\nscf.if %t {\n hivm.hir.pipe_barrier[<PIPE_V>]\n}", False),
    (INDEX + """
     %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%x = %i) -> (index) {
       memref.store %n, %a[%x] : memref<64xi32, #hivm.address_space<ub>>
       scf.yield %c0 : index
     }""", False),
    (INDEX + """
     %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%x = %c0) -> (index) {
       memref.store %n, %a[%x] : memref<64xi32, #hivm.address_space<ub>>
       scf.yield %i : index
     }""", False),
    (INDEX + """
     %l = memref.alloca() : memref<1xindex>
     memref.store %c0, %l[%c0] : memref<1xindex>
     %x = memref.load %l[%c0] : memref<1xindex>
     memref.store %n, %a[%x] : memref<64xi32, #hivm.address_space<ub>>""", True),
    (INDEX + """
     %l = memref.alloca() : memref<1xindex>
     memref.store %i, %l[%c0] : memref<1xindex>
     %x = memref.load %l[%c0] : memref<1xindex>
     memref.store %n, %a[%x] : memref<64xi32, #hivm.address_space<ub>>""", False),
    (INDEX + _while("%i", "%m0"), False),
    (INDEX + _while("%i", "%m0", first=True), False),
    (INDEX + _while("%c1", "%i"), False),
    (INDEX + _while("%i", "%c1", first=True), False),
    (INDEX + _while("%c1", "%m0"), True),
    (INDEX + _while("%c1", "%m0", count="%i"), False),
], ids=["stored", "index of a store", "index of a load", "loop", "branch", "carried in", "carried on", "variable",
        "variable that was read", "while that keeps it", "while that keeps it first", "while that takes it",
        "while that starts with it", "while without it", "while that it counts"])
def test_where_data_decide_there_is_no_trace(lines: str, free: bool) -> None:
    assert _with(lines).data_free == free


def _scaled() -> Any:
    @tilelang.jit(target="npuir")
    def made(M: int, tile: int) -> Any:
        @T.prim_func
        def scaled(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
            with T.Kernel(M // tile, is_npu=True) as (block, _):
                a = T.alloc_shared((tile,), "float32")
                T.copy(A[block * tile], a)
                T.vmul(a, 2.0, a)
                T.printf("block %d\\n", block)
                T.copy(a, B[block * tile])

        return scaled

    return made(4096, 256)


def test_a_kernel_tells_its_time_without_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = _scaled()
    traced = kernel.trace()
    assert capsys.readouterr().out == ""
    a, b = np.ones(4096, np.float32), np.zeros(4096, np.float32)
    assert kernel.trace(a, b).time_us == traced.time_us
    assert not b.any()
    kernel(a, b)
    assert kernel.last_launch.time_us == traced.time_us
    assert traced.hazards == kernel.last_launch.hazards == []


def test_a_trace_wants_arrays_that_fit() -> None:
    with pytest.raises(TileError, match="T403"):
        _scaled().trace(np.ones(4096, np.float32), np.zeros((2, 2), np.float32))


def test_a_trace_fills_no_workspace_that_nothing_is_read_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run poisons the workspace, since its contents are undefined; this was a third of the time to trace attention."""
    program = Program(parse_module(texts.scaled_product(64)))
    filled: list[frozenset[int]] = []

    def noted(*args: Any, **kwargs: Any) -> Any:
        filled.append(args[5])
        return bind(*args, **kwargs)

    monkeypatch.setattr("tilelang_npu.simulator.run.program.bind", noted)
    arrays = [np.zeros((4, 64, 64), kind) for kind in (np.float16, np.float16, np.float32, np.float32)]
    program.trace([*arrays, 2], blocks=2)
    program.run([*arrays, 2], blocks=2)
    assert program.data_free and program.used
    assert filled == [frozenset(), program.used]
