"""Lowering of the compute operations: elementwise, reductions, fills and broadcasts on the Vector core, gemm on the
Cube.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, StringAttr
from xdsl.ir import Operation, SSAValue

from tilelang_npu import ops
from tilelang_npu.analysis.cores import core_of, core_type
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.target import name_of
from tilelang_npu.transforms.infra.op_builder import Value
from tilelang_npu.transforms.lower.casts import convert
from tilelang_npu.transforms.lower.scaled_operands import lower_scaled_gemm
from tilelang_npu.transforms.lower.views import (
    FRACTAL_BYTES,
    FRACTAL_ROWS,
    View,
    broadcast_axes,
    materialise,
    require_movable,
)

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering


def lower_elementwise(lowering: KernelLowering, op: tile.ElementwiseOp) -> None:
    """Lowers an elementwise operation to one HIVM vector operation.

    A scalar operand becomes a constant of the element type, or a tile that is filled with the scalar if the HIVM operation
    takes no scalar in that position.
    """
    emit, entry, target = lowering.emit, op.entry(), lowering.view(op.target)
    if entry.result == "any":
        mode = op.attributes.get("round_mode")
        convert(lowering, op, lowering.view(op.inputs[0]), target, mode.data if isinstance(mode, StringAttr) else "rint")
        return
    operands: list[SSAValue] = []
    views: list[View] = []
    element = next((lowering.view(v).buffer.element for i, v in enumerate(op.inputs)
                    if isinstance(v.type, MemRefType) and not (entry.condition and i == 0)), target.buffer.element)
    for position, value in enumerate(op.inputs):
        if isinstance(value.type, MemRefType):
            view = lowering.view(value)
            views.append(view)
            operands.append(materialise(emit, view, op))
            continue
        scalar = lowering.scalar(lowering.values[value], element)
        if position in entry.scalar:
            operands.append(scalar)
        else:
            filled = lowering.scratch(target, element)
            place = materialise(emit, filled, op)
            emit.insert(hivm.VBrcOp(scalar, place))
            views.append(filled)
            operands.append(place)
    axes = broadcast_axes(views, target)
    if axes and not entry.broadcast:
        raise refuse(op, f"{entry.name} cannot broadcast an operand along axes of size 1", "T111",
                     help="broadcast the operand first (T.vbrc)")
    kinds = {view.buffer.dtype for view in views[1 if entry.condition else 0:]}
    for kind in kinds:
        if kind not in entry.dtypes:
            names = ", ".join(entry.dtypes)
            raise refuse(op, f"{entry.name} does not work on {kind}", "T110", notes=(f"it works on {names}",),
                         help="cast the operands first")
    clauses: dict[str, Any] = {
        name: value.data if isinstance(value, StringAttr) else bool(value.value.data)
        for name, value in op.attributes.items() if isinstance(value, (StringAttr, IntegerAttr))
    }
    if axes:
        clauses["broadcast"] = axes
    result = materialise(emit, target, op)
    _check_same_knowledge(op, [operand for operand in operands if isinstance(operand.type, MemRefType)], result)
    if isinstance(entry, ops.Composite) or entry.is_custom:  # an instruction, or a device function, that HIVM has no op for
        core = core_type(core_of(op))
        emit.insert(hivm.CustomOp(entry.name, operands, [result], core=core, pipe=entry.pipe, symbol=entry.symbol or entry.name,
                                  vf_mode=lowering.vector_mode(core)))
    else:
        emit.insert(hivm.elementwise_op(entry.hivm)(operands, [result], **clauses))


def _check_same_knowledge(op: Operation, operands: Sequence[SSAValue], result: SSAValue) -> None:
    """Refuses an operand of constant size whose result has a size that is known only at run time, and the reverse.
    """
    assert isinstance(result.type, MemRefType)
    for operand in operands:
        assert isinstance(operand.type, MemRefType)
        for axis, (size, wanted) in enumerate(zip(operand.type.get_shape(), result.type.get_shape(), strict=False)):
            if size != 1 and (size == DYNAMIC_INDEX) != (wanted == DYNAMIC_INDEX):
                one, other = "an operand", "the destination"
                known, unknown = (other, one) if size == DYNAMIC_INDEX else (one, other)
                raise refuse(op, f"{known} has {max(size, wanted)} elements along axis {axis}, and {unknown} a number of them"
                             " that only run time knows", "T111", help="slice both alike")


def lower_reduce(lowering: KernelLowering, op: tile.ReduceOp) -> None:
    """Lowers a reduction to ``hivm.hir.vreduce``.

    Without ``clear``, the result goes to a temporary tile, which is then combined with the destination.
    """
    emit, entry = lowering.emit, op.entry()
    source, target, dims = lowering.view(op.source), lowering.view(op.target), list(op.dims.get_values())
    if source.buffer.dtype not in entry.dtypes or source.buffer.dtype != target.buffer.dtype:
        raise refuse(op, f"{entry.name} does not reduce {source.buffer.dtype} to {target.buffer.dtype}", "T110",
                     notes=("it works on " + ", ".join(entry.dtypes) + ", the same type on both sides",),
                     help="cast the source first")
    result = lowering.scratch(target, target.buffer.element) if op.accumulate is not None else target
    kind = source.buffer.dtype
    emit.insert(hivm.VReduceOp(materialise(emit, source, op), materialise(emit, result, op), entry.mode, dims=dims,
                               unsigned=kind.is_integer and not kind.is_signed))
    if op.accumulate is not None:
        combine = ops.operation(entry.combine)
        place = materialise(emit, target, op)
        make = hivm.elementwise_op(combine.hivm)
        emit.insert(make([place, materialise(emit, result, op)], [place]))


def lower_fill(lowering: KernelLowering, op: tile.FillOp) -> None:
    """Lowers a fill to ``hivm.hir.vbrc`` of a scalar.

    Raises:
        TileError: T201, the buffer is in a memory that no instruction can fill.
    """
    target = lowering.view(op.target)
    require_movable(lowering.chip, op, target)
    if target.buffer.space not in ("ub", "cbuf"):
        place = name_of(target.buffer.space)
        raise refuse(op, f"{target.buffer.label} is in {place}, which no instruction can fill with a number", "T201",
                     help="fill a buffer in L1 or UB, and copy that")
    scalar = lowering.scalar(lowering.values[op.value], target.buffer.element)
    lowering.emit.insert(hivm.VBrcOp(scalar, materialise(lowering.emit, target, op)))


def lower_broadcast(lowering: KernelLowering, op: tile.BroadcastOp) -> None:
    """Lowers a broadcast to ``hivm.hir.vbrc`` of a tile along the tile's axes of size 1."""
    emit = lowering.emit
    source, target = lowering.view(op.source), lowering.view(op.target)
    require_movable(lowering.chip, op, source, target)
    axes = broadcast_axes([source], target)
    places = materialise(emit, source, op), materialise(emit, target, op)
    emit.insert(hivm.VBrcOp(*places, dims=axes) if axes else hivm.CopyOp(*places))


def _check_layout(lowering: KernelLowering, op: tile.GemmOp, matrix: View, rows: Value, columns: Value, axis: str, index: int,
                  ) -> None:
    """Refuses a product of a part of a matrix in L0 that was loaded as a whole, or the other way round (T123).

    L0A and L0B hold a matrix as rows of fractals, so the fractals of the second row begin where the number of columns that was
    loaded says. A product with another number of columns would read other fractals. With a single row of fractals there is no
    second row.

    Args:
        lowering: the lowering.
        op: the product.
        matrix: the operand in L0A or L0B.
        rows: the number of rows that the product reads: m or k.
        columns: the number of columns that the product reads: k or n.
        axis: the name of ``columns``.
        index: the position of the operand.
    """
    unit = FRACTAL_BYTES // matrix.buffer.dtype.nbytes if axis == "k" else FRACTAL_ROWS
    high = FRACTAL_ROWS if axis == "k" else FRACTAL_BYTES // matrix.buffer.dtype.nbytes
    loads = lowering.loaded_columns[matrix.buffer.value]
    if not loads or (isinstance(rows, int) and rows <= high):
        return

    def differ(loaded: Value) -> bool:
        if isinstance(loaded, int) and isinstance(columns, int):
            return -(-loaded // unit) != -(-columns // unit)
        return isinstance(loaded, int) is not isinstance(columns, int)

    if all(map(differ, loads)):
        known = [size for size in loads if isinstance(size, int)]
        loaded = f"{known[-1]}" if known else "a number that only run time knows"
        raise refuse(op, f"T.mma: {'AB'[index]} {matrix.buffer.label} was loaded with {axis} = {loaded}, and the product reads "
                     f"it with {axis} = {columns if isinstance(columns, int) else 'a number that only run time knows'}", "T123",
                     notes=(f"the distance between rows of fractals in {name_of(matrix.buffer.memory)} is {axis} at the load",),
                     help=f"give the load and the product the same number: T.copy(..., real_{axis}={axis}s) and T.mma(..., "
                          f"{axis}_actual={axis}s)")


def lower_gemm(lowering: KernelLowering, op: tile.GemmOp) -> None:
    """Lowers a matrix product to ``hivm.hir.mmadL1`` with the actual sizes of the matrices, without padding."""
    emit = lowering.emit
    a, b, c = (lowering.view(value) for value in (op.a, op.b, op.c))
    a_shape, b_shape = list(a.shape), list(b.shape)
    if op.is_packed:
        a_shape[1], b_shape[1] = emit.mul(a_shape[1], 2), emit.mul(b_shape[1], 2)
    m, k = a_shape[::-1] if op.transpose_a is not None else a_shape
    n = b_shape[0] if op.transpose_b is not None else b_shape[1]
    sizes: list[Value] = [m, k, n]
    if op.scale_a is not None:
        lower_scaled_gemm(lowering, op, sizes)
        return
    if a.buffer.space == "ca":
        _check_layout(lowering, op, a, m, k, "k", 0)
        _check_layout(lowering, op, b, k, n, "n", 1)
        ins = [materialise(emit, a, op), materialise(emit, b, op), lowering.values[op.init],
               *(emit.value(size) for size in sizes)]
        modes = [op.unit_flag] if op.unit_flag is not None else []
        if op.passes is not None:
            modes.append(hivm.UnitFlagAttr("ENABLED_WITH_UPDATE"))
            flag = arith.SelectOp(lowering.values[op.passes], emit.value(0b11), emit.value(0b10))
            ins.append(emit.insert(flag).result)
        made = emit.insert(hivm.CustomOp("mma", ins, [materialise(emit, c, op)], core="CUBE", pipe="M", symbol="mma"))
        if modes:
            made.attributes["unit_flag_mode"] = ArrayAttr(modes)
        return
    emit.insert(hivm.MmadL1Op(
        materialise(emit, a, op), materialise(emit, b, op), materialise(emit, c, op), lowering.values[op.init],
        *(emit.value(size) for size in sizes),
        a_transpose=op.transpose_a is not None, b_transpose=op.transpose_b is not None,
        i4=op.int4 is not None, unit_flags=() if op.unit_flag is None else (op.unit_flag.data,),
    ))
