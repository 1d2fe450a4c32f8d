"""Divides the body of a pipelined loop into stages: sets of statements of one core, alternating between the cores.

Even and odd stages belong to different cores. A statement is in a stage of its own core, not before the stages of the
statements that it depends on, and after them if they are of the other core. Statements that share a value which survives an
iteration are in one stage, together with the statements between them, because a stage executes its iterations in order.

Often a statement could be in several stages. The stage is chosen such that few bytes on chip are passed from stage to stage,
because each such byte needs multi-buffer slots. So a load, or a broadcast of a few elements, is in the first stage that needs
the result, and a reduction of a tile to a few elements is in the stage that computes the tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Operation

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffer_sizes import buffer_name, nbytes_of
from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.analysis.cores import core_of
from tilelang_npu.analysis.locations import line_of
from tilelang_npu.analysis.loop_body import (
    ORDERED_BY_AUTHOR,
    LoopBody,
    Statement,
    StoredValue,
    core_within,
    find_stale_scalar,
    is_statement,
    loop_body_of,
    scalar_loads_for,
    statement_of,
)
from tilelang_npu.analysis.nesting import launch_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.transforms.infra.optimisations import Refusal

_MOST_STAGES = 16


@dataclass
class StagedBody(LoopBody):
    """The body of a loop, divided into stages.

    Attributes:
        before: for each statement, the indices of the earlier statements of the same iteration that the statement depends on.
        carried: for each value that survives an iteration, the indices of the statements that access the value. These
            statements must be in one stage.
    """

    before: list[list[int]] = field(default_factory=list)
    carried: dict[StoredValue, list[int]] = field(default_factory=dict)

    @property
    def stages(self) -> int:
        """The number of stages of the body."""
        return 1 + max(each.stage for each in self.statements)

    def assign_stages(self) -> bool:
        """Sets the stage of each statement, such that few stages result and few bytes are passed between stages.

        Returns:
            Whether a division with at most ``_MOST_STAGES`` stages exists; otherwise no stages are set.
        """
        self._find_dependences()
        found = []
        for first in ("AIC", "AIV"):
            if self._assign_earliest_stages(first):
                found.append((self.stages, self._stages_now()))
        if not found:
            return False
        _, earliest = min(found, key=lambda one: one[0])
        self._set_stages(earliest)
        self._reduce_bytes_between_stages()
        from_earliest, fewest = self._stages_now(), self._bytes_between_stages(self.own)
        self._set_stages(earliest)
        self._assign_latest_stages()
        self._reduce_bytes_between_stages()
        if self._bytes_between_stages(self.own) >= fewest:
            self._set_stages(from_earliest)
        return True

    def _stages_now(self) -> list[int]:
        return [each.stage for each in self.statements]

    def _set_stages(self, stages: Sequence[int]) -> None:
        for each, stage in zip(self.statements, stages, strict=True):
            each.stage = stage

    def _find_dependences(self) -> None:
        shared: dict[StoredValue, list[int]] = {}
        for index, each in enumerate(self.statements):
            self.before.append([other for other in range(index)
                                if any(value in self.own for value in self.statements[other].conflicts_with(each))])
            for value in each.accessed:
                if value not in self.own:
                    shared.setdefault(value, []).append(index)
        self.carried = {value: users for value, users in shared.items()
                        if any(value in self.statements[user].writes for user in users)}

    def carried_over_both_cores(self) -> list[str]:
        """Returns the names and lines of the buffers whose values survive an iteration and are computed by both cores together:
        their statements cannot be in one stage, which belongs to one core.
        """
        mixed = [set(unit) for unit in self._units() if len({self.statements[index].core for index in unit}) > 1]
        return list(dict.fromkeys(f"{buffer_name(value.root)} ({line_of(value.root.owner)})"
                                  for value, users in self.carried.items()
                                  if isinstance(value.root.owner, Operation) and any(unit.issuperset(users) for unit in mixed)))

    def _assign_earliest_stages(self, first: str) -> bool:
        """Gives each statement the earliest stage it can have, where even stages are of the core ``first``."""
        for each in self.statements:
            each.stage = 0 if each.core == first else 1
        changed = True
        while changed:
            changed = False
            for index, each in enumerate(self.statements):
                least = max((self.statements[other].stage + (self.statements[other].core != each.core)
                             for other in self.before[index]), default=0)
                changed = _raise_stage(each, least) or changed
            for group in self.carried.values():
                least = max(self.statements[index].stage for index in group)
                for index in group:
                    changed = _raise_stage(self.statements[index], least) or changed
            if self.stages > _MOST_STAGES:
                return False
        return True

    def _units(self) -> list[list[int]]:
        """Returns sets of statements that are always in one stage: each group, with the statements between its members."""
        above: list[set[int]] = []
        for needs in self.before:
            above.append(set(needs).union(*(above[other] for other in needs)))
        units: list[set[int]] = []
        for members in [*map(set, self.carried.values()), *({index} for index in range(len(self.statements)))]:
            found, size = set(members), 0
            while len(found) > size:
                size = len(found)
                found.update(*(unit for unit in units if unit & found))
                needed = set[int]().union(*(above[index] for index in found))
                found |= {index for index in needed if above[index] & found}
            units = [unit for unit in units if not unit & found] + [found]
        return sorted(map(sorted, units))

    def _legal_stages(self, unit: Sequence[int]) -> tuple[int, int]:
        """Returns the first and the last stage of a unit's core that are after its dependences and before its dependents."""
        core, now = self.statements[unit[0]].core, self.statements[unit[0]].stage
        low, high = now % 2, (self.stages - 1) - (self.stages - 1 - now) % 2
        for index, (other, needs) in enumerate(zip(self.statements, self.before, strict=True)):
            for member in unit:
                if index not in unit and member in needs:
                    high = min(high, other.stage - (other.core != core))
                if index in self.before[member] and index not in unit:
                    low = max(low, other.stage + (other.core != core))
        return low, high

    def _assign_latest_stages(self) -> None:
        units, moved = self._units(), True
        while moved:
            moved = False
            for unit in reversed(units):
                _, high = self._legal_stages(unit)
                moved = moved or high > self.statements[unit[0]].stage
                for index in unit:
                    self.statements[index].stage = high

    def _reduce_bytes_between_stages(self) -> None:
        """Moves each unit to the stage with which the fewest bytes go from stage to stage; of equals, a load to the last one.

        A load in the stage that needs it first needs no slots between two stages.
        """
        units, rounds, moved = self._units(), 0, True
        while moved and rounds < _MOST_STAGES:
            rounds, moved = rounds + 1, False
            for unit in reversed(units):
                first = self.statements[unit[0]]
                now, (low, high) = first.stage, self._legal_stages(unit)
                values = dict.fromkeys(value for index in unit for value in self.statements[index].accessed)
                is_load = len(unit) == 1 and isinstance(first.op, tile.CopyOp) and not self.before[unit[0]]
                best = now, self._bytes_between_stages(values)
                for stage in range(low, high + 1, 2):
                    for index in unit:
                        self.statements[index].stage = stage
                    taken = self._bytes_between_stages(values)
                    if taken < best[1] or (is_load and taken == best[1] and stage > best[0]):
                        best = stage, taken
                for index in unit:
                    self.statements[index].stage = best[0]
                moved = moved or best[0] != now

    def _bytes_between_stages(self, values: Iterable[StoredValue]) -> int:
        """Returns the bytes on chip that go from stage to stage, each times the number of pairs of stages that it passes."""
        total = 0
        for value in values:
            if value in self.own and space_of(value.root) != chips.GM:
                stages = [each.stage // 2 for each in self.statements if value in each.reads or value in each.writes]
                total += (max(stages) - min(stages)) * nbytes_of(value.root)
        return total


def _raise_stage(statement: Statement, stage: int) -> bool:
    """Raises a statement to the first stage of its core from ``stage`` on; returns whether that changes its stage."""
    if stage <= statement.stage:
        return False
    statement.stage = stage + (stage - statement.stage) % 2
    return True


def cut_into_stages(loop: scf.ForOp, ranges: Ranges) -> StagedBody | Refusal | None:
    """Divides the body of a loop into stages.

    Args:
        loop: the loop.
        ranges: bounds of scalars.

    Returns:
        The body; or the reason why it cannot be divided; or None if dividing it is of no use, because one core does all the
        work or there are at most two stages.
    """
    if launch_of(loop) is None:  # an inner loop of a body that was already rewritten
        return None
    body = _body_of(loop, ranges)
    if not isinstance(body, StagedBody):
        return body
    if loop.iter_args:
        return Refusal("each iteration of the loop passes scalars to the next one",
                       "keep the values that one iteration passes to the next in a buffer, and use them in vector operations")
    if not body.assign_stages():
        return _why_not_in_stages(body)
    if body.stages <= 2:
        return None
    if ranges.constant(loop.step) != 1:
        return Refusal("the loop's step is not 1",
                       "let the loop count by 1, and multiply the loop variable by the step where it is used")
    return body


def _why_not_in_stages(body: StagedBody) -> Refusal:
    if names := ", ".join(body.carried_over_both_cores()):
        return Refusal(f"one iteration of the loop passes {names} to the next, and computing it takes both the Cube core and "
                       "the Vector cores", "compute the values that one iteration passes to the next on one core only")
    return Refusal(f"the work changes between the Cube core and the Vector cores more than {_MOST_STAGES} times in the loop's "
                   "body", "split the loop, or let one core compute several of the results one after the other")


def _body_of(loop: scf.ForOp, ranges: Ranges) -> StagedBody | Refusal | None:
    statements = []
    for op in loop.body.block.ops:
        if not is_statement(op):
            continue
        core = core_within(op)
        if core is None or op.results:
            return _why_in_no_stage(op) if _has_work_of_both_cores(loop) else None
        if (refusal := _why_scalar_unavailable(op)) is not None:
            return refusal if _has_work_of_both_cores(loop) else None
        statements.append(statement_of(op, core))
    if len({each.core for each in statements}) != 2:
        return None
    body = loop_body_of(loop, statements, ranges)
    return StagedBody(body.loop, body.statements, body.own)


def _why_scalar_unavailable(op: Operation) -> Refusal | None:
    """Returns why a statement cannot compute the scalars that it needs again in its stage; None where it can."""
    from_tile = next((load for load in scalar_loads_for(op) if space_of(root_of(load.memref)) != chips.GM), None)
    if from_tile is not None:
        return Refusal(f"the statement at {line_of(op)} needs a scalar that {line_of(from_tile)} reads from a buffer on chip",
                       "use the value in vector operations on the buffer, not as a scalar")
    stale = find_stale_scalar(op)
    if stale is None:
        return None
    return Refusal(f"the statement at {line_of(op)} needs a scalar that {line_of(stale)} reads from memory, and the memory is "
                   "written between the two", "copy the value to a buffer, and use it in vector operations, not as a scalar")


def _has_work_of_both_cores(op: Operation) -> bool:
    return {"AIC", "AIV"} <= {core_of(inner) for inner in op.walk()}


def _why_in_no_stage(op: Operation) -> Refusal:
    if op.results:
        return Refusal(f"the statement at {line_of(op)} computes a scalar that later statements of the loop use",
                       "compute the value in a buffer, and use it in vector operations, not as a scalar")
    for inner in op.walk():
        if isinstance(inner, ORDERED_BY_AUTHOR) or inner.name.startswith("hivm."):
            return Refusal(f"{line_of(inner)} prints, synchronises, or is in a T.Scope, so the compiler keeps the author's "
                           "order", "leave waits and cores to the compiler, and print outside of the loop")
    both = _has_work_of_both_cores(op)
    what = "work of both the Cube core and the Vector cores" if both else "no work that belongs to one core"
    if isinstance(op, scf.ForOp):
        edit = "unroll the inner loop (T.unroll), so that each of its statements belongs to one core"
    elif both:
        edit = "split the statement into one for each core"
    else:
        edit = "move the statement out of the loop"
    return Refusal(f"the statement at {line_of(op)} has {what}", edit)


__all__ = ["StagedBody", "cut_into_stages"]
