"""Order the two cores of a kernel where they meet, in GM or on chip: a flag for each hand-over, in the direction of the data.

What one core writes and the other reads, and what is written again after it was read, are demands like those inside a
core, and are met the same way: a flag is set behind the producer and waited for in front of the consumer; one that
crosses iterations is set as often in front of its loop as there are slots, and taken back behind it. So a hand-over in
a loop has a *ready* and a *free* flag, and its ring a slot is written only when it was read. Flags count, so that
iterations need no flags of their own; where one core could run so far ahead that one counts too many, the other holds it back
(``sync.run_ahead``).

Runs on the kernel of both cores, before it is split, while a workspace is still one buffer with slots. A wait stalls the scalar
unit, hence everything behind it on its core (docs/hivm.md#synchronisation: PIPE_S). Hazards on chip are met inside each core by
``insert-sync``; here they count as met. Where one of both is in a branch or a loop, it may be met in there; what counts on its
being met around them is written on both (``sync.counted_on``).
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
from tilelang_npu.dialects import hivm, memref_ext
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.transforms.hivm.sync.counted_on import count_on
from tilelang_npu.transforms.hivm.sync.cover import EventPair, Order
from tilelang_npu.transforms.hivm.sync.event_ids import PairPlace, colour
from tilelang_npu.transforms.hivm.sync.inside import Inside
from tilelang_npu.transforms.hivm.sync.items import BlockItems, build
from tilelang_npu.transforms.hivm.sync.reasons import event_remark
from tilelang_npu.transforms.hivm.sync.run_ahead import Exchange, RunAhead
from tilelang_npu.transforms.hivm.sync.solve import solve_between
from tilelang_npu.transforms.hivm.toolchain_arguments import FFTS, toolchain_argument
from tilelang_npu.transforms.ir.cores import core_of, core_type, is_mixed, put_core
from tilelang_npu.transforms.ir.emit import OpBuilder
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.treated import claim, is_treated

NAME = "cross-sync"
_SPOKEN = {"AIC": "Cube", "AIV": "Vector"}


def _split(pipe: str) -> tuple[str, str]:
    core, _, name = pipe.partition(".")
    return core, name


def _unordered(one: EventPair, other: EventPair) -> bool:
    """Whether two pipes of one core set the flags: nothing orders these sets, however far apart in the program they stand."""
    return one.source != other.source and _split(one.source)[0] == _split(other.source)[0]


@dataclass(frozen=True, eq=False)
class _Around:
    """An order inside a core that is counted on, which has to stand around a branch or a loop, and the block that it is in."""

    body: BlockItems
    order: Order
    event: EventPair


class _FlagWriter:
    """Finds and writes the flags of one function."""

    def __init__(self, function: func.FuncOp, *, arguments: bool, limit: int, ask: bool):
        self.function = function
        self.ask = ask
        self.limit = limit
        self.arguments = arguments
        self.emit = OpBuilder(function.body.block)
        self.inside = Inside()
        self.solved: list[tuple[BlockItems, Order]] = []
        self.around: list[_Around] = []
        self.exchanges: list[Exchange] = []

    def collect(self, body: BlockItems) -> None:
        """Solve a block and those nested in it."""
        for item in body.items:
            for nested in item.blocks:
                self.collect(nested)
        order, around = solve_between(body, self.inside, self._counts, ask=self.ask)
        self.solved.append((body, order))
        self.around += [_Around(body, order, event) for event in around]

    def count(self) -> None:
        """Leave of the orders that are to stand around branches and loops those without which a flag is missing."""
        if not self.around:
            return
        used = {step for _, order in self.solved for demand in order.asked for step in order.path(demand) or ()}
        self._leave_out([one for one in self.around if one.event not in used])  # at once; only blocks around may count on some
        for one in list(self.around):
            self._leave_out([one])

    def _leave_out(self, around: Sequence[_Around]) -> None:
        """Leave orders out if nothing is missing then."""
        for one in around:
            one.order.take_back(one.event)
        self.inside.forget()
        if self._met():
            self.around = [one for one in self.around if one not in around]
        else:
            for one in around:
                one.order.give(one.event)
            self.inside.forget()

    def _met(self) -> bool:
        return all(order.covers(demand) for _, order in self.solved for demand in order.asked)

    def _counts(self, first: str, second: str, root: object) -> bool:
        """Whether a meeting of two accesses is this pass's to order: different cores, in a memory that both see."""
        a, b = _split(first)[0], _split(second)[0]
        if "either" in (a, b) or a == b:
            return False
        made = (memref_ext.AllocWorkspaceOp, memref.AllocOp)  # a buffer that both cores reach is one that they hand over in
        return self.arguments or isinstance(getattr(root, "owner", None), made)

    def number(self, flags: Sequence[int]) -> None:
        """Give the hand-overs their flags.

        Raises:
            TileError: T241 there are not enough.
        """
        count = sum(len(order.events) for _, order in self.solved)
        self.exchanges = RunAhead(self.solved, self.limit, shared=count > len(flags)).exchanges
        placed = [PairPlace(event, body) for body, order in self.solved for event in order.events]
        for one in placed:
            one.event.slots = 1  # flags count: one number serves all iterations
        if not colour(placed, tuple(flags), lambda one, other: True):
            return  # each hand-over has one of its own, so that what a wait takes is plain
        failed = colour(placed, tuple(flags), _unordered)
        if failed:
            first = failed[0].body.items[failed[0].event.set_after].op
            raise refuse(first, f"the hand-overs between Cube and Vector need more flags than the {len(flags)} that are left",
                         "T241", help="hand over in fewer nested loops, or set fewer flags by hand")

    def write(self) -> None:
        for body, order in self.solved:
            for event in order.events:
                self._flag(body, event)
        for exchange in self.exchanges:
            self._exchange(exchange)
        for number, one in enumerate(self.around):
            count_on(one.body, one.event, number)

    def _flag(self, body: BlockItems, event: EventPair) -> None:
        emit, why = self.emit, _why(body, event)
        with emit.after(body.items[event.set_after].op):
            self._set(event, why)
        with emit.before(body.items[event.wait_before].op):
            self._wait(event, why)
        if event.distance:
            assert body.loop is not None
            for _ in range(event.distance):
                with emit.before(body.loop):
                    self._set(event, why)
                with emit.after(body.loop):
                    self._wait(event, _why(body, event, behind=True))

    def _set(self, event: EventPair, why: Remark) -> None:
        core, pipe = _split(event.source)
        ffts = toolchain_argument(self.function, FFTS)
        set_remark(self.emit.insert(hivm.SyncBlockSetOp(core_type(core), pipe, "S", event.id, ffts=ffts)), why)

    def _wait(self, event: EventPair, why: Remark) -> None:
        pipe, core = _split(event.source)[1], _split(event.target)[0]
        set_remark(self.emit.insert(hivm.SyncBlockWaitOp(core_type(core), pipe, "S", event.id)), why)

    def _exchange(self, exchange: Exchange) -> None:
        """Set a flag and wait for it behind a branch or loop, where that does not run."""
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
                why = _near(event)
                self._set(event, why)
                self._wait(event, why)
                emit.insert(scf.YieldOp())


def _why(body: BlockItems, event: EventPair, *, behind: bool = False) -> Remark:
    return _near(event) if event.reason is None else event_remark(NAME, body, event, behind=behind)


def _near(event: EventPair) -> Remark:
    ahead, other = (_SPOKEN[_split(pipe)[0]] for pipe in (event.target, event.source))
    return Remark(NAME, text=f"{ahead} runs no further ahead of {other} than flags count",
                  facts=Waits(source=event.source, target=event.target, numbers=(event.id,)))


def _left_over(flags: Sequence[int], by_hand: Sequence[hivm.SyncBlockSetOp | hivm.SyncBlockWaitOp]) -> list[int]:
    """The flags that the user's own code does not name; the highest first where it computes numbers without bounds."""
    ranges = Ranges()
    named = [ranges.of(op.flag_id()) for op in by_hand]
    bounded = [known for known in named if known.closed]
    left = [flag for flag in flags if not any(flag in known.numbers for known in bounded)]
    return left if len(bounded) == len(named) else left[::-1]


@dataclass(frozen=True)
class CrossSync(ModulePass):
    """The pass; ``chip`` has the flags, of which those that the user names are left out.

    Attributes:
        chip: the chip.
        arguments: order the accesses to the kernel's own tensors too, unless the user sets flags.
        exclusive: the user asked for flags around the tensors, so that setting some by hand is an error.
        ask: ``insert-sync`` orders what is inside a core, and can be asked to.
    """

    name = NAME
    chip: str = chips.DEFAULT
    arguments: bool = True
    exclusive: bool = False
    ask: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for writer in self._solved(op):
            writer.write()
            claim(writer.function, self.name)

    def _solved(self, op: ModuleOp) -> list[_FlagWriter]:
        sync = chips.chip(self.chip).sync
        flags = sync.user_flag_ids
        writers = []
        for function in op.walk():
            if isinstance(function, func.FuncOp) and is_mixed(function) and not is_treated(function, self.name):
                by_hand = [inner for inner in function.walk() if isinstance(inner, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp))]
                if by_hand and self.exclusive and self.arguments:
                    raise refuse(by_hand[0], "this flag between the cores and the automatic ones are two protocols", "T246",
                                 help="remove it, or switch TL_ASCEND_AUTO_CV_SYNC off and set all flags by hand")
                writer = _FlagWriter(function, arguments=self.arguments and not by_hand, limit=sync.flag_limit,
                                     ask=self.ask)
                writer.collect(build(function.body.block, core=core_of))
                writer.count()
                writer.number(_left_over(flags, by_hand))
                writers.append(writer)
        return writers
