"""How every operation of the table is called under ``T``: its names, the order of its operands, a call that is legal.

The tests of contracts, values and perturbed meanings are generated from here. Elementwise operations and reductions are
called as their entries say; a structured operation has one line in ``CALLS``. An entry that has no way to be called fails
``test_every_operation_is_covered``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tilelang_npu.language as T
from tilelang_npu import ops
from tilelang_npu.language.unsupported import Unsupported
from tilelang_npu.ops import DType, dtype
from tilelang_npu.ops.repeats import NAMES

ALL_TYPES = tuple(dtype(name) for name in (
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "int4", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool"))


def dialect_of(name: str) -> str:
    """The dialect of TileLang-Ascend that a name belongs to."""
    return "ascendc" if name.startswith("tile.") else "npuir"


def is_tile_function(name: str) -> bool:
    """Whether ``T.<name>`` works on buffers; the plain name of some operations is a function of scalars."""
    if name.startswith("tile."):
        return not isinstance(getattr(T.tile, name.removeprefix("tile.")), Unsupported)
    found = getattr(T, name)
    return not isinstance(found, Unsupported) and getattr(found, "__module__", "") != "tilelang_npu.language.scalar"


def names(entry: ops.Operation) -> list[str]:
    """The names under ``T`` by which an operation is called on buffers."""
    if isinstance(entry, ops.PeerMove) or (isinstance(entry, ops.Elementwise) and entry.outputs != 1):
        return []  # tests/ops/test_peers.py calls the former: they need a tensor that cards share
    if isinstance(entry, ops.Reduce):
        return [entry.name]
    own = (entry.name, *entry.aliases) if getattr(entry, "hivm", "") != "custom" else entry.aliases
    return [name for name in own if is_tile_function(name)]


def main_names(entry: ops.Operation) -> list[str]:
    """One name of each dialect."""
    found: dict[str, str] = {}
    for name in reversed(names(entry)):
        found[dialect_of(name)] = name
    return list(found.values())


def elementwise_call(name: str, entry: ops.Elementwise, target: str, sources: Sequence[str]) -> str:
    """``T.vadd(a, b, d)`` or ``T.tile.add(d, a, b)``."""
    if name.startswith("tile."):
        operands = [target, *sources]
    else:
        split = len(sources) - (entry.inputs_after if isinstance(entry, ops.Composite) else 0)
        operands = [*sources[:split], target, *sources[split:]]
    if entry.name == "compare":
        operands.append("'lt'")
    if entry.name == "bitwise_rshift" and not name.startswith("tile."):
        operands.append("round=False")
    return f"T.{name}({', '.join(operands)})"


def source_types(entry: ops.Elementwise, element: DType) -> list[DType]:
    """Returns the element types of the inputs if the operation works on ``element``."""
    return [dtype("bool") if entry.condition and position == 0 else element for position in range(entry.inputs)]


CASTS = {"float32": "float16", "float16": "float32", "bfloat16": "float32", "int8": "float16", "uint8": "float16",
         "int16": "float16", "int32": "float32", "int64": "float32", "bool": "float16", "int4": "float16"}
"""A type that each type converts to in one step."""


def result_type(entry: ops.Elementwise, element: DType) -> DType:
    """The element type of the destination."""
    if entry.result == "bool":
        return dtype("bool")
    return dtype(CASTS.get(str(element), "float32")) if entry.result == "any" else element


def is_legal(entry: ops.Operation, element: DType, dialect: str) -> bool:
    """Whether the operation takes the element type in a dialect: its own, or a narrow float that npuir computes in float32.

    Composites of the ascendc dialect are written in operations that have the type; bfloat16 has no arithmetic there.
    """
    if element in entry.dtypes or ops.seen_as(entry, element) is not None:
        return True
    wider = str(element) in ("float16", "bfloat16") and dtype("float32") in entry.dtypes
    if dialect == "npuir":
        return wider and not isinstance(entry, ops.Structured)
    return wider and isinstance(entry, ops.Composite) and str(element) != "bfloat16"


@dataclass(frozen=True)
class Call:
    """A legal call of an operation.

    Attributes:
        name: the name under ``T``.
        statement: the call's text.
        buffers: shape and element type of each buffer that the statement names, by its name; ``d`` is the destination.
        alike: names of the buffers whose element type must be that of ``d``.
        sized: names of the buffers whose shape is tied to that of ``d``.
    """

    name: str
    statement: str
    buffers: dict[str, tuple[tuple[int, ...], DType]]
    alike: tuple[str, ...]
    sized: tuple[str, ...]

    def allocations(self) -> list[str]:
        return [f"{name} = T.alloc_ub({shape}, {str(element)!r})" for name, (shape, element) in self.buffers.items()]

    def changed(self, name: str, shape: tuple[int, ...] | None = None, element: DType | None = None) -> Call:
        """The same call with another shape or element type of one buffer."""
        old_shape, old_element = self.buffers[name]
        buffers = {**self.buffers, name: (shape or old_shape, element or old_element)}
        return Call(self.name, self.statement, buffers, self.alike, self.sized)


def elementwise_example(name: str, entry: ops.Elementwise, element: DType) -> Call:
    """A call on buffers of shape 4 x 8: inputs ``a``, ``b``, ``c``, destination ``d``."""
    inputs = "abc"[:entry.inputs]
    buffers: dict[str, tuple[tuple[int, ...], DType]] = {
        place: ((4, 8), kind) for place, kind in zip(inputs, source_types(entry, element), strict=True)}
    buffers["d"] = ((4, 8), result_type(entry, element))
    alike = tuple(inputs[1:] if entry.condition else inputs)
    return Call(name, elementwise_call(name, entry, "d", list(inputs)), buffers, alike, tuple(inputs))


def reduce_example(name: str, entry: ops.Reduce, element: DType) -> Call:
    """``T.reduce_sum(a, d, dim=1)`` of 4 x 8."""
    return Call(name, f"T.{name}(a, d, dim=1)", {"a": ((4, 8), element), "d": ((4, 1), element)}, ("a",), ("a",))


# Per operation: the call by each of its names (or by all), and the buffers; ``*`` is the element type of the call.
CALLS: dict[str, tuple[dict[str, str] | str, dict[str, tuple[tuple[int, ...], str]]]] = {
    "gather": ("a, d, i", {"a": ((4, 8), "*"), "i": ((4, 6), "int32"), "d": ((4, 6), "*")}),
    "transpose": ({"": "a, d, [1, 0]", "tile.transpose": "d, a"}, {"a": ((4, 8), "*"), "d": ((8, 4), "*")}),
    "reduce_with_index": ("a, d, i, 1, 'max_with_index_left'",
                          {"a": ((4, 8), "*"), "d": ((4, 1), "*"), "i": ((4, 1), "int32")}),
    "cumsum": ("a, d, 1", {"a": ((4, 8), "*"), "d": ((4, 8), "*")}),
    "cummax": ("a, d, 1", {"a": ((4, 8), "*"), "d": ((4, 8), "*")}),
    "arange": ("d, [8, 1], 3", {"d": ((4, 8), "*")}),
    "interleave": ("a, b, d", {"a": ((4, 8), "*"), "b": ((4, 8), "*"), "d": ((4, 16), "*")}),
    "deinterleave": ("a, d, b", {"a": ((4, 16), "*"), "d": ((4, 8), "*"), "b": ((4, 8), "*")}),
    "concat": ("a, b, d, 1", {"a": ((4, 8), "*"), "b": ((4, 5), "*"), "d": ((4, 13), "*")}),
    "pad": ("a, d, 1, [0, 2], [0, 3]", {"a": ((4, 8), "*"), "d": ((4, 13), "*")}),
    "flip": ("a, d, 1", {"a": ((4, 8), "*"), "d": ((4, 8), "*")}),
    "vsort": ("a, d, i", {"a": ((4, 8), "*"), "d": ((4, 8), "*"), "i": ((4, 8), "int32")}),
    "arith_progression": ({"": "d, 1, 1, 32", "tile.createvecindex": "d, 1",
                           "tile.create_vec_index": "d, first_value=1"}, {"d": ((32,), "*")}),
    "gather_offsets": ("d, a, i, 0", {"a": ((64,), "*"), "i": ((32,), "uint32"), "d": ((32,), "*")}),
    "gather_mask": ("d, a, 'P0101'", {"a": ((64,), "*"), "d": ((32,), "*")}),
    "sort": ("d, a, 32", {"a": ((32,), "*"), "d": ((64,), "*")}),
    "topk": ("d, a, 8, 32", {"a": ((32,), "*"), "d": ((16,), "*")}),
    "merge_sort": ("d, a, b", {"a": ((32,), "*"), "b": ((32,), "*"), "d": ((64,), "*")}),
    "mrgsort": ("a, b, a, a, d, (8, 8, 0, 0), 3", {"a": ((32,), "*"), "b": ((32,), "*"), "d": ((64,), "*")}),
    "sort32": ({"": "d, a, i", "vsort32": "a, i, d"}, {"a": ((32,), "*"), "i": ((32,), "uint32"), "d": ((64,), "*")}),
    "compare_bits": ("d, a, b, 'LT'", {"a": ((64,), "*"), "b": ((64,), "*"), "d": ((8,), "uint8")}),
    "select_bits": ("d, m, a, b, 'VSEL_TENSOR_TENSOR_MODE'",
                    {"m": ((8,), "uint8"), "a": ((64,), "*"), "b": ((64,), "*"), "d": ((64,), "*")}),
    "brcb": ("d, a, 1, 1, 8", {"a": ((8,), "*"), "d": ((128,), "*")}),
    "gatherb": ("d, a, i, 1, 1, 8", {"a": ((128,), "*"), "i": ((8,), "uint32"), "d": ((128,), "*")}),
    "whole_reduce_max": ("d, a, 16, 2, 1, 1, 8", {"a": ((144,), "*"), "d": ((4,), "*")}),
    "whole_reduce_min": ("d, a, 16, 2, 1, 1, 8", {"a": ((144,), "*"), "d": ((4,), "*")}),
    "whole_reduce_sum": ("d, a, 16, 2, 1, 1, 8", {"a": ((144,), "*"), "d": ((2,), "*")}),
    "block_reduce_max": ("d, a, 1, 64, 1, 1, 8", {"a": ((64,), "*"), "d": ((8,), "*")}),
    "block_reduce_min": ("d, a, 1, 64, 1, 1, 8", {"a": ((64,), "*"), "d": ((8,), "*")}),
    "block_reduce_sum": ("d, a, 1, 64, 1, 1, 8", {"a": ((64,), "*"), "d": ((8,), "*")}),
    "reduce_sum_repeats": ("d, a, 64, 1, 8", {"a": ((64,), "*"), "d": ((1,), "*")}),
    "sum_rows": ("d, a, [2, 16, 5]", {"a": ((21,), "*"), "d": ((2,), "*")}),
    "gather_bits": ("d, a, m, True, 16, [1, 1, 8, 0], 0", {"a": ((64,), "*"), "m": ((8,), "bits"), "d": ((64,), "*")}),
    "fill_bits": ("d, 1, [5], 1, 1, 8", {"d": ((64,), "*")}),
    "init_sort_buf": ("d, 64, 0", {"d": ((64,), "*")}),
    "bilinear_interpolation": ("d, a, i, b, 128, 1, False, 1, 128, 1",
                               {"a": ((128,), "*"), "i": ((8,), "uint32"), "b": ((2,), "*"), "d": ((128,), "*")}),
}
"""``bits`` is the unsigned type as wide as the elements."""


BY_REPEATS = [op.name for op in ops.operations().values() if isinstance(op, ops.Structured) and set(op.aliases) & NAMES]
"""Operations that are given by repeats and strides, on flat memory."""


def structured_example(name: str, entry: ops.Structured, element: DType) -> Call:
    """The call that ``CALLS`` has."""
    text, shapes = CALLS[entry.name]
    operands = text if isinstance(text, str) else text.get(name, text[""])
    kinds = {"*": element, "bits": dtype(f"uint{element.bits if element.bits in (8, 16, 32, 64) else 32}")}
    buffers = {place: (shape, kinds.get(kind) or dtype(kind)) for place, (shape, kind) in shapes.items()}
    alike = tuple(place for place, (_, kind) in shapes.items() if kind == "*" and place != "d" and shapes["d"][1] == "*")
    return Call(name, f"T.{name}({operands})", buffers, alike, tuple(place for place in shapes if place != "d"))


def example(name: str, entry: ops.Operation, element: DType) -> Call:
    """A legal call of an operation by one of its names.

    Raises:
        KeyError: the table has no call of the operation.
    """
    if isinstance(entry, ops.Reduce):
        return reduce_example(name, entry, element)
    if isinstance(entry, ops.Elementwise):
        return elementwise_example(name, entry, element)
    assert isinstance(entry, ops.Structured)
    return structured_example(name, entry, element)


def covered() -> list[tuple[ops.Operation, str]]:
    """Every operation with one of its names in each dialect."""
    return [(entry, name) for entry in ops.operations().values() for name in main_names(entry)]


def first_type(entry: ops.Operation, name: str) -> DType:
    """An element type that a call by this name takes."""
    return next(kind for kind in (dtype("float32"), *entry.dtypes) if is_legal(entry, kind, dialect_of(name)))


KERNEL = """
import tilelang_npu.language as T

@T.prim_func
def main({parameters}):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        {statements}
"""


def kernel_text(statements: Sequence[str], parameters: str = "X: T.Tensor((8,), 'float32')") -> str:
    """The text of a kernel's file."""
    lines = [line for statement in statements for line in statement.splitlines()]
    return KERNEL.format(parameters=parameters, statements="\n        ".join(lines))
