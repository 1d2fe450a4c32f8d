"""Lowers ``tile.copy`` to the HIVM operation for the source's and the target's memory, and clips tiles to their tensors.

The operations are: GM to L1 ``nd2nz``, GM to UB ``load``, UB to GM ``store``, L0C to GM, L1 or UB ``fixpipe``, UB to L1
``copy``, UB to UB ``copy`` or ``vcast``. Only paths that the chip has are possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr
from xdsl.ir import Block, Region, SSAValue

from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.cores import core_of
from tilelang_npu.analysis.locations import location_of, refuse
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.ops.scale_layouts import SCALE_LAYOUTS
from tilelang_npu.target import BLOCK, Path, name_of
from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value
from tilelang_npu.transforms.lower.casts import convert
from tilelang_npu.transforms.lower.core_attributes import write_core
from tilelang_npu.transforms.lower.scaled_operands import paired, row_wise
from tilelang_npu.transforms.lower.views import (
    View,
    bounds_checked,
    first_element,
    materialise,
    require_movable,
    row_strides,
    surely_inside,
)

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering


def clip_to_tensor(emit: OpBuilder, view: View) -> tuple[tuple[Value, ...], SSAValue | None]:
    """Emits the computation of the sizes of that part of a view which lies inside the global tensor.

    Args:
        emit: inserts the operations.
        view: the view of a global tensor.

    Returns:
        The sizes for each axis of the view (an axis that surely lies inside the tensor keeps its size), and an i1 value that is
        true if any of these sizes is smaller than the view's size. The second result is None if the view surely lies inside.
    """
    sizes: list[Value] = []
    partial: SSAValue | None = None
    outside = _is_outside_on_hidden_axis(emit, view)
    for axis, size in zip(view.axes, view.shape, strict=True):
        if axis is None:
            sizes.append(size)
            continue
        bound, offset = view.buffer.shape[axis], view.offsets[axis]
        if surely_inside(emit, offset, size, bound):
            sizes.append(size)
            continue
        room = emit.sub(bound, offset)
        valid = emit.maximum(emit.minimum(room, size), 0)
        sizes.append(valid)
        if not isinstance(valid, int) or valid != size:
            partial = emit.either(partial, emit.less(valid, size))
    if outside is not None and sizes:
        sizes[0] = emit.insert(arith.SelectOp(outside, emit.value(0), emit.value(sizes[0]))).result
        partial = emit.either(partial, outside)
    return tuple(sizes), partial


def _is_outside_on_hidden_axis(emit: OpBuilder, view: View) -> SSAValue | None:
    """Returns an i1 value: whether the view's index on an axis that the view has dropped is outside the tensor.

    Returns None if the index surely is inside.
    """
    found: SSAValue | None = None
    for axis, (offset, bound) in enumerate(zip(view.offsets, view.buffer.shape, strict=True)):
        if axis not in view.axes and not surely_inside(emit, offset, 1, bound):
            found = emit.either(found, emit.less(emit.sub(bound, offset), 1))
    return found


def _clipped_view(emit: OpBuilder, view: View, sizes: tuple[Value, ...]) -> View:
    """Returns the part of a global view with the sizes of ``clip_to_tensor``; an empty part still starts inside the tensor."""
    offsets = list(view.offsets)
    for axis, (offset, bound) in enumerate(zip(view.offsets, view.buffer.shape, strict=True)):
        if axis not in view.axes and not surely_inside(emit, offset, 1, bound):
            offsets[axis] = emit.minimum(offset, emit.sub(bound, 1))
    return replace(view, offsets=tuple(offsets)).resized(sizes)


def lower_copy(lowering: KernelLowering, op: tile.CopyOp) -> None:
    """Lowers one ``tile.copy``.

    Raises:
        TileError: T110, the chip does not have the element type; T221, a slice of L1 or L0 does not consist of whole fractals;
            T230, the chip has no path between the two memories; T231, the path does not support ``enable_relu`` or
            ``transpose``; T232 or T234, the path cannot convert between the two element types.
    """
    source, target = lowering.view(op.source), lowering.view(op.target)
    route = (source.buffer.space, target.buffer.space)
    way = lowering.chip.ways.get(route)
    path = _BY_OP.get(way.ops[0]) if way is not None else None
    if op.atomic is not None and route[1] != "gm":
        raise refuse(op, f"the target of an atomic operation must be in GM, not in {name_of(route[1])}", "T230",
                     help="add in UB with T.tile.add or T.vadd")
    if op.atomic is not None and route[0] not in ("ub", "cc"):
        raise refuse(op, f"the source of an atomic operation must be in UB or L0C, not in {name_of(route[0])}", "T230",
                     help="load the tile into a buffer in UB (T.alloc_ub)")
    if op.relu is not None and route[0] != "cc":
        raise refuse(op, f"T.copy with enable_relu=True is only possible from L0C, not from {name_of(route[0])}", "T231",
                     help="use T.tile.relu or T.vrelu")
    if path is None:
        raise refuse(op, f"there is no path from {name_of(route[0])} to {name_of(route[1])}", "T230",
                     notes=(f"{source.buffer.label} is in {name_of(route[0])}, {target.buffer.label} in {name_of(route[1])}",),
                     help=_DETOURS.get(route, "go through a buffer in UB or L1"))
    if op.transpose is not None and route not in (("cbuf", "ca"), ("cbuf", "cb")):
        raise refuse(op, "T.copy with transpose=True is only possible from L1 to L0A and L0B", "T231",
                     help="use transpose_B=True of the gemm")
    require_movable(lowering.chip, op, source, target)
    if target.buffer.scales or source.buffer.scales:
        _load_scales(lowering, op, source, target)
        return
    path(lowering, op, source, target)


def _path_between(lowering: KernelLowering, source: View, target: View) -> Path:
    return lowering.chip.ways[source.buffer.space, target.buffer.space]


_DETOURS = {
    ("gm", "gm"): "copy GM to UB (T.alloc_ub) and from there to GM",
    ("gm", "cc"): "L0C holds results of a gemm only; load into a buffer in UB instead",
    ("cbuf", "ub"): "load the data from GM into a buffer in UB instead",
}


def _round_mode(op: tile.CopyOp) -> str:
    return op.round_mode.data if op.round_mode is not None else "rint"


def _gm_to_ub(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    if source.buffer.dtype != target.buffer.dtype:
        landing = lowering.scratch(target, source.buffer.element)
        _gm_to_ub(lowering, op, source, landing)
        convert(lowering, op, landing, target, _round_mode(op))
        return
    if _needs_aligned_detour(emit, target, source):
        landing = lowering.scratch(target, target.buffer.element)
        _gm_to_ub(lowering, op, source, landing)
        emit.insert(hivm.CopyOp(materialise(emit, landing, op), materialise(emit, target, op)))
        return
    sizes, partial = clip_to_tensor(emit, source)
    rest = None
    if _is_smaller(source, target):
        _emit_fill(lowering, op, target)
        target = target.resized(source.shape)
    elif partial is not None:
        rest = _unloaded_rows(emit, target, sizes)
        if rest is None:
            _emit_if(emit, partial, lambda: _fill_in_order(lowering, op, target))
    if partial is not None:
        source, target = _clipped_view(emit, source, sizes), target.resized(sizes)
    emit.insert(hivm.LoadOp(materialise(emit, source, op), materialise(emit, target, op)))
    if partial is not None and rest is not None:
        _emit_if(emit, partial, lambda: _fill_in_order(lowering, op, rest))


def _fill_in_order(lowering: KernelLowering, op: tile.CopyOp, target: View) -> None:
    """Fill a tile before the load that overwrites part of it.

    To an author who synchronises by hand, the statement is MTE2's: the fill must come after everything that MTE2 waited for,
    and whatever waits for MTE2 must come after the fill. So there are barriers around it.
    """
    if lowering.by_hand:
        _emit_barrier(lowering, op, "the fill before this load waits for everything that the load waits for")
    _emit_fill(lowering, op, target)
    if lowering.by_hand:
        _emit_barrier(lowering, op, "operations that wait for this load wait for its fill too")


def _emit_barrier(lowering: KernelLowering, op: tile.CopyOp, why: str) -> None:
    facts = Waits(source="ALL", target="ALL", before=location_of(op))
    barrier = lowering.emit.insert(hivm.PipeBarrierOp("ALL"))
    set_remark(barrier, Remark("lower-to-hivm", text=why, facts=facts))
    if (core := core_of(op)) != "either":
        write_core(barrier, core, lowering.chip)


def _unloaded_rows(emit: OpBuilder, target: View, sizes: tuple[Value, ...]) -> View | None:
    """Returns the part of a tile that a load of ``sizes`` leaves, if that is whole rows at its end; otherwise None.

    Whole rows are filled after the load, by vector work that waits for the load anyway. Any other tile is filled before the
    load, which then waits for the Vector pipe, and so for the work of the previous iteration: it cannot run ahead.
    """
    short = [place for place, (size, have) in enumerate(zip(sizes, target.shape, strict=True)) if size != have]
    if len(short) != 1 or target.axes[short[0]] is None:
        return None
    (place,) = short
    axis = target.axes[place]
    assert axis is not None
    unit = BLOCK // target.buffer.dtype.nbytes
    row = row_strides(emit, target.buffer)[axis]
    if not isinstance(row, int) or row % unit:
        return None
    offsets, left = list(target.offsets), list(target.sizes)
    offsets[axis] = emit.add(offsets[axis], sizes[place])
    left[axis] = emit.sub(left[axis], sizes[place])
    return replace(target, offsets=tuple(offsets), sizes=tuple(left))


def _needs_aligned_detour(emit: OpBuilder, tile: View, tensor: View) -> bool:
    """Whether a DMA would have to access rows of a tile in UB that do not start at blocks, so that the copy goes through an
    aligned tile.

    A tile that is contiguous on both sides is one row to the DMA.
    """
    unit = BLOCK // tile.buffer.dtype.nbytes
    outer = [(stride, tile.sizes[axis], tile.offsets[axis])
             for axis, stride in enumerate(row_strides(emit, tile.buffer)[:-1])]
    loose = [(stride, size, start) for stride, size, start in outer if not isinstance(stride, int) or stride % unit]
    for stride, _, start in loose:
        if not (isinstance(start, int) and isinstance(stride, int) and start * stride % unit == 0):
            return True
    return any(size != 1 for _, size, _ in loose) and not (_is_contiguous(tile) and _is_contiguous(tensor))


def _is_contiguous(view: View) -> bool:
    """Whether the elements of a view follow one another."""
    whole_view = view.buffer.strides is None
    for size, have in zip(reversed(view.sizes), reversed(view.buffer.shape), strict=True):
        if not whole_view and size != 1:
            return False
        whole_view = whole_view and (size is have or (isinstance(size, int) and size == have))
    return True


def _is_smaller(source: View, target: View) -> bool:
    """Whether a load surely fills less than the destination, wherever it starts."""
    return any(isinstance(have, int) and isinstance(want, int) and have < want
               for have, want in zip(source.shape, target.shape, strict=True))


def _emit_fill(lowering: KernelLowering, op: tile.CopyOp, target: View) -> None:
    value = lowering.values[op.pad] if op.pad is not None else None
    target = lowering.signless(target)
    scalar = lowering.scalar(value if value is not None else 0, target.buffer.element)
    lowering.emit.insert(hivm.VBrcOp(scalar, materialise(lowering.emit, target, op)))


def _emit_if(emit: OpBuilder, condition: SSAValue, body: Callable[[], None]) -> None:
    block = Block()
    with emit.inside(block):
        body()
        emit.insert(scf.YieldOp())
    emit.insert(scf.IfOp(condition, [], Region(block)))


def _require_one_type(op: tile.CopyOp, source: View, target: View, way: str, otherwise: str = "") -> None:
    """Refuse (T232) a copy along a path that converts nothing."""
    if source.buffer.dtype != target.buffer.dtype:
        raise refuse(op, f"{way} cannot convert {source.buffer.dtype} to {target.buffer.dtype}", "T232",
                     help=f"give both buffers the same element type{otherwise}")


def _gm_to_l1(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    _require_one_type(op, source, target, "GM to L1", ", or convert in UB")
    source, target = _as_matrices(source, target)
    sizes, partial = clip_to_tensor(emit, source)
    padded = _has_fractal_padding(target)
    short = _is_smaller(source, target) or (target.covers and _may_differ_in_size(source, target))
    if op.pad is not None and (partial is not None or short):
        pad: SSAValue | None = lowering.scalar(lowering.values[op.pad], target.buffer.element)
    else:
        pad = lowering.scalar(0, target.buffer.element) if partial is not None or padded or short else None
    destination = materialise(emit, target, op, pads=pad is not None)
    if partial is not None:
        source = _clipped_view(emit, source, sizes)
    emit.insert(hivm.Nd2NzOp(
        materialise(emit, source, op), destination, dst_continuous=True, init_out_buffer=pad is not None, pad_value=pad,
        init_condition=partial if partial is not None and not padded and not short else None,
    ))


def _load_scales(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    """Lowers a load of the scales of an MX matrix to ``load_scale``, of matrices with the groups along K as the last axes.

    Raises:
        TileError: T230, the scales do not come from GM; T232, they are no bytes.
    """
    emit = lowering.emit
    if source.buffer.space != "gm":
        raise refuse(op, f"scales of an MX matrix are loaded from GM, not from {name_of(source.buffer.memory)}", "T230",
                     help="store the tile to a global tensor, and load it from there (T.copy(..., src_layout=...))")
    _require_one_type(op, source, target, "A load of scales")
    side = lowering.scales[root_of(op.target)]
    layout = SCALE_LAYOUTS[op.scales.data if op.scales is not None else f"MX_{side.upper()}_ND"]
    pairs = len(source.axes) == 3
    sizes, partial = clip_to_tensor(emit, source)
    room = layout.logical_shape([size if isinstance(size, int) else -1 for size in source.shape])
    if any(have != want for have, want in zip(room, target.shape, strict=True)):
        _emit_fill(lowering, op, target)
    elif partial is not None:
        _emit_if(emit, partial, lambda: _emit_fill(lowering, op, target))
    if partial is not None:
        source = _clipped_view(emit, source, sizes)
    lines, groups = sizes[:2] if layout.rows_first else sizes[1::-1]
    order = (0, 1) if layout.rows_first else (1, 0)
    if pairs:
        groups = emit.mul(groups, 2)
    rows = row_wise(target.resized((lines, groups) if side == "a" else (groups, lines)))
    source = replace(source, axes=(*(source.axes[place] for place in order), *source.axes[2:]))
    emit.insert(hivm.LoadScaleOp(materialise(emit, source, op), paired(lowering, rows) if pairs else
                                 materialise(emit, rows, op)))


def _may_differ_in_size(source: View, target: View) -> bool:
    """Whether only run time knows if a load fills the destination."""
    return any(have is not want and not (isinstance(have, int) and isinstance(want, int))
               for have, want in zip(source.shape, target.shape, strict=True))


def _as_matrices(rows: View, fractal: View) -> tuple[View, View]:
    """Returns a line of a tensor and a line of fractals as matrices: a row, or a column if the fractal side is one.

    The other axis of the matrix is one that the view has dropped, if there is one on the right side, or a unit axis.
    """
    if len(rows.axes) != 1 or len(fractal.sizes) < 2:
        return rows, fractal
    last = len(fractal.sizes) - 1
    column = fractal.axes == (last - 1,)
    (axis,) = rows.axes
    dropped = [] if axis is None else [other for other in range(len(rows.sizes)) if (other > axis) == column and other != axis]
    other = next((each for each in (reversed(dropped) if not column else dropped)), None)
    axes = (axis, other) if column else (other, axis)
    return replace(rows, axes=axes), replace(fractal, axes=(last - 1, last))


def _has_fractal_padding(target: View) -> bool:
    """Whether the fractals of the destination hold more than the matrix."""
    assert isinstance(target.buffer.value.type, MemRefType)
    n1, m1, m0, n0 = target.buffer.value.type.get_shape()[-4:]
    rows, columns = target.buffer.shape[-2:]
    return target.sizes[-2:] == target.buffer.shape[-2:] and (rows != m1 * m0 or columns != n1 * n0)


def _l1_to_l0(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    """The load before a ``T.mma``: HIVM has no op for it, so it is a custom op that the simulator knows."""
    emit = lowering.emit
    _require_one_type(op, source, target, "L1 to L0")
    name = ("load_l0a" if target.buffer.space == "ca" else "load_l0b") + ("_transposed" if op.transpose is not None else "")
    lowering.loaded_columns[target.buffer.value].append(target.shape[-1])
    ends = materialise(emit, source, op), materialise(emit, target, op)
    emit.insert(hivm.CustomOp(name, ends[:1], ends[1:], core="CUBE", pipe="MTE1", symbol=name))


def _ub_to_gm(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    if source.buffer.dtype != target.buffer.dtype:
        staged = lowering.scratch(source, target.buffer.element)
        convert(lowering, op, source, staged, _round_mode(op))
        source = staged
    if _needs_aligned_detour(emit, source, target):
        staged = lowering.scratch(source, source.buffer.element)
        emit.insert(hivm.CopyOp(materialise(emit, source, op), materialise(emit, staged, op)))
        source = staged
    sizes, partial = clip_to_tensor(emit, target)
    if partial is not None:
        source, target = source.resized(sizes), _clipped_view(emit, target, sizes)
    emit.insert(hivm.StoreOp(materialise(emit, source, op), materialise(emit, target, op),
                             atomic=None if op.atomic is None else op.atomic.data))


def _l0c_out(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    kinds = (source.buffer.dtype.mlir, target.buffer.dtype.mlir)
    way = _path_between(lowering, source, target)
    quantisation = way.converts.get(kinds)
    if kinds[0] != kinds[1] and quantisation is None:
        raise refuse(op, f"L0C cannot be stored from {source.buffer.dtype} as {target.buffer.dtype}", "T232",
                     help="keep the element type, or convert float32 to float16 or bfloat16, or int32 to int8")
    to_gm = target.buffer.space == "gm"
    if target.buffer.dtype.bits > way.widest:
        raise refuse(op, f"L0C cannot be stored to L1 as {target.buffer.dtype}: its fractals are 16 x 16 and L1's 16 x 8",
                     "T232", help="store it as float16, or go through a global tensor")
    if to_gm:
        target, source = _as_matrices(target, source)
        sizes, partial = clip_to_tensor(emit, target)
        if partial is not None:
            target = _clipped_view(emit, target, sizes)
    places = materialise(emit, source, op), materialise(emit, target, op)
    if op.atomic is not None:
        emit.insert(hivm.SetAtomicOp(op.atomic.data, target.buffer.element))
    cores = tile.vector_cores_of(op)
    alone = cores == 1 or not lowering.chip.crosses(way)
    for sub in [None] if alone or op.halves is not None else range(cores):  # each Vector core has a buffer of its own
        emit.insert(hivm.FixpipeOp(
            *places, dma_mode="normal" if target.buffer.fractal else "nz2nd", pre_quant=quantisation,
            pre_relu="NORMAL_RELU" if op.relu is not None else None,
            dual_dst_mode="ROW_SPLIT" if op.halves is not None else None, sub_block=sub,
            unit_flags=() if op.unit_flag is None else (op.unit_flag.data,)))
    if op.atomic is not None:
        emit.insert(hivm.SetAtomicOp("none", target.buffer.element))


def _ub_to_l1(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    """The rows of a tile to fractals: the copy views both as fractals, those in UB with their rows apart."""
    emit = lowering.emit
    if source.buffer.dtype != target.buffer.dtype:
        staged = lowering.scratch(source, target.buffer.element)
        convert(lowering, op, source, staged, _round_mode(op))
        source = staged
    place = materialise(emit, target, op)
    fractals = place.type
    assert isinstance(fractals, MemRefType)
    _, _, height, width = fractals.get_shape()
    (row, column), offset = row_strides(emit, source.buffer)[-2:], first_element(emit, source)
    assert isinstance(row, int) and column == 1, "a buffer in UB has constant sizes"
    steps = [width, height * row, row, 1]
    layout = StridedLayoutAttr(steps, offset if isinstance(offset, int) else None)
    sizes = list(fractals.get_shape())
    kind = MemRefType(fractals.element_type, sizes, layout, hivm.address_space(source.buffer.memory))
    cast = emit.insert(memref.ReinterpretCastOp.from_dynamic(bounds_checked(emit, source), [offset], sizes, steps, kind))
    emit.insert(hivm.CopyOp(cast.result, place))


def _l1_to_gm(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    _require_one_type(op, source, target, "L1 to GM")
    target, source = _as_matrices(target, source)
    sizes, partial = clip_to_tensor(emit, target)
    if partial is not None:
        target = _clipped_view(emit, target, sizes)
    emit.insert(hivm.Nz2NdOp(materialise(emit, source, op), materialise(emit, target, op)))


def _ub_to_on_chip(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    if target.buffer.fractal:
        _ub_to_l1(lowering, op, source, target)
        return
    if source.buffer.dtype != target.buffer.dtype:
        convert(lowering, op, source, target, _round_mode(op))
        return
    emit = lowering.emit
    emit.insert(hivm.CopyOp(materialise(emit, source, op), materialise(emit, target, op)))


_BY_OP = {
    "load": _gm_to_ub,
    "nd2nz": _gm_to_l1,
    "store": _ub_to_gm,
    "nz2nd": _l1_to_gm,
    "fixpipe": _l0c_out,
    "load_l0a": _l1_to_l0,
    "load_l0b": _l1_to_l0,
    "copy": _ub_to_on_chip,
}
"""For each name of a copy operation in a chip's description, the function that lowers a copy to that operation."""

__all__ = ["clip_to_tensor", "lower_copy"]
