"""Facts of each source line of a kernel: the buffers that it accesses, with types, memories and bytes, and its modelled time.

An editor shows them at the line (``tilelang-npu language-server``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import BlockArgument, SSAValue

from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import DONE, Scoped, module_remarks
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.runtime.reports.memory_report import BufferUse, memory_report
from tilelang_npu.target import name_of

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch

_Line = tuple[str, int]
"""The file and the number of a source line."""


@dataclass(frozen=True)
class LineBuffer:
    """A buffer or a tensor that a source line allocates or accesses.

    Attributes:
        name: the name in the source.
        dtype: the element type, such as ``float16``.
        shape: the size of each axis as text: a number, or the name of a symbolic dimension.
        memory: the memories of the buffer, such as ``UB``; ``GM`` for a tensor; empty if the compiler removed the buffer.
        nbytes: the bytes of the whole buffer; None if a size is only known at run time.
        slots: the number of slots of a multi-buffer; 1 for other buffers.
        reads: whether the line reads the buffer.
        writes: whether the line writes the buffer.
        accessed: the bytes that one execution of the line accesses, at most; None if it accesses none, or they are only known
            at run time.
    """

    name: str
    dtype: str
    shape: tuple[str, ...]
    memory: str
    nbytes: int | None
    slots: int = 1
    reads: bool = False
    writes: bool = False
    accessed: int | None = None

    def __str__(self) -> str:
        size = "" if self.nbytes is None else f", {self.nbytes:,} B"
        slots = f", {self.slots} slots" if self.slots > 1 else ""
        verbs = " and ".join([*["reads"] * self.reads, *["writes"] * self.writes])
        access = f"; {verbs}" + (f" {self.accessed:,} B" if self.accessed is not None else "") if verbs else ""
        memory = f" in {self.memory}" if self.memory else " (removed by the compiler)"
        return f"{self.name}: {self.dtype}[{', '.join(self.shape)}]{memory}{size}{slots}{access}"


@dataclass(frozen=True)
class SourceLineFacts:
    """The facts of a source line of a kernel.

    Attributes:
        file, line: the source line.
        kernel: the name of the kernel.
        buffers: the buffers that the line allocates or accesses.
        us: the microseconds of the critical path that belong to the line; None if no launch was timed.
        total: the microseconds of the launch; None if no launch was timed.
        work: the microseconds in which pipes work for the line, averaged over the cores in use, by core and pipe (``AIV V``).
    """

    file: str
    line: int
    kernel: str
    buffers: tuple[LineBuffer, ...]
    us: float | None = None
    total: float | None = None
    work: Mapping[str, float] = field(default_factory=dict)

    def markdown(self) -> str:
        """Returns the facts as Markdown, for an editor."""
        rows = [f"- `{buffer}`" for buffer in self.buffers]
        if self.us is not None and self.total and (self.us or self.work):
            work = ", ".join(f"{pipe} {us:.2f} us" for pipe, us in self.work.items())
            rows.append(f"- {self.us:.2f} us of the critical path of {self.total:.2f} us ({self.us / self.total:.0%}), modelled"
                        + (f"; busy: {work}" if work else ""))
        return "\n".join([f"**{self.kernel}**", "", *rows])


def line_facts(kernel: CompiledKernel, launch: AnyLaunch | None) -> tuple[SourceLineFacts, ...]:
    """Returns the facts of each source line of a kernel that accesses or allocates a buffer, or takes time.

    Args:
        kernel: the kernel.
        launch: a launch of the kernel, for the times; None for facts without times.
    """
    buffers: dict[_Line, dict[str, LineBuffer]] = {}
    for place, buffer in _accesses(kernel):
        known = buffers.setdefault((place.file, place.line), {})
        known[buffer.name] = _joined(known[buffer.name], buffer) if buffer.name in known else buffer
    times, total = _times(launch)
    found = []
    for file, line in sorted({*buffers, *times}):
        us, work = times.get((file, line), (0.0, {}))
        found.append(SourceLineFacts(file, line, kernel.name, tuple(buffers.get((file, line), {}).values()),
                               us if total is not None else None, total, work))
    return tuple(found)


def _times(launch: AnyLaunch | None) -> tuple[dict[_Line, tuple[float, Mapping[str, float]]], float | None]:
    """Returns for each line the microseconds of the critical path and of work by pipe, and the microseconds of the launch."""
    if launch is None:
        return {}, None
    profile = launch.profile()
    return {(one.place.file, one.place.line): (one.us, {f"{core} {pipe}": us for (core, pipe), us in sorted(one.work.items())})
            for one in profile.lines if one.place is not None}, profile.time_us


def _joined(one: LineBuffer, other: LineBuffer) -> LineBuffer:
    """Returns a buffer with two accesses of one line."""
    known = [each.accessed for each in (one, other) if each.accessed is not None]
    return LineBuffer(one.name, one.dtype, one.shape, one.memory, one.nbytes, one.slots, one.reads or other.reads,
                      one.writes or other.writes, max(known, default=None))


def _accesses(kernel: CompiledKernel) -> Iterator[tuple[Location, LineBuffer]]:
    """Yields each allocation and each access of the author's statements, with the source line."""
    lowering = kernel._lowering
    memories: dict[tuple[str, Location | None], list[str]] = {}
    for remark in module_remarks(lowering.final):
        if isinstance(remark.facts, Scoped) and remark.kind == DONE:
            memories.setdefault((remark.facts.label, remark.place), []).extend(
                "GM" if space == "gm" else name_of(space) for space in remark.facts.spaces)
    planned = {(buffer.name, buffer.line): buffer
               for memory in memory_report(kernel.name, kernel.chip.name, lowering.final).memories for buffer in memory.buffers}
    for op in lowering.traced.module.walk():
        place = location_of(op)
        if place is None:
            continue
        if isinstance(op, tile.AllocOp):
            yield place, _allocated(op, memories, planned)
        elif not isinstance(op, (tile.RegionOp, tile.ViewOp)) and not op.regions:
            for effect in effects_of(op):
                buffer = _buffer_of(kernel, root_of(effect.value), memories, planned)
                if buffer is not None and (effect.reads or effect.writes):
                    single = effect.role == "scalar"
                    yield place, LineBuffer(buffer.name, buffer.dtype, buffer.shape, buffer.memory, buffer.nbytes, buffer.slots,
                                            effect.reads, effect.writes, _bytes_of(effect.value, single=single))


def _buffer_of(kernel: CompiledKernel, root: SSAValue, memories: Mapping[tuple[str, Location | None], Iterable[str]],
               planned: Mapping[tuple[str, Location | None], BufferUse]) -> LineBuffer | None:
    """Returns the buffer or the tensor that is the root of a view; None if the author has no name for it."""
    if isinstance(root.owner, tile.AllocOp):
        return _allocated(root.owner, memories, planned)
    if not isinstance(root, BlockArgument) or not isinstance(root.block.parent_op(), func.FuncOp):
        return None
    parameter = kernel.params[root.index]
    if parameter.shape is None:
        return None
    return LineBuffer(parameter.name, str(parameter.dtype), tuple(map(str, parameter.shape)), "GM", _bytes_of(root))


def _allocated(op: tile.AllocOp, memories: Mapping[tuple[str, Location | None], Iterable[str]],
               planned: Mapping[tuple[str, Location | None], BufferUse]) -> LineBuffer:
    key = op.label.data, location_of(op)
    kind = op.result.type
    assert isinstance(kind, MemRefType)
    stated = space_of(op.result)
    given = [] if stated in ("shared", "fragment", "local") else ["GM" if stated == "gm" else name_of(stated)]
    found = list(dict.fromkeys(memories.get(key, given)))
    slots = len(planned[key].addresses) if key in planned else 1
    return LineBuffer(op.label.data, str(dtype_of(kind.element_type)), tuple(map(str, kind.get_shape())), ", ".join(found),
                      _bytes_of(op.result), slots)


def _bytes_of(value: SSAValue, *, single: bool = False) -> int | None:
    """Returns the bytes of a memref value, or of a single element of it; None if a size is only known at run time."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    nbytes: int = dtype_of(kind.element_type).nbytes
    for length in () if single else kind.get_shape():
        if length == DYNAMIC_INDEX:
            return None
        nbytes *= length
    return nbytes


__all__ = ["LineBuffer", "SourceLineFacts", "line_facts"]
