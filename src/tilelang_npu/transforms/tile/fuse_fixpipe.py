"""Let the fixpipe convert and rectify what goes from L0C to GM, in place of a way through UB.

A product that an author copies to a second buffer, for another element type, for relu, or for nothing, and from there to GM,
would go by a workspace in GM to a Vector core and back. The fixpipe does these on its way out of L0C
(docs/hardware.md#memories): the copies become one, and the buffers in between go. Conversions and relu are those of the Vector
core, to the bit.

Only what the compiler manages is touched: buffers in between whose memory is left open or that ``T.Parallel`` made, written
once and read once, in one block, and not where an author has put work on a core or synchronises. Nothing there has an effect
of its own, so that no diagnostic is lost: what is read of L0C is read as before.

A factor on the way stays with the Vector core, which is remarked. HIVM's fixpipe has one for float32 alone
(``quant_scale``), and AscendNPU-IR puts a product with a number there only where the author allows tf32 for it
(``enable_fast_tf32_mul``): it rounds otherwise than the product that the author wrote. For int32, and together with a
conversion, it has none.

Runs before memories are inferred, behind ``accumulate-in-ub``: a buffer that gemms and clears alone write is in L0C.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of
from tilelang_npu.transforms.ir.locations import lines_of, stand_in
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.sizes import sized
from tilelang_npu.transforms.tile.accumulators import is_zero
from tilelang_npu.transforms.tile.managed import OPEN, is_managed, is_on_a_core
from tilelang_npu.transforms.tile.parallel.indices import MADE

_CONVERTED = {("float32", "float16"), ("float32", "bfloat16")}


@dataclass
class _Way:
    """How a product gets to GM.

    Attributes:
        store: the copy to GM.
        steps: the operations before it, the last first.
        between: the buffers in between.
        relu: whether one of the steps rectifies.
        types: the element types on the way, the last first.
        product: where it starts from.
        factors: how many of the steps multiply with a number.
    """

    store: tile.CopyOp
    steps: list[Operation] = field(default_factory=list)
    between: list[tile.AllocOp] = field(default_factory=list)
    relu: bool = False
    types: list[str] = field(default_factory=list)
    product: SSAValue | None = None
    factors: int = 0


def _type_of(value: SSAValue) -> str:
    kind = value.type
    assert isinstance(kind, MemRefType)
    return str(dtype_of(kind.element_type))


def _products(module: Operation) -> set[SSAValue]:
    """The buffers that gemms and clears alone write."""
    found = {root_of(op.c) for op in module.walk() if isinstance(op, tile.GemmOp)}
    for op in module.walk():
        for use in effects_of(op):
            if use.writes and not isinstance(op, tile.GemmOp) and not (isinstance(op, tile.FillOp) and is_zero(op.value)):
                found.discard(root_of(use.value))
    return {buffer for buffer in found if isinstance(buffer.owner, tile.AllocOp) and space_of(buffer) in (*OPEN, "cc")}


def _is_plain(copy: tile.CopyOp) -> bool:
    return copy.atomic is None and copy.transpose is None and copy.relu is None and copy.pad is None


def _between(value: SSAValue, reader: Operation) -> tuple[tile.AllocOp, Operation] | None:
    """The allocation behind a buffer that one operation writes and ``reader`` reads, and that operation."""
    owner = value.owner
    if not isinstance(owner, tile.AllocOp) or not is_managed(value):
        return None
    users = [use.operation for use in value.uses if use.operation is not reader]
    if len(users) != 1 or len(list(value.uses)) != 2 or users[0].parent_block() is not reader.parent_block():
        return None
    return owner, users[0]


def _step(op: Operation, target: SSAValue) -> tuple[SSAValue, bool] | None:
    """What an operation takes to ``target`` unchanged but for its type, and whether it rectifies it."""
    if isinstance(op, tile.CopyOp) and op.target is target and _is_plain(op):
        changes = _type_of(op.source) != _type_of(target)
        return (op.source, False) if not changes or op.round_mode is None or op.round_mode.data == "rint" else None
    if isinstance(op, tile.ElementwiseOp) and op.target is target:
        tiles = [value for value in op.inputs if isinstance(value.type, MemRefType)]
        others = [value for value in op.inputs if not isinstance(value.type, MemRefType)]
        name = op.entry().name
        if name == "cast" and not op.attributes:  # to the nearest, signed
            return tiles[0], False
        if len(tiles) == 1 and (name == "relu" or (name == "max" and len(others) == 1 and is_zero(others[0]))):
            return tiles[0], True
    return None


def _scaled(op: Operation, target: SSAValue) -> SSAValue | None:
    """What an operation takes to ``target`` times a number, or divided by one."""
    if isinstance(op, tile.ElementwiseOp) and op.target is target and op.entry().name in ("mul", "div"):
        tiles = [value for value in op.inputs if isinstance(value.type, MemRefType)]
        if len(tiles) == 1 and (op.entry().name == "mul" or op.inputs[0] is tiles[0]):
            return tiles[0]
    return None


def _way(store: tile.CopyOp, products: set[SSAValue]) -> _Way | None:
    """The way of a product to a store through buffers of no other use; None where there is none."""
    way, value, reader = _Way(store, types=[_type_of(store.target), _type_of(store.source)]), store.source, store
    current: Operation = reader
    while value not in products:
        link = _between(value, current)
        if link is None or not link[1].is_before_in_block(current):
            return None
        step, factor = _step(link[1], value), _scaled(link[1], value)
        if step is not None:
            value, way.relu = step[0], way.relu or step[1]
        elif factor is not None:
            value, way.factors = factor, way.factors + 1
        else:
            return None
        way.between.append(link[0])
        way.steps.append(link[1])
        current = link[1]
        way.types.append(_type_of(value))
    way.product = value
    return way


def _shared(store: tile.CopyOp, products: set[SSAValue]) -> Refusal | None:
    """What keeps a buffer between a product and a store that is of other use, too; None where that is not all."""
    value = store.source
    users = [op for op in users_of(value) if op is not store]
    from_product = [op for op in users if (step := _step(op, value)) is not None and step[0] in products]
    if not from_product or len(users) == 1 or not is_managed(value) or is_on_a_core(store):
        return None
    others = [op for op in users if op is not from_product[0]
              and any(use.writes and root_of(use.value) is value for use in effects_of(op))]
    if not all(op.parent_block() is store.parent_block() and store.is_before_in_block(op) for op in others):
        return None  # what is stored is more than the product
    assert isinstance(value.owner, tile.AllocOp)
    lines = lines_of(op for op in users if op is not from_product[0])
    return Refusal(f"the product goes through UB: {sized(value)} is used at {lines} too",
                   f"copy the product to the tensor by itself, and to {value.owner.label.data} for the rest")


def _kept(way: _Way) -> Refusal | None:
    """Why the fixpipe does not do all that is done on a way, to the bit; None where it does."""
    store, value = way.store, way.product
    assert value is not None
    changes = [(one, other) for other, one in zip(way.types, way.types[1:], strict=False) if one != other]
    if way.factors:
        why = ("HIVM's fixpipe has a factor for float32 alone" if way.types[-1] != "float32"
               else "the factor of the fixpipe is of tf32, and gives other bits than float32")
        return Refusal(f"the product is multiplied in UB: {why}", "multiply an operand of the gemm instead, where it is less")
    if len(changes) > 1:
        return Refusal(f"the product goes through UB: it is {', then '.join(reversed(way.types))} on its way",
                       "convert once, from the type of the accumulator to that of the tensor")
    if not set(changes) <= _CONVERTED:
        ((one, other),) = changes
        return Refusal(f"the product goes through UB: the fixpipe does not convert {one} to {other}",
                       "let the tensor be float16, bfloat16 or of the accumulator's type" if one == "float32"
                       else f"let the tensor be {one}")
    if way.relu and way.types[-1] != "float32":
        return Refusal(f"the product goes through UB: the fixpipe has relu for float32, and this is {way.types[-1]}",
                       "rectify what is loaded from the tensor later on")
    if tile.shape_of(value) != tile.shape_of(store.source) or len(tile.shape_of(value)) != 2:
        return Refusal("the product goes through UB: it is stored in another shape than that of a matrix of its own",
                       "store the whole accumulator, of two axes")
    if not _is_undisturbed(way):
        return Refusal("the product goes through UB: on its way it is written again, or its author synchronises",
                       "store the product right behind its last gemm, and leave the waits to the compiler")
    return None


def _is_undisturbed(way: _Way) -> bool:
    """Whether nothing between the first step and the store writes the product, or is the author's synchronisation."""
    op = way.steps[-1].next_op
    while op is not None and op is not way.store:
        for inner in op.walk():
            written = {root_of(use.value) for use in effects_of(inner) if use.writes}
            if inner.name.startswith("hivm.") or way.product in written:
                return False
        op = op.next_op
    return op is not None and not is_on_a_core(way.store)


def _fuse(way: _Way) -> None:
    assert way.product is not None
    changes = len(set(way.types)) > 1
    made = tile.CopyOp(way.product, way.store.target, relu=way.relu, round_mode="rint" if changes else None)
    stand_in(way.store, made)
    Rewriter().insert_op(made, InsertPoint.before(way.store))
    for op in (way.store, *way.steps, *way.between):
        Rewriter.erase_op(op)


@dataclass(frozen=True)
class FuseFixpipe(ModulePass):
    """The pass; ``fuse`` is whether it does anything."""

    name = "fuse-fixpipe"
    fuse: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        products = _products(op) if self.fuse else set[SSAValue]()
        stores = [inner for inner in op.walk() if isinstance(inner, tile.CopyOp) and _is_plain(inner)
                  and space_of(root_of(inner.target)) == "gm"]
        for store in stores if products else ():
            way, where = _way(store, products), location_of(store)
            if way is None:
                shared = _shared(store, products)
                if shared is not None:
                    record_refusal(op, self.name, where, shared.why, shared.edit)
            if way is None or not way.steps or way.product is None:
                continue
            kept = _kept(way)
            if kept is not None:
                record_refusal(op, self.name, where, f"{kept.why}; it is {sized(way.product)}", kept.edit)
                continue
            names = [one.label.data for one in way.between if one.label.data != MADE]
            said = [f"as {way.types[0]}"] * (len(set(way.types)) > 1) + ["with relu"] * way.relu
            without = [f"without {', '.join(names)}"] if names else []
            record_done(op, self.name, where, " ".join(["the product goes to GM by the fixpipe", *said, *without]))
            _fuse(way)


__all__ = ["FuseFixpipe"]
