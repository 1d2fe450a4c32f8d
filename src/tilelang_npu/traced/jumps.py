"""``break``, ``continue`` and ``T.loop_break``: flags in place of jumps, which loops of the IR do not have.

A jump sets flags, and the statements after it in the loop's body are executed only while the flags are not set. ``skipped``
holds for the rest of one iteration, ``left`` for all further iterations. Both are scalars of the kernel, so that a jump has the
same meaning in the program of each core.
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
    """The jumps of one loop while its body is walked.

    Attributes:
        before: the block that the loop will be in.
        refusal: why this loop cannot have jumps, and what to write instead; None where it can.
        left: the flag that ends the loop, once a jump leaves it.
        skipped: the flag that ends the iteration, once there is a jump.
        count: the number of jumps so far.
        block: the block of the last one.
    """

    before: Block
    refusal: tuple[str, str] | None = None
    left: Variable | None = None
    skipped: Variable | None = None
    count: int = 0
    block: Block | None = None


def jump(builder: Emitter, loops: Sequence[Jumps], what: str, *, leaves: bool) -> None:
    """Ends this iteration of the innermost of ``loops``; with ``leaves`` the loop too.

    Raises:
        TileError: T141, there is no loop, or it cannot have jumps.
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
    """Allocates a truth value that the kernel changes, in the current block."""
    op = builder.emit(tile.AllocOp(name, buffer_type(BOOL, (1,), "local")))
    made = Variable(name, BOOL, (1,), "local", op.results[0], builder.location)
    made.rename(name, builder.location)
    made.place.store(value)
    return made


def _unset(builder: Emitter, loop: Jumps, name: str) -> Variable:
    with builder.at(loop.before):
        return flag(builder, name, False)


def walk_rest(builder: Emitter, loop: Jumps, walk: Callable[[], None]) -> None:
    """Walks the statements after one that may jump; statements right after a jump are not reached."""
    if loop.block is builder.block:
        return
    assert loop.skipped is not None
    test, block, location = is_unset(builder, loop.skipped), Block(), builder.location
    with builder.at(block):
        walk()
        builder.emit(scf.YieldOp(), location)
    builder.emit(scf.IfOp(test.ssa(builder), [], region_of(block), None), location)


def is_unset(builder: Emitter, flag: Variable) -> Expr:
    """Whether a flag is not set."""
    return arithmetic.logical_not(builder, flag.place.load())


def close(builder: Emitter, block: Block, loop: Jumps) -> None:
    """Adds the tests of the flags to the body of a loop, which has no terminator yet."""
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
