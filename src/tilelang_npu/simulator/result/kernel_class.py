"""The classification of kernels; the error of modelled times is known for each class (``target.accuracy``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilelang_npu.simulator.machine.op_records import (
    Access,
    Event,
    Fold,
    Lanes,
    Mmad,
    Multiply,
    OpRecord,
    ScalarAccess,
    Sorting,
    number_of,
    value,
)
from tilelang_npu.simulator.machine.repeated_events import counted, kept_events
from tilelang_npu.target import GM

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch

COPY, ELEMENT_WISE, REARRANGEMENT, REDUCTION, SORT = "copy", "element-wise", "rearrangement", "reduction", "sort"
"""The classes of kernels without matrix products: they only move data; compute element by element; transpose, gather or
interleave elements; reduce along an axis; sort."""
REARRANGES = frozenset({"nchwconv", "gather", "gatherb", "reducev2"})
"""The rates (``Chip.vector``) of the vector instructions that move elements to other positions."""
SMALL_GEMM, GEMM, ATTENTION, MIXED = "small gemm", "gemm", "attention", "mixed"
"""The classes of kernels with matrix products. ``SMALL_GEMM`` and ``GEMM`` use only Cube cores, for at most ``FEW`` or for more
multiplications. ``ATTENTION`` and ``MIXED`` use both kinds of cores: in ``ATTENTION`` the Vector cores turn results of products
into operands of further products, in ``MIXED`` they do other work."""
FEW = 10**10
"""The maximum number of multiplications of a small GEMM; it lies between the measured sizes 1536^3 and 3072^3."""

Place = tuple[str, int]
"""A memory through which data pass from one core to another: ``gm`` and the position of a kernel argument, or the name of an
on-chip memory and -1."""


def kind_of(recorded: RecordedLaunch) -> str:
    """Returns the class of a launch, from the kinds of ops that its cores execute and from whether the Vector cores first
    receive data from the Cube core or first send data to it."""
    program = recorded.program
    kinds = {function.core for function in program.functions}
    multiplied = _multiplications(recorded)
    if not multiplied:
        return _vector_kind(recorded)
    if len(kinds) == 1:
        return GEMM if multiplied > FEW else SMALL_GEMM
    read, written = ({core: {_place(access) for function in program.functions if function.core == core
                             for record in function.records for access in record.accesses if getattr(access, which)}
                      for core in kinds} for which in ("reads", "writes"))
    taken, given = written["AIC"] & read["AIV"], written["AIV"] & read["AIC"]
    if not taken or not given:
        return MIXED
    for run in recorded.blocks[:1]:
        for stream, (index, _) in zip(run.streams, program.lanes, strict=True):
            function = program.functions[index]
            if function.core == "AIV" and (first := _first(stream, function.records, taken, given)):
                return ATTENTION if first == "taken" else MIXED
    return MIXED


def _vector_kind(recorded: RecordedLaunch) -> str:
    """Returns the class of a launch without matrix products."""
    executed = {id(record): record for index, stream, _ in recorded.distinct_streams for event in set(kept_events(stream))
                for record in (recorded.program.functions[index].records[number_of(event)],)}.values()
    works = {type(record.work) for record in executed}
    if Sorting in works:
        return SORT
    if Fold in works:
        return REDUCTION
    if any(isinstance(record.work, Lanes) and record.work.cost in REARRANGES for record in executed):
        return REARRANGEMENT
    return ELEMENT_WISE if works & {Lanes, ScalarAccess} else COPY


def _multiplications(recorded: RecordedLaunch) -> int:
    """Returns the number of multiplications in the matrix products of all blocks, including those of padding."""
    total = 0
    for index, stream, count in recorded.distinct_streams:
        records = recorded.program.functions[index].records
        for event, of_block in counted(stream).items():
            work = records[number_of(event)].work
            if isinstance(work, Mmad | Multiply):
                total += count * of_block * value(work.m, event) * value(work.k, event) * value(work.n, event)
    return total


def _place(access: Access) -> Place:
    return (GM, access.buffer) if access.memory == GM else (access.memory, -1)


def _first(stream: Sequence[Event], records: tuple[OpRecord, ...], taken: set[Place], given: set[Place]) -> str:
    """Returns ``taken`` if a Vector core first reads data of the Cube core, ``given`` if it first writes data for the Cube
    core, and an empty string if it does neither.

    Args:
        stream: the executed ops of the Vector core.
        records: the records of the ops.
        taken: the memories through which the Vector core receives data.
        given: the memories through which it sends data.
    """
    for event in kept_events(stream):
        for access in records[number_of(event)].accesses:
            if access.reads and _place(access) in taken:
                return "taken"
            if access.writes and _place(access) in given:
                return "given"
    return ""
