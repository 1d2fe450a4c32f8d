"""Every op: built from Python, written as the toolchain writes it, read back, in custom and in generic form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, StringAttr, UnitAttr, f32, i32, i64
from xdsl.ir import Block, Operation

from dialects.helpers import Kernel, body, type_of
from tilelang_npu.dialects import annotation, hivm, memref_ext, scope
from tilelang_npu.dialects.mlir import bufferization
from tilelang_npu.dialects.text import parse_module, print_module, verify_module
from tilelang_npu.ops import elementwise

UB = "#hivm.address_space<ub>"
M8 = f"memref<8xf32, {UB}>"
Make = Callable[[Kernel], Any]

# Each entry: the function that builds the op, and its printed line. Values are named a, b, c ... in order of creation.
CASES: list[tuple[str, Make, str]] = [
    # -- synchronisation
    ("set_flag", lambda k: hivm.SetFlagOp("MTE2", "V", 0), "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]"),
    ("set_flag dynamic", lambda k: hivm.SetFlagOp("M", "FIX", k("i64")), "hivm.hir.set_flag[<PIPE_M>, <PIPE_FIX>, %a]"),
    ("wait_flag", lambda k: hivm.WaitFlagOp("PIPE_V", "MTE3", 7), "hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID7>]"),
    ("wait_flag dynamic", lambda k: hivm.WaitFlagOp("MTE1", "M", k("i64")), "hivm.hir.wait_flag[<PIPE_MTE1>, <PIPE_M>, %a]"),
    ("pipe_barrier", lambda k: hivm.PipeBarrierOp("ALL"), "hivm.hir.pipe_barrier[<PIPE_ALL>]"),
    ("sync_block", lambda k: hivm.SyncBlockOp("ALL", flag=3, ffts=k("i64"), tcube_pipe="FIX", cube_pipe="MTE2",
                                              tvector_pipe="MTE3", vector_pipe="MTE2"),
     ("hivm.hir.sync_block[<ALL>, 3 : i64] ffts_base_addr = %a tcube_pipe = <PIPE_FIX> cube_pipe = <PIPE_MTE2>"
      " tvector_pipe = <PIPE_MTE3> vector_pipe = <PIPE_MTE2>")),
    ("sync_block barrier", lambda k: hivm.SyncBlockOp("BARRIER_CUBE"), "hivm.hir.sync_block[<BARRIER_CUBE>]"),
    ("sync_block_set", lambda k: hivm.SyncBlockSetOp("CUBE", "FIX", "S", flag=1, ffts=k("i64")),
     "hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 1 ffts_base_addr = %a"),
    ("sync_block_set dynamic", lambda k: hivm.SyncBlockSetOp("VECTOR", "MTE3", "S", k("i64"),
                                                            mode="INTER_BLOCK_SYNCHRONIZATION"),
     "hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = %a sync_instr_mode = <INTER_BLOCK_SYNCHRONIZATION>"),
    ("sync_block_wait", lambda k: hivm.SyncBlockWaitOp("VECTOR", "FIX", "S", flag=15),
     "hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 15"),
    ("sync_block_wait dynamic", lambda k: hivm.SyncBlockWaitOp("CUBE", "MTE2", "S", k("i64"),
                                                               mode="INTER_SUBBLOCK_SYNCHRONIZATION"),
     "hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = %a sync_instr_mode = <INTER_SUBBLOCK_SYNCHRONIZATION>"),
    ("create_sync_block_lock", lambda k: hivm.CreateSyncBlockLockOp(k("memref<?xi8>"), results=[type_of("memref<1xi64>")]),
     "%0 = hivm.hir.create_sync_block_lock from %a : from memref<?xi8> to memref<1xi64>"),
    ("create_sync_block_lock bare", lambda k: hivm.CreateSyncBlockLockOp(results=[type_of("memref<1xi64>")]),
     "%0 = hivm.hir.create_sync_block_lock : memref<1xi64>"),
    ("sync_block_lock", lambda k: hivm.SyncBlockLockOp(k("memref<1xi64>")),
     "hivm.hir.sync_block_lock lock_var(%a : memref<1xi64>)"),
    ("sync_block_unlock", lambda k: hivm.SyncBlockUnlockOp(k("memref<1xi64>")),
     "hivm.hir.sync_block_unlock lock_var(%a : memref<1xi64>)"),
    ("free_lock_var", lambda k: hivm.FreeLockVarOp(k("memref<1xi64>")),
     "hivm.hir.free_lock_var lock_var(%a : memref<1xi64>)"),
    ("anchor", lambda k: hivm.AnchorOp(id=10, tcore_type="CUBE"),
     "hivm.hir.anchor {id = 10 : i64, tcore_type = #hivm.tcore_type<CUBE>}"),
    # -- moving data
    ("load", lambda k: hivm.LoadOp(k("8xf32 gm"), k("8xf32 ub")),
     f"hivm.hir.load ins(%a : memref<8xf32, #hivm.address_space<gm>>) outs(%b : {M8})"),
    ("load padded", lambda k: hivm.LoadOp(
        k("2x7xf16 gm"), k("2x16xf16 ub"), pad_mode="PadValue", pad_value=k("f16"), left=k("index"), right=k("index"),
        init_out_buffer=True, init_condition=k("i1"), may_implicit_transpose_with_last_axis=True,
        eviction_policy="EvictFirst", core_type="VECTOR"),
     (f"hivm.hir.load ins(%a : memref<2x7xf16, #hivm.address_space<gm>>) outs(%b : memref<2x16xf16, {UB}>)"
      " pad_mode = <PadValue> pad_value = %c : f16 left_padding_num = %d : index init_out_buffer = true"
      " right_padding_num = %e : index init_condition = %f : i1 may_implicit_transpose_with_last_axis = true"
      " eviction_policy = <EvictFirst> core_type = <VECTOR>")),
    ("load tensor", lambda k: hivm.LoadOp(k("8xf32"), k("8xf32")),
     "%0 = hivm.hir.load ins(%a : tensor<8xf32>) outs(%b : tensor<8xf32>) -> tensor<8xf32>"),
    ("store", lambda k: hivm.StoreOp(k("8xf32 ub"), k("8xf32 gm"), atomic="add"),
     f"hivm.hir.store ins(%a : {M8}) outs(%b : memref<8xf32, #hivm.address_space<gm>>) atomic = <add>"),
    ("copy", lambda k: hivm.CopyOp(k("2x4xf16 ub"), k("2x4xf16 ub"), pad_mode="PadValue", pad_value=k("f16"),
                                   collapse=[[0, 1]]),
     (f"hivm.hir.copy ins(%a : memref<2x4xf16, {UB}>) outs(%b : memref<2x4xf16, {UB}>) pad_mode = <PadValue>"
      " pad_value = %c : f16 collapse_reassociation = [[0, 1]]")),
    ("nd2nz", lambda k: hivm.Nd2NzOp(k("64x32xf16 gm"), k("2x4x16x16xf16 cbuf"), init_out_buffer=True, pad_value=k("f16"),
                                     init_condition=k("i1")),
     ("hivm.hir.nd2nz {dst_continuous} ins(%a : memref<64x32xf16, #hivm.address_space<gm>>)"
      " outs(%b : memref<2x4x16x16xf16, #hivm.address_space<cbuf>>) init_out_buffer = true pad_value = %c : f16"
      " init_condition = %d : i1")),
    ("nz2nd", lambda k: hivm.Nz2NdOp(k("2x4x16x16xf16 cbuf"), k("64x32xf16 gm")),
     ("hivm.hir.nz2nd ins(%a : memref<2x4x16x16xf16, #hivm.address_space<cbuf>>)"
      " outs(%b : memref<64x32xf16, #hivm.address_space<gm>>)")),
    ("l12ub", lambda k: hivm.L12UBOp(k("2x32xf32"), k("2x32xf32 ub")),
     f"hivm.hir.l12ub ins(%a : tensor<2x32xf32>) outs(%b : memref<2x32xf32, {UB}>)"),
    ("load_scale", lambda k: hivm.LoadScaleOp(k("16x4xi8 gm"), k("1x1x16x16xi8 cbuf"), is_transposed=True),
     ("hivm.hir.load_scale ins(%a : memref<16x4xi8, #hivm.address_space<gm>>)"
      " outs(%b : memref<1x1x16x16xi8, #hivm.address_space<cbuf>>) is_transposed = true")),
    ("atomic_cas", lambda k: hivm.AtomicCasOp([k("memref<1xf32>"), k("memref<1xf32>")], k("memref<1xf32>")),
     "hivm.hir.atomic_cas ins(%a, %b : memref<1xf32>, memref<1xf32>) outs(%c : memref<1xf32>)"),
    ("atomic_xchg", lambda k: hivm.AtomicXchgOp(k("f32"), k("memref<1xf32>"), k("memref<1xi1>")),
     "hivm.hir.atomic_xchg ins(%a : f32) outs(%b : memref<1xf32>) mask(%c : memref<1xi1>)"),
    ("atomic_rmw", lambda k: hivm.AtomicRMWOp(k("4xi32"), k("4xi32"), atomic_kind="or"),
     "%0 = hivm.hir.atomic_rmw ins(%a : tensor<4xi32>) outs(%b : tensor<4xi32>) atomic_kind = <or> -> tensor<4xi32>"),
    ("fixpipe", lambda k: hivm.FixpipeOp(k("4x4x16x16xf32 cc"), k("64x64xf16 gm"), dma_mode="nz2nd", pre_quant="F322F16",
                                         pre_relu="NORMAL_RELU"),
     ("hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>, pre_quant = #hivm.fixpipe_pre_quant_mode<F322F16>,"
      " pre_relu = #hivm.fixpipe_pre_relu_mode<NORMAL_RELU>} ins(%a : memref<4x4x16x16xf32, #hivm.address_space<cc>>)"
      " outs(%b : memref<64x64xf16, #hivm.address_space<gm>>)")),
    ("fixpipe unit flags", lambda k: hivm.FixpipeOp(
        k("4x4x16x16xf32 cc"), k("64x64xf32 gm"), quant_scale=k("f32"), unit_flags=["ENABLED_WITH_UPDATE", "DISABLED"],
        unit_flag_conditions=[k("i1"), k("i1")], unit_flag_group=2, c0_pad=False),
     ("hivm.hir.fixpipe {c0_pad_en = false, unit_flag_group_id = 2 : i64}"
      " ins(%a : memref<4x4x16x16xf32, #hivm.address_space<cc>>) outs(%b : memref<64x64xf32, #hivm.address_space<gm>>)"
      " quant_scale = %c : f32"
      " unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>, #hivm.unit_flag<DISABLED>]) unit_flag_cond(%d, %e)")),
    # -- Cube
    ("mmadL1", lambda k: hivm.MmadL1Op(
        k("4x4x16x16xf16 cbuf", "a"), k("4x4x16x16xf16 cbuf", "b"), k("4x4x16x16xf32 cc", "c"), k("i1", "init"),
        k("index", "m"), k("index", "k"), k("index", "n"), bias=k("64xf32 cbuf", "bias"), b_transpose=True, hf32=True,
        sync_related_args=[k("i64", "e")] * 7, unit_flags=["ENABLED_WITHOUT_UPDATE"]),
     ("hivm.hir.mmadL1 {b_transpose, enable_HF32} ins(%a, %b, %init, %m, %k, %n, %bias :"
      " memref<4x4x16x16xf16, #hivm.address_space<cbuf>>, memref<4x4x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index,"
      " index, memref<64xf32, #hivm.address_space<cbuf>>) outs(%c : memref<4x4x16x16xf32, #hivm.address_space<cc>>)"
      " sync_related_args(%e, %e, %e, %e, %e, %e, %e : i64, i64, i64, i64, i64, i64, i64)"
      " unit_flag_mode([#hivm.unit_flag<ENABLED_WITHOUT_UPDATE>])")),
    ("mmadL1 tensor", lambda k: hivm.MmadL1Op(k("64x32xf16"), k("32x16xf16"), k("64x16xf32"), k("i1"), k("index"), k("index"),
                                              k("index"), a_transpose=True),
     ("%0 = hivm.hir.mmadL1 {a_transpose} ins(%a, %b, %d, %e, %f, %g : tensor<64x32xf16>, tensor<32x16xf16>, i1, index, index,"
      " index) outs(%c : tensor<64x16xf32>) -> tensor<64x16xf32>")),
    ("batchMmadL1", lambda k: hivm.BatchMmadL1Op(k("2x64x32xf16"), k("2x32x16xf16"), k("2x64x16xf32"), k("i1"), k("index"),
                                                 k("index"), k("index"), i4=True),
     ("%0 = hivm.hir.batchMmadL1 {enable_I4} ins(%a, %b, %d, %e, %f, %g : tensor<2x64x32xf16>, tensor<2x32x16xf16>, i1, index,"
      " index, index) outs(%c : tensor<2x64x16xf32>) -> tensor<2x64x16xf32>")),
    ("mmadmxL1", lambda k: hivm.MmadMxL1Op(
        k("64x64xf8E4M3FN"), k("64x64xf8E5M2"), k("64x2xui8"), k("64x2xi8"), c=k("64x64xf32"), init_condition=k("i1"),
        real_m=k("index"), real_k=k("index"), real_n=k("index"), lhsFormat=IntegerAttr(2, 32), rhsFormat=IntegerAttr(1, 32),
        a_transpose=True),
     ("%0 = hivm.hir.mmadmxL1 {lhsFormat = 2 : i32, rhsFormat = 1 : i32} a_transpose ins(%a, %b, %c, %d, %f, %g, %h, %i :"
      " tensor<64x64xf8E4M3FN>, tensor<64x64xf8E5M2>, tensor<64x2xui8>, tensor<64x2xi8>, i1, index, index, index)"
      " outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>")),
    ("Conv1dL1", lambda k: hivm.Conv1dL1Op(
        k("30x128xf32"), k("32x30x5xf32"), init=k("32x126xf32"), init_condition=k("i1"), padding=IntegerAttr(1, 32),
        groups=IntegerAttr(1, 32), bias=k("32xf32")),
     ("%0 = hivm.hir.Conv1dL1 {groups = 1 : i32, padding = 1 : i32} ins(%a, %b, %d, %e : tensor<30x128xf32>,"
      " tensor<32x30x5xf32>, i1, tensor<32xf32>) outs(%c : tensor<32x126xf32>) -> tensor<32x126xf32>")),
    ("Conv2dL1", lambda k: hivm.Conv2dL1Op(
        k("3x8x8xf16"), k("4x3x3x3xf16"), init=k("4x8x8xf32"), init_condition=k("i1"), groups=IntegerAttr(3, 32),
        padding=ArrayAttr([IntegerAttr(1, i64), IntegerAttr(1, i64)])),
     ("%0 = hivm.hir.Conv2dL1 {groups = 3 : i32, padding = [1, 1]} ins(%a, %b, %d : tensor<3x8x8xf16>, tensor<4x3x3x3xf16>, i1)"
      " outs(%c : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>")),
    ("Conv3dL1", lambda k: hivm.Conv3dL1Op(
        k("3x8x8x8xf16"), k("4x3x3x3x3xf16"), init=k("4x6x6x6xf32"), init_condition=k("i1"), padding=IntegerAttr(0, 32),
        groups=IntegerAttr(1, 32), sync_related_args=[k("i64")]),
     ("%0 = hivm.hir.Conv3dL1 {groups = 1 : i32, padding = 0 : i32} ins(%a, %b, %d : tensor<3x8x8x8xf16>,"
      " tensor<4x3x3x3x3xf16>, i1) outs(%c : tensor<4x6x6x6xf32>) sync_related_args(%e : i64) -> tensor<4x6x6x6xf32>")),
    ("matmul", lambda k: hivm.MatmulOp(
        k("16x32xf16 gm"), k("32x8xf16 gm"), c=k("16x8xf16 gm"), bias=k("8xf16 gm"), descale=k("8xf16 gm"),
        descaleMode="DescalePerChannel", bTranspose=True, blockSizes=[k("i64")] * 3, swizzleOffset=k("i64")),
     ("hivm.hir.matmul ins(%a, %b : memref<16x32xf16, #hivm.address_space<gm>>, memref<32x8xf16, #hivm.address_space<gm>>)"
      " outs(%c : memref<16x8xf16, #hivm.address_space<gm>>) bias = %d : memref<8xf16, #hivm.address_space<gm>>"
      " descale = %e : memref<8xf16, #hivm.address_space<gm>> b_transpose descale_mode = <DescalePerChannel>"
      " block_sizes(%f, %f, %f : i64, i64, i64) swizzle_offset = %g : i64")),
    ("mix_matmul", lambda k: hivm.MixMatmulOp(
        k("16x32xf16 gm"), k("32x8xf16 gm"), c=k("16x8xf16 gm"), attributes={"post_vector_func": StringAttr("g")},
        postVecFuncIns=[k("8xf16 gm")], workspaceIns=[k("8xf16 gm")], commParams=k("4xi64 gm"), tilingParams=k("4xi64 gm")),
     ('hivm.hir.mix_matmul {post_vector_func = "g"} ins(%a, %b : memref<16x32xf16, #hivm.address_space<gm>>,'
      " memref<32x8xf16, #hivm.address_space<gm>>) post_vector_func_ins(%d : memref<8xf16, #hivm.address_space<gm>>)"
      " workspace_ins(%e : memref<8xf16, #hivm.address_space<gm>>) outs(%c : memref<16x8xf16, #hivm.address_space<gm>>)"
      " tiling_params = %g : memref<4xi64, #hivm.address_space<gm>>"
      " comm_params = %f : memref<4xi64, #hivm.address_space<gm>>")),
    ("mix_group_matmul", lambda k: hivm.MixGroupMatmulOp(
        k("2x16x32xf16 gm"), k("32x8xf16 gm"), k("2xi64 gm"), c=k("16x8xf16 gm"), postVecFuncIns=[k("8xf16 gm")],
        postVecFuncOuts=[k("8xf16 gm")]),
     ("hivm.hir.mix_group_matmul ins(%a, %b, %c : memref<2x16x32xf16, #hivm.address_space<gm>>,"
      " memref<32x8xf16, #hivm.address_space<gm>>, memref<2xi64, #hivm.address_space<gm>>)"
      " post_vector_func_ins(%e : memref<8xf16, #hivm.address_space<gm>>)"
      " post_vector_func_outs(%f : memref<8xf16, #hivm.address_space<gm>>)"
      " outs(%d : memref<16x8xf16, #hivm.address_space<gm>>)")),
    # -- vector, elementwise: one of each shape of clause; the others come from the table below
    ("vadd", lambda k: hivm.VAddOp([k("4x8xf32 ub"), k("4x1xf32 ub")], [k("4x8xf32 ub")], broadcast=[1],
                                   temp_buffer=k("64xf32 ub")),
     (f"hivm.hir.vadd ins(%a, %b : memref<4x8xf32, {UB}>, memref<4x1xf32, {UB}>) outs(%c : memref<4x8xf32, {UB}>)"
      f" temp_buffer(%d : memref<64xf32, {UB}>) broadcast = [1]")),
    ("vadd transposed", lambda k: hivm.VAddOp([k("4x2x8xf32 ub"), k("f32")], [k("2x4x8xf32 ub")], transpose=[1, 0, 2]),
     f"hivm.hir.vadd ins(%a, %b : memref<4x2x8xf32, {UB}>, f32) outs(%c : memref<2x4x8xf32, {UB}>) transpose = [1, 0, 2]"),
    ("vdiv", lambda k: hivm.VDivOp([k("f16"), k("8xf16")], [k("8xf16")], isSigned=False, isHP=True),
     ("%0 = hivm.hir.vdiv ins(%a, %b : f16, tensor<8xf16>) outs(%c : tensor<8xf16>) isSigned = false isHP = true"
      " -> tensor<8xf16>")),
    ("vmax", lambda k: hivm.VMaxOp([k("8xi32"), k("i32")], [k("8xi32")], is_signed=False),
     "%0 = hivm.hir.vmax ins(%a, %b : tensor<8xi32>, i32) outs(%c : tensor<8xi32>) is_signed = false -> tensor<8xi32>"),
    ("vshr", lambda k: hivm.VShROp([k("8xi32"), k("i32")], [k("8xi32")], round=False, is_signed=False),
     ("%0 = hivm.hir.vshr ins(%a, %b : tensor<8xi32>, i32) outs(%c : tensor<8xi32>) round : false is_signed : false"
      " -> tensor<8xi32>")),
    ("vcmp", lambda k: hivm.VCmpOp([k("8xf16"), k("f16")], [k("8xi1")], compare_mode="lt", is_signed=False),
     ("%0 = hivm.hir.vcmp ins(%a, %b : tensor<8xf16>, f16) outs(%c : tensor<8xi1>) compare_mode = <lt> is_signed : false"
      " -> tensor<8xi1>")),
    ("vcast", lambda k: hivm.VCastOp([k("8xf32 ub")], [k("8xf16 ub")], round_mode="ceil", cast="cast_signed"),
     f"hivm.hir.vcast ins(%a : {M8}) outs(%b : memref<8xf16, {UB}>) round_mode = <ceil>"),
    ("vsel", lambda k: hivm.VSelOp([k("8xi1"), k("8xf16"), k("f16")], [k("8xf16")]),
     "%0 = hivm.hir.vsel ins(%a, %b, %c : tensor<8xi1>, tensor<8xf16>, f16) outs(%d : tensor<8xf16>) -> tensor<8xf16>"),
    ("vmulext", lambda k: hivm.VMulExtOp([k("8xi32"), k("8xi32")], [k("8xi32"), k("8xi32")]),
     ("%0, %1 = hivm.hir.vmulext ins(%a, %b : tensor<8xi32>, tensor<8xi32>) outs(%c, %d : tensor<8xi32>, tensor<8xi32>)"
      " -> tensor<8xi32>, tensor<8xi32>")),
    ("visnan", lambda k: hivm.VIsNaNOp([k("8xf16 ub")], [k("8xi1 ub")]),
     f"hivm.hir.visnan ins(%a : memref<8xf16, {UB}>) outs(%b : memref<8xi1, {UB}>)"),
    # -- vector, the rest
    ("vbrc scalar", lambda k: hivm.VBrcOp(k("f32"), k("8xf32 ub")), f"hivm.hir.vbrc ins(%a : f32) outs(%b : {M8})"),
    ("vbrc", lambda k: hivm.VBrcOp(k("4x1xf32 ub"), k("4x8xf32 ub"), dims=[1], temp_buffer=k("32xf32 ub")),
     (f"hivm.hir.vbrc ins(%a : memref<4x1xf32, {UB}>) outs(%b : memref<4x8xf32, {UB}>) temp_buffer(%c : memref<32xf32, {UB}>)"
      " broadcast_dims = [1]")),
    ("vreduce", lambda k: hivm.VReduceOp(k("4x8xf32 ub"), k("4x1xf32 ub"), "sum", dims=[1], temp_buffer=k("32xf32 ub")),
     (f"hivm.hir.vreduce <sum> ins(%a : memref<4x8xf32, {UB}>) outs(%b : memref<4x1xf32, {UB}>)"
      f" temp_buffer(%c : memref<32xf32, {UB}>) reduce_dims = [1]")),
    ("vreduce index", lambda k: hivm.VReduceOp(k("4x8xi16"), [k("4x1xi16"), k("4x1xi32")], "max_with_index_left", dims=[1],
                                               indices=k("4x8xi32"), unsigned=True, tie_break_left=False),
     ("%0, %1 = hivm.hir.vreduce <max_with_index_left> ins(%a : tensor<4x8xi16>) indices(%d : tensor<4x8xi32>)"
      " outs(%b, %c : tensor<4x1xi16>, tensor<4x1xi32>) unsigned_src = true tie_break_left = false reduce_dims = [1]"
      " -> tensor<4x1xi16>, tensor<4x1xi32>")),
    ("vtranspose", lambda k: hivm.VTransposeOp(k("4x8xf32"), k("8x4xf32"), [1, 0], disable_align=True),
     ("%0 = hivm.hir.vtranspose ins(%a : tensor<4x8xf32>) outs(%b : tensor<8x4xf32>) permutation = [1, 0] disable_align = true"
      " -> tensor<8x4xf32>")),
    ("varange", lambda k: hivm.VArangeOp(k("4x8xi32"), [k("index"), k("index")], offset=k("index")),
     "%0 = hivm.hir.varange offset[%d] strides[%b, %c] outs(%a : tensor<4x8xi32>) -> tensor<4x8xi32>"),
    ("vflip", lambda k: hivm.VFlipOp(k("8xf32 ub"), k("8xf32 ub"), 0),
     f"hivm.hir.vflip ins(%a : {M8}) outs(%b : {M8}) flip_axis = 0"),
    ("vpad", lambda k: hivm.VPadOp(k("2x16xf32"), k("?x16xf32"), k("f32"), [k("index"), 0], [1, 0]),
     ("%0 = hivm.hir.vpad ins(%a : tensor<2x16xf32>) outs(%b : tensor<?x16xf32>) low[%d, 0] high[1, 0] pad_value %c : f32"
      " -> tensor<?x16xf32>")),
    ("vconcat", lambda k: hivm.VConcatOp([k("2x4xf32"), k("2x4xf32")], k("2x8xf32"), 1),
     ("%0 = hivm.hir.vconcat dim(1) ins(%a, %b : tensor<2x4xf32>, tensor<2x4xf32>) outs(%c : tensor<2x8xf32>)"
      " -> tensor<2x8xf32>")),
    ("vcumsum", lambda k: hivm.VCumsumOp(k("8xi8 ub"), k("8xi32 ub"), dims=[0], temp_buffer=k("8xi8 ub")),
     (f"hivm.hir.vcumsum ins(%a : memref<8xi8, {UB}>) outs(%b : memref<8xi32, {UB}>) temp_buffer(%c : memref<8xi8, {UB}>)"
      " cum_dims = [0] reverse = false")),
    ("vcumprod", lambda k: hivm.VCumprodOp(k("8xf32 ub"), k("8xf32 ub"), dims=[0], reverse=True),
     f"hivm.hir.vcumprod ins(%a : {M8}) outs(%b : {M8}) cum_dims = [0] reverse = true"),
    ("vcummax", lambda k: hivm.VCummaxOp(k("8xf32 ub"), k("8xf32 ub"), dims=[0], propagate_nan=False),
     f"hivm.hir.vcummax {{propagate_nan = false}} ins(%a : {M8}) outs(%b : {M8}) cum_dims = [0] reverse = false"),
    ("vcummin", lambda k: hivm.VCumminOp(k("8xf32 ub"), k("8xf32 ub"), dims=[0]),
     f"hivm.hir.vcummin ins(%a : {M8}) outs(%b : {M8}) cum_dims = [0] reverse = false"),
    ("vsort", lambda k: hivm.VSortOp(k("8xf32"), [k("8xf32"), k("8xi32")], descending=True, axis=0),
     ("%0, %1 = hivm.hir.vsort ins(%a : tensor<8xf32>) outs(%b, %c : tensor<8xf32>, tensor<8xi32>) descending = true"
      " sort_axis = 0 -> tensor<8xf32>, tensor<8xi32>")),
    ("vinterleave", lambda k: hivm.VInterleaveOp([k("8xf32 ub"), k("8xf32 ub")], k("16xf32 ub"), temp_buffer=k("8xf32 ub")),
     (f"hivm.hir.vinterleave ins(%a, %b : {M8}, {M8}) outs(%c : memref<16xf32, {UB}>) interleave_channel_nums = 2"
      f" temp_buffer(%d : {M8})")),
    ("vdeinterleave", lambda k: hivm.VDeinterleaveOp(k("16xf32 ub"), [k("8xf32 ub"), k("8xf32 ub")]),
     f"hivm.hir.vdeinterleave ins(%a : memref<16xf32, {UB}>) outs(%b, %c : {M8}, {M8})"),
    ("vdeinterleave one", lambda k: hivm.VDeinterleaveOp(k("16xf32 ub"), k("8xf32 ub"), mode="CHANNEL_1"),
     f"hivm.hir.vdeinterleave ins(%a : memref<16xf32, {UB}>) outs(%b : {M8}) index_mode = <CHANNEL_1>"),
    ("vmulextended", lambda k: hivm.VMulextendedOp([k("8xi16 ub"), k("8xi16 ub")], [k("8xi16 ub"), k("8xi16 ub")]),
     (f"hivm.hir.vmulextended ins(%a, %b : memref<8xi16, {UB}>, memref<8xi16, {UB}>)"
      f" outs(%c, %d : memref<8xi16, {UB}>, memref<8xi16, {UB}>)")),
    ("vgather", lambda k: hivm.VGatherOp(k("64xf16 ub"), k("8xi32 ub"), k("8xf16 ub"), axis=-1),
     (f"hivm.hir.vgather ins(%a : memref<64xf16, {UB}>) indices(%b : memref<8xi32, {UB}>) outs(%c : memref<8xf16, {UB}>)"
      " gather_axis = -1")),
    ("vgathermask", lambda k: hivm.VGatherMaskOp(k("16xf32"), k("16xi1"), [k("16xf32"), k("1xi64")]),
     ("%0, %1 = hivm.hir.vgathermask ins(%a : tensor<16xf32>) mask(%b : tensor<16xi1>) outs(%c, %d : tensor<16xf32>,"
      " tensor<1xi64>) -> tensor<16xf32>, tensor<1xi64>")),
    # -- scalars and the rest
    ("get_block_idx", lambda k: hivm.GetBlockIdxOp(), "%0 = hivm.hir.get_block_idx -> i64"),
    ("get_block_num", lambda k: hivm.GetBlockNumOp(), "%0 = hivm.hir.get_block_num -> i64"),
    ("get_sub_block_idx", lambda k: hivm.GetSubBlockIdxOp(), "%0 = hivm.hir.get_sub_block_idx -> i64"),
    ("get_sub_block_num", lambda k: hivm.GetSubBlockNumOp(), "%0 = hivm.hir.get_sub_block_num -> i64"),
    ("get_sys_cnt", lambda k: hivm.GetSysCntOp(), "%0 = hivm.hir.get_sys_cnt -> i64"),
    ("multi_buffer_counter", lambda k: hivm.MultiBufferCounterOp(), "%0 = hivm.hir.multi_buffer_counter -> i64"),
    ("set_mask_norm", lambda k: hivm.SetMaskNormOp(), "hivm.hir.set_mask_norm"),
    ("init_debug", lambda k: hivm.InitDebugOp(), "hivm.hir.init_debug"),
    ("finish_debug", lambda k: hivm.FinishDebugOp(), "hivm.hir.finish_debug"),
    ("set_ctrl", lambda k: hivm.SetCtrlOp(idx=60, enable=False), "hivm.hir.set_ctrl false at ctrl[60]"),
    ("set_atomic", lambda k: hivm.SetAtomicOp("add", f32), "hivm.hir.set_atomic kind = <add>[type = f32]"),
    ("load_scalar", lambda k: hivm.LoadScalarOp(k("!llvm.ptr<1>"), results=[f32]),
     "%0 = hivm.hir.load_scalar %a : !llvm.ptr<1> -> f32"),
    ("dcci", lambda k: hivm.DCCIOp("single_cache_line", "all", k("8xf32 gm")),
     "hivm.hir.dcci(<single_cache_line>, <all>, %a : memref<8xf32, #hivm.address_space<gm>>)"),
    ("dcci bare", lambda k: hivm.DCCIOp("all_cache_lines", "ub"), "hivm.hir.dcci(<all_cache_lines>, <ub>)"),
    ("set_ffts_base_addr", lambda k: hivm.SetFftsBaseAddrOp(k("i64")), "hivm.hir.set_ffts_base_addr %a"),
    ("pointer_cast", lambda k: hivm.PointerCastOp([k("i64"), k("i64")], type_of("8xf32 ub")),
     f"%0 = hivm.hir.pointer_cast(%a, %b) : {M8}"),
    ("pointer_cast dynamic", lambda k: hivm.PointerCastOp([k("i64")], type_of("?xf32 ub"), [k("index")]),
     f"%0 = hivm.hir.pointer_cast(%a) [%b] : memref<?xf32, {UB}>"),
    ("bitcast", lambda k: hivm.BitcastOp(k("8xbf16"), type_of("8xf16")),
     "%0 = hivm.hir.bitcast %a : tensor<8xbf16> -> tensor<8xf16>"),
    ("convert_layout", lambda k: hivm.ConvertLayoutOp(
        k("128x?xf16"), results=[type_of("8x?x16x16xf16")], srcLayout=hivm.DataLayoutAttr("dotA_ND", transpose=False),
        dstLayout=hivm.DataLayoutAttr("nZ"), static_output_shape=[8, DYNAMIC_INDEX, 16, 16], output_shape=[k("index")]),
     ("%0 = hivm.hir.convert_layout %a output_shape [8, %b, 16, 16] {dstLayout = #hivm.data_layout<nZ>,"
      " srcLayout = #hivm.data_layout<dotA_ND, transpose = false>} : (tensor<128x?xf16>) -> tensor<8x?x16x16xf16>")),
    ("debug", lambda k: hivm.DebugOp(k("8xf32"), prefix="x: ", core="CUBE_OR_VECTOR", space="ub"),
     (f'hivm.hir.debug {{debugtype = "print", hex = false, memscope = {UB}, prefix = "x: ",'
      " tcoretype = #hivm.tcore_type<CUBE_OR_VECTOR>} %a : tensor<8xf32>")),
    # -- custom
    ("custom", lambda k: hivm.CustomOp(
        "load_l0a", [k("8xf16 cbuf"), k("i64")], [k("8xf16 ca")], core="CUBE", pipe="MTE1", symbol="load_l0a",
        temp_buffers=[k("8xf16 cbuf")], no_side_effect=True),
     ("hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_MTE1>, hivm.tcore_type = #hivm.tcore_type<CUBE>, no_side_effect,"
      ' symbol = "load_l0a"} "load_l0a" ins(%a, %b : memref<8xf16, #hivm.address_space<cbuf>>, i64)'
      " outs(%c : memref<8xf16, #hivm.address_space<ca>>) tmps(%d : memref<8xf16, #hivm.address_space<cbuf>>)")),
    ("custom_macro", lambda k: hivm.CustomMacroOp(
        "m", [k("8xf16")], [k("8xf16")], core="VECTOR", pipe_in="MTE2", pipe_out="V", symbol="m", vf_mode="SIMD",
        sync_event_slots=[hivm.SyncEventSlotAttr("MTE2", "V", "wait", 2)], sync_related_args=[k("i64")]),
     ("%0 = hivm.hir.custom_macro {hivm.pipe_in = #hivm.pipe<PIPE_MTE2>, hivm.pipe_out = #hivm.pipe<PIPE_V>,"
      " hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, symbol = \"m\","
      " sync_event_slots = [#hivm.sync_event_slot<#hivm.pipe<PIPE_MTE2>, #hivm.pipe<PIPE_V>, wait, <EVENT_ID2>>]} \"m\""
      " ins(%a : tensor<8xf16>) outs(%b : tensor<8xf16>) -> tensor<8xf16> sync_related_args(%c : i64)")),
    # -- SIMT
    ("gather_load", lambda k: hivm.GatherLoadOp(
        k("memref<?xf32>"), k("4x8xi32"), k("i64"), dst=k("4x8xf32"), mask=k("4x8xi1"), other=k("4x8xf32"), cache="cg",
        evict="EvictLast", isVolatile=False),
     ("%0 = hivm.hir.gather_load ins(%a : memref<?xf32>, %b : tensor<4x8xi32>, %c : i64, %e : tensor<4x8xi1>,"
      " %f : tensor<4x8xf32>) outs(%d : tensor<4x8xf32>) {cache = #hivm.cache_modifier<cg>,"
      " evict = #hivm.eviction_policy<EvictLast>, isVolatile = false} -> tensor<4x8xf32>")),
    ("scatter_store", lambda k: hivm.ScatterStoreOp(
        k("4x8xi64"), k("4x8xf32"), k("i32"), base=k("memref<?xf32>"), mask=k("4x8xi1")),
     ("hivm.hir.scatter_store ins(%a : tensor<4x8xi64>, %b : tensor<4x8xf32>, %c : i32, %e : tensor<4x8xi1>)"
      " outs(%d : memref<?xf32>)")),
    ("local_load", lambda k: hivm.LocalLoadOp(k("8xf32 ub"), results=[type_of("8xf32")]),
     f"%0 = hivm.hir.local_load ins(%a : {M8}) -> tensor<8xf32>"),
    ("local_store", lambda k: hivm.LocalStoreOp(k("8xf32 ub"), k("8xf32")),
     f"hivm.hir.local_store ins(%a : {M8}, %b : tensor<8xf32>)"),
    ("stride_load", lambda k: hivm.StrideLoadOp(k("memref<?xf32>"), k("4x8xf32"), k("i32"), k("f32"), [k("i32")] * 2,
                                                [k("i32")] * 2),
     ("%0 = hivm.hir.stride_load ins(%a : memref<?xf32>) outs(%b : tensor<4x8xf32>) offset(%c : i32) other(%d : f32)"
      " strides([%e, %e : i32, i32]) numels([%f, %f : i32, i32]) -> tensor<4x8xf32>")),
    ("stride_store", lambda k: hivm.StrideStoreOp(
        src=k("8xf32"), dst=k("memref<?xf32>"), offset=k("i64"), stride=[k("i64")], numel=[k("i64")]),
     ("hivm.hir.stride_store ins(%a : tensor<8xf32>) outs(%b : memref<?xf32>) offset(%c : i64) strides([%d : i64])"
      " numels([%e : i64])")),
    ("indirect_load", lambda k: hivm.IndirectLoadOp(k("memref<?xf32>"), k("8xi64"), k("8xf32"), mask=k("8xi1"),
                                                    other=k("8xf32"), isVolatile=False),
     ("%0 = hivm.hir.indirect_load ins(%a : memref<?xf32>, %b : tensor<8xi64>, %d : tensor<8xi1>, %e : tensor<8xf32>)"
      " outs(%c : tensor<8xf32>) {isVolatile = false} -> tensor<8xf32>")),
    ("indirect_store", lambda k: hivm.IndirectStoreOp(
        src=k("8xf32"), offsets=k("8xi64"), dst=k("memref<?xf32>"), mask=k("8xi1")),
     "hivm.hir.indirect_store ins(%a : tensor<8xf32>, %b : tensor<8xi64>, %d : tensor<8xi1>) outs(%c : memref<?xf32>)"),
    ("embedding_gather", lambda k: hivm.EmbeddingGatherOp(k("memref<?xf32>"), k("4xi32"), k("4x8xf32"), k("i64"),
                                                          [k("i64")] * 2, [k("i64")] * 2),
     ("%0 = hivm.hir.embedding_gather ins(%a : memref<?xf32>, %b : tensor<4xi32>, %d : i64, [%e, %e : i64, i64],"
      " [%f, %f : i64, i64]) outs(%c : tensor<4x8xf32>) -> tensor<4x8xf32>")),
    ("gatherT", lambda k: hivm.GatherTOp(k("memref<?xf32>"), k("2xi64"), k("2xf32"), k("i64"), k("i32"), [k("i64")],
                                         [k("i32")], [k("i32")]),
     ("%0 = hivm.hir.gatherT ins(%a : memref<?xf32>, %b : tensor<2xi64>, %d : i64, %e : i32, [%f : i64], [%g : i32],"
      " [%h : i32]) outs(%c : tensor<2xf32>) -> tensor<2xf32>")),
    ("index_put", lambda k: hivm.IndexPutOp(k("memref<?xf32>"), k("2xi64"), k("2x4xf32"), k("i32"), k("i64"), [k("i32")],
                                            [k("i32")], [k("i64")]),
     ("hivm.hir.index_put ins(%a : memref<?xf32>, %b : tensor<2xi64>, %c : tensor<2x4xf32>, %d : i32, %e : i64, [%f : i32],"
      " [%g : i32], [%h : i64])")),
    ("scatterT", lambda k: hivm.ScatterTOp(k("memref<?xf32>"), k("2xf32"), k("2xi64"), k("i64"), k("i32"), [k("i64")],
                                           [k("i32")], [k("i32")]),
     ("hivm.hir.scatterT ins(%a : memref<?xf32>, %b : tensor<2xf32>, %c : tensor<2xi64>, %d : i64, %e : i32, [%f : i64],"
      " [%g : i32], [%h : i32])")),
    # -- other dialects
    ("annotation.mark", lambda k: annotation.MarkOp(k("8xf32 ub"), {"hivm.multi_buffer": IntegerAttr(2, i32)}),
     f"annotation.mark %a {{hivm.multi_buffer = 2 : i32}} : {M8}"),
    ("annotation.mark values", lambda k: annotation.MarkOp(k("8xf32 ub"), values={"size": k("index")}, effects=["read"]),
     f'annotation.mark %a {{effects = ["read"]}} keys = ["size"] values = [%b : index] : {M8}'),
    ("alloc_workspace", lambda k: memref_ext.AllocWorkspaceOp(
        type_of("memref<?x8xf32>"), workspace=k("memref<?xi8>"), dynamic_sizes=[k("index")], offsets=[k("index"), k("index")]),
     "%0 = memref_ext.alloc_workspace(%b) from %a offset = [%c, %d] : from memref<?xi8> to memref<?x8xf32>"),
    ("alloc_workspace bare", lambda k: memref_ext.AllocWorkspaceOp(type_of("memref<8xf32>")),
     "%0 = memref_ext.alloc_workspace() : memref<8xf32>"),
    ("scope", lambda k: scope.ScopeOp([scope.ReturnOp(k("i32"))], [i32], no_inline=True, attributes={"tag": UnitAttr()}),
     "%0 = scope.scope : () -> i32 {\nscope.return %a : i32\n} {no_inline, tag}"),
    ("scope empty", lambda k: scope.ScopeOp(Block()), "scope.scope : () -> () {\nscope.return\n}"),
    ("to_tensor", lambda k: bufferization.ToTensorOp(k("memref<8xf32, strided<[2]>>"), restrict=True, writable=True),
     "%0 = bufferization.to_tensor %a restrict writable : memref<8xf32, strided<[2]>>"),
    ("to_memref", lambda k: bufferization.ToMemrefOp(k("8xf32"), type_of("memref<8xf32, strided<[?], offset: ?>>"),
                                                     read_only=True),
     "%0 = bufferization.to_memref %a read_only : memref<8xf32, strided<[?], offset: ?>>"),
    ("materialize", lambda k: bufferization.MaterializeInDestinationOp(k("8xf32"), k("memref<8xf32, strided<[2]>>"),
                                                                        writable=True),
     "bufferization.materialize_in_destination %a in writable %b : (tensor<8xf32>, memref<8xf32, strided<[2]>>) -> ()"),
]


@pytest.mark.parametrize(("make", "line"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_written_and_read_back(k: Kernel, make: Make, line: str) -> None:
    module = k.module(make(k))
    assert body(module) == line
    verify_module(module)
    _reads_back(module)


def _reads_back(module: Operation) -> None:
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    generic = print_module(module, generic=True)
    again = parse_module(generic)
    assert print_module(again, generic=True) == generic
    assert print_module(again) == text


def of_entry(entry: Any) -> Make:
    """Returns a function that builds the op of an entry, on tiles in UB."""
    element = entry.dtypes[0].mlir
    if entry.hivm == "vcast":
        sources, target = ["f32"], "f16"
    else:
        sources = ["i1" if entry.condition and place == 0 else element for place in range(entry.inputs)]
        target = "i1" if entry.result == "bool" else element
    return lambda k: hivm.elementwise_op(entry.hivm)([k(f"4x8x{source} ub") for source in sources],
                                                     [k(f"4x8x{target} ub") for _ in range(entry.outputs)])


@pytest.mark.parametrize("entry", list(elementwise()), ids=lambda entry: entry.hivm)
def test_every_elementwise_op_from_its_entry(k: Kernel, entry: Any) -> None:
    op = of_entry(entry)(k)
    assert op.name == f"hivm.hir.{entry.hivm}"
    assert op.pipes() == ("V",)
    assert op.core() == "AIV"
    module = k.module(op)
    ins, outs = (", ".join(str(value.type) for value in values) for values in (op.ins(), op.outs()))
    first, second = (", ".join(f"%{value.name_hint}" for value in values) for values in (op.ins(), op.outs()))
    assert body(module) == f"hivm.hir.{entry.hivm} ins({first} : {ins}) outs({second} : {outs})"
    verify_module(module)
    _reads_back(module)


def test_every_op_of_the_dialects_is_here() -> None:
    built = {make(Kernel()).name for _, make, _ in CASES} | {f"hivm.hir.{entry.hivm}" for entry in elementwise()}
    known = {op.name for op in hivm.Hivm.operations}
    assert known - built == set()


def test_an_unknown_fact_is_refused(k: Kernel) -> None:
    with pytest.raises(TypeError, match="has no attribute 'round_mode'; it has: none"):
        hivm.VAddOp([k("8xf32"), k("8xf32")], [k("8xf32")], round_mode="rint")
    with pytest.raises(TypeError, match="vtanh has no temp_buffer"):
        hivm.VTanhOp([k("8xf32 ub")], [k("8xf32 ub")], temp_buffer=k("8xf32 ub"))


@pytest.mark.parametrize(("make", "pipes", "core"), [
    (lambda k: hivm.LoadOp(k("8xf32 gm"), k("8xf32 ub")), ("MTE2",), "AIV"),
    (lambda k: hivm.LoadOp(k("8xf32 gm"), k("8xf32 cbuf")), ("MTE2",), "AIC"),
    (lambda k: hivm.LoadOp(k("8xf32"), k("8xf32")), ("MTE2",), "either"),
    (lambda k: hivm.StoreOp(k("8xf32 ub"), k("8xf32 gm")), ("MTE3",), "AIV"),
    (lambda k: hivm.CopyOp(k("8xf32 ub"), k("8xf32 ub")), ("V",), "AIV"),
    (lambda k: hivm.CopyOp(k("8xf32 gm"), k("8xf32 cbuf")), ("MTE2",), "AIC"),
    (lambda k: hivm.CopyOp(k("8xf32 ub"), k("8xf32 cbuf")), ("MTE3",), "AIV"),
    (lambda k: hivm.CopyOp(k("8xf32"), k("8xf32")), (), "either"),
    (lambda k: hivm.VBrcOp(k("f32"), k("8xf32 cbuf")), ("MTE2",), "AIC"),
    (lambda k: hivm.VBrcOp(k("f32"), k("8xf32 ub")), ("V",), "AIV"),
    (lambda k: hivm.FixpipeOp(k("8xf32 cc"), k("8xf32 gm")), ("FIX",), "AIC"),
    (lambda k: hivm.SetFlagOp("MTE2", "V", 0), ("MTE2", "V"), "AIV"),
    (lambda k: hivm.WaitFlagOp("MTE2", "MTE1", 0), ("MTE2", "MTE1"), "AIC"),
    (lambda k: hivm.PipeBarrierOp("ALL"), ("ALL",), "either"),
    (lambda k: hivm.SyncBlockWaitOp("VECTOR", "FIX", "S", 0), ("FIX", "S"), "AIV"),
    (lambda k: hivm.SyncBlockOp("ALL_CUBE", tcube_pipe="FIX"), (), "AIC"),
    (lambda k: hivm.CustomOp("f", core="CUBE", pipe="MTE1", symbol="f"), ("MTE1",), "AIC"),
    (lambda k: hivm.GetBlockIdxOp(), ("S",), "either"),
])
def test_pipe_and_core(k: Kernel, make: Make, pipes: tuple[str, ...], core: str) -> None:
    op = make(k)
    assert op.pipes() == pipes
    assert op.core() == core


def test_ins_and_outs_of_a_matrix_product(k: Kernel) -> None:
    a, b, c, init, m = k("4x4xf16"), k("4x4xf16"), k("4x4xf32"), k("i1"), k("index")
    op = hivm.MmadL1Op(a, b, c, init, m, m, m)
    assert op.ins() == (a, b, init, m, m, m)
    assert op.outs() == (c,)


def test_numbers_of_events_and_flags(k: Kernel) -> None:
    value = k("i64")
    assert hivm.SetFlagOp("V", "S", 5).event_id() == 5
    assert hivm.WaitFlagOp("V", "S", value).event_id() is value
    assert hivm.SyncBlockSetOp("CUBE", "FIX", "S", 9).flag_id() == 9
    assert hivm.SyncBlockSetOp("CUBE", "FIX", "S", value, ffts=value).flag_id() is value


def test_space_of() -> None:
    assert hivm.space_of(type_of("8xf32 cbuf")) == "cbuf"
    assert hivm.space_of(type_of("memref<8xf32>")) is None
    assert hivm.space_of(type_of("8xf32")) is None
    assert hivm.space_of(MemRefType(f32, [8], memory_space=hivm.address_space("cc"))) == "cc"


def test_attributes_after_the_last_type_of_a_custom_op_are_kept() -> None:
    text = (
        "module {\n  func.func @f(%a: tensor<8xf32>) {\n"
        "    %0 = hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_V>, hivm.tcore_type = #hivm.tcore_type<VECTOR>,"
        ' symbol = "s"} "n"'
        " ins(%a : tensor<8xf32> {inplace_outs = 0 : i32}) outs(%a : tensor<8xf32>) -> tensor<8xf32>\n    return\n  }\n}\n"
    )
    module = parse_module(text)
    assert print_module(module) == text
    (op,) = (op for op in module.walk() if isinstance(op, hivm.CustomOp))
    assert op.function == "n"
    assert op.symbol == "s"
    assert str(op.attributes["arg_attrs"]) == "[{inplace_outs = 0 : i32}]"


def test_a_property_may_stand_in_the_dictionary_instead_of_its_clause() -> None:
    module = parse_module(
        "func.func @f(%a: tensor<4xf32>) {\n"
        "  %0 = hivm.hir.vreduce {reduce_dims = array<i64: 0>} <sum> ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>)"
        " unsigned_src = false reduce_dims = [0] -> tensor<4xf32>\n  return\n}", verify=False)
    (op,) = (op for op in module.walk() if isinstance(op, hivm.VReduceOp))
    assert op.dims == (0,)
    assert "reduce_dims" not in op.attributes


def test_array_attributes_leave_out_i64() -> None:
    module = parse_module("module attributes {a = [1 : i64, 2 : i32, [3 : i64]], b = 4 : i64} {}")
    assert print_module(module) == "module attributes {a = [1, 2 : i32, [3]], b = 4 : i64} {\n}\n"
    assert module.attributes["a"] == ArrayAttr([IntegerAttr(1, i64), IntegerAttr(2, i32), ArrayAttr([IntegerAttr(3, i64)])])
    assert StringAttr("x") != module.attributes["b"]
