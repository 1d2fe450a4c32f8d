"""Emits ``break``, ``continue`` and ``T.loop_break`` as flag variables, since loops of the IR have no jumps.

A jump sets flags, and the statements after the jump in the loop's body are executed only if the flags are not set. The flag
``skipped`` is set for the rest of one iteration, and the flag ``left`` for all further iterations. Both are scalar variables of
the kernel, so that a jump has the same effect in the program of each core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.traced import arithmetic
from tilelang_npu.traced.buffers import Variable
from tilelang_npu.traced.emitter import Emitter, region_of
from tilelang_npu.traced.ir_types import buffer_type
from tilelang_npu.traced.kinds import BOOL
from tilelang_npu.traced.scalars import Expr


@dataclass
class Jumps:
    """The state of the jumps of one loop while the loop's body is traced.

    Attributes:
        before: the block that contains the loop; flags are allocated there.
        refusal: if jumps are not allowed in this loop, the reason and what to write instead; otherwise None.
        left: the flag that ends the loop; None as long as no jump has left the loop.
        skipped: the flag that ends the iteration; None as long as there was no jump.
        count: the number of jumps so far.
        block: the block of the last jump.
    """

    before: Block
    refusal: tuple[str, str] | None = None
    left: Variable | None = None
    skipped: Variable | None = None
    count: int = 0
    block: Block | None = None


def jump(builder: Emitter, loops: Sequence[Jumps], what: str, *, leaves: bool) -> None:
    """Emits a jump to the end of the current iteration of the innermost loop.

    Args:
        builder: emits the stores to the flags.
        loops: the loops around the current statement, outermost first.
        what: the name of the statement, for error messages.
        leaves: whether the jump ends the loop too (``break``).

    Raises:
        TileError: T141, the statement is in no loop, or in a loop in which jumps are not allowed.
    """
    if not loops:
        raise TileError(f"{what} is outside of a loop", code="T141", help="write it inside `for` or `while`")
    loop = loops[-1]
    if loop.refusal is not None:
        reason, remedy = loop.refusal
        raise TileError(f"{what} {reason}", code="T141", help=remedy)
    if leaves:
        if loop.left is None:
            loop.left = _unset(builder, loop, "left")
        loop.left.place.store(True)
    if loop.skipped is None:
        loop.skipped = _unset(builder, loop, "skipped")
    loop.skipped.place.store(True)
    loop.count += 1
    loop.block = builder.block


def flag(builder: Emitter, name: str, value: bool | Expr) -> Variable:
    """Allocates a ``bool`` variable in the current block, stores ``value`` to it and returns it."""
    op = builder.emit(tile.AllocOp(name, buffer_type(BOOL, (1,), "local")))
    made = Variable(name, BOOL, (1,), "local", op.results[0], builder.location)
    made.rename(name, builder.location)
    made.place.store(value)
    return made


def _unset(builder: Emitter, loop: Jumps, name: str) -> Variable:
    with builder.at(loop.before):
        return flag(builder, name, False)


def walk_rest(builder: Emitter, loop: Jumps, walk: Callable[[], None]) -> None:
    """Traces the statements after a statement that contains a jump, in a branch that is taken if no jump was executed.

    If the jump is in the current block itself, the statements can never be executed and are not traced.

    Args:
        builder: emits the branch.
        loop: the innermost loop.
        walk: traces the statements.
    """
    if loop.block is builder.block:
        return
    assert loop.skipped is not None
    test, block, location = is_unset(builder, loop.skipped), Block(), builder.location
    with builder.at(block):
        walk()
        builder.emit(scf.YieldOp(), location)
    builder.emit(scf.IfOp(test.ssa(builder), [], region_of(block), None), location)


def is_unset(builder: Emitter, flag: Variable) -> Expr:
    """Emits a load of a flag variable and returns the scalar that is true if the flag is not set."""
    return arithmetic.logical_not(builder, flag.place.load())


def close(builder: Emitter, block: Block, loop: Jumps) -> None:
    """Completes the body of a loop: resets ``skipped`` at its start, and executes it only if ``left`` is not set.

    Args:
        builder: emits the operations.
        block: the body, which must not have a terminator yet.
        loop: the state of the loop's jumps.
    """
    if loop.skipped is None:
        return
    body = builder.lifted_out(block)
    with builder.at(block):
        if loop.left is None:
            loop.skipped.place.store(False)
            builder.splice(body)
            return
        inner, location = Block(), builder.location
        with builder.at(inner):
            loop.skipped.place.store(False)
            builder.splice(body)
            builder.emit(scf.YieldOp(), location)
        builder.emit(scf.IfOp(is_unset(builder, loop.left).ssa(builder), [], region_of(inner), None), location)
