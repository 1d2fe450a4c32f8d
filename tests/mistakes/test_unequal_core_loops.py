"""The loops of Cube and Vector that hand over to each other have different bounds."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[3], workspace_idx=[1, 2], target="ascendc",
              pass_configs={"tl.ascend_auto_sync": True, "tl.ascend_auto_cv_combine": True,
                            "tl.ascend_auto_cross_core_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), S: T.Tensor((64, 64), "float32"), P: T.Tensor((64, 64), "float16"),
             C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, p = T.alloc_L1((64, 64), "float16"), T.alloc_L1((64, 64), "float16")
            s, o = T.alloc_L0C((64, 64), "float32"), T.alloc_L0C((64, 64), "float32")
            x, h = T.alloc_ub((32, 64), "float32"), T.alloc_ub((32, 64), "float16")
            for _ in T.serial(4):  # mistake
                T.copy(H, a)
                T.gemm_v0(a, a, s, init=True)
                T.copy(s, S)
                T.copy(P, p)
                T.gemm_v0(p, a, o, init=True)
            for _ in T.serial(2):
                T.copy(S[vid * 32, 0], x)
                T.copy(x, h)
                T.copy(h, P[vid * 32, 0])
            T.copy(o, C)

    return main


def test_unequal_core_loops(refused):
    with refused("T205", at="for", message="do not surely run over the same range", help="same bounds"):
        factory().mlir()
