"""The text that is being generated: nested scopes of lines, and the names that each scope defines.

A pure expression is computed in the outermost scope in which its operands are known: index arithmetic on kernel arguments once
per launch, arithmetic on the block index once per block, and only expressions of an induction variable in each iteration of the
loop. Expressions with equal text in one scope are computed once.
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
    """An integer expression in generated code: a constant plus multiples of names or literals."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The sum as a Python expression."""
        return join(self.terms.items(), self.constant)

    def value(self, names: Mapping[str, int]) -> int:
        """Returns the value of the sum, given the values of its names."""
        return self.constant + sum(
            (names[part] if part.isidentifier() else int(part)) * factor for part, factor in self.terms.items())


class MadeArray(NamedTuple):
    """A NumPy array that a generated line creates as a view of the bytes of a memory.

    Attributes:
        memory: the variable that holds the memory's bytes.
        called: the name of the memory or buffer in error messages.
        argument: the position of the kernel argument, for an array in GM; otherwise None.
        offset: the byte offset of the array's first element.
        sizes: the number of elements along each axis.
        strides: the bytes between neighbouring elements along each axis.
        element: the number of bytes of an element.
        unless: variables that hold sizes; if one of them is 0 at run time, the array is empty and is created at offset 0.
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
    """A generated line, with the op and the array that an error message about this line names.

    Attributes:
        indent: the indentation in levels.
        text: the line without its indentation.
        op: the op that the line executes; None if it belongs to no op.
        made: the array that the line creates, if any.
    """

    indent: int
    text: str
    op: Operation | None
    made: MadeArray | None = None


@dataclass
class CodeScope:
    """A scope of the generated function: lines at one indentation, and the expressions that they compute.

    Attributes:
        kind: when the lines run. ``launch``: once per launch and core; ``block``: once per block; ``loop``: once per iteration;
            ``branch``: only if a condition holds.
        parent: the enclosing scope.
        indent: the indentation of the lines in levels.
        certain: for a loop, whether it is known to have at least one iteration.
        lines: the lines that have been emitted so far.
        names: for the text of each expression that the scope computes, the variable that holds its value.
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
        """Appends a line for ``op``; ``made`` is the array that the line creates."""
        self.lines.append(Line(self.indent, text, op, made))

    def close(self) -> None:
        """Appends the lines of this scope to those of the enclosing scope."""
        assert self.parent is not None
        self.parent.lines.extend(self.lines)


def deeper(first: CodeScope, second: CodeScope) -> CodeScope:
    """Returns the inner one of two scopes. One of the two must enclose the other, or both must be the same scope."""
    return first if first.depth >= second.depth else second


@dataclass(frozen=True, eq=False)
class Atom:
    """A variable of the generated code that holds an integer.

    Attributes:
        name: the variable.
        scope: the scope that defines it.
        bounds: the least and the greatest value that it can have.
        order: its position in the order of definition.
    """

    name: str
    scope: CodeScope
    bounds: Interval
    order: int


_bounds_of = attrgetter("bounds")


class Int(Linear[Atom]):
    """An integer value of the kernel: a constant plus multiples of variables of the generated code (:class:`Atom`)."""

    __slots__ = ()

    @property
    def interval(self) -> Interval:
        """The least and the greatest possible value, from the bounds of the variables."""
        return self.bounds(_bounds_of)

    def at_least(self, bound: Bound) -> bool:
        """Whether the value is known to be at least ``bound``."""
        return (self.interval.low if self.terms else self.constant) >= bound

    def at_most(self, bound: Bound) -> bool:
        """Whether the value is known to be at most ``bound``."""
        return (self.interval.high if self.terms else self.constant) <= bound


def product(text: str, factor: int) -> str:
    """Returns the Python expression ``text * factor``, without a multiplication for the factors 1 and -1."""
    if factor == 1:
        return text
    return f"-{text}" if factor == -1 else f"{text} * {factor}"


@dataclass(frozen=True)
class ScalarExpr:
    """A scalar as the text of an expression, not as an affine sum: a float, a truth value, or an integer in a variable.

    Attributes:
        text: the Python expression: the name of a variable, or a constant.
        scope: the innermost scope that the expression depends on.
        value: the value of a constant; None where it is not known.
    """

    text: str
    scope: CodeScope
    value: float | bool | None = None


def join(parts: Iterable[tuple[str, int]], const: int) -> str:
    """Returns the Python expression of a sum.

    Args:
        parts: the terms, each as ``(text, factor)``.
        const: the constant that is added.
    """
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
