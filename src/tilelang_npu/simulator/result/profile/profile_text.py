"""The text of a profile, which ``print(kernel.profile())`` shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tilelang_npu.simulator.result.profile.moved_bytes import scalar_tensors

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.profile.launch_profile import Profile
    from tilelang_npu.simulator.result.profile.time_parts import TimePart

SHOWN = 0.01
"""The minimum share of the time for which a row is shown."""
STALLS = 3
"""The maximum number of stalls that are listed for a pipe."""
GENERATED_NOTE = "on generated inputs, and the time depends on their elements: call the kernel first, or pass arrays"
"""What is said of a profile whose launch ran on generated inputs."""


def text(profile: Profile) -> str:
    """Returns all tables of a profile as text."""
    sections = {
        "what to change, largest gain first": map(str, profile.advice or [profile.tried.note]),
        "causes of lost time, with the time without each": map(str, profile.unrefuted_causes),
        f"critical path of {profile.time_us:.2f} us": _rows(profile.critical_path, profile.time_us),
        "pipes, on average over the cores": _pipes(profile),
        "lines, by their part of the critical path": _lines(profile),
        "bytes by path": _paths(profile),
        "bytes by argument": _arguments(profile),
        "achieved": _achieved(profile),
        "what if": (str(one) for one in profile.what_if if abs(one.gain) >= SHOWN),
    }
    found = [f"{profile.kernel} on {profile.chip}, modelled: {profile.time_us:.2f} us, {profile.launch.blocks} blocks"]
    if profile.is_of_generated_inputs:
        found.append(f"  {GENERATED_NOTE}")
    for title, lines in sections.items():
        shown = list(lines)
        if shown:
            found += ["", title, *(f"  {line}" for line in shown)]
    return "\n".join(found)


def _share(us: float, total: float) -> str:
    return f"{100 * us / total:5.1f} %"


def _rows(parts: Sequence[TimePart], total: float) -> Iterator[str]:
    """Yields a line for each part of a time, with its share; parts below ``SHOWN`` are summed up in one line."""
    rest = total
    for part in parts:
        if part.us >= SHOWN * total:
            rest -= part.us
            yield f"{part.us:9.2f} us {_share(part.us, total)}  {part.reason}"
    if rest > 0.0:
        yield f"{rest:9.2f} us {_share(rest, total)}  parts below {SHOWN:.0%} each"


def _pipes(profile: Profile) -> Iterator[str]:
    total = profile.time_us
    for row in profile.pipes:
        shown = [part for part in row.stalls if part.us >= SHOWN * total][:STALLS]
        stalls = "; ".join(f"{part.us:.2f} us {part.reason}" for part in shown)
        yield f"{row.core} {row.pipe:<5} busy {row.busy_us:9.2f} us {_share(row.busy_us, total)}   {stalls}".rstrip()


def _lines(profile: Profile) -> Iterator[str]:
    for row in profile.lines:
        if row.us >= SHOWN * profile.time_us:
            source = "" if row.place is None else row.place.source().strip()
            where = "no line" if row.place is None else f"line {row.place.line}"
            yield f"{row.us:9.2f} us {_share(row.us, profile.time_us)}  {where:<9} {source}".rstrip()


def _paths(profile: Profile) -> Iterator[str]:
    for row in profile.paths:
        more = f", moves {_bytes(row.moved)}" if row.moved > row.used else ""
        peak = f" of {row.peak:.0f}" if row.peak else ""
        yield f"{row.path:<12} {row.core} {row.pipe:<5} uses {_bytes(row.used)}{more}; {row.rate:.1f}{peak} GB/s"


def _arguments(profile: Profile) -> Iterator[str]:
    for row in profile.arguments:
        times = f" ({row.used / row.needed:.1f} times)" if row.needed and row.used > row.needed else ""
        verb = "written" if row.written else "read"
        yield (f"{row.name:<12} {verb:<8} uses {_bytes(row.used)}, moves {_bytes(row.moved)}, HBM {_bytes(row.hbm)}; "
               f"needs {_bytes(row.needed)}{times}")
    if names := dict.fromkeys(name for part in profile.launch.parts for name in scalar_tensors(part)):
        yield f"not counted: elements of {', '.join(names)}, which the scalar unit accesses one by one"


def _achieved(profile: Profile) -> Iterator[str]:
    roof = profile.roofline
    seconds = roof.seconds
    if roof.unit:
        what = "TFLOP/s" if roof.unit == "Cube" else "T elements/s"
        yield (f"{roof.unit:<8} {roof.achieved / 1e12:8.3f} of {roof.peak / 1e12:.3f} {what} "
               f"{_share(roof.achieved, roof.peak)}")
    yield (f"HBM      {roof.hbm_bytes / seconds / 1e9:8.1f} of {roof.hbm_rate / 1e9:.1f} GB/s "
           f"{_share(roof.hbm_seconds, seconds)}")
    yield (f"L2       {roof.l2_bytes / seconds / 1e9:8.1f} of {roof.l2_rate / 1e9:.1f} GB/s "
           f"{_share(roof.l2_seconds, seconds)}")
    if roof.unit and roof.memory_bytes:
        yield (f"roofline {roof.intensity:8.1f} operations per byte of {roof.memory}: bound by {roof.bound}, "
               f"{100 * roof.achieved / roof.attainable:.1f} % of the attainable rate")


def _bytes(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GB"
