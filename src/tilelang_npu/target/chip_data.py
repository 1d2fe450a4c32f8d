"""What a chip is described by: sizes in bytes, rates in bytes per cycle and per core, times in cycles unless a name says else.

The tables (``a2``, ``a3``, ``a5``) hold numbers only; each carries the key of its source (the list stands in ``a2``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB
MHz = 1_000_000
TB = 1_000_000_000_000

GM = "gm"
"""HIVM's address space of the memory that is no row: all cores share it."""
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
"""The pipes that a core of any kind may have."""


class _Table:
    """What a chip is made of. Mappings in it cannot be changed, and pickle knows no such ones by itself."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            vars(self)[name] = MappingProxyType(value) if isinstance(value, dict) else value


@dataclass(frozen=True, kw_only=True)
class Memory(_Table):
    """One on-chip memory of one core.

    Attributes:
        core: the kind of core that has it, ``AIC`` or ``AIV``.
        spoken: what people call it.
        size: capacity in bytes.
        align: bytes that an address must be a multiple of.
        starts: bytes that AscendNPU-IR lets buffers start at a multiple of.
        block: bytes that a move or a vector instruction takes at once, and starts at a multiple of; 0 where all go by matrices
            or tables.
        fractal: whether matrices lie in it by fractals, and not by rows.
        reserved: bytes at the end that the planner of the ascendc branch leaves free; that of AscendNPU-IR plans all.
    """

    core: str
    spoken: str
    size: int
    align: int
    starts: int
    block: int = 0
    fractal: bool = False
    reserved: int = 0


@dataclass(frozen=True, kw_only=True)
class Move(_Table):
    """Cycles of one data movement between two memories.

    A lone move of ``b`` bytes takes ``max(floor, fixed + max(b / rate, rows * row), b / sustained)`` cycles from start to
    arrival. Its pipe takes the next move earlier, after ``max(issue, rows * row, b / sustained)`` cycles: requests are in
    flight side by side, but at most ``flight`` bytes of them.

    Attributes:
        fixed: latency of the first byte.
        rate: bytes per cycle behind the latency.
        floor: least cycles of a lone move.
        sustained: bytes per cycle of long moves and of many moves in a row.
        issue: least cycles between the starts of two moves of the pipe.
        row: cycles that each contiguous run of the strided side takes at least.
        flight: bytes that may be in flight at once; 0 where that is no limit.
        source: where the numbers are from.
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
    """A way from one memory to another.

    Attributes:
        source: where the data come from, by HIVM address space, or ``gm``.
        target: where they go.
        pipe: the pipe that moves them.
        core: the kind of core whose pipe it is.
        move: how long it takes, and the source of these numbers (from GM: what L2 does not hold); None where a unit copies, at
            its own rate.
        near: how long from GM what L2 holds takes; None where that is not known to differ.
        spread: bytes that L2 could have served meanwhile by rows, for each that goes this way.
        layout: how the matrix is laid out anew on the way (``nd2nz``, ``nz2nd``); empty where it stays as it is.
        ops: the ops of HIVM that go this way alone, the one that the compiler takes first; empty where HIVM has none for it.
        converts: the element types (MLIR spelling) that change on the way, and what HIVM calls that.
        widest: bits of the widest element that goes this way.
        rows, run: what the rows of a matrix, and the bytes of one, are a multiple of where it goes this way.
        name: ``gm_l1_nd2nz``: what people call both memories, and the layout. ``table`` gives it.
    """

    source: str
    target: str
    pipe: str
    core: str
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
    """Paths by their names, between these memories and GM; of two of one name the last counts."""
    def called(path: Path) -> str:
        ends = (memory[end].spoken.lower() if end in memory else end for end in (path.source, path.target))
        return "_".join((*ends, path.layout) if path.layout else ends)

    return MappingProxyType({called(path): replace(path, name=called(path)) for path in paths})


@dataclass(frozen=True)
class Unit(_Table):
    """What computes on a core, and which memories it reaches.

    Attributes:
        pipe: the pipe that feeds it.
        core: the kind of core that has it.
        operands: by operand the memories that may hold it; ``""`` stands for all that are not named.
        fills: the memories that it can fill with a number.
    """

    pipe: str
    core: str
    operands: Mapping[str, tuple[str, ...]]
    fills: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class VectorRate(_Table):
    """Cycles of one vector instruction of R repeats (256 bytes each).

    Back to back: ``max(issue, slope * R)``. Until its result can be used: ``fixed + slope * R``.

    Attributes:
        slope16: cycles per repeat for elements of 16 bits and less.
        slope32: cycles per repeat for elements of 32 bits and more.
        fixed: cycles of an empty pipe, from issue to the last write.
        issue: least cycles between two instructions.
        banked: whether the slope doubles when both sources lie in the same groups of UB banks.
    """

    slope16: float
    slope32: float
    fixed: float
    issue: float = 3.0
    banked: bool = False


@dataclass(frozen=True, kw_only=True)
class Banks(_Table):
    """How UB addresses map to banks: ``group = address // width % groups``; two reads of one group in a cycle conflict."""

    groups: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Cube(_Table):
    """The matrix unit.

    Attributes:
        m: rows of a fractal, also its columns.
        k_step: depth that one cycle multiplies, by element type (MLIR spelling; ``hf32`` for f32 operands in HF32 mode).
        overhead: cycles added to each MMAD in a stream of them.
        latency: cycles added to a lone MMAD until its result can be used.
        burst: cycles that MTE1 is busy with each L1 to L0 load besides its bytes.
    """

    m: int
    k_step: Mapping[str, int]
    overhead: float
    latency: float
    burst: float


@dataclass(frozen=True, kw_only=True)
class ScalarUnit(_Table):
    """The scalar unit: cycles of an arithmetic instruction, a load, a store, and of handing one instruction to a pipe."""

    alu: float
    load: float
    store: float
    issue: float


@dataclass(frozen=True, kw_only=True)
class Sync(_Table):
    """Events and flags.

    Attributes:
        event_ids: events of each ordered pair of pipes.
        flag_ids: cross-core flags of each direction.
        user_flag_ids: those of them that a kernel may use.
        flag_limit: sets that may be outstanding on one flag.
        event: cycles from a pipe's drain to the release of the waiting pipe.
        barrier: cycles of a barrier behind the drain.
        handoff: cycles from a cross-core set to its wait's release.
        flag: cycles that a cross-core set takes of its pipe, until it has left the core.
        queue: instructions that wait in front of each pipe.
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
    """What all cores together get from global memory, in bytes per second.

    Attributes:
        hbm_read: what L2 does not hold.
        hbm_write: what is written for the first time (the L2 takes part of it).
        l2_read, l2_write: what L2 holds, where it is only read, or only written.
        l2: the same, read and written at the same time.
        line: bytes of an L2 line, which is what comes from HBM.
        sector: bytes that requests to L2 are multiples of. A run that starts at none of them takes whole lines, which its
            neighbours fetch again.
        same_line: seconds that L2 takes for an addition to a line, for which the next to the same line waits.
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
        """The rate of L2 where that share of its bytes is read and the rest written."""
        return min(self.l2, self.l2_read / max(reads, 1e-9), self.l2_write / max(1.0 - reads, 1e-9))


@dataclass(frozen=True, kw_only=True)
class LaunchTimes(_Table):
    """Microseconds around a kernel: its start and end with one core, what cold cores wait for (instructions, page
    tables), each further core that takes part, of either kind, and the next block on a core."""

    kernel_us: float
    cold_us: float
    core_us: float
    block_us: float


@dataclass(frozen=True, kw_only=True)
class Chip(_Table):
    """One chip (of an A3 package: one of its two dies, which is what a device id names).

    Attributes:
        name: as CANN writes it, e.g. ``Ascend910B2``.
        family: ``A2``, ``A3`` or ``A5``.
        aliases: other spellings of the same table, without the prefix.
        hivm_target: the name AscendNPU-IR knows it by (``hacc.target``).
        aic, aiv: Cube and Vector cores; a block of a mixed kernel takes one AIC and ``aiv // aic`` AIVs.
        clock: cycles per second.
        hbm, l2: bytes.
        memory: on-chip memories by HIVM address space (``ub``, ``cbuf``, ``ca``, ``cb``, ``cc``) and ``bt``, ``fb``.
        paths: the ways between memories by name, ``gm_ub``, ``gm_l1_nd2nz``, ``l1_l0a``, …: what is no row does not exist.
        units: what computes, beside the scalar units, which reach all memories of their core and GM.
        vector: rates by cost key, the ``cost`` of the op tables.
        estimates: figures that nobody published for the chip, by their keys (``traffic.hbm_read``, ``scalar``): taken from
            another one, or reckoned.
        file: where a user described it; empty for those of this package.
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
        """Vector cores beside each Cube core."""
        return self.aiv // self.aic

    @cached_property
    def moves(self) -> Mapping[str, Move]:
        """How long data movements take, by the name of the path."""
        return MappingProxyType({name: path.move for name, path in self.paths.items() if path.move is not None})

    @cached_property
    def pipes(self) -> Mapping[str, tuple[str, ...]]:
        """The pipes of each kind of core."""
        rows = {("S", core) for core in ("AIC", "AIV")}
        rows |= {(path.pipe, path.core) for path in self.paths.values()} | {(unit.pipe, unit.core) for unit in self.units}
        return MappingProxyType({core: tuple(pipe for pipe in PIPES if (pipe, core) in rows) for core in ("AIC", "AIV")})

    def memories(self, core: str) -> tuple[str, ...]:
        """The on-chip memories of a kind of core."""
        return tuple(name for name, memory in self.memory.items() if memory.core == core)

    def paths_of(self, pipe: str, core: str) -> tuple[Path, ...]:
        """The ways that a pipe of a kind of core moves data."""
        return tuple(path for path in self.paths.values() if (path.pipe, path.core) == (pipe, core))

    @cached_property
    def ways(self) -> Mapping[tuple[str, str], Path]:
        """The path that the compiler takes from one memory to another one, where HIVM has an op for it.

        Of several, the one that leaves a matrix as its destination holds matrices: by rows or by fractals.
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
        """Whether a path leads from a memory of one core to one of another core."""
        return len({self.memory[end].core for end in (path.source, path.target) if end in self.memory}) > 1

    def through(self, pipe: str, *operands: str) -> frozenset[str]:
        """The on-chip memories that some operands of a unit pass through, those that hold them included."""
        held = {space for unit in self.units if unit.pipe == pipe for name in operands for space in unit.operands.get(name, ())}
        return frozenset(held | {path.source for path in self.paths.values() if path.target in held} - {GM})

    def converts(self, path: Path) -> bool:
        """Whether an element type can change on a path: on the way itself, or at an end where the Vector unit works."""
        vector = {space for unit in self.units if unit.pipe == "V" for spaces in unit.operands.values() for space in spaces}
        return bool(path.converts) or not vector.isdisjoint((path.source, path.target))

    def microseconds(self, cycles: float) -> float:
        """How long so many cycles take."""
        return cycles / self.clock * 1e6

    def peak_flops(self, element: str) -> float:
        """Operations per second of all Cube cores on operands of that type (MLIR spelling): 2 per multiply-add."""
        return 2.0 * self.cube.m * self.cube.m * self.cube.k_step[element] * self.aic * self.clock
