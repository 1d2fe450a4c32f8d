"""``kernel.memory_report()``: the addresses and live ranges of a kernel's buffers."""

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

_LABELLED = 0.03
"""The smallest share of a memory for which a box of the picture has room for the buffer's name."""


@dataclass(frozen=True)
class BufferUse:
    """A buffer in a memory.

    Attributes:
        name: the user's name; ``scratch`` for a temporary that an op needs.
        nbytes: bytes of one multi-buffer slot.
        addresses: the address of each slot.
        line: location of the allocation.
        first, last: the lines of the live range; it reaches to the end of its loop if the iterations overlap.
        span: the live range as positions in the program.
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
        kernel: the name of the launch (``NAME_1`` and so on) if the kernel has several; else the kernel's name.
        room: bytes that can be allocated.
        used: bytes up to the end of the last buffer.
        alive: the largest number of bytes that are live at the same time. If an operation writes its result over an operand
            that it reads last, the bytes count once.
        buffers: the buffers, by address.
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
    """The on-chip memories of a kernel.

    Attributes:
        kernel: its name.
        chip: the chip that it was planned for.
        memories: the memories, core by core. L0A and L0B are listed only if the author allocates them: a multiplication
            manages its own.
    """

    kernel: str
    chip: str
    memories: tuple[MemoryUse, ...]

    def __str__(self) -> str:
        lines = [f"{self.kernel} on {self.chip}: buffers on chip, by address; alive from line to line"]
        for memory in self.memories:
            lines.append(f"{memory.name} of {memory.core}{self.launch_of(memory)}: {_spaced(memory.used)} of "
                         f"{_spaced(memory.room)} bytes, {_spaced(memory.alive)} alive together at most")
            rows = [(_spaced(address), _spaced(buffer.nbytes), buffer.name + _slot(buffer, slot), _line(buffer.line),
                     f"alive {buffer.first}..{buffer.last}")
                    for address, slot, buffer in sorted(((address, slot, buffer) for buffer in memory.buffers
                                                         for slot, address in enumerate(buffer.addresses)),
                                                        key=lambda row: (row[0], row[2].span))]
            widths = [max(len(row[column]) for row in rows) for column in range(5)]
            lines += [f"  {row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]:<{widths[3]}}  {row[4]}"
                      for row in rows]
        return "\n".join(lines)

    def launch_of(self, memory: MemoryUse) -> str:
        """Returns the words for a memory's launch; an empty string if the kernel has one launch."""
        return f" in {memory.kernel}" if memory.kernel != self.kernel else ""

    def plot(self, memory: str | None = None, axes: Any = None) -> Any:
        """Draws a memory with matplotlib: addresses upwards, the program from left to right, a box for each slot of a buffer.

        Args:
            memory: its name; None: the fullest memory.
            axes: the axes to draw in; None: those of a new figure.

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
                if buffer.nbytes > _LABELLED * chosen.used:
                    axes.text((start + end + 1) / 2, address + buffer.nbytes / 2, buffer.name + _slot(buffer, slot),
                              ha="center", va="center", fontsize="small")
        begins = {buffer.span[0]: str(buffer.first) for buffer in sorted(chosen.buffers, key=lambda one: one.nbytes)}
        axes.set_xticks(sorted(begins), [begins[place] for place in sorted(begins)], rotation=90)
        axes.set_xlabel("line of the kernel")
        axes.set_ylabel("bytes")
        axes.set_title(f"{chosen.kernel}, {chosen.name} of {chosen.core}, {chosen.used} of {chosen.room} bytes", loc="left")
        return axes


def memory_report(name: str, chip: str, final: ModuleOp) -> MemoryReport:
    """Returns the report of a kernel.

    Args:
        name: its name.
        chip: the chip's name.
        final: the last stage, with the remarks of ``plan-memory`` on its addresses.
    """
    memories = []
    for function in final.walk():
        if isinstance(function, func.FuncOp):
            spaces: dict[str, list[tuple[hivm.PointerCastOp, Placed]]] = {}
            for op in function.walk():
                if (isinstance(op, hivm.PointerCastOp) and (remark := remark_of(op)) is not None
                        and isinstance(remark.facts, Placed)):
                    spaces.setdefault(remark.facts.space, []).append((op, remark.facts))
            memories += [_memory(function, space, spaces[space]) for space in chips.chip(chip).memory if space in spaces]
    return MemoryReport(name, chip, tuple(memories))


def _memory(function: func.FuncOp, space: str, placed: Sequence[tuple[hivm.PointerCastOp, Placed]]) -> MemoryUse:
    by_buffer: dict[int, dict[int, tuple[hivm.PointerCastOp, Placed]]] = {}
    for op, facts in placed:
        by_buffer.setdefault(facts.number, {})[facts.slot] = op, facts
    found = []
    for slots in by_buffer.values():
        op, facts = next(iter(slots.values()))
        addresses = tuple(_address(slots[slot][0]) for slot in sorted(slots))
        found.append(BufferUse(facts.name, facts.nbytes, addresses, location_of(op), *facts.lines, facts.span))
    buffers = sorted(found, key=lambda one: (one.addresses, one.span))
    used = max(address + one.nbytes for one in buffers for address in one.addresses)
    alive = max(_live_bytes(buffers, at) for at in {one.span[0] for one in buffers})
    kind = function.attributes.get("hivm.func_core_type")
    core = kind.data if isinstance(kind, hivm.FuncCoreTypeAttr) else "AIV" if space == "ub" else "AIC"
    return MemoryUse(name_of(space), core, author_name(kernel_of(function)), placed[0][1].room, used, alive, tuple(buffers))


def _address(op: hivm.PointerCastOp) -> int:
    constant = op.addrs[0].owner
    assert isinstance(constant, arith.ConstantOp) and isinstance(constant.value, IntegerAttr)
    address: int = constant.value.value.data
    return address


def _live_bytes(buffers: Sequence[BufferUse], at: int) -> int:
    """Returns the number of bytes that are live at a position."""
    ranges = sorted((address, address + one.nbytes) for one in buffers if one.span[0] <= at <= one.span[1]
                    for address in one.addresses)
    total = reached = 0
    for start, end in ranges:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _slot(buffer: BufferUse, slot: int) -> str:
    return f" (slot {slot})" if len(buffer.addresses) > 1 else ""


def _line(where: Location | None) -> str:
    return f"line {where.line}" if where is not None else ""


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")
