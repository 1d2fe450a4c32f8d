"""A builder that inserts operations at an insertion point, folds integer arithmetic and sets source locations.

Each constant is emitted once, at the start of the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, LocationAttr, UnknownLoc, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects.ir.remarks import strip_remarks

OpT = TypeVar("OpT", bound=Operation)
Value = SSAValue | int
INDEX = IndexType()


def float_type(kind: Attribute) -> AnyFloat:
    """Returns its argument, typed as a float type; the argument must be one."""
    assert isinstance(kind, AnyFloat)
    return kind


class OpBuilder:
    """Inserts operations into one function.

    A Python integer as an operand becomes a constant of type index. Arithmetic on two integers is computed and emits
    nothing; neither does arithmetic with a neutral element, such as the addition of 0.

    Attributes:
        entry: the first block of the function, at the start of which constants are inserted.
        ranges: bounds of scalars.
        point: the insertion point of all other operations.
        location: the source location of the inserted operations.
        conditions: conditions that hold whenever the operations at the insertion point are executed.
    """

    def __init__(self, entry: Block, ranges: Ranges | None = None):
        self.entry = entry
        self.ranges = ranges or Ranges()
        self.point = InsertPoint.at_end(entry)
        self.location: LocationAttr = UnknownLoc()
        self.conditions: tuple[SSAValue, ...] = ()
        self._constants: dict[tuple[Attribute, object], arith.ConstantOp] = {}
        self._last_constant: Operation | None = None

    def insert(self, op: OpT) -> OpT:
        """Inserts an operation at ``point``, with the source location ``location``; returns the operation."""
        op.location = self.location
        Rewriter().insert_op(op, self.point)
        return op

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Returns a context manager inside of which the insertion point is the end of a block."""
        saved, self.point = self.point, InsertPoint.at_end(block)
        yield
        self.point = saved

    @contextmanager
    def where(self, condition: SSAValue) -> Iterator[None]:
        """Returns a context manager inside of which ``conditions`` includes a condition; no branch is emitted."""
        saved, self.conditions = self.conditions, (*self.conditions, condition)
        yield
        self.conditions = saved

    @contextmanager
    def before(self, op: Operation) -> Iterator[None]:
        """Returns a context manager inside of which operations are inserted before ``op``, with the location of ``op``."""
        saved, where = self.point, self.location
        self.point, self.location = InsertPoint.before(op), strip_remarks(op.location)
        yield
        self.point, self.location = saved, where

    @contextmanager
    def after(self, op: Operation) -> Iterator[None]:
        """Returns a context manager inside of which operations are inserted after ``op``, with the location of ``op``."""
        saved, where = self.point, self.location
        self.point, self.location = InsertPoint.after(op), strip_remarks(op.location)
        yield
        self.point, self.location = saved, where

    def constant(self, value: float, kind: Attribute = INDEX) -> SSAValue:
        """Returns a constant of an integer, index or float type; each value is emitted once per function."""
        key = (kind, repr(value))
        found = self._constants.get(key)
        if found is None:
            if isinstance(kind, (IndexType, IntegerType)):
                found = arith.ConstantOp(IntegerAttr(int(value), kind))
                name = f"c{int(value)}" if value >= 0 else f"cm{-int(value)}"
                suffix = "" if isinstance(kind, IndexType) else f"_{kind}"
                found.result.name_hint = name + suffix if str(kind) != "i1" else ("true" if value else "false")
            else:
                found = arith.ConstantOp(FloatAttr(float(value), float_type(kind)))
                found.result.name_hint = "cst"
            first = self.entry.first_op
            if self._last_constant is not None:
                Rewriter().insert_op(found, InsertPoint.after(self._last_constant))
            elif first is not None:
                Rewriter().insert_op(found, InsertPoint.before(first))
            else:
                self.entry.add_op(found)
                if self.point.block is self.entry and self.point.insert_before is found:
                    self.point = InsertPoint.at_end(self.entry)
            self._last_constant = found
            self._constants[key] = found
        return found.result

    def value(self, value: Value) -> SSAValue:
        """Returns ``value`` if it is an SSA value, and the index constant of that number if it is an integer."""
        return self.constant(value) if isinstance(value, int) else value

    def add(self, a: Value, b: Value) -> Value:
        """Returns ``a + b``."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.insert(arith.AddiOp(self.value(a), self.value(b))).result

    def sub(self, a: Value, b: Value) -> Value:
        """Returns ``a - b``."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.insert(arith.SubiOp(self.value(a), self.value(b))).result

    def mul(self, a: Value, b: Value) -> Value:
        """Returns ``a * b``."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.insert(arith.MuliOp(self.value(a), self.value(b))).result

    def floordiv(self, a: Value, b: int) -> Value:
        """Returns ``a // b``; ``a`` must not be negative, and ``b`` must be positive."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else self.insert(arith.DivUIOp(a, self.constant(b))).result

    def modulo(self, a: Value, b: int) -> Value:
        """Returns ``a % b``; ``a`` must not be negative, and ``b`` must be positive."""
        if isinstance(a, int):
            return a % b
        return 0 if b == 1 else self.insert(arith.RemUIOp(a, self.constant(b))).result

    def minimum(self, a: Value, b: Value) -> Value:
        """Returns the smaller of two signed values."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.insert(arith.MinSIOp(self.value(a), self.value(b))).result

    def maximum(self, a: Value, b: Value) -> Value:
        """Returns the larger of two signed values."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.insert(arith.MaxSIOp(self.value(a), self.value(b))).result

    def less(self, a: Value, b: Value) -> SSAValue:
        """Returns ``a < b`` on signed indices, as i1."""
        return self.insert(arith.CmpiOp(self.value(a), self.value(b), "slt")).result

    def equal(self, a: Value, b: Value) -> SSAValue:
        """Returns ``a == b`` on indices, as i1."""
        return self.insert(arith.CmpiOp(self.value(a), self.value(b), "eq")).result

    def either(self, a: SSAValue | None, b: SSAValue) -> SSAValue:
        """Returns the logical or of two i1 values; None as ``a`` means false."""
        return b if a is None else self.insert(arith.OrIOp(a, b)).result

    def as_i64(self, value: Value) -> SSAValue:
        """Returns a value of type index, converted to i64."""
        if isinstance(value, int):
            return self.constant(value, i64)
        return self.insert(arith.IndexCastOp(value, i64)).result
