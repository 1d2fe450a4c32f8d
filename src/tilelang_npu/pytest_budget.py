"""A pytest plugin with the marker ``npu_budget``, which fails a test whose kernels exceed limits of modelled figures.

``@pytest.mark.npu_budget(us=20.0, share=0.5, memory={"UB": 98304})`` limits each launch of a kernel in the test:

- ``us``: the most modelled microseconds of a call.
- ``share``: the smallest share of the roofline's attainable rate that a call must reach, above 0 and at most 1.
- ``memory``: the most bytes of on-chip memory, as a number for all memories together, or as a dict for each memory by its
  name (``UB``, ``L1``, ``L0A``, ``L0B``, ``L0C``).

The markers of a test, its class and its module are read together; for one limit, the nearest counts. Other arguments are errors
when tests are collected. A test with the marker that launches no kernel fails, because nothing was compared. Kernels that are
interpreted have no figures: under ``--tilelang-interpret`` the marker has no effect.

Without the marker the plugin does nothing, and imports only pytest.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch

__all__: list[str] = []

_MARKER = "npu_budget"


class _Budget(NamedTuple):
    """The limits of a test; None for no limit.

    Attributes:
        us: the most microseconds of a call.
        share: the smallest share of the attainable rate.
        memory: the largest number of bytes of each on-chip memory by its name; with an empty name, of all memories together.
    """

    us: float | None
    share: float | None
    memory: dict[str, int] | None


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker ``npu_budget``."""
    config.addinivalue_line("markers", f"{_MARKER}(us=..., share=..., memory=...): fail the test if a launch of a kernel takes"
                                       " more modelled microseconds, reaches a smaller share of the attainable rate, or uses"
                                       " more bytes of on-chip memory")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector
                               ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Makes wrong arguments of the marker an error of the collection."""
    report = yield
    wrong: dict[str, None] = {}
    for item in report.result or ():
        if isinstance(item, pytest.Item) and item.get_closest_marker(_MARKER) is not None:
            try:
                _budget_of(item)
            except ValueError as error:
                wrong[f"{item.nodeid}: {error}"] = None
    if wrong:
        report.outcome, report.longrepr, report.result = "failed", "\n".join(wrong), []
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Compares every launch of a kernel in a test that has the marker with the limits, and fails the test afterwards."""
    if item.get_closest_marker(_MARKER) is None or item.config.getoption("--tilelang-interpret", False):
        yield
        return
    from tilelang_npu.runtime.jit.recording import record

    worst = _Worst(_budget_of(item))
    with record(every_thread=True, each=worst.add):
        yield
    exceeded = worst.exceeded()
    if exceeded:
        pytest.fail("\n".join([f"over the budget of {_MARKER}", *exceeded]), pytrace=False)
    if not worst.launched:
        pytest.fail(f"{_MARKER} has nothing to compare: the test launched no kernel", pytrace=False)


class _Worst:
    """The launches of each kernel that are furthest from the limits.

    Attributes:
        launched: whether a kernel was launched.
    """

    def __init__(self, budget: _Budget) -> None:
        self.budget = budget
        self.launched = False
        self._figures: dict[tuple[str, str], float] = {}

    def add(self, kernel: JITKernel, launch: AnyLaunch) -> None:
        """Takes the figures of a launch."""
        from tilelang_npu.runtime.jit.kernel_figures import label_of, memory_of

        self.launched = True
        label, budget = label_of(kernel), self.budget
        if budget.us is not None:
            self._take(label, "us", launch.time_us)
        if budget.share is not None:
            self._take(label, "share", -launch.profile().roofline.share)  # the smallest is the worst
        if budget.memory is not None:
            used = memory_of(launch)
            for name in budget.memory:
                self._take(label, f"memory {name}", used.get(name, 0) if name else sum(used.values()))

    def _take(self, label: str, figure: str, value: float) -> None:
        self._figures[label, figure] = max(value, self._figures.get((label, figure), value))

    def exceeded(self) -> list[str]:
        """Returns a line for each kernel and limit that a launch exceeded."""
        us, share, memory = self.budget
        lines = []
        for (label, figure), value in self._figures.items():
            if figure == "us" and us is not None and value > us:
                lines.append(f"{label}: {value:.3f} us, the limit is {us:g} us")
            elif figure == "share" and share is not None and -value < share:
                lines.append(f"{label}: {-value:.1%} of the attainable rate, the limit is {share:.1%}")
            elif figure.startswith("memory") and memory is not None:
                name = figure.removeprefix("memory ")
                if value > memory[name]:
                    where = name or "on-chip memory"
                    lines.append(f"{label}: {value} bytes of {where}, the limit is {memory[name]} bytes")
        return lines


def _budget_of(item: pytest.Item) -> _Budget:
    """Returns the limits of a test's markers.

    Raises:
        ValueError: a marker has wrong arguments.
    """
    given: dict[str, object] = {}
    for mark in reversed([*item.iter_markers(_MARKER)]):  # the nearest comes last and counts
        if mark.args:
            raise ValueError(f"{_MARKER} takes its limits by name: us=, share=, memory=")
        if not mark.kwargs:
            raise ValueError(f"{_MARKER} needs a limit: us=, share= or memory=")
        for name in mark.kwargs:
            if name not in _Budget._fields:
                raise ValueError(f"{_MARKER} has no limit {name}; its limits are us, share and memory")
        given |= mark.kwargs
    return _Budget(_limit(given, "us", float("inf"), "a positive number of microseconds"),
                   _limit(given, "share", 1.0, "a number above 0 and at most 1"),
                   _memory_limits(given["memory"]) if "memory" in given else None)


def _limit(given: Mapping[str, object], name: str, most: float, meaning: str) -> float | None:
    if name not in given:
        return None
    limit = given[name]
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit <= most:
        raise ValueError(f"{_MARKER}({name}={limit!r}): the limit is {meaning}")
    return limit


def _memory_limits(given: object) -> dict[str, int]:
    limits = given if isinstance(given, Mapping) else {"": given}
    if not limits or not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in limits.values()):
        raise ValueError(f"{_MARKER}(memory={given!r}): the limit is a number of bytes, or a dict of such numbers by memory")
    if isinstance(given, Mapping):
        from tilelang_npu.target import chips, name_of

        known = sorted({name_of(space) for chip in chips() for space in chip.memory})
        for name in given:
            if name not in known:
                raise ValueError(f"{_MARKER}(memory={given!r}): there is no memory {name!r}; there are {', '.join(known)}")
    return dict(limits)
