"""A kernel of operations that a plug-in has."""

from typing import Any

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def softsign(rows: int, columns: int) -> Any:
    @T.prim_func
    def softsign(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows // 16, is_npu=True) as (block, _):
            x = T.alloc_shared((16, columns), "float32")
            y = T.alloc_shared((16, columns), "float32")
            T.load_reversed(A[block * 16:block * 16 + 16, 0:columns], x)
            T.softsign(x, y)
            T.rotate(y, x, by=3)
            T.vrelu(x, x)
            T.vrelu(x, x)
            T.copy(x, B[block * 16, 0])

    return softsign


kernel = softsign(64, 128)


def test_softsign() -> None:
    a = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    turned = a[:, ::-1]
    expected = np.maximum(np.roll(turned / (1 + np.abs(turned)), 3, axis=-1), 0)
    np.testing.assert_allclose(kernel(a), expected, rtol=1e-6)


if __name__ == "__main__":
    test_softsign()
    print("PASS")
