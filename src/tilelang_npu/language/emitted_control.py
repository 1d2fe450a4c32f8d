"""Emits loops and branches for functions of the language that consist of several statements, such as ``T.im2col``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from tilelang_npu.traced.arithmetic import truth
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, bounds_of_index
from tilelang_npu.traced.emitter import region_of
from tilelang_npu.traced.ir_types import scalar_type
from tilelang_npu.traced.kinds import INDEX, Kind
from tilelang_npu.traced.scalars import Expr

__all__ = ["chosen", "counted_loop", "guarded"]


@contextmanager
def counted_loop(builder: Builder, size: Extent) -> Iterator[Expr]:
    """A context manager: what is emitted inside is the body of a loop over 0, ..., ``size`` - 1.

    Its value is the loop's index.
    """
    location = builder.location
    start, stop, step = (builder.index(bound) for bound in (0, size, 1))
    block = Block(arg_types=[IndexType()])
    builder.epoch += 1
    with builder.at(block):
        yield builder.scalar(block.args[0], INDEX, None, bounds_of_index(size))
        builder.emit(scf.YieldOp(), location)
    builder.emit(scf.ForOp(start, stop, step, [], region_of(block)), location)


@contextmanager
def guarded(builder: Builder, condition: object) -> Iterator[None]:
    """A context manager: what is emitted inside is executed if ``condition``, a traced scalar or a Python bool, is true."""
    location = builder.location
    test, block = truth(builder, condition).ssa(builder), Block()
    with builder.at(block):
        yield
        builder.emit(scf.YieldOp(), location)
    builder.emit(scf.IfOp(test, [], region_of(block), None), location)


def chosen(builder: Builder, condition: Expr, kind: Kind, then: Callable[[], Expr], otherwise: Callable[[], Expr]) -> Expr:
    """Emits a branch and returns its value: that of ``then`` if ``condition`` is true, else that of ``otherwise``.

    Args:
        builder: the builder of the kernel.
        condition: the condition.
        kind: the type of both values.
        then, otherwise: emit the values; only one of the two is computed at run time.
    """
    blocks = []
    for side in (then, otherwise):
        blocks.append(Block())
        with builder.at(blocks[-1]):
            builder.emit(scf.YieldOp(side().ssa(builder)))
    made = builder.emit(scf.IfOp(condition.ssa(builder), [scalar_type(kind)], region_of(blocks[0]), region_of(blocks[1])))
    return builder.scalar(made.results[0], kind)
