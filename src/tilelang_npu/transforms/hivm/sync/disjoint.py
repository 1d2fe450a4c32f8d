"""Whether accesses of one buffer by different iterations of a loop are disjoint: rows that each iteration has for itself.

A tensor in global memory is one buffer to the analysis, and so is a buffer on chip that is read and written part by part. Two
views of it are disjoint if along some axis both begin at the same place but for a multiple of the loop's index, and the next
iteration begins behind where this one ends, wherever loops in it go; or if they are tiles of a grid that the iterations number,
row and column being quotient and remainder of that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Interval, Linear
from tilelang_npu.transforms.ir.guards import natural
from tilelang_npu.transforms.ir.ranges import Ranges

_BUFFERS = (hivm.PointerCastOp, memref.AllocOp)
_PLAIN = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivUIOp, arith.RemUIOp, arith.MinSIOp, arith.MaxSIOp,
          arith.IndexCastOp, memref.ReinterpretCastOp)
"""What makes the same of the same numbers."""
_NOTHING = Interval.at(0)


def disjoint(first: SSAValue | None, second: SSAValue | None, loop: scf.ForOp | None, *, later: bool,
             around: scf.ForOp | scf.WhileOp | None = None) -> bool:
    """Whether two views of one tensor have no byte in common.

    Args:
        first, second: the views; None is anything. Of what is cut out of different things nothing is known.
        loop: the loop around both; None where there is none.
        later: the second one is of any later iteration; otherwise of the same.
        around: a loop around that one, any two of whose iterations the two views are of; None: they are of one.
    """
    one, two = (None if view is None else view.owner for view in (first, second))
    if not isinstance(one, memref.SubviewOp) or not isinstance(two, memref.SubviewOp):
        return False
    runs = _Runs(loop, around if around is not None else loop, Ranges())
    if one.source is not two.source or (later and runs.change(one.source)) or not _apart(one.source.owner):
        return False
    if any(step != 1 for cut in (one, two) for step in cut.static_strides.get_values()):
        return False
    ranges = runs.ranges
    step = ranges.constant(loop.step) if loop is not None else 0
    if step is None:
        return False
    starts = [_parts(cut.static_offsets.get_values(), cut.offsets) for cut in (one, two)]
    sizes = [_parts(cut.static_sizes.get_values(), cut.sizes) for cut in (one, two)]
    for a, b, size_a, size_b in zip(*starts, *sizes, strict=True):
        at_a, at_b = _place(a, runs), _place(b, runs)
        if not (distance := at_b.fixed - at_a.fixed).known:
            continue
        stride = runs.factor(at_a.fixed) * step if later else 0
        behind = at_b.more - at_a.more + Interval.at(distance.constant + stride)
        if stride >= 0 and behind.low >= ranges.of(size_a).high:
            return True
        if stride <= 0 and behind.high <= -ranges.of(size_b).high:
            return True
    largest = [max(ranges.of(size_a).high, ranges.of(size_b).high) for size_a, size_b in zip(*sizes, strict=True)]
    return later and loop is not None and starts[0] == starts[1] and _tiles(starts[0], largest, runs)


def meet_in_step(first: SSAValue | None, second: SSAValue | None, loop: scf.ForOp, around: scf.ForOp | scf.WhileOp) -> bool:
    """Whether two views of one tensor have bytes in common only where a loop's index is the same, in any two of its runs.

    Args:
        first, second: the views; None is anything.
        loop: the loop, which goes through the same numbers each time.
        around: what runs it again.
    """
    return not _changes(loop.lb, around) and all(disjoint(one, two, loop, later=True, around=around)
                                                 for one, two in ((first, second), (second, first)))


@dataclass(frozen=True)
class _Runs:
    """Of which iterations two views are.

    Attributes:
        loop: the loop in which one may be of a later one.
        around: any two iterations of this one; the loop itself where both are in one run of it.
        ranges: what is known of numbers.
    """

    loop: scf.ForOp | None
    around: scf.ForOp | scf.WhileOp | None
    ranges: Ranges

    def factor(self, form: Linear[SSAValue]) -> int:
        """How often a sum has the loop's index."""
        return 0 if self.loop is None else form.factor(self.loop.body.block.args[0])

    def change(self, value: SSAValue) -> bool:
        """Whether a value may differ between the two."""
        return _changes(value, self.around)


def _apart(source: Operation | Block) -> bool:
    """Whether what is cut has an element in one place only: it is an argument, a buffer, or one of both as rows one behind the
    other."""
    if not isinstance(source, memref.ReinterpretCastOp):
        return isinstance(source, (Block, *_BUFFERS))
    sizes = _parts(source.static_sizes.get_values(), source.sizes)
    strides = _parts(source.static_strides.get_values(), source.strides)
    for stride, size, inner in zip(strides, sizes[1:], strides[1:], strict=False):
        (count, by), (other, also), (least, own) = map(_product, (size, inner, stride))
        if sorted(by + also, key=id) != sorted(own, key=id) or least < count * other:
            return False
    return _product(strides[-1])[0] > 0 if strides else True


def _product(value: SSAValue | int) -> tuple[int, list[SSAValue]]:
    """A constant and the values that a number is the product of."""
    if isinstance(value, int):
        return value, []
    if isinstance(value.owner, arith.MuliOp):
        one, two = _product(value.owner.lhs), _product(value.owner.rhs)
        return one[0] * two[0], one[1] + two[1]
    known = Ranges().constant(value)
    return (1, [value]) if known is None else (known, [])


def _tiles(starts: Sequence[SSAValue | int], sizes: Sequence[float], runs: _Runs) -> bool:
    """Whether each iteration has a tile of its own: some axis goes by the quotient of a number, another by its remainder."""
    found: dict[tuple[SSAValue, int], set[type[Operation]]] = {}
    for start, size in zip(starts, sizes, strict=True):
        part = None if isinstance(start, int) else _tile(start, runs)
        if part is not None and part[1] >= part[2].high - part[2].low + size:
            number, by = part[0].operands
            if (count := runs.ranges.constant(by)) is not None:
                found.setdefault((number, count), set()).add(type(part[0]))
    for (number, _), kinds in found.items():
        at = _place(number, runs)
        if (len(kinds) == 2 and at.more == _NOTHING and runs.factor(at.fixed)
                and runs.ranges.of(number).low >= 0):
            return True
    return False


def _tile(value: SSAValue, runs: _Runs) -> tuple[Operation, int, Interval] | None:
    """The quotient or remainder that a value goes by, by how much, and what else it varies by: of the rest the loop changes
    nothing."""
    form = affine(value, runs.ranges.constant)
    turning = [atom for atom in form.terms if isinstance(atom.owner, (arith.DivUIOp, arith.RemUIOp)) and runs.change(atom)]
    if len(turning) != 1 or not isinstance(turning[0].owner, Operation):
        return None
    times = form.factor(turning[0])
    rest = _split(form - times * Linear.of(turning[0]), runs)
    return None if runs.factor(rest.fixed) else (turning[0].owner, abs(times), rest.more)


def _parts(static: Sequence[int], dynamic: Iterable[SSAValue]) -> list[SSAValue | int]:
    values = iter(dynamic)
    return [next(values) if part == DYNAMIC_INDEX else part for part in static]


@dataclass(frozen=True)
class _Start:
    """A number: a multiple of the loop's index plus what the loop does not change, and the bounds of what else it varies by."""

    fixed: Linear[SSAValue]
    more: Interval


def _place(value: SSAValue | int, runs: _Runs) -> _Start:
    return _split(_unbounded(affine(value, runs.ranges.constant), runs.ranges), runs)


def _split(form: Linear[SSAValue], runs: _Runs) -> _Start:
    index = None if runs.loop is None else runs.loop.body.block.args[0]
    varying = {atom: factor for atom, factor in form.terms.items() if atom is not index and runs.change(atom)}
    more = _NOTHING
    for atom, factor in varying.items():
        form -= factor * Linear.of(atom)
        more += runs.ranges.of(atom) * Interval.at(factor)
    return _Start(form, more)


def _unbounded(form: Linear[SSAValue], ranges: Ranges) -> Linear[SSAValue]:
    """A sum without the bounds that are put to its numbers where a branch they are in holds them there anyway."""
    for atom, factor in form.terms.items():
        bound = atom.owner
        if isinstance(bound, (arith.MaxSIOp, arith.MinSIOp)):
            value, other = (affine(one, ranges.constant) for one in bound.operands)
            room = value - other if isinstance(bound, arith.MaxSIOp) else other - value
            if any((room - known).known and (room - known).constant >= 0 for known in natural(bound.parent_block(), ranges)):
                return _unbounded(form + factor * (value - Linear.of(atom)), ranges)
    return form


def _changes(value: SSAValue, loop: scf.ForOp | scf.WhileOp | None) -> bool:
    """Whether a value may differ from iteration to iteration: it is made in the loop, of what does. No byte of a buffer
    is in two of its slots, so that it counts as one."""
    if loop is None:
        return False
    owner = value.owner
    if isinstance(owner, Block):
        return loop.is_ancestor(owner)
    if not loop.is_ancestor(owner) or isinstance(owner, _BUFFERS):
        return False
    return not isinstance(owner, _PLAIN) or any(_changes(operand, loop) for operand in owner.operands)
