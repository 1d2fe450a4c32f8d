"""``T.Tensor(shape, dtype)``, the annotation of a parameter."""

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
        shape: integers or symbolic dimensions; a single size is a shape with one axis.
        dtype: the element type; ``float32`` without it.
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
                            location=user_location(), help="leave it out: tensors are row-major without gaps")
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


def _is_size(value: object) -> bool:
    return isinstance(value, Sym) or (hasattr(value, "__index__") and not isinstance(value, str))
