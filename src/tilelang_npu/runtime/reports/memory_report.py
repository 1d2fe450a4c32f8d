"""``kernel.memory_report()``: reports the addresses and live ranges of a kernel's on-chip buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from tilelang_npu import target as chips
from tilelang_npu.analysis.cores import kernel_of
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import Placed, remark_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.display import Report
from tilelang_npu.errors import Location, TileError
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import BufferSpace, FunctionCore, Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELLED = 0.03
"""The smallest share of a memory for which a box of the picture has room for the buffer's name."""


@dataclass(frozen=True)
class BufferUse:
    """A buffer in an on-chip memory.

    Attributes:
        name: the buffer's name in the source; ``scratch`` for a temporary buffer that an op needs.
        nbytes: the bytes of one slot of the multi-buffer, or of the whole buffer if it is not multi-buffered.
        addresses: the address of each slot, in bytes.
        line: the source location of the allocation.
        first, last: the first and the last source line of the live range. If iterations of a loop overlap, the live range
            extends to the end of the loop.
        span: the first and the last position of the live range in the program, as numbers of operations.
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
    """The use of an on-chip memory of one kind of core.

    Attributes:
        name: the memory: ``UB``, ``L1``, ``L0A``, ``L0B`` or ``L0C``.
        core: the kind of core: ``AIC`` (Cube) or ``AIV`` (Vector).
        kernel: the name of the launch (``NAME_1`` and so on) if the kernel has several ``T.Kernel``; else the kernel's name.
        room: the number of bytes that can be allocated.
        used: the number of bytes from address 0 to the end of the last buffer.
        alive: the largest number of bytes that are live at the same time. If an operation writes its result over an operand
            whose last use it is, the bytes count once.
        buffers: the buffers in the memory, in the order of their addresses.
    """

    name: str
    core: FunctionCore
    kernel: str
    room: int
    used: int
    alive: int
    buffers: tuple[BufferUse, ...]


@dataclass(frozen=True)
class MemoryReport(Report):
    """The memory report of a kernel: the buffers in its on-chip memories. It prints as tables.

    Attributes:
        kernel: the kernel's name.
        chip: the name of the chip for which the addresses were planned.
        memories: the memories with buffers, for one kind of core after the other. L0A and L0B are listed only if the author
            allocates buffers in them, because a matrix product manages these memories itself.
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
        """Returns the text `` in LAUNCH`` for a memory of a kernel with several ``T.Kernel``; else an empty string."""
        return f" in {memory.kernel}" if memory.kernel != self.kernel else ""

    def plot(self, memory: str | None = None, axes: Axes | None = None) -> Axes:
        """Draws the buffers of a memory with matplotlib, with a box for each slot of a buffer.

        The y axis is the address, and the x axis is the position in the program: a box covers the buffer's bytes and live
        range.

        Args:
            memory: the name of the memory, such as ``UB``; None for the memory of which the largest share is used.
            axes: the matplotlib axes to draw in; None for those of a new figure.

        Returns:
            The axes.

        Raises:
            TileError: T412 matplotlib is not installed (``pip install 'tilelang-npu[viz]'``), or the memory has no buffers.
        """
        fullest = sorted(self.memories, key=lambda one: one.used / one.room, reverse=True)
        chosen = next((one for one in fullest if memory in (None, one.name)), None)
        if chosen is None:
            names = ", ".join(dict.fromkeys(one.name for one in self.memories)) or "no memory"
            raise TileError(f"{self.kernel} has no buffer in {memory}", code="T412", help=f"it has buffers in {names}")
        try:
            from matplotlib import pyplot
        except ImportError:
            raise TileError("plot needs the package matplotlib, which is not installed", code="T412",
                            help="pip install 'tilelang-npu[viz]'") from None
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
    """Returns the memory report of a kernel.

    Args:
        name: the kernel's name.
        chip: the name of the chip for which the kernel is compiled.
        final: the kernel's module after the last stage, with the remarks of the pass ``plan-memory`` on the addresses.
    """
    memories = []
    for function in final.walk():
        if isinstance(function, func.FuncOp):
            spaces: dict[BufferSpace, list[tuple[hivm.PointerCastOp, Placed]]] = {}
            for op in function.walk():
                if (isinstance(op, hivm.PointerCastOp) and (remark := remark_of(op)) is not None
                        and isinstance(remark.facts, Placed)):
                    spaces.setdefault(remark.facts.space, []).append((op, remark.facts))
            memories += [_memory(function, space, spaces[space]) for space in chips.chip(chip).memory if space in spaces]
    return MemoryReport(name, chip, tuple(memories))


def _memory(function: func.FuncOp, space: Space, placed: Sequence[tuple[hivm.PointerCastOp, Placed]]) -> MemoryUse:
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
    core: FunctionCore = kind.short if isinstance(kind, hivm.FuncCoreTypeAttr) else "AIV" if space == "ub" else "AIC"
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
