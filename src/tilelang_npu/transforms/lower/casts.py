"""Emits conversions of tiles between element types: one operation of the Vector core per step of ``analysis.cast_paths``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation

from tilelang_npu.analysis.cast_paths import BITS, CLAMP, ZERO_EXTEND, CastStep, cast_path
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hivm
from tilelang_npu.ops import DType
from tilelang_npu.transforms.lower.views import View, broadcast_axes, materialise

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering


def convert(lowering: KernelLowering, op: Operation, source: View, target: View, mode: str) -> None:
    """Emits the operations for ``target = cast(source)`` in UB, one per conversion step that the hardware supports.

    Axes of size 1 in the source are repeated if the target is larger along them.

    Args:
        lowering: the lowering of the kernel.
        op: the operation that needs the conversion, for errors.
        source: the tile to convert.
        target: the tile to write; its element type is the result type.
        mode: the rounding mode (``rint``, ``round``, ``floor``, ``ceil``, ``trunc`` or ``odd``).

    Raises:
        TileError: T234, the hardware has no conversion between the two types, or none with this rounding mode.
    """
    kinds = (source.buffer.dtype, target.buffer.dtype)
    on_registers = lowering.chip.features.vector_registers
    path = cast_path(*kinds, mode, on_registers)
    if path is None:
        modes = [other for other in ("rint", "round", "floor", "ceil", "trunc", "odd")
                 if cast_path(*kinds, other, on_registers) is not None]
        raise refuse(op, f"there is no conversion from {kinds[0]} to {kinds[1]} with the rounding mode {mode}", "T234",
                     notes=(f"{source.buffer.label} is {kinds[0]}, {target.buffer.label} is {kinds[1]}",),
                     help=f"use one of the rounding modes {', '.join(modes)}" if modes else _advice(*kinds))
    if all(step.how == BITS for step in path):
        _copy_elements(lowering, op, lowering.seen_as(source, target.buffer.element), target)
        return
    steps, landing = list(path), target
    if steps[-1].how == BITS:  # the destination itself, seen as the type of the step before
        steps.pop()
        landing = lowering.seen_as(target, lowering.type_of(steps[-1].kind))
    current = source
    for place, step in enumerate(steps):
        if step.how == BITS:
            current = lowering.seen_as(current, lowering.type_of(step.kind))
        elif step.how in (ZERO_EXTEND, CLAMP):
            _limit_to_type(lowering, op, current, step)
        else:
            reached = all(other.how in (ZERO_EXTEND, CLAMP) for other in steps[place + 1:])
            current = _emit_cast(lowering, op, current, landing if reached else None, step, like=target)


def _advice(source: DType, target: DType) -> str:
    """Returns the advice for a pair of types that no rounding mode converts."""
    if source.is_integer and target.is_integer:
        return "store each element in a T.Parallel, which keeps the low bits"
    if "uint64" in (source, target):
        return "store each element in a T.Parallel, which converts them one by one"
    return "convert to float16 or float32 first"


def _copy_elements(lowering: KernelLowering, op: Operation, source: View, target: View) -> None:
    """Copy elements of one type; unit axes repeat."""
    emit, axes = lowering.emit, broadcast_axes([source], target)
    places = materialise(emit, source, op), materialise(emit, target, op)
    emit.insert(hivm.VBrcOp(*places, dims=axes) if axes else hivm.CopyOp(*places))


def _emit_cast(lowering: KernelLowering, op: Operation, source: View, target: View | None, step: CastStep, *, like: View
               ) -> View:
    """Emits one ``vcast``, to ``target`` or to a new tile, and returns where the result is."""
    emit = lowering.emit
    landing = lowering.scratch(like, lowering.type_of(step.kind)) if target is None else target
    unsigned = any(side.is_integer and not side.is_signed for side in (source.buffer.dtype, step.kind))
    emit.insert(hivm.VCastOp([materialise(emit, source, op)], [materialise(emit, landing, op)], round_mode=step.how,
                             cast="cast_unsigned" if unsigned else "cast_signed", broadcast=broadcast_axes([source], landing)))
    return landing


def _limit_to_type(lowering: KernelLowering, op: Operation, view: View, step: CastStep) -> None:
    """Clear the bits of a tile above those of a narrower unsigned type, or clamp its integers to the range of that type."""
    assert step.of is not None
    emit, element, place = lowering.emit, lowering.type_of(step.kind), materialise(lowering.emit, view, op)
    if step.how == ZERO_EXTEND:
        by = emit.constant(step.kind.bits - step.of.bits, element)
        emit.insert(hivm.elementwise_op("vshl")([place, by], [place]))
        emit.insert(hivm.elementwise_op("vshr")([place, by], [place], round=False, is_signed=False))
        return
    emit.insert(hivm.elementwise_op("vmax")([place, emit.constant(0, element)], [place]))
    emit.insert(hivm.elementwise_op("vmin")([place, emit.constant(_largest_value(step.of), element)], [place]))


def _largest_value(kind: DType) -> int:
    return (1 << kind.bits) - 1
