"""A pytest plugin whose option ``--tilelang-sanitize`` checks every kernel that a test runs for hazards.

A test with hazards (races, broken flags, results of unwritten bytes) fails, and its report shows them.

Without the option the plugin does nothing, and imports only pytest. It is active in every pytest where the package is
installed; ``-p tilelang_npu.pytest_sanitizer`` loads it where the package is only on the path.

``--tilelang-report FILE.json|FILE.sarif`` writes the findings of all tests. ``--tilelang-allow CODE:FILE:LINE=REASON``, or
lines of that form under ``tilelang_allow`` in the configuration file, allow a hazard: the test then passes. After a complete
run, an allowance that matched no hazard is an error. After a run of selected tests it is not, because the kernel with the
hazard was possibly not run.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tilelang_npu.errors import TileError
    from tilelang_npu.runtime.checks.allowances import Allowance
    from tilelang_npu.runtime.checks.sanitizer import Sanitizer
    from tilelang_npu.simulator.sanitizer.findings import Finding

__all__: list[str] = []

_SENT = "tilelang_sanitizer"
"""The key under which a worker of pytest-xdist sends its findings."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options ``--tilelang-sanitize``, ``--tilelang-report`` and ``--tilelang-allow``."""
    group = parser.getgroup("tilelang_npu")
    group.addoption("--tilelang-sanitize", action="store_true", help="fail tests whose kernels have races, broken flags or"
                                                                     " results of unwritten bytes")
    group.addoption("--tilelang-report", metavar="FILE", help="with --tilelang-sanitize: write the findings to FILE.json or"
                                                              " FILE.sarif")
    group.addoption("--tilelang-allow", metavar="CODE:FILE:LINE=REASON", action="append", default=[],
                    help="with --tilelang-sanitize: allow a hazard")
    parser.addini("tilelang_allow", "hazards that --tilelang-sanitize allows, one line CODE:FILE:LINE=REASON for each",
                  "linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Registers the hooks that check kernels if ``--tilelang-sanitize`` is given."""
    given, report = config.getoption("--tilelang-allow"), config.getoption("--tilelang-report")
    if not config.getoption("--tilelang-sanitize"):
        if given or report:
            raise pytest.UsageError("--tilelang-allow and --tilelang-report have no effect without --tilelang-sanitize")
        return
    from tilelang_npu.errors import TileError
    from tilelang_npu.runtime.checks.allowances import parse
    from tilelang_npu.runtime.checks.sanitizer import Sanitizer
    from tilelang_npu.runtime.reports.findings_file import check_name

    try:
        if report:
            check_name(report)
        session = Sanitizer([parse(option) for option in (*config.getini("tilelang_allow"), *given)])
    except TileError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(_Session(config, session), "tilelang_npu sanitizer session")


class _Session:
    """The hooks of a run with the sanitizer."""

    def __init__(self, config: pytest.Config, session: Sanitizer) -> None:
        self.config = config
        self.session = session
        self.findings: list[Finding] = []
        self.allowances: list[Allowance] = []
        self.used: set[Allowance] = set()
        self.idle: list[TileError] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Checks the kernels that a test's fixtures run."""
        yield from self._watched(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Checks the kernels that a test runs."""
        yield from self._watched(item)

    def _watched(self, item: pytest.Item) -> Iterator[None]:
        from tilelang_npu.runtime.checks.sanitizer import unallowed
        from tilelang_npu.runtime.jit.recording import record

        with record(sanitizer=self.session) as done:
            try:
                yield
            except BaseException:
                text = self._text(unallowed(finding for tally in done.tallies for finding in tally.findings))
                if text:
                    item.add_report_section("call", "sanitizer", text)
                raise
        text = self._text(unallowed(finding for tally in done.tallies for finding in tally.findings))
        if text:
            pytest.fail(text, pytrace=False)

    @staticmethod
    def _text(findings: list[Finding]) -> str:
        return "\n\n".join(map(str, findings))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """Adds the findings of a worker of pytest-xdist to those of the whole run."""
        sent = getattr(node, "workeroutput", {}).get(_SENT)
        if sent is not None:  # a worker that crashed sends nothing
            self._take(*pickle.loads(sent))

    def _take(self, findings: list[Finding], allowances: list[Allowance], used: set[Allowance]) -> None:
        self.findings += findings
        self.allowances += [one for one in allowances if one not in self.allowances]
        self.used |= used

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Writes the file of ``--tilelang-report``, and fails the run if an allowance matched no hazard."""
        from tilelang_npu.runtime.reports.findings_file import write_findings
        from tilelang_npu.simulator.sanitizer.findings import merged

        mine = (self.session.findings, *self.session.seen)
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[_SENT] = pickle.dumps(mine)
            return
        self._take(*mine)
        if _is_whole(self.config, session):
            self.idle = [one.idle() for one in self.allowances if one not in self.used]
        report = self.config.getoption("--tilelang-report")
        if report:
            write_findings(report, merged(self.findings), self.idle)
        if self.idle and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the hazards that were allowed, and the allowances that matched no hazard."""
        from tilelang_npu.errors import render
        from tilelang_npu.simulator.sanitizer.findings import merged

        passed = [finding for finding in merged(self.findings) if finding.allowed is not None]
        if passed or self.idle:
            terminalreporter.section("tilelang_npu sanitizer")
        for finding in passed:
            terminalreporter.line(f"allowed[{finding.code}]: {finding.location}: {finding.allowed}")
        for error in self.idle:
            terminalreporter.line(render(error))


def _is_whole(config: pytest.Config, session: pytest.Session) -> bool:
    """Whether every test of the named files has run."""
    chosen = any(config.getoption(name, None) for name in ("keyword", "markexpr", "lf", "maxfail", "deselect"))
    return not chosen and not any("::" in str(word) for word in config.args) and not session.shouldstop
