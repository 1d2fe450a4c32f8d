"""Results of edited kernels: equal, equal within rounding, different, or with a hazard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import program
from tilelang_npu.runtime.checks.result_comparison import Verdict
from tilelang_npu.runtime.improve.verification import ResultComparison


def affine(*, factor: float = 2.0, overwrites_input: bool = False, out_idx: list[int] | None = None,
           dtype: str = "float32") -> Any:
    """Y = factor * X + 1 of 8 rows; X is possibly set to Y, too."""
    @T.prim_func
    def main(X: T.Tensor((8, 64), dtype), Y: T.Tensor((8, 64), dtype)):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_shared((8, 64), dtype)
            T.copy(X, x)
            for r, c in T.Parallel(8, 64):
                x[r, c] = x[r, c] * factor + 1
            T.copy(x, Y)
            if overwrites_input:
                T.copy(x, X)

    return tilelang.compile(main, target="npuir", out_idx=out_idx)


def test_a_kernel_is_equal_to_itself() -> None:
    assert ResultComparison(affine()).verdict(affine()) == (Verdict.EQUAL, "")


def test_the_text_says_which_array_differs_where() -> None:
    x, y = np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float32)
    x[3, 5:7] = 1
    assert ResultComparison(affine(), [x, y]).verdict(affine(factor=3.0)) == (
        Verdict.DIFFERENT, "Y differs in 2 elements, first at [3, 5]")
    assert y.max() == 0, "kernels run with copies of the arguments"


def test_an_array_that_only_the_edited_kernel_writes_is_compared_too() -> None:
    assert ResultComparison(affine()).verdict(affine(overwrites_input=True)) == (
        Verdict.DIFFERENT, "X differs in 512 elements, first at [0, 0]")


def test_returned_arrays_are_compared() -> None:
    verdict, text = ResultComparison(affine(out_idx=[1])).verdict(affine(factor=3.0, out_idx=[1]))
    assert verdict is Verdict.DIFFERENT and text.startswith("result 0 differs in 512 elements")


def test_one_array_for_two_parameters_stays_one() -> None:
    """The kernel that writes X writes it again with the same numbers, as both are one array."""
    x = np.ones((8, 64), np.float32)
    assert ResultComparison(affine(), [x, x]).verdict(affine(overwrites_input=True)) == (Verdict.EQUAL, "")


def test_tensors_of_torch_stay_as_they_are() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, y = torch.ones(8, 64, dtype=torch.bfloat16), torch.zeros(8, 64, dtype=torch.bfloat16)
    check = ResultComparison(affine(dtype="bfloat16"), [x, y])
    assert check.verdict(affine(dtype="bfloat16"))[0] is Verdict.EQUAL
    assert check.verdict(affine(factor=3.0, dtype="bfloat16"))[0] is Verdict.DIFFERENT
    assert float(y.float().max()) == 0


def test_integers_are_never_rounded() -> None:
    assert ResultComparison(affine(dtype="int32")).verdict(affine(factor=3, dtype="int32"))[0] is Verdict.DIFFERENT


def test_another_order_of_additions_is_rounded() -> None:
    text = '''
        @tilelang.jit(target="npuir")
        def total(n, part=16):
            @T.prim_func
            def total(X: T.Tensor((8, n), "float32"), Y: T.Tensor((8, 1), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((8, part), "float32")
                    y = T.alloc_shared((8, 1), "float32")
                    s = T.alloc_shared((8, 1), "float32")
                    T.fill(y, 0)
                    for i in T.serial(n // part):
                        T.copy(X[0, i * part], x)
                        T.reduce_sum(x, s, dim=-1)
                        T.vadd(y, s, y)
                    T.copy(y, Y)

            return total
    '''
    check = ResultComparison(program(text, "total", n=512).kernel())
    assert check.verdict(program(text.replace("part=16", "part=64"), "total", n=512).kernel())[0] is Verdict.ROUNDED
    assert check.verdict(program(text.replace("n // part", "n // part - 1"), "total", n=512).kernel())[0] is Verdict.DIFFERENT


def test_blocks_that_race_are_a_hazard() -> None:
    text = '''
        @tilelang.jit(target="npuir")
        def counted(n, blocks=1):
            @T.prim_func
            def counted(X: T.Tensor((n, 64), "int32"), Y: T.Tensor((64,), "int32")):
                with T.Kernel(blocks, is_npu=True) as (block, _):
                    x = T.alloc_shared((64,), "int32")
                    y = T.alloc_shared((64,), "int32")
                    for i in T.serial(n // blocks):
                        T.copy(X[block * (n // blocks) + i, 0], x)
                        T.copy(Y, y)
                        T.vadd(x, y, y)
                        T.copy(y, Y)

            return counted
    '''
    check = ResultComparison(program(text, "counted", n=8).kernel())
    assert check.verdict(program(text, "counted", n=8, blocks=2).kernel())[0] is Verdict.HAZARD


def test_a_run_that_ends_with_an_error_is_different() -> None:
    verdict, text = ResultComparison(affine()).verdict(program('''
        @tilelang.jit(target="npuir")
        def beyond():
            @T.prim_func
            def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((8, 64), "float32")
                    T.copy(X, x)
                    T.copy(x, Y[0, 0])

            return main
    ''', "beyond").kernel())
    assert verdict is Verdict.DIFFERENT and text.startswith("its run ends with T403: "), text
