"""Where a kernel's buffers lie and when they are alive: what ``kernel.memory_report()`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from tilelang_npu import target as chips
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import Placed, remark_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.display import Report
from tilelang_npu.errors import Location, TileError
from tilelang_npu.target import name_of
from tilelang_npu.transforms.ir.cores import kernel_of

LEGIBLE = 0.03
"""Share of a memory from which on a box of the picture has room for its name."""

__all__ = ["BufferUse", "MemoryReport", "MemoryUse", "memory_report"]


@dataclass(frozen=True)
class BufferUse:
    """A buffer in a memory.

    Attributes:
        name: the user's name; ``scratch`` for a temporary that an op needs.
        nbytes: bytes of one copy.
        addresses: of each copy, which the iterations of its loop take in turn.
        line: where it is allocated.
        first, last: lines between which it is alive; to the end of its loop where the iterations run into each other.
        span: the same as positions in the program, for the picture.
    """

    name: str
    nbytes: int
    addresses: tuple[int, ...]
    line: Location | None
    first: int
    last: int
    span: tuple[int, int]


@dataclass(frozen=True)
class MemoryUse:
    """A memory of one core.

    Attributes:
        name: ``UB``, ``L1``, ``L0A``, ``L0B`` or ``L0C``.
        core: ``AIC`` or ``AIV``.
        kernel: the launch that it is of, where a kernel has several: ``NAME_1`` and so on; else the kernel's name.
        room: bytes that can be given out.
        used: bytes up to the end of the last buffer.
        alive: bytes that hold values at the same time at most, in this plan. Where an operation writes its result over what it
            reads for the last time, both are the same bytes.
        buffers: by address.
    """

    name: str
    core: str
    kernel: str
    room: int
    used: int
    alive: int
    buffers: tuple[BufferUse, ...]


@dataclass(frozen=True)
class MemoryReport(Report):
    """The memories on chip that a kernel's buffers take.

    Attributes:
        kernel: its name.
        chip: the chip that it was planned for.
        memories: core by core. L0A and L0B are in it where the author allocated them: those of a multiplication are its own.
    """

    kernel: str
    chip: str
    memories: tuple[MemoryUse, ...]

    def __str__(self) -> str:
        lines = [f"{self.kernel} on {self.chip}: buffers on chip, by address; alive from line to line"]
        for memory in self.memories:
            lines.append(f"{memory.name} of {memory.core}{self.launch_of(memory)}: {_spaced(memory.used)} of "
                         f"{_spaced(memory.room)} bytes, {_spaced(memory.alive)} alive together at most")
            rows = [(_spaced(address), _spaced(buffer.nbytes), buffer.name + _turn(buffer, slot), _line(buffer.line),
                     f"alive {buffer.first}..{buffer.last}")
                    for address, slot, buffer in sorted(((address, slot, buffer) for buffer in memory.buffers
                                                         for slot, address in enumerate(buffer.addresses)),
                                                        key=lambda row: (row[0], row[2].span))]
            widths = [max(len(row[column]) for row in rows) for column in range(5)]
            lines += [f"  {row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]:<{widths[3]}}  {row[4]}"
                      for row in rows]
        return "\n".join(lines)

    def launch_of(self, memory: MemoryUse) -> str:
        """Which launch a memory is of, in words; empty where there is but one."""
        return f" in {memory.kernel}" if memory.kernel != self.kernel else ""

    def plot(self, memory: str | None = None, axes: Any = None) -> Any:
        """A memory as a matplotlib picture: address upwards, the program from left to right, a box per copy of a buffer.

        Args:
            memory: its name; None takes the one that is fullest.
            axes: the axes to draw in; None makes a figure.

        Returns:
            The axes.

        Raises:
            TileError: T412 matplotlib is not installed (``pip install 'tilelang-npu[viz]'``), or no buffer is in that memory.
        """
        fullest = sorted(self.memories, key=lambda one: one.used / one.room, reverse=True)
        chosen = next((one for one in fullest if memory in (None, one.name)), None)
        if chosen is None:
            names = ", ".join(dict.fromkeys(one.name for one in self.memories)) or "no memory"
            raise TileError(f"{self.kernel} has no buffer in {memory}", code="T412", help=f"there are some in {names}")
        try:
            from matplotlib import pyplot
        except ImportError:
            raise TileError("a picture needs matplotlib", code="T412", help="pip install 'tilelang-npu[viz]'") from None
        if axes is None:
            _, axes = pyplot.subplots(figsize=(10, 5), layout="constrained")
        for number, buffer in enumerate(chosen.buffers):
            start, end = buffer.span
            for slot, address in enumerate(buffer.addresses):
                axes.bar(start, buffer.nbytes, width=end + 1 - start, bottom=address, align="edge", edgecolor="white",
                         color=f"C{number % 10}")
                if buffer.nbytes > LEGIBLE * chosen.used:
                    axes.text((start + end + 1) / 2, address + buffer.nbytes / 2, buffer.name + _turn(buffer, slot),
                              ha="center", va="center", fontsize="small")
        begins = {buffer.span[0]: str(buffer.first) for buffer in sorted(chosen.buffers, key=lambda one: one.nbytes)}
        axes.set_xticks(sorted(begins), [begins[place] for place in sorted(begins)], rotation=90)
        axes.set_xlabel("line of the kernel")
        axes.set_ylabel("bytes")
        axes.set_title(f"{chosen.kernel}, {chosen.name} of {chosen.core}, {chosen.used} of {chosen.room} bytes", loc="left")
        return axes


def memory_report(name: str, chip: str, final: ModuleOp) -> MemoryReport:
    """The report of a kernel.

    Args:
        name: its name.
        chip: the chip's.
        final: the kernel's text that runs, with the planner's remarks on its addresses.
    """
    memories = []
    for function in final.walk():
        if isinstance(function, func.FuncOp):
            spaces: dict[str, list[tuple[hivm.PointerCastOp, Placed]]] = {}
            for op in function.walk():
                said = remark_of(op) if isinstance(op, hivm.PointerCastOp) else None
                if isinstance(op, hivm.PointerCastOp) and said is not None and isinstance(said.facts, Placed):
                    spaces.setdefault(said.facts.space, []).append((op, said.facts))
            memories += [_memory(function, space, spaces[space]) for space in chips.chip(chip).memory if space in spaces]
    return MemoryReport(name, chip, tuple(memories))


def _memory(function: func.FuncOp, space: str, placed: Sequence[tuple[hivm.PointerCastOp, Placed]]) -> MemoryUse:
    copies: dict[int, dict[int, tuple[hivm.PointerCastOp, Placed]]] = {}
    for op, facts in placed:
        copies.setdefault(facts.number, {})[facts.slot] = op, facts
    found = []
    for slots in copies.values():
        op, facts = next(iter(slots.values()))
        addresses = tuple(_address(slots[slot][0]) for slot in sorted(slots))
        found.append(BufferUse(facts.name, facts.nbytes, addresses, location_of(op), *facts.lines, facts.span))
    buffers = sorted(found, key=lambda one: (one.addresses, one.span))
    used = max(address + one.nbytes for one in buffers for address in one.addresses)
    alive = max(_held(buffers, at) for at in {one.span[0] for one in buffers})
    kind = function.attributes.get("hivm.func_core_type")
    core = kind.data if isinstance(kind, hivm.FuncCoreTypeAttr) else "AIV" if space == "ub" else "AIC"
    return MemoryUse(name_of(space), core, author_name(kernel_of(function)), placed[0][1].room, used, alive, tuple(buffers))


def _address(op: hivm.PointerCastOp) -> int:
    constant = op.addrs[0].owner
    assert isinstance(constant, arith.ConstantOp) and isinstance(constant.value, IntegerAttr)
    address: int = constant.value.value.data
    return address


def _held(buffers: Sequence[BufferUse], at: int) -> int:
    """Bytes that hold a value at a position."""
    ranges = sorted((address, address + one.nbytes) for one in buffers if one.span[0] <= at <= one.span[1]
                    for address in one.addresses)
    total = reached = 0
    for start, end in ranges:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _turn(buffer: BufferUse, slot: int) -> str:
    return f" (slot {slot})" if len(buffer.addresses) > 1 else ""


def _line(where: Location | None) -> str:
    return f"line {where.line}" if where is not None else ""


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")
