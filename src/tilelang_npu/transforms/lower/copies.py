"""Lowering of ``tile.copy``: one hardware path per pair of memories, tiles clipped against the tensor they are in.

GM -> L1 is nd2nz, GM -> UB load, UB -> GM store, L0C -> GM, L1 or UB fixpipe, UB -> L1 copy, UB -> UB copy or vcast: where the
chip has a path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.target import BLOCK, Path, name_of
from tilelang_npu.transforms.ir.cores import core_of
from tilelang_npu.transforms.ir.emit import OpBuilder, Value
from tilelang_npu.transforms.ir.locations import location_of, refuse
from tilelang_npu.transforms.lower.casts import convert
from tilelang_npu.transforms.lower.said import say_core
from tilelang_npu.transforms.lower.views import (
    View,
    checked,
    first_element,
    materialise,
    require_movable,
    row_strides,
    surely_inside,
)

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering


def clip(emit: OpBuilder, view: View) -> tuple[tuple[Value, ...], SSAValue | None]:
    """The part of a global view that lies inside its tensor.

    Returns the sizes per view axis (a plain integer where the whole extent surely lies inside) and, where some size
    may be smaller than the view's, the i1 that says it is.
    """
    sizes: list[Value] = []
    partial: SSAValue | None = None
    outside = _dropped_outside(emit, view)
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


def _dropped_outside(emit: OpBuilder, view: View) -> SSAValue | None:
    """Whether the position on an axis that the view does not show lies beyond the tensor; None where it surely does not."""
    found: SSAValue | None = None
    for axis, (offset, bound) in enumerate(zip(view.offsets, view.buffer.shape, strict=True)):
        if axis not in view.axes and not surely_inside(emit, offset, 1, bound):
            found = emit.either(found, emit.less(emit.sub(bound, offset), 1))
    return found


def _cropped(emit: OpBuilder, view: View, sizes: tuple[Value, ...]) -> View:
    """The part of a global view that ``clip`` found; where that is nothing, it still starts inside the tensor."""
    offsets = list(view.offsets)
    for axis, (offset, bound) in enumerate(zip(view.offsets, view.buffer.shape, strict=True)):
        if axis not in view.axes and not surely_inside(emit, offset, 1, bound):
            offsets[axis] = emit.minimum(offset, emit.sub(bound, 1))
    return replace(view, offsets=tuple(offsets)).resized(sizes)


def lower_copy(lowering: KernelLowering, op: tile.CopyOp) -> None:
    """Lower one copy; refuses a pair of memories that no path connects."""
    source, target = lowering.view(op.source), lowering.view(op.target)
    route = (source.buffer.space, target.buffer.space)
    way = lowering.chip.ways.get(route)
    path = _BY_OP.get(way.ops[0]) if way is not None else None
    if op.atomic is not None and route[1] != "gm":
        raise refuse(op, f"an atomic addition goes to GM, not to {name_of(route[1])}", "T230",
                     help="add in UB with T.tile.add or T.vadd")
    if op.atomic is not None and route[0] not in ("ub", "cc"):
        raise refuse(op, f"an atomic addition comes from UB or L0C, not from {name_of(route[0])}", "T230",
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
    require_movable(op, source, target)
    path(lowering, op, source, target)


def _way(lowering: KernelLowering, source: View, target: View) -> Path:
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
    if _stops_over(emit, target, source):
        landing = lowering.scratch(target, target.buffer.element)
        _gm_to_ub(lowering, op, source, landing)
        emit.insert(hivm.CopyOp(materialise(emit, landing, op), materialise(emit, target, op)))
        return
    sizes, partial = clip(emit, source)
    rest = None
    if _short(source, target):
        _fill(lowering, op, target)
        target = target.resized(source.shape)
    elif partial is not None:
        rest = _rows_left(emit, target, sizes)
        if rest is None:
            _when(emit, partial, lambda: _fill_between(lowering, op, target))
    if partial is not None:
        source, target = _cropped(emit, source, sizes), target.resized(sizes)
    emit.insert(hivm.LoadOp(materialise(emit, source, op), materialise(emit, target, op)))
    if partial is not None and rest is not None:
        _when(emit, partial, lambda: _fill_between(lowering, op, rest))


def _fill_between(lowering: KernelLowering, op: tile.CopyOp, target: View) -> None:
    """Fill what a load leaves. To an author who synchronises by hand the statement is MTE2's: what MTE2 waited for, the fill
    comes behind too, and what waits for MTE2 comes behind the fill. So barriers are around it, where no whole tile meets them.
    """
    if lowering.by_hand:
        _barrier(lowering, op, "what the load waits for, its fill does too")
    _fill(lowering, op, target)
    if lowering.by_hand:
        _barrier(lowering, op, "what waits for the load waits for its fill")


def _barrier(lowering: KernelLowering, op: tile.CopyOp, why: str) -> None:
    facts = Waits(source="ALL", target="ALL", before=location_of(op))
    barrier = lowering.emit.insert(hivm.PipeBarrierOp("ALL"))
    set_remark(barrier, Remark("lower-to-hivm", text=why, facts=facts))
    if (core := core_of(op)) != "either":
        say_core(barrier, core, lowering.chip)


def _rows_left(emit: OpBuilder, target: View, sizes: tuple[Value, ...]) -> View | None:
    """What a load of ``sizes`` leaves of a tile, where that is whole rows at its end.

    They are filled behind the load, with the vector work that waits for it anyway. Of other tiles all is filled in front of the
    load, which then waits for the Vector pipe: a load that should run ahead waits for the work of the iteration before.
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


def _stops_over(emit: OpBuilder, tile: View, tensor: View) -> bool:
    """Whether a DMA would have to reach rows of a tile in UB that do not start at blocks: it takes them from or to a tile whose
    rows do. What is of one piece on both sides is one row to it."""
    unit = BLOCK // tile.buffer.dtype.nbytes
    outer = [(stride, tile.sizes[axis], tile.offsets[axis])
             for axis, stride in enumerate(row_strides(emit, tile.buffer)[:-1])]
    loose = [(stride, size, start) for stride, size, start in outer if not isinstance(stride, int) or stride % unit]
    for stride, _, start in loose:
        if not (isinstance(start, int) and isinstance(stride, int) and start * stride % unit == 0):
            return True
    return any(size != 1 for _, size, _ in loose) and not (_one_piece(tile) and _one_piece(tensor))


def _one_piece(view: View) -> bool:
    """Whether the elements of a view of a buffer without gaps follow one another."""
    whole = True
    for size, have in zip(reversed(view.sizes), reversed(view.buffer.shape), strict=True):
        if not whole and size != 1:
            return False
        whole = whole and (size is have or (isinstance(size, int) and size == have))
    return True


def _short(source: View, target: View) -> bool:
    """Whether what is loaded leaves some of the destination to padding, wherever it starts."""
    return any(isinstance(have, int) and isinstance(want, int) and have < want
               for have, want in zip(source.shape, target.shape, strict=True))


def _fill(lowering: KernelLowering, op: tile.CopyOp, target: View) -> None:
    value = lowering.values[op.pad] if op.pad is not None else None
    target = lowering.signless(target)
    scalar = lowering.scalar(value if value is not None else 0, target.buffer.element)
    lowering.emit.insert(hivm.VBrcOp(scalar, materialise(lowering.emit, target, op)))


def _when(emit: OpBuilder, condition: SSAValue, body: Callable[[], None]) -> None:
    block = Block()
    with emit.inside(block):
        body()
        emit.insert(scf.YieldOp())
    emit.insert(scf.IfOp(condition, [], Region(block)))


def _require_one_type(op: tile.CopyOp, source: View, target: View, way: str, otherwise: str = "") -> None:
    """Refuse (T232) a copy along a way that converts nothing."""
    if source.buffer.dtype != target.buffer.dtype:
        raise refuse(op, f"{way} cannot convert {source.buffer.dtype} to {target.buffer.dtype}", "T232",
                     help=f"give both buffers the same element type{otherwise}")


def _gm_to_l1(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    _require_one_type(op, source, target, "GM to L1", ", or convert in UB")
    source, target = _as_matrices(source, target)
    sizes, partial = clip(emit, source)
    padded = _fractal_padding(target)
    short = _short(source, target) or (target.covers and _unlike(source, target))
    if op.pad is not None and (partial is not None or short):
        pad: SSAValue | None = lowering.scalar(lowering.values[op.pad], target.buffer.element)
    else:
        pad = lowering.scalar(0, target.buffer.element) if partial is not None or padded or short else None
    destination = materialise(emit, target, op, pads=pad is not None)
    if partial is not None:
        source = _cropped(emit, source, sizes)
    emit.insert(hivm.Nd2NzOp(
        materialise(emit, source, op), destination, dst_continuous=True, init_out_buffer=pad is not None, pad_value=pad,
        init_condition=partial if partial is not None and not padded and not short else None,
    ))


def _unlike(source: View, target: View) -> bool:
    """Whether only run time knows if what is loaded fills the destination."""
    return any(have is not want and not (isinstance(have, int) and isinstance(want, int))
               for have, want in zip(source.shape, target.shape, strict=True))


def _as_matrices(rows: View, fractal: View) -> tuple[View, View]:
    """A line of a tensor and one of fractals as matrices: a row, or a column where the fractal side has one.

    The other axis of the line is one that the view has dropped, where there is one on the right side, or one of its own.
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


def _fractal_padding(target: View) -> bool:
    """Whether the fractals of the destination hold more than the matrix."""
    assert isinstance(target.buffer.value.type, MemRefType)
    n1, m1, m0, n0 = target.buffer.value.type.get_shape()[-4:]
    rows, columns = target.buffer.shape[-2:]
    return target.sizes[-2:] == target.buffer.shape[-2:] and (rows != m1 * m0 or columns != n1 * n0)


def _l1_to_l0(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    """The load ahead of a T.mma: no op of HIVM's, hence a custom one that the simulator knows."""
    emit = lowering.emit
    _require_one_type(op, source, target, "L1 to L0")
    name = ("load_l0a" if target.buffer.space == "ca" else "load_l0b") + ("_transposed" if op.transpose is not None else "")
    ends = materialise(emit, source, op), materialise(emit, target, op)
    emit.insert(hivm.CustomOp(name, ends[:1], ends[1:], core="CUBE", pipe="MTE1", symbol=name))


def _ub_to_gm(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    if source.buffer.dtype != target.buffer.dtype:
        staged = lowering.scratch(source, target.buffer.element)
        convert(lowering, op, source, staged, _round_mode(op))
        source = staged
    if _stops_over(emit, source, target):
        staged = lowering.scratch(source, source.buffer.element)
        emit.insert(hivm.CopyOp(materialise(emit, source, op), materialise(emit, staged, op)))
        source = staged
    sizes, partial = clip(emit, target)
    if partial is not None:
        source, target = source.resized(sizes), _cropped(emit, target, sizes)
    emit.insert(hivm.StoreOp(materialise(emit, source, op), materialise(emit, target, op),
                             atomic="add" if op.atomic is not None else None))


def _l0c_out(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    kinds = (source.buffer.dtype.mlir, target.buffer.dtype.mlir)
    way = _way(lowering, source, target)
    quantisation = way.converts.get(kinds)
    if kinds[0] != kinds[1] and quantisation is None:
        raise refuse(op, f"L0C cannot be stored from {source.buffer.dtype} as {target.buffer.dtype}", "T232",
                     help="possible are the same type, float32 to float16 or bfloat16, and int32 to int8")
    to_gm = target.buffer.space == "gm"
    if target.buffer.dtype.bits > way.widest:
        raise refuse(op, f"L0C cannot be stored to L1 as {target.buffer.dtype}: its fractals are 16 x 16 and L1's 16 x 8",
                     "T232", help="store it as float16, or go through a global tensor")
    if to_gm:
        target, source = _as_matrices(target, source)
        sizes, partial = clip(emit, target)
        if partial is not None:
            target = _cropped(emit, target, sizes)
    places = materialise(emit, source, op), materialise(emit, target, op)
    if op.atomic is not None:
        emit.insert(hivm.SetAtomicOp("add", target.buffer.element))
    alone = _vector_cores(op) == 1 or not lowering.chip.crosses(way)
    for sub in [None] if alone or op.halves is not None else [0, 1]:  # each Vector core has a buffer of its own
        emit.insert(hivm.FixpipeOp(
            *places, dma_mode="normal" if target.buffer.fractal else "nz2nd", pre_quant=quantisation,
            pre_relu="NORMAL_RELU" if op.relu is not None else None,
            dual_dst_mode="ROW_SPLIT" if op.halves is not None else None, sub_block=sub))
    if op.atomic is not None:
        emit.insert(hivm.SetAtomicOp("none", target.buffer.element))


def _vector_cores(op: Operation) -> int:
    """The Vector cores that work on a block of the launch that an operation is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, tile.LaunchOp):
        parent = parent.parent_op()
    return parent.sub_blocks.value.data if parent is not None else 1


def _ub_to_l1(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    """The rows of a tile to fractals: the copy sees both as fractals, those in UB with their rows apart."""
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
    kind = MemRefType(fractals.element_type, sizes, layout, hivm.address_space(source.buffer.space))
    cast = emit.insert(memref.ReinterpretCastOp.from_dynamic(checked(emit, source), [offset], sizes, steps, kind))
    emit.insert(hivm.CopyOp(cast.result, place))


def _l1_to_gm(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
    emit = lowering.emit
    _require_one_type(op, source, target, "L1 to GM")
    target, source = _as_matrices(target, source)
    sizes, partial = clip(emit, target)
    if partial is not None:
        target = _cropped(emit, target, sizes)
    emit.insert(hivm.Nz2NdOp(materialise(emit, source, op), materialise(emit, target, op)))


def _ub_to(lowering: KernelLowering, op: tile.CopyOp, source: View, target: View) -> None:
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
    "copy": _ub_to,
}
"""How a copy becomes the op of HIVM that its path has."""

__all__ = ["clip", "lower_copy"]
