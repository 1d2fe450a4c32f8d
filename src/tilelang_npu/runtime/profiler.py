"""Times of kernels. They are modelled: what the chip would take, not what the simulation takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import TileError, door, doors, meant
from tilelang_npu.runtime import listeners
from tilelang_npu.runtime.tensors import Array, as_array, is_tensor, like_caller
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.ops import DType
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["Milliseconds", "Profiler", "TensorSupplyType", "compare", "do_bench", "get_tensor_supply", "supply"]


class TensorSupplyType(Enum):
    """What a profiler fills the inputs with, where none are given."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


class Milliseconds(float):
    """A time in milliseconds. It is a number like any other, and says its error where a prompt or a notebook shows it.

    Attributes:
        error: of a modelled time, as a share; None where it is not known, and of times that were taken on the host.
    """

    error: float | None

    def __new__(cls, value: float, error: float | None = None) -> Milliseconds:
        """A time with its error."""
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
    fn: Callable[[], Any],
    warmup: float = 25,  # this and what follows has a meaning on a device, where times scatter
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    grad_to_none: object = None,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    return_mode: str = "mean",
    backend: str = "event",
) -> float | list[float]:
    """Milliseconds of one call of ``fn``; of kernels, with the error of the model as ``.error``.

    If ``fn`` runs kernels, this is the modelled time of these kernels on their chip: ``fn`` is called once, and repeating it
    would give the same figure. If it runs none (a reference in NumPy, say), it is the host's time, the median of three calls.

    Args:
        fn: what to time, without arguments.
        quantiles: where given, a list with the figure once per quantile.

    The other arguments are TileLang's and change nothing.

    Raises:
        TileError: T707, there is no such ``return_mode``.
    """
    if return_mode not in _MODES:
        raise TileError(f"do_bench has no return_mode {return_mode!r}", code="T707", location=user_location(),
                        help=f"one of {', '.join(_MODES)}; a modelled time does not scatter, so they give the same")
    with listeners.record() as done:
        started = time.perf_counter()
        fn()
        elapsed = [time.perf_counter() - started]
    if done.tallies:
        milliseconds = Milliseconds(done.milliseconds(), done.error())
    else:
        for _ in range(2):
            started = time.perf_counter()
            fn()
            elapsed.append(time.perf_counter() - started)
        milliseconds = Milliseconds(sorted(elapsed)[1] * 1000)
    return milliseconds if quantiles is None else [milliseconds] * len(quantiles)


def supply(dtype: DType, shape: Sequence[int], kind: TensorSupplyType, rng: np.random.Generator) -> Array:
    """A made-up array: ``Auto`` is normal values for floats and small integers otherwise."""
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
    """A function that makes an array (a tensor where torch is in use) for a parameter of a kernel, as of ``kernel.params``.

    Its values come from NumPy's global generator, which ``tilelang.testing.set_random_seed`` seeds. It raises ValueError for a
    parameter that is a number, or whose shape only a call knows.

    Raises:
        TileError: T707, there is no such supply type.
    """
    _check(supply_type)

    def supplied(parameter: Parameter) -> Any:
        sizes = [size for size in parameter.shape or () if isinstance(size, int)]
        if parameter.shape is None or len(sizes) != len(parameter.shape):
            what = "is a number" if parameter.shape is None else f"has the shape {parameter.shape}, which only a call knows"
            msg = f"no array can be made for the parameter {parameter.name}: it {what}"
            raise meant(ValueError(msg))
        rng = np.random.default_rng(np.random.randint(1 << 31))  # noqa: NPY002  (the generator that scripts seed)
        return like_caller(supply(parameter.dtype, sizes, supply_type, rng), ())

    return door(supplied)


def _check(kind: object) -> None:
    if not isinstance(kind, TensorSupplyType):
        raise TileError(f"{kind!r} is no TensorSupplyType", code="T707", location=user_location(),
                        help="one of TensorSupplyType." + ", ".join(each.name for each in TensorSupplyType))


class Profiler:
    """Inputs, times and comparisons for one kernel.

    Args:
        kernel: the kernel.
        tensor_supply_type: what inputs are filled with, where none are given.
        seed: of the random inputs.

    Raises:
        TileError: T707, there is no such supply type.
    """

    def __init__(
        self, kernel: JITKernel, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto, seed: int = 0
    ) -> None:
        _check(tensor_supply_type)
        self.kernel = kernel
        self.supply_type = tensor_supply_type
        self.seed = seed

    def inputs(self, symbols: Mapping[str, int] | None = None) -> list[Any]:
        """One set of inputs; the same set each time.

        Args:
            symbols: values of the symbolic dimensions, for a kernel that has any.
        """
        rng = np.random.default_rng(self.seed)
        made: list[Any] = []  # arrays, or tensors of torch where a script has it with a device npu
        for parameter, shape in self.kernel.input_shapes(symbols or {}):
            if shape is None:
                made.append(parameter.dtype.numpy.type(1))
            else:
                made.append(like_caller(supply(parameter.dtype, shape, self.supply_type, rng), ()))
        return made

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """The result of ``func``, or of the kernel, on the inputs."""
        return (func or self.kernel)(*self.inputs())

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 1,
        n_repeat: int = 1,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
    ) -> float:
        """Simulated milliseconds of one run: the time that the model of the chip gives, not that of the host.

        Args:
            func: what to time instead of the kernel; it gets the inputs.
            input_tensors: the inputs, where they are not to be made.

        The other arguments are TileLang's and change nothing.
        """
        inputs = self.inputs() if input_tensors is None else list(input_tensors)
        milliseconds = do_bench(lambda: (func or self.kernel)(*inputs), warmup, rep)
        assert isinstance(milliseconds, float)
        return milliseconds

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Compare the kernel's results with a reference's on the same inputs.

        Args:
            reference_program: takes the inputs, returns one array or a list of them.
            input_tensors: the inputs, where they are not to be made.
            atol: absolute tolerance.
            rtol: relative tolerance.
            max_mismatched_ratio: share of elements that may be outside of both.

        Raises:
            AssertionError: more elements differ; the message has their number and the largest difference.
        """
        inputs = self.inputs() if input_tensors is None else list(input_tensors)
        results, expected = _listed(self.kernel(*inputs)), _listed(reference_program(*inputs))
        assert len(results) == len(expected), f"the kernel returns {len(results)} arrays, the reference {len(expected)}"
        for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
            compare(f"result {number}", result, wanted, atol, rtol, max_mismatched_ratio)

    def manual_assert_close(
        self, reference_program: Callable[..., Any], input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[[list[Any], list[Any]], Any] | None = None,
    ) -> None:
        """Compare the kernel's results with a reference's by the caller's own function, which raises where they differ.

        Args:
            reference_program: takes the inputs, returns one array or a list of them.
            input_tensors: the inputs, where they are not to be made.
            manual_check_prog: takes the kernel's results and the reference's, both as lists.

        Raises:
            TileError: T707, there is no ``manual_check_prog``.
        """
        if manual_check_prog is None:
            raise TileError("manual_assert_close compares nothing without a manual_check_prog", code="T707",
                            location=user_location(), help="give one, or use assert_allclose")
        inputs = self.inputs() if input_tensors is None else list(input_tensors)
        results, expected = _listed(self.kernel(*inputs)), _listed(reference_program(*inputs))
        manual_check_prog(results, expected)

    def assert_consistent(self, repeat: int = 2) -> None:
        """Run the kernel ``repeat`` times (twice at least) on the same inputs and compare bit for bit.

        Raises:
            AssertionError: two runs differ.
        """
        first, *others = (_listed(self.kernel(*self.inputs())) for _ in range(max(2, repeat)))
        for other in others:
            for number, (result, wanted) in enumerate(zip(other, first, strict=True)):
                same = as_array(result).tobytes() == as_array(wanted).tobytes()
                assert same, f"result {number} differs between two runs on the same inputs"


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _wide(value: Any) -> Array:
    return (as_array(value) if is_tensor(value) else np.asarray(value)).astype(np.float64)


def compare(name: str, result: Any, wanted: Any, atol: float, rtol: float, allowed: float) -> None:
    """Raise AssertionError where more than the allowed share of elements is outside of the tolerances."""
    result, wanted = _wide(result), _wide(wanted)
    if result.shape != wanted.shape:
        raise meant(AssertionError(f"{name} has shape {result.shape}, the reference {wanted.shape}"))
    wrong = ~np.isclose(result, wanted, rtol=rtol, atol=atol, equal_nan=True)
    if wrong.sum() > allowed * wrong.size:
        worst = np.nanmax(np.abs(result - wanted))
        msg = f"{name}: {wrong.sum()} of {wrong.size} elements differ, by at most {worst:.6g}"
        raise meant(AssertionError(msg))


doors(globals())
