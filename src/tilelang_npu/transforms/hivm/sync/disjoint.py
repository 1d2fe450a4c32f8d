"""Whether accesses of one tensor by different iterations of a loop are disjoint: rows that each iteration has for itself.

A tensor in global memory is one buffer to the analysis. Two views of it are disjoint if along some axis both begin at the same
place but for a multiple of the loop's index, and the next iteration begins behind where this one ends; or if they are tiles of
a grid that the iterations number, row and column being quotient and remainder of that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects.affine_sums import affine
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.ir.guards import natural
from tilelang_npu.transforms.ir.ranges import Ranges


def disjoint(first: SSAValue | None, second: SSAValue | None, loop: scf.ForOp | None, *, later: bool) -> bool:
    """Whether two views of one tensor have no byte in common.

    Args:
        first, second: the views; None is anything. Of what is cut out of different things nothing is known.
        loop: the loop around both; None where there is none.
        later: the second one is of any later iteration; otherwise of the same.
    """
    one, two = (None if view is None else view.owner for view in (first, second))
    if not isinstance(one, memref.SubviewOp) or not isinstance(two, memref.SubviewOp):
        return False
    if one.source is not two.source or (later and _changes(one.source, loop)) or not _apart(one.source.owner):
        return False
    if any(step != 1 for cut in (one, two) for step in cut.static_strides.get_values()):
        return False
    ranges = Ranges()
    step = ranges.constant(loop.step) if loop is not None else 0
    if step is None:
        return False
    starts = [_parts(cut.static_offsets.get_values(), cut.offsets) for cut in (one, two)]
    sizes = [_parts(cut.static_sizes.get_values(), cut.sizes) for cut in (one, two)]
    for a, b, size_a, size_b in zip(*starts, *sizes, strict=True):
        at_a, at_b = _sum(a, loop, ranges), _sum(b, loop, ranges)
        if at_a is None or at_b is None or not (distance := at_b - at_a).known:
            continue
        stride = at_a.factor(loop.body.block.args[0]) * step if later and loop is not None else 0
        behind = distance.constant + stride
        if stride >= 0 and behind >= ranges.of(size_a).high:
            return True
        if stride <= 0 and behind <= -ranges.of(size_b).high:
            return True
    largest = [max(ranges.of(size_a).high, ranges.of(size_b).high) for size_a, size_b in zip(*sizes, strict=True)]
    return later and loop is not None and starts[0] == starts[1] and _tiles(starts[0], largest, loop, ranges)


def _apart(source: Operation | Block) -> bool:
    """Whether what is cut has an element in one place only: it is an argument, or an argument as rows one behind the other."""
    if not isinstance(source, memref.ReinterpretCastOp):
        return isinstance(source, Block)
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


def _tiles(starts: Sequence[SSAValue | int], sizes: Sequence[float], loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether each iteration has a tile of its own: some axis goes by the quotient of a number, another by its remainder."""
    found: dict[tuple[SSAValue, int], set[type[Operation]]] = {}
    for start, size in zip(starts, sizes, strict=True):
        part = None if isinstance(start, int) else _tile(start, loop, ranges)
        by = None if part is None else ranges.constant(part[0].operands[1])
        if part is not None and by is not None and part[1] >= size:
            found.setdefault((part[0].operands[0], by), set()).add(type(part[0]))
    for (number, _), kinds in found.items():
        at = _sum(number, loop, ranges)
        if len(kinds) == 2 and at is not None and at.factor(loop.body.block.args[0]) and ranges.of(number).low >= 0:
            return True
    return False


def _tile(value: SSAValue, loop: scf.ForOp, ranges: Ranges) -> tuple[Operation, int] | None:
    """The quotient or remainder that a value goes by, and by how much: plus what the loop does not change."""
    owner = value.owner
    if isinstance(owner, arith.AddiOp):
        for part, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            kept = _sum(other, loop, ranges)
            if kept is not None and not kept.factor(loop.body.block.args[0]):
                return _tile(part, loop, ranges)
    if isinstance(owner, arith.MuliOp) and isinstance(owner.lhs.owner, (arith.DivUIOp, arith.RemUIOp)):
        times = ranges.constant(owner.rhs)
        return None if times is None else (owner.lhs.owner, times)
    return None


def _parts(static: Sequence[int], dynamic: Iterable[SSAValue]) -> list[SSAValue | int]:
    values = iter(dynamic)
    return [next(values) if part == DYNAMIC_INDEX else part for part in static]


def _sum(value: SSAValue | int, loop: scf.ForOp | None, ranges: Ranges) -> Linear[SSAValue] | None:
    """A value as a multiple of the loop's index plus what the loop does not change; None where it changes in another way."""
    form = _unbounded(affine(value, ranges.constant), ranges)
    index = None if loop is None else loop.body.block.args[0]
    return None if any(atom is not index and _changes(atom, loop) for atom in form.terms) else form


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


def _changes(value: SSAValue, loop: scf.ForOp | None) -> bool:
    """Whether a value may differ from iteration to iteration: it is made in the loop."""
    if loop is None:
        return False
    owner = value.owner
    if isinstance(owner, Block):
        return loop.body.block is owner or loop.is_ancestor(owner)
    if not loop.is_ancestor(owner):
        return False
    plain = isinstance(owner, (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.IndexCastOp))
    return not plain or any(_changes(operand, loop) for operand in owner.operands)

