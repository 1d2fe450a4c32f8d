"""The channels of a kernel: buffers and tensors that one kind of core writes and the other kind reads.

The Cube core and the Vector cores run at the same time, and each executes its statements in program order. A buffer that one
kind of core writes and the other kind reads is a channel: the k-th value that is read is the k-th value that was written, even
if the read is above the write in the source. The same holds for a tensor in GM that one core writes and the other reads. A
tensor that is allocated for the kernel (``tile.scratch`` on the argument) holds no data at first, so a read above the write can
only mean a value of a later write. A tensor that the caller passes may hold data. It is a channel only where every iteration of
a loop accesses the same elements of the tensor: executed as a sequence, each write but the last would then be overwritten.

The passes that use this module run before memories are inferred, so no operation states its core yet. The cores follow from the
roles of the accesses: an operand of a gemm is accessed by the Cube core.
"""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.analysis import cores
from tilelang_npu.analysis.accesses import accesses_within
from tilelang_npu.analysis.buffers import root_of, space_of, users_of
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.effects import Effect, effects_of, is_pure
from tilelang_npu.target import GM, core_of
from tilelang_npu.target.chip_data import CoreKind

_CUBE_ROLES = ("left", "right", "scale", "accumulator")
_BLOCK_FLAGS = (hivm.SyncBlockOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)


class Channels:
    """The channels of a kernel: the buffers and tensors through which the Cube core and the Vector cores pass data.

    Args:
        kernel: the function in the tile dialect.
        tensors: whether tensors in GM can be channels too. A kernel in which the author sets flags between the cores has no
            such tensors, whatever the value of ``tensors``.

    Attributes:
        found: the allocations and tensors that are channels.
    """

    def __init__(self, kernel: func.FuncOp, *, tensors: bool):
        self._uses: dict[SSAValue, list[Effect]] = {}
        for use in accesses_within(kernel):
            self._uses.setdefault(root_of(use.value), []).append(use)
        self._cores_by_buffer: dict[SSAValue, frozenset[CoreKind]] = {root: self._cores_accessing(root) for root in self._uses}
        tensors = tensors and not any(isinstance(op, _BLOCK_FLAGS) for op in kernel.walk())
        self.found = {root for root in self._uses
                      if (isinstance(root.owner, tile.AllocOp) or (tensors and space_of(root) == "gm"))
                      and self._is_channel(root)}

    def cores_of(self, op: Operation) -> frozenset[CoreKind]:
        """Returns the kinds of cores that surely execute an operation or an operation nested in it."""
        found: set[CoreKind] = set()
        for inner in op.walk():
            held = [self._cores_by_buffer[root] for use in effects_of(inner) if space_of(root := root_of(use.value)) != "gm"]
            # Otherwise the operation may be a hand-over itself.
            if held and len(held[0]) == 1 and all(own == held[0] for own in held):
                found |= held[0]
        return frozenset(found)

    def read_before_written(self, body: Block) -> set[SSAValue]:
        """Returns the channels that a block both reads and writes, and whose first read is above the first write."""
        written: set[SSAValue] = set()
        early: set[SSAValue] = set()

        def scan(block: Block) -> None:
            for op in block.ops:
                for region in op.regions:
                    for inner in region.blocks:
                        scan(inner)
                uses = list(effects_of(op))
                early.update(root for use in uses if use.reads and (root := root_of(use.value)) not in written)
                written.update(root_of(use.value) for use in uses if use.writes)

        scan(body)
        return early & written & self.found

    def is_written_outside(self, root: SSAValue, *inside: Operation) -> bool:
        """Whether any operation of the kernel writes a channel, apart from some given operations.

        Args:
            root: the channel.
            inside: the operations that do not count, nor do the operations nested in them.
        """
        return any(use.writes and not any(op.is_ancestor(use.op) for op in inside) for use in self._uses[root])

    def _cores_accessing(self, root: SSAValue) -> frozenset[CoreKind]:
        """Returns the cores that access a buffer; empty for a tensor, which both can access."""
        space = space_of(root)
        if space in ("shared", "fragment"):
            return frozenset(_core_of_role(use) for use in self._uses[root]
                             if use.role not in ("copy-source", "copy-target", "fill"))
        core = core_of(space)
        return frozenset({core}) if core else frozenset()

    def _is_channel(self, root: SSAValue) -> bool:
        """Whether one core writes a buffer or tensor and the other one reads it."""
        writers: set[CoreKind] = set()
        readers: set[CoreKind] = set()
        for use in self._uses[root]:
            if use.role in ("copy-target", "copy-source"):
                other = root_of(use.op.operands[1 - use.index])
                if space_of(root) == "gm":
                    side = self._cores_by_buffer[other]
                elif use.writes and space_of(other) != "gm":
                    side = self._cores_by_buffer[other] or frozenset[CoreKind]({"AIV"})
                else:
                    continue
            else:
                side = frozenset({_core_of_role(use)})
            writers |= side if use.writes else set()
            readers |= side if use.reads and use.role != "accumulator" else set()
        if space_of(root) == "gm":
            return len(writers) == 1 and len(readers) == 1 and writers != readers
        return ("AIV" in writers and readers == {"AIC"}) or (writers == {"AIC"} and "AIV" in readers)


def _core_of_role(use: Effect) -> CoreKind:
    """Returns the core that makes an access other than a copy or a fill: AIC for the operands of a gemm, otherwise AIV."""
    return "AIC" if use.role in _CUBE_ROLES else "AIV"


def is_hand_over(buffer: SSAValue) -> bool:
    """Whether a buffer transfers tiles between the cores.

    Such a buffer is a workspace in GM, or an on-chip buffer of one core into which the other kind of core copies.

    Raises:
        TileError: T294, a copy into the buffer has no core yet.
    """
    holder = core_of(space_of(buffer))
    return space_of(buffer) == GM or any(
        isinstance(user, tile.CopyOp) and root_of(user.target) is buffer and cores.core_of(user) != holder
        for user in users_of(buffer))


def is_at_fixed_place(root: SSAValue, loop: scf.ForOp) -> bool:
    """Whether every iteration of a loop accesses the same elements of a buffer or tensor."""
    return not any(root_of(use.value) is root and _is_loop_variant(use.value, loop) for use in accesses_within(loop))


def _is_loop_variant(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    if isinstance(owner, Block):
        inner = owner.parent_op()
        if inner is None or inner is loop or not loop.is_ancestor(inner):
            return inner is loop
        bounds = (inner.lb, inner.ub, inner.step) if isinstance(inner, scf.ForOp) else None
        return bounds is None or any(_is_loop_variant(bound, loop) for bound in bounds)
    if not loop.is_ancestor(owner):
        return False
    return not is_pure(owner) or any(_is_loop_variant(each, loop) for each in owner.operands)


def is_scratch(root: SSAValue) -> bool:
    """Whether a tensor argument of the kernel is allocated for the kernel and holds no data when the kernel starts."""
    return _has_argument_attribute(root, tile.SCRATCH)


def is_private_workspace(root: SSAValue) -> bool:
    """Whether a tensor argument of the kernel is allocated for the kernel and is accessed by this launch only."""
    return _has_argument_attribute(root, tile.WORKSPACE)


def _has_argument_attribute(root: SSAValue, name: str) -> bool:
    """Whether a value is an argument of the kernel with an attribute."""
    if not isinstance(root, BlockArgument):
        return False
    function = root.block.parent_op()
    if not isinstance(function, func.FuncOp) or function.arg_attrs is None:
        return False
    given = function.arg_attrs.data[root.index]
    return isinstance(given, DictionaryAttr) and name in given.data


__all__ = ["Channels", "is_at_fixed_place", "is_hand_over", "is_private_workspace", "is_scratch"]
