"""Renumbers the author's events, so that each pair of pipes uses only the eight events that exist between two pipes.

Kernels of the ascendc dialect may number events from 0 to 15. HIVM and the chips have EVENT_ID0 to EVENT_ID7 for each ordered
pair of pipes. An event number above 7 is replaced by the highest number that the same pair of pipes does not use. The number
that the toolchain's library uses is taken only if no other is free. Renumbering changes no order, because a wait only waits for
the sets of the same number. If no number is free, a set that is directly followed by its wait is replaced by a full barrier,
which orders at least as much. Any other event without a free number is an error.

The pass runs on the traced tile dialect, where all flags are those that the author wrote.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.linear import Interval

Flag = hivm.SetFlagOp | hivm.WaitFlagOp


def _possible_numbers(flag: Flag, ranges: Ranges) -> range:
    """Returns the event numbers that a flag may have, clipped to the events that exist.

    Raises:
        TileError: T161, the number is computed, and is never one of them.
    """
    number = flag.event_id()
    if not isinstance(number, SSAValue):
        return range(int(number), int(number) + 1)
    known = ranges.of(number)
    if known.constant is not None:
        return known.numbers
    if known.low >= hivm.EVENT_IDS:
        raise refuse(flag, f"the number of this event is computed and never below {hivm.EVENT_IDS}", "T161",
                     help=f"count from 0: there are {hivm.EVENT_IDS} events between two pipes")
    return known.meet(Interval(0, hivm.EVENT_IDS - 1)).numbers


def _is_set_then_wait(number: int, numbers: dict[Flag, range]) -> bool:
    """Whether every use of a number is a set directly followed by its wait."""
    flags = [flag for flag, found in numbers.items() if found.start == number]
    sets, waits = flags[::2], flags[1::2]
    return len(sets) == len(waits) and all(
        isinstance(a, hivm.SetFlagOp) and isinstance(b, hivm.WaitFlagOp) and _next_non_constant(a) is b
        for a, b in zip(sets, waits, strict=True))


def _next_non_constant(flag: Flag) -> Operation | None:
    """Returns the next operation that is no constant."""
    found = flag.next_op
    while isinstance(found, arith.ConstantOp):
        found = found.next_op
    return found


def _renumber(flags: list[Flag], ranges: Ranges) -> None:
    numbers = {flag: _possible_numbers(flag, ranges) for flag in flags}
    used = {number for found in numbers.values() for number in found}
    free = [number for number in reversed(range(hivm.EVENT_IDS)) if number not in used]
    if flags[0].pipes() in hivm.LIBRARY_PIPES and hivm.LIBRARY_EVENT in free:
        free = [*free[1:], hivm.LIBRARY_EVENT]  # the library's event last
    high = sorted(number for number in used if number >= hivm.EVENT_IDS)
    given = dict(zip(high, free, strict=False))
    barriers = [number for number in high[len(free):] if _is_set_then_wait(number, numbers)]
    for flag, found in numbers.items():
        if found.start < hivm.EVENT_IDS:
            continue
        if found.start in barriers:
            if isinstance(flag, hivm.SetFlagOp):
                barrier = hivm.PipeBarrierOp("ALL")
                _replace_flag(flag, barrier)
                set_remark(barrier, Remark("number-events", text="this full barrier replaces event "
                                           f"{found.start}, because only {hivm.EVENT_IDS} events exist",
                                           facts=Waits(source="ALL", target="ALL")))
            else:
                Rewriter.erase_op(flag)
        elif found.start in given:
            _replace_flag(flag, type(flag)(flag.set_pipe, flag.wait_pipe, given[found.start]))
        else:
            raise refuse(flag, f"event {found.start} from {' to '.join(flag.pipes())} is one too many: "
                         f"there are {hivm.EVENT_IDS} between two pipes", "T161",
                         notes=("the event numbers in use are " + ", ".join(str(number) for number in sorted(used)),),
                         help="number the events by a counter modulo 8")


def _replace_flag(flag: Flag, made: Operation) -> None:
    made.location = flag.location
    Rewriter().replace_op(flag, made, [])


@dataclass(frozen=True)
class NumberEvents(ModulePass):
    """Renumbers the author's events, so that each pair of pipes uses only the eight events that exist between two pipes."""

    name = "number-events"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for function in [inner for inner in op.walk() if isinstance(inner, func.FuncOp)]:
            pairs: dict[tuple[str, ...], list[Flag]] = defaultdict(list)
            for flag in function.walk():
                if isinstance(flag, (hivm.SetFlagOp, hivm.WaitFlagOp)):
                    pairs[flag.pipes()].append(flag)
            for flags in pairs.values():
                if any(found.start >= hivm.EVENT_IDS for found in (_possible_numbers(flag, ranges) for flag in flags)):
                    _renumber(flags, ranges)
