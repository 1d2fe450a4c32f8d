"""``jit`` and ``compile``: make callable kernels from factories and from ``prim_func`` functions.

Decorating a function only stores the function and the settings. The call of a factory runs the function, which returns the
``prim_func``; only then are the environment and the chip looked up.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

from tilelang_npu.errors import Location, TileError, doors
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.plugins.registry import generation
from tilelang_npu.progress import shown
from tilelang_npu.runtime.cache import captures
from tilelang_npu.runtime.cache.code_reads import Chain, chains_in
from tilelang_npu.runtime.jit.methods import bound, reference_by_name
from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.jit_settings import Indices, MadeBy, PassConfigs, Settings, read_settings
from tilelang_npu.sharing import Kept, once
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from pathlib import Path

    from tilelang_npu.frontend.eager import Eager
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.kernel.draft import Draft
    from tilelang_npu.target import Chip

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class ArrayType:
    """The shape and element type of an array argument. The host code of an eager function gets this object in place of the
    array, so that it cannot read elements.

    Attributes:
        shape: the array's shape.
        dtype: the array's element type, as NumPy or torch give it.
    """

    shape: tuple[int, ...]
    dtype: object


class _EagerCall(NamedTuple):
    """The arguments of an eager function's call.

    Attributes:
        arguments: the arguments by name, with an :class:`ArrayType` for each array.
        sizes: the sizes of ``T.const``, from the arrays or from keyword arguments.
    """

    arguments: dict[str, object]
    sizes: dict[str, int]


class Factory(Generic[P, R]):
    """A function under ``@jit``, which compiles one kernel for each set of arguments and caches the kernels.

    Calls with the same arguments use the same kernel, as long as the globals that the function reads do not change. If several
    threads need a kernel at the same time, one of them compiles it.

    There are two kinds of functions. A factory function returns a ``prim_func``; a call returns the compiled kernel for the
    arguments. An eager function contains ``with T.Kernel`` itself, and declares in its body which of its parameters are
    tensors. A call of an eager function compiles the kernel for the arguments, runs it on the tensors among them, and returns
    the results; :meth:`compile` returns the kernel without running it.

    Args:
        function: the decorated function.
        settings: the arguments of ``jit``.
        kind: ``staticmethod`` or ``classmethod`` if ``function`` was wrapped in one, else ``FunctionType``.
    """

    def __init__(self, function: Callable[P, object], settings: Settings, kind: type = FunctionType) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.settings = settings
        self.kind = kind
        self._kernels: Kept[object, JITKernel] = Kept()
        self.__jit_impl__ = settings  # scripts read the target from this attribute

    __name__: str

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the decorated function, by whose parameters scripts of TileLang choose the numbers of a kernel."""
        return inspect.signature(self.function)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return bound(self, self.kind, instance, owner)

    def __reduce__(self) -> tuple[object, ...]:
        return reference_by_name(self, self.function) or (Factory, (self.function, self.settings, self.kind))

    def __deepcopy__(self, _copied: object) -> Factory[P, R]:
        return self

    def __copy__(self) -> Factory[P, R]:
        return self

    @once
    def eager(self) -> Eager | None:
        """The parsed source of an eager function; None for a factory function."""
        from tilelang_npu.frontend.eager import read

        return read(self.function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        tuned = kwargs.pop("__tune_params", None)
        if isinstance(tuned, Mapping):
            kwargs.update(tuned)
        arrays = None if self.eager is None else self.arrays(args, kwargs)
        kernel: Any = self.compile(*args, **kwargs)  # R is the kernel for a factory, and the results for an eager function
        made: R = kernel if arrays is None else kernel(*arrays)
        return made

    def compile(self, *args: object, **kwargs: object) -> JITKernel:
        """Returns the compiled kernel for these arguments, without running it.

        For an eager function, the arrays can be omitted if the sizes of ``T.const`` are given by name:
        ``f.compile(M=64, N=64)``.

        Raises:
            TileError: T401 or T707, the function has no such argument, or an argument is missing; and the errors of a factory's
                call that :func:`jit` lists.
        """
        eager_call = self._eager_call(args, kwargs)
        key = self._key(args, kwargs, eager_call)

        def make() -> JITKernel:
            func, settings, made_by = self._prim_func(args, kwargs, eager_call)
            kernel = _make_kernel(func, settings)
            kernel.made_by = made_by
            return kernel

        kernel = make() if key is None else self._kernels.get(key, make)
        listeners.tell_compiled(kernel)
        return kernel

    def par_compile(self, configs: Iterable[Mapping[str, object] | Sequence[object]], num_workers: int | None = None,
                    ignore_error: bool = False) -> list[JITKernel | None]:
        """Returns the compiled kernels for several sets of arguments, in order. They are compiled one after another.

        Args:
            configs: for each kernel its arguments: a mapping of named ones, or a sequence of positional ones.
            num_workers: has no effect.
            ignore_error: whether the result for arguments that cannot be compiled is None, after a warning.

        Raises:
            TileError: as :meth:`compile`, without ``ignore_error``.
        """
        calls = ((functools.partial(self.compile, **config) if isinstance(config, Mapping)
                  else functools.partial(self.compile, *config)) for config in configs)
        return _compile_all(calls, ignore_error=ignore_error)

    def draft(self, *args: object, **kwargs: object) -> Draft:
        """Returns the kernel for these arguments as a draft, which is traced but not lowered.

        Raises:
            TileError: as :meth:`compile`, except errors that the lowering finds.
        """
        from tilelang_npu.runtime.kernel.draft import Draft

        func, settings, _ = self._prim_func(args, kwargs, self._eager_call(args, kwargs))
        return Draft.of(func, settings)

    def get_kernel_source(self, *args: object, **kwargs: object) -> str:
        """Compiles the kernel for these arguments and returns the HIVM text of its last stage; see
        :meth:`JITKernel.get_kernel_source`.
        """
        return self.compile(*args, **kwargs).get_kernel_source()

    def key(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Returns a hashable key of a call: calls with equal keys return the same kernel.

        The key is None if the kernel depends on values whose changes cannot be detected; each call then traces the kernel
        again.

        Args:
            args, kwargs: the positional and the named arguments of the call.
        """
        return self._key(args, kwargs, self._eager_call(args, kwargs))

    def _key(self, args: tuple[object, ...], kwargs: Mapping[str, object], eager_call: _EagerCall | None) -> object:
        annotations: tuple[Chain, ...] = ()
        if self.eager is not None and eager_call is not None:
            read = {name: value for name, value in eager_call.arguments.items() if name not in self.eager.unread}
            args, kwargs = (), {**read, **eager_call.sizes}
            annotations = self._chains_in_annotations
        settings = self.settings.key()
        reader = captures.reader_of(self.function)
        try:
            key = (reader.state_of_arguments(self.function, args, kwargs), reader.state_of_function(self.function), settings,
                   reader.state_of_chains(annotations, self.function), generation())
            hash(key)
        except (TypeError, RecursionError) as reason:
            from tilelang_npu.runtime.settings.log import logger  # loads logging, which a call with a key does not need

            logger.debug("%s is traced in each call: %s", self.__name__, reason)
            return None
        return key

    @once
    def _chains_in_annotations(self) -> tuple[Chain, ...]:
        """The chains (a name followed by attributes) that the annotations in the body of an eager function read."""
        trees = [] if self.eager is None else self.eager.annotations
        return tuple(dict.fromkeys(chain for tree in trees for chain in chains_in(tree)))

    def arrays(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[object]:
        """Returns those arguments of an eager function's call that are tensors of its kernel, in the order of declaration.

        Raises:
            TileError: T401, a tensor is missing.
        """
        assert self.eager is not None
        given = self._bound_arguments(args, kwargs)
        missing = next((name for name in self.eager.declared if name not in given), None)
        if missing is not None:
            raise TileError(f"{self.__name__} is called without {missing}", code="T401", location=user_location(),
                            help=f"pass {missing}, or call {self.__name__}.compile(...) for the kernel without a run")
        return [given[name] for name in self.eager.declared]

    def _bound_arguments(self, args: Sequence[object], kwargs: Mapping[str, object], *, complete: bool = False
                         ) -> dict[str, object]:
        """Returns the arguments by name, with defaults.

        Raises:
            TileError: T401, the function does not take these arguments, or, with ``complete``, some are missing.
        """
        function: Callable[..., object] = self.function
        signature = inspect.signature(function)
        try:
            arguments = (signature.bind if complete else signature.bind_partial)(*args, **kwargs)
        except TypeError as problem:
            raise TileError(f"{self.__name__}: {problem}", code="T401", location=user_location(),
                            help=f"its parameters are {', '.join(signature.parameters)}") from None
        arguments.apply_defaults()
        return dict(arguments.arguments)

    def _named(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[str]:
        """Returns the names of the parameters to which a call of an eager function passes an argument."""
        assert self.eager is not None
        taken = {name: value for name, value in kwargs.items() if name in self.eager.parameters}
        return list(inspect.signature(self.function).bind_partial(*args, **taken).arguments)

    def _eager_call(self, args: Sequence[object], kwargs: Mapping[str, Any]) -> _EagerCall | None:
        """Returns the arguments of an eager function's call; None for a factory."""
        if self.eager is None:
            return None
        parameters = self.eager.parameters
        given = self._bound_arguments(args, {name: value for name, value in kwargs.items() if name in parameters})
        sizes = {name: value for name, value in kwargs.items() if name not in given and name not in parameters}
        arrays = {name: ArrayType(tuple(getattr(given[name], "shape", ())), getattr(given[name], "dtype", None))
                  for name in self.eager.declared if given.get(name) is not None}
        arguments = {**given, **arrays}
        return _EagerCall(arguments, self.eager.sizes(arguments, sizes))

    def _prim_func(self, args: tuple[object, ...], kwargs: Mapping[str, object], eager_call: _EagerCall | None
                   ) -> tuple[PrimFunc, Settings, MadeBy | None]:
        """Returns the kernel's function for these arguments, its settings, and the call that made it.

        Raises:
            TileError: T401 arguments do not fit, T708 a factory returned no ``prim_func``, T709 an eager function has
                ``out_idx``.
        """
        if self.eager is not None and eager_call is not None:
            missing = next((name for name in self.eager.parameters
                            if name not in eager_call.arguments and name not in self.eager.declared), None)
            if missing is not None:
                raise TileError(f"{self.__name__} is called without {missing}", code="T401", location=user_location(),
                                help=f"its parameters are {', '.join(self.eager.parameters)}")
            if self.settings.out_idx is not None:
                raise TileError(f"out_idx is given for {self.__name__}, which returns its results itself", code="T709",
                                location=self.settings.at,
                                help="remove out_idx: the function makes its results with T.empty and returns them with return")
            made, host = self.eager.make(*eager_call), self.eager
            given = {name: eager_call.arguments[name] for name in self._named(args, kwargs)}
            made_by = MadeBy(self.function, (), given, user_location(), eager_call.sizes,
                             lambda arguments, sizes: host.make(arguments, sizes).kernel)
            return made.kernel, replace(self.settings, out_idx=made.returned, workspace_idx=made.kept), made_by
        function: Callable[..., object] = self.function
        self._bound_arguments(args, kwargs, complete=True)
        func = function(*args, **kwargs)
        if not isinstance(func, PrimFunc):
            code = getattr(function, "__code__", None)
            where = Location(code.co_filename, code.co_firstlineno) if code is not None else self.settings.at
            msg = f"the factory {self.__name__} returned {_described(func)}, not a @T.prim_func"
            raise TileError(msg, code="T708", location=where, help="write @T.prim_func above the kernel" if callable(func) else
                            "end the factory with `return` and the kernel's name")
        return func, self.settings, MadeBy(function, args, kwargs, user_location())

    def __repr__(self) -> str:
        return f"<tilelang_npu.jit factory {self.__name__}>"


def _described(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


class Jit(Protocol):
    """The type of the decorator that ``jit(out_idx=..., ...)`` returns; it makes a :class:`Factory` from a function."""

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
def jit(func: Callable[..., object] | None = None, **settings: object) -> Any:
    """Returns a factory of kernels: ``@jit``, ``@jit(out_idx=[-1])`` or ``jit(factory, out_idx=[-1])``.

    The decorated function takes sizes, types and tuning parameters, defines one ``@T.prim_func`` and returns it. A call of the
    factory traces and compiles that function, and returns a :class:`JITKernel`. Calls with the same arguments return the same
    kernel.

    Args:
        func: the function to decorate; without it, ``jit`` returns a decorator.
        settings: ``out_idx``, ``workspace_idx``, ``target``, ``platform``, ``chip``, ``pass_configs``, ``verbose``,
            ``debug_root_path``, ``sanitize`` and ``interpret`` of :class:`Settings`; ``target_host``, ``execution_backend`` and
            ``compile_flags`` are accepted for existing scripts, and have no effect.

    Raises:
        TileError: T707 an unknown argument, T708 the decorated function is a ``prim_func`` itself. A call of the factory raises
            errors of the settings (T701 to T706, T709, T720) and of the kernel.
    """
    read = read_settings("jit", settings, user_location())
    if func is None:
        return functools.partial(_make_factory, settings=read)
    return _make_factory(func, read)


def _make_factory(function: Callable[..., object], settings: Settings) -> Factory[..., Any]:
    if isinstance(function, (staticmethod, classmethod)):
        return Factory(function.__func__, settings, type(function))
    if isinstance(function, PrimFunc):
        msg = f"@jit decorates a factory that returns a kernel, and {function.function.__name__} is a kernel itself"
        raise TileError(msg, code="T708", location=function.location,
                        help="put it into a function that returns it, or give it to tilelang.compile")
    return Factory(function, settings)


def compile(func: PrimFunc, **settings: object) -> JITKernel:  # noqa: A001  (TileLang's name)
    """Compiles one ``@T.prim_func`` and returns the kernel.

    Args:
        func: the function under ``@T.prim_func``.
        settings: the same named arguments as those of :func:`jit`.

    Raises:
        TileError: T707 an unknown argument, T708 ``func`` is not a ``prim_func``; errors of the settings (T701 to T706, T709,
            T720) and of the kernel.
    """
    read = read_settings("compile", settings, user_location())
    if not isinstance(func, PrimFunc):
        kind = "a factory: call it with its arguments" if isinstance(func, Factory) else _described(func)
        msg = f"compile takes a @T.prim_func; this is {kind}"
        raise TileError(msg, code="T708", location=read.at, help="pass the function under @T.prim_func")
    kernel = _make_kernel(func, read)
    listeners.tell_compiled(kernel)
    return kernel


def par_compile(funcs: Iterable[PrimFunc], num_workers: int | None = None, ignore_error: bool = False, **settings: object
                ) -> list[JITKernel | None]:
    """Compiles several ``@T.prim_func`` one after another, and returns their kernels in order.

    Args:
        funcs: the functions under ``@T.prim_func``.
        num_workers: has no effect.
        ignore_error: whether the result for a function that cannot be compiled is None, after a warning.
        settings: the same named arguments as those of :func:`jit`.

    Raises:
        TileError: as :func:`compile`, without ``ignore_error``.
    """
    return _compile_all((functools.partial(compile, func, **settings) for func in funcs), ignore_error=ignore_error)


def _compile_all(compilations: Iterable[Callable[[], JITKernel]], *, ignore_error: bool) -> list[JITKernel | None]:
    kernels: list[JITKernel | None] = []
    for compilation in compilations:
        try:
            kernels.append(compilation())
        except TileError as problem:
            if not ignore_error:
                raise
            from tilelang_npu.runtime.settings.log import logger

            logger.warning("%s", problem)
            kernels.append(None)
    return kernels


class KernelText(str):
    """A text of MLIR, with the attribute under which TileLang has the text."""

    __slots__ = ()

    @property
    def kernel_source(self) -> str:
        """The text itself."""
        return self


def lower(func: PrimFunc, **settings: object) -> KernelText:
    """Compiles a ``@T.prim_func`` and returns its MLIR text at the stage ``hivm-auto``, the input of the vendor's compiler.

    Args:
        func: the function under ``@T.prim_func``.
        settings: the same named arguments as those of :func:`jit`.

    Raises:
        TileError: as :func:`compile`.
    """
    return KernelText(compile(func, **settings).mlir("hivm-auto"))


def _make_kernel(func: PrimFunc, settings: Settings) -> JITKernel:
    if settings.is_interpreted():
        from tilelang_npu.runtime.kernel.interpreted_kernel import InterpretedKernel

        environment.check()
        return cast("JITKernel", InterpretedKernel(func, settings, lambda: _compiled(func, settings)))
    return _compiled(func, settings)


def _compiled(func: PrimFunc, settings: Settings) -> JITKernel:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.kernel import stored_kernels

    key = stored_kernels.key_of(func, settings)
    found = stored_kernels.load(JITKernel, key, func, settings) if key else None
    if found is not None:
        return found
    with shown(f"compiling {func.function.__name__}"):
        made = JITKernel(func, settings)
    made._store = functools.partial(stored_kernels.store, key) if key else None
    return made


doors(globals())
