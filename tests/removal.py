"""Removes waits from compiled kernels one at a time, to find those without which there is no hazard.

Which set belongs to which wait is determined by the order in which the machine ran them, not by the passes' remarks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from tilelang_npu import TileError
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.machine.op_records import number_of
from tilelang_npu.simulator.result.launch_result import Launch
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.run.program import Program

SYNC = (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)


class Call(NamedTuple):
    """The arguments of a launch, and on how many blocks."""

    arguments: Sequence[Any]
    blocks: int


class Removed(NamedTuple):
    """The number of waits (each with its sets) and barriers, the number that was removed, and those without which there is no
    hazard."""

    there: int
    tried: int
    idle: list[str]


Site = tuple[Operation, int]
"""A synchronising site: an operation and the index in its ``sync_related_args``; -1 for the operation itself."""
PASSED = range(4)
"""The ``sync_related_args`` of mmadL1 that are events with MTE2: two that it waits for, two that it sets."""


def _sites(module: ModuleOp) -> list[Site]:
    found: list[Site] = []
    for op in module.walk():
        if isinstance(op, SYNC):
            found.append((op, -1))
        elif isinstance(op, hivm.MmadL1Op) and op.sync_related_args:
            found += [(op, place) for place in PASSED if constant_value(op.sync_related_args[place]) != -1]
    return found


def _remove(site: Site) -> None:
    op, place = site
    block = op.parent_block()
    assert block is not None
    if place < 0:
        block.erase_op(op)
        return
    none = arith.ConstantOp(IntegerAttr(-1, i64))
    block.insert_op_before(none, op)
    op.operands[7 + place] = none.result


def _spelled(site: Site) -> str:
    op, place = site
    return str(op) if place < 0 else f"argument {place} of {op}"


def _units(program: Program, launches: Sequence[Launch]) -> Iterator[list[int]]:
    """Returns the groups of sites that must be removed together: the sets and waits that belong together, or a single
    barrier."""
    sites = _sites(program.module)
    kernels = [op for op in program.module.walk()
               if isinstance(op, func.FuncOp) and op.body.blocks and "hacc.entry" in op.attributes]
    numbers = {site: number for number, site in enumerate(sites)}
    place: dict[tuple[int, int, int], int] = {}
    for index, (_, function) in enumerate(zip(kernels, program.functions, strict=True)):
        for op, record in zip(function.recorded, function.records, strict=True):
            for argument in (-1, *PASSED):
                if (op, argument) in numbers:
                    place[index, record.number, argument] = numbers[op, argument]
    assert len(set(place.values())) == len(sites)
    root = list(range(len(sites)))

    def find(number: int) -> int:
        while root[number] != number:
            number = root[number]
        return number

    for launch, run in ((one, run) for one in launches for run in one.distinct_blocks):
        order = launch._order([run])
        lanes = [index for index, _ in program.lanes]

        where = [place.get((lanes[step.core], number_of(run.streams[step.core][step.number]), step.step.place))
                 for step in order.steps]
        for one, step in zip(where, order.steps, strict=True):
            for two in (where[partner] for partner in step.partners):
                if one is not None and two is not None:  # a macro's own events are no ops
                    root[find(one)] = find(two)
    groups: dict[int, list[int]] = defaultdict(list)
    for number in range(len(sites)):
        groups[find(number)].append(number)
    yield from groups.values()


def _exempt(sites: list[Site]) -> bool:
    """The barrier that ends a kernel, and the events of a product's own two slots in L0."""
    ops = [op for op, _ in sites]
    if any(isinstance(op, hivm.PipeBarrierOp) and isinstance(op.next_op, func.ReturnOp) for op in ops):
        return True
    return all(isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp)) and op.pipes() == ("M", "MTE1") for op in ops)


def removed(text: str, calls: Sequence[Call]) -> Removed:
    """Removes every wait of a kernel in turn, and returns those without which no call has a hazard."""
    module = parse_module(text)
    program, launches = Program(module), []
    assert not _found(program, calls[0])
    for call in calls:
        launches.append(Launch(program.trace(call.arguments, blocks=call.blocks)))
        assert launches[-1].hazards == []
    idle, tried = [], 0
    units = list(_units(program, launches))
    for unit in units:
        made = module.clone()
        all_of_it = _sites(made)
        sites = [all_of_it[number] for number in unit]
        if _exempt(sites):
            continue
        for site in sites:
            _remove(site)
        tried += 1
        without = Program(made)
        if not any(_meets(without, call) for call in calls) and not _found(without, calls[0]):
            idle.append("; ".join(_spelled(_sites(module)[number]) for number in unit))
    return Removed(len(units), tried, idle)


def _meets(program: Program, call: Call) -> bool:
    try:
        return bool(Launch(program.trace(call.arguments, blocks=call.blocks)).hazards)
    except TileError:
        return True


def _found(program: Program, call: Call) -> bool:
    """Like the caller, with other numbers in place of data."""
    checked = check(program, call.arguments, call.blocks)
    return bool(checked.hazards or checked.errors)
