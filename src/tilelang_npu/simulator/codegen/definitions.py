"""The names of generated code, and where what they stand for is computed: as far out as it is known."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from tilelang_npu.ops.dtypes import DType
from tilelang_npu.simulator.codegen.handlers import Value
from tilelang_npu.simulator.codegen.lines import Atom, CodeScope, Int, MadeArray, ScalarExpr, Sum, deeper, join
from tilelang_npu.simulator.codegen.strided import Choice, StridedView

WORD = 1 << 63
"""Beyond the least and the greatest number that comes from outside, of any type."""


class Definitions:
    """The scopes of a function that is being generated, and the names in them.

    Attributes:
        launch: what runs once per launch and core.
        block: what runs once per block.
        scope: the innermost one that is open.
        homes: the scope that the ops of each block of the function are emitted in.
        globals: the objects that the generated code uses, by name.
        current: the op that lines are emitted for.
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
        """A name that is not in use."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, thing: object, prefix: str) -> str:
        """The name of an object that the generated code uses."""
        name = self._global_ids.get(id(thing))
        if name is None:
            name = self._global_ids[id(thing)] = self.fresh(prefix + "_")
            self.globals[name] = thing
        return name

    def numpy_type(self, element: DType) -> str:
        """The name of an element type's NumPy dtype."""
        name = f"t_{element.mlir}"
        self.globals[name] = element.numpy
        return name

    def define(self, text: str, scope: CodeScope, prefix: str = "x", made: MadeArray | None = None) -> str:
        """The name of a pure expression that is computed in ``scope``."""
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

    def surely_run(self, scope: CodeScope) -> CodeScope:
        """Where what may fail can be computed that needs ``scope``: no further out than the current op surely runs."""
        block = self.current.parent_block() if self.current is not None else None
        place = self.homes.get(block, self.scope) if block is not None else self.scope
        while place.depth > scope.depth:
            if place.kind == "branch" or (place.kind == "loop" and not place.certain):
                return place
            assert place.parent is not None
            place = place.parent
        return place

    def atom(self, name: str, scope: CodeScope, low: int | None = None, high: int | None = None) -> Int:
        """An integer behind a name."""
        self._atoms += 1
        return Int(0, ((Atom(name, scope, low, high, self._atoms), 1),))

    def named(self, text: str, scope: CodeScope, low: int | None = None, high: int | None = None, *, safe: bool = True) -> Int:
        """An integer computed by an expression."""
        if low is not None and low == high:
            return Int(low)
        place = scope if safe else self.surely_run(scope)
        return self.atom(self.define(text, place), place, low, high)

    def spelled(self, value: Int) -> str:
        """The expression of an integer; parts that are known further out are computed there."""
        return self.summed(value).text

    def summed(self, value: Int) -> Sum:
        """As ``spelled``, with what the expression consists of."""
        groups: dict[int, list[tuple[Atom, int]]] = {}
        for atom, factor in value.terms:
            groups.setdefault(atom.scope.depth, []).append((atom, factor))
        const = value.const
        parts: list[tuple[str, int]] = []
        depths = sorted(groups)
        for depth in depths:
            parts += [(atom.name, factor) for atom, factor in groups[depth]]
            if depth != depths[-1] and not (len(parts) == 1 and parts[0][1] == 1):
                parts = [(self.define(join(parts, const), groups[depth][0][0].scope), 1)]
                const = 0
        return Sum(tuple(parts), const)

    def name_of(self, value: Int) -> str:
        """A name or literal that holds an integer."""
        return self.define(self.spelled(value), self.scope_of(value))

    def scope_of(self, *values: Value) -> CodeScope:
        """The innermost scope that the values depend on."""
        found = self.launch
        for value in values:
            if isinstance(value, Int):
                for atom, _ in value.terms:
                    found = deeper(found, atom.scope)
            elif isinstance(value, ScalarExpr):
                found = deeper(found, value.scope)
            elif isinstance(value, StridedView):
                found = deeper(found, self.scope_of(value.offset, *value.sizes, *value.strides))
            elif isinstance(value, Choice):
                found = deeper(found, self.scope_of(value.condition, value.true, value.false))
        return found

    def row_major(self, sizes: Sequence[Int], run: int) -> list[Int]:
        """Strides in bytes of a memref without gaps."""
        strides: list[Int] = []
        step = Int(run)
        for size in reversed(sizes):
            strides.append(step)
            step = self.multiplied(step, size)
        return strides[::-1]

    def multiplied(self, a: Int, b: Int) -> Int:
        """The product of two integers."""
        if a.known:
            return b.scaled(a.const)
        if b.known:
            return a.scaled(b.const)
        first, second = ((-WORD if one.low is None else one.low, WORD if one.high is None else one.high) for one in (a, b))
        corners = [x * y for x in first for y in second]
        low, high = min(corners), max(corners)
        scope = deeper(self.scope_of(a), self.scope_of(b))
        return self.named(f"{self.name_of(a)} * {self.name_of(b)}", scope, low, high)
