"""Matrix products of operands in GM, which the toolchain implements as library kernels that tile, load, multiply and store."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, UnitAttr, i64

from tilelang_npu.dialects.hivm.enums import DescaleModeAttr
from tilelang_npu.dialects.ir.declaration import TableOp, define_op, fail, group
from tilelang_npu.dialects.ir.destination_style import SHAPED, TENSOR, StructuredTableOp, destination_style, shape_of

__all__ = [
    "MatmulOp", "MixGroupMatmulOp", "MixMatmulOp",
]

_TILE_SIZES = 3
_SIZES = ("blockSizes", "processSizes", "swizzleOffset", "swizzleDirection", "epiloguePTiles")
_SHARED_READS = ("bias", "descale", *_SIZES)
_SHARED_OPERANDS = {"bias?": SHAPED, "descale?": SHAPED, "blockSizes*": i64, "processSizes*": i64, "swizzleOffset?": i64,
                    "swizzleDirection?": i64, "epiloguePTiles?": i64, "c": SHAPED}
_PROPERTIES = {"aTranspose?": UnitAttr, "bTranspose?": UnitAttr, "descaleMode?": DescaleModeAttr}


class _GlobalMatmulOp(StructuredTableOp):
    """Base of the three products. Block sizes and process sizes are i64 values for M, N and K."""

    WRITES: ClassVar[tuple[str, ...]] = ("c",)

    @classmethod
    def out_fields(cls) -> tuple[str, ...]:
        """Returns only the product ``c``: the op has no results for further operands that the vector function writes."""
        return ("c",)


def _verify_matrices(op: TableOp) -> None:
    if len(shape_of(op.a)) != 2 or len(shape_of(op.b)) != 2:
        fail("matrix A and matrix B must be 2D")


def _verify_expert_matrices(op: TableOp) -> None:
    for value, rank, name in ((op.a, 3, "A"), (op.b, 2, "B"), (op.tokens_per_expert, 1, "TokensPerExpert")):
        if len(shape_of(value)) != rank:
            fail(f"matrix {name} must be {rank}D")


def _verify_parameters(op: TableOp) -> None:
    """Verifies that bias and descale fit the columns of B, and that the tiling is stated in only one of two ways.

    These are the operand ``tilingParams``, and separate operands such as ``blockSizes``.
    """
    columns = shape_of(op.b)[1]
    _verify_descale(op, columns)
    if op.bias is not None:
        shape = shape_of(op.bias)
        if len(shape) != 1:
            fail("bias must must be 1D")
        if DYNAMIC_INDEX not in (shape[0], columns) and shape[0] != columns:
            fail("The size of bias is equal to the col size of B")
    if op.tilingParams is not None and any(getattr(op, name) for name in _SIZES):
        fail("`TilingParams` and the other explicit tiling params cannot be set at the same time")
    if len(op.blockSizes) not in (0, _TILE_SIZES):
        fail("The size of Blocksize should be 3. The order is blockM, blockN, blockK")
    if len(op.processSizes) not in (0, _TILE_SIZES):
        fail("The size of ProcessSizes should be 3. The order is ProcessM, ProcessN, ProcessK")


def _verify_descale(op: TableOp, columns: int) -> None:
    if op.descaleMode is None or op.descaleMode.data == "DescaleNull":
        return
    if op.descale is None:
        fail("The descaleMode is defined, descale params must be defined!")
    shape = shape_of(op.descale)
    if len(shape) != 1:
        fail("descale must must be 1D")
    if DYNAMIC_INDEX in (shape[0], columns):
        return
    if op.descaleMode.data == "DescalePerTensor" and shape[0] != 1:
        fail("The descaleMode is DescalePerTensor, the size of descale is equal to 1")
    if op.descaleMode.data == "DescalePerChannel" and shape[0] != columns:
        fail("The descaleMode is DescalePerChannel, the size of descale is equal to the col size of B")


def _optional(word: str, name: str) -> str:
    """Returns the format of the clause of an optional operand: ``bias = %a : T``."""
    return f"(`{word}` `=` ${name}^ `:` type(${name}))?"


def _text(inputs: str, *extra: str, communication: str = "") -> str:
    """Returns the assembly format of a product with these inputs and clauses."""
    return " ".join((
        "attr-dict", inputs, *extra, group("outs", "c"), _optional("tiling_params", "tilingParams"), communication,
        _optional("bias", "bias"), _optional("descale", "descale"), "(`a_transpose` $aTranspose^)?",
        "(`b_transpose` $bTranspose^)?", "(`descale_mode` `=` $descaleMode^)?", group("block_sizes?", "blockSizes"),
        group("process_sizes?", "processSizes"), _optional("swizzle_offset", "swizzleOffset"),
        _optional("swizzle_direction", "swizzleDirection"), _optional("epilogue_p_tiles", "epiloguePTiles"),
        "(`->` type($result)^)?"))


_MATRICES = "`ins` `(` $a `,` $b `:` type($a) `,` type($b) `)`"
_EXPERTS = "`ins` `(` $a `,` $b `,` $tokens_per_expert `:` type($a) `,` type($b) `,` type($tokens_per_expert) `)`"
_POST_INS = group("post_vector_func_ins?", "postVecFuncIns")
_POST_OUTS = group("post_vector_func_outs?", "postVecFuncOuts")
_WORKSPACE = group("workspace_ins?", "workspaceIns")
_COMMUNICATION = _optional("comm_params", "commParams")

MatmulOp = define_op(
    _GlobalMatmulOp, "hivm.hir.matmul", "Multiplies two matrices in GM.",
    operands={"a": SHAPED, "b": SHAPED, "tilingParams?": SHAPED, **_SHARED_OPERANDS}, results={"result*": TENSOR},
    properties=_PROPERTIES, text=_text(_MATRICES), reads=("a", "b", "tilingParams", *_SHARED_READS),
    pipes=("MTE2", "MTE3"), rules=(_verify_matrices, _verify_parameters, destination_style))

MixMatmulOp = define_op(
    _GlobalMatmulOp, "hivm.hir.mix_matmul",
    "Multiplies two matrices in GM and applies the function that the attribute ``post_vector_func`` names to each tile.",
    operands={"a": SHAPED, "b": SHAPED, "postVecFuncIns*": SHAPED, "workspaceIns*": SHAPED, "tilingParams?": SHAPED,
              "commParams?": SHAPED, **_SHARED_OPERANDS},
    results={"result*": TENSOR}, properties=_PROPERTIES,
    text=_text(_MATRICES, _POST_INS, _WORKSPACE, communication=_COMMUNICATION),
    reads=("a", "b", "postVecFuncIns", "tilingParams", "commParams", *_SHARED_READS), scratch=("workspaceIns",),
    pipes=("MTE2", "MTE3"), rules=(_verify_matrices, _verify_parameters, destination_style))

MixGroupMatmulOp = define_op(
    _GlobalMatmulOp, "hivm.hir.mix_group_matmul",
    "Multiplies groups of rows by one matrix per group (mixture of experts) and applies a vector function to each tile. ``a``"
    " is the weights (3-D), ``b`` the tokens (2-D), ``tokens_per_expert`` the number of tokens of each group (1-D).",
    operands={"a": SHAPED, "b": SHAPED, "tokens_per_expert": SHAPED, "postVecFuncIns*": SHAPED, "postVecFuncOuts*": SHAPED,
              "workspaceIns*": SHAPED, "tilingParams?": SHAPED, "commParams?": SHAPED, **_SHARED_OPERANDS},
    results={"result*": TENSOR}, properties=_PROPERTIES,
    text=_text(_EXPERTS, _POST_INS, _POST_OUTS, _WORKSPACE, communication=_COMMUNICATION),
    reads=("a", "b", "tokens_per_expert", "postVecFuncIns", "tilingParams", "commParams", *_SHARED_READS),
    writes=("c", "postVecFuncOuts"), scratch=("workspaceIns",), pipes=("MTE2", "MTE3"),
    rules=(_verify_expert_matrices, _verify_parameters, destination_style))

OPERATIONS = (MatmulOp, MixMatmulOp, MixGroupMatmulOp)
