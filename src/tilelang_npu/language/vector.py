"""Vector operations on buffers: one function for each elementwise name in the op table, and fill, broadcast and casts.

The prefix of a name determines the order of the operands: ``T.tile.add(dst, src0, src1)``, ``T.vadd(src0, src1, dst)``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.allocate import alloc_ub
from tilelang_npu.language.dequantise import is_dequantised, scaled
from tilelang_npu.language.elementwise import apply
from tilelang_npu.language.flat_memory import leading, over_the_row
from tilelang_npu.language.operands import (
    as_memory,
    broadcasts,
    element_count,
    is_scalar,
    overlap,
    right_aligned,
    scalar_operand,
    seen_as,
    sizes_argument,
)
from tilelang_npu.language.scratch import use_scratch
from tilelang_npu.language.structured import call
from tilelang_npu.language.table_functions import bound, elementwise, function_of
from tilelang_npu.ops import Composite, DType, Elementwise
from tilelang_npu.traced import numbers
from tilelang_npu.traced.buffers import Addressable, Element, Operand, Sizes, Tile, Variable, same_extent
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, convert, number

_WITH_TEMPORARY = ("exp2", "log2")
"""Entries whose npuir functions take a scratch tile, as in ``T.vexp2(src, dst, tmp)``; it is not used."""
_SIZED = ("sin", "cos", "erf", "tanh")
"""Entries whose npuir functions take the shape of the part that is computed, as in ``T.vcos(src, dst, size=[...])``."""
_SCRATCH = ("tile.sigmoid", "tile.sin", "tile.cos", "tile.pow", "tile.bitwise_xor", "tile.clamp_max", "tile.clamp_min",
            "tile.clamp", "tile.round")
"""The functions that take scratch memory as the keyword argument ``tmp``."""
_ROUND_MODES = ("rint", "round", "floor", "ceil", "trunc", "odd")
_MODES = ("eq", "ne", "lt", "gt", "ge", "le")


@cache
def function(name: str) -> Callable[..., None]:
    """Returns the function ``T.<name>`` for a name or an alias of the op table (``exp``, ``tile.exp``, ``vexp``).

    Raises:
        KeyError: the table has no such elementwise operation.
    """
    found = ops.operation(name)
    if not isinstance(found, Elementwise) or found.outputs != 1 or name == "cast":
        raise KeyError(name)
    body = _SPECIAL.get((found.name, name.startswith("tile.")), _SPECIAL.get((found.name, None)))
    if body is None:
        return _from_entry(name, found)
    made = function_of(name, body, "")
    made.__doc__ = elementwise(name, found, inspect.signature(made))
    return made


_SECOND = {"leaky_relu": "scalar_value", "axpy": "scalar_value", "clamp_min": "scalar_value", "clamp_max": "scalar_value",
           "bitwise_lshift": "scalarValue"}
"""The name of the second input in ``T.tile``, for entries where it is not ``src1``."""


def _arguments(entry: Elementwise, destination_first: bool) -> tuple[list[str], str]:
    """The names of the inputs and of the destination: ``(dst, src0, src1)`` in ascendc, ``(A, B, C)`` in npuir."""
    counted = isinstance(entry, Composite) and entry.counted
    if entry.name == "clamp":
        return (["buffer", "min_scalar", "max_scalar"], "out") if destination_first else (["src", "min_val", "max_val"], "dst")
    if not destination_first:
        if entry.name in _SIZED:
            return ["src"], "dst"
        if entry.condition:
            return ["Cond", "A", "B"], "Out"
        *letters, target = ["A", "B", "C", "D"][:entry.inputs + 1]
        return letters, target
    inputs = [f"src{position}" for position in range(entry.inputs)]
    inputs[1:2] = [_SECOND.get(entry.name, name) for name in inputs[1:2]]
    return (["buffer", *inputs[1:]], "out") if counted else (inputs, "dst")


_OPTIONAL = {"count": "Number | None", "size": "Sizes | None", "Tmp": "Tile | None"}
"""The types of arguments that may be left out."""


def _signature(entry: Elementwise, names: Sequence[str], inputs: Sequence[str], scratch: bool) -> inspect.Signature:
    """A signature whose arguments are given by position or by name; the optional ones default to None. With ``scratch``, there
    is also the keyword argument ``tmp``.
    """
    tmp = inspect.Parameter("tmp", inspect.Parameter.KEYWORD_ONLY, annotation="Tile | None", default=None)
    kinds = {name: "Operand" if position in entry.scalar else "Tile" for position, name in enumerate(inputs)} | _OPTIONAL
    return inspect.Signature([*(
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kinds.get(name, "Tile"),
                          default=None if name in _OPTIONAL else inspect.Parameter.empty) for name in names), *[tmp] * scratch],
        return_annotation="None")


def parameters_of(name: str, entry: Elementwise) -> tuple[list[str], str, inspect.Signature]:
    """Returns the parameters of the function of ``T`` for an elementwise operation under one of its names.

    Args:
        name: the function's name after ``T.``.
        entry: the operation's entry in the op table.

    Returns:
        The names of the input parameters, the name of the destination parameter, and the signature.
    """
    destination_first = name.startswith("tile.")
    inputs, target_name = _arguments(entry, destination_first)
    # npuir puts the bounds of a clamp after the destination: T.vclamp(src, dst, min_val, max_val)
    split = len(inputs) - (entry.inputs_after if isinstance(entry, Composite) else 0)
    names = [target_name, *inputs] if destination_first else [*inputs[:split], target_name, *inputs[split:]]
    if isinstance(entry, Composite):
        names += ["count"] if entry.counted and destination_first else []
    elif not destination_first:
        names += ["Tmp"] if entry.name in _WITH_TEMPORARY else ["size"] if entry.name in _SIZED else []
    return inputs, target_name, _signature(entry, names, inputs, name in _SCRATCH)


def _from_entry(name: str, entry: Elementwise) -> Callable[..., None]:
    """A function whose parameters follow from the entry."""
    inputs, target_name, signature = parameters_of(name, entry)

    def call(*arguments: object, **keywords: object) -> None:
        what = f"T.{name}"
        values = bound(what, signature, arguments, keywords, target_name)
        target, count, size = values[target_name], values.get("count"), values.get("size")
        if values.get("Tmp") is not None:
            _check_temporary(what, values["Tmp"], target)
        operands = [values[key] for key in inputs]
        if count is not None:
            builder = Builder.running(what)
            target, operands[0] = leading(builder, what, [as_memory(what, "the destination", target),
                                                          as_memory(what, "the input", operands[0])], count)
        if size is not None:
            sizes = sizes_argument(Builder.running(what), what, size)
            operands, target = ([right_aligned(what, as_memory(what, "an input", value), sizes) for value in operands],
                                right_aligned(what, as_memory(what, "the destination", target), sizes))
        if entry.name == "axpy":
            operands = _in_single_precision(what, operands, target)
        apply(what, entry, operands, target)
        use_scratch(what, values.get("tmp"), values[target_name], *(values[key] for key in inputs))

    call.__signature__ = signature  # type: ignore[attr-defined]  # read by help()
    call.__name__, call.__qualname__, call.__module__ = name.rsplit(".", 1)[-1], f"T.{name}", __name__
    call.__doc__ = elementwise(name, entry, signature)
    return call


def _in_single_precision(what: str, operands: list[object], target: object) -> list[object]:
    """The input and the scalar of ``T.tile.axpy`` in float32, if the destination is of float32 and the input of float16: the
    instruction converts both. The scalar is an element of float16.
    """
    source, destination = as_memory(what, "the input", operands[0]), as_memory(what, "the destination", target)
    if (str(source.dtype), str(destination.dtype)) != ("float16", "float32"):
        return operands
    if element_count(source) is None:
        raise TileError(f"{what}: {source.describe()} has a size that is not constant", code="T190",
                        help="convert it with T.tile.cast to a buffer of float32 first")
    wide = alloc_ub(list(source.extents), "float32")
    apply(what, _entry("cast"), [source], wide)
    factor = operands[1]
    if not isinstance(factor, Addressable):
        builder = Builder.running(what)
        factor = convert(builder, number(builder, factor), source.dtype, f"{what}: the scalar")
    return [wide, factor]


def _check_temporary(what: str, given: object, target: object) -> None:
    """Checks a scratch tile that the call gives, though it is not used: it has the element type and the size of the
    destination.
    """
    temporary, destination = as_memory(what, "the temporary", given), as_memory(what, "the destination", target)
    counts = element_count(temporary), element_count(destination)
    if temporary.dtype != destination.dtype or (None not in counts and counts[0] != counts[1]):
        raise TileError(f"{what}: the temporary is {temporary.describe()}, the destination {destination.describe()}",
                        code="T110", help="pass a temporary with the element type and the size of the destination, or none")


def _entry(name: str) -> Elementwise:
    entry = ops.operation(name)
    assert isinstance(entry, Elementwise)
    return entry


def _compare(A: Tile, B: Operand, C: Tile, cmp_mod: str, *, what: str) -> None:
    mode = str(cmp_mod).lower()
    if mode not in _MODES:
        raise TileError(f"{what}: there is no comparison {cmp_mod!r}", code="T145",
                        help="the comparisons are " + ", ".join(_MODES))
    apply(what, _entry("compare"), [A, B], C, {} if mode == "eq" else {"compare_mode": mode})


def _tile_shift_right(dst: Tile, src0: Tile, scalarValue: Operand, *, what: str) -> None:
    apply(what, _entry("bitwise_rshift"), [src0, scalarValue], dst, {"round": False})


def _shift_right(A: Tile, B: Operand, C: Tile, round: bool = True, *, what: str) -> None:  # noqa: A002  (the language's name)
    apply(what, _entry("bitwise_rshift"), [A, B], C, {} if round else {"round": False})


def _vcast(src: Tile, dst: Tile, size: Sizes | None = None, round_mode: str = "rint", *, what: str) -> None:
    if isinstance(size, str):
        size, round_mode = None, size
    builder = Builder.running(what)
    source, target = _conversion_ends(what, src, dst)
    if size is not None:
        sizes = sizes_argument(builder, what, size)
        source, target = right_aligned(what, source, sizes), right_aligned(what, target, sizes)
    _convert(what, source, target, round_mode)


def _conversion_ends(what: str, src: object, dst: object) -> tuple[Addressable, Addressable]:
    """Returns the operands of a conversion, which may be of int4."""
    ends = [as_memory(what, role, value, packed=getattr(value, "dtype", None) == "int4")
            for role, value in (("the input", src), ("the destination", dst))]
    return ends[0], ends[1]


def _convert(what: str, source: Addressable, target: Addressable, mode: str) -> None:
    if mode not in _ROUND_MODES:
        raise TileError(f"{what}: there is no rounding mode {mode!r}", code="T145",
                        help="the rounding modes are " + ", ".join(_ROUND_MODES))
    if source.dtype == "int4" or target.dtype == "int4":
        packs = target.dtype == "int4"
        call(what, "pack_int4" if packs else "unpack_int4", [target], [source], {"mode": mode} if packs else None)
        return
    clauses: dict[str, str | bool] = {} if mode == "rint" else {"round_mode": mode}
    if any(side.dtype.is_integer and not side.dtype.is_signed for side in (source, target)):
        clauses["cast"] = "cast_unsigned"
    apply(what, _entry("cast"), [source], target, clauses)


_SPECIAL: dict[tuple[str, bool | None], Callable[..., None]] = {
    ("cast", None): _vcast, ("compare", None): _compare,
    ("bitwise_rshift", True): _tile_shift_right, ("bitwise_rshift", False): _shift_right,
}
"""Functions with parameters of their own, by the entry, and whether the name begins with ``tile.``; None for both."""


def tile_cast(dst: Tile, src: Tile, mode: str = "CAST_NONE", count: object = None) -> None:
    """``T.tile.cast``: convert the elements of ``src`` to the element type of ``dst``, and write them to ``dst``.

    Both buffers must have the same shape; their element types can be any two types, but int4 is only converted to and from
    float16. Conversions to int4 saturate to -8 and 7; two elements are in each byte.

    Example: ``T.tile.cast(out, a, "CAST_RINT")``

    Args:
        dst: the destination.
        src: the source.
        mode: how numbers are rounded: ``CAST_NONE`` and ``CAST_RINT`` to nearest even, ``CAST_ROUND`` to nearest with ties away
            from zero, ``CAST_FLOOR``, ``CAST_CEIL``, ``CAST_TRUNC``, or ``CAST_ODD`` to the neighbour with an odd last bit.
        count: the number of elements to convert, from the first one; without it, all are converted.

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or ``count`` is wrong; T145, there is no
            such mode.
    """
    what = "T.tile.cast"
    word = str(mode).removeprefix("CAST_").lower()
    word = "rint" if word == "none" else word
    source, target = _conversion_ends(what, src, dst)
    if count is not None:
        builder = Builder.running(what)
        source, target = leading(builder, what, [source, target], count)
    if is_dequantised(Builder.running(what), source, target) and word in _ROUND_MODES:
        scaled(Builder.running(what), what, source, target, word)
        return
    _convert(what, source, target, word)


def fill(buffer: Tile, value: object) -> None:
    """Write ``value`` to every element of a buffer or a slice, or to a scalar of ``T.alloc_var``.

    The value is converted to the element type of the buffer; a buffer with one element can also be passed as the value. Each
    block that executes the statement fills the whole of a global tensor, with copies from UB.

    Example: ``T.fill(a, 0.0)``

    Raises:
        TileError: T110, the element type cannot represent the value, such as infinity in an integer type.
    """
    _fill("T.fill", buffer, value)


def _fill(what: str, buffer: Tile, value: object) -> None:
    builder = Builder.running(what)
    if isinstance(value, Addressable) and element_count(value) == 1:
        value = value[(0,) * value.ndim] if value.ndim else Element(value.buffer, value.offsets)
    if isinstance(buffer, Element) and isinstance(buffer.buffer, Variable):
        buffer.store(value)
        return
    target = as_memory(what, "the destination", buffer)
    if what.startswith("T.tile."):
        target = over_the_row(builder, what, target)
        value = _in_range(builder, what, value, target.dtype)
    scalar = scalar_operand(builder, what, "the value", value, target.dtype)
    builder.tile_op(tile.FillOp(scalar, target.ssa(builder)), what)


def _in_range(builder: Builder, what: str, value: object, kind: DType) -> object:
    """Returns a value to fill a buffer with: infinity, with a warning, for a number that is too large for a float type.

    AscendC's conversion to ``half`` makes infinity of such numbers, and kernels for it rely on that.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not kind.is_float or not math.isfinite(value):
        return value
    problem, infinite = numbers.refusal(value, kind, f"{what}: the value"), math.copysign(math.inf, value)
    if problem is None or numbers.refusal(infinite, kind, "infinity") is not None:
        return value
    builder.remark(TileError(f"{problem.message}; the elements become {infinite}", code="T117", location=builder.location,
                             help=problem.help))
    return infinite


def clear(buffer: Tile) -> None:
    """Write zero to every element of a buffer or a slice, or to a scalar of ``T.alloc_var``.

    Example: ``T.clear(a)``
    """
    _fill("T.clear", buffer, 0)


def tile_fill(buffer: Tile, value: object) -> None:
    """``T.tile.fill``: write ``value`` to every element of a buffer or a slice.

    If a slice of one row has a length that is not constant and is longer than the row, it continues in the next rows. A number
    that is too large for a float type becomes infinity, with a warning (T117).

    Example: ``T.tile.fill(a, 0.0)``
    """
    _fill("T.tile.fill", buffer, value)


def tile_clear(buffer: Tile) -> None:
    """``T.tile.clear``: write zero to every element of a buffer or a slice.

    Example: ``T.tile.clear(a)``
    """
    _fill("T.tile.clear", buffer, 0)


def vbrc(src: Operand, dst: Tile) -> None:
    """Repeat ``src`` along its axes of size 1 to the shape of ``dst``, or write a scalar to every element of ``dst``.

    Writes ``dst``. Both buffers must have the same number of axes and the same element type.

    Example: ``T.vbrc(a, out)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input.
    """
    if is_scalar(src):
        _fill("T.vbrc", dst, src)
        return
    builder = Builder.running("T.vbrc")
    source, target = as_memory("T.vbrc", "the input", src), as_memory("T.vbrc", "the destination", dst)
    _broadcast(builder, "T.vbrc", source, target, source.extents)


def tile_broadcast(dst: Tile, src: Operand, axis: int | None = None, *, tmp: Tile | None = None) -> None:
    """``T.tile.broadcast``: repeat ``src`` along ``axis`` to the shape of ``dst``, or write a scalar to every element.

    Writes ``dst``. Both buffers must have the same element type, and ``src`` must have size 1 along ``axis``. A source with one
    axis is repeated to a matrix: with ``axis=0`` it becomes every row, with ``axis=1`` every column; without ``axis``, the
    sizes determine which. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

    Example: ``T.tile.broadcast(out, a, axis=1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or there is no such axis; T112, the
            destination shares elements with an input.
    """
    what = "T.tile.broadcast"
    builder = Builder.running(what)
    if is_scalar(src):
        _fill(what, dst, src)
        use_scratch(what, tmp, dst, src)
        return
    source, target = as_memory(what, "the input", src), as_memory(what, "the destination", dst)
    if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < target.ndim):
        raise TileError(f"{what}: axis {axis!r} of {target.describe()}: valid are 0 to {target.ndim - 1}", code="T111",
                        help="pass the axis along which the input is repeated, or no axis")
    shape: Sequence[Extent] = source.extents
    if len(shape) == 1 and len(target.extents) == 2:
        length = shape[0]
        candidates = {0: (1, length), 1: (length, 1)}
        tried = [candidates[axis]] if axis in candidates else list(candidates.values())
        shape = next((candidate for candidate in tried if broadcasts(candidate, target.extents)), shape)
    if axis is not None and len(shape) == len(target.extents) and same_extent(shape[axis], 1) is not True:
        shape = ()
    _broadcast(builder, what, source, target, shape)
    use_scratch(what, tmp, dst, src)


def _broadcast(builder: Builder, what: str, source: Addressable, target: Addressable, shape: Sequence[Extent]) -> None:
    if source.dtype != target.dtype:
        raise TileError(f"{what}: input {source.describe()} and destination {target.describe()} differ in element type",
                        code="T110", help="cast one side first (T.tile.cast or T.vcast)")
    if overlap(source, target) in ("same", "partial"):
        raise TileError(f"{what}: input {source.describe()} shares elements with the destination", code="T112",
                        help="broadcast into another buffer")
    if not broadcasts(shape, target.extents):
        raise TileError(f"{what}: input {source.describe()} cannot be broadcast to {target.describe()}", code="T111",
                        help="give both the same number of axes, and the input size 1 along each axis on which they differ")
    value = seen_as(builder, source, shape)
    builder.tile_op(tile.BroadcastOp(value, target.ssa(builder)), what)
