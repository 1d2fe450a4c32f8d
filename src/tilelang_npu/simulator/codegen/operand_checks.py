"""Checks of operands: that a view lies inside its buffer, and that the op's core and pipe can access its memory.

Where the bounds of a view are not known at compile time, NumPy checks them at run time: it refuses an array that reaches beyond
its memory, so a view that may leave its buffer becomes an array over the bytes of that buffer alone. All forms of generated
code call these checks, so a run, a run with the sanitizer and a static check report the same errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Attribute, Operation

from tilelang_npu.dialects.hivm import space_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen.strided_views import Base, Buffer, StridedView, alternatives, spoken
from tilelang_npu.target import Path, name_of

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.op_recorder import Operand
    from tilelang_npu.simulator.codegen.ssa_values import SsaValues

def buffer_bytes_name(em: SsaValues, base: Base, limit: tuple[int, int]) -> str:
    """Returns the name of the bytes of one buffer."""
    name = em.buffer_bytes.get((base, limit))
    if name is None:
        name = em.buffer_bytes[base, limit] = f"{em.fresh('b')}_{base.label}"
        em.launch.line(f"{name} = {base.name}[{limit[0]}:{limit[1]}]")
    return name


def is_inside_memory(em: SsaValues, view: StridedView, element: np.dtype[np.void] | None) -> bool:
    """Whether a view is known to lie inside its memory.

    Raises:
        TileError: T502, it is known to lie outside.
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
    """Checks the alignment of a known address, and that the buffer fits.

    Raises:
        TileError: T502, it does not fit; T510, it is not aligned.
    """
    memory = em.chip.memory[view.base.memory]
    if not view.offset.known:
        return
    if view.offset.constant % memory.align:
        raise TileError(f"address {view.offset.constant} in {spoken(view.base)} is not a multiple of {memory.align}",
                        code="T510", location=location_of(em.current_op()))
    if view.shape is not None:
        is_inside_memory(em, view, None)


def check_pipe(em: SsaValues, op: Operation, pipe: str, does: str = "names") -> str:
    """Returns the pipe.

    Raises:
        TileError: T504, the core has no such pipe.
    """
    own = em.chip.pipes[em.core]
    if pipe in own:
        return pipe
    other = next((core for core, pipes in em.chip.pipes.items() if pipe in pipes), None)
    help_ = f"an {em.core} has {', '.join(own)}"
    if does != "names" and other is not None:
        help_ += f"; an {other} has {pipe}: put the op in a function of hivm.func_core_type<{other}>"
    raise TileError(f"{op.name} {does} pipe {pipe}, which an {em.core} does not have", code="T504",
                    location=location_of(op), help=help_)


def check_argument(em: SsaValues, kind: Attribute, name: str) -> None:
    """Checks that a tensor argument is in GM.

    Raises:
        TileError: T503, its type says that it is on chip.
    """
    space = space_of(kind)
    if space is not None and space in em.chip.memory:
        raise TileError(f"argument {name} of {em.function.sym_name.data} is in {name_of(space)}: a tensor argument is in GM",
                        code="T503", location=location_of(em.function),
                        help=f"give it #hivm.address_space<gm>, and load it into a buffer in {name_of(space)}")


def path_of(em: SsaValues, op: Operation, pipe: str, source: Buffer, target: Buffer, layouts: Sequence[str] = ("",),
            ends: Sequence[str] = ()) -> Path:
    """Returns the path by which a pipe moves data from one memref to another.

    Args:
        em: the emitter.
        op: the op.
        pipe: its pipe.
        source, target: the memrefs.
        layouts: layout changes that the op may make, the preferred first.
        ends: the memories that it may write; empty for all.

    Raises:
        TileError: T503, there is no such path; T504, the core has no such pipe; T501, the path leads to another core.
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
                raise TileError(f"{op.name} accesses {name_of(space)} of an {other}, and this {em.core} runs without one",
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
               f"by {pipe} the op goes " + ", ".join(dict.fromkeys(
                   f"from {name_of(row.source)} to {name_of(row.target)}" for row in rows))))


def check_operand(em: SsaValues, op: Operation, operand: Operand) -> None:
    """Checks that an operand is in a memory that its pipe can access.

    Raises:
        TileError: T503, it is not.
    """
    allowed = _allowed(em, operand)
    space = _memory(operand.buffer)
    if allowed is None or space in allowed:
        return
    where = f"{operand.name}{_called(operand.buffer)} of {op.name} is in {name_of(space)}"
    why = "" if space == "gm" or em.chip.memory[space].core == em.core else f"; an {em.core} has no {name_of(space)}"
    takes = f"{operand.pipe} of {em.chip.name} takes it in {_either(allowed)}" if allowed else "the op takes a number there"
    raise TileError(f"{where}: {takes}", code="T503", location=location_of(op),
                    help=f"put it in {_either(allowed)}{why}" if allowed else f"give a number{why}")


def _allowed(em: SsaValues, operand: Operand) -> list[str] | None:
    """Returns the memories that may hold an operand; None for ends of a move, which :func:`path_of` checks."""
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


def _memory(buffer: Buffer) -> str:
    return alternatives(buffer)[0].base.memory


def _called(buffer: Buffer) -> str:
    label = alternatives(buffer)[0].base.label
    return f" ({label})" if label else ""


def _either(spaces: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(name_of(space) for space in spaces))
