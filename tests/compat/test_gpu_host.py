"""Functions of the host that scripts for GPUs call: which target there is, and decorators for a GPU's compiler."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tilelang_npu import compat
from tilelang_npu.runtime.settings import environment


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.GPU.name, raising=False)
    compat.install()


def test_the_target_is_the_npu_or_cuda_where_that_means_it(monkeypatch: pytest.MonkeyPatch) -> None:
    target: Any = import_module("tilelang.utils.target")
    assert target.determine_target() == "npu"
    assert not target.check_cuda_availability()
    monkeypatch.setenv(environment.GPU.name, "9.0")
    found = target.determine_target("auto", return_object=True)
    assert found.kind.name == "cuda"
    assert target.check_cuda_availability()
    assert target.determine_target("c") == "c"
    assert not target.check_hip_availability()


def test_decorators_for_the_compiler_of_a_gpu_return_the_function() -> None:
    callback: Any = import_module("tilelang.engine.callback")
    transform: Any = import_module("tilelang.transform")

    def function() -> int:
        return 3

    assert callback.register_cuda_postproc_callback(function) is function
    assert callback.register_cuda_postproc_callback(override=True)(function) is function
    assert transform.simplify_prim_func(function) is function


def test_output_is_not_suppressed(capsys: pytest.CaptureFixture[str]) -> None:
    bench: Any = import_module("tilelang.profiler.bench")
    with bench.suppress_stdout_stderr():
        print("seen")
    assert capsys.readouterr().out == "seen\n"
