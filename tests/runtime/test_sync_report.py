"""Each wait of a kernel with its reason and its cost: the hazard without it, and how long it stalled its pipe."""

from __future__ import annotations

import os
import random
import re
import runpy
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.passes import ModulePass

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC
from tilelang_npu.cli.script import execute
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import DONE, REFUSED, Placed, Waits, module_remarks, remark_of, remarks_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.jit.factory import Factory
from tilelang_npu.runtime.jit.jit_kernel import JITKernel
from tilelang_npu.runtime.reports.sync_report import SyncReport
from tilelang_npu.sharing import Kept
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.machine.op_records import Barrier, CrossWait, EventWait
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial
from tilelang_npu.transforms.pipeline import passes
from transforms import pass_kernels
from transforms.pass_kernels import CALLS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def example(name: str) -> JITKernel:
    """The kernel of an example, with the launch that the example made."""
    (tally, *_) = execute(ROOT / "examples" / f"{name}.py", [], "__main__").record.tallies
    return tally.kernel


@pytest.fixture(scope="module", params=["gemm", "softmax", "minicv", "flash_attention"])
def kernel(request: pytest.FixtureRequest) -> JITKernel:
    return example(request.param)


WAIT = re.compile(r"hivm\.hir\.(?:(wait_flag|pipe_barrier|sync_block_wait|sync_block)\[(.*?)\](?: flag = (\d+))?"
                  r"|mmadL1 .*? sync_related_args\((%\w+), (%\w+), )")


def waits(text: str) -> list[tuple[str, str, str]]:
    """Returns core, kind and event numbers of each wait of a kernel's text, in order; without numbers for computed events."""
    found = []
    for function in text.split("func.func @")[1:]:
        core = re.search(r"func_core_type<(AIC|AIV)>", function)
        constants = dict(re.findall(r"(%\w+) = arith\.constant (-?\d+) : i64", function))
        for kind, given, flag, *loaded in WAIT.findall(function):
            names = re.findall(r"<(?:PIPE_)?(\w+)>|(%\w+)", given)
            pipes = [name for name, _ in names if name]
            assert core is not None
            for event in (constants.get(one) for one in loaded if one):
                if event != "-1":
                    found.append((core[1], "wait MTE2 -> MTE1", f"EVENT_ID{event}" if event else ""))
            if kind == "wait_flag":
                event = pipes[2] if len(pipes) == 3 else ""
                found.append((core[1], f"wait {pipes[0]} -> {pipes[1]}", event))
            elif kind == "pipe_barrier":
                found.append((core[1], f"barrier {pipes[0]}", ""))
            elif kind == "sync_block_wait":
                found.append((core[1], f"wait for {'AIV' if core[1] == 'AIC' else 'AIC'}", f"flag {flag}" if flag else ""))
            elif kind:
                found.append((core[1], f"meet {pipes[0]}", ""))
    return found


def check_rows(kernel: JITKernel) -> SyncReport:
    """Each wait of the text is one row, in order."""
    report, written = kernel.sync_report(), waits(kernel.mlir())
    reported = [(entry.core, entry.what, entry.numbers) for entry in report.entries]
    assert [row[:2] for row in reported] == [row[:2] for row in written]
    for (_, _, numbers), (_, _, constant) in zip(reported, written, strict=True):
        assert numbers == constant or (not constant and (" in turn" in numbers or numbers in ("", "a flag")))
    check_remarks(kernel)
    return report


SYNCHRONISES = (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp,
                hivm.SyncBlockOp)


def check_remarks(kernel: JITKernel) -> None:
    """Each inserted wait, set, barrier and flag of the text, and each address, has one remark; each address is in the memory
    report once."""
    own = {location_of(op) for op in kernel._lowering.traced.module.walk() if isinstance(op, SYNCHRONISES)}
    ours: Counter[tuple[str, int]] = Counter()
    for op in kernel._lowering.final.walk():
        message = remark_of(op)
        if isinstance(op, SYNCHRONISES):
            assert location_of(op) in own if message is None else isinstance(message.facts, Waits) and message.maker, op
        elif isinstance(op, hivm.MmadL1Op):
            assert message is None
            assert sorted(one.facts.place for one in remarks_of(op)) == sorted(
                event.place for event, _ in op.shared_events() if event not in op.HALVES)
            for one in remarks_of(op):
                event = op.EVENTS[one.facts.place]
                assert (one.maker, one.facts.source, one.facts.target) == ("insert-sync", event.source, event.target)
        elif isinstance(op, hivm.PointerCastOp):
            assert message is not None and isinstance(message.facts, Placed) and message.maker == "plan-memory"
            (address,) = op.addrs
            ours[hivm.space_of(op.results[0].type) or "", address.owner.value.value.data] += 1
        else:
            assert message is None or op is kernel._lowering.final, op
    for one in module_remarks(kernel._lowering.final):
        assert one.maker and (one.kind == DONE or (one.kind == REFUSED and one.edit and one.text))
    names = {"UB": "ub", "L1": "cbuf", "L0A": "ca", "L0B": "cb", "L0C": "cc"}
    assert ours == Counter((names[memory.name], address) for memory in kernel.memory_report().memories
                           for buffer in memory.buffers for address in buffer.addresses)


def test_every_wait_is_there_with_a_reason(kernel: JITKernel) -> None:
    report = check_rows(kernel)
    assert all(entry.reason != "by hand" for entry in report.entries)  # the author wrote no flags
    others = [entry.reason for entry in report.entries if entry.between is None]
    assert set(others) <= {
        "MTE1 waits until M no longer reads one half of L0A and L0B, which MTE1 then overwrites",
        "the kernel ends after all pipes are done"}
    for entry in report.entries:
        for size in re.findall(r", (\d+) B: ", entry.reason):
            assert int(size) > 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_wait_of_an_example_is_one_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels that an example compiles; they are traced, not run."""
    monkeypatch.syspath_prepend(str(path.parent))
    names = runpy.run_path(str(path), run_name="imported")
    (factory, *_) = [value for value in names.values() if isinstance(value, Factory)]
    report = check_rows(factory(*names["SHAPES"][-1]))
    assert ("by hand" in {entry.reason for entry in report.entries}) == bool(
        re.search(r"T\.(set_flag|wait_flag|barrier_all|pipe_barrier|sync_block|set_cross_flag)", path.read_text()))


def test_a_macro_that_is_called_three_times_has_its_waits_three_times() -> None:
    @T.macro
    def passed(A, row, tile, B):  # type: ignore[no-untyped-def]
        T.copy(A[row, 0], tile)
        T.tile.add(tile, tile, tile)
        T.tile.mul(tile, tile, tile)
        T.copy(tile, B[row, 0])

    @T.prim_func
    def main(A: T.Tensor((24, 64), "float32"), B: T.Tensor((24, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            one = T.alloc_ub((8, 64), "float32")
            two = T.alloc_ub((8, 64), "float32")
            three = T.alloc_ub((8, 64), "float32")
            passed(A, 0, one, B)
            passed(A, 8, two, B)
            passed(A, 16, three, B)

    report = check_rows(tilelang.compile(main, target="ascendc", pass_configs=SYNC))
    loads = [entry.reason.partition(",")[0] for entry in report.entries if entry.what == "wait MTE2 -> V"]
    stores = [entry.reason.partition(",")[0] for entry in report.entries if entry.what == "wait V -> MTE3"]
    barriers = [entry.reason.partition(",")[0] for entry in report.entries if entry.what == "barrier V"]
    assert loads == stores == barriers == ["one", "two", "three"]


RANDOM = int(os.environ.get("TILELANG_RANDOM_WAITS", "12"))


def drawn(seed: int) -> str:
    """A kernel of macros in loops and unrolled loops, some with flags by hand."""
    rng = random.Random(seed)
    hand = rng.random() < 0.4
    body: list[str] = []
    depth = 3

    def put(text: str) -> None:
        body.append("    " * depth + text)

    def step() -> None:
        tile, other = rng.sample(["a", "b", "c"], 2)
        row = rng.choice([*map(str, range(0, 64, 8)), *(["i * 8"] if depth > 3 else [])])
        put(rng.choice([f"moved(A, {row}, {tile}, B)", f"summed({tile}, {other})", f"T.copy(A[{row}, 0], {tile})",
                        f"T.copy({tile}, B[{row}, 0])", f"T.tile.add({tile}, {other}, {tile})",
                        *(["T.barrier_all()", "T.pipe_barrier('v')"] if hand else [])]))

    for _ in range(rng.randint(2, 4)):
        if rng.random() < 0.6:
            put(rng.choice(["for i in T.serial(3):", "for i in T.unroll(3):", "for i in T.serial(n):",
                            "for i in T.Pipelined(4, num_stages=2):"]))
            depth += 1
            for _ in range(rng.randint(1, 3)):
                step()
            depth -= 1
        else:
            step()
    return f'''
import tilelang_npu.language as T

@T.macro
def moved(A, row, tile, B):
    T.copy(A[row, 0], tile)
    T.tile.mul(tile, tile, tile)
    T.copy(tile, B[row, 0])

@T.macro
def summed(x, y):
    T.tile.add(x, x, y)
    T.tile.add(y, x, x)

@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), n: T.int32):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a = T.alloc_ub((8, 64), "float32")
        b = T.alloc_ub((8, 64), "float32")
        c = T.alloc_ub((8, 64), "float32")
        T.copy(A[0, 0], a)
        T.copy(A[8, 0], b)
        T.copy(A[16, 0], c)
        if n > 0:
{chr(10).join(body)}
'''


@pytest.mark.filterwarnings("ignore:.* stores to none of")  # some of them
def test_the_rows_of_random_kernels_are_the_waits_of_their_texts(tmp_path: Path) -> None:
    several = 0
    for seed in range(RANDOM):
        path = tmp_path / f"drawn{seed}.py"
        path.write_text(drawn(seed))
        kernel = tilelang.compile(runpy.run_path(str(path))["main"], target="ascendc",
                                  pass_configs={**SYNC, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True})
        kernel(np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32), 2)
        report = check_rows(kernel)
        by_hand = len(re.findall(r"T\.(?:barrier_all|pipe_barrier)", path.read_text()))
        assert bool(by_hand) == any(entry.reason == "by hand" for entry in report.entries)
        lines = Counter((entry.what, entry.line) for entry in report.entries)
        several += max(lines.values()) > 1
        assert kernel.last_launch is not None
        assert sum(entry.stalls_us for entry in report.entries) == pytest.approx(_held(kernel.last_launch))
    assert several > RANDOM // 2, "most have a line that is traced more than once"


def test_the_report_runs_no_pass_and_is_the_same_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILELANG_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    entries.clear_cache()

    def made() -> JITKernel:
        names = runpy.run_path(str(ROOT / "examples" / "flash_attention.py"), run_name="imported")
        (factory, *_) = [value for value in names.values() if isinstance(value, Factory)]
        return factory(*names["SHAPES"][-1])

    first = made()
    reports, text = reports_of(first), first.mlir(locations=True)
    entries._State.memory.clear()  # only the file is left
    again = made()
    assert not first._lowering.from_cache and again._lowering.from_cache

    def lowered_again(*_: object, **__: object) -> None:
        raise AssertionError("a report lowers nothing")

    monkeypatch.setattr("tilelang_npu.transforms.pipeline.lower", lowered_again)
    assert reports_of(again) == reports
    assert again.mlir(locations=True) == text
    assert "tile.remark" not in text


def reports_of(kernel: JITKernel) -> tuple[Any, ...]:
    return kernel.sync_report(), kernel.explain(), kernel.memory_report(), kernel.mlir(annotate=True)


@pytest.mark.parametrize("name", CALLS)
def test_each_pass_runs_once_for_a_kernel_and_for_no_report(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: Counter[str] = Counter()
    on_trial: list[object] = []
    for kind in set(passes().values()):
        def counted(self: ModulePass, *args: Any, apply: Any = kind.apply) -> None:
            ran[self.name] += not on_trial
            apply(self, *args)

        monkeypatch.setattr(kind, "apply", counted)

    def tried(self: PassWithPlanTrial, module: Any, try_plan: Any = PassWithPlanTrial.try_plan) -> Any:
        on_trial.append(self)  # passes run on copies of the module too, where memory planning is tried
        result = try_plan(self, module)
        on_trial.pop()
        return result

    monkeypatch.setattr(PassWithPlanTrial, "try_plan", tried)
    for factory in vars(pass_kernels).values():
        if isinstance(factory, Factory):  # another test of this process may have made the kernel
            monkeypatch.setattr(factory, "_kernels", Kept())
    made, arrays = CALLS[name]
    kernel = made()
    kernel(*arrays)
    before = dict(ran)
    if name != "neighbours":  # split-tiles tries memory plans for it
        assert before["plan-memory"] == 1 and sum(before.values()) == len(kernel.stages()) - 1
    check_remarks(kernel)
    assert all(reports_of(kernel))
    assert ran == before


def test_a_process_that_finds_the_kernel_in_the_cache_reports_the_same(tmp_path: Path) -> None:
    script = tmp_path / "reports.py"
    script.write_text(textwrap.dedent("""
        import sys
        from transforms.pass_kernels import CALLS
        from tilelang_npu.transforms.pipeline import passes

        def refuse(*_):
            raise AssertionError("a pass runs")

        if sys.argv[1] == "hit":
            for kind in passes().values():
                kind.apply = refuse
        kernel = CALLS["both_cores"][0]()
        assert kernel._lowering.from_cache == (sys.argv[1] == "hit")
        print(kernel.explain(), kernel.explain().remarks, kernel.memory_report(), kernel.mlir(annotate=True))
        print(kernel.sync_report())
    """))
    surroundings = {**os.environ, "TILELANG_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    surroundings.pop("TILELANG_DISABLE_CACHE", None)
    printed = [subprocess.run([sys.executable, str(script), way], env=surroundings, capture_output=True, text=True, check=True)
               for way in ("made", "hit")]
    assert printed[0].stdout == printed[1].stdout and "both_cores" in printed[0].stdout


def _held(launch: Any) -> float:
    return sum(launch.held_us.get((index, record.number, place), 0.0)
               for index, function in enumerate(launch.recorded.program.functions) for record in function.records
               for place in ((-1,) if isinstance(record.work, (Barrier, CrossWait, EventWait)) else (0, 1)))


def test_the_price_is_what_the_timing_held(kernel: JITKernel) -> None:
    launch = kernel.last_launch
    assert launch is not None
    report = kernel.sync_report()
    assert sum(entry.stalls_us for entry in report.entries) == pytest.approx(_held(launch))
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


def test_synchronisation_of_the_author_is_reported_as_written_by_hand() -> None:
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
                    ("barrier ALL", "", "the kernel ends after all pipes are done")]
    assert report.entries[0].stalls_us > 0


def test_the_text_names_lines_bytes_and_price() -> None:
    lines = str(doubled().sync_report()).splitlines()
    assert lines[0] == "main on Ascend910B2: 8 waits and barriers; microseconds of a block"
    assert sum("after the loop of line" in line for line in lines) == 2
    first = next(line for line in lines if "MTE2 -> V" in line)
    assert "a, 256 B: written at" in first
    assert "(RAW)" in first
    assert float(first.split("stalls ")[1].removesuffix(" us")) > 0
    assert any("V -> MTE2" in line and "of the next iteration (WAR)" in line for line in lines)


def test_barriers_of_other_passes_are_not_reported_as_the_authors() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_shared((16, 16), "float16")
            b = T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((16, 16), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            T.copy(c, C)
            T.dump_tensor(a, 1, 16)

    reasons = [entry.reason for entry in check_rows(tilelang.compile(
        main, target="npuir", pass_configs={"tl.disable": ["fold-accumulator-clear"]})).entries]
    assert "by hand" not in reasons
    assert reasons.count("this full barrier separates the gemm of zeros that clears c from all other work") == 2
    assert reasons.count("T.dump_tensor waits for all earlier operations, and all later operations wait for "
                         "T.dump_tensor") == 2


@T.macro
def _step(source, target):
    T.tile.exp(target, source)


def test_the_waits_of_a_macro_name_the_calls() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True):
            a = T.alloc_ub((64,), "float32")
            b = T.alloc_ub((64,), "float32")
            T.copy(A, a)
            _step(a, b)
            _step(b, a)
            _step(a, b)
            T.copy(b, B)

    made = tilelang.compile(kernel, target="npuir")
    made(np.ones(64, np.float32), np.zeros(64, np.float32))
    report = made.sync_report()
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    body = 1 + next(number for number, line in enumerate(lines) if "T.tile.exp(target, source)" in line)
    calls = [number for number, line in enumerate(lines, 1) if line.strip().startswith("_step(")]
    inside = [entry for entry in report.entries if entry.line is not None and entry.line.line == body]
    called = [entry.line.callers[0].line for entry in inside if entry.line is not None]
    assert set(called) == set(calls)
    for call in calls:
        assert f"before line {body}, called at line {call}" in str(report)
