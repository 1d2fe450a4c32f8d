"""``jit`` and ``compile``: from a factory or a ``prim_func`` to a kernel that can be called.

Decorating reads nothing. A factory's call makes the ``prim_func``, and that is when switches, environment and chip are read.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from tilelang_npu.errors import Location, TileError, doors
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.progress import shown
from tilelang_npu.runtime import captures, environment, listeners
from tilelang_npu.runtime.code_reads import Chain, chains_in
from tilelang_npu.runtime.methods import bound, by_name
from tilelang_npu.runtime.pointing import find
from tilelang_npu.runtime.targets import dialect_of, select_chip
from tilelang_npu.sharing import Kept, once
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from pathlib import Path

    from tilelang_npu.frontend.eager import Eager
    from tilelang_npu.runtime.draft import Draft
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.target import Chip

__all__ = ["Factory", "Settings", "compile", "jit", "lower"]

P = ParamSpec("P")
R = TypeVar("R")
Indices = int | Sequence[int] | None
PassConfigs = Mapping[Any, object] | None  # of PassConfigKey or its text; a mapping of either would be none of both

_BACKENDS = ("auto", "cython", "ctypes", "dlpack", "torch", "tvm_ffi", "simulator")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What ``jit`` and ``compile`` were told, unread until a kernel is compiled.

    Attributes:
        out_idx: parameters that a call allocates and returns; negative counts from the end.
        workspace_idx: parameters that a call allocates and keeps to itself.
        target: the dialect, see :mod:`tilelang_npu.runtime.targets`.
        platform: chip family, where no chip is named.
        chip: the chip.
        pass_configs: compiler switches.
        verbose: log what is compiled.
        debug_root_path: directory for the kernel's texts.
        sanitize: look for races, broken flags and results of unwritten bytes in every run, and raise a
            :class:`SanitizerError` behind one that has some; None asks the environment (``TILELANG_NPU_SANITIZE``).
        interpret: execute the kernel as Python, without compiling it; None asks ``TILELANG_NPU_INTERPRET``.
        at: where ``jit`` or ``compile`` was written.
    """

    out_idx: Indices = None
    workspace_idx: Indices = None
    target: object = "auto"
    platform: object = "auto"
    chip: str | Path | Chip | None = None
    pass_configs: PassConfigs = None
    verbose: bool = False
    debug_root_path: str | Path | None = None
    sanitize: bool | None = None
    interpret: bool | None = None
    at: Location | None = None

    def key(self) -> tuple[object, ...]:
        """What a kernel depends on beside its factory's arguments, as it stands at this moment."""
        switches = sorted(repr(item) for item in self.pass_configs.items()) if isinstance(self.pass_configs, Mapping) else ()
        chip = select_chip(self.chip, self.platform, self.at)
        return (
            dialect_of(self.target, self.at),
            chip.name if not chip.file else repr(chip),  # a file may change
            tuple(switches),
            environment.MODE.text(),
            environment.WITHOUT.text(),
            self.is_interpreted(),
        )

    def is_interpreted(self) -> bool:
        """Whether the kernel runs as Python."""
        return environment.INTERPRET.is_on() if self.interpret is None else self.interpret


class MadeBy(NamedTuple):
    """The function that returned a kernel's ``prim_func``, and what it was given."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class Given:
    """An argument's shape and element type, which is all that the host part of a function sees of it."""

    shape: tuple[int, ...]
    dtype: object


class Factory(Generic[P, R]):
    """A function under ``@jit``. The same arguments give the same kernel, as long as the globals that it reads hold the same;
    several threads that ask for it at once get one.

    What returns a ``prim_func`` is a factory: its call gives the kernel for these arguments. What holds ``with T.Kernel``
    itself and declares its tensors in its body takes them among its arguments: its call makes the kernel for them, runs it
    and returns what the function returns; ``compile`` gives the kernel alone.
    """

    def __init__(self, function: Callable[P, object], settings: Settings, kind: type = FunctionType) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.settings = settings
        self.kind = kind
        self._made: Kept[object, JITKernel] = Kept()
        self.__jit_impl__ = settings  # the name by which scripts ask for the target

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return bound(self, self.kind, instance, owner)

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name(self, self.function) or (Factory, (self.function, self.settings, self.kind))

    def __deepcopy__(self, _copied: object) -> Factory[P, R]:
        return self

    def __copy__(self) -> Factory[P, R]:
        return self

    @once
    def eager(self) -> Eager | None:
        """The function as one that holds its kernel itself; None for a factory."""
        from tilelang_npu.frontend.eager import read

        return read(self.function)

    @once
    def _annotated(self) -> tuple[Chain, ...]:
        """What the annotations in the body of a function that holds its kernel read."""
        trees = [] if self.eager is None else self.eager.annotations
        return tuple(dict.fromkeys(chain for tree in trees for chain in chains_in(tree)))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        tuned = kwargs.pop("__tune_params", None)
        if isinstance(tuned, Mapping):
            kwargs.update(tuned)
        arrays = None if self.eager is None else self.arrays(args, kwargs)
        kernel: Any = self.compile(*args, **kwargs)  # what R says: the kernel, or what its run returns
        made: R = kernel if arrays is None else kernel(*arrays)
        return made

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The kernel for these arguments, which is not run.

        Of a function that holds its kernel, the arrays may be left out, and the sizes of ``T.const`` named instead:
        ``f.compile(M=64, N=64)``.

        Raises:
            TileError: T401, T707, arguments that the function does not have, or that are missing; what :func:`jit` lists.
        """
        read = None if self.eager is None else self._read(self.eager, args, kwargs)
        key = self._key(args, kwargs, read)

        def make() -> JITKernel:
            func, settings, made_by = self._function(args, kwargs, read)
            made = _kernel(func, settings)
            made.made_by = made_by
            return made

        kernel = make() if key is None else self._made.get(key, make)
        listeners.compiled(kernel)
        return kernel

    def draft(self, *args: Any, **kwargs: Any) -> Draft:
        """The kernel for these arguments, traced and not lowered; see :meth:`compile`."""
        from tilelang_npu.runtime.draft import Draft

        func, settings, _ = self._function(args, kwargs, None if self.eager is None else self._read(self.eager, args, kwargs))
        return Draft.of(func, settings)

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """The source of the kernel for these arguments, see :meth:`JITKernel.get_kernel_source`."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        """Equal for arguments that give the same kernel; None where nobody can tell whether one has changed."""
        return self._key(args, kwargs, None if self.eager is None else self._read(self.eager, args, kwargs))

    def _key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any],
             read: tuple[dict[str, Any], dict[str, int]] | None) -> object:
        if self.eager is not None and read is not None:
            given, sizes = read
            args, kwargs = (), {**{name: value for name, value in given.items() if name not in self.eager.unread}, **sizes}
        settings = self.settings.key()
        reader = captures.reader_of(self.function)
        try:
            made = (reader.state_of_arguments(self.function, args, kwargs), reader.state_of_function(self.function), settings,
                    reader.state_of_chains(self._annotated, self.function))
            hash(made)
        except (TypeError, RecursionError) as reason:
            from tilelang_npu.runtime.log import logger

            logger.debug("%s is traced in each call: %s", self.__name__, reason)
            return None
        return made

    def arrays(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Those of the arguments that the kernel of a function takes, in its order.

        Raises:
            TileError: T401, one is missing.
        """
        assert self.eager is not None
        given = self._bound(args, kwargs)
        missing = next((name for name in self.eager.declared if name not in given), None)
        if missing is not None:
            raise TileError(f"{self.__name__} is called without {missing}", code="T401", location=user_location(),
                            help="give it, or call compile to get the kernel alone")
        return [given[name] for name in self.eager.declared]

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, whole: bool = False) -> dict[str, Any]:
        """The arguments by name, with defaults.

        Raises:
            TileError: T401, they do not fit the function, or, if it is to be the ``whole`` of them, some are missing.
        """
        function: Callable[..., object] = self.function
        signature = inspect.signature(function)
        try:
            bound = (signature.bind if whole else signature.bind_partial)(*args, **kwargs)
        except TypeError as problem:
            raise TileError(f"{self.__name__}: {problem}", code="T401", location=user_location(),
                            help=f"its parameters are {', '.join(signature.parameters)}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _read(self, eager: Eager, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
        """The arguments of a function, of arrays shape and type alone; and the sizes that they or keywords tell."""
        given = self._bound(args, {name: value for name, value in kwargs.items() if name in eager.parameters})
        named = {name: value for name, value in kwargs.items() if name not in given and name not in eager.parameters}
        arrays = {name: Given(tuple(getattr(given[name], "shape", ())), getattr(given[name], "dtype", None))
                  for name in eager.declared if given.get(name) is not None}
        arguments = {**given, **arrays}
        return arguments, eager.sizes(arguments, named)

    def _function(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], read: tuple[dict[str, Any], dict[str, int]] | None
                  ) -> tuple[PrimFunc, Settings, MadeBy | None]:
        """The kernel's function for these arguments, how it is compiled, and what made it."""
        return self._made_by(args, kwargs) if self.eager is None or read is None else self._held(self.eager, *read)

    def _held(self, eager: Eager, arguments: Mapping[str, Any], sizes: Mapping[str, int]) -> tuple[PrimFunc, Settings, None]:
        missing = next((name for name in eager.parameters if name not in arguments and name not in eager.declared), None)
        if missing is not None:
            raise TileError(f"{self.__name__} is called without {missing}", code="T401", location=user_location(),
                            help=f"its parameters are {', '.join(eager.parameters)}")
        if self.settings.out_idx is not None:
            raise TileError(f"out_idx beside {self.__name__}, which returns what it makes", code="T709",
                            location=self.settings.at, help="leave it out: T.empty makes a tensor, and return gives it out")
        made = eager.make(arguments, sizes)
        return made.kernel, replace(self.settings, out_idx=made.returned, workspace_idx=made.kept), None

    def _made_by(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[PrimFunc, Settings, MadeBy]:
        function: Callable[..., object] = self.function
        self._bound(args, kwargs, whole=True)
        made = function(*args, **kwargs)
        if not isinstance(made, PrimFunc):
            code = getattr(function, "__code__", None)
            where = Location(code.co_filename, code.co_firstlineno) if code is not None else self.settings.at
            msg = f"the factory {self.__name__} returned {_described(made)}, not a @T.prim_func"
            raise TileError(msg, code="T708", location=where, help="write @T.prim_func above the kernel" if callable(made) else
                            "end the factory with `return` and the kernel's name")
        return made, self.settings, MadeBy(function, args, kwargs)

    __name__: str

    def __repr__(self) -> str:
        return f"<tilelang_npu.jit factory {self.__name__}>"


def _described(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


class Jit(Protocol):
    """What ``jit`` with settings is: it decorates a function that returns a kernel, or one that holds its kernel itself."""

    @overload
    def __call__(self, func: Callable[P, Callable[..., object]], /) -> Factory[P, JITKernel]: ...
    @overload
    def __call__(self, func: Callable[P, object], /) -> Factory[P, Any]: ...


@overload
def jit(func: Callable[P, Callable[..., object]]) -> Factory[P, JITKernel]: ...
@overload
def jit(func: Callable[P, object]) -> Factory[P, Any]: ...
@overload
def jit(
    func: None = None, *, out_idx: Indices = ..., workspace_idx: Indices = ..., target: object = ...,
    platform: object = ..., target_host: object = ..., execution_backend: str = ..., verbose: bool = ...,
    pass_configs: PassConfigs = ..., debug_root_path: str | Path | None = ..., chip: str | Path | Chip | None = ...,
    sanitize: bool | None = ..., interpret: bool | None = ..., compile_flags: object = ...,
) -> Jit: ...
@overload
def jit(
    func: Callable[P, object], *, out_idx: Indices = ..., workspace_idx: Indices = ..., target: object = ...,
    platform: object = ..., target_host: object = ..., execution_backend: str = ..., verbose: bool = ...,
    pass_configs: PassConfigs = ..., debug_root_path: str | Path | None = ..., chip: str | Path | Chip | None = ...,
    sanitize: bool | None = ..., interpret: bool | None = ..., compile_flags: object = ...,
) -> Factory[P, Any]: ...
def jit(func: Callable[..., object] | None = None, **settings: Any) -> Any:
    """Make a factory of kernels: ``@jit``, ``@jit(out_idx=[-1])`` or ``jit(factory, out_idx=[-1])``.

    The factory takes sizes, types and tuning parameters, defines one ``@T.prim_func`` and returns it. Its call returns a
    :class:`JITKernel`, the same one for the same arguments. Nothing is traced before that call.

    Args:
        func: the factory.
        settings: ``out_idx``, ``workspace_idx``, ``target``, ``platform``, ``chip``, ``pass_configs``, ``verbose``,
            ``debug_root_path``, ``sanitize`` and ``interpret`` of :class:`Settings`; ``target_host``, ``execution_backend`` and
            ``compile_flags`` are accepted for the sake of existing scripts and change nothing.

    Raises:
        TileError: T707 an unknown argument, T708 what is decorated makes no kernel. At the factory's call, whatever is
            wrong with the settings (T701 to T706, T709, T720) or with the kernel.
    """
    read = _settings("jit", settings, user_location())
    if func is None:
        return functools.partial(_factory, settings=read)
    return _factory(func, read)


def _factory(function: Callable[..., object], settings: Settings) -> Factory[..., Any]:
    if isinstance(function, (staticmethod, classmethod)):
        return Factory(function.__func__, settings, type(function))
    if isinstance(function, PrimFunc):
        msg = f"@jit decorates a factory that returns a kernel, and {function.function.__name__} is a kernel itself"
        raise TileError(msg, code="T708", location=function.location,
                        help="put it into a function that returns it, or give it to tilelang.compile")
    return Factory(function, settings)


def compile(func: PrimFunc, **settings: Any) -> JITKernel:  # noqa: A001  (the name TileLang gives it)
    """Compile one ``@T.prim_func``; the settings are those of :func:`jit`.

    Raises:
        TileError: T707 an unknown argument, T708 ``func`` is no ``prim_func``, and what :func:`jit` lists.
    """
    read = _settings("compile", settings, user_location())
    if not isinstance(func, PrimFunc):
        kind = "a factory: call it with its arguments" if isinstance(func, Factory) else _described(func)
        msg = f"compile takes a @T.prim_func; this is {kind}"
        raise TileError(msg, code="T708", location=read.at, help="pass the function under @T.prim_func")
    kernel = _kernel(func, read)
    listeners.compiled(kernel)
    return kernel


def lower(func: PrimFunc, **settings: Any) -> str:
    """The kernel as one hands it to the vendor's compiler: MLIR text of the stage ``hivm-auto``.

    Raises:
        TileError: what :func:`compile` lists.
    """
    return compile(func, **settings).mlir("hivm-auto")


_ACCEPTED = ("target_host", "execution_backend", "compile_flags")


def _settings(what: str, given: Mapping[str, Any], at: Location | None) -> Settings:
    fields = [name for name in Settings.__dataclass_fields__ if name != "at"]
    for name in given:
        if name not in fields and name not in _ACCEPTED:
            from difflib import get_close_matches

            near = get_close_matches(name, [*fields, *_ACCEPTED], n=1)
            msg = f"{what} has no argument {name!r}"
            raise TileError(msg, code="T707", location=find(name, at),
                            help=f"did you mean {near[0]!r}?" if near else f"its arguments are {', '.join(fields)}")
    backend = given.get("execution_backend", "auto")
    if backend is not None and backend not in _BACKENDS:
        msg = f"unknown execution_backend {backend!r}"
        raise TileError(msg, code="T707", location=find("execution_backend", at), help=f"one of {', '.join(_BACKENDS)}")
    for name in ("sanitize", "interpret"):
        if given.get(name) not in (None, True, False):
            msg = f"{name} is {given[name]!r}, neither True nor False"
            raise TileError(msg, code="T707", location=find(name, at), help=f"write {name}=True")
    return replace(Settings(at=at), **{name: value for name, value in given.items() if name in fields})


def _kernel(func: PrimFunc, settings: Settings) -> JITKernel:
    if settings.is_interpreted():
        from tilelang_npu.runtime.interpreted import InterpretedKernel

        environment.check()
        return cast("JITKernel", InterpretedKernel(func, settings, lambda: _compiled(func, settings)))
    return _compiled(func, settings)


def _compiled(func: PrimFunc, settings: Settings) -> JITKernel:
    from tilelang_npu.runtime.kept_kernels import keep, kept, key_of
    from tilelang_npu.runtime.kernel import JITKernel

    key = key_of(func, settings)
    found = kept(key, func, settings) if key else None
    if found is not None:
        return found
    with shown(f"compiling {func.function.__name__}"):
        made = JITKernel(func, settings)
    made.keep = functools.partial(keep, key) if key else None
    return made


doors(globals())
