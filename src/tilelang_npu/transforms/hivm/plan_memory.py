"""Assigns byte addresses to all on-chip allocations: ``memref.alloc`` becomes ``hivm.hir.pointer_cast``.

Each memory belongs to one of the two cores. A buffer that the other core accesses is planned together with the buffers of the
memory's own core, and shares no bytes with any of them.

The first plan lets two allocations share bytes only if no operation waits longer because of that (``analysis.byte_sharing``).
If this plan does not fit, allocations share bytes whenever their live ranges do not overlap: the largest first, each at the
lowest address that is free during its whole live range. If this plan does not fit either, other orders are tried: all orders if
there are few allocations. (The smallest plan is among them: it results from the order of its addresses.) The destination of an
elementwise operation may take the bytes of a source whose last use is this operation. Addresses that the author fixed are kept.
If no plan fits, the error lists the allocations that are live at the peak.

With ``reuse=false`` (the author switched memory planning off) no two of the author's buffers ever share bytes. Scratch buffers
that passes allocated for single operations share bytes if there is no room for separate ones: with other scratch buffers, and,
if the compiler inserts the waits inside a core (``synchronise``), with buffers that are not live at that time. If no plan fits,
buffers of pipelined loops lose slots before the pass reports an error; a warning in the log names them.

Runs after core splitting and before synchronisation, which works on the bytes that this pass assigns.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.allocation_live_ranges import LiveRange, allocation_live_ranges, needing_bytes_at
from tilelang_npu.analysis.bank_conflicts import bank_offsets, bank_period, conflicting_buffers
from tilelang_npu.analysis.buffer_sizes import spaced
from tilelang_npu.analysis.buffers import SCRATCH
from tilelang_npu.analysis.byte_sharing import ByteSharing
from tilelang_npu.analysis.cores import core_of_function, function_of, kernel_of
from tilelang_npu.analysis.locations import line_of, location_of
from tilelang_npu.analysis.view_chains import coupling_of, root_of
from tilelang_npu.dialects import annotation, hivm
from tilelang_npu.dialects.ir.changes import Smaller
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.dialects.ir.remarks import Held, Placed, Remark, Scoped, record_done, record_refusal, set_remark
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.errors import TileError
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import Space
from tilelang_npu.transforms.infra.op_builder import OpBuilder
from tilelang_npu.transforms.lower.lower_to_hivm import ADDRESS

logger = logging.getLogger("tilelang_npu")

FEW = 7
"""The largest number of allocations for which all orders are tried."""
TRIES = 200
"""The number of random orders that are tried if there are more than ``FEW`` allocations."""


def _round_up(nbytes: int, space: Space) -> int:
    """Rounds to the unit at which buffers of a memory may start."""
    row = chips.memory(space)
    assert row is not None, "an on-chip memory"
    unit = row.starts
    return -(-nbytes // unit) * unit


def _may_inherit(one: LiveRange, other: LiveRange) -> bool:
    """Whether one live range starts where the other ends, and may take its bytes (the first of them if it is smaller)."""
    return one.value in other.heirs or other.value in one.heirs


@dataclass
class _Layout:
    """The addresses given out so far in one memory.

    Attributes:
        space: the memory.
        exclusive: the live ranges that share no bytes with another one.
        bank_starts: for each live range that should start at certain banks, the start address modulo ``period``, in bytes.
        period: the number of bytes after which the banks repeat.
        adds_wait: whether two live ranges would wait for each other if they shared bytes; then they do not.
        taken: start, end and live range of each slot, by address.
    """

    space: Space
    exclusive: frozenset[LiveRange] = frozenset()
    bank_starts: Mapping[LiveRange, int] = field(default_factory=dict)
    period: int = 1
    adds_wait: Callable[[LiveRange, LiveRange], bool] | None = None
    taken: list[tuple[int, int, LiveRange]] = field(default_factory=list)

    def lowest_free(self, one: LiveRange, nbytes: int, *, only_scratch: bool = False) -> int:
        """Returns the lowest address where ``nbytes`` are free during a whole live range; inherited bytes come first.

        Args:
            one: the live range.
            nbytes: the bytes of the live range, rounded up.
            only_scratch: whether the live range may share bytes only with scratch buffers.
        """
        for start, _, other in self.taken if not only_scratch else ():
            if (_may_inherit(one, other) and not self._must_not_share(one, other)
                    and self.first_start(one, start) == start and self._is_free(one, start, start + nbytes)):
                return start
        address = self.first_start(one, 0)
        for start, end, other in self.taken:
            if start < address + nbytes and end > address and (
                    other.overlaps(one) or (only_scratch and not _is_scratch(other)) or self._must_not_share(one, other)):
                address = self.first_start(one, end)
        return address

    def first_start(self, one: LiveRange, address: int) -> int:
        """Returns the first address from ``address`` on at which a live range may start."""
        if one not in self.bank_starts:
            return address
        return address + (self.bank_starts[one] - address) % self.period

    def _must_not_share(self, one: LiveRange, other: LiveRange) -> bool:
        return (one in self.exclusive or other in self.exclusive
                or (self.adds_wait is not None and self.adds_wait(one, other)))

    def _is_free(self, one: LiveRange, start: int, end: int) -> bool:
        """Whether only live ranges that ``one`` inherits from, or that inherit from it, have these bytes at the same time."""
        return not any(other.overlaps(one) and left < end and right > start
                       and not (_may_inherit(one, other) and left == start)
                       for left, right, other in self.taken)

    def take(self, one: LiveRange, address: int, nbytes: int) -> None:
        """Record an address."""
        bisect.insort(self.taken, (address, address + nbytes, one), key=lambda entry: entry[:2])

    @property
    def used(self) -> int:
        """The end of the last byte that is taken."""
        return max((end for _, end, _ in self.taken), default=0)


def _is_scratch(one: LiveRange) -> bool:
    return SCRATCH in one.op.attributes


def _is_pinned(one: LiveRange) -> bool:
    """Whether the author fixed the address."""
    return ADDRESS in one.op.attributes


def plan(ranges: Sequence[LiveRange], space: Space, capacity: int, *, reuse: bool, overlay: bool = False,
         banks: tuple[Mapping[LiveRange, int], int] | None = None, no_waits: bool = False,
         keep_apart: bool = True) -> dict[LiveRange, list[int]]:
    """Returns the addresses of every slot of the allocations of one memory, in bytes.

    Args:
        ranges: the live ranges of the allocations.
        space: the memory.
        capacity: the size of the memory in bytes.
        reuse: whether allocations with disjoint live ranges may share bytes.
        overlay: whether scratch buffers may share bytes with other allocations even without ``reuse``.
        banks: for allocations that should start at certain banks, the start address modulo the period in bytes; and the period
            after which the banks repeat, in bytes. The wish is ignored if there is no room.
        no_waits: whether to reject plans in which allocations that several pipes access share bytes.
        keep_apart: whether small allocations share no bytes as long as there is room.

    Raises:
        TileError: T104, the allocations do not fit.
    """
    exclusive = (list(itertools.islice(_exclusive_sets(ranges), 1 if no_waits else None)) if reuse and keep_apart
                 else [frozenset[LiveRange]()])
    least = _least_bytes(ranges, space) if reuse else 0
    for alone in exclusive if least <= capacity else exclusive[-1:]:
        for starts, period in ([banks] if banks is not None else []) + [({}, 1)]:
            layout = _Layout(space, alone, starts, period)
            addresses, used = _addresses(ranges, layout, capacity, reuse=reuse, overlay=overlay), layout.used
            if used <= capacity:
                return addresses
    for ordered in _orders(ranges) if reuse and not no_waits and used > least else ():
        layout = _Layout(space)
        addresses = _addresses(ranges, layout, capacity, reuse=reuse, overlay=overlay, ordered=ordered)
        used = min(used, layout.used)
        if used <= capacity:
            return addresses
        if used == least:
            break  # no order needs less, and this is too much
    raise _overflow(ranges, space, used, capacity, reuse=reuse)


def _least_bytes(ranges: Sequence[LiveRange], space: Space) -> int:
    """Returns a lower bound of the bytes that a plan needs: the most bytes of live ranges that are live at the same time.

    A live range that may take the bytes of one that ends where it starts (``_may_inherit``) does not count there. Returns 0 if
    the author fixed addresses, since such buffers may overlap.
    """
    if any(_is_pinned(one) for one in ranges):
        return 0
    sizes = {one: _round_up(one.nbytes, space) for one in ranges}
    least = 0
    for position in {one.start for one in ranges}:
        live = [one for one in ranges if one.start <= position <= one.end]
        heirs = {heir for one in live for heir in live if heir.value in one.heirs}
        least = max(least, sum(sizes[one] * one.slots for one in live if one not in heirs))
    return least


def _orders(ranges: Sequence[LiveRange]) -> Iterator[Sequence[LiveRange]]:
    """Yields orders in which the allocations can be given addresses, most promising first."""
    free = sorted((one for one in ranges if not _is_pinned(one)), key=lambda one: (-one.nbytes * one.slots, one.start))
    yield sorted(free, key=lambda one: -one.nbytes * one.slots * (one.end - one.start + 1))
    yield sorted(free, key=lambda one: one.start)
    yield sorted(free, key=lambda one: -one.end)
    if len(free) <= FEW:
        yield from itertools.permutations(free)
        return
    chance = random.Random(0)  # the same in every run
    for _ in range(TRIES):
        ordered = list(free)
        for _ in range(chance.randint(1, len(ordered) // 2)):
            ordered.insert(chance.randrange(len(ordered)), ordered.pop(chance.randrange(len(ordered))))
        yield ordered


def _exclusive_sets(ranges: Sequence[LiveRange]) -> Iterator[frozenset[LiveRange]]:
    """Yields sets of allocations that are to share no bytes, largest set first.

    Two allocations that share bytes wait for each other. First come those that several pipes access, since a single pipe
    executes in order anyway; then the small ones of these, and of all.
    """
    several = frozenset(one for one in ranges if len(one.pipes) > 1)
    yield several
    sizes = sorted({one.nbytes for one in ranges}, reverse=True)
    for size in sizes:
        yield frozenset(one for one in several if one.nbytes < size)
    for size in sizes:
        yield frozenset(one for one in ranges if one.nbytes < size)


def _addresses_without_waits(ranges: Sequence[LiveRange], layout: _Layout) -> dict[LiveRange, list[int]]:
    """Returns addresses at which allocations share bytes only if none waits longer for it."""
    addresses = _pinned_addresses(ranges, layout)
    for one in [one for one in ranges if one not in addresses]:
        size = _round_up(one.nbytes, layout.space)
        addresses[one] = []
        for _ in range(one.slots):
            addresses[one].append(layout.lowest_free(one, size))
            layout.take(one, addresses[one][-1], size)
    return addresses


def _pinned_addresses(ranges: Sequence[LiveRange], layout: _Layout) -> dict[LiveRange, list[int]]:
    """Returns the addresses that the author fixed, and takes them."""
    addresses: dict[LiveRange, list[int]] = {}
    for one in ranges:
        pinned = one.op.attributes.get(ADDRESS)
        if isinstance(pinned, IntegerAttr):
            size = _round_up(one.nbytes, layout.space)
            addresses[one] = [pinned.value.data + slot * size for slot in range(one.slots)]
            for address in addresses[one]:
                layout.take(one, address, size)
    return addresses


def _addresses(ranges: Sequence[LiveRange], layout: _Layout, capacity: int, *, reuse: bool, overlay: bool,
               ordered: Sequence[LiveRange] = ()) -> dict[LiveRange, list[int]]:
    """Returns addresses, which may exceed the capacity.

    Args:
        ranges: the live ranges.
        layout: receives the addresses.
        capacity: bytes that there are; allocations share bytes only if they need more.
        reuse, overlay: as for ``plan``.
        ordered: those without a fixed address in the order in which they get theirs; else the largest first.
    """
    addresses, space = _pinned_addresses(ranges, layout), layout.space
    free = [one for one in ranges if one not in addresses]
    total = layout.used + sum(_round_up(one.nbytes, space) * one.slots for one in free)
    tight = total > capacity
    by_size = sorted(free, key=lambda one: (-one.nbytes * one.slots, one.start))
    scratch_last = [one for one in free if not _is_scratch(one)] + [one for one in by_size if _is_scratch(one)]
    for one in ordered or (free if not tight else by_size if reuse else scratch_last):
        size = _round_up(one.nbytes, space)
        addresses[one] = []
        shares = tight and (reuse or _is_scratch(one))
        for _ in range(one.slots):
            address = (layout.lowest_free(one, size, only_scratch=not (reuse or overlay)) if shares
                       else layout.first_start(one, layout.used))
            layout.take(one, address, size)
            addresses[one].append(address)
    return addresses


@dataclass(frozen=True)
class MemoryPlan:
    """The plan of one memory of one core.

    Attributes:
        function: the core's function.
        space: the memory, by HIVM's name (``ub``).
        room: the number of bytes that the plan may use.
        addresses: for each allocation, the address of each of its slots, in bytes.
        order: the function's operations, indexed by the positions of the live ranges.
        adds_wait: returns whether operations wait longer if the two given allocations share bytes.
        needed: the number of bytes that a plan without such waits needs.
    """

    function: func.FuncOp
    space: Space
    room: int
    addresses: dict[LiveRange, list[int]]
    order: list[Operation]
    adds_wait: Callable[[LiveRange, LiveRange], bool]
    needed: int


def _sharing(planned: Mapping[LiveRange, Sequence[int]], adds_wait: Callable[[LiveRange, LiveRange], bool] | None = None
             ) -> list[LiveRange]:
    """Returns the allocations that share bytes with another one; with ``adds_wait``, with one that they wait for."""
    spans = [(address, address + one.nbytes, one) for one, addresses in planned.items() for address in addresses]
    return [one for one, addresses in planned.items()
            if any(other is not one and left < address + one.nbytes and right > address
                   and (adds_wait is None or adds_wait(one, other)) for address in addresses for left, right, other in spans)]


def _placed(number: int, one: LiveRange, layout: MemoryPlan) -> Placed:
    """Returns the facts of the remark on an allocation's address, for its first slot."""
    places = [location_of(op) for op in layout.order[one.start:one.end + 1]]
    lines = [place.line for place in places if place is not None]
    return Placed(one.label, number, 0, one.slots, one.nbytes, layout.space, layout.room, (one.start, one.end),
                  (min(lines, default=0), max(lines, default=0)), _is_pinned(one), _made_for(one, layout))


def _made_for(one: LiveRange, layout: MemoryPlan) -> str:
    """Returns the name of the author's buffer whose tile a temporary of the compiler holds: the other operand of the op that
    reads or writes the temporary, a buffer rather than a tensor. Empty for an author's buffer, and where there is no such op.
    """
    if not _is_scratch(one):
        return ""
    found: list[SSAValue] = []
    for op in layout.order[one.start:one.end + 1]:
        roots = [root_of(access.value) for access in accesses(op)]
        if any(root.owner is one.op for root in roots):
            found += [root for root in roots if root.name_hint and not (
                isinstance(root.owner, Operation) and SCRATCH in root.owner.attributes)]
    found.sort(key=lambda root: isinstance(root.owner, Block))  # arguments, which are tensors, come last
    return author_name(found[0]) if found else ""


def _loop_around(op: Operation) -> scf.ForOp | None:
    """Returns the innermost loop that an op is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ForOp):
        parent = parent.parent_op()
    return parent


def _with_fewer_slots(ranges: Sequence[LiveRange]) -> list[LiveRange] | None:
    """Returns the live ranges, with one slot less for the one whose further slots take most bytes; None if all have one slot.
    """
    several = [one for one in ranges if one.slots > 1 and one.coupled is None]
    if not several:
        return None
    largest = max(several, key=lambda one: (one.slots - 1) * one.nbytes)
    return [replace(one, slots=one.slots - 1) if one is largest else one for one in ranges]


def _limit_slots(one: LiveRange, slots: int) -> int:
    """Returns at most ``slots``; the slots of a buffer of both cores are not changed, since the flags count on them."""
    return min(one.slots, slots) if one.coupled is None else one.slots


def _report_lost_slots(module: ModuleOp, one: LiveRange, slots: int, room: int, *, quiet: bool) -> None:
    """Records that an allocation has fewer slots than it should, and logs it unless ``quiet``."""
    if slots >= one.slots:
        return
    where, left = location_of(one.op), "one slot" if slots == 1 else f"{slots} slots"
    name = author_name(one.value, "") or f"a temporary of {line_of(one.op)}"
    if not quiet:
        logger.warning("%s%s has %s instead of %d: there is no room in %s for more, so its iterations overlap less",
                       f"{where.file}:{where.line}: " if where is not None else "", name, left, one.slots, name_of(one.space))
    record_refusal(module, "multi-buffer", where, f"{name} has {left} instead of {one.slots}: a slot takes "
                   f"{spaced(one.nbytes)} bytes, and too few of the {spaced(room)} bytes of {name_of(one.space)} are free",
                   "shrink the tiles, or ask for fewer stages (num_stages)", Scoped(one.label, (one.space,)), "plan-memory",
                   Smaller((where,)))


def _overflow(ranges: Sequence[LiveRange], space: Space, needed: int, capacity: int, *, reuse: bool) -> TileError:
    """Returns the error for allocations that do not fit, which lists what is live at the peak."""
    def nbytes(one: LiveRange) -> int:
        return _round_up(one.nbytes, space) * one.slots

    def entry(one: LiveRange) -> str:
        times = f" ({one.slots} slots of {spaced(one.nbytes)})" if one.slots > 1 else ""
        return f"{one.label} {spaced(nbytes(one))} bytes{times}, {line_of(one.op)}"

    peak = max((one.start for one in ranges), key=lambda position: sum(map(nbytes, needing_bytes_at(ranges, position))))
    live = sorted(needing_bytes_at(ranges, peak) if reuse else ranges, key=nbytes, reverse=True)
    largest = live[0]
    notes = ["these buffers are live at the peak:" if reuse else "no buffers share bytes, because memory planning is off:"]
    notes += ["  " + entry(one) for one in live[:8]]
    if len(live) > 8:
        notes.append(f"  and {len(live) - 8} smaller ones")
    over = needed - capacity
    share = capacity / needed
    advice = f"shrink the tiles to {int(share * 100)} % or less" if share < 1 else ""
    if any(one.slots > 1 for one in live):
        advice += ", or ask for fewer stages (num_stages)"
    if not reuse and _fits_with_reuse(ranges, space, capacity):
        advice += ", or switch memory planning on"
    return TileError(
        f"the tile does not fit: {name_of(space)} needs {spaced(needed)} bytes, {spaced(capacity)} are available "
        f"({spaced(over)} too many)", code="T104", location=location_of(largest.op),
        label=f"{spaced(nbytes(largest))} bytes", notes=notes, help=advice)


def _fits_with_reuse(ranges: Sequence[LiveRange], space: Space, capacity: int) -> bool:
    """Whether the allocations fit if they may share bytes."""
    with contextlib.suppress(TileError):
        return bool(plan(ranges, space, capacity, reuse=True))
    return False


def _rewrite(emit: OpBuilder, op: memref.AllocOp, addresses: list[int], remark: Remark | None = None) -> None:
    """Replace an allocation by its addresses."""
    with emit.before(op):
        values = [emit.constant(address, i64) for address in addresses]
        made = emit.insert(hivm.PointerCastOp(values, op.memref.type))
        if remark is not None:
            set_remark(made, remark)
    made.results[0].name_hint = op.memref.name_hint
    for use in list(op.memref.uses):
        if isinstance(use.operation, annotation.MarkOp):
            Rewriter.erase_op(use.operation)
    Rewriter().replace_op(op, [], list(made.results))


@dataclass(frozen=True)
class PlanMemory(ModulePass):
    """Assigns byte addresses to all on-chip allocations: rewrites ``memref.alloc`` into ``hivm.hir.pointer_cast``.

    Attributes:
        chip: the name of the chip; it determines the size of each memory.
        reuse: whether allocations with disjoint live ranges may share bytes.
        reserve: whether to leave the last bytes of a memory free that the planner of TileLang-Ascend's ascendc branch reserves
            (AscendNPU-IR's planner uses them).
        synchronise: whether the compiler inserts the waits inside a core. Then scratch buffers may share bytes even without
            ``reuse``; and even if there is room, two allocations may share bytes if no operation waits longer because of that.
        banks: whether to place the sources of one instruction in different banks of UB.
        keep_apart: whether small buffers share no bytes as long as there is room.
        quiet: whether to log no warnings about lost slots, because the plan is only a trial.
    """

    name = "plan-memory"
    chip: str = chips.DEFAULT
    reuse: bool = True
    reserve: bool = False
    synchronise: bool = True
    banks: bool = True
    keep_apart: bool = True
    quiet: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        emitters: dict[func.FuncOp, OpBuilder] = {}
        coupled: dict[int | None, list[int]] = {}
        for layout in self._layouts(op):
            self._report(op, layout)
            placed = [_placed(number, one, layout) for number, one in enumerate(layout.addresses)]
            for (one, addresses), facts in zip(layout.addresses.items(), placed, strict=True):
                if one.coupled is not None:
                    coupled[one.coupled] = addresses
                function = function_of(one.op)
                assert function is not None, "an allocation in a function"
                if function not in emitters:
                    emitters[function] = OpBuilder(function.body.block)
                _rewrite(emitters[function], one.op, addresses, Remark(self.name, facts=facts))
        for other in [inner for inner in op.walk() if isinstance(inner, memref.AllocOp)]:
            number = coupling_of(other.memref)  # planned with the function of the core whose memory it is
            function = function_of(other)
            if number in coupled and function is not None:
                _rewrite(OpBuilder(function.body.block), other, coupled[number])

    def _layouts(self, module: ModuleOp) -> list[MemoryPlan]:
        """Returns the plans of all memories of a module.

        Raises:
            TileError: T104, the allocations do not fit.
        """
        chip = chips.chip(self.chip)
        made = []
        found = {function: allocation_live_ranges(function) for function in module.walk()
                 if isinstance(function, func.FuncOp) and function.body.blocks
                 and any(isinstance(inner, memref.AllocOp) for inner in function.walk())}
        for function, (_, order) in found.items():
            for space, memory in chip.memory.items():
                local = list(_live_ranges_in(space, memory.core, function, found))
                room = memory.size - (memory.reserved if self.reserve else 0)
                if not local:
                    continue
                try:
                    made.append(self._plan(module, local, space, room, function, order))
                except TileError as error:
                    if chip.aiv_per_aic == 1 and memory.core == "AIV" and "hivm.part_of_mix" in function.attributes:
                        error.notes = (*error.notes, f"{chip.name} has 1 Vector core for each Cube core, which holds all rows"
                                       " of a tile; on a chip with two Vector cores, each holds half of the rows")
                    raise
        return made

    def _plan(self, module: ModuleOp, ranges: list[LiveRange], space: Space, room: int, function: func.FuncOp,
              order: list[Operation]) -> MemoryPlan:
        """Returns the plan of a memory; if it does not fit, with fewer slots for the buffers of pipelined loops."""
        chip, sharing = chips.chip(self.chip), ByteSharing(order)
        by_banks = space == "ub" and self.reuse and self.banks

        def adds_wait(one: LiveRange, other: LiveRange) -> bool:
            return not all(self._may_share(each) for each in (one, other)) or sharing.adds_wait(one, other)

        def attempt(ranges: list[LiveRange], *, no_waits: bool = False) -> dict[LiveRange, list[int]]:
            units = sharing.merge(ranges, self._may_share)
            for starts, period in ([(bank_offsets(function, units, chip), bank_period(chip))] if by_banks else []) + [({}, 1)]:
                layout = _Layout(space, bank_starts=starts, period=period, adds_wait=adds_wait)
                found = _addresses_without_waits(units, layout)
                if layout.used <= room:
                    by_member = {value: found[unit] for unit in units for value in unit.members}
                    return {one: by_member[one.value] for one in ranges}
            banks = (bank_offsets(function, ranges, chip), bank_period(chip)) if by_banks else None
            return plan(ranges, space, room, reuse=self.reuse, overlay=self.synchronise, banks=banks, no_waits=no_waits,
                        keep_apart=self.keep_apart)

        def finish(planned: dict[LiveRange, list[int]]) -> MemoryPlan:
            units, layout = sharing.merge(list(planned), self._may_share), _Layout(space, adds_wait=adds_wait)
            unit_of = {value: unit for unit in units for value in unit.members}
            _addresses_without_waits(units, layout)

            def units_add_wait(one: LiveRange, other: LiveRange) -> bool:
                both = unit_of[one.value], unit_of[other.value]
                return both[0] is not both[1] and adds_wait(*both)

            return MemoryPlan(function, space, room, planned, order, units_add_wait, layout.used)

        if any(one.slots > 2 for one in ranges) and self.reuse and self.keep_apart:
            # a third slot is worth less than not to wait for others
            for most in (max(one.slots for one in ranges), 2):
                with contextlib.suppress(TileError):
                    planned = attempt([replace(one, slots=_limit_slots(one, most)) for one in ranges], no_waits=True)
                    for one in ranges:
                        _report_lost_slots(module, one, _limit_slots(one, most), room, quiet=self.quiet)
                    return finish(planned)
        cut = ranges
        while True:
            try:
                found = attempt(cut)
            except TileError:
                fewer = _with_fewer_slots(cut)
                if fewer is None:
                    raise
                cut = fewer
            else:
                for one, left in zip(ranges, cut, strict=True):
                    _report_lost_slots(module, one, left.slots, room, quiet=self.quiet)
                return finish(found)

    def _may_share(self, one: LiveRange) -> bool:
        """Whether an allocation may share bytes although there is room: the compiler inserts the waits that this needs."""
        return (self.synchronise and one.coupled is None and not one.remote and not _is_pinned(one)
                and (self.reuse or _is_scratch(one)))

    def _report(self, module: ModuleOp, layout: MemoryPlan) -> None:
        """Record what the optimisations of a plan achieved, and what there was no room for."""
        ranges, name = list(layout.addresses), name_of(layout.space)
        for one in ranges:
            if one.slots > 1 and (loop := _loop_around(one.op)) is not None:
                record_done(module, "multi-buffer", location_of(one.op),
                            f"{one.label} has {one.slots} slots in the loop at {line_of(loop)}", maker=self.name)
        if self.banks and self.reuse and layout.space == "ub":
            self._report_banks(module, layout)
        needed = sum(_round_up(one.nbytes, layout.space) * one.slots for one in ranges)
        if not (self.keep_apart and self.reuse and needed > layout.room):
            return
        shared, plain = _sharing(layout.addresses, layout.adds_wait), _Layout(layout.space)
        some = f"of {len(ranges)} buffers in {name} share bytes"
        if not shared:
            record_done(module, "keep-apart", None,
                        f"{len(_sharing(layout.addresses))} {some}; no operation waits longer because of the sharing",
                        maker=self.name)
            return
        more = _sharing(_addresses(ranges, plain, layout.room, reuse=True, overlay=self.synchronise))
        if len(shared) < len(more) and plain.used <= layout.room:
            record_done(module, "keep-apart", None, f"only {len(shared)} {some} such that operations wait "
                        f"for each other; without keep-apart, {len(more)} buffers would share bytes", maker=self.name)
        largest = max(shared, key=lambda one: one.nbytes)
        labels = tuple(dict.fromkeys(one.label for one in shared))
        percent = layout.room * 100 // layout.needed
        record_refusal(
            module, "keep-apart", location_of(largest.op),
            f"{', '.join(labels)} share bytes, so that operations wait for each other: without sharing, the buffers in "
            f"{name} take {spaced(layout.needed)} bytes, and {spaced(layout.room)} are available",
            f"shrink the tiles to {percent} % or less, if a larger number of tiles costs less time than the waits",
            Held(labels, layout.space, shared=True), self.name,
            Smaller(tuple(dict.fromkeys(location_of(one.op) for one in shared)), percent))

    def _report_banks(self, module: ModuleOp, layout: MemoryPlan) -> None:
        """Record which buffers start in the second half of the banks, and which conflict with another source and why."""
        chip, ranges = chips.chip(self.chip), list(layout.addresses)
        period, offsets = bank_period(chip), bank_offsets(layout.function, ranges, chip)
        names = Counter(one.label for one in ranges if offsets.get(one) and layout.addresses[one][0] % period == offsets[one])
        if names:
            listed = ", ".join(f"{count} times {name}" if count > 1 else name for name, count in names.items())
            record_done(module, "banks", None,
                        f"placed in the second half of the banks of UB, so that instructions read their sources from "
                        f"different banks: {listed}", maker=self.name)
        conflicting = conflicting_buffers(layout.function, layout.addresses, chip)
        if not conflicting:
            return
        used = max(address + one.nbytes for one, addresses in layout.addresses.items() for address in addresses)
        labels = tuple(dict.fromkeys(one.label for one in conflicting))
        change, edit = None, f"choose addresses for these buffers that are {period // 2} bytes after a multiple of {period}"
        why = f"{spaced(used)} of the {spaced(layout.room)} bytes of UB are taken, so no buffer can move to other banks"
        if used + period + max(one.nbytes for one in conflicting) <= layout.room:
            why = ("it cannot be moved to the other half of the banks, because the instructions that use it, or that use "
                   "another buffer at the same bytes, have operands in both halves")
            edit = "copy the data to another buffer, and use the copy in some of these instructions"
        elif not any(_is_pinned(one) for one in ranges):
            change = Smaller(tuple(dict.fromkeys(location_of(one.op) for one in ranges)))
            edit = "shrink the tiles, if a larger number of tiles costs less time than the bank conflicts"
        record_refusal(module, "banks", location_of(conflicting[0].op),
                       f"an instruction reads {', '.join(labels)} and its other operand from the same banks: {why}", edit,
                       Held(labels, layout.space), self.name, change)


def _live_ranges_in(space: Space, owner: str, function: func.FuncOp,
                    found: Mapping[func.FuncOp, tuple[Sequence[LiveRange], Sequence[Operation]]]) -> Iterator[LiveRange]:
    """Yields the live ranges of a memory that are planned with a function.

    A kernel of both cores is two functions, and a memory that both cores access has one plan. The plan is made with the
    function of the core that the memory belongs to, if this function has allocations in the memory.

    Args:
        space, owner: the memory, and the core that it belongs to.
        function: the function.
        found: for each function, its live ranges and its ops.
    """
    def in_space(core: func.FuncOp) -> list[LiveRange]:
        return [one for one in found[core][0] if one.space == space]

    mine = in_space(function)
    other = next((each for each in found if each is not function and kernel_of(each) == kernel_of(function)), None)
    if core_of_function(function) in ("AIC", "AIV") and core_of_function(function) != owner:
        if other is None or not in_space(other):
            yield from (one for one in mine if one.coupled is None)
        return
    yield from mine
    if mine and other is not None:
        yield from (one.as_remote(len(found[function][1]) - 1) for one in in_space(other) if one.coupled is None)


__all__ = ["MemoryPlan", "PlanMemory", "plan"]
