"""The tables that describe a chip.

Sizes are in bytes, rates in bytes per cycle and core, and times in cycles, unless a name says otherwise. The
modules ``a2``, ``a3`` and ``a5`` hold the numbers, each with the key of its source; ``a2`` lists the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB
MHz = 1_000_000
TB = 1_000_000_000_000

GM = "gm"
"""HIVM's address space of global memory, which all cores share and which has no row in the tables."""
Pipe = Literal["S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"]
CoreKind = Literal["AIC", "AIV"]
"""The kinds of cores: Cube and Vector."""
PIPES: tuple[Pipe, ...] = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
"""The pipes that cores can have."""


class _Table:
    """Base of the tables. Their mappings are read-only proxies, which pickle cannot serialise by itself."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            vars(self)[name] = MappingProxyType(value) if isinstance(value, dict) else value


@dataclass(frozen=True, kw_only=True)
class Memory(_Table):
    """An on-chip memory of a core.

    Attributes:
        core: the kind of core that has it, ``AIC`` or ``AIV``.
        common_name: its common name.
        size: capacity in bytes.
        align: the alignment of an address in bytes.
        starts: the alignment of buffers in AscendNPU-IR, in bytes.
        block: the granularity and alignment of moves and vector instructions, in bytes; 0 where instructions work on whole
            matrices or tables.
        fractal: whether matrices are stored in fractal layout, and not by rows.
        reserved: bytes at the end that the planner of the ascendc branch leaves free; AscendNPU-IR's planner uses all.
    """

    core: CoreKind
    common_name: str
    size: int
    align: int
    starts: int
    block: int = 0
    fractal: bool = False
    reserved: int = 0


@dataclass(frozen=True, kw_only=True)
class Move(_Table):
    """The cycles of a data movement between two memories.

    A lone move of ``b`` bytes takes ``max(floor, fixed + max(b / rate, rows * row), b / sustained)`` cycles from start to
    arrival. Its pipe starts the next move earlier, after ``max(issue, rows * row, b / sustained)`` cycles: several requests are
    in flight at once, but at most ``flight`` bytes of them.

    Attributes:
        fixed: latency of the first byte.
        rate: bytes per cycle after the latency.
        floor: minimum cycles of a lone move.
        sustained: bytes per cycle of long moves and of many consecutive moves.
        issue: minimum cycles between the starts of two moves of the pipe.
        row: minimum cycles of each contiguous run of the strided side.
        flight: maximum bytes in flight; 0 where there is no limit.
        source: the source of the numbers.
    """

    fixed: float
    rate: float
    floor: float = 0.0
    sustained: float
    issue: float = 1.0
    row: float = 0.0
    flight: float = 0.0
    source: str


@dataclass(frozen=True)
class Path(_Table):
    """A data path from one memory to another.

    Attributes:
        source: the memory that the data come from, by HIVM address space.
        target: the memory that the data go to.
        pipe: the pipe that moves the data.
        core: the kind of core that has the pipe.
        move: the cycles (from GM: of an L2 miss) and the source of the numbers; None where a unit copies at its own rate.
        near: the cycles of an L2 hit; None where they are not known to differ.
        spread: the bytes that L2 could serve by rows in the time of one byte on this path.
        layout: the layout change on the path (``nd2nz``, ``nz2nd``); empty for none.
        ops: the ops of HIVM that use only this path, first the one that the compiler uses; empty where HIVM has none.
        converts: the pairs of element types (MLIR spelling) that the path converts, each with HIVM's name of the conversion.
        widest: the width of the widest element that the path moves, in bits.
        rows, run: the granularity of the number of rows of a matrix, and of the bytes of a row.
        name: the common names of both memories, and the layout: ``gm_l1_nd2nz``. :func:`table` sets it.
    """

    source: str
    target: str
    pipe: Pipe
    core: CoreKind
    move: Move | None = None
    layout: str = ""
    ops: tuple[str, ...] = ()
    converts: Mapping[tuple[str, str], str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    widest: int = 64
    rows: int = 1
    run: int = 1
    name: str = ""
    near: Move | None = None
    spread: float = 1.0


def table(memory: Mapping[str, Memory], *paths: Path) -> Mapping[str, Path]:
    """Paths by their names, between these memories and GM; the last of several paths of one name is used."""
    def name_path(path: Path) -> str:
        ends = (memory[end].common_name.lower() if end in memory else end for end in (path.source, path.target))
        return "_".join((*ends, path.layout) if path.layout else ends)

    return MappingProxyType({name_path(path): replace(path, name=name_path(path)) for path in paths})


@dataclass(frozen=True)
class Unit(_Table):
    """A compute unit of a core, and the memories that it accesses.

    Attributes:
        pipe: its pipe.
        core: the kind of core that has it.
        operands: by operand, the memories that can hold it; ``""`` stands for all operands that are not listed.
        fills: the memories that it can fill with a constant.
    """

    pipe: Pipe
    core: CoreKind
    operands: Mapping[str, tuple[str, ...]]
    fills: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class VectorRate(_Table):
    """The cycles of a vector instruction of R repeats (256 bytes each).

    Throughput: ``max(issue, slope * R)``. Latency of the result: ``fixed + slope * R``.

    Attributes:
        slope16: cycles per repeat for elements of 16 bits and less.
        slope32: cycles per repeat for elements of 32 bits and more.
        fixed: cycles of an empty pipe, from issue to the last write.
        issue: minimum cycles between two instructions.
        banked: whether the slope doubles when both sources are in the same groups of UB banks.
    """

    slope16: float
    slope32: float
    fixed: float
    issue: float = 3.0
    banked: bool = False


@dataclass(frozen=True, kw_only=True)
class Banks(_Table):
    """The mapping of UB addresses to banks: ``group = address // width % groups``; two reads of a group in a cycle conflict."""

    groups: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Cube(_Table):
    """The matrix unit.

    Attributes:
        m: number of rows, and of columns, of a fractal.
        k_step: depth that one cycle multiplies, by element type (MLIR spelling; ``hf32`` for f32 operands in HF32 mode).
        overhead: cycles added to each MMAD in a stream of them.
        latency: cycles added to a lone MMAD until its result can be used.
        burst: cycles of MTE1 per L1 to L0 load in addition to those of its bytes.
    """

    m: int
    k_step: Mapping[str, int]
    overhead: float
    latency: float
    burst: float


@dataclass(frozen=True, kw_only=True)
class ScalarUnit(_Table):
    """The scalar unit: cycles of an arithmetic instruction, a load, a store, and of issuing an instruction to a pipe."""

    alu: float
    load: float
    store: float
    issue: float


@dataclass(frozen=True, kw_only=True)
class Sync(_Table):
    """Events and flags.

    Attributes:
        event_ids: number of events of each ordered pair of pipes.
        flag_ids: number of cross-core flags of each direction.
        user_flag_ids: the flags that a kernel may use.
        flag_limit: maximum number of outstanding sets of a flag.
        event: cycles from the end of a pipe's earlier work to the release of the waiting pipe.
        barrier: cycles of a barrier after the end of the earlier work.
        handoff: cycles from a cross-core set to the release of its wait.
        flag: cycles of a cross-core set on its pipe, until it has left the core.
        queue: length of the instruction queue of each pipe.
    """

    event_ids: int
    flag_ids: int
    user_flag_ids: tuple[int, ...]
    flag_limit: int
    event: float
    barrier: float
    handoff: float
    flag: float
    queue: int


@dataclass(frozen=True, kw_only=True)
class Traffic(_Table):
    """The bandwidth of global memory for all cores, in bytes per second.

    Attributes:
        hbm_read: reads that miss L2.
        hbm_write: first writes (L2 absorbs a part of them).
        l2_read, l2_write: L2 hits, if all are reads or all are writes.
        l2: L2 hits, if reads and writes are mixed.
        line: bytes of an L2 line, the unit of transfers from HBM.
        sector: granularity of requests to L2 in bytes. A run that is not aligned to it uses whole lines, which its neighbours
            fetch again.
        same_line: seconds of an atomic addition to a line in L2, during which another addition to the line waits.
    """

    hbm_read: float
    hbm_write: float
    l2_read: float
    l2_write: float
    l2: float
    line: int
    sector: int
    same_line: float

    def l2_at(self, reads: float) -> float:
        """The bandwidth of L2 if ``reads`` of its bytes (a share from 0 to 1) are read and the others written."""
        return min(self.l2, self.l2_read / max(reads, 1e-9), self.l2_write / max(1.0 - reads, 1e-9))


@dataclass(frozen=True, kw_only=True)
class LaunchTimes(_Table):
    """Overheads of a launch in microseconds.

    Attributes:
        kernel_us: start and end of a kernel on one core.
        cold_us: the wait of cold cores for instructions and page tables.
        core_us: each further core of either kind.
        block_us: the start of the next block on a core.
    """

    kernel_us: float
    cold_us: float
    core_us: float
    block_us: float


@dataclass(frozen=True, kw_only=True)
class Chip(_Table):
    """A chip (of an A3 package: one of the two dies, each of which has a device id).

    Attributes:
        name: CANN's name, e.g. ``Ascend910B2``.
        family: ``A2``, ``A3`` or ``A5``.
        aliases: other names, without the prefix.
        hivm_target: AscendNPU-IR's name (``hacc.target``).
        aic, aiv: number of Cube and of Vector cores; a block of a mixed kernel uses one AIC and ``aiv // aic`` AIVs.
        clock: cycles per second.
        hbm, l2: sizes in bytes.
        memory: on-chip memories by HIVM address space (``ub``, ``cbuf``, ``ca``, ``cb``, ``cc``) and ``bt``, ``fb``.
        paths: all paths between memories by name: ``gm_ub``, ``gm_l1_nd2nz``, ``l1_l0a`` ...
        units: the compute units, without the scalar units, which access all memories of their core and GM.
        vector: rates by cost key, the ``cost`` of the op table.
        estimates: keys of figures that are not published for the chip (``traffic.hbm_read``, ``scalar``): those of another
            chip, or estimated.
        file: the file in which a user describes the chip; empty for the chips of this package.
    """

    name: str
    family: str
    aliases: tuple[str, ...] = ()
    hivm_target: str = ""
    aic: int
    aiv: int
    clock: float
    hbm: int
    l2: int
    memory: Mapping[str, Memory]
    banks: Banks
    paths: Mapping[str, Path]
    units: tuple[Unit, ...]
    cube: Cube
    vector: Mapping[str, VectorRate]
    scalar: ScalarUnit
    sync: Sync
    traffic: Traffic
    launch: LaunchTimes
    estimates: tuple[str, ...] = ()
    file: str = ""

    @property
    def aiv_per_aic(self) -> int:
        """Number of Vector cores per Cube core."""
        return self.aiv // self.aic

    @cached_property
    def moves(self) -> Mapping[str, Move]:
        """The cycles of data movements, by the name of the path."""
        return MappingProxyType({name: path.move for name, path in self.paths.items() if path.move is not None})

    @cached_property
    def pipes(self) -> Mapping[str, tuple[Pipe, ...]]:
        """The pipes of each kind of core."""
        rows = {("S", core) for core in ("AIC", "AIV")}
        rows |= {(path.pipe, path.core) for path in self.paths.values()} | {(unit.pipe, unit.core) for unit in self.units}
        return MappingProxyType({core: tuple(pipe for pipe in PIPES if (pipe, core) in rows) for core in ("AIC", "AIV")})

    def memories(self, core: str) -> tuple[str, ...]:
        """The on-chip memories of a kind of core."""
        return tuple(name for name, memory in self.memory.items() if memory.core == core)

    def paths_of(self, pipe: str, core: str) -> tuple[Path, ...]:
        """The paths of a pipe of a kind of core."""
        return tuple(path for path in self.paths.values() if (path.pipe, path.core) == (pipe, core))

    @cached_property
    def ways(self) -> Mapping[tuple[str, str], Path]:
        """The path that the compiler uses between two memories, where HIVM has an op for one.

        Of several paths it is the one whose layout change produces the layout of the destination: rows or fractals.
        """
        found: dict[tuple[str, str], Path] = {}
        for path in self.paths.values():
            ends = path.source, path.target
            if path.ops and (ends not in found or path.layout == self._layout(*ends)):
                found[ends] = path
        return MappingProxyType(found)

    def _layout(self, source: str, target: str) -> str:
        first, second = (end in self.memory and self.memory[end].fractal for end in (source, target))
        return "" if first == second else "nz2nd" if first else "nd2nz"

    def crosses(self, path: Path) -> bool:
        """Whether a path connects memories of different cores."""
        return len({self.memory[end].core for end in (path.source, path.target) if end in self.memory}) > 1

    def through(self, pipe: str, *operands: str) -> frozenset[str]:
        """The on-chip memories that can hold some operands of a unit, and those from which these are filled."""
        held = {space for unit in self.units if unit.pipe == pipe for name in operands for space in unit.operands.get(name, ())}
        return frozenset(held | {path.source for path in self.paths.values() if path.target in held} - {GM})

    def converts(self, path: Path) -> bool:
        """Whether a copy along a path can convert the element type: on the path, or by the Vector unit at one end."""
        vector = {space for unit in self.units if unit.pipe == "V" for spaces in unit.operands.values() for space in spaces}
        return bool(path.converts) or not vector.isdisjoint((path.source, path.target))

    def microseconds(self, cycles: float) -> float:
        """The duration of a number of cycles in microseconds."""
        return cycles / self.clock * 1e6

    def peak_flops(self, element: str) -> float:
        """Peak operations per second of all Cube cores on an element type (MLIR spelling), with 2 per multiply-add."""
        return 2.0 * self.cube.m * self.cube.m * self.cube.k_step[element] * self.aic * self.clock
