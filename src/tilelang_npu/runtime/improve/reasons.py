"""The reason why a version of a kernel is faster than another one: the part of the time that shrank most, with figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilelang_npu.simulator.result.report import bandwidth

if TYPE_CHECKING:
    from tilelang_npu.simulator import AnyLaunch, Launch

_PARTS = {"launch": "The launch overhead", "ramp": "The ramp-up", "steady": "The steady state", "tail": "The tail"}
_LEAST_CHANGE = 0.05
"""The share by which a count must shrink to be named."""


def reason(before: AnyLaunch, after: AnyLaunch) -> str:
    """Returns one sentence on the part of the time that shrank most, and one on the figures that changed with it.

    Args:
        before: the launch of the version as it was.
        after: the launch of the version with an edit.

    Returns:
        The text; empty if no part of the time shrank.
    """
    old, new = before.split._asdict(), after.split._asdict()
    name = max(old, key=lambda one: old[one] - new[one])
    if old[name] <= new[name]:
        return ""
    facts = list(_facts(before, after))
    figures = f" {'; '.join([facts[0][0].upper() + facts[0][1:], *facts[1:]])}." if facts else ""
    return f"{_PARTS[name]} shrinks most: {old[name]:.1f} us become {new[name]:.1f}.{figures}"


def _facts(before: AnyLaunch, after: AnyLaunch) -> Iterator[str]:
    """Yields the figures in which two versions differ."""
    if len(before.parts) != len(after.parts):
        yield f"{_counted(len(after.parts), 'launch', 'launches')} in place of {len(before.parts)}"
    elif before.blocks != after.blocks:
        cores = [max(min(part.cores, part.blocks) for part in call.parts) for call in (before, after)]
        on = "" if cores[0] == cores[1] else f", on {_counted(cores[1], 'core', 'cores')} in place of {cores[0]}"
        yield f"{_counted(after.blocks, 'block', 'blocks')} in place of {before.blocks}{on}"
    operations = [sum(map(_operations, call.parts)) for call in (before, after)]
    if operations[1] < operations[0] * (1 - _LEAST_CHANGE):
        yield f"all blocks together execute {operations[1]} operations and waits in place of {operations[0]}"
    moved = [sum(bandwidth(part).nbytes for part in call.parts) / 1024 for call in (before, after)]
    if moved[1] < moved[0] * (1 - _LEAST_CHANGE):
        yield f"they move {moved[1]:.0f} KB between the cores and GM in place of {moved[0]:.0f}"
    bounds = [", ".join(dict.fromkeys(part.bound_by for part in call.parts)) for call in (before, after)]
    if bounds[0] != bounds[1]:
        yield f"bound by {bounds[1]} in place of {bounds[0]}"


def _operations(launch: Launch) -> int:
    """Returns the number of operations and waits that all blocks execute; the trace of a large launch has only some blocks."""
    recorded = launch.recorded
    found = sum(len(stream) for run in recorded.blocks for stream in run.streams)
    return round(found * recorded.count / len(recorded.blocks))


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"
