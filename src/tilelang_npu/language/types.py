"""``T.Tensor(shape, dtype)``, the annotation of a kernel's tensor parameter."""

from __future__ import annotations

from typing import Any

from tilelang_npu.dispatch import interpreting
from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.symbols import Sym


class Tensor:
    """The annotation of a parameter that is a global tensor: ``A: T.Tensor((M, N), "float16")`` or ``A: T.Tensor[(M, N),
    "float16"]``.

    In the body of a kernel ``T.Tensor(shape, dtype, A.data)`` is ``T.view(A, shape, dtype)``.

    Example: ``T.Tensor((M, N), "float16")``

    Args:
        shape: the sizes, which are integers or symbolic dimensions; a single size is a shape with one axis.
        dtype: the element type; the default is ``float32``.
    """

    __slots__ = ("dtype", "shape")

    def __new__(cls, shape: Any, dtype: Any = "float32", data: object = None, **_: object) -> Any:  # or a buffer: T.view
        if data is None:
            return super().__new__(cls)
        interpreted = interpreting()
        if interpreted is not None:
            return interpreted.call("view", (data, shape, dtype), {})
        from tilelang_npu.language.movement import view_of  # here: it loads the IR framework

        return view_of(data, shape, dtype)

    def __init__(self, shape: object, dtype: object = "float32", **unused: object) -> None:
        if unused:
            raise TileError(f"T.Tensor: argument {next(iter(unused))!r} is not supported yet", code="T190",
                            location=user_location(), help="remove the argument: tensors are row-major without gaps")
        self.shape: tuple[object, ...] = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.dtype = dtype

    def __class_getitem__(cls, item: object) -> Tensor:
        if isinstance(item, tuple) and item and not _is_size(item[-1]) and not isinstance(item[-1], (tuple, list)):
            *sizes, dtype = item
            shape = sizes[0] if len(sizes) == 1 else tuple(sizes)
            return cls(shape, dtype)
        return cls(item)

    def __repr__(self) -> str:
        return f"T.Tensor({self.shape}, {str(self.dtype)!r})"


class StridedTensor(Tensor):
    """The annotation of a parameter that is a global tensor with gaps: ``A: T.StridedTensor((M, N), (S, 1), "float16")`` or
    ``A: T.StridedTensor[(M, N), (S, 1), "float16"]``.

    The caller passes an array with these strides, such as some columns of a matrix. The last stride must be 1. Copies clip at
    the end of the shape, as for other tensors, and do not access the gaps.

    Example: ``T.StridedTensor((M, N), (K, 1), "float16")``

    Args:
        shape: the sizes, which are integers or symbolic dimensions.
        strides: for each axis the distance between neighbouring elements, in elements; integers or symbolic dimensions.
        dtype: the element type; the default is ``float32``.
    """

    __slots__ = ("strides",)

    def __new__(cls, shape: Any, strides: Any, dtype: Any = "float32") -> Any:  # a StridedTensor
        return object.__new__(cls)

    def __init__(self, shape: object, strides: object, dtype: object = "float32") -> None:
        super().__init__(shape, dtype)
        self.strides: tuple[object, ...] = tuple(strides) if isinstance(strides, (tuple, list)) else (strides,)
        if len(self.strides) != len(self.shape):
            raise TileError(f"T.StridedTensor: {len(self.strides)} strides for {len(self.shape)} axes", code="T150",
                            location=user_location(), help="give one stride for each axis")

    def __class_getitem__(cls, item: object) -> StridedTensor:
        return cls(*item) if isinstance(item, tuple) else cls(item, ())

    def __repr__(self) -> str:
        return f"T.StridedTensor({self.shape}, {self.strides}, {str(self.dtype)!r})"


class Ref:
    """The annotation of a parameter of a macro that is a variable of the caller: ``start: T.Ref``.

    A macro gets every ``T.alloc_var`` by reference, so that an assignment to the parameter changes the caller's variable. An
    element of a buffer can be passed if the macro only reads it.

    Example: ``T.Ref``
    """


def _is_size(value: object) -> bool:
    return isinstance(value, Sym) or (hasattr(value, "__index__") and not isinstance(value, str))
