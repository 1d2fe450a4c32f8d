"""``T.prim_func`` and ``T.macro``: they hold a function until a compile reads its source."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, NoReturn, overload

from tilelang_npu.dispatch import interpreting
from tilelang_npu.errors import Location, TileError, caller, door
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.running import Trace
from tilelang_npu.traced.source import Source


class PrimFunc:
    """A kernel as its author wrote it. Nothing is read or checked before it is compiled.

    Attributes:
        function: the decorated function.
        annotations: each parameter's annotation, evaluated.
        options: arguments of the decorator.
        definition: where the kernel is a part of its function: that part, and what the part above it has bound.
    """

    definition: tuple[Source, Mapping[str, object]] | None = None

    def __init__(self, function: FunctionType, annotations: dict[str, object], options: Mapping[str, object]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.annotations = annotations
        self.options = options

    @property
    def location(self) -> Location:
        """File and first line of the function (its decorator's line)."""
        return Location(self.function.__code__.co_filename, self.function.__code__.co_firstlineno)

    @property
    def lines(self) -> tuple[int, int] | None:
        """First and last line of the function; None where it has no source any more."""
        try:
            return self.location.line, self.location.line + len(inspect.getsourcelines(self.function)[0]) - 1
        except (OSError, TypeError):
            return None

    def __reduce__(self) -> tuple[object, ...]:
        return AbsentFunc, (self.__name__, self.location, self.lines)

    def __deepcopy__(self, _copied: object) -> PrimFunc:
        return self

    def __call__(self, *_arguments: object, **_keywords: object) -> NoReturn:
        raise TileError(f"{self.__name__!r} is a @T.prim_func and cannot be called itself", code="T146",
                        location=user_location(),
                        help="return it from a factory under @tilelang.jit, or give it to tilelang.compile")

    def __repr__(self) -> str:
        return f"<prim_func {self.__name__} at {self.location}>"

    __name__: str


class AbsentFunc(PrimFunc):
    """What a pickle says of a kernel's function, which stays in the process that has defined it."""

    def __init__(self, name: str, location: Location, lines: tuple[int, int] | None) -> None:
        self.__name__ = name
        self._location, self._lines = location, lines

    @property
    def function(self) -> FunctionType:  # type: ignore[override]  # there is none to set
        """There is none.

        Raises:
            TileError: T734.
        """
        raise TileError(f"{self.__name__} comes from a pickle, which has the compiled kernel and not its function", code="T734",
                        location=self._location, help="call its factory here: that gives the kernel with its function")

    @property
    def location(self) -> Location:
        """File and first line of the function where it was pickled."""
        return self._location

    @property
    def lines(self) -> tuple[int, int] | None:
        """Its first and last line there."""
        return self._lines


class Macro:
    """A piece of kernel that is inlined at each call.

    Attributes:
        function: the decorated function.
        hygienic: whether free names are those of the place of definition; otherwise those of the call come first.
    """

    def __init__(self, function: FunctionType, hygienic: bool) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.hygienic = hygienic

    def __call__(self, *arguments: object, **keywords: object) -> Any:  # what its author returns
        interpreted = interpreting()
        if interpreted is not None:
            return interpreted.inline(self.function, arguments, keywords, hygienic=self.hygienic)
        return Trace.running(f"the macro {self.function.__name__!r}").inline(self, arguments, keywords)

    def __repr__(self) -> str:
        code = self.function.__code__
        return f"<macro {self.function.__name__} at {code.co_filename}:{code.co_firstlineno}>"


@overload
def prim_func(function: Callable[..., object]) -> PrimFunc: ...
@overload
def prim_func(function: None = None, *, private: bool = ..., check_well_formed: bool = ...
              ) -> Callable[[Callable[..., object]], PrimFunc]: ...
def prim_func(function: Callable[..., object] | None = None, *, private: bool = False, check_well_formed: bool = True
              ) -> PrimFunc | Callable[[Callable[..., object]], PrimFunc]:
    """Mark a function as a kernel. ``private`` and ``check_well_formed`` are accepted and have no effect here.

    Its parameters are the launch's arguments: ``A: T.Tensor((M, N), "float16")`` is an array, ``n: T.int32`` a number. What
    it writes is named by ``out_idx`` of ``jit``, or is the caller's array.

    Example: ``@T.prim_func``

    Raises:
        TileError: T143, the object has no Python source to read.
    """
    options = {"private": private, "check_well_formed": check_well_formed}
    if function is None:
        return door(lambda wrapped: PrimFunc(_plain(wrapped, "T.prim_func"), _annotations(wrapped, caller()), options))
    return PrimFunc(_plain(function, "T.prim_func"), _annotations(function, caller()), options)


@overload
def macro(function: Callable[..., object]) -> Macro: ...
@overload
def macro(function: None = None, *, hygienic: bool = ...) -> Callable[[Callable[..., object]], Macro]: ...
def macro(function: Callable[..., object] | None = None, *, hygienic: bool = True
          ) -> Macro | Callable[[Callable[..., object]], Macro]:
    """Mark a function as a macro: a call inlines its statements; buffers, regions, scalars and Python values are arguments.

    Example: ``@T.macro``
    """
    if function is None:
        return door(lambda wrapped: Macro(_plain(wrapped, "T.macro"), hygienic))
    return Macro(_plain(function, "T.macro"), hygienic)


def _plain(function: object, decorator: str) -> FunctionType:
    if not isinstance(function, FunctionType):
        raise TileError(f"{decorator} decorates a Python function, not {type(function).__name__}", code="T143",
                        location=user_location(), help="put the decorator on a `def`")
    return function


@dataclass(frozen=True)
class Unresolved:
    """An annotation in whose text a name is not known where the kernel is defined."""

    name: str


def _annotations(function: object, frame: FrameType | None) -> dict[str, object]:
    """The annotations as objects. Under ``from __future__ import annotations`` they are text, and the names in it may be
    locals of the factory that only its frame has; so they are evaluated here, at the decoration."""
    assert frame is not None
    found = dict(getattr(function, "__annotations__", {}))
    for name, value in found.items():
        if isinstance(value, str) and name != "return":
            try:
                found[name] = eval(value, frame.f_globals, dict(frame.f_locals))
            except NameError as error:
                if not value.isidentifier():  # a bare word is the name of an element type
                    found[name] = Unresolved(str(error.name))
    return found
