"""Tokens are cast to FP8, with a scale for each 128 of their elements, by a vector function of Ascend 950.

Each group of a token is loaded into registers once: its largest element, its scale and its FP8 elements are computed without
storing anything in between.
"""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T

GROUP, LARGEST, LEAST = 128, 448.0, 1e-4


@tilelang.jit(target="pto", chip="950")
def cast_to_fp8(tokens, hidden):
    groups = hidden // GROUP

    @T.prim_func
    def cast_to_fp8(
        X: T.Tensor((tokens, hidden), "float16"),
        Y: T.Tensor((tokens, hidden), "float8_e4m3fn"),
        S: T.Tensor((tokens, groups), "float32"),
    ):
        with T.Kernel(tokens) as token:
            x = T.alloc_shared((hidden,), "float16")
            y = T.alloc_shared((hidden,), "float8_e4m3fn")
            s = T.alloc_shared((groups,), "float32")
            T.copy(X[token, 0], x)
            with T.SimdVF():
                every = T.vmi.create_mask(GROUP, size=GROUP)
                one = T.vmi.create_mask(1, size=1)
                for group in T.serial(groups):
                    v = T.vmi.vcvt(T.vmi.vload(x[group * GROUP], size=GROUP), "float32")
                    most = T.vmi.vmaxs(T.vmi.vcmax(T.vmi.vabs(v, every), every), LEAST, one)
                    scale = T.vmi.vmuls(most, 1 / LARGEST, one)
                    T.vmi.vstore(scale, s[group])
                    scaled = T.vmi.vdiv(v, T.vmi.vbrc(scale, size=GROUP), every)
                    T.vmi.vstore(T.vmi.vcvt(scaled, "float8_e4m3fn", saturate="SAT"), y[group * GROUP])
            T.copy(y, Y[token, 0])
            T.copy(s, S[token, 0])

    return cast_to_fp8


SHAPES = [(50, 7 * GROUP), (3, 5 * GROUP), (1, GROUP)]


def expected(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    parts = x.astype(np.float32).reshape(len(x), -1, GROUP)
    scales = np.maximum(abs(parts).max(axis=2), np.float32(LEAST)) * np.float32(1 / LARGEST)
    return (parts / scales[:, :, None]).astype(ml_dtypes.float8_e4m3fn).reshape(x.shape), scales


if __name__ == "__main__":
    for tokens, hidden in SHAPES:
        x = np.random.default_rng(0).standard_normal((tokens, hidden)).astype(np.float16)
        y, scales = np.zeros(x.shape, ml_dtypes.float8_e4m3fn), np.zeros((tokens, hidden // GROUP), np.float32)
        cast_to_fp8(tokens, hidden)(x, y, scales)
        np.testing.assert_array_equal(y, expected(x)[0])
        np.testing.assert_array_equal(scales, expected(x)[1])
    print("PASS")
