"""Kernels in the cache: an entry is used only if compiling would give the same kernel, and all its reports are equal."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.cache.disk_key import disk_key
from tilelang_npu.runtime.jit.factory import Factory
from tilelang_npu.runtime.jit.jit_kernel import JITKernel
from tilelang_npu.runtime.kernel import stored_kernels
from tilelang_npu.simulator import Program

pytestmark = pytest.mark.kept

FACTOR = 2.0


@T.macro
def scaled(x, factor):
    for i in T.Parallel(64):
        x[i] = x[i] * factor


def _scale(rows, factor, tile=64):
    @T.prim_func
    def scale(A: T.Tensor((rows,), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(T.ceildiv(rows, tile), is_npu=True) as (block, _):
            x = T.alloc_shared((tile,), "float32")
            T.copy(A[block * tile], x)
            scaled(x, factor * FACTOR)
            T.copy(x, B[block * tile])

    return scale


def _factory() -> Factory[..., JITKernel]:
    return tilelang.jit(_scale, out_idx=[-1], target="npuir")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILELANG_DISABLE_CACHE", raising=False)
    monkeypatch.delenv("TILELANG_CLEAR_CACHE", raising=False)
    monkeypatch.setattr(entries._State, "directory", None)
    monkeypatch.setattr(entries._State, "enabled", True)
    return tmp_path


def _kept(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"*{entries.WHOLE_KERNEL}"))


def _is_restored(kernel: JITKernel) -> bool:
    """Whether a kernel has no IR: none was traced, and none read."""
    return "traced" not in vars(kernel._lowering) and isinstance(kernel._lowering._traced, bytes)


A = np.arange(200, dtype=np.float32)


def test_a_kernel_that_has_run_is_found_by_its_factory_made_anew_and_gives_the_same(directory: Path) -> None:
    first = _factory()(200, 3.0)
    assert not _is_restored(first)
    assert _kept(directory) == []
    result = first(A)
    np.testing.assert_array_equal(result, A * 6)
    assert len(_kept(directory)) == 1
    second = _factory()(200, 3.0)
    assert _is_restored(second)
    np.testing.assert_array_equal(second(A), result)
    assert second.last_launch.summary() == first.last_launch.summary()
    assert second.last_launch.to_dict() == first.last_launch.to_dict()
    assert _is_restored(second)
    assert len(_kept(directory)) == 1


MANY = np.arange(1 << 18, dtype=np.float32)
"""A kernel of 64 blocks that are batched from the second launch on."""


def _of_many_blocks() -> JITKernel:
    return _factory()(MANY.size, 3.0, 4096)


def _reports(kernel: JITKernel) -> tuple[bytes, str, dict[str, Any], float]:
    """Returns the reports of a launch."""
    result = kernel(MANY)
    expected = MANY.copy().reshape(64, -1)
    expected[:, :64] *= 6
    np.testing.assert_array_equal(result, expected.reshape(-1))
    return result.tobytes(), kernel.last_launch.summary(), kernel.last_launch.to_dict(), kernel.trace().time_us


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_blocks_of_a_kernel_that_was_kept_run_as_one_without_its_ir(
        jobs: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_JOBS", jobs)
    first = _of_many_blocks()
    reports = _reports(first)
    (entry,) = _kept(directory)
    without = entry.read_bytes()
    assert _reports(first) == reports
    whole = entry.read_bytes()
    assert len(whole) > len(without)
    second = _of_many_blocks()
    assert second._store is None
    assert [_reports(second) for _ in range(3)] == [reports] * 3
    assert second.program._planned[1] is not None
    assert "module" not in vars(second.program)
    assert _is_restored(second)
    assert entry.read_bytes() == whole


def test_what_many_blocks_take_is_kept_by_whom_they_run_with_first(directory: Path) -> None:
    reports = _reports(_of_many_blocks())
    second = _of_many_blocks()  # as in another process; only the data for launching were stored
    assert [_reports(second) for _ in range(3)] == [reports] * 3
    assert "module" in vars(second.program)
    third = _of_many_blocks()
    assert [_reports(third) for _ in range(3)] == [reports] * 3
    assert "module" not in vars(third.program)


def test_a_kernel_is_kept_though_what_many_blocks_take_cannot_be(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "forms", lambda program: {"batched": lambda: None})
    reports = [_reports(_of_many_blocks()) for _ in range(2)]
    first, second = _of_many_blocks(), _of_many_blocks()
    assert [_reports(first) for _ in range(3)] == [reports[0]] * 3
    assert [_reports(second) for _ in range(3)] == [reports[0]] * 3
    assert _is_restored(second)


SAID: dict[str, Callable[[JITKernel], object]] = {
    "mlir": lambda kernel: kernel.mlir(locations=True),
    "tile": lambda kernel: kernel.mlir("tile", locations=True),
    "annotated": lambda kernel: kernel.mlir(annotate=True),
    "stages": lambda kernel: kernel.stages(),
    "waits": lambda kernel: str(kernel.sync_report()),
    "memory": lambda kernel: str(kernel.memory_report()),
    "explanation": lambda kernel: str(kernel.explain()),
    "profile": lambda kernel: str(kernel.profile()),
    "hazards": lambda kernel: [str(hazard) for hazard in kernel.last_launch.hazards],
    "trace": lambda kernel: kernel.trace(A, np.empty_like(A)).time_us if not kernel.out_idx else kernel.trace().time_us,
    "source": lambda kernel: kernel.program.source(),
    "made by": lambda kernel: kernel.made_by.args if kernel.made_by else None,
    "late": lambda kernel: kernel.program.run([A.copy(), A.copy()], blocks=4, schedule="late").blocks[0].streams,
}


@pytest.mark.parametrize("what", SAID)
def test_a_kernel_that_was_kept_says_what_the_compiled_one_says(what: str, directory: Path) -> None:
    first = _factory()(200, 3.0)
    first(A)
    second = _factory()(200, 3.0)
    assert _is_restored(second)
    second(A)
    assert SAID[what](second) == SAID[what](first)


def test_an_error_of_a_kept_kernel_is_at_its_line(directory: Path) -> None:
    def taken():
        @T.prim_func
        def take(P: T.Tensor((1,), "int32"), X: T.Tensor((64,), "float32"), Y: T.Tensor((32,), "float32")):
            with T.Kernel(1, is_npu=True) as (block, _):
                x = T.alloc_shared((32,), "float32")
                T.copy(X[32 // P[0]], x)
                T.copy(x, Y[0])

        return take

    def failure(kernel: JITKernel) -> str:
        kernel(np.array([2], np.int32), np.zeros(64, np.float32), np.zeros(32, np.float32))
        with pytest.raises(tilelang.TileError) as found:
            kernel(np.array([0], np.int32), np.zeros(64, np.float32), np.zeros(32, np.float32))
        return f"{found.value.code} {found.value.message} {found.value.location}"

    kernels, reports = [], []
    for _ in range(2):
        kernels.append(tilelang.jit(taken, target="npuir")())
        reports.append(failure(kernels[-1]))
    assert list(map(_is_restored, kernels)) == [False, True]
    assert reports[0] == reports[1]
    assert "T509" in reports[0]
    assert Path(__file__).name in reports[0]


# -- the key ----------------------------------------------------------------------------------------------------------


def _key(rows: Any = 200, factor: Any = 3.0, *, out_idx: Any = (-1,), made: Any = _scale, **settings: Any) -> str:
    factory = tilelang.jit(made, out_idx=list(out_idx), target="npuir", **settings)
    return stored_kernels.key_of(made(rows, factor), factory.settings)


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], str]] = {
    "a size": lambda _: _key(rows=201),
    "a number of the closure": lambda _: _key(factor=3.5),
    "its type": lambda _: _key(factor=3),
    "an output": lambda _: _key(out_idx=(0,)),
    "a chip": lambda _: _key(chip="Ascend910B1"),
    "a switch": lambda _: _key(pass_configs={"tl.disable": ["banks"]}),
    "a global": lambda patch: (patch.setattr(sys.modules[__name__], "FACTOR", 3.0), _key())[1],
    "a macro": lambda patch: (patch.setattr(sys.modules[__name__], "scaled", T.macro(_other)), _key())[1],
    "an optimisation": lambda patch: (patch.setenv("TILELANG_NPU_WITHOUT", "banks"), _key())[1],
    "NumPy": lambda patch: (patch.setattr(np, "__version__", "0"), _key())[1],
    "Python": lambda patch: (patch.setattr(sys, "version", "0"), _key())[1],
    "this package": lambda patch: (patch.setattr(entries, "versions", lambda: ["0"]), _key())[1],
}


def _other(x, factor):
    for i in T.Parallel(64):
        x[i] = x[i] + factor


@pytest.mark.parametrize("what", CHANGES)
def test_the_key_is_another_one_where_the_kernel_may_be(what: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _key()
    assert before
    assert before == _key()
    assert CHANGES[what](monkeypatch) not in ("", before)


def _applied(rows, change):
    @T.prim_func
    def apply(A: T.Tensor((rows,), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_shared((rows,), "float32")
            T.copy(A, x)
            for i in T.Parallel(rows):
                x[i] = change(x[i])
            T.copy(x, B)

    return apply


def test_two_lambdas_of_one_line_are_two_kernels_for_the_next_process_too(directory: Path) -> None:
    changes = {"twice": lambda x: x * 2, "less": lambda x: x - 1, "three": lambda x: x * 3, "double": lambda x: x * 2}
    keys = [_key(factor=change, made=_applied) for change in changes.values()]
    assert "" not in keys
    assert len(set(keys)) == len(keys)
    for _ in range(2):  # compiled, and then found
        for change in changes.values():
            kernel = tilelang.jit(_applied, out_idx=[-1], target="npuir")(64, change)
            np.testing.assert_array_equal(kernel(A[:64]), change(A[:64]))


def _of_environment(rows, factor):
    @T.prim_func
    def read(A: T.Tensor((rows,), "float32")):
        with T.Kernel(int(os.environ.get("BLOCKS", "1")), is_npu=True) as (block, _):
            T.copy(T.alloc_shared((64,), "float32"), A[0])

    return read


def _of_time(rows, factor):
    @T.prim_func
    def read(A: T.Tensor((rows,), "float32")):
        with T.Kernel(int(time.time()), is_npu=True) as (block, _):
            T.copy(T.alloc_shared((64,), "float32"), A[0])

    return read


def _of_chance(rows, factor):
    @T.prim_func
    def read(A: T.Tensor((rows,), "float32")):
        with T.Kernel(int(np.random.rand()), is_npu=True) as (block, _):  # noqa: NPY002  (a kernel that depends on the global generator is the case)
            T.copy(T.alloc_shared((64,), "float32"), A[0])

    return read


def _of_input(rows, factor):
    @T.prim_func
    def read(A: T.Tensor((rows,), "float32")):
        with T.Kernel(int(input()), is_npu=True) as (block, _):
            T.copy(T.alloc_shared((64,), "float32"), A[0])

    return read


def _of_import(rows, factor):
    @T.prim_func
    def read(A: T.Tensor((rows,), "float32")):
        import secrets

        with T.Kernel(secrets.randbelow(9), is_npu=True) as (block, _):
            T.copy(T.alloc_shared((64,), "float32"), A[0])

    return read


def _chance() -> int:
    return random.randint(1, 4)


def _of_function(rows, factor):
    @T.prim_func
    def read(A: T.Tensor((rows,), "float32")):
        with T.Kernel(_chance(), is_npu=True) as (block, _):
            T.copy(T.alloc_shared((64,), "float32"), A[0])

    return read


@pytest.mark.parametrize("made", [_of_environment, _of_time, _of_chance, _of_input, _of_import, _of_function])
def test_what_reads_from_outside_is_not_kept(made: Callable[..., Any], directory: Path) -> None:
    assert _key(made=made) == ""


def test_what_computes_with_pure_modules_is_kept(directory: Path) -> None:
    def made(rows: Any, factor: Any) -> Any:
        @T.prim_func
        def read(A: T.Tensor((rows,), "float32")):
            with T.Kernel(math.gcd(rows, 8), is_npu=True) as (block, _):
                x = T.alloc_shared((64,), "float32")
                T.clear(x)
                T.copy(x, A[block * np.int32(8)])

        return read

    assert _key(made=made)


def test_a_function_whose_file_says_something_else_by_now_is_not_kept(tmp_path: Path, directory: Path) -> None:
    file = tmp_path / "kernels.py"
    text = textwrap.dedent("""
        import tilelang_npu.language as T

        def made():
            @T.prim_func
            def kernel(A: T.Tensor((64,), "float32")):
                with T.Kernel(1, is_npu=True) as (block, _):
                    x = T.alloc_shared((64,), "float32")
                    T.clear(x)
                    T.copy(x, A[0])
            return kernel
    """)
    file.write_text(text)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, str(file), "exec", dont_inherit=True), names)
    assert disk_key(names["made"]())
    file.write_text(text.replace("T.clear(x)", "T.fill(x, 1.0)"))
    with pytest.raises(TypeError, match="does not contain the source of kernel"):
        disk_key(names["made"]())


# -- the entries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spoil", [
    lambda whole: b"", lambda whole: whole[:40], lambda whole: whole[:-1], lambda whole: whole[:40] + b"xyz" + whole[43:],
    lambda whole: b"x" * len(whole), lambda whole: whole + b"x"])
def test_a_broken_entry_is_compiled_again_and_mended(spoil: Callable[[bytes], bytes], directory: Path) -> None:
    _factory()(200, 3.0)(A)
    (entry,) = _kept(directory)
    whole = entry.read_bytes()
    entry.write_bytes(spoil(whole))
    kernel = _factory()(200, 3.0)
    assert not _is_restored(kernel)
    np.testing.assert_array_equal(kernel(A), A * 6)
    assert _is_restored(_factory()(200, 3.0))


def test_without_a_cache_nothing_is_kept(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    _factory()(200, 3.0)(A)
    assert _kept(directory) == []


def test_clearing_the_cache_takes_kept_kernels_too(directory: Path) -> None:
    _factory()(200, 3.0)(A)
    assert _kept(directory)
    tilelang.cache.clear_cache()
    assert _kept(directory) == []


def test_a_kernel_that_is_kept_warns_as_the_compiled_one(directory: Path) -> None:
    def made():
        @T.prim_func
        def strip(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
            with T.Kernel(3, is_npu=True) as (block, _):
                x = T.alloc_shared((32,), "float32")
                T.copy(A[block * 32], x)
                T.copy(x, B[block * 32])

        return strip

    reports = []
    for _ in range(2):
        kernel = tilelang.jit(made, target="npuir")()
        with pytest.warns(tilelang.TileWarning) as found:
            kernel(A[:100].copy(), np.zeros(100, np.float32))
        reports.append([str(one.message) for one in found])
    assert _is_restored(kernel)
    assert reports[0] == reports[1] != []


@pytest.mark.parametrize(("example", "options"), [("gemm", []), ("softmax", []), ("gemm", ["--sanitize"])])
def test_a_script_that_ran_before_runs_again_without_the_ir_framework(example: str, options: list[str], root: Path,
                                                                      tmp_path: Path) -> None:
    program = ("import sys; from tilelang_npu.cli import main;"
               f"code = main(['run', {str(root / 'examples' / (example + '.py'))!r}, *{options}]);"
               "print('loaded', [m for m in sys.modules if m.startswith(('xdsl.', 'tilelang_npu.transforms.tile',"
               " 'tilelang_npu.simulator.codegen.python_emitter', 'tilelang_npu.frontend.tracing'))]); sys.exit(code)")
    reports = [subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                           env={**os.environ, "TILELANG_CACHE_DIR": str(tmp_path)}).stdout for _ in range(2)]
    first, second = (text.partition("\nloaded ") for text in reports)
    assert second[0] == first[0]
    assert "PASS" in first[0]
    assert first[2].strip() != "[]"
    assert second[2].strip() == "[]"


def test_a_script_that_calls_twice_does_so_again_without_the_ir_framework(tmp_path: Path) -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    kernel = text[text.index("@T.macro"):text.index("def _factory")].replace("T.Parallel(64)", "T.Parallel(4096)")
    before = "import sys, numpy as np, tilelang_npu as tilelang, tilelang_npu.language as T\nFACTOR = 2.0\n"
    after = textwrap.dedent("""
        A = np.arange(1 << 18, dtype=np.float32)
        made = tilelang.jit(_scale, out_idx=[-1], target="npuir")(A.size, 3.0, 4096)
        for _ in range(3):
            np.testing.assert_array_equal(made(A), A * 6)
        print(made.program._planned[1] is not None, any(name.startswith("xdsl.") for name in sys.modules))
    """)
    script = tmp_path / "twice.py"
    script.write_text(before + kernel + after, encoding="utf-8")
    reports = [subprocess.run([sys.executable, script], check=True, capture_output=True, text=True,
                           env={**os.environ, "TILELANG_CACHE_DIR": str(tmp_path)}).stdout.strip() for _ in range(2)]
    assert reports == ["True True", "True False"]
