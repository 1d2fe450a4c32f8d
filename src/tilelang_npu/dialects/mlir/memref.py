"""memref: verification rules of LLVM 19 for ops of xDSL, and the ops that xDSL lacks (global buffers, reshape)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from typing_extensions import Self
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I64,
    AffineMapAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
)
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, SymbolOpInterface, SymbolTable

from tilelang_npu.dialects.ir.declaration import (
    DialectOp,
    OfClass,
    accept_all,
    extend_dialect,
    fail,
    operation,
    replace_rules,
    require,
)
from tilelang_npu.dialects.mlir.rules import (
    Size,
    any_memref_type,
    axis_groups,
    is_rank_reduced,
    is_row_by_row,
    may_have_same_shape,
    memref_type,
    offset_of_slice,
    same_memref,
    strided,
    times,
    unless_dynamic,
    verify_output_shape,
    verify_regrouping,
    verify_slice,
    with_layout,
)


def is_identity(kind: MemRefType[Attribute]) -> bool:
    """Whether a memref is dense, in row-major order and at offset 0, whether its type states this layout or none."""
    if isinstance(kind.layout, NoneAttr):
        return True
    strides = kind.get_strides()
    return (isinstance(kind.layout, StridedLayoutAttr) and strides is not None and None not in strides
            and kind.get_offset() == 0 and strides == MemRefType(kind.element_type, kind.shape).get_strides())


def _verify_reinterpret_cast(op: memref.ReinterpretCastOp) -> None:
    for static, dynamic, word in ((op.static_offsets, op.offsets, "offset"), (op.static_sizes, op.sizes, "size"),
                                  (op.static_strides, op.strides, "stride")):
        markers = list(static.get_values()).count(DYNAMIC_INDEX)
        if markers != len(dynamic):
            fail(f"expected {markers} dynamic {word} values but got {len(dynamic)}")
    source, result = any_memref_type(op.source), memref_type(op.result)
    for word, one, other in (("memory spaces", source.memory_space, result.memory_space),
                             ("element types", source.element_type, result.element_type)):
        if one != other:
            fail(f"different {word} specified for source type '{source}' and result memref type '{result}'")
    shape = result.get_shape()
    for word, static, rank in (("offset", op.static_offsets, 1), ("size", op.static_sizes, len(shape)),
                               ("stride", op.static_strides, len(shape))):
        if len(static) != rank:
            fail(f"expected {rank} {word} values but got {len(static)}")
    _agree("size", shape, op.static_sizes)
    strides, offset = result.get_strides(), result.get_offset()
    if strides is None:
        fail(f"expected result type to have strided layout but found '{result}'")
    _agree("offset", (offset,), op.static_offsets)
    _agree("stride", strides, op.static_strides)


def _agree(word: str, found: Sequence[int | None], stated: DenseArrayBase[IntegerType]) -> None:
    """Verifies that the numbers in the type are those of the op, where both are static."""
    for axis, (actual, expected) in enumerate(zip(found, stated.get_values(), strict=True)):
        if actual is not None and DYNAMIC_INDEX not in (actual, expected) and actual != expected:
            where = "" if word == "offset" else f" in dim = {axis}"
            fail(f"expected result type with {word} = {expected} instead of {actual}{where}")


def _verify_view(op: memref.ViewOp) -> None:
    source, result = memref_type(op.source), memref_type(op.result)
    if len(source.get_shape()) != 1:
        fail(f"operand #0 must be 1D memref of 8-bit signless integer values, but got '{source}'")
    for word, kind in (("base", source), ("result", result)):
        if not is_identity(kind):
            fail(f"unsupported map for {word} memref type '{kind}'")
    if source.memory_space != result.memory_space:
        fail(f"different memory spaces specified for base memref type '{source}' and view memref type '{result}'")
    if result.get_shape().count(DYNAMIC_INDEX) != len(op.sizes):
        fail(f"incorrect number of size operands for type '{result}'")


@operation(side_effects=True)
class GlobalOp(DialectOp):
    """Defines a named buffer of the module: ``memref.global "private" constant @table : memref<2xi64> = dense<[1, 2]>``.

    Without a value the op declares a buffer that is defined elsewhere.
    """

    name = "memref.global"
    sym_name = prop_def(SymbolNameConstraint())
    sym_visibility = opt_prop_def(StringAttr)
    type = prop_def(MemRefType)
    initial_value = opt_prop_def()
    constant = opt_prop_def(UnitAttr)
    alignment = opt_prop_def(IntegerAttr[I64])
    traits = traits_def(SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op in its custom assembly form."""
        visibility = parser.parse_optional_str_literal()
        constant = parser.parse_optional_keyword("constant") is not None
        name = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        initial: Attribute | None = None
        if parser.parse_optional_punctuation("=") is not None:
            if parser.parse_optional_keyword("uninitialized") is not None:
                initial = UnitAttr()
            elif isinstance(type_, MemRefType):
                parser.parse_keyword("dense")
                initial = parser.parse_dense_int_or_fp_elements_attr(TensorType(type_.element_type, type_.get_shape()))
            else:
                parser.raise_error("expected a memref type")
        attributes = parser.parse_optional_attr_dict()
        alignment = attributes.pop("alignment", None)
        return cls.build(attributes=attributes, properties={
            "sym_name": name, "type": type_, "initial_value": initial, "alignment": alignment,
            "sym_visibility": None if visibility is None else StringAttr(visibility),
            "constant": UnitAttr() if constant else None})

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        if self.sym_visibility is not None:
            printer.print_string(" ")
            printer.print_attribute(self.sym_visibility)
        printer.print_string(" " if self.constant is None else " constant ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        if isinstance(self.initial_value, UnitAttr):
            printer.print_string(" = uninitialized")
        elif isinstance(self.initial_value, DenseIntOrFPElementsAttr):
            printer.print_string(" = ")
            self.initial_value.print_without_type(printer)
        alignment = {} if self.alignment is None else {"alignment": self.alignment}
        printer.print_op_attributes({**self.attributes, **alignment})

    def verify_(self) -> None:
        kind = self.type
        if DYNAMIC_INDEX in kind.get_shape():
            fail(f"type should be static shaped memref, but got '{kind}'")
        value = self.initial_value
        if isinstance(value, DenseIntOrFPElementsAttr):
            wanted = TensorType(kind.element_type, kind.get_shape())
            if value.type != wanted:
                fail(f"initial value expected to be of type '{wanted}', but was of type '{value.type}'")
        elif value is not None and not isinstance(value, UnitAttr):
            fail(f"initial value should be a unit or elements attribute, but got {value}")
        if self.alignment is not None and self.alignment.value.data.bit_count() != 1:
            fail(f"alignment attribute value {self.alignment.value.data} is not a power of 2")


def _verify_get_global(op: memref.GetGlobalOp) -> None:
    named = SymbolTable.lookup_symbol(op, op.name_)
    if not isinstance(named, GlobalOp):
        fail(f"'{op.name_.string_value()}' does not reference a valid global memref")
    if named.type != op.memref.type:
        fail(f"result type '{op.memref.type}' does not match type '{named.type}' of the global memref"
             f" @{named.sym_name.data}")


ANY = OfClass((MemRefType, UnrankedMemRefType), "ranked or unranked memref of any type values")


def _verify_reshape(op: ReshapeOp) -> None:
    source, shape, result = any_memref_type(op.source), memref_type(op.shape), any_memref_type(op.result)
    require(source.element_type == result.element_type,
            "element types of source and destination memref types should be the same")
    require(all(is_identity(kind) for kind in (source, result) if isinstance(kind, MemRefType)),
            "source and destination memref types should have identity layout")
    require(len(shape.get_shape()) == 1 and isinstance(shape.element_type, (IntegerType, IndexType)),
            f"operand #1 must be 1D memref of signless integer or index values, but got '{shape}'")
    if isinstance(result, MemRefType):
        length = shape.get_shape()[0]
        require(length != DYNAMIC_INDEX,
                "cannot use shape operand with dynamic length to reshape to statically-ranked memref type")
        require(length == len(result.get_shape()), "length of shape operand differs from the result's memref rank")


@operation(rules=[_verify_reshape])
class ReshapeOp(DialectOp):
    """Views a buffer in another shape, whose sizes are the elements of a second buffer."""

    name = "memref.reshape"
    source = operand_def(ANY)
    shape = operand_def(MemRefType)
    result = result_def(ANY)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$source `(` $shape `)` attr-dict `:` functional-type(operands, results)"


def _verify_access(op: memref.LoadOp | memref.StoreOp) -> None:
    kind = memref_type(op.memref)
    require(len(op.indices) == kind.get_num_dims(), "invalid number of indices for accessed memref, expected "
                                                    f"{kind.get_num_dims()} but got {len(op.indices)}")
    value = op.value if isinstance(op, memref.StoreOp) else op.res
    require(value.type == kind.element_type, f"failed to verify that type of value matches element type of '{kind}'")


def _verify_allocation(op: memref.AllocOp | memref.AllocaOp) -> None:
    kind = op.memref.type
    sizes, symbols = kind.get_shape().count(DYNAMIC_INDEX), 0
    require(len(op.dynamic_sizes) == sizes, "dimension operand count does not equal memref dynamic dimension count")
    if isinstance(kind.layout, StridedLayoutAttr):
        symbols = [*kind.layout.strides, kind.layout.offset].count(NoneAttr())
    elif isinstance(kind.layout, AffineMapAttr):
        symbols = kind.layout.data.num_symbols
    require(len(op.symbol_operands) == symbols, f"symbol operand count does not equal memref symbol count: expected {symbols},"
                                                f" got {len(op.symbol_operands)}")


def _verify_dim(op: memref.DimOp) -> None:
    kind = op.source.type
    require(not isinstance(kind, MemRefType) or kind.get_shape(),
            f"operand #0 must be unranked or non-0-ranked memref of any type values, but got '{kind}'")


def _verify_copy(op: memref.CopyOp) -> None:
    source, target = any_memref_type(op.source), any_memref_type(op.destination)
    require(source.element_type == target.element_type, "requires the same element type for all operands")
    require(may_have_same_shape(source, target), "requires the same shape for all operands")


# -- views: ops that see a buffer in another shape; address, elements and memory space stay -------------------------------



def _verify_subview(op: memref.SubviewOp) -> None:
    source, result = memref_type(op.source), memref_type(op.result)
    sizes = verify_slice(op, source.get_shape())
    require(source.memory_space == result.memory_space,
            f"different memory spaces specified for base memref type '{source}' and subview memref type '{result}'")
    of_source, of_result = strided(source), strided(result)
    if of_source is None or of_result is None:
        require(of_source is not None, f"base type '{source}' is not strided")
        require(of_result is not None, f"expected result type to have strided layout but found '{result}'")
        return
    starts, steps = ([unless_dynamic(number) for number in static.get_values()]
                     for static in (op.static_offsets, op.static_strides))
    offset = offset_of_slice(source, starts)
    strides = [times(stride, step) for stride, step in zip(of_source[0], steps, strict=True)]
    expected = with_layout(source, sizes, strides, offset)
    words = f"expected result type to be '{expected}' or a rank-reduced version"
    require(result.get_num_dims() <= len(sizes),
            f"expected result rank to be smaller or equal to the source rank, but got '{result}'")
    require(is_rank_reduced(sizes, result.get_shape()), f"{words} (mismatch of result sizes), but got '{result}'")
    require(source.element_type == result.element_type,
            f"expected result element type to be '{source.element_type}', but got '{result}'")
    kept = _kept_axes(sizes, strides, of_result[0])
    fits = of_result[1] == offset and kept is not None and [strides[axis] for axis in kept] == of_result[0]
    require(fits, f"{words} (mismatch of result layout), but got '{result}'")


def _kept_axes(sizes: Sequence[int], strides: Sequence[Size], left: Sequence[Size]) -> list[int] | None:
    """The axes of the source that a rank-reduced result has.

    A dropped axis has size 1. Where more axes have size 1 than are dropped, the missing strides decide; None if they do not.
    """
    if len(left) == len(sizes):
        return list(range(len(sizes)))
    ones = [axis for axis, size in enumerate(sizes) if size == 1]
    if len(sizes) - len(ones) != len(left):
        had, has = Counter(strides), Counter(left)
        dropped = []
        for axis in ones:
            if had[strides[axis]] > has[strides[axis]]:
                had[strides[axis]] -= 1
                dropped.append(axis)
            elif had[strides[axis]] < has[strides[axis]]:
                return None
        ones = dropped
    kept = [axis for axis in range(len(sizes)) if axis not in ones]
    return kept if len(kept) == len(left) else None


def _verify_collapse_shape(op: memref.CollapseShapeOp) -> None:
    source, result, groups = memref_type(op.src), memref_type(op.result), axis_groups(op.reassociation)
    ranks = source.get_num_dims(), result.get_num_dims()
    require(ranks[0] >= ranks[1], f"has source rank {ranks[0]} and result rank {ranks[1]}. This is not a collapse"
                                  f" ({ranks[0]} < {ranks[1]}).")
    verify_regrouping(result.get_shape(), source.get_shape(), groups)
    if is_row_by_row(source):
        expected = MemRefType(source.element_type, result.shape, NoneAttr(), source.memory_space)
    else:
        layout = strided(source)
        strides = None if layout is None else _collapsed_strides(source.get_shape(), layout[0], groups)
        if layout is None or strides is None:
            require(False, "invalid source layout map or collapsing non-contiguous dims")
            return
        stated = strided(result)
        if stated is not None and len(stated[0]) == len(strides):
            # MLIR does not infer the stride of a group whose last axis is dynamic, because that axis might have size 1.
            # AscendNPU-IR's passes state such strides, and its verifier accepts them.
            strides = [given if stride is None else stride for stride, given in zip(strides, stated[0], strict=True)]
        expected = with_layout(source, result.get_shape(), strides, layout[1])
    require(same_memref(expected, result), f"expected collapsed type to be '{expected}' but found '{result}'")


def _collapsed_strides(shape: Sequence[int], strides: Sequence[Size], groups: Sequence[Sequence[int]]) -> list[Size] | None:
    """The strides of groups of axes, each the stride of the group's last axis; None where a group is not contiguous."""
    joined: list[Size] = []
    for group in groups:
        axes = list(group)
        while len(axes) > 1 and shape[axes[-1]] == 1:
            axes.pop()
        # A dynamic axis may have size 1, and then its stride is arbitrary.
        joined.append(strides[axes[-1]] if len(axes) == 1 or shape[axes[-1]] != DYNAMIC_INDEX else None)
    for group, last in zip(groups, joined, strict=True):
        stride = last
        for axis in reversed(group[1:]):
            stride = times(stride, unless_dynamic(shape[axis]))
            outer = strides[axis - 1]
            if shape[axis - 1] != 1 and None not in (stride, outer) and stride != outer:
                return None
    return joined


def _verify_expand_shape(op: memref.ExpandShapeOp) -> None:
    source, result, groups = memref_type(op.src), memref_type(op.result), axis_groups(op.reassociation)
    ranks = source.get_num_dims(), result.get_num_dims()
    require(ranks[0] <= ranks[1], f"has source rank {ranks[0]} and result rank {ranks[1]}. This is not an expansion"
                                  f" ({ranks[0]} > {ranks[1]}).")
    verify_regrouping(source.get_shape(), result.get_shape(), groups)
    if is_row_by_row(source):
        expected = MemRefType(source.element_type, result.shape, NoneAttr(), source.memory_space)
    else:
        layout = strided(source)
        if layout is None:
            require(False, "invalid source layout map")
            return
        strides: list[Size] = [1] * len(result.get_shape())
        for group, stride in zip(groups, layout[0], strict=True):
            for axis in reversed(group):
                strides[axis] = stride
                stride = times(stride, unless_dynamic(result.get_shape()[axis]))
        expected = with_layout(source, result.get_shape(), strides, layout[1])
    require(same_memref(expected, result), f"expected expanded type to be '{expected}' but found '{result}'")
    verify_output_shape(op, op.output_shape, result.get_shape())


def _verify_cast(op: memref.CastOp) -> None:
    source, result = any_memref_type(op.source), any_memref_type(op.dest)
    fits = source.element_type == result.element_type and source.memory_space == result.memory_space
    if isinstance(source, MemRefType) and isinstance(result, MemRefType):
        fits = fits and can_describe_same_elements(source, result)
    else:
        fits = fits and (isinstance(source, MemRefType) or isinstance(result, MemRefType))
    require(fits, f"operand type '{source}' and result type '{result}' are cast incompatible")


def can_describe_same_elements(source: MemRefType[Attribute], result: MemRefType[Attribute]) -> bool:
    """Whether two memref types can describe the same buffer: they have no different static sizes, strides or offsets."""
    shapes = source.get_shape(), result.get_shape()
    if len(shapes[0]) != len(shapes[1]):
        return False
    if any(one != other and DYNAMIC_INDEX not in (one, other) for one, other in zip(*shapes, strict=True)):
        return False
    if source.layout == result.layout:
        return True
    layouts = strided(source), strided(result)
    if layouts[0] is None or layouts[1] is None:
        return False
    return all(None in (one, other) or one == other
               for one, other in zip((*layouts[0][0], layouts[0][1]), (*layouts[1][0], layouts[1][1]), strict=True))


def _verify_space_cast(op: memref.MemorySpaceCastOp) -> None:
    source, result = any_memref_type(op.source), any_memref_type(op.dest)
    fits = source.element_type == result.element_type and type(source) is type(result)
    if fits and isinstance(source, MemRefType) and isinstance(result, MemRefType):
        fits = source.shape == result.shape and source.layout == result.layout
    require(fits, f"operand type '{source}' and result type '{result}' are cast incompatible")


def _verify_metadata(op: memref.ExtractStridedMetaDataOp) -> None:
    source = memref_type(op.source)
    base = MemRefType(source.element_type, [], NoneAttr(), source.memory_space)
    rank = source.get_num_dims()
    fits = op.base_buffer.type == base and len(op.sizes) == len(op.strides) == rank
    require(fits, f"inferred type(s) '{base}' and {1 + 2 * rank} of 'index' are incompatible with return type(s) of operation")


MemRef = extend_dialect(
    memref.MemRef, GlobalOp, ReshapeOp, replace_rules(memref.RankOp, accept_all, source=ANY),
    replace_rules(memref.ReinterpretCastOp, _verify_reinterpret_cast, source=ANY),
    replace_rules(memref.CopyOp, _verify_copy, source=ANY, destination=ANY),
    replace_rules(memref.CastOp, _verify_cast, source=ANY, dest=ANY),
    replace_rules(memref.MemorySpaceCastOp, _verify_space_cast, source=ANY, dest=ANY),
    rules={memref.ViewOp: _verify_view, memref.GetGlobalOp: _verify_get_global, memref.LoadOp: _verify_access,
           memref.StoreOp: _verify_access, memref.AllocOp: _verify_allocation, memref.AllocaOp: _verify_allocation,
           memref.DimOp: _verify_dim, memref.SubviewOp: _verify_subview, memref.CollapseShapeOp: _verify_collapse_shape,
           memref.ExpandShapeOp: _verify_expand_shape, memref.ExtractStridedMetaDataOp: _verify_metadata})
