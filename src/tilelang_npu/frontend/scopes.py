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
from tilelang_npu.traced.buffers import Element
from tilelang_npu.traced.scalars import Expr


@dataclass
class Binding:
    """A name's value and where it got it.

    Attributes:
        value: what it is.
        location: where it was bound.
        assigned: whether by an assignment or a call, as Python knows them (not as a loop's variable or a block's id).
        superseded: the assignment of the name in an inner block that is closed, and in what: for Python the name has that
            value since, so nothing may read this one.
    """

    value: Any
    location: Location
    assigned: bool = False
    superseded: tuple[Binding, str] | None = None


@dataclass
class SourceBlock:
    """One block of the source.

    Attributes:
        kind: text for messages: ``for`` loop, ``if`` body, ``with`` body, kernel, macro.
        repeats: whether it is a loop's, whose body runs again with what it bound.
        names: bindings of the block.
        departed: names that were bound in an inner block that is closed: the binding, and in what.
        read: names from outside of the block that were read in it.
    """

    kind: str
    repeats: bool = False
    names: dict[str, Binding] = field(default_factory=dict)
    departed: dict[str, tuple[Binding, str]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)


class Scopes:
    """The frames of one function's source, innermost last.

    Args:
        function: gives the closure and the globals.
        caller: names of the calling source, which a macro that is not hygienic sees first.
    """

    def __init__(self, function: FunctionType, kind: str, caller: Scopes | None = None) -> None:
        self.frames = [SourceBlock(kind)]
        self._caller = caller
        self._superseding: list[tuple[str, Binding, str]] = []
        self._alternatives = 0
        self._closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self._globals = function.__globals__
        self._local = frozenset(function.__code__.co_varnames)

    @contextmanager
    def frame(self, kind: str, *, repeats: bool = False) -> Iterator[SourceBlock]:
        """A block: names bound in it leave scope with it.

        Args:
            kind: text for messages.
            repeats: see :class:`SourceBlock`.
        """
        frame = SourceBlock(kind, repeats)
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()
            outer = self.frames[-1]
            outer.departed.update(frame.departed)
            for name, binding in frame.names.items():
                outer.departed[name] = binding, kind
                if binding.assigned:
                    self._superseding.append((name, binding, kind))
            if not self._alternatives:
                self._supersede()

    @contextmanager
    def alternatives(self) -> Iterator[None]:
        """Blocks of which one runs: what one of them assigns is nothing to the next."""
        self._alternatives += 1
        try:
            yield
        finally:
            self._alternatives -= 1
            if not self._alternatives:
                self._supersede()

    def _supersede(self) -> None:
        for name, binding, kind in self._superseding:
            outer = self.binding(name)
            if outer is not None and outer.value is not binding.value:
                outer.superseded = binding, kind
        self._superseding.clear()

    def bind(self, name: str, value: Any, location: Location, *, assigned: bool = False) -> None:
        """Bind a name in the innermost frame; ``assigned``: see :class:`Binding`."""
        self.frames[-1].names[name] = Binding(value, location, assigned)

    def binding(self, name: str) -> Binding | None:
        """The visible binding that a frame holds, or None for names from outside the function."""
        for frame in reversed(self.frames):
            found = frame.names.get(name)
            if found is not None:
                return found
        return None

    def carried(self, name: str) -> SourceBlock | None:
        """The outermost loop inside of the frame that binds ``name`` in which the name was read: were it bound here, the next
        iteration would have to read that."""
        found = None
        for frame in reversed(self.frames):
            if name in frame.names:
                return found
            if frame.repeats and name in frame.read:
                found = frame
        return found

    def encloses(self, name: str, kinds: tuple[str, ...]) -> SourceBlock | None:
        """The outermost block of ``kinds`` between here and the frame that binds ``name``; None where that is this one."""
        found = None
        for frame in reversed(self.frames):
            if name in frame.names:
                return found
            if frame.kind in kinds:
                found = frame
        return None

    def lookup(self, name: str) -> Any:
        """The value of a name.

        Raises:
            TileError: T142, its binding has left scope; T140, it has none.
        """
        for scopes in (self, self._caller):
            binding = scopes.binding(name) if scopes is not None else None
            if scopes is not None and binding is not None:
                scopes._note_read(name)
                if binding.superseded is not None:
                    raise self._lost(name, *binding.superseded)
                return binding.value
        self._note_read(name)
        departed = self._departed(name)
        if departed is not None and departed[0].assigned:
            raise self._lost(name, *departed)
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

    def _note_read(self, name: str) -> None:
        """The frames inside of the one that binds the name read it from outside."""
        for frame in reversed(self.frames):
            if name in frame.names:
                return
            frame.read.add(name)

    def _departed(self, name: str) -> tuple[Binding, str] | None:
        return next((frame.departed[name] for frame in reversed(self.frames) if name in frame.departed), None)

    def _lost(self, name: str, binding: Binding, kind: str) -> TileError:
        """A name that an inner block, now closed, has bound."""
        return TileError(f"{name!r} is out of scope: it was bound in the {kind} at {binding.location} and left with it",
                         code="T142", help=lasting(name, binding.value))

    def _missing(self, name: str) -> TileError:
        departed = self._departed(name)
        if departed is not None:
            return self._lost(name, *departed)
        if name in self._local:
            return TileError(f"name {name!r} is read before it is bound", code="T140",
                             help="Python makes every name that the kernel assigns its own: bind it above this line, or "
                             "give what is assigned another name where one of the factory is meant here")
        if _is_offered(name):
            return TileError(f"name {name!r} is not defined", code="T140", help=f"did you mean T.{name}?")
        known = {key for frame in self.frames for key in frame.names}.union(self._closure, self._globals, dir(builtins))
        close = difflib.get_close_matches(name, [key for key in known if not key.startswith("__")], n=1)
        return TileError(f"name {name!r} is not defined", code="T140",
                         help=f"did you mean {close[0]!r}?" if close else
                         "bind it above this line, import it, or make it a parameter of the factory")


def _is_offered(name: str) -> bool:
    from tilelang_npu import language

    return hasattr(language, name)


def lasting(name: str, value: Any) -> str:
    """What makes a name keep ``value`` beyond the block that binds it."""
    if isinstance(value, (Expr, Element)):
        element = str(value.dtype)
    elif isinstance(value, (bool, int, float)):
        element = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    else:
        return f"bind {name!r} before that block to what it is in all of it; a buffer for each iteration is a row of one buffer"
    return f'bind it before that block, as a scalar that the kernel changes: {name} = T.alloc_var("{element}", init=...)'
