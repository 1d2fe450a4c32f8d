"""What a profile is made from: the launch of a kernel for arrays, for shapes, or for nothing but the kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.runtime.log import unheard
from tilelang_npu.runtime.profiler import TensorSupplyType, supply

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.result.profile.advice import Advice
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

__all__ = ["launch_of", "profile", "with_arrays"]


def profile(kernel: JITKernel, args: Sequence[Any], named: Mapping[str, Any], launch: AnyLaunch | None = None) -> Profile:
    """See ``JITKernel.profile``; of a ``launch``, where one is given."""
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

    return Profile(launch or launch_of(kernel, args, named), kernel.name, partial(_edits, kernel))


def _edits(kernel: JITKernel) -> list[Advice]:
    """The edits that win most: compiled, timed, and compared in values."""
    from tilelang_npu.simulator.result.profile.advice import Advice

    return [Advice(one.cause, one.text, one.place, one.before, one.after, "compiled") for one in kernel.explain().tried]


def launch_of(kernel: JITKernel, args: Sequence[Any] = (), named: Mapping[str, Any] | None = None) -> AnyLaunch:
    """A launch of a kernel: a trace where that tells what it does, else a run.

    Args:
        kernel: the kernel.
        args, named: as for a call, or shapes in place of arrays; without any, its last launch is taken where there was one.
    """
    if not args and not named and kernel.last_launch is not None:
        found: AnyLaunch = kernel.last_launch
        return found
    passed = kernel.positional(tuple(args), dict(named or {}))
    made_up = not passed or any(map(_is_shape, passed))
    launch = kernel.trace(*with_arrays(kernel, passed, lambda parameter, shape: np.empty(shape, parameter.dtype.numpy)))
    if launch is None:
        rng = np.random.default_rng(0)
        with unheard() if made_up else contextlib.nullcontext():  # of what comes of made-up inputs nobody wants to hear
            kernel(*with_arrays(kernel, passed, lambda parameter, shape: supply(
                parameter.dtype, shape, TensorSupplyType.Auto, rng)) or kernel.get_profiler().inputs())
        launch = kernel.last_launch
    assert launch is not None
    return launch


def _is_shape(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(size, int) for size in value)


def with_arrays(kernel: JITKernel, passed: Sequence[Any], make: Callable[[Parameter, Sequence[int]], Any]) -> list[Any]:
    """What is passed, with arrays in place of shapes; too many or too few are left to whoever takes them."""
    places = kernel.signature.passed(len(passed))
    if len(places) != len(passed):
        return list(passed)
    return [make(kernel.params[place], one) if _is_shape(one) else one for place, one in zip(places, passed, strict=True)]
