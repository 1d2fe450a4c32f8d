"""The author's schedule of a pipelined loop: the arguments ``order``, ``stage`` and ``group`` of ``T.Pipelined``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilelang_npu.errors import Location, TileError

FREE = -1
"""The value in ``order`` and ``stage`` that lets the compiler choose the position and the delay of a load."""


@dataclass(frozen=True)
class Schedule:
    """The arguments ``order``, ``stage`` and ``group`` of ``T.Pipelined``.

    Attributes:
        order: the position of each statement or group in the body; None keeps the order of the source.
        stage: the number of iterations by which each statement or group is delayed; None for no delay.
        group: the numbers of the statements of each group; None where each statement is a group.
    """

    order: tuple[int, ...] | None
    stage: tuple[int, ...] | None
    group: tuple[tuple[int, ...], ...] | None

    def of_statements(self, statements: Sequence[Location]) -> tuple[list[int], list[int]]:
        """Returns the delay of each statement of a loop body in iterations, and the position of each statement.

        Both are -1 for a load that the compiler is to schedule. The smallest delay is 0.

        Args:
            statements: the source locations of the statements of the body, in order.

        Raises:
            TileError: T150, the numbers of the schedule do not fit the body.
        """
        groups = self.group or tuple((number,) for number in range(len(statements)))
        listed = ", ".join(f"line {one.line}" for one in statements)
        if sorted(number for group in groups for number in group) != list(range(len(statements))):
            raise TileError(f"T.Pipelined: group={_shown(groups)} does not name each of the "
                            f"{_counted(len(statements), 'statement')} of the body once", code="T150",
                            notes=[f"the statements of the body, numbered from 0, are {listed}"],
                            help=f"name each number from 0 to {len(statements) - 1} once")
        parts = "group" if self.group is not None else "statement"
        for name, given in (("order", self.order), ("stage", self.stage)):
            if given is not None and len(given) != len(groups):
                raise TileError(f"T.Pipelined: {name} has {_counted(len(given), 'number')} for "
                                f"{_counted(len(groups), parts)}", code="T150",
                                notes=[f"the statements of the body are {listed}: allocations and assignments of scalars do "
                                       "not count, and the statements of a macro count one by one"],
                                help=f"give one number for each {parts}")
        for number in range(len(groups)):
            both = self._at(self.order, number), self._at(self.stage, number)
            if FREE in both and None not in both and both != (FREE, FREE):
                raise TileError(f"T.Pipelined: {parts} {number} has order {both[0]} and stage {both[1]}", code="T150",
                                help=f"{FREE} lets the compiler choose both: write {FREE} in order and in stage, or in neither")
        free = [FREE in (self._at(self.order, number), self._at(self.stage, number)) for number in range(len(groups))]
        order = self.order or range(len(groups))
        places = sorted(place for place, is_free in zip(order, free, strict=True) if not is_free)
        if self.order is not None and places != list(range(len(places))):
            raise TileError(f"T.Pipelined: order={list(self.order)} is not a permutation", code="T150",
                            help=f"give each {parts} that is not {FREE} its own position, from 0 to {len(places) - 1}")
        stages, found = [0] * len(statements), [0] * len(statements)
        for number, group in enumerate(groups):
            for statement in group:
                stages[statement] = FREE if free[number] else self.stage[number] if self.stage is not None else 0
                found[statement] = FREE if free[number] else order[number]
        least = min((stage for stage in stages if stage != FREE), default=0)
        return [stage if stage == FREE else stage - least for stage in stages], found

    @staticmethod
    def _at(given: tuple[int, ...] | None, number: int) -> int | None:
        return None if given is None else given[number]


def _shown(groups: Sequence[Sequence[int]]) -> str:
    return str([list(group) for group in groups])


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def schedule(order: object, stage: object, group: object) -> Schedule | None:
    """Checks the arguments ``order``, ``stage`` and ``group`` of ``T.Pipelined``, and returns the schedule.

    The result is None if neither ``order`` nor ``stage`` is given.

    Raises:
        TileError: T150, an argument is not a list of numbers, or ``group`` is given alone.
    """
    groups = None
    if group is not None:
        if not isinstance(group, (list, tuple)):
            raise _wrong("group", group, "lists of statements: group=[[0], [1, 2]]")
        groups = tuple(_numbers("group", one, 0) for one in group)
    if order is None and stage is None:
        if groups is not None:
            raise TileError("T.Pipelined: group is given without order and stage", code="T150",
                            help="pass order or stage with a number for each group, or remove group")
        return None
    numbers = [None if given is None else _numbers(name, given, FREE) for name, given in (("order", order), ("stage", stage))]
    return Schedule(numbers[0], numbers[1], groups)


def _numbers(name: str, given: object, least: int) -> tuple[int, ...]:
    if not isinstance(given, (list, tuple)) or not all(
            isinstance(one, int) and not isinstance(one, bool) and one >= least for one in given):
        means = f"numbers from 0 on, or {FREE} for a load that the compiler places" if least == FREE else "numbers from 0 on"
        raise _wrong(name, given, f"a list of {means}")
    return tuple(given)


def _wrong(name: str, given: object, wanted: str) -> TileError:
    return TileError(f"T.Pipelined: {name}={given!r} is not a schedule", code="T150", help=f"give {wanted}")


__all__ = ["Schedule", "schedule"]
