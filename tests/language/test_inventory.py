"""Every name of the language in every form that scripts use: short kernels, compared with NumPy.

A line of ``forms_*.txt`` is ``statements -> expression``: the kernel's statements on the buffers of ``HEAD``, and the NumPy
expression on the arrays of the same names. The result is ``y``, or the buffer that ``@`` names after the expression. Two
semicolons separate statements.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from ops import reference, surface
from tilelang_npu import ops
from tilelang_npu.language import gpu_hints

TABLES = {dialect: (Path(__file__).parent / f"forms_{dialect}.txt").read_text(encoding="utf-8")
          for dialect in ("ascendc", "npuir")}
AUTOMATIC = dict.fromkeys((
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING), True)
INPUTS = {"X": "float32", "Z": "float32", "H": "float16", "I": "int32", "J": "int32"}
OUTPUTS = {"y": ((16, 64), "float32"), "yh": ((16, 64), "float16"), "yi": ((16, 64), "int32"), "ycol": ((16, 1), "float32"),
           "yrow": ((1, 64), "float32"), "yvec": ((64,), "float32"), "ywide": ((16, 128), "float32"),
           "ysq": ((16, 16), "float32"), "G": ((16, 64), "float32"), "Gsq": ((16, 16), "float32")}
HEAD = """
    import tilelang_npu.language as T
    import tilelang_npu as tilelang
    from tilelang_npu.language.layouts import make_nz_layout, make_zn_layout

    @T.macro
    def doubled(source, target):
        T.tile.add(target, source, source)

    @T.prim_func
    def main(X: T.Tensor((16, 64), "float32"), Z: T.Tensor((16, 64), "float32"), H: T.Tensor((16, 64), "float16"),
             I: T.Tensor((16, 64), "int32"), J: T.Tensor((16, 64), "int32"), G: T.Tensor({shape}, "{dtype}"), n: T.int32,
             s: T.float32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            {allocations}
            {statements}
"""
ON_CHIP = {"x": ("X", "float32"), "z": ("Z", "float32"), "h": ("H", "float16"), "i": ("I", "int32"), "j": ("J", "int32")}


def forms(dialect: str) -> list[Any]:
    """Returns the lines of a table as parameters; ``T.*add`` means both ``T.vadd`` and ``T.npuir_add``."""
    lines = [line.replace("T.*", prefix) for line in TABLES[dialect].splitlines()
             for prefix in (("T.v", "T.npuir_") if "T.*" in line else ("",))]
    return [pytest.param(*line.split(" -> "), id=line.split(" -> ")[0]) for line in lines]


def run(source: Any, dialect: str, statements: str, expression: str) -> None:
    """Compiles and runs the statements, and compares the result with the expression."""
    expected, _, name = expression.partition(" @ ")
    name = name or "y"
    shape, dtype = OUTPUTS[name]
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", statements))
    lines, ascendc = [], dialect == "ascendc"
    for buffer, (tensor, kind) in ON_CHIP.items():
        if buffer in words:
            lines += [f"{buffer} = T.alloc_ub((16, 64), {kind!r})", f"T.copy({tensor}, {buffer})"]
    if name[0] != "G":
        lines += [f"{name} = T.alloc_ub({shape}, {dtype!r})", f"T.{'tile.' * ascendc}fill({name}, 0)"]
    work = [*statements.split(" ;; "), *([f"T.copy({name}, G)"] if name[0] != "G" else [])]
    text = HEAD.format(shape=shape, dtype=dtype, allocations="\n            ".join(lines or ["pass"]),
                       statements="\n            ".join(work))
    rng = np.random.default_rng(5)
    arrays: dict[str, Any] = {tensor: (rng.permutation(16 * 64).reshape(16, 64) % 61 + 1).astype(kind)
                              for tensor, kind in INPUTS.items()}
    arrays["G"] = np.zeros(shape, dtype)
    known: dict[str, Any] = {**{buffer: arrays[tensor] for buffer, (tensor, _) in ON_CHIP.items()}, **arrays, "np": np, "n": 3,
                             "s": 2.5}
    wanted = np.asarray(eval(expected, {**known, "G": arrays["G"].copy()}))
    kernel = tilelang.compile(source(text).main, target=dialect, pass_configs=AUTOMATIC if ascendc else None)
    got, wanted = arrays["G"], np.broadcast_to(wanted, shape)
    for execute in (kernel, kernel.interpret):
        got[...] = 0
        execute(*arrays.values(), 3, 2.5)
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=2e-3 if got.dtype == np.float16 else 1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("statements", "expression"), forms("ascendc"))
def test_ascendc(source: Any, statements: str, expression: str) -> None:
    run(source, "ascendc", statements, expression)


@pytest.mark.parametrize(("statements", "expression"), forms("npuir"))
def test_npuir(source: Any, statements: str, expression: str) -> None:
    run(source, "npuir", statements, expression)


OTHERS = {
    "types and annotations": ("Buffer", "FragmentBuffer", "LocalBuffer", "SharedBuffer", "GemmWarpPolicy", "Macro", "PrimFunc",
                              "StridedTensor", "Sym", "dtype", "dynamic", "symbolic"),
    "tests/runtime/test_eager": ("const", "empty"),
    "tests/runtime/test_several_launches": ("alloc_global",),
    "test_block_scaled": ("alloc_L1_scale_a", "alloc_L1_scale_b", "gemm_mx", "mma_mx"),
    "test_patch_loads": ("tile.im2col",),
    "test_branch_frames": ("Else",),
    "test_cross_core": ("sync_block_set", "sync_block_wait"),
    "test_cube_moves": ("store_nz2nd", "npuir_store_nz2nd"),
    "test_reductions": ("reduce_all", "reduce_any", "reduce_bitand", "reduce_bitor", "reduce_bitxor", "reduce_prod",
                        "reduce_with_index"),
    "test_reducers": ("alloc_reducer", "finalize_reducer", "reducer_init", "reducer_update"),
    "test_structured": ("view_experiment",),
    "test_repeats": ("bilinear_interpolation", "fill_experiment", "gatherb", "gathermask_experiment", "init_sort_buf"),
    "test_vmi": ("SimdVF", "SimtVF"),
    "test_thread_guards": ("get_thread_binding", "get_thread_bindings"),
    "tests/language/test_gpu_hints.py": (*gpu_hints.__all__, "Fragment", "Layout", "Ref", "sync_grid"),
    "tests/ops/test_peers.py": ("shmem_get_nbi", "shmem_put_nbi", "shmem_ub_get_nbi", "shmem_ub_put_nbi",
                                "shmem_ub_atomic_add_nbi"),
    "tests/test_card_signals.py": ("shmem_barrier", "shmem_barrier_all", "shmem_fence", "shmem_mte_quiet", "shmem_quiet",
                                   "shmem_signal_op", "shmem_signal_wait_until"),
    "tests/ops": ("sort32", "atomic_add", "atomic_addx2", "atomic_addx4", "brc"),
}
"""Names that no table holds, by the test that does."""


def test_every_name_has_a_form() -> None:
    text = HEAD + "".join(TABLES.values())
    used = {match.group(1) for match in re.finditer(r"\bT\.((?:tile\.)?\w+)", text.replace("T.*", "T.v"))}
    entries = [frozenset((entry.name, *entry.aliases)) for entry in ops.operations().values()]
    public = {name for name in (*T.__all__, *T._functions()) if callable(getattr(T, name, None)) or name.startswith("tile.")}
    used |= {name for entry, name in surface.covered() if entry.name in reference.ELEMENTWISE}  # tests/ops calls them
    others = {name for names in OTHERS.values() for name in names}
    bare = {name: re.sub(r"^(tile\.|npuir_|v(?=[a-z]))", "", name) for name in public}
    missing = {name for name in public - used if not {name, bare[name]} & others
               and not any(name in names and names & used for names in entries)}
    assert not missing
