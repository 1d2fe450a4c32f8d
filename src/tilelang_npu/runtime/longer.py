"""The kernel for arrays that have more rows than it declares, which the npuir dialect accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilelang_npu.errors import TileError
from tilelang_npu.language.functions import AbsentFunc
from tilelang_npu.runtime.log import warn_at
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.factory import Settings
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["longer"]


def longer(kernel: JITKernel, settings: Settings, lengths: Mapping[str, int]) -> JITKernel:
    """Compile a kernel again, for other lengths; its author is warned that they are not those declared.

    Args:
        kernel: the kernel.
        settings: what it was compiled with.
        lengths: of the first axis, by parameter.

    Raises:
        TileError: T403, the kernel is wrong for these lengths; T734, it comes from a pickle.
    """
    try:
        made = type(kernel)(kernel.prim_func, settings, lengths)
    except TileError as error:
        if isinstance(kernel.prim_func, AbsentFunc):
            raise
        parameter = next(one for one in kernel.params if one.name in lengths)
        called = user_location()
        raise TileError(
            f"{parameter.name} has shape {list(parameter.shape or ())}; the array has {lengths[parameter.name]} rows, and "
            "the kernel cannot take them all", code="T403", location=parameter.location,
            notes=(*([f"in the call at {called}"] if called else ()), f"at {error.location}: {error.message}"),
            help="pass an array of this shape, or make the kernel for that one") from None
    for parameter in kernel.params:
        rows = lengths.get(parameter.name)
        if rows is not None:
            warn_at(TileError(
                f"{parameter.name} has shape {list(parameter.shape or ())}; the array has {rows} rows, all of which the "
                "kernel can reach", code="T411", location=parameter.location, help="declare the shape of the array"))
    return made
