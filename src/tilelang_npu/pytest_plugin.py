"""A pytest plugin that runs tests written for TileLang-Ascend on this package: ``-p tilelang_npu.pytest_plugin``.

Before test files are imported, the plugin makes ``import tilelang`` import this package, and adds the device ``npu`` to torch.
If ``TILELANG_NPU_SURVEY`` names a file, the plugin appends one line of JSON to the file for each test, for ``tilelang-npu
survey``, and does not run tests again that have a line in the file.

The plugin includes :mod:`tilelang_npu.pytest_budget`, :mod:`tilelang_npu.pytest_gpu`, :mod:`tilelang_npu.pytest_interpreter`,
:mod:`tilelang_npu.pytest_load`, :mod:`tilelang_npu.pytest_sanitizer` and :mod:`tilelang_npu.pytest_times`.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path

import pluggy
import pytest

from tilelang_npu import compat
from tilelang_npu.compat.outcomes import EXPECTED, Case, CaseRecord, Outcome, of_error
from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.settings import environment

__all__: list[str] = []
pytest_plugins = ["tilelang_npu.pytest_budget", "tilelang_npu.pytest_gpu", "tilelang_npu.pytest_interpreter",
                  "tilelang_npu.pytest_load", "tilelang_npu.pytest_sanitizer", "tilelang_npu.pytest_times"]

_LAST: dict[str, tuple[Outcome, str, str | None, float]] = {}
"""The outcome so far of each test that is running."""
_IMPORTS: dict[str, BaseException] = {}
"""The exception of each file that could not be imported, by node."""
_MARKERS = ("smoke: a quick test of a suite",)
"""Markers that TileLang's suites use without declaring them; strict markers would refuse their files."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Makes ``import tilelang`` import this package and adds the device ``npu`` to torch, before test files are imported."""
    compat.install()


def pytest_configure(config: pytest.Config) -> None:
    """Declares the pytest markers that the test suites of TileLang use without declaring them."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_unconfigure() -> None:
    """Undoes :func:`pytest_load_initial_conftests`: removes the module alias ``tilelang`` and the torch device ``npu``."""
    compat.uninstall()


def _survey() -> tuple[Path, Path] | None:
    report = environment.SURVEY.text()
    return (Path(report), Path(environment.SURVEY_ROOT.text())) if report else None


def _write(record: CaseRecord) -> None:
    survey = _survey()
    if survey is not None:
        with survey[0].open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _name(item_path: Path, nodeid: str, root: Path) -> str:
    file = str(item_path.relative_to(root)) if item_path.is_relative_to(root) else str(item_path)
    return "::".join([file, *nodeid.split("::")[1:]])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that have a line in the file of ``TILELANG_NPU_SURVEY``."""
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
    """Discards the outcome of an earlier run of the test in this process."""
    _LAST.pop(nodeid, None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Writes the test's name to ``FILE.running``, so that the survey knows which test ran if the process crashes."""
    survey = _survey()
    if survey is not None:
        survey[0].with_suffix(".running").write_text(_name(item.path, item.nodeid, survey[1]), encoding="utf-8")
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]
                              ) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Records the outcome of each phase of a test (setup, call, teardown), and writes the test's line after the teardown.

    The line has the first failure or skip, and the duration of all phases.
    """
    outcome = yield
    survey = _survey()
    if survey is None:
        return
    report = outcome.get_result()
    seconds = report.duration + _LAST.get(item.nodeid, ("", "", None, 0.0))[3]
    state = _LAST.get(item.nodeid, ("passed", "", None, 0.0))
    if report.outcome == "skipped":  # also a test that is expected to fail: it has not passed
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = EXPECTED + report.wasxfail if hasattr(report, "wasxfail") else reason
        state = ("unsupported", reason.removeprefix("Skipped: "), None, 0.0)
    elif report.failed and state[0] == "passed":
        error = call.excinfo.value if call.excinfo is not None else AssertionError(str(report.longrepr))
        state = (*of_error(error, survey[1], listeners.clock_us() > 0), 0.0)
    _LAST[item.nodeid] = (*state[:3], seconds)
    if report.when == "teardown":
        what, why, line, seconds = _LAST.pop(item.nodeid)
        _write(Case(_name(item.path, item.nodeid, survey[1]), what, why, line, seconds).record())


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Writes one line to the survey's file for a test file that cannot be imported."""
    survey = _survey()
    if survey is None or not report.failed:
        return
    error = _IMPORTS.pop(report.nodeid, None) or AssertionError(str(report.longrepr))
    what, why, line = of_error(error, survey[1], kernels_ran=False)
    path = Path(report.fspath)
    path = path if path.is_absolute() else Path.cwd() / path
    _write(Case(_name(path, "", survey[1]), what, why, line).record())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pluggy.Result[pytest.CollectReport], None]:
    """Stores the exception of a test file that cannot be imported, as pytest's report contains only the exception's text."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and report.result is not None:
        call = getattr(report, "call", None)
        if call is not None and call.excinfo is not None:
            error = call.excinfo.value
            _IMPORTS[report.nodeid] = error.__cause__ or error  # not on the report, which has to be serialisable
