"""Each wait of a kernel with its reason and its price: what goes wrong without it, and how long it held its pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC
from tilelang_npu.cli.script import execute
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import location_of
from tilelang_npu.runtime.kernel import JITKernel
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.work import Barrier, CrossWait, EventWait

ROOT = Path(__file__).resolve().parents[2]


def example(name: str) -> JITKernel:
    """The kernel of an example, with the launch that the example made."""
    (tally, *_) = execute(ROOT / "examples" / f"{name}.py", [], "__main__").record.tallies
    return tally.kernel


@pytest.fixture(scope="module", params=["gemm", "softmax", "minicv", "flash_attention"])
def kernel(request: pytest.FixtureRequest) -> JITKernel:
    return example(request.param)


def waits(kernel: JITKernel) -> list[Any]:
    return [op for op in kernel.program.module.walk()
            if isinstance(op, (hivm.WaitFlagOp, hivm.SyncBlockWaitOp, hivm.PipeBarrierOp))]


def test_every_wait_is_there_with_a_reason(kernel: JITKernel) -> None:
    report = kernel.sync_report()
    told = {(entry.line, entry.what.split()[0]) for entry in report.entries}
    loops = {location_of(op) for op in waits(kernel)} - {line for line, _ in told}
    assert all(entry.reason != "by hand" for entry in report.entries)  # nobody wrote a flag
    assert sum(entry.between is not None for entry in report.entries) >= len(report.entries) - 2 * 2 - 1  # L0's two, the ends
    for place in loops:  # what stands behind a loop is told with the wait inside
        assert any(op.location is not None and location_of(op) == place and op.name == "scf.for"
                   for op in kernel.program.module.walk())


def test_the_price_is_what_the_timing_held(kernel: JITKernel) -> None:
    launch = kernel.last_launch
    assert launch is not None
    report = kernel.sync_report()
    program = launch.recorded.program
    held = sum(launch.held_us.get((index, record.number), 0.0) for index, function in enumerate(program.functions)
               for record in function.records if isinstance(record.work, (Barrier, CrossWait, EventWait)))
    assert sum(entry.stalls_us for entry in report.entries) == pytest.approx(held)
    assert any(entry.stalls_us > 0.05 for entry in report.entries)


def doubled() -> JITKernel:
    @tilelang.jit(target="ascendc", pass_configs=SYNC)
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((256, 64), "float32"), B: T.Tensor((256, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((64,), "float32")
                b = T.alloc_ub((64,), "float32")
                for i in T.serial(256):
                    T.copy(A[i, 0], a)
                    T.tile.add(b, a, a)
                    T.tile.mul(b, b, a)
                    T.copy(b, B[i, 0])

        return main

    return made()


def test_the_reason_is_what_goes_wrong_without_it() -> None:
    kernel = doubled()
    entries = [entry for entry in kernel.sync_report().entries if entry.between is not None]
    assert {entry.what for entry in entries} == {
        "wait V -> MTE2", "wait MTE2 -> V", "wait MTE3 -> V", "wait V -> MTE3", "barrier V"}
    for entry in entries:
        module = kernel.program.module.clone()
        pipes = entry.what.partition(" ")[2]
        for op in list(module.walk()):
            flag = isinstance(op, (hivm.WaitFlagOp, hivm.SetFlagOp, hivm.PipeBarrierOp))
            if flag and op.pipes() == tuple(pipes.split(" -> ")):
                op.detach()
        arrays = [np.ones((256, 64), np.float32), np.zeros((256, 64), np.float32)]
        hazards = Launch(Program(module, kernel.chip).run(arrays, blocks=1)).hazards
        places = {frozenset((one.first.location, one.second.location)) for one in hazards if one.second is not None}
        assert frozenset(entry.between or ()) in places, entry


def test_what_the_author_wrote_is_said_to_be_by_hand() -> None:
    @tilelang.jit(target="ascendc")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((64,), "float32")
                with T.Scope("V"):
                    T.copy(A, a)
                    T.set_flag("mte2", "v", 3)
                    T.wait_flag("mte2", "v", 3)
                    T.tile.add(a, a, 1.0)
                    T.barrier_all()
                    T.copy(a, B)

        return main

    report = made().sync_report()  # no launch yet: the times are a trace's
    rows = [(entry.what, entry.numbers, entry.reason) for entry in report.entries]
    assert rows == [("wait MTE2 -> V", "EVENT_ID3", "by hand"), ("barrier ALL", "", "by hand"),
                    ("barrier ALL", "", "the kernel ends when all is done")]
    assert report.entries[0].stalls_us > 0


def test_the_text_names_lines_bytes_and_price() -> None:
    lines = str(doubled().sync_report()).splitlines()
    assert lines[0] == "main on Ascend910B2: 6 waits and barriers; microseconds of a block"
    first = next(line for line in lines if "MTE2 -> V" in line)
    assert "a, 256 B: written at" in first
    assert "(RAW)" in first
    assert float(first.split("stalls ")[1].removesuffix(" us")) > 0
    assert any("V -> MTE2" in line and "of the next iteration (WAR)" in line for line in lines)
