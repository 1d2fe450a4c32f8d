"""Vector operations on tiles: one function for each name in the op table, and fill, broadcast and casts.

The prefix of a name fixes the order of operands: ``T.tile.add(dst, src0, src1)``, ``T.vadd(src0, src1, dst)``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.ir import SSAValue

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.frontend.buffers import Element, Extent, Memory, Variable, same_extent, shape_text
from tilelang_npu.frontend.builder import Builder
from tilelang_npu.language import tracing
from tilelang_npu.language.dequantise import is_dequantised, scaled
from tilelang_npu.language.flat import leading
from tilelang_npu.language.operands import (
    as_memory,
    broadcasts,
    element_count,
    is_dense,
    is_scalar,
    overlap,
    require_vector_memory,
    right_aligned,
    same_shape,
    scalar_operand,
    seen_as,
    sizes_argument,
    squeezed_axes,
    with_axes,
)
from tilelang_npu.ops import Composite, DType, Elementwise

_OWN = ("cast", "compare", "bitwise_rshift")  # entries whose functions take more than buffers
_WITH_TEMPORARY = ("exp2", "log2")  # T.vexp2(src, dst, tmp): the scratch tile is not needed here
_ROUND_MODES = ("rint", "round", "floor", "ceil", "trunc", "odd")
_MODES = ("eq", "ne", "lt", "gt", "ge", "le")
_SIZED = ("sin", "cos", "erf", "tanh")  # T.vcos(src, dst, size=[...]) of the npuir dialect
_SIGNED = ("is_signed", "isSigned")


def _role(entry: Elementwise, position: int) -> str:
    if entry.condition:
        return ("the mask", "the first input", "the second input")[position]
    return "the input" if entry.inputs == 1 else f"input {position}"


def apply(what: str, entry: Elementwise, inputs: Sequence[Any], target: Any,
          clauses: Mapping[str, str | bool] | None = None) -> None:
    """Check an elementwise operation against its entry and emit it.

    Raises:
        TileError: T110 element types, T111 shapes, T112 operands that share elements, T201 operands that are not in UB.
    """
    builder = tracing.builder(what)
    destination = as_memory(what, "the destination", target)
    operands = [_operand(what, entry, position, value) for position, value in enumerate(inputs)]
    element = _check_types(what, entry, operands, destination)
    destination, sources = _check_shapes(builder, what, entry, operands, destination)
    _check_aliases(what, entry, sources, destination)
    require_vector_memory(what, "the destination", destination)
    values: list[SSAValue] = []
    for position, operand in enumerate(sources):
        if isinstance(operand, Memory):
            require_vector_memory(what, _role(entry, position), operand)
            values.append(seen_as(builder, operand, _shape_for(operand, destination)))
        else:
            values.append(scalar_operand(builder, what, _role(entry, position), operand, element))
    facts = dict(clauses or {})
    if element.is_integer and not element.is_signed:
        facts.update({clause.name: False for clause in entry.clauses if clause.name in _SIGNED})
    builder.tile_op(tile.ElementwiseOp(entry.name, values, destination.ssa(builder), facts), what)


def _operand(what: str, entry: Elementwise, position: int, value: Any) -> Any:
    """A buffer, or a scalar where the entry takes one."""
    if is_scalar(value) and position in entry.scalar:
        return value
    return as_memory(what, _role(entry, position), value)


def _check_types(what: str, entry: Elementwise, operands: Sequence[Any], destination: Memory) -> DType:
    """The element type of the inputs."""
    buffers = [(position, operand) for position, operand in enumerate(operands) if isinstance(operand, Memory)]
    typed = [pair for pair in buffers if not (entry.condition and pair[0] == 0)]
    element = typed[0][1].dtype if typed else destination.dtype
    result = {"same": (str(element),), "bool": ("bool", "int8"), "any": (str(destination.dtype),)}[entry.result]
    problem = ""
    if entry.condition and buffers and buffers[0][0] == 0 and str(buffers[0][1].dtype) not in ("bool", "int8"):
        problem = f"the mask has elements of {buffers[0][1].dtype}, not bool"
    elif any(operand.dtype != element for _, operand in typed):
        problem = "the inputs have different element types"
    elif not _computes(entry, element):
        problem = f"{entry.name} does not work on {element}"
    elif str(destination.dtype) not in result:
        problem = f"the destination has elements of {destination.dtype}, not {' or '.join(result)}"
    if problem:
        raise TileError(f"{what}: {problem}", code="T110", notes=_described(entry, operands, destination),
                        help=_type_advice(entry, element))
    return element


def _computes(entry: Elementwise, element: DType) -> bool:
    """Whether the operation takes the element type: itself, unsigned elements as signed ones, or on the npuir branch by way of
    a wider one."""
    if ops.seen_as(entry, element) is not None:
        return True
    if tracing.builder(entry.name).dialect == "npuir" or isinstance(entry, Composite):
        return ops.computed_in(entry, element) is not None and (
            element != "bfloat16" or tracing.builder(entry.name).dialect == "npuir")
    return element in entry.dtypes


def _type_advice(entry: Elementwise, element: DType) -> str:
    if element not in entry.dtypes:
        return f"it works on {', '.join(entry.dtypes)}: cast the inputs first (T.tile.cast or T.vcast)"
    return "cast one side first (T.tile.cast or T.vcast)"


def _described(entry: Elementwise, operands: Sequence[Any], destination: Memory) -> list[str]:
    lines = [f"{_role(entry, position)} is {operand.describe() if isinstance(operand, Memory) else repr(operand)}"
             for position, operand in enumerate(operands)]
    return [*lines, f"the destination is {destination.describe()}"]


def _check_shapes(builder: Builder, what: str, entry: Elementwise, operands: Sequence[Any],
                  destination: Memory) -> tuple[Memory, list[Any]]:
    """Operands whose shapes fit the destination's, after unit axes were dropped where that helps."""
    sources = list(operands)
    for position, operand in enumerate(sources):
        if not isinstance(operand, Memory) or _fits(builder, entry, operand, destination):
            continue
        if builder.dialect == "npuir" and entry.broadcast and operand.ndim < destination.ndim:
            whole = with_axes(operand, tuple(range(len(operand.sizes))))  # B[0, :] is a row there
            if broadcasts(whole.extents, destination.extents):
                sources[position] = whole
                continue
        help_text = "shapes are equal, or an input has size 1 where the destination has not"
        if operand.ndim == 1 and destination.ndim == 2:
            length = operand.extents[0]
            help_text = f"give it the shape [{length}, 1] to repeat it along rows, or [1, {length}] to repeat it along columns"
        elif not entry.broadcast:
            help_text = "shapes are equal"
        raise TileError(f"{what}: {_role(entry, position)} has shape {shape_text(operand.extents)}, the destination "
                        f"{shape_text(destination.extents)}", code="T111", notes=_described(entry, operands, destination),
                        help=help_text)
    return destination, sources


def _fits(builder: Builder, entry: Elementwise, operand: Memory, destination: Memory) -> bool:
    matched = broadcasts if entry.broadcast else same_shape
    if matched(operand.extents, destination.extents):
        return True
    if _without_units(operand) == _without_units(destination):
        return True
    same_count = element_count(operand) is not None and element_count(operand) == element_count(destination)
    return builder.dialect == "ascendc" and same_count and is_dense(operand) and is_dense(destination)


def _without_units(memory: Memory) -> list[Any]:
    shape = with_axes(memory, squeezed_axes(memory)).extents
    return [size if isinstance(size, int) or size.form is None else size.form for size in shape]


def _shape_for(operand: Memory, destination: Memory) -> Sequence[Extent]:
    """The shape an operand is seen with: its own where it broadcasts, else the destination's."""
    return operand.extents if broadcasts(operand.extents, destination.extents) else destination.extents


def _check_aliases(what: str, entry: Elementwise, sources: Sequence[Any], destination: Memory) -> None:
    for position, operand in enumerate(sources):
        if not isinstance(operand, Memory):
            continue
        how = overlap(operand, destination)
        late = position > 0 and isinstance(entry, Composite)
        same_type = entry.result == "any" and operand.dtype == destination.dtype  # a rounding: each element in its place
        if how == "partial" or (how == "same" and ((not entry.in_place and not same_type) or late)):
            reason = "and is read while it is written" if how == "partial" else "and the operation does not work in place"
            raise TileError(f"{what}: {_role(entry, position)} shares elements with the destination, {reason}", code="T112",
                            notes=_described(entry, sources, destination), help="write to another buffer")


# --- the functions under T -----------------------------------------------------------------------------------------------


@cache
def function(name: str) -> Callable[..., Any]:
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


def _named(made: Callable[..., Any], name: str, found: Elementwise) -> Callable[..., Any]:
    made.__name__ = name.rsplit(".", 1)[-1]
    made.__qualname__ = f"T.{name}"
    made.__module__ = __name__
    made.__doc__ = f"{found.doc} Element types: {', '.join(found.dtypes)}."
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


def _signature(names: Sequence[str], optional: Sequence[str]) -> inspect.Signature:
    """Arguments by place or name; the optional ones are None where they are left out."""
    return inspect.Signature([
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                          default=None if name in optional else inspect.Parameter.empty) for name in names])


def _bound(what: str, signature: inspect.Signature, arguments: Sequence[Any],
           keywords: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(keywords)
    if "src" in given and "src" not in signature.parameters and "src1" not in signature.parameters:
        given["src0"] = given.pop("src")  # T.tile.exp(dst, src)
    try:
        return signature.bind(*arguments, **given).arguments
    except TypeError as wrong:
        raise TileError(f"{what}: {wrong}", code="T145", help=f"it is called as {what}{signature}") from None


def _composite(name: str, entry: Composite, destination_first: bool) -> Callable[..., Any]:
    inputs, target_name = _arguments(entry, destination_first)
    split = len(inputs) - entry.behind
    names = [target_name, *inputs] if destination_first else [*inputs[:split], target_name, *inputs[split:]]
    if entry.counted and destination_first:
        names.append("count")
    signature = _signature(names, ("count",))

    def call(*arguments: Any, **keywords: Any) -> None:
        what = f"T.{name}"
        values = _bound(what, signature, arguments, keywords)
        target, count = values[target_name], values.get("count")
        operands = [values[key] for key in inputs]
        if count is not None:
            builder = tracing.builder(what)
            target, operands[0] = leading(builder, what, [as_memory(what, "the destination", target),
                                                          as_memory(what, "the input", operands[0])], count)
        apply(what, entry, operands, target)

    call.__signature__ = signature  # type: ignore[attr-defined]  # read by help()
    return call


def _plain(name: str, entry: Elementwise, destination_first: bool) -> Callable[..., Any]:
    inputs, target_name = _arguments(entry, destination_first)
    names = [target_name, *inputs] if destination_first else [*inputs, target_name]
    if not destination_first and (entry.name in _WITH_TEMPORARY or entry.name in _SIZED):
        names.append("Tmp" if entry.name in _WITH_TEMPORARY else "size")
    signature = _signature(names, ("Tmp", "size"))

    def call(*arguments: Any, **keywords: Any) -> None:
        what = f"T.{name}"
        values = _bound(what, signature, arguments, keywords)
        target, size = values[target_name], values.get("size")
        if values.get("Tmp") is not None:
            _check_temporary(what, values["Tmp"], target)
        operands = [values[key] for key in inputs]
        if size is not None:
            sizes = sizes_argument(tracing.builder(what), what, size)
            operands, target = ([right_aligned(what, as_memory(what, "an input", value), sizes) for value in operands],
                                right_aligned(what, as_memory(what, "the destination", target), sizes))
        apply(what, entry, operands, target)

    call.__signature__ = signature  # type: ignore[attr-defined]  # read by help()
    return call


def _check_temporary(what: str, given: Any, target: Any) -> None:
    """A scratch tile that the caller brings is not needed, but it has to be one: as the destination in type and count."""
    temporary, destination = as_memory(what, "the temporary", given), as_memory(what, "the destination", target)
    counts = element_count(temporary), element_count(destination)
    if temporary.dtype != destination.dtype or (None not in counts and counts[0] != counts[1]):
        raise TileError(f"{what}: the temporary is {temporary.describe()}, the destination {destination.describe()}",
                        code="T110", help="give a temporary like the destination, or none")


def _compare(name: str, entry: Elementwise) -> Callable[..., Any]:
    def compare(A: Any, B: Any, C: Any, cmp_mod: str) -> None:
        mode = str(cmp_mod).lower()
        if mode not in _MODES:
            raise TileError(f"T.{name}: there is no comparison {cmp_mod!r}", code="T145", help="one of " + ", ".join(_MODES))
        apply(f"T.{name}", entry, [A, B], C, {} if mode == "eq" else {"compare_mode": mode})

    return compare


def _shift_right(name: str, entry: Elementwise) -> Callable[..., Any]:
    if name.startswith("tile."):
        def shift_first(dst: Any, src0: Any, scalarValue: Any) -> None:
            apply(f"T.{name}", entry, [src0, scalarValue], dst, {"round": False})

        return shift_first

    def shift(A: Any, B: Any, C: Any, round: bool = True) -> None:  # noqa: A002  (the language's name)
        apply(f"T.{name}", entry, [A, B], C, {} if round else {"round": False})

    return shift


def _vcast(name: str, entry: Elementwise) -> Callable[..., Any]:
    def vcast(src: Any, dst: Any, size: Any = None, round_mode: str = "rint") -> None:
        what = f"T.{name}"
        if isinstance(size, str):
            size, round_mode = None, size
        builder = tracing.builder(what)
        source, target = as_memory(what, "the input", src), as_memory(what, "the destination", dst)
        if size is not None:
            sizes = sizes_argument(builder, what, size)
            source, target = right_aligned(what, source, sizes), right_aligned(what, target, sizes)
        _convert(what, entry, source, target, round_mode)

    return vcast


def _convert(what: str, entry: Elementwise, source: Memory, target: Memory, mode: str) -> None:
    if mode not in _ROUND_MODES:
        raise TileError(f"{what}: there is no rounding mode {mode!r}", code="T145", help="one of " + ", ".join(_ROUND_MODES))
    clauses: dict[str, str | bool] = {} if mode == "rint" else {"round_mode": mode}
    if any(side.dtype.is_integer and not side.dtype.is_signed for side in (source, target)):
        clauses["cast"] = "cast_unsigned"
    apply(what, entry, [source], target, clauses)


_SPECIAL: dict[str, Callable[[str, Elementwise], Callable[..., Any]]] = {
    "cast": _vcast, "compare": _compare, "bitwise_rshift": _shift_right,
}


def tile_cast(dst: Any, src: Any, mode: str = "CAST_NONE", count: Any = None) -> None:
    """``T.tile.cast``: convert ``count`` elements (all without it); ``mode`` is ``CAST_NONE``, ``CAST_RINT``, ``CAST_FLOOR``,
    ``CAST_CEIL``, ``CAST_ROUND``, ``CAST_TRUNC`` or ``CAST_ODD``."""
    what = "T.tile.cast"
    word = str(mode).removeprefix("CAST_").lower()
    word = "rint" if word == "none" else word
    source, target = as_memory(what, "the input", src), as_memory(what, "the destination", dst)
    if count is not None:
        builder = tracing.builder(what)
        source, target = leading(builder, what, [source, target], count)
    if is_dequantised(tracing.builder(what), source, target) and word in _ROUND_MODES:
        scaled(tracing.builder(what), what, source, target, word)
        return
    entry = ops.operation("cast")
    assert isinstance(entry, Elementwise)
    _convert(what, entry, source, target, word)


def fill(buffer: Any, value: Any) -> None:
    """Write one value to every element of a buffer or slice, or to a scalar of ``T.alloc_var``; the value is converted to its
    element type, and may be a buffer of one element.

    Raises:
        TileError: T110, a value that the type does not have (infinity as an integer).
    """
    _fill("T.fill", buffer, value)


def _fill(what: str, buffer: Any, value: Any) -> None:
    builder = tracing.builder(what)
    if isinstance(value, Memory) and element_count(value) == 1:
        value = value[(0,) * value.ndim] if value.ndim else Element(value.buffer, value.offsets)
    if isinstance(buffer, Element) and isinstance(buffer.buffer, Variable):
        buffer.store(value)
        return
    target = as_memory(what, "the destination", buffer)
    scalar = scalar_operand(builder, what, "the value", value, target.dtype)
    builder.tile_op(tile.FillOp(scalar, target.ssa(builder)), what)


def clear(buffer: Any) -> None:
    """Write zeros to a buffer or slice, or zero to a scalar of ``T.alloc_var``."""
    _fill("T.clear", buffer, 0)


def tile_fill(buffer: Any, value: Any) -> None:
    """``T.tile.fill``: write one value to every element."""
    _fill("T.tile.fill", buffer, value)


def tile_clear(buffer: Any) -> None:
    """``T.tile.clear``: write zeros."""
    _fill("T.tile.clear", buffer, 0)


def vbrc(src: Any, dst: Any) -> None:
    """Repeat ``src`` along its unit axes to the shape of ``dst``, or write a scalar to every element.

    Raises:
        TileError: T110 element types, T111 shapes, T112 shared elements.
    """
    if is_scalar(src):
        _fill("T.vbrc", dst, src)
        return
    builder = tracing.builder("T.vbrc")
    source, target = as_memory("T.vbrc", "the input", src), as_memory("T.vbrc", "the destination", dst)
    _broadcast(builder, "T.vbrc", source, target, source.extents)


def tile_broadcast(dst: Any, src: Any, axis: int | None = None) -> None:
    """``T.tile.broadcast``: repeat ``src`` to the shape of ``dst`` along ``axis``.

    A source with one axis becomes rows (axis 0, where the columns match) or columns (axis 1, where the rows match).

    Raises:
        TileError: T110 element types, T111 shapes, T112 shared elements.
    """
    what = "T.tile.broadcast"
    builder = tracing.builder(what)
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


def _broadcast(builder: Builder, what: str, source: Memory, target: Memory, shape: Sequence[Extent]) -> None:
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
