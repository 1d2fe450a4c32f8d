"""Chooses the memory of every buffer: ``shared`` becomes L1 or UB, ``fragment`` becomes L0C or UB, as the accesses require.

A gemm reads its operands from L1 and accumulates in L0C. Vector work reads and writes UB. A buffer that is only copied is in
UB. A buffer that needs several memories gets an allocation in each of them, which are called its homes. Before an operation
that reads a home without the latest value, a copy to this home is inserted (:mod:`.coherence`). If the chip has no path between
two homes on different cores, or if the tile does not fit the path, the buffer gets a further home in GM, a workspace: the
writing core stores the value there before the first read, and the reading core loads it. A memory that the author
chose is kept; an access that this memory does not allow is an error. Scalar storage (``T.alloc_local``, ``T.alloc_var``) that
an operation on tiles uses is placed in UB, where single elements can be accessed too. If the only operations on tiles are
fills, each fill is expanded to stores of single elements instead.

The pass runs on the tile dialect, before lowering. It is sound because an operation reads a home only if this home holds the
latest value on every path: where paths join, the sets of valid homes are intersected, and loops are analysed until their sets
do not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffers import OPEN_SCOPES, root_of, space_of, users_of, with_space
from tilelang_npu.analysis.locations import line_of, location_of, refuse
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import Effect, effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import DONE, Remark, Scoped, add_remark
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.target import GM, name_of
from tilelang_npu.target.chip_data import BufferSpace, Space
from tilelang_npu.transforms.infra.expand_fills import ExpandScalarStorageFill
from tilelang_npu.transforms.tile.infer_scopes.coherence import NEEDED_MEMORY, BufferHomes, Coherence, allocate_home
from tilelang_npu.transforms.tile.infer_scopes.copy_paths import CopyPaths, converts_elements
from tilelang_npu.transforms.tile.infer_scopes.vector_copies import vector_core_copies

_OPERAND_NAMES = {"image": "the image of T.tile.im2col", "left": "the left operand of a gemm",
                  "right": "the right operand of a gemm", "scale": "the scales of a gemm",
                  "accumulator": "the accumulator of a gemm",
                  "vector": "an operand of vector work", "scalar": "an element access"}


def _needed_memories(uses: Iterable[Effect], vector_copies: set[tile.CopyOp]) -> list[Space]:
    """Returns the memories that the accesses of a buffer require; ``vector_copies`` are the copies that only the Vector core
    can do.
    """
    found: list[Space] = []
    for use in uses:
        if use.role in NEEDED_MEMORY:
            found.append(NEEDED_MEMORY[use.role])
        elif use.op in vector_copies:
            found.append("ub")
        elif use.role == "copy-source" and space_of(use.op.operands[1]) in ("ca", "cb"):
            found.append("cbuf")  # what L0A and L0B are loaded from
    return list(dict.fromkeys(found))


def _add_memories_between(spaces: dict[SSAValue, list[Space]], module: ModuleOp, paths: CopyPaths) -> None:
    """Adds memories through which values must pass to the memories of each buffer.

    That is GM for a buffer that passes values between the cores without a direct path, and UB for a value that was copied into
    a buffer of the Cube core and changes its element type on the way out, or whose type fixpipe cannot change.
    """
    copies = [op for op in module.walk() if isinstance(op, tile.CopyOp)]
    filled = {root_of(op.target) for op in copies}
    for op in copies:
        source = root_of(op.source)
        if converts_elements(op) and "cc" in spaces.get(source, ()) and (
                source in filled or paths.must_convert_in_ub(op, spaces.get(root_of(op.target), ()))):
            _append_new(spaces[source], "ub")
    for buffer, found in spaces.items():
        on_chip = [space for space in found if space != GM]
        if any(not paths.has_path(a, b, buffer) and not paths.has_path(b, a, buffer) for a, b in combinations(on_chip, 2)):
            _append_new(found, GM)
    for op in copies:
        source, target = root_of(op.source), root_of(op.target)
        if source in spaces and target in spaces:
            onward = paths.can_copy(op, "ub", "cbuf")
            if "ub" in spaces[source] and "cbuf" in spaces[target] and "ub" not in spaces[target] and not onward:
                _append_new(spaces[target], GM)  # even if the source has other homes, the latest value may be in UB
            if any(paths.can_copy(op, s, t) for s in spaces[source] for t in spaces[target]):
                continue
            if "cc" in spaces[source] or ("cbuf" in spaces[source] and "ub" in spaces[target]):
                _append_new(spaces[source], GM)
            elif "cbuf" in spaces[target]:
                _append_new(spaces[target], GM)


def _append_new(spaces: list[Space], space: Space) -> None:
    if space not in spaces:
        spaces.append(space)


def _describe_buffer(buffer: SSAValue) -> str:
    """Describes a buffer or a tensor argument: name, shape and element type."""
    name = buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else author_name(buffer, "the tensor")
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    return f"{name} {tile.shape_text(tile.shape_of(buffer))} {dtype_of(kind.element_type)}"


def _describe_purpose(use: Effect) -> str:
    """Describes why an access needs its buffer: ``an operand of exp``."""
    op = use.op
    if isinstance(op, (tile.ElementwiseOp, tile.ReduceOp, tile.CallOp)):
        return f"an operand of {op.entry().name}"
    return _OPERAND_NAMES[use.role]


def _place_scalar_storage(buffer: SSAValue) -> None:
    """Gives scalar storage a home in UB if an operation accesses it as a tile; otherwise expands its fills."""
    elements = (memref.LoadOp, memref.StoreOp, memref.DimOp, tile.RegionOp, tile.ViewOp)
    users = [user for user in users_of(buffer) if not isinstance(user, elements)]
    if any(not isinstance(user, tile.FillOp) for user in users):
        _change_memory(buffer, "ub")
        return
    for fill in users:
        assert isinstance(fill, tile.FillOp)
        ExpandScalarStorageFill().match_and_rewrite(fill, PatternRewriter(fill))


def _refuse_wrong_memory(buffer: SSAValue, space: BufferSpace, uses: Iterable[Effect]) -> None:
    """Checks that the memory of a buffer serves all its accesses.

    Raises:
        TileError: T201, it does not.
    """
    label = _describe_buffer(buffer)
    for use in uses:
        wanted = NEEDED_MEMORY.get(use.role)
        if wanted is None or wanted == space or space == "local":
            continue
        if (space, use.role) in (("gm", "scalar"), ("ca", "left"), ("cb", "right")):
            continue
        raise refuse(
            use.op,
            f"{label} is in {name_of(space)}, but this use needs it in {name_of(wanted)} (it is {_describe_purpose(use)})",
            "T201",
            notes=(f"it is allocated at {line_of(buffer.owner)}",) if isinstance(buffer.owner, Operation) else (),
            help=f"copy it into a buffer in {name_of(wanted)} first, or allocate it with T.alloc_shared",
        )


def _change_memory(value: SSAValue, space: Space) -> None:
    """Changes the memory of an allocation and of every view of it."""
    pending = [value]
    while pending:
        current = pending.pop()
        assert isinstance(current.type, MemRefType)
        changed = Rewriter.replace_value_with_new_type(current, with_space(current.type, space))
        for use in list(_using_ops(changed)):
            if isinstance(use, (tile.RegionOp, tile.ViewOp)):
                pending.append(use.results[0])


def _using_ops(value: SSAValue) -> Iterable[Operation]:
    return [use.operation for use in value.uses]


@dataclass(frozen=True)
class InferScopes(ModulePass):
    """Chooses the memory of every buffer: ``shared`` becomes L1 or UB, ``fragment`` becomes L0C or UB, as the accesses require.

    Attributes:
        chip: the name of the chip, which determines the paths between memories.
    """

    name = "infer-scopes"
    chip: str = chips.DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        by_author = any(isinstance(inner, tile.LaunchOp) and inner.explicit_sub_block is not None for inner in op.walk())
        paths = CopyPaths(chips.chip(self.chip), between_cores=not by_author)
        for allocation in [inner for inner in op.walk() if isinstance(inner, tile.AllocOp)]:
            if space_of(allocation.result) == "local":
                _place_scalar_storage(allocation.result)
        uses: dict[SSAValue, list[Effect]] = {}
        allocations: list[tile.AllocOp] = []
        for inner in op.walk():
            if isinstance(inner, tile.AllocOp):
                allocations.append(inner)
            for use in effects_of(inner):
                uses.setdefault(root_of(use.value), []).append(use)
        vector_copies = vector_core_copies(op)
        spaces: dict[SSAValue, list[Space]] = {}
        for allocation in allocations:
            buffer: SSAValue = allocation.result
            space = space_of(buffer)
            if space == "local":
                continue
            if space == "shared" or space == "fragment":
                spaces[buffer] = _needed_memories(uses.get(buffer, ()), vector_copies) or ["ub"]
            else:
                _refuse_wrong_memory(buffer, space, uses.get(buffer, ()))
                spaces[buffer] = [space]
        for buffer, found in uses.items():
            if space_of(buffer) == "gm":
                _refuse_wrong_memory(buffer, "gm", found)
        _add_memories_between(spaces, op, paths)
        named = [(each.result, location_of(each), each.label.data, [space_of(each.result)]) for each in allocations]
        homes: dict[SSAValue, BufferHomes] = {}
        for buffer, wanted in spaces.items():
            if len(wanted) == 1:
                if space_of(buffer) in OPEN_SCOPES:
                    _change_memory(buffer, wanted[0])
            else:
                owner = buffer.owner
                assert isinstance(owner, tile.AllocOp)
                label = owner.label.data
                homes[buffer] = BufferHomes(label, {space: allocate_home(owner, label, space) for space in wanted})
        if homes:
            coherence = Coherence(op, homes, vector_copies, paths)
            blocks = [block for region in op.regions for block in region.blocks]
            cleared = {root_of(inner.target) for inner in op.walk() if isinstance(inner, tile.FillOp)} & homes.keys()
            if any({"cc", "ub"} <= homes[buffer].by_space.keys() for buffer in cleared):
                coherence.place_clears(blocks)
            for block in blocks:
                coherence.walk_block(block, {}, place=True)
            for buffer in homes:
                _erase_with_views(buffer)
        for buffer, place, label, own in named:
            memories = homes[buffer].by_space if buffer in homes else spaces.get(buffer, own)
            add_remark(op, Remark(self.name, DONE, place=place, facts=Scoped(label, tuple(memories))))


def _erase_with_views(buffer: SSAValue) -> None:
    """Erases an allocation whose accesses all moved to its homes, with its views."""
    for use in list(_using_ops(buffer)):
        if isinstance(use, (tile.RegionOp, tile.ViewOp)):
            _erase_with_views(use.results[0])
    owner = buffer.owner
    assert isinstance(owner, Operation)
    Rewriter.erase_op(owner)
