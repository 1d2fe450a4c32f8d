"""Runs configurations, and compares their results with those of a reference program or of another configuration."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilelang_npu.errors import TileError, doors
from tilelang_npu.runtime.arguments.tensors import as_array, is_tensor
from tilelang_npu.runtime.reports.edit_trials import results_of
from tilelang_npu.runtime.reports.kernel_edits import parameters_for_callers
from tilelang_npu.runtime.reports.profiler import Profiler, TensorSupplyType, compare
from tilelang_npu.runtime.settings.log import warn_at
from tilelang_npu.runtime.tuning.tuning_search import Config
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel


@dataclass(frozen=True)
class TuningProfile:
    """How the configurations of a tuning are run, and how their results are checked.

    Attributes:
        supply_type: how the elements of generated inputs are chosen.
        ref_prog: a function of the inputs that returns the right results, on the host.
        supply_prog: a function that returns the inputs. It gets the list of the parameters that a call takes; if it has two
            parameters, the list of all parameters of the kernel, and the configuration. None for generated inputs.
        rtol, atol: the relative and the absolute tolerance of the comparison of floats.
        max_mismatched_ratio: the share of elements, from 0 to 1, that can be beyond the tolerance.
        skip_check: whether results are not checked at all.
        manual_check_prog: a function that compares results with those of ``ref_prog`` in place of the tolerances.
        cache_input_tensors: whether all configurations run on the same inputs.
        sizes: the values of symbolic sizes and of number parameters in generated inputs, by name.
    """

    supply_type: TensorSupplyType = TensorSupplyType.Auto
    ref_prog: Callable[..., object] | None = None
    supply_prog: Callable[..., Iterable[object]] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., object] | None = None
    cache_input_tensors: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)


_INPUTS = threading.local()


@contextmanager
def set_autotune_inputs(*tensors: object) -> Iterator[None]:
    """Sets the inputs on which configurations run in tunings inside the ``with`` statement.

    Args:
        tensors: the inputs of the kernel in order, as separate arguments or as one list.
    """
    listed = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    before, _INPUTS.tensors = getattr(_INPUTS, "tensors", None), listed
    try:
        yield
    finally:
        _INPUTS.tensors = before


class ResultCheck:
    """Runs configurations on inputs and checks their results.

    Args:
        profile: how configurations are run and checked.
        standard: returns the configuration with whose results others are compared if there is no reference program, and the
            kernel of this configuration; None if there is none.

    Attributes:
        latency: the shortest time that the reference program took on the host, in milliseconds; None without a reference.
    """

    def __init__(self, profile: TuningProfile, standard: Callable[[], tuple[Config, CompiledKernel] | None]) -> None:
        self.profile = profile
        self.latency: float | None = None
        self._standard = standard
        self._inputs: list[object] | None = None
        self._warned = False

    def depends_on_kernels_alone(self) -> bool:
        """Whether the outcome of a check depends only on the kernels: they run on generated inputs, and are compared with each
        other.
        """
        return self.profile.ref_prog is None and self.generates_inputs

    @property
    def generates_inputs(self) -> bool:
        """Whether kernels run on generated inputs, not on those of a caller or of ``supply_prog``."""
        return self.profile.supply_prog is None and getattr(_INPUTS, "tensors", None) is None

    def _inputs_for(self, kernel: CompiledKernel, config: Config) -> list[object]:
        given = getattr(_INPUTS, "tensors", None)
        if given is not None:
            return list(given)
        if self.profile.cache_input_tensors and self._inputs is not None:
            return self._inputs
        supply = self.profile.supply_prog
        if supply is None:
            self._inputs = Profiler(kernel, self.profile.supply_type).inputs(self.profile.sizes)
        else:
            if len(inspect.signature(supply).parameters) > 1:
                self._inputs = list(supply(list(kernel.params), dict(config)))
            else:
                made = {*kernel.out_idx, *kernel.workspace_idx}
                self._inputs = list(supply([one for position, one in enumerate(kernel.params) if position not in made]))
        return self._inputs

    def measure(self, kernel: CompiledKernel, config: Config) -> float:
        """Runs a configuration's kernel, checks its results, and returns the modelled milliseconds of the run.

        Raises:
            AssertionError: the results are wrong.
            TileError: an error of the run.
        """
        inputs = self._inputs_for(kernel, config)
        profiler, profile = Profiler(kernel), self.profile
        checked = profile.ref_prog is not None and not profile.skip_check
        if checked and not kernel.out_idx:
            checked = False
            self._warn(f"ref_prog is compared with nothing: {kernel.name} returns no results",
                       "name its results in out_idx, or pass skip_check=True")
        if checked and profile.manual_check_prog is not None:
            profiler.manual_assert_close(self._timed_reference, inputs, profile.manual_check_prog)
        elif checked:
            profiler.assert_allclose(self._timed_reference, inputs, profile.atol, profile.rtol, profile.max_mismatched_ratio)
        elif profile.ref_prog is None and not profile.skip_check:
            self._compare_with_standard(kernel, inputs)
        else:
            kernel(*inputs)
        assert kernel.last_launch is not None
        return kernel.last_launch.time_us / 1000

    def _compare_with_standard(self, kernel: CompiledKernel, inputs: Sequence[object]) -> None:
        """Runs the kernel, and compares the arrays that it writes with those of the standard configuration's kernel.

        Raises:
            AssertionError: the arrays differ by more than the tolerances.
        """
        standard = self._standard()
        if standard is None or standard[1] is kernel:
            kernel(*inputs)
            return
        config, other = standard
        if parameters_for_callers(other.params, other) != parameters_for_callers(kernel.params, kernel):
            self._warn(f"the results of {kernel.name} are not checked: with {dict(config)}, which they are compared with, the "
                       "kernel has other parameters",
                       "give a ref_prog, or pass skip_check=True")
            kernel(*inputs)
            return
        try:
            wanted = results_of(other, [as_array(one).copy() if is_tensor(one) else one for one in inputs])
        except TileError as error:
            self._warn(f"the results of {kernel.name} are not checked: with {dict(config)}, which they are compared with, the "
                       f"kernel fails: {error.code}: {error.message}",
                       "give a ref_prog, or pass skip_check=True")
            kernel(*inputs)
            return
        results = kernel(*inputs)
        returned = dict(zip(kernel.out_idx, results if isinstance(results, list) else [results], strict=True)
                        ) if kernel.out_idx else {}
        found = {**dict(zip(kernel.signature.inputs, inputs, strict=True)), **returned}
        written = [position for position in sorted(kernel.signature.written) if position not in kernel.workspace_idx]
        profile = self.profile
        try:
            for position, result in zip(written, wanted, strict=True):
                compare(kernel.params[position].name, found[position], result, profile.atol, profile.rtol,
                        profile.max_mismatched_ratio)
        except AssertionError as error:
            msg = f"{error}, from the result with {dict(config)}"
            raise AssertionError(msg) from None

    def _warn(self, message: str, advice: str) -> None:
        if not self._warned:
            self._warned = True
            warn_at(TileError(message, code="T732", location=user_location(), help=advice))

    def _timed_reference(self, *inputs: object) -> object:
        assert self.profile.ref_prog is not None
        started = time.perf_counter()
        results = self.profile.ref_prog(*inputs)
        elapsed = (time.perf_counter() - started) * 1000
        self.latency = elapsed if self.latency is None else min(self.latency, elapsed)
        return results


doors(globals())
