"""Checks of operands: that a view lies inside its buffer, and that the op's core and pipe can access the view's memory.

Where the bounds of a view are not known at compile time, NumPy checks them at run time: it refuses to create an array that
exceeds the bytes that it is created over. For that purpose, a view that possibly exceeds its buffer is created over the bytes
of this buffer alone. All emitters of generated code call these checks, so a run, a run with the sanitizer and a static check
report the same errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from xdsl.ir import Attribute, Operation

from tilelang_npu.dialects.hivm import space_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen.strided_views import Base, Buffer, StridedView, alternatives, spoken
from tilelang_npu.target import Path, name_of
from tilelang_npu.target.chip_data import Pipe, PipeName, Space

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.op_recorder import Operand
    from tilelang_npu.simulator.codegen.ssa_values import SsaValues

def buffer_bytes_name(em: SsaValues, base: Base, limit: tuple[int, int]) -> str:
    """Returns the name of a variable that holds the bytes of one buffer; the first call for a buffer emits the definition.

    Args:
        em: the emitter.
        base: the memory of the buffer.
        limit: the byte offset of the buffer in the memory, and of the byte after its last one.
    """
    name = em.buffer_bytes.get((base, limit))
    if name is None:
        name = em.buffer_bytes[base, limit] = f"{em.fresh('b')}_{base.label}"
        em.launch.line(f"{name} = {base.name}[{limit[0]}:{limit[1]}]")
    return name


def is_inside_memory(em: SsaValues, view: StridedView, element: np.dtype[np.void] | None) -> bool:
    """Whether a view is known at compile time to lie inside its buffer; inside its memory, if the buffer is not known.

    Also extends ``em.extents``, the number of bytes that the function uses of each on-chip memory, to the end of the view.

    Args:
        em: the emitter.
        view: the view.
        element: the type that replaces the view's element type; None for none.

    Raises:
        TileError: T502, the view is known to lie partly outside.
    """
    base = view.base
    reach = view.offset + (view.element.nbytes if element is None else element.itemsize)
    for size, stride in zip(view.sizes, view.strides, strict=True):
        if not stride.known:
            return False
        reach = reach + (size - 1) * stride.constant
    if base.memory != "gm" and base.size is not None:
        high, known = reach.interval.high, em.extents.get(base.memory, 0)
        bounded = high <= base.size  # otherwise the limits of the view's buffer are better bounds
        em.extents[base.memory] = max(known, int(high)) if bounded else known or base.size
    if base.size is None:
        return False
    first, end = view.limit or (0, base.size)
    if view.static and view.shape is not None and 0 not in view.shape and (
            view.offset.constant < max(first, 0) or reach.constant > min(end, base.size)):
        beyond = view.offset.constant < 0 or reach.constant > base.size
        whole, room = (spoken(base), base.size) if beyond else (base.label or "its buffer", end - first)
        shift = 0 if beyond else first
        raise TileError(
            f"bytes {view.offset.constant - shift}..{reach.constant - shift - 1} do not lie in {whole}, which has {room} bytes",
            code="T502", location=location_of(em.current_op()),
            help="the address plus the size of the buffer must not pass the end of the memory")
    return view.offset.at_least(first) and reach.at_most(end) and all(size.at_least(0) for size in view.sizes)


def check_address(em: SsaValues, view: StridedView) -> None:
    """Checks a buffer whose address is constant: its alignment, and that the buffer lies inside its memory.

    Raises:
        TileError: T502, the buffer exceeds the memory; T510, the address is not aligned.
    """
    memory = em.chip.memory[view.base.memory]
    if not view.offset.known:
        return
    if view.offset.constant % memory.align:
        raise TileError(f"address {view.offset.constant} in {spoken(view.base)} is not a multiple of {memory.align}",
                        code="T510", location=location_of(em.current_op()))
    if view.shape is not None:
        is_inside_memory(em, view, None)


def check_pipe(em: SsaValues, op: Operation, pipe: PipeName | Literal[""], does: str = "names") -> Pipe:
    """Returns ``pipe`` if the core that code is generated for has it.

    Args:
        em: the emitter.
        op: the op.
        pipe: the name of the pipe.
        does: the verb of the message: ``names`` for a pipe in the op's text, or ``runs on``.

    Raises:
        TileError: T504, the core has no such pipe.
    """
    own = em.chip.pipes[em.core]
    if (found := next((each for each in own if each == pipe), None)) is not None:
        return found
    other = next((core for core, pipes in em.chip.pipes.items() if pipe in pipes), None)
    help_ = f"an {em.core} has {', '.join(own)}"
    if does != "names" and other is not None:
        help_ += f"; an {other} has {pipe}: put the op in a function of hivm.func_core_type<{other}>"
    raise TileError(f"{op.name} {does} pipe {pipe}, which an {em.core} does not have", code="T504",
                    location=location_of(op), help=help_)


def check_argument(em: SsaValues, kind: Attribute, name: str) -> None:
    """Checks that a kernel argument of memref type is in GM.

    Args:
        em: the emitter.
        kind: the type of the argument.
        name: the name of the argument.

    Raises:
        TileError: T503, the type has the address space of an on-chip memory.
    """
    space = space_of(kind)
    if space is not None and space in em.chip.memory:
        raise TileError(f"argument {name} of {em.function.sym_name.data} is in {name_of(space)}: "
                        "tensor arguments must be in GM", code="T503", location=location_of(em.function),
                        help=f"declare it in #hivm.address_space<gm>, and load it into a buffer in {name_of(space)}")


def path_of(em: SsaValues, op: Operation, pipe: PipeName, source: Buffer, target: Buffer, layouts: Sequence[str] = ("",),
            ends: Sequence[Space] = ()) -> Path:
    """Returns the path by which a pipe moves data from one memref to another.

    Args:
        em: the emitter.
        op: the op.
        pipe: the pipe that runs the op.
        source, target: the memrefs that the op reads and writes.
        layouts: the layout changes that the op can make, the preferred one first.
        ends: the memories that the op can write; empty for all.

    Raises:
        TileError: T503, there is no such path, or it accesses the memory of another core and the kernel runs without this core;
            T504, the core has no such pipe.
    """
    check_pipe(em, op, pipe, "runs on")
    rows = [row for layout in layouts for row in em.chip.paths_of(pipe, em.core)
            if row.layout == layout and (not ends or row.target in ends)]
    spaces = _memory(source), _memory(target)
    row = next((row for row in rows if (row.source, row.target) == spaces), None)
    if row is not None:
        for space in spaces:
            if space != "gm" and em.chip.memory[space].core != em.core and "hivm.part_of_mix" not in em.function.attributes:
                other = em.chip.memory[space].core
                raise TileError(f"{op.name} accesses {name_of(space)} of an {other}, but the kernel runs on an {em.core} alone",
                                code="T503", location=location_of(op),
                                help="go through GM, or make both functions parts of one kernel (hivm.part_of_mix)")
        return row
    first, second = (name_of(space) for space in spaces)
    onward = sorted({row.target for row in rows if row.source == spaces[0]})
    back = sorted({row.source for row in rows if row.target == spaces[1]})
    advice = [f"put dst in {_either(onward)}" if onward else "", f"take src from {_either(back)}" if back else "",
              "go through GM" if {first, second} <= {"UB", "L1", "L0C"} else ""]
    raise TileError(
        f"{em.chip.name} has no path from {first} to {second} for {op.name} of an {em.core}", code="T503",
        location=location_of(op), help=", or ".join(filter(None, advice)),
        notes=(f"src{_called(source)} is in {first}, dst{_called(target)} in {second}",
               f"on {pipe} the op can move data " + ", ".join(dict.fromkeys(
                   f"from {name_of(row.source)} to {name_of(row.target)}" for row in rows))))


def check_operand(em: SsaValues, op: Operation, operand: Operand) -> None:
    """Checks that the pipe that accesses an operand can access the operand's memory.

    Raises:
        TileError: T503, the operand is in another memory.
    """
    allowed = _allowed(em, operand)
    space = _memory(operand.buffer)
    if allowed is None or space in allowed:
        return
    where = f"{operand.name}{_called(operand.buffer)} of {op.name} is in {name_of(space)}"
    why = "" if space == "gm" or em.chip.memory[space].core == em.core else f"; an {em.core} has no {name_of(space)}"
    takes = (f"pipe {operand.pipe} of {em.chip.name} needs it in {_either(allowed)}" if allowed
             else "this operand must be a number")
    raise TileError(f"{where}: {takes}", code="T503", location=location_of(op),
                    help=f"put it in {_either(allowed)}{why}" if allowed else f"pass a number{why}")


def _allowed(em: SsaValues, operand: Operand) -> list[Space] | None:
    """Returns the memories that may hold an operand; None for the operands of a move, which :func:`path_of` checks."""
    chip, core = em.chip, em.core
    if operand.into:
        return [row.source for row in chip.paths_of(operand.pipe, core) if row.target == operand.into]
    if operand.pipe == "S":
        return ["gm", *chip.memories(core)]
    if operand.path is not None:
        return None
    unit = next((unit for unit in chip.units if (unit.pipe, unit.core) == (operand.pipe, core)), None)
    if unit is None:
        return []
    return list(unit.operands.get(operand.name, unit.operands.get("", unit.fills if operand.writes else ())))


def _memory(buffer: Buffer) -> Space:
    return alternatives(buffer)[0].base.memory


def _called(buffer: Buffer) -> str:
    label = alternatives(buffer)[0].base.label
    return f" ({label})" if label else ""


def _either(spaces: Iterable[Space]) -> str:
    return " or ".join(dict.fromkeys(name_of(space) for space in spaces))
