"""The text that is being generated: nested scopes of lines, and the definitions in them.

A pure expression is computed in the outermost scope where its operands are known: index arithmetic on kernel arguments runs
once per launch, arithmetic on the block index once per block, and only expressions of an induction variable run in the loop.
Expressions with equal text in one scope are computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from tilelang_npu.linear import Bound, Interval, Linear

if TYPE_CHECKING:
    from xdsl.ir import Operation

Kind = Literal["launch", "block", "loop", "branch"]


class Sum(Linear[str]):
    """An integer in generated text: a sum of multiples of names or literals."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The expression."""
        return join(self.terms.items(), self.constant)

    def value(self, names: Mapping[str, int]) -> int:
        """Returns its value, given the values of the names."""
        return self.constant + sum(
            (names[part] if part.isidentifier() else int(part)) * factor for part, factor in self.terms.items())


class MadeArray(NamedTuple):
    """The array that a line creates over a memory.

    Attributes:
        memory: the name of the memory's bytes.
        called: the name in messages.
        argument: for GM, the position of the kernel argument.
        offset: the array's byte offset.
        sizes, strides: of each axis, in elements and in bytes.
        element: bytes of an element.
        unless: names of sizes; the offset is 0 where one of them is 0.
    """

    memory: str
    called: str
    argument: int | None
    offset: Sum
    sizes: tuple[Sum, ...]
    strides: tuple[Sum, ...]
    element: int
    unless: tuple[str, ...]


@dataclass
class Line:
    """A generated line, and the facts that explain an error in it: the op that it executes, the array that it creates."""

    indent: int
    text: str
    op: Operation | None
    made: MadeArray | None = None


@dataclass
class CodeScope:
    """A block of the generated function.

    Attributes:
        kind: ``launch`` runs once per launch and core, ``block`` once per block; ``branch`` may not run at all.
        parent: the enclosing scope.
        indent: its indentation in levels.
        certain: for a loop, whether it is known to run at least once.
    """

    kind: Kind
    parent: CodeScope | None
    indent: int
    certain: bool = False
    lines: list[Line] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.depth: int = 0 if self.parent is None else self.parent.depth + 1

    def line(self, text: str, op: Operation | None = None, made: MadeArray | None = None) -> None:
        """Appends a line."""
        self.lines.append(Line(self.indent, text, op, made))

    def close(self) -> None:
        """Appends the finished scope to the lines of its parent."""
        assert self.parent is not None
        self.parent.lines.extend(self.lines)


def deeper(first: CodeScope, second: CodeScope) -> CodeScope:
    """Returns the inner of two scopes of one chain."""
    return first if first.depth >= second.depth else second


@dataclass(frozen=True, eq=False)
class Atom:
    """A name that holds an integer: the scope that defines it, the bounds of its value, and its position in definition
    order."""

    name: str
    scope: CodeScope
    bounds: Interval
    order: int


_bounds_of = attrgetter("bounds")


class Int(Linear[Atom]):
    """An integer that is known at run time, as a sum of multiples of atoms."""

    __slots__ = ()

    @property
    def interval(self) -> Interval:
        """The bounds of the value."""
        return self.bounds(_bounds_of)

    def at_least(self, bound: Bound) -> bool:
        """Whether the value is known to be at least ``bound``."""
        return (self.interval.low if self.terms else self.constant) >= bound

    def at_most(self, bound: Bound) -> bool:
        """Whether the value is known to be at most ``bound``."""
        return (self.interval.high if self.terms else self.constant) <= bound


def product(text: str, factor: int) -> str:
    """Returns ``text * factor`` in Python."""
    if factor == 1:
        return text
    return f"-{text}" if factor == -1 else f"{text} * {factor}"


@dataclass(frozen=True)
class ScalarExpr:
    """A scalar that is not affine: a float, a truth value, or an integer with a name.

    Attributes:
        text: a Python expression, a name or a literal.
        scope: the scope that defines it.
        value: its value where it is a constant.
    """

    text: str
    scope: CodeScope
    value: float | bool | None = None


def join(parts: Iterable[tuple[str, int]], const: int) -> str:
    """Returns the text of a sum of ``(text, factor)`` and a constant."""
    text = ""
    for name, factor in parts:
        term = product(name, abs(factor))
        if not text:
            text = term if factor > 0 else f"-{term}"
        else:
            text += f" + {term}" if factor > 0 else f" - {term}"
    if not text:
        return str(const)
    if const:
        text += f" + {const}" if const > 0 else f" - {-const}"
    return text
