"""Attention kernels of one head size, hand-pipelined as in the sources: the same flags, slots and ring buffers in GM.

``by_rows`` is PTO-ISA's kernel: a block for each 128 queries, tiles of a multiple of 128 keys, the Cube core some tiles ahead,
ring buffers between the cores. ``in_batches`` is that of tilelang-ascend: a block for each core that loops over tiles of
queries; a core processes a batch of tiles of keys before it reads the results of the other core.
"""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

BASE, DIM = 128, 128
"""Rows of queries and of keys in one multiplication, and the size of a head."""
HEADS, CORES = 12, 24
"""Heads of the long measurements, and cores of the chip."""


def by_rows(queries: int, keys: int, *, tile: int = 256, ahead: int = 4, ring: int = 8, drains: bool = True,
            chip: str) -> Any:
    """Attention of one head. If there are more blocks than cores, the blocks of a core share its ring buffers.

    Args:
        tile: number of keys for which the cores exchange data at once.
        ahead: the number of tiles by which the scores are ahead of the products with V.
        ring: the number of tiles in each workspace.
        drains: whether long vector instructions wait for the result of the previous one. The source issues them without a
            barrier, since they process the same elements in the same order.
    """
    parts = tile // BASE
    rows = BASE // 2 // parts  # rows of a slice that a Vector core processes
    count, blocks = keys // tile, queries // BASE
    rings = min(blocks, CORES)
    half, scale = BASE // 2, DIM**-0.5
    scored, scores_taken, weighed, weights_taken, multiplied, product_taken = range(6)  # flags

    @T.prim_func
    def attention(
        Q: T.Tensor((queries, DIM), "float16"),
        K: T.Tensor((keys, DIM), "float16"),
        V: T.Tensor((keys, DIM), "float16"),
        O: T.Tensor((queries, DIM), "float32"),
        scores_of: T.Tensor((rings, ring, parts, BASE, BASE), "float32"),
        weights_of: T.Tensor((rings, ring, parts, BASE, BASE), "float16"),
        product_of: T.Tensor((rings, ring, BASE, DIM), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, vid):
            q = T.alloc_L1((BASE, DIM), "float16")
            k = T.alloc_L1((2, BASE, DIM), "float16")
            v = T.alloc_L1((2, BASE, DIM), "float16")
            p = T.alloc_L1((2, BASE, BASE), "float16")
            left = T.alloc_L0A((2, BASE, BASE), "float16")
            right = T.alloc_L0B((2, BASE, BASE), "float16")
            scores_l0 = T.alloc_L0C((BASE, BASE), "float32")
            product_l0 = T.alloc_L0C((BASE, DIM), "float32")

            with T.Scope("C"):
                for slot in range(2):
                    T.set_flag("mte1", "mte2", slot)
                    T.set_flag("mte1", "mte2", 2 + slot)
                    T.set_flag("m", "mte1", slot)
                    T.set_flag("fix", "m", slot)
                T.copy(Q[block * BASE, 0], q)

                for i in T.serial(count + ahead):
                    for part in T.serial(parts):
                        slot = part % 2
                        if i < count:
                            T.wait_flag("mte1", "mte2", slot)
                            T.copy(K[i * tile + part * BASE, 0], k[slot, :, :])
                            T.set_flag("mte2", "mte1", slot)
                            T.wait_flag("mte2", "mte1", slot)
                            T.wait_flag("m", "mte1", 0)
                            T.copy(q, left[0, :, :])
                            T.copy(k[slot, :, :], right[0, :, :], transpose=True)
                            T.set_flag("mte1", "mte2", slot)
                            T.set_flag("mte1", "m", 0)
                            T.wait_flag("mte1", "m", 0)
                            T.wait_flag("fix", "m", 0)
                            T.mma(left[0, :, :], right[0, :, :], scores_l0, init=True)
                            T.set_flag("m", "mte1", 0)
                            T.set_flag("m", "fix", 0)
                            T.wait_flag("m", "fix", 0)
                            if T.And(part == 0, i >= ring):
                                T.wait_cross_flag(scores_taken)
                            T.copy(scores_l0, scores_of[block % rings, i % ring, part, :, :])
                            T.set_flag("fix", "m", 0)
                            if part == parts - 1:
                                T.set_cross_flag("fix", scored)
                        if i >= ahead:
                            j = i - ahead
                            T.wait_flag("mte1", "mte2", 2 + slot)
                            T.copy(V[j * tile + part * BASE, 0], v[slot, :, :])
                            if part == 0:
                                T.wait_cross_flag(weighed)
                            T.copy(weights_of[block % rings, j % ring, part, :, :], p[slot, :, :])
                            if part == parts - 1:
                                T.set_cross_flag("mte2", weights_taken)
                            T.set_flag("mte2", "mte1", 2 + slot)
                            T.wait_flag("mte2", "mte1", 2 + slot)
                            T.wait_flag("m", "mte1", 1)
                            T.copy(p[slot, :, :], left[1, :, :])
                            T.copy(v[slot, :, :], right[1, :, :])
                            T.set_flag("mte1", "mte2", 2 + slot)
                            T.set_flag("mte1", "m", 1)
                            T.wait_flag("mte1", "m", 1)
                            if part == 0:
                                T.wait_flag("fix", "m", 1)
                            T.mma(left[1, :, :], right[1, :, :], product_l0, init=(part == 0))
                            T.set_flag("m", "mte1", 1)
                            if part == parts - 1:
                                T.set_flag("m", "fix", 1)
                                T.wait_flag("m", "fix", 1)
                                if j >= ring:
                                    T.wait_cross_flag(product_taken)
                                T.copy(product_l0, product_of[block % rings, j % ring, :, :])
                                T.set_flag("fix", "m", 1)
                                T.set_cross_flag("fix", multiplied)

                for slot in range(2):
                    T.wait_flag("mte1", "mte2", slot)
                    T.wait_flag("mte1", "mte2", 2 + slot)
                    T.wait_flag("m", "mte1", slot)
                    T.wait_flag("fix", "m", slot)
                for _rest in T.serial(T.min(count, ring)):
                    T.wait_cross_flag(scores_taken)
                    T.wait_cross_flag(product_taken)

            scores = T.alloc_ub((2, rows, tile), "float32")
            weights = T.alloc_ub((2, rows, tile), "float16")
            product = T.alloc_ub((half, DIM), "float32")
            result = T.alloc_ub((half, DIM), "float32")
            largest = T.alloc_ub((half, 1), "float32")
            total = T.alloc_ub((half, 1), "float32")
            found = T.alloc_ub((half, 1), "float32")
            factor = T.alloc_ub((ring, half, 1), "float32")

            with T.Scope("V"):
                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                T.set_flag("v", "mte2", 2)
                T.tile.fill(result, 0.0)
                T.tile.fill(total, 0.0)
                T.tile.fill(largest, -(2.0**30))

                for i in T.serial(count + ahead):
                    for part in T.serial(parts):
                        slot = part % 2
                        first = vid * half + part * rows
                        at = part * rows
                        if i < count:
                            T.wait_flag("v", "mte2", slot)
                            if part == 0:
                                T.wait_cross_flag(scored)
                            for column in T.serial(parts):
                                T.copy(scores_of[block % rings, i % ring, column, first : first + rows, :],
                                       scores[slot, :, column * BASE : (column + 1) * BASE])
                            if part == parts - 1:
                                T.set_cross_flag("mte2", scores_taken)
                            T.set_flag("mte2", "v", slot)
                            T.wait_flag("mte2", "v", slot)
                            T.wait_flag("mte3", "v", slot)
                            new, old, sums = found[at : at + rows, :], largest[at : at + rows, :], total[at : at + rows, :]
                            shrunk = factor[i % ring, at : at + rows, :]
                            T.reduce_max(scores[slot, :, :], new, dim=-1)
                            T.pipe_barrier("v")
                            T.tile.max(new, new, old)
                            T.pipe_barrier("v")
                            T.tile.sub(shrunk, old, new)
                            T.pipe_barrier("v")
                            T.tile.mul(old, new, 1.0)
                            T.pipe_barrier("v")
                            T.tile.sub(scores[slot, :, :], scores[slot, :, :], new)
                            T.tile.mul(shrunk, shrunk, scale)
                            if drains:
                                T.pipe_barrier("v")
                            T.tile.mul(scores[slot, :, :], scores[slot, :, :], scale)
                            T.tile.exp(shrunk, shrunk)
                            if drains:
                                T.pipe_barrier("v")
                            T.tile.exp(scores[slot, :, :], scores[slot, :, :])
                            if drains:
                                T.pipe_barrier("v")
                            T.copy(scores[slot, :, :], weights[slot, :, :])
                            T.pipe_barrier("v")
                            T.tile.mul(sums, sums, shrunk)
                            T.reduce_sum(scores[slot, :, :], new, dim=-1)
                            T.pipe_barrier("v")
                            T.tile.add(sums, sums, new)
                            T.set_flag("v", "mte2", slot)
                            T.set_flag("v", "mte3", slot)
                            T.wait_flag("v", "mte3", slot)
                            if T.And(part == 0, i >= ring):
                                T.wait_cross_flag(weights_taken)
                            for column in T.serial(parts):
                                T.copy(weights[slot, :, column * BASE : (column + 1) * BASE],
                                       weights_of[block % rings, i % ring, column, first : first + rows, :])
                            if part == parts - 1:
                                T.set_cross_flag("mte3", weighed)
                            T.set_flag("mte3", "v", slot)
                    if i >= ahead:
                        j = i - ahead
                        T.wait_cross_flag(multiplied)
                        T.wait_flag("v", "mte2", 2)
                        T.copy(product_of[block % rings, j % ring, vid * half : (vid + 1) * half, :], product)
                        T.set_cross_flag("mte2", product_taken)
                        T.set_flag("mte2", "v", 2)
                        T.wait_flag("mte2", "v", 2)
                        T.tile.mul(result, result, factor[j % ring, :, :])
                        if drains:
                            T.pipe_barrier("v")
                        T.tile.add(result, result, product)
                        if drains:
                            T.pipe_barrier("v")
                        T.set_flag("v", "mte2", 2)

                T.tile.div(result, result, total)
                T.set_flag("v", "mte3", 2)
                T.wait_flag("v", "mte3", 2)
                T.copy(result, O[block * BASE + vid * half, 0])
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)
                T.wait_flag("v", "mte2", 2)
                for _rest in T.serial(T.min(count, ring)):
                    T.wait_cross_flag(weights_taken)

    return tilelang.compile(attention, target="ascendc", chip=chip, workspace_idx=[4, 5, 6])


def in_batches(tasks: int, keys: int, *, stages: int = 14, every: int = 2, cores: int = CORES, chip: str) -> Any:
    """Attention of several heads with one key head, as ``tasks`` tiles of 128 queries for each core; the cores exchange
    float16.

    Args:
        stages: the number of tiles of keys in a batch.
        every: the number of tiles after which the cores synchronise.
    """
    iterations = keys // BASE
    batches = -(-iterations // stages)
    half, scale = BASE // 2, DIM**-0.5
    scored, scores_taken, weighed, weights_taken, multiplied, product_taken = range(6)

    @T.prim_func
    def attention(
        Q: T.Tensor((cores * tasks * BASE, DIM), "float16"),
        K: T.Tensor((keys, DIM), "float16"),
        V: T.Tensor((keys, DIM), "float16"),
        O: T.Tensor((cores * tasks * BASE, DIM), "float16"),
        scores_of: T.Tensor((cores, stages, BASE, BASE), "float16"),
        weights_of: T.Tensor((cores, stages, BASE, BASE), "float16"),
        product_of: T.Tensor((cores, stages, BASE, DIM), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            q = T.alloc_L1((BASE, DIM), "float16")
            k = T.alloc_L1((BASE, DIM), "float16")
            v = T.alloc_L1((BASE, DIM), "float16")
            p = T.alloc_L1((BASE, BASE), "float16")
            left = T.alloc_L0A((2, BASE, BASE), "float16")
            right = T.alloc_L0B((2, BASE, BASE), "float16")
            acc = T.alloc_L0C((2, BASE, BASE), "float32")

            with T.Scope("C"):
                T.set_cross_flag("mte2", weights_taken)
                for i in range(3):
                    T.set_flag("mte1", "mte2", i)
                for side in range(2):
                    T.set_flag("m", "mte1", side)
                    T.set_flag("fix", "m", side)

                for t in T.serial(tasks):
                    T.copy(Q[(core * tasks + t) * BASE, 0], q)
                    T.barrier_all()
                    for batch in T.serial(batches):
                        length = T.min(stages, iterations - batch * stages)
                        T.wait_cross_flag(scores_taken)
                        for i in T.serial(length):
                            side = i % 2
                            T.wait_flag("mte1", "mte2", 0)
                            T.copy(K[(batch * stages + i) * BASE, 0], k)
                            T.set_flag("mte2", "mte1", 0)
                            T.wait_flag("m", "mte1", side)
                            if i < 2:
                                T.copy(q, left[side, :, :])
                            T.wait_flag("mte2", "mte1", 0)
                            T.copy(k, right[side, :, :], transpose=True)
                            T.set_flag("mte1", "mte2", 0)
                            T.set_flag("mte1", "m", side)
                            T.wait_flag("mte1", "m", side)
                            T.wait_flag("fix", "m", side)
                            T.mma(left[side, :, :], right[side, :, :], acc[side, :, :], init=True)
                            T.set_flag("m", "mte1", side)
                            T.set_flag("m", "fix", side)
                            T.wait_flag("m", "fix", side)
                            T.copy(acc[side, :, :], scores_of[core, i, :, :])
                            T.set_flag("fix", "m", side)
                            if T.Or((i + 1) % every == 0, i == length - 1):
                                T.set_cross_flag("fix", scored)

                        T.wait_cross_flag(product_taken)
                        for i in T.serial(length):
                            side = i % 2
                            T.wait_flag("mte1", "mte2", 2)
                            T.copy(V[(batch * stages + i) * BASE, 0], v)
                            T.set_flag("mte2", "mte1", 2)
                            T.wait_flag("mte1", "mte2", 1)
                            if i % every == 0:
                                T.wait_cross_flag(weighed)
                            T.copy(weights_of[core, i, :, :], p)
                            T.set_flag("mte2", "mte1", 1)
                            T.wait_flag("mte2", "mte1", 2)
                            T.wait_flag("m", "mte1", side)
                            T.copy(v, right[side, :, :])
                            T.set_flag("mte1", "mte2", 2)
                            T.wait_flag("mte2", "mte1", 1)
                            T.copy(p, left[side, :, :])
                            T.set_flag("mte1", "mte2", 1)
                            T.set_flag("mte1", "m", side)
                            T.wait_flag("mte1", "m", side)
                            T.wait_flag("fix", "m", side)
                            T.mma(left[side, :, :], right[side, :, :], acc[side, :, :], init=True)
                            T.set_flag("m", "mte1", side)
                            T.set_flag("m", "fix", side)
                            T.wait_flag("m", "fix", side)
                            T.copy(acc[side, :, :], product_of[core, i, :, :])
                            T.set_flag("fix", "m", side)
                            if T.Or((i + 1) % every == 0, i == length - 1):
                                T.set_cross_flag("fix", multiplied)
                        T.set_cross_flag("mte2", weights_taken)

                for i in range(3):
                    T.wait_flag("mte1", "mte2", i)
                for side in range(2):
                    T.wait_flag("m", "mte1", side)
                    T.wait_flag("fix", "m", side)
                T.wait_cross_flag(scores_taken)
                T.wait_cross_flag(product_taken)

            result = T.alloc_ub((half, DIM), "float32")
            factor = T.alloc_ub((stages, half, 1), "float32")
            sums = T.alloc_ub((stages, half, 1), "float32")
            total = T.alloc_ub((half, 1), "float32")
            lowest = T.alloc_ub((2, half, 1), "float32")
            loaded = T.alloc_ub((half, BASE), "float16")
            stored = T.alloc_ub((half, BASE), "float16")
            work = T.alloc_ub((half, BASE), "float32")
            spread = T.alloc_ub((half, BASE), "float32")

            with T.Scope("V"):
                T.set_cross_flag("mte2", scores_taken)
                T.set_cross_flag("mte2", product_taken)
                T.set_flag("v", "mte2", 0)
                T.set_flag("mte3", "v", 1)
                for t in T.serial(tasks):
                    T.tile.fill(result, 0.0)
                    T.tile.fill(total, 0.0)
                    T.tile.fill(lowest, 2.0**30)
                    T.pipe_barrier("v")
                    for batch in T.serial(batches):
                        length = T.min(stages, iterations - batch * stages)
                        T.wait_cross_flag(weights_taken)
                        for i in T.serial(length):
                            now, then = i % 2, (i + 1) % 2
                            T.wait_flag("v", "mte2", 0)
                            if i % every == 0:
                                T.wait_cross_flag(scored)
                            T.copy(scores_of[core, i, vid * half : (vid + 1) * half, :], loaded)
                            T.set_flag("mte2", "v", 0)
                            T.wait_flag("mte2", "v", 0)
                            T.copy(loaded, work)
                            T.set_flag("v", "mte2", 0)
                            T.pipe_barrier("v")
                            T.reduce_max(work, lowest[now, :, :], dim=-1)
                            T.pipe_barrier("v")
                            T.tile.mul(lowest[now, :, :], lowest[now, :, :], -scale)
                            T.pipe_barrier("v")
                            T.tile.min(lowest[now, :, :], lowest[now, :, :], lowest[then, :, :])
                            T.pipe_barrier("v")
                            T.tile.broadcast(spread, lowest[now, :, :])
                            T.pipe_barrier("v")
                            T.tile.axpy(spread, work, scale)
                            T.pipe_barrier("v")
                            T.tile.exp(work, spread)
                            T.pipe_barrier("v")
                            T.wait_flag("mte3", "v", 1)
                            T.copy(work, stored)
                            T.set_flag("v", "mte3", 1)
                            T.wait_flag("v", "mte3", 1)
                            T.copy(stored, weights_of[core, i, vid * half : (vid + 1) * half, :])
                            T.set_flag("mte3", "v", 1)
                            if T.Or((i + 1) % every == 0, i == length - 1):
                                T.set_cross_flag("mte3", weighed)
                            T.reduce_sum(work, sums[i, :, :], dim=-1)
                            T.tile.sub(factor[i, :, :], lowest[now, :, :], lowest[then, :, :])
                            T.pipe_barrier("v")
                        T.set_cross_flag("mte2", scores_taken)

                        for i in T.serial(length):
                            T.tile.exp(factor[i, :, :], factor[i, :, :])
                            T.pipe_barrier("v")
                            T.tile.mul(total, total, factor[i, :, :])
                            T.pipe_barrier("v")
                            T.tile.add(total, total, sums[i, :, :])
                            T.tile.broadcast(spread, factor[i, :, :])
                            T.pipe_barrier("v")
                            T.tile.mul(result, result, spread)
                            T.wait_flag("v", "mte2", 0)
                            if i % every == 0:
                                T.wait_cross_flag(multiplied)
                            T.copy(product_of[core, i, vid * half : (vid + 1) * half, :], loaded)
                            T.set_flag("mte2", "v", 0)
                            T.wait_flag("mte2", "v", 0)
                            T.copy(loaded, work)
                            T.set_flag("v", "mte2", 0)
                            T.pipe_barrier("v")
                            T.tile.add(result, result, work)
                            T.pipe_barrier("v")
                        T.set_cross_flag("mte2", product_taken)

                    T.tile.broadcast(spread, total)
                    T.pipe_barrier("v")
                    T.tile.div(result, result, spread)
                    T.pipe_barrier("v")
                    T.wait_flag("mte3", "v", 1)
                    T.copy(result, stored)
                    T.set_flag("v", "mte3", 1)
                    T.wait_flag("v", "mte3", 1)
                    T.copy(stored, O[(core * tasks + t) * BASE + vid * half, 0])
                    T.set_flag("mte3", "v", 1)
                T.wait_flag("v", "mte2", 0)
                T.wait_flag("mte3", "v", 1)
                T.wait_cross_flag(weights_taken)

    return tilelang.compile(attention, target="ascendc", chip=chip, workspace_idx=[4, 5, 6])


def square(length: int) -> Case:
    """A case with as many queries as keys."""
    return Case(lambda _count: by_rows(length, length, drains=False, chip="910B2"), upstream=True)


def of_grid(queries: int, keys: int) -> Case:
    """A case with a core for each 128 queries."""
    return Case(lambda _count: by_rows(queries, keys, drains=False, chip="910B2"), upstream=True)


def expert(length: int) -> Case:
    """A case of 12 heads: some tiles of queries of a core are modelled, the total is extrapolated linearly."""
    return Case(lambda count: in_batches(count, length, cores=CORES, chip="910_9391"), (1, 2), HEADS * length // BASE // CORES,
                upstream=True)


def vendor(length: int) -> Case:
    """A case of 12 heads, in which each core executes several blocks in sequence."""
    def kernel(count: int) -> Any:
        return by_rows(CORES * count * BASE, length, tile=512, ahead=2, ring=4, drains=False, chip="910_9391")

    return Case(kernel, (1, 2), HEADS * length // BASE // CORES,
                upstream=True)


CASES = {
    **{f"flash_{length}": square(length) for length in (1024, 2048, 8192, 32768)},
    **{f"grid_{queries}_{keys}": of_grid(queries, keys) for queries in (128, 256, 512, 2048)
       for keys in (1024, 2048, 4096, 8192)},
    **{f"vendor_{length}": vendor(length) for length in (32768, 65536, 131072)},
    **{f"expert_{length}": expert(length) for length in (32768, 65536, 131072)},
}
