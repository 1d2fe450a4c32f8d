"""Give every buffer its memory: ``shared`` becomes L1 or UB, ``fragment`` becomes L0C or UB, from how it is used.

A gemm reads L1 and accumulates in L0C; vector work happens in UB; a buffer that is only copied lives in UB. A buffer
that needs several memories gets one allocation in each, and a copy is placed where a reader finds its memory out of
date. Where the chip has no path between the memories of the two cores, or the tile does not fit the path that there is,
such a buffer has a home in GM too, a workspace: the writing core leaves it there, as late as the first reader asks, and
the reading core fetches it. A memory that the user fixed is kept; a use that it cannot serve is an error. Scalar storage
(``T.alloc_local``, ``T.alloc_var``) that an operation on tiles uses is in UB, where single elements can be accessed too; what
is only filled is filled element by element.

Runs on the tile dialect, before lowering. Sound because a reader is redirected only to an allocation that holds the
newest value on every path: at joins the valid allocations are intersected, around loops until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import Effect, effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import DONE, Remark, Scoped, add_remark
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.errors import TileError
from tilelang_npu.target import GM, Chip, Path, name_of
from tilelang_npu.transforms.ir.buffers import (
    body_of,
    covers_root,
    root_of,
    space_of,
    touches,
    users_of,
    walk,
    with_space,
)
from tilelang_npu.transforms.ir.locations import line_of, location_of, refuse, stand_in
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.accumulators import folds, is_zero, restarted
from tilelang_npu.transforms.tile.expanded_fills import expand_element_fill
from tilelang_npu.transforms.tile.first_writes import is_dead_after, reads_earlier
from tilelang_npu.transforms.tile.vector_bound import vector_bound

_NEEDS = {"left": "cbuf", "right": "cbuf", "accumulator": "cc", "vector": "ub", "scalar": "ub"}
_WHAT = {"left": "the left operand of a gemm", "right": "the right operand of a gemm",
         "accumulator": "the accumulator of a gemm", "vector": "an operand of vector work", "scalar": "an element access"}
_OPEN = ("shared", "fragment")
Valid = dict[SSAValue, frozenset[str]]


@dataclass(frozen=True)
class _Ways:
    """What moves in one step from memory to memory.

    Attributes:
        chip: the chip.
        across: whether that may be from a core to the other. Where the author names the Vector cores, their tiles differ, and
            only what goes through GM can be cut by the core that reads it.
    """

    chip: Chip
    across: bool

    def direct(self, source: str, target: str, value: SSAValue) -> bool:
        """Whether there is a way for the elements and the shape of a value."""
        kind = value.type
        assert isinstance(kind, MemRefType)
        way = self.chip.ways.get((source, target))
        if way is None or dtype_of(kind.element_type).bits > way.widest:
            return False
        return not self.chip.crosses(way) or (self.across and _is_whole(value, way))

    def leads(self, op: tile.CopyOp, source: str, target: str) -> bool:
        """Whether a copy can go from one memory to another one, its element type changed where it changes."""
        if not self.direct(source, target, op.target):
            return False
        way = self.chip.ways[source, target]
        fits = not self.chip.crosses(way) or (covers_root(op.source) if source == "cc" else _is_whole(op.source, way))
        return fits and (not _converts(op) or self.chip.converts(way))


def _is_whole(value: SSAValue, way: Path) -> bool:
    """Whether a view is a matrix of whole blocks, or fractals, that begins at one."""
    kind, shape = value.type, tile.shape_of(value)
    assert isinstance(kind, MemRefType)
    run = way.run // dtype_of(kind.element_type).nbytes
    steps = (way.rows, run) if way.rows > 1 else (1, run)
    if len(shape) != 2 or any(size < 0 or size % step for size, step in zip(shape, steps, strict=True)):
        return False
    link = value.owner
    if isinstance(link, tile.ViewOp):
        return False
    return not isinstance(link, tile.RegionOp) or (
        all(isinstance(offset, int) and offset % step == 0 for offset, step in zip(link.mixed_offsets(), steps, strict=False))
        and len(link.mixed_offsets()) == 2 and _is_whole(link.source, way))


@dataclass
class _Homes:
    """The allocations of one user buffer, by memory."""

    label: str
    by_space: dict[str, SSAValue]


def _needed(uses: Iterable[Effect], bound: set[tile.CopyOp]) -> list[str]:
    """The memories that the uses of a buffer call for; ``bound`` are the copies of the Vector core."""
    found: list[str] = []
    for use in uses:
        if use.role in _NEEDS:
            found.append(_NEEDS[use.role])
        elif use.op in bound:
            found.append("ub")
        elif use.role == "copy-source" and space_of(use.op.operands[1]) in ("ca", "cb"):
            found.append("cbuf")  # what L0A and L0B are loaded from
    return list(dict.fromkeys(found))


def _with_workspaces(spaces: dict[SSAValue, list[str]], module: ModuleOp, ways: _Ways) -> None:
    """Add the home in GM to the buffers through which values pass between the cores, and one in UB where a value that was
    copied into a buffer of the Cube core changes its type on the way out."""
    copies = [op for op in module.walk() if isinstance(op, tile.CopyOp)]
    filled = {root_of(op.target) for op in copies}
    for op in copies:
        source = root_of(op.source)
        if _converts(op) and source in filled and "cc" in spaces.get(source, ()):
            _add(spaces[source], "ub")
    for buffer, found in spaces.items():
        on_chip = [space for space in found if space != GM]
        if any(not ways.direct(a, b, buffer) and not ways.direct(b, a, buffer) for a, b in combinations(on_chip, 2)):
            _add(found, GM)
    for op in copies:
        source, target = root_of(op.source), root_of(op.target)
        if source in spaces and target in spaces:
            onward = ways.leads(op, "ub", "cbuf")
            if "ub" in spaces[source] and "cbuf" in spaces[target] and "ub" not in spaces[target] and not onward:
                _add(spaces[target], GM)  # whatever else the source's homes are: the value may be in UB
            if any(ways.leads(op, s, t) for s in spaces[source] for t in spaces[target]):
                continue
            if "cc" in spaces[source] or ("cbuf" in spaces[source] and "ub" in spaces[target]):
                _add(spaces[source], GM)
            elif "cbuf" in spaces[target]:
                _add(spaces[target], GM)


def _add(spaces: list[str], space: str) -> None:
    if space not in spaces:
        spaces.append(space)


def _described(buffer: SSAValue) -> str:
    """Name, shape and element type of a buffer or a tensor of the signature."""
    name = buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else author_name(buffer, "the tensor")
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    return f"{name} {tile.shape_text(tile.shape_of(buffer))} {dtype_of(kind.element_type)}"


def _purpose(use: Effect) -> str:
    """What a use wants the buffer for: ``an operand of exp``."""
    op = use.op
    if isinstance(op, (tile.ElementwiseOp, tile.ReduceOp, tile.CallOp)):
        return f"an operand of {op.entry().name}"
    return _WHAT[use.role]


def _place_scalars(buffer: SSAValue) -> None:
    """Give scalar storage a home in UB where an operation works on it as a tile; else expand its fills."""
    elements = (memref.LoadOp, memref.StoreOp, memref.DimOp, tile.RegionOp, tile.ViewOp)
    users = [user for user in users_of(buffer) if not isinstance(user, elements)]
    if any(not isinstance(user, tile.FillOp) for user in users):
        _retype(buffer, "ub")
        return
    for fill in users:
        assert isinstance(fill, tile.FillOp)
        expand_element_fill(fill)


def _check_fixed(buffer: SSAValue, space: str, uses: Iterable[Effect]) -> None:
    label = _described(buffer)
    for use in uses:
        wanted = _NEEDS.get(use.role)
        if wanted is None or wanted == space or space == "local":
            continue
        if (space, use.role) in (("gm", "scalar"), ("ca", "left"), ("cb", "right")):
            continue
        raise refuse(
            use.op,
            f"{label} is in {name_of(space)}, but this use needs it in {name_of(wanted)} (it is {_purpose(use)})",
            "T201",
            notes=(f"it is allocated at {line_of(buffer.owner)}",) if isinstance(buffer.owner, Operation) else (),
            help=f"copy it into a buffer in {name_of(wanted)} first, or allocate it with T.alloc_shared",
        )


class _Coherence:
    """Redirects the uses of buffers with several homes and places the copies between the homes."""

    def __init__(self, module: ModuleOp, homes: dict[SSAValue, _Homes], bound: set[tile.CopyOp], ways: _Ways):
        self.homes = homes
        self.ways = ways
        self.bound = bound
        self.ranges = Ranges()
        self.placed: list[tile.CopyOp] = []
        self.cleared_in_l0c: set[SSAValue] = set()
        self.unreachable: SSAValue | None = None  # the buffer of the last refusal: no path connects its two memories
        # asked while all uses are those of the author's buffers
        self.begun = {loop: self._begun(loop) for loop in module.walk() if isinstance(loop, scf.ForOp)}

    def _begun(self, loop: scf.ForOp) -> Valid:
        """The buffers of which nothing that stands in front of a loop is read in it or behind it, as held nowhere."""
        body = list(loop.body.block.ops)
        return {buffer: frozenset() for buffer in self.homes if touches(loop, buffer) and (
            not reads_earlier(body, buffer, self.ranges) and is_dead_after(loop, buffer, self.ranges))}

    def place_clears(self, blocks: Iterable[Block]) -> None:
        """Decide where accumulators are cleared that vector work reads too: in UB, which costs no product of zeros, unless the
        accumulator is then in L0C on some paths through the kernel and in UB on others."""
        while True:
            self.unreachable = None
            try:
                for block in blocks:
                    self.block(block, {}, place=False)
            except TileError:  # the walk that places copies raises it again where clearing in L0C does not help
                if self.unreachable is not None and self.unreachable not in self.cleared_in_l0c:
                    self.cleared_in_l0c.add(self.unreachable)
                    continue
            return

    def block(self, block: Block, valid: Valid, *, place: bool) -> Valid:
        """Walk a block from the given state; with ``place`` copies are inserted and operands redirected."""
        state = dict(valid)
        for op in list(block.ops):
            if op in self.placed:
                continue
            if isinstance(op, scf.ForOp):
                fresh = {buffer: frozenset[str]() for buffer in restarted(op, self.ranges) if buffer in self.homes}
                state = self._loop(op, {**state, **self.begun[op], **fresh}, place=place)
            elif isinstance(op, scf.WhileOp):
                state = self._loop(op, state, place=place)
            elif isinstance(op, scf.IfOp):
                state = self._branches(op, state, place=place)
            elif op.regions:
                for region in op.regions:
                    for inner in region.blocks:
                        state = self.block(inner, state, place=place)
            else:
                self._operation(op, state, place=place)
        return state

    def _join(self, states: list[Valid]) -> Valid:
        joined: Valid = {}
        for buffer in self.homes:
            held = [state.get(buffer, frozenset()) for state in states]
            written = [valid for valid in held if valid]
            joined[buffer] = frozenset.intersection(*written) if written else frozenset()
        return joined

    def _branches(self, op: scf.IfOp, state: Valid, *, place: bool) -> Valid:
        """Walk the branches of a condition. What they leave in several memories is brought to one: in front of the condition,
        where a branch writes nothing to it, and at the end of a branch that does."""
        blocks = [region.block for region in op.regions if region.blocks]
        entry = dict(state)

        def arms(ends: list[Valid]) -> list[Valid]:
            return ends if len(blocks) > 1 else [*ends, entry]

        ends = [self.block(block, entry, place=False) for block in blocks]
        common: dict[SSAValue, str] = {}
        for buffer, homes in self.homes.items():
            held = [end[buffer] for end in arms(ends) if end.get(buffer)]
            if not held or frozenset.intersection(*held):
                continue
            common[buffer] = self._common(op, buffer, held)
            before = entry.get(buffer)
            if before and any(before <= one for one in held):
                entry[buffer] = before | self._bring(op, homes, before, common[buffer], place=place)
        if place or common:
            ends = [self.block(block, entry, place=place) for block in blocks]
        for end, block in zip(ends, blocks, strict=True):
            for buffer, space in common.items():
                if end.get(buffer) and space not in end[buffer]:
                    assert block.last_op is not None
                    end[buffer] |= self._bring(block.last_op, self.homes[buffer], end[buffer], space, place=place)
        return self._join(arms(ends))

    def _common(self, op: scf.IfOp, buffer: SSAValue, held: list[frozenset[str]]) -> str:
        """The memory to which all branches can bring what they leave in a buffer."""
        homes = self.homes[buffer]
        for space in sorted(frozenset.union(*held), key=_PREFERENCE.index):
            if all(self._reach(homes, one, space) is not None for one in held):
                return space
        self.unreachable = buffer
        ends = " or ".join(name_of(space) for space in sorted(frozenset.union(*held), key=_PREFERENCE.index))
        raise refuse(op, f"{homes.label} is in {ends} behind this condition, and no path leads from one to the other", "T202",
                     help="use one buffer for each, and copy")

    def _loop(self, loop: scf.ForOp | scf.WhileOp, state: Valid, *, place: bool) -> Valid:
        """Walk a loop. What is in one memory in front of it and in another at the end of iterations is brought over first."""
        body, entry, brought = body_of(loop), dict(state), set[SSAValue]()
        while True:  # a home that is lost stays lost, so this ends
            after = self.block(body, entry, place=False)
            merged = self._join([state, after, entry])
            lost = [b for b in self.homes if entry.get(b) and not merged.get(b)]
            stuck = [b for b in lost if b in brought or self._reach(self.homes[b], entry[b], self._first(after[b])) is None]
            if stuck:
                self.unreachable = stuck[0]
                op = stuck[0].owner
                assert isinstance(op, tile.AllocOp)
                ends = " or ".join(name_of(space) for space in sorted(after[stuck[0]]))
                starts = " or ".join(name_of(space) for space in sorted(entry[stuck[0]]))
                raise refuse(op, f"{op.label.data} is in {starts} at the start of a loop and in {ends} at the end of its "
                             "iterations", "T202", help="use one buffer for each, and copy")
            if lost:
                state = {**state, **{b: self._bring(loop, self.homes[b], entry[b], self._first(after[b]), place=place)
                                     for b in lost}}
                brought.update(lost)
                merged = dict(state)
            if merged == entry:
                break
            entry = merged
        after = self.block(body, entry, place=place)
        return self._join([entry, after])

    def _operation(self, op: Operation, state: Valid, *, place: bool) -> None:
        uses = [use for use in effects_of(op) if root_of(use.value) in self.homes]
        chosen = self._route(op, state) if isinstance(op, tile.CopyOp) else {}
        for use in sorted(uses, key=lambda use: use.writes):
            buffer = root_of(use.value)
            homes, held = self.homes[buffer], state.get(buffer, frozenset())
            home = chosen.get(use.index) or _NEEDS.get(use.role) or self._filled(op, buffer)
            merges = use.writes and not covers_root(use.value) and bool(held)
            if (use.reads or merges) and home not in held:
                if held:
                    held = held | self._bring(op, homes, held, home, place=place)
                elif use.reads and place and use.role != "accumulator":  # its init may be true at run time
                    raise refuse(op, f"{homes.label} is read here before anything is written to it", "T203",
                                 help="write the buffer (T.copy, T.fill) before this line")
            state[buffer] = frozenset({home}) if use.writes else held | {home} if held else held
            if place:
                _redirect(op, use.index, homes.by_space[home])

    def _filled(self, op: Operation, buffer: SSAValue) -> str:
        """The memory that a fill writes to: L0C where it becomes the start of a gemm, else UB."""
        homes = self.homes[buffer].by_space
        if "cc" in homes and isinstance(op, tile.FillOp) and (
                folds(op, self.ranges) or (buffer in self.cleared_in_l0c and is_zero(op.value))):
            return "cc"
        return "ub" if "ub" in homes else next(iter(homes))

    def _route(self, op: tile.CopyOp, state: Valid) -> dict[int, str]:
        """The memories that a copy goes from and to: where the value is, and where it is wanted next."""
        source, target = root_of(op.source), root_of(op.target)
        if op in self.bound:
            return {index: "ub" for index, side in enumerate((source, target)) if side in self.homes}
        held: list[str] = [space_of(source)]
        if source in self.homes:
            held = sorted(state.get(source, frozenset()), key=_PREFERENCE.index)
        have = list(self.homes[source].by_space) if source in self.homes else held
        want: list[str] = [space_of(target)]
        if target in self.homes:
            reader = _next_reader(op, target)
            want = [reader, *_PREFERENCE] if reader in self.homes[target].by_space else list(_PREFERENCE)
            want = [space for space in want if space in self.homes[target].by_space]
        pairs = [(s, t) for t in want for s in held] + [(s, t) for t in want for s in have]
        usable = [pair for pair in pairs if self.ways.leads(op, *pair)]
        pair = usable[0] if usable else None
        sides = [self.homes[side] for side in (source, target) if side in self.homes]
        if pair is None and any(_add_workspace(homes) for homes in sides):
            return self._route(op, state)
        if pair is None:
            return {0: have[0], 1: want[0]}  # no path: the lowering says so, with the names
        return {0: pair[0], 1: pair[1]}

    def _bring(self, before: Operation, homes: _Homes, held: frozenset[str], wanted: str, *, place: bool) -> frozenset[str]:
        """Copy the value to another home of its buffer, step by step; returns the homes that then hold it."""
        path = self._reach(homes, held, wanted)
        if path is None:
            raise refuse(before, f"{homes.label} is needed in {name_of(wanted)} here, and there is no path from "
                         + " or ".join(name_of(space) for space in sorted(held)), "T230",
                         help="load it from GM into a buffer of its own for this use")
        if place:
            for a, b in zip(path, path[1:], strict=False):
                self._copy(before, homes, a, b)
        return frozenset(path)

    @staticmethod
    def _first(spaces: frozenset[str]) -> str:
        return min(spaces, key=_PREFERENCE.index)

    def _reach(self, homes: _Homes, held: frozenset[str], wanted: str) -> list[str] | None:
        """A way of copies to another home; through a workspace, where nothing else leads there."""
        path = self._path(homes, held, wanted)
        return self._path(homes, held, wanted) if path is None and _add_workspace(homes) else path

    def _path(self, homes: _Homes, held: frozenset[str], wanted: str) -> list[str] | None:
        """The shortest way of copies from a home that holds the value to another one; None where there is none."""
        paths = [[space] for space in sorted(held, key=_PREFERENCE.index)]
        for path in paths:
            if path[-1] == wanted:
                return path
            paths += [[*path, space] for space, home in homes.by_space.items()
                      if space not in path and self.ways.direct(path[-1], space, home)]
        return None

    def _copy(self, before: Operation, homes: _Homes, source: str, target: str) -> None:
        copy = tile.CopyOp(homes.by_space[source], homes.by_space[target])
        stand_in(before, copy)
        Rewriter().insert_op(copy, InsertPoint.before(before))
        self.placed.append(copy)


def _converts(op: tile.CopyOp) -> bool:
    """Whether a copy changes the element type."""
    source, target = op.source.type, op.target.type
    assert isinstance(source, MemRefType) and isinstance(target, MemRefType)
    return bool(source.element_type != target.element_type)


_PREFERENCE = ["cc", "ub", "cbuf", "gm"]


def _next_reader(op: Operation, buffer: SSAValue) -> str:
    """The memory in which the next reader, in program order, wants what an operation writes."""
    block = op.parent_block()
    assert block is not None
    seen = False
    for other in walk(block):
        if other is op:
            seen = True
        elif seen:
            for use in effects_of(other):
                if use.reads and root_of(use.value) is buffer and use.role in _NEEDS:
                    return _NEEDS[use.role]
    return "ub"


def _redirect(op: Operation, index: int, home: SSAValue) -> None:
    """Make an operand refer to another allocation, rebuilding the view chain it goes through."""
    value = op.operands[index]
    chain: list[Operation] = []
    while isinstance(value.owner, (tile.RegionOp, tile.ViewOp)):
        chain.append(value.owner)
        value = value.owner.source
    if value is home:
        return
    current = home
    for link in reversed(chain):
        if isinstance(link, tile.RegionOp):
            made: Operation = tile.RegionOp(current, link.mixed_offsets(), link.mixed_sizes(), link.kept.get_values())
        else:
            assert isinstance(link, tile.ViewOp) and isinstance(link.result.type, MemRefType)
            kind = link.result.type
            assert isinstance(current.type, MemRefType)
            made = tile.ViewOp(current, MemRefType(kind.element_type, kind.shape, kind.layout, current.type.memory_space))
        stand_in(link, made)
        Rewriter().insert_op(made, InsertPoint.before(op))
        current = made.results[0]
    op.operands[index] = current


def _retype(value: SSAValue, space: str) -> None:
    """Change the memory of an allocation and of every view of it."""
    pending = [value]
    while pending:
        current = pending.pop()
        assert isinstance(current.type, MemRefType)
        changed = Rewriter.replace_value_with_new_type(current, with_space(current.type, space))
        for use in list(_uses(changed)):
            if isinstance(use, (tile.RegionOp, tile.ViewOp)):
                pending.append(use.results[0])


def _uses(value: SSAValue) -> Iterable[Operation]:
    return [use.operation for use in value.uses]


@dataclass(frozen=True)
class InferScopes(ModulePass):
    """The pass; ``chip`` names the chip whose paths there are."""

    name = "infer-scopes"
    chip: str = chips.DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        by_author = any(isinstance(inner, tile.LaunchOp) and inner.explicit_sub_block is not None for inner in op.walk())
        ways = _Ways(chips.chip(self.chip), across=not by_author)
        for allocation in [inner for inner in op.walk() if isinstance(inner, tile.AllocOp)]:
            if space_of(allocation.result) == "local":
                _place_scalars(allocation.result)
        uses: dict[SSAValue, list[Effect]] = {}
        allocations: list[tile.AllocOp] = []
        for inner in op.walk():
            if isinstance(inner, tile.AllocOp):
                allocations.append(inner)
            for use in effects_of(inner):
                uses.setdefault(root_of(use.value), []).append(use)
        bound = vector_bound(op)
        spaces: dict[SSAValue, list[str]] = {}
        for allocation in allocations:
            buffer: SSAValue = allocation.result
            space = space_of(buffer)
            if space == "local":
                continue
            if space in _OPEN:
                spaces[buffer] = _needed(uses.get(buffer, ()), bound) or ["ub"]
            else:
                _check_fixed(buffer, space, uses.get(buffer, ()))
                spaces[buffer] = [space]
        for buffer, found in uses.items():
            if space_of(buffer) == "gm":
                _check_fixed(buffer, "gm", found)
        _with_workspaces(spaces, op, ways)
        named = [(each.result, location_of(each), each.label.data, [space_of(each.result)]) for each in allocations]
        homes: dict[SSAValue, _Homes] = {}
        for buffer, wanted in spaces.items():
            if len(wanted) == 1:
                if space_of(buffer) in _OPEN:
                    _retype(buffer, wanted[0])
            else:
                owner = buffer.owner
                assert isinstance(owner, tile.AllocOp)
                homes[buffer] = _split(owner, wanted)
        if homes:
            coherence = _Coherence(op, homes, bound, ways)
            blocks = [block for region in op.regions for block in region.blocks]
            cleared = {root_of(inner.target) for inner in op.walk() if isinstance(inner, tile.FillOp)} & homes.keys()
            if any({"cc", "ub"} <= homes[buffer].by_space.keys() for buffer in cleared):
                coherence.place_clears(blocks)
            for block in blocks:
                coherence.block(block, {}, place=True)
            for buffer in homes:
                _erase(buffer)
        for buffer, place, label, own in named:
            memories = homes[buffer].by_space if buffer in homes else spaces.get(buffer, own)
            add_remark(op, Remark(self.name, DONE, place=place, facts=Scoped(label, tuple(memories))))


def _split(allocation: tile.AllocOp, spaces: list[str]) -> _Homes:
    """One allocation per memory; the one in GM is the workspace of the hand-over."""
    return _Homes(allocation.label.data, {space: _home(allocation, allocation.label.data, space) for space in spaces})


def _home(allocation: tile.AllocOp, name: str, space: str) -> SSAValue:
    """An allocation in a memory, in front of another one that has its shape."""
    kind = allocation.result.type
    assert isinstance(kind, MemRefType)
    label = f"{name}_workspace" if space == GM else f"{name}_{name_of(space).lower()}"
    pinned = allocation.address if space == space_of(allocation.result) else None
    home = tile.AllocOp(label, with_space(kind, space), pinned.value.data if pinned is not None else None)
    stand_in(allocation, home)
    Rewriter().insert_op(home, InsertPoint.before(allocation))
    return home.result


def _add_workspace(homes: _Homes) -> bool:
    """Give a buffer a home in GM; False where it has one."""
    if GM in homes.by_space:
        return False
    beside = next(iter(homes.by_space.values())).owner
    assert isinstance(beside, tile.AllocOp)
    homes.by_space[GM] = _home(beside, homes.label, GM)
    return True


def _erase(buffer: SSAValue) -> None:
    """Remove an allocation whose uses all moved to its homes, with the views that nothing reads any more."""
    for use in list(_uses(buffer)):
        if isinstance(use, (tile.RegionOp, tile.ViewOp)):
            _erase(use.results[0])
    owner = buffer.owner
    assert isinstance(owner, Operation)
    Rewriter.erase_op(owner)
