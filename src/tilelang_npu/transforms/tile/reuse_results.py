"""Uses the tile of an earlier operation in place of computing it again.

Kernels often repeat an operation on a tile that has not changed: several loops of ``T.Parallel`` convert the same loaded tile
to float32, for example. The second operation is removed if

* the same operation ran before on the same elements, and nothing has written to its operands or to its result since;
* the result of the second operation is a temporary tile of ``vectorise-parallel``, which only this operation writes, and which
  is not read after the earlier result is overwritten;
* nothing of the kernel waits longer: the earlier tile is live for longer, so if the tiles do not all fit in UB side by side,
  memory planning is tried with and without the reuse;
* in a loop, no operation of a Cube core is between the two: the tile would pass between stages of the iteration, and take slots
  from the overlap of iterations. Loops whose author gives the order or the stages of the statements stay as they are.

Kernels in which the author synchronises or uses ``T.Scope`` stay as they are. The pass runs once memories and the rows of each
Vector core are known, and before ``pipeline-loops``, which looks for room for slots.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.accesses import accesses_within, has_reference_to, is_full_overwrite
from tilelang_npu.analysis.buffer_sizes import nbytes_of
from tilelang_npu.analysis.buffers import PARALLEL_LABEL, root_of, space_of, users_of
from tilelang_npu.analysis.cores import noted_core
from tilelang_npu.analysis.launch_grids import is_left_to_compiler
from tilelang_npu.analysis.locations import line_of
from tilelang_npu.analysis.room import fit_side_by_side
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import Smaller
from tilelang_npu.dialects.ir.effects import EffectsOp, effects_of, is_memory, is_pure
from tilelang_npu.dialects.ir.equal_operations import attributes_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial, PlanTrial

Key = Hashable
_MIN_BYTES_ACROSS_LOOPS = 4096
"""The bytes of the smallest tile that is kept while a loop runs. An instruction on a smaller tile takes less than 16 repeats,
and the waits that follow from a tile that lives for longer can cost more."""


@dataclass(frozen=True, eq=False)
class Repetition:
    """An operation that computes what an earlier operation has computed.

    Attributes:
        earlier: the earlier operation.
        again: the operation that can be removed.
        result: the tile of the earlier operation.
        copy: the tile of the other operation.
        distance: the number of operations in the block between the two, at least.
    """

    earlier: Operation
    again: Operation
    result: SSAValue
    copy: SSAValue
    distance: int


class _Known(NamedTuple):
    """An operation whose result can be used again.

    Attributes:
        op: the operation.
        result: the tile that it writes.
        version: the number of writes to the tile when it was written.
        number: the position of the operation.
        ended: the number of loops and branches that had ended.
        cube_ops: the number of operations of a Cube core before it.
    """

    op: Operation
    result: SSAValue
    version: int
    number: int
    ended: int
    cube_ops: int


@dataclass
class _Search:
    """Searches the operations of a launch for repetitions, in program order.

    Attributes:
        versions: for each buffer, the number of writes to it so far. A loop counts as a write, before and after its body, for
            each buffer that is written in it.
        found: the repetitions.
    """

    versions: dict[SSAValue, int] = field(default_factory=dict)
    found: list[Repetition] = field(default_factory=list)
    _number: int = 0
    _ended: int = 0
    """The number of loops and branches that have ended."""
    _cube_ops: int = 0
    """The number of operations of a Cube core."""

    def visit(self, block: Block, known: MutableMapping[Key, _Known], *, in_loop: bool = False) -> None:
        """Searches a block, where the results of ``known`` operations are available."""
        for op in block.ops:
            self._number += 1
            written = {root_of(use.value) for use in accesses_within(op) if use.writes}
            if op.regions:
                self._note_writes(written)
                is_loop = not isinstance(op, scf.IfOp)
                for inner in [each for region in op.regions for each in region.blocks if tile.SCHEDULE not in op.attributes]:
                    self.visit(inner, ChainMap({}, known), in_loop=in_loop or is_loop)
                self._note_writes(written)
                self._ended += 1
                continue
            self._cube_ops += noted_core(op) == "AIC"
            result = _only_result(op)
            key = None if result is None else self._key(op, result)
            self._note_writes(written)
            if key is None or result is None:
                continue
            one = known.get(key)
            if (one is not None and self.versions[one.result] == one.version
                    and self._is_close(one, result, in_loop=in_loop) and _can_be_replaced(op, result, one.result)):
                self.found.append(Repetition(one.op, op, one.result, result, self._number - one.number))
                continue
            known[key] = _Known(op, result, self.versions[result], self._number, self._ended, self._cube_ops)

    def _is_close(self, one: _Known, result: SSAValue, *, in_loop: bool) -> bool:
        """Whether an earlier result may be live until the present operation, which computes ``result``."""
        is_near = self._ended == one.ended or nbytes_of(result) >= _MIN_BYTES_ACROSS_LOOPS
        return is_near and (self._cube_ops == one.cube_ops or not in_loop)

    def _note_writes(self, buffers: set[SSAValue]) -> None:
        for buffer in buffers:
            self.versions[buffer] = self.versions.get(buffer, 0) + 1

    def _key(self, op: Operation, result: SSAValue) -> Key:
        """Returns what is equal for two operations that compute the same."""
        operands = tuple(None if root_of(value) is result else self._value_key(value) for value in op.operands)
        return op.name, attributes_of(op), operands, result.type

    def _value_key(self, value: SSAValue) -> Key:
        """Returns what is equal for two values that are surely equal, and for two views of the same elements."""
        owner = value.owner
        if is_memory(value) and not isinstance(owner, (tile.RegionOp, tile.ViewOp)):
            return value, self.versions.get(value, 0)
        if isinstance(owner, Operation) and not owner.regions and (
                isinstance(owner, (tile.RegionOp, tile.ViewOp)) or is_pure(owner)):
            return (owner.name, attributes_of(owner), tuple(map(self._value_key, owner.operands)), value.type,
                    owner.results.index(value))
        return value


def _only_result(op: Operation) -> SSAValue | None:
    """Returns the buffer in UB that an operation overwrites as a whole, if it has no other effect and reads other buffers in UB
    alone; otherwise None."""
    if not isinstance(op, EffectsOp) or op.has_side_effects():
        return None
    uses = effects_of(op)
    written = {root_of(use.value) for use in uses if use.writes}
    if len(written) != 1 or any(space_of(root_of(use.value)) != "ub" for use in uses):
        return None
    (buffer,) = written
    if not isinstance(buffer.owner, tile.AllocOp) or buffer.owner.address is not None or not is_full_overwrite(op, buffer):
        return None
    return buffer if all(use.value is buffer for use in uses if use.writes) else None


def _can_be_replaced(op: Operation, copy: SSAValue, held: SSAValue) -> bool:
    """Whether all reads of ``copy``, which ``op`` writes, can read ``held`` instead."""
    assert isinstance(copy.owner, tile.AllocOp)
    if copy.owner.label.data != PARALLEL_LABEL or copy is held:
        return False
    block, left = op.parent_block(), set(users_of(copy)) - {op}
    assert block is not None
    following = op.next_op
    while left and following is not None:
        inside = set(following.walk())
        uses = accesses_within(following) if has_reference_to(following, copy) or has_reference_to(following, held) else []
        if any(use.writes and root_of(use.value) in (copy, held) for use in uses):
            return False
        left -= inside
        following = following.next_op
    return not left


def _reuse(repetitions: Sequence[Repetition]) -> None:
    """Removes operations that compute again what is known."""
    for one in repetitions:
        allocation = one.copy.owner
        assert isinstance(allocation, tile.AllocOp)
        Rewriter.erase_op(one.again)
        one.copy.replace_all_uses_with(one.result)
        Rewriter.erase_op(allocation)


@dataclass(frozen=True)
class ReuseResults(PassWithPlanTrial):
    """Uses the tile of an earlier operation in place of computing it again, if there is room to keep that tile."""

    name = "reuse-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = list(self._repetitions(op)) if self.enabled and self.synchronise else []
        if not found:
            return
        taken, why = self._with_room(op, found)
        for one in taken:
            record_done(op, self.name, location_of(one.again),
                        f"a tile is not computed again: {line_of(one.earlier)} has computed it")
        if why is not None:
            one = next(each for each in found if each not in taken)
            tiles = (each for each in op.walk() if isinstance(each, tile.AllocOp) and each.label.data != PARALLEL_LABEL
                     and space_of(each.result) == "ub")
            record_refusal(op, self.name, location_of(one.again),
                           f"a tile is computed again that {line_of(one.earlier)} has computed: {why}", "shrink the tiles",
                           change=Smaller(tuple(dict.fromkeys(map(location_of, tiles)))))
        _reuse(taken)

    def _repetitions(self, module: ModuleOp) -> Iterator[Repetition]:
        for launch in [op for op in module.walk() if isinstance(op, tile.LaunchOp)]:
            if is_left_to_compiler(launch):
                search = _Search()
                search.visit(launch.body.block, {})
                yield from search.found

    def _with_room(self, module: ModuleOp, found: Sequence[Repetition]) -> tuple[Sequence[Repetition], str | None]:
        """Returns the repetitions that can be removed, and why the others cannot; None if there are no others."""
        if fit_side_by_side(module, chips.chip(self.chip)):
            return found, None
        before: PlanTrial | None = None
        why: str | None = None
        nearest = sorted(found, key=lambda one: one.distance)
        for tried in filter(None, (nearest, nearest[:len(nearest) // 2])):
            trial = self._try(module, tried)
            if trial.why_worse_than(PlanTrial()) is None:  # no buffer lacks anything
                return tried, why
            before = before or self._try(module, [])
            worse = trial.why_worse_than(before)
            if worse is None:
                return tried, why
            why = why or worse
        return [], why

    def _try(self, module: ModuleOp, repetitions: Sequence[Repetition]) -> PlanTrial:
        """Tries memory planning on a copy of a module without some of the repetitions."""
        copied = module.clone()
        twins = dict(zip(module.walk(), copied.walk(), strict=True))

        def tile_of(value: SSAValue) -> SSAValue:
            assert isinstance(value.owner, tile.AllocOp)
            return twins[value.owner].results[0]

        _reuse([Repetition(twins[one.earlier], twins[one.again], tile_of(one.result), tile_of(one.copy), one.distance)
                for one in repetitions])
        return self.try_plan(copied)


__all__ = ["Repetition", "ReuseResults"]
