"""Whether views of one buffer, accessed in different iterations of a loop, are disjoint.

A buffer is a tensor in global memory or an on-chip buffer, and a view is a ``tile.region`` or a ``memref.subview`` of it. Two
views of one buffer are disjoint in one of two cases:

- Along some axis, the offsets of both views are the same multiple of the induction variable plus loop-invariant values, and the
  view of the later iteration starts at or after the end of the view of the earlier one: ``A[t * 16 : t * 16 + 16]``.
- The views are tiles of a grid. The row and the column of the tile are the quotient and the remainder of one number that
  differs between iterations: ``A[t // 4 * 16, t % 4 * 16]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.analysis.guards import nonnegative_in_block
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.index_lists import mixed_values
from tilelang_npu.linear import Interval, Linear

_BUFFERS = (hivm.PointerCastOp, memref.AllocOp, tile.AllocOp)
_PURE_OPS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivUIOp, arith.RemUIOp, arith.MinSIOp, arith.MaxSIOp,
             arith.IndexCastOp, memref.ReinterpretCastOp)
"""Ops whose result is loop-invariant if their operands are."""
_ZERO = Interval.at(0)


def are_disjoint_views(first: SSAValue | None, second: SSAValue | None, loop: scf.ForOp | None, *, later: bool,
                       around: scf.ForOp | scf.WhileOp | None = None) -> bool:
    """Whether two views of one source surely have no byte in common.

    Args:
        first: a view; None means an unknown view.
        second: another view; None means an unknown view.
        loop: the innermost loop that contains both accesses; None if there is none.
        later: if true, ``first`` is accessed in some iteration of ``loop`` and ``second`` in any later one; otherwise both are
            accessed in the same iteration.
        around: a loop that contains ``loop``, if the two accesses may be in any two iterations of this outer loop; None if they
            are in one execution of ``loop``.

    Returns:
        Whether the views are disjoint; False if one is unknown, or if the views have different sources.
    """
    one, two = _view_of(first), _view_of(second)
    scope = _Scope(loop, around if around is not None else loop, Ranges())
    if (one is None or two is None or one.source is not two.source or (later and scope.may_change(one.source))
            or not _has_distinct_elements(one.source.owner)):
        return False
    ranges = scope.ranges
    step = ranges.constant(loop.step) if loop is not None else 0
    if step is None:
        return False
    for a, b, size_a, size_b in zip(one.offsets, two.offsets, one.sizes, two.sizes, strict=True):
        start_a, start_b = _start_of(a, scope), _start_of(b, scope)
        if not (difference := start_b.invariant - start_a.invariant).known:
            continue
        # second start - first start, at least one iteration later if ``later``
        stride = scope.factor(start_a.invariant) * step if later else 0
        distance = start_b.varying - start_a.varying + Interval.at(difference.constant + stride)
        if stride >= 0 and distance.low >= ranges.of(size_a).high:
            return True
        if stride <= 0 and distance.high <= -ranges.of(size_b).high:
            return True
    largest = [max(ranges.of(size_a).high, ranges.of(size_b).high) for size_a, size_b in zip(one.sizes, two.sizes, strict=True)]
    return later and loop is not None and one.offsets == two.offsets and _are_grid_tiles(one.offsets, largest, scope)


def overlap_only_in_same_iteration(first: SSAValue | None, second: SSAValue | None, loop: scf.ForOp,
                                   around: scf.ForOp | scf.WhileOp) -> bool:
    """Whether two views of one buffer are disjoint in any two iterations of a loop with different induction variables.

    The two iterations may be in different executions of the loop, that is, in different iterations of ``around``.

    Args:
        first: a view; None means an unknown view.
        second: another view; None means an unknown view.
        loop: the loop.
        around: the loop that contains ``loop``.
    """
    return not _may_change(loop.lb, around) and all(are_disjoint_views(one, two, loop, later=True, around=around)
                                                    for one, two in ((first, second), (second, first)))


class _View(NamedTuple):
    """A view with unit steps: a box of elements of its source.

    Attributes:
        source: the buffer.
        offsets: the first index along each axis of the source.
        sizes: the number of elements along each axis of the source.
    """

    source: SSAValue
    offsets: list[SSAValue | int]
    sizes: list[SSAValue | int]


def _view_of(value: SSAValue | None) -> _View | None:
    """Returns the view that a value is; None for an unknown value, another operation, or a view with steps other than 1."""
    made = None if value is None else value.owner
    if isinstance(made, tile.RegionOp):
        return _View(made.source, made.mixed_offsets(), made.mixed_sizes())
    if isinstance(made, memref.SubviewOp) and all(step == 1 for step in made.static_strides.get_values()):
        return _View(made.source, mixed_values(made.static_offsets, made.offsets),
                     mixed_values(made.static_sizes, made.sizes))
    return None


@dataclass(frozen=True)
class _Scope:
    """The loops that determine in which iterations two views are accessed.

    Attributes:
        loop: the loop in which one view may be accessed in a later iteration than the other.
        around: the loop in any two iterations of which the views may be accessed; ``loop`` itself if both accesses are in one
            execution of ``loop``.
        ranges: bounds of values.
    """

    loop: scf.ForOp | None
    around: scf.ForOp | scf.WhileOp | None
    ranges: Ranges

    def factor(self, form: Linear[SSAValue]) -> int:
        """Returns the factor by which an affine expression multiplies the loop's induction variable."""
        return 0 if self.loop is None else form.factor(self.loop.body.block.args[0])

    def may_change(self, value: SSAValue) -> bool:
        """Whether a value may differ between the iteration of the first view and the iteration of the second view."""
        return _may_change(value, self.around)


def _has_distinct_elements(source: Operation | Block) -> bool:
    """Whether different indices of a memref are always different bytes.

    So it is for an argument, for a buffer, and for a ``memref.reinterpret_cast`` whose strides let no two rows overlap.
    """
    if not isinstance(source, memref.ReinterpretCastOp):
        return isinstance(source, (Block, *_BUFFERS))
    sizes = mixed_values(source.static_sizes, source.sizes)
    strides = mixed_values(source.static_strides, source.strides)
    for stride, size, inner in zip(strides, sizes[1:], strides[1:], strict=False):
        (count, by), (other, also), (least, own) = map(_factors, (size, inner, stride))
        if sorted(by + also, key=id) != sorted(own, key=id) or least < count * other:
            return False
    return _factors(strides[-1])[0] > 0 if strides else True


def _factors(value: SSAValue | int) -> tuple[int, list[SSAValue]]:
    """Returns a constant and a list of values; the given number is the product of the constant and these values."""
    if isinstance(value, int):
        return value, []
    if isinstance(value.owner, arith.MuliOp):
        one, two = _factors(value.owner.lhs), _factors(value.owner.rhs)
        return one[0] * two[0], one[1] + two[1]
    known = Ranges().constant(value)
    return (1, [value]) if known is None else (known, [])


def _are_grid_tiles(starts: Sequence[SSAValue | int], sizes: Sequence[float], scope: _Scope) -> bool:
    """Whether each iteration accesses a different tile of a grid.

    So it is if the tile's start along one axis is a multiple of ``n // c``, its start along another axis is a multiple of
    ``n % c``, and ``n`` differs between iterations.
    """
    found: dict[tuple[SSAValue, int], set[type[Operation]]] = {}
    for start, size in zip(starts, sizes, strict=True):
        part = None if isinstance(start, int) else _tile_start(start, scope)
        if part is not None and part[1] >= part[2].high - part[2].low + size:
            number, by = part[0].operands
            if (count := scope.ranges.constant(by)) is not None:
                found.setdefault((number, count), set()).add(type(part[0]))
    for (number, _), kinds in found.items():
        start_ = _start_of(number, scope)
        if (len(kinds) == 2 and start_.varying == _ZERO and scope.factor(start_.invariant)
                and scope.ranges.of(number).low >= 0):
            return True
    return False


def _tile_start(value: SSAValue, scope: _Scope) -> tuple[Operation, int, Interval] | None:
    """Splits the start of a view along one axis into ``factor * op + rest``, where ``op`` is a division or a remainder.

    Returns the op, the absolute value of the factor, and bounds of the part of the rest that varies between iterations. None
    if the start depends on no such op or on several, or depends on the induction variable also directly.
    """
    form = affine(value, scope.ranges.constant)
    moving = [atom for atom in form.terms if isinstance(atom.owner, (arith.DivUIOp, arith.RemUIOp)) and scope.may_change(atom)]
    if len(moving) != 1 or not isinstance(moving[0].owner, Operation):
        return None
    times = form.factor(moving[0])
    rest = _split_invariant(form - times * Linear.of(moving[0]), scope)
    return None if scope.factor(rest.invariant) else (moving[0].owner, abs(times), rest.varying)


@dataclass(frozen=True)
class _Start:
    """The start of a view along one axis: ``invariant + varying``.

    Attributes:
        invariant: a multiple of the loop's induction variable plus loop-invariant values.
        varying: bounds of the rest, which may differ between iterations.
    """

    invariant: Linear[SSAValue]
    varying: Interval


def _start_of(value: SSAValue | int, scope: _Scope) -> _Start:
    return _split_invariant(_without_idle_bounds(affine(value, scope.ranges.constant), scope.ranges), scope)


def _split_invariant(form: Linear[SSAValue], scope: _Scope) -> _Start:
    index = None if scope.loop is None else scope.loop.body.block.args[0]
    moving = {atom: factor for atom, factor in form.terms.items() if atom is not index and scope.may_change(atom)}
    varying = _ZERO
    for atom, factor in moving.items():
        form -= factor * Linear.of(atom)
        varying += scope.ranges.of(atom) * Interval.at(factor)
    return _Start(form, varying)


def _without_idle_bounds(form: Linear[SSAValue], ranges: Ranges) -> Linear[SSAValue]:
    """Returns an affine expression in which a ``min`` or ``max`` is replaced by one of its operands, if the conditions of the
    enclosing branches imply that it is always equal to that operand.

    In ``if t + 1 < n: ... min(t + 1, n - 1)`` the minimum is replaced by ``t + 1``.
    """
    for atom, factor in form.terms.items():
        bound = atom.owner
        if isinstance(bound, (arith.MaxSIOp, arith.MinSIOp)):
            value, other = (affine(one, ranges.constant) for one in bound.operands)
            slack = value - other if isinstance(bound, arith.MaxSIOp) else other - value
            if any((slack - known).known and (slack - known).constant >= 0
                   for known in nonnegative_in_block(bound.parent_block(), ranges)):
                return _without_idle_bounds(form + factor * (value - Linear.of(atom)), ranges)
    return form


def _may_change(value: SSAValue, loop: scf.ForOp | scf.WhileOp | None) -> bool:
    """Whether a value may differ between iterations of a loop.

    A buffer defined in the loop does not count as changing: its slots have no byte in common.
    """
    if loop is None:
        return False
    owner = value.owner
    if isinstance(owner, Block):
        return loop.is_ancestor(owner)
    if not loop.is_ancestor(owner) or isinstance(owner, _BUFFERS):
        return False
    return not isinstance(owner, _PURE_OPS) or any(_may_change(operand, loop) for operand in owner.operands)


__all__ = ["are_disjoint_views", "overlap_only_in_same_iteration"]
