"""Invalid vector ops, with the messages of the toolchain's verifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Operation

from dialects.helpers import Kernel, refusal, type_of
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import verify_module

Make = Callable[[Kernel], Any]


def _with_results(op: Operation, *types: str) -> Operation:
    """The same op with other result types."""
    return type(op).create(operands=op.operands, result_types=[type_of(text) for text in types], properties=op.properties)


def _deinterleave(k: Kernel, count: int) -> Operation:
    op = hivm.VDeinterleaveOp(k("16xf16 ub"), [k("8xf16 ub"), k("8xf16 ub")])
    op.properties["channel_num"] = IntegerAttr(count, i64)
    return op


ELEMENTWISE: list[tuple[str, Make, str]] = [
    ("element type", lambda k: hivm.VExpOp([k("8xi32 ub")], [k("8xi32 ub")]),
     "'hivm.hir.vexp' op failed to verify that operand at idx 0 and 1 should have element type 16-bit float or 32-bit float"),
    ("different element types", lambda k: hivm.VMulOp([k("8xf16 ub"), k("8xf32 ub")], [k("8xf16 ub")]),
     "'hivm.hir.vmul' op requires the same element type for all operands"),
    ("temporary of another type", lambda k: hivm.VAddOp([k("8xf32 ub"), k("8xf32 ub")], [k("8xf32 ub")],
                                                        temp_buffer=k("8xf16 ub")),
     "'hivm.hir.vadd' op requires the same element type for all operands"),
    ("number of inputs", lambda k: hivm.VExpOp([k("8xf32 ub"), k("8xf32 ub")], [k("8xf32 ub")]),
     "'hivm.hir.vexp' op elementwise op expected 1 inputs, but found 2"),
    ("scalar first", lambda k: hivm.VMulOp([k("f32"), k("8xf32 ub")], [k("8xf32 ub")]),
     "'hivm.hir.vmul' op failed to verify that operand at index 0 is vector-only"),
    ("scalar only", lambda k: hivm.VAbsOp([k("f32")], [k("8xf32 ub")]),
     "'hivm.hir.vabs' op failed to verify that operand at index 0 is vector-only"),
    ("ranks", lambda k: hivm.VAddOp([k("8xf32 ub"), k("1x8xf32 ub")], [k("8xf32 ub")]),
     "'hivm.hir.vadd' op operands must have same rank"),
    ("shapes", lambda k: hivm.VAddOp([k("4x8xf32 ub"), k("4x4xf32 ub")], [k("4x8xf32 ub")]),
     "'hivm.hir.vadd' op operands' shape are inconsistent"),
    ("two destinations", lambda k: hivm.VAddOp([k("1x8xf32 ub"), k("8x8xf32 ub")], [k("8x8xf32 ub"), k("8x8xf32 ub")],
                                               broadcast=[0]),
     "'hivm.hir.vadd' op BroadcastableOTF Op expect 1 output, but found 2"),
    ("broadcast and transpose", lambda k: hivm.VAddOp([k("4x4x8xf32 ub"), k("4x4x8xf32 ub")], [k("4x4x8xf32 ub")],
                                                      broadcast=[0], transpose=[1, 0, 2]),
     "'hivm.hir.vadd' op Broadcast OTF and Transpose OTF cannot be enabled at the same time"),
    ("broadcast axis beyond the rank", lambda k: hivm.VAddOp([k("1xf32 ub"), k("8xf32 ub")], [k("8xf32 ub")], broadcast=[1]),
     "'hivm.hir.vadd' op broadcast dim exceeds op's rank"),
    ("broadcast of a long axis", lambda k: hivm.VAddOp([k("4x2xf32 ub"), k("4x8xf32 ub")], [k("4x8xf32 ub")], broadcast=[1]),
     "'hivm.hir.vadd' op input operand's broadcast dim is not 1"),
    ("broadcast with a wrong other axis", lambda k: hivm.VAddOp([k("2x1xf32 ub"), k("4x8xf32 ub")], [k("4x8xf32 ub")],
                                                                broadcast=[1]),
     "'hivm.hir.vadd' op input operand's non-broadcast dim does not match with output"),
    ("transpose is no permutation", lambda k: hivm.VAddOp([k("2x8xf32 ub"), k("2x8xf32 ub")], [k("2x8xf32 ub")],
                                                          transpose=[0, 0]),
     "'hivm.hir.vadd' op expects 'transpose' to be a permutation, found 0, 0"),
    ("transpose of the last axis", lambda k: hivm.VAddOp([k("2x8xf32 ub"), k("2x8xf32 ub")], [k("8x2xf32 ub")],
                                                         transpose=[1, 0]),
     "'hivm.hir.vadd' op transpose dim is the last dimension"),
    ("transpose to a wrong shape", lambda k: hivm.VAddOp([k("2x4x8xf32 ub"), k("2x4x8xf32 ub")], [k("2x4x8xf32 ub")],
                                                         transpose=[1, 0, 2]),
     "'hivm.hir.vadd' op failed to verify transpose behavior at 1 0"),
    ("result missing", lambda k: _with_results(hivm.VAddOp([k("8xf32"), k("8xf32")], [k("8xf32")])),
     ("'hivm.hir.vadd' op expected the number of tensor results (0) to be equal to the number of output tensors (1)")),
    ("result type", lambda k: _with_results(hivm.VAddOp([k("8xf32"), k("8xf32")], [k("8xf32")]), "4xf32"),
     ("'hivm.hir.vadd' op expected type of operand #2 (tensor<8xf32>) to match type of corresponding result (tensor<4xf32>)")),
    ("result on memrefs", lambda k: _with_results(hivm.VExpOp([k("8xf32 ub")], [k("8xf32 ub")]), "8xf32"),
     "'hivm.hir.vexp' op expected the number of tensor results (1) to be equal to the number of output tensors (0)"),
    ("comparison to a number", lambda k: hivm.VCmpOp([k("8xf32 ub"), k("8xf32 ub")], [k("8xf32 ub")], compare_mode="lt"),
     ("'hivm.hir.vcmp' op failed to verify that operand at idx 2 should have element type 1-bit signless integer"
      " or 8-bit signless integer")),
    ("selection by a number", lambda k: hivm.VSelOp([k("8xf32 ub"), k("8xf32 ub"), k("8xf32 ub")], [k("8xf32 ub")]),
     ("'hivm.hir.vsel' op failed to verify that operand at idx 0 should have element type 1-bit signless integer"
      " or 8-bit signless integer")),
    ("no such cast", lambda k: hivm.VCastOp([k("8xi8 ub")], [k("8xf32 ub")], round_mode="rint"),
     "'hivm.hir.vcast' op currently don't support cast int8_t_to_float_rintmode"),
    ("no such rounding", lambda k: hivm.VCastOp([k("8xf32 ub")], [k("8xbf16 ub")], round_mode="odd"),
     "'hivm.hir.vcast' op currently don't support cast float_to_bfloat16_t_oddmode"),
    ("no such unsigned cast", lambda k: hivm.VCastOp([k("8xi16 ub")], [k("8xf32 ub")], cast="cast_unsigned"),
     "'hivm.hir.vcast' op currently don't support cast uint16_t_to_float_rintmode"),
]

OTHERS: list[tuple[str, Make, str]] = [
    ("vbrc scalar along axes", lambda k: hivm.VBrcOp(k("f32"), k("8xf32 ub"), dims=[0]),
     "'hivm.hir.vbrc' op broadcast dims must be empty for scalar src"),
    ("vbrc no axes", lambda k: hivm.VBrcOp(k("1xf32 ub"), k("8xf32 ub")),
     "'hivm.hir.vbrc' op have empty broadcast dims array"),
    ("vbrc too many axes", lambda k: hivm.VBrcOp(k("1xf32 ub"), k("8xf32 ub"), dims=[0, 1]),
     "'hivm.hir.vbrc' op have too many indices in the broadcast dims array"),
    ("vbrc axis", lambda k: hivm.VBrcOp(k("1xf32 ub"), k("8xf32 ub"), dims=[2]),
     "'hivm.hir.vbrc' op have invalid index '2' inside broadcast dims array"),
    ("vbrc long axis", lambda k: hivm.VBrcOp(k("2x8xf32 ub"), k("2x8xf32 ub"), dims=[0]),
     "'hivm.hir.vbrc' op invalid source vector shape, 'SrcVecDim[0]' != 1"),
    ("vbrc element types", lambda k: hivm.VBrcOp(k("f16"), k("8xf32 ub")),
     "'hivm.hir.vbrc' op requires the same element type for all operands"),
    ("vbrc temporary", lambda k: hivm.VBrcOp(k("f32"), k("8xf32 ub"), temp_buffer=k("2x8xf32 ub")),
     "'hivm.hir.vbrc' op temp_buffer'rank should be one"),
    ("vreduce no axes", lambda k: hivm.VReduceOp(k("4x8xf32 ub"), k("4x1xf32 ub"), "sum", dims=[]),
     "'hivm.hir.vreduce' op have empty reduce dims array"),
    ("vreduce too many axes", lambda k: hivm.VReduceOp(k("8xf32 ub"), k("1xf32 ub"), "sum", dims=[0, 0]),
     "'hivm.hir.vreduce' op have too many indices in the reduce dims array"),
    ("vreduce axis", lambda k: hivm.VReduceOp(k("8xf32 ub"), k("1xf32 ub"), "sum", dims=[1]),
     "'hivm.hir.vreduce' op have invalid index '1' inside reduce dims array"),
    ("vreduce to a long axis", lambda k: hivm.VReduceOp(k("4x8xf32 ub"), k("4x2xf32 ub"), "max", dims=[1]),
     "'hivm.hir.vreduce' op invalid dst vector shape, 'DstVecDim[1]' != 1"),
    ("vreduce drops the axis", lambda k: hivm.VReduceOp(k("4x8xf32 ub"), k("1xf32 ub"), "max", dims=[0]),
     "'hivm.hir.vreduce' op have src and dst with different ranks"),
    ("vreduce other axis", lambda k: hivm.VReduceOp(k("4x8xf32 ub"), k("2x1xf32 ub"), "max", dims=[1]),
     "'hivm.hir.vreduce' op have dim at index 0 different between src and dst"),
    ("vreduce bits of floats", lambda k: hivm.VReduceOp(k("8xf32 ub"), k("1xf32 ub"), "xori", dims=[0]),
     "'hivm.hir.vreduce' op elemtype should be an integer"),
    ("vreduce two destinations", lambda k: hivm.VReduceOp(k("8xf32 ub"), [k("1xf32 ub"), k("1xi32 ub")], "sum", dims=[0]),
     "'hivm.hir.vreduce' op should have exactly 1 destination operand"),
    ("vreduce index missing", lambda k: hivm.VReduceOp(k("8xf32 ub"), k("1xf32 ub"), "max_with_index_left", dims=[0]),
     "'hivm.hir.vreduce' op with index should have exactly 2 destination operands"),
    ("vreduce index of two axes", lambda k: hivm.VReduceOp(k("4x8xf32 ub"), [k("1x1xf32 ub"), k("1x1xi32 ub")],
                                                           "min_with_index_right", dims=[0, 1]),
     "'hivm.hir.vreduce' op with index should have exactly 1 reduce dimension"),
    ("vreduce index type", lambda k: hivm.VReduceOp(k("8xf32 ub"), [k("1xf32 ub"), k("1xi64 ub")], "max_with_index_left",
                                                    dims=[0]),
     "'hivm.hir.vreduce' op invalid dst index elemtype"),
    ("vreduce index shape", lambda k: hivm.VReduceOp(k("4x8xf32 ub"), [k("4x1xf32 ub"), k("2x1xi32 ub")],
                                                     "max_with_index_left", dims=[1]),
     "'hivm.hir.vreduce' op dst index shape should be compatible with dst value"),
    ("vreduce fp8", lambda k: hivm.VReduceOp(k("8xf8E4M3FN ub"), k("1xf8E4M3FN ub"), "sum", dims=[0]),
     "'hivm.hir.vreduce' op fp8 is not supported."),
    ("vtranspose nothing", lambda k: hivm.VTransposeOp(k("4x8xf32 ub"), k("4x8xf32 ub"), []),
     "'hivm.hir.vtranspose' op Permutation array should not be empty."),
    ("vtranspose rank", lambda k: hivm.VTransposeOp(k("4x8xf32 ub"), k("8x4xf32 ub"), [0]),
     "'hivm.hir.vtranspose' op Permutation size should be equal to src rank"),
    ("vtranspose axis", lambda k: hivm.VTransposeOp(k("4x8xf32 ub"), k("8x4xf32 ub"), [2, 0]),
     "'hivm.hir.vtranspose' op have invalid index '2' inside permutation array"),
    ("vtranspose three axes", lambda k: hivm.VTransposeOp(k("2x4x8xf32 ub"), k("4x8x2xf32 ub"), [1, 2, 0]),
     "'hivm.hir.vtranspose' op Vtranspose only support two axes transpose"),
    ("vtranspose four axes", lambda k: hivm.VTransposeOp(k("2x4x8x16xf32 ub"), k("4x8x16x2xf32 ub"), [1, 2, 3, 0]),
     ("'hivm.hir.vtranspose' op Vtranspose supports only swapping two axes; for rank-4, also allows permutations equivalent"
      " to two swaps (got moved=4, swaps=3)")),
    ("vtranspose element types", lambda k: hivm.VTransposeOp(k("4x8xf32 ub"), k("8x4xf16 ub"), [1, 0]),
     "'hivm.hir.vtranspose' op ElementType of src and dst are not the same"),
    ("vtranspose ranks", lambda k: hivm.VTransposeOp(k("4x8xf32 ub"), k("8x4x1xf32 ub"), [1, 0]),
     "'hivm.hir.vtranspose' op Rank of src and dst are not the same"),
    ("vtranspose not aligned", lambda k: hivm.VTransposeOp(k("2x4x8xf32 ub"), k("4x2x8xf32 ub"), [1, 0, 2],
                                                           disable_align=True),
     "'hivm.hir.vtranspose' op Disabled allign mode supports only last 2 axes transpose"),
    ("varange no strides", lambda k: hivm.VArangeOp(k("8xi32 ub"), []),
     "'hivm.hir.varange' op stride array should not be empty"),
    ("varange strides", lambda k: hivm.VArangeOp(k("8xi32 ub"), [k("index"), k("index")]),
     "'hivm.hir.varange' op stride array size should match the rank of dst"),
    ("vcumsum no axis", lambda k: hivm.VCumsumOp(k("8xf32 ub"), k("8xf32 ub"), dims=[]),
     "'hivm.hir.vcumsum' op have empty cum dims array"),
    ("vcumprod axis", lambda k: hivm.VCumprodOp(k("8xf32 ub"), k("8xf32 ub"), dims=[1]),
     "'hivm.hir.vcumprod' op have invalid index '1' inside cum dims array"),
    ("vcummax two axes", lambda k: hivm.VCummaxOp(k("4x8xf32 ub"), k("4x8xf32 ub"), dims=[0, 1]),
     "'hivm.hir.vcummax' op have more than one cumulative dims"),
    ("vcummin order", lambda k: hivm.VCumminOp(k("4x8xf32 ub"), k("4x8xf32 ub"), dims=[1, 0]),
     ("'hivm.hir.vcummin' op attribute 'cum_dims' failed to satisfy constraint: i64 dense array attribute should be in"
      " increasing order")),
    ("vcumprod element types", lambda k: hivm.VCumprodOp(k("8xf16 ub"), k("8xf32 ub"), dims=[0]),
     "'hivm.hir.vcumprod' op requires the same element type for all operands"),
    ("vsort axis", lambda k: hivm.VSortOp(k("4x8xf32 ub"), k("4x8xf32 ub"), axis=0),
     "'hivm.hir.vsort' op Currently only tail axis sorting is supported"),
    ("vsort temporary", lambda k: hivm.VSortOp(k("8xf32 ub"), k("8xf32 ub"), temp_buffer=k("4x8xf32 ub")),
     "'hivm.hir.vsort' op temp_buffer'rank should be one"),
    ("vinterleave three", lambda k: hivm.VInterleaveOp([k("8xf16 ub")] * 3, k("24xf16 ub")),
     "'hivm.hir.vinterleave' op Only support interleave two tensor2"),
    ("vdeinterleave one half", lambda k: hivm.VDeinterleaveOp(k("16xf16 ub"), [k("8xf16 ub")]),
     "'hivm.hir.vdeinterleave' op output num mismatch with channel num"),
    ("vdeinterleave number", lambda k: _deinterleave(k, 3),
     "'hivm.hir.vdeinterleave' op output num mismatch with channel num"),
    ("vdeinterleave both halves", lambda k: hivm.VDeinterleaveOp(k("16xf16 ub"), [k("8xf16 ub")] * 2, mode="CHANNEL_0"),
     "'hivm.hir.vdeinterleave' op output num for CHANNEL_0 CHANNEL_1 should be one"),
    ("vgather indices", lambda k: hivm.VGatherOp(k("8xf32 ub"), k("8xf32 ub"), k("8xf32 ub")),
     ("'hivm.hir.vgather' op failed to verify that operand at idx 1 should have element type 16-bit signless integer or"
      " 32-bit signless integer")),
    ("vgathermask mask", lambda k: hivm.VGatherMaskOp(k("8xf32 ub"), k("8xi8 ub"), [k("8xf32 ub")]),
     "'hivm.hir.vgathermask' op failed to verify that operand at idx 1 should have element type 1-bit signless integer"),
    ("vmulextended element type", lambda k: hivm.VMulextendedOp([k("8xi32 ub")] * 2, [k("8xi32 ub")] * 2),
     ("'hivm.hir.vmulextended' op failed to verify that operand at idx 0 should have element type 16-bit signless integer")),
    ("vflip element types", lambda k: hivm.VFlipOp(k("8xf32 ub"), k("8xf16 ub"), 0),
     "'hivm.hir.vflip' op requires the same element type for all operands"),
    ("vconcat element types", lambda k: hivm.VConcatOp([k("8xf32 ub"), k("8xf16 ub")], k("16xf32 ub"), 0),
     "'hivm.hir.vconcat' op requires the same element type for all operands"),
    ("vpad ranks", lambda k: hivm.VPadOp(k("8xf32 ub"), k("1x8xf32 ub"), k("f32"), [0], [0]),
     "'hivm.hir.vpad' op operands must have same rank"),
]


@pytest.mark.parametrize(("make", "message"), [case[1:] for case in ELEMENTWISE + OTHERS],
                         ids=[case[0] for case in ELEMENTWISE + OTHERS])
def test_refused(k: Kernel, make: Make, message: str) -> None:
    assert refusal(k.module(make(k))) == message


FP8 = [
    ("vbrc", lambda k: hivm.VBrcOp(k("f8E4M3FN"), k("8xf8E4M3FN ub"))),
    ("vtranspose", lambda k: hivm.VTransposeOp(k("4x8xf8E5M2 ub"), k("8x4xf8E5M2 ub"), [1, 0])),
    ("load", lambda k: hivm.LoadOp(k("8xf8E5M2 gm"), k("8xf8E5M2 ub"))),
]


@pytest.mark.parametrize("make", [case[1] for case in FP8], ids=[case[0] for case in FP8])
def test_fp8_needs_a_register_based_chip_where_one_is_named(make: Make) -> None:
    for target in ("Ascend910B3", "Ascend910_9392"):
        k = Kernel()
        assert refusal(k.module(make(k), target=target)).endswith("Current hardware doesn't support fp8 type")
    for target in ("", "Ascend950DT_9595", "Ascend910_9589"):
        k = Kernel()
        verify_module(k.module(make(k), target=target))


def test_a_cast_may_exist_on_register_based_chips_only() -> None:
    for target, supported in (("Ascend910B3", False), ("", False), ("Ascend950PR_9599", True)):
        k = Kernel()
        module = k.module(hivm.VCastOp([k("8xf32 ub")], [k("8xf8E4M3FN ub")], round_mode="rint"), target=target)
        if supported:
            verify_module(module)
        else:
            assert refusal(module) == "'hivm.hir.vcast' op currently don't support cast float_to_float8_e4m3_t_rintmode"


@pytest.mark.parametrize("make", [
    lambda k: hivm.VAddOp([k("8xf32 ub"), k("f32")], [k("8xf32 ub")]),
    lambda k: hivm.VAddOp([k("?x8xf32 ub"), k("4x8xf32 ub")], [k("4x?xf32 ub")]),
    lambda k: hivm.VAddOp([k("4x1xf32 ub"), k("4x8xf32 ub")], [k("4x8xf32 ub")], broadcast=[1]),
    lambda k: hivm.VAddOp([k("4x?xf32 ub"), k("4x8xf32 ub")], [k("4x8xf32 ub")], broadcast=[1]),
    lambda k: hivm.VAddOp([k("4x8xf32"), k("2x3xf32")], [k("4x8xf32")]),
    lambda k: hivm.VAddOp([k("4x8xf32 ub"), k("4x8xf32 ub")], [k("4x8xf32 ub")], broadcast=[0], transpose=[0, 1]),
    lambda k: hivm.VCmpOp([k("8xf32 ub"), k("f32")], [k("8xi8 ub")]),
    lambda k: hivm.VSelOp([k("8xi1 ub"), k("f32"), k("8xf32 ub")], [k("8xf32 ub")]),
    lambda k: hivm.VReduceOp(k("2x4x8xf32 ub"), k("2x1x1xf32 ub"), "sum", dims=[1, 2]),
    lambda k: hivm.VTransposeOp(k("2x4x8x16xf32 ub"), k("4x2x16x8xf32 ub"), [1, 0, 3, 2]),
    lambda k: hivm.VTransposeOp(k("2x4x8xf32 ub"), k("2x8x4xf32 ub"), [0, 2, 1], disable_align=True),
    lambda k: hivm.VSortOp(k("4x8xf32 ub"), [k("4x8xf32 ub"), k("4x8xi32 ub")], axis=1),
], ids=["scalar", "dynamic", "broadcast", "broadcast of a dynamic axis", "shapes of tensors are not compared",
        "identity transpose", "comparison to i8", "selection of a scalar", "two axes", "two swaps", "last axes", "pairs"])
def test_taken(k: Kernel, make: Make) -> None:
    verify_module(k.module(make(k)))


def test_axes_are_plain_tuples(k: Kernel) -> None:
    op = hivm.VAddOp([k("4x1xf32 ub"), k("4x8xf32 ub")], [k("4x8xf32 ub")], broadcast=[1])
    assert op.broadcast_axes == (1,)
    assert op.transpose_axes == ()
    assert op.properties["broadcast"] == DenseArrayBase.from_list(i64, [1])
    assert hivm.VCastOp([k("8xf32 ub")], [k("8xf16 ub")], round_mode="floor").fact("round_mode") == "floor"
    assert hivm.VDivOp([k("8xf32 ub")] * 2, [k("8xf32 ub")], isHP=True).fact("isHP") is True
