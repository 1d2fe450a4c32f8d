# Made by `tilelang-npu ops --stubs`; a test holds that this file is what it prints.
"""The language: ``import tilelang_npu.language as T``."""

from builtins import bool as _bool
from builtins import int as _int
from collections.abc import Sequence
from tilelang_npu.language import vmi as vmi
from tilelang_npu.language.allocate import alloc_L0A as alloc_L0A
from tilelang_npu.language.allocate import alloc_L0B as alloc_L0B
from tilelang_npu.language.allocate import alloc_L0C as alloc_L0C
from tilelang_npu.language.allocate import alloc_L1 as alloc_L1
from tilelang_npu.language.allocate import alloc_frag as alloc_frag
from tilelang_npu.language.allocate import alloc_fragment as alloc_fragment
from tilelang_npu.language.allocate import alloc_local as alloc_local
from tilelang_npu.language.allocate import alloc_shared as alloc_shared
from tilelang_npu.language.allocate import alloc_ub as alloc_ub
from tilelang_npu.language.allocate import alloc_var as alloc_var
from tilelang_npu.language.allocate import annotate_address as annotate_address
from tilelang_npu.language.allocate import annotate_layout as annotate_layout
from tilelang_npu.language.allocate import reinterpretcast as reinterpretcast
from tilelang_npu.language.atomic_mode import set_atomic as set_atomic
from tilelang_npu.language.atomic_mode import set_atomic_add as set_atomic_add
from tilelang_npu.language.atomic_mode import set_atomic_none as set_atomic_none
from tilelang_npu.language.block_scaled import alloc_L1_scale_a as alloc_L1_scale_a
from tilelang_npu.language.block_scaled import alloc_L1_scale_b as alloc_L1_scale_b
from tilelang_npu.language.block_scaled import gemm_mx as gemm_mx
from tilelang_npu.language.block_scaled import mma_mx as mma_mx
from tilelang_npu.language.cube_moves import copy_pa as copy_pa
from tilelang_npu.language.debug import dump_tensor as dump_tensor
from tilelang_npu.language.debug import printf as printf
from tilelang_npu.language.declared_buffers import Call
from tilelang_npu.language.declared_buffers import Declared
from tilelang_npu.language.dequantise import set_deq_scale as set_deq_scale
from tilelang_npu.language.eager import const as const
from tilelang_npu.language.elements import ElementType
from tilelang_npu.language.elements import Extents
from tilelang_npu.language.elements import ScalarType
from tilelang_npu.language.elements import Sym as Sym
from tilelang_npu.language.elements import infinity as infinity
from tilelang_npu.language.functions import Macro as Macro
from tilelang_npu.language.functions import PrimFunc as PrimFunc
from tilelang_npu.language.functions import macro as macro
from tilelang_npu.language.gpu_hints import annotate_compile_flags as annotate_compile_flags
from tilelang_npu.language.gpu_hints import annotate_consumer_reg_alloc as annotate_consumer_reg_alloc
from tilelang_npu.language.gpu_hints import annotate_l2_hit_ratio as annotate_l2_hit_ratio
from tilelang_npu.language.gpu_hints import annotate_min_blocks_per_sm as annotate_min_blocks_per_sm
from tilelang_npu.language.gpu_hints import annotate_pass_configs as annotate_pass_configs
from tilelang_npu.language.gpu_hints import annotate_producer_reg_dealloc as annotate_producer_reg_dealloc
from tilelang_npu.language.gpu_hints import annotate_restrict_buffers as annotate_restrict_buffers
from tilelang_npu.language.gpu_hints import assume as assume
from tilelang_npu.language.gpu_hints import async_copy as async_copy
from tilelang_npu.language.gpu_hints import cp_async_wait_group as cp_async_wait_group
from tilelang_npu.language.gpu_hints import dec_max_nreg as dec_max_nreg
from tilelang_npu.language.gpu_hints import device_assert as device_assert
from tilelang_npu.language.gpu_hints import disable_warp_group_reg_alloc as disable_warp_group_reg_alloc
from tilelang_npu.language.gpu_hints import fence_proxy_async as fence_proxy_async
from tilelang_npu.language.gpu_hints import inc_max_nreg as inc_max_nreg
from tilelang_npu.language.gpu_hints import no_set_max_nreg as no_set_max_nreg
from tilelang_npu.language.gpu_hints import pdl_sync as pdl_sync
from tilelang_npu.language.gpu_hints import pdl_trigger as pdl_trigger
from tilelang_npu.language.gpu_hints import ptx_commit_group as ptx_commit_group
from tilelang_npu.language.gpu_hints import ptx_wait_group as ptx_wait_group
from tilelang_npu.language.gpu_hints import set_max_nreg as set_max_nreg
from tilelang_npu.language.gpu_hints import sync_threads as sync_threads
from tilelang_npu.language.gpu_hints import sync_warp as sync_warp
from tilelang_npu.language.gpu_hints import warpgroup_fence_operand as warpgroup_fence_operand
from tilelang_npu.language.launch import Else as Else
from tilelang_npu.language.launch import If as If
from tilelang_npu.language.launch import Kernel as Kernel
from tilelang_npu.language.launch import Parallel as Parallel
from tilelang_npu.language.launch import Persistent as Persistent
from tilelang_npu.language.launch import Pipelined as Pipelined
from tilelang_npu.language.launch import Scope as Scope
from tilelang_npu.language.launch import SimdVF as SimdVF
from tilelang_npu.language.launch import SimtVF as SimtVF
from tilelang_npu.language.launch import Then as Then
from tilelang_npu.language.launch import func_attr as func_attr
from tilelang_npu.language.launch import grid as grid
from tilelang_npu.language.launch import loop_break as loop_break
from tilelang_npu.language.launch import parallel as parallel
from tilelang_npu.language.launch import rs as rs
from tilelang_npu.language.launch import serial as Serial
from tilelang_npu.language.launch import serial as serial
from tilelang_npu.language.launch import unroll as unroll
from tilelang_npu.language.launch import vectorized as vectorized
from tilelang_npu.language.layouts import Fragment as Fragment
from tilelang_npu.language.layouts import Layout as Layout
from tilelang_npu.language.logical import all_of as all_of
from tilelang_npu.language.logical import any_of as any_of
from tilelang_npu.language.matrix import GemmWarpPolicy as GemmWarpPolicy
from tilelang_npu.language.matrix import gemm as gemm
from tilelang_npu.language.matrix import gemm_v0 as gemm_v0
from tilelang_npu.language.matrix import gemm_v0_fixp as gemm_v0_fixp
from tilelang_npu.language.matrix import mma as mma
from tilelang_npu.language.matrix import mma as npu_gemm
from tilelang_npu.language.matrix import npuir_dot as npuir_dot
from tilelang_npu.language.movement import copy as copy
from tilelang_npu.language.movement import copy as npuir_copy
from tilelang_npu.language.movement import npuir_bitcast as npuir_bitcast
from tilelang_npu.language.movement import reshape as npuir_reshape
from tilelang_npu.language.movement import reshape as reshape
from tilelang_npu.language.movement import vbitcast as vbitcast
from tilelang_npu.language.movement import view_of as view
from tilelang_npu.language.movement import view_of as view_experiment
from tilelang_npu.language.patches import im2col as c2d_im2col
from tilelang_npu.language.patches import im2col as im2col
from tilelang_npu.language.reducers import alloc_reducer as alloc_reducer
from tilelang_npu.language.reducers import finalize_reducer as finalize_reducer
from tilelang_npu.language.reducers import reducer_init as reducer_init
from tilelang_npu.language.reducers import reducer_update as reducer_update
from tilelang_npu.language.reduction import reduce as npuir_reduce
from tilelang_npu.language.reduction import reduce as reduce
from tilelang_npu.language.reduction import reduce_absmax as reduce_absmax
from tilelang_npu.language.reduction import reduce_abssum as reduce_abssum
from tilelang_npu.language.reduction import reduce_with_index as reduce_with_index
from tilelang_npu.language.safe_values import annotate_safe_value as annotate_safe_value
from tilelang_npu.language.scalar import And as And
from tilelang_npu.language.scalar import Cast as Cast
from tilelang_npu.language.scalar import Not as Not
from tilelang_npu.language.scalar import Or as Or
from tilelang_npu.language.scalar import Select as Select
from tilelang_npu.language.scalar import abs as abs
from tilelang_npu.language.scalar import acos as acos
from tilelang_npu.language.scalar import acosh as acosh
from tilelang_npu.language.scalar import align_up as align_up
from tilelang_npu.language.scalar import asin as asin
from tilelang_npu.language.scalar import asinh as asinh
from tilelang_npu.language.scalar import assert_ as assert_
from tilelang_npu.language.scalar import atan as atan
from tilelang_npu.language.scalar import atan2 as atan2
from tilelang_npu.language.scalar import atanh as atanh
from tilelang_npu.language.scalar import bitwise_and as bitwise_and
from tilelang_npu.language.scalar import bitwise_not as bitwise_not
from tilelang_npu.language.scalar import bitwise_or as bitwise_or
from tilelang_npu.language.scalar import bitwise_xor as bitwise_xor
from tilelang_npu.language.scalar import cast as cast
from tilelang_npu.language.scalar import ceil as ceil
from tilelang_npu.language.scalar import ceildiv as ceildiv
from tilelang_npu.language.scalar import clamp as clamp
from tilelang_npu.language.scalar import clz as clz
from tilelang_npu.language.scalar import copysign as copysign
from tilelang_npu.language.scalar import cos as cos
from tilelang_npu.language.scalar import cosh as cosh
from tilelang_npu.language.scalar import erf as erf
from tilelang_npu.language.scalar import evaluate as evaluate
from tilelang_npu.language.scalar import exp as exp
from tilelang_npu.language.scalar import exp10 as exp10
from tilelang_npu.language.scalar import exp2 as exp2
from tilelang_npu.language.scalar import fabs as fabs
from tilelang_npu.language.scalar import floor as floor
from tilelang_npu.language.scalar import floordiv as floordiv
from tilelang_npu.language.scalar import floormod as floormod
from tilelang_npu.language.scalar import hypot as hypot
from tilelang_npu.language.scalar import if_then_else as if_then_else
from tilelang_npu.language.scalar import isfinite as isfinite
from tilelang_npu.language.scalar import isinf as isinf
from tilelang_npu.language.scalar import isnan as isnan
from tilelang_npu.language.scalar import log as log
from tilelang_npu.language.scalar import log10 as log10
from tilelang_npu.language.scalar import log1p as log1p
from tilelang_npu.language.scalar import log2 as log2
from tilelang_npu.language.scalar import max as max
from tilelang_npu.language.scalar import max_value as max_value
from tilelang_npu.language.scalar import meta_var as meta_var
from tilelang_npu.language.scalar import min as min
from tilelang_npu.language.scalar import min_value as min_value
from tilelang_npu.language.scalar import nearbyint as nearbyint
from tilelang_npu.language.scalar import popcount as popcount
from tilelang_npu.language.scalar import pow as pow
from tilelang_npu.language.scalar import reinterpret as reinterpret
from tilelang_npu.language.scalar import round as round
from tilelang_npu.language.scalar import rsqrt as rsqrt
from tilelang_npu.language.scalar import shift_left as shift_left
from tilelang_npu.language.scalar import shift_right as shift_right
from tilelang_npu.language.scalar import sigmoid as sigmoid
from tilelang_npu.language.scalar import sin as sin
from tilelang_npu.language.scalar import sinh as sinh
from tilelang_npu.language.scalar import sqrt as sqrt
from tilelang_npu.language.scalar import tan as tan
from tilelang_npu.language.scalar import tanh as tanh
from tilelang_npu.language.scalar import trunc as trunc
from tilelang_npu.language.scalar import truncdiv as truncdiv
from tilelang_npu.language.scalar import truncmod as truncmod
from tilelang_npu.language.signals import shmem_barrier as shmem_barrier
from tilelang_npu.language.signals import shmem_barrier_all as shmem_barrier_all
from tilelang_npu.language.signals import shmem_fence as shmem_fence
from tilelang_npu.language.signals import shmem_mte_quiet as shmem_mte_quiet
from tilelang_npu.language.signals import shmem_quiet as shmem_quiet
from tilelang_npu.language.signals import shmem_signal_op as shmem_signal_op
from tilelang_npu.language.signals import shmem_signal_wait_until as shmem_signal_wait_until
from tilelang_npu.language.swizzle import use_swizzle as use_swizzle
from tilelang_npu.language.sync import barrier_all as barrier_all
from tilelang_npu.language.sync import block_barrier as block_barrier
from tilelang_npu.language.sync import clear_flag as clear_flag
from tilelang_npu.language.sync import init_flag as init_flag
from tilelang_npu.language.sync import pipe_barrier as pipe_barrier
from tilelang_npu.language.sync import set_cross_flag as set_cross_flag
from tilelang_npu.language.sync import set_flag as set_flag
from tilelang_npu.language.sync import subblock_barrier as subblock_barrier
from tilelang_npu.language.sync import sync_all as sync_all
from tilelang_npu.language.sync import sync_all as sync_grid
from tilelang_npu.language.sync import sync_block_set as sync_block_set
from tilelang_npu.language.sync import sync_block_wait as sync_block_wait
from tilelang_npu.language.sync import wait_cross_flag as wait_cross_flag
from tilelang_npu.language.sync import wait_flag as wait_flag
from tilelang_npu.language.threads import get_thread_binding as get_thread_binding
from tilelang_npu.language.threads import get_thread_bindings as get_thread_bindings
from tilelang_npu.language.types import Ref as Ref
from tilelang_npu.language.vector import clear as clear
from tilelang_npu.language.vector import clear as npuir_clear
from tilelang_npu.language.vector import fill as fill
from tilelang_npu.language.vector import fill as npuir_fill
from tilelang_npu.language.vector import vbrc as npuir_brc
from tilelang_npu.language.vector import vbrc as vbrc
from tilelang_npu.traced.buffers import Addressable
from tilelang_npu.traced.buffers import Buffer as Buffer
from tilelang_npu.traced.buffers import Operand
from tilelang_npu.traced.buffers import Sizes
from tilelang_npu.traced.buffers import Tile
from tilelang_npu.traced.symbols import Number
from tilelang_npu.traced.symbols import dynamic as dynamic
from tilelang_npu.traced.symbols import symbolic as symbolic
from typing import Any

class Tensor(Buffer):
    """The annotation of a parameter that is a global tensor: ``A: T.Tensor((M, N), "float16")`` or ``A: T.Tensor[(M, N),
    "float16"]``.

    In the body of a kernel ``T.Tensor(shape, dtype, A.data)`` is ``T.view(A, shape, dtype)``.

    Example: ``T.Tensor((M, N), "float16")``

    Args:
        shape: the sizes, which are integers or symbolic dimensions; a single size is a shape with one axis.
        dtype: the element type; the default is ``float32``.
    """
    def __init__(self, shape: Extents, dtype: ElementType = "float32", data: Addressable | None = None) -> None: ...
    def __class_getitem__(cls, item: object) -> type[Tensor]: ...

class StridedTensor(Buffer):
    """The annotation of a parameter that is a global tensor with gaps: ``A: T.StridedTensor((M, N), (S, 1), "float16")`` or
    ``A: T.StridedTensor[(M, N), (S, 1), "float16"]``.

    The caller passes an array with these strides, such as some columns of a matrix. The last stride must be 1. Copies clip at
    the end of the shape, as for other tensors, and do not access the gaps.

    Example: ``T.StridedTensor((M, N), (K, 1), "float16")``

    Args:
        shape: the sizes, which are integers or symbolic dimensions.
        strides: for each axis the distance between neighbouring elements, in elements; integers or symbolic dimensions.
        dtype: the element type; the default is ``float32``.
    """
    def __init__(self, shape: Extents, strides: Extents, dtype: ElementType = "float32") -> None: ...
    def __class_getitem__(cls, item: object) -> type[StridedTensor]: ...

FragmentBuffer = Buffer
LocalBuffer = Buffer
SharedBuffer = Buffer

# A kernel's annotations are calls, which no type checker takes for types: `no_type_check` keeps it from the whole function.
# Where a checker is told how to read them (docs/typing.md), the constant is true, and bodies are checked.
MYPY: _bool
TILELANG_NPU_BODIES: _bool
if MYPY and not TILELANG_NPU_BODIES:
    from typing import no_type_check as prim_func
elif TILELANG_NPU_BODIES:
    from tilelang_npu.language.functions import prim_func as prim_func  # type: ignore[assignment]  # a checker reads one branch
else:
    from typing import no_type_check as prim_func

dtype = ScalarType
bfloat16: ScalarType
bool: ScalarType
double: ScalarType
float: ScalarType
float16: ScalarType
float32: ScalarType
float4_e2m1fn: ScalarType
float64: ScalarType
float8_e4m3: ScalarType
float8_e4m3fn: ScalarType
float8_e5m2: ScalarType
float8_e8m0fnu: ScalarType
half: ScalarType
int: ScalarType
int16: ScalarType
int32: ScalarType
int4: ScalarType
int64: ScalarType
int8: ScalarType
long: ScalarType
short: ScalarType
tfloat32: ScalarType
uint: ScalarType
uint16: ScalarType
uint32: ScalarType
uint64: ScalarType
uint8: ScalarType

def add(A: Tile, B: Operand, C: Tile) -> None:
    """Sum of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.add(a, b, out)``
    """

def alloc_global(shape: Extents, dtype: ElementType, scope: str = 'global') -> Buffer:
    """Allocate a temporary tensor in GM, which exists during a call of the kernel. The statement must be above ``with
    T.Kernel``.

    All blocks share the tensor, and a later ``T.Kernel`` of the same function can read the elements that an earlier one has
    written.

    Example: ``T.alloc_global((M, N), "float32")``

    Args:
        shape: the sizes: integers, or expressions of symbolic dimensions of the kernel's parameters.
        dtype: the element type.
        scope: must be ``"global"``.

    Raises:
        TileError: T160, the call is inside ``T.Kernel``, a loop or a branch; T111, a size is computed on the device; T140,
            T150, T151, as for the shape of a parameter.
    """

def arange(dst: Tile, strides: Number | Sequence[Number], offset: Number = 0) -> None:
    """Write ``offset + i * strides[0] + j * strides[1] + ...`` to element ``[i, j, ...]`` of ``dst``.

    ``strides`` must have one integer for each axis of ``dst``.

    Element types: int16, int32, int64, float16, float32.

    Example: ``T.arange(out, [64, 1], 0)``

    Raises:
        TileError: T110, an element type is not supported; T111, the number of strides is wrong; T145, an argument is not an
            integer.
    """

def atomic_add(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.atomic_add(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def atomic_addx2(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.atomic_addx2(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def atomic_addx4(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.atomic_addx4(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def atomic_max(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Write to a tile of the global tensor ``dst`` the larger value of each of its elements and that of the tile ``src``.

    ``src`` is in UB or L0C. Each element is updated atomically. Operands are as for ``T.atomic_add``.

    Example: ``T.atomic_max(C[row, 0], tile)``

    Raises:
        TileError: as ``T.atomic_add``.
    """

def atomic_min(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Write to a tile of the global tensor ``dst`` the smaller value of each of its elements and that of the tile ``src``.

    ``src`` is in UB or L0C. Each element is updated atomically. Operands are as for ``T.atomic_add``.

    Example: ``T.atomic_min(C[row, 0], tile)``

    Raises:
        TileError: as ``T.atomic_add``.
    """

def axpy(A: Tile, B: Operand, C: Tile) -> None:
    """Adds the input times a scalar to the destination.

    Writes ``C``, reads ``A``, ``B`` and ``C``. All buffers have the same shape; an input with size 1
    along an axis is repeated along it. ``B`` may be a scalar. ``C`` may be the first input itself.

    Element types: float16, float32.

    Example: ``T.axpy(a, b, out)``
    """

def bitwise_lshift(A: Tile, B: Operand, C: Tile) -> None:
    """Shift left by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int16, int32, int64.

    Example: ``T.bitwise_lshift(a, b, out)``
    """

def bitwise_rshift(A: Tile, B: Operand, C: Tile, round: _bool = True) -> None:
    """Shift right by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64.

    Example: ``T.bitwise_rshift(a, b, out)``
    """

def clamp_max(A: Tile, B: Operand, C: Tile) -> None:
    """The smaller of each element and a bound.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be the first input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.clamp_max(a, b, out)``
    """

def clamp_min(A: Tile, B: Operand, C: Tile) -> None:
    """The larger of each element and a bound.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be the first input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.clamp_min(a, b, out)``
    """

def compare(A: Tile, B: Operand, C: Tile, cmp_mod: str) -> None:
    """Compares two elements; the result is true or false.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32; ``C`` is bool or int8.

    Example: ``T.compare(a, b, out, "lt")``
    """

def concat(*operands: Tile | _int, dim: Any = None, size: Sizes | None = None) -> None:
    """``T.concat(src0, src1, ..., dst, dim)``: write the sources to ``dst`` one after another along the axis ``dim``.

    Along ``dim``, the size of ``dst`` must be the sum of the sizes of the sources; all other sizes must be equal. ``size`` is
    the shape of the part of each source that is used.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.concat(a, b, out, 0)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, there are fewer than two buffers.
    """

def cummax(src: Tile, dst: Tile | None = None, dim: _int = 0, reverse: _bool = False) -> None:
    """Write the cumulative maximum of ``src`` along the axis ``dim`` to ``dst``; with ``reverse``, it starts at the last
    element.

    ``dst`` must have the shape of ``src``; without ``dst``, the result replaces ``src``. From a NaN on, the result is NaN. An
    axis of n elements takes log2(n) vector instructions, rounded up, one after another, each on the whole tile.

    Element types: int16, int32, int64, float16, float32, int8.

    Example: ``T.cummax(a, out, dim=1)``

    Raises:
        TileError: as ``T.cumsum``.
    """

def cumsum(src: Tile, dst: Tile | None = None, dim: _int = 0, reverse: _bool = False) -> None:
    """Write the cumulative sum of ``src`` along the axis ``dim`` to ``dst``; with ``reverse``, the sum starts at the last
    element.

    ``dst`` must have the shape of ``src``; without ``dst``, the result replaces ``src``. An axis of n elements takes log2(n)
    vector instructions, rounded up, one after another, each on the whole tile: 7 for 128 elements. A scan of 16 x 128 elements
    of float32 (R = 32) takes 7 * (22.5 + 32) = 382 cycles on Ascend910B2.

    Element types: int16, int32, int64, float16, float32, int8.

    Example: ``T.cumsum(a, out, dim=1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the operands overlap partly.
    """

def deinterleave(src: Tile, *targets: Tile, channel_nums: _int = 2, size: Sizes | None = None, index_mode: str =
                 'ALL_CHANNELS') -> None:
    """``T.deinterleave(src, even, odd)``: write the elements at even indices of the last axis to one buffer, those at odd indices to
    another.

    The last axis of each destination must be half as long as that of ``src``. With ``index_mode`` ``"CHANNEL_0"`` (even) or
    ``"CHANNEL_1"`` (odd), there is only one destination. ``channel_nums`` must be 2. ``size`` is the shape of the part of
    ``src`` that is used.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.deinterleave(a, even, odd)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, the number of buffers or channels is wrong.
    """

def div(A: Operand, B: Operand, C: Tile) -> None:
    """The first element divided by the second; integers truncate to zero.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``A`` and ``B`` may be scalars. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.div(a, b, out)``
    """

def empty(*shape: Extents | ElementType, dtype: ElementType = 'float32') -> Buffer:
    """Allocate a tensor for a result: ``C = T.empty((M, N), dtype)`` above ``with T.Kernel``, and ``return C`` below it.

    Example: ``T.empty((M, N), "float16")``

    Args:
        shape: the sizes, as one tuple or as separate arguments; the element type can follow a tuple.
        dtype: the element type.

    Raises:
        TileError: T160, the call is outside of a function under ``jit`` that contains ``with T.Kernel`` itself.
    """

def expm1(A: Tile, B: Tile) -> None:
    """e to the power of each element, minus one.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.expm1(a, out)``
    """

def flip(src: Tile, dst: Tile, axis: _int, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with the elements along the last axis in reverse order.

    ``axis`` must be the last axis, and ``dst`` must have the shape of ``src``.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.flip(a, out, 1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or ``axis`` is not the last axis; T112,
            the destination shares elements with an input.
    """

def gather(src: Tile, dst: Tile, indices: Tile, size: Sizes | None = None) -> None:
    """Write ``src[..., indices]`` to ``dst``: each index selects an element along the last axis of ``src``.

    ``indices`` must be int32 or int16 and have the shape of ``dst``. ``size`` is the shape of the part that is computed.

    Element types: int8, int16, uint16, int32, uint32, float16, bfloat16, float32.

    Example: ``T.gather(table, out, indices)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, ``dst`` shares elements with an
            input; T502, while the kernel runs, an index is outside ``src``.
    """

def ilogb(A: Tile, B: Tile) -> None:
    """Exponent of the element as a binary floating-point number.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.ilogb(a, out)``
    """

def interleave(*operands: Tile, channel_nums: _int = 2, size: Sizes | None = None) -> None:
    """``T.interleave(src0, src1, dst)``: write the elements of two sources alternately along the last axis of ``dst``.

    The last axis of ``dst`` must be twice as long as those of the sources. ``channel_nums`` must be 2. ``size`` is the shape of
    the part of each source that is used.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.interleave(a, b, out)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, the number of buffers or channels is wrong.
    """

def ldexp(A: Tile, B: Tile, C: Tile) -> None:
    """The first element times 2 to the power of the second.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.ldexp(a, b, out)``
    """

def leaky_relu(A: Tile, B: Operand, C: Tile) -> None:
    """x where x is positive, else x times the slope.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be the first input itself.

    Element types: float16, float32.

    Example: ``T.leaky_relu(a, b, out)``
    """

def ln(A: Tile, B: Tile) -> None:
    """Natural logarithm.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.ln(a, out)``
    """

def load_nd2nz(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Load a matrix from the global tensor ``src`` into L1, and change its layout from rows to fractals.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``; the sizes need not be constants.

    Example: ``T.load_nd2nz(A[row, 0], a)``

    Raises:
        TileError: T122, ``src`` is not in GM or ``dst`` not in L1; T131, the shapes differ; T130, a tile is not inside its
            buffer.
    """

def mod(A: Tile, B: Operand, C: Tile) -> None:
    """Remainder of the division that truncates toward zero.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar. ``C``
    may be an input itself.

    Element types: bool, int8, int16, int32, int64, float16, float32.

    Example: ``T.mod(a, b, out)``
    """

def modui(A: Tile, B: Operand, C: Tile) -> None:
    """Remainder of the division of two elements that are read as unsigned.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar. ``C``
    may be an input itself.

    Element types: bool, int8, int16, int32, int64.

    Example: ``T.modui(a, b, out)``
    """

def mul(A: Tile, B: Operand, C: Tile) -> None:
    """Product of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.mul(a, b, out)``
    """

def mul_add_dst(A: Tile, B: Tile, C: Tile) -> None:
    """Adds the product of two inputs to the destination.

    Writes ``C``, reads ``A``, ``B`` and ``C``. All buffers have the same shape; an input with size 1
    along an axis is repeated along it. ``C`` may be the first input itself.

    Element types: float16, float32, int16, int32.

    Example: ``T.mul_add_dst(a, b, out)``
    """

def npuir_abs(A: Tile, B: Tile) -> None:
    """Absolute value.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.npuir_abs(a, out)``
    """

def npuir_add(A: Tile, B: Operand, C: Tile) -> None:
    """Sum of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.npuir_add(a, b, out)``
    """

def npuir_and(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise and.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_and(a, b, out)``
    """

def npuir_arange(dst: Tile, strides: Number | Sequence[Number], offset: Number = 0) -> None:
    """Write ``offset + i * strides[0] + j * strides[1] + ...`` to element ``[i, j, ...]`` of ``dst``.

    ``strides`` must have one integer for each axis of ``dst``.

    Element types: int16, int32, int64, float16, float32.

    Example: ``T.npuir_arange(out, [64, 1], 0)``

    Raises:
        TileError: T110, an element type is not supported; T111, the number of strides is wrong; T145, an argument is not an
            integer.
    """

def npuir_atan(A: Tile, B: Tile) -> None:
    """Arc tangent.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_atan(a, out)``
    """

def npuir_atomic_add(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.npuir_atomic_add(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def npuir_atomic_addx2(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.npuir_atomic_addx2(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def npuir_atomic_addx4(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.npuir_atomic_addx4(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def npuir_bitwise_and(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise and.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_bitwise_and(a, b, out)``
    """

def npuir_bitwise_lshift(A: Tile, B: Operand, C: Tile) -> None:
    """Shift left by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int16, int32, int64.

    Example: ``T.npuir_bitwise_lshift(a, b, out)``
    """

def npuir_bitwise_not(A: Tile, B: Tile) -> None:
    """Bitwise complement.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_bitwise_not(a, out)``
    """

def npuir_bitwise_or(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise or.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_bitwise_or(a, b, out)``
    """

def npuir_bitwise_rshift(A: Tile, B: Operand, C: Tile, round: _bool = True) -> None:
    """Shift right by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64.

    Example: ``T.npuir_bitwise_rshift(a, b, out)``
    """

def npuir_bitwise_xor(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise exclusive or.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64.

    Example: ``T.npuir_bitwise_xor(a, b, out)``
    """

def npuir_cast(src: Tile, dst: Tile, size: Sizes | None = None, round_mode: str = 'rint') -> None:
    """Converts to the element type of the destination with a rounding mode.

    Writes ``dst``, reads ``src``. All buffers have the same shape; an input with size 1 along an axis
    is repeated along it.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32; ``dst`` may differ.

    Example: ``T.npuir_cast(a, out)``
    """

def npuir_clamp(src: Tile, dst: Tile, min_val: Operand, max_val: Operand) -> None:
    """Limits each element to a lower and an upper bound.

    Writes ``dst``, reads ``src``, ``min_val`` and ``max_val``. All buffers have the same shape; an
    input with size 1 along an axis is repeated along it. ``min_val`` and ``max_val`` may be scalars.
    ``dst`` may be the first input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.npuir_clamp(a, out, 0.0, 6.0)``
    """

def npuir_cmp(A: Tile, B: Operand, C: Tile, cmp_mod: str) -> None:
    """Compares two elements; the result is true or false.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32; ``C`` is bool or int8.

    Example: ``T.npuir_cmp(a, b, out, "lt")``
    """

def npuir_concat(*operands: Tile | _int, dim: Any = None, size: Sizes | None = None) -> None:
    """``T.npuir_concat(src0, src1, ..., dst, dim)``: write the sources to ``dst`` one after another along the axis ``dim``.

    Along ``dim``, the size of ``dst`` must be the sum of the sizes of the sources; all other sizes must be equal. ``size`` is
    the shape of the part of each source that is used.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_concat(a, b, out, 0)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, there are fewer than two buffers.
    """

def npuir_cos(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Cosine.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_cos(a, out)``
    """

def npuir_cummax(src: Tile, dst: Tile | None = None, dim: _int = 0, reverse: _bool = False) -> None:
    """Write the cumulative maximum of ``src`` along the axis ``dim`` to ``dst``; with ``reverse``, it starts at the last
    element.

    ``dst`` must have the shape of ``src``; without ``dst``, the result replaces ``src``. From a NaN on, the result is NaN. An
    axis of n elements takes log2(n) vector instructions, rounded up, one after another, each on the whole tile.

    Element types: int16, int32, int64, float16, float32, int8.

    Example: ``T.npuir_cummax(a, out, dim=1)``

    Raises:
        TileError: as ``T.cumsum``.
    """

def npuir_cumsum(src: Tile, dst: Tile | None = None, dim: _int = 0, reverse: _bool = False) -> None:
    """Write the cumulative sum of ``src`` along the axis ``dim`` to ``dst``; with ``reverse``, the sum starts at the last
    element.

    ``dst`` must have the shape of ``src``; without ``dst``, the result replaces ``src``. An axis of n elements takes log2(n)
    vector instructions, rounded up, one after another, each on the whole tile: 7 for 128 elements. A scan of 16 x 128 elements
    of float32 (R = 32) takes 7 * (22.5 + 32) = 382 cycles on Ascend910B2.

    Element types: int16, int32, int64, float16, float32, int8.

    Example: ``T.npuir_cumsum(a, out, dim=1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the operands overlap partly.
    """

def npuir_deinterleave(src: Tile, *targets: Tile, channel_nums: _int = 2, size: Sizes | None = None, index_mode: str
                       = 'ALL_CHANNELS') -> None:
    """``T.npuir_deinterleave(src, even, odd)``: write the elements at even indices of the last axis to one buffer, those at odd indices to
    another.

    The last axis of each destination must be half as long as that of ``src``. With ``index_mode`` ``"CHANNEL_0"`` (even) or
    ``"CHANNEL_1"`` (odd), there is only one destination. ``channel_nums`` must be 2. ``size`` is the shape of the part of
    ``src`` that is used.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_deinterleave(a, even, odd)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, the number of buffers or channels is wrong.
    """

def npuir_div(A: Operand, B: Operand, C: Tile) -> None:
    """The first element divided by the second; integers truncate to zero.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``A`` and ``B`` may be scalars. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.npuir_div(a, b, out)``
    """

def npuir_erf(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Error function.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_erf(a, out)``
    """

def npuir_exp(A: Tile, B: Tile) -> None:
    """e to the power of each element.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_exp(a, out)``
    """

def npuir_exp2(A: Tile, B: Tile, Tmp: Tile | None = None) -> None:
    """2 to the power of each element.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_exp2(a, out)``
    """

def npuir_expm1(A: Tile, B: Tile) -> None:
    """e to the power of each element, minus one.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_expm1(a, out)``
    """

def npuir_flip(src: Tile, dst: Tile, axis: _int, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with the elements along the last axis in reverse order.

    ``axis`` must be the last axis, and ``dst`` must have the shape of ``src``.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_flip(a, out, 1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or ``axis`` is not the last axis; T112,
            the destination shares elements with an input.
    """

def npuir_floor(A: Tile, B: Tile) -> None:
    """The largest integer that is not greater.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be the first input itself.

    Element types: float16, float32.

    Example: ``T.npuir_floor(a, out)``
    """

def npuir_floordiv(A: Tile, B: Operand, C: Tile) -> None:
    """The first element divided by the second, rounded down.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be the first input itself.

    Element types: int8, int16, int32, int64.

    Example: ``T.npuir_floordiv(a, b, out)``
    """

def npuir_gather(src: Tile, dst: Tile, indices: Tile, size: Sizes | None = None) -> None:
    """Write ``src[..., indices]`` to ``dst``: each index selects an element along the last axis of ``src``.

    ``indices`` must be int32 or int16 and have the shape of ``dst``. ``size`` is the shape of the part that is computed.

    Element types: int8, int16, uint16, int32, uint32, float16, bfloat16, float32.

    Example: ``T.npuir_gather(table, out, indices)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, ``dst`` shares elements with an
            input; T502, while the kernel runs, an index is outside ``src``.
    """

def npuir_ilogb(A: Tile, B: Tile) -> None:
    """Exponent of the element as a binary floating-point number.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_ilogb(a, out)``
    """

def npuir_interleave(*operands: Tile, channel_nums: _int = 2, size: Sizes | None = None) -> None:
    """``T.npuir_interleave(src0, src1, dst)``: write the elements of two sources alternately along the last axis of ``dst``.

    The last axis of ``dst`` must be twice as long as those of the sources. ``channel_nums`` must be 2. ``size`` is the shape of
    the part of each source that is used.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_interleave(a, b, out)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, the number of buffers or channels is wrong.
    """

def npuir_isinf(A: Tile, B: Tile) -> None:
    """Whether the element is an infinity.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it.

    Element types: float16, float32; ``B`` is bool or int8.

    Example: ``T.npuir_isinf(a, out)``
    """

def npuir_isnan(A: Tile, B: Tile) -> None:
    """Whether the element is not a number.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it.

    Element types: float16, float32; ``B`` is bool or int8.

    Example: ``T.npuir_isnan(a, out)``
    """

def npuir_ldexp(A: Tile, B: Tile, C: Tile) -> None:
    """The first element times 2 to the power of the second.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_ldexp(a, b, out)``
    """

def npuir_ln(A: Tile, B: Tile) -> None:
    """Natural logarithm.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_ln(a, out)``
    """

def npuir_load_nd2nz(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Load a matrix from the global tensor ``src`` into L1, and change its layout from rows to fractals.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``; the sizes need not be constants.

    Example: ``T.npuir_load_nd2nz(A[row, 0], a)``

    Raises:
        TileError: T122, ``src`` is not in GM or ``dst`` not in L1; T131, the shapes differ; T130, a tile is not inside its
            buffer.
    """

def npuir_log10(A: Tile, B: Tile) -> None:
    """Logarithm to base 10.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_log10(a, out)``
    """

def npuir_log1p(A: Tile, B: Tile) -> None:
    """Natural logarithm of one plus the element.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_log1p(a, out)``
    """

def npuir_log2(A: Tile, B: Tile, Tmp: Tile | None = None) -> None:
    """Logarithm to base 2.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_log2(a, out)``
    """

def npuir_max(A: Tile, B: Operand, C: Tile) -> None:
    """The larger of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_max(a, b, out)``
    """

def npuir_min(A: Tile, B: Operand, C: Tile) -> None:
    """The smaller of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_min(a, b, out)``
    """

def npuir_mod(A: Tile, B: Operand, C: Tile) -> None:
    """Remainder of the division that truncates toward zero.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar. ``C``
    may be an input itself.

    Element types: bool, int8, int16, int32, int64, float16, float32.

    Example: ``T.npuir_mod(a, b, out)``
    """

def npuir_modui(A: Tile, B: Operand, C: Tile) -> None:
    """Remainder of the division of two elements that are read as unsigned.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar. ``C``
    may be an input itself.

    Element types: bool, int8, int16, int32, int64.

    Example: ``T.npuir_modui(a, b, out)``
    """

def npuir_mul(A: Tile, B: Operand, C: Tile) -> None:
    """Product of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.npuir_mul(a, b, out)``
    """

def npuir_not(A: Tile, B: Tile) -> None:
    """Bitwise complement.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_not(a, out)``
    """

def npuir_or(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise or.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_or(a, b, out)``
    """

def npuir_pad(src: Tile, dst: Tile, pad_value: Number, low: Sizes, high: Sizes, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with ``pad_value`` before and after it along each axis.

    Along axis ``i``, ``dst`` gets ``low[i]`` elements ``pad_value``, then the elements of ``src``, then ``high[i]`` elements
    ``pad_value``. ``size`` is the shape of the part of ``src`` that is used.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_pad(a, out, 0.0, [0, 2], [0, 6])``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input.
    """

def npuir_pow(A: Tile, B: Tile, C: Tile) -> None:
    """The first element to the power of the second.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: int8, int16, int32, float16, float32.

    Example: ``T.npuir_pow(a, b, out)``
    """

def npuir_print(obj: Operand, msg: str = '', hex: _bool = False) -> None:
    """Print the text ``msg``, and then the elements of a buffer or slice, or a scalar, when the statement is executed.

    With ``hex``, integers are printed in base 16.

    Example: ``T.npuir_print(a, msg="a")``
    """

def npuir_rec(A: Tile, B: Tile) -> None:
    """Reciprocal.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_rec(a, out)``
    """

def npuir_reciprocal(A: Tile, B: Tile) -> None:
    """Reciprocal.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_reciprocal(a, out)``
    """

def npuir_relu(A: Tile, B: Tile) -> None:
    """The larger of the element and zero.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32, int32.

    Example: ``T.npuir_relu(a, out)``
    """

def npuir_rsqrt(A: Tile, B: Tile) -> None:
    """Reciprocal square root.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_rsqrt(a, out)``
    """

def npuir_select(Cond: Tile, A: Operand, B: Operand, Out: Tile) -> None:
    """The element of the second input where the mask is set, else that of the third.

    Writes ``Out``, reads ``Cond``, ``A`` and ``B``. All buffers have the same shape; an input with size
    1 along an axis is repeated along it. ``A`` and ``B`` may be scalars. ``Out`` may be an input
    itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32; ``Cond`` is bool or int8.

    Example: ``T.npuir_select(mask, a, b, out)``
    """

def npuir_shl(A: Tile, B: Operand, C: Tile) -> None:
    """Shift left by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int16, int32, int64.

    Example: ``T.npuir_shl(a, b, out)``
    """

def npuir_shr(A: Tile, B: Operand, C: Tile, round: _bool = True) -> None:
    """Shift right by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64.

    Example: ``T.npuir_shr(a, b, out)``
    """

def npuir_sigmoid(A: Tile, B: Tile) -> None:
    """1 / (1 + exp(-x)).

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be the first input itself.

    Element types: float16, float32.

    Example: ``T.npuir_sigmoid(a, out)``
    """

def npuir_sin(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Sine.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_sin(a, out)``
    """

def npuir_sort(src: Tile, dst_value: Tile, dst_index: Tile, descending: _bool = False, sort_axis: _int = -1) -> None:
    """Write the elements of ``src`` to ``dst_value``, sorted along the last axis, and the positions that they had along this
    axis to ``dst_index``.

    ``src`` and ``dst_value`` are float32 or float16, ``dst_index`` is int32; all have the same shape. Of equal elements, the
    one with the smaller position comes first here; the hardware promises no order of equal elements.

    Element types: float16, float32.

    Example: ``T.npuir_sort(scores, values, places, descending=True)``

    Args:
        src: the elements.
        dst_value: the destination of the sorted elements.
        dst_index: the destination of their positions.
        descending: whether the largest element comes first; otherwise the smallest.
        sort_axis: the last axis, as its number or as -1.

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes differ, or ``sort_axis`` is not the last axis; T112,
            a destination shares elements with another operand; T145, ``descending`` is not True or False; T201, an operand is
            not in UB.
    """

def npuir_sqrt(A: Tile, B: Tile) -> None:
    """Square root.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_sqrt(a, out)``
    """

def npuir_store_fixpipe(src: Tile, dst: Tile, size: Sizes | None = None, enable_nz2nd: _bool = False, channel_split:
                        _bool = False, pre_relu_mode: str = '') -> None:
    """Store a matrix from L0C to the global tensor ``dst``, converted to the element type of ``dst``.

    float32 can be converted to float16 or bfloat16, and int32 to int8. Operands and ``size`` are as for ``T.copy``. Writes
    ``dst``.

    Example: ``T.npuir_store_fixpipe(c, C[row, 0], enable_nz2nd=True)``

    Args:
        src: the matrix in L0C.
        dst: the tile of a global tensor.
        size: the shape of the tile, as for ``T.copy``.
        enable_nz2nd: whether the layout changes from fractals to rows; must be True.
        channel_split: must be False.
        pre_relu_mode: ``"relu"`` to store negative elements as 0; ``""`` to store them unchanged.

    Raises:
        TileError: T122, ``src`` is not in L0C or ``dst`` not in GM; T131, the shapes differ; T145, there is no such
            ``pre_relu_mode``; T190, an argument that the hardware or this package does not support.
    """

def npuir_store_nz2nd(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Store a matrix from L1 or L0C to the global tensor ``dst``, and change its layout from fractals to rows.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``.

    Example: ``T.npuir_store_nz2nd(c, C[row, 0])``

    Raises:
        TileError: T122, ``src`` is not in L1 or L0C, or ``dst`` not in GM; T131, the shapes differ.
    """

def npuir_sub(A: Operand, B: Operand, C: Tile) -> None:
    """The first element minus the second.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``A`` and ``B`` may be scalars. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.npuir_sub(a, b, out)``
    """

def npuir_tan(A: Tile, B: Tile) -> None:
    """Tangent.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_tan(a, out)``
    """

def npuir_tanh(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Hyperbolic tangent.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_tanh(a, out)``
    """

def npuir_transpose(src: Tile, dst: Tile, permutation: Sequence[_int] | None = None, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with two of its axes swapped.

    ``permutation[i]`` is the axis of ``src`` that becomes axis ``i`` of ``dst``; without it, the last two axes are swapped.
    ``size`` is the shape of the part that is computed.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.npuir_transpose(a, out, [1, 0])``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or more than two axes change; T112, the
            destination shares elements with an input; T145, not a permutation.
    """

def npuir_vcos(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Cosine.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_vcos(a, out)``
    """

def npuir_verf(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Error function.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_verf(a, out)``
    """

def npuir_vsin(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Sine.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_vsin(a, out)``
    """

def npuir_vtanh(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Hyperbolic tangent.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.npuir_vtanh(a, out)``
    """

def npuir_xor(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise exclusive or.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64.

    Example: ``T.npuir_xor(a, b, out)``
    """

def pad(src: Tile, dst: Tile, pad_value: Number, low: Sizes, high: Sizes, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with ``pad_value`` before and after it along each axis.

    Along axis ``i``, ``dst`` gets ``low[i]`` elements ``pad_value``, then the elements of ``src``, then ``high[i]`` elements
    ``pad_value``. ``size`` is the shape of the part of ``src`` that is used.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.pad(a, out, 0.0, [0, 2], [0, 6])``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input.
    """

def print(obj: Operand, msg: str = '', hex: _bool = False) -> None:
    """Print the text ``msg``, and then the elements of a buffer or slice, or a scalar, when the statement is executed.

    With ``hex``, integers are printed in base 16.

    Example: ``T.print(a, msg="a")``
    """

def reciprocal(A: Tile, B: Tile) -> None:
    """Reciprocal.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.reciprocal(a, out)``
    """

def reduce_all(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool = True,
               real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True, tmp: Tile |
               None = None) -> Call | None:
    """Write 1 where no element is zero, else 0, along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_all(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def reduce_any(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool = True,
               real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True, tmp: Tile |
               None = None) -> Call | None:
    """Write 1 where any element is not zero, else 0, along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_any(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def reduce_bitand(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool =
                  True, real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True,
                  tmp: Tile | None = None) -> Call | None:
    """Write the bitwise and of the elements along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_bitand(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def reduce_bitor(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool =
                 True, real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True, tmp:
                 Tile | None = None) -> Call | None:
    """Write the bitwise or of the elements along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_bitor(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def reduce_bitxor(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool =
                  True, real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True,
                  tmp: Tile | None = None) -> Call | None:
    """Write the bitwise exclusive or of the elements along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_bitxor(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def reduce_max(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool = True,
               real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True, tmp: Tile |
               None = None) -> Call | None:
    """Write the largest element along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_max(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def reduce_min(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool = True,
               real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True, tmp: Tile |
               None = None) -> Call | None:
    """Write the smallest element along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_min(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def reduce_prod(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool =
                True, real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True, tmp:
                Tile | None = None) -> Call | None:
    """Write the product of the elements along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_prod(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def reduce_sum(buffer: Tile | Declared, out: Tile | Declared, dim: _int = -1, *options: object, clear: _bool = True,
               real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: _bool = True, tmp: Tile |
               None = None) -> Call | None:
    """Write the sum of the elements along the axis ``dim`` of ``buffer`` to ``out``.

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``T.reduce_sum(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

def relu(A: Tile, B: Tile) -> None:
    """The larger of the element and zero.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32, int32.

    Example: ``T.relu(a, out)``
    """

def select(Cond: Tile, A: Operand, B: Operand, Out: Tile) -> None:
    """The element of the second input where the mask is set, else that of the third.

    Writes ``Out``, reads ``Cond``, ``A`` and ``B``. All buffers have the same shape; an input with size
    1 along an axis is repeated along it. ``A`` and ``B`` may be scalars. ``Out`` may be an input
    itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32; ``Cond`` is bool or int8.

    Example: ``T.select(mask, a, b, out)``
    """

def shmem_get_nbi(dst: Tile, src: Tile, nelems: Number, newPe: Number) -> None:
    """Write ``nelems`` elements of the tensor ``src`` of the card ``newPe`` to the tensor ``dst`` of this card.

    Operands are as for ``T.shmem_put_nbi``; here ``src`` is on the symmetric heap.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.shmem_get_nbi(B, A, 1024, (rank + 1) % ranks)``

    Raises:
        TileError: as ``T.shmem_put_nbi``, with T430 for ``src``.
    """

def shmem_put_nbi(dst: Tile, src: Tile, nelems: Number, newPe: Number) -> None:
    """Write ``nelems`` elements of the tensor ``src`` of this card to the tensor ``dst`` of the card ``newPe``.

    The elements are consecutive in memory and begin at the first element of each operand: a tensor, a slice, or an element
    ``A[i, j]``. ``dst`` is on the symmetric heap (``import shmem``); on the other card, the elements are written to the same
    place of the heap. The data pass through a buffer in UB that the compiler allocates. The call does not wait until the data
    have arrived, and tells the other card nothing: see docs/pods.md.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.shmem_put_nbi(B, A, 1024, (rank + 1) % ranks)``

    Raises:
        TileError: T110, the element types differ, or are not supported; T111, there are not so many elements; T145, ``nelems``
            is negative; T201, an operand is not a tensor. While the kernel runs: T430, ``dst`` is not on the symmetric heap;
            T431, there is no such card; T502, an access is outside of a tensor.
    """

def shmem_ub_atomic_add_nbi(ub: Tile, dst: Tile, nelems: Number, newPe: Number, strelem: Number = 0) -> None:
    """Add ``nelems`` elements of the buffer ``ub`` in UB to the tensor ``dst`` of the card ``newPe``.

    Each sum is written to ``dst``. Operands are as for ``T.shmem_ub_put_nbi``. Cards may add to the same elements at the same
    time; the order of the additions is not determined.

    Element types: float32, float16, bfloat16, int8, int16, int32.

    Example: ``T.shmem_ub_atomic_add_nbi(tile, B, 1024, (rank + 1) % ranks)``

    Raises:
        TileError: as ``T.shmem_ub_put_nbi``.
    """

def shmem_ub_get_nbi(dst: Tile, src: Tile, nelems: Number, newPe: Number) -> None:
    """Write ``nelems`` elements of the tensor ``src`` of the card ``newPe`` to the buffer ``dst`` in UB.

    The elements are consecutive in memory and begin at the first element of each operand. ``src`` is on the symmetric heap, as
    for ``T.shmem_get_nbi``.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.shmem_ub_get_nbi(tile, A, 1024, (rank + 1) % ranks)``

    Raises:
        TileError: as ``T.shmem_ub_put_nbi``, with T430 for ``src``.
    """

def shmem_ub_put_nbi(ub: Tile, dst: Tile, nelems: Number, newPe: Number, strelem: Number = 0) -> None:
    """Write ``nelems`` elements of the buffer ``ub`` in UB to the tensor ``dst`` of the card ``newPe``.

    The elements are consecutive in memory. They begin at the first element of ``ub``, and in ``dst`` ``strelem`` elements after
    its first one. ``dst`` is on the symmetric heap, as for ``T.shmem_put_nbi``. ``ub`` can be written again when pipe MTE3 has
    finished the call. If the whole buffer ``ub`` has fewer than ``nelems`` elements, all of them are written, with a warning
    (T113): the hardware would write the memory after the buffer too.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.shmem_ub_put_nbi(tile, B, 1024, (rank + 1) % ranks, 2048)``

    Raises:
        TileError: T110, the element types differ, or are not supported; T111, there are not so many elements; T145, ``nelems``
            or ``strelem`` is negative; T201, ``ub`` is not in UB, or ``dst`` is not a tensor. While the kernel runs: as
            ``T.shmem_put_nbi``.
    """

def silu(A: Tile, B: Tile) -> None:
    """x / (1 + exp(-x)).

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be the first input itself.

    Element types: float16, float32.

    Example: ``T.silu(a, out)``
    """

def store_fixpipe(src: Tile, dst: Tile, size: Sizes | None = None, enable_nz2nd: _bool = False, channel_split: _bool
                  = False, pre_relu_mode: str = '') -> None:
    """Store a matrix from L0C to the global tensor ``dst``, converted to the element type of ``dst``.

    float32 can be converted to float16 or bfloat16, and int32 to int8. Operands and ``size`` are as for ``T.copy``. Writes
    ``dst``.

    Example: ``T.store_fixpipe(c, C[row, 0], enable_nz2nd=True)``

    Args:
        src: the matrix in L0C.
        dst: the tile of a global tensor.
        size: the shape of the tile, as for ``T.copy``.
        enable_nz2nd: whether the layout changes from fractals to rows; must be True.
        channel_split: must be False.
        pre_relu_mode: ``"relu"`` to store negative elements as 0; ``""`` to store them unchanged.

    Raises:
        TileError: T122, ``src`` is not in L0C or ``dst`` not in GM; T131, the shapes differ; T145, there is no such
            ``pre_relu_mode``; T190, an argument that the hardware or this package does not support.
    """

def store_nz2nd(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Store a matrix from L1 or L0C to the global tensor ``dst``, and change its layout from fractals to rows.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``.

    Example: ``T.store_nz2nd(c, C[row, 0])``

    Raises:
        TileError: T122, ``src`` is not in L1 or L0C, or ``dst`` not in GM; T131, the shapes differ.
    """

def sub(A: Operand, B: Operand, C: Tile) -> None:
    """The first element minus the second.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``A`` and ``B`` may be scalars. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.sub(a, b, out)``
    """

def transpose(src: Tile, dst: Tile, permutation: Sequence[_int] | None = None, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with two of its axes swapped.

    ``permutation[i]`` is the axis of ``src`` that becomes axis ``i`` of ``dst``; without it, the last two axes are swapped.
    ``size`` is the shape of the part that is computed.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.transpose(a, out, [1, 0])``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or more than two axes change; T112, the
            destination shares elements with an input; T145, not a permutation.
    """

def vabs(A: Tile, B: Tile) -> None:
    """Absolute value.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.vabs(a, out)``
    """

def vadd(A: Tile, B: Operand, C: Tile) -> None:
    """Sum of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.vadd(a, b, out)``
    """

def vand(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise and.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.vand(a, b, out)``
    """

def varange(dst: Tile, strides: Number | Sequence[Number], offset: Number = 0) -> None:
    """Write ``offset + i * strides[0] + j * strides[1] + ...`` to element ``[i, j, ...]`` of ``dst``.

    ``strides`` must have one integer for each axis of ``dst``.

    Element types: int16, int32, int64, float16, float32.

    Example: ``T.varange(out, [64, 1], 0)``

    Raises:
        TileError: T110, an element type is not supported; T111, the number of strides is wrong; T145, an argument is not an
            integer.
    """

def vatan(A: Tile, B: Tile) -> None:
    """Arc tangent.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vatan(a, out)``
    """

def vatomic_add(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.vatomic_add(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def vatomic_addx2(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.vatomic_addx2(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def vatomic_addx4(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``T.vatomic_addx4(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """

def vbitwise_and(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise and.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.vbitwise_and(a, b, out)``
    """

def vbitwise_lshift(A: Tile, B: Operand, C: Tile) -> None:
    """Shift left by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int16, int32, int64.

    Example: ``T.vbitwise_lshift(a, b, out)``
    """

def vbitwise_not(A: Tile, B: Tile) -> None:
    """Bitwise complement.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.vbitwise_not(a, out)``
    """

def vbitwise_or(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise or.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.vbitwise_or(a, b, out)``
    """

def vbitwise_rshift(A: Tile, B: Operand, C: Tile, round: _bool = True) -> None:
    """Shift right by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64.

    Example: ``T.vbitwise_rshift(a, b, out)``
    """

def vbitwise_xor(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise exclusive or.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64.

    Example: ``T.vbitwise_xor(a, b, out)``
    """

def vcast(src: Tile, dst: Tile, size: Sizes | None = None, round_mode: str = 'rint') -> None:
    """Converts to the element type of the destination with a rounding mode.

    Writes ``dst``, reads ``src``. All buffers have the same shape; an input with size 1 along an axis
    is repeated along it.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32; ``dst`` may differ.

    Example: ``T.vcast(a, out)``
    """

def vclamp(src: Tile, dst: Tile, min_val: Operand, max_val: Operand) -> None:
    """Limits each element to a lower and an upper bound.

    Writes ``dst``, reads ``src``, ``min_val`` and ``max_val``. All buffers have the same shape; an
    input with size 1 along an axis is repeated along it. ``min_val`` and ``max_val`` may be scalars.
    ``dst`` may be the first input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.vclamp(a, out, 0.0, 6.0)``
    """

def vcmp(A: Tile, B: Operand, C: Tile, cmp_mod: str) -> None:
    """Compares two elements; the result is true or false.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32; ``C`` is bool or int8.

    Example: ``T.vcmp(a, b, out, "lt")``
    """

def vconcat(*operands: Tile | _int, dim: Any = None, size: Sizes | None = None) -> None:
    """``T.vconcat(src0, src1, ..., dst, dim)``: write the sources to ``dst`` one after another along the axis ``dim``.

    Along ``dim``, the size of ``dst`` must be the sum of the sizes of the sources; all other sizes must be equal. ``size`` is
    the shape of the part of each source that is used.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.vconcat(a, b, out, 0)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, there are fewer than two buffers.
    """

def vcos(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Cosine.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vcos(a, out)``
    """

def vcummax(src: Tile, dst: Tile | None = None, dim: _int = 0, reverse: _bool = False) -> None:
    """Write the cumulative maximum of ``src`` along the axis ``dim`` to ``dst``; with ``reverse``, it starts at the last
    element.

    ``dst`` must have the shape of ``src``; without ``dst``, the result replaces ``src``. From a NaN on, the result is NaN. An
    axis of n elements takes log2(n) vector instructions, rounded up, one after another, each on the whole tile.

    Element types: int16, int32, int64, float16, float32, int8.

    Example: ``T.vcummax(a, out, dim=1)``

    Raises:
        TileError: as ``T.cumsum``.
    """

def vcumsum(src: Tile, dst: Tile | None = None, dim: _int = 0, reverse: _bool = False) -> None:
    """Write the cumulative sum of ``src`` along the axis ``dim`` to ``dst``; with ``reverse``, the sum starts at the last
    element.

    ``dst`` must have the shape of ``src``; without ``dst``, the result replaces ``src``. An axis of n elements takes log2(n)
    vector instructions, rounded up, one after another, each on the whole tile: 7 for 128 elements. A scan of 16 x 128 elements
    of float32 (R = 32) takes 7 * (22.5 + 32) = 382 cycles on Ascend910B2.

    Element types: int16, int32, int64, float16, float32, int8.

    Example: ``T.vcumsum(a, out, dim=1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the operands overlap partly.
    """

def vdeinterleave(src: Tile, *targets: Tile, channel_nums: _int = 2, size: Sizes | None = None, index_mode: str =
                  'ALL_CHANNELS') -> None:
    """``T.vdeinterleave(src, even, odd)``: write the elements at even indices of the last axis to one buffer, those at odd indices to
    another.

    The last axis of each destination must be half as long as that of ``src``. With ``index_mode`` ``"CHANNEL_0"`` (even) or
    ``"CHANNEL_1"`` (odd), there is only one destination. ``channel_nums`` must be 2. ``size`` is the shape of the part of
    ``src`` that is used.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.vdeinterleave(a, even, odd)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, the number of buffers or channels is wrong.
    """

def vdiv(A: Operand, B: Operand, C: Tile) -> None:
    """The first element divided by the second; integers truncate to zero.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``A`` and ``B`` may be scalars. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.vdiv(a, b, out)``
    """

def verf(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Error function.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.verf(a, out)``
    """

def vexp(A: Tile, B: Tile) -> None:
    """e to the power of each element.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vexp(a, out)``
    """

def vexp2(A: Tile, B: Tile, Tmp: Tile | None = None) -> None:
    """2 to the power of each element.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vexp2(a, out)``
    """

def vexpm1(A: Tile, B: Tile) -> None:
    """e to the power of each element, minus one.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vexpm1(a, out)``
    """

def vextract_pairs(src: Tile, values: Tile, indices: Tile) -> None:
    """Write the scores of records of 8 bytes (``T.vsort32``) to ``values``, and the bits of their indices to ``indices``.

    ``src`` and ``values`` are float32, ``indices`` is int32 or uint32; ``src`` has twice as many elements as each of the
    others. Indices are not converted. Each operand has one axis.

    Example: ``T.vextract_pairs(records, values, indices)``

    Raises:
        TileError: T110, an element type is not supported; T111, the numbers of elements do not fit; T112, the operands share
            elements; T201, an operand is not in UB.
    """

def vflip(src: Tile, dst: Tile, axis: _int, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with the elements along the last axis in reverse order.

    ``axis`` must be the last axis, and ``dst`` must have the shape of ``src``.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.vflip(a, out, 1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or ``axis`` is not the last axis; T112,
            the destination shares elements with an input.
    """

def vfloor(A: Tile, B: Tile) -> None:
    """The largest integer that is not greater.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be the first input itself.

    Element types: float16, float32.

    Example: ``T.vfloor(a, out)``
    """

def vfloordiv(A: Tile, B: Operand, C: Tile) -> None:
    """The first element divided by the second, rounded down.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be the first input itself.

    Element types: int8, int16, int32, int64.

    Example: ``T.vfloordiv(a, b, out)``
    """

def vgather(src: Tile, dst: Tile, indices: Tile, size: Sizes | None = None) -> None:
    """Write ``src[..., indices]`` to ``dst``: each index selects an element along the last axis of ``src``.

    ``indices`` must be int32 or int16 and have the shape of ``dst``. ``size`` is the shape of the part that is computed.

    Element types: int8, int16, uint16, int32, uint32, float16, bfloat16, float32.

    Example: ``T.vgather(table, out, indices)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, ``dst`` shares elements with an
            input; T502, while the kernel runs, an index is outside ``src``.
    """

def vilogb(A: Tile, B: Tile) -> None:
    """Exponent of the element as a binary floating-point number.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vilogb(a, out)``
    """

def vinterleave(*operands: Tile, channel_nums: _int = 2, size: Sizes | None = None) -> None:
    """``T.vinterleave(src0, src1, dst)``: write the elements of two sources alternately along the last axis of ``dst``.

    The last axis of ``dst`` must be twice as long as those of the sources. ``channel_nums`` must be 2. ``size`` is the shape of
    the part of each source that is used.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.vinterleave(a, b, out)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, the number of buffers or channels is wrong.
    """

def visinf(A: Tile, B: Tile) -> None:
    """Whether the element is an infinity.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it.

    Element types: float16, float32; ``B`` is bool or int8.

    Example: ``T.visinf(a, out)``
    """

def visnan(A: Tile, B: Tile) -> None:
    """Whether the element is not a number.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it.

    Element types: float16, float32; ``B`` is bool or int8.

    Example: ``T.visnan(a, out)``
    """

def vldexp(A: Tile, B: Tile, C: Tile) -> None:
    """The first element times 2 to the power of the second.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vldexp(a, b, out)``
    """

def vln(A: Tile, B: Tile) -> None:
    """Natural logarithm.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vln(a, out)``
    """

def vlog10(A: Tile, B: Tile) -> None:
    """Logarithm to base 10.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vlog10(a, out)``
    """

def vlog1p(A: Tile, B: Tile) -> None:
    """Natural logarithm of one plus the element.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vlog1p(a, out)``
    """

def vlog2(A: Tile, B: Tile, Tmp: Tile | None = None) -> None:
    """Logarithm to base 2.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vlog2(a, out)``
    """

def vmax(A: Tile, B: Operand, C: Tile) -> None:
    """The larger of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.vmax(a, b, out)``
    """

def vmin(A: Tile, B: Operand, C: Tile) -> None:
    """The smaller of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.vmin(a, b, out)``
    """

def vmod(A: Tile, B: Operand, C: Tile) -> None:
    """Remainder of the division that truncates toward zero.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar. ``C``
    may be an input itself.

    Element types: bool, int8, int16, int32, int64, float16, float32.

    Example: ``T.vmod(a, b, out)``
    """

def vmodui(A: Tile, B: Operand, C: Tile) -> None:
    """Remainder of the division of two elements that are read as unsigned.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``B`` may be a scalar. ``C``
    may be an input itself.

    Element types: bool, int8, int16, int32, int64.

    Example: ``T.vmodui(a, b, out)``
    """

def vmrgsort(src0: Tile, src1: Tile, src2: Tile, src3: Tile, dst: Tile, element_lengths: Sequence[_int], valid_bit:
             _int = 15, repeat_times: _int = 1, exhausted_suspension: _bool = False) -> None:
    """Merge 2 to 4 queues of records, each in descending order of its scores (``T.vsort32``), and write the result to ``dst``.

    ``element_lengths`` are four constants from 0 to 4095: how many records of 8 bytes each queue has. ``valid_bit`` is 3, 7 or
    15: the first 2, 3 or 4 queues take part. Of equal scores, the one of the first queue comes first. A queue of length 0 has
    no part. ``dst`` needs room for all records, and shares no element with a queue.

    With ``repeat_times`` of 2 to 255, that many merges follow one another in memory: the four queues have equal lengths and lie
    one after another in one buffer, each group of queues after the one before, and so do the results in ``dst``.

    With ``exhausted_suspension`` the merge ends when a queue is exhausted. The elements of ``dst`` after the records that were
    merged until then are undefined.

    Element types: float16, float32.

    Example: ``T.vmrgsort(a, b, a, a, out, (32, 32, 0, 0), valid_bit=3)``

    Raises:
        TileError: T110, an element type is not supported; T111, an operand has too few elements or several axes, or the queues
            of repeated merges are not adjacent; T112, ``dst`` shares elements with a queue; T145, another argument is none of
            these; T201, an operand is not in UB; T510, ``dst`` does not begin at a multiple of 32 bytes, or a queue does not
            begin at a multiple of 8 bytes.
    """

def vmul(A: Tile, B: Operand, C: Tile) -> None:
    """Product of two elements.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.vmul(a, b, out)``
    """

def vnot(A: Tile, B: Tile) -> None:
    """Bitwise complement.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.vnot(a, out)``
    """

def vor(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise or.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

    Example: ``T.vor(a, b, out)``
    """

def vpad(src: Tile, dst: Tile, pad_value: Number, low: Sizes, high: Sizes, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with ``pad_value`` before and after it along each axis.

    Along axis ``i``, ``dst`` gets ``low[i]`` elements ``pad_value``, then the elements of ``src``, then ``high[i]`` elements
    ``pad_value``. ``size`` is the shape of the part of ``src`` that is used.

    Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.vpad(a, out, 0.0, [0, 2], [0, 6])``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input.
    """

def vpow(A: Tile, B: Tile, C: Tile) -> None:
    """The first element to the power of the second.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: int8, int16, int32, float16, float32.

    Example: ``T.vpow(a, b, out)``
    """

def vrec(A: Tile, B: Tile) -> None:
    """Reciprocal.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vrec(a, out)``
    """

def vreciprocal(A: Tile, B: Tile) -> None:
    """Reciprocal.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vreciprocal(a, out)``
    """

def vrelu(A: Tile, B: Tile) -> None:
    """The larger of the element and zero.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32, int32.

    Example: ``T.vrelu(a, out)``
    """

def vrsqrt(A: Tile, B: Tile) -> None:
    """Reciprocal square root.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vrsqrt(a, out)``
    """

def vselect(Cond: Tile, A: Operand, B: Operand, Out: Tile) -> None:
    """The element of the second input where the mask is set, else that of the third.

    Writes ``Out``, reads ``Cond``, ``A`` and ``B``. All buffers have the same shape; an input with size
    1 along an axis is repeated along it. ``A`` and ``B`` may be scalars. ``Out`` may be an input
    itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32; ``Cond`` is bool or int8.

    Example: ``T.vselect(mask, a, b, out)``
    """

def vshl(A: Tile, B: Operand, C: Tile) -> None:
    """Shift left by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int16, int32, int64.

    Example: ``T.vshl(a, b, out)``
    """

def vshr(A: Tile, B: Operand, C: Tile, round: _bool = True) -> None:
    """Shift right by a scalar.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``B`` may be a scalar. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64.

    Example: ``T.vshr(a, b, out)``
    """

def vsigmoid(A: Tile, B: Tile) -> None:
    """1 / (1 + exp(-x)).

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be the first input itself.

    Element types: float16, float32.

    Example: ``T.vsigmoid(a, out)``
    """

def vsin(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Sine.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vsin(a, out)``
    """

def vsort(src: Tile, dst_value: Tile, dst_index: Tile, descending: _bool = False, sort_axis: _int = -1) -> None:
    """Write the elements of ``src`` to ``dst_value``, sorted along the last axis, and the positions that they had along this
    axis to ``dst_index``.

    ``src`` and ``dst_value`` are float32 or float16, ``dst_index`` is int32; all have the same shape. Of equal elements, the
    one with the smaller position comes first here; the hardware promises no order of equal elements.

    Element types: float16, float32.

    Example: ``T.vsort(scores, values, places, descending=True)``

    Args:
        src: the elements.
        dst_value: the destination of the sorted elements.
        dst_index: the destination of their positions.
        descending: whether the largest element comes first; otherwise the smallest.
        sort_axis: the last axis, as its number or as -1.

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes differ, or ``sort_axis`` is not the last axis; T112,
            a destination shares elements with another operand; T145, ``descending`` is not True or False; T201, an operand is
            not in UB.
    """

def vsort32(src: Tile, indices: Tile, dst: Tile, repeat_times: _int = 1) -> None:
    """Sort ``repeat_times`` groups of 32 scores, each in descending order, and write records of score and index to ``dst``.

    The groups are the first ``32 * repeat_times`` elements of ``src``; their indices, int32 or uint32, are the elements of
    ``indices`` at the same positions. A record has 8 bytes: the score, and the bits of the index in the last 4 bytes. ``dst``
    has the element type of ``src``; float32 records have 2 elements, float16 records have 4, of which the second is reserved.
    The groups are not merged (``T.vmrgsort``). Each operand has one axis and begins at a multiple of 32 bytes. Upstream takes
    float32 only.

    Element types: float16, float32.

    Example: ``T.vsort32(scores, indices, records, repeat_times=2)``

    Raises:
        TileError: T110, an element type is not supported; T111, an operand has too few elements or several axes; T112, ``dst``
            shares elements with an input; T145, ``repeat_times`` is not a constant from 1 to 255; T201, an operand is not in
            UB; T510, a slice does not begin at a multiple of 32 bytes.
    """

def vsqrt(A: Tile, B: Tile) -> None:
    """Square root.

    Writes ``B``, reads ``A``. All buffers have the same shape; an input with size 1 along an axis is
    repeated along it. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vsqrt(a, out)``
    """

def vsub(A: Operand, B: Operand, C: Tile) -> None:
    """The first element minus the second.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape; an input with size 1 along an
    axis is repeated along it. ``A`` and ``B`` may be scalars. ``C`` may be an input itself.

    Element types: int8, int16, int32, int64, float16, float32.

    Example: ``T.vsub(a, b, out)``
    """

def vtan(A: Tile, B: Tile) -> None:
    """Tangent.

    Writes ``B``, reads ``A``. All buffers have the same shape. ``B`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vtan(a, out)``
    """

def vtanh(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
    """Hyperbolic tangent.

    Writes ``dst``, reads ``src``. All buffers have the same shape. ``dst`` may be an input itself.

    Element types: float16, float32.

    Example: ``T.vtanh(a, out)``
    """

def vtranspose(src: Tile, dst: Tile, permutation: Sequence[_int] | None = None, size: Sizes | None = None) -> None:
    """Write ``src`` to ``dst`` with two of its axes swapped.

    ``permutation[i]`` is the axis of ``src`` that becomes axis ``i`` of ``dst``; without it, the last two axes are swapped.
    ``size`` is the shape of the part that is computed.

    Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

    Example: ``T.vtranspose(a, out, [1, 0])``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or more than two axes change; T112, the
            destination shares elements with an input; T145, not a permutation.
    """

def vxor(A: Tile, B: Tile, C: Tile) -> None:
    """Bitwise exclusive or.

    Writes ``C``, reads ``A`` and ``B``. All buffers have the same shape. ``C`` may be an input itself.

    Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64.

    Example: ``T.vxor(a, b, out)``
    """

class _Tile:
    """``T.tile``: vector operations with the destination first."""

    @staticmethod
    def abs(dst: Tile, src0: Tile) -> None:
        """Absolute value.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.abs(out, a)``
        """

    @staticmethod
    def abs_experiment(dst: Tile, src: Tile, count: Number) -> None:
        """Write the absolute values of the first ``count`` elements of ``src`` to ``dst``.

        Example: ``T.tile.abs_experiment(out, a, 64)``
        """

    @staticmethod
    def add(dst: Tile, src0: Tile, src1: Operand) -> None:
        """Sum of two elements.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
        along an axis is repeated along it. ``src1`` may be a scalar. ``dst`` may be an input itself.

        Element types: int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.add(out, a, b)``
        """

    @staticmethod
    def arith_progression(buffer: Tile, first_value: Number, diff_value: Number, count: Number | None = None) -> None:
        """Write ``first_value``, ``first_value + diff_value``, ``first_value + 2 * diff_value``, ... to ``buffer`` in row-major
        order.

        ``count`` is the number of elements to write; without it, all elements of ``buffer`` are written.

        Element types: int16, uint16, int32, uint32, float16, float32.

        Example: ``T.tile.arith_progression(out, 0, 2, 64)``
        """

    @staticmethod
    def atan(dst: Tile, src0: Tile) -> None:
        """Arc tangent.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.atan(out, a)``
        """

    @staticmethod
    def atomic_add(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
        """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

        Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
        number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

        Example: ``T.tile.atomic_add(C[row, 0], tile)``

        Raises:
            TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
                operands are in GM; T190, another ``memory_order``.
        """

    @staticmethod
    def axpy(dst: Tile, src0: Tile, scalar_value: Operand) -> None:
        """Adds the input times a scalar to the destination.

        Writes ``dst``, reads ``src0``, ``scalar_value`` and ``dst``. All buffers have the same shape; an
        input with size 1 along an axis is repeated along it. ``scalar_value`` may be a scalar. ``dst`` may
        be the first input itself.

        Element types: float16, float32.

        Example: ``T.tile.axpy(out, a, 0.5)``
        """

    @staticmethod
    def bilinear_interpolation(dst: Tile, src0: Operand, src0_offset: Tile, src1: Operand, mask: Number, h_repeat:
                               Number, repeat_mode: _bool, dst_blk_stride: Number, v_r_offset: Number, v_repeat:
                               Number, *, tmp: Tile | None = None) -> None:
        """Write ``v_repeat`` weighted sums to ``dst``, each of ``h_repeat`` repeats of ``src0``.

        A repeat consists of the 8 blocks of ``src0`` at the next 8 byte offsets in ``src0_offset``, multiplied by the next weight
        in ``src1``; with ``repeat_mode``, each of the 8 blocks is multiplied by a separate weight. The first ``mask`` elements of
        each sum are written. ``v_r_offset`` is the distance of sums in ``dst`` in elements, ``dst_blk_stride`` the distance of the
        blocks of a sum in blocks. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: float16.

        Example: ``T.tile.bilinear_interpolation(out, a, offsets, weights, 128, 2, False, 1, 128, 4)``
        """

    @staticmethod
    def bitwise_and(dst: Tile, src0: Tile, src1: Tile) -> None:
        """Bitwise and.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
        along an axis is repeated along it. ``dst`` may be an input itself.

        Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

        Example: ``T.tile.bitwise_and(out, a, b)``
        """

    @staticmethod
    def bitwise_lshift(dst: Tile, src0: Tile, scalarValue: Operand) -> None:
        """Shift left by a scalar.

        Writes ``dst``, reads ``src0`` and ``scalarValue``. All buffers have the same shape; an input with
        size 1 along an axis is repeated along it. ``scalarValue`` may be a scalar. ``dst`` may be an input
        itself.

        Element types: int16, int32, int64.

        Example: ``T.tile.bitwise_lshift(out, a, 2)``
        """

    @staticmethod
    def bitwise_not(dst: Tile, src0: Tile) -> None:
        """Bitwise complement.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

        Example: ``T.tile.bitwise_not(out, a)``
        """

    @staticmethod
    def bitwise_or(dst: Tile, src0: Tile, src1: Tile) -> None:
        """Bitwise or.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
        along an axis is repeated along it. ``dst`` may be an input itself.

        Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

        Example: ``T.tile.bitwise_or(out, a, b)``
        """

    @staticmethod
    def bitwise_rshift(dst: Tile, src0: Tile, scalarValue: Operand) -> None:
        """Shift right by a scalar.

        Writes ``dst``, reads ``src0`` and ``scalarValue``. All buffers have the same shape; an input with
        size 1 along an axis is repeated along it. ``scalarValue`` may be a scalar. ``dst`` may be an input
        itself.

        Element types: int8, int16, int32, int64.

        Example: ``T.tile.bitwise_rshift(out, a, 2)``
        """

    @staticmethod
    def bitwise_xor(dst: Tile, src0: Tile, src1: Tile, *, tmp: Tile | None = None) -> None:
        """Bitwise exclusive or.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape. ``dst`` may be an
        input itself. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64.

        Example: ``T.tile.bitwise_xor(out, a, b)``
        """

    @staticmethod
    def block_reduce_max(dst: Tile, src: Tile, repeat: Number, mask: Number, dstPepStride: Number, srcBlkStride:
                         Number, srcRepStride: Number) -> None:
        """Reduce each block of 32 bytes of ``src`` to one element of ``dst``: 8 results in each repeat.

        Only the first ``mask`` elements of a repeat are reduced. ``repeat`` is the number of repeats. ``srcBlkStride`` and
        ``srcRepStride`` are distances in blocks, ``dstPepStride`` is the distance of a repeat's results in units of 8 results.
        Writes ``dst``.

        Element types: float16, float32.

        Example: ``T.tile.block_reduce_max(out, a, 4, 64, 1, 1, 8)``
        """

    @staticmethod
    def block_reduce_min(dst: Tile, src: Tile, repeat: Number, mask: Number, dstPepStride: Number, srcBlkStride:
                         Number, srcRepStride: Number) -> None:
        """Reduce each block of 32 bytes of ``src`` to one element of ``dst``: 8 results in each repeat.

        Only the first ``mask`` elements of a repeat are reduced. ``repeat`` is the number of repeats. ``srcBlkStride`` and
        ``srcRepStride`` are distances in blocks, ``dstPepStride`` is the distance of a repeat's results in units of 8 results.
        Writes ``dst``.

        Element types: float16, float32.

        Example: ``T.tile.block_reduce_min(out, a, 4, 64, 1, 1, 8)``
        """

    @staticmethod
    def block_reduce_sum(dst: Tile, src: Tile, repeat: Number, mask: Number, dstPepStride: Number, srcBlkStride:
                         Number, srcRepStride: Number) -> None:
        """Reduce each block of 32 bytes of ``src`` to one element of ``dst``: 8 results in each repeat.

        Only the first ``mask`` elements of a repeat are reduced. ``repeat`` is the number of repeats. ``srcBlkStride`` and
        ``srcRepStride`` are distances in blocks, ``dstPepStride`` is the distance of a repeat's results in units of 8 results.
        Writes ``dst``.

        Element types: float16, float32.

        Example: ``T.tile.block_reduce_sum(out, a, 4, 64, 1, 1, 8)``
        """

    @staticmethod
    def brcb(dst: Tile, src: Tile, repeat_times: Number, dst_blk_stride: Number, dst_repeat_stride: Number) -> None:
        """Fill one block of 32 bytes of ``dst`` with each element of ``src``: 8 elements and 8 blocks in each repeat.

        ``repeat_times`` is the number of repeats. The strides are distances in blocks: ``dst_blk_stride`` between the blocks of a
        repeat, ``dst_repeat_stride`` between repeats. Writes ``dst``.

        Element types: int16, uint16, int32, uint32, float16, bfloat16, float32.

        Example: ``T.tile.brcb(out, a, 8, 1, 8)``
        """

    @staticmethod
    def brcb_experiment(dst: Tile, src: Tile, repeat_times: Number, dst_blk_stride: Number, dst_repeat_stride:
                        Number) -> None:
        """Fill one block of 32 bytes of ``dst`` with each element of ``src``: 8 elements and 8 blocks in each repeat.

        ``repeat_times`` is the number of repeats. The strides are distances in blocks: ``dst_blk_stride`` between the blocks of a
        repeat, ``dst_repeat_stride`` between repeats. Writes ``dst``.

        Element types: int16, uint16, int32, uint32, float16, bfloat16, float32.

        Example: ``T.tile.brcb_experiment(out, a, 8, 1, 8)``
        """

    @staticmethod
    def broadcast(dst: Tile, src: Operand, axis: _int | None = None, *, tmp: Tile | None = None) -> None:
        """``T.tile.broadcast``: repeat ``src`` along ``axis`` to the shape of ``dst``, or write a scalar to every element.

        Writes ``dst``. Both buffers must have the same element type, and ``src`` must have size 1 along ``axis``. A source with one
        axis is repeated to a matrix: with ``axis=0`` it becomes every row, with ``axis=1`` every column; without ``axis``, the
        sizes determine which. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.broadcast(out, a, axis=1)``

        Raises:
            TileError: T110, an element type is not supported; T111, the shapes do not fit, or there is no such axis; T112, the
                destination shares elements with an input.
        """

    @staticmethod
    def cast(dst: Tile, src: Tile, mode: str = 'CAST_NONE', count: object = None) -> None:
        """``T.tile.cast``: convert the elements of ``src`` to the element type of ``dst``, and write them to ``dst``.

        Both buffers must have the same shape; their element types can be any two types, but int4 is only converted to and from
        float16. Conversions to int4 saturate to -8 and 7; two elements are in each byte.

        Example: ``T.tile.cast(out, a, "CAST_RINT")``

        Args:
            dst: the destination.
            src: the source.
            mode: how numbers are rounded: ``CAST_NONE`` and ``CAST_RINT`` to nearest even, ``CAST_ROUND`` to nearest with ties away
                from zero, ``CAST_FLOOR``, ``CAST_CEIL``, ``CAST_TRUNC``, or ``CAST_ODD`` to the neighbour with an odd last bit.
            count: the number of elements to convert, from the first one; without it, all are converted.

        Raises:
            TileError: T110, an element type is not supported; T111, the shapes do not fit, or ``count`` is wrong; T145, there is no
                such mode.
        """

    @staticmethod
    def clamp(out: Tile, buffer: Tile, min_scalar: Operand, max_scalar: Operand, count: Number | None = None, *,
              tmp: Tile | None = None) -> None:
        """Limits each element to a lower and an upper bound.

        Writes ``out``, reads ``buffer``, ``min_scalar`` and ``max_scalar``. All buffers have the same
        shape; an input with size 1 along an axis is repeated along it. ``min_scalar`` and ``max_scalar``
        may be scalars. ``out`` may be the first input itself. ``tmp`` is scratch memory in UB; its contents
        are undefined after the call.

        Element types: int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.clamp(out, a, 0.0, 6.0)``
        """

    @staticmethod
    def clamp_max(out: Tile, buffer: Tile, scalar_value: Operand, count: Number | None = None, *, tmp: Tile | None =
                  None) -> None:
        """The smaller of each element and a bound.

        Writes ``out``, reads ``buffer`` and ``scalar_value``. All buffers have the same shape; an input
        with size 1 along an axis is repeated along it. ``scalar_value`` may be a scalar. ``out`` may be the
        first input itself. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.clamp_max(out, a, 0.5)``
        """

    @staticmethod
    def clamp_min(out: Tile, buffer: Tile, scalar_value: Operand, count: Number | None = None, *, tmp: Tile | None =
                  None) -> None:
        """The larger of each element and a bound.

        Writes ``out``, reads ``buffer`` and ``scalar_value``. All buffers have the same shape; an input
        with size 1 along an axis is repeated along it. ``scalar_value`` may be a scalar. ``out`` may be the
        first input itself. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.clamp_min(out, a, 0.5)``
        """

    @staticmethod
    def clear(buffer: Tile) -> None:
        """``T.tile.clear``: write zero to every element of a buffer or a slice.

        Example: ``T.tile.clear(a)``
        """

    @staticmethod
    def compare(dst: Tile, src0: Operand, src1: Operand, mode: str) -> None:
        """Compare the elements of ``src0`` with those of ``src1`` or with a scalar, and write one bit for each element to ``dst``.

        ``mode`` is ``"EQ"``, ``"NE"``, ``"LT"``, ``"LE"``, ``"GT"`` or ``"GE"``. ``dst`` must be uint8 and have an eighth of the
        number of elements. The bit of the first element is the lowest bit of the first byte.

        Element types: int16, int32, float16, float32.

        Example: ``T.tile.compare(mask, a, b, "LT")``
        """

    @staticmethod
    def cos(dst: Tile, src0: Tile, *, tmp: Tile | None = None) -> None:
        """Cosine.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.
        ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: float16, float32.

        Example: ``T.tile.cos(out, a)``
        """

    @staticmethod
    def create_vec_index(dst: Tile, first_value: Number) -> None:
        """Write ``first_value``, ``first_value + 1``, ``first_value + 2``, ... to ``dst`` in row-major order.

        Element types: int16, uint16, int32, uint32, float16, float32.

        Example: ``T.tile.create_vec_index(out, first_value=0)``
        """

    @staticmethod
    def createvecindex(dst: Tile, firstValue: Number) -> None:
        """Write ``firstValue``, ``firstValue + 1``, ``firstValue + 2``, ... to ``dst`` in row-major order.

        Element types: int16, uint16, int32, uint32, float16, float32.

        Example: ``T.tile.createvecindex(out, 0)``
        """

    @staticmethod
    def datacachecleanandinvalid_experiment(dst: Tile, CacheLine: str, DcciDst: str) -> None:
        """Write back and invalidate the cache lines of a global tensor in the scalar unit's data cache.

        The simulated machine has no such cache: scalar accesses go to GM, and the operation changes nothing.

        Example: ``T.tile.datacachecleanandinvalid_experiment(C, "ENTIRE_DATA_CACHE", "CACHELINE_OUT")``

        Args:
            dst: the global tensor, or an element of it.
            CacheLine: ``"SINGLE_CACHE_LINE"`` or ``"ENTIRE_DATA_CACHE"``.
            DcciDst: ``"CACHELINE_ALL"``, ``"CACHELINE_UB"``, ``"CACHELINE_OUT"`` or ``"CACHELINE_ATOMIC"``.

        Raises:
            TileError: T110, ``dst`` is not in GM; T145, ``CacheLine`` or ``DcciDst`` is none of these names.
        """

    @staticmethod
    def div(dst: Tile, src0: Operand, src1: Operand) -> None:
        """The first element divided by the second; integers truncate to zero.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
        along an axis is repeated along it. ``src0`` and ``src1`` may be scalars. ``dst`` may be an input
        itself.

        Element types: int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.div(out, a, b)``
        """

    @staticmethod
    def erf(dst: Tile, src0: Tile) -> None:
        """Error function.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.erf(out, a)``
        """

    @staticmethod
    def exp(dst: Tile, src0: Tile) -> None:
        """e to the power of each element.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.exp(out, a)``
        """

    @staticmethod
    def exp2(dst: Tile, src0: Tile) -> None:
        """2 to the power of each element.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.exp2(out, a)``
        """

    @staticmethod
    def exp_experiment(dst: Tile, src: Tile) -> None:
        """Write the exponentials of the elements of ``src`` to ``dst``, by one instruction with a repeat per row.

        ``dst`` and ``src`` have equal shapes: at most 255 rows of at most 64 elements of float32 or 128 of float16. Consecutive
        rows are a multiple of 32 bytes apart, at most 255 * 32 bytes.

        Example: ``T.tile.exp_experiment(out[:, 0:64], a[:, 0:64])``
        """

    @staticmethod
    def expm1(dst: Tile, src0: Tile) -> None:
        """e to the power of each element, minus one.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.expm1(out, a)``
        """

    @staticmethod
    def fill(buffer: Tile, value: object) -> None:
        """``T.tile.fill``: write ``value`` to every element of a buffer or a slice.

        If a slice of one row has a length that is not constant and is longer than the row, it continues in the next rows. A number
        that is too large for a float type becomes infinity, with a warning (T117).

        Example: ``T.tile.fill(a, 0.0)``
        """

    @staticmethod
    def fill_experiment(dst: Tile, value: Number, mask: Sequence[_int], repeatTimes: Number, dstBlockStride: Number,
                        dstRepeatStride: Number) -> None:
        """Write ``value`` to the elements of each repeat of ``dst`` whose bit in ``mask[0]`` is set.

        ``repeatTimes`` is the number of repeats. The strides are distances in blocks of 32 bytes.

        Element types: int32, uint32, float32.

        Example: ``T.tile.fill_experiment(out, 0.0, [255, 0], 4, 1, 8)``
        """

    @staticmethod
    def gather(dst: Tile, src: Tile, src_offset: Tile, src_base_addr: Number = 0, *, tmp: Tile | None = None) -> None:
        """Write to ``dst`` the elements of ``src`` at the byte offsets ``src_base_addr + src_offset``.

        ``src_offset`` must be uint32 or int32, with multiples of the size of an element in bytes, and as long as ``dst``.
        ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: int16, uint16, int32, uint32, float16, bfloat16, float32.

        Example: ``T.tile.gather(out, a, offsets)``
        """

    @staticmethod
    def gather_mask(dst: Tile, src: Tile, src1Pattern: Tile | str, *, tmp: Tile | None = None) -> None:
        """Write the elements of ``src`` that a pattern or indices select to the beginning of ``dst``, without gaps.

        ``src1Pattern`` is a pattern: ``"P0101"`` (elements 0, 2, 4, ...), ``"P1010"`` (1, 3, 5, ...), ``"P0001"``, ``"P0010"``,
        ``"P0100"`` or ``"P1000"`` (every fourth element from element 0, 1, 2 or 3 on), or ``"P1111"`` (all elements). It can also
        be a buffer of indices, in which the call replaces each index by a byte offset. ``tmp`` is scratch memory in UB; its
        contents are undefined after the call.

        Element types: int16, uint16, int32, uint32, float16, bfloat16, float32.

        Example: ``T.tile.gather_mask(out, a, "P0101")``
        """

    @staticmethod
    def gatherb(dst: Tile, src0: Operand, offset: Tile, repeat_time: Number, dst_blk_stride: Number, dst_rep_stride:
                Number) -> None:
        """Write to ``dst`` the blocks of 32 bytes of ``src0`` at the byte offsets in ``offset`` (uint32): 8 blocks in each repeat.

        ``repeat_time`` is the number of repeats. The strides are distances in blocks: ``dst_blk_stride`` between the blocks of a
        repeat, ``dst_rep_stride`` between repeats.

        Element types: int16, uint16, int32, uint32, float16, bfloat16, float32.

        Example: ``T.tile.gatherb(out, a, offsets, 4, 1, 8)``
        """

    @staticmethod
    def gathermask_experiment(dst: Tile, src0: Operand, src1Pattern: Tile, reduceMode: _bool, mask: Number,
                              GatherMaskParams: Sequence[Number], rsvdCnt: Number) -> None:
        """Write the elements of ``src0`` whose bit in ``src1Pattern`` is set to the beginning of ``dst``, without gaps.

        ``GatherMaskParams`` is a list of four numbers: the block stride of ``src0``, the number of repeats, the repeat stride of
        ``src0`` and the repeat stride of ``src1Pattern``. Strides are distances in blocks. With ``reduceMode``, only the first
        ``mask`` elements of a repeat are considered, else all elements. ``rsvdCnt`` must be 0.

        Element types: int16, uint16, int32, uint32, float16, bfloat16, float32.

        Example: ``T.tile.gathermask_experiment(out, a, pattern, True, 64, [1, 1, 8, 8], 0)``
        """

    @staticmethod
    def ilogb(dst: Tile, src0: Tile) -> None:
        """Exponent of the element as a binary floating-point number.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.ilogb(out, a)``
        """

    @staticmethod
    def im2col(dst: Tile, src: Tile, image: Pair, kernel: Pair, stride: Pair, dilation: Pair, pad: tuple[_int, _int,
               _int, _int], m_start: Number, k_start: Number, m_extent: Number, k_extent: Number) -> None:
        """Load the elements of an image in L1 that a convolution multiplies, and write them to ``dst`` in L0A.

        ``src`` has the shape (height * width, channels), and its rows have 32 bytes: 16 channels of two bytes, 8 of four. The
        convolution as a product of matrices has a row for each output pixel, in the order (out height, out width), and a column for
        each of the kernel's elements, in the order (kernel height, kernel width, channels). ``dst`` becomes the part of that matrix
        that begins at row ``m_start`` and column ``k_start``. Elements outside of the image, and those past the last row or column
        of the matrix, are 0. Rows are loaded in whole fractals of 16. An image with more channels is loaded in groups, each by a
        call.

        Runs on pipe MTE1 (AscendC: ``LoadData`` with ``LoadData3DParamsV2``).

        Example: ``T.tile.im2col(left, image, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 0, 0, 64, 144)``

        Args:
            dst: the matrix in L0A, at least ``m_extent`` x ``k_extent``; the part that is loaded begins at its first element.
            src: the image in L1, with elements of the same type.
            image: the height and width of the image in pixels.
            kernel: the height and width of the kernel.
            stride: the distance of neighbouring outputs in pixels, along height and width.
            dilation: the distance of neighbouring elements of the kernel in pixels, along height and width.
            pad: the number of zeros on the left, right, top and bottom side of the image.
            m_start: the first row, a multiple of 16.
            k_start: the first column, a multiple of the number of channels.
            m_extent: the number of rows.
            k_extent: the number of columns, a multiple of the number of channels.

        Raises:
            TileError: T110, the element types differ; T111, a row of the image does not have 32 bytes, or the image has too few
                rows; T122, ``dst`` is not in L0A or ``src`` not in L1; T131, ``dst`` is not a matrix, or smaller than the part;
                T145, a start or an extent is not a multiple as stated; T150, the other numbers are not constants, or do not
                describe a convolution; T502, while the kernel runs, a start is negative or not a multiple as stated.
        """

    @staticmethod
    def init_sort_buf(buffer: Tile, num: Number, rsv: Number) -> None:
        """Fill the first ``num`` elements of ``buffer`` with pairs that sort after all others: the value -inf, and an index with
        all bits set.

        ``num`` must be a multiple of 64, and ``rsv`` must be 0.

        Element types: int32, uint32, float32.

        Example: ``T.tile.init_sort_buf(pairs, 128, 0)``
        """

    @staticmethod
    def isinf(dst: Tile, src0: Tile) -> None:
        """Whether the element is an infinity.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it.

        Element types: float16, float32; ``dst`` is bool or int8.

        Example: ``T.tile.isinf(out, a)``
        """

    @staticmethod
    def isnan(dst: Tile, src0: Tile) -> None:
        """Whether the element is not a number.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it.

        Element types: float16, float32; ``dst`` is bool or int8.

        Example: ``T.tile.isnan(out, a)``
        """

    @staticmethod
    def ldexp(dst: Tile, src0: Tile, src1: Tile) -> None:
        """The first element times 2 to the power of the second.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape. ``dst`` may be an
        input itself.

        Element types: float16, float32.

        Example: ``T.tile.ldexp(out, a, b)``
        """

    @staticmethod
    def leaky_relu(dst: Tile, src0: Tile, scalar_value: Operand) -> None:
        """x where x is positive, else x times the slope.

        Writes ``dst``, reads ``src0`` and ``scalar_value``. All buffers have the same shape; an input with
        size 1 along an axis is repeated along it. ``scalar_value`` may be a scalar. ``dst`` may be the
        first input itself.

        Element types: float16, float32.

        Example: ``T.tile.leaky_relu(out, a, 0.5)``
        """

    @staticmethod
    def ln(dst: Tile, src0: Tile) -> None:
        """Natural logarithm.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.ln(out, a)``
        """

    @staticmethod
    def log(dst: Tile, src0: Tile) -> None:
        """Natural logarithm.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.log(out, a)``
        """

    @staticmethod
    def log10(dst: Tile, src0: Tile) -> None:
        """Logarithm to base 10.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.log10(out, a)``
        """

    @staticmethod
    def log1p(dst: Tile, src0: Tile) -> None:
        """Natural logarithm of one plus the element.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.log1p(out, a)``
        """

    @staticmethod
    def log2(dst: Tile, src0: Tile) -> None:
        """Logarithm to base 2.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.log2(out, a)``
        """

    @staticmethod
    def max(dst: Tile, src0: Tile, src1: Operand) -> None:
        """The larger of two elements.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
        along an axis is repeated along it. ``src1`` may be a scalar. ``dst`` may be an input itself.

        Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

        Example: ``T.tile.max(out, a, b)``
        """

    @staticmethod
    def merge_sort(dst: Tile, src0: Operand, src1: Operand, src2: Operand | None = None, src3: Operand | None =
                   None, *, tmp: Tile | None = None) -> None:
        """Merge 2 to 4 lists of pairs, each sorted by ``T.tile.sort``, into one sorted list, and write it to ``dst``.

        ``dst`` must be as long as the sum of the lengths of the lists. ``tmp`` is scratch memory in UB; its contents are undefined
        after the call.

        Element types: float16, float32.

        Example: ``T.tile.merge_sort(pairs, left, right)``
        """

    @staticmethod
    def min(dst: Tile, src0: Tile, src1: Operand) -> None:
        """The smaller of two elements.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
        along an axis is repeated along it. ``src1`` may be a scalar. ``dst`` may be an input itself.

        Element types: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32.

        Example: ``T.tile.min(out, a, b)``
        """

    @staticmethod
    def mins_experiment(dst: Tile, src: Tile, scalarValue: Number, count: Number) -> None:
        """Write the smaller of ``scalarValue`` and each of the first ``count`` elements of ``src`` to ``dst``.

        Example: ``T.tile.mins_experiment(out, a, 1.0, 64)``
        """

    @staticmethod
    def mod(dst: Tile, src0: Tile, src1: Operand) -> None:
        """Remainder of the division that truncates toward zero.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape. ``src1`` may be a
        scalar. ``dst`` may be an input itself.

        Element types: bool, int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.mod(out, a, b)``
        """

    @staticmethod
    def modui(dst: Tile, src0: Tile, src1: Operand) -> None:
        """Remainder of the division of two elements that are read as unsigned.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape. ``src1`` may be a
        scalar. ``dst`` may be an input itself.

        Element types: bool, int8, int16, int32, int64.

        Example: ``T.tile.modui(out, a, b)``
        """

    @staticmethod
    def mul(dst: Tile, src0: Tile, src1: Operand) -> None:
        """Product of two elements.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
        along an axis is repeated along it. ``src1`` may be a scalar. ``dst`` may be an input itself.

        Element types: int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.mul(out, a, b)``
        """

    @staticmethod
    def mul_add_dst(dst: Tile, src0: Tile, src1: Tile) -> None:
        """Adds the product of two inputs to the destination.

        Writes ``dst``, reads ``src0``, ``src1`` and ``dst``. All buffers have the same shape; an input with
        size 1 along an axis is repeated along it. ``dst`` may be the first input itself.

        Element types: float16, float32, int16, int32.

        Example: ``T.tile.mul_add_dst(out, a, b)``
        """

    @staticmethod
    def pow(dst: Tile, src0: Tile, src1: Tile, *, tmp: Tile | None = None) -> None:
        """The first element to the power of the second.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape. ``dst`` may be an
        input itself. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: int8, int16, int32, float16, float32.

        Example: ``T.tile.pow(out, a, b)``
        """

    @staticmethod
    def reciprocal(dst: Tile, src0: Tile) -> None:
        """Reciprocal.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.reciprocal(out, a)``
        """

    @staticmethod
    def reduce_sum_experiment(dst: Tile, src: Tile, count: Number, *, tmp: Tile | None = None) -> None:
        """Write the sum of the first ``count`` elements of ``src`` to the first element of ``dst``.

        ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.reduce_sum_experiment(out, a, 64)``
        """

    @staticmethod
    def reduce_sum_mask_experiment(dst: Tile, src: Tile, mask: Number, repeatTime: Number, srcRepStride: Number, *,
                                   tmp: Tile | None = None) -> None:
        """Write the sum of the first ``mask`` elements of all repeats of ``src`` to the first element of ``dst``.

        ``repeatTime`` is the number of repeats, ``srcRepStride`` the distance of repeats in blocks of 32 bytes.
        ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: float16, float32.

        Example: ``T.tile.reduce_sum_mask_experiment(out, a, 64, 4, 8)``
        """

    @staticmethod
    def relu(dst: Tile, src0: Tile) -> None:
        """The larger of the element and zero.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: float16, float32, int32.

        Example: ``T.tile.relu(out, a)``
        """

    @staticmethod
    def round(out: Tile, buffer: Tile, count: Number | None = None, *, tmp: Tile | None = None) -> None:
        """The nearest integer, ties to even.

        Writes ``out``, reads ``buffer``. All buffers have the same shape; an input with size 1 along an
        axis is repeated along it. ``out`` may be the first input itself. ``tmp`` is scratch memory in UB;
        its contents are undefined after the call.

        Element types: float32.

        Example: ``T.tile.round(out, a)``
        """

    @staticmethod
    def row_expand_div(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None) -> None:
        """Multiply each row of ``src0`` by one element of ``src1``, or subtract the element, or divide by it; write the result to
        ``dst``.

        The function's name says which operation it is. ``dst`` and ``src0`` must have the shape (m, n), and ``src1`` the shape (m,
        1) or (m,). In the functions with ``_experiment``, ``src1`` can also have 32 bytes for each row, which are applied to every
        32 bytes of the row. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.row_expand_div(out, a, rows)``
        """

    @staticmethod
    def row_expand_div_experiment(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None) -> None:
        """Multiply each row of ``src0`` by one element of ``src1``, or subtract the element, or divide by it; write the result to
        ``dst``.

        The function's name says which operation it is. ``dst`` and ``src0`` must have the shape (m, n), and ``src1`` the shape (m,
        1) or (m,). In the functions with ``_experiment``, ``src1`` can also have 32 bytes for each row, which are applied to every
        32 bytes of the row. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.row_expand_div_experiment(out, a, rows)``
        """

    @staticmethod
    def row_expand_mul(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None) -> None:
        """Multiply each row of ``src0`` by one element of ``src1``, or subtract the element, or divide by it; write the result to
        ``dst``.

        The function's name says which operation it is. ``dst`` and ``src0`` must have the shape (m, n), and ``src1`` the shape (m,
        1) or (m,). In the functions with ``_experiment``, ``src1`` can also have 32 bytes for each row, which are applied to every
        32 bytes of the row. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.row_expand_mul(out, a, rows)``
        """

    @staticmethod
    def row_expand_mul_experiment(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None) -> None:
        """Multiply each row of ``src0`` by one element of ``src1``, or subtract the element, or divide by it; write the result to
        ``dst``.

        The function's name says which operation it is. ``dst`` and ``src0`` must have the shape (m, n), and ``src1`` the shape (m,
        1) or (m,). In the functions with ``_experiment``, ``src1`` can also have 32 bytes for each row, which are applied to every
        32 bytes of the row. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.row_expand_mul_experiment(out, a, rows)``
        """

    @staticmethod
    def row_expand_mul_nd(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None) -> None:
        """Multiply each row of ``src0`` by one element of ``src1``, or subtract the element, or divide by it; write the result to
        ``dst``.

        The function's name says which operation it is. ``dst`` and ``src0`` must have the shape (m, n), and ``src1`` the shape (m,
        1) or (m,). In the functions with ``_experiment``, ``src1`` can also have 32 bytes for each row, which are applied to every
        32 bytes of the row. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.row_expand_mul_nd(out, a, rows)``
        """

    @staticmethod
    def row_expand_sub(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None) -> None:
        """Multiply each row of ``src0`` by one element of ``src1``, or subtract the element, or divide by it; write the result to
        ``dst``.

        The function's name says which operation it is. ``dst`` and ``src0`` must have the shape (m, n), and ``src1`` the shape (m,
        1) or (m,). In the functions with ``_experiment``, ``src1`` can also have 32 bytes for each row, which are applied to every
        32 bytes of the row. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.row_expand_sub(out, a, rows)``
        """

    @staticmethod
    def row_expand_sub_experiment(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None) -> None:
        """Multiply each row of ``src0`` by one element of ``src1``, or subtract the element, or divide by it; write the result to
        ``dst``.

        The function's name says which operation it is. ``dst`` and ``src0`` must have the shape (m, n), and ``src1`` the shape (m,
        1) or (m,). In the functions with ``_experiment``, ``src1`` can also have 32 bytes for each row, which are applied to every
        32 bytes of the row. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Example: ``T.tile.row_expand_sub_experiment(out, a, rows)``
        """

    @staticmethod
    def rsqrt(dst: Tile, src0: Tile) -> None:
        """Reciprocal square root.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.rsqrt(out, a)``
        """

    @staticmethod
    def select(dst: Tile, selMask: Tile, src0: Operand, src1: Operand, selMode: str, *, tmp: Tile | None = None) -> None:
        """Write ``src0`` to ``dst`` where the bit of ``selMask`` is set, and ``src1`` elsewhere.

        ``selMask`` must have one bit for each element, as ``T.tile.compare`` writes it. ``selMode`` must be
        ``"VSEL_TENSOR_SCALAR_MODE"`` if ``src1`` is a scalar, else ``"VSEL_CMPMASK_SPR"`` or ``"VSEL_TENSOR_TENSOR_MODE"``.
        ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, bfloat16.

        Example: ``T.tile.select(out, mask, a, b, "VSEL_CMPMASK_SPR")``
        """

    @staticmethod
    def sigmoid(dst: Tile, src0: Tile, *, tmp: Tile | None = None) -> None:
        """1 / (1 + exp(-x)).

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be the first input itself. ``tmp`` is scratch memory in UB; its
        contents are undefined after the call.

        Element types: float16, float32.

        Example: ``T.tile.sigmoid(out, a)``
        """

    @staticmethod
    def silu(dst: Tile, src0: Tile) -> None:
        """x / (1 + exp(-x)).

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be the first input itself.

        Element types: float16, float32.

        Example: ``T.tile.silu(out, a)``
        """

    @staticmethod
    def sin(dst: Tile, src0: Tile, *, tmp: Tile | None = None) -> None:
        """Sine.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.
        ``tmp`` is scratch memory in UB; its contents are undefined after the call.

        Element types: float16, float32.

        Example: ``T.tile.sin(out, a)``
        """

    @staticmethod
    def sort(dst: Tile, src: Tile, actual_num: Number, *, tmp: Tile | None = None) -> None:
        """Sort the first ``actual_num`` elements of ``src`` in descending order, and write pairs of value and index to ``dst``.

        ``dst`` must be twice as long as ``src``; it gets value, index, value, index, ... An index has the element type of the
        values; in float16 it is exact up to 2048. ``T.deinterleave`` separates values and indices. A float32 ``src`` is also
        written: elements from ``actual_num`` up to the next multiple of 32 become -inf. ``tmp`` is scratch memory in UB; its
        contents are undefined after the call.

        Element types: float16, float32.

        Example: ``T.tile.sort(pairs, a, 64)``
        """

    @staticmethod
    def sort32(dst: Tile, src0: Operand, src1: Operand) -> None:
        """Sort each group of 32 elements of ``src0`` in descending order, and write pairs of value and index to ``dst``.

        A pair has 8 bytes: the value, and the index of the element, which is taken from ``src1`` (uint32).

        Element types: float16, float32.

        Example: ``T.tile.sort32(pairs, a, indices)``
        """

    @staticmethod
    def sqrt(dst: Tile, src0: Tile) -> None:
        """Square root.

        Writes ``dst``, reads ``src0``. All buffers have the same shape; an input with size 1 along an axis
        is repeated along it. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.sqrt(out, a)``
        """

    @staticmethod
    def sub(dst: Tile, src0: Operand, src1: Operand) -> None:
        """The first element minus the second.

        Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
        along an axis is repeated along it. ``src0`` and ``src1`` may be scalars. ``dst`` may be an input
        itself.

        Element types: int8, int16, int32, int64, float16, float32.

        Example: ``T.tile.sub(out, a, b)``
        """

    @staticmethod
    def sub_experiment(dst: Tile, src0: Operand, src1: Operand, count: Number) -> None:
        """Write the differences of the first ``count`` elements of ``src0`` and ``src1`` to ``dst``.

        Example: ``T.tile.sub_experiment(out, a, b, 64)``
        """

    @staticmethod
    def sum_experiment(dst: Tile, src: Tile, sumParams: Sequence[Number]) -> None:
        """Write the sum of each row of ``src`` to ``dst``.

        ``sumParams`` is a list: the number of rows, the distance between rows in elements, and the number of elements of each row
        that are added. If this number is 0, nothing is written.

        Element types: float16, float32.

        Example: ``T.tile.sum_experiment(out, a, [4, 64, 64])``
        """

    @staticmethod
    def tan(dst: Tile, src0: Tile) -> None:
        """Tangent.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.tan(out, a)``
        """

    @staticmethod
    def tanh(dst: Tile, src0: Tile) -> None:
        """Hyperbolic tangent.

        Writes ``dst``, reads ``src0``. All buffers have the same shape. ``dst`` may be an input itself.

        Element types: float16, float32.

        Example: ``T.tile.tanh(out, a)``
        """

    @staticmethod
    def topk(dst: Tile, src: Tile, K: _int, actual_num: Number, *, tmp: Tile | None = None) -> None:
        """Write the ``K`` largest of the first ``actual_num`` elements of ``src``, as pairs of value and index, to ``dst``.

        The pairs are in descending order, as ``T.tile.sort`` writes them, and their number is rounded up to whole blocks of 32
        bytes. A float32 ``src`` is also written: elements from ``actual_num`` on become -inf. ``tmp`` is scratch memory in UB; its
        contents are undefined after the call.

        Element types: float16, float32.

        Example: ``T.tile.topk(pairs, a, 8, 64)``
        """

    @staticmethod
    def transpose(dst: Tile, src: Tile) -> None:
        """Write the transpose of the matrix ``src`` (m, n) to ``dst`` (n, m).

        Element types: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32.

        Example: ``T.tile.transpose(out, a)``
        """

    @staticmethod
    def wholereducemax(dst: Tile, src: Tile, mask: Number, repeattimes: Number, dstrepstride: Number, srcblkstride:
                       Number, srcrepstride: Number, ReduceOrder: str = 'ORDER_VALUE_INDEX') -> None:
        """Write the largest (``wholereducemax``) or smallest (``wholereducemin``) of the first ``mask`` elements of each repeat of
        ``src``, and its index in the repeat, to ``dst``.

        The index is an integer as wide as the elements, whose bits are stored. ``ReduceOrder`` is ``"ORDER_VALUE_INDEX"``,
        ``"ORDER_INDEX_VALUE"`` or ``"ORDER_ONLY_VALUE"``. ``repeattimes`` is the number of repeats. ``srcblkstride`` and
        ``srcrepstride`` are distances in blocks of 32 bytes, ``dstrepstride`` is the distance of results in results.

        Element types: float16, float32.

        Example: ``T.tile.wholereducemax(out, a, 64, 8, 1, 1, 8)``
        """

    @staticmethod
    def wholereducemin(dst: Tile, src: Tile, mask: Number, repeattimes: Number, dstrepstride: Number, srcblkstride:
                       Number, srcrepstride: Number, ReduceOrder: str = 'ORDER_VALUE_INDEX') -> None:
        """Write the largest (``wholereducemax``) or smallest (``wholereducemin``) of the first ``mask`` elements of each repeat of
        ``src``, and its index in the repeat, to ``dst``.

        The index is an integer as wide as the elements, whose bits are stored. ``ReduceOrder`` is ``"ORDER_VALUE_INDEX"``,
        ``"ORDER_INDEX_VALUE"`` or ``"ORDER_ONLY_VALUE"``. ``repeattimes`` is the number of repeats. ``srcblkstride`` and
        ``srcrepstride`` are distances in blocks of 32 bytes, ``dstrepstride`` is the distance of results in results.

        Element types: float16, float32.

        Example: ``T.tile.wholereducemin(out, a, 64, 8, 1, 1, 8)``
        """

    @staticmethod
    def wholereducesum(dst: Tile, src: Tile, mask: Number, repeattimes: Number, dstrepstride: Number, srcblkstride:
                       Number, srcrepstride: Number) -> None:
        """Write the sum of the first ``mask`` elements of each repeat of ``src`` to ``dst``.

        ``repeattimes`` is the number of repeats. ``srcblkstride`` and ``srcrepstride`` are distances in blocks of 32 bytes,
        ``dstrepstride`` is the distance of results in results.

        Element types: float16, float32.

        Example: ``T.tile.wholereducesum(out, a, 64, 8, 1, 1, 8)``
        """

tile: _Tile
ascend_tile: _Tile

__all__ = [
    "And", "Buffer", "Cast", "Else", "Fragment", "FragmentBuffer", "GemmWarpPolicy", "If", "Kernel", "Layout",
    "LocalBuffer", "Macro", "Not", "Or", "Parallel", "Persistent", "Pipelined", "PrimFunc", "Ref", "Scope", "Select",
    "Serial", "SharedBuffer", "SimdVF", "SimtVF", "StridedTensor", "Sym", "Tensor", "Then", "abs", "acos", "acosh",
    "add", "align_up", "all_of", "alloc_L0A", "alloc_L0B", "alloc_L0C", "alloc_L1", "alloc_L1_scale_a",
    "alloc_L1_scale_b", "alloc_frag", "alloc_fragment", "alloc_global", "alloc_local", "alloc_reducer", "alloc_shared",
    "alloc_ub", "alloc_var", "annotate_address", "annotate_compile_flags", "annotate_consumer_reg_alloc",
    "annotate_l2_hit_ratio", "annotate_layout", "annotate_min_blocks_per_sm", "annotate_pass_configs",
    "annotate_producer_reg_dealloc", "annotate_restrict_buffers", "annotate_safe_value", "any_of", "arange",
    "ascend_tile", "asin", "asinh", "assert_", "assume", "async_copy", "atan", "atan2", "atanh", "atomic_add",
    "atomic_addx2", "atomic_addx4", "atomic_max", "atomic_min", "axpy", "barrier_all", "bfloat16", "bitwise_and",
    "bitwise_lshift", "bitwise_not", "bitwise_or", "bitwise_rshift", "bitwise_xor", "block_barrier", "bool",
    "c2d_im2col", "cast", "ceil", "ceildiv", "clamp", "clamp_max", "clamp_min", "clear", "clear_flag", "clz", "compare",
    "concat", "const", "copy", "copy_pa", "copysign", "cos", "cosh", "cp_async_wait_group", "cummax", "cumsum",
    "dec_max_nreg", "deinterleave", "device_assert", "disable_warp_group_reg_alloc", "div", "double", "dtype",
    "dump_tensor", "dynamic", "empty", "erf", "evaluate", "exp", "exp10", "exp2", "expm1", "fabs", "fence_proxy_async",
    "fill", "finalize_reducer", "flip", "float", "float16", "float32", "float4_e2m1fn", "float64", "float8_e4m3",
    "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "floor", "floordiv", "floormod", "func_attr", "gather", "gemm",
    "gemm_mx", "gemm_v0", "gemm_v0_fixp", "get_thread_binding", "get_thread_bindings", "grid", "half", "hypot",
    "if_then_else", "ilogb", "im2col", "inc_max_nreg", "infinity", "init_flag", "int", "int16", "int32", "int4",
    "int64", "int8", "interleave", "isfinite", "isinf", "isnan", "ldexp", "leaky_relu", "ln", "load_nd2nz", "log",
    "log10", "log1p", "log2", "long", "loop_break", "macro", "max", "max_value", "meta_var", "min", "min_value", "mma",
    "mma_mx", "mod", "modui", "mul", "mul_add_dst", "nearbyint", "no_set_max_nreg", "npu_gemm", "npuir_abs",
    "npuir_add", "npuir_and", "npuir_arange", "npuir_atan", "npuir_atomic_add", "npuir_atomic_addx2",
    "npuir_atomic_addx4", "npuir_bitcast", "npuir_bitwise_and", "npuir_bitwise_lshift", "npuir_bitwise_not",
    "npuir_bitwise_or", "npuir_bitwise_rshift", "npuir_bitwise_xor", "npuir_brc", "npuir_cast", "npuir_clamp",
    "npuir_clear", "npuir_cmp", "npuir_concat", "npuir_copy", "npuir_cos", "npuir_cummax", "npuir_cumsum",
    "npuir_deinterleave", "npuir_div", "npuir_dot", "npuir_erf", "npuir_exp", "npuir_exp2", "npuir_expm1", "npuir_fill",
    "npuir_flip", "npuir_floor", "npuir_floordiv", "npuir_gather", "npuir_ilogb", "npuir_interleave", "npuir_isinf",
    "npuir_isnan", "npuir_ldexp", "npuir_ln", "npuir_load_nd2nz", "npuir_log10", "npuir_log1p", "npuir_log2",
    "npuir_max", "npuir_min", "npuir_mod", "npuir_modui", "npuir_mul", "npuir_not", "npuir_or", "npuir_pad",
    "npuir_pow", "npuir_print", "npuir_rec", "npuir_reciprocal", "npuir_reduce", "npuir_relu", "npuir_reshape",
    "npuir_rsqrt", "npuir_select", "npuir_shl", "npuir_shr", "npuir_sigmoid", "npuir_sin", "npuir_sort", "npuir_sqrt",
    "npuir_store_fixpipe", "npuir_store_nz2nd", "npuir_sub", "npuir_tan", "npuir_tanh", "npuir_transpose", "npuir_vcos",
    "npuir_verf", "npuir_vsin", "npuir_vtanh", "npuir_xor", "pad", "parallel", "pdl_sync", "pdl_trigger",
    "pipe_barrier", "popcount", "pow", "prim_func", "print", "printf", "ptx_commit_group", "ptx_wait_group",
    "reciprocal", "reduce", "reduce_absmax", "reduce_abssum", "reduce_all", "reduce_any", "reduce_bitand",
    "reduce_bitor", "reduce_bitxor", "reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "reduce_with_index",
    "reducer_init", "reducer_update", "reinterpret", "reinterpretcast", "relu", "reshape", "round", "rs", "rsqrt",
    "select", "serial", "set_atomic", "set_atomic_add", "set_atomic_none", "set_cross_flag", "set_deq_scale",
    "set_flag", "set_max_nreg", "shift_left", "shift_right", "shmem_barrier", "shmem_barrier_all", "shmem_fence",
    "shmem_get_nbi", "shmem_mte_quiet", "shmem_put_nbi", "shmem_quiet", "shmem_signal_op", "shmem_signal_wait_until",
    "shmem_ub_atomic_add_nbi", "shmem_ub_get_nbi", "shmem_ub_put_nbi", "short", "sigmoid", "silu", "sin", "sinh",
    "sqrt", "store_fixpipe", "store_nz2nd", "sub", "subblock_barrier", "symbolic", "sync_all", "sync_block_set",
    "sync_block_wait", "sync_grid", "sync_threads", "sync_warp", "tan", "tanh", "tfloat32", "tile", "transpose",
    "trunc", "truncdiv", "truncmod", "uint", "uint16", "uint32", "uint64", "uint8", "unroll", "use_swizzle", "vabs",
    "vadd", "vand", "varange", "vatan", "vatomic_add", "vatomic_addx2", "vatomic_addx4", "vbitcast", "vbitwise_and",
    "vbitwise_lshift", "vbitwise_not", "vbitwise_or", "vbitwise_rshift", "vbitwise_xor", "vbrc", "vcast", "vclamp",
    "vcmp", "vconcat", "vcos", "vcummax", "vcumsum", "vdeinterleave", "vdiv", "vectorized", "verf", "vexp", "vexp2",
    "vexpm1", "vextract_pairs", "vflip", "vfloor", "vfloordiv", "vgather", "view", "view_experiment", "vilogb",
    "vinterleave", "visinf", "visnan", "vldexp", "vln", "vlog10", "vlog1p", "vlog2", "vmax", "vmi", "vmin", "vmod",
    "vmodui", "vmrgsort", "vmul", "vnot", "vor", "vpad", "vpow", "vrec", "vreciprocal", "vrelu", "vrsqrt", "vselect",
    "vshl", "vshr", "vsigmoid", "vsin", "vsort", "vsort32", "vsqrt", "vsub", "vtan", "vtanh", "vtranspose", "vxor",
    "wait_cross_flag", "wait_flag", "warpgroup_fence_operand",
]
