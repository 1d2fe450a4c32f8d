"""Shadow memory: for each byte of each simulated memory a *mark*, a number that says where the byte's value comes from. A byte
without a mark has the number 0.

The memories of a Cube core store matrices in fractals, in L0C in other fractals than in L1; the other memories store them row
by row. If data move from one layout to another, their marks are moved by row and column of the matrix.
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
    """The marks of the bytes of all arrays; an allocation whose marks are all 0 takes no space."""

    def __init__(self) -> None:
        self._marks: dict[int, Marks] = {}

    def of(self, array: Array) -> Marks:
        """Returns the mark of the first byte of each element of an array, in the array's shape. The result must not be written
        to."""
        root, start, at = _place(array)
        if start not in self._marks:
            return np.broadcast_to(np.zeros((), np.int32), array.shape)
        return self._view(root, start, at, array)[..., 0]

    def put(self, array: Array, marks: Marks) -> None:
        """Sets the marks of all bytes of an array's elements.

        Args:
            array: the array.
            marks: a mark for each element, in the array's shape, or a scalar.
        """
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
    """Returns the array that owns the memory of ``array``, the owner's address, and the byte offset of ``array`` in it."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start = root.__array_interface__["data"][0]
    return root, start, array.__array_interface__["data"][0] - start


def overlapping_elements(array: Array, others: Sequence[Array]) -> NDArray[np.bool_]:
    """Returns a mask of the elements of ``array`` that share a byte with one of ``others``."""
    root, start, at = _place(array)
    touched = np.zeros(root.nbytes, np.bool_)
    for other in others:
        _, begin, place = _place(other)
        if begin == start:
            _bytes_of(touched, other, place)[...] = True
    return np.asarray(_bytes_of(touched, array, at).any(axis=-1), np.bool_)


def _bytes_of(memory: NDArray[np.bool_], array: Array, at: int) -> NDArray[np.bool_]:
    """Returns the view of a byte map that an array covers, in the array's shape with an additional axis for the bytes of an
    element.

    Args:
        memory: an element for each byte of the array's owner.
        array: the array.
        at: its byte offset in the owner.
    """
    return np.ndarray((*array.shape, array.itemsize), np.bool_, memory, at, (*array.strides, 1))


def matrix(access: Access, values: Array) -> Array | None:
    """Returns the values of an operand as a matrix with two axes; None if the operand is no matrix.

    Args:
        access: the access of the operand, whose memory decides the layout.
        values: the operand's values in its own layout: fractals with four axes, or rows.
    """
    if values.ndim == 4 and is_fractal(access.memory):
        columns, rows, height, width = values.shape
        return values.transpose(1, 2, 0, 3).reshape(rows * height, columns * width)
    while values.ndim > 2 and 1 in values.shape:
        values = values.squeeze(values.shape.index(1))
    return values if values.ndim == 2 else None


def laid_out(access: Access, target: Array, marks: Marks) -> Marks | None:
    """Returns a matrix of marks in the layout of an operand, cropped to the operand's size or extended with 0; None if the
    operand is no matrix.

    Args:
        access: the access of the operand, whose memory decides the layout.
        target: the operand's array.
        marks: the marks by row and column.
    """
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
