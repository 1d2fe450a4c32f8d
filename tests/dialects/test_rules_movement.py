"""Invalid data movement ops and matrix ops, with the messages of the toolchain's verifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Operation

from dialects.helpers import Kernel, refusal, type_of
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import verify_module

Make = Callable[[Kernel], Any]
A5 = "Ascend950PR_9599"


def _retyped(op: Operation, *types: str) -> Operation:
    """The same op with other result types."""
    return type(op).create(operands=op.operands, result_types=[type_of(text) for text in types], properties=op.properties)


def _mmad(k: Kernel, **facts: Any) -> Operation:
    index = k("index")
    return hivm.MmadL1Op(k("16x16xf16 cbuf"), k("16x16xf16 cbuf"), k("16x16xf32 cc"), k("i1"), index, index, index, **facts)


def _fixpipe(k: Kernel, source: str = "16x16xf32 cc", target: str = "16x16xf32 gm", **facts: Any) -> Operation:
    return hivm.FixpipeOp(k(source), k(target), **facts)


def _conv(k: Kernel, padding: Any) -> Operation:
    op = hivm.Conv2dL1Op(k("3x8x8xf16"), k("4x3x3x3xf16"), init=k("4x8x8xf32"), init_condition=k("i1"),
                         groups=IntegerAttr(1, 32))
    op.properties["padding"] = padding
    return op


def _matmul(k: Kernel, a: str = "16x32xf16 gm", b: str = "32x8xf16 gm", **facts: Any) -> Operation:
    return hivm.MatmulOp(k(a), k(b), c=k("16x8xf16 gm"), **{
        name: value if name.endswith("Mode") else [k(one) for one in value] if isinstance(value, list) else k(value)
        for name, value in facts.items()})


def _mx(k: Kernel, a: str = "16x32xf8E4M3FN", scale: str = "16x1xui8", c: str = "16x16xf32") -> Operation:
    index = k("index")
    return hivm.MmadMxL1Op(k(a), k("32x16xf8E5M2"), k(scale), k("16x1xui8"), c=k(c), init_condition=k("i1"), real_m=index,
                           real_k=index, real_n=index)


MOVES: list[tuple[str, Make, str]] = [
    ("load to GM", lambda k: hivm.LoadOp(k("8xf32 gm"), k("8xf32 gm")),
     "'hivm.hir.load' op only support src == gm and dst != gm currently!"),
    ("load from UB", lambda k: hivm.LoadOp(k("8xf32 ub"), k("8xf32 ub")),
     "'hivm.hir.load' op only support src == gm and dst != gm currently!"),
    ("load of numbered spaces", lambda k: hivm.LoadOp(k("memref<8xf32, 1>"), k("8xf32 ub")),
     "'hivm.hir.load' op cast src memory space attr failed!"),
    ("load element types", lambda k: hivm.LoadOp(k("8xf16 gm"), k("8xf32 ub")),
     "'hivm.hir.load' op element types of dst and src should be the same!"),
    ("load of f64", lambda k: hivm.LoadOp(k("8xf64 gm"), k("8xf64 ub")),
     ("'hivm.hir.load' op failed to verify that operand at idx 0 should have element type f8E4M3FN type or f8E5M2 type or 1-bit"
      " signless integer or 8-bit signless integer or 8-bit unsigned integer or 16-bit signless integer or 16-bit unsigned"
      " integer or 16-bit float or bfloat16 type or 32-bit signless integer or 32-bit unsigned integer or 32-bit float or"
      " 64-bit unsigned integer or 64-bit signless integer")),
    ("load ranks", lambda k: hivm.LoadOp(k("8xf32 gm"), k("1x8xf32 ub")),
     "'hivm.hir.load' op src and dst should have the same dimensions!"),
    ("load of unknown rank", lambda k: hivm.LoadOp(k("memref<*xf32>"), k("8xf32 ub")),
     "'hivm.hir.load' op operand 'src' at position 0 does not verify: must be Tensor or Memref, but got 'memref<*xf32>'"),
    ("load of another shape", lambda k: hivm.LoadOp(k("8xf32 gm"), k("16xf32 ub")),
     "'hivm.hir.load' op if pad_mode is not set, src and dst shape should be the same!"),
    ("load with a value and no mode", lambda k: hivm.LoadOp(k("8xf32 gm"), k("8xf32 ub"), pad_value=k("f32")),
     "'hivm.hir.load' op if pad_mode is not set, pad_value should not be set!"),
    ("load without the value", lambda k: hivm.LoadOp(k("7xf32 gm"), k("8xf32 ub"), pad_mode="PadValue"),
     "'hivm.hir.load' op if padmode is PadValue, pad_value is required!"),
    ("load with first element and value", lambda k: hivm.LoadOp(k("7xf32 gm"), k("8xf32 ub"), pad_mode="PadFirstElem",
                                                               pad_value=k("f32")),
     "'hivm.hir.load' op if padmode is PadFirstElem, pad_value should not be set!"),
    ("load padding of rows", lambda k: hivm.LoadOp(k("1x8xf32 gm"), k("2x8xf32 ub"), pad_mode="PadFirstElem"),
     "'hivm.hir.load' op only the last dimension can be different"),
    ("load that cuts off", lambda k: hivm.LoadOp(k("8xf32 gm"), k("4xf32 ub"), pad_mode="PadFirstElem"),
     "'hivm.hir.load' op dst last dimension cannot be less than src's"),
    ("load with a value of another type", lambda k: hivm.LoadOp(k("7xf32 gm"), k("8xf32 ub"), pad_mode="PadValue",
                                                               pad_value=k("i32")),
     "'hivm.hir.load' op dtype of pad_value and element type of dst/src should be the same!"),
    ("load from memory to a tensor", lambda k: hivm.LoadOp(k("8xf32 gm"), k("8xf32")),
     "'hivm.hir.load' op dst/src should be memref/memref or tensor/tensor, res should be tensor!"),
    ("load without result", lambda k: _retyped(hivm.LoadOp(k("8xf32"), k("8xf32"))),
     "'hivm.hir.load' op expected the number of tensor results (0) to be equal to the number of output tensors (1)"),
    ("store from GM", lambda k: hivm.StoreOp(k("8xf32 gm"), k("8xf32 gm")),
     "'hivm.hir.store' op only support store ub to gm currently!"),
    ("store from L1", lambda k: hivm.StoreOp(k("8xf32 cbuf"), k("8xf32 gm")),
     "'hivm.hir.store' op only support store ub to gm currently!"),
    ("store shapes", lambda k: hivm.StoreOp(k("8xf32 ub"), k("4xf32 gm")),
     "'hivm.hir.store' op src and dst should have the same dimensions!"),
    ("store element types", lambda k: hivm.StoreOp(k("8xf16 ub"), k("8xf32 gm")),
     "'hivm.hir.store' op element types of dst and src should be the same!"),
    ("copy GM to GM", lambda k: hivm.CopyOp(k("8xf32 gm"), k("8xf32 gm")),
     "'hivm.hir.copy' op Unsupported copy from gm to gm!"),
    ("copy L1 to UB", lambda k: hivm.CopyOp(k("8xf32 cbuf"), k("8xf32 ub")),
     "'hivm.hir.copy' op Unsupported copy from cbuf to ub!"),
    ("copy of a tensor to GM", lambda k: hivm.CopyOp(k("8xf32"), k("8xf32 gm")),
     "'hivm.hir.copy' op Unsupported copy to gm!"),
    ("copy shapes", lambda k: hivm.CopyOp(k("8xf32 ub"), k("4xf32 ub")),
     "'hivm.hir.copy' op if pad_mode is not set, src and dst shape should be the same!"),
    ("copy without the value", lambda k: hivm.CopyOp(k("8xf32 ub"), k("8xf32 ub"), pad_mode="PadValue"),
     "'hivm.hir.copy' op if padmode is PadValue, pad_value is required!"),
    ("nd2nz result", lambda k: _retyped(hivm.Nd2NzOp(k("16x16xf16"), k("1x1x16x16xf16"))),
     "'hivm.hir.nd2nz' op expected the number of tensor results (0) to be equal to the number of output tensors (1)"),
    ("atomic_cas of booleans", lambda k: hivm.AtomicCasOp([k("1xi1 gm"), k("1xi1 gm")], k("1xi1 gm")),
     ("'hivm.hir.atomic_cas' op failed to verify that operand at idx 0 should have element type 8-bit signless integer or"
      " 16-bit signless integer or 32-bit signless integer or 16-bit float or 32-bit float or 64-bit signless integer or"
      " bfloat16 type or f8E4M3FN type or f8E5M2 type")),
]

MATRIX: list[tuple[str, Make, str]] = [
    ("sync_related_args", lambda k: _mmad(k, sync_related_args=[k("i64")] * 6),
     "'hivm.hir.mmadL1' op sync_related_args should be empty or of size 7"),
    ("conditions without modes", lambda k: _mmad(k, unit_flag_conditions=[k("i1")]),
     "'hivm.hir.mmadL1' op Cannot have unit-flag conditions without unit-flag modes."),
    ("conditions and modes", lambda k: _mmad(k, unit_flags=["DISABLED"], unit_flag_conditions=[k("i1"), k("i1")]),
     "'hivm.hir.mmadL1' op Number of unit-flag conditions should be equal to the number of unit-flag modes."),
    ("modes without conditions", lambda k: _fixpipe(k, unit_flags=["DISABLED", "ENABLED_WITH_UPDATE"]),
     ("'hivm.hir.fixpipe' op Cannot have multiple unit-flag modes without having equal number of unit-flag conditions.")),
    ("group", lambda k: _fixpipe(k, unit_flags=["DISABLED"], unit_flag_group=-2),
     "'hivm.hir.fixpipe' op Invalid value for unit-flag group-id: -2"),
    ("accumulator's result", lambda k: _retyped(hivm.MmadL1Op(k("4x4xf16"), k("4x4xf16"), k("4x4xf32"), k("i1"), k("index"),
                                                              k("index"), k("index")), "4x4xf16"),
     ("'hivm.hir.mmadL1' op expected type of operand #6 (tensor<4x4xf32>) to match type of corresponding result"
      " (tensor<4x4xf16>)")),
    ("padding of a convolution", lambda k: _conv(k, ArrayAttr([])),
     "'hivm.hir.Conv2dL1' op `padding` must be an integer scalar or a 2-element integer array"),
    ("MX accumulator", lambda k: _mx(k, c="16x16xi32"),
     "'hivm.hir.mmadmxL1' op operand 'c' must be Shaped Type of floating-point values, but got tensor<16x16xi32>"),
    ("MX scale", lambda k: _mx(k, scale="16x1xf32"),
     "'hivm.hir.mmadmxL1' op operand #2 must be Shaped Type of i8 or ui8 values, but got tensor<16x1xf32>"),
    ("matmul rank", lambda k: _matmul(k, a="1x16x32xf16 gm"), "'hivm.hir.matmul' op matrix A and matrix B must be 2D"),
    ("matmul bias rank", lambda k: _matmul(k, bias="1x8xf16 gm"), "'hivm.hir.matmul' op bias must must be 1D"),
    ("matmul bias size", lambda k: _matmul(k, bias="4xf16 gm"),
     "'hivm.hir.matmul' op The size of bias is equal to the col size of B"),
    ("matmul tiling", lambda k: _matmul(k, tilingParams="4xi64 gm", swizzleOffset="i64"),
     "'hivm.hir.matmul' op `TilingParams` and the other explicit tiling params cannot be set at the same time"),
    ("matmul blocks", lambda k: _matmul(k, blockSizes=["i64", "i64"]),
     "'hivm.hir.matmul' op The size of Blocksize should be 3. The order is blockM, blockN, blockK"),
    ("matmul process sizes", lambda k: _matmul(k, processSizes=["i64"]),
     "'hivm.hir.matmul' op The size of ProcessSizes should be 3. The order is ProcessM, ProcessN, ProcessK"),
    ("matmul descale missing", lambda k: _matmul(k, descaleMode="DescalePerTensor"),
     "'hivm.hir.matmul' op The descaleMode is defined, descale params must be defined!"),
    ("matmul descale rank", lambda k: _matmul(k, descaleMode="DescalePerTensor", descale="1x1xf32 gm"),
     "'hivm.hir.matmul' op descale must must be 1D"),
    ("matmul descale of all", lambda k: _matmul(k, descaleMode="DescalePerTensor", descale="8xf32 gm"),
     "'hivm.hir.matmul' op The descaleMode is DescalePerTensor, the size of descale is equal to 1"),
    ("matmul descale of channels", lambda k: _matmul(k, descaleMode="DescalePerChannel", descale="1xf32 gm"),
     "'hivm.hir.matmul' op The descaleMode is DescalePerChannel, the size of descale is equal to the col size of B"),
    ("mix_matmul rank", lambda k: hivm.MixMatmulOp(k("16x32xf16 gm"), k("1x32x8xf16 gm"), c=k("16x8xf16 gm")),
     "'hivm.hir.mix_matmul' op matrix A and matrix B must be 2D"),
    ("mix_group_matmul weights", lambda k: hivm.MixGroupMatmulOp(k("16x32xf16 gm"), k("32x8xf16 gm"), k("2xi64 gm"),
                                                                 c=k("16x8xf16 gm")),
     "'hivm.hir.mix_group_matmul' op matrix A must be 3D"),
    ("mix_group_matmul tokens", lambda k: hivm.MixGroupMatmulOp(k("2x16x32xf16 gm"), k("1x32x8xf16 gm"), k("2xi64 gm"),
                                                                c=k("16x8xf16 gm")),
     "'hivm.hir.mix_group_matmul' op matrix B must be 2D"),
    ("mix_group_matmul counts", lambda k: hivm.MixGroupMatmulOp(k("2x16x32xf16 gm"), k("32x8xf16 gm"), k("1x2xi64 gm"),
                                                                c=k("16x8xf16 gm")),
     "'hivm.hir.mix_group_matmul' op matrix TokensPerExpert must be 1D"),
]


@pytest.mark.parametrize(("make", "message"), [case[1:] for case in MOVES + MATRIX], ids=[case[0] for case in MOVES + MATRIX])
def test_refused(k: Kernel, make: Make, message: str) -> None:
    assert refusal(k.module(make(k))) == message


ONLY_950: list[tuple[str, Make, str]] = [
    ("columns", lambda k: _fixpipe(k, dma_mode="nz2dn"), "NZ2DN is only supported on Ascend950!"),
    ("to UB", lambda k: _fixpipe(k, target="16x16xf32 ub"), "dst=UB is only supported on Ascend950!"),
    ("channel split", lambda k: _fixpipe(k, channel_split=True), "The current hardware does not support channel split"),
]


@pytest.mark.parametrize(("make", "message"), [case[1:] for case in ONLY_950], ids=[case[0] for case in ONLY_950])
def test_fixpipe_forms_of_the_950(make: Make, message: str) -> None:
    for target in ("", "Ascend910B3"):
        k = Kernel()
        assert refusal(k.module(make(k), target=target)) == f"'hivm.hir.fixpipe' op {message}"
    k = Kernel()
    verify_module(k.module(make(k), target=A5))


def test_fixpipe_to_both_vector_cores() -> None:
    k = Kernel()
    module = k.module(_fixpipe(k, target="16x16xf32 ub", dual_dst_mode="ROW_SPLIT"), target=A5)
    verify_module(module)
    k = Kernel()
    split = _fixpipe(k, target="16x16xf32 ub", dual_dst_mode="COLUMN_SPLIT", sub_block=1)
    assert refusal(k.module(split, target=A5)).endswith("sub_block_idx must not be set when dual_dst_mode is enabled!")
    k = Kernel()
    assert refusal(k.module(_fixpipe(k, dual_dst_mode="ROW_SPLIT"), target=A5)).endswith(
        "if dual_dst_mode is enabled, the data movement must be performed from L0C to UB!")
    k = Kernel()
    assert refusal(k.module(_fixpipe(k, source="16x16xf32", target="16x16xf32", dual_dst_mode="ROW_SPLIT"))).endswith(
        "dual_dst_mode is only supported on Ascend950!")


@pytest.mark.parametrize("make", [
    lambda k: hivm.LoadOp(k("?x7xf16 gm"), k("4x16xf16 ub"), pad_mode="PadValue", pad_value=k("f16")),
    lambda k: hivm.LoadOp(k("8xf32 gm"), k("8xf32 cbuf")),
    lambda k: hivm.LoadOp(k("memref<8xf32>"), k("memref<8xf32>")),
    lambda k: hivm.StoreOp(k("?xf16 ub"), k("8xf16 gm"), atomic="add"),
    lambda k: hivm.CopyOp(k("8xf32"), k("8xf32 cbuf")),
    lambda k: _mmad(k, sync_related_args=[k("i64")] * 7),
    lambda k: _fixpipe(k, unit_flags=["ENABLED_WITH_UPDATE"]),
    lambda k: _matmul(k, bias="8xf16 gm", blockSizes=["i64"] * 3, processSizes=["i64"] * 3),
], ids=["padding of dynamic rows", "to L1", "no spaces", "atomic", "tensor to L1", "seven arguments", "one mode",
        "explicit tiles"])
def test_taken(k: Kernel, make: Make) -> None:
    verify_module(k.module(make(k)))
