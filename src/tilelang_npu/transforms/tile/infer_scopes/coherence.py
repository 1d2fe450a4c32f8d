"""Keeps the homes of a buffer coherent: makes each access use the home that it needs, and inserts copies between homes.

A home is the allocation of a buffer in one memory. The program is walked with a state: for each buffer with several homes, the
set of the valid homes, which hold the latest value. Before a read of a home that is not valid, a copy to this home is inserted.
After a write, only the written home is valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.accesses import has_access_to
from tilelang_npu.analysis.accumulators import accumulators_started_in, can_fold_clear, is_zero
from tilelang_npu.analysis.buffers import body_of, covers_root, memory_of, root_of, space_of, walk, with_space
from tilelang_npu.analysis.first_writes import is_dead_after, may_read_earlier_value
from tilelang_npu.analysis.locations import copy_location, refuse
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.errors import TileError
from tilelang_npu.target import GM, name_of
from tilelang_npu.target.chip_data import Space
from tilelang_npu.transforms.tile.infer_scopes.copy_paths import CopyPaths

NEEDED_MEMORY: dict[str, Space] = {"image": "cbuf", "left": "cbuf", "right": "cbuf", "scale": "cbuf", "accumulator": "cc",
                                   "vector": "ub", "scalar": "ub"}
"""The memory that an access requires, by the role of the access."""
_SEARCH_ORDER: list[Space] = ["cc", "ub", "cbuf", "gm"]
Valid = dict[SSAValue, frozenset[Space]]
"""For each buffer, the memories of the homes that hold its latest value."""


@dataclass
class BufferHomes:
    """The homes of one buffer of the author: its allocations in several memories.

    Attributes:
        label: the name of the author's buffer.
        by_space: the result of the allocation in each memory.
    """

    label: str
    by_space: dict[Space, SSAValue]


def allocate_home(allocation: tile.AllocOp, name: str, space: Space) -> SSAValue:
    """Inserts a home of a buffer, before the buffer's allocation; returns the result of the new allocation.

    Args:
        allocation: the allocation of the author's buffer, whose shape and element type the home gets.
        name: the name of the author's buffer.
        space: the memory of the home.
    """
    kind = allocation.result.type
    assert isinstance(kind, MemRefType)
    label = f"{name}_workspace" if space == GM else f"{name}_{name_of(space).lower()}"
    pinned = allocation.address if space == space_of(allocation.result) else None
    home = tile.AllocOp(label, with_space(kind, space), pinned.value.data if pinned is not None else None)
    copy_location(allocation, home)
    Rewriter().insert_op(home, InsertPoint.before(allocation))
    return home.result


def _add_workspace(homes: BufferHomes) -> bool:
    """Gives a buffer a home in GM; returns False where it already has one."""
    if GM in homes.by_space:
        return False
    other_home = next(iter(homes.by_space.values())).owner
    assert isinstance(other_home, tile.AllocOp)
    homes.by_space[GM] = allocate_home(other_home, homes.label, GM)
    return True


class Coherence:
    """Walks a module, makes the accesses of buffers with several homes use these homes, and inserts copies between the homes.

    Args:
        module: the module, in which all accesses still use the author's buffers.
        homes: the homes of each buffer that has several.
        vector_copies: the copies that only the Vector core can execute.
        paths: the copies that the chip can execute.

    Attributes:
        placed: the inserted copies.
        cleared_in_l0c: the accumulators whose clears write their home in L0C.
        unreachable: the buffer of the last error that no path connects two homes of a buffer; None if there was none.
        restarted: for each loop, the buffers whose value from before the loop is read neither in the loop nor after it, each
            with an empty set of valid homes.
    """

    def __init__(self, module: ModuleOp, homes: dict[SSAValue, BufferHomes], vector_copies: set[tile.CopyOp], paths: CopyPaths):
        self.homes = homes
        self.paths = paths
        self.vector_copies = vector_copies
        self.ranges = Ranges()
        self.placed: list[tile.CopyOp] = []
        self.cleared_in_l0c: set[SSAValue] = set()
        self.unreachable: SSAValue | None = None
        self.restarted = {loop: self._buffers_restarted_in(loop) for loop in module.walk() if isinstance(loop, scf.ForOp)}

    def _buffers_restarted_in(self, loop: scf.ForOp) -> Valid:
        """Returns the buffers whose value before a loop is read neither in it nor after it, with no valid home."""
        body = list(loop.body.block.ops)
        return {buffer: frozenset() for buffer in self.homes if has_access_to(loop, buffer) and (
            not may_read_earlier_value(body, buffer, self.ranges) and is_dead_after(loop, buffer, self.ranges))}

    def place_clears(self, blocks: Iterable[Block]) -> None:
        """Chooses the home that is cleared for each accumulator with homes in UB and in L0C; fills ``cleared_in_l0c``.

        The home in UB is cleared, which needs no product of zeros. The home in L0C is cleared only if the program could not be
        walked without an error otherwise, because L0C would be valid on some paths and UB on others, with no path between them.

        Args:
            blocks: the blocks of the module.
        """
        while True:
            self.unreachable = None
            try:
                for block in blocks:
                    self.walk_block(block, {}, place=False)
            except TileError:  # raised again by the walk that inserts copies, where a clear in L0C does not help
                if self.unreachable is not None and self.unreachable not in self.cleared_in_l0c:
                    self.cleared_in_l0c.add(self.unreachable)
                    continue
            return

    def walk_block(self, block: Block, valid: Valid, *, place: bool) -> Valid:
        """Walks a block; returns the valid homes after the block.

        Args:
            block: the block.
            valid: the valid homes before the block.
            place: whether to insert copies and to change operands to homes; otherwise only the state is computed.

        Raises:
            TileError: T202, a value cannot be brought to one home at a join; T203, a buffer is read before it is written; T230,
                no path leads to a home that an operation needs.
        """
        state = dict(valid)
        for op in list(block.ops):
            if op in self.placed:
                continue
            if isinstance(op, scf.ForOp):
                fresh = {buffer: frozenset[Space]() for buffer in accumulators_started_in(op, self.ranges)
                         if buffer in self.homes}
                state = self._walk_loop(op, {**state, **self.restarted[op], **fresh}, place=place)
            elif isinstance(op, scf.WhileOp):
                state = self._walk_loop(op, state, place=place)
            elif isinstance(op, scf.IfOp):
                state = self._walk_branches(op, state, place=place)
            elif op.regions:
                for region in op.regions:
                    for inner in region.blocks:
                        state = self.walk_block(inner, state, place=place)
            else:
                self._visit_op(op, state, place=place)
        return state

    def _intersect(self, states: list[Valid]) -> Valid:
        joined: Valid = {}
        for buffer in self.homes:
            held = [state.get(buffer, frozenset()) for state in states]
            written = [valid for valid in held if valid]
            joined[buffer] = frozenset.intersection(*written) if written else frozenset()
        return joined

    def _walk_branches(self, op: scf.IfOp, state: Valid, *, place: bool) -> Valid:
        """Walks the branches of a condition. Where they leave the value in different homes, it is brought to one home.

        The copy is before the condition for a branch that does not write the buffer, and at the end of a branch that does.
        """
        blocks = [region.block for region in op.regions if region.blocks]
        entry = dict(state)

        def arms(ends: list[Valid]) -> list[Valid]:
            return ends if len(blocks) > 1 else [*ends, entry]

        ends = [self.walk_block(block, entry, place=False) for block in blocks]
        common: dict[SSAValue, Space] = {}
        for buffer, homes in self.homes.items():
            held = [end[buffer] for end in arms(ends) if end.get(buffer)]
            if not held or frozenset.intersection(*held):
                continue
            common[buffer] = self._common_memory(op, buffer, held)
            before = entry.get(buffer)
            if before and any(before <= one for one in held):
                entry[buffer] = before | self._copy_to(op, homes, before, common[buffer], place=place)
        if place or common:
            ends = [self.walk_block(block, entry, place=place) for block in blocks]
        for end, block in zip(ends, blocks, strict=True):
            for buffer, space in common.items():
                if end.get(buffer) and space not in end[buffer]:
                    assert block.last_op is not None
                    end[buffer] |= self._copy_to(block.last_op, self.homes[buffer], end[buffer], space, place=place)
        return self._intersect(arms(ends))

    def _common_memory(self, op: scf.IfOp, buffer: SSAValue, held: list[frozenset[Space]]) -> Space:
        """Returns the memory to which all branches can copy the value that they leave.

        Raises:
            TileError: T202, there is none.
        """
        homes = self.homes[buffer]
        for space in sorted(frozenset.union(*held), key=_SEARCH_ORDER.index):
            if all(self._path_or_workspace(homes, one, space) is not None for one in held):
                return space
        self.unreachable = buffer
        ends = " or ".join(name_of(space) for space in sorted(frozenset.union(*held), key=_SEARCH_ORDER.index))
        raise refuse(op, f"{homes.label} is in {ends} after this condition, and no path leads from one to the other", "T202",
                     help="use one buffer for each memory, and copy from one to the other")

    def _walk_loop(self, loop: scf.ForOp | scf.WhileOp, state: Valid, *, place: bool) -> Valid:
        """Walks a loop. A value in one home before the loop and in another at the end of its iterations is copied before the
        loop.

        Raises:
            TileError: T202, no path leads from the one home to the other.
        """
        body, entry, brought = body_of(loop), dict(state), set[SSAValue]()
        while True:  # terminates: an invalid home never becomes valid again
            after = self.walk_block(body, entry, place=False)
            merged = self._intersect([state, after, entry])
            lost = [b for b in self.homes if entry.get(b) and not merged.get(b)]
            stuck = [b for b in lost if b in brought
                     or self._path_or_workspace(self.homes[b], entry[b], self._preferred(after[b])) is None]
            if stuck:
                self.unreachable = stuck[0]
                op = stuck[0].owner
                assert isinstance(op, tile.AllocOp)
                ends = " or ".join(name_of(space) for space in sorted(after[stuck[0]]))
                starts = " or ".join(name_of(space) for space in sorted(entry[stuck[0]]))
                raise refuse(op, f"{op.label.data} is in {starts} at the start of a loop and in {ends} at the end of its "
                             "iterations", "T202", help="use one buffer for each memory, and copy from one to the other")
            if lost:
                state = {**state, **{b: self._copy_to(loop, self.homes[b], entry[b], self._preferred(after[b]), place=place)
                                     for b in lost}}
                brought.update(lost)
                merged = dict(state)
            if merged == entry:
                break
            entry = merged
        after = self.walk_block(body, entry, place=place)
        return self._intersect([entry, after])

    def _visit_op(self, op: Operation, state: Valid, *, place: bool) -> None:
        uses = [use for use in effects_of(op) if root_of(use.value) in self.homes]
        chosen = self._choose_ends(op, state) if isinstance(op, tile.CopyOp) else {}
        for use in sorted(uses, key=lambda use: use.writes):
            buffer = root_of(use.value)
            homes, held = self.homes[buffer], state.get(buffer, frozenset())
            home = chosen.get(use.index) or NEEDED_MEMORY.get(use.role) or self._memory_to_fill(op, buffer)
            merges = use.writes and not covers_root(use.value) and bool(held)
            if (use.reads or merges) and home not in held:
                if held:
                    held = held | self._copy_to(op, homes, held, home, place=place)
                elif use.reads and place and use.role != "accumulator":  # the gemm's init may be true at run time
                    raise refuse(op, f"{homes.label} is read here before anything is written to it", "T203",
                                 help="write the buffer (T.copy, T.fill) before this line")
            state[buffer] = frozenset({home}) if use.writes else held | {home} if held else held
            if place:
                _redirect_operand(op, use.index, homes.by_space[home])

    def _memory_to_fill(self, op: Operation, buffer: SSAValue) -> Space:
        """Returns the memory that a fill writes: L0C if it becomes the start of a gemm, else UB."""
        homes = self.homes[buffer].by_space
        if "cc" in homes and isinstance(op, tile.FillOp) and (
                can_fold_clear(op, self.ranges) or (buffer in self.cleared_in_l0c and is_zero(op.value))):
            return "cc"
        return "ub" if "ub" in homes else next(iter(homes))

    def _choose_ends(self, op: tile.CopyOp, state: Valid) -> dict[int, Space]:
        """Returns the memories that a copy reads and writes, by operand: where the value is, and where its next reader needs
        it.
        """
        source, target = root_of(op.source), root_of(op.target)
        if op in self.vector_copies:
            return {index: "ub" for index, side in enumerate((source, target)) if side in self.homes}
        held = (sorted(state.get(source, frozenset()), key=_SEARCH_ORDER.index) if source in self.homes
                else [memory_of(source)])
        have = list(self.homes[source].by_space) if source in self.homes else held
        if target in self.homes:
            reader = _memory_of_next_reader(op, target)
            want = [reader, *_SEARCH_ORDER] if reader in self.homes[target].by_space else list(_SEARCH_ORDER)
            want = [space for space in want if space in self.homes[target].by_space]
        else:
            want = [memory_of(target)]
        pairs = [(s, t) for t in want for s in held] + [(s, t) for t in want for s in have]
        usable = [pair for pair in pairs if self.paths.can_copy(op, *pair)]
        pair = usable[0] if usable else None
        sides = [self.homes[side] for side in (source, target) if side in self.homes]
        if pair is None and any(_add_workspace(homes) for homes in sides):
            return self._choose_ends(op, state)
        if pair is None:
            return {0: have[0], 1: want[0]}  # no path: the lowering reports it with the names
        return {0: pair[0], 1: pair[1]}

    def _copy_to(self, before: Operation, homes: BufferHomes, held: frozenset[Space], wanted: Space, *,
                 place: bool) -> frozenset[Space]:
        """Inserts the copies that bring the value to another home; returns the homes that then hold it.

        Raises:
            TileError: T230, there is no path.
        """
        path = self._path_or_workspace(homes, held, wanted)
        if path is None:
            raise refuse(before, f"{homes.label} is needed in {name_of(wanted)} here, and there is no path from "
                         + " or ".join(name_of(space) for space in sorted(held)), "T230",
                         help="load the data from GM into another buffer for this use")
        if place:
            for a, b in zip(path, path[1:], strict=False):
                self._insert_copy(before, homes, a, b)
        return frozenset(path)

    @staticmethod
    def _preferred(spaces: frozenset[Space]) -> Space:
        return min(spaces, key=_SEARCH_ORDER.index)

    def _path_or_workspace(self, homes: BufferHomes, held: frozenset[Space], wanted: Space) -> list[Space] | None:
        """Returns a path of copies to another home; adds a workspace where no path exists without it."""
        path = self._shortest_path(homes, held, wanted)
        return self._shortest_path(homes, held, wanted) if path is None and _add_workspace(homes) else path

    def _shortest_path(self, homes: BufferHomes, held: frozenset[Space], wanted: Space) -> list[Space] | None:
        """Returns the shortest path of copies from a home that holds the value to another one; None where there is none."""
        paths = [[space] for space in sorted(held, key=_SEARCH_ORDER.index)]
        for path in paths:
            if path[-1] == wanted:
                return path
            paths += [[*path, space] for space, home in homes.by_space.items()
                      if space not in path and self.paths.has_path(path[-1], space, home)]
        return None

    def _insert_copy(self, before: Operation, homes: BufferHomes, source: Space, target: Space) -> None:
        copy = tile.CopyOp(homes.by_space[source], homes.by_space[target])
        copy_location(before, copy)
        Rewriter().insert_op(copy, InsertPoint.before(before))
        self.placed.append(copy)


def _memory_of_next_reader(op: Operation, buffer: SSAValue) -> Space:
    """Returns the memory in which the next reader, in program order, needs the value that an operation writes."""
    block = op.parent_block()
    assert block is not None
    seen = False
    for other in walk(block):
        if other is op:
            seen = True
        elif seen:
            for use in effects_of(other):
                if use.reads and root_of(use.value) is buffer and use.role in NEEDED_MEMORY:
                    return NEEDED_MEMORY[use.role]
    return "ub"


def _redirect_operand(op: Operation, index: int, home: SSAValue) -> None:
    """Makes an operand refer to another allocation; rebuilds the views between the two."""
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
        copy_location(link, made)
        Rewriter().insert_op(made, InsertPoint.before(op))
        current = made.results[0]
    op.operands[index] = current
