"""Makes the comments for the operations in a kernel's MLIR text: Python line, bytes, cycles, and the remarks of passes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import Placed, Remark, remarks_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.runtime.reports.sync_report import reason_text
from tilelang_npu.target import name_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.simulator import AnyLaunch, Launch


def operation_comments(module: ModuleOp, launch: AnyLaunch | None) -> dict[Operation, str]:
    """Returns a comment for each operation that moves data, computes or waits, or has a remark of a pass.

    Args:
        module: the kernel's module after some stage.
        launch: a launch whose program was made from this very module object, for the cycles; None for comments without cycles.
    """
    cycles = {op: text for part in (launch.parts if launch is not None else ()) for op, text in _cycles(part).items()}
    notes = {}
    for op in module.walk():
        size, spent, remarks = _nbytes(op), cycles.get(op), remarks_of(op)
        if op.regions or (size is None and spent is None and not remarks):
            continue
        where = location_of(op)
        parts = [f"{Path(where.shown_file).name}:{where.line}"] if where is not None else []
        parts += [f"{size} B"] if size else []
        parts += [spent] if spent else []
        parts += [f"{remark.maker}: {_text(remark)}" for remark in remarks]
        if parts:
            notes[op] = ", ".join(parts)
    return notes


def _text(remark: Remark) -> str:
    if not isinstance(facts := remark.facts, Placed):
        return reason_text(remark)
    lines = f", alive {facts.lines[0]}..{facts.lines[1]}" if all(facts.lines) else ""
    slot = f" (slot {facts.slot})" if facts.slots > 1 else ""
    return f"{facts.name}{slot}, {facts.nbytes} B of {name_of(facts.space)}{lines}"


def _nbytes(op: Operation) -> int | None:
    """Returns the bytes of the largest operand that an operation reads or writes; None if it accesses no memory, or no size is
    known."""
    sizes = [_size(effect.value) for effect in effects_of(op) if effect.pipe or op.dialect_name() == "tile"]
    known = [size for size in sizes if size is not None]
    return max(known, default=None)


def _size(value: SSAValue) -> int | None:
    kind = value.type
    assert isinstance(kind, MemRefType)
    total: int = dtype_of(kind.element_type).nbytes
    for length in kind.get_shape():
        if length == DYNAMIC_INDEX:
            return None
        total *= length
    return total


def _cycles(launch: Launch) -> dict[Operation, str]:
    """Returns the cost of each operation in the launch's first block: ``8 x 210 cycles``."""
    from tilelang_npu.simulator.machine.op_records import number_of
    from tilelang_npu.simulator.time.cost import CostModel
    from tilelang_npu.simulator.time.pipe_steps import RUN, Expansion

    program = launch.recorded.program
    costs = CostModel(launch.chip)
    spent: dict[Operation, str] = {}
    done: set[int] = set()
    for (index, _), stream in zip(program.lanes, launch.recorded.blocks[0].streams, strict=True):
        if index in done:  # the second Vector core runs the same function
            continue
        done.add(index)
        function = program.functions[index]
        expansion = Expansion(function.records, costs)
        total: dict[int, list[float]] = {}
        for event in stream:
            total.setdefault(number_of(event), []).append(
                sum(step[4].busy for step in expansion.of(event) if step[0] == RUN))
        for op, record in zip(program.ops(index), function.records, strict=True):
            each = total.get(record.number, [])
            if any(each):
                times = f"{len(each)} x " if len(each) > 1 else ""
                spent[op] = f"{times}{sum(each) / len(each):.0f} cycles"
    return spent
