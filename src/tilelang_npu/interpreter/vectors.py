"""Operations of the Vector core on tiles: element by element, fills, broadcasts, conversions, reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang_npu.interpreter.memory import Buffer, Element, Memory, Region, Variable, fail, integer, memory_of, stored
from tilelang_npu.interpreter.movement import cast_elements, operand, right_aligned, squeezed
from tilelang_npu.interpreter.state import current
from tilelang_npu.interpreter.table import tiles
from tilelang_npu.interpreter.values import FUNCTIONS, RANDOM, Scalar, finish, is_scalar, rounded, to_float
from tilelang_npu.target.dtypes import DType, dtype

Array = Any


def is_here(*memories: Memory, writes: Memory | None = None) -> bool:
    """Whether this core carries out a vector operation on these tiles; waits for its turn where cores share one."""
    core = current()
    everything = [*memories, *([writes] if writes is not None else [])]
    of_cube = any(memory.space in ("l1", "l0a", "l0b", "l0c") for memory in everything)
    if not core.executes("cube" if of_cube else "vector"):
        return False
    if any(memory.space == "gm" or not memory.buffer.own for memory in everything):
        core.take_turn()
    if writes is not None:
        core.launch.note(writes)
        if writes.space == "gm":
            core.launch.before_write(writes)
    return True


# --- what elements become ------------------------------------------------------------------------------------------------


def _wrapping(compute: Callable[..., Array]) -> Callable[..., Array]:
    """Arithmetic: integers wrap, floats round once."""

    def apply(kind: DType, *values: Array) -> Array:
        if not kind.is_float:
            return compute(*values)
        if RANDOM.get() is not None:
            return finish(compute(*[value.astype(np.float64) for value in values]), kind)
        return compute(*values)

    return apply


def _floats(compute: Callable[..., Array]) -> Callable[..., Array]:
    """A function of floats, computed in float32 and rounded once."""
    return lambda kind, *values: rounded(compute, kind, *values)


def _quotient(a: Array, b: Array) -> Array:
    """Integers: the fraction is dropped, 0 where the divisor is 0."""
    down = np.floor_divide(a, b)
    up = (down * b != a) & ((a < 0) != (b < 0)) & (b != 0)
    return (down + up).astype(a.dtype)


def _divided(kind: DType, a: Array, b: Array) -> Array:
    return _wrapping(np.divide)(kind, a, b) if kind.is_float else _quotient(a, b)


def _rest(kind: DType, a: Array, b: Array) -> Array:
    """The remainder of the division that drops the fraction."""
    if kind.is_bool:
        return np.fmod(a.astype(np.int8), b.astype(np.int8)) != 0
    return np.fmod(a, b) if not kind.is_float or kind.bits >= 32 else _floats(np.fmod)(kind, a, b)


def _unsigned_rest(kind: DType, a: Array, b: Array) -> Array:
    if kind.is_bool:
        return _rest(kind, a, b)
    unsigned = f"u{kind.numpy.itemsize}"
    return np.fmod(a.view(unsigned), np.broadcast_to(b, a.shape).copy().view(unsigned)).view(a.dtype)


def _powers(kind: DType, a: Array, b: Array) -> Array:
    if kind.is_float:
        return _floats(np.power)(kind, a, b)
    unit = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, unit, np.power(a, np.maximum(b, 0))).astype(a.dtype)


def _of_bits(compute: Callable[..., Array]) -> Callable[..., Array]:
    """An operation on the bits of elements of any type."""

    def apply(kind: DType, *values: Array) -> Array:
        if kind.is_bool:
            return compute(*values)
        bits = f"u{kind.numpy.itemsize}"
        return compute(*[np.ascontiguousarray(value).view(bits) for value in values]).view(kind.numpy)

    return apply


def _exponents(a: Array) -> Array:
    plain = np.isfinite(a) & (a != 0)
    return np.where(plain, np.frexp(np.where(plain, a, 1))[1] - 1.0, np.where(a == 0, -np.inf, np.abs(a)))


def _shifted(kind: DType, a: Array, b: Array, *, left: bool, half: bool = False) -> Array:
    """A shift; one to the right may add half of the last place first, which only the instruction of a scalar amount does."""
    width = 8 * a.dtype.itemsize
    inside = (b >= 0) & (b < width)
    amount = np.where(inside, b, 0).astype(a.dtype)
    out = np.zeros_like(a) if left else np.where(a < 0, -1, 0).astype(a.dtype)
    made = np.where(inside, np.left_shift(a, amount) if left else np.right_shift(a, amount), out).astype(a.dtype)
    if half and np.size(b) == 1 and width < 64 and np.all(b > 0):
        made = (made + (np.right_shift(a, np.maximum(amount - 1, 0).astype(a.dtype)) & 1)).astype(a.dtype)
    return made


def _in_steps(compute: Callable[..., Array]) -> Callable[..., Array]:
    """An operation of several instructions, each of which rounds: ``compute(r, *values)`` rounds with ``r``."""

    def apply(kind: DType, *values: Array) -> Array:
        if not kind.is_float:
            return compute(lambda value: value, *values)
        def r(value: Array) -> Array:
            return finish(np.asarray(value, np.float64), kind).astype(np.float64)
        return r(compute(r, *[value.astype(np.float64) for value in values])).astype(kind.numpy)

    return apply


ELEMENTWISE: dict[str, Callable[..., Array]] = {
    **{name: _floats(FUNCTIONS[known]) for name, known in (
        ("exp", "exp"), ("ln", "log"), ("sqrt", "sqrt"), ("rsqrt", "rsqrt"), ("reciprocal", "reciprocal"), ("tanh", "tanh"),
        ("sin", "sin"), ("cos", "cos"), ("tan", "tan"), ("atan", "atan"), ("erf", "erf"), ("exp2", "exp2"), ("log2", "log2"),
        ("log10", "log10"), ("log1p", "log1p"), ("expm1", "expm1"))},
    "ilogb": _floats(_exponents), "ldexp": _floats(lambda a, b: a * np.exp2(b.astype(np.float64))),
    "abs": lambda kind, a: np.abs(a), "relu": lambda kind, a: np.maximum(a, a.dtype.type(0)),
    "add": _wrapping(np.add), "sub": _wrapping(np.subtract), "mul": _wrapping(np.multiply), "div": _divided,
    "max": lambda kind, a, b: np.maximum(a, b), "min": lambda kind, a, b: np.minimum(a, b),
    "bitwise_not": _of_bits(np.invert), "bitwise_and": _of_bits(np.bitwise_and), "bitwise_or": _of_bits(np.bitwise_or),
    "bitwise_xor": _of_bits(np.bitwise_xor), "mod": _rest, "modui": _unsigned_rest, "pow": _powers,
    "bitwise_lshift": lambda kind, a, b: _shifted(kind, a, b, left=True),
    "bitwise_rshift": lambda kind, a, b: _shifted(kind, a, b, left=False),
    "rounded_rshift": lambda kind, a, b: _shifted(kind, a, b, left=False, half=True),
    "isinf": lambda kind, a: np.isinf(a), "isnan": lambda kind, a: np.isnan(a),
    "sigmoid": _in_steps(lambda r, a: 1 / r(r(np.exp(r(0 - a))) + 1)),
    "silu": _in_steps(lambda r, a: a / r(r(np.exp(r(0 - a))) + 1)),
    "leaky_relu": _in_steps(lambda r, a, s: np.maximum(a, 0) + r(np.minimum(a, 0) * s)),
    "axpy": _in_steps(lambda r, a, s, d: d + r(a * s)), "mul_add_dst": _in_steps(lambda r, a, b, d: d + r(a * b)),
    "clamp": lambda kind, a, low, high: np.minimum(np.maximum(a, low), high),
    "clamp_min": lambda kind, a, low: np.maximum(a, low), "clamp_max": lambda kind, a, high: np.minimum(a, high),
    "round": lambda kind, a: np.rint(a), "select": lambda kind, mask, a, b: np.where(mask != 0, a, b),
    **{mode: (lambda kind, a, b, compute=compute: compute(a, b)) for mode, compute in (
        ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater),
        ("ge", np.greater_equal))},
}
"""By name: the destination's elements from the element type and the inputs."""

_ACCUMULATING = ("axpy", "mul_add_dst")


# --- operands ------------------------------------------------------------------------------------------------------------


def _fitted(memory: Memory, extents: Sequence[int]) -> Array:
    """A tile's elements in a shape that broadcasts to the destination's."""
    found = memory.view()

    def broadcasts(shape: Sequence[int]) -> bool:
        return len(shape) == len(extents) and all(size in (1, wanted) for size, wanted in zip(shape, extents, strict=True))

    if broadcasts(found.shape):
        return found
    if [size for size in found.shape if size != 1] == [size for size in extents if size != 1]:
        return found.reshape(tuple(extents))
    whole = Region(memory.buffer, memory.offsets, memory.sizes, range(len(memory.sizes)))
    if broadcasts(whole.extents):
        return whole.view()  # B[0, :] is a row beside a matrix
    if found.size == math.prod(extents):
        return found.reshape(tuple(extents))
    raise fail(f"{memory.describe()} does not fit a destination of {list(extents)}", "shapes are equal, or an input has size 1")


def _number(value: Any, kind: DType) -> Array:
    """A scalar operand as an element of the inputs' type."""
    return np.asarray(stored(value, kind))


def apply(name: str, inputs: Sequence[Any], target: Any) -> None:
    """Carry out an elementwise operation."""
    destination = memory_of(_place(target), "the destination")
    places = [_place(value) for value in inputs]
    typed = [value for value in places[name == "select":] if isinstance(value, Memory) and not isinstance(value, Variable)]
    tiles_alone = name not in ("select",) and not typed
    operands = [memory_of(value) if isinstance(value, Element) and (tiles_alone or position == 0 and not typed)
                else value for position, value in enumerate(places)]
    memories = [value for value in operands if isinstance(value, Memory) and not isinstance(value, Variable)]
    if not is_here(*memories, writes=destination):
        return
    kind = next((value.kind for value in memories[name == "select":]), destination.kind)
    values = [_fitted(value, destination.extents) if isinstance(value, Memory) and not isinstance(value, Variable)
              else _number(value, kind) for value in operands]
    if name in _ACCUMULATING:
        values.append(destination.view())
    made = np.asarray(ELEMENTWISE[name](kind, *values))
    out = destination.view()
    out[...] = np.broadcast_to(made, out.shape) if made.ndim <= out.ndim else made.reshape(out.shape)


def _place(value: Any) -> Any:
    return value.origin if isinstance(value, Scalar) and value.origin is not None else value


def leading(memories: Sequence[Memory], count: Any) -> list[Array]:
    """The first ``count`` elements of flat memory from the first element of each tile; fewer where a buffer ends before."""
    length = integer(count)
    flats = []
    for memory in memories:
        array = memory.buffer.array
        start = int(np.ravel_multi_index(memory.offsets, array.shape)) if math.prod(array.shape) else 0
        flats.append(array.reshape(-1)[start:])
    shortest = min([length, *(flat.size for flat in flats)])
    return [flat[:shortest] for flat in flats]


def _counted(name: str, target: Any, inputs: Sequence[Any], count: Any) -> None:
    """An elementwise operation on the first elements of flat memory."""
    memories = [memory_of(_place(value)) for value in (target, *inputs) if not is_scalar(value) or isinstance(value, Element)]
    if not is_here(*memories[1:], writes=memories[0]):
        return
    parts = leading(memories, count)
    kind = memories[1].kind if len(memories) > 1 else memories[0].kind
    values, rest = [], iter(parts[1:])
    for value in inputs:
        values.append(next(rest) if not is_scalar(value) or isinstance(value, Element) else _number(value, kind))
    parts[0][...] = ELEMENTWISE[name](kind, *values)


# --- names ---------------------------------------------------------------------------------------------------------------

_UNARY = ("exp", "ln", "sqrt", "rsqrt", "reciprocal", "abs", "relu", "bitwise_not", "tanh", "sin", "cos", "tan", "atan", "erf",
          "exp2", "log2", "log10", "log1p", "expm1", "ilogb", "isinf", "isnan", "sigmoid", "silu")
_BINARY = ("add", "sub", "mul", "div", "max", "min", "bitwise_and", "bitwise_or", "bitwise_xor", "mod", "modui", "pow", "ldexp",
           "bitwise_lshift", "leaky_relu", "axpy", "mul_add_dst")
_ALSO = {"ln": ("tile.log",), "reciprocal": ("vrec", "npuir_rec"), "bitwise_not": ("vnot", "npuir_not"),
         "bitwise_and": ("vand", "npuir_and"), "bitwise_or": ("vor", "npuir_or"), "bitwise_xor": ("vxor", "npuir_xor"),
         "bitwise_lshift": ("vshl", "npuir_shl"), "tanh": ("npuir_vtanh",), "sin": ("npuir_vsin",), "cos": ("npuir_vcos",),
         "erf": ("npuir_verf",)}
_SCALAR_FIRST = frozenset({"exp", "sqrt", "rsqrt", "abs", "bitwise_not", "tanh", "sin", "cos", "tan", "atan", "erf", "exp2", "log2",
                           "log10", "log1p", "isinf", "isnan", "sigmoid", "max", "min", "bitwise_and", "bitwise_or", "bitwise_xor",
                           "pow"})
"""Names that mean a scalar function too: the plain name is entered by the scalars' module."""
_INPUTS = ("A", "B", "C", "D")


def _enter(name: str, count: int) -> None:
    def last(*arguments: Any, size: Any = None, Tmp: Any = None, **keywords: Any) -> None:
        values = [*arguments, *keywords.values()]
        if len(values) == count + 2:  # a scratch tile, or the real sizes
            extra = values.pop()
            size = extra if isinstance(extra, (list, tuple)) else size
        *inputs, target = values
        if size is not None:
            sizes = [integer(part) for part in size]
            inputs, target = [right_aligned(memory_of(value), sizes) for value in inputs], right_aligned(memory_of(target), sizes)
        apply(name, inputs, target)

    def first(*arguments: Any, **keywords: Any) -> None:
        names = ["dst", "src0", "src1"]
        given = dict(zip(names, arguments, strict=False))
        for key, value in keywords.items():
            given[{"src": "src0", "scalar_value": "src1", "scalarValue": "src1"}.get(key, key)] = value
        apply(name, [given[key] for key in names[1:1 + count]], given["dst"])

    also = _ALSO.get(name, ())
    plain = () if name in _SCALAR_FIRST else (name,)
    tiles(*plain, f"v{name}", f"npuir_{name}", *(one for one in also if not one.startswith("tile.")))(last)
    tiles(f"tile.{name}", *(one for one in also if one.startswith("tile.")))(first)


for _name in _UNARY:
    _enter(_name, 1)
for _name in _BINARY:
    _enter(_name, 2)


@tiles("vcmp", "npuir_cmp", "compare")
def vcmp(A: Any, B: Any, C: Any, cmp_mod: str) -> None:
    """A mask of the comparison of two elements."""
    apply(str(cmp_mod).lower(), [A, B], C)


@tiles("vselect", "npuir_select", "select")
def vselect(Cond: Any, A: Any, B: Any, Out: Any) -> None:
    """The first input where the mask is set, else the second."""
    apply("select", [Cond, A, B], Out)


@tiles("vshr", "npuir_shr", "vbitwise_rshift", "npuir_bitwise_rshift", "bitwise_rshift")
def vshr(A: Any, B: Any, C: Any, round: bool = True) -> None:  # noqa: A002  (the language's name)
    """Shift right; rounds unless told otherwise."""
    apply("rounded_rshift" if round else "bitwise_rshift", [A, B], C)


@tiles("tile.bitwise_rshift")
def tile_shift_right(dst: Any, src0: Any, scalarValue: Any) -> None:
    """Shift right."""
    apply("bitwise_rshift", [src0, scalarValue], dst)


@tiles("vclamp", "npuir_clamp")
def vclamp(src: Any, dst: Any, min_val: Any, max_val: Any) -> None:
    """Each element between two bounds."""
    apply("clamp", [src, min_val, max_val], dst)


def _enter_counted(name: str, inputs: Sequence[str]) -> None:
    def call(*arguments: Any, **keywords: Any) -> None:
        given = dict(zip(("out", "buffer", *inputs, "count"), arguments, strict=False)) | keywords
        values = [given["buffer"], *(given[key] for key in inputs)]
        if given.get("count") is None:
            apply(name, values, given["out"])
        else:
            _counted(name, given["out"], values, given["count"])

    tiles(f"tile.{name}", *((name,) if name not in ("clamp", "round") else ()))(call)


for _name, _scalars in (("clamp", ("min_scalar", "max_scalar")), ("clamp_min", ("scalar_value",)), ("clamp_max", ("scalar_value",)),
                        ("round", ())):
    _enter_counted(_name, _scalars)


@tiles("tile.sub_experiment")
def sub_experiment(dst: Any, src0: Any, src1: Any, count: Any) -> None:
    """The difference of the first elements."""
    _counted("sub", dst, [src0, src1], count)


@tiles("tile.abs_experiment")
def abs_experiment(dst: Any, src: Any, count: Any) -> None:
    """The absolute values of the first elements."""
    _counted("abs", dst, [src], count)


@tiles("tile.mins_experiment")
def mins_experiment(dst: Any, src: Any, scalarValue: Any, count: Any) -> None:
    """The smaller of a scalar and each of the first elements."""
    _counted("min", dst, [src, scalarValue], count)


# --- conversions, fills, broadcasts --------------------------------------------------------------------------------------


def _read_as(source: Memory, target: Memory) -> Array:
    """The source's elements; where one side is unsigned, integers of both sides are read as unsigned."""
    values = source.view()
    unsigned = any(side.kind.is_integer and not side.kind.is_signed for side in (source, target))
    return values.view(f"u{values.dtype.itemsize}") if unsigned and values.dtype.kind == "i" else values


def _convert(source: Memory, target: Memory, mode: str) -> None:
    if not is_here(source, writes=target):
        return
    values = _read_as(source, target)
    scale = current().scale
    if source.kind == "int32" and target.kind == "float16" and scale is not None:
        values = (values.astype(np.float32) * np.float32(scale)).astype(np.float32)
    kind = target.kind
    if np.asarray(values).dtype.kind == "u" and kind.is_integer and kind.is_signed:
        kind = dtype(f"u{kind}")
    made = cast_elements(values, kind, mode)
    made = made.view(target.kind.numpy) if made.dtype != target.kind.numpy else made
    out = target.view()
    out[...] = made if made.shape == out.shape else made.reshape(out.shape)


@tiles("vcast", "npuir_cast")
def vcast(src: Any, dst: Any, size: Any = None, round_mode: str = "rint") -> None:
    """Convert a tile to another element type."""
    if isinstance(size, str):
        size, round_mode = None, size
    source, target = memory_of(_place(src)), memory_of(_place(dst))
    if size is not None:
        sizes = [integer(part) for part in size]
        source, target = right_aligned(source, sizes), right_aligned(target, sizes)
    _convert(source, target, round_mode)


@tiles("tile.cast")
def tile_cast(dst: Any, src: Any, mode: str = "CAST_NONE", count: Any = None) -> None:
    """Convert the first ``count`` elements."""
    word = str(mode).removeprefix("CAST_").lower()
    word = "rint" if word == "none" else word
    source, target = memory_of(_place(src)), memory_of(_place(dst))
    if count is not None and integer(count) != source.count:
        from_, to = leading([source, target], count)
        source, target = Buffer(from_, source.kind, source.space), Buffer(to, target.kind, target.space)
    _convert(source, target, word)


@tiles("set_deq_scale")
def set_deq_scale(scale: Any) -> None:
    """Multiply what later conversions from int32 to float16 convert."""
    current().scale = float(np.float16(float(scale)))


@tiles("fill", "npuir_fill", "clear", "npuir_clear", "tile.fill", "tile.clear")
def fill(buffer: Any, value: Any = 0) -> None:
    """Write one value to every element."""
    if isinstance(value, Memory) and not isinstance(value, Variable):
        value = value[(0,) * value.ndim]
    if isinstance(buffer, Variable):
        buffer.store(value)
        return
    target = memory_of(_place(buffer))
    if is_here(writes=target):
        target.view()[...] = stored(value, target.kind)


@tiles("vbrc", "npuir_brc")
def vbrc(src: Any, dst: Any) -> None:
    """Repeat a tile along its axes of one element, or write a scalar to every element."""
    if is_scalar(src):
        fill(dst, src)
        return
    source, target = memory_of(src), memory_of(_place(dst))
    if is_here(source, writes=target):
        target.view()[...] = _fitted(source, target.extents)


@tiles("tile.broadcast")
def tile_broadcast(dst: Any, src: Any, axis: Any = None) -> None:
    """Repeat a tile to the shape of ``dst`` along ``axis``."""
    if is_scalar(src):
        fill(dst, src)
        return
    source, target = memory_of(src), memory_of(dst)
    if not is_here(source, writes=target):
        return
    values, extents = source.view(), target.extents
    if values.ndim == 1 and len(extents) == 2:
        shapes = {0: (1, values.size), 1: (values.size, 1)}
        tried = [shapes[axis]] if axis in shapes else list(shapes.values())
        shape = next(shape for shape in tried if all(a in (1, b) for a, b in zip(shape, extents, strict=True)))
        values = values.reshape(shape)
    target.view()[...] = np.broadcast_to(values, extents)


# --- reductions ----------------------------------------------------------------------------------------------------------


def _sum(values: Array, axis: tuple[int, ...], kind: DType) -> Array:
    return np.add.reduce(values.astype(np.float32 if kind.is_float and kind.bits < 64 else values.dtype), axis=axis, keepdims=True)


def _fold(compute: Any) -> Callable[..., Array]:
    return lambda values, axis, kind: compute.reduce(
        values.astype(np.float32) if kind.is_float and kind.bits < 32 else values, axis=axis, keepdims=True)


REDUCTIONS: dict[str, tuple[Callable[..., Array], Callable[..., Array]]] = {
    "sum": (_sum, np.add), "prod": (_fold(np.multiply), np.multiply), "max": (_fold(np.maximum), np.maximum),
    "min": (_fold(np.minimum), np.minimum), "xori": (_fold(np.bitwise_xor), np.bitwise_xor),
    "ori": (_fold(np.bitwise_or), np.bitwise_or), "andi": (_fold(np.bitwise_and), np.bitwise_and),
    "any": (lambda values, axis, kind: (values != 0).any(axis=axis, keepdims=True), np.maximum),
    "all": (lambda values, axis, kind: (values != 0).all(axis=axis, keepdims=True), np.minimum),
}
"""By mode: the reduction along axes, which keeps them, and what puts its result together with what the destination holds."""


def reduce_along(mode: str, src: Any, dst: Any, dims: Any, size: Any = None, clear: Any = True) -> None:
    """Reduce a tile along axes."""
    source, target = memory_of(src), memory_of(_place(dst))
    if not is_here(source, writes=target):
        return
    axes = tuple(sorted(integer(axis) % source.ndim for axis in (dims if isinstance(dims, (list, tuple)) else [dims])))
    if size is not None:
        source, target = _real(source, target, axes, [integer(part) for part in size])
    values = source.view()
    if mode in ("abssum", "absmax"):
        values, mode = np.abs(values), mode.removeprefix("abs")
    compute, combine = REDUCTIONS[mode]
    random = RANDOM.get()
    if random is not None and mode == "sum" and source.kind.is_float:
        wide = values.astype(np.float64)
        spread = np.abs(wide).sum(axis=axes, keepdims=True) * np.finfo(np.float32).eps / 2
        made = finish(wide.sum(axis=axes, keepdims=True) + random.standard_normal(spread.shape) * spread, target.kind)
    else:
        made = np.asarray(compute(values, axes, source.kind))
        made = to_float(made, target.kind) if target.kind.is_float else made.astype(target.kind.numpy)
    out = target.view()
    made = made.reshape(out.shape)
    if not clear:
        made = combine(out, made)
    out[...] = made


def _real(source: Memory, target: Memory, axes: Sequence[int], sizes: Sequence[int]) -> tuple[Memory, Memory]:
    """Source and destination cut to the real sizes; 0 stands for a whole axis."""
    whole = list(source.sizes)
    for axis, size in zip(source.kept, sizes, strict=True):
        whole[axis] = size or whole[axis]
    cut = Region(source.buffer, source.offsets, whole, source.kept)
    expected = [1 if axis in axes else size for axis, size in enumerate(cut.extents)]
    dropped = [size for axis, size in enumerate(expected) if axis not in axes] or [1]
    wanted = expected if target.ndim == len(expected) else dropped
    if wanted is expected and target.ndim == 2 and current().dialect == "ascendc" and target.extents[0] == 1 != expected[0]:
        target, wanted = Region(target.buffer, target.offsets, target.sizes, target.kept[-1:]), dropped
    if len(wanted) != target.ndim:
        return cut, target
    parts = list(target.sizes)
    for axis, size in zip(target.kept, wanted, strict=True):
        parts[axis] = size
    return cut, Region(target.buffer, target.offsets, parts, target.kept)


def _enter_reduction(name: str, mode: str) -> None:
    def call(buffer: Any, out: Any, dim: Any = -1, *options: Any, clear: Any = True, real_shape: Any = None, size: Any = None
             ) -> None:
        flags = [option for option in options if isinstance(option, bool)]
        sizes = [option for option in options if option is not None and not isinstance(option, bool)]
        rank = memory_of(buffer).ndim
        if isinstance(dim, int) and not isinstance(dim, bool):
            if rank == 3 and current().dialect == "ascendc":
                dim = dim % 2 - 2
            elif rank <= 2:
                dim = 0 if rank == 2 and dim % 2 == 0 else -1
        reduce_along(mode, buffer, out, dim, (sizes or [real_shape if real_shape is not None else size])[0], (flags or [clear])[0])

    tiles(name)(call)


for _name, _mode in (("sum", "sum"), ("max", "max"), ("min", "min"), ("prod", "prod"), ("any", "any"), ("all", "all"),
                     ("bitand", "andi"), ("bitor", "ori"), ("bitxor", "xori")):
    _enter_reduction(f"reduce_{_name}", _mode)


@tiles("reduce_abssum")
def reduce_abssum(buffer: Any, out: Any, dim: Any = -1, clear: Any = True) -> None:
    """The sum of absolute values."""
    reduce_along("abssum", buffer, out, dim, None, clear)


@tiles("reduce_absmax")
def reduce_absmax(buffer: Any, out: Any, dim: Any = -1, clear: Any = True) -> None:
    """The largest absolute value."""
    reduce_along("absmax", buffer, out, dim, None, clear)


@tiles("reduce", "npuir_reduce")
def reduce(src: Any, dst: Any, dims: Any, reduce_mode: str, size: Any = None, clear: Any = True) -> None:
    """Reduce a tile along axes by a mode."""
    if "_with_index_" in reduce_mode:
        reduce_with_index(src, dst[0], dst[1], dims, reduce_mode, size)
    else:
        reduce_along(reduce_mode, src, dst, dims, size, clear)


@tiles("reduce_with_index")
def reduce_with_index(src: Any, values: Any, indices: Any, dim: Any = -1, reduce_mode: str = "max_with_index_left",
                      size: Any = None) -> None:
    """The extremes along an axis and where they are; of equal ones the first (left) or the last counts."""
    source, first, second = memory_of(src), memory_of(values), memory_of(indices)
    if not is_here(source, second, writes=first):
        return
    axis = integer(dim[0] if isinstance(dim, (list, tuple)) else dim) % source.ndim
    if size is not None:
        source, first = _real(source, first, [axis], [integer(part) for part in size])
    given = source.view()
    find = np.argmax if reduce_mode.startswith("max") else np.argmin
    if reduce_mode.endswith("right"):
        place = given.shape[axis] - 1 - find(np.flip(given, axis), axis=axis)
    else:
        place = find(given, axis=axis)
    place = np.expand_dims(place, axis)
    first.view()[...] = np.take_along_axis(given, place, axis).reshape(first.extents)
    out = second.view()
    out[...] = place.reshape(out.shape).astype(out.dtype)


@tiles("tile.reduce_sum_experiment")
def reduce_sum_experiment(dst: Any, src: Any, count: Any) -> None:
    """The sum of the first elements, as one element."""
    source, target = memory_of(src), memory_of(_place(dst))
    if is_here(source, writes=target):
        values, out = leading([source], count)[0], leading([target], 1)[0]
        total = values.astype(np.float32).sum(dtype=np.float32) if source.kind.is_float else values.sum(dtype=values.dtype)
        out[0] = np.asarray(total).astype(target.kind.numpy)


del operand, squeezed
