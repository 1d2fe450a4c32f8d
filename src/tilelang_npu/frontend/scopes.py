"""Names of a kernel: lexical frames over the closure, the module and the builtins."""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from tilelang_npu.errors import Location, TileError


@dataclass
class Binding:
    """A name's value and where it got it."""

    value: Any
    location: Location


@dataclass
class Frame:
    """One block of the source.

    Attributes:
        kind: text for messages: ``for`` loop, ``if`` body, ``with`` body, kernel, macro.
        isolates: whether a name bound here loses an update that the author may have meant for outside (loops, branches).
        names: bindings of the block.
        departed: names that were bound in an inner block that is closed: where, and in what.
    """

    kind: str
    isolates: bool = False
    names: dict[str, Binding] = field(default_factory=dict)
    departed: dict[str, tuple[Location, str]] = field(default_factory=dict)


class Scopes:
    """The frames of one function's source, innermost last.

    Args:
        function: gives the closure and the globals.
        caller: names of the calling source, which a macro that is not hygienic sees first.
    """

    def __init__(self, function: FunctionType, kind: str, caller: Scopes | None = None) -> None:
        self.frames = [Frame(kind)]
        self._caller = caller
        self._closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self._globals = function.__globals__

    @contextmanager
    def frame(self, kind: str, *, isolates: bool = False, decided: bool = False) -> Iterator[Frame]:
        """A block: names bound in it leave scope with it.

        Args:
            kind: text for messages.
            isolates: see :class:`Frame`.
            decided: whether it surely runs, once, as the branch that the factory's own values choose: a name that means
                nothing outside stays.
        """
        frame = Frame(kind, isolates)
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()
            outer = self.frames[-1]
            outer.departed.update(frame.departed)
            for name, binding in frame.names.items():
                if decided and not self._means_something(name):
                    outer.names[name] = binding
                else:
                    outer.departed[name] = binding.location, kind

    def _means_something(self, name: str) -> bool:
        return (self.binding(name) is not None or (self._caller is not None and self._caller.binding(name) is not None)
                or name in self._closure or name in self._globals or hasattr(builtins, name))

    def bind(self, name: str, value: Any, location: Location) -> None:
        """Bind a name in the innermost frame."""
        self.frames[-1].names[name] = Binding(value, location)

    def binding(self, name: str) -> Binding | None:
        """The visible binding that a frame holds, or None for names from outside the function."""
        for frame in reversed(self.frames):
            found = frame.names.get(name)
            if found is not None:
                return found
        return None

    def isolated(self, name: str, kinds: tuple[str, ...]) -> Frame | None:
        """The outermost loop or branch (of ``kinds``) between here and the frame that binds ``name``."""
        found = None
        for frame in reversed(self.frames):
            if name in frame.names:
                return found
            if frame.isolates and frame.kind in kinds:
                found = frame
        return None

    def lookup(self, name: str) -> Any:
        """The value of a name.

        Raises:
            TileError: T142, its binding has left scope; T140, it has none.
        """
        found = self.binding(name)
        if found is not None:
            return found.value
        if self._caller is not None:
            binding = self._caller.binding(name)
            if binding is not None:
                return binding.value
        cell = self._closure.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                raise TileError(f"{name!r} has no value yet: its assignment in the factory has not run", code="T140",
                                help="assign it above the kernel's definition, or call the factory to its end first") from None
        if name in self._globals:
            return self._globals[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise self._missing(name)

    def _missing(self, name: str) -> TileError:
        for frame in reversed(self.frames):
            if name in frame.departed:
                location, kind = frame.departed[name]
                return TileError(f"{name!r} is out of scope: it was bound in the {kind} at {location} and left with it",
                                 code="T142", help=f"bind {name!r} before that block; a T.alloc_var scalar can change in it")
        known = {key for frame in self.frames for key in frame.names} | set(self._closure) | set(self._globals)
        close = difflib.get_close_matches(name, [key for key in known if not key.startswith("__")], n=1)
        advice = ("Python makes every name that the kernel assigns local to it: a name of the factory that is also assigned "
                  "here must be bound here before it is read")
        return TileError(f"name {name!r} is not defined", code="T140",
                         help=f"did you mean {close[0]!r}?" if close else advice)
