"""Right: macros, names imported by themselves, a class of settings, and both cores by hand."""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_npu import jit, language, lower
from tilelang_npu.language import Kernel, alloc_L1, ceildiv, macro, prim_func
from tilelang_npu.language import Tensor as Array


@dataclass
class Tiles:
    rows: int = 128
    columns: int = 128


@macro
def load(source, row, into):
    language.copy(source[row, 0], into)


@jit
def factory(m: int, k: int, tiles: Tiles):
    @prim_func
    def main(A: Array((m, k), "float16"), B: Array((k, tiles.columns), "float16"), C: Array((m, tiles.columns), "float32")):
        with Kernel(ceildiv(m, tiles.rows), is_npu=True) as (block, _):
            a = alloc_L1((tiles.rows, k), language.float16)
            b = alloc_L1((k, tiles.columns), language.float16)
            c = language.alloc_L0C((tiles.rows, tiles.columns), "float32")
            with language.Scope("C"):
                load(A, block * tiles.rows, a)
                load(B, 0, b)
                language.set_flag("mte2", "mte1", 0)
                language.wait_flag("mte2", "mte1", 0)
                language.gemm_v0(a, b, c, init=True)
                language.pipe_barrier("ALL")
                language.copy(c, C[block * tiles.rows, 0])

    return main


print(factory(128, 64, Tiles()).name, lower)
