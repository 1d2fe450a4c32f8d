"""Resolves the names in a kernel's source: first in the blocks of the source, then in closure, module and builtins.

Unlike in Python, a name that is bound in a block (the body of a loop, a branch or a ``with``) leaves scope at the block's end.
"""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType

from tilelang_npu.errors import Location, TileError
from tilelang_npu.traced.buffers import Element
from tilelang_npu.traced.scalars import Expr


@dataclass
class Binding:
    """The binding of a name to a value.

    Attributes:
        value: the value of the name.
        location: the position in the source where the name was bound.
        assigned: whether an assignment or a parameter bound the name; False for loop variables and block ids.
        superseded: a later assignment of the same name in an inner block that has ended, and the kind of that block. In Python,
            the name would have the assigned value from then on, so reading this binding is an error.
        hidden: a warning for the next read of the name, because an inner loop with a variable of the same name has ended. In
            Python, the name would have that variable's last value from then on.
    """

    value: object
    location: Location
    assigned: bool = False
    superseded: tuple[Binding, str] | None = None
    hidden: TileError | None = None


@dataclass
class SourceBlock:
    """A block of the source and the names that are bound in it.

    Attributes:
        kind: the kind of the block, for messages: ``for`` loop, ``if`` body, ``with`` body, kernel or macro.
        repeats: whether the block is the body of a loop.
        names: the bindings of the block, by name.
        departed: for each name that was bound in an inner block that has ended: the binding, and the kind of that block.
        read: the names from outside of the block that were read in the block.
    """

    kind: str
    repeats: bool = False
    names: dict[str, Binding] = field(default_factory=dict)
    departed: dict[str, tuple[Binding, str]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)


@dataclass
class _Alternatives:
    """Alternative blocks, of which one runs, while they are walked.

    Attributes:
        before: bindings from outside of the current block that its inner blocks have bound again: the binding, and its
            ``superseded`` and ``hidden`` at the start of the block.
        inside: names that these inner blocks have bound.
        ended: names that the blocks that have ended have bound.
    """

    before: list[tuple[Binding, tuple[Binding, str] | None, TileError | None]] = field(default_factory=list)
    inside: list[_Ended] = field(default_factory=list)
    ended: list[_Ended] = field(default_factory=list)


_Ended = tuple[str, Binding, str]
"""A name that was bound in a block that has ended: the name, its binding, and the kind of the block."""


class Scopes:
    """The open blocks of one function's source, innermost last, and the function's closure, globals and builtins.

    Args:
        function: the function, whose closure and globals are used.
        kind: ``kernel`` or ``macro``, for messages.
        caller: for a macro that is not hygienic, the names at the call, which take precedence over closure and globals.

    Attributes:
        remark: a function that is called with each warning for the author.
    """

    def __init__(self, function: FunctionType, kind: str, caller: Scopes | None = None) -> None:
        self.frames = [SourceBlock(kind)]
        self._caller = caller
        self.remark: Callable[[TileError], None] = lambda _: None
        self._alternatives: list[_Alternatives] = []
        self._closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self._globals = function.__globals__
        self._local = frozenset(function.__code__.co_varnames)

    @contextmanager
    def frame(self, kind: str, *, repeats: bool = False, alternative: bool = False) -> Iterator[SourceBlock]:
        """Opens a block for the ``with`` statement; names that are bound in the block leave scope at its end.

        Args:
            kind: the kind of the block, for messages.
            repeats: whether the block is the body of a loop.
            alternative: whether the block is one of the alternatives that :meth:`alternatives` has opened.
        """
        frame = SourceBlock(kind, repeats)
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()
            outer = self.frames[-1]
            outer.departed.update(frame.departed)
            outer.departed.update((name, (binding, kind)) for name, binding in frame.names.items())
            ended = [(name, binding, kind) for name, binding in frame.names.items() if binding.assigned or repeats]
            if alternative and self._alternatives:
                self._end_alternative(self._alternatives[-1], ended)
            else:
                self._supersede(ended)

    @contextmanager
    def alternatives(self) -> Iterator[None]:
        """Opens a set of alternative blocks, of which one is executed, such as the arms of a branch.

        Names that are bound in one of the blocks do not affect the next one.
        """
        blocks = _Alternatives()
        self._alternatives.append(blocks)
        try:
            yield
        finally:
            self._alternatives.pop()
            self._supersede([*blocks.ended, *blocks.inside])

    def _end_alternative(self, blocks: _Alternatives, ended: list[_Ended]) -> None:
        """Restores the bindings from outside of a block to their state at its start."""
        for binding, superseded, hidden in reversed(blocks.before):
            binding.superseded, binding.hidden = superseded, hidden
        blocks.ended += [*blocks.inside, *ended]
        blocks.before.clear()
        blocks.inside.clear()

    def _supersede(self, ended: list[_Ended]) -> None:
        """Marks the visible binding of each name that a block which has ended has bound too."""
        for name, binding, kind in ended:
            outer = self.binding(name)
            if outer is None or outer.value is binding.value:
                continue
            if self._alternatives:
                self._alternatives[-1].before.append((outer, outer.superseded, outer.hidden))
                self._alternatives[-1].inside.append((name, binding, kind))
            if binding.assigned:
                outer.superseded = binding, kind
                continue
            loops = any(frame.repeats and frame.names.get(name) is outer and not outer.assigned for frame in self.frames)
            line = outer.location.line
            what = f"the variable of the loop at line {line}" if loops else f"what line {line} binds"
            outer.hidden = _hidden(name, what, binding)
            if self.carried(name) is not None:
                what += " also in the next iteration of the loop around that loop"
                self.remark(_hidden(name, what, binding).at(binding.location))

    def hidden(self, name: str) -> TileError | None:
        """Returns and clears the warning for reading a name after an inner loop with a variable of the same name; None if there
        is no such warning."""
        for scopes in (self, self._caller):
            binding = scopes.binding(name) if scopes is not None else None
            if binding is not None:
                remark, binding.hidden = binding.hidden, None
                return remark
        return None

    def bind(self, name: str, value: object, location: Location, *, assigned: bool = False) -> None:
        """Binds a name in the innermost block.

        Args:
            name: the name.
            value: the value.
            location: the position in the source.
            assigned: whether an assignment or a parameter binds the name; False for loop variables and block ids.
        """
        self.frames[-1].names[name] = Binding(value, location, assigned)

    def binding(self, name: str) -> Binding | None:
        """Returns the visible binding of a name in the open blocks; None if the name is bound in none of them."""
        for frame in reversed(self.frames):
            found = frame.names.get(name)
            if found is not None:
                return found
        return None

    def carried(self, name: str) -> SourceBlock | None:
        """Returns the outermost loop that is inside of the block which binds ``name``, and whose body has read ``name``.

        If ``name`` were assigned at the current position, the next iteration of that loop would have to read the new value.
        Returns None if there is no such loop.
        """
        found = None
        for frame in reversed(self.frames):
            if name in frame.names:
                return found
            if frame.repeats and name in frame.read:
                found = frame
        return found

    def encloses(self, name: str, kinds: tuple[str, ...]) -> SourceBlock | None:
        """Returns the outermost block of one of ``kinds`` that is inside of the block which binds ``name``; None if there is
        none.
        """
        found = None
        for frame in reversed(self.frames):
            if name in frame.names:
                return found
            if frame.kind in kinds:
                found = frame
        return None

    def lookup(self, name: str) -> object:
        """Returns the value of a name.

        Raises:
            TileError: T142, the name was bound in a block that has ended; T140, the name is not bound.
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
        if name in self._local:  # in Python such a name is local, and does not read the global
            raise self._missing(name)
        if name in self._globals:
            return self._globals[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise self._missing(name)

    def _note_read(self, name: str) -> None:
        """Notes that the frames inside of the one that binds the name have read it from outside."""
        for frame in reversed(self.frames):
            if name in frame.names:
                return
            frame.read.add(name)

    def _departed(self, name: str) -> tuple[Binding, str] | None:
        return next((frame.departed[name] for frame in reversed(self.frames) if name in frame.departed), None)

    def _lost(self, name: str, binding: Binding, kind: str) -> TileError:
        """The error for a name that an inner block which has ended has bound."""
        return TileError(f"{name!r} is out of scope: it was bound in the {kind} at {binding.location}, which has ended",
                         code="T142", help=lasting(name, binding.value))

    def _missing(self, name: str) -> TileError:
        departed = self._departed(name)
        if departed is not None:
            return self._lost(name, *departed)
        if name in self._local:
            return TileError(f"name {name!r} is read before it is bound", code="T140",
                             help="a name that the kernel assigns is local, as in Python: bind it above this line; or, to read "
                             "the factory's value here, give the assigned value another name")
        if _is_offered(name):
            return TileError(f"name {name!r} is not defined", code="T140", help=f"did you mean T.{name}?")
        known = {key for frame in self.frames for key in frame.names}.union(self._closure, self._globals, dir(builtins))
        close = difflib.get_close_matches(name, [key for key in known if not key.startswith("__")], n=1)
        return TileError(f"name {name!r} is not defined", code="T140",
                         help=f"did you mean {close[0]!r}?" if close else
                         "bind it above this line, import it, or make it a parameter of the factory")


def _hidden(name: str, what: str, inner: Binding) -> TileError:
    """The remark that a name keeps its meaning, where Python would give it the last value of an inner loop's variable."""
    return TileError(f"{name!r} is {what}; Python would read the last value of the loop at line {inner.location.line}, whose "
                     "variable has the same name; in a kernel, that variable ends with its loop", code="T147",
                     help=f"give the loop at line {inner.location.line} another variable")


def _is_offered(name: str) -> bool:
    from tilelang_npu import language

    return hasattr(language, name)


def lasting(name: str, value: object) -> str:
    """Returns the advice for a name whose value is needed after the end of the block that binds the name.

    Args:
        name: the name.
        value: the value, which determines the element type of the variable in the advice.
    """
    if isinstance(value, (Expr, Element)):
        element = str(value.dtype)
    elif isinstance(value, (bool, int, float)):
        element = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    else:
        return f"bind {name!r} once, before that block; for one buffer per iteration, use the rows of one larger buffer"
    return f'bind it before that block, as a scalar that the kernel can change: {name} = T.alloc_var("{element}", init=...)'
