"""Vector operations on tiles: one function for each name in the op table, and fill, broadcast and casts.

The prefix of a name fixes the order of operands: ``T.tile.add(dst, src0, src1)``, ``T.vadd(src0, src1, dst)``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.dequantise import is_dequantised, scaled
from tilelang_npu.language.described import elementwise, plain
from tilelang_npu.language.elementwise import apply
from tilelang_npu.language.flat import leading, over_the_row
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
from tilelang_npu.ops import Composite, Elementwise
from tilelang_npu.traced.buffers import Addressable, Element, Operand, Sizes, Tile, Variable, same_extent
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent

_OWN = ("cast", "compare", "bitwise_rshift")  # entries whose functions take more than buffers
_WITH_TEMPORARY = ("exp2", "log2")  # T.vexp2(src, dst, tmp): the scratch tile is not needed here
_ROUND_MODES = ("rint", "round", "floor", "ceil", "trunc", "odd")
_MODES = ("eq", "ne", "lt", "gt", "ge", "le")
_SIZED = ("sin", "cos", "erf", "tanh")  # T.vcos(src, dst, size=[...]) of the npuir dialect


@cache
def function(name: str) -> Callable[..., None]:
    """The language function of an op table's name or alias (``exp``, ``tile.exp``, ``vexp``).

    Raises:
        KeyError: the table has no such elementwise operation.
    """
    found = ops.operation(name)
    if not isinstance(found, Elementwise) or found.outputs != 1 or name == "cast":
        raise KeyError(name)
    first = name.startswith("tile.")
    if isinstance(found, Composite):
        return _named(_composite(name, found, first), name, found)
    made = _SPECIAL[found.name](name, found) if found.name in _OWN else _plain(name, found, first)
    return _named(made, name, found)


def _named(made: Callable[..., None], name: str, found: Elementwise) -> Callable[..., None]:
    made.__name__ = name.rsplit(".", 1)[-1]
    made.__qualname__ = f"T.{name}"
    made.__module__ = __name__
    made.__doc__ = elementwise(name, found, inspect.signature(made))
    return made


_SECOND = {"leaky_relu": "scalar_value", "axpy": "scalar_value", "clamp_min": "scalar_value", "clamp_max": "scalar_value",
           "bitwise_lshift": "scalarValue"}
"""What ``T.tile`` calls the second input of an operation, where it is not ``src1``."""


def _arguments(entry: Elementwise, destination_first: bool) -> tuple[list[str], str]:
    """The inputs and the destination as the two dialects name them: ``(dst, src0, src1)``, ``(A, B, C)``."""
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
"""Arguments that may be left out."""


def _signature(entry: Elementwise, names: Sequence[str], inputs: Sequence[str]) -> inspect.Signature:
    """Arguments by place or name; the optional ones are None where they are left out."""
    kinds = {name: "Operand" if position in entry.scalar else "Tile" for position, name in enumerate(inputs)} | _OPTIONAL
    return inspect.Signature([
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kinds.get(name, "Tile"),
                          default=None if name in _OPTIONAL else inspect.Parameter.empty) for name in names],
        return_annotation="None")


def _bound(what: str, signature: inspect.Signature, arguments: Sequence[object],
           keywords: Mapping[str, object]) -> dict[str, object]:
    given = dict(keywords)
    if "src" in given and "src" not in signature.parameters and "src1" not in signature.parameters:
        given["src0"] = given.pop("src")  # T.tile.exp(dst, src)
    try:
        return signature.bind(*arguments, **given).arguments
    except TypeError as wrong:
        raise TileError(f"{what}: {wrong}", code="T145", help=f"it is called as {what}{plain(signature)}") from None


def _composite(name: str, entry: Composite, destination_first: bool) -> Callable[..., None]:
    inputs, target_name = _arguments(entry, destination_first)
    split = len(inputs) - entry.behind
    names = [target_name, *inputs] if destination_first else [*inputs[:split], target_name, *inputs[split:]]
    if entry.counted and destination_first:
        names.append("count")
    signature = _signature(entry, names, inputs)

    def call(*arguments: object, **keywords: object) -> None:
        what = f"T.{name}"
        values = _bound(what, signature, arguments, keywords)
        target, count = values[target_name], values.get("count")
        operands = [values[key] for key in inputs]
        if count is not None:
            builder = Builder.running(what)
            target, operands[0] = leading(builder, what, [as_memory(what, "the destination", target),
                                                          as_memory(what, "the input", operands[0])], count)
        apply(what, entry, operands, target)

    call.__signature__ = signature  # type: ignore[attr-defined]  # read by help()
    return call


def _plain(name: str, entry: Elementwise, destination_first: bool) -> Callable[..., None]:
    inputs, target_name = _arguments(entry, destination_first)
    names = [target_name, *inputs] if destination_first else [*inputs, target_name]
    if not destination_first and (entry.name in _WITH_TEMPORARY or entry.name in _SIZED):
        names.append("Tmp" if entry.name in _WITH_TEMPORARY else "size")
    signature = _signature(entry, names, inputs)

    def call(*arguments: object, **keywords: object) -> None:
        what = f"T.{name}"
        values = _bound(what, signature, arguments, keywords)
        target, size = values[target_name], values.get("size")
        if values.get("Tmp") is not None:
            _check_temporary(what, values["Tmp"], target)
        operands = [values[key] for key in inputs]
        if size is not None:
            sizes = sizes_argument(Builder.running(what), what, size)
            operands, target = ([right_aligned(what, as_memory(what, "an input", value), sizes) for value in operands],
                                right_aligned(what, as_memory(what, "the destination", target), sizes))
        apply(what, entry, operands, target)

    call.__signature__ = signature  # type: ignore[attr-defined]  # read by help()
    return call


def _check_temporary(what: str, given: object, target: object) -> None:
    """A scratch tile that the caller brings is not needed, but it has to be one: as the destination in type and count."""
    temporary, destination = as_memory(what, "the temporary", given), as_memory(what, "the destination", target)
    counts = element_count(temporary), element_count(destination)
    if temporary.dtype != destination.dtype or (None not in counts and counts[0] != counts[1]):
        raise TileError(f"{what}: the temporary is {temporary.describe()}, the destination {destination.describe()}",
                        code="T110", help="give a temporary like the destination, or none")


def _compare(name: str, entry: Elementwise) -> Callable[..., None]:
    def compare(A: Tile, B: Operand, C: Tile, cmp_mod: str) -> None:
        mode = str(cmp_mod).lower()
        if mode not in _MODES:
            raise TileError(f"T.{name}: there is no comparison {cmp_mod!r}", code="T145", help="one of " + ", ".join(_MODES))
        apply(f"T.{name}", entry, [A, B], C, {} if mode == "eq" else {"compare_mode": mode})

    return compare


def _shift_right(name: str, entry: Elementwise) -> Callable[..., None]:
    if name.startswith("tile."):
        def shift_first(dst: Tile, src0: Tile, scalarValue: Operand) -> None:
            apply(f"T.{name}", entry, [src0, scalarValue], dst, {"round": False})

        return shift_first

    def shift(A: Tile, B: Operand, C: Tile, round: bool = True) -> None:  # noqa: A002  (the language's name)
        apply(f"T.{name}", entry, [A, B], C, {} if round else {"round": False})

    return shift


def _vcast(name: str, entry: Elementwise) -> Callable[..., None]:
    def vcast(src: Tile, dst: Tile, size: Sizes | None = None, round_mode: str = "rint") -> None:
        what = f"T.{name}"
        if isinstance(size, str):
            size, round_mode = None, size
        builder = Builder.running(what)
        source, target = as_memory(what, "the input", src), as_memory(what, "the destination", dst)
        if size is not None:
            sizes = sizes_argument(builder, what, size)
            source, target = right_aligned(what, source, sizes), right_aligned(what, target, sizes)
        _convert(what, entry, source, target, round_mode)

    return vcast


def _convert(what: str, entry: Elementwise, source: Addressable, target: Addressable, mode: str) -> None:
    if mode not in _ROUND_MODES:
        raise TileError(f"{what}: there is no rounding mode {mode!r}", code="T145", help="one of " + ", ".join(_ROUND_MODES))
    clauses: dict[str, str | bool] = {} if mode == "rint" else {"round_mode": mode}
    if any(side.dtype.is_integer and not side.dtype.is_signed for side in (source, target)):
        clauses["cast"] = "cast_unsigned"
    apply(what, entry, [source], target, clauses)


_SPECIAL: dict[str, Callable[[str, Elementwise], Callable[..., None]]] = {
    "cast": _vcast, "compare": _compare, "bitwise_rshift": _shift_right,
}


def tile_cast(dst: Tile, src: Tile, mode: str = "CAST_NONE", count: object = None) -> None:
    """``T.tile.cast``: convert ``count`` elements (all without it); ``mode`` is ``CAST_NONE``, ``CAST_RINT``, ``CAST_FLOOR``,
    ``CAST_CEIL``, ``CAST_ROUND``, ``CAST_TRUNC`` or ``CAST_ODD``.

    ``dst`` is written, of one shape with ``src``. Element types: any two.

    Example: ``T.tile.cast(out, a, "CAST_RINT")``
    """
    what = "T.tile.cast"
    word = str(mode).removeprefix("CAST_").lower()
    word = "rint" if word == "none" else word
    source, target = as_memory(what, "the input", src), as_memory(what, "the destination", dst)
    if count is not None:
        builder = Builder.running(what)
        source, target = leading(builder, what, [source, target], count)
    if is_dequantised(Builder.running(what), source, target) and word in _ROUND_MODES:
        scaled(Builder.running(what), what, source, target, word)
        return
    entry = ops.operation("cast")
    assert isinstance(entry, Elementwise)
    _convert(what, entry, source, target, word)


def fill(buffer: Tile, value: object) -> None:
    """Write one value to every element of a buffer or slice, or to a scalar of ``T.alloc_var``; the value is converted to its
    element type, and may be a buffer of one element.

    ``buffer`` is written. A global tensor is filled by copies of a filled tile in UB, in each block anew.

    Example: ``T.fill(a, 0.0)``

    Raises:
        TileError: T110, a value that the type does not have (infinity as an integer).
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
    scalar = scalar_operand(builder, what, "the value", value, target.dtype)
    builder.tile_op(tile.FillOp(scalar, target.ssa(builder)), what)


def clear(buffer: Tile) -> None:
    """Write zeros to a buffer or slice, or zero to a scalar of ``T.alloc_var``.

    ``buffer`` is written.

    Example: ``T.clear(a)``
    """
    _fill("T.clear", buffer, 0)


def tile_fill(buffer: Tile, value: object) -> None:
    """``T.tile.fill``: write one value to every element.

    ``buffer`` is written. A slice of one row whose length only run time knows goes on in the rows that follow.

    Example: ``T.tile.fill(a, 0.0)``
    """
    _fill("T.tile.fill", buffer, value)


def tile_clear(buffer: Tile) -> None:
    """``T.tile.clear``: write zeros.

    ``buffer`` is written.

    Example: ``T.tile.clear(a)``
    """
    _fill("T.tile.clear", buffer, 0)


def vbrc(src: Operand, dst: Tile) -> None:
    """Repeat ``src`` along its unit axes to the shape of ``dst``, or write a scalar to every element.

    ``dst`` is written; both have one element type.

    Example: ``T.vbrc(a, out)``

    Raises:
        TileError: T110 element types, T111 shapes, T112 shared elements.
    """
    if is_scalar(src):
        _fill("T.vbrc", dst, src)
        return
    builder = Builder.running("T.vbrc")
    source, target = as_memory("T.vbrc", "the input", src), as_memory("T.vbrc", "the destination", dst)
    _broadcast(builder, "T.vbrc", source, target, source.extents)


def tile_broadcast(dst: Tile, src: Operand, axis: int | None = None) -> None:
    """``T.tile.broadcast``: repeat ``src`` to the shape of ``dst`` along ``axis``.

    A source with one axis becomes rows (axis 0, where the columns match) or columns (axis 1, where the rows match).

    ``dst`` is written; both have one element type.

    Example: ``T.tile.broadcast(out, a, axis=1)``

    Raises:
        TileError: T110 element types, T111 shapes, T112 shared elements.
    """
    what = "T.tile.broadcast"
    builder = Builder.running(what)
    if is_scalar(src):
        _fill(what, dst, src)
        return
    source, target = as_memory(what, "the input", src), as_memory(what, "the destination", dst)
    if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < target.ndim):
        raise TileError(f"{what}: axis {axis!r} of {target.describe()}: valid are 0 to {target.ndim - 1}", code="T111",
                        help="give the axis along which the input is repeated, or leave it out")
    shape: Sequence[Extent] = source.extents
    if len(shape) == 1 and len(target.extents) == 2:
        length = shape[0]
        candidates = {0: (1, length), 1: (length, 1)}
        tried = [candidates[axis]] if axis in candidates else list(candidates.values())
        shape = next((candidate for candidate in tried if broadcasts(candidate, target.extents)), shape)
    if axis is not None and len(shape) == len(target.extents) and same_extent(shape[axis], 1) is not True:
        shape = ()
    _broadcast(builder, what, source, target, shape)


def _broadcast(builder: Builder, what: str, source: Addressable, target: Addressable, shape: Sequence[Extent]) -> None:
    if source.dtype != target.dtype:
        raise TileError(f"{what}: input {source.describe()} and destination {target.describe()} differ in element type",
                        code="T110", help="cast one side first (T.tile.cast or T.vcast)")
    if overlap(source, target) in ("same", "partial"):
        raise TileError(f"{what}: input {source.describe()} shares elements with the destination", code="T112",
                        help="broadcast into another buffer")
    if not broadcasts(shape, target.extents):
        raise TileError(f"{what}: input {source.describe()} does not repeat to {target.describe()}", code="T111",
                        help="the shapes have as many axes, and the input has size 1 where they differ")
    value = seen_as(builder, source, shape)
    builder.tile_op(tile.BroadcastOp(value, target.ssa(builder)), what)
