"""Reducers: ``T.alloc_reducer``, ``T.reducer_init``, ``T.reducer_update`` and ``T.finalize_reducer``.

A reducer is a buffer into whose elements the points of ``T.Parallel`` loops combine values with one operation. On a GPU each
thread has a part of every element, and ``T.finalize_reducer`` combines the parts. Here a core has the whole element, into which
every point combines its value exactly once, so that the elements are complete after each loop.
"""

from __future__ import annotations

import math

from tilelang_npu.errors import TileError, shown
from tilelang_npu.language import movement, scalar, vector
from tilelang_npu.language.allocate import allocate_buffer
from tilelang_npu.language.elements import ElementType, Extents
from tilelang_npu.language.operands import place_of, same_shape
from tilelang_npu.ops import DType
from tilelang_npu.traced.active_trace import Scalar
from tilelang_npu.traced.buffers import Buffer
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.linear_forms import bounds_of
from tilelang_npu.traced.symbols import Number

_BITWISE = {"bitand": scalar.bitwise_and, "bitor": scalar.bitwise_or, "bitxor": scalar.bitwise_xor}
_OPERATIONS = {"sum": lambda old, value: old + value, "max": scalar.max, "min": scalar.min, **_BITWISE}


class Reducer(Buffer):
    """The buffer of a ``T.alloc_reducer``.

    Attributes:
        operation: the name of the operation that combines values.
        started: whether ``T.reducer_init`` has written the reducer; its result then goes to another buffer.
    """

    operation = "sum"
    started = False


def alloc_reducer(shape: Extents, dtype: ElementType, op: str = "sum", replication: str | None = None) -> Buffer:
    """Allocate a reducer: a buffer into whose elements the points of ``T.Parallel`` combine values with the operation ``op``.

    There are two ways to use a reducer. Either ``T.reducer_init(acc)`` starts it, ``T.reducer_update(acc[i], value)`` combines
    a value, and ``T.finalize_reducer(acc, out)`` writes the result. Or it is used like a fragment: ``T.clear(acc)`` or
    ``T.fill`` starts it, ``acc[i] += value`` or ``acc[i] = T.max(acc[i], value)`` combines a value, and after
    ``T.finalize_reducer(acc)`` the reducer holds the result. Sums of floats are added up in no particular order.

    Example: ``T.alloc_reducer((128,), "float32", op="max")``

    Args:
        shape: the sizes, which must be positive constants.
        dtype: the element type.
        op: ``"sum"``, ``"max"``, ``"min"``, and for integers ``"bitand"``, ``"bitor"`` and ``"bitxor"``.
        replication: ``"all"``, ``"none"`` or None; has no effect, since a core has one copy of each element.

    Raises:
        TileError: as ``T.alloc_shared``; T145, there is no such operation or replication; T110, a bitwise operation has an
            element type that is no integer.
    """
    what = "T.alloc_reducer"
    if op not in _OPERATIONS:
        raise TileError(f"{what}: there is no operation {op!r}", code="T145", help="operations are " + ", ".join(_OPERATIONS))
    if replication not in (None, "all", "none"):
        raise TileError(f"{what}: replication is {replication!r}", code="T145",
                        help="replication must be 'all', 'none' or None")
    made = allocate_buffer(what, shape, dtype, "fragment", Reducer)
    assert isinstance(made, Reducer)
    if op in _BITWISE and made.dtype.is_float:
        raise TileError(f"{what}: {op} of {made.dtype} does not exist", code="T110", help="use an integer element type")
    made.operation = op
    return made


def reducer_init(reducer: Buffer, init: Number | None = None) -> None:
    """Start a reducer: write to every element the value to which the first value is combined.

    Without ``init`` this is the value that the operation does not change: 0 for ``sum``, ``bitor`` and ``bitxor``, all ones for
    ``bitand``, and the smallest or the largest value of the element type, or an infinity, for ``max`` and ``min``.

    Example: ``T.reducer_init(acc)``

    Raises:
        TileError: T110, ``reducer`` is not the buffer of a ``T.alloc_reducer``, or its element type cannot represent ``init``.
    """
    found = _reducer("T.reducer_init", reducer)
    found.started = True
    vector.fill(found, _neutral(found.operation, found.dtype) if init is None else init)


def reducer_update(target: Scalar, value: Number) -> None:
    """Combine ``value`` with the element ``target`` of a reducer, written as ``acc[i]``.

    The value is converted to the element type first. In the body of ``T.Parallel`` each point combines its value exactly once.

    Example: ``T.reducer_update(acc[i], a[i, j])``

    Raises:
        TileError: T110, ``target`` is not an element of the buffer of a ``T.alloc_reducer``.
    """
    what = "T.reducer_update"
    place = place_of(target)
    if place is None or not isinstance(place.buffer, Reducer):
        raise TileError(f"{what}: {shown(target)} is not an element of a reducer", code="T110",
                        help="write the element as acc[i], where T.alloc_reducer has allocated acc")
    kind = place.buffer.element
    place.store(_OPERATIONS[place.buffer.operation](place.load(), scalar.cast(value, kind)))


def finalize_reducer(reducer: Buffer, dst: Buffer | None = None, batch: int = 1, annotations: object = None) -> None:
    """Complete a reducer, and write its elements to ``dst``.

    Without ``dst`` the reducer itself holds the result, and the call emits nothing.

    Example: ``T.finalize_reducer(acc, out)``

    Args:
        reducer: the buffer of a ``T.alloc_reducer``.
        dst: a buffer of the reducer's shape and element type.
        batch, annotations: have no effect.

    Raises:
        TileError: T110, ``reducer`` is not the buffer of a ``T.alloc_reducer``, or ``dst`` has another element type; T131,
            ``dst`` has another shape; T145, ``batch`` is not positive, or ``dst`` is missing after ``T.reducer_init``.
    """
    what = "T.finalize_reducer"
    found = _reducer(what, reducer)
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise TileError(f"{what}: batch is {batch!r}", code="T145", help="batch must be a positive integer")
    if dst is None:
        if found.started:
            raise TileError(f"{what}: T.reducer_init has started {found.name}, whose result needs a destination", code="T145",
                            help=f"write {what}({found.name}, out), where out has the shape of {found.name}")
        return
    target = movement.operand(what, "destination", dst)
    if not isinstance(target, Buffer) or not same_shape(target.extents, found.extents):
        raise TileError(f"{what}: {target.describe()} does not have the shape of {found.describe()}", code="T131",
                        help="allocate the destination with the shape of the reducer")
    if target.dtype != found.dtype:
        raise TileError(f"{what}: {target.describe()} does not have the element type of {found.describe()}", code="T110",
                        help=f"allocate the destination with elements of {found.dtype}, and convert with T.copy")
    movement.copy(found, target)


def _reducer(what: str, value: object) -> Reducer:
    Builder.running(what).require_kernel(what)
    if not isinstance(value, Reducer):
        raise TileError(f"{what}: {shown(value)} is not a reducer", code="T110", help="allocate it with T.alloc_reducer")
    return value


def _neutral(operation: str, kind: DType) -> float:
    """Returns the value that an operation combines with any value to that value."""
    if operation in ("max", "min"):
        ends = (-math.inf, math.inf) if kind.is_float else (bounds_of(kind).low, bounds_of(kind).high)
        return ends[operation == "min"]
    return 0 if operation != "bitand" else -1 if kind.is_signed else bounds_of(kind).high
