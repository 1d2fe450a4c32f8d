"""``T.annotate_safe_value``: the value of elements outside of a global tensor, in kernels that were written for a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial, reduce

from tilelang_npu.errors import TileError
from tilelang_npu.language.emitted_control import chosen
from tilelang_npu.traced import arithmetic
from tilelang_npu.traced.buffers import Addressable, Buffer, Element
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, convert, number
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.symbols import Number

__all__ = ["annotate_safe_value"]

_WHAT = "T.annotate_safe_value"


def annotate_safe_value(safe_value_map: Mapping[Buffer, Number]) -> None:
    """State the value that elements outside of a global tensor have when they are read, from this statement on.

    It holds for single elements, before the tensor's first element too, and for elements past the end that ``T.copy`` loads
    without ``pad_value``. Without it, elements past the end are 0 in ``T.copy`` and in ``T.Parallel``.

    Example: ``T.annotate_safe_value({A: -1})``

    Args:
        safe_value_map: the value for each tensor, a number or a scalar of the kernel.

    Raises:
        TileError: T110, a key is not a global tensor, or the tensor's element type cannot represent the value.
    """
    builder = Builder.running(_WHAT)
    builder.require_kernel(_WHAT)
    given: Iterable[tuple[object, Number]] = safe_value_map.items()
    for tensor, value in given:
        if not isinstance(tensor, Buffer) or tensor.space != "gm":
            shown = tensor.describe() if isinstance(tensor, Addressable) else repr(tensor)
            raise TileError(f"{_WHAT}: {shown} is not a global tensor", code="T110",
                            help="name parameters of the kernel; T.fill gives the elements of a buffer on chip a value")
        safe = convert(builder, number(builder, value), tensor.element, f"{_WHAT}: the value of {tensor.name}")
        tensor.safe_value = safe if safe.constant is None else safe.constant
        tensor.guarded = partial(_load, value=tensor.safe_value)


def _load(element: Element, *, value: Expr | Number) -> Expr:
    """Emits a load of an element that may be outside of its tensor: of ``value``, if it is."""
    builder, kind = Builder.running("an element"), element.buffer.element
    conditions = [arithmetic.compare(builder, name, index, bound)
                  for index, size in zip(element.indices, element.buffer.sizes, strict=True)
                  for name, bound in _open_ends(index, size)]
    if not conditions:
        return element.read()
    inside = reduce(lambda one, other: arithmetic.binary(builder, "and", one, other), conditions)
    return chosen(builder, inside, kind, element.read, lambda: convert(builder, value, kind, _WHAT))


def _open_ends(index: Extent, size: Extent) -> Iterable[tuple[str, Extent]]:
    """Yields the comparisons of an index that are needed to know that it is inside of an axis."""
    low, high = (index, index) if isinstance(index, int) else (index.bounds.low, index.bounds.high)
    if low < 0:
        yield "ge", 0
    if not isinstance(size, int) or high >= size:
        yield "lt", size
