"""The order of the passes, and the kernel's way through them.

Read ``PASSES`` as a table of contents: each line a pass, its stage name, and why it stands there. ``hivm-auto`` and
``hivm`` are the two forms that are handed out; every stage can be printed (``kernel.mlir(stage)``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from tilelang_npu import target as chips
from tilelang_npu.dialects.context import make_context
from tilelang_npu.errors import InternalError, TileError
from tilelang_npu.target import Chip
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
from tilelang_npu.transforms.lower.lower_to_hivm import LowerToHivm
from tilelang_npu.transforms.tile.accumulate_in_ub import AccumulateInUb
from tilelang_npu.transforms.tile.bind_sub_blocks import BindSubBlocks
from tilelang_npu.transforms.tile.collapse_copies import CollapseCopies
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
from tilelang_npu.transforms.tile.sink_buffers import SinkBuffers
from tilelang_npu.transforms.tile.split_launches import SplitLaunches
from tilelang_npu.transforms.tile.unroll_loops import UnrollLoops
from tilelang_npu.transforms.tile.vectorise_parallel import VectoriseParallel

Observer = Callable[[str, ModuleOp], None]


_MANAGED = ("drop-dead-stores", "collapse-copies", "fuse-fixpipe", "hoist-loads", "overlap-iterations")
_NEEDED = {"synchronise": _MANAGED, "cross_synchronise": _MANAGED, "divide": _MANAGED,
           "reuse": ("hoist-loads", "banks", "keep-apart"), "multi_buffer": ("multi-buffer", "overlap-iterations")}
"""Which optimisations want which of the options on."""
_OFF = {"synchronise": "its author sets the waits inside the cores", "cross_synchronise": "its author orders the cores",
        "divide": "its author puts the work on the cores", "reuse": "memory planning is off",
        "multi_buffer": "multi-buffering is off"}
"""What it means that they are not."""


@dataclass(frozen=True)
class Options:
    """What a compilation is for.

    Attributes:
        chip: the chip.
        dialect: ``npuir``, ``ascendc`` or ``gpu``: whose rules the source follows.
        synchronise: insert the waits inside a core; off where the user writes them, those inside what one statement becomes
            excepted.
        cross_synchronise: insert the flags between the cores around the user's own tensors; those around workspaces that
            the compiler made are always there.
        reuse: let buffers whose lives do not meet share bytes.
        multi_buffer: give pipelined loops several slots per buffer.
        divide: divide work between Cube and Vector where the user does not; off, a kernel of both says it with ``T.Scope``.
        without: optimisations that are off, by name (see ``optimisations``).
    """

    chip: Chip = field(default_factory=lambda: chips.chip(chips.DEFAULT))
    dialect: str = "npuir"
    synchronise: bool = True
    cross_synchronise: bool = True
    reuse: bool = True
    multi_buffer: bool = True
    divide: bool = True
    without: tuple[str, ...] = ()

    @property
    def orders(self) -> bool:
        """Whether the compiler orders what is done to the tensors; off, the author does it all."""
        return self.synchronise or self.cross_synchronise

    def has(self, optimisation: str) -> bool:
        """Whether an optimisation is not switched off."""
        return optimisation not in self.without

    def off(self, optimisation: str) -> str:
        """Why an optimisation that nobody switched off has nothing to act on; empty where it is on."""
        if optimisation == "overlap-iterations" and not self.has("multi-buffer"):
            return "multi-buffer is switched off"
        return next((why for needed, why in _OFF.items() if optimisation in _NEEDED[needed] and not getattr(self, needed)), "")

    def does(self, optimisation: str) -> bool:
        """Whether an optimisation is on."""
        return self.has(optimisation) and not self.off(optimisation)

    @classmethod
    def from_switches(cls, chip: Chip, dialect: str, switches: Mapping[str, object], without: tuple[str, ...] = ()) -> Options:
        """The options that a source dialect's pass switches mean.

        On the ascendc branch synchronisation and memory planning are off unless asked for; on the npuir branch the
        toolchain does both unless told not to.
        """
        if dialect == "ascendc":
            return cls(chip=chip, dialect=dialect, synchronise=bool(switches.get("tl.ascend_auto_sync")),
                       cross_synchronise=bool(switches.get("tl.ascend_auto_cross_core_sync")),
                       reuse=bool(switches.get("tl.ascend_memory_planning")),
                       divide=bool(switches.get("tl.ascend_auto_cv_combine")), without=without)
        return cls(chip=chip, dialect=dialect,
                   synchronise=not switches.get("npuir.disable_hivm_auto_inject_sync", False),
                   multi_buffer=bool(switches.get("npuir.enable_auto_multi_buffer", True)), without=without)


def _passes(options: Options) -> Iterator[tuple[str, ModulePass]]:
    chip, has, does = options.chip.name, options.has, options.does
    yield "split-launches", SplitLaunches()  # each function below is one launch
    yield "number-events", NumberEvents()  # HIVM has eight; whatever makes flags later works with these
    yield "unroll-loops", UnrollLoops()  # what is unrolled has constant indices
    yield "vectorise-parallel", _vectorise(options)  # what it makes has memories to infer
    yield "expand-composites", ExpandComposites()  # into entries that HIVM has ops for
    yield "legalise-types", LegaliseTypes()  # on single operations; what it makes has memories to infer
    yield "accumulate-in-ub", AccumulateInUb()  # what it makes has memories to infer, and hands over
    tensors = options.cross_synchronise
    yield "merge-core-loops", MergeCoreLoops(tensors=tensors)  # what feeds each other is one loop
    yield "order-hand-overs", OrderHandOvers(tensors=tensors)  # from here on the body can be read as a sequence
    drop, collapse = does("drop-dead-stores"), does("collapse-copies")
    yield "drop-dead-stores", DropDeadStores(drop=drop)  # a clear would keep a load from being the first of its buffer
    yield "collapse-copies", CollapseCopies(collapse=collapse)  # one buffer has the uses of both when memories are inferred
    yield "fuse-fixpipe", FuseFixpipe(fuse=does("fuse-fixpipe"))  # what it leaves in L0C needs no other memory
    yield "infer-scopes", InferScopes(chip=chip)  # everything below asks which memory a buffer is in
    mixed = options.dialect != "ascendc"  # there ``threads`` asks for it
    divide, fold = has("bind-sub-blocks"), has("fold-accumulator-clear")
    yield "bind-sub-blocks", BindSubBlocks(mixed=mixed, divide=divide)  # what is in UB is known, and nothing is planned yet
    yield "fold-accumulator-clear", FoldAccumulatorClear(fold=fold)  # L0C has no fill: known once accumulators are
    yield "hoist-loads", HoistLoads(chip=chip, hoist=does("hoist-loads"))  # what leaves a loop needs no slots in it
    slots, sink = does("multi-buffer"), has("sink-buffers")
    yield "sink-buffers", SinkBuffers(multi_buffer=slots, sink=sink)  # while copies are still whole tiles
    overlap = does("overlap-iterations")
    yield "overlap-iterations", OverlapIterations(chip=chip, overlap=overlap)  # what is of one iteration is known
    yield "lower-to-hivm", LowerToHivm(chip=chip, divide=options.divide)  # clipped copies, fractals, the argument convention
    yield "hivm-auto", Tidy()  # the form for the vendor's compiler
    yield "send-scalars", SendScalars()  # what it hands over needs workspaces and flags
    yield "cross-sync", _cross_sync(options)  # while workspaces are still buffers
    yield "plan-workspace", PlanWorkspace()  # before the split: both cores see the same addresses
    yield "split-cores", SplitCores()  # before planning: each core has its own memories
    yield "alloc-extra-buffers", AllocExtraBuffers()  # before planning: hidden temporaries take bytes too
    yield "plan-memory", _plan_memory(options)  # before synchronisation, which works on bytes
    yield "guard-l0", GuardL0()  # the macro's own events, in every mode
    yield "insert-sync", InsertSync(within=not options.synchronise)  # on planned bytes, while slots are still one buffer
    yield "expand-multi-buffer", ExpandMultiBuffer()  # slots become addresses
    yield "complete-kernel", CompleteKernel(chip=chip)  # what the toolchain wants to know
    yield "hivm", Tidy()  # what is dumped, and what the simulator runs


def _cross_sync(options: Options) -> CrossSync:
    return CrossSync(chip=options.chip.name, arguments=options.cross_synchronise,
                     exclusive=options.dialect == "ascendc" and options.divide)


def _plan_memory(options: Options) -> PlanMemory:
    return PlanMemory(chip=options.chip.name, reuse=options.reuse, reserve=options.dialect == "ascendc" and options.reuse,
                      overlay=options.synchronise, banks=options.has("banks"), keep_apart=options.has("keep-apart"))


def _vectorise(options: Options) -> VectoriseParallel:
    return VectoriseParallel(chip=options.chip.name, vectorise=options.has("vectorise-parallel"), rows=options.synchronise)


def stage_names(options: Options | None = None) -> list[str]:
    """The stages in order, from ``tile``, the kernel as traced, to ``hivm``."""
    return ["tile", *(name for name, _ in _passes(options or Options()))]


def _order_passes() -> Iterator[tuple[str, ModulePass]]:
    """The passes that any HIVM of other tools needs: everything else here knows one kind of loop, and arithmetic."""
    yield "lower-affine", LowerAffine()  # the bounds of loops are numbers
    yield "serialise-loops", SerialiseLoops()  # before tensors become buffers: a loop carries them


def foreign_passes(options: Options) -> Iterator[tuple[str, ModulePass]]:
    """The passes that take HIVM of other tools, without addresses and waits, to the form that runs."""
    yield from _order_passes()
    yield "convert-named-ops", ConvertNamedOps()  # from here on every op says what it reads and writes
    yield "bufferise", Bufferise()  # tensors have no memory
    yield "place-buffers", PlaceBuffers()  # which core an op is for follows from the memories
    yield "add-toolchain-arguments", AddToolchainArguments()  # who supplies what is asked below
    names = [name for name, _ in _passes(options)]
    yield from list(_passes(options))[names.index("hivm-auto"):]


def passes() -> dict[str, type[ModulePass]]:
    """Every pass by its own name, for running them one by one."""
    options = Options()
    return {made.name: type(made) for _, made in (*_passes(options), *foreign_passes(options))}


def lower(module: ModuleOp, options: Options, observer: Observer | None = None) -> ModuleOp:
    """Take a kernel from the tile dialect to HIVM, in place, verifying after each pass.

    Args:
        module: the traced kernel; it is changed.
        options: what the compilation is for.
        observer: called with the name of each stage and the module as it is then.

    Raises:
        TileError: the kernel cannot be compiled; the error names the line.
        InternalError: a pass left a module that does not verify.
    """
    if observer is not None:
        observer("tile", module)
    return _run(module, _passes(options), observer)


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
    """Give the loops of HIVM that somebody else wrote, and has planned, an order, in place; nothing else is changed.

    Raises:
        TileError: as for ``complete``; the error names the line.
    """
    return _run_foreign(module, _order_passes(), None, "an order of its loops")


def _run_foreign(module: ModuleOp, named: Iterable[tuple[str, ModulePass]], observer: Observer | None, gift: str) -> ModuleOp:
    try:
        return _run(module, named, observer)
    except InternalError as error:
        msg = f"this module cannot be given {gift}: {error}"
        raise TileError(msg, code="T508", help="with hivm.hir.pointer_cast for each buffer, it runs as it stands") from error


def _run(module: ModuleOp, named: Iterable[tuple[str, ModulePass]], observer: Observer | None) -> ModuleOp:
    context = make_context()
    for name, made in named:
        try:
            made.apply(context, module)
        except (TileError, InternalError):
            raise
        except Exception as error:  # whatever a pass trips over is the pass's fault, and it has a name
            msg = f"{name} failed: {type(error).__name__}: {error}"
            raise InternalError(msg) from error
        try:
            module.verify()
        except VerifyException as error:
            msg = f"after {name} the module does not verify: {error}"
            raise InternalError(msg) from error
        if observer is not None:
            observer(name, module)
    return module
