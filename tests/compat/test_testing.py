"""``tilelang.testing``: a file's tests run, seeds, comparisons that let some elements differ, tests for other machines."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilelang_npu.compat import testing

FILE = """
from tilelang_npu.compat import testing

def test_good():
    pass

def test_other():
    assert {holds}

@testing.requires_cuda
def test_elsewhere():
    raise AssertionError("this machine has no CUDA")

@testing.requires_cuda_compute_version_le(8, 9)
def test_of_one_chip():
    raise AssertionError("nor such a chip")

if __name__ == "__main__":
    testing.main()
"""


@pytest.mark.parametrize(("holds", "code", "counts"), [
    ("True", 0, "2 passed, 2 skipped"), ("False", 1, "1 failed, 1 passed, 2 skipped")])
def test_main_runs_the_calling_file(tmp_path: Path, python: str, holds: str, code: int, counts: str) -> None:
    script = tmp_path / "test_of_user.py"
    script.write_text(FILE.format(holds=holds), encoding="utf-8")
    done = subprocess.run([python, str(script), "-p", "no:cacheprovider", "-c", "/dev/null", "-rs"], capture_output=True,
                          text=True, check=False, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert counts in done.stdout
    assert "needs CUDA; only an NPU is simulated" in done.stdout
    assert "needs CUDA compute capability le 8.9; only an NPU is simulated" in done.stdout


def regression_of_two(scale: float = 2.0) -> None:
    testing.process_func(lambda factor: 0.25 * factor, "regression_two", factor=scale)


def regression_of_one() -> None:
    testing.process_func(lambda: 0.5, "one")


def test_regressions_are_the_functions_of_that_name(capsys: pytest.CaptureFixture[str]) -> None:
    testing.regression()
    assert capsys.readouterr().out.splitlines() == ["regression_of_one", "one: 0.5", "regression_of_two", "two: 0.5"]
    testing.regression(prefixes=["regression_of_t"], verbose=False)
    assert capsys.readouterr().out.splitlines() == ["two: 0.5"]
    with pytest.raises(ValueError, match=r"idle returns 0\.0, which is not a time"):
        testing.process_func(lambda: 0.0, "idle")


def test_seeds_make_random_numbers_repeat() -> None:
    torch = pytest.importorskip("torch")
    before = np.random.get_state(), random.getstate(), torch.get_rng_state()  # noqa: NPY002  (the generator that scripts use)

    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))  # noqa: NPY002

    try:
        testing.set_random_seed(7)
        first = drawn()
        assert drawn() != first
        testing.set_random_seed(7)
        assert drawn() == first
        testing.set_random_seed()
        assert drawn() != first
    finally:
        np.random.set_state(before[0])  # noqa: NPY002
        random.setstate(before[1])
        torch.set_rng_state(before[2])


def test_comparison_lets_a_share_differ() -> None:
    a = np.ones(2000, np.float32)
    b = a.copy()
    b[:2] = 5
    assert testing.torch_assert_close(a, b)
    b[2] = 5
    with pytest.raises(AssertionError, match="3"):
        testing.torch_assert_close(a, b)
    assert testing.torch_assert_close(a, b, max_mismatched_ratio=0.01, base_name="a")
    assert testing.torch_assert_close(a, a * 1.009)
    with pytest.raises(AssertionError):
        testing.torch_assert_close(a, a * 1.02)
    with pytest.raises(AssertionError):
        testing.torch_assert_close(a, a[:-1])


@pytest.mark.parametrize("mark", [
    testing.requires_cuda, testing.requires_rocm, testing.requires_llvm, testing.requires_cdna, testing.requires_cuda_or_cdna,
    testing.requires_gfx950])
def test_tests_for_other_machines_are_skipped(mark) -> None:
    def test() -> None:
        raise AssertionError

    (found,) = mark(test).pytestmark
    assert found.name == "skip"
    assert found.kwargs["reason"].endswith("only an NPU is simulated")


def test_tests_that_need_a_package_are_skipped_without_it() -> None:
    def test() -> None:
        """Never runs."""

    assert testing.requires_package("json", "numpy.linalg")(test) is test
    (found,) = testing.requires_package("json", "no_such_package.part")(test).pytestmark
    assert found.kwargs["reason"] == "needs no_such_package.part"
