"""512 keys at a time

This is the last form of causal attention, with KV head `h // group`; only the two loads depend on the groups. The heads of
a group are consecutive, so cores that run at the same time load the same keys, and these are read from HBM only once.

Removes cause: narrow tile
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T

AUTO = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
}


@tilelang.jit(out_idx=[3], workspace_idx=[4, 5, 6, 7], target="ascendc", pass_configs=AUTO)
def gqa(heads, kv_heads, length, dim, step=512, loaded=256, base=128, rows=16, lines=32, cores=24):
    group = heads // kv_heads
    tiles = 2 * -(-length // (4 * base))  # in each head, an even number
    pairs = heads * tiles // 2
    turns_of = tiles // 2 + 1  # iterations for a pair of tiles, each with ``step`` keys

    @T.prim_func
    def gqa(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((kv_heads, length, dim), "float16"),
        V: T.Tensor((kv_heads, length, dim), "float16"),
        O: T.Tensor((heads, length, dim), "float16"),
        scaled: T.Tensor((heads, length, dim), "float16"),
        scores: T.Tensor((cores, 2 * base, step), "float16"),
        weights: T.Tensor((cores, 2 * base, step), "float16"),
        products: T.Tensor((cores, 2 * base, dim), "float32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            q = T.alloc_L1((2 * base, dim), "float16")
            k = T.alloc_L1((loaded, dim), "float16")
            v = T.alloc_L1((step, dim), "float16")
            p = T.alloc_L1((base, base), "float16")
            score = T.alloc_L0C((base, base), "float32")
            product = T.alloc_L0C((base, dim), "float32")

            given = T.alloc_ub((lines, dim), "float16")
            half = T.alloc_ub((rows, step), "float16")
            s = T.alloc_ub((rows, step), "float32")
            found = T.alloc_ub((rows, 1), "float32")
            sums = T.alloc_ub((base, 1), "float32")
            largest = T.alloc_ub((base, 1), "float32")
            share = T.alloc_ub((base, 1), "float32")
            total = T.alloc_ub((base, 1), "float32")
            added = T.alloc_ub((lines, dim), "float32")
            result = T.alloc_ub((base, dim), "float32")
            narrow = T.alloc_ub((lines, dim), "float16")

            own_pairs = T.ceildiv(pairs - core, cores)
            for turn in T.serial(2 * own_pairs):
                pair = turn // 2 * cores + core
                short = pair % (tiles // 2)
                tile = short + turn % 2 * (tiles - 1 - 2 * short)
                for r in T.Pipelined(base // lines, num_stages=2):
                    row = tile * 2 * base + vid * base + r * lines
                    T.copy(Q[pair // (tiles // 2), row : row + lines, :], given)
                    T.tile.mul(given, given, dim**-0.5)
                    T.copy(given, scaled[pair // (tiles // 2), row : row + lines, :])
            T.tile.fill(result, 0.0)
            T.tile.fill(total, 0.0)

            for turn in T.Pipelined(own_pairs * turns_of, num_stages=2):
                pair = turn // turns_of * cores + core
                head = pair // (tiles // 2)
                short = pair % (tiles // 2)
                long = tiles - 1 - short
                second = turn % turns_of // (long // 2 + 1)  # 0 for the long tile, 1 for the short one
                tile = long - second * (long - short)
                i = turn % turns_of - second * (long // 2 + 1)
                first = tile * 2 * base

                if i == 0:
                    T.copy(scaled[head, first : first + 2 * base, :], q)
                for part in T.Pipelined(step // loaded, num_stages=2):
                    T.copy(K[head // group, i * step + part * loaded:i * step + (part + 1) * loaded, :], k)
                    for h in T.serial(2):
                        for j in T.Pipelined(loaded // base, num_stages=2):
                            T.gemm_v0(q[h * base:(h + 1) * base, :], k[j * base:(j + 1) * base, :], score,
                                      transpose_B=True, init=True)
                            at = part * loaded + j * base
                            T.copy(score, scores[core, h * base:(h + 1) * base, at : at + base])

                if i == 0:
                    T.tile.fill(largest, -(2.0**30))  # gives the results of the previous tile a weight of zero
                T.copy(largest, share)
                for r in T.Pipelined(base // rows, num_stages=3):
                    at = vid * base + r * rows
                    T.copy(scores[core, at : at + rows, :], half)
                    T.copy(half, s)
                    if i == tile // 2:  # on the diagonal
                        for y in T.serial(rows // 4):
                            for z, x in T.Parallel(4, step):
                                s[y * 4 + z, x] = T.if_then_else(
                                    i * step + x <= first + at + y * 4 + z, s[y * 4 + z, x], -(2.0**30)
                                )
                    T.reduce_max(s, found, dim=-1)
                    T.tile.max(found, found, largest[r * rows:(r + 1) * rows, :])
                    T.copy(found, largest[r * rows:(r + 1) * rows, :])
                    T.tile.sub(s, s, found)
                    T.tile.exp(s, s)
                    T.copy(s, half)
                    T.copy(half, weights[core, at : at + rows, :])
                    T.reduce_sum(s, sums[r * rows:(r + 1) * rows, :], dim=-1)
                T.tile.sub(share, share, largest)
                T.tile.exp(share, share)

                T.copy(V[head // group, i * step:(i + 1) * step, :], v)
                for h in T.serial(2):
                    for j in T.Pipelined(step // base, num_stages=2):
                        T.copy(weights[core, h * base:(h + 1) * base, j * base:(j + 1) * base], p)
                        T.gemm_v0(p, v[j * base:(j + 1) * base, :], product, init=(j == 0))
                    T.copy(product, products[core, h * base:(h + 1) * base, :])

                T.tile.mul(total, total, share)
                T.tile.add(total, total, sums)
                for r in T.Pipelined(base // lines, num_stages=2):
                    at = r * lines
                    T.copy(products[core, vid * base + at:vid * base + at + lines, :], added)
                    T.tile.mul(result[at : at + lines, :], result[at : at + lines, :], share[at : at + lines, :])
                    T.tile.add(result[at : at + lines, :], result[at : at + lines, :], added)
                if i == tile // 2:
                    for r in T.serial(base // lines):
                        at = r * lines
                        T.tile.div(result[at : at + lines, :], result[at : at + lines, :], total[at : at + lines, :])
                        T.copy(result[at : at + lines, :], narrow)
                        T.copy(narrow, O[head, first + vid * base + at : first + vid * base + at + lines, :])

    return gqa


if __name__ == "__main__":
    check(gqa)
