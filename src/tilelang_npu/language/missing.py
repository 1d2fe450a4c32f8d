"""Names of the two dialects that exist there and are not supported yet: each says so at the line that uses it."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelang_npu.errors import Location, TileError
from tilelang_npu.language import tracing

_BOTH_SPELLINGS = (
    "gather", "transpose", "interleave", "deinterleave", "concat", "pad", "flip", "arange", "atomic_add",
    "atomic_addx4", "print",
    "cumsum", "sigmoid", "clamp", "mulext", "mulextui",
)
_LANGUAGE = (
    "init_flag",
    "clear_flag",
    "shmem_put_nbi", "shmem_get_nbi", "shmem_ub_put_nbi", "shmem_ub_get_nbi",
    "annotate_padding", "import_source", "reinterpret", "c2d_im2col", "loop_break",
    "handle", "ptr", "make_tensor", "any_of", "all_of", "atomic_addx2", "dp4a", "vectorized", "grid",
    "thread_binding", "parallel",
    "gemm_v1",
)
_TILE = (
    "sigmoid", "silu", "leaky_relu", "axpy", "mul_add_dst", "arith_progression", "createvecindex", "round", "clamp",
    "clamp_max",
    "clamp_min", "compare", "select", "gather", "gather_mask", "gatherb", "sort", "topk", "merge_sort", "sort32",
    "init_sort_buf", "transpose", "row_expand_mul", "row_expand_mul_experiment", "row_expand_sub_experiment",
    "row_expand_div_experiment", "brcb_experiment", "atomic_add", "wholereducemax", "wholereducemin", "wholereducesum",
    "block_reduce_max", "block_reduce_min", "block_reduce_sum", "bilinear_interpolation", "sub_experiment", "abs_experiment",
    "mins_experiment", "sum_experiment", "reduce_sum_experiment", "reduce_sum_mask_experiment", "gathermask_experiment",
    "fill_experiment", "datacachecleanandinvalid_experiment",
)

NAMES: frozenset[str] = frozenset((
    *_LANGUAGE, *(prefix + name for name in _BOTH_SPELLINGS for prefix in ("", "v", "npuir_")),
    *(f"tile.{name}" for name in _TILE)))
"""The names, with ``tile.`` before those of ``T.tile``."""


class UnknownName(TileError, AttributeError):
    """``T.cpoy``: the language has no such name. Also an :class:`AttributeError`, so that ``hasattr`` answers."""


class Unsupported:
    """Stands for a language function that is not supported yet; using it is the error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def refuse(self, location: Location | None = None) -> NoReturn:
        """Raise T190, at ``location`` or where the user's code stands."""
        raise TileError(f"T.{self._name} is not supported yet", code="T190", location=location or tracing.user_location(),
                        help="`python -m tilelang_npu ops` lists the operations there are")

    def __call__(self, *_arguments: Any, **_keywords: Any) -> NoReturn:
        self.refuse()

    def __enter__(self) -> NoReturn:
        self.refuse()

    def __exit__(self, *_: object) -> None:
        """Never reached."""

    def __getitem__(self, _item: Any) -> NoReturn:
        self.refuse()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def __repr__(self) -> str:
        return f"T.{self._name}"
