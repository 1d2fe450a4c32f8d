"""Counts the instructions of the scalar unit, as a compiler with common optimisations would emit them.

Loop-invariant values are computed before the loop. A value that changes by a constant in each iteration (an induction variable
times a stride plus an offset, an address in a tensor) is kept in a register and takes one addition per iteration. Conversions
between integers take no instruction. Every other op takes one, where it stands in the program.
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
    """The scalar instructions, counted while the ops of a function are visited in program order.

    Attributes:
        pending: instructions that run before the next op.
    """

    def __init__(self) -> None:
        self.pending = 0
        self._ahead: list[int] = []  # for each open loop, the instructions before it
        self._level: dict[SSAValue, int] = {}  # number of loops in which a value changes; constants have no entry
        self._root: dict[SSAValue, SSAValue] = {}
        self._affine: set[SSAValue] = set()  # values that change by a constant in each iteration
        self._in_register: set[SSAValue] = set()  # those of them that are in a register

    def enter_block(self, values: Iterable[SSAValue]) -> None:
        """Adds the arguments of a block."""
        for value in values:
            self._level.setdefault(value, len(self._ahead))

    def open_loop(self, counter: SSAValue | None = None) -> None:
        """Opens a loop: pending instructions run before it. Its own two instructions step the counter and jump."""
        self._ahead.append(self.pending)
        self.pending = 2
        if counter is not None:
            self._level[counter] = len(self._ahead)
            self._affine.add(counter)
            self._in_register.add(counter)

    def close_loop(self) -> int:
        """Closes a loop and returns the instructions that run before it."""
        return self._ahead.pop()

    def take_pending(self) -> int:
        """Returns the pending instructions and resets them."""
        taken, self.pending = self.pending, 0
        return taken

    def use_operands(self, op: Operation) -> None:
        """Visits the operands of an op with effects, which needs them as numbers."""
        self._put_in_register(self._varying(op.operands))

    def define_results(self, op: Operation) -> None:
        """Adds the results of an op with effects: they may differ each time."""
        for result in op.results:
            self._level[result] = len(self._ahead)

    def visit_pure(self, op: Operation) -> None:
        """Visits an op without effects."""
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
        """Whether the op's result changes by a constant if ``moving`` operands do."""
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
