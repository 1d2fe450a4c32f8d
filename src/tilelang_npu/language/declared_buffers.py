"""Buffers that are declared outside of a kernel with ``tvm.tir.decl_buffer``, and operations on them.

No values are computed: an operation on such buffers is checked as in a kernel, and returns a :class:`Call` that describes the
operation.
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
    """The identity of an operation, as TVM's ``Op``: there is exactly one object for each name, see :meth:`get`."""

    def __init__(self, name: str) -> None:
        self.name = name

    _known: ClassVar[dict[str, Op]] = {}

    @staticmethod
    def get(name: str) -> Op:
        """Returns the object for an operation's name, such as ``tl.ascend_reduce``."""
        return Op._known.setdefault(name, Op(name))

    def same_as(self, other: object) -> bool:
        """Whether ``other`` is this operation."""
        return self is other

    def __repr__(self) -> str:
        return f"Op({self.name})"


class Call:
    """The description of a call of an operation.

    Attributes:
        op: the operation.
        args: the operands and settings of the call, in order.
    """

    def __init__(self, op: Op, args: Sequence[object]) -> None:
        self.op = op
        self.args = tuple(args)

    def __repr__(self) -> str:
        return f"{self.op.name}({', '.join(map(str, self.args))})"


class Declared:
    """A buffer that is declared outside of a kernel, with a shape, an element type and a name, but without memory."""

    def __init__(self, shape: Sequence[int], dtype: str, name: str) -> None:
        self.shape = tuple(shape)
        self.dtype = DType(dtype)
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name} {list(self.shape)} {self.dtype}"


def decl_buffer(shape: int | Sequence[int], dtype: str = "float32", name: str = "buffer") -> Declared:
    """Returns the declaration of a buffer outside of a kernel.

    Args:
        shape: the sizes of the axes, or one size.
        dtype: the element type.
        name: the name of the buffer in messages.
    """
    return Declared([shape] if isinstance(shape, int) else shape, dtype, name)


def describe(op: str, buffers: Sequence[Declared], settings: Sequence[object], check: Callable[..., None]) -> Call:
    """Checks an operation on declared buffers, and returns the description of the call.

    Args:
        op: the name of the operation.
        buffers: the operands.
        settings: the other arguments of the call.
        check: applies the operation to buffers in UB; it is called in a temporary kernel, which is discarded.

    Raises:
        TileError: the error that the operation raises in a kernel.
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
