"""When an op of HIVM is valid: the rules of AscendNPU-IR's ODS and verifiers, written independently for the tests.

A line of ``TABLE`` is ``names : operands -> results ; attributes ; rules``. An operand is ``name:type``, followed by ``?`` if
it is optional, ``*`` if it is variadic, and ``!`` if the op writes it. A required attribute is ``name=kind``, an optional one
or one with a default ``name~kind``. If several lines name one op, all of them apply.

Unranked types are invalid here, although the ODS accepts any shaped type: the toolchain's own passes crash on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SETS = {
    "BITS": "i1 i8 ui8 i16 ui16 i32 ui32 i64 ui64",
    "INTS": "i8 ui8 i16 ui16 i32 ui32 i64 ui64",
    "EVERY": "i1 i8 ui8 i16 ui16 i32 ui32 i64 ui64 f16 bf16 f32 f8E4M3FN f8E5M2",
    "SIMPLE": "i8 i16 i32 f16 f32 i64",
    "ANYINT": "i8 si8 ui8 i16 si16 ui16 i32 si32 ui32",
    "SHORT": "i1 i8 i16 i32 i64 f16 f32 bf16",
}

_UNARY = "src:shaped* dst!:shaped*"
_NARY = "src:data* dst!:shaped*"
_TEMP = "temp_buffer:memref?"
_AXES = "transpose~axes broadcast~axes"
_SIGN = "is_signed~bool"
_TILING = "blockSizes:i64* processSizes:i64* swizzleOffset:i64? swizzleDirection:i64? epiloguePTiles:i64? c!:shaped"

TABLE = f"""
vexp : {_UNARY} {_TEMP} -> tensor* ; {_AXES} ; nary=1 same vector=0 01=f16,f32 brc
vln vrsqrt vsqrt vrec vabs vrelu vnot : {_UNARY} {_TEMP} -> tensor* ; {_AXES} ; nary=1 same vector=0 brc
vln vrsqrt vsqrt vrec : ; ; 0=f16,f32
vabs : ; ; 0=SIMPLE
vrelu : ; ; 0=f16,f32,i32
vnot : ; ; 0=BITS,f16,bf16,f32
vexp2 vlog2 vlog10 vlog1p vexpm1 vilogb : {_NARY} -> tensor* ; {_AXES} ; nary=1 same vector=0 0=f16,f32
vtanh vsin vcos vatan vtan verf : {_NARY} -> tensor* ; {_AXES} ; nary=1 same vector=0
vcast : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=1 vector=0 brc cast
visinf visnan : {_UNARY} -> tensor* ; {_AXES} ; nary=1 vector=0 0=f16,f32 brc
vadd vmul : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=SIMPLE vector=0 brc
vsub vdiv : {_NARY} {_TEMP} -> tensor* ; {_AXES} isSigned~bool isHP~bool ; nary=2 same 01=SIMPLE brc
vmulext vmulextui : {_NARY} -> tensor* ; {_AXES} ; nary=2 same 01=i32 vector=0
vmax vmin : {_NARY} {_TEMP} -> tensor* ; {_AXES} {_SIGN} ; nary=2 same 01=EVERY vector=0 brc
vor vand : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=BITS,f16,bf16,f32 vector=0 vector=1 brc
vxor : {_UNARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=BITS vector=0 vector=1
vmod : {_NARY} -> tensor* ; {_AXES} ; nary=2 same 01=i1,SIMPLE vector=0
vmodui : {_NARY} -> tensor* ; {_AXES} ; nary=2 same 01=i1,i8,i16,i32,i64 vector=0
vshl : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=i16,i32,i64 vector=0 brc
vshr : {_NARY} {_TEMP} -> tensor* ; {_AXES} {_SIGN} round~bool ; nary=2 same 01=i8,i16,i32,i64 vector=0 brc
vcmp : {_NARY} {_TEMP} -> tensor* ; {_AXES} {_SIGN} ; nary=2+ 01=EVERY 2=i1,i8 vector=0
vpow : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=i8,i16,i32,f16,f32 vector=0 vector=1
vldexp : {_NARY} -> tensor* ; {_AXES} ; nary=2 same 01=f16,f32 vector=0 vector=1
vsel : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=3 0=i1,i8 12=ANYINT,i1,f16,bf16,f32,f8E4M3FN,f8E5M2,i64,ui64 brc
vbrc : src:data dst!:tm {_TEMP} -> tensor* ; broadcast_dims~axes ; same 0=EVERY brc_dims
vreduce : src:tm dst!:tm* {_TEMP} indices:tm? -> tensor* ; arith=enum unsigned_src~bool tie_break_left~bool reduce_dims=axes ;
vreduce : ; ; 01=BITS,f16,f32 reduce
vtranspose : src:tm dst!:tm {_TEMP} -> tensor* ; permutation~axes disable_align~bool ;
vtranspose : ; ; 0=ANYINT,i1,f16,bf16,f32,i64,ui64,f8E4M3FN,f8E5M2 permutes
varange : dst!:tm offset:index? strides:index* -> tensor? ; ; 0=i16,i32,f16,f32,i64 arange
vinterleave : src:data* dst!:tm {_TEMP} -> tensor* ; interleave_channel_nums~i64 ; same rank 0=EVERY interleave
vdeinterleave : src:tm dst!:tm* -> tensor* ; channel_num~i64 ; same rank 0=INTS,f16,bf16,f32,f8E4M3FN,f8E5M2 deinterleave
vflip : src:tm dst!:tm -> tensor* ; flip_axis=i64 ; same 01=INTS,f16,f32,bf16
vmulextended : src:tm* dst!:tm* {_TEMP} -> tensor* ; ; rank 0=i16
vpad : src:tm dst!:tm pad_value:any low:index* high:index* -> tensor* ; static_low=axes static_high=axes ; rank
vconcat : src:data* dst!:tm -> tensor* ; dim=i64 ; same
vgather : src:tm indices:tm dst!:tm {_TEMP} -> tensor* ; gather_axis~i64 ;
vgather : ; ; rank 0=i1,i8,i16,ui16,i32,ui32,f16,bf16,f32,f8E4M3FN,f8E5M2 1=i16,i32
vgathermask : src:tm mask:tm dst!:tm* -> tensor* ; ; rank 0=i16,ui16,i32,ui32,f16,bf16,f32 1=i1
vcumsum : src:tm dst!:tm {_TEMP} -> tensor* ; cum_dims=axes reverse~bool ; 0=SHORT cumulates
vcumprod : src:tm dst!:tm {_TEMP} -> tensor* ; cum_dims=axes reverse~bool ; same 0=SHORT cumulates
vcummax vcummin : src:tm dst!:tm {_TEMP} -> tensor* ; cum_dims=axes reverse=bool propagate_nan~bool ; same 0=SHORT cumulates
vsort : src:tm dst!:tm* {_TEMP} -> tensor* ; descending~bool sort_axis~i64 ; 01=SIMPLE sorts
load : src:tm dst!:tm pad_value:any? left_padding_num:index? right_padding_num:any? init_condition:any? -> tensor? ; ;
load : ; init_out_buffer~bool may_implicit_transpose_with_last_axis~bool ; 0=EVERY loads
store : src:tm dst!:tm -> tensor? ; may_implicit_transpose_with_last_axis~bool ; 0=EVERY stores
copy : src:tm dst!:tm pad_value:any? -> tensor? ; ; 0=EVERY copies
nd2nz : src:shaped dst!:shaped pad_value:any? init_condition:any? -> tensor* ; dst_continuous~unit init_out_buffer~bool ;
nz2nd l12ub : src:tm dst!:tm -> tensor? ; ;
load_scale : src:tm dst!:tm -> tensor? ; is_transposed~bool ;
fixpipe : src:shaped dst!:shaped unit_flag_cond:i1* quant_scale:float? -> tensor? ; ;
fixpipe : ; channel_split~bool c0_pad_en~bool unit_flag_group_id~i64 ; fixpipe unit_flag
mmadL1 batchMmadL1 : a:tm b:tm init_condition:i1 m:index k:index -> ; ;
mmadL1 batchMmadL1 : n:index c!:tm sync_related_args:i64* unit_flag_cond:i1* per_channel_bias:tm? -> tensor* ; ;
mmadL1 batchMmadL1 : ; a_transpose~unit b_transpose~unit enable_HF32~unit enable_I4~unit unit_flag_group_id~i64 ;
mmadL1 batchMmadL1 : ; ; sync_args unit_flag
matmul : a:shaped b:shaped tilingParams:shaped? bias:shaped? descale:shaped? -> ; ;
matmul : {_TILING} -> tensor* ; aTranspose~unit bTranspose~unit ; matmul
mix_matmul : a:shaped b:shaped postVecFuncIns:shaped* workspaceIns:shaped* -> ; ;
mix_matmul : tilingParams:shaped? commParams:shaped? bias:shaped? descale:shaped? {_TILING} -> tensor* ; ;
mix_matmul : ; aTranspose~unit bTranspose~unit ; matmul
mix_group_matmul : a:shaped b:shaped tokens_per_expert:shaped postVecFuncIns:shaped* postVecFuncOuts:shaped* -> ; ;
mix_group_matmul : workspaceIns:shaped* tilingParams:shaped? commParams:shaped? bias:shaped? descale:shaped? -> ; ;
mix_group_matmul : {_TILING} -> tensor* ; aTranspose~unit bTranspose~unit ; matmul=tokens_per_expert
mmadmxL1 : a:mx b:mx scaleA:scale scaleB:scale init_condition:i1 m:index k:index n:index c!:floats -> ; ;
mmadmxL1 : sync_related_args:i64* per_channel_bias:tm? -> floats* ; lhsFormat~format rhsFormat~format ;
mmadmxL1 : ; a_transpose~unit b_transpose~unit ;
Conv1dL1 Conv2dL1 Conv3dL1 : input:tm weight:tm bias:tm? init!:tm init_condition:i1 sync_related_args:i64* -> tensor* ; ;
Conv1dL1 : ; padding=i32 groups=i32 ;
Conv2dL1 : ; padding=any groups=i32 ; padding=2
Conv3dL1 : ; padding=any groups=i32 ; padding=3
atomic_cas : src:tm* dst:tm -> tensor? ; ; 0=SIMPLE,bf16,f8E4M3FN,f8E5M2
atomic_xchg : src:data dst:tm mask:tm? -> tensor? ; ; 0=SIMPLE,bf16
atomic_rmw : src:data dst!:tm -> tensor? ; atomic_kind=enum ; 0=SHORT
set_flag wait_flag : dynamic_event_id:i64? -> ; set_pipe=enum wait_pipe=enum static_event_id~enum ;
set_flag wait_flag : ; ; one_of=static_event_id,dynamic_event_id
pipe_barrier : -> ; pipe=enum ;
sync_block : ffts_base_addr:i64? -> ; sync_block_mode=enum flag_id~int ; sync_block
sync_block_set : dynamic_flag_id:i64? ffts_base_addr:i64? -> ; tcore_type=enum tpipe=enum pipe=enum static_flag_id~int ;
sync_block_set : ; ; one_of=static_flag_id,dynamic_flag_id
sync_block_wait : dynamic_flag_id:i64? -> ; tcore_type=enum tpipe=enum pipe=enum static_flag_id~int ;
sync_block_wait : ; ; one_of=static_flag_id,dynamic_flag_id
create_sync_block_lock : lock_arg:memref? -> memref ; ; known_sizes
sync_block_lock sync_block_unlock free_lock_var : lock_var:lock -> ; ;
get_block_idx get_block_num get_sub_block_idx get_sub_block_num : -> i64 ; ;
set_mask_norm init_debug finish_debug : -> ; ;
set_ffts_base_addr : ffts_base_addr:i64 -> ; ;
anchor : -> ; id=i64 ;
pointer_cast : addrs:i64* dynamic_sizes:index* -> memref ; ; addresses
bitcast : src:any -> any ; ; bitcast
get_sys_cnt multi_buffer_counter : -> i64 ; ;
set_ctrl : -> ; enable=bool idx=i64 ;
set_atomic : -> ; kind=enum type~type ;
load_scalar : addr:gm_pointer -> number ; ;
dcci : ptr:memref? -> ; mode=enum dataCacheKind=enum ;
convert_layout : source:tm output_shape:index* -> tm ; srcLayout=layout dstLayout=layout static_output_shape=axes ; relayout
gather_load : base:memref indices:indices burst_len:i32i64 mask:bits? other:tensor? dst!:tm -> tensor? ; ;
gather_load : ; cache~enum evict~enum isVolatile~bool ; alike=base,dst shape=indices,dst shape=indices,mask
gather_load : ; ; shape=indices,other alike=base,other
scatter_store : indices:indices data:tensor burst_len:i32i64 mask:bits? base!:tm -> tensor? ; cache~enum evict~enum ;
scatter_store : ; ; alike=base,data shape=indices,data shape=mask,data
local_load : addr:memref -> tensor ; ; alike=addr,result shape=addr,result
local_store : addr:memref data:tensor -> ; ; alike=addr,data shape=addr,data
stride_load : src:memref dst!:tm offset:i32i64 other:any stride:i32i64* numel:i32i64* -> tm? ; ; alike=src,dst strides=dst
stride_store : dst!:memref src:tm offset:i32i64 stride:i32i64* numel:i32i64* -> ; ; alike=src,dst strides=src
indirect_load : src:memref offsets:tm dst!:tm mask:tm? other:tm? -> tm? ; isVolatile~bool ; alike=src,dst shape=offsets,dst
indirect_load : ; ; shape=offsets,mask shape=offsets,other alike=src,other
indirect_store : dst!:memref offsets:tm src:tm mask:tm? -> ; ; alike=src,dst shape=offsets,src shape=offsets,mask
embedding_gather : src:memref index:tm dst!:tm bound:i32i64 offsets:i32i64* numels:i32i64* -> tm* ; ; rows
gatherT : src:memref index:tm dst!:tm bound:i32i64 dim:i32i64 -> ; ;
gatherT : src_stride:i32i64* index_shape:i32i64* offsets:i32i64* -> tm? ; ;
index_put : dst!:memref index:tm value:tm scatter_dim:i32i64 bound:i32i64 -> ; ;
index_put : end_offset:i32i64* start_offset:i32i64* dst_stride:i32i64* -> ; ;
scatterT : dst!:memref value:tm index_tile:tm index_boundary:i32i64 dim:i32i64 -> ; ;
scatterT : dst_stride:i32i64* index_shape:i32i64* offsets:i32i64* -> ; ; shape=value,index_tile
custom : inputs:any* outputs!:any* temp_buffers:any* -> any* ; name=text no_side_effect~unit ; in_place custom
custom_macro : inputs:any* outputs!:any* temp_buffers:any* sync_related_args:i64* -> any* ; ;
custom_macro : ; name=text no_side_effect~unit ; in_place custom slots
debug : arg:shown -> ; debugtype=text prefix=text hex=bool tcoretype~enum memscope~enum ;
vcmp : ; compare_mode~enum ;
vcast : ; round_mode~enum cast~enum ;
vdeinterleave : ; index_mode~enum ;
load : ; pad_mode~enum eviction_policy~enum tcoretype~enum ;
store : ; atomic_kind~enum ;
copy : ; pad_mode~enum collapse_reassociation~groups ;
fixpipe : ; dma_mode~enum dual_dst_mode~enum sub_block_idx~enum pre_quant~enum pre_relu~enum unit_flag_mode~flags ;
mmadL1 batchMmadL1 : ; unit_flag_mode~flags ;
matmul mix_matmul mix_group_matmul : ; descaleMode~enum ;
sync_block : ; tcube_pipe~enum cube_pipe~enum tvector_pipe~enum vector_pipe~enum ;
sync_block_set sync_block_wait : ; tsync_instr_mode~enum ;
anchor : ; tcore_type~enum ;
"""


@dataclass
class Rules:
    """The rules for an op."""

    operands: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)


def _read() -> dict[str, Rules]:
    read: dict[str, Rules] = {}
    for line in TABLE.strip().splitlines():
        names, _, rest = line.partition(" :")
        operands, attributes, rules = rest.split(";")
        ins, _, outs = operands.partition("->")
        for name in names.split():
            op = read.setdefault(f"hivm.hir.{name}", Rules())
            op.operands += ins.split()
            op.results += outs.split()
            op.attributes += attributes.split()
            op.rules += rules.split()
    return read


RULES = _read()
