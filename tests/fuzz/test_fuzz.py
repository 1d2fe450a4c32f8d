"""Random input gives a result or one of our errors, in bounded time and memory.

The suite runs some hundred cases. ``TILELANG_FUZZ_SECONDS=1200 python -m pytest tests/fuzz`` sets the time for each
kind of case, and begins at another seed each time; ``TILELANG_FUZZ_SEED=N`` begins at that seed.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import random
import re
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from fuzz.cases import MOST_BLOCKS, corpus, damaged, kernel_text, random_bytes, run_kernel, script_text
from tilelang_npu.cli import main
from tilelang_npu.errors import TileError
from tilelang_npu.transforms.pipeline import passes

SECONDS = float(os.environ.get("TILELANG_FUZZ_SECONDS", "0"))
SEED = int(os.environ.get("TILELANG_FUZZ_SEED", "0"))
LONGEST = 30
"""Seconds for one case on a busy machine; most take a hundredth of one."""
MEMORY = 2 << 30
CORPUS = corpus()
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs an alarm clock")


class TooLongError(Exception):
    """A case exceeded its time limit."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Ends the body if it takes too long."""
    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLongError("".join(traceback.format_stack(frame, 12)))

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def seeds(few: int) -> Iterator[int]:
    """The seeds of a run: a few, or as many as the time allows."""
    if not SECONDS:
        yield from range(SEED, SEED + few)
        return
    end, seed = time.monotonic() + SECONDS, SEED or int(time.time())
    while time.monotonic() < end:
        yield seed
        seed += 1


def attempt(seed: int, text: str | bytes, act: Callable[[], object]) -> None:
    """Do it; anything but success and an error of ours is a find."""
    try:
        with limited():
            act()
    except TileError as error:
        str(error)  # must be possible
    except BaseException as error:
        shown = text if isinstance(text, str) else repr(text)
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}\n{shown}") from error
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MEMORY, f"seed {seed} takes memory\n{text!r}"


def command(*words: object) -> None:
    """Run a command line that is allowed to fail with a message, and with nothing else."""
    shown, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(errors):
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    assert code in (0, 1, 2)
    assert "Traceback" not in errors.getvalue(), errors.getvalue()
    message = shown.getvalue() + errors.getvalue()
    assert code == 0 or re.search(r"\w\[[ST]\d{3}\]", message) or "usage" in message, message


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No case runs for long, or leaves files."""
    monkeypatch.setenv("TILELANG_NPU_MAX_OPS", "20000")
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")


def test_kernels(tmp_path: Path) -> None:
    for seed in seeds(120):
        text = kernel_text(random.Random(seed))
        attempt(seed, text, lambda text=text: run_kernel(text, tmp_path))


@pytest.mark.filterwarnings("ignore::tilelang_npu.runtime.settings.log.TileWarning")  # a script only shows them
@pytest.mark.parametrize("words", [["run", "--sanitize"], ["check"]], ids=lambda words: words[0])
def test_scripts(tmp_path: Path, words: list[str]) -> None:
    for seed in seeds(60):
        text = script_text(random.Random(seed))
        try:
            compile(text, "fuzzed.py", "exec")
        except SyntaxError:  # Python's own
            continue
        file = tmp_path / "fuzzed.py"
        file.write_text(text, encoding="utf-8")
        linecache.clearcache()
        attempt(seed, text, lambda words=words, file=file: command(*words, file))


@pytest.mark.parametrize("door", ["opt", "sim", "check"])
def test_damaged_mlir(tmp_path: Path, door: str) -> None:
    names = list(passes())
    for seed in seeds(100):
        rng = random.Random(seed)
        text = damaged(rng.choice(CORPUS), rng)
        file = tmp_path / "fuzzed.mlir"
        file.write_text(text, encoding="utf-8")
        words = ([door, file, "-p", rng.choice(names)] if door == "opt" else
                 [door, file, "--blocks", rng.randint(1, MOST_BLOCKS), *(["--sanitize"] if door == "sim" else [])])
        attempt(seed, f"{words[2:]}\n{text}", lambda words=words: command(*words))


@pytest.mark.parametrize(("door", "ending"), [("opt", "mlir"), ("sim", "mlir"), ("check", "mlir"), ("run", "py"),
                                              ("compile", "py"), ("check", "py")])
def test_bytes(tmp_path: Path, door: str, ending: str) -> None:
    for seed in seeds(20):
        given = random_bytes(random.Random(seed))
        file = tmp_path / f"fuzzed.{ending}"
        file.write_bytes(given)

        def act(file: Path = file) -> None:
            if ending == "mlir":
                command(door, file)
                return
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                assert main([door, str(file)]) in (0, 1)  # Python itself reports scripts with invalid syntax

        attempt(seed, given, act)


def test_the_numbers_are_made_from_the_seed() -> None:
    assert kernel_text(random.Random(7)) == kernel_text(random.Random(7))
    assert damaged(CORPUS[0], random.Random(7)) == damaged(CORPUS[0], random.Random(7))
    assert np.isfinite(MEMORY)
