"""Give every buffer its memory: ``shared`` becomes L1 or UB, ``fragment`` becomes L0C or UB, from how it is used.

A gemm reads L1 and accumulates in L0C; vector work happens in UB; a buffer that is only copied lives in UB. A buffer
that needs several memories gets one allocation in each, and a copy is placed where a reader finds its memory out of
date: those copies are the hand-overs between the cores. A memory that the user fixed is kept; a use that it cannot
serve is an error.

Runs on the tile dialect, before lowering. Sound because a reader is redirected only to an allocation that holds the
newest value on every path: at joins the valid allocations are intersected, around loops until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.buffers import NAMES, Use, covers_root, root_of, space_of, uses_of, walk, with_space
from tilelang_npu.transforms.locations import line_of, refuse, stand_in

_NEEDS = {"left": "cbuf", "right": "cbuf", "accumulator": "cc", "vector": "ub", "scalar": "ub"}
_WHAT = {"left": "the left operand of a gemm", "right": "the right operand of a gemm",
         "accumulator": "the accumulator of a gemm", "vector": "an operand of vector work", "scalar": "an element access"}
_OPEN = ("shared", "fragment")

Valid = dict[SSAValue, frozenset[str]]


@dataclass
class _Homes:
    """The allocations of one user buffer, by memory."""

    original: SSAValue
    by_space: dict[str, SSAValue]


def _needed(buffer: SSAValue, uses: Iterable[Use]) -> dict[str, Use]:
    """The memories that the uses of an open buffer call for, with the first use that calls for each."""
    needed: dict[str, Use] = {}
    for use in uses:
        space = _NEEDS.get(use.role)
        if space is not None:
            needed.setdefault(space, use)
    if not needed:
        for use in uses:
            if use.role == "fill" or use.role.startswith("copy"):
                needed.setdefault("ub", use)
                break
    return needed


def _check_fixed(buffer: SSAValue, space: str, uses: Iterable[Use]) -> None:
    label = buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else "the tensor"
    for use in uses:
        wanted = _NEEDS.get(use.role)
        if wanted is None or wanted == space or space == "local":
            continue
        if space == "gm" and use.role == "scalar":
            continue
        raise refuse(
            use.op,
            f"{label} is in {NAMES.get(space, space)}, but this use needs it in {NAMES[wanted]} (it is {_WHAT[use.role]})",
            "T201",
            notes=(f"{label} is allocated at {line_of(buffer.owner)}",) if isinstance(buffer.owner, Operation) else (),
            help=f"copy it into a buffer in {NAMES[wanted]} first, or allocate it with T.alloc_shared",
        )


class _Coherence:
    """Redirects the uses of buffers with several homes and places the copies between the homes."""

    def __init__(self, homes: dict[SSAValue, _Homes]):
        self.homes = homes
        self.placed: list[tile.CopyOp] = []

    def block(self, block: Block, valid: Valid, *, place: bool) -> Valid:
        """Walk a block from the given state; with ``place`` copies are inserted and operands redirected."""
        state = dict(valid)
        for op in list(block.ops):
            if op in self.placed:
                continue
            if isinstance(op, scf.ForOp):
                state = self._loop(op.body.block, state, place=place)
            elif isinstance(op, scf.IfOp):
                branches = [self.block(region.block, state, place=place) for region in op.regions if region.blocks]
                if len(branches) == 1:
                    branches.append(state)
                state = self._join(branches)
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

    def _loop(self, body: Block, state: Valid, *, place: bool) -> Valid:
        entry = dict(state)
        for _ in range(4):
            after = self.block(body, entry, place=False)
            merged = self._join([entry, after])
            if merged == entry:
                break
            entry = merged
        lost = [b for b in self.homes if not entry.get(b) and state.get(b)]
        if lost:
            op = lost[0].owner
            assert isinstance(op, tile.AllocOp)
            raise refuse(op, f"{op.label.data} is handed back and forth between Cube and Vector around a loop", "T202",
                         help="use one buffer for each direction")
        after = self.block(body, entry, place=place)
        return self._join([entry, after])

    def _operation(self, op: Operation, state: Valid, *, place: bool) -> None:
        uses = [use for use in uses_of(op) if root_of(use.value) in self.homes]
        for use in sorted(uses, key=lambda use: use.writes):
            buffer = root_of(use.value)
            homes, held = self.homes[buffer], state.get(buffer, frozenset())
            home = self._home(use, homes, held)
            merges = use.writes and not covers_root(use.value) and bool(held)
            if (use.reads or merges) and home not in held:
                if held:
                    if place:
                        self._copy(op, homes, min(held), home)
                    held = held | {home}
                elif use.reads and place and use.role != "accumulator":  # its init may be true at run time
                    label = buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else "?"
                    raise refuse(op, f"{label} is read here before anything is written to it", "T203",
                                 help="write the buffer (T.copy, T.fill) before this line")
            state[buffer] = frozenset({home}) if use.writes else held | {home} if held else held
            if place:
                _redirect(op, use.index, homes.by_space[home])

    def _home(self, use: Use, homes: _Homes, held: frozenset[str]) -> str:
        wanted = _NEEDS.get(use.role)
        if wanted is not None:
            return wanted
        if use.role == "fill":
            return "cc" if "cc" in homes.by_space else "ub"
        if use.role == "copy-source":
            other = space_of(use.op.operands[1])
            preferred = ("ub", "cc", "cbuf") if other == "ub" else ("cc", "cbuf", "ub")
            return next((s for s in preferred if s in held), next(iter(homes.by_space)))
        reader = _next_reader(use, homes.original)
        if reader in homes.by_space:
            return reader
        return "ub" if "ub" in homes.by_space else next(iter(homes.by_space))

    def _copy(self, before: Operation, homes: _Homes, source: str, target: str) -> None:
        copy = tile.CopyOp(homes.by_space[source], homes.by_space[target])
        stand_in(before, copy)
        Rewriter().insert_op(copy, InsertPoint.before(before))
        self.placed.append(copy)


def _next_reader(use: Use, buffer: SSAValue) -> str:
    """The memory in which the next reader, in program order, wants what a copy writes."""
    block = use.op.parent_block()
    assert block is not None
    seen = False
    for op in walk(block):
        if op is use.op:
            seen = True
        elif seen:
            for other in uses_of(op):
                if other.reads and root_of(other.value) is buffer and other.role in _NEEDS:
                    return _NEEDS[other.role]
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
        Rewriter.replace_value_with_new_type(current, with_space(current.type, space))
        for use in list(_uses(current)):
            if isinstance(use, (tile.RegionOp, tile.ViewOp)):
                pending.append(use.results[0])


def _uses(value: SSAValue) -> Iterable[Operation]:
    return [use.operation for use in value.uses]


@dataclass(frozen=True)
class InferScopes(ModulePass):
    """The pass; see the module's text."""

    name = "infer-scopes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        uses: dict[SSAValue, list[Use]] = {}
        allocations: list[tile.AllocOp] = []
        for inner in op.walk():
            if isinstance(inner, tile.AllocOp):
                allocations.append(inner)
            for use in uses_of(inner):
                uses.setdefault(root_of(use.value), []).append(use)
        homes: dict[SSAValue, _Homes] = {}
        for allocation in allocations:
            buffer: SSAValue = allocation.result
            space = space_of(buffer)
            if space not in _OPEN:
                _check_fixed(buffer, space, uses.get(buffer, ()))
                continue
            needed = _needed(buffer, uses.get(buffer, ()))
            if len(needed) <= 1:
                _retype(buffer, next(iter(needed), "ub"))
            else:
                homes[buffer] = _split(allocation, list(needed))
        for buffer, found in uses.items():
            if space_of(buffer) == "gm":
                _check_fixed(buffer, "gm", found)
        if homes:
            coherence = _Coherence(homes)
            for region in op.regions:
                for block in region.blocks:
                    coherence.block(block, {}, place=True)
            for buffer in homes:
                _erase(buffer)


def _split(allocation: tile.AllocOp, spaces: list[str]) -> _Homes:
    made: dict[str, SSAValue] = {}
    for space in spaces:
        assert isinstance(allocation.result.type, MemRefType)
        label = f"{allocation.label.data}_{NAMES[space].lower()}"
        home = tile.AllocOp(label, with_space(allocation.result.type, space))
        stand_in(allocation, home)
        Rewriter().insert_op(home, InsertPoint.before(allocation))
        made[space] = home.result
    return _Homes(allocation.result, made)


def _erase(buffer: SSAValue) -> None:
    """Remove an allocation whose uses all moved to its homes, with the views that nothing reads any more."""
    for use in list(_uses(buffer)):
        if isinstance(use, (tile.RegionOp, tile.ViewOp)):
            _erase(use.results[0])
    owner = buffer.owner
    assert isinstance(owner, Operation)
    Rewriter.erase_op(owner)
