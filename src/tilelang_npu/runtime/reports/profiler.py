"""Times kernels, and compares their results with references. Times are modelled: those of the chip, not of the simulation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import TileError, door, doors, meant
from tilelang_npu.runtime.arguments.tensors import Array, as_array, is_tensor, like_caller
from tilelang_npu.runtime.kernel.listeners import Listener, listen
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.ops import DType
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding

__all__ = ["Milliseconds", "Profiler", "TensorSupplyType", "compare", "do_bench", "get_tensor_supply", "make_array"]


class TensorSupplyType(Enum):
    """The values of made-up inputs."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


class Milliseconds(float):
    """A time in milliseconds: a float whose ``repr`` shows the error of the model.

    Attributes:
        error: the relative error of a modelled time; None if it is not known, and for times that were measured on the host.
    """

    error: float | None

    def __new__(cls, value: float, error: float | None = None) -> Milliseconds:
        """Makes a time with its error."""
        made = super().__new__(cls, value)
        made.error = error
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return Milliseconds, (float(self), self.error)

    def __repr__(self) -> str:
        return float.__repr__(self) if self.error is None else f"{float(self):.4g} ms +- {100 * self.error:.0f} %"

    def __str__(self) -> str:
        return float.__repr__(self)


_MODES = ("min", "max", "mean", "median")


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,  # this and the following arguments have a meaning on a device, where times vary from run to run
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    grad_to_none: object = None,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    return_mode: str = "mean",
    backend: str = "event",
) -> float | list[float]:
    """Returns the milliseconds of one call of ``fn``; for kernels, ``.error`` is the error of the model.

    If ``fn`` runs kernels, this is the modelled time of these kernels on their chip: ``fn`` is called once, as every call has
    the same time. If it runs none (a reference in NumPy, say), it is the host's time, the median of three calls.

    Args:
        fn: the function to time, without arguments.
        quantiles: if given, the result is a list with the time once per quantile.

    The other arguments are TileLang's, and have no effect.

    Raises:
        TileError: T707, there is no such ``return_mode``.
    """
    if return_mode not in _MODES:
        raise TileError(f"do_bench has no return_mode {return_mode!r}", code="T707", location=user_location(),
                        help=f"one of {', '.join(_MODES)}; a modelled time is the same in each run, so they give the same")
    with listen(runs := _KernelTimes()):
        started = time.perf_counter()
        fn()
        elapsed = [time.perf_counter() - started]
    if runs.times:
        from tilelang_npu.simulator.result.call_launches import mean_error

        milliseconds = Milliseconds(sum(time_us for time_us, _ in runs.times.values()) / 1000, mean_error(runs.times.values()))
    else:
        for _ in range(2):
            started = time.perf_counter()
            fn()
            elapsed.append(time.perf_counter() - started)
        milliseconds = Milliseconds(sorted(elapsed)[1] * 1000)
    return milliseconds if quantiles is None else [milliseconds] * len(quantiles)


class _KernelTimes(Listener):
    """Sums the modelled times of the calling thread's runs, by kernel.

    Attributes:
        times: microseconds of all runs of a kernel, and the error of its last run.
    """

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.times: dict[CompiledKernel, tuple[float, float | None]] = {}

    def on_launched(self, kernel: CompiledKernel, launch: AnyLaunch, findings: list[Finding]) -> None:
        self.times[kernel] = self.times.get(kernel, (0.0, None))[0] + launch.time_us, launch.error


def make_array(dtype: DType, shape: Sequence[int], kind: TensorSupplyType, rng: np.random.Generator) -> Array:
    """Returns a made-up array. ``Auto`` is normally distributed values for floats, and small integers otherwise."""
    if kind is TensorSupplyType.Zero:
        return np.zeros(shape, dtype.numpy)
    if kind is TensorSupplyType.One:
        return np.ones(shape, dtype.numpy)
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if not dtype.is_float or kind is TensorSupplyType.Integer:
        low, high = (-2, 3) if dtype.is_signed else (0, 4)
        return rng.integers(low, high, shape).astype(dtype.numpy)
    if kind is TensorSupplyType.Uniform:
        return rng.uniform(-1, 1, shape).astype(dtype.numpy)
    return rng.standard_normal(shape, np.float32).astype(dtype.numpy)


def get_tensor_supply(supply_type: TensorSupplyType = TensorSupplyType.Integer) -> Callable[[Parameter], Any]:
    """Returns a function that makes an array (or a tensor if torch is in use) for a parameter of ``kernel.params``.

    Its values come from NumPy's global generator, which ``tilelang.testing.set_random_seed`` seeds. It raises ValueError for a
    parameter that is a number, or whose shape depends on the call.

    Raises:
        TileError: T707, there is no such supply type.
    """
    _check_supply_type(supply_type)

    def supplied(parameter: Parameter) -> Any:
        sizes = [size for size in parameter.shape or () if isinstance(size, int)]
        if parameter.shape is None or len(sizes) != len(parameter.shape):
            what = "is a number" if parameter.shape is None else f"has the shape {parameter.shape}, which depends on the call"
            msg = f"no array can be made for the parameter {parameter.name}: it {what}"
            raise meant(ValueError(msg))
        rng = np.random.default_rng(np.random.randint(1 << 31))  # noqa: NPY002  (scripts seed this generator)
        return like_caller(make_array(parameter.dtype, sizes, supply_type, rng), ())

    return door(supplied)


def _check_supply_type(kind: object) -> None:
    if not isinstance(kind, TensorSupplyType):
        raise TileError(f"{kind!r} is not a TensorSupplyType", code="T707", location=user_location(),
                        help="one of TensorSupplyType." + ", ".join(each.name for each in TensorSupplyType))


class Profiler:
    """Makes inputs for a kernel, times it, and compares its results with a reference.

    Args:
        kernel: the kernel.
        tensor_supply_type: the values of made-up inputs.
        seed: the seed of random inputs.

    Raises:
        TileError: T707, there is no such supply type.
    """

    def __init__(
        self, kernel: CompiledKernel, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto, seed: int = 0
    ) -> None:
        _check_supply_type(tensor_supply_type)
        self.kernel = kernel
        self.supply_type = tensor_supply_type
        self.seed = seed

    def inputs(self, symbols: Mapping[str, int] | None = None) -> list[Any]:
        """Returns made-up inputs, the same in each call.

        Args:
            symbols: values of the kernel's symbolic dimensions.
        """
        rng = np.random.default_rng(self.seed)
        made: list[Any] = []  # arrays, or torch tensors if torch has a device npu
        for parameter, shape in self.kernel.input_shapes(symbols or {}):
            if shape is None:
                made.append(parameter.dtype.numpy.type(1))
            else:
                made.append(like_caller(make_array(parameter.dtype, shape, self.supply_type, rng), ()))
        return made

    def run_once(self, func: Callable[..., object] | None = None) -> Any:
        """Returns the result of ``func``, or of the kernel, on the inputs."""
        return (func or self.kernel)(*self.inputs())

    def do_bench(
        self,
        func: Callable[..., object] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 1,
        n_repeat: int = 1,
        input_tensors: Sequence[object] | None = None,
        backend: str = "event",
    ) -> float:
        """Returns the modelled milliseconds of one run.

        Args:
            func: a function to time in place of the kernel; it gets the inputs.
            input_tensors: the inputs; None: made-up ones.

        The other arguments are TileLang's, and have no effect.
        """
        inputs = self.inputs() if input_tensors is None else list(input_tensors)
        milliseconds = do_bench(lambda: (func or self.kernel)(*inputs), warmup, rep)
        assert isinstance(milliseconds, float)
        return milliseconds

    def assert_allclose(
        self,
        reference_program: Callable[..., object],
        input_tensors: Sequence[object] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Compares the kernel's results with those of a reference on the same inputs.

        Args:
            reference_program: takes the inputs, returns one array or a list of arrays.
            input_tensors: the inputs; None: made-up ones.
            atol: absolute tolerance.
            rtol: relative tolerance.
            max_mismatched_ratio: share of elements that may differ by more.

        Raises:
            AssertionError: more elements differ; the message has their number and the largest difference.
        """
        results, expected = self._results(reference_program, input_tensors)
        assert len(results) == len(expected), f"the kernel returns {len(results)} arrays, the reference {len(expected)}"
        for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
            compare(f"result {number}", result, wanted, atol, rtol, max_mismatched_ratio)

    def manual_assert_close(
        self, reference_program: Callable[..., object], input_tensors: Sequence[object] | None = None,
        manual_check_prog: Callable[[list[object], list[object]], object] | None = None,
    ) -> None:
        """Compares the kernel's results with those of a reference, by a function that raises an error if they differ.

        Args:
            reference_program: takes the inputs, returns one array or a list of arrays.
            input_tensors: the inputs; None: made-up ones.
            manual_check_prog: takes the kernel's results and the reference's, both as lists.

        Raises:
            TileError: T707, there is no ``manual_check_prog``.
        """
        if manual_check_prog is None:
            raise TileError("manual_assert_close compares nothing without a manual_check_prog", code="T707",
                            location=user_location(), help="give one, or use assert_allclose")
        results, expected = self._results(reference_program, input_tensors)
        manual_check_prog(results, expected)

    def _results(self, reference: Callable[..., object], tensors: Sequence[object] | None) -> tuple[list[Any], list[Any]]:
        inputs = self.inputs() if tensors is None else list(tensors)
        return _as_list(self.kernel(*inputs)), _as_list(reference(*inputs))

    def assert_consistent(self, repeat: int = 2) -> None:
        """Runs the kernel ``repeat`` times (at least twice) on the same inputs, and compares the results bit by bit.

        Raises:
            AssertionError: two runs differ.
        """
        first, *others = (_as_list(self.kernel(*self.inputs())) for _ in range(max(2, repeat)))
        for other in others:
            for number, (result, wanted) in enumerate(zip(other, first, strict=True)):
                same = as_array(result).tobytes() == as_array(wanted).tobytes()
                assert same, f"result {number} differs between two runs on the same inputs"


def _as_list(results: object) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def compare(name: str, result: object, wanted: object, atol: float, rtol: float, allowed: float) -> None:
    """Compares two arrays.

    Raises:
        AssertionError: their shapes differ, or more than the allowed share of elements is outside of the tolerances.
    """
    result, wanted = ((as_array(value) if is_tensor(value) else np.asarray(value)).astype(np.float64)
                      for value in (result, wanted))
    if result.shape != wanted.shape:
        raise meant(AssertionError(f"{name} has shape {result.shape}, the reference {wanted.shape}"))
    wrong = ~np.isclose(result, wanted, rtol=rtol, atol=atol, equal_nan=True)
    if wrong.sum() > allowed * wrong.size:
        worst = np.nanmax(np.abs(result - wanted))
        msg = f"{name}: {wrong.sum()} of {wrong.size} elements differ, by at most {worst:.6g}"
        raise meant(AssertionError(msg))


doors(globals())
