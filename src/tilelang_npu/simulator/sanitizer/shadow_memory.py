"""Shadow memory: for each byte of a memory a number that says where its value comes from, or 0.

A matrix is stored in fractals in a Cube core's memories, differently in L0C and in L1, and by rows elsewhere. A move between
them moves the marks by row and column of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Access
from tilelang_npu.target import is_fractal

Marks = NDArray[np.int32]


class ShadowMemory:
    """The marks of all memories; memories without marks take no space."""

    def __init__(self) -> None:
        self._marks: dict[int, Marks] = {}

    def of(self, array: Array) -> Marks:
        """Returns the marks of an array's elements, read-only."""
        root, start, at = _place(array)
        if start not in self._marks:
            return np.broadcast_to(np.zeros((), np.int32), array.shape)
        return self._view(root, start, at, array)[..., 0]

    def put(self, array: Array, marks: Marks) -> None:
        """Sets the marks of an array's elements; ``marks`` has the array's shape, or is a scalar."""
        root, start, at = _place(array)
        if start in self._marks or marks.any():
            self._view(root, start, at, array)[...] = marks[..., None]

    def _view(self, root: Array, start: int, at: int, array: Array) -> Marks:
        marks = self._marks.get(start)
        if marks is None:
            marks = self._marks[start] = np.zeros(root.nbytes, np.int32)
        return np.ndarray((*array.shape, array.itemsize), np.int32, marks, 4 * at,
                          tuple(4 * stride for stride in (*array.strides, 1)))


def _place(array: Array) -> tuple[Array, int, int]:
    """Returns the array that owns the memory of an array, its address, and the array's byte offset in it."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start = root.__array_interface__["data"][0]
    return root, start, array.__array_interface__["data"][0] - start


def overlapping_elements(array: Array, others: Sequence[Array]) -> NDArray[np.bool_]:
    """Returns which elements of an array overlap with some other arrays."""
    root, start, at = _place(array)
    touched = np.zeros(root.nbytes, np.bool_)
    for other in others:
        _, begin, place = _place(other)
        if begin == start:
            _bytes_of(touched, other, place)[...] = True
    return np.asarray(_bytes_of(touched, array, at).any(axis=-1), np.bool_)


def _bytes_of(memory: NDArray[np.bool_], array: Array, at: int) -> NDArray[np.bool_]:
    """Returns the part of a byte map that an array covers, with an additional axis for the bytes of an element."""
    return np.ndarray((*array.shape, array.itemsize), np.bool_, memory, at, (*array.strides, 1))


def matrix(access: Access, values: Array) -> Array | None:
    """Returns an operand's values by row and column; None if it is not a matrix."""
    if values.ndim == 4 and is_fractal(access.memory):
        columns, rows, height, width = values.shape
        return values.transpose(1, 2, 0, 3).reshape(rows * height, columns * width)
    while values.ndim > 2 and 1 in values.shape:
        values = values.squeeze(values.shape.index(1))
    return values if values.ndim == 2 else None


def laid_out(access: Access, target: Array, marks: Marks) -> Marks | None:
    """Returns marks by row and column in the layout of an operand, cut or extended with 0; None if it is not a matrix."""
    shape = matrix(access, np.broadcast_to(np.zeros((), np.int8), target.shape))
    if shape is None:
        return None
    whole: Marks = np.zeros(shape.shape, np.int32)
    rows, columns = (min(one, other) for one, other in zip(whole.shape, marks.shape, strict=True))
    whole[:rows, :columns] = marks[:rows, :columns]
    if target.ndim == 4 and is_fractal(access.memory):
        across, down, height, width = target.shape
        return whole.reshape(down, height, across, width).transpose(2, 0, 1, 3)
    return whole.reshape(target.shape)
