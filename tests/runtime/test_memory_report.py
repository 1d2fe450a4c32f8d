"""The addresses of buffers: the report is the plan that ran, and its lines are those of the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.cli.script import execute
from tilelang_npu.dialects import hivm
from tilelang_npu.runtime.jit.jit_kernel import JITKernel

ROOT = Path(__file__).resolve().parents[2]


def example(name: str) -> JITKernel:
    (tally, *_) = execute(ROOT / "examples" / f"{name}.py", [], "__main__").record.tallies
    return tally.kernel


@pytest.mark.parametrize("name", ["gemm", "softmax", "minicv", "flash_attention"])
def test_the_addresses_are_those_that_ran(name: str) -> None:
    kernel = example(name)
    report = kernel.memory_report()
    planned = {(memory.name, address)
               for memory in report.memories for buffer in memory.buffers for address in buffer.addresses}
    assert {(memory.core, memory.name) for memory in report.memories} <= {
        ("AIV", "UB"), ("AIC", "L1"), ("AIC", "L0A"), ("AIC", "L0B"), ("AIC", "L0C")}
    ran = set()
    spoken = {"ub": "UB", "cbuf": "L1", "ca": "L0A", "cb": "L0B", "cc": "L0C"}
    for op in kernel.program.module.walk():
        if isinstance(op, hivm.PointerCastOp):
            for address in op.addrs:
                ran.add((spoken[hivm.space_of(op.results[0].type) or ""], address.owner.value.value.data))
    assert ran == planned
    assert kernel.last_launch is not None
    for memory in report.memories:
        assert memory.alive <= memory.used <= memory.room
        assert kernel.last_launch.memory[memory.name] <= memory.used
        for one in memory.buffers:
            for other in memory.buffers:
                if one is not other and one.span[0] <= other.span[1] and other.span[0] <= one.span[1]:
                    assert all(a + one.nbytes <= b or b + other.nbytes <= a for a in one.addresses for b in other.addresses)


def elementwise() -> JITKernel:
    """Tiles of 112 KB, of which only one fits at a time; each operation has the last use of a tile."""

    @tilelang.jit(target="npuir")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((4, 28672), "float32"), B: T.Tensor((4, 28672), "float32")):
            with T.Kernel(4, is_npu=True) as (block, _):
                a = T.alloc_shared((1, 28672), "float32")
                b = T.alloc_shared((1, 28672), "float32")
                c = T.alloc_shared((1, 28672), "float32")
                d = T.alloc_shared((1, 28672), "float32")
                T.copy(A[block, 0], a)
                T.vexp(a, b)
                T.vln(b, c)
                T.vadd(c, 1.0, d)
                T.copy(d, B[block, 0])

        return main

    return made()


@pytest.mark.parametrize("made", [elementwise, *(lambda name=name: example(name) for name in (
    "minicv", "softmax_expert", "rms_norm", "flash_attention"))])
def test_more_bytes_were_alive_than_used(made: Any) -> None:
    """A result that shares bytes with an operand at its last use was counted twice."""
    for memory in made().memory_report().memories:
        most = 0
        for at in range(max(one.span[1] for one in memory.buffers) + 1):
            held = np.zeros(memory.room, np.bool_)
            for one in memory.buffers:
                if one.span[0] <= at <= one.span[1]:
                    for address in one.addresses:
                        held[address : address + one.nbytes] = True
            most = max(most, int(held.sum()))
        assert memory.alive == most <= memory.used <= memory.room


def test_bytes_that_are_taken_over_are_held_once() -> None:
    (memory,) = elementwise().memory_report().memories
    assert [one.addresses for one in memory.buffers] == [(0,)] * 4
    assert (memory.used, memory.alive) == (114688, 114688)


def test_an_overflow_lists_no_byte_twice() -> None:
    """The sizes at the peak add up to what is needed."""
    @T.prim_func
    def main(A: T.Tensor((4, 28672), "float32"), B: T.Tensor((4, 28672), "float32")):
        with T.Kernel(4, is_npu=True) as (block, _):
            a = T.alloc_ub((1, 28672), "float32")
            b = T.alloc_ub((1, 28672), "float32")
            c = T.alloc_ub((1, 28672), "float32")
            T.copy(A[block, 0], a)
            T.vexp(a, b)
            T.vln(b, c)
            T.vadd(c, a, c)
            T.copy(c, B[block, 0])

    with pytest.raises(TileError, match="UB needs 229 376 bytes") as caught:
        tilelang.compile(main, target="npuir")
    assert [note.split(" bytes")[0] for note in caught.value.notes[1:]] == ["  a 114 688", "  b 114 688"]


def chained() -> JITKernel:
    @tilelang.jit(target="npuir")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((4, 8192), "float32"), B: T.Tensor((4, 8192), "float32")):
            with T.Kernel(1, is_npu=True) as (_, __):
                big = T.alloc_shared((1, 20480), "float32")
                a = T.alloc_shared((1, 8192), "float32")
                for i in T.Pipelined(4, num_stages=2):
                    T.copy(A[i, 0], a)
                    T.vadd(a, 1.0, a)
                    T.copy(a, B[i, 0])
                T.vbrc(0.0, big)

        return main

    return made()


def test_the_text_says_what_shares_bytes_and_which_lines() -> None:
    kernel = chained()
    first = kernel.prim_func.location.line
    (memory,) = kernel.memory_report().memories
    buffers = {buffer.name: buffer for buffer in memory.buffers}
    assert (buffers["a"].nbytes, len(buffers["a"].addresses)) == (32768, 2)
    loop = next(number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "num_stages=2):" in text)
    assert loop > first
    assert (buffers["a"].first, buffers["a"].last) == (loop - 1, loop + 3)
    assert (buffers["big"].first, buffers["big"].last) == (loop + 4, loop + 4)
    assert memory.alive == max(81920, 65536)
    text = str(kernel.memory_report())
    assert f"a (slot 1)  line {loop - 1}  alive {loop - 1}..{loop + 3}" in text
    assert "UB of AIV: " in text
    assert "81 920 alive together at most" in text


def test_a_buffer_allocated_in_its_loop_alternates_too() -> None:
    @tilelang.jit(target="npuir")
    def made(inside: bool) -> Any:
        @T.prim_func
        def main(A: T.Tensor((16, 8192), "float32"), B: T.Tensor((16, 8192), "float32")):
            with T.Kernel(1, is_npu=True) as (_, __):
                outside = T.alloc_shared((1, 8192), "float32")
                for i in T.Pipelined(16, num_stages=2):
                    if inside:
                        here = T.alloc_shared((1, 8192), "float32")
                        T.copy(A[i, 0], here)
                        T.copy(here, B[i, 0])
                    else:
                        T.copy(A[i, 0], outside)
                        T.copy(outside, B[i, 0])

        return main

    traces = {inside: made(inside).trace() for inside in (True, False)}
    assert traces[True] is not None
    assert traces[False] is not None
    assert traces[True].cycles == pytest.approx(traces[False].cycles, rel=0.01)
    (memory,) = made(True).memory_report().memories
    assert [len(buffer.addresses) for buffer in memory.buffers if buffer.name == "here"] == [2]


def test_the_picture_has_a_box_for_each_copy() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    report = chained().memory_report()
    axes = report.plot()
    assert len(axes.patches) == sum(len(buffer.addresses) for buffer in report.memories[0].buffers) == 3
    assert sorted(round(box.get_height()) for box in axes.patches) == [32768, 32768, 81920]
    assert "UB of AIV" in axes.get_title(loc="left")
    with pytest.raises(TileError, match="T412"):
        report.plot("L1")
