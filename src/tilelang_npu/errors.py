"""The one family of errors, and how they are shown.

A :class:`TileError` says what is wrong, at which line of the user's kernel, with the sizes and names, and what to do.
Nothing below the user's line is shown: the functions and classes that a user calls are under :func:`door`, which takes the
frames of this package out of a traceback that leaves it. An :class:`InternalError` is a fault of this package and keeps its
traceback, as does every exception that is raised here and is not meant for the user.
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
"""The environment variable that leaves tracebacks as they are: ``full``."""


@dataclass(frozen=True)
class Location:
    """A place in a source file.

    Attributes:
        file: path of the file.
        line: line number, from 1.
        column: column of the first character, from 1; 0 where it is not known.
        end_column: column behind the last character, or 0.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return self.shown_line + (f":{self.column}" if self.column else "")

    @property
    def shown_file(self) -> str:
        """The file as its author knows it: ``In[3]`` for a cell of a notebook, which is a file of no meaning."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(self.file)
        return self.file if number is None else f"In[{number}]"

    @property
    def shown_line(self) -> str:
        """The file and the line, as reports name them."""
        return f"{self.shown_file}:{self.line}"

    def source(self) -> str:
        """The line's text without its end, or an empty string where the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def names(self, operation: str) -> str:
        """What an operation is called in the file: itself in text of the IR, ``T.copy`` where a kernel calls that."""
        line = self.source()
        if operation in line or not line:
            return operation
        call = re.match(r"[A-Za-z_][\w.]*(?=\()", line[max(self.column - 1, 0):])
        return call[0] if call else "this statement"


class TileError(Exception):
    """A kernel, a call or an input file is wrong.

    Args:
        message: what is wrong, with sizes and names; no final stop.
        code: stable code of the diagnostic, such as ``T104``; ``S301`` is a deadlock, ``S302`` and on another hang, of the
            simulated machine.
        location: where; filled in by the front end when the raiser does not know it.
        label: short text beside the caret.
        notes: further facts, one line each.
        help: what to do about it.
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
        """Fill in the location where none is known yet; returns the error itself."""
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
    """A launch has hazards. It is over: its results are in the arrays.

    Args:
        message: the reports, as text.
        findings: the same as data (:class:`tilelang_npu.simulator.sanitizer.findings.Finding`).
    """

    def __init__(self, message: str, *, code: str, location: Location | None, findings: Sequence[object]) -> None:
        super().__init__(message, code=code, location=location)
        self.findings = tuple(findings)


class InternalError(Exception):
    """This package broke one of its own rules; please report it with the kernel that shows it."""


def shown(value: Any) -> str:
    """A value of the author in a message: a buffer with its shape, an array without its elements, others as Python has them."""
    if hasattr(value, "describe"):
        return str(value.describe())
    if is_array(value):
        kind = "NumPy array" if type(value).__module__ == "numpy" else f"{type(value).__module__.partition('.')[0]} tensor"
        return f"a {kind} of shape {list(value.shape)} and type {str(value.dtype).removeprefix('torch.')}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST = 80


def is_array(value: Any) -> bool:
    """Whether a value is an array or a tensor of the host, not a single number of one."""
    return type(value).__module__.startswith(("numpy", "torch")) and hasattr(value, "dtype") and bool(value.shape)


ARRAY_OF_THE_HOST = "an array of the host is an argument of the kernel: T.copy its parameter into a buffer"
"""What to do where a kernel names an array that stands around it."""


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
"""Lines longer than this are cut around the place that a message is about."""
_CUT = "... "


def _window(text: str, column: int) -> tuple[str, int]:
    """The part of a line to show, and how many characters of the line stand in front of it and are not shown."""
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
"""What this package is built on: its frames are this package's where this package has called it."""
_PLAIN = {"__new__", "__repr__", "__str__", "__hash__", "__eq__", "__ne__", "__setattr__", "__getattribute__",
          "__init_subclass__", "__set_name__", "__reduce__", "__getstate__", "__setstate__"}
"""Methods that a user does not call, or that have nothing to say."""


def door(public: PublicT) -> PublicT:
    """Make a function, or the methods and properties of a class, one that users call: an error that leaves it shows the user's
    frames and none of this package's, unless ``TILELANG_NPU_TRACEBACK=full``."""
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
    """Make every public function and class of a module a door, in its namespace."""
    for name, value in list(names.items()):
        if isinstance(value, (FunctionType, type)) and not name.startswith("_") and value.__module__ == names["__name__"]:
            names[name] = door(value)


def meant(error: MeantT) -> MeantT:
    """Mark an exception of Python's own kinds as the user's, such as a failed comparison: it shows no frame of this package."""
    error.__tilelang_npu_meant__ = True  # type: ignore[attr-defined]
    return error


def caller() -> FrameType | None:
    """The frame that has called the function that asks, past its door."""
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
                    noted.tb_next = error.__traceback__  # that Python raises again what it had noted: one line stays
            raise  # which, unlike `raise error`, adds no line for this function

    doorway.__tilelang_npu_door__ = True  # type: ignore[attr-defined]
    return doorway


def _strip(error: BaseException) -> None:
    """Take out of an exception what a user has no use for. What is not for users, raised in this package, stays as it is."""
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
        error.__cause__ = None  # which suppresses the context too
    elif not error.__suppress_context__ and error.__context__ is not None and _is_ours(error.__context__):
        error.__suppress_context__ = True
    for linked in (error.__cause__, None if error.__suppress_context__ else error.__context__):
        if linked is not None:
            _strip(linked)


def _is_for_the_user(error: BaseException, places: Sequence[TracebackType]) -> bool:
    """Whether it is marked so, or in Python's own words for arguments that do not fit a door or a name that is not there."""
    if hasattr(error, "__tilelang_npu_meant__"):
        return True
    is_wrong_call = isinstance(error, TypeError) and len(places) == 1
    return is_wrong_call or (isinstance(error, AttributeError) and bool(places)
                             and places[-1].tb_frame.f_code.co_name == "__getattr__")


def _is_ours(error: BaseException) -> bool:
    """Whether an exception was raised in this package or below it, and never reached a user's line."""
    places = list(_places(error.__traceback__))
    return bool(places) and not list(_shown(places))[-1]


def _places(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _shown(places: Sequence[TracebackType]) -> Iterator[bool]:
    """Of each place, outermost first, whether it is a user's, or in what a user has called."""
    is_below = False
    for place in places:
        if place.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            is_below = True
        elif is_below:
            name = str(place.tb_frame.f_globals.get("__name__", "builtins"))
            is_below = name.partition(".")[0] in _BELOW
        yield not is_below
