"""Matrix products whose operands lie in GM: library kernels that tile, load, multiply and store by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects.hivm.enums import DescaleModeAttr
from tilelang_npu.dialects.hivm.structured import (
    SHAPED,
    TENSOR,
    StructuredOp,
    destination_style,
    fail,
    results_for,
    shape_of,
)
from tilelang_npu.dialects.ir.declaration import operation

Operand = SSAValue | Operation
_TILE_SIZES = 3


_SIZES = ("blockSizes", "processSizes", "swizzleOffset", "swizzleDirection", "epiloguePTiles")


class _GlobalMatmulOp(StructuredOp):
    """What the three products share."""

    WRITES: ClassVar[tuple[str, ...]] = ("c",)

    def outs(self) -> tuple[SSAValue, ...]:
        """The product."""
        return self._held(("c",))


def _verify_common(op: Any) -> None:
    channels = shape_of(op.b)[1]
    _verify_descale(op, channels)
    if op.bias is not None:
        shape = shape_of(op.bias)
        if len(shape) != 1:
            fail("bias must must be 1D")
        if DYNAMIC_INDEX not in (shape[0], channels) and shape[0] != channels:
            fail("The size of bias is equal to the col size of B")
    explicit = (op.blockSizes, op.processSizes, op.swizzleOffset, op.swizzleDirection, op.epiloguePTiles)
    if op.tilingParams is not None and any(explicit):
        fail("`TilingParams` and the other explicit tiling params cannot be set at the same time")
    if len(op.blockSizes) not in (0, _TILE_SIZES):
        fail("The size of Blocksize should be 3. The order is blockM, blockN, blockK")
    if len(op.processSizes) not in (0, _TILE_SIZES):
        fail("The size of ProcessSizes should be 3. The order is ProcessM, ProcessN, ProcessK")


def _verify_descale(op: Any, channels: int) -> None:
    if op.descaleMode is None or op.descaleMode.data == "DescaleNull":
        return
    if op.descale is None:
        fail("The descaleMode is defined, descale params must be defined!")
    shape = shape_of(op.descale)
    if len(shape) != 1:
        fail("descale must must be 1D")
    if DYNAMIC_INDEX in (shape[0], channels):
        return
    if op.descaleMode.data == "DescalePerTensor" and shape[0] != 1:
        fail("The descaleMode is DescalePerTensor, the size of descale is equal to 1")
    if op.descaleMode.data == "DescalePerChannel" and shape[0] != channels:
        fail("The descaleMode is DescalePerChannel, the size of descale is equal to the col size of B")


def _clauses(communication: str) -> str:
    return (
        "`outs` `(` $c `:` type($c) `)` (`tiling_params` `=` $tilingParams^ `:` type($tilingParams))? "
        f"{communication}"
        "(`bias` `=` $bias^ `:` type($bias))? (`descale` `=` $descale^ `:` type($descale))?"
        " (`a_transpose` $aTranspose^)? (`b_transpose` $bTranspose^)? (`descale_mode` `=` $descaleMode^)?"
        " (`block_sizes` `(` $blockSizes^ `:` type($blockSizes) `)`)?"
        " (`process_sizes` `(` $processSizes^ `:` type($processSizes) `)`)?"
        " (`swizzle_offset` `=` $swizzleOffset^ `:` type($swizzleOffset))?"
        " (`swizzle_direction` `=` $swizzleDirection^ `:` type($swizzleDirection))?"
        " (`epilogue_p_tiles` `=` $epiloguePTiles^ `:` type($epiloguePTiles))? (`->` type($result)^)?"
    )


_COMMUNICATION = "(`comm_params` `=` $commParams^ `:` type($commParams))? "
_POST_INS = "(`post_vector_func_ins` `(` $postVecFuncIns^ `:` type($postVecFuncIns) `)`)? "
_POST_OUTS = "(`post_vector_func_outs` `(` $postVecFuncOuts^ `:` type($postVecFuncOuts) `)`)? "
_WORKSPACE = "(`workspace_ins` `(` $workspaceIns^ `:` type($workspaceIns) `)`)? "


def _facts(*, a_transpose: bool, b_transpose: bool, descale_mode: str | None) -> dict[str, Attribute | None]:
    return {"aTranspose": UnitAttr() if a_transpose else None, "bTranspose": UnitAttr() if b_transpose else None,
            "descaleMode": None if descale_mode is None else DescaleModeAttr(descale_mode)}


@operation(pipes=("MTE2", "MTE3"), rules=(destination_style,), reads=("a", "b", "tilingParams", "bias", "descale", *_SIZES))
class MatmulOp(_GlobalMatmulOp):
    """Product of two matrices in GM."""

    name = "hivm.hir.matmul"
    a = operand_def(SHAPED)
    b = operand_def(SHAPED)
    tilingParams = opt_operand_def(SHAPED)
    bias = opt_operand_def(SHAPED)
    descale = opt_operand_def(SHAPED)
    aTranspose = opt_prop_def(UnitAttr)
    bTranspose = opt_prop_def(UnitAttr)
    descaleMode = opt_prop_def(DescaleModeAttr)
    blockSizes = var_operand_def(i64)
    processSizes = var_operand_def(i64)
    swizzleOffset = opt_operand_def(i64)
    swizzleDirection = opt_operand_def(i64)
    epiloguePTiles = opt_operand_def(i64)
    c = operand_def(SHAPED)
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "attr-dict `ins` `(` $a `,` $b `:` type($a) `,` type($b) `)` " + _clauses("")

    def __init__(self, a: Operand, b: Operand, c: Operand, *, bias: Operand | None = None, descale: Operand | None = None,
                 descale_mode: str | None = None, a_transpose: bool = False, b_transpose: bool = False,
                 tiling_params: Operand | None = None, block_sizes: Sequence[Operand] = (),
                 process_sizes: Sequence[Operand] = (), swizzle_offset: Operand | None = None,
                 swizzle_direction: Operand | None = None, epilogue_p_tiles: Operand | None = None) -> None:
        """Make the product; sizes of tiles are i64 values for M, N and K."""
        IRDLOperation.__init__(
            self, operands=[a, b, tiling_params, bias, descale, list(block_sizes), list(process_sizes), swizzle_offset,
                            swizzle_direction, epilogue_p_tiles, c],
            result_types=[results_for(c)],
            properties=_facts(a_transpose=a_transpose, b_transpose=b_transpose, descale_mode=descale_mode))

    def verify_(self) -> None:
        if len(shape_of(self.a)) != 2 or len(shape_of(self.b)) != 2:
            fail("matrix A and matrix B must be 2D")
        _verify_common(self)


@operation(pipes=("MTE2", "MTE3"), rules=(destination_style,),
           reads=("a", "b", "postVecFuncIns", "tilingParams", "commParams", "bias", "descale", *_SIZES),
           scratch=("workspaceIns",))
class MixMatmulOp(_GlobalMatmulOp):
    """Product of two matrices in GM, with a vector function applied to its tiles."""

    name = "hivm.hir.mix_matmul"
    a = operand_def(SHAPED)
    b = operand_def(SHAPED)
    postVecFuncIns = var_operand_def(SHAPED)
    workspaceIns = var_operand_def(SHAPED)
    tilingParams = opt_operand_def(SHAPED)
    commParams = opt_operand_def(SHAPED)
    bias = opt_operand_def(SHAPED)
    descale = opt_operand_def(SHAPED)
    aTranspose = opt_prop_def(UnitAttr)
    bTranspose = opt_prop_def(UnitAttr)
    descaleMode = opt_prop_def(DescaleModeAttr)
    blockSizes = var_operand_def(i64)
    processSizes = var_operand_def(i64)
    swizzleOffset = opt_operand_def(i64)
    swizzleDirection = opt_operand_def(i64)
    epiloguePTiles = opt_operand_def(i64)
    c = operand_def(SHAPED)
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = ("attr-dict `ins` `(` $a `,` $b `:` type($a) `,` type($b) `)` " + _POST_INS + _WORKSPACE
                       + _clauses(_COMMUNICATION))

    def __init__(self, a: Operand, b: Operand, c: Operand, *, post_vector_func: str | None = None,
                 post_vector_func_ins: Sequence[Operand] = (), workspace_ins: Sequence[Operand] = (),
                 comm_params: Operand | None = None, bias: Operand | None = None, descale: Operand | None = None,
                 descale_mode: str | None = None, a_transpose: bool = False, b_transpose: bool = False,
                 tiling_params: Operand | None = None, block_sizes: Sequence[Operand] = (),
                 process_sizes: Sequence[Operand] = (), swizzle_offset: Operand | None = None,
                 swizzle_direction: Operand | None = None, epilogue_p_tiles: Operand | None = None) -> None:
        """Make the product; ``post_vector_func`` names the function of the Vector cores."""
        IRDLOperation.__init__(
            self, operands=[a, b, list(post_vector_func_ins), list(workspace_ins), tiling_params, comm_params, bias, descale,
                            list(block_sizes), list(process_sizes), swizzle_offset, swizzle_direction, epilogue_p_tiles, c],
            result_types=[results_for(c)],
            properties=_facts(a_transpose=a_transpose, b_transpose=b_transpose, descale_mode=descale_mode),
            attributes={"post_vector_func": None if post_vector_func is None else StringAttr(post_vector_func)})

    def verify_(self) -> None:
        if len(shape_of(self.a)) != 2 or len(shape_of(self.b)) != 2:
            fail("matrix A and matrix B must be 2D")
        _verify_common(self)


@operation(pipes=("MTE2", "MTE3"), rules=(destination_style,),
           reads=("a", "b", "tokens_per_expert", "postVecFuncIns", "tilingParams", "commParams", "bias", "descale", *_SIZES),
           writes=("c", "postVecFuncOuts"), scratch=("workspaceIns",))
class MixGroupMatmulOp(_GlobalMatmulOp):
    """Products of groups of rows with one matrix per group (mixture of experts), with a vector function on the tiles."""

    name = "hivm.hir.mix_group_matmul"
    a = operand_def(SHAPED)
    b = operand_def(SHAPED)
    tokens_per_expert = operand_def(SHAPED)
    postVecFuncIns = var_operand_def(SHAPED)
    postVecFuncOuts = var_operand_def(SHAPED)
    workspaceIns = var_operand_def(SHAPED)
    tilingParams = opt_operand_def(SHAPED)
    commParams = opt_operand_def(SHAPED)
    bias = opt_operand_def(SHAPED)
    descale = opt_operand_def(SHAPED)
    aTranspose = opt_prop_def(UnitAttr)
    bTranspose = opt_prop_def(UnitAttr)
    descaleMode = opt_prop_def(DescaleModeAttr)
    blockSizes = var_operand_def(i64)
    processSizes = var_operand_def(i64)
    swizzleOffset = opt_operand_def(i64)
    swizzleDirection = opt_operand_def(i64)
    epiloguePTiles = opt_operand_def(i64)
    c = operand_def(SHAPED)
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "attr-dict `ins` `(` $a `,` $b `,` $tokens_per_expert `:` type($a) `,` type($b) `,` type($tokens_per_expert) `)` "
        + _POST_INS + _POST_OUTS + _WORKSPACE + _clauses(_COMMUNICATION))

    def __init__(self, weight: Operand, tokens: Operand, tokens_per_expert: Operand, c: Operand, *,
                 post_vector_func_ins: Sequence[Operand] = (), post_vector_func_outs: Sequence[Operand] = (),
                 workspace_ins: Sequence[Operand] = (), comm_params: Operand | None = None, bias: Operand | None = None,
                 descale: Operand | None = None, descale_mode: str | None = None, a_transpose: bool = False,
                 b_transpose: bool = False, tiling_params: Operand | None = None, block_sizes: Sequence[Operand] = (),
                 process_sizes: Sequence[Operand] = (), swizzle_offset: Operand | None = None,
                 swizzle_direction: Operand | None = None, epilogue_p_tiles: Operand | None = None) -> None:
        """Make the products: ``weight`` is 3-D, ``tokens`` 2-D, ``tokens_per_expert`` 1-D."""
        IRDLOperation.__init__(
            self, operands=[weight, tokens, tokens_per_expert, list(post_vector_func_ins), list(post_vector_func_outs),
                            list(workspace_ins), tiling_params, comm_params, bias, descale, list(block_sizes),
                            list(process_sizes), swizzle_offset, swizzle_direction, epilogue_p_tiles, c],
            result_types=[results_for(c)],
            properties=_facts(a_transpose=a_transpose, b_transpose=b_transpose, descale_mode=descale_mode))

    def verify_(self) -> None:
        if len(shape_of(self.a)) != 3:
            fail("matrix A must be 3D")
        if len(shape_of(self.b)) != 2:
            fail("matrix B must be 2D")
        if len(shape_of(self.tokens_per_expert)) != 1:
            fail("matrix TokensPerExpert must be 1D")
        _verify_common(self)


OPERATIONS = (MatmulOp, MixMatmulOp, MixGroupMatmulOp)
