"""``T.prim_func`` and ``T.macro``: decorators that store a function until a kernel is compiled."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, NoReturn, overload

from tilelang_npu.dispatch import interpreting
from tilelang_npu.errors import Location, TileError, caller, door
from tilelang_npu.traced.active_trace import Trace
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.source import Source


class PrimFunc:
    """A function under ``@T.prim_func``: the source of a kernel, which is parsed when the kernel is compiled.

    Attributes:
        function: the decorated function.
        annotations: the evaluated annotation of each parameter, by name.
        options: the arguments of the decorator.
        definition: if only a part of the function is the kernel (see :mod:`tilelang_npu.frontend.eager`), the source of this
            part, and the values of the names that the statements above it have bound; else None.
    """

    definition: tuple[Source, Mapping[str, object]] | None = None

    def __init__(self, function: FunctionType, annotations: dict[str, object], options: Mapping[str, object]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.annotations = annotations
        self.options = options

    @property
    def location(self) -> Location:
        """The file and the first line of the function, which is the line of its decorator."""
        return Location(self.function.__code__.co_filename, self.function.__code__.co_firstlineno)

    @property
    def lines(self) -> tuple[int, int] | None:
        """The first and the last line number of the function; None if its source is not available."""
        try:
            return self.location.line, self.location.line + len(inspect.getsourcelines(self.function)[0]) - 1
        except (OSError, TypeError):
            return None

    def __reduce__(self) -> tuple[object, ...]:
        return AbsentFunc, (self.__name__, self.location, self.lines)

    def __deepcopy__(self, _copied: object) -> PrimFunc:
        return self

    def __call__(self, *_arguments: object, **_keywords: object) -> NoReturn:
        raise TileError(f"{self.__name__!r} is a @T.prim_func and cannot be called directly", code="T146",
                        location=user_location(),
                        help="return it from a factory under @tilelang.jit, or give it to tilelang.compile")

    def __repr__(self) -> str:
        return f"<prim_func {self.__name__} at {self.location}>"

    __name__: str


class AbsentFunc(PrimFunc):
    """The stand-in for a ``prim_func`` in an unpickled kernel, with its name and location but without the function.

    Args:
        name: the function's name.
        location: the file and the first line of the function when it was pickled.
        lines: the first and the last line number of the function when it was pickled; None if they were not known.
    """

    def __init__(self, name: str, location: Location, lines: tuple[int, int] | None) -> None:
        self.__name__ = name
        self._location, self._lines = location, lines

    @property
    def function(self) -> FunctionType:  # type: ignore[override]  # there is none to set
        """Raises an error, because an unpickled kernel does not contain its function.

        Raises:
            TileError: T734, the kernel comes from a pickle.
        """
        raise TileError(f"{self.__name__} comes from a pickle, which has the compiled kernel and not its function", code="T734",
                        location=self._location, help="call its factory here: that gives the kernel with its function")

    @property
    def location(self) -> Location:
        """The file and the first line of the function when it was pickled."""
        return self._location

    @property
    def lines(self) -> tuple[int, int] | None:
        """The first and the last line number of the function when it was pickled; None if they were not known."""
        return self._lines


class Macro:
    """A function under ``@T.macro``, whose statements are inlined into the kernel at each call.

    Attributes:
        function: the decorated function.
        hygienic: whether the function's free names are resolved where the function is defined; if False, the names that are
            visible at the call come first.
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
    """Mark a function as a kernel.

    The parameters of the function are those of the kernel: ``A: T.Tensor((M, N), "float16")`` is an array, and ``n: T.int32``
    is a number. A call of the compiled kernel returns the tensors that ``out_idx`` of ``jit`` names, and writes to other
    tensors in place.

    Example: ``@T.prim_func``

    Args:
        function: the function to mark.
        private, check_well_formed: have no effect.

    Raises:
        TileError: T143, the object is not a Python function.
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
    """Mark a function as a macro, whose statements are inlined into the kernel at each call.

    The arguments of a call can be buffers, slices, scalars and Python values.

    Example: ``@T.macro``

    Args:
        function: the function to mark.
        hygienic: whether the function's free names are resolved where the function is defined; if False, the names that are
            visible at the call come first.

    Raises:
        TileError: T143, the object is not a Python function.
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
    """An annotation with a name that is not defined where the kernel is defined.

    Attributes:
        name: the undefined name.
    """

    name: str


def _annotations(function: object, frame: FrameType | None) -> dict[str, object]:
    """The annotations as objects.

    Under ``from __future__ import annotations`` they are text, whose names may be locals of the factory. These are only in the
    factory's frame, so the annotations are evaluated here, when the kernel is decorated.
    """
    assert frame is not None
    found = dict(getattr(function, "__annotations__", {}))
    for name, value in found.items():
        if isinstance(value, str) and name != "return":
            try:
                found[name] = eval(value, frame.f_globals, dict(frame.f_locals))
            except NameError as error:
                if not value.isidentifier():  # a single word may be an element type, such as float16
                    found[name] = Unresolved(str(error.name))
    return found
