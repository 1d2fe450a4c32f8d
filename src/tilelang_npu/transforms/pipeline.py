"""The order of the passes, and the kernel's way through them.

Read ``ROWS`` as a table of contents: each row a stage's name, its pass, the level of the module behind it, and why it stands
there. ``hivm-auto`` and ``hivm`` are the two forms that are handed out; every stage can be printed (``kernel.mlir(stage)``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilelang_npu.dialects.context import make_context
from tilelang_npu.errors import InternalError, TileError
from tilelang_npu.transforms.foreign.add_toolchain_arguments import AddToolchainArguments
from tilelang_npu.transforms.foreign.bufferise import Bufferise
from tilelang_npu.transforms.foreign.convert_named_ops import ConvertNamedOps
from tilelang_npu.transforms.foreign.lower_affine import LowerAffine
from tilelang_npu.transforms.foreign.place_buffers import PlaceBuffers
from tilelang_npu.transforms.foreign.serialise_loops import SerialiseLoops
from tilelang_npu.transforms.hivm.alloc_extra_buffers import AllocExtraBuffers
from tilelang_npu.transforms.hivm.complete_kernel import CompleteKernel
from tilelang_npu.transforms.hivm.cross_sync import CrossSync
from tilelang_npu.transforms.hivm.expand_multi_buffer import ExpandMultiBuffer
from tilelang_npu.transforms.hivm.guard_l0 import GuardL0
from tilelang_npu.transforms.hivm.insert_sync import InsertSync
from tilelang_npu.transforms.hivm.plan_memory import PlanMemory
from tilelang_npu.transforms.hivm.plan_workspace import PlanWorkspace
from tilelang_npu.transforms.hivm.send_scalars import SendScalars
from tilelang_npu.transforms.hivm.split_cores import SplitCores
from tilelang_npu.transforms.hivm.tidy import Tidy
from tilelang_npu.transforms.ir.collector import collector_waits
from tilelang_npu.transforms.ir.levels import Level
from tilelang_npu.transforms.ir.options import Options
from tilelang_npu.transforms.ir.verified import Verified
from tilelang_npu.transforms.lower.lower_to_hivm import LowerToHivm
from tilelang_npu.transforms.tile.accumulate_in_ub import AccumulateInUb
from tilelang_npu.transforms.tile.assign_cores import AssignCores
from tilelang_npu.transforms.tile.bind_sub_blocks import BindSubBlocks
from tilelang_npu.transforms.tile.collapse_copies import CollapseCopies
from tilelang_npu.transforms.tile.collapse_rows import CollapseRows
from tilelang_npu.transforms.tile.drop_dead_stores import DropDeadStores
from tilelang_npu.transforms.tile.expand_composites import ExpandComposites
from tilelang_npu.transforms.tile.fold_accumulator_clear import FoldAccumulatorClear
from tilelang_npu.transforms.tile.fuse_fixpipe import FuseFixpipe
from tilelang_npu.transforms.tile.hoist_loads import HoistLoads
from tilelang_npu.transforms.tile.infer_scopes import InferScopes
from tilelang_npu.transforms.tile.legalise_types import LegaliseTypes
from tilelang_npu.transforms.tile.merge_core_loops import MergeCoreLoops
from tilelang_npu.transforms.tile.number_events import NumberEvents
from tilelang_npu.transforms.tile.order_hand_overs import OrderHandOvers
from tilelang_npu.transforms.tile.overlap_iterations import OverlapIterations
from tilelang_npu.transforms.tile.own_workspaces import OwnWorkspaces
from tilelang_npu.transforms.tile.schedule_statements import ScheduleStatements
from tilelang_npu.transforms.tile.sink_buffers import SinkBuffers
from tilelang_npu.transforms.tile.split_launches import SplitLaunches
from tilelang_npu.transforms.tile.unroll_loops import UnrollLoops
from tilelang_npu.transforms.tile.vectorise_parallel import VectoriseParallel

Observer = Callable[[str, ModuleOp], None]


@dataclass(frozen=True)
class Row:
    """One line of the order.

    Attributes:
        name: the stage's name.
        made: the pass, for what the compilation is for.
        level: what holds behind it (see ``levels``).
        why: why it stands there.
    """

    name: str
    made: Callable[[Options], ModulePass]
    level: Level
    why: str


_VECTORISE = Row(
    "vectorise-parallel",
    lambda o: VectoriseParallel(chip=o.chip.name, vectorise=o.has("vectorise-parallel"), rows=o.synchronise,
                                reuse=o.reuse),
    "tile", "what it makes has memories to infer")
_PLAN_MEMORY = Row(
    "plan-memory",
    lambda o: PlanMemory(chip=o.chip.name, reuse=o.reuse, reserve=o.dialect == "ascendc" and o.reuse,
                         overlay=o.synchronise, banks=o.has("banks"), keep_apart=o.has("keep-apart")),
    "planned", "before synchronisation, which works on bytes")



def _trial(options: Options, stage: str) -> Callable[[ModuleOp], str | None]:
    """What a module that comes from a stage would lack in the memories: its way to the plan, told to nobody."""
    def lack(module: ModuleOp) -> str | None:
        names, context = [row.name for row in ROWS], make_context()
        for row in ROWS[names.index(stage) + 1:names.index("plan-memory") + 1]:
            made = row.made(options)
            try:
                (replace(made, quiet=True) if isinstance(made, PlanMemory) else made).apply(context, module)
            except TileError as error:
                return error.message
        return None
    return lack


ROWS: tuple[Row, ...] = (
    Row("split-launches", lambda o: SplitLaunches(),
        "tile", "each function below is one launch"),
    Row("number-events", lambda o: NumberEvents(),
        "tile", "HIVM has eight; whatever makes flags later works with these"),
    Row("unroll-loops", lambda o: UnrollLoops(),
        "tile", "what is unrolled has constant indices"),
    _VECTORISE,
    Row("expand-composites", lambda o: ExpandComposites(by_hand=not o.synchronise),
        "tile", "into entries that HIVM has ops for"),
    Row("legalise-types", lambda o: LegaliseTypes(),
        "tile", "on single operations; what it makes has memories to infer"),
    Row("accumulate-in-ub", lambda o: AccumulateInUb(),
        "tile", "what it makes has memories to infer, and hands over"),
    Row("merge-core-loops", lambda o: MergeCoreLoops(tensors=o.cross_synchronise),
        "tile", "what feeds each other is one loop"),
    Row("order-hand-overs", lambda o: OrderHandOvers(tensors=o.cross_synchronise),
        "tile", "from here on the body can be read as a sequence"),
    Row("drop-dead-stores", lambda o: DropDeadStores(drop=o.does("drop-dead-stores")),
        "tile", "a clear would keep a load from being the first of its buffer"),
    Row("collapse-copies", lambda o: CollapseCopies(collapse=o.does("collapse-copies")),
        "tile", "one buffer has the uses of both when memories are inferred"),
    Row("fuse-fixpipe", lambda o: FuseFixpipe(fuse=o.does("fuse-fixpipe")),
        "tile", "what it leaves in L0C needs no other memory"),
    Row("infer-scopes", lambda o: InferScopes(chip=o.chip.name),
        "scoped", "everything below asks which memory a buffer is in"),
    Row("assign-cores", lambda o: AssignCores(chip=o.chip.name),
        "cored", "the memories say which core an operation is for; everything below reads it"),
    Row("bind-sub-blocks", lambda o: BindSubBlocks(mixed=o.dialect != "ascendc", divide=o.has("bind-sub-blocks")),
        "cored", "what is in UB is known, and nothing is planned yet; in ascendc the author asks for it"),
    Row("collapse-rows",
        lambda o: CollapseRows(chip=o.chip.name, collapse=o.does("collapse-rows"), trial=_trial(o, "collapse-rows")),
        "cored", "each Vector core has its rows; what reads no scalars binds no iterations"),
    Row("fold-accumulator-clear", lambda o: FoldAccumulatorClear(fold=o.has("fold-accumulator-clear")),
        "cored", "L0C has no fill: known once accumulators are"),
    Row("hoist-loads", lambda o: HoistLoads(chip=o.chip.name, hoist=o.does("hoist-loads")),
        "cored", "what leaves a loop needs no slots in it"),
    Row("own-workspaces", lambda o: OwnWorkspaces(take=o.does("overlap-iterations")),
        "cored", "what an iteration has for itself can move into it"),
    Row("sink-buffers",
        lambda o: SinkBuffers(chip=o.chip.name, multi_buffer=o.does("multi-buffer"), sink=o.has("sink-buffers"), split=o.reuse,
                              waits=o.synchronise),
        "cored", "while copies are still whole tiles"),
    Row("schedule-statements",
        lambda o: ScheduleStatements(chip=o.chip.name, follow=o.has("schedule-statements")),
        "cored", "what is of one iteration is known; what its author has put in its place stays there"),
    Row("overlap-iterations",
        lambda o: OverlapIterations(chip=o.chip.name, overlap=o.does("overlap-iterations"),
                                    trial=_trial(o, "overlap-iterations")),
        "cored", "what is of one iteration is known"),
    Row("lower-to-hivm", lambda o: LowerToHivm(chip=o.chip.name, divide=o.divide, by_hand=not o.synchronise),
        "lowered", "clipped copies, fractals, the argument convention"),
    Row("hivm-auto", lambda o: Tidy(),
        "lowered", "the form for the vendor's compiler: the ops of HIVM say their core themselves"),
    Row("hivm-cores", lambda o: AssignCores(chip=o.chip.name),
        "mixed", "from here on as for HIVM of other tools"),
    Row("send-scalars", lambda o: SendScalars(),
        "mixed", "what it hands over needs workspaces and flags"),
    Row("cross-sync", lambda o: CrossSync(chip=o.chip.name, arguments=o.cross_synchronise,
                                          exclusive=o.dialect == "ascendc" and o.divide, ask=o.synchronise),
        "mixed", "while workspaces are still buffers"),
    Row("plan-workspace", lambda o: PlanWorkspace(),
        "mixed", "before the split: both cores see the same addresses"),
    Row("split-cores", lambda o: SplitCores(),
        "split", "before planning: each core has its own memories"),
    Row("alloc-extra-buffers", lambda o: AllocExtraBuffers(),
        "split", "before planning: hidden temporaries take bytes too"),
    _PLAN_MEMORY,
    Row("guard-l0", lambda o: GuardL0(),
        "planned", "the macro's own events, in every mode"),
    Row("insert-sync", lambda o: InsertSync(within=not o.synchronise),
        "synchronised", "on planned bytes, while slots are still one buffer"),
    Row("expand-multi-buffer", lambda o: ExpandMultiBuffer(),
        "synchronised", "slots become addresses"),
    Row("complete-kernel", lambda o: CompleteKernel(chip=o.chip.name),
        "synchronised", "what the toolchain wants to know"),
    Row("hivm", lambda o: Tidy(),
        "synchronised", "what is dumped, and what the simulator runs"),
)
"""The way of a kernel from the tile dialect to HIVM."""

_ORDER: tuple[Row, ...] = (
    Row("lower-affine", lambda o: LowerAffine(),
        "foreign", "the bounds of loops are numbers"),
    Row("serialise-loops", lambda o: SerialiseLoops(),
        "foreign", "before tensors become buffers: a loop carries them"),
)
"""What any HIVM of other tools needs: everything else here knows one kind of loop, and arithmetic."""
PLANNED: tuple[Row, ...] = (
    *_ORDER,
    Row("assign-cores", lambda o: AssignCores(chip=o.chip.name),
        "foreign", "the machine runs functions of cores"),
)
"""The way of HIVM of other tools that has addresses and waits."""

_BEHIND = [row.name for row in ROWS].index("hivm-cores") + 1
FOREIGN: tuple[Row, ...] = (
    *_ORDER,
    Row("convert-named-ops", lambda o: ConvertNamedOps(),
        "foreign", "from here on every op says what it reads and writes"),
    Row("bufferise", lambda o: Bufferise(),
        "foreign", "tensors have no memory"),
    Row("place-buffers", lambda o: PlaceBuffers(),
        "lowered", "which core an op is for follows from the memories"),
    Row("assign-cores", lambda o: AssignCores(chip=o.chip.name),
        "mixed", "which cores a function is for is asked below"),
    Row("add-toolchain-arguments", lambda o: AddToolchainArguments(),
        "mixed", "who supplies what is asked below"),
    Row("hivm-auto", lambda o: Tidy(),
        "mixed", "the form for the vendor's compiler"),
    *ROWS[_BEHIND:],
)
"""The way of HIVM of other tools, without addresses and waits, to the form that runs."""


def _made(rows: Iterable[Row], options: Options) -> list[tuple[str, ModulePass]]:
    return [(row.name, row.made(options)) for row in rows]


def _passes(options: Options) -> list[tuple[str, ModulePass]]:
    return _made(ROWS, options)


def as_markdown() -> str:
    """The order as tables: stage, pass, level and why."""
    parts = []
    for title, rows in (("A kernel", ROWS), ("HIVM of other tools", FOREIGN[:-len(ROWS) + _BEHIND])):
        lines = [f"{title}:", "", "| stage | pass | level | why |", "|---|---|---|---|"]
        lines += [f"| {row.name} | {row.made(Options()).name} | {row.level} | {row.why} |" for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, f"and from there as a kernel behind {ROWS[_BEHIND - 1].name}."]) + "\n"


def stage_names(options: Options | None = None) -> list[str]:
    """The stages in order, from ``tile``, the kernel as traced, to ``hivm``."""
    return ["tile", *(row.name for row in ROWS)]


def foreign_passes(options: Options) -> list[tuple[str, ModulePass]]:
    """The passes that take HIVM of other tools, without addresses and waits, to the form that runs."""
    return _made(FOREIGN, options)


def passes() -> dict[str, type[ModulePass]]:
    """Every pass by its own name, for running them one by one."""
    options = Options()
    return {made.name: type(made) for _, made in (*_passes(options), *foreign_passes(options))}


def lower(module: ModuleOp, options: Options, observer: Observer | None = None, *, each: bool = True) -> ModuleOp:
    """Take a kernel from the tile dialect to HIVM, in place, verifying after each pass what it changed.

    Args:
        module: the traced kernel; it is changed.
        options: what the compilation is for.
        observer: called with the name of each stage and the module as it is then.
        each: whether to verify after each pass; else behind the last one alone, which takes a quarter off the time: for kernels
            that are timed and forgotten.

    Raises:
        TileError: the kernel cannot be compiled; the error names the line.
        InternalError: a pass left a module that does not verify.
    """
    if observer is not None:
        observer("tile", module)
    with collector_waits():
        return _run(module, _passes(options), observer, each=each)


def complete(module: ModuleOp, options: Options, observer: Observer | None = None) -> ModuleOp:
    """Take HIVM that somebody else wrote, without addresses and waits, to the form that runs, in place.

    Args:
        module: the module; it is changed.
        options: what it is for.
        observer: as for ``lower``.

    Raises:
        TileError: a pass refuses the module, or (T508) trips over it: it breaks what a pass takes for given.
    """
    return _run_foreign(module, foreign_passes(options), observer, "addresses and waits")


def put_in_order(module: ModuleOp) -> ModuleOp:
    """Give the loops of HIVM that somebody else wrote, and has planned, an order, and its functions their cores, in place;
    nothing else is changed.

    Raises:
        TileError: as for ``complete``; the error names the line.
    """
    return _run_foreign(module, _made(PLANNED, Options()), None, "an order of its loops")


def _run_foreign(module: ModuleOp, named: Iterable[tuple[str, ModulePass]], observer: Observer | None, gift: str) -> ModuleOp:
    try:
        with collector_waits():
            return _run(module, named, observer)
    except InternalError as error:
        msg = f"this module cannot be given {gift}: {error}"
        raise TileError(msg, code="T508", help="with hivm.hir.pointer_cast for each buffer, it runs as it stands") from error


def _run(module: ModuleOp, named: Iterable[tuple[str, ModulePass]], observer: Observer | None, *,
         each: bool = True) -> ModuleOp:
    context, verified = make_context(), Verified(module)
    listed = list(named)
    for place, (name, made) in enumerate(listed, 1):
        try:
            made.apply(context, module)
        except (TileError, InternalError):
            raise
        except Exception as error:  # whatever a pass trips over is the pass's fault, and it has a name
            msg = f"{name} failed: {type(error).__name__}: {error}"
            raise InternalError(msg) from error
        try:
            if each or place == len(listed):
                verified.check()
        except Exception as error:
            msg = f"after {name} the module does not verify: {error}"
            raise InternalError(msg) from error
        if observer is not None:
            observer(name, module)
    return module
