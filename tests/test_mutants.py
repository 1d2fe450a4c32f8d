"""benchmarks/mutants.py: which expressions it changes and to what, its map of tests, and when it ends at once."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).resolve().parent.parent / "benchmarks" / "mutants.py"
SOURCE = '''\
LIMIT = 3


def count(a: int | None = None, b: int = 2) -> int:
    """Text with 1 < 2."""
    if not a or a <= b:
        raise ValueError(f"{a + 1} is too small")
    text = "a" + str(b)
    return refuse(7) if text in ("x",) else a * b
'''
REPORT = """\
<testsuites><testsuite>
<testcase file="tests/test_a.py" name="test_passes" time="0.5"/>
<testcase file="tests/test_a.py" name="test_fails" time="0.1"><failure message="no">no</failure></testcase>
<testcase file="tests/test_a.py" name="test_is_skipped" time="0.1"><skipped message="no"/></testcase>
</testsuite></testsuites>
"""


@pytest.fixture(name="benchmark")
def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_of_mutants", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for the annotations of its dataclass
    spec.loader.exec_module(module)
    return module


def test_expressions_of_functions_are_changed_and_nothing_else(benchmark: ModuleType, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "module.py"
    file.write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(benchmark, "SOURCE", tmp_path)
    changes = set()
    for mutant in benchmark.mutants(file):
        text = SOURCE[:mutant.start] + mutant.after + SOURCE[mutant.end:]
        compile(text, "module.py", "exec")
        old, new = SOURCE.splitlines()[mutant.line - 1], text.splitlines()[mutant.line - 1]
        assert SOURCE.replace(old, new) == text
        changes.add(new.strip())
    assert changes == {"if (a) or a <= b:", "if not a and a <= b:", "if not a or a < b:",
                       'return refuse(7) if text not in ("x",) else a * b', 'return refuse(7) if text in ("x",) else a + b'}


def test_a_recorded_expression_has_its_value(benchmark: ModuleType) -> None:
    text = "a < b or not c"
    noted: list[int] = []
    recording = benchmark._noting(text, {(0, 5): [1, 2], (9, 14): [3], (0, 14): [4]})
    names: Mapping[str, object] = {"_note": noted.append, "a": 2, "b": 1, "c": False}
    assert eval(recording, dict(names)) is True
    assert noted == [4, 1, 2, 3]


def test_only_tests_that_pass_can_kill(benchmark: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "times.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert benchmark._times(report) == {"tests/test_a.py::test_passes": 0.5}


def test_a_test_that_fails_without_a_mutant_ends_the_run(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "_copy", lambda place: None)
    monkeypatch.setattr(benchmark, "_by_tests", lambda place, tests, seconds: f"exit code 3: {tests[0][1]}")
    with pytest.raises(RuntimeError, match="test_b fails without a mutant: exit code 3"):
        benchmark._require_a_passing_test({"first": [(2.0, "test_a")], "second": [(1.0, "test_b")], "third": []})
