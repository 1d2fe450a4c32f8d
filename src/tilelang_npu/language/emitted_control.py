"""Emits loops and branches for functions of the language that consist of several statements, such as ``T.im2col``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from tilelang_npu.traced.arithmetic import truth
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, bounds_of_index
from tilelang_npu.traced.emitter import region_of
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.scalars import Expr

__all__ = ["counted_loop", "guarded"]


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
