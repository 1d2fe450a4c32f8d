"""A launch in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tilelang_npu.ops import dtype
from tilelang_npu.simulator.machine.events import number_of
from tilelang_npu.simulator.machine.work import Mmad
from tilelang_npu.simulator.result.multiplications import products
from tilelang_npu.simulator.time.steps import PIPE, PIPES, RUN, Expansion
from tilelang_npu.target import name_of

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.run.program import Program
    from tilelang_npu.simulator.run.recorded import BlockRun

_SHOWN = {"AIC": ("M", "MTE1", "MTE2", "MTE3", "FIX", "S"), "AIV": ("V", "MTE2", "MTE3", "S")}
"""Pipes in the order in which a summary names them."""
BUSY = 0.8
"""Share of the time from which on a pipe counts as busy all the time."""


def memory_use(program: Program, blocks: Sequence[BlockRun], expansions: Sequence[Expansion]) -> dict[str, int]:
    """Used bytes of each on-chip memory; of L0A and L0B what the largest matmul's chunks take, both halves together."""
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
        for event in {event for stream in streams for event in stream}:
            if isinstance(function.records[number_of(event)].work, Mmad):
                for step in expansions[index].of(event):
                    if step.kind == RUN and step.pipe == PIPE["MTE1"] and step.accesses[0] < 2:
                        loads[step.accesses[0]] = max(loads[step.accesses[0]], step.cost.nbytes)
        for memory, size in zip(("ca", "cb"), loads, strict=True):
            room = program.chip.memory[memory].size
            use[name_of(memory)] = max(use.get(name_of(memory), 0), min(room, 2 * size))
    return use


def time_text(us: float, error: float | None) -> str:
    """A modelled time with its error."""
    return f"{us:.1f} us +- {'?' if error is None else f'{100 * error:.0f}'} %"


def line(launch: Launch) -> str:
    """The launch in one line."""
    plural = "s" if launch.blocks != 1 else ""
    return (f"{launch.name}: {time_text(launch.time_us, launch.error)} on {launch.chip.name}, {launch.blocks} block{plural}, "
            f"bound by {launch.bound_by}")


class Bandwidth(NamedTuple):
    """What passed between the cores and GM in the whole time.

    Attributes:
        nbytes: bytes that the cores read and wrote.
        per_second: the same over the time.
        memory: what takes longer to serve them, ``HBM`` or ``L2``.
        share: of the time, what this takes at its highest rate.
    """

    nbytes: float
    per_second: float
    memory: str
    share: float


def bandwidth(launch: Launch) -> Bandwidth:
    """What passed between the cores and GM."""
    seconds = launch.time_us * 1e-6
    nbytes = sum(part.nbytes for part in launch.moved.values())
    hbm = sum(one.hbm * launch.moved[key].far for key, one in launch.serves.items())
    l2 = sum(one.l2 * launch.moved[key].near for key, one in launch.serves.items())
    return Bandwidth(nbytes, nbytes / seconds, "HBM" if hbm >= l2 else "L2", max(hbm, l2) / seconds)


def _rate(launch: Launch) -> str:
    """What the cores made of the whole time, with the launch: multiplications where there are any, else bytes; empty where
    neither.

    Only multiplications of what was loaded count: the rate with those of padding stands beside it where it differs.
    """
    work = products(launch)
    if not work:
        found = bandwidth(launch)
        said = f"   {found.per_second / 1e9:.0f} GB/s, {100 * found.share:.0f} % of what {found.memory} gives"
        return said if found.nbytes else ""
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
    return f"   {' and '.join(rates)}, {100 * share:.0f} % of the {' and '.join(kinds)} peak"


def _element(kind: str) -> str:
    return "f32" if kind == "hf32" else kind


def summary(launch: Launch, name: str) -> str:
    """The launch in a few aligned lines: pipes in shares of the time between the start of the first block and the end of the
    last, the rate of the Cube cores in that of the whole."""
    chip = launch.chip
    plural = "s" if launch.blocks != 1 else ""
    cores = min(launch.cores, launch.blocks)
    waves = f" ({launch.waves} waves)" if launch.waves > 1 else ""
    head = f"{name}  {launch.blocks} block{plural} on {cores} core{'s' if cores != 1 else ''}{waves}"
    lines = [f"{head:<48}  {chip.name}, modelled"]
    timed, kinds = launch.sample
    sample = f" (from {timed} of {kinds} kinds of blocks)" if timed < kinds else ""
    lines.append(f"  time      {time_text(launch.time_us, launch.error)}{sample}{_rate(launch)}; bound by {launch.bound_by}")
    lines.append(f"  of which  {launch.split}")
    running = f"   of {launch.chip.microseconds(launch.cycles):.1f} us"
    for core in ("AIC", "AIV"):
        row = launch.pipes.get(core)
        if row:
            shares = "   ".join(f"{pipe} {100 * row[pipe]:.0f} %" for pipe in _SHOWN[core] if pipe in row)
            lines.append(f"  {core:<9} {shares}{running}")
    parts: list[str] = []
    for core in ("AIC", "AIV"):
        for memory in chip.memories(core):
            used = launch.memory.get(name_of(memory))
            if used:
                unit = "" if parts else " KB"
                parts.append(f"{name_of(memory)} {_kib(used)} of {chip.memory[memory].size // 1024}{unit}")
    if parts:
        lines.append(f"  memory    {'   '.join(parts)}")
    advice = _advice(launch)
    if advice:
        lines.append(f"  next      {advice}")
    return "\n".join(lines)


def _advice(launch: Launch) -> str:
    """The largest loss that the figures show, in one line; empty where nothing stands out."""
    pipe, share = max(((pipe, share) for row in launch.pipes.values() for pipe, share in row.items()),
                      key=lambda item: item[1], default=("", 1.0))
    unused = launch.waves * launch.cores - launch.blocks
    if launch.waves > 1 and unused > launch.cores * launch.waves * 0.15:
        last = launch.blocks - (launch.waves - 1) * launch.cores
        return f"the last wave uses {last} of {launch.cores} cores: launch {launch.cores} blocks and loop inside them"
    if share < BUSY:
        idle = launch.chip.microseconds(launch.cycles) * (1 - share)
        return f"no pipe is busy all the time: overlapping loads, work and stores hides up to {idle:.1f} us behind {pipe}"
    return ""


def _kib(size: int) -> str:
    kib = size / 1024
    return f"{kib:.0f}" if kib >= 10 or kib == int(kib) else f"{kib:.1f}"


__all__ = ["PIPES", "Bandwidth", "bandwidth", "line", "memory_use", "summary", "time_text"]
