"""Lowers operations of the ``affine`` dialect to ``arith``, ``scf`` and ``memref``: maps, loops and memory accesses.

Runs first on HIVM modules of other tools, since later passes read indices and bounds of ``arith`` and ``scf`` only. As in MLIR,
``mod`` has the sign of the divisor, ``floordiv`` rounds down and ``ceildiv`` rounds up. A constant divisor must be positive.
``affine.if`` and ``affine.parallel`` are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects.mlir.affine import MaxOp
from tilelang_npu.errors import TileError

_BINARY: dict[AffineBinaryOpKind, Callable[[SSAValue, SSAValue], Operation]] = {
    AffineBinaryOpKind.Add: arith.AddiOp, AffineBinaryOpKind.Mul: arith.MuliOp,
    AffineBinaryOpKind.FloorDiv: arith.FloorDivSIOp, AffineBinaryOpKind.CeilDiv: arith.CeilDivSIOp}


class _MapEmitter:
    """Emits the ops that compute maps, before an op."""

    def __init__(self, op: Operation) -> None:
        self.op = op

    def insert(self, made: Operation) -> SSAValue:
        made.location = self.op.location
        Rewriter.insert_op(made, InsertPoint.before(self.op))
        return made.results[0]

    def number(self, value: int) -> SSAValue:
        return self.insert(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def expression(self, expr: AffineExpr, dims: Sequence[SSAValue], symbols: Sequence[SSAValue]) -> SSAValue:
        if isinstance(expr, AffineConstantExpr):
            return self.number(expr.value)
        if isinstance(expr, AffineDimExpr):
            return dims[expr.position]
        if isinstance(expr, AffineSymExpr):
            return symbols[expr.position]
        assert isinstance(expr, AffineBinaryOpExpr)
        divides = expr.kind not in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)
        if divides and isinstance(expr.rhs, AffineConstantExpr) and expr.rhs.value < 1:
            raise refuse(self.op, f"{self.op.name} divides by {expr.rhs.value}, which is not positive", "T501",
                         help="divide by a positive number")
        left, right = (self.expression(side, dims, symbols) for side in (expr.lhs, expr.rhs))
        if expr.kind is not AffineBinaryOpKind.Mod:
            return self.insert(_BINARY[expr.kind](left, right))
        rest = self.insert(arith.RemSIOp(left, right))
        below = self.insert(arith.CmpiOp(rest, self.number(0), "slt"))
        raised = self.insert(arith.AddiOp(rest, right))
        return self.insert(arith.SelectOp(below, raised, rest))

    def all_of(self, map_: AffineMap, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """Returns the results of a map."""
        dims, symbols = operands[:map_.num_dims], operands[map_.num_dims:]
        return [self.expression(expr, dims, symbols) for expr in map_.results]

    def extreme(self, map_: AffineMap, operands: Sequence[SSAValue], pick: type[arith.MinSIOp | arith.MaxSIOp]) -> SSAValue:
        """Returns the smallest or the largest of the results of a map."""
        first, *others = self.all_of(map_, operands)
        for other in others:
            first = self.insert(pick(first, other))
        return first


def _lower_loop(op: affine.ForOp) -> None:
    values = _MapEmitter(op)
    low = values.extreme(op.lowerBoundMap.data, op.lowerBoundOperands, arith.MaxSIOp)
    high = values.extreme(op.upperBoundMap.data, op.upperBoundOperands, arith.MinSIOp)
    step = values.number(op.step.value.data)
    last = op.body.block.last_op
    assert isinstance(last, affine.YieldOp)
    Rewriter.replace_op(last, scf.YieldOp(*last.arguments))
    Rewriter.replace_op(op, loop := scf.ForOp(low, high, step, op.inits, op.detach_region(op.body)))
    loop.location = values.op.location


def _lower_op(op: Operation) -> None:
    """Replace one op.

    Raises:
        TileError: T501 it has no counterpart.
    """
    values = _MapEmitter(op)
    made: Operation | None = None
    result: SSAValue | None = None
    if isinstance(op, affine.ApplyOp):
        (result,) = values.all_of(op.map.data, op.operands)
    elif isinstance(op, affine.MinOp):
        result = values.extreme(op.map.data, op.operands, arith.MinSIOp)
    elif isinstance(op, MaxOp):
        result = values.extreme(op.map.data, op.operands, arith.MaxSIOp)
    elif isinstance(op, affine.LoadOp):
        made = memref.LoadOp.get(op.memref, values.all_of(op.map.data, op.indices))
    elif isinstance(op, affine.StoreOp):
        made = memref.StoreOp.get(op.value, op.memref, values.all_of(op.map.data, op.indices))
    elif isinstance(op, affine.ForOp):
        _lower_loop(op)
        return
    else:
        raise _unsupported(op)
    if made is not None:
        made.location = op.location
        Rewriter.replace_op(op, made)
    elif result is not None:
        Rewriter.replace_op(op, [], [result])


def _unsupported(op: Operation) -> TileError:
    return refuse(op, f"{op.name} is not supported", "T501", help="lower it to scf: mlir-opt -lower-affine")


@dataclass(frozen=True)
class LowerAffine(ModulePass):
    """Lowers operations of the ``affine`` dialect to ``arith``, ``scf`` and ``memref``."""

    name = "lower-affine"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inside = [inner for inner in op.walk() if inner.dialect_name() == "affine" and not isinstance(inner, affine.YieldOp)]
        for inner in reversed(inside):  # inner ops before the loop that contains them
            _lower_op(inner)
