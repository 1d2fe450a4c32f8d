"""Lowering of products of MX matrices to ``hivm.hir.mmadmxL1``, and the buffers of their scales.

HIVM has the scales of the left matrix as [M, K / 32] and those of the right matrix as [N, K / 32], row by row in L1. In the
tile dialect the scales of the right matrix are [K / 32, N]; a view of the lowered buffer has its axes in this order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import SSAValue

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.ops.scale_layouts import FORMATS, GROUP, SCALE_LAYOUTS
from tilelang_npu.transforms.infra.op_builder import Value
from tilelang_npu.transforms.lower.views import LoweredBuffer, View, bounds_checked, first_element, materialise, row_strides

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering


def scale_buffers(kernel: func.FuncOp) -> dict[SSAValue, str]:
    """Returns the allocations that hold scales of MX matrices, each with the side of the matrix, ``a`` or ``b``.

    Raises:
        TileError: T190, a buffer has scales of a left and of a right matrix.
    """
    found: dict[SSAValue, str] = {}
    for op in kernel.walk():
        ends: list[tuple[SSAValue, str]] = []
        if isinstance(op, tile.GemmOp) and op.scale_a is not None and op.scale_b is not None:
            ends = [(op.scale_a, "a"), (op.scale_b, "b")]
        elif isinstance(op, tile.CopyOp) and op.scales is not None:
            ends = [(op.target, SCALE_LAYOUTS[op.scales.data].side)]
        for value, side in ends:
            if found.setdefault(root_of(value), side) != side:
                raise refuse(op, "a buffer has the scales of a left and of a right matrix, which HIVM arranges differently",
                             "T190", help="use a buffer for each of them (T.alloc_L1_scale_a, T.alloc_L1_scale_b)")
    return found


def allocate_scales(lowering: KernelLowering, op: tile.AllocOp, side: str) -> View:
    """Emits the allocation of a buffer of scales and returns its view, with the axes of the tile dialect.

    Raises:
        TileError: T201, the buffer is not in L1.
    """
    kind, space = op.result.type, space_of(op.result)
    assert isinstance(kind, MemRefType)
    shape = list(kind.get_shape())
    if space != "cbuf":
        raise refuse(op, f"{op.label.data} holds scales of a matrix, and is not in L1", "T201",
                     help="allocate it with T.alloc_L1_scale_a or T.alloc_L1_scale_b")
    axes = list(range(len(shape)))
    if side == "b":
        shape[-2:] = shape[:-3:-1]
        axes[-2:] = axes[:-3:-1]
    memory = hivm.address_space(space)
    made = lowering.emit.insert(memref.AllocOp([], [], MemRefType(kind.element_type, shape, memory_space=memory)))
    made.memref.name_hint = escape_name(op.label.data)
    buffer = LoweredBuffer(made.memref, space, tuple(shape), op.label.data, scales=True)
    return View(buffer, (0,) * len(shape), tuple(shape), tuple(axes))


def row_wise(view: View) -> View:
    """Returns a view of scales with the axes in the order of HIVM, the groups along K last."""
    return replace(view, axes=tuple(sorted(axis for axis in view.axes if axis is not None)))


def paired(lowering: KernelLowering, scales: View) -> SSAValue:
    """Returns scales [..., K / 32], in the order of HIVM, as a memref of pairs [..., K / 64, 2]."""
    emit = lowering.emit
    source = bounds_checked(emit, scales)
    assert isinstance(source.type, MemRefType)
    strides = row_strides(emit, scales.buffer)
    kept = [axis for axis in scales.axes if axis is not None]
    sizes: list[Value] = [*(scales.sizes[axis] for axis in kept[:-1]), emit.floordiv(scales.sizes[kept[-1]], 2), 2]
    steps: list[Value] = [*(strides[axis] for axis in kept[:-1]), 2, 1]
    offset = first_element(emit, scales)
    layout = StridedLayoutAttr([step if isinstance(step, int) else None for step in steps],
                               offset if isinstance(offset, int) else None)
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    kind = MemRefType(source.type.element_type, shape, layout, source.type.memory_space)
    made: SSAValue = emit.insert(memref.ReinterpretCastOp.from_dynamic(source, [offset], sizes, steps, kind)).result
    return made


def lower_scaled_gemm(lowering: KernelLowering, op: tile.GemmOp, sizes: list[Value]) -> None:
    """Lowers a product of MX matrices: to ``mmadmxL1``, or with matrices in L0 to the custom op ``mma_mx``.

    Args:
        lowering: the lowering.
        op: the product.
        sizes: the sizes M, K and N.

    Raises:
        TileError: T110, the chip has no such products.
    """
    emit, chip = lowering.emit, lowering.chip
    assert op.scale_a is not None and op.scale_b is not None
    if not chip.features.block_scales:
        others = [one.name for one in chips.chips() if one.features.block_scales]
        raise refuse(op, f"{chip.name} has no products of MX matrices", "T110",
                     help=f"compile for {' or '.join(others)}, or scale the sums of a T.gemm for each {GROUP} elements along k")
    a, b, c = (lowering.view(value) for value in (op.a, op.b, op.c))
    matrices = [materialise(emit, view, op) for view in (a, b)]
    scales = [materialise(emit, row_wise(lowering.view(value)), op) for value in (op.scale_a, op.scale_b)]
    result = materialise(emit, c, op)
    number = None if op.format is None else FORMATS[op.format.data]
    numbers = [emit.value(size) for size in sizes]
    if a.buffer.space == "ca":
        made = emit.insert(hivm.CustomOp(hivm.MMA_MX, [*matrices, *scales, lowering.values[op.init], *numbers], [result],
                                         core="CUBE", pipe="M", symbol=hivm.MMA_MX))
        if number is not None:
            made.attributes["format"] = hivm.mx_format(number)
        return
    held = None if number is None else hivm.mx_format(number)
    emit.insert(hivm.MmadMxL1Op(
        a=matrices[0], b=matrices[1], scaleA=scales[0], scaleB=scales[1], init_condition=lowering.values[op.init],
        real_m=numbers[0], real_k=numbers[1], real_n=numbers[2], c=result, lhsFormat=held, rhsFormat=held,
        a_transpose=op.transpose_a, b_transpose=op.transpose_b))


__all__ = ["allocate_scales", "lower_scaled_gemm", "paired", "row_wise", "scale_buffers"]
