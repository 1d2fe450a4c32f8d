"""The dataclasses that describe a chip: its memories, data paths, compute units, rates, latencies and features.

Sizes are in bytes, rates in bytes per cycle and core, and times in cycles, unless a docstring says otherwise. The modules
``a2``, ``a3`` and ``a5`` fill these classes with numbers and name the source of each number; ``a2`` lists the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB
MHz = 1_000_000
TB = 1_000_000_000_000

Space = Literal["gm", "ub", "cbuf", "ca", "cb", "cc", "bt", "fb", "ssbuf", "zero"]
"""The memories: HIVM's address spaces, and ``bt`` (bias table) and ``fb`` (fixpipe parameters), which HIVM has no name for. No
chip of this package has a memory of the address space ``ssbuf`` or ``zero``, but the text of a module can name them."""
OpenScope = Literal["shared", "fragment", "local"]
"""The scopes that a kernel's author can give to a buffer in place of a memory."""
BufferSpace = Literal[Space, OpenScope]
"""The memory of a buffer; its scope while the compiler has not chosen a memory."""
REPEAT_BYTES: Final = 256
"""The bytes that one repeat of a vector instruction processes (docs/hardware.md#vector-instructions)."""
GM: Final = "gm"
"""The name of HIVM's address space for global memory. All cores share global memory, so no chip has a ``Memory`` row for it."""
Pipe = Literal["S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"]
"""The pipes that a core can have."""
PipeName = Literal[Pipe, "ALL", "MTE4", "MTE5", "V2", "VIRTUAL_PIPE_MTE2_L1A", "VIRTUAL_PIPE_MTE2_L1B", "NUM", "UNASSIGNED"]
"""The names of pipes in HIVM: the pipes, ``ALL`` for all of them, and names of HIVM for which no chip has a pipe."""
CoreKind = Literal["AIC", "AIV"]
"""The kinds of cores: ``AIC`` is a Cube core, ``AIV`` a Vector core."""
UnitFlagUse = Literal["", "keep", "pass", "either", "maybe"]
"""How an operation of pipe M or FIX uses unit flags: not at all; it waits for blocks of L0C, and keeps them, or passes them on
to the other pipe, or an operand says which; or conditions decide whether it uses them."""
OpCore = Literal[CoreKind, "either"]
"""The core of an operation: ``AIC`` (the Cube core), ``AIV`` (the Vector cores), or ``either``."""
FunctionCore = Literal[CoreKind, "MIX", "AIC_OR_AIV"]
"""The cores of a function: ``AIC``, ``AIV``, ``MIX`` for both, or ``AIC_OR_AIV`` for one of either kind."""
CORES: tuple[CoreKind, ...] = ("AIC", "AIV")
PIPES: tuple[Pipe, ...] = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
"""The names of all pipes that a core can have; ``Chip.pipes`` gives those of each kind of core."""


class _Table:
    """Base class that makes the tables picklable: ``MappingProxyType`` fields are pickled as dicts and restored as proxies."""

    def __getstate__(self) -> dict[str, object]:
        return {name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            vars(self)[name] = MappingProxyType(value) if isinstance(value, dict) else value


@dataclass(frozen=True, kw_only=True)
class Memory(_Table):
    """An on-chip memory of a core.

    Attributes:
        core: the kind of core that has the memory, ``AIC`` or ``AIV``.
        common_name: the name of the memory in documentation, such as ``L1``; HIVM's address space is ``cbuf`` there.
        size: capacity in bytes.
        align: the alignment in bytes that the hardware requires of an address.
        starts: the alignment in bytes that AscendNPU-IR's memory planner gives to buffers.
        block: the granularity and alignment of moves and vector instructions, in bytes; 0 where instructions work on whole
            matrices or tables.
        fractal: whether matrices are stored in fractal layout; otherwise they are stored row by row.
        reserved: bytes at the end of the memory that the memory planner of TileLang-Ascend's ``ascendc`` branch leaves free.
            AscendNPU-IR's planner reserves none.
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
    """The constants from which the cycles of a data movement between two memories are computed.

    A lone move of ``b`` bytes takes ``max(floor, fixed + max(b / rate, rows * row), b / sustained)`` cycles from start to
    arrival. The pipe of the move can start its next move earlier, after ``max(issue, rows * row, b / sustained)`` cycles,
    because several moves can be in flight at once. Together they have at most ``flight`` bytes in flight.

    Attributes:
        fixed: latency of the first byte, in cycles.
        rate: bytes per cycle of a lone move after the latency.
        floor: minimum cycles of a lone move.
        sustained: bytes per cycle of long moves and of many consecutive moves.
        issue: minimum cycles between the starts of two moves of the pipe.
        row: minimum cycles of each request to the strided operand; ``rows`` in the formulas is the number of requests, and each
            contiguous run of bytes needs one request or more.
        flight: maximum number of bytes in flight; 0 if there is no limit.
        source: where the numbers were published or how they were calculated.
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
        source: HIVM's address space of the memory that the data come from.
        target: HIVM's address space of the memory that the data go to.
        pipe: the pipe that moves the data.
        core: the kind of core that has the pipe.
        move: the cycles of a transfer; for a path from GM, those of an L2 miss. None if a compute unit copies the data at the
            rate of its own instructions (UB to UB).
        near: the cycles of a transfer that hits L2; None if they are not known to differ from ``move``.
        distances: pairs of a number of bytes and the share, from 0 to 1, of the rate of L2 hits that a transfer gets if its
            rows in GM lie a multiple of this number of bytes apart. The first pair that applies counts. Empty if the rate does
            not depend on the distance of rows.
        layout: the layout change on the path (``nd2nz``, ``nz2nd``); empty for none.
        ops: HIVM's ops that move data on this path and no other. The compiler uses the first one. Empty if HIVM has none.
        converts: the conversions on the path: HIVM's name of the conversion for each pair of source and target element type
            (MLIR spelling).
        widest: the width in bits of the widest element that the path can move.
        splits: the number of Vector cores among which one op can divide the rows of a tile (``dual_dst_mode``); 1 if it cannot.
        rows: the number of rows of a moved matrix must be a multiple of this.
        run: the number of bytes of a row must be a multiple of this.
        name: the common names of both memories and the layout, such as ``gm_l1_nd2nz``. :func:`table` sets the name.
    """

    source: Space
    target: Space
    pipe: Pipe
    core: CoreKind
    move: Move | None = None
    layout: str = ""
    ops: tuple[str, ...] = ()
    converts: Mapping[tuple[str, str], str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    widest: int = 64
    splits: int = 1
    rows: int = 1
    run: int = 1
    name: str = ""
    near: Move | None = None
    distances: tuple[tuple[int, float], ...] = ()

    def share_of_rate(self, distance: int) -> float:
        """Returns the share, from 0 to 1, of the rate of L2 hits that a transfer gets whose rows in GM lie ``distance`` bytes
        apart. The distance of a single contiguous row is 0, which is a multiple of each number."""
        return next((share for nbytes, share in self.distances if distance % nbytes == 0), 1.0)


def table(memory: Mapping[Space, Memory], *paths: Path) -> Mapping[str, Path]:
    """Returns a read-only mapping from name to path, and sets the name of each path (such as ``gm_l1_nd2nz``).

    Args:
        memory: the chip's on-chip memories by HIVM address space; their common names become parts of the path names.
        paths: the paths; if several get the same name, the last one is kept.
    """
    def name_path(path: Path) -> str:
        ends = (memory[end].common_name.lower() if end in memory else end for end in (path.source, path.target))
        return "_".join((*ends, path.layout) if path.layout else ends)

    return MappingProxyType({name_path(path): replace(path, name=name_path(path)) for path in paths})


@dataclass(frozen=True)
class Unit(_Table):
    """A compute unit of a core, and the memories that it accesses.

    Attributes:
        pipe: the pipe that issues the unit's instructions.
        core: the kind of core that has the unit.
        operands: for each operand name, the memories that can hold the operand; the key ``""`` means all operands that are
            not listed.
        fills: the memories that the unit can fill with a constant.
    """

    pipe: Pipe
    core: CoreKind
    operands: Mapping[str, tuple[Space, ...]]
    fills: tuple[Space, ...] = ()


@dataclass(frozen=True, kw_only=True)
class VectorRate(_Table):
    """The constants from which the cycles of a vector instruction are computed.

    An instruction of ``R`` repeats processes 256 bytes per repeat. It occupies the Vector pipe for ``max(issue, slope * R)``
    cycles, and its result is available after ``fixed + slope * R`` cycles.

    Attributes:
        slope16: the slope, in cycles per repeat, for elements of 16 bits and less.
        slope32: the slope, in cycles per repeat, for elements of 32 bits and more.
        fixed: cycles from issue to the last write that do not depend on ``R``, on an empty pipe.
        issue: minimum cycles between the starts of two instructions.
        banked: whether the slope doubles if both sources lie in the same groups of UB banks.
    """

    slope16: float
    slope32: float
    fixed: float
    issue: float = 3.0
    banked: bool = False


@dataclass(frozen=True, kw_only=True)
class Banks(_Table):
    """The mapping of UB addresses to groups of banks: ``group = address // width % groups``.

    Two reads from the same group in the same cycle conflict, and one of them is delayed.

    Attributes:
        groups: number of groups.
        width: consecutive bytes that lie in one group.
    """

    groups: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Cube(_Table):
    """The matrix unit.

    Attributes:
        m: number of rows, and of columns, of a fractal (the block of the result that one cycle works on).
        k_step: elements along K that one cycle multiplies, by element type (MLIR spelling; ``hf32`` for f32 operands in HF32
            mode).
        overhead: cycles that each MMAD of a stream takes in addition to its multiplications.
        latency: cycles from the end of a lone MMAD's multiplications until its result can be used.
        burst: cycles that MTE1 needs for each load from L1 to L0A or L0B in addition to the cycles of its bytes.
    """

    m: int
    k_step: Mapping[str, int]
    overhead: float
    latency: float
    burst: float


@dataclass(frozen=True, kw_only=True)
class ScalarUnit(_Table):
    """The scalar unit of a core, which runs the control flow and issues the instructions of all other pipes.

    Attributes:
        alu: cycles of an arithmetic instruction.
        load: cycles of a load of one element.
        store: cycles of a store of one element.
        issue: cycles to issue one instruction to a pipe.
    """

    alu: float
    load: float
    store: float
    issue: float


@dataclass(frozen=True, kw_only=True)
class Sync(_Table):
    """The limits and cycles of synchronisation: events between pipes of a core, barriers, and flags between cores.

    Attributes:
        event_ids: number of events for each ordered pair of pipes (setting pipe, waiting pipe).
        flag_ids: number of flags between cores for each direction.
        user_flag_ids: the numbers of the flags between cores that a kernel may use.
        flag_limit: maximum number of sets of one flag that no wait has consumed yet.
        event: cycles from the end of the setting pipe's earlier work to the release of the pipe that waits for the event.
        barrier: cycles that a ``pipe_barrier`` takes after the earlier work has ended.
        vector_barrier: cycles that a ``pipe_barrier`` of the Vector pipe takes after the earlier work has ended.
        handoff: cycles from the set of a flag between cores to the release of its wait.
        flag: cycles for which a set of a flag between cores occupies the setting pipe.
        queue: number of instructions that the instruction queue of each pipe holds.
    """

    event_ids: int
    flag_ids: int
    user_flag_ids: tuple[int, ...]
    flag_limit: int
    event: float
    barrier: float
    vector_barrier: float
    handoff: float
    flag: float
    queue: int


@dataclass(frozen=True, kw_only=True)
class Traffic(_Table):
    """The rates of global memory (HBM and L2), which all cores of the chip share.

    Attributes:
        hbm_read: bytes per second of reads that miss L2.
        hbm_write: bytes per second of writes from L2 to HBM.
        l2_read: bytes per second of L2 hits, if all are reads.
        l2_write: bytes per second of L2 hits, if all are writes.
        l2: bytes per second of L2 hits, if reads and writes are mixed.
        line: bytes of an L2 line, the unit of transfers between L2 and HBM.
        sector: granularity in bytes of requests to L2. A row that does not begin at a multiple of it moves whole lines, parts
            of which its neighbouring rows move again.
        same_line: seconds that an atomic addition occupies its L2 line; another addition to the same line must wait.
        in_flight: share, from 0 to 1, of a transfer's latency during which the transfer takes bandwidth from other transfers.
            It takes bandwidth during all of its remaining time.
        requests: requests per second that L2 answers; a request covers at most one line.
        same_place: requests per second that L2 answers for one place in GM that many cores read at the same time.
        dirty: maximum number of written bytes that L2 holds; if a launch writes more, the excess is written to HBM during the
            launch.
        aligned: alignment in bytes of full-speed rows in GM. A row that does not begin at a multiple of it takes ``unaligned``
            times as long per byte.
        unaligned: the slowdown factor described under ``aligned``.
    """

    hbm_read: float
    hbm_write: float
    l2_read: float
    l2_write: float
    l2: float
    line: int
    sector: int
    same_line: float
    in_flight: float
    requests: float
    same_place: float
    dirty: float
    aligned: int
    unaligned: float

    def l2_rates(self, reads: float) -> tuple[float, float]:
        """Returns the bytes per second that L2 delivers for reads and the bytes per second that it accepts for writes, if both
        take place at the same time.

        Args:
            reads: the share, from 0 to 1, of the bytes that are read; the remaining bytes are written.
        """
        return min(self.l2_read, self.l2 * max(reads, 1e-9)), min(self.l2_write, self.l2 * max(1.0 - reads, 1e-9))


@dataclass(frozen=True, kw_only=True)
class LaunchTimes(_Table):
    """Overheads of a launch in microseconds.

    Attributes:
        kernel_us: start and end of a kernel on one core, including the time in which a cold core fetches instructions and page
            tables.
        mixed_us: additional time of a kernel that uses both Cube and Vector cores.
        vector_core_us: additional time for each core after the first, if the kernel uses only Vector cores.
        core_us: additional time for each core after the first, if the kernel uses Cube cores.
        dispatch_us: time to dispatch a block that no core was free for at the start of the launch, for each core of the block.
            The chip dispatches one block at a time, so if blocks run for less than this time, dispatch bounds the launch.
    """

    kernel_us: float
    mixed_us: float
    vector_core_us: float
    core_us: float
    dispatch_us: float


@dataclass(frozen=True, kw_only=True)
class Links(_Table):
    """The links between the cards of a pod, as one card sees them. All pairs of cards are connected alike.

    In a mesh each pair has its own link, so a card reaches more bytes per second with all other cards than with one. Cards at a
    switch share their own port among all transfers. Reads and writes do not slow each other down.

    Attributes:
        write: bytes per second that a card can write to one other card.
        read: bytes per second that a card can read from one other card.
        write_all: bytes per second that a card can write to all other cards together.
        read_all: bytes per second that a card can read from all other cards together.
        latency: seconds until the first byte of a transfer has arrived, in addition to the latency of the path between UB and
            GM on this card. A read takes it twice: for the request, and for the data.
        cards: the number of cards that are connected like this.
    """

    write: float
    read: float
    write_all: float
    read_all: float
    latency: float
    cards: int


@dataclass(frozen=True, kw_only=True)
class Features(_Table):
    """The capabilities that only some families of chips have (docs/hardware.md#features). AscendNPU-IR's verifiers check them.

    Attributes:
        vector_registers: whether vector instructions take their operands from registers instead of UB. Chips with registers
            convert more pairs of element types in one instruction.
        vector_modes: whether a ``hivm.hir.custom`` op of the Vector core must state whether it runs as SIMD or SIMT
            (``vf_mode``).
        element_types: the element types (MLIR spelling) that can be moved and filled.
        fixpipe_columns: whether fixpipe can store columns as rows (``nz2dn``).
        fixpipe_channel_split: whether fixpipe can split fractals of 32-bit elements.
        fixpipe_to_ub: whether fixpipe can store to UB. ``Chip`` computes this field from its paths.
        fixpipe_splits: the number of Vector cores among which fixpipe can divide the rows of a tile that it stores to UB; 1 if
            it cannot. ``Chip`` computes this field from its paths.
        block_scales: whether the Cube core multiplies MX matrices, which have a scale for 32 elements.
    """

    vector_registers: bool
    vector_modes: bool
    element_types: tuple[str, ...]
    fixpipe_columns: bool
    fixpipe_channel_split: bool
    fixpipe_to_ub: bool = False
    fixpipe_splits: int = 1
    block_scales: bool = False

    def lacks(self, needed: Features) -> list[str]:
        """Returns the names of the fields in which ``needed`` has a capability that this object lacks."""
        found = []
        for row in fields(self):
            have, want = getattr(self, row.name), getattr(needed, row.name)
            if (set(want) - set(have)) if isinstance(want, tuple) else want > have:
                found.append(row.name)
        return found


UNPICKLED: dict[str, Chip] = {}
"""Chips from users' files that this process received through pickle, by name. The registry of chips adds them when a name is
looked up that it does not know."""


@dataclass(frozen=True, kw_only=True)
class Chip(_Table):
    """The description of a chip: cores, memories, data paths, rates and latencies.

    A chip of an A3 package is one of its two dies, because each die has a device id.

    Attributes:
        name: CANN's name, e.g. ``Ascend910B2``.
        family: ``A2``, ``A3`` or ``A5`` for the chips of this package; any other name for a user's chip.
        aliases: other names, without the prefix ``Ascend``.
        hivm_target: the name that ``hacc.target`` gets, which AscendNPU-IR's parser must know; empty to use ``name``.
        aic: number of Cube cores.
        aiv: number of Vector cores; must be a multiple of ``aic``. A block of a kernel that uses both kinds of cores runs on
            one Cube core and up to ``aiv_per_aic`` Vector cores.
        clock: cycles per second.
        hbm: size of HBM in bytes.
        l2: size of L2 in bytes.
        memory: the on-chip memories, by HIVM address space (``ub``, ``cbuf``, ``ca``, ``cb``, ``cc``), and by ``bt`` (bias
            table) and ``fb`` (fixpipe parameters).
        banks: the mapping of UB addresses to bank groups.
        paths: all data paths between memories, by name: ``gm_ub``, ``gm_l1_nd2nz``, ``l1_l0a`` ...
        units: the compute units. The scalar units are not listed: they access all memories of their core, and GM.
        cube: the cycles of the matrix unit.
        vector: the cycles of vector instructions, by cost key (the ``cost`` of an entry of the op table).
        scalar: the cycles of the scalar unit.
        sync: the limits and cycles of events, barriers and flags.
        traffic: the rates of HBM and L2.
        launch: the overheads of a launch.
        links: the links to other cards.
        features: the capabilities that only some families have.
        estimates: the keys of figures that are not published for the chip, such as ``traffic.hbm_read``, or ``scalar`` for all
            of a table. They are estimated, or taken from another chip.
        file: the TOML or Python file in which a user describes the chip; empty for the chips of this package.
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
    memory: Mapping[Space, Memory]
    banks: Banks
    paths: Mapping[str, Path]
    units: tuple[Unit, ...]
    cube: Cube
    vector: Mapping[str, VectorRate]
    scalar: ScalarUnit
    sync: Sync
    traffic: Traffic
    launch: LaunchTimes
    links: Links
    features: Features
    estimates: tuple[str, ...] = ()
    file: str = ""

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        if self.file:
            UNPICKLED[self.name] = self

    def __post_init__(self) -> None:
        to_ub = [path for path in self.paths.values() if (path.source, path.target) == ("cc", "ub") and path.ops]
        object.__setattr__(self, "features", replace(
            self.features, fixpipe_to_ub=bool(to_ub), fixpipe_splits=max((path.splits for path in to_ub), default=1)))

    @property
    def aiv_per_aic(self) -> int:
        """Number of Vector cores per Cube core."""
        return self.aiv // self.aic

    @property
    def target_name(self) -> str:
        """The name that ``hacc.target`` gets: ``hivm_target``, or the chip's name if that is empty."""
        return self.hivm_target or self.name

    @cached_property
    def moves(self) -> Mapping[str, Move]:
        """The ``move`` of each path, by the name of the path; paths without one are left out."""
        return MappingProxyType({name: path.move for name, path in self.paths.items() if path.move is not None})

    @cached_property
    def pipes(self) -> Mapping[CoreKind, tuple[Pipe, ...]]:
        """The names of the pipes of each kind of core (``AIC``, ``AIV``), in the order of ``PIPES``."""
        rows: set[tuple[Pipe, CoreKind]] = {("S", core) for core in CORES}
        rows |= {(path.pipe, path.core) for path in self.paths.values()} | {(unit.pipe, unit.core) for unit in self.units}
        return MappingProxyType({core: tuple(pipe for pipe in PIPES if (pipe, core) in rows) for core in CORES})

    def memories(self, core: CoreKind) -> tuple[Space, ...]:
        """Returns the HIVM address spaces of the on-chip memories of a kind of core (``AIC`` or ``AIV``)."""
        return tuple(name for name, memory in self.memory.items() if memory.core == core)

    def memory_of(self, space: BufferSpace) -> Memory | None:
        """Returns an on-chip memory; None for GM, for a memory that the chip does not have, and for a scope."""
        return next((memory for name, memory in self.memory.items() if name == space), None)

    def paths_of(self, pipe: PipeName | Literal[""], core: CoreKind) -> tuple[Path, ...]:
        """Returns the paths that a pipe of a kind of core (``AIC`` or ``AIV``) moves data on."""
        return tuple(path for path in self.paths.values() if (path.pipe, path.core) == (pipe, core))

    @cached_property
    def ways(self) -> Mapping[tuple[BufferSpace, BufferSpace], Path]:
        """The path that the compiler uses from one memory to another, by (source, target) address space.

        Pairs of memories between which HIVM has no op are left out, and so are scopes. If several paths connect a pair, the
        property has the one whose layout change produces the layout of the destination: rows or fractals.
        """
        found: dict[tuple[BufferSpace, BufferSpace], Path] = {}
        for path in self.paths.values():
            ends = path.source, path.target
            if path.ops and (ends not in found or path.layout == self._layout(*ends)):
                found[ends] = path
        return MappingProxyType(found)

    def _layout(self, source: Space, target: Space) -> str:
        first, second = (end in self.memory and self.memory[end].fractal for end in (source, target))
        return "" if first == second else "nz2nd" if first else "nd2nz"

    def crosses(self, path: Path) -> bool:
        """Whether a path connects an on-chip memory of one kind of core with one of the other kind."""
        return len({self.memory[end].core for end in (path.source, path.target) if end in self.memory}) > 1

    def through(self, pipe: Pipe, *operands: str) -> frozenset[Space]:
        """Returns the on-chip memories that can hold the named operands of a pipe's unit, and the on-chip memories from which a
        path leads into those: ``through("M", "a", "b")`` is ``ca``, ``cb`` and ``cbuf`` on A2."""
        held = {space for unit in self.units if unit.pipe == pipe for name in operands for space in unit.operands.get(name, ())}
        return frozenset(held | {path.source for path in self.paths.values() if path.target in held} - {GM})

    def converts(self, path: Path) -> bool:
        """Whether a copy along a path can convert the element type: the path itself converts, or the Vector unit can access the
        memory at one end of the path."""
        vector = {space for unit in self.units if unit.pipe == "V" for spaces in unit.operands.values() for space in spaces}
        return bool(path.converts) or not vector.isdisjoint((path.source, path.target))

    def microseconds(self, cycles: float) -> float:
        """Returns the duration of ``cycles`` clock cycles in microseconds."""
        return cycles / self.clock * 1e6

    def peak_flops(self, element: str) -> float:
        """Returns the peak operations per second of all Cube cores; a multiply-add counts as 2 operations.

        Args:
            element: the element type of the operands, a key of ``cube.k_step``: MLIR spelling, or ``hf32``.
        """
        return 2.0 * self.cube.m * self.cube.m * self.cube.k_step[element] * self.aic * self.clock
