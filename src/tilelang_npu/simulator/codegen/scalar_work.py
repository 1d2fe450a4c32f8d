"""How many instructions the scalar unit takes for a program's numbers, once a compiler has been over it.

What is the same in every iteration of a loop is computed ahead of the loop. What changes by the same amount from one iteration
to the next (a counter times a stride, plus an offset; an address in a tensor) is held in a register, and takes one addition in
each iteration, whatever it is made of. A conversion between integers is no instruction. All else is one, where it stands.
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
"""Ops whose result is what their first operand is."""
_SUMS = (arith.AddiOp, arith.SubiOp)
_PRODUCTS = (arith.MuliOp, arith.ShLIOp)
_VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.ViewOp)


def _address(op: Operation) -> list[SSAValue]:
    """What the address of a view is made of: the memref and how far into it."""
    if isinstance(op, (memref.SubviewOp, memref.ReinterpretCastOp)):
        return [op.operands[0], *op.offsets]
    return list(op.operands[:2])


class ScalarWork:
    """The instructions, while the ops of a function are gone through in their order.

    Attributes:
        pending: those that run ahead of the next op.
    """

    def __init__(self) -> None:
        self.pending = 0
        self._ahead: list[int] = []  # of each loop that is open
        self._level: dict[SSAValue, int] = {}  # the loops around the place where a value changes; constants have none
        self._root: dict[SSAValue, SSAValue] = {}
        self._even: set[SSAValue] = set()  # what changes by the same amount in each iteration
        self._held: set[SSAValue] = set()  # and is in a register

    def arguments(self, values: Iterable[SSAValue]) -> None:
        """Values that a block is entered with."""
        for value in values:
            self._level.setdefault(value, len(self._ahead))

    def open_loop(self, counter: SSAValue | None = None) -> None:
        """A loop begins; what is pending runs ahead of it. Its own two instructions step the counter and jump."""
        self._ahead.append(self.pending)
        self.pending = 2
        if counter is not None:
            self._level[counter] = len(self._ahead)
            self._even.add(counter)
            self._held.add(counter)

    def close_loop(self) -> int:
        """The loop is complete: the instructions that run ahead of it."""
        return self._ahead.pop()

    def take(self) -> int:
        """What is pending; nothing is from here on."""
        taken, self.pending = self.pending, 0
        return taken

    def uses(self, op: Operation) -> None:
        """An op with effects needs its operands as numbers."""
        self._hold(self._varying(op.operands))

    def results(self, op: Operation) -> None:
        """What an op with effects gives may be another number each time."""
        for result in op.results:
            self._level[result] = len(self._ahead)

    def computes(self, op: Operation) -> None:
        """An op without effects."""
        if isinstance(op, _CONVERSIONS):
            if op.operands[0] in self._level:
                root = self._root.get(op.operands[0], op.operands[0])
                self._root[op.results[0]], self._level[op.results[0]] = root, self._level[root]
            return
        varying = self._varying(op.operands)
        parts = self._varying(_address(op)) if isinstance(op, _VIEWS) else varying
        self._hold([value for value in varying if value not in parts])  # sizes
        if not parts:
            return
        at = max(self._level[value] for value in parts)
        self._level.update(dict.fromkeys(op.results, at))
        moving = [value for value in parts if self._level[value] == at]
        if all(value in self._even for value in moving) and self._is_even(op, moving):
            self._hold([value for value in parts if value not in moving])
            self._even.update(op.results)
        else:
            self._hold(parts)
            self._add(1, at)

    def _is_even(self, op: Operation, moving: Sequence[SSAValue]) -> bool:
        """Whether what an op makes of numbers that change evenly changes evenly."""
        if isinstance(op, _PRODUCTS):
            factors = [self._root.get(value, value) for value in op.operands[:2]]
            places = [place for place, factor in enumerate(factors) if factor in moving]
            return len(places) == 1 and (places == [0] or isinstance(op, arith.MuliOp))
        return isinstance(op, (*_SUMS, *_VIEWS))

    def _varying(self, values: Iterable[SSAValue]) -> list[SSAValue]:
        return list(dict.fromkeys(self._root.get(value, value) for value in values if value in self._level))

    def _hold(self, values: Iterable[SSAValue]) -> None:
        """Registers for those that change evenly: each takes its addition."""
        for value in values:
            if value in self._even and value not in self._held:
                self._held.add(value)
                self._add(1, self._level[value])

    def _add(self, count: int, level: int) -> None:
        if level < len(self._ahead):
            self._ahead[level] += count
        else:
            self.pending += count
