"""Right: loops, branches and scalars of a kernel."""

import tilelang_npu as tilelang
import tilelang_npu.language as T

count = T.dynamic("count")


@tilelang.jit(target="npuir")
def running(width: int, dtype: str = "float16"):
    @T.prim_func
    def main(A: T.Tensor((count, width), dtype), Out: T.Tensor[(count, width), dtype], limit: T.int32):
        with T.Kernel(T.ceildiv(count, 8), is_npu=True) as (block, _):
            a = T.alloc_shared((8, width), dtype)
            c = T.alloc_fragment([8, width], "float32")
            seen = T.alloc_var("int32", init=0)
            T.clear(c)
            for i in range(2):
                seen = seen + i
            for i in T.serial(T.min(block + 1, 4)):
                seen = seen + i
                if seen > limit:
                    T.copy(A[block * 8, 0], a)
                else:
                    T.fill(a, 0.0)
            for i, j in T.Parallel(8, width):
                c[i, j] = T.if_then_else(a[i, j] > 0, T.exp(a[i, j]), a[i, j] * 2.0)
            for j in T.Pipelined(width // 64, num_stages=2):
                T.vadd(c[:, j * 64 : j * 64 + 64], 1.0, c[:, j * 64 : j * 64 + 64])
            while seen < 10:
                seen += 1
            T.copy(c, Out[block * 8, 0])

    return main


running(128).get_kernel_source()

# symbolic sizes, switches of either spelling, and scalars on the host
tiles: int = tilelang.cdiv(1000, 128) + T.ceildiv(1000, 128) + T.min(3, 4).value
half = T.ceildiv(T.min(count, 64), 2)
switches = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
tilelang.jit(pass_configs=switches)
tilelang.jit(pass_configs={"tl.ascend_auto_sync": True}, target="npuir")
print(tilelang.cdiv(count, 64), half, tiles)
