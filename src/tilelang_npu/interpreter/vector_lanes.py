"""The operations of ``T.vmi`` on vector registers: each register is a NumPy array with one element per lane.

Meanings: the instruction reference ``docs/isa/vmi-isa`` of PTOAS. LaneValues that a mask does not select become 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang_npu.interpreter.host_buffers import POISON, HostBuffer, integer, memory_of, stored
from tilelang_npu.interpreter.operation_table import OPERATIONS
from tilelang_npu.interpreter.running_core import current, fail
from tilelang_npu.interpreter.typed_scalars import BOOL, FLOAT32, INT32, Array, cast_elements, finish, limits, scalar
from tilelang_npu.target.dtypes import DType, dtype


class LaneValues:
    """The value of a vector register, or of a mask.

    Attributes:
        array: an element for each lane.
        element: the element type; ``bool`` for a mask.
    """

    def __init__(self, array: Array, element: DType) -> None:
        self.array, self.element = array, element

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.element

    def load(self) -> LaneValues:
        """Returns the value itself."""
        return self

    def __repr__(self) -> str:
        return f"{self.array.size} lanes of {self.element}: {self.array}"


class LaneVariable:
    """A register that is assigned more than once, or an array of such registers, which are accessed by index.

    Attributes:
        element: the element type.
        registers: the value of each register, by its indices; ``()`` for the only one of a ``T.vmi.alloc_var``.
        named: whether an assignment has given the variable its name.
    """

    def __init__(self, element: DType, lanes: int, shape: tuple[int, ...] | None) -> None:
        self.element, self.shape, self.named = element, shape, False
        places = [()] if shape is None else list(np.ndindex(*shape))
        number, whole = POISON.get()
        undefined = np.full(lanes, number if element.is_float else whole).astype(element.numpy)
        self.registers: dict[tuple[int, ...], LaneValues] = {place: LaneValues(undefined, element) for place in places}

    def load(self) -> LaneValues:
        """Returns the value of the single register."""
        return self.registers[()]

    def store(self, value: object) -> None:
        """Assigns a value to the register of a ``T.alloc_frag`` that declares one register."""
        self.registers[()] = _lanes(value)

    def _place(self, items: object) -> tuple[int, ...]:
        place = tuple(integer(item) for item in (items if isinstance(items, tuple) else (items,)))
        if place not in self.registers:
            raise fail(f"there is no register {place} in an array of {self.shape} registers",
                       "check the size of the allocation", "T502")
        return place

    def __getitem__(self, items: object) -> LaneValues:
        return self.registers[self._place(items)]

    def __setitem__(self, items: object, value: object) -> None:
        self.registers[self._place(items)] = _lanes(value)


def _lanes(value: object) -> LaneValues:
    if isinstance(value, (LaneValues, LaneVariable)):
        return value.load()
    raise fail(f"a vector register is needed, not {value!r}", "load one with T.vmi.vload", "T110")


def _chosen(values: Array, mask: object, element: DType) -> LaneValues:
    if mask is not None:
        values = np.where(_lanes(mask).array, values, np.zeros((), values.dtype))
    return LaneValues(values, element)


def _number(value: object, element: DType) -> Any:
    return stored(value, element)


def _known(name: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    def enter(function: Callable[..., object]) -> Callable[..., object]:
        OPERATIONS[f"vmi.{name}"] = function
        return function

    return enter


# --- lane by lane ------------------------------------------------------------------------------------------------------------


def _rounded(compute: Callable[..., Array], element: DType, *values: Array) -> Array:
    """Computes floats in float64 and rounds once; integers wrap."""
    if element.is_float:
        return finish(compute(*[np.asarray(value).astype(np.float64) for value in values]), element)
    kind = element.numpy
    return np.asarray(compute(*[np.asarray(value).astype(object if kind.itemsize > 2 else np.int64) for value in values])
                      .astype(object) % (1 << element.bits)).astype(np.uint64).astype(f"u{kind.itemsize}").view(kind)


def _shift(left: bool) -> Callable[..., Array]:
    def run(values: Array, amounts: Array) -> Array:
        bits = np.dtype(f"u{values.dtype.itemsize}")
        width = 8 * bits.itemsize
        wide = [int(value) << int(amount) if left else int(value) >> int(amount)
                for value, amount in zip(values.view(bits), np.broadcast_to(amounts, values.shape).astype(bits), strict=True)]
        return np.array([value % (1 << width) for value in wide], np.uint64).astype(bits).view(values.dtype)

    return run


_LANE_BY_LANE: dict[str, tuple[Callable[..., Array], bool]] = {
    "vadd": (np.add, True), "vsub": (np.subtract, True), "vmul": (np.multiply, True), "vdiv": (np.divide, True),
    "vmax": (np.maximum, False), "vmin": (np.minimum, False), "vand": (np.bitwise_and, False), "vor": (np.bitwise_or, False),
    "vxor": (np.bitwise_xor, False), "vshl": (_shift(True), False), "vshr": (_shift(False), False), "vabs": (np.abs, True),
    "vneg": (np.negative, True), "vrelu": (lambda a: np.maximum(a, np.zeros((), a.dtype)), False), "vexp": (np.exp, True),
    "vln": (np.log, True), "vsqrt": (np.sqrt, True), "vnot": (np.bitwise_not, False),
    "vadds": (np.add, True), "vmuls": (np.multiply, True), "vmaxs": (np.maximum, False), "vmins": (np.minimum, False),
    "vshls": (_shift(True), False), "vshrs": (_shift(False), False),
    "vaxpy": (lambda x, acc, alpha: alpha * x + acc, True), "vmula": (lambda acc, lhs, rhs: acc + lhs * rhs, True),
}
"""For each operation, its meaning, and whether the result is computed exactly and then rounded or wrapped."""
_OPERANDS = {"vabs": 1, "vneg": 1, "vrelu": 1, "vexp": 1, "vln": 1, "vsqrt": 1, "vnot": 1, "vaxpy": 3, "vmula": 3}


def _lane_by_lane(name: str, *arguments: object, mask: object = None, pmode: object = None, **named: object) -> LaneValues:
    given = [*arguments, *(value for key, value in named.items())]
    count = _OPERANDS.get(name, 2)
    if len(given) > count:
        mask = given[count]
    first = _lanes(given[0])
    element = first.element
    values = [_lanes(value).array if isinstance(value, (LaneValues, LaneVariable)) else _number(value, element)
              for value in given[:count]]
    if name == "vexpdif":
        return _chosen(_rounded(np.exp, element, _rounded(np.subtract, element, *values)), mask, element)
    if name in ("vlrelu", "vprelu"):
        x, slope = values
        zero = np.zeros((), x.dtype)
        low = _rounded(np.multiply, element, np.minimum(x, zero), slope)
        return _chosen(_rounded(np.add, element, np.maximum(x, zero), low), mask, element)
    compute, exact = _LANE_BY_LANE[name]
    made = _rounded(compute, element, *values) if exact else np.asarray(compute(*values)).astype(element.numpy)
    return _chosen(made, mask, element)


def _enter(name: str) -> None:
    OPERATIONS[f"vmi.{name}"] = lambda *arguments, **keywords: _lane_by_lane(name, *arguments, **keywords)


for _name in (*_LANE_BY_LANE, "vexpdif", "vlrelu", "vprelu"):
    _enter(_name)

# --- masks and types ---------------------------------------------------------------------------------------------------------


@_known("create_mask")
def create_mask(active_lanes: object, *, size: int, group: int | None = None) -> LaneValues:
    """Returns a mask whose first lanes, or whose first lanes of each group, are selected (``T.vmi.create_mask``)."""
    count = integer(scalar(active_lanes).single() if not isinstance(active_lanes, int) else active_lanes)
    return LaneValues(np.arange(size) % (size // (group or 1)) < count, BOOL)


@_known("vreg")
def vreg(lanes: int, dtype_like: object) -> tuple[DType, int]:
    """Returns the type of a register (``T.vmi.vreg``)."""
    return DType(str(dtype_like)), lanes


@_known("mask")
def mask(lanes: int) -> tuple[DType, int]:
    """Returns the type of a mask (``T.vmi.mask``)."""
    return BOOL, lanes


@_known("alloc_var")
def alloc_var(dtype: object, *, size: int) -> LaneVariable:
    """Declares a register that is assigned more than once (``T.vmi.alloc_var``)."""
    return LaneVariable(_type(dtype), size, None)


@_known("alloc_local")
def alloc_local(shape: int | Sequence[int], vreg_type: tuple[DType, int]) -> LaneVariable:
    """Declares an array of registers (``T.vmi.alloc_local``)."""
    return LaneVariable(*vreg_type, (shape,) if isinstance(shape, int) else tuple(shape))


@_known("inside_vmi")
def inside_vmi() -> bool:
    """Whether the statement is in a vector function (``T.vmi.inside_vmi``)."""
    return current().in_vector_function


# --- loads and stores --------------------------------------------------------------------------------------------------------


def _memory(value: object) -> tuple[Array, int, HostBuffer]:
    """Returns the elements of a buffer as one axis, the number of the first element, and the buffer."""
    memory = memory_of(value)
    memory.buffer.receive()
    array = memory.buffer.array
    first = int(np.ravel_multi_index(memory.offsets, array.shape)) if all(
        0 <= at < size for at, size in zip(memory.offsets, array.shape, strict=True)) else sum(
            at * math.prod(array.shape[axis + 1:]) for axis, at in enumerate(memory.offsets))
    return array.reshape(-1), first, memory.buffer


def _places(first: int, lanes: int, element: DType, group: int | None, stride: object, block_stride: object) -> Array:
    """Returns the number of the element that each lane accesses."""
    steps = np.arange(lanes)
    if group is not None:
        size = lanes // group
        return first + steps // size * integer(stride) + steps % size
    if block_stride is not None:
        size = 32 // element.nbytes
        return first + steps // size * integer(block_stride) * size + steps % size
    return first + steps


def _inside(places: Array, total: int, buffer: HostBuffer) -> Array:
    if places.size and not 0 <= places.min() <= places.max() < total:
        raise fail(f"lanes {places.min()} to {places.max()} of a register are not all inside {buffer.describe()}",
                   "allocate the buffer with as many elements as the registers have lanes", "T502")
    return places


@_known("vload")
def vload(source: object, offset: None = None, *, size: int, to_dtype: None = None, stride: object = None,
          block_stride: object = None, repeat_stride: object = None, dist_mode: str | None = None, group: int | None = None
          ) -> LaneValues | tuple[LaneValues, LaneValues]:
    """Loads a register, or two for ``dist_mode="dintlv"`` (``T.vmi.vload``)."""
    array, first, buffer = _memory(source)
    element = buffer.element
    if dist_mode == "brc":
        groups = group or 1
        places = first + np.arange(size) // (size // groups) * (integer(stride) if group else 0)
        return LaneValues(array[_inside(places, array.size, buffer)].copy(), element)
    if dist_mode == "dintlv":
        both = array[_inside(first + np.arange(2 * size), array.size, buffer)]
        return LaneValues(both[::2].copy(), element), LaneValues(both[1::2].copy(), element)
    places = _places(first, size, element, group, stride, block_stride)
    return LaneValues(array[_inside(places, array.size, buffer)].copy(), element)


@_known("vstore")
def vstore(values: object, destination: object, offset: object = None, mask: object = None, *, stride: object = None,
           block_stride: object = None, repeat_stride: object = None, dist_mode: str | None = None, group: int | None = None,
           pmode: str | None = None) -> None:
    """Stores the lanes of a register that the mask selects (``T.vmi.vstore``)."""
    chosen = mask if mask is not None else offset
    array, first, buffer = _memory(destination)
    given = [_lanes(value).array for value in (values if isinstance(values, (tuple, list)) else [values])]
    lanes, element = given[0].size, buffer.element
    for half, value in enumerate(given):
        places = (first + half + 2 * np.arange(lanes) if dist_mode == "dintlv"
                  else _places(first, lanes, element, group, stride, block_stride))
        selected = np.ones(lanes, bool) if chosen is None else _lanes(chosen).array
        array[_inside(places[selected], array.size, buffer)] = value[selected]


@_known("vgather")
def vgather(source: object, offsets: object, mask: object, *, pmode: str | None = None) -> LaneValues:
    """Loads the elements that the offsets select (``T.vmi.vgather``)."""
    array, first, buffer = _memory(source)
    selected, places = _lanes(mask).array, first + _lanes(offsets).array.astype(np.int64)
    _inside(places[selected], array.size, buffer)
    made = np.zeros(places.size, array.dtype)
    made[selected] = array[places[selected]]
    return LaneValues(made, buffer.element)


@_known("vscatter")
def vscatter(value: object, destination: object, offsets: object, mask: object, *, pmode: str | None = None) -> None:
    """Stores to the elements that the offsets select (``T.vmi.vscatter``)."""
    array, first, buffer = _memory(destination)
    places, values = first + _lanes(offsets).array.astype(np.int64), _lanes(value).array
    for lane in np.flatnonzero(_lanes(mask).array):
        array[_inside(places[lane:lane + 1], array.size, buffer)] = values[lane]


# --- fills, rearrangements, choices ------------------------------------------------------------------------------------------


@_known("vbrc")
def vbrc(value: object, *, size: int, group: int | None = None) -> LaneValues:
    """Repeats a number or the lanes of a register (``T.vmi.vbrc``)."""
    if isinstance(value, (LaneValues, LaneVariable)):
        found = value.load()
        return LaneValues(np.repeat(found.array, size // found.array.size), found.element)
    one = scalar(value)
    element = one.kind if isinstance(one.kind, DType) else INT32
    return LaneValues(np.full(size, _number(value, element), element.numpy), element)


@_known("vci")
def vci(base: object, *, size: int, order: str | None = None) -> LaneValues:
    """Counts up or down from a number (``T.vmi.vci``)."""
    start = vbrc(base, size=size)
    assert isinstance(start, LaneValues)
    steps = np.arange(size)
    return LaneValues(_rounded(np.subtract if order == "DESC" else np.add, start.element, start.array, steps), start.element)


@_known("vintlv")
def vintlv(lhs: object, rhs: object, mask: object, *, pmode: str | None = None) -> tuple[LaneValues, ...]:
    """Interleaves two registers (``T.vmi.vintlv``)."""
    one, other = _lanes(lhs), _lanes(rhs)
    both = np.stack([one.array, other.array], axis=1).reshape(-1)
    return tuple(_chosen(part, mask, one.element) for part in np.split(both, 2))


@_known("vdintlv")
def vdintlv(lhs: object, rhs: object, mask: object, *, pmode: str | None = None) -> tuple[LaneValues, ...]:
    """Separates the even and the odd elements of two registers (``T.vmi.vdintlv``)."""
    one, other = _lanes(lhs), _lanes(rhs)
    both = np.concatenate([one.array, other.array])
    return tuple(_chosen(both[odd::2].copy(), mask, one.element) for odd in (0, 1))


_ORDERS: dict[str, Callable[..., Array]] = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
                                            "gt": np.greater, "ge": np.greater_equal}


@_known("vcmp")
def vcmp(lhs: object, rhs: object, seed: object, cmp: str, *, pmode: str | None = None) -> LaneValues:
    """Compares two registers (``T.vmi.vcmp``)."""
    one, other = _lanes(lhs), _lanes(rhs)
    with np.errstate(invalid="ignore"):  # NaN
        made = _ORDERS[cmp[-2:]](one.array, other.array)
    if cmp == "one":
        made &= ~(np.isnan(one.array) | np.isnan(other.array))
    return _chosen(made, seed, BOOL)


@_known("vcmps")
def vcmps(source: object, scalar: object, seed: object, cmp: str, *, pmode: str | None = None) -> LaneValues:
    """Compares a register with a number (``T.vmi.vcmps``)."""
    one = _lanes(source)
    number = np.full(one.array.size, _number(scalar, one.element), one.element.numpy)
    made = vcmp(one, LaneValues(number, one.element), seed, cmp)
    assert isinstance(made, LaneValues)
    return made


@_known("vsel")
def vsel(mask: object, true_value: object, false_value: object, *, pmode: str | None = None) -> LaneValues:
    """Chooses lanes of two registers (``T.vmi.vsel``)."""
    one, other = _lanes(true_value), _lanes(false_value)
    return LaneValues(np.where(_lanes(mask).array, one.array, other.array), one.element)


# --- reductions and conversions ----------------------------------------------------------------------------------------------


def _reduced(how: str, source: object, mask: object, group: int | None) -> LaneValues:
    one, selected = _lanes(source), _lanes(mask).array
    element, made = one.element, []
    for values, chosen in zip(np.split(one.array, group or 1), np.split(selected, group or 1), strict=True):
        kept = values[chosen]
        if how == "add":
            made.append(math.fsum(kept.astype(np.float64)) if element.is_float and np.isfinite(kept.astype(np.float64)).all()
                        else kept.astype(np.float64 if element.is_float else object).sum())
        elif kept.size:
            made.append(getattr(np, how)(kept))
        else:
            edges = (-math.inf, math.inf) if element.is_float else limits(element)
            made.append(edges[how == "min"])
    if element.is_float:
        return LaneValues(finish(np.array(made, np.float64), element), element)
    return LaneValues(np.array([int(value) % (1 << element.bits) for value in made], np.uint64).astype(
        f"u{element.numpy.itemsize}").view(element.numpy), element)


@_known("vcadd")
def vcadd(source: object, mask: object, *, group: int | None = None, pmode: str | None = None, reassoc: bool | None = None
          ) -> LaneValues:
    """Adds the lanes of each group (``T.vmi.vcadd``)."""
    return _reduced("add", source, mask, group)


@_known("vcmax")
def vcmax(source: object, mask: object, *, group: int | None = None, pmode: str | None = None) -> LaneValues:
    """Returns the largest lane of each group (``T.vmi.vcmax``)."""
    return _reduced("max", source, mask, group)


@_known("vcmin")
def vcmin(source: object, mask: object, *, group: int | None = None, pmode: str | None = None) -> LaneValues:
    """Returns the smallest lane of each group (``T.vmi.vcmin``)."""
    return _reduced("min", source, mask, group)


def _type(spelling: object) -> DType:
    text = str(spelling)
    return dtype(f"i{text[2:]}") if text in ("si8", "si16", "si32") else DType(text)


@_known("vcvt")
def vcvt(source: object, to_dtype: object = None, mask: None = None, *, rounding: str | None = None,
         saturate: str | None = None, pmode: str | None = None) -> LaneValues:
    """Converts the elements of a register (``T.vmi.vcvt``)."""
    one, element = _lanes(source), _type(to_dtype)
    mode = {"A": "round", "Z": "trunc"}.get(rounding or "R", "rint")
    values = one.array
    if element.is_integer and one.element.is_integer:
        wide = values.astype(object)
        if saturate == "SAT":
            wide = np.clip(wide, *limits(element))
        bits = np.array([int(value) % (1 << element.bits) for value in wide], np.uint64)
        return LaneValues(bits.astype(f"u{element.numpy.itemsize}").view(element.numpy), element)
    if saturate == "SAT" and element.is_float and one.element.is_float:
        most = float(np.finfo(np.float16).max) if str(element) == "float16" else {
            "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}.get(str(element), math.inf)
        values = np.clip(values.astype(np.float64), -most, most).astype(np.float32)
    if one.element.bits == element.bits and one.element.is_float and element.is_float and one.element != element:
        values = values.astype(FLOAT32.numpy)
    return LaneValues(cast_elements(values, element, mode), element)


@_known("vinterpret_cast")
def vinterpret_cast(source: object, to_dtype: object = None) -> LaneValues:
    """Returns the bits of a register as another element type (``T.vmi.vinterpret_cast``)."""
    element = _type(to_dtype)
    return LaneValues(np.frombuffer(_lanes(source).array.tobytes(), element.numpy).copy(), element)


@_known("vunzip")
def vunzip(source: object, to_dtype: object = None) -> tuple[LaneValues, ...]:
    """Returns the low and the high halves of the elements (``T.vmi.vunzip``)."""
    one = _lanes(source)
    half = one.element.bits // 2
    element = dtype(f"ui{half}") if to_dtype is None else _type(to_dtype)
    parts = np.frombuffer(one.array.tobytes(), element.numpy).reshape(-1, 2)
    return tuple(LaneValues(parts[:, place].copy(), element) for place in (0, 1))


@_known("vzip")
def vzip(low: object, high: object, to_dtype: object = None) -> LaneValues:
    """Joins the low and the high halves of elements (``T.vmi.vzip``)."""
    one, other = _lanes(low), _lanes(high)
    element = dtype(f"ui{2 * one.element.bits}") if to_dtype is None else _type(to_dtype)
    return LaneValues(np.frombuffer(np.stack([one.array, other.array], axis=1).tobytes(), element.numpy).copy(), element)


@_known("vmull")
def vmull(a: object, b: object, mask: object, *, pmode: str | None = None) -> tuple[LaneValues, ...]:
    """Returns the low and the high 32 bits of the products (``T.vmi.vmull``)."""
    one, other = _lanes(a), _lanes(b)
    products = [int(x) * int(y) for x, y in zip(one.array, other.array, strict=True)]
    return tuple(_chosen(np.array([value >> shift & 0xFFFFFFFF for value in products], np.uint64).astype(np.uint32).view(
        one.element.numpy), mask, one.element) for shift in (0, 32))
