"""Names in generated code: each is defined in the outermost scope in which its expression can be computed."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from xdsl.ir import Block, Operation

from tilelang_npu.linear import ANY, Interval
from tilelang_npu.simulator.codegen.code_scopes import Atom, CodeScope, Int, MadeArray, ScalarExpr, Sum, deeper
from tilelang_npu.simulator.codegen.handlers import Value
from tilelang_npu.simulator.codegen.strided_views import Choice, StridedView
from tilelang_npu.target.dtypes import DType

WORD = 1 << 63
"""Bound of the magnitude of any number that enters a kernel."""


def _order(term: tuple[Atom, int]) -> int:
    return term[0].order


def _closed(known: Interval) -> Interval:
    """Returns finite bounds: a bound that is unknown is replaced by the range of a 64-bit word."""
    low = min(known.high, -WORD) if known.low == -inf else known.low
    return Interval(low, max(known.low, WORD) if known.high == inf else known.high)


class Definitions:
    """The scopes of a function that is being generated, and the names defined in them.

    Attributes:
        launch: the scope that runs once per launch and core.
        block: the scope that runs once per block of the launch.
        scope: the innermost open scope.
        homes: for each MLIR block of the device function, the scope in which its ops are emitted.
        globals: the objects that the generated code uses as global variables, by name.
        current: the op that lines are emitted for; None between ops.
    """

    current: Operation | None = None

    def __init__(self) -> None:
        self.launch = CodeScope("launch", None, 1)
        self.scope = self.block = CodeScope("block", self.launch, 2)
        self.homes: dict[Block, CodeScope] = {}
        self.globals: dict[str, object] = {}
        self._names = 0
        self._atoms = 0
        self._global_ids: dict[int, str] = {}

    def fresh(self, prefix: str) -> str:
        """Returns a name that is not used yet: ``prefix`` with a number."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, thing: object, prefix: str) -> str:
        """Makes an object a global variable of the generated code, and returns the variable's name.

        Args:
            thing: the object. Further calls with the same object return the same name.
            prefix: the beginning of the name.
        """
        name = self._global_ids.get(id(thing))
        if name is None:
            name = self._global_ids[id(thing)] = self.fresh(prefix + "_")
            self.globals[name] = thing
        return name

    def numpy_type(self, element: DType) -> str:
        """Makes the NumPy dtype of an element type a global variable of the generated code, and returns the variable's name."""
        name = f"t_{element.mlir}"
        self.globals[name] = element.numpy
        return name

    def define(self, text: str, scope: CodeScope, prefix: str = "x", made: MadeArray | None = None) -> str:
        """Returns the name of a variable that holds the value of a pure expression; a name or an integer is returned as it is.

        Args:
            text: the expression.
            scope: the scope that is to compute the expression. No line is added if this scope or an enclosing scope already
                computes an expression of equal text.
            prefix: the beginning of a new name.
            made: the array that the expression creates, for error messages.
        """
        if text.isidentifier() or text.lstrip("-").isdigit():
            return text
        place: CodeScope | None = scope
        while place is not None:
            known = place.names.get(text)
            if known is not None:
                return known
            place = place.parent
        name = self.fresh(prefix)
        scope.line(f"{name} = {text}", self.current, made)
        scope.names[text] = name
        return name

    def certain_scope(self, scope: CodeScope) -> CodeScope:
        """Returns the scope for an expression that can raise an error and therefore must only run if the current op runs.

        The result is the innermost branch, or loop that possibly has no iteration, between ``scope`` and the current op;
        ``scope`` if there is none.

        Args:
            scope: the innermost scope that the expression depends on.
        """
        block = self.current.parent_block() if self.current is not None else None
        place = self.homes.get(block, self.scope) if block is not None else self.scope
        while place.depth > scope.depth:
            if place.kind == "branch" or (place.kind == "loop" and not place.certain):
                return place
            assert place.parent is not None
            place = place.parent
        return place

    def atom(self, name: str, scope: CodeScope, bounds: Interval = ANY) -> Int:
        """Returns the integer that a variable of the generated code holds.

        Args:
            name: the variable.
            scope: the scope that defines it.
            bounds: the least and the greatest value that it can have.
        """
        self._atoms += 1
        return Int.of(Atom(name, scope, bounds, self._atoms))

    def define_integer(self, text: str, scope: CodeScope, bounds: Interval = ANY, *, safe: bool = True) -> Int:
        """Returns the integer that an expression computes.

        Args:
            text: the expression.
            scope: the innermost scope that the expression depends on.
            bounds: the least and the greatest value that it can have.
            safe: whether the expression cannot raise an error. If it can, it is computed where the current op runs, even if the
                bounds give its value.
        """
        if safe and (known := bounds.constant) is not None:
            return Int(known)
        place = scope if safe else self.certain_scope(scope)
        return self.atom(self.define(text, place), place, bounds)

    def text_of(self, value: Int) -> str:
        """Returns the Python expression of an integer.

        The partial sum of the variables of an outer scope is computed in this scope, into a new variable.
        """
        return self.sum_of(value).text

    def sum_of(self, value: Int) -> Sum:
        """Returns the expression of ``text_of`` as a sum of terms."""
        groups: dict[int, list[tuple[Atom, int]]] = {}
        for atom, factor in sorted(value.terms.items(), key=_order):
            groups.setdefault(atom.scope.depth, []).append((atom, factor))
        const = value.constant
        parts: dict[str, int] = {}
        depths = sorted(groups)
        for depth in depths:
            for atom, factor in groups[depth]:
                parts[atom.name] = parts.get(atom.name, 0) + factor
            if depth != depths[-1] and list(parts.values()) != [1]:
                parts, const = {self.define(Sum(const, parts).text, groups[depth][0][0].scope): 1}, 0
        return Sum(const, parts)

    def name_of(self, value: Int) -> str:
        """Returns the name of a variable that holds an integer; the literal of a constant."""
        return self.define(self.text_of(value), self.scope_of(value))

    def scope_of(self, *values: Value) -> CodeScope:
        """Returns the innermost scope that defines a variable of the values; the scope of the launch for constants."""
        found = self.launch
        for value in values:
            if isinstance(value, Int):
                for atom in value.terms:
                    found = deeper(found, atom.scope)
            elif isinstance(value, ScalarExpr):
                found = deeper(found, value.scope)
            elif isinstance(value, StridedView):
                found = deeper(found, self.scope_of(value.offset, *value.sizes, *value.strides))
            elif isinstance(value, Choice):
                found = deeper(found, self.scope_of(value.condition, value.true, value.false))
        return found

    def row_major(self, sizes: Sequence[Int], run: int) -> list[Int]:
        """Returns the strides in bytes of a contiguous memref in row-major order.

        Args:
            sizes: the number of elements along each axis.
            run: the number of bytes of an element.
        """
        strides: list[Int] = []
        step = Int(run)
        for size in reversed(sizes):
            strides.append(step)
            step = self.multiplied(step, size)
        return strides[::-1]

    def multiplied(self, a: Int, b: Int) -> Int:
        """Returns the product of two integers; the product of two that are not constants is computed into a new variable."""
        if a.known:
            return b * a.constant
        if b.known:
            return a * b.constant
        bounds = _closed(a.interval) * _closed(b.interval)
        scope = deeper(self.scope_of(a), self.scope_of(b))
        return self.define_integer(f"{self.name_of(a)} * {self.name_of(b)}", scope, bounds)
