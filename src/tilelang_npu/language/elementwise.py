"""Checks the operands of elementwise operations against the op table, and emits the operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.flat_memory import flattened, over_the_row
from tilelang_npu.language.operands import (
    as_memory,
    broadcasts,
    element_count,
    is_dense,
    is_scalar,
    overlap,
    require_vector_memory,
    same_shape,
    scalar_operand,
    seen_as,
    squeezed_axes,
    with_axes,
)
from tilelang_npu.ops import Composite, DType, Elementwise
from tilelang_npu.traced.buffers import Addressable, Buffer, shape_text
from tilelang_npu.traced.builder import Builder

_SIGNED = ("is_signed", "isSigned")


def _role(entry: Elementwise, position: int) -> str:
    if entry.condition:
        return ("the mask", "the first input", "the second input")[position]
    return "the input" if entry.inputs == 1 else f"input {position}"


def apply(what: str, entry: Elementwise, inputs: Sequence[object], target: object,
          clauses: Mapping[str, str | bool] | None = None) -> None:
    """Checks the operands of an elementwise operation against the operation's entry in the op table, and emits the operation.

    Args:
        what: the name of the call, for messages.
        entry: the operation's entry in the op table.
        inputs: the input operands, which are buffers, slices or scalars.
        target: the destination.
        clauses: attributes of the operation that differ from their defaults, by name.

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, operands share elements; T201, an
            operand is not in UB.
    """
    builder = Builder.running(what)
    destination = as_memory(what, "the destination", target)
    operands = [value if is_scalar(value) and position in entry.scalar else as_memory(what, _role(entry, position), value)
                for position, value in enumerate(inputs)]
    if what.startswith("T.tile."):
        destination = over_the_row(builder, what, destination)
        operands = [over_the_row(builder, what, one) if isinstance(one, Addressable) else one for one in operands]
        operands[1:] = [_first_elements(builder, what, one, destination) for one in operands[1:]]
    element = _check_types(what, entry, operands, destination)
    destination, sources = _check_shapes(builder, what, entry, operands, destination)
    _check_aliases(what, entry, sources, destination)
    require_vector_memory(what, "the destination", destination)
    values: list[SSAValue] = []
    for position, operand in enumerate(sources):
        if isinstance(operand, Addressable):
            require_vector_memory(what, _role(entry, position), operand)
            repeated = broadcasts(operand.extents, destination.extents)  # else only axes of size 1 differ
            values.append(seen_as(builder, operand, operand.extents if repeated else destination.extents))
        else:
            values.append(scalar_operand(builder, what, _role(entry, position), operand, element))
    facts = dict(clauses or {})
    if element.is_integer and not element.is_signed:
        facts.update({clause.name: False for clause in entry.clauses if clause.name in _SIGNED})
    builder.tile_op(tile.ElementwiseOp(entry.name, values, destination.ssa(builder), facts), what)


def _first_elements(builder: Builder, what: str, operand: object, destination: Addressable) -> object:
    """The first elements of a whole buffer that is longer than the destination, with a warning (T113); any other operand.

    TileLang-Ascend passes the address of a second input and the number of elements of the destination to an operation.
    """
    count = element_count(destination)
    if not isinstance(operand, Buffer) or destination.ndim != 1 or operand.ndim != 1 or count is None:
        return operand
    have = element_count(operand)
    if have is None or have <= count or count == 1:
        return operand
    builder.remark(TileError(
        f"{what}: {operand.describe()} has {have} elements, the destination {count}; the elements after the first {count} are "
        "ignored", code="T113", location=builder.location, help=f"pass {operand.name}[0:{count}]"))
    return flattened(builder, what, operand, count)


def _check_types(what: str, entry: Elementwise, operands: Sequence[object], destination: Addressable) -> DType:
    """Checks the element types and returns that of the inputs."""
    buffers = [(position, operand) for position, operand in enumerate(operands) if isinstance(operand, Addressable)]
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
        cast = "(T.tile.cast or T.vcast)"
        advice = f"cast one side first {cast}"
        if element not in entry.dtypes:
            advice = f"it works on {', '.join(entry.dtypes)}: " + (
                "pass tensors of one of these types, because Vector cores cannot cast float64" if element == "float64" else
                f"cast the inputs first {cast}")
        raise TileError(f"{what}: {problem}", code="T110", notes=_described(entry, operands, destination), help=advice)
    return element


def _computes(entry: Elementwise, element: DType) -> bool:
    """Whether the operation works on an element type: on the type itself, on unsigned elements as signed ones, or in npuir by
    way of a wider type. Tiles of float8 have no elementwise operations; ``T.Parallel`` computes their elements.
    """
    if ops.seen_as(entry, element) is not None:
        return True
    if Builder.running(entry.name).dialect == "npuir" or isinstance(entry, Composite):
        return ops.computed_in(entry, element) is not None and not str(element).startswith("float8") and (
            element != "bfloat16" or Builder.running(entry.name).dialect == "npuir")
    return element in entry.dtypes


def _described(entry: Elementwise, operands: Sequence[object], destination: Addressable) -> list[str]:
    lines = [f"{_role(entry, position)} is {operand.describe() if isinstance(operand, Addressable) else repr(operand)}"
             for position, operand in enumerate(operands)]
    return [*lines, f"the destination is {destination.describe()}"]


def _check_shapes(builder: Builder, what: str, entry: Elementwise, operands: Sequence[object],
                  destination: Addressable) -> tuple[Addressable, list[object]]:
    """The operands with shapes that match the destination's; axes of size 1 are removed or added where that helps."""
    sources = list(operands)
    for position, operand in enumerate(sources):
        if not isinstance(operand, Addressable) or _fits(builder, entry, operand, destination):
            continue
        if builder.dialect == "npuir" and entry.broadcast and operand.ndim < destination.ndim:
            whole = with_axes(operand, tuple(range(len(operand.sizes))))  # B[0, :] is a row of shape (1, n) in npuir
            if broadcasts(whole.extents, destination.extents):
                sources[position] = whole
                continue
        help_text = "the shapes must be equal, except that an input can have size 1 along an axis of the destination"
        if operand.ndim == 1 and destination.ndim == 2:
            length = operand.extents[0]
            help_text = f"give it the shape [{length}, 1] to repeat it along rows, or [1, {length}] to repeat it along columns"
        elif not entry.broadcast:
            help_text = "the shapes must be equal"
        raise TileError(f"{what}: {_role(entry, position)} has shape {shape_text(operand.extents)}, the destination "
                        f"{shape_text(destination.extents)}", code="T111", notes=_described(entry, operands, destination),
                        help=help_text)
    return destination, sources


def _fits(builder: Builder, entry: Elementwise, operand: Addressable, destination: Addressable) -> bool:
    matched = broadcasts if entry.broadcast else same_shape
    if matched(operand.extents, destination.extents):
        return True
    if _without_units(operand) == _without_units(destination):
        return True
    same_count = element_count(operand) is not None and element_count(operand) == element_count(destination)
    return builder.dialect == "ascendc" and same_count and is_dense(operand) and is_dense(destination)


def _without_units(memory: Addressable) -> list[object]:
    shape = with_axes(memory, squeezed_axes(memory)).extents
    return [size if isinstance(size, int) or size.form is None else size.form for size in shape]


def _check_aliases(what: str, entry: Elementwise, sources: Sequence[object], destination: Addressable) -> None:
    for position, operand in enumerate(sources):
        if not isinstance(operand, Addressable):
            continue
        how = overlap(operand, destination)
        late = position > 0 and isinstance(entry, Composite)
        same_type = entry.result == "any" and operand.dtype == destination.dtype  # a rounding works in place
        if how == "partial" or (how == "same" and ((not entry.in_place and not same_type) or late)):
            reason = "and is read while it is written" if how == "partial" else "and the operation does not work in place"
            raise TileError(f"{what}: {_role(entry, position)} shares elements with the destination, {reason}", code="T112",
                            notes=_described(entry, sources, destination), help="write to another buffer")
