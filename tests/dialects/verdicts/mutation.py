"""One thing changed in a module: the type of a value, a property, an operand, a result. What comes out may be valid or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    Signedness,
    StridedLayoutAttr,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import IRDLOperation, OptOperandDef, VarOperandDef

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr

ELEMENTS: tuple[Attribute, ...] = (
    Float16Type(), Float32Type(), BFloat16Type(), Float64Type(), IntegerType(1), IntegerType(8), IntegerType(16),
    IntegerType(32), IntegerType(64), IndexType(), IntegerType(32, Signedness.UNSIGNED), IntegerType(8, Signedness.SIGNED))
SPACES: tuple[Attribute, ...] = (NoneAttr(), *(hivm.address_space(name) for name in ("gm", "ub", "cbuf", "ca", "cc")))


def mutants(module: ModuleOp, rng: Random) -> Iterator[ModuleOp]:
    """Yields modules with one change of the given one, without end."""
    while True:
        changed = module.clone()
        if _change(changed, rng):
            for op in changed.walk():
                if isinstance(op, FuncOp):
                    op.properties["function_type"] = FunctionType.from_lists(
                        [argument.type for argument in op.body.block.args], op.function_type.outputs.data)
            yield changed


def _change(module: ModuleOp, rng: Random) -> bool:
    ops = [op for op in module.walk() if op.name not in ("builtin.module", "func.func", "func.return")]
    change: Callable[[list[Operation], Random], bool] = rng.choices(
        (_retype_one, _retype_all, _change_property, _change_operands, _change_results), (8, 5, 5, 2, 1))[0]
    return change(ops, rng)


def _values(ops: list[Operation]) -> list[SSAValue]:
    function = ops[0].parent_op()
    assert isinstance(function, FuncOp)
    inner = [argument for op in ops for region in op.regions for block in region.blocks for argument in block.args]
    return [*function.body.block.args, *(result for op in ops for result in op.results), *inner]


def _retype(value: SSAValue, type_: Attribute) -> None:
    value._type = type_  # an invalid type for the op is intended


def _retype_one(ops: list[Operation], rng: Random) -> bool:
    values = _values(ops)
    if not values:
        return False
    value = rng.choice(values)
    type_ = other_type(value.type, rng)
    changed = type_ != value.type
    _retype(value, type_)
    return changed


def _retype_all(ops: list[Operation], rng: Random) -> bool:
    """Every value of a type gets another one: many ops take that."""
    values = _values(ops)
    if not values:
        return False
    old = rng.choice(values).type
    new = other_type(old, rng)
    for value in values:
        if value.type == old:
            _retype(value, new)
    return new != old


def other_type(type_: Attribute, rng: Random) -> Attribute:
    """A type near a given one: another element type, size, rank, memory space, layout or kind."""
    if not isinstance(type_, (TensorType, MemRefType, VectorType)):
        if isinstance(type_, UnrankedMemRefType):
            return UnrankedMemRefType.from_type(rng.choice(ELEMENTS), rng.choice(SPACES))
        if type_ not in ELEMENTS:
            return rng.choice(ELEMENTS)
        return rng.choice((*ELEMENTS, *ELEMENTS, TensorType(type_, [4]), VectorType(type_, [4]), MemRefType(type_, [4])))
    element, shape = type_.element_type, list(type_.get_shape())
    kind = rng.choice(("element", "size", "size", "size", "axis", "permute", "place", "class"))
    if kind == "element":
        element = rng.choice(ELEMENTS)
    elif kind == "size" and shape:
        axis = rng.randrange(len(shape))
        shape[axis] = rng.choice((shape[axis] + 1, 1, DYNAMIC_INDEX, 2 * shape[axis], 8, 0))
        if isinstance(type_, VectorType):
            shape[axis] = max(shape[axis], 1)
        shape[axis] = max(shape[axis], DYNAMIC_INDEX)
    elif kind == "axis":
        shape = rng.choice((shape[1:], shape[:-1], [*shape, 1], [1, *shape], [*shape, 3], [DYNAMIC_INDEX, *shape], []))
        if isinstance(type_, VectorType):
            shape = [max(size, 1) for size in shape]
    elif kind == "permute":
        rng.shuffle(shape)
    elif kind == "class":
        return rng.choice([TensorType(element, shape), MemRefType(element, shape), element,
                           UnrankedTensorType(element), UnrankedMemRefType.from_type(element),
                           VectorType(element, [max(size, 1) for size in shape])])
    if isinstance(type_, VectorType):
        return VectorType(element, shape)
    if isinstance(type_, TensorType):
        return TensorType(element, shape, type_.encoding)
    space, layout = type_.memory_space, type_.layout
    if kind == "place":
        if rng.random() < 1 / 2:
            space = rng.choice(SPACES)
        else:
            layout = _layout(shape, rng)
    elif isinstance(layout, StridedLayoutAttr) and len(layout.strides) != len(shape):
        layout = _layout(shape, rng)
    return MemRefType(element, shape, layout, space)


def _layout(shape: list[int], rng: Random) -> Attribute:
    strides: list[int | None] = list(MemRefType(Float32Type(), shape).get_strides() or [])
    offset: int | None = rng.choice((0, 0, 2, None))
    if strides and rng.random() < 1 / 2:
        axis = rng.randrange(len(strides))
        strides[axis] = rng.choice((None, (strides[axis] or 1) * 2))
    return rng.choice((NoneAttr(), StridedLayoutAttr(strides, offset)))


def _change_property(ops: list[Operation], rng: Random) -> bool:
    op = rng.choice(ops)
    names = [name for name in op.properties if not name.endswith(("SegmentSizes", "segment_sizes"))]
    names += op.attributes
    if not names:
        return False
    name = rng.choice(names)
    held = op.properties if name in op.properties else op.attributes
    old = held[name]
    if rng.random() < 1 / 10:
        del held[name]
        return True
    new = other_attribute(old, rng)
    held[name] = new
    return new != old


def other_attribute(old: Attribute, rng: Random) -> Attribute:
    """An attribute near a given one, of its kind most times."""
    if isinstance(old, IntegerAttr):
        number = rng.choice((old.value.data + 1, old.value.data - 1, 0, 1, 2, -1, 7))
        if isinstance(old.type, IntegerType):
            width = old.type.width.data
            if width == 1:
                return IntegerAttr(1 - abs(old.value.data), old.type)
            return IntegerAttr(number, old.type if rng.random() < 3 / 4 else IntegerType(96 - width if width < 96 else 32))
        return IntegerAttr(number, old.type)
    if isinstance(old, DenseArrayBase):
        values: list[Any] = list(old.get_values())
        if isinstance(old.elt_type, IntegerType) and old.elt_type.width.data > 1:
            lowest = -2 ** (old.elt_type.width.data - 1)
            return DenseArrayBase.from_list(old.elt_type, [max(number, lowest) for number in _other_numbers(values, rng)])
        return old
    if isinstance(old, AffineMapAttr):
        map_ = old.data
        results = _other_list(list(map_.results), rng)
        return AffineMapAttr(AffineMap(map_.num_dims + rng.choice((0, 0, 1)), map_.num_symbols, tuple(results)))
    if isinstance(old, ArrayAttr):
        items = list(old.data)
        if items and rng.random() < 1 / 2:
            place = rng.randrange(len(items))
            items[place] = other_attribute(items[place], rng)
            return ArrayAttr(items)
        return ArrayAttr(_other_list(items, rng))
    if isinstance(old, DictionaryAttr):
        return DictionaryAttr({name: other_attribute(value, rng) for name, value in old.data.items()})
    if isinstance(old, UnitAttr):
        return IntegerAttr(1, IntegerType(32))
    if isinstance(old, EnumAttr):
        return type(old)(rng.choice(sorted(type(old).CASES)))
    if old in ELEMENTS or isinstance(old, (TensorType, MemRefType, VectorType)):
        return other_type(old, rng)
    return old


def _other_numbers(values: list[int], rng: Random) -> list[int]:
    if values and rng.random() < 2 / 3:
        place = rng.randrange(len(values))
        values[place] = rng.choice((values[place] + 1, max(values[place] - 1, DYNAMIC_INDEX), 0, 1, -1, 2, DYNAMIC_INDEX))
        return values
    return _other_list(values, rng) or [*values, 0]


def _other_list(items: list[Any], rng: Random) -> list[Any]:
    kind = rng.choice(("drop", "repeat", "swap"))
    if kind == "swap":
        rng.shuffle(items)
        return items
    if not items:
        return items
    place = rng.randrange(len(items))
    return [*items[:place], *items[place + 1:]] if kind == "drop" else [*items, items[place]]


def _change_operands(ops: list[Operation], rng: Random) -> bool:
    op = rng.choice(ops)
    operands = list(op.operands)
    if not operands:
        return False
    place = rng.randrange(len(operands))
    kind = rng.choice(("drop", "repeat", "other"))
    if kind != "other" and not _may_resize(op, place):
        return False
    if kind == "other":
        block = op.parent
        assert isinstance(block, Block)
        function = ops[0].parent_op()
        assert isinstance(function, FuncOp)
        operands[place] = rng.choice(function.body.block.args) if function.body.block.args else operands[place]
    elif kind == "drop":
        del operands[place]
    else:
        operands.insert(place, operands[place])
    changed = operands != list(op.operands)
    op.operands = operands
    if kind != "other":
        _resize(op, place, 1 if kind == "repeat" else -1)
    return changed


def _may_resize(op: Operation, place: int) -> bool:
    """Whether the operand is in a variadic group; MLIR's own checks crash on wrong segment sizes."""
    sizes = op.properties.get("operandSegmentSizes")
    if not isinstance(sizes, DenseArrayBase) or not isinstance(op, IRDLOperation):
        return True
    for (_, definition), count in zip(op.get_irdl_definition().operands, sizes.get_values(), strict=True):
        if place < int(count):
            return isinstance(definition, VarOperandDef) and not isinstance(definition, OptOperandDef)
        place -= int(count)
    return False


def _resize(op: Operation, place: int, by: int) -> None:
    """Adds or removes an operand of the variadic group of an operand."""
    sizes = op.properties.get("operandSegmentSizes")
    if isinstance(sizes, DenseArrayBase):
        counts: list[Any] = list(sizes.get_values())
        for group, count in enumerate(counts):
            if place < count:
                counts[group] += by
                break
            place -= count
        op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(IntegerType(32), counts)


def _change_results(ops: list[Operation], rng: Random) -> bool:
    op = rng.choice(ops)
    unused = [result for result in op.results if result.first_use is None]
    if not unused:
        return False
    types = list(op.result_types)
    place = unused[0].index
    changed = types[:place] + types[place + 1:] if rng.random() < 1 / 2 else [*types, types[place]]
    made = type(op).create(operands=list(op.operands), result_types=changed, properties=op.properties, attributes=op.attributes,
                           regions=[op.detach_region(region) for region in list(op.regions)])
    assert op.parent is not None
    keep = [made.results[number if number < place or len(changed) > len(types) else number - 1]
            for number in range(len(types)) if number != place or len(changed) > len(types)]
    for old, new in zip([r for r in op.results if r.index != place or len(changed) > len(types)], keep, strict=True):
        old.replace_all_uses_with(new)
    op.parent.insert_op_before(made, op)
    op.detach()
    return True
