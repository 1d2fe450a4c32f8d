"""The outcome of a run, its reason and the user's line, from the output and the exception."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilelang_npu.compat.outcomes import Case, of_error, of_output
from tilelang_npu.errors import Location, TileError


def raised(folder: Path, text: str) -> BaseException:
    """Returns the exception that ends a user's script."""
    script = folder / "script.py"
    script.write_text(text, encoding="utf-8")
    try:
        exec(compile(text, str(script), "exec"), {"np": np})
    except BaseException as error:  # noqa: BLE001  (whatever the script ends with)
        return error
    raise AssertionError("the script ended well")


def test_a_failed_assertion_is_wrong_once_a_kernel_ran(tmp_path: Path) -> None:
    error = raised(tmp_path, "x = 1\nassert x == 2, 'x is 1'\n")
    assert of_error(error, tmp_path, True) == ("wrong", "AssertionError: x is 1", "script.py:2: assert x == 2, 'x is 1'")
    assert of_error(error, tmp_path, False)[0] == "refused"


def test_the_figures_of_a_comparison_are_the_reason(tmp_path: Path) -> None:
    error = raised(tmp_path, "np.testing.assert_allclose([1.0, 2.0], [1.0, 2.5])")
    outcome, reason, line = of_error(error, tmp_path, True)
    assert (outcome, line) == ("wrong", "script.py:1: np.testing.assert_allclose([1.0, 2.0], [1.0, 2.5])")
    assert reason.startswith("Mismatched elements: 1 / 2 (50%)")
    assert of_error(AssertionError("Tensor-likes are not close!\n\nMismatched elements: 3 / 9"), tmp_path, True)[1] == (
        "Mismatched elements: 3 / 9")


def test_a_diagnostic_is_refused_at_its_own_line(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text("a\nT.copy(A, b)\n", encoding="utf-8")
    error = TileError("shapes differ", code="T131", location=Location(str(script), 2, 1))
    assert of_error(error, tmp_path, True) == ("refused", "T131: shapes differ", "kernel.py:2: T.copy(A, b)")
    elsewhere = TileError("shapes differ", code="T131", location=Location("/somewhere/else.py", 7))
    assert of_error(elsewhere, tmp_path, True)[2] == "else.py:7: "
    assert of_error(TileError("no torch", code="T702"), tmp_path, False) == ("unsupported", "T702: no torch", None)


def test_a_diagnostic_without_a_line_takes_the_users(tmp_path: Path) -> None:
    error = raised(tmp_path, "from tilelang_npu.errors import TileError\nraise TileError('bad', code='T401')\n")
    assert of_error(error, tmp_path, True) == ("refused", "T401: bad", "script.py:2: raise TileError('bad', code='T401')")


@pytest.mark.parametrize(("statement", "outcome", "reason"), [
    ("import no_such_package", "unsupported", "ModuleNotFoundError: No module named 'no_such_package'"),
    ("open('/no/such/file')", "unsupported", "FileNotFoundError: "),
    ("raise MemoryError('8 TB')", "unsupported", "MemoryError: 8 TB"),
    ("raise RuntimeError('Torch not compiled with CUDA enabled')", "unsupported", "it asks for CUDA; `tilelang-npu survey"),
    ("raise RuntimeError('CUDA error: out of memory')", "unsupported", "RuntimeError: CUDA error"),
    ("raise SystemExit(2)", "unsupported", "it needs arguments on its command line"),
    ("raise SystemExit(1)", "refused", "SystemExit: 1"),
    ("{}['key']", "refused", "KeyError: 'key'"),
    ("raise ValueError('\\n\\n  first line  \\nsecond')", "refused", "ValueError: first line"),
])
def test_other_ends(tmp_path: Path, statement: str, outcome: str, reason: str) -> None:
    found = of_error(raised(tmp_path, statement), tmp_path, True)
    assert found[0] == outcome
    assert found[1].startswith(reason)
    assert found[2] == f"script.py:1: {statement}"


def test_long_reasons_are_cut() -> None:
    reason = of_error(ValueError("x" * 500), Path("/nowhere"), True)[1]
    assert len(reason) == 200
    assert reason.endswith("…")


@pytest.mark.parametrize(("text", "ran", "held", "is_program", "expected"), [
    ("Kernel Output Match!", True, 0, True, ("passed", "")),
    ("all tests passed", True, 0, True, ("passed", "")),
    ("PASS", True, 0, True, ("passed", "")),
    ("done", True, 3, True, ("passed", "")),
    ("passenger", True, 0, True, ("unsupported", "it checks nothing: neither an assertion nor a printed verdict")),
    ("PASS", False, 0, True, ("unsupported", "no kernel ran")),
    ("", False, 0, False, ("unsupported", "a module for other scripts: nothing runs")),
    ("PASSED\n  row 3 MISMATCH here\n", True, 2, True, ("wrong", "it printed: row 3 MISMATCH here")),
    ("the outputs do not match", False, 0, True, ("wrong", "it printed: the outputs do not match")),
])
def test_what_was_printed(text: str, ran: bool, held: int, is_program: bool, expected: tuple[str, str]) -> None:
    assert of_output(text, "", ran, held, is_program) == expected


@pytest.mark.parametrize(("complained", "expected"), [
    ("UserWarning: input's size at dim=1 does not match num_features. You can silence this warning by not passing\n",
     ("passed", "")),
    ("onnx: Mismatch of versions: MISMATCH\nW1122 FAILED to open /dev/davinci0 \u274c\n", ("passed", "")),
    ("Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: no\n",
     ("refused", "it printed a traceback: ValueError: no")),
])
def test_a_librarys_warning_is_no_verdict(complained: str, expected: tuple[str, str]) -> None:
    assert of_output("Test passed!\n", complained, kernels_ran=True, held=0, is_program=True) == expected
    silent = of_output("", complained + "PASSED\n", kernels_ran=True, held=0, is_program=True)[0]
    assert silent == ("refused" if expected[0] == "refused" else "unsupported")


def test_the_record_of_a_case() -> None:
    case = Case("a.py::test", "wrong", "numbers differ", "a.py:3: assert", 1.23456)
    assert case.record() == {"path": "a.py::test", "outcome": "wrong", "reason": "numbers differ", "line": "a.py:3: assert",
                             "seconds": 1.23}
