"""A pytest plugin for modelled times: baselines that tests are held to, comparisons of two baselines, properties for JUnit.

The times are modelled and the same on every machine, so a file of them can be committed. ``--tilelang-times`` fails tests whose
kernels take longer than the baseline file says: ``tilelang_times.json`` in pytest's root folder, or the path
``tilelang_times_file`` of pytest's configuration. ``--tilelang-times-update`` writes the file. A kernel can take up to 2
percent longer, or ``--tilelang-times-tolerance PERCENT``, or ``tilelang_times_tolerance`` of pytest's configuration.
``--tilelang-times-json FILE`` writes the times of this run to a file of its own.

``--tilelang-times-compare OLD NEW`` runs no tests: it prints a comparison of two such files as Markdown, also writes it to each
``--tilelang-times-report FILE.md|.json|.html``, and ends with exit code 1 if a kernel became slower.

With ``--junitxml``, each test that launches kernels has properties with the time, the bottleneck and the on-chip memory of each
of its kernels.

A test with the fixture ``npu_chip`` runs once for one chip of each family, or once for each chip that ``--tilelang-chip NAME``
names. Without these options and this fixture the plugin does nothing, and imports only pytest. All of it works with the workers
of pytest-xdist.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import pytest

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.kernel_figures import KernelFigures

__all__: list[str] = []

_OPTION = "--tilelang-times"


class _Measured(TypedDict):
    """What a passing test has measured, as an attribute of its report, which pytest-xdist sends from a worker.

    Attributes:
        times: the microseconds of each kernel.
        new: the kernels that the baseline does not have.
        gone: the kernels of the baseline that did not run.
        faster: a line for each kernel that is faster than the baseline.
    """

    times: dict[str, float]
    new: list[str]
    gone: list[str]
    faster: list[str]


_MEASURED = pytest.StashKey[_Measured]()
_SENT = "tilelang_npu_measured"
"""The attribute of a test's report with what the test has measured."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options ``--tilelang-times...`` and ``--tilelang-chip``, and their configuration."""
    group = parser.getgroup("tilelang_npu")
    group.addoption(_OPTION, action="store_true", help="fail tests whose kernels take longer than their baseline")
    group.addoption(f"{_OPTION}-update", action="store_true", help="write the baseline of the tests that run")
    group.addoption(f"{_OPTION}-json", metavar="FILE", help="write the times of the tests that run to FILE")
    group.addoption(f"{_OPTION}-tolerance", metavar="PERCENT",
                    help="by how many percent a kernel may take longer (default: tilelang_times_tolerance)")
    group.addoption(f"{_OPTION}-compare", metavar=("OLD", "NEW"), nargs=2,
                    help="compare two files of times and run no tests; the exit code is 1 if a kernel became slower")
    group.addoption(f"{_OPTION}-report", metavar="FILE", action="append", default=[],
                    help=f"with {_OPTION}-compare: write the comparison to FILE.md, FILE.json or FILE.html; may be given"
                         " several times")
    group.addoption("--tilelang-chip", metavar="NAME", action="append", default=[],
                    help="chip for tests with the fixture npu_chip (default: one of each family)")
    parser.addini("tilelang_times_file", f"the baseline of {_OPTION}", default="tilelang_times.json")
    parser.addini("tilelang_times_tolerance", "by how many percent a kernel may take longer", default="2")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the hooks that measure kernels if an option needs them."""
    if config.getoption(f"{_OPTION}-report") and not config.getoption(f"{_OPTION}-compare"):
        raise pytest.UsageError(f"{_OPTION}-report has no effect without {_OPTION}-compare")
    wanted = (_OPTION, f"{_OPTION}-update", f"{_OPTION}-json", "xmlpath")  # the last is that of --junitxml
    if any(config.getoption(name, None) for name in wanted):
        config.pluginmanager.register(_TimesSession(config), "tilelang_npu times")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Compares two files of times, in place of a run of tests, if ``--tilelang-times-compare`` is given."""
    given = config.getoption(f"{_OPTION}-compare")
    if not given:
        return None
    from tilelang_npu.runtime.reports.times_comparison import check_report_name, compare_times, read_times
    from tilelang_npu.runtime.settings.file_writing import write_whole

    reports = config.getoption(f"{_OPTION}-report")
    try:
        for path in reports:
            check_report_name(path)
        old, new = (read_times(Path(path)) for path in given)
        compared = compare_times(old, new, _tolerance(config), (given[0], given[1]))
        for path in reports:
            write_whole(path, compared.text_for(path))
    except OSError as error:
        raise pytest.UsageError(f"{_OPTION}-compare: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise pytest.UsageError(f"{_OPTION}-compare: {error}") from None
    print(compared.markdown(), end="")  # noqa: T201  (the option asks for this output)
    return int(pytest.ExitCode.TESTS_FAILED if compared.has_slower else pytest.ExitCode.OK)


def _tolerance(config: pytest.Config) -> float:
    """Returns the share of a time by which a kernel may take longer.

    Raises:
        ValueError: the option or the configuration is no number of percent.
    """
    text = config.getoption(f"{_OPTION}-tolerance") or config.getini("tilelang_times_tolerance")
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent < float("inf"):
        raise ValueError(f"the tolerance {text!r} is no number of percent")
    return percent / 100


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test with the fixture ``npu_chip`` once for each chip."""
    marked = [mark for mark in metafunc.definition.iter_markers("parametrize") if "npu_chip" in str(mark.args[:1])]
    if "npu_chip" in metafunc.fixturenames and not marked:
        metafunc.parametrize("npu_chip", metafunc.config.getoption("--tilelang-chip") or _families(), indirect=True)


@pytest.fixture
def npu_chip(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes a chip the default of kernels that name no chip during a test, and returns the chip's name."""
    from tilelang_npu import target
    from tilelang_npu.runtime.settings.environment import CHIP

    name = target.chip(request.param).name
    monkeypatch.setenv(CHIP.name, name)
    return name


def _families() -> list[str]:
    from tilelang_npu import target

    first = {chip.family: chip.name for chip in reversed(target.chips())}
    first[target.chip(target.DEFAULT).family] = target.DEFAULT
    return [*first.values()]


class _TimesSession:
    """The hooks of a run that measures the kernels of each test."""

    def __init__(self, config: pytest.Config) -> None:
        from tilelang_npu.runtime.reports.times_comparison import Times, read_times

        self.config = config
        self.update = bool(config.getoption(f"{_OPTION}-update"))
        self.compares = bool(config.getoption(_OPTION)) and not self.update
        self.path: Path = config.rootpath / config.getini("tilelang_times_file")
        self.known: Times = {}
        self.measured: dict[str, _Measured] = {}
        self.failed: set[str] = set()
        try:
            self.tolerance = _tolerance(config)
            if self.compares and not self.path.is_file():
                raise pytest.UsageError(f"{self.path} does not exist: write it with {_OPTION}-update")
            if self.path.is_file() and (self.compares or self.update):
                self.known = read_times(self.path)
        except ValueError as error:
            raise pytest.UsageError(f"{_OPTION}: {error}") from None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Measures the kernels that a test runs, in all of its threads, and compares a passing test with the baseline."""
        from tilelang_npu.runtime.jit.kernel_figures import figures_of, mean_times
        from tilelang_npu.runtime.jit.recording import record

        with record(every_thread=True) as done:
            try:
                yield
            finally:
                if self.config.getoption("xmlpath", None):
                    item.user_properties += _properties(figures_of(done.tallies))
        measured = item.stash[_MEASURED] = _Measured(times=mean_times(done.tallies), new=[], gone=[], faster=[])
        if self.compares:
            slower = self._compare(self.known.get(item.nodeid, {}), measured)
            if slower:
                pytest.fail("\n".join(["slower than the baseline", *slower]), pytrace=False)

    def _compare(self, known: dict[str, float], measured: _Measured) -> list[str]:
        """Compares a test with its baseline, adds what is new, gone and faster to ``measured``, and returns a line for each
        kernel that is slower."""
        from tilelang_npu.runtime.reports.times_comparison import verdict_of

        slower, times = [], measured["times"]
        measured["gone"] += [kernel for kernel in known if kernel not in times]
        for kernel, us in times.items():
            if kernel not in known:
                measured["new"].append(f"{kernel}: {us} us")
                continue
            verdict = verdict_of(known[kernel], us, self.tolerance)
            text = f"{kernel}: {us} us, {known[kernel]} us in {self.path.name} ({us / known[kernel] - 1:+.1%})"
            if verdict == "slower":
                slower.append(text)
            elif verdict == "faster":
                measured["faster"].append(text)
        return slower

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]
                                  ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Adds what a test has measured to its report, which pytest-xdist sends from a worker to the main process."""
        report = yield
        if call.when == "call" and _MEASURED in item.stash:
            report.__dict__[_SENT] = item.stash[_MEASURED]
            del item.stash[_MEASURED]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes what a test has measured from its report."""
        sent: _Measured | None = getattr(report, _SENT, None)
        if sent is not None:
            self.measured[report.nodeid] = sent
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Writes the files of ``--tilelang-times-update`` and ``--tilelang-times-json``."""
        from tilelang_npu.runtime.reports.times_comparison import times_text
        from tilelang_npu.runtime.settings.file_writing import write_whole

        if hasattr(self.config, "workerinput"):  # a worker of pytest-xdist: the main process has all reports
            return
        present = {test: measured["times"] for test, measured in self.measured.items() if measured["times"]}
        if self.update and (self.measured or self.failed):  # else no test has run
            passed = {test: times for test, times in present.items() if test not in self.failed}
            known = {test: times for test, times in self.known.items() if test not in self.measured or test in self.failed}
            write_whole(self.path, times_text(known | passed))
        file = self.config.getoption(f"{_OPTION}-json")
        if file:
            write_whole(self.config.invocation_params.dir / file, times_text(present))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the kernels that the baseline does not contain, those of it that did not run, and those that are faster."""
        name = self.path.name
        tests = sorted(self.measured.items())
        lines = [*(f"not in {name}: {test} {text}" for test, measured in tests for text in measured["new"]),
                 *(f"only in {name}: {test} {text}" for test, measured in tests for text in measured["gone"]),
                 *(f"faster: {text}" for _, measured in tests for text in measured["faster"])]
        if lines:
            terminalreporter.section("tilelang_npu times")
        for line in lines:
            terminalreporter.line(line)


def _properties(figures: list[KernelFigures]) -> Iterator[tuple[str, object]]:
    """Yields names and values of a test's properties: three kinds for each kernel."""
    for one in figures:
        yield f"npu_us[{one.label}]", one.us
        yield f"npu_bound_by[{one.label}]", one.bound_by
        for memory, nbytes in one.memory.items():
            yield f"npu_bytes_{memory}[{one.label}]", nbytes
