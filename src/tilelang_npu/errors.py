"""Defines the exceptions of this package, and removes the package's own stack frames from the tracebacks that users see.

A :class:`TileError` says what is wrong, at which line of the user's kernel, with the sizes and names, and what to do. Functions
and classes that a user calls are wrapped by :func:`door`, which removes the stack frames of this package from the traceback of
an exception. An :class:`InternalError` is a fault of this package and keeps its whole traceback. So does every other exception
that this package raises, unless :func:`meant` has marked it as meant for the user.
"""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

from tilelang_npu.sharing import once

if TYPE_CHECKING:
    from tilelang_npu.diagnostic_codes import Code

TRACEBACK = "TILELANG_NPU_TRACEBACK"
"""The name of the environment variable that keeps tracebacks whole if it is set to ``full``."""


_SHOWN_CALLS = 4
"""The number of calls of macros that a report shows."""


@dataclass(frozen=True)
class Location:
    """A position in a source file.

    Attributes:
        file: the path of the file.
        line: the line number, from 1.
        column: the column of the first character, from 1; 0 if it is not known.
        end_column: the column after the last character, from 1; 0 if it is not known.
        callers: for a position in a macro, the positions of the calls that lead there: the call of the macro first, the call
            in the kernel last. Positions that differ only in their callers are equal.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    callers: tuple[Location, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return self.shown_line + (f":{self.column}" if self.column else "")

    @property
    def shown_file(self) -> str:
        """The file's name for messages: its path, or ``In[3]`` for cell 3 of a notebook, whose path is an invented one."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(self.file)
        return self.file if number is None else f"In[{number}]"

    @property
    def shown_line(self) -> str:
        """The text ``FILE:LINE`` for reports, with the file's name from :attr:`shown_file`."""
        return f"{self.shown_file}:{self.line}"

    @property
    def line_with_calls(self) -> str:
        """The text ``line 4`` for reports; in a macro with the calls that lead there: ``line 4, called at line 20``.

        A call in another file than the line has the name of its file: ``line 4, called at kernel.py:20``.
        """
        return f"line {self.line}{self.calls}"

    @property
    def calls(self) -> str:
        """The text ``, called at line 20`` for a position in a macro; empty for other positions. Of more
        calls than fit, those in the middle are left out."""
        places = [f"line {call.line}" if call.file == self.file else call.shown_line.rpartition(os.sep)[2]
                  for call in self.callers]
        if len(places) > _SHOWN_CALLS:
            places[1:-1] = [f"{len(places) - 2} more macros"]
        return "".join(f", called at {place}" for place in places)

    def source(self) -> str:
        """Returns the text of the source line, without the newline; an empty string if the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def names(self, operation: str) -> str:
        """Returns the name by which the file's author knows an IR operation that has this location.

        This is ``operation`` itself if the source line contains it, as in a file of MLIR text, or if the line cannot be read.
        Otherwise it is the function called at the location's column, such as ``T.copy``, or ``this statement`` if there is no
        call.

        Args:
            operation: the operation's name in MLIR text.
        """
        line = self.source()
        if operation in line or not line:
            return operation
        call = re.match(r"[A-Za-z_][\w.]*(?=\()", line[max(self.column - 1, 0):])
        return call[0] if call else "this statement"


class TileError(Exception):
    """An error in a kernel, a call or an input file.

    Args:
        message: what is wrong, with sizes and names; without a full stop.
        code: the stable code of the diagnostic, such as ``T104``; ``S301`` is a deadlock, and ``S302`` to ``S306`` are other
            hangs of the simulated machine.
        location: the position in the user's source; None if it is not known when the error is raised, see :meth:`at`.
        label: a short text after the caret that marks the position.
        notes: further facts, one line each.
        help: what the user can do to remove the error.
    """

    def __init__(self, message: str, *, code: Code, location: Location | None = None, label: str = "",
                 notes: Sequence[str] = (), help: str = "") -> None:  # noqa: A002  (the word the message prints)
        super().__init__(message)
        self.message = message
        self.code = code
        self.location = location
        self.label = label
        self.notes = tuple(notes)
        self.help = help

    def __reduce__(self) -> tuple[object, ...]:
        return _raised, (type(self), self.args, vars(self))

    def at(self, location: Location | None) -> TileError:
        """Sets the error's location if it has none yet, and returns the error itself."""
        if self.location is None:
            self.location = location
        return self

    def __str__(self) -> str:
        return render(self)


def _raised(kind: type[TileError], arguments: tuple[object, ...], state: dict[str, object]) -> TileError:
    """Returns an error that another process has raised, from its pickled arguments and attributes."""
    error = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error


class SanitizerError(TileError):
    """The sanitizer found hazards in a launch. It is raised after the launch has finished and has written its result arrays.

    Args:
        message: the reports of all hazards, as text.
        code: the code of a hazard, such as ``S201``.
        location: the position of a hazard in the user's source.
        findings: the hazards as data (:class:`tilelang_npu.simulator.sanitizer.findings.Finding`).
    """

    def __init__(self, message: str, *, code: Code, location: Location | None, findings: Sequence[object]) -> None:
        super().__init__(message, code=code, location=location)
        self.findings = tuple(findings)


class InternalError(Exception):
    """A fault of this package: an internal invariant does not hold. Please report it with the kernel that causes it."""


class HostArray(Protocol):
    """What a NumPy array and a torch tensor have in common."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> object: ...


def shown(value: object) -> str:
    """Returns a description of a user's value for a message.

    A buffer is described with its shape, an array with its shape and element type but without its elements. Any other value is
    its ``repr``, cut to 80 characters.
    """
    if hasattr(value, "describe"):
        return str(value.describe())
    if is_array(value):
        kind = "NumPy array" if type(value).__module__ == "numpy" else f"{type(value).__module__.partition('.')[0]} tensor"
        return f"a {kind} of shape {list(value.shape)} and type {str(value.dtype).removeprefix('torch.')}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST = 80


def is_array(value: object) -> TypeGuard[HostArray]:
    """Whether a value is a NumPy array or a torch tensor with at least one axis; a NumPy scalar is not."""
    return (type(value).__module__.startswith(("numpy", "torch")) and hasattr(value, "dtype")
            and bool(getattr(value, "shape", ())))


ARRAY_OF_THE_HOST = "an array of the host is an argument of the kernel: T.copy its parameter into a buffer"
"""The help of errors about a kernel that uses a NumPy array or torch tensor of the surrounding Python program."""


def render(error: TileError) -> str:
    """Returns the text of an error: the header with its code, the source position, the source line with a caret, the notes, and
    the help.

    The text of a :class:`SanitizerError` is its message alone, which has all these parts for each hazard.
    """
    if isinstance(error, SanitizerError):  # each report has its own header and lines
        return error.message
    kind = "deadlock" if error.code == "S301" else "hang" if error.code.startswith("S3") else "error"
    lines = [f"{kind}[{error.code}]: {error.message}"]
    where = error.location
    if where is not None:
        lines.append(f"  --> {where}")
        text = where.source()
        if text:
            number = str(where.line)
            gutter = " " * len(number)
            shown, cut = _window(text, where.column)
            lines += [f" {gutter} |", f" {number} | {shown}"]
            if where.column:
                word = re.match(r"[\w.]+", text[where.column - 1:])
                end = where.end_column or where.column + (word.end() if word else 1)
                width = max(1, min(end, len(text) + 1) - where.column)
                before = re.sub(r"[^\t]", " ", shown[:where.column - 1 - cut])
                mark = before + " " * (where.column - 1 - cut - len(before)) + "^" * min(width, _WIDEST)
                lines.append(f" {gutter} | {mark}" + (f" {error.label}" if error.label else ""))
    lines += [f"   = {note}" for note in error.notes]
    if where is not None and where.calls and not any(", called at " in note for note in error.notes):
        lines.append(f"   = in a macro{where.calls}")
    if error.help:
        lines.append(f"   = help: {error.help}")
    return "\n".join(lines)


_WIDEST = 400
"""Longer lines are cut around the place of an error."""
_CUT = "... "


def _window(text: str, column: int) -> tuple[str, int]:
    """Returns the part of a source line to show in a message, and the number of characters before it that are left out."""
    if len(text) <= _WIDEST:
        return text, 0
    start = max(0, min(column - 1 - _WIDEST // 2, len(text) - _WIDEST))
    shown = (_CUT if start else "") + text[start:start + _WIDEST] + (" ..." if start + _WIDEST < len(text) else "")
    return shown, start - (len(_CUT) if start else 0)


# -- doors -------------------------------------------------------------------------------------------------------------

MeantT = TypeVar("MeantT", bound=Exception)
PublicT = TypeVar("PublicT", bound=Callable[..., Any])

_PACKAGE = __file__.rpartition(os.sep)[0] + os.sep  # without pathlib, which loads half of urllib
_BELOW = {*sys.stdlib_module_names, "ml_dtypes", "numpy", "torch", "xdsl"}
"""The packages that this package uses: their frames count as this package's where this package has called them."""
_PLAIN = {"__new__", "__repr__", "__str__", "__hash__", "__eq__", "__ne__", "__setattr__", "__getattribute__",
          "__init_subclass__", "__set_name__", "__reduce__", "__getstate__", "__setstate__"}
"""Methods that a user does not call, or that raise no errors."""


def door(public: PublicT) -> PublicT:
    """Wraps a public function or class so that the tracebacks of its exceptions show no stack frames of this package.

    Of a class, the public methods and properties are wrapped in place. The environment variable
    ``TILELANG_NPU_TRACEBACK=full`` keeps the frames.

    Args:
        public: a function or a class that users call.

    Returns:
        The wrapped function, or the class itself.
    """
    if not isinstance(public, type):
        closed: PublicT = _closed(public)
        return closed
    for name, value in list(vars(public).items()):
        if name in _PLAIN or (name.startswith("_") and not name.startswith("__")):
            continue
        if isinstance(value, FunctionType):
            setattr(public, name, _closed(value))
        elif isinstance(value, (classmethod, staticmethod)):
            setattr(public, name, type(value)(_closed(value.__func__)))
        elif isinstance(value, property) and value.fget is not None:
            setattr(public, name, value.getter(_closed(value.fget)))
        elif isinstance(value, (functools.cached_property, once)):
            value.func = _closed(value.func)
    return public


def doors(names: dict[str, object]) -> None:
    """Replaces every public function and class that a module defines by its wrapped form, see :func:`door`.

    Args:
        names: the module's namespace (``globals()``), which is changed.
    """
    for name, value in list(names.items()):
        if isinstance(value, (FunctionType, type)) and not name.startswith("_") and value.__module__ == names["__name__"]:
            names[name] = door(value)


def meant(error: MeantT) -> MeantT:
    """Marks a built-in exception, such as an :class:`AttributeError`, as meant for the user, and returns the exception.

    :func:`door` removes the stack frames of this package from the traceback of a marked exception.
    """
    error.__tilelang_npu_meant__ = True  # type: ignore[attr-defined]  # a mark of ours on a built-in exception
    return error


def caller() -> FrameType | None:
    """Returns the stack frame of the caller of the function that calls :func:`caller`, without the wrapper of :func:`door`."""
    frame = sys._getframe(2)
    return frame.f_back if frame.f_code.co_filename == __file__ else frame


def _closed(function: Any) -> Any:  # of the function's type, which a wrapper cannot state
    if hasattr(function, "__tilelang_npu_door__"):
        return function

    @functools.wraps(function)
    def doorway(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if os.environ.get(TRACEBACK, "").strip().lower() in ("", "0", "false", "off", "no"):
                noted = error.__traceback__
                _strip(error)
                if sys.version_info < (3, 11) and noted is not None and noted is not error.__traceback__:
                    noted.tb_next = error.__traceback__  # Python 3.10 raises the first traceback again: shorten it
            raise  # unlike `raise error`, this adds no frame of this function

    doorway.__tilelang_npu_door__ = True  # type: ignore[attr-defined]  # a mark of ours on a function
    return doorway


def _strip(error: BaseException) -> None:
    """Removes frames from an exception that do not help a user. Exceptions of this package that are not for users stay
    unchanged.
    """
    places = list(_places(error.__traceback__))
    shown = [place for place, is_shown in zip(places, _shown(places), strict=True) if is_shown]
    if not isinstance(error, TileError) and (not shown or places[-1] is not shown[-1]) and not _is_for_the_user(error, places):
        return
    traceback: TracebackType | None = None
    for place in reversed(shown):
        traceback = TracebackType(traceback, place.tb_frame, place.tb_lasti, place.tb_lineno)
    error.__traceback__ = traceback
    if not isinstance(error, TileError):
        return
    if error.__cause__ is not None and _is_ours(error.__cause__):
        error.__cause__ = None  # this suppresses the context too
    elif not error.__suppress_context__ and error.__context__ is not None and _is_ours(error.__context__):
        error.__suppress_context__ = True
    for linked in (error.__cause__, None if error.__suppress_context__ else error.__context__):
        if linked is not None:
            _strip(linked)


def _is_for_the_user(error: BaseException, places: Sequence[TracebackType]) -> bool:
    """Whether an exception is meant for the user: it is marked by :func:`meant`, or Python raised it because a wrapped function
    got wrong arguments or a name is missing.
    """
    if hasattr(error, "__tilelang_npu_meant__"):
        return True
    is_wrong_call = isinstance(error, TypeError) and len(places) == 1
    return is_wrong_call or (isinstance(error, AttributeError) and bool(places)
                             and places[-1].tb_frame.f_code.co_name == "__getattr__")


def _is_ours(error: BaseException) -> bool:
    """Whether an exception was raised in this package, or in code that this package called, and passed no frame of the user."""
    places = list(_places(error.__traceback__))
    return bool(places) and not list(_shown(places))[-1]


def _places(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _shown(places: Sequence[TracebackType]) -> Iterator[bool]:
    """Yields for each frame, the outermost first, whether to show it: it is in the user's code, or in a library that the user's
    code has called.
    """
    is_below = False
    for place in places:
        if place.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            is_below = True
        elif is_below:
            name = str(place.tb_frame.f_globals.get("__name__", "builtins"))
            is_below = name.partition(".")[0] in _BELOW
        yield not is_below
