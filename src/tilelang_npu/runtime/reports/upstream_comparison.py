"""Compares the times of a kernel as TileLang-Ascend compiles it and as this package compiles it (``run --as upstream``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.log import silenced

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.result.profile.comparison import Comparison

OWN, UPSTREAM = "compiled by tilelang_npu", "compiled by TileLang-Ascend"


def compare_with_own(kernel: CompiledKernel, launch: AnyLaunch) -> Comparison | None:
    """Compares a launch of a kernel that was compiled as TileLang-Ascend does with a trace of it compiled by this package.

    Args:
        kernel: the kernel, compiled with ``TILELANG_NPU_AS=upstream``.
        launch: a launch of this kernel.

    Returns:
        The comparison of the two profiles, line by line. None if the kernel cannot be compiled again, or cannot be timed
        without the arguments of a call.
    """
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

    try:
        with silenced(), environment.AS.overridden(""):
            own = type(kernel)(kernel.prim_func, kernel._settings).trace()
    except TileError:  # for example a kernel from a pickle, which has no source
        return None
    if own is None:
        return None
    found = Profile(own, kernel.name).compare(Profile(launch, kernel.name))
    return replace(found, first=f"{kernel.name} {OWN}", second=UPSTREAM)


__all__ = ["compare_with_own"]
