"""``tensor.pack`` and ``tensor.unpack`` of LLVM 19: a tensor cut into tiles that lie one behind another, and put together."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, TensorType, i64
from xdsl.dialects.utils.dynamic_index_list import DynamicIndexList
from xdsl.irdl import (
    AttrSizedOperandSegments,
    VarConstraint,
    base,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from tilelang_npu.dialects.ir.declaration import DialectOp, operation
from tilelang_npu.dialects.mlir.rules import require

_AXES = DenseArrayBase.constr(i64)
_NONE = DenseArrayBase.from_list(i64, [])
_TILES = ("`inner_dims_pos` `=` $inner_dims_pos `inner_tiles` `=` custom<DynamicIndexList>($inner_tiles, $static_inner_tiles) "
          "`into` $dest attr-dict `:` type($source) `->` type($dest)")


def _check(op: Any, unpacked: TensorType[Any], packed: TensorType[Any]) -> tuple[list[int], list[int]]:
    """The rules that both ops share; returns the sizes that the packed tensor must have, and the tiles' sizes."""
    axes, tiles = list(op.inner_dims_pos.get_values()), list(op.static_inner_tiles.get_values())
    order = list(op.outer_dims_perm.get_values())
    shape = list(unpacked.get_shape())
    rank = len(shape)
    require(0 not in tiles, "invalid zero tile factor")
    for name, places in (("inner_dims_pos", axes), ("outer_dims_perm", order)):
        valid = len(set(places)) == len(places) <= rank and all(0 <= axis < rank for axis in places)
        require(valid, f"invalid {name} vector")
    require(len(order) in (0, rank), "outer_dims_perm must be a permutation or empty")
    require(len(tiles) == len(axes), "tiling factors must equal the number of dimensions to tile")
    require(tiles.count(DYNAMIC_INDEX) == len(op.inner_tiles),
             f"expected {tiles.count(DYNAMIC_INDEX)} dynamic inner_tiles, got {len(op.inner_tiles)}")
    require(len(packed.get_shape()) == rank + len(tiles),
             "packed rank != (unpacked rank + num tiling factors), got "
             f"{len(packed.get_shape())} != {rank + len(tiles)}")
    require(packed.element_type == unpacked.element_type, "expected source and destination to have the same element type")
    outer = list(shape)
    for axis, tile in zip(axes, tiles, strict=True):
        outer[axis] = DYNAMIC_INDEX if DYNAMIC_INDEX in (outer[axis], tile) else -(-outer[axis] // tile)
    if order:
        outer = [outer[axis] for axis in order]
    expected = [*outer, *tiles]
    got = packed.get_shape()
    fits = all(DYNAMIC_INDEX in (want, have) or want <= have for want, have in zip(outer, got, strict=False))
    require(fits, "the shape of output is not large enough to hold the packed data. Expected at least "
                   f"{TensorType(packed.element_type, expected)}, got {packed}")
    fits = all(DYNAMIC_INDEX in (want, have) or want == have for want, have in zip(tiles, got[rank:], strict=True))
    require(fits, "mismatch in inner tile sizes specified and shaped of tiled dimension in the packed type")
    return shape, tiles


def _pack_rule(op: Any) -> None:
    shape, tiles = _check(op, op.source.type, op.dest.type)
    if op.padding_value is None:
        whole = all(DYNAMIC_INDEX in (shape[axis], tile) or shape[axis] % tile == 0
                    for axis, tile in zip(op.inner_dims_pos.get_values(), tiles, strict=True))
        require(whole, "invalid tile factor or output size provided. "
                        "Only full tiles are supported when padding_value is not set")
    elif op.padding_value.type != op.source.type.element_type:
        require(False, f"expected padding_value has '{op.source.type.element_type}' but got: '{op.padding_value.type}'")


def _unpack_rule(op: Any) -> None:
    _check(op, op.dest.type, op.source.type)


@operation(rules=[_pack_rule])
class PackOp(DialectOp):
    """A tensor in tiles: ``tensor.pack %t inner_dims_pos = [0, 1] inner_tiles = [8, %n] into %d : T -> U``."""

    name = "tensor.pack"
    DEST: ClassVar = VarConstraint("DEST", base(TensorType))
    source = operand_def(TensorType)
    dest = operand_def(DEST)
    padding_value = opt_operand_def()
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = prop_def(_AXES, default_value=_NONE)
    inner_dims_pos = prop_def(_AXES)
    static_inner_tiles = prop_def(_AXES)
    result = result_def(DEST)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (DynamicIndexList,)
    assembly_format = ("$source (`padding_value` `(` $padding_value^ `:` type($padding_value) `)`)? "
                       f"(`outer_dims_perm` `=` $outer_dims_perm^)? {_TILES}")


@operation(rules=[_unpack_rule])
class UnpackOp(DialectOp):
    """A tensor that was in tiles: ``tensor.unpack %t inner_dims_pos = [0] inner_tiles = [8] into %d : T -> U``."""

    name = "tensor.unpack"
    DEST: ClassVar = VarConstraint("DEST", base(TensorType))
    source = operand_def(TensorType)
    dest = operand_def(DEST)
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = prop_def(_AXES, default_value=_NONE)
    inner_dims_pos = prop_def(_AXES)
    static_inner_tiles = prop_def(_AXES)
    result = result_def(DEST)
    traits = traits_def(Pure())
    custom_directives = (DynamicIndexList,)
    assembly_format = f"$source (`outer_dims_perm` `=` $outer_dims_perm^)? {_TILES}"
