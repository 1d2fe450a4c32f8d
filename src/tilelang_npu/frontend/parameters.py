"""Reads the declarations of a kernel's parameters: element types, shapes and symbolic dimensions."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tilelang_npu.errors import Location, TileError
from tilelang_npu.language.elements import element_type
from tilelang_npu.language.functions import PrimFunc, Unresolved
from tilelang_npu.language.types import StridedTensor, Tensor
from tilelang_npu.language.unsupported import Unsupported
from tilelang_npu.target.dtypes import DType
from tilelang_npu.traced import source
from tilelang_npu.traced.locations import span
from tilelang_npu.traced.symbols import Dimension, Sym


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    Attributes:
        name: the name in the kernel's source.
        kind: ``tensor`` or ``scalar``.
        dtype: the element type of a tensor, or the type of a scalar.
        shape: the size of each axis of a tensor, as a number or a symbolic dimension; None for a scalar.
        location: the position of the declaration.
        strides: for a tensor with gaps, the distance between neighbouring elements along each axis, in elements; None for other
            parameters.
    """

    name: str
    kind: Literal["tensor", "scalar"]
    dtype: DType
    shape: tuple[Dimension, ...] | None
    location: Location
    strides: tuple[Dimension, ...] | None = None

    @property
    def array_dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype of the array of a tensor: that of the elements; int8 for 4 bits, since a byte holds two elements."""
        return self.dtype.stored.numpy

    def array_shape(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of the array of a tensor of these sizes, which has half as many bytes as elements of 4 bits."""
        return (*sizes[:-1], sizes[-1] // 2) if self.dtype.packed else tuple(sizes)


def declared(function: PrimFunc, found: source.Source, lengths: Mapping[str, int]) -> tuple[Parameter, ...]:
    """Returns the parameters of a kernel, in order, as its author declares them.

    Args:
        function: the kernel.
        found: the source of the kernel.
        lengths: for some tensors, by parameter name, the size of the first axis to use instead of the declared one.

    Raises:
        TileError: T140, T150, T151, a parameter has no annotation, an annotation that is neither a tensor nor a number, or an
            invalid size.
    """
    parameters = []
    for argument in _arguments(found):
        parameter = _parameter(function, found, argument)
        if parameter.name in lengths and parameter.shape is not None:
            parameter = replace(parameter, shape=(lengths[parameter.name], *parameter.shape[1:]))
        parameters.append(parameter)
    return tuple(parameters)


def symbols_of(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Returns the names of the symbolic dimensions in the parameters' shapes and strides, without repetition, in order."""
    return tuple(dict.fromkeys(
        name for parameter in parameters for size in (*(parameter.shape or ()), *(parameter.strides or ()))
        if isinstance(size, Sym) for name in size.symbols()))


def _arguments(found: source.Source) -> list[ast.arg]:
    given = found.node.args
    for extra, what in ((given.vararg, "*"), (given.kwarg, "**"), (given.kwonlyargs[0] if given.kwonlyargs else None, "*, ")):
        if extra is not None:
            raise TileError(f"a kernel must have positional parameters only, not `{what}{extra.arg}`", code="T151",
                            location=span(extra, found.file, found.lines), help="declare each parameter by name")
    if given.defaults:
        raise TileError("a kernel's parameters must not have defaults", code="T151",
                        location=span(given.defaults[0], found.file, found.lines),
                        help="make it a parameter of the factory")
    return [*given.posonlyargs, *given.args]


def _parameter(function: PrimFunc, found: source.Source, argument: ast.arg) -> Parameter:
    location = span(argument, found.file, found.lines)
    name = argument.arg
    annotation = function.annotations.get(name)
    try:
        if annotation is None:
            raise TileError(f"parameter {name!r} has no annotation", code="T151",
                            help=f"write {name}: T.Tensor(shape, dtype), or {name}: T.int32 for a number")
        if isinstance(annotation, Tensor):
            dtype = element_type(annotation.dtype, f"parameter {name!r}")
            strides = strides_of(name, annotation.strides) if isinstance(annotation, StridedTensor) else None
            return Parameter(name, "tensor", dtype, shape_of(name, annotation.shape), location, strides)
        if isinstance(annotation, Unsupported):
            annotation.refuse(location)
        if isinstance(annotation, Unresolved):
            msg = f"the annotation of {name!r} names {annotation.name!r}, which is not known where the kernel is defined"
            raise TileError(msg, code="T151", help="make it a parameter of the factory that holds the kernel: under "
                            "`from __future__ import annotations` a function keeps only names that its body uses")
        plain = {"int": "int32", "float": "float32", "bool": "bool"}
        spelling = plain.get(annotation.__name__) if isinstance(annotation, type) else annotation
        if not isinstance(spelling, str):
            raise TileError(f"parameter {name!r} is annotated with {annotation!r}", code="T151",
                            help="write T.Tensor(shape, dtype), or an element type such as T.int32 for a number")
        return Parameter(name, "scalar", element_type(spelling, f"parameter {name!r}"), None, location)
    except TileError as error:
        raise error.at(location) from None


def strides_of(name: str, strides: tuple[object, ...]) -> tuple[Dimension, ...]:
    """Returns declared strides as integers and symbolic dimensions.

    Raises:
        TileError: T150, T151, as for a shape; T190, the last stride is not 1.
    """
    found = shape_of(name, strides)
    if 0 in found:
        raise TileError(f"stride 0 of {name!r}: its elements would share memory", code="T150",
                        help="give the axis a size of 1 instead")
    if found[-1] != 1:
        raise TileError(f"the last stride of {name!r} is {found[-1]}", code="T190",
                        help="the last stride must be 1, because copies load rows: exchange the axes, or copy the array")
    return found


def shape_of(name: str, shape: tuple[object, ...]) -> tuple[Dimension, ...]:
    """Returns the sizes of a declared shape, as integers and symbolic dimensions.

    A tensor without axes has one element: its shape is that of one axis of size 1.

    Args:
        name: the name of the tensor, for error messages.
        shape: the declared shape.

    Raises:
        TileError: T150, a size is negative; T151, a size is not an integer.
    """
    sizes: list[Dimension] = []
    for axis, size in enumerate(shape):
        if isinstance(size, Sym):
            sizes.append(size)
            continue
        if isinstance(size, (bool, float, str)) or not hasattr(size, "__index__"):
            raise TileError(f"size {size!r} of axis {axis} of {name!r} is not an integer", code="T151",
                            help="use // instead of /, or T.symbolic(name) for a size that a call binds")
        if int(size) < 0:
            raise TileError(f"size {int(size)} of axis {axis} of {name!r} is negative", code="T150",
                            help="check the sizes that the factory was called with")
        sizes.append(int(size))
    return tuple(sizes) or (1,)
