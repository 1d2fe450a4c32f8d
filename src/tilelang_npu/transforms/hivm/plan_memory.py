"""Give every on-chip allocation its byte addresses: ``memref.alloc`` becomes ``hivm.hir.pointer_cast``.

A buffer that the other core reaches too, or alone, is planned with those of the core whose memory it is, and shares its bytes
with none of them.

First only what waits no longer for it shares bytes (``common_bytes``); where that fits, it is the plan.
Otherwise allocations whose lives do not meet share bytes: the largest first, each at the lowest address that is free
for its whole life; where that is not enough, in other orders, all of them if they are few. (Some order gives the smallest
plan: that of the addresses in it.) What an elementwise operation writes may take the bytes of what it reads for the last time.
Addresses that the user fixed are kept as they are. What does not fit is an error that lists what is alive at the peak.
With ``reuse=false`` (the user switched memory planning off) no two of the user's buffers ever share bytes; scratch that passes
made for single operations shares theirs where there is no room for all of it, with each other and, where the waits inside a
core are the compiler's (``overlay``), with buffers that are not alive then. Buffers of pipelined loops give up slots before the
plan fails; the log says which.

Runs after core splitting, before synchronisation, which works on the bytes decided here.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import annotation, hivm
from tilelang_npu.dialects.ir.changes import Smaller
from tilelang_npu.dialects.ir.remarks import Held, Placed, Remark, Scoped, record_done, record_refusal, set_remark
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.errors import TileError
from tilelang_npu.target import name_of
from tilelang_npu.transforms.hivm.banks import met, round_of, starts
from tilelang_npu.transforms.hivm.common_bytes import CommonBytes
from tilelang_npu.transforms.ir.buffers import SCRATCH
from tilelang_npu.transforms.ir.cores import core_of_function, kernel_of
from tilelang_npu.transforms.ir.emit import OpBuilder
from tilelang_npu.transforms.ir.lifetimes import Life, coupling_of, lifetimes, together
from tilelang_npu.transforms.ir.locations import line_of, location_of
from tilelang_npu.transforms.lower.lower_to_hivm import ADDRESS

logger = logging.getLogger("tilelang_npu")

FEW = 7
"""Allocations of which all orders are tried, where need be."""
TRIES = 200
"""Orders that are tried of more."""



def _rounded(nbytes: int, space: str) -> int:
    row = chips.memory(space)
    assert row is not None, "an on-chip memory"
    unit = row.starts
    return -(-nbytes // unit) * unit


def _inherits(one: Life, other: Life) -> bool:
    """Whether one of two lives begins where the other ends, and may take its bytes, the first of them where it is smaller."""
    return one.value in other.heirs or other.value in one.heirs


@dataclass
class _Plan:
    """Addresses given out so far in one memory: (start, end, life) of each copy; what is ``alone`` shares none of its bytes,
    nor do two that ``wait`` for each other then."""

    space: str
    alone: frozenset[Life] = frozenset()
    starts: Mapping[Life, int] = field(default_factory=dict)
    round: int = 1
    wait: Callable[[Life, Life], bool] | None = None
    taken: list[tuple[int, int, Life]] = field(default_factory=list)

    def lowest(self, life: Life, nbytes: int, *, beside: bool = True) -> int:
        """The lowest address where ``nbytes`` are free during the whole life; the bytes of one that it inherits come first.

        Without ``beside``, bytes that only scratch ever has.
        """
        for start, _, other in self.taken if beside else ():
            if (_inherits(life, other) and not self._apart(life, other)
                    and self.begin(life, start) == start and self._free(life, start, start + nbytes)):
                return start
        address = self.begin(life, 0)
        for start, end, other in self.taken:
            if start < address + nbytes and end > address and (
                    other.overlaps(life) or not (beside or _is_scratch(other)) or self._apart(life, other)):
                address = self.begin(life, end)
        return address

    def begin(self, life: Life, address: int) -> int:
        """The first address from one on where a buffer may start."""
        if life not in self.starts:
            return address
        return address + (self.starts[life] - address) % self.round

    def _apart(self, one: Life, other: Life) -> bool:
        return one in self.alone or other in self.alone or (self.wait is not None and self.wait(one, other))

    def _free(self, life: Life, start: int, end: int) -> bool:
        """Whether nothing but the life that is inherited from, or that inherits, has these bytes."""
        return not any(other.overlaps(life) and left < end and right > start
                       and not (_inherits(life, other) and left == start)
                       for left, right, other in self.taken)

    def take(self, life: Life, address: int, nbytes: int) -> None:
        bisect.insort(self.taken, (address, address + nbytes, life), key=lambda entry: entry[:2])

    @property
    def used(self) -> int:
        return max((end for _, end, _ in self.taken), default=0)


def _is_scratch(life: Life) -> bool:
    return SCRATCH in life.op.attributes


def plan(lives: Sequence[Life], space: str, capacity: int, *, reuse: bool, overlay: bool = False,
         banks: tuple[Mapping[Life, int], int] | None = None, apart: bool = False,
         keep_apart: bool = True) -> dict[Life, list[int]]:
    """Addresses of every copy of the allocations of one memory, in bytes.

    Args:
        lives: the allocations; those that the user pinned have the attribute ``tile.address``.
        space: the memory.
        capacity: its size in bytes.
        reuse: whether allocations may share bytes.
        overlay: whether scratch may share those of other allocations even so.
        banks: where in a round of the banks allocations should start, as long as there is room, and the bytes of a round.
        apart: refuse plans in which something shares bytes that several pipes touch.
        keep_apart: let the small ones share none while there is room.

    Raises:
        TileError: T104, they do not fit.
    """
    kept = list(itertools.islice(_kept_apart(lives), 1 if apart else None)) if reuse and keep_apart else [frozenset[Life]()]
    least = _least(lives, space) if reuse else 0
    for alone in kept if least <= capacity else kept[-1:]:
        for begins, around in ([banks] if banks is not None else []) + [({}, 1)]:
            layout = _Plan(space, alone, begins, around)
            addresses, used = _addresses(lives, layout, capacity, reuse=reuse, overlay=overlay), layout.used
            if used <= capacity:
                return addresses
    for ordered in _orders(lives) if reuse and not apart and used > least else ():
        layout = _Plan(space)
        addresses = _addresses(lives, layout, capacity, reuse=reuse, overlay=overlay, ordered=ordered)
        used = min(used, layout.used)
        if used <= capacity:
            return addresses
        if used == least:
            break  # no order does better, and this is too much
    raise _overflow(lives, space, used, capacity, reuse=reuse)


def _least(lives: Sequence[Life], space: str) -> int:
    """Bytes that no plan does without: those of what is alive together, without what takes over the bytes of another one. What
    the author pinned may lie over each other: of these nothing is known."""
    if any(ADDRESS in life.op.attributes for life in lives):
        return 0
    sizes = {life: _rounded(life.nbytes, space) for life in lives}
    least = 0
    for at in {life.start for life in lives}:
        alive = [life for life in lives if life.start <= at <= life.end]
        heirs = {heir for life in alive for heir in alive if heir.value in life.heirs}
        least = max(least, sum(sizes[life] * life.slots for life in alive if life not in heirs))
    return least


def _orders(lives: Sequence[Life]) -> Iterator[Sequence[Life]]:
    """Orders in which the allocations are given addresses, most promising first."""
    free = sorted((life for life in lives if ADDRESS not in life.op.attributes),
                  key=lambda life: (-life.nbytes * life.slots, life.start))
    yield sorted(free, key=lambda life: -life.nbytes * life.slots * (life.end - life.start + 1))
    yield sorted(free, key=lambda life: life.start)
    yield sorted(free, key=lambda life: -life.end)
    if len(free) <= FEW:
        yield from itertools.permutations(free)
        return
    chance = random.Random(0)  # the same in every run
    for _ in range(TRIES):
        ordered = list(free)
        for _ in range(chance.randint(1, len(ordered) // 2)):
            ordered.insert(chance.randrange(len(ordered)), ordered.pop(chance.randrange(len(ordered))))
        yield ordered


def _kept_apart(lives: Sequence[Life]) -> Iterator[frozenset[Life]]:
    """What is not to share bytes, the most first: two allocations that share them wait for each other. One pipe is in order
    anyway, so that its own may; then the small ones are kept from it as long as there is room."""
    several = frozenset(life for life in lives if len(life.pipes) > 1)
    yield several
    sizes = sorted({life.nbytes for life in lives}, reverse=True)
    for size in sizes:
        yield frozenset(life for life in several if life.nbytes < size)
    for size in sizes:
        yield frozenset(life for life in lives if life.nbytes < size)


def _at_no_cost(lives: Sequence[Life], layout: _Plan) -> dict[Life, list[int]]:
    """A plan in which only what waits no longer for it shares bytes."""
    addresses = _pinned_addresses(lives, layout)
    for life in [life for life in lives if life not in addresses]:
        size = _rounded(life.nbytes, layout.space)
        addresses[life] = []
        for _ in range(life.slots):
            addresses[life].append(layout.lowest(life, size))
            layout.take(life, addresses[life][-1], size)
    return addresses


def _pinned_addresses(lives: Sequence[Life], layout: _Plan) -> dict[Life, list[int]]:
    """Those of the allocations whose authors have fixed them."""
    addresses: dict[Life, list[int]] = {}
    for life in lives:
        pinned = life.op.attributes.get(ADDRESS)
        if isinstance(pinned, IntegerAttr):
            size = _rounded(life.nbytes, layout.space)
            addresses[life] = [pinned.value.data + slot * size for slot in range(life.slots)]
            for address in addresses[life]:
                layout.take(life, address, size)
    return addresses


def _addresses(lives: Sequence[Life], layout: _Plan, capacity: int, *, reuse: bool, overlay: bool,
               ordered: Sequence[Life] = ()) -> dict[Life, list[int]]:
    """A plan, which may take more than there is; ``ordered``: those that are not pinned, else the largest first."""
    addresses, space = _pinned_addresses(lives, layout), layout.space
    free = [life for life in lives if life not in addresses]
    total = layout.used + sum(_rounded(life.nbytes, space) * life.slots for life in free)
    tight = total > capacity
    by_size = sorted(free, key=lambda life: (-life.nbytes * life.slots, life.start))
    usual = [life for life in free if not _is_scratch(life)] + [life for life in by_size if _is_scratch(life)]
    for life in ordered or (free if not tight else by_size if reuse else usual):
        size = _rounded(life.nbytes, space)
        addresses[life] = []
        share = tight and (reuse or _is_scratch(life))
        for _ in range(life.slots):
            address = layout.lowest(life, size, beside=reuse or overlay) if share else layout.begin(life, layout.used)
            layout.take(life, address, size)
            addresses[life].append(address)
    return addresses


@dataclass(frozen=True)
class MemoryPlan:
    """The plan of one memory of one core.

    Attributes:
        function: the core's function.
        space: the memory, as HIVM spells it.
        room: bytes that can be given out.
        addresses: of every copy of each allocation, in bytes.
        order: the function's operations, by the positions that lives are told in.
        wait: whether something waits longer because two allocations share bytes.
        needed: bytes that are needed where nothing does.
    """

    function: func.FuncOp
    space: str
    room: int
    addresses: dict[Life, list[int]]
    order: list[Operation]
    wait: Callable[[Life, Life], bool]
    needed: int


def _sharing(planned: Mapping[Life, Sequence[int]], wait: Callable[[Life, Life], bool] | None = None) -> list[Life]:
    """The allocations that share bytes with another one; with one that they ``wait`` for."""
    ranges = [(address, address + life.nbytes, life) for life, addresses in planned.items() for address in addresses]
    return [life for life, addresses in planned.items()
            if any(other is not life and left < address + life.nbytes and right > address
                   and (wait is None or wait(life, other)) for address in addresses for left, right, other in ranges)]


def _placed(number: int, life: Life, layout: MemoryPlan) -> Placed:
    """What the remark of an allocation's address says, of its first slot."""
    places = [location_of(op) for op in layout.order[life.start:life.end + 1]]
    lines = [place.line for place in places if place is not None]
    return Placed(life.label, number, 0, life.slots, life.nbytes, layout.space, layout.room, (life.start, life.end),
                  (min(lines, default=0), max(lines, default=0)), ADDRESS in life.op.attributes)


def _loop_around(op: Operation) -> scf.ForOp | None:
    """The innermost loop that an operation is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ForOp):
        parent = parent.parent_op()
    return parent


def _pinned(layout: MemoryPlan) -> bool:
    """Whether the author has fixed an address."""
    return any(ADDRESS in life.op.attributes for life in layout.addresses)


def _with_fewer_slots(lives: Sequence[Life]) -> list[Life] | None:
    """The allocations, that with the largest slots beside its first cut down by one; None where all have one."""
    several = [life for life in lives if life.slots > 1 and life.coupled is None]
    if not several:
        return None
    largest = max(several, key=lambda life: (life.slots - 1) * life.nbytes)
    return [replace(life, slots=life.slots - 1) if life is largest else life for life in lives]


def _at_most(life: Life, slots: int) -> int:
    """As many slots at most; those of a buffer of both cores are what their flags count on."""
    return min(life.slots, slots) if life.coupled is None else life.slots


def _tell(module: ModuleOp, life: Life, slots: int, room: int, *, quiet: bool) -> None:
    """Say that an allocation has fewer slots than it was to have."""
    if quiet:
        return
    where, left = location_of(life.op), "one slot" if slots == 1 else f"{slots} slots"
    name = author_name(life.value, "") or f"a temporary of {line_of(life.op)}"
    if slots < life.slots:
        logger.warning("%s%s has %s instead of %d: there is no room in %s for more, and its loop overlaps less",
                       f"{where.file}:{where.line}: " if where is not None else "", name, left, life.slots,
                       name_of(life.space))
        record_refusal(module, "multi-buffer", where, f"{name} has {left} instead of {life.slots}: a slot takes "
                f"{_spaced(life.nbytes)} bytes, and of the {_spaced(room)} of {name_of(life.space)} too few are left",
                "shrink the tiles, or ask for fewer stages (num_stages)", Scoped(life.label, (life.space,)), "plan-memory",
                Smaller((where,)))


def _overflow(lives: Sequence[Life], space: str, needed: int, capacity: int, *, reuse: bool) -> TileError:
    def demand(life: Life) -> int:
        return _rounded(life.nbytes, space) * life.slots

    peak = max((life.start for life in lives), key=lambda at: sum(map(demand, together(lives, at))))
    alive = sorted(together(lives, peak) if reuse else lives, key=demand, reverse=True)
    largest = alive[0]

    def entry(life: Life) -> str:
        times = f" ({life.slots} slots of {_spaced(life.nbytes)})" if life.slots > 1 else ""
        return f"{life.label} {_spaced(demand(life))} bytes{times}, {line_of(life.op)}"

    notes = ["alive together at the peak:" if reuse else "without reuse (memory planning is off) all buffers are alive:"]
    notes += ["  " + entry(life) for life in alive[:8]]
    if len(alive) > 8:
        notes.append(f"  and {len(alive) - 8} smaller ones")
    over = needed - capacity
    share = capacity / needed
    advice = f"shrink the tiles to {int(share * 100)} % or less" if share < 1 else ""
    if any(life.slots > 1 for life in alive):
        advice += ", or ask for fewer stages (num_stages)"
    if not reuse and _fits_planned(lives, space, capacity):
        advice += ", or switch memory planning on"
    return TileError(
        f"the tile does not fit: {name_of(space)} needs {_spaced(needed)} bytes, {_spaced(capacity)} are there "
        f"({_spaced(over)} too many)", code="T104", location=location_of(largest.op),
        label=f"{_spaced(demand(largest))} bytes", notes=notes, help=advice)


def _fits_planned(lives: Sequence[Life], space: str, capacity: int) -> bool:
    """Whether the allocations fit where they may share bytes."""
    with contextlib.suppress(TileError):
        return bool(plan(lives, space, capacity, reuse=True))
    return False


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _rewrite(emit: OpBuilder, op: memref.AllocOp, addresses: list[int], said: Remark | None = None) -> None:
    with emit.before(op):
        values = [emit.constant(address, i64) for address in addresses]
        made = emit.insert(hivm.PointerCastOp(values, op.memref.type))
        if said is not None:
            set_remark(made, said)
    made.results[0].name_hint = op.memref.name_hint
    for use in list(op.memref.uses):
        if isinstance(use.operation, annotation.MarkOp):
            Rewriter.erase_op(use.operation)
    Rewriter().replace_op(op, [], list(made.results))


def _function_of(op: Operation) -> func.FuncOp:
    parent = op.parent_op()
    while not isinstance(parent, func.FuncOp):
        assert parent is not None, "an allocation in a function"
        parent = parent.parent_op()
    return parent


def _has_allocations(op: Operation) -> bool:
    return any(isinstance(inner, memref.AllocOp) for inner in op.walk())


@dataclass(frozen=True)
class PlanMemory(ModulePass):
    """The pass; ``chip`` names the chip whose capacities hold, ``reuse`` allows sharing of bytes, ``reserve`` leaves free the
    bytes at the end of a memory that the ascendc branch's planner keeps (AscendNPU-IR's plans all of it), ``overlay`` says that
    the waits inside the core are the compiler's: scratch may share bytes even without ``reuse``, and while there is room what
    waits no longer for it may. ``banks`` places operands by the banks of UB, ``keep_apart`` lets small buffers
    share no bytes while there is room. ``quiet``, nothing is told of what has no room: the plan is for trial."""

    name = "plan-memory"
    chip: str = chips.DEFAULT
    reuse: bool = True
    reserve: bool = False
    overlay: bool = False
    banks: bool = True
    keep_apart: bool = True
    quiet: bool = False

    def _plan(self, module: ModuleOp, lives: list[Life], space: str, room: int, function: func.FuncOp,
              order: list[Operation]) -> MemoryPlan:
        """The plan; where it does not fit, with fewer slots for the buffers of pipelined loops."""
        chip, common = chips.chip(self.chip), CommonBytes(order)
        by_banks = space == "ub" and self.reuse and self.banks

        def wait(one: Life, other: Life) -> bool:
            return not all(self._may_share(life) for life in (one, other)) or common.wait(one, other)

        def attempt(lives: list[Life], *, apart: bool = False) -> dict[Life, list[int]]:
            units = common.joined(lives, self._may_share)
            for begins, around in ([(starts(function, units, chip), round_of(chip))] if by_banks else []) + [({}, 1)]:
                layout = _Plan(space, starts=begins, round=around, wait=wait)
                found = _at_no_cost(units, layout)
                if layout.used <= room:
                    whole = {value: found[unit] for unit in units for value in unit.members}
                    return {life: whole[life.value] for life in lives}
            banks = (starts(function, lives, chip), round_of(chip)) if by_banks else None
            return plan(lives, space, room, reuse=self.reuse, overlay=self.overlay, banks=banks, apart=apart,
                        keep_apart=self.keep_apart)

        def made(planned: dict[Life, list[int]]) -> MemoryPlan:
            units, layout = common.joined(list(planned), self._may_share), _Plan(space, wait=wait)
            whole = {value: unit for unit in units for value in unit.members}
            _at_no_cost(units, layout)

            def longer(one: Life, other: Life) -> bool:
                both = whole[one.value], whole[other.value]
                return both[0] is not both[1] and wait(*both)

            return MemoryPlan(function, space, room, planned, order, longer, layout.used)

        many = any(life.slots > 2 for life in lives)
        if many and self.reuse and self.keep_apart:  # a third slot is worth less than not to wait for others
            for most in (max(life.slots for life in lives), 2):
                with contextlib.suppress(TileError):
                    planned = attempt([replace(life, slots=_at_most(life, most)) for life in lives], apart=True)
                    for life in lives:
                        _tell(module, life, _at_most(life, most), room, quiet=self.quiet)
                    return made(planned)
        cut = lives
        while True:
            try:
                found = attempt(cut)
            except TileError:
                fewer = _with_fewer_slots(cut)
                if fewer is None:
                    raise
                cut = fewer
            else:
                for life, left in zip(lives, cut, strict=True):
                    _tell(module, life, left.slots, room, quiet=self.quiet)
                return made(found)

    def _may_share(self, life: Life) -> bool:
        """Whether an allocation may share bytes although there is room: what waits are needed for it, the compiler makes."""
        return (self.overlay and life.coupled is None and not life.remote and ADDRESS not in life.op.attributes
                and (self.reuse or _is_scratch(life)))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        emitters: dict[func.FuncOp, OpBuilder] = {}
        coupled: dict[int | None, list[int]] = {}
        for layout in self._layouts(op):
            self._tell(op, layout)
            placed = [_placed(number, life, layout) for number, life in enumerate(layout.addresses)]
            for (life, addresses), facts in zip(layout.addresses.items(), placed, strict=True):
                if life.coupled is not None:
                    coupled[life.coupled] = addresses
                function = _function_of(life.op)
                if function not in emitters:
                    emitters[function] = OpBuilder(function.body.block)
                _rewrite(emitters[function], life.op, addresses, Remark(self.name, facts=facts))
        for there in [inner for inner in op.walk() if isinstance(inner, memref.AllocOp)]:
            number = coupling_of(there.memref)  # the half of the core whose memory it is has planned it
            if number in coupled:
                _rewrite(OpBuilder(_function_of(there).body.block), there, coupled[number])

    def _tell(self, module: ModuleOp, layout: MemoryPlan) -> None:
        """Say what the order of a memory was good for, and what it had no room for."""
        lives, name = list(layout.addresses), name_of(layout.space)
        for life in lives:
            if life.slots > 1 and (loop := _loop_around(life.op)) is not None:
                record_done(module, "multi-buffer", location_of(life.op),
                            f"{life.label} has {life.slots} slots in the loop at {line_of(loop)}", maker=self.name)
        if self.banks and self.reuse and layout.space == "ub":
            chip = chips.chip(self.chip)
            around, begins = round_of(chip), starts(layout.function, lives, chip)
            apart = {life: layout.addresses[life][0] % around == begin for life, begin in begins.items() if begin}
            if names := [life.label for life in lives if apart.get(life)]:
                record_done(module, "banks", None, f"{', '.join(names)} in the second half of the banks", maker=self.name)
            if beside := met(layout.function, layout.addresses, chip):
                self._tell_banks(module, layout, beside, around)
        needed = sum(_rounded(life.nbytes, layout.space) * life.slots for life in lives)
        if self.keep_apart and self.reuse and needed > layout.room:
            shared, plain = _sharing(layout.addresses, layout.wait), _Plan(layout.space)
            some = f"of {len(lives)} buffers in {name} share bytes"
            if not shared:
                record_done(module, "keep-apart", None,
                                   f"{len(_sharing(layout.addresses))} {some}, and nothing waits longer for it",
                            maker=self.name)
                return
            more = _sharing(_addresses(lives, plain, layout.room, reuse=True, overlay=self.overlay))
            if len(shared) < len(more) and plain.used <= layout.room:
                record_done(module, "keep-apart", None,
                                   f"{len(shared)} {some} and wait for each other, in place of {len(more)}",
                            maker=self.name)
            largest = max(shared, key=lambda life: life.nbytes)
            record_refusal(module, "keep-apart", location_of(largest.op),
                    f"{', '.join(dict.fromkeys(life.label for life in shared))} share bytes and wait for each other: else the "
                    f"buffers in {name} take {_spaced(layout.needed)} bytes, and {_spaced(layout.room)} are there",
                    f"shrink the tiles to {layout.room * 100 // layout.needed} % or less, if more of them cost less than the "
                    "waits", Held(tuple(dict.fromkeys(life.label for life in shared)), layout.space, shared=True), self.name,
                    Smaller(tuple(dict.fromkeys(location_of(life.op) for life in shared)),
                            layout.room * 100 // layout.needed))

    def _tell_banks(self, module: ModuleOp, layout: MemoryPlan, beside: Sequence[Life], around: int) -> None:
        """Say what begins in the banks of what is read beside it: there was no room, or no half of the banks without such."""
        used = max(address + life.nbytes for life, addresses in layout.addresses.items() for address in addresses)
        labels = tuple(dict.fromkeys(life.label for life in beside))
        change, edit = None, f"pin them {around // 2} bytes behind a multiple of {around}"
        why = f"{_spaced(used)} of {_spaced(layout.room)} bytes are taken"
        if used + around + max(life.nbytes for life in beside) <= layout.room:
            why, edit = "what it, or what has its bytes too, is read beside lies in both halves", "read a copy of it there"
        elif not _pinned(layout):
            change = Smaller(tuple(dict.fromkeys(location_of(life.op) for life in layout.addresses)))
            edit = "shrink the tiles, if more of them cost less"
        record_refusal(module, "banks", location_of(beside[0].op),
                              f"{', '.join(labels)} in the banks of what is read beside: {why}",
                       edit, Held(labels, layout.space), self.name, change)

    def _layouts(self, module: ModuleOp) -> list[MemoryPlan]:
        """Where the pass puts the allocations of a module.

        Raises:
            TileError: T104, they do not fit.
        """
        chip = chips.chip(self.chip)
        made = []
        found = {function: lifetimes(function) for function in module.walk()
                 if isinstance(function, func.FuncOp) and function.body.blocks and _has_allocations(function)}
        for function, (_, order) in found.items():
            for space, memory in chip.memory.items():
                local = list(_lives_in(space, memory.core, function, found))
                room = memory.size - (memory.reserved if self.reserve else 0)
                if local:
                    made.append(self._plan(module, local, space, room, function, order))
        return made


def _lives_in(space: str, owner: str, function: func.FuncOp,
              found: Mapping[func.FuncOp, tuple[Sequence[Life], Sequence[Operation]]]) -> Iterator[Life]:
    """The allocations of a memory that are planned with a function.

    A kernel of both cores is two functions, and a memory that both reach has one plan. It is made with the function of the core
    whose memory it is, as long as that one has something in it.

    Args:
        space, owner: the memory, and the core whose it is.
        function: the function.
        found: what is known of all functions: their allocations and their operations.
    """
    def of(core: func.FuncOp) -> list[Life]:
        return [life for life in found[core][0] if life.space == space]

    mine = of(function)
    other = next((each for each in found if each is not function and kernel_of(each) == kernel_of(function)), None)
    if core_of_function(function) in ("AIC", "AIV") and core_of_function(function) != owner:
        if other is None or not of(other):
            yield from (life for life in mine if life.coupled is None)
        return
    yield from mine
    if mine and other is not None:
        yield from (life.as_remote(len(found[function][1]) - 1) for life in of(other) if life.coupled is None)


__all__ = ["MemoryPlan", "PlanMemory", "plan"]
