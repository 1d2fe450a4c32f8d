"""What passes between the two cores of a kernel, as far as the tile dialect tells: the channels, and who is at which end.

This is asked before memories are inferred, and so before an operation has its core: what buffers are used for tells the ends.

Cube and Vector run side by side, each in the order of its own statements, and a buffer that one fills and the other
reads is a channel between them: the k-th value received is the k-th sent, wherever the two statements stand. The same
holds for a tensor that one core writes and the other reads. One that is allocated for the kernel (``tile.scratch`` on the
argument) holds nothing at first, so that reading it early cannot mean anything else. One that the caller passes may
hold values, and is a channel only where every iteration of a loop uses the same place in it: read as a sequence, all
writes but the last would be lost.
"""

from __future__ import annotations

from typing import Literal

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.effects import Effect, effects_of, is_pure
from tilelang_npu.target import GM, core_of
from tilelang_npu.transforms.ir import cores
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of

Core = Literal["cube", "vector"]
_CORES: dict[str, frozenset[Core]] = {"AIC": frozenset({"cube"}), "AIV": frozenset({"vector"})}
_CUBE_ROLES = ("left", "right", "accumulator")
_BY_HAND = (hivm.SyncBlockOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)


def uses_below(op: Operation) -> list[Effect]:
    """The buffer operands of an operation and of those inside it, in program order."""
    return [use for inner in op.walk() for use in effects_of(inner)]


class Channels:
    """The channels of a kernel.

    Args:
        kernel: the function in the tile dialect.
        tensors: count scratch tensors too, unless the user's own flags order them.
    """

    def __init__(self, kernel: func.FuncOp, *, tensors: bool):
        self._uses: dict[SSAValue, list[Effect]] = {}
        for use in uses_below(kernel):
            self._uses.setdefault(root_of(use.value), []).append(use)
        self._cores: dict[SSAValue, frozenset[Core]] = {root: self._cores_of(root) for root in self._uses}
        tensors = tensors and not any(isinstance(op, _BY_HAND) for op in kernel.walk())
        self.found = {root for root in self._uses
                      if (isinstance(root.owner, tile.AllocOp) or (tensors and space_of(root) == "gm")) and self._crosses(root)}

    def cores(self, op: Operation) -> frozenset[Core]:
        """The cores that an operation, with those inside it, surely runs on."""
        found: set[Core] = set()
        for inner in op.walk():
            held = [self._cores[root] for use in effects_of(inner) if space_of(root := root_of(use.value)) != "gm"]
            if held and len(held[0]) == 1 and all(own == held[0] for own in held):  # else it may be a hand-over itself
                found |= held[0]
        return frozenset(found)

    def early(self, body: Block) -> set[SSAValue]:
        """Channels that a block reads before it writes them."""
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

    def written_outside(self, root: SSAValue, *inside: Operation) -> bool:
        """Whether something outside some operations writes a channel."""
        return any(use.writes and not any(op.is_ancestor(use.op) for op in inside) for use in self._uses[root])

    def _cores_of(self, root: SSAValue) -> frozenset[Core]:
        """The cores that work on a buffer; none for a tensor, which both see."""
        space = space_of(root)
        if space in ("shared", "fragment"):
            return frozenset("cube" if use.role in _CUBE_ROLES else "vector" for use in self._uses[root]
                             if use.role not in ("copy-source", "copy-target", "fill"))
        return _CORES.get(core_of(space), frozenset())

    def _crosses(self, root: SSAValue) -> bool:
        """Whether one core fills a buffer and the other reads it."""
        writers: set[Core] = set()
        readers: set[Core] = set()
        for use in self._uses[root]:
            if use.role in ("copy-target", "copy-source"):
                other = root_of(use.op.operands[1 - use.index])
                if space_of(root) == "gm":
                    side = self._cores[other]
                elif use.writes and space_of(other) != "gm":
                    side = self._cores[other] or frozenset({"vector"})
                else:
                    continue
            else:
                side = frozenset({"cube"} if use.role in _CUBE_ROLES else {"vector"})
            writers |= side if use.writes else set()
            readers |= side if use.reads and use.role != "accumulator" else set()
        if space_of(root) == "gm":
            return len(writers) == 1 and len(readers) == 1 and writers != readers
        return ("vector" in writers and readers == {"cube"}) or (writers == {"cube"} and "vector" in readers)


def is_hand_over(buffer: SSAValue) -> bool:
    """Whether a buffer is where one core leaves what the other one wants: a workspace, or what the other core fills."""
    holder = core_of(space_of(buffer))
    return space_of(buffer) == GM or any(
        isinstance(user, tile.CopyOp) and root_of(user.target) is buffer and cores.core_of(user) != holder
        for user in users_of(buffer))


def stays(root: SSAValue, loop: scf.ForOp) -> bool:
    """Whether every iteration of a loop touches the same elements of a buffer or tensor."""
    return not any(root_of(use.value) is root and _varies(use.value, loop) for use in uses_below(loop))


def _varies(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    if isinstance(owner, Block):
        inner = owner.parent_op()
        if inner is None or inner is loop or not loop.is_ancestor(inner):
            return inner is loop
        return not isinstance(inner, scf.ForOp) or any(_varies(bound, loop) for bound in (inner.lb, inner.ub, inner.step))
    if not loop.is_ancestor(owner):
        return False
    return not is_pure(owner) or any(_varies(each, loop) for each in owner.operands)


def is_scratch(root: SSAValue) -> bool:
    """Whether a tensor is allocated for the kernel, with nothing in it."""
    return _says(root, tile.SCRATCH)


def is_unseen(root: SSAValue) -> bool:
    """Whether a tensor is allocated for the kernel, and nobody but this launch sees what is in it."""
    return _says(root, tile.WORKSPACE)


def _says(root: SSAValue, name: str) -> bool:
    """Whether an argument has an attribute."""
    if not isinstance(root, BlockArgument):
        return False
    function = root.block.parent_op()
    if not isinstance(function, func.FuncOp) or function.arg_attrs is None:
        return False
    given = function.arg_attrs.data[root.index]
    return isinstance(given, DictionaryAttr) and name in given.data
