"""``autotune`` and ``AutoTuner``: choose the parameters of a factory by modelled time.

Every configuration is compiled and timed by the machine model, without computing values. A configuration that fails to compile
is rejected with its reason. The fastest configuration is then run, and its results are compared with those of a reference
program, or of another configuration if there is no reference. If its results are wrong, it is rejected, and the next fastest
configuration is run. Times are modelled, so the same configurations always give the same winner. If a kernel's time depends on
the elements of arrays, every configuration is run.
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
from typing import TYPE_CHECKING, Any, TypeGuard, overload

from tilelang_npu.errors import TileError, doors
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.jit.factory import Factory, jit
from tilelang_npu.runtime.jit.methods import Method, bound, reference_by_name
from tilelang_npu.runtime.kernel.executors import open_executor
from tilelang_npu.runtime.settings.targets import select_chip
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

Configs = Sequence[Config] | Mapping[str, Sequence[object]] | Callable[..., object]


@dataclass(frozen=True)
class AutotuneResult:
    """The result of a tuning.

    Attributes:
        latency: modelled milliseconds of the best configuration.
        config: the parameters of the best configuration, by name.
        kernel: the compiled kernel of the best configuration.
        ref_latency: milliseconds that the reference program took on the host; None without a reference.
        tried: modelled milliseconds and parameters of every configuration that works, fastest first. The results of
            configurations that are slower than the best one were possibly not checked.
        rejected: the configurations that failed or had wrong results, with the reasons.
    """

    latency: float
    config: dict[str, object]
    kernel: JITKernel
    ref_latency: float | None = None
    tried: list[tuple[float, dict[str, object]]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    @property
    def func(self) -> PrimFunc:
        """The function under ``@T.prim_func`` of the best configuration."""
        return self.kernel.prim_func

    def picture(self, most: int = 40) -> Picture:
        """Returns a bar chart of the modelled times in microseconds, fastest configuration first, then the rejected ones.

        Args:
            most: the largest number of configurations in the chart.
        """
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


_OF_MEASUREMENTS = frozenset((
    "early_stop", "early_stop_factor", "enable_grouped_compile", "group_compile_size", "use_pipeline", "profile_backend"))
"""Arguments of TileLang for GPUs about how configurations are compiled together and measured, which have no effect."""


class AutoTuner:
    """Finds the best values for the tunable parameters of one factory.

    Args:
        fn: a function that takes parameters and returns a ``prim_func``, or a factory under ``jit``.
        configs: the configurations to try: a list of dicts of parameter values; a dict of lists of values (a grid), of which
            all combinations are tried; or a function that returns such a list or dict. The function can have up to two
            parameters: the tuple of the call's positional arguments, and the tuple of the call's named arguments as sorted
            ``(name, value)`` pairs.
    """

    def __init__(self, fn: Callable[..., object], configs: Configs) -> None:
        self.fn = fn
        self.configs = configs
        self.profile = TuningProfile()
        self.timeout: float = 100
        self.compile_args: dict[str, Any] = {}
        self.args: tuple[object, ...] = ()
        self.kwargs: Mapping[str, object] = {}

    @classmethod
    def from_kernel(cls, kernel: Callable[..., object], configs: Configs) -> AutoTuner:
        """Returns a tuner of a factory; the same as ``AutoTuner(kernel, configs)``."""
        return cls(kernel, configs)

    def set_compile_args(self, **settings: Any) -> AutoTuner:
        """Sets the arguments of ``jit`` with which the configurations are compiled, and returns the tuner.

        Args:
            settings: the arguments of :func:`jit`.

        Raises:
            TileError: T707 the factory is under ``jit``, which has such arguments already.
        """
        if settings and isinstance(self.fn, (Factory, Method)):
            raise TileError(f"set_compile_args has no effect on {self.fn.function.__name__}, which is under jit", code="T707",
                            location=user_location(),
                            help="pass these arguments to jit, or tune the function without the decorator jit")
        self.compile_args = settings
        return self

    def set_profile_args(self, **settings: Any) -> AutoTuner:
        """Sets how configurations are run and checked, and returns the tuner.

        Args:
            settings: the fields of :class:`TuningProfile`, and ``timeout``, ``warmup`` and ``rep`` as for :meth:`run`.

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
        trials: int | None = None, seed: int = 0, table: str | os.PathLike[str] | None = None, **measured: object,
    ) -> AutotuneResult:
        """Tunes the factory, and returns the fastest configuration whose results are right.

        Args:
            warmup, rep: have no effect, because a modelled time is the same in each run.
            timeout: the seconds that a configuration can take to compile, and to run. None for the value from
                :meth:`set_profile_args`, which is 100 by default.
            executor: compiles and times the configurations. It is a ``concurrent.futures`` executor, such as that of a Dask
                client, or one of the names ``"threads"``, ``"processes"``, ``"dask"`` and ``"ray"``. A name can have a number
                of workers (``"processes:4"``); ``dask`` and ``ray`` can have the address of a cluster (``"dask:ADDRESS"``).
                Without an executor, the configurations are timed one after the other.
            trials: the number of configurations to try, which an optimiser (Optuna) chooses; None to try all.
            seed: the seed of the optimiser.
            table: the path of a file for the outcomes of the configurations, with one line of JSON for each. If the file
                exists, an interrupted tuning continues with the remaining configurations.
            measured: arguments of TileLang for GPUs that shorten measurements (``early_stop``, ``enable_grouped_compile``, ...)
                and have no effect: a modelled time needs one run, and every configuration is tried.

        Raises:
            TileError: T707 an unknown argument, or the configurations or the executor are wrong; T730 there is no
                configuration, or none works (the notes list the reasons); T735 a required package is not installed; T736 the
                file is not the table of this tuning.
        """
        for name in measured.keys() - _OF_MEASUREMENTS:
            raise TileError(f"AutoTuner.run has no argument {name!r}", code="T707", location=user_location(),
                            help="its arguments are timeout, executor, trials, seed and table")
        timeout = self.timeout if timeout is None else timeout
        configs = expand_configs(self.configs, (self.args, tuple(sorted(self.kwargs.items()))))
        if trials is not None and (type(trials) is not int or trials < 1):
            raise TileError(f"trials={trials!r} is not a number of configurations", code="T707", location=user_location(),
                            help="pass a positive integer, or remove trials to try all configurations")
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
            of_data = tuning.rejected and all(item.code == "T502" for item in tuning.rejected)
            raise TileError(msg, code="T730", location=user_location(), notes=notes, help=(
                "the kernel does not run on generated arguments, which may be indices out of range: give arguments with "
                "supply_prog, or with tune --inputs (docs/tuning.md)" if of_data else
                "add a configuration that compiles without tuning, for example one with smaller tiles"))
        best, config = ranked[0], dict(ranked[0].config)
        kernel = tuning.kernel(config)
        kernel.update_tuner_result(best.latency, config, check.latency)
        return AutotuneResult(best.latency, config, kernel, check.latency, [(one.latency, dict(one.config)) for one in ranked],
                              tuning.rejected)

    def _title(self, factory: Factory[..., Any] | Method) -> dict[str, object]:
        """Returns the values that identify the table of this tuning, such as the factory, its arguments and the chip."""
        settings = factory.settings
        return {"factory": factory.function.__qualname__, "arguments": [*map(repr, self.args)],
                **{name: repr(value) for name, value in sorted([*self.kwargs.items(), *self.profile.sizes.items()])},
                "chip": select_chip(settings.chip, settings.platform, settings.at).name}

    def __call__(self, *args: Any, **kwargs: Any) -> AutotuneResult:
        """The same as :meth:`run`."""
        return self.run(*args, **kwargs)


def expand_configs(configs: Configs, arguments: tuple[object, ...]) -> list[Config]:
    """Returns the configurations as a list of dicts of parameter values.

    Args:
        configs: a list of dicts, a dict of lists (a grid), or a function that returns one of these; see :class:`AutoTuner`.
        arguments: the arguments with which a function is called; it gets as many of them as it has parameters.

    Raises:
        TileError: T707 ``configs`` has another form.
    """
    made: object = configs
    if callable(configs):
        made = configs(*arguments[:len(inspect.signature(configs).parameters)])
    if isinstance(made, Mapping):
        for name, values in made.items():
            if not _is_list(values):
                raise TileError(f"the grid of configurations has {values!r} for {name}", code="T707", location=user_location(),
                                help=f"a grid must be a dict of lists of values: {{{name!r}: [{values!r}]}}")
        return [dict(zip(made, values, strict=True)) for values in itertools.product(*made.values())]
    listed = list(made) if _is_list(made) else [made]
    for config in listed:
        if not isinstance(config, Mapping):
            raise TileError(f"{config!r} is not a configuration", code="T707", location=user_location(),
                            help="configs must be a list of dicts of parameters, a dict of lists of values, or a function that "
                                 "returns one of these")
    return [dict(config) for config in listed if isinstance(config, Mapping)]


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


class Tuned:
    """A factory under ``autotune``, which chooses the tunable parameters that a call does not pass.

    Args:
        factory: the factory under ``jit``.
        configs: the configurations to try, see :class:`AutoTuner`.
        profile: the arguments of :meth:`AutoTuner.set_profile_args`.
        run: the arguments of :meth:`AutoTuner.run`.
        unspecialised: the names of parameters for whose values the factory is not tuned again.

    Attributes:
        last_result: the result of the last call that needed tuning, also if an earlier call had tuned already; None before.
    """

    def __init__(self, factory: Factory[..., Any], configs: Configs, profile: Mapping[str, Any], run: Mapping[str, Any],
                 unspecialised: Sequence[str] = ()) -> None:
        functools.update_wrapper(self, factory.function)
        self.factory = factory
        self.configs = configs
        self.profile, self.run_args, self.unspecialised = profile, run, tuple(unspecialised)
        self._results: Kept[object, AutotuneResult] = Kept()
        self.last_result: AutotuneResult | None = None

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return bound(self, self.factory.kind, instance, owner)

    def __reduce__(self) -> tuple[object, ...]:
        return reference_by_name(self, self.factory.function) or (
            Tuned, (self.factory, self.configs, self.profile, self.run_args, self.unspecialised))

    def __deepcopy__(self, _copied: object) -> Tuned:
        return self

    def __copy__(self) -> Tuned:
        return self

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Calls the factory with the best values of the tunable parameters that the call does not pass.

        The first call with some arguments tunes; later calls with the same arguments use its result. If a call passes all
        tunable parameters, nothing is tuned.

        Returns:
            The kernel; for an eager function, the results of running the kernel.

        Raises:
            TileError: T730 no configuration works.
        """
        if self.factory.eager is None:
            return self.compile(*args, **kwargs)
        arrays = self.factory.arrays(args, kwargs)
        return self.compile(*args, **kwargs)(*arrays)

    def compile(self, *args: object, **kwargs: object) -> JITKernel:
        """Returns the kernel of the best configuration for these arguments, without running it; tunes if necessary.

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
        key = self._key(args, kwargs)

        def tune() -> AutotuneResult:
            tuner = AutoTuner(self.factory, configs).set_profile_args(**self.profile)
            tuner.args, tuner.kwargs = args, kwargs
            return tuner.run(**self.run_args)

        result = tune() if key is None else self._results.get((key, repr(configs)), tune)
        self.last_result = result
        return self.factory.compile(*args, **{**kwargs, **result.config}) if self.unspecialised else result.kernel

    def _key(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Returns a key of a call, as :meth:`Factory.key`, without the values of ``unspecialised`` parameters."""
        if not self.unspecialised:
            return self.factory.key(args, kwargs)
        try:
            given = self.factory.signature.bind_partial(*args, **kwargs).arguments
        except TypeError:  # as in compile
            return None
        return self.factory.key((), {name: value for name, value in given.items() if name not in self.unspecialised})


@overload
def autotune(
    func: None = None, *, configs: Configs, warmup: float = ..., rep: float = ..., timeout: float = ...,
    executor: Executor | str | None = ..., trials: int | None = ..., seed: int = ...,
    table: str | os.PathLike[str] | None = ..., do_not_specialize: Sequence[str] | None = ..., **profile: object,
) -> Callable[[object], Tuned]: ...
@overload
def autotune(
    func: Callable[..., object], *, configs: Configs, warmup: float = ..., rep: float = ..., timeout: float = ...,
    executor: Executor | str | None = ..., trials: int | None = ..., seed: int = ...,
    table: str | os.PathLike[str] | None = ..., do_not_specialize: Sequence[str] | None = ..., **profile: object,
) -> Tuned: ...
def autotune(
    func: Callable[..., object] | None = None, *, configs: Configs, warmup: float = 25, rep: float = 100,
    timeout: float = 100, executor: Executor | str | None = None, trials: int | None = None, seed: int = 0,
    table: str | os.PathLike[str] | None = None, do_not_specialize: Sequence[str] | None = None, **profile: object,
) -> object:
    """Returns a factory that chooses its tunable parameters by modelled time; as a decorator it must be above ``jit``.

    Args:
        func: the factory under ``jit``; without it, ``autotune`` returns a decorator.
        configs: the configurations, see :class:`AutoTuner`.
        warmup, rep, timeout, executor, trials, seed, table: see :meth:`AutoTuner.run`.
        do_not_specialize: names of parameters, such as a batch size: a call that differs from an earlier one in their values
            only uses its configuration, without tuning again.
        profile: the arguments of :meth:`AutoTuner.set_profile_args`, and the arguments ``measured`` of :meth:`AutoTuner.run`.

    Raises:
        TileError: T707 an unknown argument, or a name in ``do_not_specialize`` that is no parameter; T708 the decorated
            function is not a factory under ``jit``.
    """
    run = {"warmup": warmup, "rep": rep, "timeout": timeout, "executor": executor, "trials": trials, "seed": seed,
           "table": table}
    profile = {name: value for name, value in profile.items() if name not in _OF_MEASUREMENTS}
    AutoTuner(lambda: None, []).set_profile_args(**profile)  # raises an error for an unknown argument

    def decorate(factory: object) -> Tuned:
        if isinstance(factory, (staticmethod, classmethod)) and isinstance(factory.__func__, Factory):
            factory = Factory(factory.__func__.function, factory.__func__.settings, type(factory))
        if not isinstance(factory, Factory):
            msg = f"autotune takes a factory under jit, not {getattr(factory, '__name__', factory)!r}"
            raise TileError(msg, code="T708", location=user_location(), help="write @tilelang.jit below @tilelang.autotune")
        for name in do_not_specialize or ():
            if name not in factory.signature.parameters:
                raise TileError(f"do_not_specialize names {name!r}, which is no parameter of {factory.__name__}", code="T707",
                                location=user_location(), help="its parameters are " + ", ".join(factory.signature.parameters))
        return Tuned(factory, configs, profile, run, do_not_specialize or ())

    return decorate if func is None else decorate(func)


doors(globals())
