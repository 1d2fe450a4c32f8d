"""Reorders and skews the statements of a pipelined loop as its author asks: ``T.Pipelined(order=, stage=, group=)``.

In iteration ``i`` of the new loop, a statement of stage ``s`` works on iteration ``i - s`` of the old loop, and the statements
are executed in the given order. The loop must compute the same results as before: of two statements that share a value, the
first in an iteration must stay first, and a value that survives an iteration must be accessed in the order of the iterations. A
schedule that violates this is an error, whose help suggests a legal schedule.

A value that does not survive an iteration gets multi-buffer slots if statements of several stages access it. A load whose
position is left to the compiler (-1) is placed before the first statement that needs it.

The pass runs on the tile dialect after ``sink-buffers``, when a buffer that is allocated in the body does not survive an
iteration and the copies between memories are inserted.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilelang_npu import target as chips
from tilelang_npu.analysis.accesses import accesses_within
from tilelang_npu.analysis.buffers import root_of, slot_count, space_of
from tilelang_npu.analysis.disjoint_views import are_disjoint_views
from tilelang_npu.analysis.locations import line_of, refuse
from tilelang_npu.analysis.loop_body import (
    ORDERED_BY_AUTHOR,
    LoopBody,
    Statement,
    StoredValue,
    core_within,
    find_stale_scalar,
    is_statement,
    loop_body_of,
    statement_of,
)
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import is_pure
from tilelang_npu.dialects.ir.remarks import record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.target import GM, name_of
from tilelang_npu.target.chip_data import Space
from tilelang_npu.transforms.infra.skew_loop import Piece, SkewedLoop, rings_of
from tilelang_npu.transforms.infra.split_allocation import split_allocation

_FREE = -1


@dataclass
class _Position:
    """The position of a statement in the new body.

    Attributes:
        number: the number that the author's schedule gives it; several operations may have one number.
        stage: the number of iterations by which the statement's iteration is earlier; -1 where the compiler chooses.
        position: the key by which the statements are sorted.
    """

    number: int
    stage: int
    position: tuple[int, int, int]


class _Schedule:
    """The schedule of one loop."""

    def __init__(self, loop: scf.ForOp, ranges: Ranges) -> None:
        self.loop, self.ranges = loop, ranges
        self.stages, self.order = (_integers_of(loop, name) for name in (tile.STAGE, tile.ORDER))
        self.body = self._split_shared_buffers()
        self.positions = [self._author_place(index, each.op) for index, each in enumerate(self.body.statements)]
        self._conflicts = list(self._find_conflicts())
        self._place_free_loads()

    def rewrite(self, memories: Container[Space]) -> tuple[dict[StoredValue, int], LoopBody]:
        """Rewrites the loop.

        Args:
            memories: the memories whose buffers can have slots.

        Returns:
            the values that got slots, with their numbers of slots, and the body.

        Raises:
            TileError: T206, the schedule changes what the loop computes, or a scalar goes from stage to stage.
        """
        for first, second, value in self._conflicts:
            if not self._keeps_order(self.positions, first, second, value):
                raise self._order_error(first, second, value)
        by_place = sorted(range(len(self.positions)), key=lambda index: self.positions[index].position)
        pieces: list[tuple[int, list[Statement]]] = []
        for index in by_place:
            stage, each = self.positions[index].stage, self.body.statements[index]
            if not pieces or pieces[-1][0] != stage or pieces[-1][1][-1].core != each.core:
                pieces.append((stage, []))
            pieces[-1][1].append(each)
        made = [Piece(stage, statements) for stage, statements in pieces]
        rings, lags = rings_of(made, self.body.own)
        for value, count in rings.items():
            if space_of(value.root) not in memories:
                user = next(each.op for each in self.body.statements if value in each.accessed)
                raise refuse(user, f"{author_name(value.root, 'a scalar')} is a scalar that several stages use", "T206",
                             help="give all statements that use the scalar the same stage, or keep its value in a tile")
            rings[value] = max(count, slot_count(self.body.own[value]))
        _remove_schedule(self.loop)
        skew = SkewedLoop(self.loop, self.body.own, made, rings, lags)
        if any(piece.lag for piece in made):
            skew.rewrite_with_prologue()
        else:
            skew.rewrite_with_conditions()
        return rings, self.body

    def _split_shared_buffers(self) -> LoopBody:
        """Returns the body, after giving each successive value of a buffer in an iteration an allocation of its own.

        In the order of the text one value is dead when the next begins; in another order both may be live.
        """
        body = self._read_body()
        for value, allocation in body.own.items():
            if value.number:
                split_allocation(allocation, [each.op for each in body.statements if value in each.accessed])
        return self._read_body() if any(value.number for value in body.own) else body

    def _read_body(self) -> LoopBody:
        """Returns the statements of the loop as written.

        Raises:
            TileError: T206, a statement prints, synchronises, is on a core, or needs a scalar that is not in memory any more.
        """
        statements = []
        for op in self.loop.body.block.ops:
            if is_statement(op):
                for inner in op.walk():
                    if isinstance(inner, ORDERED_BY_AUTHOR) or (inner.name.startswith("hivm.") and not is_pure(inner)):
                        raise refuse(inner, "this statement prints, synchronises or is in a T.Scope, in a loop whose order or "
                                     "stage is given", "T206", help="print outside of the loop, and leave flags and cores "
                                     "to the compiler; or leave order and stage out")
                if (load := find_stale_scalar(op)) is not None:
                    raise refuse(op, f"this statement needs a scalar that {line_of(load)} reads from memory that is written "
                                 "between the two", "T206", help="keep the value in a tile, or leave order and stage out")
                statements.append(statement_of(op, core_within(op) or "either"))
        return loop_body_of(self.loop, statements, self.ranges)

    def _author_place(self, index: int, op: Operation) -> _Position:
        """Returns the position that the author gives an operation; one that a pass moved into the loop goes with the statement
        after it.
        """
        number, later = tile.statement_of(op, self.loop), op.next_op
        while number is None and later is not None:
            number, later = tile.statement_of(later, self.loop), later.next_op
        if number is None and not any(tile.statement_of(each.op, self.loop) is not None for each in self.body.statements):
            raise refuse(self.loop, "the order and the stage of this loop cannot be matched to its statements: in the text of "
                         "a kernel, only the locations have the numbers of the statements", "T206",
                         help="print the text with its locations: kernel.mlir(stage, locations=True), or compile --locations")
        if number is None:
            number = len(self.stages) - 1
        free = self.stages[number] == _FREE
        return _Position(number, self.stages[number], (_FREE if free else self.order[number], 1 - free, index))

    def _find_conflicts(self) -> Iterator[tuple[int, int, StoredValue]]:
        """Yields pairs of statements, by their old positions, with each value that both access and one of them writes."""
        for second, later in enumerate(self.body.statements):
            for first in range(second):
                common = self.body.statements[first].conflicts_with(later)
                yield from ((first, second, value) for value in later.accessed if value in common)

    def _place_free_loads(self) -> None:
        """Puts each load whose position is the compiler's before the first statement that needs it, in that statement's stage.
        """
        for index, position in enumerate(self.positions):
            if position.stage != _FREE:
                continue
            op = self.body.statements[index].op
            if not isinstance(op, tile.CopyOp) or space_of(root_of(op.source)) != GM:
                raise refuse(op, f"this is statement {position.number} of its loop, whose position is left to the compiler "
                             f"({_FREE}); the compiler places only loads, and this is no load", "T206",
                             help="give the statement an order and a stage")
        for index in reversed(range(len(self.positions))):
            position = self.positions[index]
            if position.stage == _FREE:
                users = [self.positions[second] for first, second, _ in self._conflicts if first == index]
                position.stage = min((user.stage for user in users), default=0)
                wanted = min((user.position[0] for user in users if user.stage == position.stage), default=-1)
                position.position = (wanted, 0, index)

    def _keeps_order(self, positions: Sequence[_Position], first: int, second: int, value: StoredValue) -> bool:
        """Whether two conflicting statements access a value in the order in which they did before."""
        one, other = positions[first], positions[second]
        in_order = (one.stage, one.position) < (other.stage, other.position)
        if value in self.body.own:
            return in_order
        # The second statement's access in an iteration must come before the first statement's access in the next one.
        before_next = (other.stage, other.position) < (one.stage + 1, one.position)
        return in_order and (before_next or not self._may_overlap(first, second, value))

    def _may_overlap(self, first: int, second: int, value: StoredValue) -> bool:
        """Whether the first of two statements may access, in a later iteration, an element that the second one accesses."""
        sides = [[use for use in accesses_within(self.body.statements[index].op) if root_of(use.value) is value.root]
                 for index in (first, second)]
        if any(not side for side in sides) or space_of(value.root) != GM:
            return True  # an access by a scalar, or to a tile on chip
        return any((one.writes or other.writes) and not are_disjoint_views(other.value, one.value, self.loop, later=True)
                   for one in sides[0] for other in sides[1])

    def _order_error(self, first: int, second: int, value: StoredValue) -> Exception:
        """Returns the error that two statements would access a value in another order than before."""
        one, other = self.body.statements[first].op, self.body.statements[second].op
        name = author_name(value.root, "a buffer")
        positions = [self.positions[index] for index in (first, second)]
        ends = [f"{line_of(op)} (stage {position.stage}, order {max(position.position[0], 0)})"
                for op, position in zip((one, other), positions, strict=True)]
        if value in self.body.own:
            what = f"{ends[1]} must access {name} after {ends[0]} in an iteration, and would access it before"
        else:
            what = (f"{name} passes values from iteration to iteration, and {ends[0]} and {ends[1]} would access it in "
                    "another order")
        stages, order = self._suggest_schedule()
        return refuse(other, f"this schedule changes what the loop computes: {what}", "T206",
                      help=f"a legal schedule, with one number for each statement: stage={stages}, order={order}")

    def _suggest_schedule(self) -> tuple[list[int], list[int]]:
        """Returns stages and order near to the author's that are legal: no statement earlier, and all in the order of the text.
        """
        stages = [max(stage, 0) for stage in self.stages]
        numbers = [position.number for position in self.positions]
        changed = True
        while changed:
            changed = False
            for first, second, value in self._conflicts:
                one, other = numbers[first], numbers[second]
                least = stages[one]
                must_share_stage = value not in self.body.own and self._may_overlap(first, second, value)
                if stages[other] < least or (must_share_stage and stages[other] > least):
                    stages[one] = stages[other] = max(least, stages[other])
                    changed = True
        return stages, list(range(len(stages)))


def _integers_of(loop: scf.ForOp, name: str) -> list[int]:
    given = loop.attributes[name]
    assert isinstance(given, DenseArrayBase)
    return [int(number) for number in given.get_values()]


def _remove_schedule(loop: scf.ForOp) -> None:
    """Removes the schedule from a loop. ``tile.SCHEDULE`` stays: it keeps later passes from overlapping the iterations."""
    for name in (tile.STAGE, tile.ORDER):
        del loop.attributes[name]


@dataclass(frozen=True)
class ScheduleStatements(ModulePass):
    """Reorders and skews the statements of a pipelined loop as its author asks: ``T.Pipelined(order=, stage=, group=)``.

    Attributes:
        chip: the name of the chip, in whose memories buffers can have several slots.
        enabled: whether to follow the schedules; if false, the statements stay as written.
    """

    name = "schedule-statements"
    chip: str = chips.DEFAULT
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        loops = [inner for inner in op.walk() if isinstance(inner, scf.ForOp) and tile.SCHEDULE in inner.attributes]
        for loop in reversed(loops):  # the inner ones first
            where = location_of(loop)
            if self.enabled:
                schedule = _Schedule(loop, ranges)
                rings, body = schedule.rewrite({GM, *chips.chip(self.chip).memory})
                depth = 1 + max(position.stage for position in schedule.positions)
                record_done(op, self.name, where,
                            f"the statements of the loop run in the given order, on up to {depth} iterations at a time")
                for value, count in rings.items():
                    ring = body.own[value]
                    space = name_of(space_of(ring.result))
                    record_done(op, self.name, location_of(ring),
                                f"{ring.label.data} has {count} slots in {space}, because several stages use it")
            else:
                _remove_schedule(loop)
                del loop.attributes[tile.SCHEDULE]
        if loops:
            for inner in op.walk():
                inner.location = tile.strip_statement(inner.location)


__all__ = ["ScheduleStatements"]
