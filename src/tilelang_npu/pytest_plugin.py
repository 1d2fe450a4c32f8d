"""For pytest: ``-p tilelang_npu.pytest_plugin`` runs tests that were written for TileLang-Ascend on this package.

Before test files are imported, ``import tilelang`` is made to mean this package, and ``npu`` becomes a device of torch. With
``TILELANG_NPU_SURVEY`` set to a file, one line of JSON is appended to it for each test, for ``tilelang-npu survey``; tests that
have a line are not run again.

The plugin includes the options of :mod:`tilelang_npu.pytest_interpreter`, :mod:`tilelang_npu.pytest_sanitizer` and
:mod:`tilelang_npu.pytest_times`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilelang_npu import compat
from tilelang_npu.compat.outcomes import Case, of_error
from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.settings import environment

__all__: list[str] = []
pytest_plugins = ["tilelang_npu.pytest_interpreter", "tilelang_npu.pytest_sanitizer", "tilelang_npu.pytest_times"]

_LAST: dict[str, tuple[Any, ...]] = {}
"""The outcome so far of each test that is running."""
_IMPORTS: dict[str, BaseException] = {}
"""The exception of each file that could not be imported, by node."""
_MARKERS = ("smoke: a quick test of a suite",)
"""Markers that TileLang's suites use without declaring them; strict markers would refuse their files."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Installs the alias and the device before test files are imported."""
    compat.install()


def pytest_configure(config: pytest.Config) -> None:
    """Declares the markers."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_unconfigure() -> None:
    """Removes the alias and the device."""
    compat.uninstall()


def _survey() -> tuple[Path, Path] | None:
    report = environment.SURVEY.text()
    return (Path(report), Path(environment.SURVEY_ROOT.text())) if report else None


def _write(record: dict[str, Any]) -> None:
    survey = _survey()
    if survey is not None:
        with survey[0].open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _name(item_path: Path, nodeid: str, root: Path) -> str:
    file = str(item_path.relative_to(root)) if item_path.is_relative_to(root) else str(item_path)
    return "::".join([file, *nodeid.split("::")[1:]])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests that have an outcome in the survey's file."""
    survey = _survey()
    if survey is None:
        return
    report, root = survey
    known = set()
    if report.exists():
        known = {json.loads(line)["path"] for line in report.read_text(encoding="utf-8").splitlines()}
    done = [item for item in items if _name(item.path, item.nodeid, root) in known]
    items[:] = [item for item in items if item not in done]
    config.hook.pytest_deselected(items=done)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Forgets an earlier run of the test."""
    _LAST.pop(nodeid, None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Tells the survey which test begins."""
    survey = _survey()
    if survey is not None:
        survey[0].with_suffix(".running").write_text(_name(item.path, item.nodeid, survey[1]), encoding="utf-8")
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Notes the outcome of each phase of a test, and writes the worst one after the last phase."""
    outcome: Any = yield
    survey = _survey()
    if survey is None:
        return
    report = outcome.get_result()
    seconds = report.duration + _LAST.get(item.nodeid, ("", "", None, 0.0))[3]
    state = _LAST.get(item.nodeid, ("passed", "", None, 0.0))
    if report.outcome == "skipped":  # also a test that is expected to fail: it has not passed
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = f"expected to fail: {report.wasxfail}" if hasattr(report, "wasxfail") else reason
        state = ("unsupported", reason.removeprefix("Skipped: "), None, 0.0)
    elif report.failed and state[0] == "passed":
        error = call.excinfo.value if call.excinfo is not None else AssertionError(str(report.longrepr))
        state = (*of_error(error, survey[1], listeners.clock_us() > 0), 0.0)
    _LAST[item.nodeid] = (*state[:3], seconds)
    if report.when == "teardown":
        what, why, line, seconds = _LAST.pop(item.nodeid)
        _write(Case(_name(item.path, item.nodeid, survey[1]), what, why, line, seconds).record())


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Writes a file that cannot be imported as one case."""
    survey = _survey()
    if survey is None or not report.failed:
        return
    error = _IMPORTS.pop(report.nodeid, None) or AssertionError(str(report.longrepr))
    what, why, line = of_error(error, survey[1], kernels_ran=False)
    path = Path(report.fspath)
    path = path if path.is_absolute() else Path.cwd() / path
    _write(Case(_name(path, "", survey[1]), what, why, line).record())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Keeps the exception of a file that cannot be imported, of which the report has only the text."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.failed and report.result is not None:
        call = getattr(report, "call", None)
        if call is not None and call.excinfo is not None:
            error = call.excinfo.value
            _IMPORTS[report.nodeid] = error.__cause__ or error  # not on the report, which has to be serialisable
