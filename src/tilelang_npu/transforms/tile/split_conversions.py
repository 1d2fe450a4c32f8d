"""Splits copies between GM and UB that convert the element type into a copy and a conversion, where UB is short.

MTE2 loads and MTE3 stores elements as they are in GM, and V converts them, so such a copy uses two pipes and needs a tile of
each type in UB. Slots of the tile that MTE2 or MTE3 accesses let iterations overlap. The tile of the other type is accessed
by V alone, which executes its operations in order, and needs one slot. After the split, ``sink-buffers`` sees both tiles, and
gives slots to the first one. Without the split it gives slots to the tile that is computed on, which is the larger one in most
kernels: if the tiles then do not all fit in UB side by side, they share bytes, and loads wait for stores.

Copies of a launch are split only if its tiles with all their slots do not fit. A copy is not split if it is in no pipelined
loop, if its sizes are known only at run time, if it accumulates in GM, if it pads with a value that the author chose, if the
compiler allocated the tensor, or if the author synchronises or uses ``T.Scope`` in the loop.

The pass runs after ``hoist-loads``, which moves a load and its conversion out of a loop as one copy, and before
``sink-buffers``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffer_sizes import nbytes_of
from tilelang_npu.analysis.buffers import root_of, space_of, users_of
from tilelang_npu.analysis.cores import noted_core, put_core
from tilelang_npu.analysis.nesting import is_in_core_scope, loop_around, pipelined_loop_of_copy
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.infra.patterns import apply_patterns, insert_for
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial

NAME = "split-conversions"


def _element(value: SSAValue) -> Attribute:
    kind = value.type
    assert isinstance(kind, MemRefType)
    element: Attribute = kind.element_type
    return element


def _converts(op: tile.CopyOp, local: SSAValue, tensor: SSAValue) -> bool:
    """Whether a copy converts between a tile in UB and a tensor of the author.

    Args:
        op: the copy.
        local: the end of the copy that is in UB.
        tensor: the other end.
    """
    return (space_of(local) == "ub" and space_of(tensor) == "gm" and _element(local) != _element(tensor)
            and isinstance(root_of(local).owner, tile.AllocOp) and not isinstance(root_of(tensor).owner, tile.AllocOp)
            and -1 not in tile.shape_of(local))


def _is_split(op: tile.CopyOp, local: SSAValue, tensor: SSAValue) -> bool:
    """Whether a copy between GM and UB can be split; the arguments are those of :func:`_converts`."""
    loop = loop_around(op)
    return (_converts(op, local, tensor) and op.pad is None and op.atomic is None and loop is not None
            and tile.stages_of(loop) > 1 and not _is_synchronised(loop))


def _lacks_room(launch: Operation, size: int) -> bool:
    """Whether the tiles of a launch that are in UB do not fit side by side, with all slots that pipelined loops would give them
    without the split and with the tiles that conversions need.

    Args:
        launch: the launch.
        size: the size of UB in bytes.
    """
    needed = 0
    for op in launch.walk():
        if isinstance(op, tile.AllocOp) and space_of(op.result) == "ub":
            slots = [tile.stages_of(loop) for user in users_of(op.result)
                     if (loop := pipelined_loop_of_copy(user, op.result)) is not None]
            needed += nbytes_of(op.result) * max(slots, default=1)
        elif isinstance(op, tile.CopyOp):
            for local, tensor in ((op.target, op.source), (op.source, op.target)):
                if _converts(op, local, tensor):
                    needed += prod(tile.shape_of(local)) * dtype_of(_element(tensor)).nbytes
    return needed > size


def _is_synchronised(loop: scf.ForOp) -> bool:
    """Whether the author synchronises in a loop, or chooses the cores of its statements."""
    return is_in_core_scope(loop) or any(op.name.startswith("hivm.") or isinstance(op, tile.OnCoreOp) for op in loop.walk())


def _insert_tile(op: tile.CopyOp, local: SSAValue, element: SSAValue, rewriter: PatternRewriter) -> SSAValue:
    """Inserts the allocation of a tile, and returns the tile.

    Args:
        op: the copy that is split.
        local: the end of the copy that is in UB. The tile has its shape, and the name of its buffer.
        element: a value whose elements have the type of the tile's elements.
        rewriter: inserts the allocation before that of the buffer.
    """
    buffer = root_of(local).owner
    kind = element.type
    assert isinstance(buffer, tile.AllocOp) and isinstance(kind, MemRefType)
    made = tile.AllocOp(buffer.label.data, MemRefType(kind.element_type, tile.shape_of(local),
                                                      memory_space=hivm.address_space("ub")))
    made.location = buffer.location
    made.result.name_hint = buffer.result.name_hint
    rewriter.insert(made, InsertPoint.before(buffer))
    return made.result


def _insert_copy(op: tile.CopyOp, source: SSAValue, target: SSAValue, rewriter: PatternRewriter) -> None:
    """Inserts one of the two copies that replace a copy; the one that converts has the round mode."""
    converts = _element(source) != _element(target)
    mode = op.round_mode.data if op.round_mode is not None and converts else None
    made = insert_for(op, tile.CopyOp(source, target, round_mode=mode), rewriter)
    if noted_core(op) is not None:  # otherwise the function states the core
        put_core(made, "AIV")


@dataclass
class SplitConvertingLoad(RewritePattern):
    """Splits a load that converts.

    ::

        tile.copy %tensor into %x (bf16 -> f32)
        -> tile.copy %tensor into %loaded (bf16); tile.copy %loaded into %x (bf16 -> f32)

    Attributes:
        module: the module, to which remarks are added.
    """

    module: ModuleOp

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CopyOp, rewriter: PatternRewriter) -> None:
        if not _is_split(op, op.target, op.source):
            return
        loaded = _insert_tile(op, op.target, op.source, rewriter)
        _insert_copy(op, op.source, loaded, rewriter)
        _insert_copy(op, loaded, op.target, rewriter)
        _record(self.module, op, "loaded")
        rewriter.erase(op)


@dataclass
class SplitConvertingStore(RewritePattern):
    """Splits a store that converts.

    ::

        tile.copy %y into %tensor (f32 -> bf16)
        -> tile.copy %y into %stored (f32 -> bf16); tile.copy %stored into %tensor (bf16)

    Attributes:
        module: the module, to which remarks are added.
    """

    module: ModuleOp

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CopyOp, rewriter: PatternRewriter) -> None:
        if not _is_split(op, op.source, op.target):
            return
        stored = _insert_tile(op, op.source, op.target, rewriter)
        _insert_copy(op, op.source, stored, rewriter)
        _insert_copy(op, stored, op.target, rewriter)
        _record(self.module, op, "stored")
        rewriter.erase(op)


def _record(module: ModuleOp, op: tile.CopyOp, how: str) -> None:
    local, tensor = (op.target, op.source) if how == "loaded" else (op.source, op.target)
    buffer = root_of(local).owner
    assert isinstance(buffer, tile.AllocOp)
    record_done(module, NAME, location_of(op), f"{buffer.label.data} is {how} through a tile of type {_element(tensor)}, which "
                "can have slots, and V converts the elements")


@dataclass(frozen=True)
class SplitConversions(PassWithPlanTrial):
    """Splits copies between GM and UB that convert the element type into a copy and a conversion, where UB is short.

    After a split, a tile of each type is alive from one iteration to the next. If the tiles then have no room, only loads are
    split, which start before an iteration needs them; otherwise nothing.

    Attributes:
        chip: the chip, whose UB has to hold the tiles.
        enabled: whether the optimisation is on.
        synchronise: whether the compiler inserts the waits between operations of one core. If false, no copy is split, because
            the author's waits are between statements.
    """

    name = NAME

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.enabled or not self.synchronise or next(self._splittable(op), None) is None:
            return
        if (why := self._why_no_room(op, stores=True)) is None:
            self._split(op, stores=True)
        elif self._why_no_room(op, stores=False) is None:
            self._split(op, stores=False)
        else:  # unsplit, the tiles need the least memory, also for the error of a kernel that has no room in any case
            record_refusal(op, self.name, location_of(next(self._splittable(op))),
                           f"the tile is loaded and converted as one copy, because {why}", "shrink the tiles")

    def _why_no_room(self, module: ModuleOp, *, stores: bool) -> str | None:
        """Returns why the tiles have no room after the split; None if they have room."""
        tried = module.clone()
        self._split(tried, stores=stores)
        return self.missing_room(tried)

    def _splittable(self, module: ModuleOp) -> Iterator[tile.CopyOp]:
        """Yields the copies that can be split."""
        for launch in self._short_launches(module):
            for copy in launch.walk():
                if isinstance(copy, tile.CopyOp) and (_is_split(copy, copy.target, copy.source)
                                                      or _is_split(copy, copy.source, copy.target)):
                    yield copy

    def _short_launches(self, module: ModuleOp) -> list[Operation]:
        """Returns the launches whose tiles do not fit side by side."""
        size = chips.chip(self.chip).memory["ub"].size
        launches: list[Operation] = [inner for inner in module.walk() if isinstance(inner, tile.LaunchOp)]
        return [launch for launch in launches or [inner for inner in module.ops if isinstance(inner, func.FuncOp)]
                if _lacks_room(launch, size)]

    def _split(self, module: ModuleOp, *, stores: bool) -> None:
        patterns = [SplitConvertingLoad(module), *([SplitConvertingStore(module)] if stores else [])]
        for launch in self._short_launches(module):
            apply_patterns(launch, *patterns, classes=tile.CopyOp)


__all__ = ["SplitConversions", "SplitConvertingLoad", "SplitConvertingStore"]
