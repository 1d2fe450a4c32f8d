"""A run that stops at ``breakpoint()``: in which block, with what a debugger sees there, and on which terms.

While a launch runs, its :class:`Stops` is at hand in ``RUNNING``. Cores hand copies of their tiles in when they come by; the
debugger is the one that Python's own ``breakpoint()`` calls, in a frame that has the place in the user's file, and the kernel's
names as its variables. What is set there cannot get back into a run, so tiles and tensors are read-only, and a name that is
set is refused.
"""

from __future__ import annotations

import ast
import bdb
import builtins
import json
import os
import re
import sys
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np

from tilelang_npu.errors import Location, TileError
from tilelang_npu.progress import aside
from tilelang_npu.simulator.machine.memory import Array

_LISTED = re.compile(r"(\w+)((?:\[\d+\])+)")


@dataclass(frozen=True, eq=False)
class Stop:
    """A ``breakpoint()`` of a kernel.

    Attributes:
        function: the function in whose source it stands.
        location: where.
        axes: how many indices a block has.
        names: of the numbers that the core hands over, behind the block's indices.
        constants: names whose values were known when the kernel was compiled.
        tensors: names of tensors, with their positions among the arguments.
        unwritten: names of tiles that nothing above has written, with what they are.
        sub_block: the name of the Vector core's number.
        together: whether the kernel's Cube core comes by, too.
    """

    function: str
    location: Location
    axes: int
    names: tuple[str, ...]
    constants: Mapping[str, Any]
    tensors: Mapping[str, int]
    unwritten: Mapping[str, str]
    sub_block: str
    together: bool


class Unwritten:
    """A tile that nothing above has written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return f"<{self._text}: nothing above this line has written it>"


@dataclass
class Stops:
    """The stops of one launch.

    Attributes:
        arguments: what the kernel was called with.
        asked: what ``TILELANG_NPU_BREAK`` says.
        chosen: the block and the Vector core in which the run stops: those that came by first, of those that are asked for.
    """

    arguments: Sequence[object]
    asked: str = ""
    chosen: tuple[int, int] | None = None
    _tiles: dict[tuple[int, str, int], dict[str, Array]] = field(default_factory=dict)
    _of_cube: dict[tuple[int, Location], deque[dict[str, Array]]] = field(default_factory=dict)

    def __enter__(self) -> Stops:
        self._token = RUNNING.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        RUNNING.reset(self._token)
        if kind is None and self.asked and self.chosen is None:
            warnings.warn(f"TILELANG_NPU_BREAK={self.asked}: no such block came to breakpoint()", stacklevel=2)

    def look(self, core: tuple[int, str, int], name: str, tile: Array) -> None:
        """A core comes by with a tile."""
        if self.chosen is None or self.chosen[0] == core[0]:
            self._tiles.setdefault(core, {})[name] = tile.copy()

    def pass_by(self, stop: Stop, core: tuple[int, str, int], numbers: Sequence[Any]) -> None:
        """A core comes to a stop, behind its tiles: the block's indices, and the numbers that have names.

        Raises:
            TileError: T422, nobody can be asked; T423, the debugger ends the run.
        """
        tiles = self._tiles.pop(core, {})
        block, kind, sub = core
        if stop.together and kind == "AIC":
            if self.chosen is None or self.chosen[0] == block:
                self._of_cube.setdefault((block, stop.location), deque()).append(tiles)
            return
        indices = tuple(map(int, numbers[:stop.axes]))
        if self.chosen is None and self._is_asked(stop, indices):
            self.chosen = block, sub
        if self.chosen != (block, sub):
            return
        if stop.together and (waiting := self._of_cube.get((block, stop.location))):
            tiles = waiting.popleft() | tiles
        seen: dict[str, Any] = {**stop.constants, **{name: Unwritten(text) for name, text in stop.unwritten.items()}}
        seen |= {name: _read_only(self.arguments[place]) for name, place in stop.tensors.items() if place < len(self.arguments)}
        seen |= {name: _read_only(tile) for name, tile in tiles.items()}
        seen |= dict(zip(stop.names, numbers[stop.axes:], strict=True))
        who = "Cube core" if kind == "AIC" else f"Vector core {seen.get(stop.sub_block, sub)}"
        with aside():
            _ask(stop, _in_lists(seen), f"{stop.function}: block {', '.join(map(str, indices))}, {who}")

    def _is_asked(self, stop: Stop, indices: tuple[int, ...]) -> bool:
        if not self.asked:
            return True
        try:
            wanted = tuple(int(text) for text in self.asked.split(","))
        except ValueError:
            wanted = ()
        if len(wanted) != len(indices):
            raise TileError(f"TILELANG_NPU_BREAK={self.asked} names no block", code="T422", location=stop.location,
                            help=f"{len(indices)} number{'s' * (len(indices) > 1)} as T.Kernel binds them, such as "
                                 f"{','.join(map(str, indices))}")
        return wanted == indices


RUNNING: ContextVar[Stops | None] = ContextVar("stops", default=None)
"""The stops of the launch that is run for its author; None where blocks run for other ends."""


def looker(name: str, reorder: Callable[[Array], Array]) -> Callable[[int, str, int, Array], None]:
    """What generated code calls with a tile; ``reorder`` makes the tile as the author knows it of what is in memory."""

    def look(block: int, core: str, sub: int, tile: Array) -> None:
        stops = RUNNING.get()
        if stops is not None:
            stops.look((block, core, sub), name, reorder(tile))

    return look


def stopper(stop: Stop) -> Callable[..., None]:
    """What generated code calls at a stop."""

    def pass_by(block: int, core: str, sub: int, *numbers: float) -> None:
        stops = RUNNING.get()
        if stops is not None:
            stops.pass_by(stop, (block, core, sub), numbers)

    return pass_by


def _read_only(value: object) -> object:
    if not isinstance(value, np.ndarray):
        return value
    seen = value.view()
    seen.flags.writeable = False
    return seen


def _in_lists(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Tiles of a list, called ``a[0]``, as that list."""
    made: dict[str, Any] = {}
    for name, value in seen.items():
        found = _LISTED.fullmatch(name)
        if found is None:
            made[name] = value
            continue
        holder, place = made.setdefault(found[1], {}), found[2][1:-1].split("][")
        for key in place[:-1]:
            holder = holder.setdefault(int(key), {})
        holder[int(place[-1])] = value
    return {name: _listed(value) if isinstance(value, dict) else value for name, value in made.items()}


def _listed(held: dict[int, Any]) -> list[Any]:
    return [_listed(held[place]) if isinstance(held[place], dict) else held[place] for place in sorted(held)]


# -- the debugger ------------------------------------------------------------------------------------------------------


def _ask(stop: Stop, seen: dict[str, Any], who: str) -> None:
    """Let the author look at a stop."""
    _check_terminal(stop)
    if os.environ.get("PYTHONBREAKPOINT") != "0" or sys.breakpointhook is not sys.__breakpointhook__:
        print(f"breakpoint in {who}")  # noqa: T201  (what stops has to be said)
    (run, left), before = _frame(stop, tuple(seen)), sys.gettrace()
    try:
        # On one line, with a function of C: a debugger that is told to take a step further finds none of ours to stop at.
        run(**seen); sys.settrace(sys.gettrace() if bdb.Breakpoint.bplist else before)  # noqa: E702
    except bdb.BdbQuit:
        sys.settrace(before)
        raise TileError("the run was ended in the debugger", code="T423", location=stop.location,
                        help="`c` goes on to the end") from None
    except Exception as error:
        raise TileError(f"the debugger failed: {type(error).__name__}: {error}", code="T422", location=stop.location,
                        help="PYTHONBREAKPOINT and sys.breakpointhook choose it; PYTHONBREAKPOINT=0 stops nowhere") from error
    for name, value in seen.items():
        if left.get(name, value) is not value:
            raise TileError(f"{name!r} was set in the debugger, and a run takes nothing from there", code="T422",
                            location=stop.location, help="compute with it under another name; to run with another "
                                                           "value, change the kernel or its arguments")


def _check_terminal(stop: Stop) -> None:
    """Refuse to wait for somebody who cannot answer.

    Raises:
        TileError: T422, there is nothing that Python's own debugger could read from.
    """
    chosen = os.environ.get("PYTHONBREAKPOINT", "")
    if sys.breakpointhook is not sys.__breakpointhook__ or chosen not in ("", "pdb.set_trace"):
        return  # somebody else's, who asks on other ways
    missing = "there is no standard input" if sys.stdin is None or sys.stdin.closed else _missing(sys.stdin)
    if missing:
        raise TileError(f"breakpoint() has nobody to ask: {missing}", code="T422", location=stop.location,
                        help="take it out, run it in a terminal, or pass by all of them with PYTHONBREAKPOINT=0")


def _missing(stream: TextIO) -> str:
    """Why nobody answers on a stream; "" where somebody may: at a terminal, through a pipe, in a notebook."""
    with suppress(OSError, ValueError):  # it is no file
        number = stream.fileno()
        if not os.isatty(number):
            if os.path.samestat(os.fstat(number), Path(os.devnull).stat()):
                return f"standard input is {os.devnull}"
            return "this is a run of CI" if os.environ.get("CI") else ""
    return ""


_LEFT = "_left_by_the_debugger"


def _frame(stop: Stop, names: tuple[str, ...]) -> tuple[Callable[..., None], dict[str, Any]]:
    """A function that stops, at the user's line, with these variables; and where it puts what they are when it goes on.

    Debuggers before Python 3.13 stop at the next line that begins: the call is put on the line in front, so that this is the
    user's one.
    """
    line = max(stop.location.line, 1)
    source = ast.parse(f"def {stop.function}({', '.join(names)}):\n breakpoint()\n {_LEFT}.update(locals())")
    definition = source.body[0]
    assert isinstance(definition, ast.FunctionDef)
    call = definition.body[0]
    for node in ast.walk(source):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
    if sys.version_info < (3, 13) and line > 1:
        for node in ast.walk(call):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = line - 1  # type: ignore[attr-defined]
    left: dict[str, Any] = {}
    place: dict[str, Any] = {"__name__": stop.function, "__builtins__": builtins, "np": np, _LEFT: left}
    exec(compile(source, stop.location.file, "exec"), place)
    return place[stop.function], left


def stop_of(facts: Mapping[str, Any], location: Location | None) -> Stop:
    """A stop as its op has it."""

    def held(fact: str) -> dict[str, Any]:
        with suppress(ValueError):
            return dict(json.loads(str(facts.get(fact) or "{}")))
        return {}

    names = str(facts.get("names") or "")
    return Stop(str(facts.get("function") or "kernel"), location or Location("<kernel>", 1, 1), int(facts["axes"]),
                tuple(names.split(",")) if names else (), held("constants"), held("tensors"), held("unwritten"),
                str(facts.get("sub_block") or ""), bool(facts.get("together")))
