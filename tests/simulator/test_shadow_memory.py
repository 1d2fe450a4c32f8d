"""Marks of numbers follow the numbers: through views of a memory, and from rows into fractals and back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tilelang_npu.simulator.sanitizer.shadow_memory import ShadowMemory, laid_out, matrix, overlapping_elements


def _in(memory: str) -> Any:
    return SimpleNamespace(memory=memory)


def test_a_view_has_the_marks_of_its_bytes() -> None:
    memory, marks = np.zeros(256, np.uint8), ShadowMemory()
    numbers = memory.view(np.float32).reshape(8, 8)
    marks.put(numbers[2:4, 1:3], np.array([[1, 2], [3, 4]], np.int32))
    assert marks.of(numbers[3])[:4].tolist() == [0, 3, 4, 0]
    assert marks.of(memory[2 * 32 + 4:2 * 32 + 12].view(np.float16)).tolist() == [1, 1, 2, 2]
    assert not marks.of(np.zeros(8, np.float32)).any()


def test_elements_that_other_views_have_bytes_of() -> None:
    memory = np.zeros(256, np.uint8)
    numbers = memory.view(np.float32).reshape(8, 8)
    halves = memory[34:38].view(np.float16)
    assert np.argwhere(overlapping_elements(numbers, [halves, numbers[3:5, 7]])).tolist() == [[1, 0], [1, 1], [3, 7], [4, 7]]
    assert overlapping_elements(numbers[:, ::2], [numbers[2]]).sum() == 4
    assert not overlapping_elements(numbers, [np.zeros(8, np.float32), numbers[:0]]).any()


def test_fractals_and_rows_have_the_marks_of_the_same_matrix() -> None:
    rows = np.arange(32 * 48, dtype=np.int32).reshape(32, 48)
    fractals = rows.reshape(2, 16, 3, 16).transpose(2, 0, 1, 3)
    assert np.array_equal(matrix(_in("cbuf"), fractals), rows)
    assert np.array_equal(laid_out(_in("cbuf"), np.zeros(fractals.shape, np.float16), rows), fractals)
    part = laid_out(_in("ub"), np.zeros((40, 16), np.float16), rows)
    assert part is not None
    assert np.array_equal(part[:32], rows[:, :16])
    assert not part[32:].any()
