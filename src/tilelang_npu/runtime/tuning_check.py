"""Whether a configuration's numbers are right: a run on inputs, compared with a reference, or with another configuration."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import TileError, doors
from tilelang_npu.runtime.edited import seen_by_callers
from tilelang_npu.runtime.edits import results_of
from tilelang_npu.runtime.log import warn_at
from tilelang_npu.runtime.profiler import Profiler, TensorSupplyType, compare
from tilelang_npu.runtime.tensors import as_array, is_tensor
from tilelang_npu.runtime.tuning_search import Config
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["Check", "TuningProfile", "set_autotune_inputs"]


@dataclass(frozen=True)
class TuningProfile:
    """How configurations are run and compared; the arguments of ``set_profile_args``."""

    supply_type: TensorSupplyType = TensorSupplyType.Auto
    ref_prog: Callable[..., Any] | None = None
    supply_prog: Callable[..., Any] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., Any] | None = None
    cache_input_tensors: bool = False


_INPUTS = threading.local()


@contextmanager
def set_autotune_inputs(*tensors: Any) -> Iterator[None]:
    """Inputs for the tuning that happens inside the ``with``: one list, or the tensors one by one."""
    listed = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    before, _INPUTS.tensors = getattr(_INPUTS, "tensors", None), listed
    try:
        yield
    finally:
        _INPUTS.tensors = before


class Check:
    """Inputs and what should come out of them.

    Args:
        profile: how configurations are run and compared.
        standard: gives the configuration that the others are compared with where there is no reference, and its kernel.

    Attributes:
        latency: milliseconds that the reference took on the host; None without one.
    """

    def __init__(self, profile: TuningProfile, standard: Callable[[], tuple[Config, JITKernel] | None]) -> None:
        self.profile = profile
        self.latency: float | None = None
        self._standard = standard
        self._inputs: list[Any] | None = None
        self._warned = False

    def is_of_kernels_alone(self) -> bool:
        """Whether its answer follows from the kernels: they run on made-up inputs, and are compared with each other."""
        profile = self.profile
        return profile.ref_prog is None and profile.supply_prog is None and getattr(_INPUTS, "tensors", None) is None

    def _supply(self, kernel: JITKernel, config: Config) -> list[Any]:
        given = getattr(_INPUTS, "tensors", None)
        if given is not None:
            return list(given)
        if self.profile.cache_input_tensors and self._inputs is not None:
            return self._inputs
        supply = self.profile.supply_prog
        if supply is None:
            self._inputs = Profiler(kernel, self.profile.supply_type).inputs()
        else:
            wants = len(inspect.signature(supply).parameters)
            self._inputs = list(supply(list(kernel.params), dict(config)) if wants > 1 else supply(list(kernel.params)))
        return self._inputs

    def measure(self, kernel: JITKernel, config: Config) -> float:
        """Modelled milliseconds of a run whose results are right.

        Raises:
            AssertionError: they are not.
            TileError: what the run raises.
        """
        inputs = self._supply(kernel, config)
        profiler, profile = Profiler(kernel), self.profile
        checked = profile.ref_prog is not None and not profile.skip_check
        if checked and not kernel.out_idx:
            checked = False
            self._warn(f"ref_prog is compared with nothing: {kernel.name} returns nothing",
                       "name its results in out_idx, or pass skip_check=True")
        if checked and profile.manual_check_prog is not None:
            profiler.manual_assert_close(self._timed, inputs, profile.manual_check_prog)
        elif checked:
            profiler.assert_allclose(self._timed, inputs, profile.atol, profile.rtol, profile.max_mismatched_ratio)
        elif profile.ref_prog is None and not profile.skip_check:
            self._compare_with_standard(kernel, inputs)
        else:
            kernel(*inputs)
        assert kernel.last_launch is not None
        return kernel.last_launch.time_us / 1000

    def _compare_with_standard(self, kernel: JITKernel, inputs: Sequence[Any]) -> None:
        """Run the kernel; what it writes is what the kernel of the standard configuration writes.

        Raises:
            AssertionError: it is not.
        """
        standard = self._standard()
        if standard is None or standard[1] is kernel:
            kernel(*inputs)
            return
        config, other = standard
        if seen_by_callers(other.params, other) != seen_by_callers(kernel.params, kernel):
            self._warn(f"{kernel.name} is compared with nothing: with {dict(config)} it has other parameters",
                       "give a ref_prog, or pass skip_check=True")
            kernel(*inputs)
            return
        try:
            wanted = results_of(other, [_copied(one) for one in inputs])
        except TileError as error:
            self._warn(f"{kernel.name} is compared with nothing: with {dict(config)} it fails: {error.code}: {error.message}",
                       "give a ref_prog, or pass skip_check=True")
            kernel(*inputs)
            return
        made = kernel(*inputs)
        returned = dict(zip(kernel.out_idx, made if isinstance(made, list) else [made], strict=True)) if kernel.out_idx else {}
        made_here = {*kernel.out_idx, *kernel.workspace_idx}
        passed = [position for position in range(len(kernel.params)) if position not in made_here]
        found = {**dict(zip(passed, inputs, strict=True)), **returned}
        written = [position for position in sorted(kernel.signature.written) if position not in kernel.workspace_idx]
        profile = self.profile
        try:
            for position, result in zip(written, wanted, strict=True):
                compare(kernel.params[position].name, found[position], result, profile.atol, profile.rtol,
                        profile.max_mismatched_ratio)
        except AssertionError as error:
            msg = f"{error}, from what it is with {dict(config)}"
            raise AssertionError(msg) from None

    def _warn(self, message: str, advice: str) -> None:
        if not self._warned:
            self._warned = True
            warn_at(TileError(message, code="T732", location=user_location(), help=advice))

    def _timed(self, *inputs: Any) -> Any:
        assert self.profile.ref_prog is not None
        started = time.perf_counter()
        results = self.profile.ref_prog(*inputs)
        elapsed = (time.perf_counter() - started) * 1000
        self.latency = elapsed if self.latency is None else min(self.latency, elapsed)
        return results


def _copied(value: Any) -> Any:
    return as_array(value).copy() if is_tensor(value) else value


doors(globals())
