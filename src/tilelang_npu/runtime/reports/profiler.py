"""Times kernels, and compares their results with those of reference programs.

Times are modelled times of the kernel on the chip, not the times of the simulation on the host.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

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
    """How the elements of generated input arrays are chosen.

    ``Integer``: small random integers. ``Uniform``: floats that are uniformly distributed from -1 to 1. ``Normal``, ``Randn``:
    normally distributed floats. ``Zero``, ``One``: constants. ``Auto``: normally distributed for float types, small random
    integers for other types. Types other than floats get small random integers for all kinds but ``Zero`` and ``One``.
    """

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


class Milliseconds(float):
    """A time in milliseconds: a float whose ``repr`` also shows the error of the timing model.

    Attributes:
        error: the relative error of a modelled time (0.1 is 10 %); None if it is not known, and for a time that was measured on
            the host.
    """

    error: float | None

    def __new__(cls, value: float, error: float | None = None) -> Milliseconds:
        """Makes a time from a number of milliseconds and a relative error."""
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
    """Returns the milliseconds of one call of ``fn``.

    If ``fn`` runs kernels, the result is the sum of the modelled times of these kernels on their chip, with the relative error
    of the model in its attribute ``error``. ``fn`` is then called once, because every call has the same time. If ``fn`` runs no
    kernel (for example a reference in NumPy), the result is the time on the host, the median of three calls.

    Args:
        fn: the function to time, which is called without arguments.
        quantiles: if given, the result is a list that contains the same time once for each quantile.
        return_mode: one of ``min``, ``max``, ``mean`` and ``median``, which all give the same result.

    The other arguments are those of TileLang, and have no effect.

    Raises:
        TileError: T707, there is no such ``return_mode``.
    """
    if return_mode not in _MODES:
        raise TileError(f"do_bench has no return_mode {return_mode!r}", code="T707", location=user_location(),
                        help=f"return_mode must be one of {', '.join(_MODES)}, which all give the same result: a modelled time "
                             "is the same in each run")
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
    """Returns a generated array.

    Args:
        dtype: the element type.
        shape: the shape.
        kind: how the elements are chosen, see :class:`TensorSupplyType`.
        rng: the random number generator.

    Returns:
        The array; for elements of 4 bits, bytes with two elements each, half as many along the last axis.
    """
    if dtype.packed:
        low, high = (0, 1) if kind is TensorSupplyType.Zero else (-128, 128)
        return rng.integers(low, high, (*shape[:-1], shape[-1] // 2)).astype(np.int8)
    if dtype.stored != dtype:  # exponents of scales, around 2 to the power of 0
        return rng.integers(125, 130, shape).astype(dtype.stored.numpy)
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


def get_tensor_supply(supply_type: TensorSupplyType = TensorSupplyType.Integer) -> Callable[[Parameter], object]:
    """Returns a function that generates an array for a parameter of ``kernel.params``.

    The array is a torch tensor if torch has the device ``npu``, else a NumPy array. The random values depend on NumPy's global
    generator, which ``tilelang.testing.set_random_seed`` seeds. The function raises a ValueError for a parameter that is a
    number, or whose shape depends on the call.

    Args:
        supply_type: how the elements are chosen.

    Raises:
        TileError: T707, ``supply_type`` is not a :class:`TensorSupplyType`.
    """
    _check_supply_type(supply_type)

    def supplied(parameter: Parameter) -> object:
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
                        help="pass one of TensorSupplyType." + ", ".join(each.name for each in TensorSupplyType))


class Profiler:
    """Generates inputs for a kernel, times the kernel, and compares its results with those of a reference program.

    Args:
        kernel: the kernel.
        tensor_supply_type: how the elements of generated inputs are chosen.
        seed: the seed of random inputs.

    Raises:
        TileError: T707, ``tensor_supply_type`` is not a :class:`TensorSupplyType`.
    """

    def __init__(
        self, kernel: CompiledKernel, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto, seed: int = 0
    ) -> None:
        _check_supply_type(tensor_supply_type)
        self.kernel = kernel
        self.supply_type = tensor_supply_type
        self.seed = seed

    def inputs(self, symbols: Mapping[str, int] | None = None) -> list[object]:
        """Returns generated inputs for the kernel, the same in each call.

        Args:
            symbols: the values of the kernel's symbolic dimensions and number parameters, by name. A number parameter without a
                value gets 1.

        Raises:
            TileError: T403 a symbolic dimension has no value.
        """
        rng = np.random.default_rng(self.seed)
        made: list[object] = []  # arrays, or torch tensors if torch has a device npu
        for parameter, shape in self.kernel.input_shapes(symbols or {}):
            if shape is None:
                made.append(parameter.dtype.numpy.type((symbols or {}).get(parameter.name, 1)))
            else:
                made.append(like_caller(make_array(parameter.dtype, shape, self.supply_type, rng), ()))
        return made

    def _get_inputs(self, with_output: bool = False, dynamic_symbolic_constraints: Mapping[str, int] | None = None
                    ) -> list[object]:
        """Returns generated inputs for the kernel; TileLang's tests call this method.

        Args:
            with_output: must be False.
            dynamic_symbolic_constraints: the values of the kernel's symbolic dimensions, by name.

        Raises:
            TileError: T707, ``with_output`` is True.
        """
        if with_output:
            raise TileError("Profiler._get_inputs makes no results: with_output=True", code="T707", location=user_location(),
                            help="the kernel returns its results; pass with_output=False")
        return self.inputs(dynamic_symbolic_constraints)

    @property
    def func(self) -> Callable[..., object]:
        """The kernel, as a function of its inputs."""
        return self.kernel

    def run_once(self, func: Callable[..., object] | None = None) -> object:
        """Calls ``func``, or the kernel if it is None, on generated inputs, and returns the result."""
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
        dynamic_symbolic_constraints: Mapping[str, int] | None = None,
        **_: object,
    ) -> float:
        """Returns the modelled milliseconds of one run of the kernel.

        Args:
            func: a function of the inputs to time in place of the kernel.
            input_tensors: the inputs; None for generated ones.
            dynamic_symbolic_constraints: the values of the kernel's symbolic dimensions for generated inputs, by name.

        The other arguments are those of TileLang, and have no effect.
        """
        inputs = self.inputs(dynamic_symbolic_constraints) if input_tensors is None else list(input_tensors)
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
        """Checks that the kernel's results are close to those of a reference program on the same inputs.

        Args:
            reference_program: a function of the inputs that returns one array or a list of arrays.
            input_tensors: the inputs; None for generated ones.
            atol: the absolute tolerance.
            rtol: the relative tolerance.
            max_mismatched_ratio: the share of elements, from 0 to 1, that can differ by more than the tolerances.

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
        """Compares the kernel's results with those of a reference program by a function of the caller.

        Args:
            reference_program: a function of the inputs that returns one array or a list of arrays.
            input_tensors: the inputs; None for generated ones.
            manual_check_prog: a function of the list of the kernel's results and the list of the reference's results, which
                raises an exception if they differ too much.

        Raises:
            TileError: T707, ``manual_check_prog`` is None.
        """
        if manual_check_prog is None:
            raise TileError("manual_assert_close compares nothing without a manual_check_prog", code="T707",
                            location=user_location(), help="pass manual_check_prog, or use assert_allclose")
        results, expected = self._results(reference_program, input_tensors)
        manual_check_prog(results, expected)

    def _results(self, reference: Callable[..., object], tensors: Sequence[object] | None) -> tuple[list[object], list[object]]:
        inputs = self.inputs() if tensors is None else list(tensors)
        return _as_list(self.kernel(*inputs)), _as_list(reference(*inputs))

    def assert_consistent(self, repeat: int = 2) -> None:
        """Runs the kernel several times on the same inputs, and checks that the results are equal bit by bit.

        Args:
            repeat: the number of runs; at least two are made.

        Raises:
            AssertionError: the results of two runs differ.
        """
        first, *others = (_as_list(self.kernel(*self.inputs())) for _ in range(max(2, repeat)))
        for other in others:
            for number, (result, wanted) in enumerate(zip(other, first, strict=True)):
                same = as_array(result).tobytes() == as_array(wanted).tobytes()
                assert same, f"result {number} differs between two runs on the same inputs"


def _as_list(results: object) -> list[object]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def compare(name: str, result: object, wanted: object, atol: float, rtol: float, allowed: float) -> None:
    """Checks that two arrays are close to each other. Two NaN count as equal.

    Args:
        name: the name of the result, for the message.
        result: the array of the kernel.
        wanted: the array of the reference.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        allowed: the share of elements, from 0 to 1, that can differ by more than the tolerances.

    Raises:
        AssertionError: the shapes differ, or more elements differ by more than the tolerances.
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
