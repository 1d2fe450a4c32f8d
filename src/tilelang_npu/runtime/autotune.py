"""Choosing a kernel's parameters by modelled time: ``autotune`` above ``jit``, and ``AutoTuner`` below both.

Every configuration is compiled, and its time told by the machine model. One that does not fit the chip or fails to compile is
left out, and its reason is kept. The least time wins, if its run gives the numbers of the reference; else it is left out too,
and the next one runs. Times are modelled, so the same configurations always give the same winner. Where data decide how long
a kernel takes, every configuration is run.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, overload

from tilelang_npu.errors import TileError, doors
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.factory import Factory, jit
from tilelang_npu.runtime.log import warn_at
from tilelang_npu.runtime.methods import Method, bound, by_name
from tilelang_npu.runtime.profiler import Profiler, TensorSupplyType
from tilelang_npu.sharing import Kept
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["AutoTuner", "AutotuneResult", "Rejected", "Tuned", "autotune", "set_autotune_inputs"]

Config = Mapping[str, Any]
_Made = TypeVar("_Made")
Configs = Sequence[Config] | Mapping[str, Sequence[Any]] | Callable[..., Any]


@dataclass(frozen=True)
class Rejected:
    """A configuration that was left out, and why.

    Attributes:
        config: its parameters.
        reason: one line; for a diagnostic, its code first.
    """

    config: dict[str, Any]
    reason: str


@dataclass(frozen=True)
class AutotuneResult:
    """What tuning found.

    Attributes:
        latency: modelled milliseconds of the best configuration.
        config: its parameters.
        kernel: its kernel.
        ref_latency: milliseconds that the reference took on the host; None without one.
        tried: modelled milliseconds of every configuration that works as far as is known, best first: of those that are slower
            than the best, the numbers were not compared.
        rejected: those that do not.
    """

    latency: float
    config: dict[str, Any]
    kernel: JITKernel
    ref_latency: float | None = None
    tried: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    @property
    def func(self) -> PrimFunc:
        """The kernel's function."""
        return self.kernel.prim_func


@dataclass(frozen=True)
class _Profile:
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


class AutoTuner:
    """The tuning of one factory.

    Args:
        fn: a function that takes parameters and returns a ``prim_func``, or one under ``jit``.
        configs: a list of parameter sets; a grid, as lists of values by name; or a function that returns either and gets
            the call's arguments and sorted keyword items, or nothing.
    """

    def __init__(self, fn: Callable[..., Any], configs: Configs) -> None:
        self.fn = fn
        self.configs = configs
        self.profile = _Profile()
        self.timeout: float = 100
        self.compile_args: dict[str, Any] = {}
        self.compile: Callable[..., JITKernel] | None = None
        self.arguments: tuple[Any, ...] = ((), ())

    @classmethod
    def from_kernel(cls, kernel: Callable[..., Any], configs: Configs) -> AutoTuner:
        """The tuner of a factory."""
        return cls(kernel, configs)

    def set_compile_args(self, **settings: Any) -> AutoTuner:
        """How the kernels are compiled: the arguments of ``jit``.

        Raises:
            TileError: T707 the factory is under ``jit``, and has them already.
        """
        if settings and isinstance(self.fn, (Factory, Method)):
            raise TileError(f"set_compile_args has no effect on {self.fn.function.__name__}, which is under jit", code="T707",
                            location=user_location(), help="give jit these arguments, or take the factory from under it")
        self.compile_args = settings
        return self

    def set_profile_args(self, **settings: Any) -> AutoTuner:
        """How configurations are run and compared.

        Args:
            settings: ``supply_type`` or ``supply_prog`` (takes the parameters and, if it takes two arguments, the
                configuration; returns the inputs), ``ref_prog``, ``rtol``, ``atol``, ``max_mismatched_ratio``,
                ``skip_check``, ``manual_check_prog``, ``cache_input_tensors``; ``timeout``, ``warmup`` and ``rep`` as of
                :meth:`run`.

        Raises:
            TileError: T707 an unknown argument.
        """
        known = set(_Profile.__dataclass_fields__)
        for name in settings:
            if name not in known | {"warmup", "rep", "timeout"}:
                raise TileError(f"set_profile_args has no argument {name!r}", code="T707", location=user_location(),
                                help=f"its arguments are {', '.join(sorted(known))}")
        self.profile = _Profile(**{name: value for name, value in settings.items() if name in known})
        self.timeout = settings.get("timeout", self.timeout)
        return self

    def run(
        self, warmup: float = 25, rep: float = 100, timeout: float | None = None, executor: Executor | None = None
    ) -> AutotuneResult:
        """Return the best configuration whose numbers are right.

        Args:
            warmup: has a meaning on a device only, like ``rep``: a modelled time does not scatter.
            rep: see ``warmup``.
            timeout: seconds of the host for a configuration to compile and run; 100, or what ``set_profile_args`` said.
            executor: compiles the configurations; they are compiled one after the other, as they are needed, without one.

        Raises:
            TileError: T707 the configurations or the executor are none; T730 there is no configuration, or none that works: the
                reasons are in its notes.
        """
        timeout = self.timeout if timeout is None else timeout
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise TileError(f"executor={executor!r} has no submit", code="T707", location=user_location(),
                            help="give a concurrent.futures.ThreadPoolExecutor, or leave it out")
        configs = _listed(self.configs, self.arguments)
        compile_one = self.compile or self._compiler()
        waiting: list[Future[JITKernel] | None] = [None] * len(configs)
        if executor is not None:
            waiting = [executor.submit(functools.partial(compile_one, **config)) for config in configs]
        search = _Search(self.profile, configs, timeout)
        try:
            for number, (config, future) in enumerate(zip(configs, waiting, strict=True)):
                search.add(number, functools.partial(compile_one, **config) if future is None
                           else functools.partial(future.result, timeout))
            ranked = search.ranked()
        finally:
            search.close()
        if not ranked:
            notes = [f"{dict(item.config)}: {item.reason}" for item in search.rejected[:8]]
            msg = f"none of {len(configs)} configurations works" if configs else "there is no configuration to try"
            raise TileError(msg, code="T730", location=user_location(), notes=notes,
                            help="smaller tiles, or a parameter set that compiles when it is given by hand")
        best, config = ranked[0], dict(configs[ranked[0].number])
        reference = search.reference.latency
        best.kernel.update_tuner_result(best.latency, config, reference)
        return AutotuneResult(best.latency, config, best.kernel, reference,
                              [(one.latency, dict(configs[one.number])) for one in ranked], search.rejected)

    def _compiler(self) -> Callable[..., JITKernel]:
        factory = self.fn if isinstance(self.fn, (Factory, Method)) else jit(**self.compile_args)(self.fn)
        compiler: Callable[..., JITKernel] = factory.compile
        return compiler

    def __call__(self, *args: Any, **kwargs: Any) -> AutotuneResult:
        """The same as :meth:`run`."""
        return self.run(*args, **kwargs)


@dataclass
class _Candidate:
    """A configuration that compiles: its place in the list, its kernel, and milliseconds as a trace and as a run tell them."""

    number: int
    kernel: JITKernel
    foreseen: float | None
    latency: float = math.inf


class _Search:
    """One tuning: the configurations that compile, and what became of the others."""

    def __init__(self, profile: _Profile, configs: Sequence[Config], timeout: float) -> None:
        self.reference = _Reference(profile)
        self.rejected: list[Rejected] = []
        self._configs, self._timeout = configs, timeout
        self._candidates: list[_Candidate] = []
        self._log = _Log(len(configs))

    def _attempt(self, number: int, work: Callable[[], _Made]) -> _Made | None:
        try:
            with _at_most(self._timeout):
                return work()
        except Exception as error:
            if isinstance(error, TileError) and error.code == "T733":
                raise  # no process can be given the factory, for whatever configuration
            config = dict(self._configs[number])
            self.rejected.append(Rejected(config, _reason(error)))
            self._log.write(number, f"{config} left out: {self.rejected[-1].reason}")
            return None

    def add(self, number: int, compiled: Callable[[], JITKernel]) -> None:
        """Compile a configuration."""

        def made() -> _Candidate:
            kernel = compiled()
            traced = kernel.trace()
            return _Candidate(number, kernel, None if traced is None else traced.time_us / 1000)

        candidate = self._attempt(number, made)
        if candidate is not None:
            self._candidates.append(candidate)
        self._log.show(number)

    def ranked(self) -> list[_Candidate]:
        """The configurations that work, best first.

        What no trace tells is run; then the fastest that was foreseen, and the next while results are wrong. Once one is
        right, and took what was foreseen, the slower ones need not run.
        """
        working: list[_Candidate] = []
        trusted = True
        for one in sorted(self._candidates, key=lambda one: (one.foreseen is not None, one.foreseen, one.number)):
            if one.foreseen is not None and trusted and any(other.latency <= one.foreseen for other in working):
                one.latency = one.foreseen
            else:
                latency = self._attempt(one.number, functools.partial(self._measured, one))
                if latency is None:
                    continue
                trusted &= one.foreseen in (None, latency)
                one.latency = latency
            self._log.write(one.number, f"{dict(self._configs[one.number])} takes {one.latency:.6f} ms")
            working.append(one)
        return sorted(working, key=lambda one: (one.latency, one.number))

    def close(self) -> None:
        """No more will come."""
        self._log.close()

    def _measured(self, one: _Candidate) -> float:
        return self.reference.measure(one.kernel, self._configs[one.number])


class _Reference:
    """Inputs and what should come out of them."""

    def __init__(self, profile: _Profile) -> None:
        self.profile = profile
        self.latency: float | None = None
        self._inputs: list[Any] | None = None
        self._warned = False

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
            self._warn_of_nothing_to_compare(kernel)
        if checked and profile.manual_check_prog is not None:
            profiler.manual_assert_close(self._timed, inputs, profile.manual_check_prog)
        elif checked:
            profiler.assert_allclose(self._timed, inputs, profile.atol, profile.rtol, profile.max_mismatched_ratio)
        else:
            kernel(*inputs)
        assert kernel.last_launch is not None
        return kernel.last_launch.time_us / 1000

    def _warn_of_nothing_to_compare(self, kernel: JITKernel) -> None:
        if not self._warned:
            self._warned = True
            warn_at(TileError(f"ref_prog is compared with nothing: {kernel.name} returns nothing", code="T732",
                              location=user_location(), help="name its results in out_idx, or pass skip_check=True"))

    def _timed(self, *inputs: Any) -> Any:
        assert self.profile.ref_prog is not None
        started = time.perf_counter()
        results = self.profile.ref_prog(*inputs)
        elapsed = (time.perf_counter() - started) * 1000
        self.latency = elapsed if self.latency is None else min(self.latency, elapsed)
        return results


class _Log:
    """``autotuner.log`` in the current directory, and on a terminal a line that tells how far tuning is."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.shown = sys.stderr.isatty()
        self.file: TextIO | None = None
        with suppress(OSError):
            self.file = Path("autotuner.log").open("w", encoding="utf-8")  # noqa: SIM115  (closed when tuning ends)

    def write(self, number: int, text: str) -> None:
        """What became of a configuration."""
        if self.file is not None:
            self.file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {number + 1} of {self.total}: {text}\n")

    def show(self, number: int) -> None:
        """So far the configurations are compiled and timed."""
        if self.shown:
            sys.stderr.write(f"\r\033[Kautotune: {number + 1} of {self.total} configurations")

    def close(self) -> None:
        """No more will come."""
        if self.file is not None:
            self.file.close()
        if self.shown:
            sys.stderr.write("\r\033[K")


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End what happens inside after so many seconds, where the system can: in the main thread of a POSIX process."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread() or seconds <= 0:
        yield
        return

    def end(*_: object) -> None:
        msg = f"longer than {seconds:g} s"
        raise TimeoutError(msg)

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _reason(error: Exception) -> str:
    if isinstance(error, TileError):
        return f"{error.code}: {error.message}"
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}"


def _listed(configs: Configs, arguments: tuple[Any, ...]) -> list[Config]:
    made: Any = configs
    if callable(configs):
        takes = len(inspect.signature(configs).parameters)
        made = configs(*arguments[:takes])
    if isinstance(made, Mapping):
        for name, values in made.items():
            if not _is_list(values):
                raise TileError(f"the grid of configurations has {values!r} for {name}", code="T707", location=user_location(),
                                help=f"a grid has lists of values: {{{name!r}: [{values!r}]}}")
        return [dict(zip(made, values, strict=True)) for values in itertools.product(*made.values())]
    listed = list(made) if _is_list(made) else [made]
    for config in listed:
        if not isinstance(config, Mapping):
            raise TileError(f"{config!r} is no configuration", code="T707", location=user_location(),
                            help="configs is a list of dicts of parameters, a dict of lists of values, or a function of either")
    return [dict(config) for config in listed]


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


class Tuned:
    """A factory under ``autotune``. A call that leaves out what can be tuned tunes it; the same call tunes once."""

    def __init__(self, factory: Factory[..., Any], configs: Configs, profile: Mapping[str, Any], run: Mapping[str, Any]
                 ) -> None:
        functools.update_wrapper(self, factory.function)
        self.factory = factory
        self.configs = configs
        self.profile, self.run_args = profile, run
        self._found: Kept[object, AutotuneResult] = Kept()
        self.last_result: AutotuneResult | None = None

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return bound(self, self.factory.kind, instance, owner)

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name(self, self.factory.function) or (Tuned, (self.factory, self.configs, self.profile, self.run_args))

    def __deepcopy__(self, _copied: object) -> Tuned:
        return self

    def __copy__(self) -> Tuned:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the factory's call gives with the best configuration for these arguments, or with what they say where they leave
        nothing to tune.

        Raises:
            TileError: T730 no configuration works.
        """
        if self.factory.eager is None:
            return self.compile(*args, **kwargs)
        arrays = self.factory.arrays(args, kwargs)
        return self.compile(*args, **kwargs)(*arrays)

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The best kernel for these arguments; see :meth:`Factory.compile`.

        Raises:
            TileError: T730 no configuration works.
        """
        given = self._given(args, kwargs)
        configs = []
        for config in _listed(self.configs, (args, tuple(sorted(kwargs.items())))):
            rest = {name: value for name, value in config.items() if name not in given}
            if rest not in configs:
                configs.append(rest)
        if configs in ([], [{}]):
            return self.factory.compile(*args, **kwargs)
        key = self.factory.key(args, kwargs)

        def tune() -> AutotuneResult:
            tuner = AutoTuner(self.factory, configs).set_profile_args(**self.profile)
            tuner.compile = functools.partial(self.factory.compile, *args, **kwargs)
            return tuner.run(**self.run_args)

        result = tune() if key is None else self._found.get((key, repr(configs)), tune)
        self.last_result = result
        return result.kernel

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> set[str]:
        try:
            return set(inspect.signature(self.factory.function).bind_partial(*args, **kwargs).arguments)
        except TypeError:  # too many arguments: the factory's own call says so better
            return set(kwargs)


@overload
def autotune(
    func: None = None, *, configs: Configs, warmup: float = ..., rep: float = ..., timeout: float = ...,
    executor: Executor | None = ..., **profile: Any,
) -> Callable[[Any], Tuned]: ...
@overload
def autotune(
    func: Callable[..., Any], *, configs: Configs, warmup: float = ..., rep: float = ..., timeout: float = ...,
    executor: Executor | None = ..., **profile: Any,
) -> Tuned: ...
def autotune(
    func: Callable[..., Any] | None = None, *, configs: Configs, warmup: float = 25, rep: float = 100,
    timeout: float = 100, executor: Executor | None = None, **profile: Any,
) -> Any:
    """Choose parameters of a factory by modelled time; written above ``jit``.

    Args:
        func: the factory, which may also be given by decorating it.
        configs: the configurations, see :class:`AutoTuner`.
        warmup: see :meth:`AutoTuner.run`, like ``rep``, ``timeout`` and ``executor``.
        rep: as there.
        timeout: as there.
        executor: as there.
        profile: the arguments of :meth:`AutoTuner.set_profile_args`.

    Raises:
        TileError: T707 an unknown argument, T708 what is decorated is no factory under ``jit``.
    """
    run = {"warmup": warmup, "rep": rep, "timeout": timeout, "executor": executor}
    AutoTuner(lambda: None, []).set_profile_args(**profile)  # an unknown argument is the decorator's fault, not the call's

    def decorate(factory: Any) -> Tuned:
        if isinstance(factory, (staticmethod, classmethod)) and isinstance(factory.__func__, Factory):
            factory = Factory(factory.__func__.function, factory.__func__.settings, type(factory))
        if not isinstance(factory, Factory):
            msg = f"autotune takes a factory under jit; {getattr(factory, '__name__', factory)!r} is none"
            raise TileError(msg, code="T708", location=user_location(), help="write @tilelang.jit below @tilelang.autotune")
        return Tuned(factory, configs, profile, run)

    return decorate if func is None else decorate(func)


doors(globals())
