"""The replacements for names of TileLang that this package does not support, and for names of other libraries.
"""

from __future__ import annotations

from typing import NoReturn

from tilelang_npu.errors import Location, TileError
from tilelang_npu.traced.author import user_location

_POINTER = "declare the parameter as a tensor: A: T.Tensor(shape, dtype)"
_COPIES = "T.copy moves tiles; T.set_flag and T.wait_flag order it, or TL_ASCEND_AUTO_SYNC does"
_PRODUCTS = "T.gemm(a, b, c) multiplies tiles on the Cube core, with a and b in T.alloc_shared and c in T.alloc_fragment"
_THREADS = "a core has no threads: T.Parallel loops over all elements"
_BLOCKS = "name the blocks where the launch opens: with T.Kernel(m, n) as (bx, by)"

_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("handle", "ptr", "make_tensor", "match_buffer"), _POINTER),
    **dict.fromkeys((
        "create_list_of_mbarrier", "get_mbarrier", "create_tma_descriptor", "tma_load", "tma_store_arrive", "tma_store_wait",
        "tma_gather4", "tma_scatter4", "mbarrier_arrive", "mbarrier_arrive_expect_tx", "mbarrier_expect_tx",
        "mbarrier_wait_parity", "barrier_arrive", "barrier_wait", "named_barrier_arrive", "alloc_barrier",
        "alloc_cluster_barrier", "tma_copy", "ptx_cp_async", "cp_async_barrier_noinc"), _COPIES),
    **dict.fromkeys(("wgmma_gemm", "wait_wgmma", "alloc_wgmma_desc", "alloc_tmem", "alloc_tcgen05_smem_desc", "tcgen05_gemm",
                     "tcgen05_gemm_blockscaled", "tcgen05_mma_arrive", "tcgen05_cp_warpx4", "tcgen05_sf_warp_transpose",
                     "tcgen05_before_thread_sync", "tcgen05_after_thread_sync", "mma_gemm_blockscaled"), _PRODUCTS),
    **dict.fromkeys((
        "thread_binding", "launch_thread", "thread_return", "get_lane_idx",
        "get_warp_idx", "get_warp_idx_sync", "get_warp_group_idx", "shuffle_elect", "tvm_warp_shuffle", "tvm_warp_shuffle_up",
        "tvm_thread_allreduce", "any_sync", "all_sync", "ballot", "ballot_sync", "activemask", "match_all_sync",
        "match_any_sync", "syncthreads_and", "syncthreads_or", "syncthreads_count",
        "warp_reduce_bitand", "warp_reduce_bitor"), _THREADS),
    **dict.fromkeys(("shfl_down", "shfl_up", "shfl_xor", "shfl_sync", "warp_reduce_sum", "warp_reduce_max", "warp_reduce_min"),
                    "T.reduce_sum, T.reduce_max and T.reduce_min reduce along an axis of a tile"),
    **dict.fromkeys(("ClusterKernel", "block_rank_in_cluster", "cluster_sync", "cluster_arrive", "cluster_wait",
                     "clc_is_canceled", "clc_get_first_ctaid_x", "clc_try_cancel_multicast"),
                    "blocks do not form clusters: a block reads what it needs with T.copy"),
    **dict.fromkeys(("WSID", "WSOp", "WSPipeline", "WSRole", "WSSchedule", "WSScope", "WSSync", "ws_op",
                     "annotate_ws_schedule"),
                    "a core has no warps: T.Pipelined overlaps copies and computation"),
    **dict.fromkeys(("ldg32", "ldg64", "ldg128", "ldg256", "stg32", "stg64", "stg128", "stg256", "lds32", "lds64", "lds128",
                     "sts32", "sts64", "sts128", "address_of", "tvm_access_ptr"), "T.copy moves a tile to and from GM"),
    **dict.fromkeys(("get_block_binding", "get_block_bindings"), _BLOCKS),
    "sync_thread_partial": "T.barrier_all waits for all pipes of a core",
    "sync_global": "T.sync_all waits for all cores",
    **dict.fromkeys(("call_extern", "call_packed"), "a kernel is written in T alone: there is no C++ to call"),
    "access_ptr": "name the buffer, a slice of it, or the element where a tile starts",
    "ws": "T.Scope('C') and T.Scope('V') say which core does the work",
    "annotate_padding": "T.copy(..., pad_value=...) gives elements past the end of a tensor a value",
    **dict.fromkeys(("import_source", "CUDASourceCodeKernel", "_src_code", "_srcCode"),
                    "a kernel is written in T alone: there is no C++ to add to"),
    "dp4a": "T.gemm_v0 (T.gemm) multiplies int8 tiles into int32",
    "gemm_v1": "use T.gemm_v0",
    "simd": "T.vmi has the operations on vector registers, such as T.vmi.vload and T.vmi.vadd",
}
_EXTREME = "T.v{0}(a, b, out) of tiles, T.{0} of numbers; T.reduce_{0} along an axis"
_ACCESS = "T.copy moves a tile from a tensor or to it: T.copy(A[row, 0], a); elements past the end need no mask"

ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("load", "store", "make_block_ptr", "make_tensor_descriptor", "tma_copy_async"), _ACCESS),
    **dict.fromkeys(("program_id", "num_programs", "block_idx", "blockIdx"),
                    "name the blocks where the launch opens: with T.Kernel(m, n, is_npu=True) as (i, j, _)"),
    **dict.fromkeys(("thread_idx", "threadIdx", "lane_id", "warp_id"), _THREADS),
    **dict.fromkeys(("syncthreads", "__syncthreads", "debug_barrier"),
                    "leave it out: the compiler orders the work of a core; by hand, T.barrier_all waits for all its pipes"),
    **dict.fromkeys(("dot", "matmul", "einsum"), "T.gemm(a, b, c) multiplies tiles, and adds to c unless initC holds"),
    **dict.fromkeys(("zeros", "zeros_like"), "allocate a buffer (T.alloc_shared, T.alloc_fragment) and T.clear it"),
    **dict.fromkeys(("full", "full_like", "ones", "ones_like"),
                    "allocate a buffer (T.alloc_shared, T.alloc_fragment) and T.fill it"),
    **dict.fromkeys(("sum", "prod"), "T.reduce_sum(a, out, dim=1), or T.reduce_prod, along an axis"),
    **dict.fromkeys(("mean", "average"), "T.reduce_sum(a, out, dim=1), and a product with 1 / size"),
    **dict.fromkeys(("maximum", "amax"), _EXTREME.format("max")),
    **dict.fromkeys(("minimum", "amin"), _EXTREME.format("min")),
    "argmax": 'T.reduce_with_index(a, values, places, dim=1, reduce_mode="max_with_index_left")',
    "argmin": 'T.reduce_with_index(a, values, places, dim=1, reduce_mode="min_with_index_left")',
    "where": "T.if_then_else(condition, x, y) of an element, in T.Parallel; T.vselect of tiles, with a mask of T.vcmp",
    "cdiv": "T.ceildiv", "constexpr": "make the constant a parameter of the factory", "static_range": "T.unroll",
    "trans": "T.gemm takes a_transpose and b_transpose; T.transpose(src, dst, permutation) transposes a tile",
    **dict.fromkeys(("expand_dims", "broadcast_to"),
                    "leave it out: a tile is repeated along axes of size 1; T.vbrc(src, dst) repeats one explicitly"),
    **dict.fromkeys(("associative_scan", "cumprod"), "T.cumsum adds up along an axis; other scans are loops of T.serial"),
    **dict.fromkeys(("atomic_cas", "atomic_xchg", "atomic_and", "atomic_or", "atomic_xor"),
                    "T.atomic_add, T.atomic_max and T.atomic_min are the atomic operations; others reduce in a second pass"),
    **dict.fromkeys(("multiple_of", "max_contiguous"), "leave it out: sizes are known when the kernel is compiled"),
    "tanh_approx": "T.tanh", "device_print": "T.print of a tile or a number, T.printf with a format",
    "static_assert": "T.assert_", "sort": "T.tile.sort",
}
"""For names of Triton, NumPy and CUDA that users look for in ``T``, the advice what to use instead."""

_TWO_RESULTS = "multiply in int64 and take the halves with T.vshr and T.vcast"

NAMES: frozenset[str] = frozenset(_INSTEAD)


class UnknownName(TileError, AttributeError):
    """The error of a name that ``T`` does not have, such as ``T.cpoy``. It is also an :class:`AttributeError`, so that
    ``hasattr`` works.
    """


def unknown(name: str, known: list[str]) -> UnknownName:
    """Returns the error for a name that ``T`` does not have.

    Args:
        name: the name after ``T.``.
        known: the names that exist. The error's help comes from :data:`ELSEWHERE`, or proposes the most similar of these names.
    """
    last = name.rsplit(".", 1)[-1]
    import difflib

    close = [each for each in known if each.lower() == last.lower()] or difflib.get_close_matches(last, known)
    prefix = f"T.{name.removesuffix(last)}"
    advice = "dir(T) lists the names that exist, with those of loaded plug-ins (--load FILE.py)"
    if last in ELSEWHERE:
        advice = ELSEWHERE[last]
    elif close:  # of equally similar names, the one with the longest common prefix: T.vadd for T.vad, not T.vpad
        nearest = max(close, key=lambda each: (difflib.SequenceMatcher(None, each, last).ratio(),
                                               sum(each[:size] == last[:size] for size in range(1, len(last) + 1))))
        advice = f"did you mean {prefix}{nearest}?"
    return UnknownName(f"T.{name} does not exist", code="T140", location=user_location(), help=advice)


class Unsupported:
    """The value of a name of TileLang that is not supported: each use raises T190 with the advice what to use instead."""

    def __init__(self, name: str) -> None:
        self._name = name

    def refuse(self, location: Location | None = None) -> NoReturn:
        """Raises T190 at ``location``, or at the user's statement that is being executed if ``location`` is None."""
        raise TileError(f"T.{self._name} is not supported", code="T190", location=location or user_location(),
                        help=_INSTEAD.get(self._name, _TWO_RESULTS))

    def __call__(self, *_arguments: object, **_keywords: object) -> NoReturn:
        self.refuse()

    def __enter__(self) -> NoReturn:
        self.refuse()

    def __exit__(self, *_: object) -> None:
        """Is never called, because ``__enter__`` raises."""

    def __getitem__(self, _item: object) -> NoReturn:
        self.refuse()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def __repr__(self) -> str:
        return f"T.{self._name}"
