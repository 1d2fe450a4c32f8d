"""Inserts flags between the Cube core and the Vector core for all dependences between them, in GM or on chip.

A dependence between the cores is a write of one core that the other core reads, or an access that must come before a later
write of the other core. The producer's core sets a flag after the first access, and the consumer's core waits for the flag
before the second access. A flag for a loop-carried dependence is set before the loop, once for each slot of the multi-buffer,
and waited for as often after the loop. So a transfer in a loop has a *ready* flag and a *free* flag, and a slot is overwritten
only after it was read. Flags are counters, so all iterations share one flag. Where one core could run so far ahead that the
counter would overflow, the core is made to wait for the other one (``sync.outstanding_flags``).

A wait stalls the scalar unit, and hence all later operations of its core (docs/hivm.md#synchronisation: PIPE_S). Dependences
inside a core are assumed to be satisfied here; ``insert-sync`` satisfies them later. If one of their two accesses is in a
branch or a loop, ``insert-sync`` would usually wait inside the branch or loop, and not at all if that does not run. Where a
flag relies on such a dependence, this pass marks both operations, so that ``insert-sync`` waits outside
(``sync.waits_relied_on``).

Runs on the function of both cores, before it is split, while a workspace is still one buffer with slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass

from tilelang_npu import target as chips
from tilelang_npu.analysis.cores import core_of, core_type, is_mixed, put_core
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.analysis.toolchain_arguments import FFTS, toolchain_argument
from tilelang_npu.dialects import hivm, memref_ext
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.target.chip_data import OpCore
from tilelang_npu.transforms.hivm.sync.event_ids import PlacedEvent, assign_ids
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Queue, build_items, core_and_pipe
from tilelang_npu.transforms.hivm.sync.nested_blocks import SolvedBlocks
from tilelang_npu.transforms.hivm.sync.ordering import BlockOrder, EventPair
from tilelang_npu.transforms.hivm.sync.outstanding_flags import Exchange, FlagLimiter
from tilelang_npu.transforms.hivm.sync.solve import solve_between_cores
from tilelang_npu.transforms.hivm.sync.wait_remarks import event_remark
from tilelang_npu.transforms.hivm.sync.waits_relied_on import mark_relied_on
from tilelang_npu.transforms.infra.op_builder import OpBuilder
from tilelang_npu.transforms.infra.pass_marks import has_run, mark_as_run

NAME = "cross-sync"
_CORE_NAMES: dict[OpCore, str] = {"AIC": "Cube", "AIV": "Vector"}


def _have_unordered_sets(one: EventPair, other: EventPair) -> bool:
    """Whether two pipes of one core set the flags: nothing orders these sets, however far apart they are in the program."""
    return one.source != other.source and core_and_pipe(one.source)[0] == core_and_pipe(other.source)[0]


@dataclass(frozen=True, eq=False)
class _ReliedOn:
    """An order of two accesses inside a core that flags between the cores may rely on even if a branch or loop does not run.

    The order is represented by an event in the order of a block.
    """

    body: BlockItems
    order: BlockOrder
    event: EventPair


class _FlagWriter:
    """Solves the blocks of one function and writes their flags into it.

    Args:
        function: the function of both cores.
        arguments: whether accesses to the kernel's own tensors are ordered too.
        limit: the sets of a flag that may be outstanding.
        can_rely: whether ``insert-sync`` runs later, so that marks can make it wait outside of branches and loops.
    """

    def __init__(self, function: func.FuncOp, *, arguments: bool, limit: int, can_rely: bool):
        self.function = function
        self.can_rely = can_rely
        self.limit = limit
        self.arguments = arguments
        self.emit = OpBuilder(function.body.block)
        self.solved_blocks = SolvedBlocks()
        self.orders: list[tuple[BlockItems, BlockOrder]] = []
        self.relied_on: list[_ReliedOn] = []
        self.exchanges: list[Exchange] = []

    def solve(self, body: BlockItems) -> None:
        """Solve a block, after those nested in it."""
        for item in body.items:
            for nested in item.blocks:
                self.solve(nested)
        order, relied_on = solve_between_cores(body, self.solved_blocks, self._counts, can_rely=self.can_rely)
        self.orders.append((body, order))
        self.relied_on += [_ReliedOn(body, order, event) for event in relied_on]

    def drop_needless_reliance(self) -> None:
        """Keep, of the orders that may be relied on, only those without which a flag would be missing."""
        if not self.relied_on:
            return
        used = {step for _, order in self.orders for constraint in order.constraints for step in order.path(constraint) or ()}
        # those that no proof uses at once; further ones may be needless since the proof has other ways
        self._try_without([one for one in self.relied_on if one.event not in used])
        for one in list(self.relied_on):
            self._try_without([one])

    def _try_without(self, dropped: Sequence[_ReliedOn]) -> None:
        """Drop orders unless a constraint needs them."""
        for one in dropped:
            one.order.revoke(one.event)
        self.solved_blocks.clear_cache()
        if all(order.implies(constraint) for _, order in self.orders for constraint in order.constraints):
            self.relied_on = [one for one in self.relied_on if one not in dropped]
        else:
            for one in dropped:
                one.order.give(one.event)
            self.solved_blocks.clear_cache()

    def _counts(self, first: Queue, second: Queue, root: object) -> bool:
        """Whether this pass orders the accesses of two pipes to a buffer: pipes of different cores, to memory that both cores
        access.
        """
        a, b = core_and_pipe(first)[0], core_and_pipe(second)[0]
        if "either" in (a, b) or a == b:
            return False
        made = (memref_ext.AllocWorkspaceOp, memref.AllocOp)  # a buffer that both cores access is one of a hand-over
        return self.arguments or isinstance(getattr(root, "owner", None), made)

    def allocate_flags(self, flags: Sequence[int]) -> None:
        """Assigns a flag to each set and wait between the cores, and limits how many sets of a flag are outstanding.

        Args:
            flags: the numbers of the flags that the author's code does not use, in the order in which they are assigned.

        Raises:
            TileError: T241, the kernel needs more flags than are free.
        """
        count = sum(len(order.events) for _, order in self.orders)
        self.exchanges = FlagLimiter(self.orders, self.limit, shared=count > len(flags)).exchanges
        placed = [PlacedEvent(event, body) for body, order in self.orders for event in order.events]
        for one in placed:
            one.event.slots = 1  # flags count: one number serves all iterations
        if not assign_ids(placed, tuple(flags), lambda one, other: True):
            return  # each hand-over has its own flag, so that it is evident which set a wait takes
        failed = assign_ids(placed, tuple(flags), _have_unordered_sets)
        if failed:
            first = failed[0].body.items[failed[0].event.set_after].op
            raise refuse(first, f"the transfers between Cube and Vector need more flags than the {len(flags)} that are free",
                         "T241", help="transfer data in fewer nested loops, or set fewer flags by hand")

    def write(self) -> None:
        """Write the flags, exchanges and marks into the function."""
        for body, order in self.orders:
            for event in order.events:
                self._write_event(body, event)
        for exchange in self.exchanges:
            self._write_exchange(exchange)
        for number, one in enumerate(self.relied_on):
            mark_relied_on(one.body, one.event, number)

    def _write_event(self, body: BlockItems, event: EventPair) -> None:
        emit, remark = self.emit, _remark_of(body, event)
        with emit.after(body.items[event.set_after].op):
            self._write_set(event, remark)
        with emit.before(body.items[event.wait_before].op):
            self._write_wait(event, remark)
        if event.distance:
            assert body.loop is not None
            for _ in range(event.distance):
                with emit.before(body.loop):
                    self._write_set(event, remark)
                with emit.after(body.loop):
                    self._write_wait(event, _remark_of(body, event, after_loop=True))

    def _write_set(self, event: EventPair, remark: Remark) -> None:
        core, pipe = core_and_pipe(event.source)
        ffts = toolchain_argument(self.function, FFTS)
        set_remark(self.emit.insert(hivm.SyncBlockSetOp(core_type(core), pipe, "S", event.id, ffts=ffts)), remark)

    def _write_wait(self, event: EventPair, remark: Remark) -> None:
        pipe, core = core_and_pipe(event.source)[1], core_and_pipe(event.target)[0]
        set_remark(self.emit.insert(hivm.SyncBlockWaitOp(core_type(core), pipe, "S", event.id)), remark)

    def _write_exchange(self, exchange: Exchange) -> None:
        """Write a set and a wait after a branch or loop, for the case that it does not run."""
        emit, op, event = self.emit, exchange.item.op, exchange.event
        with emit.after(op):
            if isinstance(op, scf.IfOp):
                condition = op.cond if exchange.taken else emit.insert(arith.XOrIOp(op.cond, emit.constant(1, i1))).result
            else:
                assert isinstance(op, scf.ForOp)
                condition = emit.insert(arith.CmpiOp(op.ub, op.lb, "sle")).result
            inner = Block()
            put_core(emit.insert(scf.IfOp(condition, [], Region(inner))), "either")
            with emit.inside(inner):
                remark = _limit_remark(event)
                self._write_set(event, remark)
                self._write_wait(event, remark)
                emit.insert(scf.YieldOp())


def _remark_of(body: BlockItems, event: EventPair, *, after_loop: bool = False) -> Remark:
    return _limit_remark(event) if event.reason is None else event_remark(NAME, body, event, after_loop=after_loop)


def _limit_remark(event: EventPair) -> Remark:
    ahead, other = (_CORE_NAMES[core_and_pipe(pipe)[0]] for pipe in (event.target, event.source))
    return Remark(NAME, text=f"{ahead} waits for {other}, so that the flag's counter does not overflow",
                  facts=Waits(source=event.source, target=event.target, numbers=(event.id,)))


def _unused_flags(flags: Sequence[int], by_hand: Sequence[hivm.SyncBlockSetOp | hivm.SyncBlockWaitOp]) -> list[int]:
    """Returns the flags that the author's code does not use; highest first if it computes flags without known bounds."""
    ranges = Ranges()
    named = [ranges.of(op.flag_id()) for op in by_hand]
    bounded = [known for known in named if known.closed]
    unused = [flag for flag in flags if not any(flag in known.numbers for known in bounded)]
    return unused if len(bounded) == len(named) else unused[::-1]


@dataclass(frozen=True)
class CrossSync(ModulePass):
    """Inserts flags between the Cube core and the Vector core for all dependences between their memory accesses.

    Attributes:
        chip: the name of the chip; it determines which flags exist. Flags that the author's code uses are not allocated.
        cross_synchronise: whether to order accesses to the kernel's tensor arguments too, and not only accesses to workspaces
            and on-chip buffers. It has no effect on kernels whose author sets flags.
        exclusive: whether flags that the author sets are an error (T246) if ``cross_synchronise`` is on.
        synchronise: whether ``insert-sync`` inserts the waits inside a core; then it can wait around branches and loops where a
            flag relies on that.
    """

    name = NAME
    chip: str = chips.DEFAULT
    cross_synchronise: bool = True
    exclusive: bool = False
    synchronise: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for writer in self._solved_functions(op):
            writer.write()
            mark_as_run(writer.function, self.name)

    def _solved_functions(self, op: ModuleOp) -> list[_FlagWriter]:
        sync = chips.chip(self.chip).sync
        flags = sync.user_flag_ids
        writers = []
        for function in op.walk():
            if isinstance(function, func.FuncOp) and is_mixed(function) and not has_run(function, self.name):
                by_hand = [inner for inner in function.walk() if isinstance(inner, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp))]
                if by_hand and self.exclusive and self.cross_synchronise:
                    raise refuse(by_hand[0], "this flag between the cores conflicts with the flags that the compiler sets",
                                 "T246", help="remove it, or switch TL_ASCEND_AUTO_CV_SYNC off and set all flags by hand")
                writer = _FlagWriter(function, arguments=self.cross_synchronise and not by_hand, limit=sync.flag_limit,
                                     can_rely=self.synchronise)
                writer.solve(build_items(function.body.block, core=core_of))
                writer.drop_needless_reliance()
                writer.allocate_flags(_unused_flags(flags, by_hand))
                writers.append(writer)
        return writers
