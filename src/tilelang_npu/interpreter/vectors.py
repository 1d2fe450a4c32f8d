"""Operations of the Vector core on tiles: elementwise operations, fills, broadcasts, conversions, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang_npu.interpreter.host_buffers import HostBuffer, HostElement, ScalarVariable, TileRef, integer, memory_of, stored
from tilelang_npu.interpreter.operation_table import OPERATIONS, tiles
from tilelang_npu.interpreter.running_core import current, fail
from tilelang_npu.interpreter.scalar import FUNCTIONS
from tilelang_npu.interpreter.typed_scalars import (
    RANDOM,
    TypedScalar,
    cast_elements,
    finish,
    integral,
    is_scalar,
    rounded,
    shifted,
    to_float,
)
from tilelang_npu.target.dtypes import DType

Array = Any


def executes_here(*memories: TileRef, writes: TileRef) -> bool:
    """Whether this core executes a vector operation on these tiles; waits for its turn where cores share one of them."""
    core = current()
    everything = (*memories, writes)
    if not core.executes("cube" if any(memory.space in ("l1", "l0a", "l0b", "l0c") for memory in everything) else "vector"):
        return False
    if any(memory.space == "gm" or not memory.buffer.own for memory in everything):
        core.take_turn()
    core.launch.before_write(writes)
    return True


# --- what elements become ------------------------------------------------------------------------------------------------


def _plain(compute: Callable[..., Array]) -> Callable[..., Array]:
    """Arithmetic in the elements' own type: integers wrap, floats are rounded once."""
    def apply(kind: DType, *values: Array) -> Array:
        if kind.is_float and RANDOM.get() is not None:
            return finish(compute(*[value.astype(np.float64) for value in values]), kind)
        return compute(*values)

    return apply


def _exact(compute: Callable[..., Array]) -> Callable[..., Array]:
    """An operation that does not round."""
    return lambda kind, *values: compute(*values)


def _floats(compute: Callable[..., Array]) -> Callable[..., Array]:
    """A function of floats, computed in float32 and rounded once."""
    return lambda kind, *values: rounded(compute, kind, *values)


def _by_kind(floats: Callable[..., Array], integers: Callable[..., Array]) -> Callable[..., Array]:
    return lambda kind, *values: floats(kind, *values) if kind.is_float else integers(kind, *values)


def _of_bits(compute: Callable[..., Array]) -> Callable[..., Array]:
    """An operation on the bits of elements of any type."""
    return lambda kind, *values: compute(*values) if kind.is_bool else compute(
        *[np.ascontiguousarray(value).view(f"u{kind.numpy.itemsize}") for value in values]).view(kind.numpy)


def _in_steps(compute: Callable[..., Array]) -> Callable[..., Array]:
    """An operation of several instructions, each of which rounds: ``compute(r, *values)`` rounds with ``r``."""
    def apply(kind: DType, *values: Array) -> Array:
        if not kind.is_float:
            return compute(lambda value: value, *values)

        def r(value: Array) -> Array:
            return finish(np.asarray(value, np.float64), kind).astype(np.float64)

        return r(compute(r, *[value.astype(np.float64) for value in values])).astype(kind.numpy)

    return apply


def _quotient(a: Array, b: Array) -> Array:
    """The quotient of integers, rounded toward zero; 0 where the divisor is 0."""
    down = np.floor_divide(a, b)
    return (down + ((down * b != a) & ((a < 0) != (b < 0)) & (b != 0))).astype(a.dtype)


def _rest(kind: DType, a: Array, b: Array) -> Array:
    """The remainder of a division that rounds toward zero."""
    if kind.is_bool:
        return np.fmod(a.astype(np.int8), b.astype(np.int8)) != 0
    return _floats(np.fmod)(kind, a, b) if kind.is_float and kind.bits < 32 else np.fmod(a, b)


def _unsigned_rest(kind: DType, a: Array, b: Array) -> Array:
    if kind.is_bool:
        return _rest(kind, a, b)
    unsigned = f"u{kind.numpy.itemsize}"
    return np.fmod(np.ascontiguousarray(a).view(unsigned), np.broadcast_to(b, a.shape).copy().view(unsigned)).view(a.dtype)


def _powers(kind: DType, a: Array, b: Array) -> Array:
    """Powers of integers; with a negative exponent ``1 / power`` is rounded toward zero."""
    unit = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, unit, np.power(a, np.maximum(b, 0))).astype(a.dtype)


def _exponents(a: Array) -> Array:
    plain = np.isfinite(a) & (a != 0)
    return np.where(plain, np.frexp(np.where(plain, a, 1))[1] - 1.0, np.where(a == 0, -np.inf, np.abs(a)))


def _rounding_shift(kind: DType, a: Array, b: Array) -> Array:
    """A shift to the right that adds half of the last bit first, as the instruction with a scalar amount does."""
    made = shifted(a, b, left=False)
    if np.size(b) == 1 and a.dtype.itemsize < 8 and np.all(b > 0):
        made = (made + (shifted(a, (b - 1).astype(a.dtype), left=False) & 1)).astype(a.dtype)
    return made


_Elements = dict[str, Callable[..., Array]]
UNARY: _Elements = {
    **{name: _floats(FUNCTIONS[{"ln": "log"}.get(name, name)]) for name in (
        "exp", "ln", "sqrt", "rsqrt", "reciprocal", "tanh", "sin", "cos", "tan", "atan", "erf", "exp2", "log2", "log10",
        "log1p", "expm1")},
    "relu": _exact(lambda a: np.where(a <= 0, a.dtype.type(0), a)),
    "abs": _exact(np.abs), "bitwise_not": _of_bits(np.invert),
    "ilogb": _floats(_exponents), "isinf": _exact(np.isinf), "isnan": _exact(np.isnan),
    "sigmoid": _in_steps(lambda r, a: 1 / r(r(np.exp(r(0 - a))) + 1)),
    "silu": _in_steps(lambda r, a: a / r(r(np.exp(r(0 - a))) + 1))}
BINARY: _Elements = {
    "add": _plain(np.add), "sub": _plain(np.subtract), "mul": _plain(np.multiply),
    "div": _by_kind(_plain(np.divide), _exact(_quotient)), "max": _exact(np.maximum), "min": _exact(np.minimum),
    "bitwise_and": _of_bits(np.bitwise_and), "bitwise_or": _of_bits(np.bitwise_or), "bitwise_xor": _of_bits(np.bitwise_xor),
    "mod": _rest, "modui": _unsigned_rest, "pow": _by_kind(_floats(np.power), _powers),
    "ldexp": _floats(lambda a, b: a * np.exp2(b.astype(np.float64))),
    "bitwise_lshift": _exact(lambda a, b: shifted(a, b, left=True)),
    "leaky_relu": _in_steps(lambda r, a, s: np.maximum(a, 0) + r(np.minimum(a, 0) * s)),
    "axpy": _in_steps(lambda r, a, s, d: d + r(a * s)), "mul_add_dst": _in_steps(lambda r, a, b, d: d + r(a * b)),
    "clamp_min": _exact(np.maximum), "clamp_max": _exact(np.minimum)}
ELEMENTWISE: _Elements = {
    **UNARY, **BINARY, "bitwise_rshift": _exact(lambda a, b: shifted(a, b, left=False)), "rounding_rshift": _rounding_shift,
    "clamp": _exact(lambda a, low, high: np.minimum(np.maximum(a, low), high)), "round": _exact(np.rint),
    "select": _exact(lambda mask, a, b: np.where(mask != 0, a, b)), "eq": _exact(np.equal), "ne": _exact(np.not_equal),
    "lt": _exact(np.less), "le": _exact(np.less_equal), "gt": _exact(np.greater), "ge": _exact(np.greater_equal)}
"""For each operation the function of the element type and the inputs that computes the destination's elements. ``UNARY`` and
``BINARY`` have the operations with all names of the language.
"""
_ACCUMULATING = ("axpy", "mul_add_dst")


# --- operands ------------------------------------------------------------------------------------------------------------


def _is_tile(value: Any) -> bool:
    return isinstance(value, TileRef) and not isinstance(value, ScalarVariable)


def _fitted(memory: TileRef, extents: Sequence[int]) -> Array:
    """The elements of a tile in a shape that broadcasts to ``extents``."""
    def repeats(shape: Sequence[int]) -> bool:
        return len(shape) == len(extents) and all(size in (1, wanted) for size, wanted in zip(shape, extents, strict=True))

    found, whole = memory.view(), memory.with_axes(range(len(memory.sizes)))
    if repeats(found.shape):
        return found
    if [size for size in found.shape if size != 1] != [size for size in extents if size != 1] and repeats(whole.extents):
        return whole.view()  # B[0, :] is repeated along the rows of a matrix
    if found.size != np.prod(extents):
        raise fail(f"{memory.describe()} does not fit a destination of {list(extents)}", "shapes are equal, or have size 1")
    return found.reshape(tuple(extents))


def apply(name: str, inputs: Sequence[Any], target: Any) -> None:
    """Executes an elementwise operation."""
    destination = memory_of(target, "the destination")
    places = [value.origin if isinstance(value, TypedScalar) and value.origin is not None else value for value in inputs]
    no_tiles = not any(map(_is_tile, places[name == "select":]))  # an element is then a tile of one element, not a scalar
    operands = [memory_of(value) if isinstance(value, HostElement) and no_tiles else value for value in places]
    memories = [value for value in operands if _is_tile(value)]
    if not executes_here(*memories, writes=destination):
        return
    kind = next((value.kind for value in memories[name == "select":]), destination.kind)
    values = [_fitted(value, destination.extents) if _is_tile(value) else np.asarray(stored(value, kind)) for value in operands]
    if name in _ACCUMULATING:
        values.append(destination.view())
    made, out = np.asarray(ELEMENTWISE[name](kind, *values)), destination.view()
    out[...] = made if made.ndim <= out.ndim else made.reshape(out.shape)


def leading(memories: Sequence[TileRef], count: Any) -> list[Array]:
    """The first ``count`` elements of flat memory from the first element of each tile, limited by the end of each buffer."""
    flats = [memory.flat() for memory in memories]
    return [flat[:min([integer(count), *(flat.size for flat in flats)])] for flat in flats]


def _counted(name: str, target: Any, inputs: Sequence[Any], count: Any) -> None:
    """Executes an elementwise operation on the first ``count`` elements of flat memory."""
    source, *others = [memory_of(value) for value in inputs if not is_scalar(value)]
    destination = memory_of(target)
    if executes_here(source, *others, writes=destination):
        out, *parts = leading([destination, source, *others], count)
        rest = iter(parts)
        out[...] = ELEMENTWISE[name](source.kind, *[np.asarray(stored(value, source.kind)) if is_scalar(value) else next(rest)
                                                    for value in inputs])


# --- names ---------------------------------------------------------------------------------------------------------------

_ONLY_TILE = ("silu", "leaky_relu", "axpy", "mul_add_dst", "clamp_min", "clamp_max")
"""Operations without a name with a prefix."""
_ALSO = {"ln": ("tile.log",), "reciprocal": ("vrec", "npuir_rec"), "bitwise_not": ("vnot", "npuir_not"),
         "bitwise_and": ("vand", "npuir_and"), "bitwise_or": ("vor", "npuir_or"), "bitwise_xor": ("vxor", "npuir_xor"),
         "bitwise_lshift": ("vshl", "npuir_shl"), "tanh": ("npuir_vtanh",), "sin": ("npuir_vsin",), "cos": ("npuir_vcos",),
         "erf": ("npuir_verf",)}


def _enter(name: str, count: int) -> None:
    def last(*arguments: Any, size: Any = None, Tmp: Any = None, **keywords: Any) -> None:
        values = [*arguments, *keywords.values()]
        if len(values) == count + 2:  # a scratch tile, or the shape of the part that is computed
            extra = values.pop()
            size = extra if isinstance(extra, (list, tuple)) else size
        if size is not None:
            values = [memory_of(value).right_aligned([integer(part) for part in size]) for value in values]
        apply(name, values[:-1], values[-1])

    def first(*arguments: Any, **keywords: Any) -> None:
        given = dict(zip(("dst", "src0", "src1"), arguments, strict=False))
        for key, value in keywords.items():
            given[{"src": "src0", "scalar_value": "src1", "scalarValue": "src1"}.get(key, key)] = value
        apply(name, [given[key] for key in ("src0", "src1")[:count]], given["dst"])

    also = _ALSO.get(name, ())
    plain = () if name in OPERATIONS else (name,)  # a function of scalars with that name calls the one with a prefix
    prefixed = plain if name in _ONLY_TILE else (*plain, f"v{name}", f"npuir_{name}")
    tiles(*prefixed, *(one for one in also if one[:4] != "tile"))(last)
    tiles(f"tile.{name}", *(one for one in also if one[:4] == "tile"))(first)


for _name in UNARY:
    _enter(_name, 1)
for _name in BINARY:
    _enter(_name, 2)


def _enter_counted(name: str, inputs: Sequence[str]) -> None:
    def call(*arguments: Any, **keywords: Any) -> None:
        given = dict(zip(("out", "buffer", *inputs, "count"), arguments, strict=False)) | keywords
        values = [given["buffer"], *(given[key] for key in inputs)]
        if given.get("count") is None:
            apply(name, values, given["out"])
        else:
            _counted(name, given["out"], values, given["count"])

    tiles(f"tile.{name}", *(() if name in OPERATIONS else (name,)))(call)


for _name, _inputs in (("clamp", ("min_scalar", "max_scalar")), ("clamp_min", ("scalar_value",)),
                       ("clamp_max", ("scalar_value",)), ("round", ())):
    _enter_counted(_name, _inputs)

_NAMED: dict[tuple[str, ...], Callable[..., None]] = {
    ("vcmp", "npuir_cmp", "compare"): lambda A, B, C, cmp_mod: apply(str(cmp_mod).lower(), [A, B], C),
    ("vselect", "npuir_select", "select"): lambda Cond, A, B, Out: apply("select", [Cond, A, B], Out),
    ("tile.bitwise_rshift",): lambda dst, src0, scalarValue: apply("bitwise_rshift", [src0, scalarValue], dst),
    ("vclamp", "npuir_clamp"): lambda src, dst, min_val, max_val: apply("clamp", [src, min_val, max_val], dst),
    ("tile.sub_experiment",): lambda dst, src0, src1, count: _counted("sub", dst, [src0, src1], count),
    ("tile.abs_experiment",): lambda dst, src, count: _counted("abs", dst, [src], count),
    ("tile.mins_experiment",): lambda dst, src, scalarValue, count: _counted("min", dst, [src, scalarValue], count)}
for _names, _call in _NAMED.items():
    tiles(*_names)(_call)


@tiles("vshr", "npuir_shr", "vbitwise_rshift", "npuir_bitwise_rshift", "bitwise_rshift")
def vshr(A: Any, B: Any, C: Any, round: bool = True) -> None:  # noqa: A002  (the language's name)
    """A shift to the right, rounded where ``round`` holds."""
    apply("rounding_rshift" if round else "bitwise_rshift", [A, B], C)


# --- conversions, fills, broadcasts --------------------------------------------------------------------------------------


def _convert(source: TileRef, target: TileRef, mode: str) -> None:
    """Converts a tile; axes of one element are repeated."""
    if not executes_here(source, writes=target):
        return
    values, scale = _fitted(source, target.extents), current().scale
    if source.kind == "int32" and target.kind == "float16" and scale is not None:
        values = values.astype(np.float32) * np.float32(scale)
    if source.kind == target.kind and target.kind.is_float:  # a conversion to the same type rounds to integers
        target.view()[...] = integral(values.astype(np.float32), mode).astype(target.kind.numpy)
    else:
        target.view()[...] = cast_elements(values, target.kind, mode)


@tiles("vcast", "npuir_cast")
def vcast(src: Any, dst: Any, size: Any = None, round_mode: str = "rint") -> None:
    """Converts a tile to another element type."""
    if isinstance(size, str):
        size, round_mode = None, size
    source, target = memory_of(src), memory_of(dst)
    if size is not None:
        source, target = (side.right_aligned([integer(part) for part in size]) for side in (source, target))
    _convert(source, target, round_mode)


@tiles("tile.cast")
def tile_cast(dst: Any, src: Any, mode: str = "CAST_NONE", count: Any = None) -> None:
    """Converts the first ``count`` elements."""
    source, target = memory_of(src), memory_of(dst)
    if count is not None and integer(count) != source.count:
        source, target = (HostBuffer(part, side.kind, side.space)
                          for part, side in zip(leading([source, target], count), (source, target), strict=True))
    _convert(source, target, str(mode).removeprefix("CAST_").lower().replace("none", "rint"))


@tiles("set_deq_scale")
def set_deq_scale(scale: Any) -> None:
    """Multiplies the results of later conversions from int32 to float16."""
    current().scale = float(np.float16(float(scale)))


@tiles("fill", "npuir_fill", "clear", "npuir_clear", "tile.fill", "tile.clear")
def fill(buffer: Any, value: Any = 0) -> None:
    """Writes one value to every element."""
    value = value[(0,) * value.ndim] if _is_tile(value) else value
    if isinstance(buffer, ScalarVariable):
        buffer.store(value)
        return
    target = memory_of(buffer)
    if executes_here(writes=target):
        target.view()[...] = stored(value, target.kind)


@tiles("vbrc", "npuir_brc")
def vbrc(src: Any, dst: Any) -> None:
    """Repeats a tile along its axes of one element, or writes a scalar to every element."""
    tile_broadcast(dst, src)


@tiles("tile.broadcast")
def tile_broadcast(dst: Any, src: Any, axis: Any = None) -> None:
    """Repeats a tile along ``axis`` to the shape of ``dst``; a tile with one axis becomes rows (0) or columns (1)."""
    if is_scalar(src):
        fill(dst, src)
        return
    source, target = memory_of(src), memory_of(dst)
    if executes_here(source, writes=target):
        values, extents = source.view(), target.extents
        if values.ndim == 1 and len(extents) == 2:
            shapes = [(1, values.size), (values.size, 1)]
            values = values.reshape(next(shape for shape in (shapes if axis is None else [shapes[axis]])
                                         if all(a in (1, b) for a, b in zip(shape, extents, strict=True))))
        target.view()[...] = values if values.ndim == len(extents) else _fitted(source, extents)


# --- reductions ----------------------------------------------------------------------------------------------------------


def _fold(compute: Any, least: int = 32) -> Callable[..., Array]:
    """A reduction that keeps the axes; floats narrower than ``least`` bits are accumulated in float32."""
    return lambda values, axis, kind: compute.reduce(
        values.astype(np.float32) if kind.is_float and kind.bits < least else values, axis=axis, keepdims=True,
        **({"dtype": values.dtype} if not kind.is_float and compute in (np.add, np.multiply) else {}))


REDUCTIONS: dict[str, tuple[Callable[..., Array], Callable[..., Array]]] = {
    "sum": (_fold(np.add), np.add), "prod": (_fold(np.multiply), np.multiply), "max": (_fold(np.maximum), np.maximum),
    "min": (_fold(np.minimum), np.minimum), "xori": (_fold(np.bitwise_xor), np.bitwise_xor),
    "ori": (_fold(np.bitwise_or), np.bitwise_or), "andi": (_fold(np.bitwise_and), np.bitwise_and),
    "any": (lambda values, axis, kind: (values != 0).any(axis=axis, keepdims=True), np.maximum),
    "all": (lambda values, axis, kind: (values != 0).all(axis=axis, keepdims=True), np.minimum)}
"""For each mode the reduction along axes, which keeps the axes, and the operation that combines its result with the
destination.
"""


def reduce_along(mode: str, src: Any, dst: Any, dims: Any, size: Any = None, clear: Any = True) -> None:
    """Reduces a tile along axes."""
    source, target = memory_of(src), memory_of(dst)
    if not executes_here(source, writes=target):
        return
    axes = tuple(sorted(integer(axis) % source.ndim for axis in (dims if isinstance(dims, (list, tuple)) else [dims])))
    source, target = _real(source, target, axes, size)
    values = np.abs(source.view()) if mode.startswith("abs") else source.view()
    compute, combine = REDUCTIONS[mode.removeprefix("abs")]
    random = RANDOM.get()
    if random is not None and mode.endswith("sum") and source.kind.is_float:
        wide = values.astype(np.float64)
        noise = random.standard_normal() * np.abs(wide).sum(axis=axes, keepdims=True) * np.finfo(np.float32).eps / 2
        made = finish(wide.sum(axis=axes, keepdims=True) + noise, target.kind)
    else:
        made = np.asarray(compute(values, axes, source.kind))
        made = to_float(made, target.kind) if target.kind.is_float else made.astype(target.kind.numpy)
    out = target.view()
    out[...] = made.reshape(out.shape) if clear else combine(out, made.reshape(out.shape))


def _real(source: TileRef, target: TileRef, axes: Sequence[int], size: Any) -> tuple[TileRef, TileRef]:
    """Source and destination cut to the sizes of the part that is reduced; 0 stands for a whole axis."""
    if size is None:
        return source, target
    cut = source.resized([integer(part) or whole for part, whole in zip(size, source.extents, strict=True)])
    expected = [1 if axis in axes else size for axis, size in enumerate(cut.extents)]
    dropped = [size for axis, size in enumerate(expected) if axis not in axes] or [1]
    if target.ndim == len(expected) == 2 and current().dialect == "ascendc" and target.extents[0] == 1 != expected[0]:
        return cut, target.with_axes(target.kept[-1:]).resized(dropped)
    wanted = expected if target.ndim == len(expected) else dropped
    return cut, target.resized(wanted) if target.ndim == len(wanted) else target


def _enter_reduction(name: str, mode: str) -> None:
    def call(buffer: Any, out: Any, dim: Any = -1, *options: Any, clear: Any = True, real_shape: Any = None, size: Any = None
             ) -> None:
        flags = [option for option in options if isinstance(option, bool)]
        sizes = [option for option in (*options, real_shape, size) if option is not None and not isinstance(option, bool)]
        rank = memory_of(buffer).ndim
        dim = dim % 2 - 2 if rank == 3 and current().dialect == "ascendc" else dim
        reduce_along(mode, buffer, out, dim if rank != 1 else -1, (sizes or [None])[0], (flags or [clear])[0])

    tiles(f"reduce_{name}")(call)


for _name, _mode in (("sum", "sum"), ("max", "max"), ("min", "min"), ("prod", "prod"), ("any", "any"), ("all", "all"),
                     ("bitand", "andi"), ("bitor", "ori"), ("bitxor", "xori"), ("abssum", "abssum"), ("absmax", "absmax")):
    _enter_reduction(_name, _mode)


@tiles("reduce", "npuir_reduce")
def reduce(src: Any, dst: Any, dims: Any, reduce_mode: str, size: Any = None, clear: Any = True) -> None:
    """Reduces a tile along axes by a mode."""
    if "_with_index_" in reduce_mode:
        reduce_with_index(src, dst[0], dst[1], dims, reduce_mode, size)
    else:
        reduce_along(reduce_mode, src, dst, dims, size, clear)


@tiles("reduce_with_index")
def reduce_with_index(src: Any, values: Any, indices: Any, dim: Any = -1, reduce_mode: str = "max_with_index_left",
                      size: Any = None) -> None:
    """The extremes along an axis and their indices; of equal ones the first (left) or the last."""
    source, first, second = memory_of(src), memory_of(values), memory_of(indices)
    if executes_here(source, second, writes=first):
        axis = integer(dim[0] if isinstance(dim, (list, tuple)) else dim) % source.ndim
        source, first = _real(source, first, [axis], size)
        given, find = source.view(), np.argmax if reduce_mode.startswith("max") else np.argmin
        right = reduce_mode.endswith("right")
        place = find(np.flip(given, axis) if right else given, axis=axis, keepdims=True)
        place = given.shape[axis] - 1 - place if right else place
        first.view()[...] = np.take_along_axis(given, place, axis).reshape(first.extents)
        second.view()[...] = place.reshape(second.extents)


@tiles("tile.reduce_sum_experiment")
def reduce_sum_experiment(dst: Any, src: Any, count: Any) -> None:
    """The sum of the first elements, as one element."""
    source, target = memory_of(src), memory_of(dst)
    if executes_here(source, writes=target):
        values = leading([source], count)[0]
        total = REDUCTIONS["sum"][0](values, 0, source.kind)[0]
        target.flat()[0] = to_float(total, target.kind) if source.kind.is_float else total
