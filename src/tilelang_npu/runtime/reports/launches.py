"""Makes the launches that reports describe, from a call's arguments, from shapes, or from generated inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.profiler import Profiler, TensorSupplyType, make_array
from tilelang_npu.runtime.settings.log import silenced
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.reports.explanation import Explanation
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.result.profile.advice import Tried
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

_DECIDED_BY_DATA = {
    "branch": "which way a branch goes", "trips": "how often a loop runs", "place": "what is read or written",
    "flag": "which flag is meant", "extent": "how much an op works on"}
"""By kind of data dependence, the words for an error."""


class ExplainedKernel(Protocol):
    """The interface of a kernel that can report the decisions of the compiler."""

    name: str

    def explain(self, *, edits: bool = True) -> Explanation:
        """Returns the report of the compiler's decisions, which includes the source edits that save most time."""


def profile_of(kernel: ExplainedKernel, launch: AnyLaunch, *, is_of_generated_inputs: bool = False, edits: bool = True
               ) -> Profile:
    """Returns the profile of a kernel's launch. Its advice includes the edits that ``kernel.explain()`` has tried.

    Args:
        kernel, launch: the kernel and its launch.
        is_of_generated_inputs: whether the launch ran on generated inputs, on whose elements its time depends.
        edits: whether edits of the source are tried.
    """
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

    def tried() -> Tried:
        from tilelang_npu.runtime.reports.edit_trials import refuted_causes
        from tilelang_npu.simulator.result.profile.advice import Advice, Tried

        explanation = replace(kernel.explain(edits=edits), find_launch=lambda: launch)
        return Tried([Advice(one.cause, one.text, one.place, one.before, one.after, one.changes) for one in explanation.tried],
                     explanation.trial_note, refuted_causes(explanation.trials))

    return Profile(launch, kernel.name, tried, is_of_generated_inputs=is_of_generated_inputs)


def launch_of(kernel: CompiledKernel, args: Sequence[object] = (), named: Mapping[str, object] | None = None) -> AnyLaunch:
    """Returns a launch of a kernel for a report.

    The launch is a trace, in which no values are computed. If the kernel's control flow or addresses depend on the elements of
    arrays, the kernel is run.

    Args:
        kernel: the kernel.
        args, named: the arguments, as for a call; a tuple of sizes can replace an array, whose elements are generated if the
            kernel is run. Without arguments, the result is the last launch; if there was none, the arrays have the declared
            shapes.
    """
    return launch_on(kernel, args, named)[0]


def launch_on(kernel: CompiledKernel, args: Sequence[object], named: Mapping[str, object] | None) -> tuple[AnyLaunch, bool]:
    """As :func:`launch_of`; also returns whether the kernel was run on generated inputs."""
    if not args and not named and kernel.last_launch is not None:
        last: AnyLaunch = kernel.last_launch
        return last, False
    passed = kernel.positional(tuple(args), dict(named or {}))
    launch, made_up = kernel.trace(*arrays_for_shapes(kernel, passed, _empty)), False
    if launch is None:
        rng = np.random.default_rng(0)
        made_up = not passed or any(map(_is_shape, passed))
        with silenced() if made_up else contextlib.nullcontext():  # warnings of made-up inputs do not concern the user
            kernel(*arrays_for_shapes(kernel, passed, lambda parameter, shape: make_array(
                parameter.dtype, shape, TensorSupplyType.Auto, rng)) or Profiler(kernel).inputs())
        launch = kernel.last_launch
    assert launch is not None
    return launch, made_up


def estimate(kernel: CompiledKernel, args: Sequence[object]) -> AnyLaunch:
    """Returns the launch of a call with its modelled times, without computing values.

    Args:
        kernel: the kernel.
        args: the arguments, as for a call; a tuple of sizes can replace an array. Without arguments, the arrays have the
            declared shapes.

    Raises:
        TileError: T421 the kernel's control flow or addresses depend on the elements of arrays; T401 to T407 an argument does
            not fit.
    """
    called = user_location()
    if not args and (kernel.signature.symbols or any(parameter.shape is None for parameter in kernel.params)):
        kernel.signature.bind(args)  # raises an error that names the missing arguments
    launch = kernel.trace(*arrays_for_shapes(kernel, args, _empty))
    if launch is not None:
        return launch
    use = next(use for program in kernel.programs for function in program.traced for use in function.data.uses)
    raise TileError(f"{kernel.name} cannot be estimated without data: they decide {_DECIDED_BY_DATA[use.what]}", code="T421",
                    location=use.location, notes=(f"in the call at {called}",) if called else (),
                    help="call the kernel on arrays and read kernel.last_launch")


def arrays_for_shapes(kernel: CompiledKernel, passed: Sequence[object], make: Callable[[Parameter, Sequence[int]], object]
                      ) -> list[object]:
    """Returns the arguments of a call with each tuple of sizes replaced by an array of this shape.

    If the number of arguments is wrong, they are returned unchanged, and the call that gets them raises the error.

    Args:
        kernel: the kernel.
        passed: the arguments.
        make: makes an array for a parameter and a shape.
    """
    positions = kernel.signature.positions_passed(len(passed))
    if len(positions) != len(passed):
        return list(passed)
    return [make(kernel.params[position], one) if _is_shape(one) else one
            for position, one in zip(positions, passed, strict=True)]


def _empty(parameter: Parameter, shape: Sequence[int]) -> np.ndarray:
    return np.empty(parameter.array_shape(shape), parameter.array_dtype)


def _is_shape(value: object) -> TypeGuard[Sequence[int]]:
    return isinstance(value, (tuple, list)) and all(isinstance(size, int) for size in value)
