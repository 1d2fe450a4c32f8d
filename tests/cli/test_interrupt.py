"""Ctrl-C ends every command within a second: one line, exit code 130, and no file that is half there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tilelang_npu.runtime.settings.file_writing import replacing

ENDLESS = '''
import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            i = T.alloc_var("int32", init=0)
            with T.Scope("V"):
                while i != -1:
                    i = (i + 2) % 100000000
    return main


if __name__ == "__main__":
    kernel = factory()
    open("started", "w").close()
    kernel(np.zeros(64, np.int32))
'''
HIVM = '''module attributes {hacc.target = #hacc.target<"Ascend910B2">} {
  func.func @k(%A: memref<64xi32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.block_dim = 1 : i64,
      hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i64
    %end = arith.constant -1 : i64
    %r = scf.while (%x = %one) : (i64) -> i64 {
      %more = arith.cmpi ne, %x, %end : i64
      scf.condition(%more) %x : i64
    } do {
    ^bb0(%y: i64):
      %two = arith.constant 2 : i64
      %z = arith.addi %y, %two : i64
      scf.yield %z : i64
    }
    return
  }
}
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "endless.py").write_text(ENDLESS)
    (tmp_path / "endless.mlir").write_text(HIVM)
    return tmp_path


def hearing() -> None:
    """Lets a new process receive SIGINT, also if this process ignores it as a background job of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(words: Sequence[str], folder: Path, ready: float, marker: Path | None = None) -> tuple[int, str, float]:
    """Start a command, send it SIGINT once it is at work, and give it time to end: exit code, errors, seconds."""
    environment = {**os.environ, "TILELANG_CACHE_DIR": str(folder / "cache")}
    process = subprocess.Popen([sys.executable, "-m", "tilelang_npu", *words], cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=hearing)
    try:
        limit = time.monotonic() + 60
        while marker is not None and not marker.exists() and time.monotonic() < limit and process.poll() is None:
            time.sleep(0.05)
        time.sleep(ready)
        assert process.poll() is None, process.communicate()[1]
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, errors = process.communicate(timeout=20)
        return process.returncode, errors, time.monotonic() - started
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("words", "marker"), [
    (["run", "endless.py", "--trace", "out.json", "--mlir", "out"], "started"),
    (["compile", "endless.py", "-o", "out.mlir"], "started"),
    (["sim", "endless.mlir", "--save", "out", "--trace", "out.json"], None),
    (["check", "endless.py", "--report", "out.json"], "started"),
    (["check", "endless.mlir", "--report", "out.json"], None),
    (["survey", ".", "--json", "out.json"], "started"),
])
def test_ctrl_c(folder: Path, words: list[str], marker: str | None) -> None:
    code, errors, seconds = interrupted(words, folder, 0.3 if marker else 6.0, folder / marker if marker else None)
    assert code == 130, errors
    lines = errors.strip().splitlines()
    assert len(lines) == 1, errors
    assert lines[0].startswith("interrupted")
    assert seconds < 10  # one on an idle machine
    left = {path.name for path in folder.iterdir() if path.name.startswith("out")}
    assert left <= ({"out.json.part"} if words[0] == "survey" else set())


def test_python_gets_keyboard_interrupt(folder: Path) -> None:
    """In Python, KeyboardInterrupt is raised as in Python's own loops, and the kernel can be called again."""
    program = ("import sys, signal, threading, os; sys.argv = ['x']; import numpy as np\n"
               "import tilelang_npu.compat as c; c.install(); import endless\n"
               "kernel = endless.factory(); kernel.mlir()\n"
               "for turn in range(2):\n"
               "    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
               "    try:\n        kernel(np.zeros(64, np.int32))\n"
               "    except KeyboardInterrupt:\n        print('caught')\n")
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60, check=False,
                          preexec_fn=hearing)
    assert done.stdout == "caught\ncaught\n", done.stderr
    assert done.stderr == ""


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def half() -> Iterator[None]:
        with replacing(tmp_path / "a.txt") as file:
            file.write(b"half")
            yield

    (tmp_path / "a.txt").write_text("old")
    writing = half()
    next(writing)
    assert (tmp_path / "a.txt").read_text() == "old"
    with pytest.raises(KeyboardInterrupt):
        writing.throw(KeyboardInterrupt())
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"
    (tmp_path / "a.txt").chmod(0o640)
    with replacing(tmp_path / "a.txt") as file:
        file.write(b"new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_the_exit_code_does_not_depend_on_what_was_interrupted(tmp_path: Path) -> None:
    """An interrupt inside exec(), for example while a dataclass is created."""
    (tmp_path / "script.py").write_text("exec('raise KeyboardInterrupt')\n")
    done = subprocess.run([sys.executable, "-m", "tilelang_npu", "run", "script.py"], cwd=tmp_path, capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
