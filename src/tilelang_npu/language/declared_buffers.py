"""Buffers that are declared outside of a kernel with ``tvm.tir.decl_buffer``, and operations on them.

Nothing is computed: an operation on such a buffer is checked as in a kernel, and returns a :class:`Call` that describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from tilelang_npu.errors import Location
from tilelang_npu.ops import DType
from tilelang_npu.traced.active_trace import enter, leave
from tilelang_npu.traced.author import user_location

__all__ = ["Call", "Declared", "Op", "decl_buffer", "describe"]


class Op:
    """The name of an operation; there is one object for each name."""

    def __init__(self, name: str) -> None:
        self.name = name

    _known: ClassVar[dict[str, Op]] = {}

    @staticmethod
    def get(name: str) -> Op:
        """The operation of that name, such as ``tl.ascend_reduce``."""
        return Op._known.setdefault(name, Op(name))

    def same_as(self, other: object) -> bool:
        """Whether both are the same operation."""
        return self is other

    def __repr__(self) -> str:
        return f"Op({self.name})"


class Call:
    """An operation and its operands.

    Attributes:
        op: the operation.
        args: its operands and settings, in the order of the call.
    """

    def __init__(self, op: Op, args: Sequence[object]) -> None:
        self.op = op
        self.args = tuple(args)

    def __repr__(self) -> str:
        return f"{self.op.name}({', '.join(map(str, self.args))})"


class Declared:
    """A buffer outside of a kernel: its shape, element type and name."""

    def __init__(self, shape: Sequence[int], dtype: str, name: str) -> None:
        self.shape = tuple(shape)
        self.dtype = DType(dtype)
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name} {list(self.shape)} {self.dtype}"


def decl_buffer(shape: int | Sequence[int], dtype: str = "float32", name: str = "buffer") -> Declared:
    """Declare a buffer by its shape and element type."""
    return Declared([shape] if isinstance(shape, int) else shape, dtype, name)


def describe(op: str, buffers: Sequence[Declared], settings: Sequence[object], check: Callable[..., None]) -> Call:
    """Checks an operation on declared buffers and returns the call.

    Args:
        op: the name of the operation.
        buffers: its operands.
        settings: its other arguments.
        check: applies the operation to buffers in UB, in a kernel that is thrown away.

    Raises:
        TileError: what the operation raises in a kernel.
    """
    from xdsl.ir import Block  # declaring a buffer does not load the IR framework

    from tilelang_npu.language.allocate import alloc_ub
    from tilelang_npu.traced.builder import Builder

    builder = Builder("ascendc", Block(), user_location() or Location("<declared>", 1))
    builder.in_kernel = True
    token = enter(builder)
    try:
        check(*(alloc_ub(buffer.shape, str(buffer.dtype)) for buffer in buffers))
    finally:
        leave(token)
    return Call(Op.get(op), [*buffers, *settings])
