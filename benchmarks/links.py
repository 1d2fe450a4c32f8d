"""Compares the modelled bandwidth of transfers between cards with published measurements of Ascend 910B.

    python benchmarks/links.py

* ``get``: one Vector core copies from another card through one tile of 4 KB, synchronously (PTO-ISA,
  kernels/manual/a2a3/tget_bandwidth, cycles of 20 ns). The latency of the links is fitted to 4 KB.
* ``reduce-scatter and all-gather``: 24 Vector cores of eight cards add 258 tiles of 64 KB to the cards that own them, and these
  put the sums to all others (PTO-ISA, kernels/manual/a2a3/gemm_ar: 375 us). Nothing is fitted to it.
"""

from __future__ import annotations

import tilelang_npu as tilelang
import tilelang_npu.language as T

GET = {4: 50.85, 16: 202.05, 64: 780.73, 256: 3347.12, 1024: 12703.39, 4096: 52878.12}
"""By KB, the published cycles of a copy."""
CYCLE = 20e-9
ALL_REDUCE_US = 375.0
KEY = tilelang.PassConfigKey
CONFIGS = {KEY.TL_ASCEND_AUTO_SYNC: True, KEY.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def get(tiles, tile=1024):
    @T.prim_func
    def get(X: T.Tensor((tiles, tile), "float32"), Y: T.Tensor((tiles, tile), "float32")):
        with T.Kernel(1, is_npu=True) as (_, vid), T.Scope("V"):
            staged = T.alloc_ub((1, tile), "float32")
            if vid == 0:
                for i in T.serial(tiles):
                    T.shmem_ub_get_nbi(staged, X[i, 0], tile, 1)
                    T.copy(staged, Y[i, 0])

    return get


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def all_reduce(rank=0, ranks=8, tiles=258, tile=128 * 256, cores=24):
    own = -(-tiles // ranks)

    @T.prim_func
    def all_reduce(P: T.Tensor((tiles, tile), "float16"), S: T.Tensor((tiles, tile), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, vid), T.Scope("V"):
            part = T.alloc_ub((2, tile), "float16")
            if vid == 0:
                for i in T.serial(T.ceildiv(tiles, cores)):
                    number = i * cores + core
                    if number < tiles:
                        T.copy(P[number, 0], part[i % 2, 0:tile])
                        T.shmem_ub_atomic_add_nbi(part[i % 2, 0:tile], S[number, 0], tile, number % ranks)
            T.shmem_barrier_all()
            if vid == 0:
                for i in T.serial(T.ceildiv(own * (ranks - 1), cores)):
                    number = i * cores + core
                    mine = number // (ranks - 1) * ranks + rank
                    if mine < tiles:
                        T.copy(S[mine, 0], part[i % 2, 0:tile])
                        T.shmem_ub_put_nbi(part[i % 2, 0:tile], S[mine, 0], tile, (rank + 1 + number % (ranks - 1)) % ranks)

    return all_reduce


def rows():
    """Yields for each measurement its name, the bytes that are moved, and the measured and the modelled microseconds."""
    for size, cycles in GET.items():
        launch = get(size // 4).estimate()
        yield f"get, {size} KB", size * 1024, cycles * CYCLE * 1e6, launch.time_us - launch.launch_us
    launch = all_reduce().estimate()
    yield ("reduce-scatter and all-gather, 258 tiles of 64 KB", 258 * 65536 * 7 // 8 * 2, ALL_REDUCE_US,
           launch.time_us - launch.launch_us)


def main() -> None:
    for name, nbytes, measured, modelled in rows():
        rates = " | ".join(f"{nbytes / us / 1e3:.1f} GB/s" for us in (measured, modelled))
        print(f"| {name} | {rates} | {modelled / measured - 1:+.0%} |")


if __name__ == "__main__":
    main()
