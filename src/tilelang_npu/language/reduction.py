"""Reductions along axes of a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.declared import Call, Declared, describe
from tilelang_npu.language.flat import flattened, leading
from tilelang_npu.language.operands import (
    as_memory,
    broadcasts,
    check_inside,
    overlap,
    require_vector_memory,
    same_shape,
    seen_as,
    sizes_argument,
    squeezed_axes,
    with_axes,
)
from tilelang_npu.language.structured import call
from tilelang_npu.ops import Reduce
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.buffers import Addressable, Region, Sizes, Tile, same_extent, shape_text
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent
from tilelang_npu.traced.running import active

_INDEXED = ("max_with_index_left", "max_with_index_right", "min_with_index_left", "min_with_index_right")
_SUM = {"float16": "float32"}  # a wider destination that a half-precision source may have
_OF_ABSOLUTES = {"abssum": "sum", "absmax": "max"}


def _along(name: str, doc: str) -> Callable[..., Call | None]:
    """The function that reduces along one axis by an entry's name; ``doc`` says what comes of it."""

    def reduce(buffer: Tile | Declared, out: Tile | Declared, dim: int = -1, *options: object, clear: bool = True,
               real_shape: Sizes | None = None, size: Sizes | None = None) -> Call | None:
        return _named(name, buffer, out, dim, options, clear, real_shape, size)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{doc} along ``dim``; writes ``out``. {_ALONG.replace('NAME', 'T.' + name)}"
    return reduce


_ALONG = """A further positional argument is ``clear`` (True or False) or a list of real sizes.

    ``out`` has the source's axes with size 1 at ``dim``, or no axis there. Real sizes (``size``, ``real_shape``) are the
    part of the source that counts, 0 for a whole axis. Without ``clear`` the result is combined with what ``out`` holds. In
    the ascendc dialect the axes of a buffer with three axes, of which the first has size 1, are those of the matrix it holds.

    Example: ``NAME(a, out, dim=1)``

    Raises:
        TileError: T110 element types, T111 shapes, T112 shared elements.
    """

reduce_sum = _along("reduce_sum", "Sum")
reduce_max = _along("reduce_max", "Largest element")
reduce_min = _along("reduce_min", "Smallest element")
reduce_prod = _along("reduce_prod", "Product")
reduce_any = _along("reduce_any", "1 where any element is not zero, else 0,")
reduce_all = _along("reduce_all", "1 where no element is zero, else 0,")
reduce_bitand = _along("reduce_bitand", "Bitwise and")
reduce_bitor = _along("reduce_bitor", "Bitwise or")
reduce_bitxor = _along("reduce_bitxor", "Bitwise exclusive or")


def reduce_abssum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True) -> None:
    """Sum of absolute values along ``dim``. The source stays as it is.

    ``out`` is written; its shape is as of ``T.reduce_sum``.

    Example: ``T.reduce_abssum(a, out, dim=1)``
    """
    _reduce("T.reduce_abssum", "abssum", buffer, out, dim, None, clear)


def reduce_absmax(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True) -> None:
    """Largest absolute value along ``dim``. The source stays as it is.

    ``out`` is written; its shape is as of ``T.reduce_max``.

    Example: ``T.reduce_absmax(a, out, dim=1)``
    """
    _reduce("T.reduce_absmax", "absmax", buffer, out, dim, None, clear)


def reduce(src: Tile, dst: Tile | tuple[Tile, Tile], dims: int | Sequence[int], reduce_mode: str, size: Sizes | None = None,
           clear: bool = True) -> None:
    """Reduce along ``dims`` by ``reduce_mode``.

    Modes are ``sum``, ``prod``, ``max``, ``min``, ``abssum``, ``absmax`` (of absolute values; the source stays as it is),
    ``any``, ``all`` (1 or 0), ``xori``, ``ori`` and ``andi`` (of bits), and ``max_with_index_left``,
    ``max_with_index_right``, ``min_with_index_left`` and ``min_with_index_right``: along one axis, into a pair of destinations
    ``(values, indices)``, the indices int32; of equal elements the first (left) or the last counts.

    ``dst`` is written; it has the source's axes with size 1 at ``dims``, or without these.

    Example: ``T.reduce(a, out, [1], "sum")``

    Raises:
        TileError: T110 element types, T111 shapes, T112 shared elements, T145 no such mode.
    """
    if reduce_mode not in _INDEXED:
        _reduce("T.reduce", reduce_mode, src, dst, dims, size, clear)
        return
    if not isinstance(dst, (list, tuple)) or len(dst) != 2:
        raise TileError(f"T.reduce with mode {reduce_mode!r} has two destinations: the extremes and their indices", code="T145",
                        help="write T.reduce(src, (values, indices), dim, mode), indices int32")
    if not clear:
        raise TileError(f"T.reduce with mode {reduce_mode!r} does not combine with what the destinations hold", code="T145",
                        help="leave clear out")
    reduce_with_index(src, dst[0], dst[1], dims, reduce_mode, size)


def reduce_with_index(src: Tile, values: Tile, indices: Tile, dim: int | Sequence[int] = -1,
                      reduce_mode: str = "max_with_index_left", size: Sizes | None = None) -> None:
    """The extremes along ``dim`` and, as int32, where they stand: ``T.reduce`` with a ``..._with_index_...`` mode.

    ``values`` and ``indices`` are written; their shape is as of ``T.reduce``.

    Example: ``T.reduce_with_index(a, out, indices, dim=1)``

    Raises:
        TileError: what ``T.reduce`` raises.
    """
    what = "T.reduce_with_index"
    builder = Builder.running(what)
    if reduce_mode not in _INDEXED:
        raise TileError(f"{what}: there is no mode {reduce_mode!r}", code="T145", help="modes are " + ", ".join(_INDEXED))
    source, first, second = (as_memory(what, role, value) for role, value in (
        ("the input", src), ("the values", values), ("the indices", indices)))
    axes = _axes(what, source, dim)
    if len(axes) != 1:
        raise TileError(f"{what} along {len(axes)} axes", code="T111", help="reduce one axis after another")
    if size is not None:
        source, first = _real(builder, what, source, first, axes, size)
    call(what, "reduce_with_index", [first, second], [source], {"mode": reduce_mode, "dim": axes[0]})


class AxisError(TileError, ValueError):
    """A reduction along an axis that the buffer has not; also a :class:`ValueError`."""


def _named(reduce_type: str, source: Tile | Declared, target: Tile | Declared, dim: object, options: tuple[object, ...],
           clear: bool, real_shape: object, size: object) -> Call | None:
    real = real_shape if real_shape is not None else size
    flags = [option for option in options if isinstance(option, bool)]
    sizes = [option for option in options if option is not None and not isinstance(option, bool)]
    if len(flags) > 1 or len(sizes) + (real_shape is not None) + (size is not None) > 1:
        raise TileError(f"T.{reduce_type}: clear or the real sizes are given twice", code="T145",
                        help=f"it is called as T.{reduce_type}(buffer, out, dim=-1, clear=True, real_shape=None)")
    clear, real = (flags or [clear])[0], (sizes or [real])[0]
    return _reduce_with_clear(source, target, reduce_type, _tile_axis(f"T.{reduce_type}", source, dim), clear, real)


def _tile_axis(what: str, source: object, dim: object) -> object:
    """The axis of a vector or of a matrix: 0 for the rows of a matrix, else -1. Others are returned as they are.

    In the ascendc dialect a buffer with three axes holds matrices, whose axes are meant: 0 and -2 are the rows.

    Raises:
        AxisError: T111, there is no such axis.
    """
    rank = len(source.shape) if isinstance(source, (Addressable, Declared)) else 0
    if rank not in (1, 2, 3) or isinstance(dim, bool) or not isinstance(dim, int):
        return dim
    builder = active()
    stacked = rank == 3 and builder is not None and builder.dialect == "ascendc"
    if rank == 3 and not stacked:
        return dim
    axes = min(rank, 2)
    if not -axes <= dim < axes:
        shown = source.describe() if isinstance(source, Addressable) else repr(source)
        raise AxisError(f"{what}: axis {dim} of {shown}: valid are {-axes} to {axes - 1}", code="T111",
                        location=None if builder is not None else user_location(),
                        help="axes count from 0, negative ones from the last")
    if not stacked:
        return 0 if rank == 2 and dim % 2 == 0 else -1
    assert isinstance(source, Addressable)
    if source.extents[0] != 1:
        raise TileError(f"{what}: {source.describe()} holds {source.shape[0]} matrices", code="T111",
                        help="reduce them one by one: slice the first axis")
    return dim % 2 - 2


_BITS = {"bitand": "andi", "bitor": "ori", "bitxor": "xori"}
"""Reductions whose names in the table are HIVM's."""


def _reduce_with_clear(buffer: Tile | Declared, out: Tile | Declared, reduce_type: str, dim: object, clear: bool,
                       real_shape: object) -> Call | None:
    """Reduce along one axis; a :class:`Call` for buffers that are declared outside of a kernel."""
    mode = reduce_type.removeprefix("reduce_")
    mode = _BITS.get(mode, mode)
    if isinstance(buffer, Declared):
        assert isinstance(out, Declared)
        return describe("tl.ascend_reduce", (buffer, out), (reduce_type, dim, clear, real_shape),
                        lambda source, target: _reduce(f"T.{reduce_type}", mode, source, target, dim, real_shape, clear))
    _reduce(f"T.{reduce_type}", mode, buffer, out, dim, real_shape, clear)
    return None


def reduce_flat(what: str, mode: str, src: Tile, dst: Tile, count: object) -> None:
    """The first ``count`` elements of flat memory to the first element of ``dst``."""
    builder = Builder.running(what)
    source, = leading(builder, what, [as_memory(what, "the input", src)], count)
    target = flattened(builder, what, as_memory(what, "the destination", dst), 1)
    _reduce(what, mode, source, target, list(range(source.ndim)), None, True)


def _reduce(what: str, mode: str, src: object, dst: object, dims: object, size: object, clear: bool) -> None:
    builder = Builder.running(what)
    if not isinstance(clear, (bool, int)):
        raise TileError(f"{what}: clear is {clear!r}", code="T145", help="it is True or False")
    source, target = as_memory(what, "the input", src), as_memory(what, "the destination", dst)
    entry = _entry(what, _OF_ABSOLUTES.get(mode, mode))
    axes = _axes(what, source, dims)
    wide = ops.computed_in(entry, source.dtype) if builder.dialect == "npuir" else None
    if (source.dtype not in entry.dtypes or target.dtype != source.dtype) and (
            wide is None or target.dtype not in (source.dtype, wide, _SUM.get(str(source.dtype)))):
        raise TileError(f"{what}: no reduction of {source.dtype} into {target.dtype}", code="T110",
                        notes=_described(source, target),
                        help="it works on " + ", ".join(entry.dtypes) + "; both sides have the same type")
    combine = ops.operation(entry.combine)
    if not clear and ops.computed_in(combine, target.dtype) is None:
        raise TileError(f"{what}: clear=False combines with what the destination holds, and {combine.name} does not work on "
                        f"{target.dtype}", code="T110", notes=_described(source, target),
                        help="it works on " + ", ".join(combine.dtypes))
    if overlap(source, target) in ("same", "partial"):
        raise TileError(f"{what}: the destination {target.describe()} shares elements with the input", code="T112",
                        help="reduce into another buffer")
    require_vector_memory(what, "the input", source)
    require_vector_memory(what, "the destination", target)
    if size is not None:
        source, target = _real(builder, what, source, target, axes, size)
    expected = [1 if axis in axes else extent for axis, extent in enumerate(source.extents)]
    if not _matches(target, expected, axes):
        raise TileError(f"{what}: the destination has shape {shape_text(target.extents)}, the result {shape_text(expected)}",
                        code="T111", notes=_described(source, target),
                        help=f"give it the shape {shape_text(expected)}, or {shape_text(_dropped(expected, axes))}")
    absolute = mode in _OF_ABSOLUTES
    if absolute and ops.computed_in(ops.operation("abs"), source.dtype) is None:
        raise TileError(f"{what}: there are no absolute values of {source.dtype}", code="T110",
                        notes=_described(source, target), help="they are of " + ", ".join(ops.operation("abs").dtypes))
    value = seen_as(builder, target, expected)
    builder.tile_op(tile.ReduceOp(entry.name, source.ssa(builder), value, axes, clear=bool(clear), absolute=absolute), what)


def _entry(what: str, mode: str) -> Reduce:
    found = next((op for op in ops.operations().values() if isinstance(op, Reduce) and op.mode == mode), None)
    if found is None:
        known = [op.mode for op in ops.operations().values() if isinstance(op, Reduce)]
        raise TileError(f"{what}: there is no reduction {mode!r}", code="T145", help="modes are " + ", ".join(known))
    return found


def _axes(what: str, source: Addressable, dims: object) -> list[int]:
    given = list(dims) if isinstance(dims, (list, tuple)) else [dims]
    found: list[int] = []
    for axis in given:
        if isinstance(axis, bool) or not isinstance(axis, int) or not -source.ndim <= axis < source.ndim:
            raise TileError(f"{what}: axis {axis!r} of {source.describe()}: valid are {-source.ndim} to {source.ndim - 1}",
                            code="T111", help="axes count from 0, negative ones from the last")
        found.append(axis % source.ndim)
    if not found or len(set(found)) != len(found):
        raise TileError(f"{what}: axes {given} name no axis, or one twice", code="T111", help="give each axis once")
    return sorted(found)


def _described(source: Addressable, target: Addressable) -> list[str]:
    return [f"the input is {source.describe()}", f"the destination is {target.describe()}"]


def _dropped(shape: Sequence[Extent], axes: Sequence[int]) -> list[Extent]:
    return [size for axis, size in enumerate(shape) if axis not in axes] or [1]


def _matches(target: Addressable, expected: Sequence[Extent], axes: Sequence[int]) -> bool:
    """Whether the destination has the result's shape: with unit axes, without the reduced ones, or but for unit axes. One with
    as many axes as the source has the result's: a column of 64 sums is no row of them."""
    if same_shape(target.extents, expected) or same_shape(target.extents, _dropped(expected, axes)):
        return True
    if len(target.extents) == len(expected):
        return False
    wanted = [size for size in expected if not (isinstance(size, int) and size == 1)] or [1]
    return broadcasts(wanted, with_axes(target, squeezed_axes(target)).extents) and same_shape(
        wanted, with_axes(target, squeezed_axes(target)).extents)


def _real(builder: Builder, what: str, source: Addressable, target: Addressable, axes: Sequence[int],
          size: object) -> tuple[Addressable, Addressable]:
    """Source and destination cut to the real sizes."""
    given = sizes_argument(builder, what, size)
    if len(given) != source.ndim:
        raise TileError(f"{what}: {len(given)} real sizes for {source.describe()}", code="T111",
                        help="give one size per axis, 0 for a whole one")
    sizes = list(source.sizes)
    for axis, real in zip(source.kept, given, strict=True):
        have = sizes[axis]
        if isinstance(real, int) and real == 0:
            continue
        if isinstance(real, int) and isinstance(have, int) and real > have:
            raise TileError(f"{what}: real size {real} of an axis with {have} elements in {source.describe()}", code="T111",
                            help="a real size is at most the buffer's")
        sizes[axis] = real
    cut = Region(source.buffer, source.offsets, sizes, source.kept)
    expected = [1 if axis in axes else extent for axis, extent in enumerate(cut.extents)]
    wanted = expected if target.ndim == len(expected) else _dropped(expected, axes)
    if wanted is expected and target.ndim == 2 and builder.dialect == "ascendc" and target.extents[0] == 1 != expected[0]:
        target, wanted = with_axes(target, target.kept[-1:]), _dropped(expected, axes)  # results of rows in a row
    if len(wanted) != target.ndim:
        return cut, target
    parts = list(target.sizes)
    for axis, extent in zip(target.kept, wanted, strict=True):
        if same_extent(parts[axis], extent) is not True:
            parts[axis] = extent
    trimmed = Region(target.buffer, target.offsets, parts, target.kept)
    check_inside(what, trimmed)
    return cut, trimmed
