"""Synchronisation: events between the pipes of a core, flags and barriers between cores, locks between blocks.

One pipe sets an event when its earlier instructions are done, and another pipe waits for the event. A flag does the same
between the Cube core and the Vector cores of a block. Sets and waits correspond by count: the k-th wait for an event or a flag
waits for its k-th set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from xdsl.dialects.builtin import IntegerAttr, IntegerType, MemRefType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, opt_operand_def, opt_prop_def, prop_def
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilelang_npu.dialects.hivm.attributes import event
from tilelang_npu.dialects.hivm.enums import (
    CORE_OF_TYPE,
    CoreType,
    CoreTypeAttr,
    EventAttr,
    PipeAttr,
    SyncBlockInstrModeAttr,
    SyncBlockModeAttr,
)
from tilelang_npu.dialects.hivm.traits import NUMBER
from tilelang_npu.dialects.ir.declaration import (
    DialectOp,
    OfClass,
    TableOp,
    define_op,
    fail,
    group,
    operation,
    writes_older_text,
)
from tilelang_npu.dialects.ir.destination_style import MEMREF
from tilelang_npu.target.chip_data import CoreKind, OpCore, Pipe, PipeName

__all__ = [
    "CUBE_PIPES", "VECTOR_PIPES", "AnchorOp", "CreateSyncBlockLockOp", "FreeLockVarOp", "PipeBarrierOp", "SetFlagOp",
    "SyncBlockLockOp", "SyncBlockOp", "SyncBlockSetOp", "SyncBlockUnlockOp", "SyncBlockWaitOp", "WaitFlagOp",
    "barrier_of_cores",
]

CUBE_PIPES: frozenset[PipeName] = frozenset({"M", "MTE1", "FIX"})
VECTOR_PIPES: frozenset[PipeName] = frozenset({"V", "MTE3"})
"""``CUBE_PIPES`` are the pipes that only a Cube core has, ``VECTOR_PIPES`` those that only a Vector core has. Both kinds of
core have MTE2 and S."""
CORE_OF_MODE: dict[str, CoreKind] = {"BARRIER_CUBE": "AIC", "ALL_CUBE": "AIC", "BARRIER_VECTOR": "AIV", "ALL_VECTOR": "AIV",
                                     "ALL_SUB_VECTOR": "AIV"}
INTRA_BLOCK = SyncBlockInstrModeAttr("INTRA_BLOCK_SYNCHRONIZATION")


def core_of_pipes(pipes: Iterable[PipeName]) -> OpCore:
    """Returns the kind of core that has these pipes: ``AIC``, ``AIV``, or ``either`` if both have them."""
    named = set(pipes)
    if named & CUBE_PIPES:
        return "AIC"
    return "AIV" if named & VECTOR_PIPES else "either"


@irdl_custom_directive
class EventID(CustomDirective):
    """Parses and prints the event of an op: ``<EVENT_ID0>``, or an SSA value that holds the event's number."""

    static: AttributeVariable
    dynamic: OptionalOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        operand = parser.parse_optional_unresolved_operand()
        self.dynamic.set(state, operand)
        if operand is None:
            self.static.set(state, EventAttr(EventAttr.parse_parameter(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        static = self.static.get(op)
        if isinstance(static, EventAttr):
            static.print_parameter(printer)
        elif (dynamic := self.dynamic.get(op)) is not None:
            printer.print_ssa_value(dynamic)


@irdl_custom_directive
class FlagID(CustomDirective):
    """Parses and prints the flag of an op: an integer literal, or an SSA value that holds the flag's number."""

    static: AttributeVariable
    dynamic: OptionalOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        operand = parser.parse_optional_unresolved_operand()
        self.dynamic.set(state, operand)
        if operand is None:
            self.static.set(state, IntegerAttr(parser.parse_integer(allow_boolean=False), i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        static = self.static.get(op)
        if isinstance(static, IntegerAttr):
            printer.print_string(str(static.value.data))
        elif (dynamic := self.dynamic.get(op)) is not None:
            printer.print_ssa_value(dynamic)


@irdl_custom_directive
class InstrMode(CustomDirective):
    """Parses and prints the clause ``sync_instr_mode = <..>``, which v1.0.0 spells ``syn_instr_mode``."""

    mode: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if any(parser.parse_optional_keyword(word) is not None for word in ("sync_instr_mode", "syn_instr_mode")):
            parser.parse_punctuation("=")
            self.mode.set(state, SyncBlockInstrModeAttr(SyncBlockInstrModeAttr.parse_parameter(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        mode = self.mode.get(op)
        if isinstance(mode, SyncBlockInstrModeAttr):
            printer.print_string(f" {'syn' if writes_older_text(printer) else 'sync'}_instr_mode = <{mode.data}>")


class _EventOp(DialectOp):
    """Base of set_flag and wait_flag."""

    set_pipe = prop_def(PipeAttr)
    wait_pipe = prop_def(PipeAttr)
    static_event_id = opt_prop_def(EventAttr)
    dynamic_event_id = opt_operand_def(i64)
    custom_directives = (EventID,)
    assembly_format = "`[` $set_pipe `,` $wait_pipe `,` custom<EventID>($static_event_id, $dynamic_event_id) `]` attr-dict"

    def __init__(self, set_pipe: PipeName | PipeAttr, wait_pipe: PipeName | PipeAttr,
                 event_id: int | SSAValue | Operation) -> None:
        """Builds the op.

        Args:
            set_pipe: the pipe that sets the event.
            wait_pipe: the pipe that waits for the event.
            event_id: the event's number, from 0 to 7, or an i64 value that holds the number.
        """
        properties: dict[str, Attribute] = {"set_pipe": PipeAttr.of(set_pipe), "wait_pipe": PipeAttr.of(wait_pipe)}
        if isinstance(event_id, int):
            properties["static_event_id"] = event(event_id)
        IRDLOperation.__init__(self, operands=[None if isinstance(event_id, int) else event_id], properties=properties)

    def pipes(self) -> tuple[PipeName, ...]:
        """Returns the pipe that sets the event and the pipe that waits for the event."""
        return self.set_pipe.short, self.wait_pipe.short

    def core(self) -> OpCore:
        """Returns the kind of core that has both pipes: ``AIC``, ``AIV``, or ``either`` if both kinds have them."""
        return core_of_pipes(self.pipes())

    def event_id(self) -> int | SSAValue:
        """Returns the event's number, or the SSA value that holds the number."""
        return self.operands[0] if self.static_event_id is None else self.static_event_id.value

    def verify_(self) -> None:
        _exactly_one(self, "static_event_id", len(self.operands), "Only one Event ID is supported!", "Event ID is needed!")


def _exactly_one(op: Operation, static: str, dynamic: int, both: str, none: str) -> None:
    if static in op.properties and dynamic:
        fail(both)
    if static not in op.properties and not dynamic:
        fail(none)


@operation(side_effects=True)
class SetFlagOp(_EventOp):
    """Sets an event for ``wait_pipe`` once ``set_pipe``, a pipe of the same core, has completed its earlier instructions."""

    name = "hivm.hir.set_flag"


@operation(side_effects=True)
class WaitFlagOp(_EventOp):
    """Stalls ``wait_pipe`` until ``set_pipe``, a pipe of the same core, has set the event."""

    name = "hivm.hir.wait_flag"


@operation(side_effects=True)
class PipeBarrierOp(DialectOp):
    """Stalls a pipe until its earlier instructions are complete; with ``ALL``, stalls all pipes of the core."""

    name = "hivm.hir.pipe_barrier"
    pipe = prop_def(PipeAttr)
    assembly_format = "`[` $pipe `]` attr-dict"

    def __init__(self, pipe: PipeName | PipeAttr) -> None:
        IRDLOperation.__init__(self, properties={"pipe": PipeAttr.of(pipe)})

    def pipes(self) -> tuple[PipeName, ...]:
        """Returns the pipe that is stalled; ``ALL`` means all pipes."""
        return (self.pipe.short,)

    def core(self) -> OpCore:
        """Returns the kind of core that has the pipe: ``AIC``, ``AIV``, or ``either`` if both kinds have it."""
        return core_of_pipes(self.pipes())


@operation(side_effects=True)
class SyncBlockOp(DialectOp):
    """A barrier of all Cube cores, all Vector cores, or all cores of both kinds."""

    name = "hivm.hir.sync_block"
    sync_block_mode = prop_def(SyncBlockModeAttr)
    flag_id = opt_prop_def(OfClass((IntegerAttr,), "an integer"))
    ffts_base_addr = opt_operand_def(i64)
    tcube_pipe = opt_prop_def(PipeAttr)
    cube_pipe = opt_prop_def(PipeAttr)
    tvector_pipe = opt_prop_def(PipeAttr)
    vector_pipe = opt_prop_def(PipeAttr)
    assembly_format = (
        "attr-dict `[` $sync_block_mode (`,` $flag_id^)? `]` (`ffts_base_addr` `=` $ffts_base_addr^)?"
        " (`tcube_pipe` `=` $tcube_pipe^)? (`cube_pipe` `=` $cube_pipe^)? (`tvector_pipe` `=` $tvector_pipe^)?"
        " (`vector_pipe` `=` $vector_pipe^)?"
    )

    def __init__(self, mode: str | SyncBlockModeAttr, *, flag: int | IntegerAttr | None = None,
                 ffts: SSAValue | Operation | None = None, tcube_pipe: Pipe | None = None, cube_pipe: Pipe | None = None,
                 tvector_pipe: Pipe | None = None, vector_pipe: Pipe | None = None) -> None:
        """Builds the op.

        Args:
            mode: the cores that take part in the barrier, such as ``ALL_CUBE``, ``ALL_VECTOR`` or ``ALL``.
            flag: the number of the flag that implements the barrier.
            ffts: the base address of the flags.
            tcube_pipe: the pipe of each Cube core whose earlier instructions must be complete.
            cube_pipe: the pipe of each Cube core that waits.
            tvector_pipe: the pipe of each Vector core whose earlier instructions must be complete.
            vector_pipe: the pipe of each Vector core that waits.
        """
        named = {"tcube_pipe": tcube_pipe, "cube_pipe": cube_pipe, "tvector_pipe": tvector_pipe, "vector_pipe": vector_pipe}
        properties: dict[str, Attribute | None] = {name: None if p is None else PipeAttr.of(p) for name, p in named.items()}
        properties["sync_block_mode"] = SyncBlockModeAttr.of(mode)
        properties["flag_id"] = IntegerAttr(flag, i64) if isinstance(flag, int) else flag
        IRDLOperation.__init__(self, operands=[ffts], properties=properties)

    def core(self) -> OpCore:
        """Returns the kind of core that takes part in the barrier: ``AIC``, ``AIV``, or ``either`` for both kinds."""
        return CORE_OF_MODE.get(self.sync_block_mode.data, "either")

    def verify_(self) -> None:
        mode = self.sync_block_mode.data
        if mode in ("BARRIER_CUBE", "BARRIER_VECTOR"):
            self._forbid("tvector_pipe", "tcube_pipe", "vector_pipe", "cube_pipe")
        if mode in ("ALL_CUBE", "ALL"):
            self._require("tcube_pipe", CUBE_PIPES, "tcube_pipe of should match CUBE core type!")
            self._match("cube_pipe", CUBE_PIPES, "cube_pipe should match CUBE core type!")
            if mode == "ALL_CUBE":
                self._forbid("tvector_pipe", "vector_pipe")
        if mode in ("ALL_VECTOR", "ALL_SUB_VECTOR", "ALL"):
            self._require("tvector_pipe", VECTOR_PIPES, "tvector_pipe of ALL_VECTOR should match VECTOR core type!")
            self._match("vector_pipe", VECTOR_PIPES, "vector_pipe should match VECTOR core type!")
            if mode != "ALL":
                self._forbid("tcube_pipe", "cube_pipe")

    def _forbid(self, *names: str) -> None:
        for name in names:
            if name in self.properties:
                fail(f"{name} should not be defined!")

    def _require(self, name: str, pipes: frozenset[PipeName], message: str) -> None:
        if name not in self.properties:
            fail(f"{name} should be defined!")
        self._match(name, pipes, message)

    def _match(self, name: str, pipes: frozenset[PipeName], message: str) -> None:
        pipe = self.properties.get(name)
        if isinstance(pipe, PipeAttr) and pipe.short in (CUBE_PIPES | VECTOR_PIPES) - pipes:
            fail(message)


def barrier_of_cores(core: Literal["cube", "vector"] | None) -> SyncBlockOp:
    """Returns a barrier at which cores wait until the earlier work of all of them is complete.

    ``core`` is ``cube`` or ``vector`` for a barrier of the cores of one kind, and None for a barrier of all cores.
    """
    if core == "cube":
        return SyncBlockOp("ALL_CUBE", tcube_pipe="FIX", cube_pipe="S")
    if core == "vector":
        return SyncBlockOp("ALL_VECTOR", tvector_pipe="MTE3", vector_pipe="S")
    return SyncBlockOp("ALL", tcube_pipe="FIX", cube_pipe="S", tvector_pipe="MTE3", vector_pipe="S")


class _BlockFlagOp(DialectOp):
    """Base of sync_block_set and sync_block_wait."""

    tcore_type = prop_def(CoreTypeAttr)
    tpipe = prop_def(PipeAttr)
    pipe = prop_def(PipeAttr)
    static_flag_id = opt_prop_def(OfClass((IntegerAttr,), "an integer"))
    dynamic_flag_id = opt_operand_def(i64)
    tsync_instr_mode = opt_prop_def(SyncBlockInstrModeAttr, default_value=INTRA_BLOCK)
    custom_directives = (FlagID, InstrMode)

    def flag_id(self) -> int | SSAValue:
        """Returns the flag's number, or the SSA value that holds the number."""
        static = self.properties.get("static_flag_id")
        return static.value.data if isinstance(static, IntegerAttr) else self.operands[0]

    def pipes(self) -> tuple[PipeName, ...]:
        """Returns the pipe whose work the flag signals and the pipe that waits for the flag."""
        return self.tpipe.short, self.pipe.short

    def is_within_block(self) -> bool:
        """Whether the flag synchronises the Cube core and the Vector cores of one block."""
        return self.tsync_instr_mode == INTRA_BLOCK

    def core(self) -> OpCore:
        """Returns the kind of core that executes the op: ``AIC``, ``AIV`` or ``either``."""
        return CORE_OF_TYPE.get(self.tcore_type.short, "either")

    def verify_(self) -> None:
        _exactly_one(self, "static_flag_id", self.dynamic_flag_id is not None, "Only one flag ID is supported!",
                     "Flag ID is needed!")


def _block_flag(core: CoreType | CoreTypeAttr, producer: PipeName | PipeAttr, consumer: PipeName | PipeAttr,
                flag: int | SSAValue | Operation,
                mode: str | None) -> tuple[SSAValue | Operation | None, dict[str, Attribute | None]]:
    properties: dict[str, Attribute | None] = {
        "tcore_type": CoreTypeAttr.of(core), "tpipe": PipeAttr.of(producer), "pipe": PipeAttr.of(consumer),
        "static_flag_id": IntegerAttr(flag, i64) if isinstance(flag, int) else None,
        "tsync_instr_mode": None if mode is None else SyncBlockInstrModeAttr(mode)}
    return (None if isinstance(flag, int) else flag), properties


@operation(side_effects=True)
class SyncBlockSetOp(_BlockFlagOp):
    """Sets a flag for the other cores of the block, once a pipe of this core has completed its earlier instructions."""

    name = "hivm.hir.sync_block_set"
    # The order of the fields is the order of the operands: this one must be repeated to precede the next.
    dynamic_flag_id = opt_operand_def(i64)
    ffts_base_addr = opt_operand_def(i64)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "attr-dict `[` $tcore_type `,` $tpipe `,` $pipe `]` `flag` `=` custom<FlagID>($static_flag_id, $dynamic_flag_id)"
        " (`ffts_base_addr` `=` $ffts_base_addr^)? custom<InstrMode>($tsync_instr_mode)"
    )

    def __init__(self, core: CoreType | CoreTypeAttr, producer: PipeName | PipeAttr, consumer: PipeName | PipeAttr,
                 flag: int | SSAValue | Operation, *, ffts: SSAValue | Operation | None = None,
                 mode: str | None = None) -> None:
        """Builds the op.

        Args:
            core: the core that executes the op: ``CUBE`` or ``VECTOR``.
            producer: the pipe of this core whose earlier instructions must be complete before the flag is set.
            consumer: the pipe of the other cores that waits for the flag.
            flag: the number of the flag, from 0 to 15, or an i64 value that holds the number.
            ffts: the base address of the flags; the toolchain requires it before lowering.
            mode: ``INTRA_BLOCK_SYNCHRONIZATION`` (default), ``INTER_BLOCK_...`` or ``INTER_SUBBLOCK_...``.
        """
        dynamic, properties = _block_flag(core, producer, consumer, flag, mode)
        IRDLOperation.__init__(self, operands=[dynamic, ffts], properties=properties)


@operation(side_effects=True)
class SyncBlockWaitOp(_BlockFlagOp):
    """Stalls a pipe of this core until another core of the block sets the flag."""

    name = "hivm.hir.sync_block_wait"
    assembly_format = (
        "attr-dict `[` $tcore_type `,` $tpipe `,` $pipe `]` `flag` `=` custom<FlagID>($static_flag_id, $dynamic_flag_id)"
        " custom<InstrMode>($tsync_instr_mode)"
    )

    def __init__(self, core: CoreType | CoreTypeAttr, producer: PipeName | PipeAttr, consumer: PipeName | PipeAttr,
                 flag: int | SSAValue | Operation, *, mode: str | None = None) -> None:
        """Builds the op.

        Args:
            core: the core that executes the op, and waits: ``CUBE`` or ``VECTOR``.
            producer: the pipe of the other core whose work the flag signals.
            consumer: the pipe of this core that waits for the flag.
            flag: the number of the flag, from 0 to 15, or an i64 value that holds the number.
            mode: ``INTRA_BLOCK_SYNCHRONIZATION`` (default), ``INTER_BLOCK_...`` or ``INTER_SUBBLOCK_...``.
        """
        dynamic, properties = _block_flag(core, producer, consumer, flag, mode)
        IRDLOperation.__init__(self, operands=[dynamic], properties=properties)


# -- locks and anchors, which no pass builds -----------------------------------------------------------------------------


def _verify_lock_memory(op: TableOp) -> None:
    """Verifies that the memory of a lock has a static shape."""
    if not op.memref.type.has_static_shape():
        fail("'create_sync_block_lock' op should only support static shape")


def _verify_lock(op: TableOp) -> None:
    """Verifies that a lock is a one-dimensional memref of i64."""
    type_ = op.lock_var.type
    if not (isinstance(type_, MemRefType) and type_.get_num_dims() == 1 and type_.element_type == IntegerType(64)):
        fail(f"operand #0 must be 1D memref of 64-bit signless integer values, but got '{type_}'")


def _lock_op(mnemonic: str, doc: str) -> type[TableOp]:
    """Returns the class of an op on a lock, a ``memref<1xi64>``."""
    return define_op(
        TableOp, f"hivm.hir.{mnemonic}", doc, operands={"lock_var": MEMREF}, text=f"attr-dict {group('lock_var', 'lock_var')}",
        core="AIV", untouched=("lock_var",), side_effects=True, rules=(_verify_lock,))


CreateSyncBlockLockOp = define_op(
    TableOp, "hivm.hir.create_sync_block_lock",
    "Returns the memory of a lock with which the blocks execute a region one after the other, in order; ``lockArg`` is the"
    " kernel argument that holds the locks.",
    operands={"lockArg?": MEMREF}, results={"memref": MEMREF},
    text="(`from` $lockArg^)? attr-dict `:` (`from` type($lockArg)^ `to`)? type($memref)",
    untouched=("lockArg",), side_effects=True, rules=(_verify_lock_memory,))
SyncBlockLockOp = _lock_op("sync_block_lock", "Acquires a lock: waits until the preceding block has released it.")
SyncBlockUnlockOp = _lock_op("sync_block_unlock", "Releases a lock, so that the next block can acquire it.")
FreeLockVarOp = _lock_op("free_lock_var", "Releases a lock if control flow may have skipped its ``sync_block_unlock``.")
AnchorOp = define_op(
    TableOp, "hivm.hir.anchor", "Marks a position in the program by a number, so that later passes can find the position.",
    properties={"id": NUMBER, "tcore_type?": CoreTypeAttr}, text="attr-dict", side_effects=True)

OPERATIONS: tuple[type[DialectOp], ...] = (
    SetFlagOp, WaitFlagOp, PipeBarrierOp, SyncBlockOp, SyncBlockSetOp, SyncBlockWaitOp, CreateSyncBlockLockOp, SyncBlockLockOp,
    SyncBlockUnlockOp, FreeLockVarOp, AnchorOp)
