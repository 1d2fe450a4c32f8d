"""Measures how long ``kernel.estimate()`` of attention of model size takes, and its memory.

    python benchmarks/estimates.py [--heads 64] [--length 32768] [--only grid,persistent,causal]

- ``grid``: a block for each tile of 128 queries.
- ``persistent``: 24 blocks, each with a loop of ``T.Persistent`` over tiles.
- ``causal``: the same, and a tile reads only the keys up to its last query.

Each form is compiled and measured in its own process. The time is the processor time of the estimate; the memory is how much
the peak of the process grew.
"""

import argparse
import resource
import subprocess
import sys
import time
from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T

AUTO = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
}
FORMS = ("grid", "persistent", "causal")


@tilelang.jit(out_idx=[3], target="ascendc", pass_configs=AUTO)
def attention(heads: int, length: int, form: str, dim: int = 128, tile: int = 128, cores: int = 24) -> Any:
    tiles = length // tile
    blocks = heads * tiles if form == "grid" else cores

    @T.prim_func
    def attention(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        O: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(blocks, is_npu=True) as (core, _):
            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, dim), "float16")
            score = T.alloc_fragment((tile, tile), "float32")
            weight = T.alloc_shared((tile, tile), "float16")
            product = T.alloc_fragment((tile, dim), "float32")
            result = T.alloc_fragment((tile, dim), "float32")
            largest = T.alloc_fragment((tile,), "float32")
            before = T.alloc_fragment((tile,), "float32")
            total = T.alloc_fragment((tile,), "float32")
            share = T.alloc_fragment((tile,), "float32")
            for head, part in T.Persistent([heads, tiles], blocks, core):
                T.copy(Q[head, part * tile, 0], q)
                T.fill(result, 0)
                T.fill(total, 0)
                T.fill(largest, -1e30)
                for step in T.Pipelined(part + 1 if form == "causal" else tiles, num_stages=2):
                    T.copy(K[head, step * tile, 0], k)
                    T.gemm(q, k, score, transpose_B=True, clear_accum=True)
                    T.copy(largest, before)
                    T.reduce_max(score, largest, dim=1, clear=False)
                    for i in T.Parallel(tile):
                        share[i] = T.exp(before[i] - largest[i])
                    for i, j in T.Parallel(tile, tile):
                        score[i, j] = T.exp((score[i, j] - largest[i]) * dim**-0.5)
                    for i in T.Parallel(tile):
                        total[i] *= share[i]
                    T.reduce_sum(score, total, dim=1, clear=False)
                    T.copy(score, weight)
                    T.copy(V[head, step * tile, 0], v)
                    T.gemm(weight, v, product, clear_accum=True)
                    for i, j in T.Parallel(tile, dim):
                        result[i, j] = result[i, j] * share[i] + product[i, j]
                for i, j in T.Parallel(tile, dim):
                    result[i, j] /= total[i]
                T.copy(result, O[head, part * tile, 0])

    return attention


def peak() -> int:
    """Returns the largest memory of the process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1 << 20)


def measure(form: str, heads: int, length: int) -> None:
    kernel = attention(heads, length, form)
    memory, start = peak(), time.process_time()
    launch = kernel.estimate()
    modelled = launch.time_us
    seconds = time.process_time() - start
    print(f"| {form} | {heads} x {length} | {seconds:.2f} | {peak() - memory} | {modelled:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, default=64)
    parser.add_argument("--length", type=int, default=32768)
    parser.add_argument("--only", default=",".join(FORMS))
    given = parser.parse_args()
    forms = given.only.split(",")
    if len(forms) == 1:
        measure(forms[0], given.heads, given.length)
        return
    print("| form | heads x queries | seconds | MB | modelled us |\n|---|---|---|---|---|", flush=True)
    for form in forms:
        subprocess.run([sys.executable, __file__, "--heads", str(given.heads), "--length", str(given.length), "--only", form],
                       check=True)


if __name__ == "__main__":
    main()
