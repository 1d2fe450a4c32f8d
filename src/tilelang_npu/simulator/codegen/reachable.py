"""Checks that an op's core and pipe can access its operands, by the chip's paths and units.

All forms of generated code call them, so a run, a run with the sanitizer and a static check report the same errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Operation

from tilelang_npu.dialects.hivm import space_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen.strided import Buffer, alternatives
from tilelang_npu.target import Path, name_of

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.records import Operand
    from tilelang_npu.simulator.codegen.values import Values


def check_pipe(em: Values, op: Operation, pipe: str, does: str = "names") -> str:
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


def check_argument(em: Values, kind: Attribute, name: str) -> None:
    """Checks that a tensor argument is in GM.

    Raises:
        TileError: T503, its type says that it is on chip.
    """
    space = space_of(kind)
    if space is not None and space in em.chip.memory:
        raise TileError(f"argument {name} of {em.function.sym_name.data} is in {name_of(space)}: a tensor argument is in GM",
                        code="T503", location=location_of(em.function),
                        help=f"give it #hivm.address_space<gm>, and load it into a buffer in {name_of(space)}")


def path_of(em: Values, op: Operation, pipe: str, source: Buffer, target: Buffer, layouts: Sequence[str] = ("",),
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


def check_operand(em: Values, op: Operation, operand: Operand) -> None:
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


def _allowed(em: Values, operand: Operand) -> list[str] | None:
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
