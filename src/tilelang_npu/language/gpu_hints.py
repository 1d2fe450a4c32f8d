"""Statements of TileLang for GPUs that do not change what a kernel computes on an NPU.

They concern registers, warps, the order of threads, or the launch after this one. A core has no threads, and the compiler keeps
the order of a block's statements. So they are accepted and have no effect; each kernel gets one note (T191) that lists them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilelang_npu.errors import TileError
from tilelang_npu.language.gpu_arguments import note_gpu_arguments
from tilelang_npu.language.movement import copy
from tilelang_npu.traced.active_trace import TracedValue
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.buffers import Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.symbols import Sym

__all__ = [
    "annotate_compile_flags", "annotate_consumer_reg_alloc", "annotate_l2_hit_ratio", "annotate_min_blocks_per_sm",
    "annotate_pass_configs", "annotate_producer_reg_dealloc", "annotate_restrict_buffers", "assume", "async_copy",
    "cp_async_wait_group", "dec_max_nreg", "device_assert", "disable_warp_group_reg_alloc", "fence_proxy_async", "inc_max_nreg",
    "no_set_max_nreg", "pdl_sync", "pdl_trigger", "ptx_commit_group", "ptx_wait_group", "set_max_nreg", "sync_threads",
    "sync_warp", "warpgroup_fence_operand",
]


def _ignore(name: str) -> None:
    Builder.running(f"T.{name}").ignore(f"T.{name}")


def assume(condition: object) -> None:
    """State a condition that holds whenever the kernel is called; it has no effect.

    Example: ``T.assume(n % 128 == 0)``

    Raises:
        TileError: T148, the condition is known when the kernel is compiled, and is false.
    """
    _refuse_if_false("T.assume", condition, "")
    _ignore("assume")


def device_assert(condition: object, msg: str = "") -> None:
    """State a condition that the kernel expects. It is not checked in a compiled kernel; ``run --interpret`` checks it.

    Example: ``T.device_assert(n >= 0, "n is an index")``

    Raises:
        TileError: T148, the condition is known when the kernel is compiled, and is false; or the kernel is interpreted, and the
            condition is false.
    """
    _refuse_if_false("T.device_assert", condition, msg)
    Builder.running("T.device_assert").ignore("T.device_assert, which is not checked")


def _refuse_if_false(what: str, condition: object, message: str) -> None:
    if isinstance(condition, (TracedValue, Sym)) or condition:
        return
    raise TileError(f"{what}: {message or 'the condition does not hold'}", code="T148", location=user_location(),
                    help="the kernel does not support these arguments")


def async_copy(src: Tile, dst: Tile, *, coalesced_width: object = None, loop_layout: object = None,
               annotations: Mapping[str, object] | None = None) -> None:
    """Copy the tile ``src`` to ``dst``, as ``T.copy`` does; the compiler inserts the wait for the copy before its first use.

    ``dst`` is written. ``T.ptx_wait_group`` and ``T.ptx_commit_group`` are not needed. The other arguments have no effect.

    Example: ``T.async_copy(A[row, 0], a)``

    Raises:
        TileError: as ``T.copy``.
    """
    note_gpu_arguments("async_copy", loop_layout=loop_layout, annotations=annotations)
    copy(src, dst)


def ptx_commit_group() -> None:
    """End a group of asynchronous copies of a GPU; it has no effect, because the compiler orders copies.

    Example: ``T.ptx_commit_group()``
    """
    _ignore("ptx_commit_group")


def ptx_wait_group(num: int = 0) -> None:
    """Wait for groups of asynchronous copies of a GPU; it has no effect, because the compiler inserts the waits.

    Example: ``T.ptx_wait_group(0)``
    """
    _ignore("ptx_wait_group")


def cp_async_wait_group(num: int = 0) -> None:
    """Wait for groups of asynchronous copies of a GPU; it has no effect, because the compiler inserts the waits.

    Example: ``T.cp_async_wait_group(0)``
    """
    _ignore("cp_async_wait_group")


def sync_threads(*_: object) -> None:
    """Wait for the threads of a block; it has no effect, because a core executes statements in their order.

    Example: ``T.sync_threads()``
    """
    _ignore("sync_threads")


def sync_warp(*_: object) -> None:
    """Wait for the threads of a warp; it has no effect, because a core has no threads.

    Example: ``T.sync_warp()``
    """
    _ignore("sync_warp")


def fence_proxy_async() -> None:
    """Order the memory accesses of a GPU's copy engine; it has no effect, because the compiler orders copies.

    Example: ``T.fence_proxy_async()``
    """
    _ignore("fence_proxy_async")


def warpgroup_fence_operand(*_: object, **__: object) -> None:
    """Keep a GPU's compiler from moving accesses to registers; it has no effect.

    Example: ``T.warpgroup_fence_operand(c)``
    """
    _ignore("warpgroup_fence_operand")


def pdl_sync() -> None:
    """Wait for the kernel that was launched before this one; it has no effect, because launches do not overlap.

    Example: ``T.pdl_sync()``
    """
    _ignore("pdl_sync")


def pdl_trigger() -> None:
    """Let the kernel that is launched after this one begin; it has no effect, because launches do not overlap.

    Example: ``T.pdl_trigger()``
    """
    _ignore("pdl_trigger")


def set_max_nreg(reg_count: int, is_inc: int = 0) -> None:
    """Set the number of registers of a GPU's thread; it has no effect.

    Example: ``T.set_max_nreg(240, 1)``
    """
    _ignore("set_max_nreg")


def inc_max_nreg(reg_count: int) -> None:
    """Raise the number of registers of a GPU's thread; it has no effect.

    Example: ``T.inc_max_nreg(240)``
    """
    _ignore("inc_max_nreg")


def dec_max_nreg(reg_count: int) -> None:
    """Lower the number of registers of a GPU's thread; it has no effect.

    Example: ``T.dec_max_nreg(40)``
    """
    _ignore("dec_max_nreg")


def no_set_max_nreg() -> None:
    """Leave the number of registers of a GPU's thread to its compiler; it has no effect.

    Example: ``T.no_set_max_nreg()``
    """
    _ignore("no_set_max_nreg")


def disable_warp_group_reg_alloc() -> None:
    """Leave the number of registers of a GPU's warp group to its compiler; it has no effect.

    Example: ``T.disable_warp_group_reg_alloc()``
    """
    _ignore("disable_warp_group_reg_alloc")


def annotate_producer_reg_dealloc(reg_count: int = 24) -> None:
    """Set the number of registers of a GPU's loading warps; it has no effect.

    Example: ``T.annotate_producer_reg_dealloc(24)``
    """
    _ignore("annotate_producer_reg_dealloc")


def annotate_consumer_reg_alloc(reg_count: int = 240) -> None:
    """Set the number of registers of a GPU's computing warps; it has no effect.

    Example: ``T.annotate_consumer_reg_alloc(240)``
    """
    _ignore("annotate_consumer_reg_alloc")


def annotate_min_blocks_per_sm(blocks: int) -> None:
    """Set the number of blocks that share a GPU's multiprocessor; it has no effect, because a core has one block at a time.

    Example: ``T.annotate_min_blocks_per_sm(2)``
    """
    _ignore("annotate_min_blocks_per_sm")


def annotate_l2_hit_ratio(ratios: Mapping[object, float]) -> None:
    """State which tensors a GPU keeps in its L2 cache; it has no effect.

    Example: ``T.annotate_l2_hit_ratio({A: 0.5})``
    """
    _ignore("annotate_l2_hit_ratio")


def annotate_restrict_buffers(*buffers: object) -> None:
    """State which tensors may share memory; it has no effect, because each call is checked for that.

    Example: ``T.annotate_restrict_buffers(A)``
    """
    _ignore("annotate_restrict_buffers")


def annotate_compile_flags(flags: object) -> None:
    """Give flags to a GPU's compiler; it has no effect.

    Example: ``T.annotate_compile_flags("-O3")``
    """
    _ignore("annotate_compile_flags")


def annotate_pass_configs(configs: Mapping[object, object]) -> None:
    """Set options of the compiler for GPUs in a kernel; it has no effect. Options of this compiler are arguments of
    ``tilelang.jit``.

    Example: ``T.annotate_pass_configs({"tl.disable_tma_lower": True})``
    """
    _ignore("annotate_pass_configs")
