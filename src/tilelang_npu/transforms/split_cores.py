"""Split a kernel of both cores into one function per core, joined by channels.

A hand-over is a FIFO: the k-th value received is the k-th sent. It goes through a ring in the GM workspace, with a
*ready* flag from producer to consumer and a *free* flag back, always both: the producer waits for a free slot,
writes, raises ready; the consumer waits for ready, reads, raises free. The consumer raises free once per slot at its
start, and the producer takes what is left at its end, so that every flag is down again when the kernel ends. The ring
has two slots where a loop lets the producer run ahead, one otherwise.

Runs after lowering, before planning. Scalars and control flow stay in both functions; each keeps the operations of
its core (the operations say which that is). Names and helper functions follow AscendNPU-IR (``_mix_aic``,
``_mix_aiv``).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, StridedLayoutAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import hivm, memref_ext
from tilelang_npu.dialects.declaration import DialectOp
from tilelang_npu.ops import dtype
from tilelang_npu.transforms.emit import Emitter, Value
from tilelang_npu.transforms.host_functions import task_type_function, workspace_function
from tilelang_npu.transforms.insert_sync import iteration
from tilelang_npu.transforms.locations import refuse
from tilelang_npu.transforms.tidy import tidy_function

_CORES = {"AIC": "CUBE", "AIV": "VECTOR"}
BLOCK_BYTES = 512  # workspace slots start at full L2 lines (hardware.md 1.8)


@dataclass
class Channel:
    """One hand-over: the ring, the operation that sends and the one that receives, and its two flags."""

    ring: memref_ext.AllocWorkspaceOp
    send: Operation
    receive: Operation
    slots: int
    ready: int
    free: int

    @property
    def nbytes(self) -> int:
        """Bytes of one slot, rounded up to whole lines."""
        kind = self.ring.results[0].type
        assert isinstance(kind, MemRefType)
        total = dtype(str(kind.element_type)).nbytes
        for size in kind.get_shape():
            total *= size
        return -(-total // BLOCK_BYTES) * BLOCK_BYTES


def core_of(op: Operation) -> str:
    """``AIC``, ``AIV`` or ``either``: the core that an operation runs on."""
    if isinstance(op, (memref.LoadOp, memref.StoreOp)):
        kind = op.operands[0 if isinstance(op, memref.LoadOp) else 1].type
        space = hivm.space_of(kind)
        if space == "ub" or (space == "gm" and isinstance(op, memref.StoreOp)):
            return "AIV"
        return "either"
    return op.core() if isinstance(op, DialectOp) else "either"


def _endpoint(view: SSAValue, *, writes: bool) -> Operation | None:
    for use in view.uses:
        user = use.operation
        if isinstance(user, hivm.StructuredOp):
            if (view in user.outs()) == writes:
                return user
        elif user.results:
            found = _endpoint(user.results[0], writes=writes)
            if found is not None:
                return found
    return None


def _channels(function: func.FuncOp, flags: tuple[int, ...]) -> list[Channel]:
    found: list[Channel] = []
    for op in function.walk():
        if isinstance(op, memref_ext.AllocWorkspaceOp):
            send, receive = _endpoint(op.results[0], writes=True), _endpoint(op.results[0], writes=False)
            assert send is not None and receive is not None, "a workspace has a writer and a reader"
            numbers = flags[2 * len(found):2 * len(found) + 2]
            if len(numbers) < 2:
                raise refuse(op, f"more hand-overs between Cube and Vector than the {len(flags)} flags allow", "T241",
                             help="merge buffers that cross between the cores")
            loop, outer = op.parent_op(), None
            if isinstance(loop, scf.ForOp):
                outer = loop.parent_op()
            slots = 2 if isinstance(loop, scf.ForOp) and isinstance(outer, func.FuncOp) else 1
            found.append(Channel(op, send, receive, slots, *numbers))
    return found


def _connect(function: func.FuncOp, channels: list[Channel]) -> int:
    """Put the rings into the workspace argument and the flags around sends and receives; returns bytes per block."""
    entry = function.body.block
    emit = Emitter(entry)
    ffts, workspace = entry.args[0], entry.args[2]
    total = sum(channel.nbytes * channel.slots for channel in channels)
    first = entry.first_op
    assert first is not None
    with emit.before(first):
        emit.insert(hivm.SetFftsBaseAddrOp(ffts))
        block = emit.insert(arith.IndexCastOp(emit.insert(hivm.GetBlockIdxOp()).results[0], IndexType())).result
        base = emit.mul(block, total)
        offset = 0
        rings: list[SSAValue] = []
        for channel in channels:
            rings.append(_ring(emit, workspace, base, offset, channel))
            offset += channel.nbytes * channel.slots
        for channel in channels:
            consumer, drained = _CORES[core_of(channel.receive)], channel.receive.pipes()[-1]  # type: ignore[attr-defined]
            for _ in range(channel.slots):
                emit.insert(hivm.SyncBlockSetOp(consumer, drained, "S", channel.free, ffts=ffts))
    for channel, ring in zip(channels, rings, strict=True):
        _flags(emit, channel, ffts)
        _use_slot(emit, channel, ring)
    last = entry.last_op
    assert last is not None
    with emit.before(last):
        for channel in channels:
            producer, drained = _CORES[core_of(channel.send)], channel.receive.pipes()[-1]  # type: ignore[attr-defined]
            for _ in range(channel.slots):
                emit.insert(hivm.SyncBlockWaitOp(producer, drained, "S", channel.free))
    return total


def _ring(emit: Emitter, workspace: SSAValue, base: Value, offset: int, channel: Channel) -> SSAValue:
    kind = channel.ring.results[0].type
    assert isinstance(kind, MemRefType)
    width = dtype(str(kind.element_type)).nbytes
    elements = channel.nbytes // width
    shape = [channel.slots, elements]
    whole: MemRefType[Attribute] = MemRefType(kind.element_type, shape, memory_space=kind.memory_space)
    start = emit.value(emit.add(base, offset))
    made = emit.insert(memref.ViewOp(workspace, start, [], whole))
    made.results[0].name_hint = "ring"
    return made.results[0]


def _use_slot(emit: Emitter, channel: Channel, ring: SSAValue) -> None:
    """Replace the workspace by the slot of this iteration."""
    kind, loop = channel.ring.results[0].type, channel.ring.parent_op()
    assert isinstance(kind, MemRefType) and isinstance(ring.type, MemRefType)
    elements = ring.type.get_shape()[1]
    with emit.before(channel.ring):
        offset: Value = 0
        if channel.slots > 1:
            assert isinstance(loop, scf.ForOp)
            offset = emit.mul(emit.modulo(iteration(emit, loop), channel.slots), elements)
        strides = list(kind.get_strides() or [])
        layout = StridedLayoutAttr(strides, offset if isinstance(offset, int) else None)
        slot_type = MemRefType(kind.element_type, kind.get_shape(), layout, kind.memory_space)
        slot = emit.insert(memref.ReinterpretCastOp.from_dynamic(
            ring, [offset], list(kind.get_shape()), [step or 1 for step in strides], slot_type)).result
    _retype_users(channel.ring.results[0], slot)
    Rewriter().erase_op(channel.ring)


def _retype_users(old: SSAValue, new: SSAValue) -> None:
    """Move the users of a workspace to its slot; views of it are made anew, because their layout follows the slot's."""
    for use in list(old.uses):
        user = use.operation
        if isinstance(user, memref.SubviewOp):
            source = new.type
            assert isinstance(source, MemRefType) and isinstance(user.result.type, MemRefType)
            kind = user.result.type
            layout = StridedLayoutAttr(list(kind.get_strides() or []), None)
            made = memref.SubviewOp(
                new, list(user.offsets), list(user.sizes), list(user.strides), user.static_offsets, user.static_sizes,
                user.static_strides, MemRefType(kind.element_type, kind.shape, layout, kind.memory_space))
            made.location = user.location
            Rewriter().insert_op(made, InsertPoint.before(user))
            user.result.replace_all_uses_with(made.result)
            Rewriter.erase_op(user)
        else:
            user.operands[use.index] = new


def _flags(emit: Emitter, channel: Channel, ffts: SSAValue) -> None:
    send, receive = channel.send, channel.receive
    producer, consumer = _CORES[core_of(send)], _CORES[core_of(receive)]
    sent, received = send.pipes()[-1], receive.pipes()[-1]  # type: ignore[attr-defined]
    with emit.before(send):
        emit.insert(hivm.SyncBlockWaitOp(producer, received, "S", channel.free))
    with emit.after(send):
        emit.insert(hivm.SyncBlockSetOp(producer, sent, "S", channel.ready, ffts=ffts))
    with emit.before(receive):
        emit.insert(hivm.SyncBlockWaitOp(consumer, sent, "S", channel.ready))
    with emit.after(receive):
        emit.insert(hivm.SyncBlockSetOp(consumer, received, "S", channel.free, ffts=ffts))


def _half(function: func.FuncOp, core: str) -> func.FuncOp:
    """The function with the operations of one core only."""
    made = function.clone()
    made.properties["sym_name"] = StringAttr(f"{function.sym_name.data}_mix_{core.lower()}")
    made.attributes["hivm.func_core_type"] = hivm.FuncCoreTypeAttr(core)
    made.attributes["hivm.part_of_mix"] = UnitAttr()
    for op in reversed(list(made.walk())):
        if op is not made and core_of(op) not in (core, "either"):
            Rewriter.erase_op(op)
    tidy_function(made)
    return made


@dataclass(frozen=True)
class SplitCores(ModulePass):
    """The pass; ``chip`` names the chip whose cross-core flags there are."""

    name = "split-cores"
    chip: str = "Ascend910B2"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        flags = chips.chip(self.chip).sync.user_flag_ids
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            core = function.attributes.get("hivm.func_core_type")
            if not isinstance(core, hivm.FuncCoreTypeAttr) or core.data != "MIX":
                continue
            name = function.sym_name.data
            one_vector = not any(isinstance(inner, hivm.GetSubBlockIdxOp) for inner in function.walk())
            channels = _channels(function, flags)
            if channels and not one_vector:
                raise refuse(channels[0].ring, "a value crosses between Cube and Vector in a kernel that splits its vector "
                             "work by hand (vid)", "T242", help="leave the second name of T.Kernel out (write _)")
            nbytes = _connect(function, channels)
            made = [workspace_function(name, nbytes), task_type_function(name, 31 if one_vector else 32),
                    _half(function, "AIC"), _half(function, "AIV")]
            Rewriter().replace_op(function, made, [])
