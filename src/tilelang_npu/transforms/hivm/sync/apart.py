"""Whether accesses of one tensor by different iterations of a loop are apart: rows that each iteration has for itself.

A tensor in global memory is one buffer to the analysis. Two views of it are apart if along some axis both begin at the same
place but for a multiple of the loop's index, and the next iteration begins behind where this one ends; or if they are tiles of
a grid that the iterations number, row and column being quotient and remainder of that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.transforms.ir.ranges import Ranges


class _Linear(NamedTuple):
    """``factor`` times the loop's index, plus a constant, plus values that the loop does not change."""

    factor: int
    constant: int
    rest: tuple[object, ...]


def apart(first: SSAValue | None, second: SSAValue | None, loop: scf.ForOp | None, *, later: bool) -> bool:
    """Whether two views of one tensor have no byte in common.

    Args:
        first, second: the views, cut out of the tensor itself; None is anything.
        loop: the loop around both; None where there is none.
        later: the second one is of any later iteration; otherwise of the same.
    """
    one, two = (None if view is None else view.owner for view in (first, second))
    if not isinstance(one, memref.SubviewOp) or not isinstance(two, memref.SubviewOp):
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
        at_a, at_b = _linear(a, loop, ranges), _linear(b, loop, ranges)
        if at_a is None or at_b is None or at_a.factor != at_b.factor or at_a.rest != at_b.rest:
            continue
        behind = at_b.constant - at_a.constant
        stride = at_a.factor * step if later else 0
        if stride >= 0 and behind + stride >= ranges.of(size_a).high:
            return True
        if stride <= 0 and behind + stride <= -ranges.of(size_b).high:
            return True
    largest = [max(ranges.of(size_a).high, ranges.of(size_b).high) for size_a, size_b in zip(*sizes, strict=True)]
    return later and loop is not None and starts[0] == starts[1] and _tiles(starts[0], largest, loop, ranges)


def _tiles(starts: Sequence[SSAValue | int], sizes: Sequence[float], loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether each iteration has a tile of its own: some axis goes by the quotient of a number, another by its remainder."""
    found: dict[tuple[SSAValue, int], set[type[Operation]]] = {}
    for start, size in zip(starts, sizes, strict=True):
        part = None if isinstance(start, int) else _tile(start, loop, ranges)
        by = None if part is None else ranges.constant(part[0].operands[1])
        if part is not None and by is not None and part[1] >= size:
            found.setdefault((part[0].operands[0], by), set()).add(type(part[0]))
    for (number, _), kinds in found.items():
        at = _linear(number, loop, ranges)
        if len(kinds) == 2 and at is not None and at.factor and ranges.of(number).low >= 0:
            return True
    return False


def _tile(value: SSAValue, loop: scf.ForOp, ranges: Ranges) -> tuple[Operation, int] | None:
    """The quotient or remainder that a value goes by, and by how much: plus what the loop does not change."""
    owner = value.owner
    if isinstance(owner, arith.AddiOp):
        for part, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            kept = _linear(other, loop, ranges)
            if kept is not None and not kept.factor:
                return _tile(part, loop, ranges)
    if isinstance(owner, arith.MuliOp) and isinstance(owner.lhs.owner, (arith.DivUIOp, arith.RemUIOp)):
        times = ranges.constant(owner.rhs)
        return None if times is None else (owner.lhs.owner, times)
    return None


def _parts(static: Sequence[int], dynamic: Iterable[SSAValue]) -> list[SSAValue | int]:
    values = iter(dynamic)
    return [next(values) if part == DYNAMIC_INDEX else part for part in static]


def _linear(value: SSAValue | int, loop: scf.ForOp | None, ranges: Ranges) -> _Linear | None:
    """A value as a function of the loop's index; None where it changes in another way."""
    known = ranges.constant(value)
    if known is not None:
        return _Linear(0, known, ())
    assert isinstance(value, SSAValue)
    if loop is not None and value is loop.body.block.args[0]:
        return _Linear(1, 0, ())
    owner = value.owner
    if isinstance(owner, arith.IndexCastOp):
        return _linear(owner.input, loop, ranges)
    if isinstance(owner, (arith.AddiOp, arith.SubiOp, arith.MuliOp)):
        one, two = _linear(owner.lhs, loop, ranges), _linear(owner.rhs, loop, ranges)
        made = None if one is None or two is None else _combined(owner, one, two)
        if made is not None:
            return made
    return _Linear(0, 0, (value,)) if not _changes(value, loop) else None


def _combined(op: Operation, one: _Linear, two: _Linear) -> _Linear | None:
    if isinstance(op, arith.AddiOp):
        rest = tuple(sorted((*one.rest, *two.rest), key=_order))
        return _Linear(one.factor + two.factor, one.constant + two.constant, rest)
    if isinstance(op, arith.SubiOp):
        return None if two.rest else _Linear(one.factor - two.factor, one.constant - two.constant, one.rest)
    if one.rest or one.factor:
        one, two = two, one
    if one.rest or one.factor:
        return None
    rest = tuple(sorted((("times", one.constant, part) for part in two.rest), key=_order))
    return _Linear(two.factor * one.constant, two.constant * one.constant, rest)


def _order(part: object) -> int:
    return id(part) if isinstance(part, SSAValue) else hash(part)


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

