"""The progress of long work: its text, when it is drawn in a terminal, and when it is added to a log."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import progress
from tilelang_npu.interpreter import launch
from tilelang_npu.simulator.result import static_check
from tilelang_npu.simulator.run import program


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made, modules=sys.modules))  # pytest has sys.stderr
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return made


def drawn(terminal: Terminal, text: str) -> bool:
    """Whether a text appears in the terminal within a second."""
    end = time.monotonic() + 5
    while time.monotonic() < end and text not in terminal.getvalue():
        time.sleep(0.01)
    return text in terminal.getvalue()


def visible(terminal: Terminal) -> str:
    """Returns the final contents of a terminal; erased lines are gone."""
    return terminal.getvalue().rpartition("\r\033[K")[2]


def _kept_steps(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> list[progress.Underway]:
    """Returns the list to which the steps are added whose progress the modules show from now on."""
    kept: list[progress.Underway] = []

    @contextmanager
    def shown(what: str, total: int = 0, of: str = "") -> Iterator[progress.Underway]:
        kept.append(progress.Underway(what, total, of))
        yield kept[-1]

    for module in modules:
        monkeypatch.setattr(module, "shown", shown)
    return kept


def test_the_line_says_what_is_done_how_far_and_how_long_it_may_take() -> None:
    outer = progress.Underway("tuning 8 configurations", started=100.0)
    inner = progress.Underway("timed", 8, "", 2, started=110.0)
    assert progress.text_of([outer, inner], 120.0) == "tuning 8 configurations: timed 2 of 8, 20 s, 0.2/s, about 30 s more"
    assert progress.text_of([progress.Underway("compiling gemm", started=0.0)], 3.2) == "compiling gemm, 3 s"
    assert progress.text_of([progress.Underway("running gemm,", 1, "blocks", started=0.0)], 3.0) == "running gemm, 3 s"
    named = progress.Underway("comparing results of edits of gemm:", 1, "edits", started=0.0)
    assert progress.text_of([named, progress.Underway("running gemm,", started=1.0)], 3.0) == (
        "comparing results of edits of gemm: running gemm, 3 s")
    assert progress.text_of([progress.Underway("survey", 4, "files", 4, started=0.0)], 8.0) == "survey 4 of 4 files, 8 s"


def test_interpreted_kernels_and_checks_show_their_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operation that can be long has progress with a total and with what is done."""
    steps = _kept_steps(monkeypatch, launch, static_check)

    @T.prim_func
    def doubled(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")) -> None:
        with T.Kernel(4, is_npu=True) as (block, _):
            a = T.alloc_shared((64,), "float32")
            T.copy(A[block * 64], a)
            T.vadd(a, a, a)
            T.copy(a, B[block * 64])

    @T.prim_func
    def by_cores(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")) -> None:
        with T.Kernel(4, is_npu=True) as (block, half):
            a = T.alloc_ub((32,), "float32")
            T.copy(A[block * 64 + half * 32], a)
            T.set_flag("mte2", "mte3", 0)
            T.wait_flag("mte2", "mte3", 0)
            T.copy(a, B[block * 64 + half * 32])

    arrays = np.ones(256, np.float32), np.ones(256, np.float32)
    for function in (doubled, by_cores):
        kernel = tilelang.compile(function, target="npuir" if function is doubled else "ascendc")
        kernel.interpret(*arrays)
        step = steps.pop()
        assert progress.text_of([step], step.started + 4) == f"interpreting {kernel.name}, 4 of 4 blocks, 4 s"
        (one,) = kernel.programs
        static_check.check(one, arrays, 4)
        assert (steps[-1].what, steps[-1].total) == (f"checking {kernel.name},", 1)


def test_nested_progress_follows_the_outer_one_and_all_is_erased(terminal: Terminal) -> None:
    with progress.shown("running gemm,", 3, "blocks") as step:
        step.done = 1
        assert drawn(terminal, "running gemm, 1 of 3 blocks, 0 s")
        with progress.shown("what if"):
            assert drawn(terminal, "running gemm, 1 of 3 blocks: what if, 0 s")
    assert visible(terminal) == ""


def test_the_line_gives_way_to_what_a_kernel_prints(terminal: Terminal) -> None:
    with progress.shown("running"):
        assert drawn(terminal, "running, 0 s")
        with progress.aside():
            assert visible(terminal) == ""
            before = terminal.getvalue()
            time.sleep(0.05)
            assert terminal.getvalue() == before
            terminal.truncate(0)
        assert drawn(terminal, "running, 0 s")


def test_nothing_is_shown_before_two_seconds(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 60.0)
    with progress.shown("short"):
        time.sleep(0.05)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("setting", [("CI", "true"), ("TERM", "dumb")])
def test_ci_and_a_dumb_terminal_get_a_line_now_and_then(terminal: Terminal, setting: tuple[str, str],
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*setting)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with progress.shown("short") as step:
        step.done += 1
        time.sleep(0.05)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(progress, "_LOGGED_EVERY", 0.1)
    with progress.shown("survey", 4, "files") as step:
        step.done = 1
        assert drawn(terminal, "survey 1 of 4 files, 0 s, ")
        assert drawn(terminal, "/s, about 0 s more\n")
        step.done = 2
        assert drawn(terminal, "survey 2 of 4 files, 0 s, ")
    assert "\r" not in terminal.getvalue()


def test_a_log_of_a_test_has_no_lines(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(progress, "_LOGGED_EVERY", 0.01)
    assert os.environ["PYTEST_CURRENT_TEST"]
    with progress.shown("long"):
        time.sleep(0.05)
    assert terminal.getvalue() == ""


def test_other_threads_draw_nothing(terminal: Terminal) -> None:
    def work() -> None:
        with progress.shown("elsewhere"):
            time.sleep(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


_SCRIPT = """
import time, numpy as np
from tilelang_npu import progress
from tilelang_npu.interpreter import launch
from tilelang_npu.simulator.result import static_check
progress.AFTER, progress._EVERY, progress._LOGGED_EVERY = 0.0, 0.01, 0.2
with progress.shown("waiting for", 4, "things") as step:
    step.done = 1
    time.sleep(0.3)
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_a_terminal_sees_it_drawn_and_a_pipe_gets_lines() -> None:
    import pty

    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_CURRENT_TEST")}
    environment = kept | {"TERM": "xterm"}
    here, there = pty.openpty()
    run = [sys.executable, "-c", _SCRIPT]
    done = subprocess.run(run, stdout=subprocess.PIPE, stderr=there, env=environment, text=True, timeout=60, check=True)
    os.close(there)
    output = os.read(here, 65536).decode()
    os.close(here)
    assert "waiting for 1 of 4 things, 0 s" in output
    assert output.endswith("\r\033[K")
    assert done.stdout == "done\n"
    piped = subprocess.run(run, capture_output=True, env=environment, text=True, timeout=60, check=True)
    assert re.fullmatch(r"waiting for 1 of 4 things, 0 s, [\d.]+/s, about 1 s more\n", piped.stderr)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_launch_in_batches_counts_its_blocks(monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    kept = _kept_steps(monkeypatch, program)
    monkeypatch.setenv("TILELANG_NPU_JOBS", str(jobs))
    blocks = 512

    @T.prim_func
    def kernel(A: T.Tensor((blocks, 1024), "float32"), B: T.Tensor((blocks, 1024), "float32")):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            a = T.alloc_ub((1024,), "float32")
            T.copy(A[block, 0], a)
            T.vexp(a, a)
            T.copy(a, B[block, 0])

    made = tilelang.compile(kernel, target="npuir", pass_configs={"tl.disable": ["make-persistent"]})
    a = np.ones((blocks, 1024), np.float32)
    made(a, np.zeros_like(a))
    assert [(step.what, step.done, step.total, step.of) for step in kept] == [("running kernel,", blocks, blocks, "blocks")]
