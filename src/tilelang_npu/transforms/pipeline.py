"""The pipelines: the order of the passes, and the functions that run them on a module.

Read ``ROWS`` as a table of contents: each row has a stage's name, the stage's pass, the level of the module after the pass, and
the reason why the stage is at this position. The modules after ``hivm-auto`` and ``hivm`` are the two that other tools read;
``kernel.mlir(stage)`` prints the module after any stage.

Each option of a pass takes its value from the field or property of the same name of the compilation's ``Options``
(:mod:`tilelang_npu.transforms.infra.pass_options`). So a pipeline can also be written as text: :func:`pipeline_text` returns
the text that ``opt -p`` reads. Plug-ins add stages (:mod:`tilelang_npu.transforms.infra.stage_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

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
from tilelang_npu.transforms.hivm.separate_statements import SeparateStatements
from tilelang_npu.transforms.hivm.split_cores import SplitCores
from tilelang_npu.transforms.hivm.tidy import Tidy
from tilelang_npu.transforms.infra.garbage_collection import paused_garbage_collection
from tilelang_npu.transforms.infra.incremental_verifier import IncrementalVerifier
from tilelang_npu.transforms.infra.options import Options
from tilelang_npu.transforms.infra.pass_options import parse_passes, pass_text
from tilelang_npu.transforms.infra.stage_table import Row, define_rows, kernel_rows
from tilelang_npu.transforms.lower.lower_to_hivm import LowerToHivm
from tilelang_npu.transforms.tile.accumulate_in_ub import AccumulateInUb
from tilelang_npu.transforms.tile.assign_cores import AssignCores
from tilelang_npu.transforms.tile.bind_sub_blocks import BindSubBlocks
from tilelang_npu.transforms.tile.collapse_copies import CollapseCopies
from tilelang_npu.transforms.tile.collapse_rows import CollapseRows
from tilelang_npu.transforms.tile.drop_dead_stores import DropDeadStores
from tilelang_npu.transforms.tile.drop_unread_scratch import DropUnreadScratch
from tilelang_npu.transforms.tile.expand_composites import ExpandComposites
from tilelang_npu.transforms.tile.fold_accumulator_clear import FoldAccumulatorClear
from tilelang_npu.transforms.tile.fuse_fixpipe import FuseFixpipe
from tilelang_npu.transforms.tile.hoist_loads import HoistLoads
from tilelang_npu.transforms.tile.infer_scopes import InferScopes
from tilelang_npu.transforms.tile.legalise_types import LegaliseTypes
from tilelang_npu.transforms.tile.make_persistent import MakePersistent
from tilelang_npu.transforms.tile.mask_tails import MaskTails
from tilelang_npu.transforms.tile.merge_core_loops import MergeCoreLoops
from tilelang_npu.transforms.tile.number_events import NumberEvents
from tilelang_npu.transforms.tile.order_hand_overs import OrderHandOvers
from tilelang_npu.transforms.tile.overlap_iterations import OverlapIterations
from tilelang_npu.transforms.tile.own_workspaces import OwnWorkspaces
from tilelang_npu.transforms.tile.pipeline_loops import PipelineLoops
from tilelang_npu.transforms.tile.reuse_results import ReuseResults
from tilelang_npu.transforms.tile.schedule_statements import ScheduleStatements
from tilelang_npu.transforms.tile.sink_buffers import SinkBuffers
from tilelang_npu.transforms.tile.split_conversions import SplitConversions
from tilelang_npu.transforms.tile.split_launches import SplitLaunches
from tilelang_npu.transforms.tile.split_tiles import SplitTiles
from tilelang_npu.transforms.tile.unroll_loops import UnrollLoops
from tilelang_npu.transforms.tile.vectorise_parallel import VectoriseParallel

Observer = Callable[[str, ModuleOp], None]

ROWS: tuple[Row, ...] = (
    Row("split-launches", SplitLaunches, "tile", "all later passes work on one launch per function"),
    Row("drop-unread-scratch", DropUnreadScratch, "tile", "all later passes see only the uses of scratch memory that matter"),
    Row("number-events", NumberEvents, "tile", "HIVM has eight event ids; later passes allocate among these"),
    Row("unroll-loops", UnrollLoops, "tile", "unrolled code has constant indices"),
    Row("mask-tails", MaskTails, "tile", "before T.Parallel is vectorised: the author's own operations carry the padding on"),
    Row("split-tiles", SplitTiles, "tile",
        "loops of T.Parallel are still whole, and their vector operations and temporaries are then those of a strip"),
    Row("vectorise-parallel", VectoriseParallel, "tile", "before memories are inferred, since this pass adds tiles"),
    Row("expand-composites", ExpandComposites, "tile", "later passes only lower operations that HIVM has"),
    Row("legalise-types", LegaliseTypes, "tile",
        "operations are single ones; before memories are inferred, since this pass adds tiles"),
    Row("accumulate-in-ub", AccumulateInUb, "tile",
        "before memories and cores are assigned, since this pass adds buffers and transfers"),
    Row("merge-core-loops", MergeCoreLoops, "tile", "later passes need producers and consumers of both cores in one loop"),
    Row("order-hand-overs", OrderHandOvers, "tile", "later passes assume that operations in a body are executed in order"),
    Row("drop-dead-stores", DropDeadStores, "tile",
        "otherwise a dead clear, not the load, would be the first write of a buffer"),
    Row("collapse-copies", CollapseCopies, "tile", "the memory of a merged buffer is inferred from the uses of both"),
    Row("fuse-fixpipe", FuseFixpipe, "tile",
        "before memories are inferred, since data that stays in L0C needs no buffer elsewhere"),
    Row("infer-scopes", InferScopes, "scoped", "all later passes read the memories of buffers"),
    Row("assign-cores", AssignCores, "cored", "the memories determine the cores; all later passes read the cores"),
    Row("bind-sub-blocks", BindSubBlocks, "cored",
        "buffers in UB are known, and have no addresses yet; in ascendc, the author requests it"),
    Row("make-persistent", MakePersistent, "cored",
        "cores and the rows of each Vector core are known; later passes move loads out of the new loop, and pipeline it"),
    Row("collapse-rows", CollapseRows, "cored",
        "the rows of each Vector core are known; later passes profit from fewer scalar reads"),
    Row("fold-accumulator-clear", FoldAccumulatorClear, "cored", "HIVM cannot fill L0C, and the accumulators are known"),
    Row("hoist-loads", HoistLoads, "cored", "before multi-buffering, since a load outside of a loop needs no slots"),
    Row("reuse-results", ReuseResults, "cored",
        "memories and the rows of each Vector core are known; before slots are given, for which it must leave room"),
    Row("pipeline-loops", PipelineLoops, "cored",
        "loads that left their loop need no slots; all later passes on tiles read which loops are pipelined"),
    Row("split-conversions", SplitConversions, "cored",
        "a load and its conversion leave a loop as one copy; before sink-buffers, which gives slots to copied tiles"),
    Row("own-workspaces", OwnWorkspaces, "cored",
        "before sink-buffers, which moves a workspace used in one iteration into the loop"),
    Row("sink-buffers", SinkBuffers, "cored", "copies still copy whole tiles, which later passes split"),
    Row("schedule-statements", ScheduleStatements, "cored",
        "buffers that are local to an iteration are known; overlap-iterations skips scheduled loops"),
    Row("overlap-iterations", OverlapIterations, "cored", "buffers that are local to an iteration are known"),
    Row("lower-to-hivm", LowerToHivm, "lowered", "emits clipped copies, fractals and the arguments of the toolchain"),
    Row("hivm-auto", Tidy, "lowered", "the input for the vendor's compiler, in which HIVM operations imply their core"),
    Row("hivm-cores", AssignCores, "mixed", "from here on, the same passes run as for HIVM of other tools"),
    Row("send-scalars", SendScalars, "mixed", "before workspaces and flags are placed, since sent scalars need both"),
    Row("cross-sync", CrossSync, "mixed", "workspaces are still buffers with slots"),
    Row("plan-workspace", PlanWorkspace, "mixed", "before the split, so that both cores use the same addresses"),
    Row("split-cores", SplitCores, "split", "before planning, since each core has its own memories"),
    Row("alloc-extra-buffers", AllocExtraBuffers, "split", "before planning, since scratch buffers take bytes too"),
    Row("plan-memory", PlanMemory, "planned", "before synchronisation, which works on planned bytes"),
    Row("guard-l0", GuardL0, "planned", "before insert-sync, since these events take event ids"),
    Row("separate-statements", SeparateStatements, "planned", "before insert-sync, which then omits what these barriers order"),
    Row("insert-sync", InsertSync, "synchronised", "addresses are known, and the slots are still one buffer"),
    Row("expand-multi-buffer", ExpandMultiBuffer, "synchronised",
        "after synchronisation, which treats the slots as one buffer"),
    Row("complete-kernel", CompleteKernel, "synchronised", "adds the attributes and functions that the toolchain needs"),
    Row("hivm", Tidy, "synchronised", "the form that is printed and that the simulator runs"),
)
"""The stages of a kernel from the tile dialect to HIVM, without stages of plug-ins; ``kernel_rows()`` includes plug-ins'
stages.
"""
define_rows(ROWS)

_ORDER: tuple[Row, ...] = (
    Row("lower-affine", LowerAffine, "foreign", "later passes know scf loops and arith bounds only"),
    Row("serialise-loops", SerialiseLoops, "foreign", "before tensors become buffers, since loops carry tensors"),
)
"""The stages that run first on every HIVM module of another tool, since all later passes only know ``scf`` loops and ``arith``.
"""
PLANNED: tuple[Row, ...] = (
    *_ORDER,
    Row("assign-cores", AssignCores, "foreign", "the simulator runs functions that have cores"),
)
"""The stages that run on HIVM modules of other tools in which buffers already have addresses and all waits are inserted."""
_CONVERTED: tuple[Row, ...] = (
    *_ORDER,
    Row("convert-named-ops", ConvertNamedOps, "foreign", "later passes need the reads and writes of each operation"),
    Row("bufferise", Bufferise, "foreign", "before memories are assigned, since tensors have none"),
    Row("place-buffers", PlaceBuffers, "lowered", "the memories determine the cores"),
    Row("assign-cores", AssignCores, "mixed", "later passes read the cores of a function"),
    Row("add-toolchain-arguments", AddToolchainArguments, "mixed", "later passes read the toolchain's arguments"),
    Row("hivm-auto", Tidy, "mixed", "the input for the vendor's compiler"),
)
"""The stages that bring HIVM modules of other tools to the form that a kernel has after the stage ``_JOINED``."""
_JOINED = "hivm-cores"


def foreign_rows() -> tuple[Row, ...]:
    """Returns the stages that lower HIVM modules of other tools, without addresses and waits, to the form that the simulator
    runs.
    """
    rows = kernel_rows()
    return (*_CONVERTED, *rows[[row.name for row in rows].index(_JOINED) + 1:])


def _create_passes(rows: Iterable[Row], options: Options) -> list[tuple[str, ModulePass]]:
    return [(row.name, row.create_pass(options)) for row in rows]


def kernel_passes(options: Options) -> list[tuple[str, ModulePass]]:
    """Returns (stage name, pass) for each pass that lowers a kernel from the tile dialect to HIVM, in order."""
    return _create_passes(kernel_rows(), options)


def foreign_passes(options: Options) -> list[tuple[str, ModulePass]]:
    """Returns (stage name, pass) for each pass that lowers an HIVM module of another tool, which has no addresses and waits,
    to the form that the simulator runs, in order.

    Args:
        options: the options of the compiler, from which the passes take theirs.
    """
    return _create_passes(foreign_rows(), options)


def pipeline_text(options: Options) -> str:
    """Returns the pipeline of a kernel as text, one pass with all its options per line.

    ``opt -p`` with this text runs the same passes as a compilation with ``options``.
    """
    return ",\n".join(_text(made, options) for _, made in kernel_passes(options))


def stage_text(stage: str, options: Options) -> str:
    """Returns the pass of the stage named ``stage`` with all its options, as text that ``opt -p`` reads."""
    return _text(dict(kernel_passes(options))[stage], options)


def _text(made: ModulePass, options: Options) -> str:
    # Another process finds a chip that a file describes by the path of the file.
    chip: dict[str, str] = {"chip": options.chip.file} if options.chip.file and hasattr(made, "chip") else {}
    return pass_text(replace(made, **chip))


def as_markdown() -> str:
    """Returns both pipelines as Markdown tables: stage, pass, level of the module afterwards, and the reason for the order."""
    parts = []
    for title, rows in (("A kernel", kernel_rows()), ("HIVM of other tools", _CONVERTED)):
        lines = [f"{title}:", "", "| stage | pass | level | why |", "|---|---|---|---|"]
        lines += [f"| {row.name} | {row.pass_type.name} | {row.level} | {row.why} |" for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, f"and from there as a kernel after {_JOINED}."]) + "\n"


def stage_names() -> list[str]:
    """Returns the names of the stages in order, from ``tile`` (the traced kernel, before any pass) to ``hivm``."""
    return ["tile", *(row.name for row in kernel_rows())]


def passes() -> dict[str, type[ModulePass]]:
    """Returns all passes of both pipelines by the pass's name, which may differ from the stage's name."""
    return {row.pass_type.name: row.pass_type for row in (*kernel_rows(), *_CONVERTED)}


def passes_of_text(text: str) -> list[ModulePass]:
    """Returns the passes that a text lists; options that are missing from the text have the default pipeline's values.

    Raises:
        TileError: T805, the text cannot be parsed, or it names an unknown pass, an unknown option or an invalid value
            (:func:`tilelang_npu.transforms.infra.pass_options.parse_passes`).
    """
    return parse_passes(text, passes())


def lower(module: ModuleOp, options: Options, observer: Observer | None = None, *, each: bool = True) -> ModuleOp:
    """Lowers a kernel from the tile dialect to HIVM in place and verifies, after each pass, the operations that it changed.

    Args:
        module: the traced kernel; the passes change it in place.
        options: the options of the compilation.
        observer: a function that is called after each stage, with the stage's name and the module.
        each: whether to verify after each pass. Without it, only the last pass is followed by a verification, which saves a
            quarter of the time for kernels that are only timed.

    Returns:
        The same module.

    Raises:
        TileError: the kernel cannot be compiled; the error names the line.
        InternalError: a pass failed, or left a module that does not verify.
    """
    if observer is not None:
        observer("tile", module)
    with paused_garbage_collection():
        return _run(module, kernel_passes(options), observer, each=each)


def complete(module: ModuleOp, options: Options, observer: Observer | None = None) -> ModuleOp:
    """Lowers an HIVM module of another tool, without addresses and waits, in place to the form that the simulator runs.

    Args:
        module: the module; the passes change it in place.
        options: the options of the compilation.
        observer: a function that is called after each stage, with the stage's name and the module.

    Returns:
        The same module.

    Raises:
        TileError: a pass refuses the module; or (T508) a pass fails, because the module breaks an assumption of the pass.
    """
    return _run_foreign(module, foreign_passes(options), observer, "addresses and waits")


def put_in_order(module: ModuleOp) -> ModuleOp:
    """Makes an HIVM module of another tool that has addresses and waits executable, in place.

    Runs only the passes of ``PLANNED``: they lower ``affine`` loops, serialise parallel loops and assign the functions' cores.

    Returns:
        The same module.

    Raises:
        TileError: a pass refuses the module; or (T508) a pass fails, because the module breaks an assumption of the pass.
    """
    return _run_foreign(module, _create_passes(PLANNED, Options()), None, "an order of its loops")


def _run_foreign(module: ModuleOp, named: Iterable[tuple[str, ModulePass]], observer: Observer | None, gift: str) -> ModuleOp:
    try:
        with paused_garbage_collection():
            return _run(module, named, observer)
    except InternalError as error:
        msg = f"this module cannot be given {gift}: {error}"
        raise TileError(msg, code="T508", help="with hivm.hir.pointer_cast for each buffer, it runs unchanged") from error


def _run(module: ModuleOp, named: Iterable[tuple[str, ModulePass]], observer: Observer | None, *,
         each: bool = True) -> ModuleOp:
    context, verified = make_context(), IncrementalVerifier(module)
    listed = list(named)
    for place, (name, made) in enumerate(listed, 1):
        try:
            made.apply(context, module)
        except (TileError, InternalError):
            raise
        except Exception as error:  # an error inside a pass is a fault of the pass: name it
            msg = f"{name} failed: {type(error).__name__}: {error}"
            raise InternalError(msg) from error
        try:
            if each or place == len(listed):
                verified.verify()
        except Exception as error:
            msg = f"after {name} the module does not verify: {error}"
            raise InternalError(msg) from error
        if observer is not None:
            observer(name, module)
    return module
