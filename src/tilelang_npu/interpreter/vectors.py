"""Executes operations of the Vector core on tiles: elementwise operations, fills, broadcasts, conversions, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import SupportsFloat

import numpy as np

from tilelang_npu.interpreter.host_buffers import (
    CUBE_MEMORIES,
    HostBuffer,
    HostElement,
    ScalarVariable,
    TileRef,
    integer,
    is_tile,
    launch_buffers,
    memory_of,
    origin_of,
    require_scope,
    sizes_of,
    stored,
    valid_after,
)
from tilelang_npu.interpreter.operation_table import OPERATIONS, tiles
from tilelang_npu.interpreter.running_core import current, fail
from tilelang_npu.interpreter.scalar import FUNCTIONS
from tilelang_npu.interpreter.typed_scalars import (
    RANDOM,
    Array,
    Values,
    cast_elements,
    finish,
    integral,
    is_scalar,
    quotient,
    rounded,
    shifted,
    to_float,
)
from tilelang_npu.target.dtypes import DType


def executes_here(*memories: TileRef, writes: TileRef, valid: tuple[int, ...] | None = None) -> bool:
    """Prepares an operation on tiles, and returns whether this core must execute it.

    If cores share one of the tiles, the core first waits until no other core can execute an earlier statement of the kernel.

    Args:
        memories: the tiles that the operation reads.
        writes: the tile that the operation writes.
        valid: the elements of that tile that are not padding afterwards, as ``HostBuffer.valid``.
    """
    core = current()
    everything = (*memories, writes)
    require_scope(*everything)
    if not core.executes("cube" if any(memory.space in CUBE_MEMORIES for memory in everything) else "vector"):
        return False
    if any(memory.buffer.is_shared for memory in everything):
        core.take_turn()
    launch_buffers().before_write(writes, valid)
    return True


# --- what elements become ------------------------------------------------------------------------------------------------


def _plain(compute: Callable[..., Values]) -> Callable[..., Values]:
    """Returns an operation that computes in the element type: integers wrap, and floats are rounded once."""
    def apply(kind: DType, *values: Array) -> Values:
        if kind.is_float and RANDOM.get() is not None:
            return finish(compute(*[value.astype(np.float64) for value in values]), kind)
        return compute(*values)

    return apply


def _exact(compute: Callable[..., Values]) -> Callable[..., Values]:
    """Returns an operation whose results need no rounding."""
    return lambda kind, *values: compute(*values)


def _floats(compute: Callable[..., Values]) -> Callable[..., Values]:
    """Returns an operation that computes a function of floats in float32 and rounds the result once."""
    return lambda kind, *values: rounded(compute, kind, *values)


def _by_kind(floats: Callable[..., Values], integers: Callable[..., Values]) -> Callable[..., Values]:
    return lambda kind, *values: floats(kind, *values) if kind.is_float else integers(kind, *values)


def _of_bits(compute: Callable[..., Values]) -> Callable[..., Values]:
    """Returns an operation on the bits of elements, whatever their type."""
    return lambda kind, *values: compute(*values) if kind.is_bool else compute(
        *[np.ascontiguousarray(value).view(f"u{kind.numpy.itemsize}") for value in values]).view(kind.numpy)


def _in_steps(compute: Callable[..., Values]) -> Callable[..., Values]:
    """Returns an operation of several instructions, each of which rounds its result.

    Args:
        compute: computes the operation, given a function that rounds and the values.
    """
    def apply(kind: DType, *values: Array) -> Values:
        if not kind.is_float:
            return compute(lambda value: value, *values)

        def r(value: Values) -> Array:
            return finish(np.asarray(value, np.float64), kind).astype(np.float64)

        return r(compute(r, *[value.astype(np.float64) for value in values])).astype(kind.numpy)

    return apply


def _rest(kind: DType, a: Array, b: Array) -> Values:
    """Returns the remainders of a division that rounds toward zero."""
    if kind.is_bool:
        return np.not_equal(np.fmod(a.astype(np.int8), b.astype(np.int8)), 0)
    return _floats(np.fmod)(kind, a, b) if kind.is_float and kind.bits < 32 else np.fmod(a, b)


def _unsigned_rest(kind: DType, a: Array, b: Array) -> Values:
    if kind.is_bool:
        return _rest(kind, a, b)
    unsigned = f"u{kind.numpy.itemsize}"
    rest: Array = np.fmod(np.ascontiguousarray(a).view(unsigned), np.broadcast_to(b, a.shape).copy().view(unsigned))
    return rest.view(a.dtype)


def _powers(kind: DType, a: Array, b: Array) -> Array:
    """Returns powers of integers. For a negative exponent, the reciprocal of the power is rounded toward zero."""
    unit = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, unit, np.power(a, np.maximum(b, 0))).astype(a.dtype)


def _exponents(a: Array) -> Array:
    plain = np.isfinite(a) & (a != 0)
    return np.where(plain, np.frexp(np.where(plain, a, 1))[1] - 1.0, np.where(a == 0, -np.inf, np.abs(a)))


def _rounding_shift(kind: DType, a: Array, b: Array) -> Array:
    """Returns integers shifted to the right and rounded, as the instruction with a scalar amount rounds.

    Half of the value of the last remaining bit is added before the shift.
    """
    made = shifted(a, b, left=False)
    if np.size(b) == 1 and a.dtype.itemsize < 8 and np.all(b > 0):
        made = (made + (shifted(a, (b - 1).astype(a.dtype), left=False) & 1)).astype(a.dtype)
    return made


_Elements = dict[str, Callable[..., Values]]
UNARY: _Elements = {
    **{name: _floats(FUNCTIONS[{"ln": "log"}.get(name, name)]) for name in (
        "exp", "ln", "sqrt", "rsqrt", "reciprocal", "tanh", "sin", "cos", "tan", "atan", "erf", "exp2", "log2", "log10",
        "log1p", "expm1")},
    "relu": _exact(lambda a: np.where(a <= 0, a.dtype.type(0), a)),
    "abs": _exact(np.abs), "bitwise_not": _of_bits(np.invert),
    "floor": _exact(np.floor), "ilogb": _floats(_exponents), "isinf": _exact(np.isinf), "isnan": _exact(np.isnan),
    "sigmoid": _in_steps(lambda r, a: 1 / r(r(np.exp(r(0 - a))) + 1)),
    "silu": _in_steps(lambda r, a: a / r(r(np.exp(r(0 - a))) + 1))}
BINARY: _Elements = {
    "add": _plain(np.add), "sub": _plain(np.subtract), "mul": _plain(np.multiply),
    "div": _by_kind(_plain(np.divide), _exact(quotient)), "max": _exact(np.maximum), "min": _exact(np.minimum),
    "bitwise_and": _of_bits(np.bitwise_and), "bitwise_or": _of_bits(np.bitwise_or), "bitwise_xor": _of_bits(np.bitwise_xor),
    "mod": _rest, "modui": _unsigned_rest, "pow": _by_kind(_floats(np.power), _powers),
    "ldexp": _floats(lambda a, b: a * np.exp2(b.astype(np.float64))),
    "bitwise_lshift": _exact(lambda a, b: shifted(a, b, left=True)),
    "leaky_relu": _in_steps(lambda r, a, s: np.maximum(a, 0) + r(np.minimum(a, 0) * s)),
    "floordiv": _exact(np.floor_divide),
    "axpy": _in_steps(lambda r, a, s, d: d + r(a * s)), "mul_add_dst": _in_steps(lambda r, a, b, d: d + r(a * b)),
    "clamp_min": _exact(np.maximum), "clamp_max": _exact(np.minimum)}
ELEMENTWISE: _Elements = {
    **UNARY, **BINARY, "bitwise_rshift": _exact(lambda a, b: shifted(a, b, left=False)), "rounding_rshift": _rounding_shift,
    "clamp": _exact(lambda a, low, high: np.minimum(np.maximum(a, low), high)), "round": _exact(np.rint),
    "select": _exact(lambda mask, a, b: np.asarray(np.where(mask != 0, a, b))),
    "eq": _exact(np.equal), "ne": _exact(np.not_equal),
    "lt": _exact(np.less), "le": _exact(np.less_equal), "gt": _exact(np.greater), "ge": _exact(np.greater_equal)}
"""For each elementwise operation, the function that computes the destination's elements from the element type and the inputs.
``UNARY`` and ``BINARY`` contain the operations that exist under all prefixes of the language.
"""
_ACCUMULATING = ("axpy", "mul_add_dst")


# --- operands ------------------------------------------------------------------------------------------------------------


def _fitted(memory: TileRef, extents: Sequence[int]) -> Array:
    """Returns the elements of a tile as an array whose shape can be broadcast to ``extents``."""
    def repeats(shape: Sequence[int]) -> bool:
        return len(shape) == len(extents) and all(size in (1, wanted) for size, wanted in zip(shape, extents, strict=True))

    found, whole = memory.view(), memory.with_axes(range(len(memory.sizes)))
    if repeats(found.shape):
        return found
    if [size for size in found.shape if size != 1] != [size for size in extents if size != 1] and repeats(whole.extents):
        return whole.view()  # B[0, :] is repeated along the rows of a matrix
    if found.size != np.prod(extents):
        raise fail(f"{memory.describe()} does not fit a destination of {list(extents)}",
                   "each size of the operand must be 1, or equal to that of the destination")
    return found.reshape(tuple(extents))


def apply(name: str, inputs: Sequence[object], target: object, count: object = None) -> None:
    """Executes an elementwise operation.

    Args:
        name: the operation, a key of ``ELEMENTWISE``.
        inputs: the inputs: tiles or scalars.
        target: the destination tile.
        count: the number of elements of flat memory that are computed; None for the tiles.
    """
    destination, places = memory_of(target, "the destination"), list(map(origin_of, inputs))
    if count is not None:
        tiled = [number for number, value in enumerate(places) if not is_scalar(value)]
        destination, *parts = leading([destination, *(memory_of(places[number]) for number in tiled)], count)
        for number, part in zip(tiled, parts, strict=True):
            places[number] = part
    no_tiles = not any(map(is_tile, places[name == "select":]))  # an element is then a tile of one element, not a scalar
    operands = [memory_of(value) if isinstance(value, HostElement) and no_tiles else value for value in places]
    operands[1:] = [_first_elements(value, destination) for value in operands[1:]]
    memories = [value for value in operands if is_tile(value)]
    accumulates = name in _ACCUMULATING
    padded = [*memories, destination] if accumulates else memories
    if not executes_here(*memories, writes=destination, valid=valid_after(destination, *padded)):
        return
    kind = next((value.kind for value in memories[name == "select":]), destination.kind)
    if name == "axpy" and kind != destination.kind:  # of float16 into float32: computed in float32, with a scalar of float16
        operands = [value if is_tile(value) else float(np.float16(stored(value, destination.kind))) for value in operands]
        kind = destination.kind
    values = [_fitted(value, destination.extents) if is_tile(value) else np.asarray(stored(value, kind)) for value in operands]
    if accumulates:
        values.append(destination.view())
    made, out = np.asarray(ELEMENTWISE[name](kind, *values)), destination.view()
    out[...] = made if made.ndim <= out.ndim else made.reshape(out.shape)


def _first_elements(value: object, destination: TileRef) -> object:
    """Returns the first elements of a whole buffer that is longer than the destination, in ascendc; else ``value``."""
    if isinstance(value, HostBuffer) and value.ndim == destination.ndim == 1 and current().launch.dialect == "ascendc":
        count = destination.extents[0]
        return leading([value], count)[0] if value.extents[0] > count > 1 else value
    return value


def leading(memories: Sequence[TileRef], count: object) -> list[HostBuffer]:
    """Returns, for each tile, ``count`` consecutive elements of its buffer from the tile's first element on.

    If a buffer ends earlier, correspondingly fewer elements are returned for all tiles.
    """
    flats = [memory.flat() for memory in memories]
    size = min([integer(count), *(flat.size for flat in flats)])
    return [memory.buffer.seen(flat[:size], memory.kind) for memory, flat in zip(memories, flats, strict=True)]


# --- names ---------------------------------------------------------------------------------------------------------------

_ONLY_TILE = ("silu", "leaky_relu", "axpy", "mul_add_dst", "clamp_min", "clamp_max")
"""The operations without names that begin with ``v`` or ``npuir_``."""
_NOT_TILE = ("floor", "floordiv")
"""The operations without names that begin with ``tile.``."""
_ALSO = {"ln": ("tile.log",), "reciprocal": ("vrec", "npuir_rec"), "bitwise_not": ("vnot", "npuir_not"),
         "bitwise_and": ("vand", "npuir_and"), "bitwise_or": ("vor", "npuir_or"), "bitwise_xor": ("vxor", "npuir_xor"),
         "bitwise_lshift": ("vshl", "npuir_shl"), "tanh": ("npuir_vtanh",), "sin": ("npuir_vsin",), "cos": ("npuir_vcos",),
         "erf": ("npuir_verf",)}


def _enter(name: str, count: int) -> None:
    def last(*arguments: object, size: object = None, Tmp: object = None, **keywords: object) -> None:
        values = [*arguments, *keywords.values()]
        if len(values) == count + 2:  # a scratch tile, or the shape of the part that is computed
            extra = values.pop()
            size = extra if isinstance(extra, (list, tuple)) else size
        if size is not None:
            values = [memory_of(value).right_aligned(sizes_of(size)) for value in values]
        apply(name, values[:-1], values[-1])

    def first(*arguments: object, **keywords: object) -> None:
        given = dict(zip(("dst", "src0", "src1"), arguments, strict=False))
        for key, value in keywords.items():
            given[{"src": "src0", "scalar_value": "src1", "scalarValue": "src1"}.get(key, key)] = value
        apply(name, [given[key] for key in ("src0", "src1")[:count]], given["dst"])

    also = _ALSO.get(name, ())
    plain = () if name in OPERATIONS else (name,)  # a function of scalars with that name calls the one with a prefix
    prefixed = plain if name in _ONLY_TILE else (*plain, f"v{name}", f"npuir_{name}")
    tiles(*prefixed, *(one for one in also if one[:4] != "tile"))(last)
    tiles(*(() if name in _NOT_TILE else (f"tile.{name}",)), *(one for one in also if one[:4] == "tile"))(first)


for _name in UNARY:
    _enter(_name, 1)
for _name in BINARY:
    _enter(_name, 2)


_NAMED: dict[tuple[str, ...], Callable[..., None]] = {
    ("vcmp", "npuir_cmp", "compare"): lambda A, B, C, cmp_mod: apply(str(cmp_mod).lower(), [A, B], C),
    ("vselect", "npuir_select", "select"): lambda Cond, A, B, Out: apply("select", [Cond, A, B], Out),
    ("vshr", "npuir_shr", "vbitwise_rshift", "npuir_bitwise_rshift", "bitwise_rshift"):
        lambda A, B, C, round=True: apply(  # noqa: A006  (the language's name)
            "rounding_rshift" if round else "bitwise_rshift", [A, B], C),
    ("tile.bitwise_rshift",): lambda dst, src0, scalarValue: apply("bitwise_rshift", [src0, scalarValue], dst),
    ("vclamp", "npuir_clamp"): lambda src, dst, min_val, max_val: apply("clamp", [src, min_val, max_val], dst),
    ("tile.sub_experiment",): lambda dst, src0, src1, count: apply("sub", [src0, src1], dst, count),
    ("tile.exp_experiment",): lambda dst, src: apply("exp", [src], dst),
    ("tile.abs_experiment",): lambda dst, src, count: apply("abs", [src], dst, count),
    ("tile.mins_experiment",): lambda dst, src, scalarValue, count: apply("min", [src, scalarValue], dst, count),
    ("tile.clamp",): lambda out, buffer, min_scalar, max_scalar, count=None: apply(
        "clamp", [buffer, min_scalar, max_scalar], out, count),
    ("tile.clamp_min",): lambda out, buffer, scalar_value, count=None: apply("clamp_min", [buffer, scalar_value], out, count),
    ("tile.clamp_max",): lambda out, buffer, scalar_value, count=None: apply("clamp_max", [buffer, scalar_value], out, count),
    ("tile.round",): lambda out, buffer, count=None: apply("round", [buffer], out, count)}
for _names, _call in _NAMED.items():
    tiles(*_names)(_call)


# --- conversions, fills, broadcasts --------------------------------------------------------------------------------------


def _convert(source: TileRef, target: TileRef, mode: str) -> None:
    """Converts a tile; axes of one element are repeated."""
    if not executes_here(source, writes=target, valid=valid_after(target, source)):
        return
    values, scale = _fitted(source, target.extents), current().scale
    if source.kind == "int32" and target.kind == "float16" and scale is not None:
        values = values.astype(np.float32) * np.float32(scale)
    if source.kind == target.kind and target.kind.is_float:  # a conversion to the same type rounds to integers
        target.view()[...] = integral(values.astype(np.float32), mode).astype(target.kind.numpy)
    else:
        target.view()[...] = cast_elements(values, target.kind, mode)


@tiles("vcast", "npuir_cast")
def vcast(src: object, dst: object, size: object = None, round_mode: str = "rint") -> None:
    """Converts a tile to the element type of ``dst`` with a rounding mode (``T.vcast``)."""
    source, target = memory_of(src), memory_of(dst)
    if isinstance(size, str):
        round_mode = size
    elif size is not None:
        source, target = (side.right_aligned(sizes_of(size)) for side in (source, target))
    _convert(source, target, round_mode)


@tiles("tile.cast")
def tile_cast(dst: object, src: object, mode: str = "CAST_NONE", count: object = None) -> None:
    """Converts the first ``count`` elements of ``src`` to the element type of ``dst`` (``T.tile.cast``)."""
    source, target = memory_of(src), memory_of(dst)
    if count is not None and integer(count) != source.count:
        source, target = leading([source, target], count)
    _convert(source, target, str(mode).removeprefix("CAST_").lower().replace("none", "rint"))


@tiles("set_deq_scale")
def set_deq_scale(scale: SupportsFloat) -> None:
    """Sets the factor by which the results of later conversions from int32 to float16 are multiplied (``T.set_deq_scale``)."""
    current().scale = float(np.float16(float(scale)))


@tiles("fill", "npuir_fill", "clear", "npuir_clear", "tile.fill", "tile.clear")
def fill(buffer: object, value: object = 0) -> None:
    """Writes one value to every element of a buffer."""
    value = value[(0,) * value.ndim] if is_tile(value) else value
    if isinstance(buffer, ScalarVariable):
        buffer.store(value)
        return
    target = memory_of(buffer)
    if executes_here(writes=target):
        target.view()[...] = stored(value, target.kind)


@tiles("tile.broadcast")
def tile_broadcast(dst: object, src: object, axis: int | None = None) -> None:
    """Repeats ``src`` along its axes of size 1 to the shape of ``dst``.

    A tile with one axis becomes each row of ``dst`` if ``axis`` is 0, or each column if ``axis`` is 1. A scalar is written to
    every element of ``dst``.
    """
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


tiles("vbrc", "npuir_brc")(lambda src, dst: tile_broadcast(dst, src))


# --- reductions ----------------------------------------------------------------------------------------------------------


def _fold(compute: np.ufunc, least: int = 32) -> Callable[..., Array]:
    """Returns a reduction that keeps the reduced axes with size 1; floats of less than ``least`` bits are summed in float32."""
    return lambda values, axis, kind: compute.reduce(
        values.astype(np.float32) if kind.is_float and kind.bits < least else values, axis=axis, keepdims=True,
        **({"dtype": values.dtype} if not kind.is_float and compute in (np.add, np.multiply) else {}))


REDUCTIONS: dict[str, tuple[Callable[..., Array], Callable[..., Values]]] = {
    "sum": (_fold(np.add), np.add), "prod": (_fold(np.multiply), np.multiply), "max": (_fold(np.maximum), np.maximum),
    "min": (_fold(np.minimum), np.minimum), "xori": (_fold(np.bitwise_xor), np.bitwise_xor),
    "ori": (_fold(np.bitwise_or), np.bitwise_or), "andi": (_fold(np.bitwise_and), np.bitwise_and),
    "any": (lambda values, axis, kind: (values != 0).any(axis=axis, keepdims=True), np.maximum),
    "all": (lambda values, axis, kind: (values != 0).all(axis=axis, keepdims=True), np.minimum)}
"""For each mode of reductions, the function that reduces along axes (which are kept with size 1), and the operation that
combines the result with the destination."""


def reduce_along(mode: str, src: object, dst: object, dims: object, size: object = None, clear: object = True) -> None:
    """Reduces a tile along axes.

    Args:
        mode: a key of ``REDUCTIONS``, possibly with the prefix ``abs`` to reduce the absolute values.
        src: the reduced tile.
        dst: the destination.
        dims: the reduced axis, or a list of axes.
        size: the sizes of the part of ``src`` to reduce, with 0 for a whole axis; None for the whole tile.
        clear: whether the old contents of ``dst`` are ignored; otherwise the result is combined with them.
    """
    source, target = memory_of(src), memory_of(dst)
    if not executes_here(source, writes=target):
        return
    axes = tuple(sorted(integer(axis) % source.ndim for axis in (dims if isinstance(dims, (list, tuple)) else [dims])))
    source, target = _real(source, target, axes, size)
    if isinstance(source, HostBuffer) and source.valid is not None:
        source = source.resized([valid if axis in axes else whole
                                 for axis, (valid, whole) in enumerate(zip(source.valid, source.sizes, strict=True))])
    values = np.abs(source.view()) if mode.startswith("abs") else source.view()
    compute, combine = REDUCTIONS[mode.removeprefix("abs")]
    random = RANDOM.get()
    if random is not None and mode.endswith("sum") and source.kind.is_float:
        wide = values.astype(np.float64)
        noise = random.standard_normal() * np.abs(wide).sum(axis=axes, keepdims=True) * np.finfo(np.float32).eps / 2
        made = finish(wide.sum(axis=axes, keepdims=True) + noise, target.kind)
    else:
        made = np.asarray(compute(values, axes, source.kind))
        if not clear and target.kind.is_float and str(target.kind) not in ("float16", "float32"):
            # these types have no arithmetic: the sum with the old contents is one of float32, and is rounded once
            out = target.view()
            old = to_float(out, DType("float32"))
            out[...] = to_float(combine(old, to_float(made, DType("float32")).reshape(out.shape)), target.kind)
            return
        made = to_float(made, target.kind) if target.kind.is_float else made.astype(target.kind.numpy)
    out = target.view()
    out[...] = made.reshape(out.shape) if clear else combine(out, made.reshape(out.shape))


def _real(source: TileRef, target: TileRef, axes: Sequence[int], size: object) -> tuple[TileRef, TileRef]:
    """Returns source and destination of a reduction, cut to the part of the source that is reduced.

    Args:
        source: the source tile.
        target: the destination tile.
        axes: the reduced axes.
        size: the sizes of the reduced part, with 0 for a whole axis; None for the whole source.
    """
    if size is None:
        return source, target
    cut = source.resized([part or whole for part, whole in zip(sizes_of(size), source.extents, strict=True)])
    expected = [1 if axis in axes else size for axis, size in enumerate(cut.extents)]
    dropped = [size for axis, size in enumerate(expected) if axis not in axes] or [1]
    if target.ndim == len(expected) == 2 and current().dialect == "ascendc" and target.extents[0] == 1 != expected[0]:
        return cut, target.with_axes(target.kept[-1:]).resized(dropped)
    wanted = expected if target.ndim == len(expected) else dropped
    return cut, target.resized(wanted) if target.ndim == len(wanted) else target


def _reduce(name: str, mode: str, buffer: object, out: object, dim: int = -1, *options: object, clear: bool = True,
            real_shape: object = None, size: object = None, nan_propagate: bool = True) -> None:
    if not nan_propagate:
        raise fail(f"T.reduce_{name}: nan_propagate=False is not supported", "replace NaN before", "T190")
    flags = [option for option in options if isinstance(option, bool)]
    sizes = [option for option in (*options, real_shape, size) if option is not None and not isinstance(option, bool)]
    rank = memory_of(buffer).ndim
    dim = dim % 2 - 2 if rank == 3 and current().dialect == "ascendc" else dim
    reduce_along(mode, buffer, out, dim if rank != 1 else -1, sizes[0] if sizes else None, (flags or [clear])[0])


for _name, _mode in (("sum", "sum"), ("max", "max"), ("min", "min"), ("prod", "prod"), ("any", "any"), ("all", "all"),
                     ("bitand", "andi"), ("bitor", "ori"), ("bitxor", "xori"), ("abssum", "abssum"), ("absmax", "absmax")):
    tiles(f"reduce_{_name}")(partial(_reduce, _name, _mode))


@tiles("reduce", "npuir_reduce")
def reduce(src: object, dst: Sequence[object], dims: object, reduce_mode: str, size: object = None,
           clear: object = True) -> None:
    """Reduces a tile along axes by ``reduce_mode``, which may be one that also returns indices (``T.reduce``)."""
    if "_with_index_" in reduce_mode:
        reduce_with_index(src, dst[0], dst[1], dims, reduce_mode, size)
    else:
        reduce_along(reduce_mode, src, dst, dims, size, clear)


@tiles("reduce_with_index")
def reduce_with_index(src: object, values: object, indices: object, dim: object = -1, reduce_mode: str = "max_with_index_left",
                      size: object = None) -> None:
    """Writes the largest or smallest values along an axis and their indices; of equal values, the first (mode ``left``) or the
    last is chosen."""
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
def reduce_sum_experiment(dst: object, src: object, count: object) -> None:
    """Writes the sum of the first ``count`` elements of ``src`` to the first element of ``dst``."""
    source, target = memory_of(src), memory_of(dst)
    if executes_here(source, writes=target):
        values = leading([source], count)[0].view()
        total = REDUCTIONS["sum"][0](values, 0, source.kind)[0]
        target.flat()[0] = to_float(total, target.kind) if source.kind.is_float else total
