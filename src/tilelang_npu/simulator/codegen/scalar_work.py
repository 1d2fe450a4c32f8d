"""Counts the instructions of the scalar unit, as a compiler with common optimisations would emit them.

Loop-invariant values are computed before the loop. A value that changes by a constant in each iteration (an induction variable
times a stride plus an offset, an address in a tensor) is kept in a register and takes one addition per iteration. Conversions
between integers take no instruction. Every other op takes one instruction at its position in the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.mlir.arith import IndexCastUIOp

_CONVERSIONS = (arith.IndexCastOp, IndexCastUIOp, arith.ExtSIOp, arith.ExtUIOp, UnrealizedConversionCastOp, memref.CastOp,
                memref.MemorySpaceCastOp, hivm.BitcastOp, memref.CollapseShapeOp, memref.ExpandShapeOp)
"""Ops whose result equals their first operand."""
_SUMS = (arith.AddiOp, arith.SubiOp)
_PRODUCTS = (arith.MuliOp, arith.ShLIOp)
_VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.ViewOp)


def _address(op: Operation) -> list[SSAValue]:
    """Returns the operands of a view's address: the memref and the offsets."""
    if isinstance(op, (memref.SubviewOp, memref.ReinterpretCastOp)):
        return [op.operands[0], *op.offsets]
    return list(op.operands[:2])


class ScalarWork:
    """Counts the instructions of the scalar unit, while the ops of a function are visited in program order.

    Attributes:
        pending: the number of instructions between the last recorded op and the next one.
    """

    def __init__(self) -> None:
        self.pending = 0
        self._ahead: list[int] = []  # for each open loop, the instructions before it
        self._level: dict[SSAValue, int] = {}  # number of loops in which a value changes; constants have no entry
        self._root: dict[SSAValue, SSAValue] = {}
        self._affine: set[SSAValue] = set()  # values that change by a constant in each iteration
        self._in_register: set[SSAValue] = set()  # those of them that are in a register

    def enter_block(self, values: Iterable[SSAValue]) -> None:
        """Records that the arguments of an MLIR block change in each iteration of the innermost open loop."""
        for value in values:
            self._level.setdefault(value, len(self._ahead))

    def open_loop(self, counter: SSAValue | None = None) -> None:
        """Opens a loop. The pending instructions run before the loop; each iteration has two instructions that step and jump.

        Args:
            counter: the induction variable of a counted loop; None for a ``while``.
        """
        self._ahead.append(self.pending)
        self.pending = 2
        if counter is not None:
            self._level[counter] = len(self._ahead)
            self._affine.add(counter)
            self._in_register.add(counter)

    def close_loop(self) -> int:
        """Closes the innermost open loop, and returns the number of instructions that run before the loop."""
        return self._ahead.pop()

    def take_pending(self) -> int:
        """Returns the number of pending instructions, and sets it to 0."""
        taken, self.pending = self.pending, 0
        return taken

    def use_operands(self, op: Operation) -> None:
        """Counts the additions that keep operands of an op with effects in registers.

        An operand that changes by a constant in each iteration takes one addition, unless it is in a register already.
        """
        self._put_in_register(self._varying(op.operands))

    def define_results(self, op: Operation) -> None:
        """Records that the results of an op with effects change in each iteration of the innermost open loop."""
        for result in op.results:
            self._level[result] = len(self._ahead)

    def visit_pure(self, op: Operation) -> None:
        """Counts the instruction of an op without effects, in the outermost loop in which its operands change.

        No instruction is counted for an op whose result changes by a constant in each iteration: ``use_operands`` counts an
        addition when the result is needed.
        """
        if isinstance(op, _CONVERSIONS):
            if op.operands[0] in self._level:
                root = self._root.get(op.operands[0], op.operands[0])
                self._root[op.results[0]], self._level[op.results[0]] = root, self._level[root]
            return
        varying = self._varying(op.operands)
        parts = self._varying(_address(op)) if isinstance(op, _VIEWS) else varying
        self._put_in_register([value for value in varying if value not in parts])  # sizes
        if not parts:
            return
        at = max(self._level[value] for value in parts)
        self._level.update(dict.fromkeys(op.results, at))
        moving = [value for value in parts if self._level[value] == at]
        if all(value in self._affine for value in moving) and self._is_affine(op, moving):
            self._put_in_register([value for value in parts if value not in moving])
            self._affine.update(op.results)
        else:
            self._put_in_register(parts)
            self._add(1, at)

    def _is_affine(self, op: Operation, moving: Sequence[SSAValue]) -> bool:
        """Whether the op's result changes by a constant in each iteration if its operands ``moving`` change by constants."""
        if isinstance(op, _PRODUCTS):
            factors = [self._root.get(value, value) for value in op.operands[:2]]
            places = [place for place, factor in enumerate(factors) if factor in moving]
            return len(places) == 1 and (places == [0] or isinstance(op, arith.MuliOp))
        return isinstance(op, (*_SUMS, *_VIEWS))

    def _varying(self, values: Iterable[SSAValue]) -> list[SSAValue]:
        return list(dict.fromkeys(self._root.get(value, value) for value in values if value in self._level))

    def _put_in_register(self, values: Iterable[SSAValue]) -> None:
        """Puts values that change by a constant into registers: one addition each."""
        for value in values:
            if value in self._affine and value not in self._in_register:
                self._in_register.add(value)
                self._add(1, self._level[value])

    def _add(self, count: int, level: int) -> None:
        if level < len(self._ahead):
            self._ahead[level] += count
        else:
            self.pending += count
