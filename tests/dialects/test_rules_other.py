"""Invalid synchronisation, scalar, custom and SIMT ops, and ops of the other dialects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import Block, Operation, Region

from dialects.helpers import Kernel, refusal, type_of
from tilelang_npu.dialects import hivm, memref_ext, scope
from tilelang_npu.dialects.text import verify_module

Make = Callable[[Kernel], Any]
A5 = "Ascend950PR_9599"
READY = {"core": "VECTOR", "pipe": "V", "symbol": "f"}


def _both_ids(k: Kernel, op: Operation, name: str) -> Operation:
    """A dynamic event or flag with a static number as well."""
    op.properties[name] = hivm.event(0) if "event" in name else IntegerAttr(0, i64)
    return op


def _no_id(op: Operation, name: str) -> Operation:
    del op.properties[name]
    return op


def _with(op: Operation, **attributes: Any) -> Operation:
    op.attributes.update(attributes)
    return op


def _in_place(k: Kernel, first: str, second: str, place: Any, *, same: bool = False) -> Operation:
    a = k(first)
    op = hivm.CustomOp("f", [a], [a if same else k(second)], **READY)
    return _with(op, arg_attrs=ArrayAttr([DictionaryAttr({"inplace_outs": place})]))


def _slots(k: Kernel, *slots: hivm.SyncEventSlotAttr, given: int = 0) -> Operation:
    return hivm.CustomMacroOp("f", core="VECTOR", pipe_in="MTE2", pipe_out="V", symbol="f", sync_event_slots=slots,
                              sync_related_args=[k("i64")] * given)


SYNC: list[tuple[str, Make, str]] = [
    ("set_flag both", lambda k: _both_ids(k, hivm.SetFlagOp("M", "FIX", k("i64")), "static_event_id"),
     "'hivm.hir.set_flag' op Only one Event ID is supported!"),
    ("set_flag none", lambda k: _no_id(hivm.SetFlagOp("M", "FIX", 1), "static_event_id"),
     "'hivm.hir.set_flag' op Event ID is needed!"),
    ("wait_flag both", lambda k: _both_ids(k, hivm.WaitFlagOp("M", "FIX", k("i64")), "static_event_id"),
     "'hivm.hir.wait_flag' op Only one Event ID is supported!"),
    ("wait_flag none", lambda k: _no_id(hivm.WaitFlagOp("M", "FIX", 1), "static_event_id"),
     "'hivm.hir.wait_flag' op Event ID is needed!"),
    ("sync_block_set both", lambda k: _both_ids(k, hivm.SyncBlockSetOp("CUBE", "FIX", "S", k("i64")), "static_flag_id"),
     "'hivm.hir.sync_block_set' op Only one flag ID is supported!"),
    ("sync_block_set none", lambda k: _no_id(hivm.SyncBlockSetOp("CUBE", "FIX", "S", 1), "static_flag_id"),
     "'hivm.hir.sync_block_set' op Flag ID is needed!"),
    ("sync_block_wait both", lambda k: _both_ids(k, hivm.SyncBlockWaitOp("CUBE", "FIX", "S", k("i64")), "static_flag_id"),
     "'hivm.hir.sync_block_wait' op Only one flag ID is supported!"),
    ("sync_block_wait none", lambda k: _no_id(hivm.SyncBlockWaitOp("CUBE", "FIX", "S", 1), "static_flag_id"),
     "'hivm.hir.sync_block_wait' op Flag ID is needed!"),
    ("barrier with a pipe", lambda k: hivm.SyncBlockOp("BARRIER_CUBE", tcube_pipe="FIX"),
     "'hivm.hir.sync_block' op tcube_pipe should not be defined!"),
    ("Cube barrier without a pipe", lambda k: hivm.SyncBlockOp("ALL_CUBE"),
     "'hivm.hir.sync_block' op tcube_pipe should be defined!"),
    ("Cube barrier with a Vector pipe", lambda k: hivm.SyncBlockOp("ALL_CUBE", tcube_pipe="MTE3"),
     "'hivm.hir.sync_block' op tcube_pipe of should match CUBE core type!"),
    ("Cube barrier that waits on a Vector pipe", lambda k: hivm.SyncBlockOp("ALL_CUBE", tcube_pipe="FIX", cube_pipe="V"),
     "'hivm.hir.sync_block' op cube_pipe should match CUBE core type!"),
    ("Cube barrier with a second pipe", lambda k: hivm.SyncBlockOp("ALL_CUBE", tcube_pipe="FIX", tvector_pipe="MTE3"),
     "'hivm.hir.sync_block' op tvector_pipe should not be defined!"),
    ("Vector barrier without a pipe", lambda k: hivm.SyncBlockOp("ALL_VECTOR"),
     "'hivm.hir.sync_block' op tvector_pipe should be defined!"),
    ("Vector barrier with a Cube pipe", lambda k: hivm.SyncBlockOp("ALL_SUB_VECTOR", tvector_pipe="MTE1"),
     "'hivm.hir.sync_block' op tvector_pipe of ALL_VECTOR should match VECTOR core type!"),
    ("Vector barrier that waits on a Cube pipe", lambda k: hivm.SyncBlockOp("ALL_VECTOR", tvector_pipe="V", vector_pipe="M"),
     "'hivm.hir.sync_block' op vector_pipe should match VECTOR core type!"),
    ("barrier of all without a pipe", lambda k: hivm.SyncBlockOp("ALL", tcube_pipe="FIX"),
     "'hivm.hir.sync_block' op tvector_pipe should be defined!"),
    ("lock", lambda k: hivm.SyncBlockLockOp(k("memref<2x1xi64>")),
     ("'hivm.hir.sync_block_lock' op operand #0 must be 1D memref of 64-bit signless integer values, but got"
      " 'memref<2x1xi64>'")),
    ("lock of unknown size", lambda k: hivm.CreateSyncBlockLockOp(results=[type_of("memref<?xi64>")]),
     "'hivm.hir.create_sync_block_lock' op 'create_sync_block_lock' op should only support static shape"),
]

SCALAR: list[tuple[str, Make, str]] = [
    ("pointer_cast of nothing", lambda k: hivm.PointerCastOp([], type_of("8xf32 ub")),
     "'hivm.hir.pointer_cast' op addrs of PointerCastOp should not be empty!"),
    ("load_scalar from a memref", lambda k: hivm.LoadScalarOp(k("8xf32 gm"), results=[f32]),
     ("'hivm.hir.load_scalar' op operand #0 must be LLVM pointer type, but got 'memref<8xf32, #hivm.address_space<gm>>'")),
    ("load_scalar from elsewhere", lambda k: hivm.LoadScalarOp(k("!llvm.ptr<6>"), results=[f32]),
     "'hivm.hir.load_scalar' op expecting GM address"),
    ("bitcast of a shape", lambda k: hivm.BitcastOp(k("8xi32"), type_of("16xi16")),
     "'hivm.hir.bitcast' op requires the same shape for all operands and results"),
    ("convert_layout of elements", lambda k: hivm.ConvertLayoutOp(
        k("16x16xf16"), results=[type_of("1x1x16x16xf32")], srcLayout=hivm.DataLayoutAttr("ND"),
        dstLayout=hivm.DataLayoutAttr("zN"), static_output_shape=[1, 1, 16, 16]),
     "'hivm.hir.convert_layout' op requires the same element type for all operands and results"),
]

CUSTOM: list[tuple[str, Make, str]] = [
    ("core", lambda k: hivm.CustomOp("f"), "'hivm.hir.custom' op Missing core type information"),
    ("pipe", lambda k: hivm.CustomOp("f", core="CUBE"), "'hivm.hir.custom' op Missing pipe information"),
    ("function", lambda k: hivm.CustomOp("f", core="CUBE", pipe="M"),
     "'hivm.hir.custom' op Missing implementation function name"),
    ("input pipe", lambda k: hivm.CustomMacroOp("f", core="CUBE", pipe_out="M", symbol="f"),
     "'hivm.hir.custom_macro' op Missing input pipe information"),
    ("output pipe", lambda k: hivm.CustomMacroOp("f", core="CUBE", pipe_in="M", symbol="f"),
     "'hivm.hir.custom_macro' op Missing output pipe information"),
    ("known function as a macro without a core", lambda k: hivm.CustomMacroOp("__builtin_gather_load"),
     "'hivm.hir.custom_macro' op Missing core type information"),
    ("known function as a macro without pipes", lambda k: hivm.CustomMacroOp("__builtin_gather_load", core="VECTOR"),
     "'hivm.hir.custom_macro' op Missing input pipe information"),
    ("known function on another core", lambda k: hivm.CustomOp("__builtin_gather_load", core="CUBE"),
     "'hivm.hir.custom' op Specified core type conflict with __builtin_gather_load's core type."),
    ("known function on another pipe", lambda k: hivm.CustomOp("__builtin_histogram", pipe="MTE2"),
     "'hivm.hir.custom' op Specified pipe conflict with __builtin_histogram's pipe."),
    ("known function in another mode", lambda k: hivm.CustomOp("__builtin_index_select", vf_mode="SIMD"),
     "'hivm.hir.custom' op Specified vf mode conflict with __builtin_index_select's vf mode."),
    ("extra buffers without sizes", lambda k: _with(hivm.CustomOp("f", **READY), extra_buffers_types=ArrayAttr([f32])),
     "'hivm.hir.custom' op Either extra buffers' types or sizes missing"),
    ("extra buffers' number", lambda k: _with(hivm.CustomOp("f", **READY), extra_buffers_types=ArrayAttr([f32]),
                                              extra_buffers_sizes=ArrayAttr([])),
     "'hivm.hir.custom' op Extra buffers' types and sizes mismatch"),
    ("extra buffers' types", lambda k: _with(hivm.CustomOp("f", **READY), extra_buffers_types=ArrayAttr([StringAttr("x")]),
                                             extra_buffers_sizes=ArrayAttr([IntegerAttr(1, i32)])),
     "'hivm.hir.custom' op Extra buffers' types must be an array of type attributes"),
    ("extra buffers' sizes", lambda k: _with(hivm.CustomOp("f", **READY), extra_buffers_types=ArrayAttr([f32]),
                                             extra_buffers_sizes=ArrayAttr([StringAttr("x")])),
     "'hivm.hir.custom' op Extra buffers' sizes must be an array of integer attributes"),
    ("extra buffers' sign", lambda k: _with(hivm.CustomOp("f", **READY), extra_buffers_types=ArrayAttr([f32]),
                                            extra_buffers_sizes=ArrayAttr([IntegerAttr(-1, i64)])),
     "'hivm.hir.custom' op Extra buffer size must be non-negative"),
    ("in place, attribute", lambda k: _in_place(k, "8xf32", "8xf32", StringAttr("x")),
     "'hivm.hir.custom' op inplace_outs must be an integer attribute"),
    ("in place, number", lambda k: _in_place(k, "8xf32", "8xf32", IntegerAttr(1, i32)),
     "'hivm.hir.custom' op inplace_outs must be a valid outs operand index"),
    ("in place, scalar", lambda k: _in_place(k, "f32", "8xf32", IntegerAttr(0, i32)),
     "'hivm.hir.custom' op inplace_outs requires mapped ins and outs operands to be ranked tensors or memrefs"),
    ("in place, types", lambda k: _in_place(k, "4xf32", "8xf32", IntegerAttr(0, i32)),
     ("'hivm.hir.custom' op inplace_outs requires mapped ins and outs operands to have identical ranked tensor or memref"
      " types")),
    ("in place, values", lambda k: _in_place(k, "8xf32", "8xf32", IntegerAttr(0, i32)),
     ("'hivm.hir.custom' op inplace_outs requires each mapped ins operand to be the same SSA value as its mapped outs"
      " operand")),
    ("sync arguments without slots", lambda k: _slots(k, given=1),
     "'hivm.hir.custom_macro' op sync_related_args should be empty"),
    ("sync arguments", lambda k: _slots(k, hivm.SyncEventSlotAttr("MTE2", "V", "wait", None), given=2),
     "'hivm.hir.custom_macro' op sync_related_args should be of size 1"),
    ("slot without a pipe", lambda k: _slots(k, hivm.SyncEventSlotAttr(None, "V", "set", None)),
     "'hivm.hir.custom_macro' op sync_event_slot requires set_pipe and wait_pipe for `wait` and `set` macro_sync"),
    ("the same event twice", lambda k: _slots(k, *[hivm.SyncEventSlotAttr("MTE2", "V", "wait", 3)] * 2),
     "'hivm.hir.custom_macro' op duplicate user-specified sync event id on the same pipe pair"),
    ("the same event inside twice", lambda k: _slots(k, *[hivm.SyncEventSlotAttr(None, None, "internal", 3)] * 2),
     "'hivm.hir.custom_macro' op duplicate user-specified sync event id on internal slot"),
]

SIMT: list[tuple[str, Make, str]] = [
    ("gather_load element types", lambda k: hivm.GatherLoadOp(k("memref<?xf16>"), k("8xi32"), k("i64"), dst=k("8xf32")),
     "'hivm.hir.gather_load' op failed to verify that all of {base, dst} have same element type"),
    ("gather_load shapes", lambda k: hivm.GatherLoadOp(k("memref<?xf32>"), k("4xi32"), k("i64"), dst=k("8xf32")),
     "'hivm.hir.gather_load' op failed to verify that all of {indices, dst} have same shape"),
    ("gather_load mask", lambda k: hivm.GatherLoadOp(k("memref<?xf32>"), k("8xi32"), k("i64"), dst=k("8xf32"),
                                                    mask=k("4xi1"), other=k("8xf32")),
     "'hivm.hir.gather_load' op mask of hivm::GatherLoadOp must have the same shape and rank as indices"),
    ("scatter_store shapes", lambda k: hivm.ScatterStoreOp(k("4xi32"), k("8xf32"), k("i32"), base=k("memref<?xf32>")),
     "'hivm.hir.scatter_store' op failed to verify that all of {indices, data} have same shape"),
    ("scatter_store mask", lambda k: hivm.ScatterStoreOp(k("8xi32"), k("8xf32"), k("i32"), base=k("memref<?xf32>"),
                                                         mask=k("4xi1")),
     "'hivm.hir.scatter_store' op mask of hivm::ScatterStoreOp must have the same shape and rank as data"),
    ("local_load element types", lambda k: hivm.LocalLoadOp(k("8xf32 ub"), results=[type_of("8xf16")]),
     "'hivm.hir.local_load' op input address of hivm::LocalLoadOp must have the same element type as output tensor"),
    ("local_store shapes", lambda k: hivm.LocalStoreOp(k("8xf32 ub"), k("4xf32")),
     "'hivm.hir.local_store' op dst address of hivm::LocalStoreOp must have the same shape as output tensor"),
    ("stride_load rank", lambda k: hivm.StrideLoadOp(k("memref<?xf32>"), k("1x1x1x8xf32"), k("i32"), k("f32"), [k("i32")],
                                                     [k("i32")]),
     "'hivm.hir.stride_load' op only support 1-3D"),
    ("stride_load numbers", lambda k: hivm.StrideLoadOp(k("memref<?xf32>"), k("8xf32"), k("i32"), k("f32"), [k("i32")] * 2,
                                                        [k("i32")] * 2),
     "'hivm.hir.stride_load' op stride and numel operand counts must match dst rank"),
    ("stride_load types", lambda k: hivm.StrideLoadOp(k("memref<?xf32>"), k("8xf32"), k("i64"), k("f32"), [k("i32")],
                                                      [k("i32")]),
     "'hivm.hir.stride_load' op offset, stride and numel operands must have the same type"),
    ("stride_load other", lambda k: hivm.StrideLoadOp(k("memref<?xf32>"), k("8xf32"), k("i32"), k("f16"), [k("i32")],
                                                      [k("i32")]),
     "'hivm.hir.stride_load' op other must have the same element type as src"),
    ("stride_store element types", lambda k: hivm.StrideStoreOp(
        src=k("8xf16"), dst=k("memref<?xf32>"), offset=k("i64"), stride=[k("i64")], numel=[k("i64")]),
     "'hivm.hir.stride_store' op src of hivm::StrideStoreOp must have the same element type as dst"),
    ("indirect_load shapes", lambda k: hivm.IndirectLoadOp(k("memref<?xf32>"), k("4xi64"), k("8xf32")),
     "'hivm.hir.indirect_load' op dst of hivm::IndirectLoadOp must have the same shape as offsets"),
    ("indirect_store shapes", lambda k: hivm.IndirectStoreOp(src=k("8xf32"), offsets=k("4xi64"), dst=k("memref<?xf32>")),
     "'hivm.hir.indirect_store' op offsets of hivm::IndirectStoreOp must have the same shape and rank as src"),
    ("embedding_gather index", lambda k: hivm.EmbeddingGatherOp(k("memref<?xf32>"), k("1x1x4xi32"), k("1x1x4x8xf32"),
                                                                k("i64"), [k("i64")] * 4, [k("i64")] * 4),
     "'hivm.hir.embedding_gather' op idx of hivm::EmbeddingGatherOp must be of rank [1, 2]!"),
    ("embedding_gather rows", lambda k: hivm.EmbeddingGatherOp(k("memref<?xf32>"), k("4xi32"), k("4xf32"), k("i64"),
                                                               [k("i64")], [k("i64")]),
     "'hivm.hir.embedding_gather' op dst of hivm::EmbeddingGatherOp must be idxRank + 1!"),
    ("embedding_gather offsets", lambda k: hivm.EmbeddingGatherOp(k("memref<?xf32>"), k("4xi32"), k("4x8xf32"), k("i64"),
                                                                  [k("i64")], [k("i64")]),
     "'hivm.hir.embedding_gather' op The size of offsets of hivm::EmbeddingGatherOp must be equal to the rank of dst!"),
    ("scatterT shapes", lambda k: hivm.ScatterTOp(k("memref<?xf32>"), k("2xf32"), k("4xi64"), k("i64"), k("i32"), [k("i64")],
                                                  [k("i32")], [k("i32")]),
     "'hivm.hir.scatterT' op tensor of value and index_tile of hivm::ScatterTOp must have the same shape"),
]

ELSEWHERE: list[tuple[str, Make, str]] = [
    ("workspace sizes", lambda k: memref_ext.AllocWorkspaceOp(type_of("memref<?x8xf32>")),
     "'memref_ext.alloc_workspace' op dimension operand count does not equal memref dynamic dimension count"),
    ("scope with arguments", lambda k: scope.ScopeOp(Region(Block(arg_types=[i32]))),
     "'scope.scope' op region should have no arguments"),
    ("scope's results", lambda k: scope.ScopeOp([], [i32]),
     ("'scope.scope' op region control flow edge from Region #0 to parent results: source has 0 operands, but target"
      " successor needs 1")),
]

EVERYTHING = SYNC + SCALAR + CUSTOM + SIMT + ELSEWHERE


@pytest.mark.parametrize(("make", "message"), [case[1:] for case in EVERYTHING], ids=[case[0] for case in EVERYTHING])
def test_refused(k: Kernel, make: Make, message: str) -> None:
    assert refusal(k.module(make(k))) == message


def test_a_custom_op_names_its_mode_on_the_950(k: Kernel) -> None:
    assert refusal(k.module(hivm.CustomOp("f", **READY), target=A5)) == "'hivm.hir.custom' op Missing vf mode information"
    k = Kernel()
    verify_module(k.module(hivm.CustomOp("f", vf_mode="SIMD", **READY), target=A5))
    k = Kernel()
    verify_module(k.module(hivm.CustomOp("f", core="CUBE", pipe="M", symbol="f"), target=A5))


def test_in_place_of_the_same_value(k: Kernel) -> None:
    verify_module(k.module(_in_place(k, "8xf32", "8xf32", IntegerAttr(0, i32), same=True)))


def test_known_functions_need_no_facts(k: Kernel) -> None:
    verify_module(k.module(hivm.CustomOp("__builtin_gather_load", [k("8xf32")], [k("8xf32")])))


def test_barriers_of_every_mode(k: Kernel) -> None:
    verify_module(k.module(
        hivm.SyncBlockOp("BARRIER_VECTOR"), hivm.SyncBlockOp("ALL_CUBE", tcube_pipe="FIX", cube_pipe="MTE2"),
        hivm.SyncBlockOp("ALL_VECTOR", tvector_pipe="MTE3"), hivm.SyncBlockOp("ALL_SUB_VECTOR", tvector_pipe="MTE3"),
        hivm.SyncBlockOp("ALL", tcube_pipe="FIX", tvector_pipe="MTE3", vector_pipe="MTE2")))
