"""The class of kernels that a launch belongs to: errors of modelled times are known per class (``target.accuracy``)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tilelang_npu.simulator.machine.op_records import Access, Mmad, Multiply, OpRecord, Stream, number_of, value
from tilelang_npu.target import GM

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch

VECTOR, SMALL_GEMM, GEMM, FUSED, ATTENTION = "vector", "small gemm", "gemm", "fused", "attention"
"""Kernels without products; with Cube cores alone, and few or many multiplications; with both kinds of cores, where the Vector
cores prepare or finish products; and where they make operands of further products from products."""
FEW = 10**10
"""Multiplications up to which a GEMM is small: between the measured sizes 1536^3 and 3072^3."""

Place = tuple[str, int]
"""Where data pass from one core to another: a tensor in GM, or an on-chip memory."""


def kind_of(recorded: RecordedLaunch) -> str:
    """Returns the class of a launch, by the work of its cores and the order in which Vector cores receive and send data."""
    program = recorded.program
    kinds = {function.core for function in program.functions}
    multiplied = _multiplications(recorded)
    if not multiplied:
        return VECTOR
    if len(kinds) == 1:
        return GEMM if multiplied > FEW else SMALL_GEMM
    read, written = ({core: {_place(access) for function in program.functions if function.core == core
                             for record in function.records for access in record.accesses if getattr(access, which)}
                      for core in kinds} for which in ("reads", "writes"))
    taken, given = written["AIC"] & read["AIV"], written["AIV"] & read["AIC"]
    if not taken or not given:
        return FUSED
    for run in recorded.blocks[:1]:
        for stream, (index, _) in zip(run.streams, program.lanes, strict=True):
            function = program.functions[index]
            if function.core == "AIV" and (first := _first(stream, function.records, taken, given)):
                return ATTENTION if first == "taken" else FUSED
    return FUSED


def _multiplications(recorded: RecordedLaunch) -> int:
    """Returns the number of multiplications of all blocks, including padding."""
    total = 0
    for index, stream, count in recorded.distinct_streams:
        records = recorded.program.functions[index].records
        for event, of_block in Counter(stream).items():
            work = records[number_of(event)].work
            if isinstance(work, Mmad | Multiply):
                total += count * of_block * value(work.m, event) * value(work.k, event) * value(work.n, event)
    return total


def _place(access: Access) -> Place:
    return (GM, access.buffer) if access.memory == GM else (access.memory, -1)


def _first(stream: Stream, records: tuple[OpRecord, ...], taken: set[Place], given: set[Place]) -> str:
    """Returns whether a Vector core first takes data from the Cube core or gives data to it; empty for neither."""
    for event in stream:
        for access in records[number_of(event)].accesses:
            if access.reads and _place(access) in taken:
                return "taken"
            if access.writes and _place(access) in given:
                return "given"
    return ""
