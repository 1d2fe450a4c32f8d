"""``T.set_deq_scale``: sets a factor for later conversions from int32 to float16 (ascendc dialect)."""

from __future__ import annotations

import numpy as np

from tilelang_npu import ops
from tilelang_npu.errors import TileError
from tilelang_npu.language.allocate import alloc_ub
from tilelang_npu.language.elementwise import apply
from tilelang_npu.language.operands import element_count
from tilelang_npu.ops import DType, Elementwise
from tilelang_npu.traced.buffers import Addressable
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import convert, number
from tilelang_npu.traced.scalars import Expr

__all__ = ["is_dequantised", "scaled", "set_deq_scale"]


def set_deq_scale(scale: object) -> None:
    """Multiply the results of later conversions from int32 to float16 by ``scale``: ``T.tile.cast``, and ``T.copy`` within UB.

    The factor is rounded to float16, as in the register of the core.

    Example: ``T.set_deq_scale(0.125)``

    Raises:
        TileError: T110, the factor is not a number; T190, a conversion earlier in the same loop or branch would be affected.
    """
    what = "T.set_deq_scale"
    builder = Builder.running(what)
    builder.require_kernel(what)
    given = number(builder, scale)
    if isinstance(given, bool) or (isinstance(given, Expr) and given.kind == DType("bool")):
        raise TileError(f"{what}: the factor is {scale!r}", code="T110", help="the factor must be an integer or a float")
    if isinstance(given, (int, float)):
        kept: float | Expr = float(np.float16(given))
    else:
        kept = convert(builder, convert(builder, given, DType("float16")), DType("float32"))
    if any(len(_shared(path, builder.path)) > 1 for path in builder.scaled_at):
        raise TileError(f"{what} after a copy that uses the factor, in the same loop or branch, is not supported", code="T190",
                        help="set the factor before the loop, or before that copy")
    builder.scale = (kept, builder.path)


def is_dequantised(builder: Builder, source: Addressable, target: Addressable) -> bool:
    """Whether a conversion is multiplied by a factor: it is from int32 to float16, and ``T.set_deq_scale`` has set a factor.

    Args:
        builder: the trace.
        source, target: the operands of the conversion.

    Raises:
        TileError: T190, the factor was set in a loop or branch that has ended.
    """
    if str(source.dtype) != "int32" or str(target.dtype) != "float16" or builder.scale is None:
        return False
    path = builder.scale[1]
    if _shared(path, builder.path) != path:
        raise TileError("the factor of this conversion was set in a loop or branch that has ended", code="T190",
                        help="call T.set_deq_scale in the same loop or branch as the conversion, or outside of both")
    return True


def scaled(builder: Builder, what: str, source: Addressable, target: Addressable, mode: str) -> None:
    """Emits a conversion from int32 to float16 with the factor of ``T.set_deq_scale``.

    The operations are a conversion to float32, a multiplication by the factor, and one rounding to float16.

    Args:
        builder: the trace.
        what: the name of the call, for messages.
        source, target: the operands of the conversion.
        mode: the rounding mode of the op table, such as ``rint``.

    Raises:
        TileError: T190, the target's size is not constant.
    """
    assert builder.scale is not None
    builder.scaled_at.append(builder.path)
    sizes = list(target.extents)
    if element_count(target) is None:
        raise TileError(f"{what}: {target.describe()} has a size that is not constant", code="T190",
                        help="convert a buffer of constant size after T.set_deq_scale")
    wide = alloc_ub(sizes, "float32")
    cast, times = ops.operation("cast"), ops.operation("mul")
    assert isinstance(cast, Elementwise) and isinstance(times, Elementwise)
    apply(what, cast, [source], wide)
    if isinstance(builder.scale[0], Expr) or builder.scale[0] != 1:
        apply(what, times, [wide, builder.scale[0]], wide)
    apply(what, cast, [wide], target, {} if mode == "rint" else {"round_mode": mode})


def _shared(first: tuple[object, ...], second: tuple[object, ...]) -> tuple[object, ...]:
    """The common prefix of two paths of blocks, from the outermost."""
    count = 0
    while count < min(len(first), len(second)) and first[count] is second[count]:
        count += 1
    return first[:count]
