"""Verification rules of MLIR for linalg ops, which are loop nests over their operands: indexing maps, sizes and bodies."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, MemRefType, ShapedType, TensorType
from xdsl.dialects.linalg.ops import BroadcastOp, IndexOp, TransposeOp
from xdsl.dialects.linalg.ops import GenericOp as _Generic
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from tilelang_npu.dialects.ir.declaration import Rule, require
from tilelang_npu.dialects.ir.fields import integers_in
from tilelang_npu.dialects.mlir.rules import is_float, is_signless

_MATRICES = ((0, 2), (2, 1), (0, 1))
"""The loops (0 rows, 1 columns, 2 sum) of a matrix product that run over the axes of each operand."""


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """Returns the shape of a tensor, memref or vector type; empty for any other type."""
    return type_.get_shape() if isinstance(type_, ShapedType) else ()


def element_of(type_: Attribute) -> Attribute:
    """Returns the element type of a tensor or memref type; returns any other type unchanged."""
    return type_.element_type if isinstance(type_, (TensorType, MemRefType)) else type_


def ins_and_outs(op: Operation) -> tuple[list[SSAValue], list[SSAValue]]:
    """Returns the inputs and the destinations of an op, for all names that op classes use for these operands."""
    for reads, writes in (("src", "dst"), ("inputs", "outputs"), ("input", "init")):
        if hasattr(op, reads) and hasattr(op, writes):
            return _as_list(getattr(op, reads)), _as_list(getattr(op, writes))
    msg = f"{op.name} has no ins and outs"
    raise AssertionError(msg)


def _as_list(values: SSAValue | Sequence[SSAValue]) -> list[SSAValue]:
    return [values] if isinstance(values, SSAValue) else list(values)


def writes_its_outs(op: Operation) -> None:
    """Verifies that all destinations are tensors or memrefs, and that there is one result per tensor, of the tensor's type."""
    outs = ins_and_outs(op)[1]
    require(outs, "expected at least one output")
    kinds = {type(operand.type) for operand in op.operands}
    require(not {TensorType, MemRefType} <= kinds, "expected to have pure tensor or buffer semantics")
    tensors = []
    for out in outs:
        require(isinstance(out.type, (TensorType, MemRefType)),
                f"expected that operand #{list(op.operands).index(out)} is a ranked tensor or a ranked memref")
        if isinstance(out.type, TensorType):
            tensors.append(out)
    results = list(op.results)
    require(len(results) == len(tensors), f"expected the number of tensor results ({len(results)}) to be equal to the number of"
                                          f" output tensors ({len(tensors)})")
    for out, result in zip(tensors, results, strict=True):
        require(result.type == out.type, f"expected type of operand #{list(op.operands).index(out)} ('{out.type}') to match"
                                         f" type of corresponding result ('{result.type}')")


def verify_maps(op: Operation, maps: Sequence[AffineMap], loops: int) -> None:
    """Verifies that the rank of each operand is that of its indexing map, and that its sizes fit the extents of the loops."""
    operands = list(op.operands)
    require(len(maps) == len(operands), f"expected the number of indexing_map ({len(maps)}) to be equal to the number of input"
                                        f" operands ({len(operands)})")
    bound: dict[int, int] = {}
    for number, (map_, operand) in enumerate(zip(maps, operands, strict=True)):
        shape = shape_of(operand.type)
        require(map_.num_symbols == 0, f"unexpected symbols in indexing_map #{number}")
        require(map_.num_dims == loops, f"expected indexing_map #{number} to have {loops} dim(s) to match the number of loops")
        require(len(map_.results) == len(shape), f"expected operand #{number} rank ({len(shape)}) to match the result rank of"
                                                 f" indexing_map #{number} ({len(map_.results)})")
        for result, size in zip(map_.results, shape, strict=True):
            if isinstance(result, AffineDimExpr):
                bound.setdefault(result.position, size)
    require(len(bound) == loops, "expected the shape-to-loops map to be non-null")
    if DYNAMIC_INDEX in bound.values():
        return
    last = [bound[loop] - 1 for loop in range(loops)]
    for number, (map_, operand) in enumerate(zip(maps, operands, strict=True)):
        for axis, (result, size) in enumerate(zip(map_.results, shape_of(operand.type), strict=True)):
            if size in (DYNAMIC_INDEX, 0):
                continue  # an operand without elements is never accessed
            needed = max(result.eval(last, []), result.eval([0] * loops, [])) + 1
            fits = needed == size if isinstance(result, AffineDimExpr) else needed <= size
            require(fits,
                    f"inferred input/output operand #{number} has shape's dimension #{axis} to be {needed}, but found {size}")


def verify_body(op: Operation, block: Block, values: Sequence[SSAValue]) -> None:
    """Verifies that the body has an argument for an element of each operand, and yields an element for each destination."""
    require(len(block.args) == len(values), f"expected as many non-induction variable region arguments as the number of"
                                            f" input/output operands: {len(values)}, but got {len(block.args)}")
    for number, (argument, value) in enumerate(zip(block.args, values, strict=True)):
        require(argument.type == element_of(value.type),
                f"expected type of bb argument #{number} ('{argument.type}') to match element or self type of the corresponding"
                f" operand ('{element_of(value.type)}')")
    last = block.last_op
    require(last is not None and last.name == "linalg.yield", "expected the body to end in linalg.yield")
    given = [] if last is None else [value.type for value in last.operands]
    wanted = [element_of(out.type) for out in ins_and_outs(op)[1]]
    require(len(given) == len(wanted), f"expected number of yield values ({len(given)}) to match the number of inits / outs"
                                       f" operands of the enclosing op ({len(wanted)})")
    for number, (one, other) in enumerate(zip(given, wanted, strict=True), 1):
        require(one == other, f"type of yield operand {number} ('{one}') doesn't match the element type of the enclosing op"
                              f" ('{other}')")


def input_count(count: int) -> Rule:
    """Returns a rule which verifies that an op has ``count`` inputs and one destination."""

    def check(op: Operation) -> None:
        inputs, outs = ins_and_outs(op)
        require((len(inputs), len(outs)) == (count, 1),
                f"expected {count} inputs and 1 output, got {len(inputs)} and {len(outs)}")

    return check


def verify_elementwise(op: Operation) -> None:
    """Verifies that each operand of an elementwise op has the shape of the destination, or rank 0."""
    writes_its_outs(op)
    loops = len(shape_of(ins_and_outs(op)[1][0].type))
    maps = [AffineMap.identity(loops) if shape_of(value.type) else AffineMap(loops, 0, ()) for value in op.operands]
    verify_maps(op, maps, loops)


def matrix_product(*, batches: int = 0, transposed: str = "") -> Rule:
    """Returns a rule which verifies the shapes and element types of a matrix product.

    Args:
        batches: the number of batch axes, which precede the axes of the matrices.
        transposed: ``a`` or ``b`` if this operand is transposed; empty if none is.
    """
    batch = tuple(range(batches))
    maps = []
    for name, axes in zip("abc", _MATRICES, strict=True):
        order = reversed(axes) if name == transposed else axes
        loops = (*batch, *(batches + axis for axis in order))
        maps.append(AffineMap(batches + 3, 0, tuple(AffineDimExpr(loop) for loop in loops)))

    def check(op: Operation) -> None:
        writes_its_outs(op)
        for operand in op.operands:
            element = element_of(operand.type)
            require(is_float(element) or is_signless(element), f"expects floats or signless integers, got '{operand.type}'")
        verify_maps(op, maps, batches + 3)

    return check


def verify_generic(op: _Generic) -> None:
    """Verifies the destinations, the indexing maps and the body of a ``linalg.generic``."""
    writes_its_outs(op)
    verify_maps(op, [map_.data for map_ in op.indexing_maps], len(op.iterator_types))
    verify_body(op, op.body.block, op.operands)


def verify_reduce(op: Operation) -> None:
    """Verifies that the destinations of a reduction have the shape of the inputs without the reduced axes."""
    writes_its_outs(op)
    inputs, inits = ins_and_outs(op)
    require(len(inputs) == len(inits), "expected as many inits as inputs")
    dimensions = op.properties["dimensions"]
    assert isinstance(dimensions, DenseArrayBase)
    axes = list(integers_in(dimensions))
    shape, kept = _one_shape(inputs, "input"), _one_shape(inits, "init")
    require(axes == sorted(axes) and len(set(axes)) == len(axes), "'dimensions' should be in increasing order")
    require(all(0 <= axis < len(shape) for axis in axes),
            f"dimensions for reduction should be in the range [0, {len(shape) - 1}].")
    rest = [size for axis, size in enumerate(shape) if axis not in axes]
    require(len(kept) == len(rest), f"number of dimensions after reduction {len(rest)} doesn't match the init rank {len(kept)}")
    require(list(kept) == rest, f"init dimensions {list(kept)} doesn't match input dimensions after reduction {rest}")
    verify_body(op, op.regions[0].block, op.operands)


def _one_shape(values: Sequence[SSAValue], word: str) -> tuple[int, ...]:
    shapes = {shape_of(value.type) for value in values}
    require(len(shapes) == 1, f"expects all {word}s to have the same shapes")
    return next(iter(shapes))


def verify_transpose(op: TransposeOp) -> None:
    """Verifies that the shape of a transpose's destination is the permuted shape of the input."""
    writes_its_outs(op)
    inputs, inits = ins_and_outs(op)
    order, shape, target = list(op.permutation.get_values()), shape_of(inputs[0].type), shape_of(inits[0].type)
    require(sorted(order) == list(range(len(order))), "permutation is not valid")
    require(len(shape) == len(target), f"input rank {len(shape)} does not match init rank {len(target)}")
    require(len(order) == len(shape), f"size of permutation {len(order)} does not match the argument rank {len(shape)}")
    for axis, place in enumerate(order):
        require(target[axis] == shape[place],
                f"dim(result, {axis}) = {target[axis]} doesn't match dim(input, permutation[{axis}]) = {shape[place]}")
    verify_body(op, op.regions[0].block, op.operands)


def verify_broadcast(op: BroadcastOp) -> None:
    """Verifies that a broadcast's destination has the sizes of the input on all axes but the added ones."""
    writes_its_outs(op)
    inputs, inits = ins_and_outs(op)
    added, shape, target = list(op.dimensions.get_values()), shape_of(inputs[0].type), shape_of(inits[0].type)
    require(len(shape) + len(added) == len(target), f"input rank plus added dimensions does not match init rank. input rank:"
                                                    f" {len(shape)}, dimensions size: {len(added)}, init rank: {len(target)}")
    require(all(0 <= axis < len(target) for axis in added),
            f"dimension is out of range. expected range: [0, {len(target) - 1}]")
    kept = [axis for axis in range(len(target)) if axis not in added]
    require(len(kept) == len(shape), "added dimensions are not unique")
    for place, axis in enumerate(kept):
        require(shape[place] == target[axis], f"input dim {place} should match init dim {axis}. input: {shape[place]}, init:"
                                              f" {target[axis]}")
    verify_body(op, op.regions[0].block, op.operands)


def verify_index(op: IndexOp) -> None:
    """Verifies that the ``dim`` of a ``linalg.index`` is the number of a loop of the enclosing linalg op."""
    parent = op.parent_op()
    if parent is None or not parent.name.startswith("linalg."):
        require(False, "expected parent op with LinalgOp interface")
        return
    if isinstance(parent, _Generic):
        loops = len(parent.iterator_types)
    else:
        loops = max(len(shape_of(operand.type)) for operand in parent.operands)
    require(0 <= op.dim.value.data < loops, f"expected dim ({op.dim.value.data}) to be lower than the number of loops ({loops})"
                                            " of the enclosing LinalgOp")
