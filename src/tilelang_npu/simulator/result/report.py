"""The text summary of a launch, and its results as data for JSON (docs/accuracy.md lists the keys)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from tilelang_npu.ops import dtype
from tilelang_npu.simulator.machine.op_records import Mmad, number_of
from tilelang_npu.simulator.machine.repeated_events import kept_events
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.cube_operations import products
from tilelang_npu.simulator.time.gm_traffic import seconds_of_links
from tilelang_npu.simulator.time.pipe_steps import PIPE, RUN, Expansion
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import CORES, Space

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.call_launches import Launches
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.run.program import Program
    from tilelang_npu.simulator.run.recorded_launch import BlockRun

_SHOWN = {"AIC": ("M", "MTE1", "MTE2", "MTE3", "FIX", "S"), "AIV": ("V", "MTE2", "MTE3", "S")}
"""The pipes of each kind of core in the order in which a summary lists them."""
BUSY = 0.8
"""The minimum share of the time with work in flight for which a pipe counts as always busy."""
LEAST_GAIN_OF_FEWER = 0.03
"""The share of the time that fewer blocks must save to be advised."""
MAX_SOURCE = 48
"""The maximum number of characters of a source line in a summary."""


def memory_use(program: Program, blocks: Sequence[BlockRun], expansions: Sequence[Expansion]) -> dict[str, int]:
    """Returns the number of used bytes of each on-chip memory, by common name.

    For a memory with buffers this is the end of the last buffer. For L0A and L0B, into which the matmul macro loads chunks, it
    is twice the largest chunk, because the macro alternates between two halves.

    Args:
        program: the kernel.
        blocks: one block of each kind of event streams.
        expansions: the steps of the ops of each function.
    """
    use: dict[str, int] = {}
    for function in program.functions:
        for memory, extent in function.extents.items():
            use[name_of(memory)] = max(use.get(name_of(memory), 0), extent)
    for index, function in enumerate(program.functions):
        if not any(isinstance(record.work, Mmad) for record in function.records):
            continue
        loads = [0, 0]
        streams = [stream for run in blocks
                   for stream, (lane, _) in zip(run.streams, program.lanes, strict=True) if lane == index]
        for event in {event for stream in streams for event in kept_events(stream)}:
            if isinstance(function.records[number_of(event)].work, Mmad):
                for step in expansions[index].of(event):
                    if step.kind == RUN and step.pipe == PIPE["MTE1"] and step.accesses[0] < 2:
                        loads[step.accesses[0]] = max(loads[step.accesses[0]], step.cost.nbytes)
        operands: tuple[Space, ...] = ("ca", "cb")
        for memory, size in zip(operands, loads, strict=True):
            room = program.chip.memory[memory].size
            use[name_of(memory)] = max(use.get(name_of(memory), 0), min(room, 2 * size))
    return use


def time_text(us: float, error: float | None) -> str:
    """Returns a modelled time with its error as text: ``12.3 us +- 10 %``, or ``+- ? %`` if the error is unknown.

    Args:
        us: the time in microseconds.
        error: the error as a share of the time, such as 0.1 for 10 %; None if unknown.
    """
    return f"{us:.1f} us +- {'?' if error is None else f'{100 * error:.0f}'} %"


def line(launch: Launch) -> str:
    """Returns one line of text on a launch: name, time with error, chip, number of blocks, and bottleneck."""
    plural = "s" if launch.blocks != 1 else ""
    return (f"{launch.name}: {time_text(launch.time_us, launch.error)} on {launch.chip.name}, {launch.blocks} block{plural}, "
            f"bound by {launch.bound_by}")


class Bandwidth(NamedTuple):
    """The traffic between the cores and GM during a launch.

    Attributes:
        nbytes: the number of bytes that the cores read and wrote.
        per_second: bytes per second, averaged over the whole duration of the launch.
        memory: ``HBM`` or ``L2``, whichever needs more time for these bytes at its peak rate.
        share: the share of the launch's duration that this memory needs for these bytes at its peak rate.
    """

    nbytes: float
    per_second: float
    memory: Literal["HBM", "L2"]
    share: float


def bandwidth(launch: Launch) -> Bandwidth:
    """Returns the traffic between the cores and GM during a launch."""
    seconds = launch.time_us * 1e-6
    nbytes = sum(part.nbytes for part in launch.moved.values())
    use = launch.gm_use
    return Bandwidth(nbytes, nbytes / seconds, "HBM" if use.hbm_seconds > use.l2_seconds else "L2",
                     max(use.hbm_seconds, use.l2_seconds) / seconds)


def rate_text(launch: Launch) -> str:
    """Returns the achieved rate of a launch as text: operations per second of the Cube cores if the launch has any, otherwise
    bytes per second in GM; empty if there are neither.

    The rates are averages over the whole duration, including launch overhead. Only operations on loaded data count; the rate
    including padding is added if it differs.
    """
    work = products(launch)
    if not work:
        found = bandwidth(launch)
        rate = f"{found.per_second / 1e9:.0f} GB/s, {100 * found.share:.0f} % of what {found.memory} gives"
        return rate if found.nbytes else ""
    seconds = launch.time_us * 1e-6
    rates = []
    for unit, kinds in (("TFLOP/s", [kind for kind in work if not dtype(_element(kind)).is_integer]),
                        ("TOP/s", [kind for kind in work if dtype(_element(kind)).is_integer])):
        done, useful = (sum(getattr(work[kind], which) for kind in kinds) / seconds / 1e12 for which in ("done", "useful"))
        if kinds:
            padded = f" ({done:.1f} with padding)" if f"{done:.1f}" != f"{useful:.1f}" else ""
            rates.append(f"{useful:.1f} {unit}{padded}")
    share = sum(work[kind].useful / launch.chip.peak_flops(kind) for kind in work) / seconds
    kinds = [kind if kind == "hf32" else dtype(kind) for kind in work]
    return f"{' and '.join(rates)}, {100 * share:.0f} % of the {' and '.join(kinds)} peak"


def _element(kind: str) -> str:
    return "f32" if kind == "hf32" else kind


def summary(launch: Launch, name: str) -> str:
    """Returns a summary of a launch in a few aligned lines of text.

    Shares of pipes refer to the time from the start of the first block to the end of the last one; rates refer to the whole
    duration.

    Args:
        launch: the launch.
        name: the kernel's name in the summary.
    """
    chip = launch.chip
    plural = "s" if launch.blocks != 1 else ""
    cores = min(launch.cores, launch.blocks)
    waves = f" ({launch.waves} waves)" if launch.waves > 1 else ""
    head = f"{name}  {launch.blocks} block{plural} on {cores} core{'s' if cores != 1 else ''}{waves}"
    lines = [f"{head:<48}  {chip.name}, {launch.l2_state} L2, modelled"]
    timed, kinds = launch.sample
    sample = f" (from {timed} of {kinds} kinds of blocks)" if timed < kinds else ""
    rate = rate_text(launch)
    suffix = f"{f'   {rate}' if rate else ''}; bound by {launch.bound_by}"
    lines.append(f"  time      {time_text(launch.time_us, launch.error)}{sample}{suffix}")
    lines.append(f"  of which  {launch.split}")
    running = f"   of {launch.chip.microseconds(launch.cycles):.1f} us"
    for core in CORES:
        row = launch.pipes.get(core)
        if row:
            shares = "   ".join(f"{pipe} {100 * row[pipe]:.0f} %" for pipe in _SHOWN[core] if pipe in row)
            lines.append(f"  {core:<9} {shares}{running}")
    if launch.linked:
        lines.append(f"  links     {_links(launch)}")
    parts: list[str] = []
    for core in CORES:
        for memory in chip.memories(core):
            used = launch.memory.get(name_of(memory))
            if used:
                unit = "" if parts else " KB"
                parts.append(f"{name_of(memory)} {kib_text(used)} of {chip.memory[memory].size // 1024}{unit}")
    if parts:
        lines.append(f"  memory    {'   '.join(parts)}")
    step = _next_step(launch)
    if step:
        lines.append(f"  next      {step}")
    return "\n".join(lines)


def _links(launch: Launch) -> str:
    """Returns a text on the bytes that a launch moves to and from other cards, with the least time that the links need."""
    ways = []
    for written, words in ((True, "to"), (False, "from")):
        moved = [nbytes for (_, direction), nbytes in launch.linked.items() if direction == written]
        if moved:
            ways.append(f"{kib_text(sum(moved))} KB {words} {len(moved)} card{'s' if len(moved) > 1 else ''}")
    seconds = seconds_of_links(launch.linked, launch.chip)
    return f"{'   '.join(ways)}   at least {1e6 * seconds:.1f} us, {100e6 * seconds / launch.time_us:.0f} % of the time"


def _next_step(launch: Launch) -> str:
    """Returns a line that says where most time is lost. The launch overhead comes first, if it is the largest part of the time;
    otherwise the line is empty if a pipe other than the scalar unit is always busy."""
    if launch.launch_us >= max(launch.split):
        least, blocks = launch.least_us_of_division() if launch.waves == 1 else (launch.time_us, launch.blocks)
        fewer = (f", or divide it among about {blocks} blocks, as each core takes time to launch"
                 if blocks < launch.blocks and least < launch.time_us * (1 - LEAST_GAIN_OF_FEWER) else "")
        return (f"launch overhead is {launch.launch_us / launch.time_us:.0%} of the time: give the launch more work, or compute"
                f" it in the launch before or after it{fewer}")
    share, busiest = max(((share, pipe) for row in launch.pipes.values() for pipe, share in row.items()), default=(1.0, ""))
    is_scalar = busiest == "S" and share >= BUSY
    unused = launch.waves * launch.cores - launch.blocks
    if launch.waves > 1 and unused > launch.cores * launch.waves * 0.15:
        last = launch.blocks - (launch.waves - 1) * launch.cores
        return (f"the last wave uses {last} of {launch.cores} cores: choose tiles with which blocks fill each wave, such as "
                f"{(launch.waves - 1) * launch.cores} blocks")
    if share >= BUSY and not is_scalar:
        return ""
    if not launch.critical_path:
        return "kernel.profile() says which lines take the time, and tries edits"
    from tilelang_npu.simulator.result.profile.time_parts import longest_line

    longest = longest_line(launch.critical_path.items())
    if longest is None:
        return ""
    place, us = longest
    source = place.source().strip()
    shown = f" `{source if len(source) <= MAX_SOURCE else source[:MAX_SOURCE - 3] + '...'}`" if source else ""
    line = f"line {place.line}{shown} is {us / launch.time_us:.0%} of the critical path"
    if is_scalar:
        return f"{line}, and the scalar unit is busy with single elements: use vector operations, such as T.Parallel"
    return f"{line}, and no pipe is always busy: kernel.profile() tries edits"


def kib_text(size: int) -> str:
    """Returns a number of bytes in units of 1024 bytes, with a decimal below 10 if it is not whole."""
    kib = size / 1024
    return f"{kib:.0f}" if kib >= 10 or kib == int(kib) else f"{kib:.1f}"


def launch_data(launch: Launch) -> JsonObject:
    """Returns the results of one launch as a dict that JSON can hold."""
    bound, program = launch.recorded.bound, launch.recorded.program
    gm = bandwidth(launch)
    return {
        "kernel": launch.name, "chip": launch.chip.name, "class": launch.kind,
        "arguments": [_argument(program.declared[index].name, value)
                      for index, value in zip(bound.users, bound.given, strict=True)],
        "blocks": launch.blocks, "cores": min(launch.cores, launch.blocks), "waves": launch.waves,
        "l2": launch.l2_state, "time_us": launch.time_us, "error": launch.error, "split_us": launch.split._asdict(),
        "cycles": launch.cycles, "bound_by": launch.bound_by,
        "pipes": {core: dict(shares) for core, shares in launch.pipes.items()},
        "memory": dict(launch.memory),
        "operations": {kind: {"done": work.done, "useful": work.useful} for kind, work in products(launch).items()},
        "gm": {"bytes": gm.nbytes, "bytes_per_second": gm.per_second, "served_by": gm.memory,
               "share_of_peak": gm.share},
        "links": {"bytes": [{"card": card, "written": written, "bytes": nbytes}
                            for (card, written), nbytes in sorted(launch.linked.items())],
                  "least_us": 1e6 * seconds_of_links(launch.linked, launch.chip)},
    }


def call_data(launches: Launches) -> JsonObject:
    """Returns the results of all launches of a call as a dict that JSON can hold."""
    return {"kernel": launches.name, "chip": launches.parts[0].chip.name, "time_us": launches.time_us,
            "error": launches.error, "split_us": launches.split._asdict(), "cycles": launches.cycles,
            "blocks": launches.blocks, "launches": [launch_data(part) for part in launches.parts]}


def _argument(name: str, value: object) -> JsonObject:
    if isinstance(value, np.ndarray):
        return {"name": name, "dtype": str(value.dtype), "shape": list(value.shape)}
    return {"name": name, "value": value.item() if isinstance(value, np.generic) else value}
