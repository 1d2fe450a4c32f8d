"""Put the statements of a pipelined loop where its author wants them: ``T.Pipelined(order=, stage=, group=)``.

A statement of stage ``s`` works on the iteration ``s`` behind that of stage 0, and statements stand in the given order. What
the loop computes stays what it computes as written: of two statements that share a value, the one that comes first in an
iteration comes first here too, and what goes from iteration to iteration does so in the order of the iterations. A schedule for
which this does not hold is refused, with one for which it does.

What an iteration makes for itself gets slots where its statements are of several stages. A load whose place is left to the
compiler (-1) stands in front of the first statement that wants it.

Runs on the tile dialect after ``sink-buffers``: what an iteration has for itself is known, and memories have their hand-overs.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.effects import Effect, is_pure
from tilelang_npu.dialects.ir.remarks import record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.target import GM, name_of
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.locations import line_of, refuse
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.channels import uses_below
from tilelang_npu.transforms.tile.live_ranges import give_own
from tilelang_npu.transforms.tile.skew import Piece, Skew, rings_of
from tilelang_npu.transforms.tile.staged_body import (
    LEFT_ALONE,
    StagedBody,
    Statement,
    StoredValue,
    changed_before,
    core_below,
    is_statement,
    numbered,
    statement,
)

_FREE = -1


@dataclass
class _Place:
    """Where a statement is to be.

    Attributes:
        number: the author's number of it; several operations may be of one.
        stage: how many iterations it is behind; -1 where the compiler chooses.
        place: where it stands among the others.
    """

    number: int
    stage: int
    place: tuple[int, int, int]


class _Schedule:
    """The schedule of one loop."""

    def __init__(self, loop: scf.ForOp, ranges: Ranges) -> None:
        self.loop, self.ranges = loop, ranges
        self.stages, self.order = (_numbers(loop, name) for name in (tile.STAGE, tile.ORDER))
        self.body = self._own_buffers()
        self.places = [self._written(index, each.op) for index, each in enumerate(self.body.statements)]
        self._meeting = list(self._all_meeting())
        self._put_free()

    def run(self, memories: Container[str]) -> tuple[dict[StoredValue, int], StagedBody]:
        """Rewrite the loop; the values that got slots, of one of some memories, and how many."""
        for first, second, value in self._meeting:
            if not self._keeps(self.places, first, second, value):
                raise self._broken(first, second, value)
        by_place = sorted(range(len(self.places)), key=lambda index: self.places[index].place)
        pieces: list[tuple[int, list[Statement]]] = []
        for index in by_place:
            stage, each = self.places[index].stage, self.body.statements[index]
            if not pieces or pieces[-1][0] != stage or pieces[-1][1][-1].core != each.core:
                pieces.append((stage, []))
            pieces[-1][1].append(each)
        made = [Piece(stage, statements) for stage, statements in pieces]
        rings, lags = rings_of(made, self.body.own)
        for value, count in rings.items():
            if space_of(value.root) not in memories:
                user = next(each.op for each in self.body.statements if value in each.touches)
                raise refuse(user, f"{author_name(value.root, 'a scalar')} is a scalar that goes from stage to stage", "T206",
                             help="give the statements that use it one stage, or keep it in a tile")
            slots = self.body.own[value].slots
            rings[value] = max(count, slots.value.data if slots is not None else 1)
        _forget(self.loop)
        skew = Skew(self.loop, self.body.own, made, rings, lags)
        if any(piece.lag for piece in made):
            skew.run_in_three()
        else:
            skew.run()
        return rings, self.body

    def _own_buffers(self) -> StagedBody:
        """The body, in which each value that a buffer holds in an iteration has a buffer of its own: as the statements stood,
        one was over when the next began."""
        body = self._read()
        for value, allocation in body.own.items():
            if value.number:
                give_own(allocation, [each.op for each in body.statements if value in each.touches])
        return self._read() if any(value.number for value in body.own) else body

    def _read(self) -> StagedBody:
        statements = []
        for op in self.loop.body.block.ops:
            if is_statement(op):
                for inner in op.walk():
                    if isinstance(inner, LEFT_ALONE) or (inner.name.startswith("hivm.") and not is_pure(inner)):
                        raise refuse(inner, "this prints, or its author orders it or puts it on a core, in a loop whose order "
                                     "or stage is given", "T206", help="print outside of the loop, and leave flags and cores "
                                     "to the compiler; or leave order and stage out")
                if (load := changed_before(op)) is not None:
                    raise refuse(op, f"this needs a scalar that was read at {line_of(load)}, from memory that is written in "
                                 "between", "T206", help="keep in a tile what changes, or leave order and stage out")
                statements.append(statement(op, core_below(op) or "either"))
        return numbered(self.loop, statements, self.ranges)

    def _written(self, index: int, op: Operation) -> _Place:
        """What the author says of an operation; one that has moved here from elsewhere is of the statement behind it."""
        number, at = tile.statement_of(op, self.loop), op.next_op
        while number is None and at is not None:
            number, at = tile.statement_of(at, self.loop), at.next_op
        if number is None and not any(tile.statement_of(each.op, self.loop) is not None for each in self.body.statements):
            raise refuse(self.loop, "nothing says which statements the order and stage of this loop are of: the text of a "
                         "kernel has that in its locations alone", "T206", help="compile the kernel's source")
        if number is None:
            number = len(self.stages) - 1
        free = self.stages[number] == _FREE
        return _Place(number, self.stages[number], (_FREE if free else self.order[number], 1 - free, index))

    def _all_meeting(self) -> Iterator[tuple[int, int, StoredValue]]:
        """Pairs of statements, as they stood, that share a value which one of them writes."""
        for second, later in enumerate(self.body.statements):
            for first in range(second):
                earlier = self.body.statements[first]
                common = (earlier.writes.keys() & later.touches) | (earlier.touches & later.writes.keys())
                yield from ((first, second, value) for value in later.touches if value in common)

    def _put_free(self) -> None:
        """Loads whose place is the compiler's: in front of the first that wants them, and of its stage."""
        for index, place in enumerate(self.places):
            if place.stage != _FREE:
                continue
            op = self.body.statements[index].op
            if not isinstance(op, tile.CopyOp) or space_of(root_of(op.source)) != GM:
                raise refuse(op, f"this is statement {place.number} of its loop, whose place is left to the compiler "
                             f"({_FREE}), and it is no load", "T206", help="give it an order and a stage")
        for index in reversed(range(len(self.places))):
            place = self.places[index]
            if place.stage == _FREE:
                users = [self.places[second] for first, second, _ in self._meeting if first == index]
                place.stage = min((user.stage for user in users), default=0)
                wanted = min((user.place[0] for user in users if user.stage == place.stage), default=-1)
                place.place = (wanted, 0, index)

    def _keeps(self, places: Sequence[_Place], first: int, second: int, value: StoredValue) -> bool:
        """Whether two statements that share a value touch it in the order in which they did."""
        one, other = places[first], places[second]
        here = (one.stage, one.place) < (other.stage, other.place)
        if value in self.body.own:
            return here
        if not here and self._meet(first, second, value, apart=0):
            return False
        following = (other.stage, other.place) < (one.stage + 1, one.place)  # of the iteration before
        return following or not self._meet(first, second, value, apart=1)

    def _meet(self, first: int, second: int, value: StoredValue, apart: int) -> bool:
        """Whether two statements may touch the same element, of one iteration or of different ones (``apart``)."""
        sides = [[use for use in uses_below(self.body.statements[index].op) if root_of(use.value) is value.root]
                 for index in (first, second)]
        if any(not side for side in sides) or space_of(value.root) != GM:
            return True  # by a scalar, or of a tile
        return any((one.writes or other.writes) and not (apart and self._moves_on(one, other))
                   for one in sides[0] for other in sides[1])

    def _moves_on(self, one: Effect, other: Effect) -> bool:
        """Whether along some axis two accesses are of one range in an iteration, and of another one in each."""
        regions = [use.value.owner for use in (one, other)]
        if not all(isinstance(region, tile.RegionOp) and region.source is root_of(region.source) for region in regions):
            return False
        first, second = (region for region in regions if isinstance(region, tile.RegionOp))
        index = self.loop.body.block.args[0]
        for a, b, long, wide in zip(first.mixed_offsets(), second.mixed_offsets(), first.mixed_sizes(), second.mixed_sizes(),
                                    strict=True):
            sizes = [self.ranges.constant(long), self.ranges.constant(wide)]
            at, same = affine(a), affine(b)
            fixed = all(atom is index or not _changes(atom, self.loop) for atom in at.terms)
            if None not in sizes and at == same and fixed and at.terms.get(index, 0) >= max(size or 0 for size in sizes) > 0:
                return True
        return False

    def _broken(self, first: int, second: int, value: StoredValue) -> Exception:
        one, other = self.body.statements[first].op, self.body.statements[second].op
        name = author_name(value.root, "a buffer")
        places = [self.places[index] for index in (first, second)]
        told = [f"{line_of(op)} (stage {place.stage}, place {max(place.place[0], 0)})"
                for op, place in zip((one, other), places, strict=True)]
        if value in self.body.own:
            what = f"{told[1]} needs {name} as {told[0]} leaves it in the same iteration, and would come before it"
        else:
            what = (f"{name} goes from iteration to iteration through {told[0]} and {told[1]}, and would be touched in another "
                    "order")
        stages, order = self._legal()
        return refuse(other, f"this schedule changes what the loop computes: {what}", "T206",
                      help=f"a schedule that does not, for the statements one by one: stage={stages}, order={order}")

    def _legal(self) -> tuple[list[int], list[int]]:
        """A schedule near to the author's: no statement earlier, in the order of the text."""
        stages = [max(stage, 0) for stage in self.stages]
        numbers = [place.number for place in self.places]
        changed = True
        while changed:
            changed = False
            for first, second, value in self._meeting:
                one, other = numbers[first], numbers[second]
                least = stages[one]
                together = value not in self.body.own and self._meet(first, second, value, apart=1)
                if stages[other] < least or (together and stages[other] > least):
                    stages[one] = stages[other] = max(least, stages[other])
                    changed = True
        tried = [_Place(place.number, stages[place.number], (place.number, 1, place.place[2])) for place in self.places]
        if not all(self._keeps(tried, *each) for each in self._meeting):
            stages = [0] * len(stages)
        return stages, list(range(len(stages)))


def _changes(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a scalar may be another one in each iteration."""
    owner = value.owner
    around = owner if isinstance(owner, Operation) else owner.parent_op()
    return around is None or loop.is_ancestor(around)


def _numbers(loop: scf.ForOp, name: str) -> list[int]:
    given = loop.attributes[name]
    assert isinstance(given, DenseArrayBase)
    return [int(number) for number in given.get_values()]


def _forget(loop: scf.ForOp) -> None:
    """The schedule is followed, or is not to be; what remains says that the statements have their places."""
    for name in (tile.STAGE, tile.ORDER):
        del loop.attributes[name]


@dataclass(frozen=True)
class ScheduleStatements(ModulePass):
    """The pass.

    Attributes:
        chip: whose memories can have slots.
        follow: do it; off, the statements stay as written.
    """

    name = "schedule-statements"
    chip: str = chips.DEFAULT
    follow: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        loops = [inner for inner in op.walk() if isinstance(inner, scf.ForOp) and tile.SCHEDULE in inner.attributes]
        for loop in reversed(loops):  # the inner ones first
            where = location_of(loop)
            if self.follow:
                schedule = _Schedule(loop, ranges)
                rings, body = schedule.run({GM, *chips.chip(self.chip).memory})
                depth = 1 + max(place.stage for place in schedule.places)
                record_done(op, self.name, where, f"the statements stand in the given order, of {depth} iterations at a time")
                for value, count in rings.items():
                    ring = body.own[value]
                    space = name_of(space_of(ring.result))
                    record_done(op, self.name, location_of(ring),
                                f"{ring.label.data} has {count} slots in {space}, from stage to stage")
            else:
                _forget(loop)
                del loop.attributes[tile.SCHEDULE]
        if loops:
            for inner in op.walk():
                inner.location = tile.strip_statement(inner.location)


__all__ = ["ScheduleStatements"]
