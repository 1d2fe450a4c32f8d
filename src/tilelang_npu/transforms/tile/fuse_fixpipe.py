"""Replaces copies, conversions and relu of a product on the Vector core by one copy of the fixpipe from L0C to GM.

Authors often copy a product to a second buffer, in order to convert it or to apply relu, and copy this buffer to GM. Without
the pass, such a product goes through a workspace in GM to a Vector core and back. The fixpipe, which copies the product out of
L0C, can convert and apply relu at the same time (docs/hardware.md#memories). Its results are bitwise equal to those of the
Vector core.

A multiplication by a scalar stays on the Vector core, and a remark says so. HIVM's fixpipe can multiply only float32
(``quant_scale``), and AscendNPU-IR uses this only where the author allows tf32 (``enable_fast_tf32_mul``), because the result
is rounded differently from the multiplication that the author wrote. The fixpipe cannot multiply int32, and cannot multiply and
convert in one copy.

The pass runs before memories are inferred and after ``accumulate-in-ub``. At this point, a buffer that only gemms and clears
write is in L0C.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tilelang_npu.analysis.accumulators import is_zero
from tilelang_npu.analysis.buffer_sizes import sized
from tilelang_npu.analysis.buffers import OPEN_SCOPES, PARALLEL_LABEL, is_managed, root_of, space_of, users_of
from tilelang_npu.analysis.locations import copy_location, lines_of
from tilelang_npu.analysis.nesting import is_in_core_scope
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.infra.patterns import apply_patterns

_FIXPIPE_CONVERSIONS = {("float32", "float16"), ("float32", "bfloat16")}


@dataclass
class FuseStepsIntoProductStore(RewritePattern):
    """Replaces the store of a product, and the copies, conversions and relu before it, by one copy from L0C to GM.

    ::

        tile.elementwise "relu" ins(%c) outs(%d); tile.copy %d to %C
        -> tile.copy %c to %C relu

    The buffers between the accumulator and the tensor are removed. Each of them must be managed by the compiler (see
    ``is_managed``), and must have one writer and one reader, both in the same block. Nothing is replaced in a ``T.Scope``, or
    where the author synchronises. :func:`_reason_to_keep` lists what the fixpipe cannot do.

    Attributes:
        module: the module, to which remarks are added.
        products: the buffers that will be in L0C: those that only gemms and clears write.
    """

    module: ModuleOp
    products: set[SSAValue]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CopyOp, rewriter: PatternRewriter) -> None:
        if not _is_plain_copy(op) or space_of(root_of(op.target)) != "gm":
            return
        name, where = FuseFixpipe.name, location_of(op)
        path = _path_to_store(op, self.products)
        if path is None:
            refusal = _other_use_of_stored_buffer(op, self.products)
            if refusal is not None:
                record_refusal(self.module, name, where, refusal.why, refusal.edit)
            return
        if not path.steps:
            return
        refusal = _reason_to_keep(path)
        if refusal is not None:
            record_refusal(self.module, name, where, f"{refusal.why}; the product is {sized(path.product)}", refusal.edit)
            return
        converts = len(set(path.types)) > 1
        work = [f"as {path.types[0]}"] * converts + ["with relu"] * path.relu
        removed = [buffer.label.data for buffer in path.buffers if buffer.label.data != PARALLEL_LABEL]
        without = [f"without the buffer {', '.join(removed)}"] if removed else []
        record_done(self.module, name, where, " ".join(["the fixpipe copies the product from L0C to GM", *work, *without]))
        fused = tile.CopyOp(path.product, op.target, relu=path.relu, round_mode="rint" if converts else None)
        copy_location(op, fused)
        rewriter.replace(op, fused)
        for replaced in (*path.steps, *path.buffers):
            rewriter.erase(replaced)


@dataclass
class _Path:
    """The operations and buffers through which a product gets to GM, from the last to the first.

    Attributes:
        store: the copy to GM.
        product: the buffer in L0C.
        types: the element types: of the tensor, of each buffer between, and of the product.
        steps: the operations between the product and the store.
        buffers: the buffers that these operations write.
        relu: whether a step applies relu.
        factors: the number of steps that multiply by a scalar or divide by one.
    """

    store: tile.CopyOp
    product: SSAValue
    types: list[str]
    steps: list[Operation] = field(default_factory=list)
    buffers: list[tile.AllocOp] = field(default_factory=list)
    relu: bool = False
    factors: int = 0


def _path_to_store(store: tile.CopyOp, products: set[SSAValue]) -> _Path | None:
    """Returns the path from a product to its store, if all buffers on the path have no other use; else None."""
    path = _Path(store, store.source, types=[_element_type(store.target), _element_type(store.source)])
    reader: Operation = store
    while path.product not in products:
        buffer = path.product
        writer = _only_writer(buffer, reader)
        if writer is None or not writer.is_before_in_block(reader):
            return None
        copied, rectified, scaled = _copied_by(writer, buffer), _rectified_by(writer, buffer), _scaled_by(writer, buffer)
        source = copied or rectified or scaled
        if source is None:
            return None
        path.relu = path.relu or rectified is not None
        path.factors += scaled is not None
        assert isinstance(buffer.owner, tile.AllocOp)
        path.buffers.append(buffer.owner)
        path.steps.append(writer)
        path.types.append(_element_type(source))
        path.product, reader = source, writer
    return path


def _only_writer(buffer: SSAValue, reader: Operation) -> Operation | None:
    """Returns the other operation that uses a managed buffer, if there is one besides its reader, in the reader's block."""
    if not is_managed(buffer):
        return None
    others: list[Operation] = [use.operation for use in buffer.uses if use.operation is not reader]
    if len(others) != 1 or len(list(buffer.uses)) != 2 or others[0].parent_block() is not reader.parent_block():
        return None
    return others[0]


def _copied_by(op: Operation, target: SSAValue) -> SSAValue | None:
    """Returns the tile that an operation copies to ``target``, or converts to its type rounding to nearest even; else None."""
    if isinstance(op, tile.CopyOp) and op.target is target and _is_plain_copy(op):
        converts = _element_type(op.source) != _element_type(target)
        return op.source if not converts or op.round_mode is None or op.round_mode.data == "rint" else None
    # A cast has attributes if it rounds otherwise, or takes its operand as unsigned.
    if isinstance(op, tile.ElementwiseOp) and op.target is target and op.entry().name == "cast" and not op.attributes:
        return _tiles(op)[0]
    return None


def _rectified_by(op: Operation, target: SSAValue) -> SSAValue | None:
    """Returns the tile of which an operation writes relu, or the maximum with 0, to ``target``; else None."""
    if not isinstance(op, tile.ElementwiseOp) or op.target is not target:
        return None
    tiles, name = _tiles(op), op.entry().name
    scalars = [value for value in op.inputs if not isinstance(value.type, MemRefType)]
    is_relu = name == "relu" or (name == "max" and len(scalars) == 1 and is_zero(scalars[0]))
    return tiles[0] if is_relu and len(tiles) == 1 else None


def _scaled_by(op: Operation, target: SSAValue) -> SSAValue | None:
    """Returns the tile that an operation multiplies by a scalar, or divides by one, into ``target``; else None."""
    if not isinstance(op, tile.ElementwiseOp) or op.target is not target or op.entry().name not in ("mul", "div"):
        return None
    tiles = _tiles(op)
    return tiles[0] if len(tiles) == 1 and (op.entry().name == "mul" or op.inputs[0] is tiles[0]) else None


def _tiles(op: tile.ElementwiseOp) -> list[SSAValue]:
    return [value for value in op.inputs if isinstance(value.type, MemRefType)]


def _element_type(value: SSAValue) -> str:
    kind = value.type
    assert isinstance(kind, MemRefType)
    return str(dtype_of(kind.element_type))


def _is_plain_copy(copy: tile.CopyOp) -> bool:
    """Whether a copy moves elements and may convert them, and does nothing else."""
    return copy.atomic is None and copy.transpose is None and copy.relu is None and copy.pad is None


def _other_use_of_stored_buffer(store: tile.CopyOp, products: set[SSAValue]) -> Refusal | None:
    """Returns the refusal of a store whose buffer gets a product and has other users than the store; else None.

    None also where the author could not change it: another operation has written to the buffer before the store, so that more
    than the product is stored.
    """
    buffer = store.source
    users = [op for op in users_of(buffer) if op is not store]
    from_product = [op for op in users if (source := _copied_by(op, buffer) or _rectified_by(op, buffer)) is not None
                    and source in products]
    if not from_product or len(users) == 1 or not is_managed(buffer) or is_in_core_scope(store):
        return None
    other_writers = [op for op in users if op is not from_product[0]
                     and any(effect.writes and root_of(effect.value) is buffer for effect in effects_of(op))]
    if not all(op.parent_block() is store.parent_block() and store.is_before_in_block(op) for op in other_writers):
        return None
    assert isinstance(buffer.owner, tile.AllocOp)
    lines = lines_of(op for op in users if op is not from_product[0])
    return Refusal(f"the product goes through UB: {sized(buffer)} is used at {lines} too",
                   f"copy the product to the tensor directly, and to {buffer.owner.label.data} for the other uses")


def _reason_to_keep(path: _Path) -> Refusal | None:
    """Returns which step of a path the fixpipe cannot do, or not with the same bits; None if it can do all of them."""
    conversions = [(before, after) for after, before in zip(path.types, path.types[1:], strict=False) if before != after]
    if path.factors:
        why = ("the fixpipe can multiply float32 products only" if path.types[-1] != "float32"
               else "the fixpipe multiplies in tf32, which gives other bits than float32")
        return Refusal(f"the product is multiplied in UB: {why}",
                       "multiply an operand of the gemm instead, if it has fewer elements")
    if len(conversions) > 1:
        return Refusal(f"the product goes through UB: the product is converted twice, {' to '.join(reversed(path.types))}",
                       "convert only once, from the type of the accumulator to that of the tensor")
    if not set(conversions) <= _FIXPIPE_CONVERSIONS:
        ((before, after),) = conversions
        return Refusal(f"the product goes through UB: the fixpipe does not convert {before} to {after}",
                       "let the tensor be float16, bfloat16 or of the accumulator's type" if before == "float32"
                       else f"let the tensor be {before}")
    if path.relu and path.types[-1] != "float32":
        return Refusal("the product goes through UB: the fixpipe has relu for float32 only, and the product is "
                       f"{path.types[-1]}", "apply relu in the statement that loads the tensor later")
    shape = tile.shape_of(path.product)
    if shape != tile.shape_of(path.store.source) or len(shape) != 2:
        return Refusal("the product goes through UB: the store has another shape than the accumulator, or not two axes",
                       "store the whole accumulator in its own shape, which must have two axes")
    if not _keeps_product_until_store(path) or is_in_core_scope(path.store):
        return Refusal("the product goes through UB: the accumulator is written again before the store, or the author "
                       "synchronises",
                       "store the product right after its last gemm, and leave the waits to the compiler")
    return None


def _keeps_product_until_store(path: _Path) -> bool:
    """Whether between the first step and the store nothing writes the product, and the author does not synchronise."""
    op = path.steps[-1].next_op
    while op is not None and op is not path.store:
        for inner in op.walk():
            written = {root_of(effect.value) for effect in effects_of(inner) if effect.writes}
            if inner.name.startswith("hivm.") or path.product in written:
                return False
        op = op.next_op
    return op is not None


def _product_buffers(module: ModuleOp) -> set[SSAValue]:
    """Returns the allocated buffers that only gemms and clears write, at least one gemm among them."""
    found = {root_of(op.c) for op in module.walk() if isinstance(op, tile.GemmOp)}
    for op in module.walk() if found else ():
        if isinstance(op, tile.GemmOp) or (isinstance(op, tile.FillOp) and is_zero(op.value)):
            continue
        for effect in effects_of(op):
            if effect.writes:
                found.discard(root_of(effect.value))
    return {buffer for buffer in found if isinstance(buffer.owner, tile.AllocOp) and space_of(buffer) in (*OPEN_SCOPES, "cc")}


@dataclass(frozen=True)
class FuseFixpipe(ModulePass):
    """Replaces copies, conversions and relu of a product on the Vector core by one copy of the fixpipe from L0C to GM.

    Attributes:
        enabled: whether the pass does anything.
    """

    name = "fuse-fixpipe"
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.enabled and (products := _product_buffers(op)):
            apply_patterns(op, FuseStepsIntoProductStore(op, products), classes=tile.CopyOp)


__all__ = ["FuseFixpipe", "FuseStepsIntoProductStore"]
