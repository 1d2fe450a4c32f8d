"""Fixtures for all tests: each test has its own kernel cache, environment and alias."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from tilelang_npu import compat
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.log import logger

ROOT = Path(__file__).resolve().parent.parent
ALONE = "TILELANG_TEST_ALONE"
"""The environment variable that is set in the process of a test that is marked ``alone``."""

settings.register_profile("untimed", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("untimed")
gc.disable()  # until all tests are there


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is marked ``alone`` in a new process."""
    if not pyfuncitem.get_closest_marker("alone") or os.environ.get(ALONE):
        return None
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", pyfuncitem.nodeid]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, ALONE: "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return True


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules and tests stay to the end: the collector, which went through them a fifth of the time, leaves them alone."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 10)
    gc.enable()


@pytest.fixture(autouse=True)
def _own_settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory,
                  monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test starts with the defaults and an empty kernel cache, and leaves the process as it found it."""
    for variable in environment.VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)
    monkeypatch.setenv(environment.CACHE_DIR.name, str(tmp_path_factory.mktemp("kernels")))
    monkeypatch.setenv(environment.CACHE_KEY.name, str(tmp_path_factory.getbasetemp() / "cache.key"))
    if request.node.get_closest_marker("shared"):  # also by the processes of pytest-xdist
        base = tmp_path_factory.getbasetemp()
        folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        monkeypatch.setenv(environment.CACHE_DIR.name, str(folder / "shared-kernels"))
        monkeypatch.setenv(environment.CACHE_KEY.name, str(folder / "shared.key"))
    elif not request.node.get_closest_marker("kept"):
        monkeypatch.setenv(environment.DISABLE_CACHE.name, "1")  # files of the cache would not be read
    monkeypatch.setattr(entries._State, "memory", {})
    monkeypatch.setattr(entries._State, "enabled", True)
    monkeypatch.setattr(entries._State, "directory", None)
    level = logger.level
    yield
    logger.setLevel(level)
    compat.uninstall()


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every run."""
    return np.random.default_rng(20240607)


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def python() -> str:
    """The interpreter that runs the tests."""
    return sys.executable


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also if the tests run as a background job of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
