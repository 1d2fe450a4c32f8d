"""Bring the author's event numbers down to the eight events that there are between two pipes.

Kernels of the ascendc dialect number events up to 15; HIVM and the chips have EVENT_ID0 to EVENT_ID7 for each ordered pair of
pipes. A number beyond that gets the highest one that nothing else of its pair uses: a number is a name, and what matters is
that sets and waits of one name meet and others do not; the one of the toolchain's library is given last. Where none is left, a
set with its wait right behind it becomes a full barrier, which orders more and never less; any other use of a ninth number is
an error.

Runs on the tile dialect as traced, where every flag is still as the author wrote it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.ir.ranges import Ranges

Flag = hivm.SetFlagOp | hivm.WaitFlagOp


def _flags(function: func.FuncOp) -> Iterator[Flag]:
    for op in function.walk():
        if isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp)):
            yield op


def _numbers(flag: Flag, ranges: Ranges) -> range:
    """The numbers that a flag may have, as far as there are events."""
    number = flag.event_id()
    if not isinstance(number, SSAValue):
        return range(int(number), int(number) + 1)
    known = ranges.of(number)
    if known.constant is not None:
        return known.numbers
    if known.low >= hivm.EVENT_IDS:
        raise refuse(flag, f"this event is computed and never below {hivm.EVENT_IDS}", "T161",
                     help=f"count from 0: there are {hivm.EVENT_IDS} events between two pipes")
    return known.meet(Interval(0, hivm.EVENT_IDS - 1)).numbers


def _closed(number: int, numbers: dict[Flag, range]) -> bool:
    """Whether every use of a number is a set with its wait right behind it."""
    flags = [flag for flag, found in numbers.items() if found.start == number]
    sets, waits = flags[::2], flags[1::2]
    return len(sets) == len(waits) and all(
        isinstance(a, hivm.SetFlagOp) and isinstance(b, hivm.WaitFlagOp) and _behind(a) is b
        for a, b in zip(sets, waits, strict=True))


def _behind(flag: Flag) -> Operation | None:
    """The next operation that does something."""
    found = flag.next_op
    while isinstance(found, arith.ConstantOp):
        found = found.next_op
    return found


def _renumber(flags: list[Flag], ranges: Ranges) -> None:
    numbers = {flag: _numbers(flag, ranges) for flag in flags}
    used = {number for found in numbers.values() for number in found}
    free = [number for number in reversed(range(hivm.EVENT_IDS)) if number not in used]
    if flags[0].pipes() in hivm.LIBRARY_PIPES and hivm.LIBRARY_EVENT in free:
        free = [*free[1:], hivm.LIBRARY_EVENT]  # the library's last
    high = sorted(number for number in used if number >= hivm.EVENT_IDS)
    given = dict(zip(high, free, strict=False))
    barriers = [number for number in high[len(free):] if _closed(number, numbers)]
    for flag, found in numbers.items():
        if found.start < hivm.EVENT_IDS:
            continue
        if found.start in barriers:
            if isinstance(flag, hivm.SetFlagOp):
                barrier = hivm.PipeBarrierOp("PIPE_ALL")
                _replace(flag, barrier)
                set_remark(barrier, Remark("number-events", text=f"in place of event {found.start}: there are {hivm.EVENT_IDS}",
                                       facts=Waits(source="ALL", target="ALL")))
            else:
                Rewriter.erase_op(flag)
        elif found.start in given:
            _replace(flag, type(flag)(flag.set_pipe, flag.wait_pipe, given[found.start]))
        else:
            raise refuse(flag, f"event {found.start} from {' to '.join(flag.pipes())} is one too many: "
                         f"there are {hivm.EVENT_IDS}", "T161",
                         notes=("in use are " + ", ".join(str(number) for number in sorted(used)),),
                         help="use the events in turn: % 8 of a counter")


def _replace(flag: Flag, made: Operation) -> None:
    made.location = flag.location
    Rewriter().replace_op(flag, made, [])


@dataclass(frozen=True)
class NumberEvents(ModulePass):
    """The pass; see the module's text."""

    name = "number-events"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for function in [inner for inner in op.walk() if isinstance(inner, func.FuncOp)]:
            pairs: dict[tuple[str, ...], list[Flag]] = defaultdict(list)
            for flag in _flags(function):
                pairs[flag.pipes()].append(flag)
            for flags in pairs.values():
                if any(found.start >= hivm.EVENT_IDS for found in (_numbers(flag, ranges) for flag in flags)):
                    _renumber(flags, ranges)
