"""``autotune`` and ``AutoTuner``: choose the parameters of a factory by modelled time.

Every configuration is compiled and timed by the machine model, without computing values. A configuration that fails to compile
is rejected with its reason. The fastest one is run, and its results are compared with a reference, or without one with those of
another configuration. If they are wrong, it is rejected, too, and the next one is run. Times are modelled, so the same
configurations always give the same winner. If data decide how long a kernel takes, every configuration is run.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tilelang_npu.errors import TileError, doors
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.jit.factory import Factory, jit
from tilelang_npu.runtime.jit.methods import Method, bound, reference_by_name
from tilelang_npu.runtime.settings.targets import select_chip
from tilelang_npu.runtime.tuning.executors import open_executor
from tilelang_npu.runtime.tuning.tuning import Rejected, Tuning
from tilelang_npu.runtime.tuning.tuning_check import TuningProfile, set_autotune_inputs
from tilelang_npu.runtime.tuning.tuning_search import Config, Everything, Optimiser, Search
from tilelang_npu.runtime.tuning.tuning_table import Table
from tilelang_npu.sharing import Kept
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.charts import Picture
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

__all__ = ["AutoTuner", "AutotuneResult", "Rejected", "Tuned", "autotune", "expand_configs", "set_autotune_inputs"]

Configs = Sequence[Config] | Mapping[str, Sequence[Any]] | Callable[..., Any]


@dataclass(frozen=True)
class AutotuneResult:
    """The result of a tuning.

    Attributes:
        latency: modelled milliseconds of the best configuration.
        config: its parameters.
        kernel: its kernel.
        ref_latency: milliseconds of the reference on the host; None without a reference.
        tried: modelled milliseconds and parameters of every configuration that compiles, best first. The results of those that
            are slower than the best were not compared.
        rejected: the rejected configurations.
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

    def picture(self, most: int = 40) -> Picture:
        """Returns a picture of the configurations' times as bars, best first, followed by rejected ones; at most ``most``
        bars."""
        from tilelang_npu.charts import Bar, bars

        rows = [Bar(_spelled(config), 1000 * latency, f"{1000 * latency:.2f} us") for latency, config in self.tried]
        rows += [Bar(_spelled(one.config), None, one.code or one.reason.partition("\n")[0][:60]) for one in self.rejected]
        left = len(rows) - most
        return bars(rows[:most] + ([Bar(f"and {left} more", None)] if left > 0 else []),
                    title=f"{self.kernel.name}: {len(self.tried)} configurations, {len(self.rejected)} that do not work")

    def _repr_html_(self) -> str:
        return str(self.picture())


def _spelled(config: Config) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items())


class AutoTuner:
    """Tunes one factory.

    Args:
        fn: a function that takes parameters and returns a ``prim_func``, or a factory under ``jit``.
        configs: a list of parameter sets; a grid, as lists of values by name; or a function that returns one of them. It is
            called without arguments, or with the call's arguments and its sorted keyword items.
    """

    def __init__(self, fn: Callable[..., object], configs: Configs) -> None:
        self.fn = fn
        self.configs = configs
        self.profile = TuningProfile()
        self.timeout: float = 100
        self.compile_args: dict[str, Any] = {}
        self.args: tuple[Any, ...] = ()
        self.kwargs: Mapping[str, Any] = {}

    @classmethod
    def from_kernel(cls, kernel: Callable[..., object], configs: Configs) -> AutoTuner:
        """Returns the tuner of a factory."""
        return cls(kernel, configs)

    def set_compile_args(self, **settings: object) -> AutoTuner:
        """Sets the arguments of ``jit`` with which the kernels are compiled.

        Raises:
            TileError: T707 the factory is under ``jit``, and has these arguments already.
        """
        if settings and isinstance(self.fn, (Factory, Method)):
            raise TileError(f"set_compile_args has no effect on {self.fn.function.__name__}, which is under jit", code="T707",
                            location=user_location(), help="give jit these arguments, or take the factory from under it")
        self.compile_args = settings
        return self

    def set_profile_args(self, **settings: Any) -> AutoTuner:
        """Sets how configurations are run and compared.

        Args:
            settings: ``supply_type`` or ``supply_prog`` (takes the parameters and, if it takes two arguments, the
                configuration; returns the inputs), ``ref_prog``, ``rtol``, ``atol``, ``max_mismatched_ratio``,
                ``skip_check``, ``manual_check_prog``, ``cache_input_tensors``; ``timeout``, ``warmup`` and ``rep`` as for
                :meth:`run`.

        Raises:
            TileError: T707 an unknown argument.
        """
        known = set(TuningProfile.__dataclass_fields__)
        for name in settings:
            if name not in known | {"warmup", "rep", "timeout"}:
                raise TileError(f"set_profile_args has no argument {name!r}", code="T707", location=user_location(),
                                help=f"its arguments are {', '.join(sorted(known))}")
        self.profile = TuningProfile(**{name: value for name, value in settings.items() if name in known})
        self.timeout = settings.get("timeout", self.timeout)
        return self

    def run(
        self, warmup: float = 25, rep: float = 100, timeout: float | None = None, executor: Executor | str | None = None, *,
        trials: int | None = None, seed: int = 0, table: str | os.PathLike[str] | None = None,
    ) -> AutotuneResult:
        """Tunes the factory: returns the fastest configuration whose results are right.

        Args:
            warmup, rep: have no effect, as a modelled time is the same in each run.
            timeout: seconds for a configuration to compile and run; the default is 100, or as in ``set_profile_args``.
            executor: compiles and times the configurations: a ``concurrent.futures`` executor, such as that of a Dask client;
                or ``"threads"``, ``"processes"``, ``"dask"`` or ``"ray"``, with a number of workers (``"processes:4"``) or, for
                the latter two, the address of a cluster. Without it, they are timed one after the other.
            trials: the number of configurations to try, which an optimiser (Optuna) chooses; without it, all are tried.
            seed: the seed of the optimiser.
            table: a file for the outcomes of the configurations, a line of JSON each. An interrupted tuning continues from it.

        Raises:
            TileError: T707 the configurations or the executor are wrong; T730 there is no configuration, or none works (the
                reasons are in its notes); T735 a package is not installed; T736 the file is not the table of this tuning.
        """
        timeout = self.timeout if timeout is None else timeout
        configs = expand_configs(self.configs, (self.args, tuple(sorted(self.kwargs.items()))))
        if trials is not None and (type(trials) is not int or trials < 1):
            raise TileError(f"trials={trials!r} is not a number of configurations", code="T707", location=user_location(),
                            help="give a positive number, or leave it out to try all")
        factory = self.fn if isinstance(self.fn, (Factory, Method)) else jit(**self.compile_args)(self.fn)
        count = len(configs) if trials is None else min(trials, len(configs))
        search: Search = Optimiser(configs, count, seed) if count < len(configs) else Everything(configs)
        with open_executor(executor) as workers:
            tuning = Tuning(factory, self.args, self.kwargs, self.profile, timeout, workers,
                            None if table is None else Table(Path(table), self._title(factory)))
            ranked, check = tuning.run(search, count)
        if not ranked:
            notes = [f"{dict(item.config)}: {item.reason}" for item in tuning.rejected[:8]]
            msg = f"none of {len(tuning.rows)} configurations works" if configs else "there is no configuration to try"
            raise TileError(msg, code="T730", location=user_location(), notes=notes,
                            help="smaller tiles, or a parameter set that compiles when it is given by hand")
        best, config = ranked[0], dict(ranked[0].config)
        kernel = tuning.kernel(config)
        kernel.update_tuner_result(best.latency, config, check.latency)
        return AutotuneResult(best.latency, config, kernel, check.latency, [(one.latency, dict(one.config)) for one in ranked],
                              tuning.rejected)

    def _title(self, factory: Factory[..., object] | Method) -> dict[str, Any]:
        """Returns what identifies the table of this tuning."""
        settings = factory.settings
        return {"factory": factory.function.__qualname__, "arguments": [*map(repr, self.args)],
                **{name: repr(value) for name, value in sorted(self.kwargs.items())},
                "chip": select_chip(settings.chip, settings.platform, settings.at).name}

    def __call__(self, *args: Any, **kwargs: Any) -> AutotuneResult:
        """The same as :meth:`run`."""
        return self.run(*args, **kwargs)


def expand_configs(configs: Configs, arguments: tuple[object, ...]) -> list[Config]:
    """Returns the configurations as a list of parameter sets.

    Args:
        configs: a list, a grid or a function, see :class:`AutoTuner`.
        arguments: the arguments for a function.

    Raises:
        TileError: T707 they are not configurations.
    """
    made: Any = configs
    if callable(configs):
        made = configs(*arguments[:len(inspect.signature(configs).parameters)])
    if isinstance(made, Mapping):
        for name, values in made.items():
            if not _is_list(values):
                raise TileError(f"the grid of configurations has {values!r} for {name}", code="T707", location=user_location(),
                                help=f"a grid has lists of values: {{{name!r}: [{values!r}]}}")
        return [dict(zip(made, values, strict=True)) for values in itertools.product(*made.values())]
    listed = list(made) if _is_list(made) else [made]
    for config in listed:
        if not isinstance(config, Mapping):
            raise TileError(f"{config!r} is not a configuration", code="T707", location=user_location(),
                            help="configs is a list of dicts of parameters, a dict of lists of values, or a function of either")
    return [dict(config) for config in listed]


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


class Tuned:
    """A factory under ``autotune``. A call without the tunable parameters tunes them; a second such call does not tune
    again."""

    def __init__(self, factory: Factory[..., object], configs: Configs, profile: Mapping[str, object], run: Mapping[str, Any]
                 ) -> None:
        functools.update_wrapper(self, factory.function)
        self.factory = factory
        self.configs = configs
        self.profile, self.run_args = profile, run
        self._results: Kept[object, AutotuneResult] = Kept()
        self.last_result: AutotuneResult | None = None

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return bound(self, self.factory.kind, instance, owner)

    def __reduce__(self) -> tuple[Any, ...]:
        return reference_by_name(self, self.factory.function) or (
            Tuned, (self.factory, self.configs, self.profile, self.run_args))

    def __deepcopy__(self, _copied: object) -> Tuned:
        return self

    def __copy__(self) -> Tuned:
        return self

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Returns what the factory's call returns for the best configuration; if all tunable parameters are given, nothing is
        tuned.

        Raises:
            TileError: T730 no configuration works.
        """
        if self.factory.eager is None:
            return self.compile(*args, **kwargs)
        arrays = self.factory.arrays(args, kwargs)
        return self.compile(*args, **kwargs)(*arrays)

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """Returns the best kernel for these arguments; see :meth:`Factory.compile`.

        Raises:
            TileError: T730 no configuration works.
        """
        try:
            given = set(inspect.signature(self.factory.function).bind_partial(*args, **kwargs).arguments)
        except TypeError:  # there are too many arguments: the factory's call raises an error for them
            given = set(kwargs)
        configs = []
        for config in expand_configs(self.configs, (args, tuple(sorted(kwargs.items())))):
            tunable = {name: value for name, value in config.items() if name not in given}
            if tunable not in configs:
                configs.append(tunable)
        if configs in ([], [{}]):
            return self.factory.compile(*args, **kwargs)
        key = self.factory.key(args, kwargs)

        def tune() -> AutotuneResult:
            tuner = AutoTuner(self.factory, configs).set_profile_args(**self.profile)
            tuner.args, tuner.kwargs = args, kwargs
            return tuner.run(**self.run_args)

        result = tune() if key is None else self._results.get((key, repr(configs)), tune)
        self.last_result = result
        return result.kernel


@overload
def autotune(
    func: None = None, *, configs: Configs, warmup: float = ..., rep: float = ..., timeout: float = ...,
    executor: Executor | str | None = ..., trials: int | None = ..., seed: int = ...,
    table: str | os.PathLike[str] | None = ..., **profile: Any,
) -> Callable[[Any], Tuned]: ...
@overload
def autotune(
    func: Callable[..., Any], *, configs: Configs, warmup: float = ..., rep: float = ..., timeout: float = ...,
    executor: Executor | str | None = ..., trials: int | None = ..., seed: int = ...,
    table: str | os.PathLike[str] | None = ..., **profile: Any,
) -> Tuned: ...
def autotune(
    func: Callable[..., Any] | None = None, *, configs: Configs, warmup: float = 25, rep: float = 100,
    timeout: float = 100, executor: Executor | str | None = None, trials: int | None = None, seed: int = 0,
    table: str | os.PathLike[str] | None = None, **profile: Any,
) -> Any:
    """Chooses parameters of a factory by modelled time; written above ``jit``.

    Args:
        func: the factory, if ``autotune`` is not used as a decorator.
        configs: the configurations, see :class:`AutoTuner`.
        warmup, rep, timeout, executor, trials, seed, table: see :meth:`AutoTuner.run`.
        profile: the arguments of :meth:`AutoTuner.set_profile_args`.

    Raises:
        TileError: T707 an unknown argument, T708 the decorated function is not a factory under ``jit``.
    """
    run = {"warmup": warmup, "rep": rep, "timeout": timeout, "executor": executor, "trials": trials, "seed": seed,
           "table": table}
    AutoTuner(lambda: None, []).set_profile_args(**profile)  # raises an error for an unknown argument

    def decorate(factory: object) -> Tuned:
        if isinstance(factory, (staticmethod, classmethod)) and isinstance(factory.__func__, Factory):
            factory = Factory(factory.__func__.function, factory.__func__.settings, type(factory))
        if not isinstance(factory, Factory):
            msg = f"autotune takes a factory under jit, not {getattr(factory, '__name__', factory)!r}"
            raise TileError(msg, code="T708", location=user_location(), help="write @tilelang.jit below @tilelang.autotune")
        return Tuned(factory, configs, profile, run)

    return decorate if func is None else decorate(func)


doors(globals())
