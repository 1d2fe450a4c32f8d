"""The functions of ``T`` that reduce a buffer along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.declared_buffers import Call, Declared, describe
from tilelang_npu.language.flat_memory import flattened, leading
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
from tilelang_npu.language.scratch import use_scratch
from tilelang_npu.language.structured import call
from tilelang_npu.ops import Reduce
from tilelang_npu.traced.active_trace import active
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.buffers import Addressable, Region, Sizes, Tile, same_extent, shape_text
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent

_INDEXED = ("max_with_index_left", "max_with_index_right", "min_with_index_left", "min_with_index_right")
_SUM = {"float16": "float32"}
"""The wider element type that the destination of a reduction may have, by the element type of the source (npuir)."""
_OF_ABSOLUTES = {"abssum": "sum", "absmax": "max"}


def _along(name: str, result: str) -> Callable[..., Call | None]:
    """The function ``T.<name>``, which reduces along one axis; ``result`` describes what it computes."""

    def reduce(buffer: Tile | Declared, out: Tile | Declared, dim: int = -1, *options: object, clear: bool = True,
               real_shape: Sizes | None = None, size: Sizes | None = None, nan_propagate: bool = True,
               tmp: Tile | None = None) -> Call | None:
        _refuse_dropped_nan(f"T.{name}", nan_propagate)
        described = _reduce_along(name, buffer, out, dim, options, clear, real_shape, size)
        use_scratch(f"T.{name}", tmp, buffer, out)
        return described

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"Write {result} along the axis ``dim`` of ``buffer`` to ``out``.{_ALONG.replace('NAME', 'T.' + name)}"
    return reduce


_ALONG = """

    ``out`` must have the shape of ``buffer`` with size 1 along ``dim``, or without that axis.

    Example: ``NAME(a, out, dim=1)``

    Args:
        buffer: the source.
        out: the destination.
        dim: the axis; a negative number counts from the last axis. In ascendc, a buffer with three axes whose first axis has
            size 1 is treated as a matrix.
        options: positional arguments: a bool is ``clear``, a list is ``size``.
        clear: whether the result replaces the contents of ``out``; if False, it is combined with them.
        size, real_shape: the shape of the part of ``buffer`` that is reduced; 0 means a whole axis.
        nan_propagate: must be True: a NaN in ``buffer`` is the result.
        tmp: scratch memory in UB; its contents are undefined after the call.

    Raises:
        TileError: T190, ``nan_propagate`` is False; T110, an element type is not supported; T111, the shapes do not fit, or
            there is no such axis; T112, ``out`` shares elements with ``buffer``; T145, the arguments are wrong;
            T201, an operand is not in UB.
    """

reduce_sum = _along("reduce_sum", "the sum of the elements")
reduce_max = _along("reduce_max", "the largest element")
reduce_min = _along("reduce_min", "the smallest element")
reduce_prod = _along("reduce_prod", "the product of the elements")
reduce_any = _along("reduce_any", "1 where any element is not zero, else 0,")
reduce_all = _along("reduce_all", "1 where no element is zero, else 0,")
reduce_bitand = _along("reduce_bitand", "the bitwise and of the elements")
reduce_bitor = _along("reduce_bitor", "the bitwise or of the elements")
reduce_bitxor = _along("reduce_bitxor", "the bitwise exclusive or of the elements")


def _refuse_dropped_nan(what: str, nan_propagate: object) -> None:
    if not nan_propagate:
        raise TileError(f"{what}: nan_propagate=False is not supported", code="T190",
                        help="a NaN among the elements makes the result NaN; replace NaNs before, with "
                             "T.if_then_else and T.isnan in T.Parallel")


def reduce_abssum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True) -> None:
    """Write the sum of the absolute values along the axis ``dim`` of ``buffer`` to ``out``.

    ``buffer`` is not changed. Arguments and errors are those of ``T.reduce_sum``.

    Example: ``T.reduce_abssum(a, out, dim=1)``
    """
    _reduce("T.reduce_abssum", "abssum", buffer, out, dim, None, clear)


def reduce_absmax(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, *, nan_propagate: bool = True) -> None:
    """Write the largest absolute value along the axis ``dim`` of ``buffer`` to ``out``.

    ``buffer`` is not changed. Arguments and errors are those of ``T.reduce_max``.

    Example: ``T.reduce_absmax(a, out, dim=1)``
    """
    _refuse_dropped_nan("T.reduce_absmax", nan_propagate)
    _reduce("T.reduce_absmax", "absmax", buffer, out, dim, None, clear)


def reduce(src: Tile, dst: Tile | tuple[Tile, Tile], dims: int | Sequence[int], reduce_mode: str, size: Sizes | None = None,
           clear: bool = True) -> None:
    """Reduce ``src`` along the axes ``dims``, and write the result to ``dst``.

    ``dst`` must have the shape of ``src`` with size 1 along ``dims``, or without these axes; with an index, always the former.

    Example: ``T.reduce(a, out, [1], "sum")``

    Args:
        src: the source.
        dst: the destination; for a mode with an index, a pair ``(values, indices)`` of buffers, where ``indices`` is int32.
        dims: one axis or several; a negative number counts from the last axis.
        reduce_mode: the operation: ``sum``, ``prod``, ``max``, ``min``; ``abssum`` and ``absmax`` (of absolute values); ``any``
            and ``all`` (the result is 1 or 0); ``xori``, ``ori`` and ``andi`` (bitwise); or, along one axis,
            ``max_with_index_left``, ``max_with_index_right``, ``min_with_index_left`` and ``min_with_index_right``, which also
            write the index of the first (``left``) or the last (``right``) of equal extremes.
        size: the shape of the part of ``src`` that is reduced; 0 means a whole axis.
        clear: whether the result replaces the contents of ``dst``; if False, it is combined with them.

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or there is no such axis; T112, ``dst``
            shares elements with ``src``; T145, there is no such mode; T201, an operand is not in UB.
    """
    if reduce_mode not in _INDEXED:
        _reduce("T.reduce", reduce_mode, src, dst, dims, size, clear)
        return
    if not isinstance(dst, (list, tuple)) or len(dst) != 2:
        raise TileError(f"T.reduce with mode {reduce_mode!r} has two destinations: the extremes and their indices", code="T145",
                        help="write T.reduce(src, (values, indices), dim, mode), indices int32")
    if not clear:
        raise TileError(f"T.reduce with mode {reduce_mode!r} cannot combine with the contents of the destinations", code="T145",
                        help="remove clear=False")
    reduce_with_index(src, dst[0], dst[1], dims, reduce_mode, size)


def reduce_with_index(src: Tile, values: Tile, indices: Tile, dim: int | Sequence[int] = -1,
                      reduce_mode: str = "max_with_index_left", size: Sizes | None = None) -> None:
    """Write the largest or smallest elements of ``src`` along the axis ``dim`` to ``values``, and their indices along the axis
    to ``indices`` (int32).

    ``reduce_mode`` is one of the modes of ``T.reduce`` with an index. ``values`` and ``indices`` have the shape of ``src`` with
    size 1 along ``dim``.

    Example: ``T.reduce_with_index(a, out, indices, dim=1)``

    Raises:
        TileError: as ``T.reduce``.
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
    """The error of a reduction along an axis that the buffer does not have. It is also a
    :class:`ValueError`.
    """


def _reduce_along(function: str, source: Tile | Declared, target: Tile | Declared, dim: object, options: tuple[object, ...],
                  clear: bool, real_shape: object, size: object) -> Call | None:
    """Reduces along one axis; returns a :class:`Call` for buffers that are declared outside of a kernel."""
    what = f"T.{function}"
    real = real_shape if real_shape is not None else size
    flags = [option for option in options if isinstance(option, bool)]
    sizes = [option for option in options if option is not None and not isinstance(option, bool)]
    if len(flags) > 1 or len(sizes) + (real_shape is not None) + (size is not None) > 1:
        raise TileError(f"{what}: clear or the real sizes are given twice", code="T145",
                        help=f"write {what}(buffer, out, dim=-1, clear=True, real_shape=None)")
    clear, real = (flags or [clear])[0], (sizes or [real])[0]
    return _reduce_with_clear(source, target, function, _tile_axis(what, source, dim), clear, real)


def _reduce_with_clear(buffer: Tile | Declared, out: Tile | Declared, reduce_type: str, dim: object, clear: bool,
                       real_shape: object) -> Call | None:
    """Reduces along one axis; returns a :class:`Call` for buffers that are declared outside of a kernel.

    The name and the parameters are those of TileLang-Ascend, whose tests replace the function.
    """
    what, mode = f"T.{reduce_type}", reduce_type.removeprefix("reduce_")
    mode = _BITS.get(mode, mode)
    if isinstance(buffer, Declared):
        assert isinstance(out, Declared)
        return describe("tl.ascend_reduce", (buffer, out), (reduce_type, dim, clear, real_shape),
                        lambda source, target: _reduce(what, mode, source, target, dim, real_shape, clear))
    _reduce(what, mode, buffer, out, dim, real_shape, clear)
    return None


def _tile_axis(what: str, source: object, dim: object) -> object:
    """The axis of a vector or of a matrix: 0 for the rows of a matrix, -1 otherwise. Axes of other buffers are returned
    unchanged.

    In the ascendc dialect a buffer with three axes holds matrices, and the axis is one of the matrix: 0 and -2 are its rows.

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
        raise TileError(f"{what}: {source.describe()} holds {source.shape[0]} matrices; a call can reduce one", code="T111",
                        help="reduce the matrices one by one: slice the first axis")
    return dim % 2 - 2


_BITS = {"bitand": "andi", "bitor": "ori", "bitxor": "xori"}
"""Modes of the op table, which are HIVM's, where they differ from the name of the function."""


def reduce_flat(what: str, mode: str, src: Tile, dst: Tile, count: object) -> None:
    """Emits the reduction of the first ``count`` elements of a buffer's flat memory into the first element of ``dst``.

    Args:
        what: the name of the call, for messages.
        mode: the reduction mode of the op table, such as ``sum``.
        src: the source, whose rows follow each other in memory.
        dst: the destination.
        count: the number of elements.

    Raises:
        TileError: T111, there are not ``count`` elements; T201, an operand is not in UB.
    """
    builder = Builder.running(what)
    source, = leading(builder, what, [as_memory(what, "the input", src)], count)
    target = flattened(builder, what, as_memory(what, "the destination", dst), 1)
    _reduce(what, mode, source, target, list(range(source.ndim)), None, True)


def _reduce(what: str, mode: str, src: object, dst: object, dims: object, size: object, clear: bool) -> None:
    builder = Builder.running(what)
    if not isinstance(clear, (bool, int)):
        raise TileError(f"{what}: clear is {clear!r}", code="T145", help="clear must be True or False")
    source, target = as_memory(what, "the input", src), as_memory(what, "the destination", dst)
    entry = _entry(what, _OF_ABSOLUTES.get(mode, mode))
    axes = _axes(what, source, dims)
    wide = ops.computed_in(entry, source.dtype) if builder.dialect == "npuir" else None
    if (source.dtype not in entry.dtypes or target.dtype != source.dtype) and (
            wide is None or target.dtype not in (source.dtype, wide, _SUM.get(str(source.dtype)))):
        raise TileError(f"{what}: no reduction of {source.dtype} into {target.dtype}", code="T110",
                        notes=_described(source, target),
                        help="both must have the same element type, one of " + ", ".join(entry.dtypes))
    combine = ops.operation(entry.combine)
    if not clear and ops.computed_in(combine, target.dtype) is None:
        raise TileError(f"{what}: clear=False combines with the contents of the destination, and {combine.name} does not work "
                        f"on {target.dtype}", code="T110", notes=_described(source, target),
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
                        help=f"allocate it with the shape {shape_text(expected)}, or {shape_text(_dropped(expected, axes))}")
    absolute = mode in _OF_ABSOLUTES
    if absolute and ops.computed_in(ops.operation("abs"), source.dtype) is None:
        raise TileError(f"{what}: there are no absolute values of {source.dtype}", code="T110",
                        notes=_described(source, target),
                        help="absolute values exist for " + ", ".join(ops.operation("abs").dtypes))
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
        raise TileError(f"{what}: axes {given} are empty, or name an axis twice", code="T111", help="give each axis once")
    return sorted(found)


def _described(source: Addressable, target: Addressable) -> list[str]:
    return [f"the input is {source.describe()}", f"the destination is {target.describe()}"]


def _dropped(shape: Sequence[Extent], axes: Sequence[int]) -> list[Extent]:
    return [size for axis, size in enumerate(shape) if axis not in axes] or [1]


def _matches(target: Addressable, expected: Sequence[Extent], axes: Sequence[int]) -> bool:
    """Whether the destination has a shape that the result may have.

    That is the result's shape, with axes of size 1 or without the reduced axes. With fewer axes than the source, other axes of
    size 1 may be missing too. With as many, they must match: a column of 64 sums does not fit into a row of 64.
    """
    if same_shape(target.extents, expected) or same_shape(target.extents, _dropped(expected, axes)):
        return True
    if len(target.extents) == len(expected):
        return False
    wanted = [size for size in expected if not (isinstance(size, int) and size == 1)] or [1]
    return broadcasts(wanted, with_axes(target, squeezed_axes(target)).extents) and same_shape(
        wanted, with_axes(target, squeezed_axes(target)).extents)


def _real(builder: Builder, what: str, source: Addressable, target: Addressable, axes: Sequence[int],
          size: object) -> tuple[Addressable, Addressable]:
    """Source and destination cut to the sizes of the part that is reduced."""
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
        target, wanted = with_axes(target, target.kept[-1:]), _dropped(expected, axes)  # one result for each row, in a row
    if len(wanted) != target.ndim:
        return cut, target
    parts = list(target.sizes)
    for axis, extent in zip(target.kept, wanted, strict=True):
        if same_extent(parts[axis], extent) is not True:
            parts[axis] = extent
    trimmed = Region(target.buffer, target.offsets, parts, target.kept)
    check_inside(what, trimmed)
    return cut, trimmed
