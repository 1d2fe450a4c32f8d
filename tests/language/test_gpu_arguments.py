"""Arguments of TileLang for GPUs that have no effect are named in the kernel's note, if they were given."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.language.gpu_arguments import note_gpu_arguments


def notes(**arguments: object) -> list[str]:
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((8, 8), "float32")
            T.copy(A, a, **arguments)
            T.copy(a, B)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tilelang.compile(main, out_idx=[1], target="npuir")
    return [str(one.message) for one in caught if str(one.message).startswith("T191")]


@pytest.mark.parametrize("given", [{}, {"annotations": None}, {"prefer_instruction": None}])
def test_what_was_not_given_is_not_named(given: dict[str, Any]) -> None:
    assert notes(**given) == []


def test_what_was_given_is_named_once() -> None:
    (note,) = notes(annotations={"anything": 1}, prefer_instruction="tma")
    assert "annotations= of T.copy" in note and "prefer_instruction= of T.copy" in note


def test_nothing_is_recorded_outside_of_a_kernel() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        note_gpu_arguments("copy", annotations={})
