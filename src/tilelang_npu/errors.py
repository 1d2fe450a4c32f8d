"""The errors of this package, and how they are shown.

A :class:`TileError` says what is wrong, at which line of the user's kernel, with the sizes and names, and what to do. Frames
below the user's line are not shown: functions and classes that a user calls are wrapped by :func:`door`, which removes the
frames of this package from a traceback that leaves it. An :class:`InternalError` is a fault of this package and keeps its
traceback, as does every other exception that is raised here and not marked as the user's.
"""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

from tilelang_npu.sharing import once

TRACEBACK = "TILELANG_NPU_TRACEBACK"
"""The environment variable with which tracebacks are not changed: ``full``."""


@dataclass(frozen=True)
class Location:
    """A place in a source file.

    Attributes:
        file: the path of the file.
        line: the line number, from 1.
        column: the column of the first character, from 1; 0 where it is not known.
        end_column: the column after the last character, or 0.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return self.shown_line + (f":{self.column}" if self.column else "")

    @property
    def shown_file(self) -> str:
        """The file as its author knows it: ``In[3]`` for a cell of a notebook, whose file name has no meaning."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(self.file)
        return self.file if number is None else f"In[{number}]"

    @property
    def shown_line(self) -> str:
        """The file and the line, as in reports."""
        return f"{self.shown_file}:{self.line}"

    def source(self) -> str:
        """The line's text without its end, or an empty string where the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def names(self, operation: str) -> str:
        """The name of an operation in the file: its own in text of the IR, ``T.copy`` where a kernel calls that."""
        line = self.source()
        if operation in line or not line:
            return operation
        call = re.match(r"[A-Za-z_][\w.]*(?=\()", line[max(self.column - 1, 0):])
        return call[0] if call else "this statement"


class TileError(Exception):
    """An error in a kernel, a call or an input file.

    Args:
        message: what is wrong, with sizes and names; no full stop.
        code: the stable code of the diagnostic, such as ``T104``; ``S301`` is a deadlock, ``S302`` and later codes other hangs
            of the simulated machine.
        location: the place; the front end adds it where it is not known when the error is raised.
        label: a short text after the caret.
        notes: further facts, one line each.
        help: how to repair it.
    """

    def __init__(self, message: str, *, code: str, location: Location | None = None, label: str = "",
                 notes: Sequence[str] = (), help: str = "") -> None:  # noqa: A002  (the word the message prints)
        super().__init__(message)
        self.message = message
        self.code = code
        self.location = location
        self.label = label
        self.notes = tuple(notes)
        self.help = help

    def __reduce__(self) -> tuple[Any, ...]:
        return _raised, (type(self), self.args, vars(self))

    def at(self, location: Location | None) -> TileError:
        """Sets the location if there is none; returns the error."""
        if self.location is None:
            self.location = location
        return self

    def __str__(self) -> str:
        return render(self)


def _raised(kind: type[TileError], arguments: tuple[Any, ...], state: dict[str, Any]) -> TileError:
    """An error of another process."""
    error = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error


class SanitizerError(TileError):
    """A launch with hazards. The launch is over: its results are in the arrays.

    Args:
        message: the reports, as text.
        findings: the same as data (:class:`tilelang_npu.simulator.sanitizer.findings.Finding`).
    """

    def __init__(self, message: str, *, code: str, location: Location | None, findings: Sequence[object]) -> None:
        super().__init__(message, code=code, location=location)
        self.findings = tuple(findings)


class InternalError(Exception):
    """This package violated one of its own invariants; please report it with the kernel that shows it."""


def shown(value: Any) -> str:
    """A value of the author for a message: a buffer with its shape, an array without its elements, others as Python shows them.
    """
    if hasattr(value, "describe"):
        return str(value.describe())
    if is_array(value):
        kind = "NumPy array" if type(value).__module__ == "numpy" else f"{type(value).__module__.partition('.')[0]} tensor"
        return f"a {kind} of shape {list(value.shape)} and type {str(value.dtype).removeprefix('torch.')}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST = 80


def is_array(value: Any) -> bool:
    """Whether a value is an array or a tensor of the host, and not a single number."""
    return type(value).__module__.startswith(("numpy", "torch")) and hasattr(value, "dtype") and bool(value.shape)


ARRAY_OF_THE_HOST = "an array of the host is an argument of the kernel: T.copy its parameter into a buffer"
"""The advice where a kernel names an array of the surrounding program."""


def render(error: TileError) -> str:
    """The error as text: header, place, the user's line with a caret, notes and help."""
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
    if error.help:
        lines.append(f"   = help: {error.help}")
    return "\n".join(lines)


_WIDEST = 400
"""Longer lines are cut around the place of an error."""
_CUT = "... "


def _window(text: str, column: int) -> tuple[str, int]:
    """The part of a line to show, and the number of characters before it that are not shown."""
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
    """Wraps a function, or the methods and properties of a class, that users call: an error that leaves it shows the user's
    frames and not those of this package, unless ``TILELANG_NPU_TRACEBACK=full``.
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


def doors(names: dict[str, Any]) -> None:
    """Wraps every public function and class of a module by :func:`door`, in its namespace."""
    for name, value in list(names.items()):
        if isinstance(value, (FunctionType, type)) and not name.startswith("_") and value.__module__ == names["__name__"]:
            names[name] = door(value)


def meant(error: MeantT) -> MeantT:
    """Marks a built-in exception, such as a failed comparison, as the user's: its traceback shows no frame of this package."""
    error.__tilelang_npu_meant__ = True  # type: ignore[attr-defined]
    return error


def caller() -> FrameType | None:
    """The frame that called the function which calls this one, without the wrapper of :func:`door`."""
    frame = sys._getframe(2)
    return frame.f_back if frame.f_code.co_filename == __file__ else frame


def _closed(function: Any) -> Any:
    if hasattr(function, "__tilelang_npu_door__"):
        return function

    @functools.wraps(function)
    def doorway(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if os.environ.get(TRACEBACK, "").strip().lower() in ("", "0", "false", "off", "no"):
                noted = error.__traceback__
                _strip(error)
                if sys.version_info < (3, 11) and noted is not None and noted is not error.__traceback__:
                    noted.tb_next = error.__traceback__  # Python 3.10 raises the first traceback again: shorten it
            raise  # unlike `raise error`, this adds no frame of this function

    doorway.__tilelang_npu_door__ = True  # type: ignore[attr-defined]
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
    """Whether an exception is marked as the user's, or is Python's own for wrong arguments of a wrapped function or a missing
    name.
    """
    if hasattr(error, "__tilelang_npu_meant__"):
        return True
    is_wrong_call = isinstance(error, TypeError) and len(places) == 1
    return is_wrong_call or (isinstance(error, AttributeError) and bool(places)
                             and places[-1].tb_frame.f_code.co_name == "__getattr__")


def _is_ours(error: BaseException) -> bool:
    """Whether an exception was raised in this package or below it, and never passed a user's frame."""
    places = list(_places(error.__traceback__))
    return bool(places) and not list(_shown(places))[-1]


def _places(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _shown(places: Sequence[TracebackType]) -> Iterator[bool]:
    """For each frame, outermost first, whether it is the user's, or in a library that the user has called."""
    is_below = False
    for place in places:
        if place.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            is_below = True
        elif is_below:
            name = str(place.tb_frame.f_globals.get("__name__", "builtins"))
            is_below = name.partition(".")[0] in _BELOW
        yield not is_below
