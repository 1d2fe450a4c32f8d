"""A pytest plugin whose option ``--tilelang-times`` fails tests whose kernels take longer than a baseline file says.

The times are modelled and the same on every machine, so the baseline file can be committed. ``--tilelang-times-update`` writes
the file: ``tilelang_times.json`` in pytest's root folder, or the path ``tilelang_times_file`` of pytest's configuration. A
kernel can take up to ``tilelang_times_tolerance`` percent longer (a configuration entry, 2 by default).

A test with the fixture ``npu_chip`` runs once for one chip of each family, or once for each chip that ``--tilelang-chip NAME``
names. Without these options and this fixture the plugin does nothing, and imports only pytest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.recording import Record

__all__: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options ``--tilelang-times``, ``--tilelang-times-update`` and ``--tilelang-chip``, and their configuration."""
    group = parser.getgroup("tilelang_npu")
    group.addoption("--tilelang-times", action="store_true", help="fail tests whose kernels take longer than their baseline")
    group.addoption("--tilelang-times-update", action="store_true", help="write the baseline of the tests that run")
    group.addoption("--tilelang-chip", metavar="NAME", action="append", default=[],
                    help="chip for tests with the fixture npu_chip (default: one of each family)")
    parser.addini("tilelang_times_file", "the baseline of --tilelang-times", default="tilelang_times.json")
    parser.addini("tilelang_times_tolerance", "by how many percent a kernel may take longer", default="2")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the hooks that compare or write times if ``--tilelang-times`` or ``--tilelang-times-update`` is given."""
    update = config.getoption("--tilelang-times-update")
    if not update and not config.getoption("--tilelang-times"):
        return
    if update and (getattr(config, "workerinput", None) or getattr(config.option, "numprocesses", None)):
        raise pytest.UsageError("--tilelang-times-update writes one file: run it without -n")
    config.pluginmanager.register(_Baseline(config, update=bool(update)), "tilelang_npu times")


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


class _Baseline:
    """The hooks of a run that compares times."""

    def __init__(self, config: pytest.Config, *, update: bool) -> None:
        self.update = update
        self.path: Path = config.rootpath / config.getini("tilelang_times_file")
        try:
            self.tolerance = float(config.getini("tilelang_times_tolerance")) / 100
            if not update and not self.path.is_file():
                raise pytest.UsageError(f"{self.path} does not exist: write it with --tilelang-times-update")
            self.known: dict[str, dict[str, float]] = json.loads(self.path.read_text()) if self.path.is_file() else {}
        except ValueError as error:
            raise pytest.UsageError(f"--tilelang-times: {error}") from None
        self.new: dict[str, dict[str, float]] = {}
        self.faster: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Compares the times of a passing test with the baseline, or records them for ``--tilelang-times-update``."""
        from tilelang_npu.runtime.jit.recording import record

        with record() as done:
            yield
        times = _times(done)
        if self.update:
            self.known.pop(item.nodeid, None)
            if times:
                self.known[item.nodeid] = times
            return
        known, slower = self.known.get(item.nodeid, {}), []
        for kernel, time in times.items():
            if kernel not in known:
                self.new.setdefault(item.nodeid, {})[kernel] = time
                continue
            text = f"{kernel}: {time} us, {known[kernel]} us in {self.path.name} ({time / known[kernel] - 1:+.1%})"
            if time > known[kernel] * (1 + self.tolerance):
                slower.append(text)
            elif time < known[kernel] * (1 - self.tolerance):
                self.faster.append(text)
        if slower:
            pytest.fail("\n".join(["slower than the baseline", *slower]), pytrace=False)

    def pytest_sessionfinish(self) -> None:
        """Writes the baseline file if ``--tilelang-times-update`` is given."""
        if self.update:
            self.path.write_text(json.dumps(self.known, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the kernels that the baseline file does not contain, and the kernels that are faster than in the file."""
        if self.new or self.faster:
            terminalreporter.section("tilelang_npu times")
        for test, times in self.new.items():
            for kernel, time in times.items():
                terminalreporter.line(f"not in {self.path.name}: {test} {kernel}: {time} us")
        for text in self.faster:
            terminalreporter.line(f"faster: {text}")


def _times(done: Record) -> dict[str, float]:
    """Returns the modelled microseconds of each kernel's runs in a test, by the kernel's name, arguments and chip."""
    times: dict[str, float] = {}
    for tally in done.tallies:
        arguments = ", ".join(f"{one.dtype} {'x'.join(map(str, one.shape))}" if one.shape is not None else str(one.dtype)
                              for one in tally.kernel.params)
        label = f"{tally.kernel.name}({arguments}) on {tally.kernel.chip.name}"
        number = sum(known.partition(" #")[0] == label for known in times) + 1
        times[label + (f" #{number}" if number > 1 else "")] = round(tally.total_us / tally.count, 3)
    return times
