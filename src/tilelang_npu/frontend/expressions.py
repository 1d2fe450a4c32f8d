"""Evaluates the expressions of a kernel: Python evaluates those of host values, and operations on traced values are emitted."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Block, Operation

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.mlir.arith import DIVISIONS
from tilelang_npu.errors import ARRAY_OF_THE_HOST, Location, TileError, is_array, shown
from tilelang_npu.frontend.scopes import Scopes
from tilelang_npu.language.threads import ThreadGuard, ThreadIndex
from tilelang_npu.traced import arithmetic
from tilelang_npu.traced.active_trace import BINARY, TracedValue
from tilelang_npu.traced.author import follows_kernels
from tilelang_npu.traced.buffers import Addressable, Element, Variable, subscript
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import number
from tilelang_npu.traced.emitter import region_of
from tilelang_npu.traced.ir_types import scalar_type
from tilelang_npu.traced.kinds import BOOL
from tilelang_npu.traced.locations import span
from tilelang_npu.traced.registers import RegisterVariable
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.source import Source
from tilelang_npu.traced.symbols import Sym

follows_kernels(__file__)

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
}
_COMPARISONS: dict[type[ast.AST], Callable[..., object]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container, ast.NotIn: lambda item, container: item not in container,
}
_CONVERSIONS: dict[int, Callable[[object], object]] = {-1: lambda value: value, 115: str, 114: repr, 97: ascii}
_UNARY: dict[type[ast.AST], Callable[..., object]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
_KEYWORDS: dict[type[ast.AST], str] = {
    ast.ListComp: "list comprehension", ast.SetComp: "set comprehension",
    ast.DictComp: "dict comprehension", ast.GeneratorExp: "generator expression", ast.NamedExpr: ":=", ast.Await: "await",
    ast.Yield: "yield", ast.YieldFrom: "yield from", ast.Starred: "*", ast.MatMult: "@",
}


_INSTEAD: dict[type[ast.AST], str] = {
    ast.NamedExpr: "bind the name in a statement of its own",
    ast.ListComp: "write the list out, build it in the factory, or loop with T.serial",
    ast.Yield: "a kernel writes its results to its tensors",
}


def is_traced(value: object) -> bool:
    """Whether the value is a traced value (scalar, buffer, slice, element) or a symbolic dimension."""
    return isinstance(value, (TracedValue, Sym))


def host_failure(problem: BaseException, what: str) -> TileError:
    """Returns the T146 error for an exception that Python code of the author raised while the kernel was compiled.

    Args:
        problem: the exception.
        what: the expression or statement that raised it, for the message.
    """
    text = str(problem) or type(problem).__name__
    return TileError(f"{what}: {type(problem).__name__}: {text}", code="T146",
                     help="this is plain Python, which runs once, while the kernel is compiled")


class GuardedTest:
    """A condition with ``and`` whose first part is a condition on the index of a thread; only an ``if`` can have it.

    Attributes:
        guard: the first part.
        rest: the other parts.
    """

    def __init__(self, guard: ThreadGuard, rest: Sequence[ast.expr]) -> None:
        self.guard, self.rest = guard, rest

    def __bool__(self) -> bool:
        return bool(self.guard)


class _Lambda:
    """The value of a ``lambda`` in a kernel. It can be passed on, as in ``T.Fragment(shape, lambda i: i)``, but not called."""

    def __init__(self, location: Location) -> None:
        self._location = location

    def __call__(self, *_: object, **__: object) -> object:
        raise TileError("expression `lambda` is not supported in a kernel", code="T141", location=self._location,
                        help="define it outside of the kernel, as a function or a @T.macro")


class Expressions:
    """Evaluates the expressions of one function's source.

    Attributes:
        builder: emits operations on traced values.
        source: the source of the function.
        scopes: the names that are visible in the function.
    """

    callers: tuple[Location, ...] = ()
    """In a macro, the positions of the calls that lead there, the call of the macro first."""

    def __init__(self, builder: Builder, source: Source, scopes: Scopes) -> None:
        self.builder = builder
        self.source = source
        self.scopes = scopes
        scopes.remark = builder.remark

    def where(self, node: ast.AST) -> Location:
        """Returns the position of a syntax node in the author's file, in a macro with the calls that lead there."""
        place = span(node, self.source.file, self.source.lines)
        return replace(place, callers=self.callers) if self.callers else place

    def evaluate(self, node: ast.AST) -> object:
        """Returns the value of an expression: a Python object or a traced value.

        A ``TileError`` without a position gets the position of the innermost expression that raised it.

        Raises:
            TileError: T141, the expression is not supported in a kernel; or an error of a part of the expression.
        """
        handler = self.HANDLERS.get(type(node))
        try:
            if handler is None:
                keyword = _KEYWORDS.get(type(node), type(node).__name__)
                raise TileError(f"expression `{keyword}` is not supported in a kernel", code="T141",
                                help=_INSTEAD.get(type(node), "compute it in the factory or in a plain Python helper"))
            return handler(self, node)
        except TileError as error:
            error.at(self.where(node))
            raise

    # --- names, constants, displays --------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> object:
        return node.value

    def _name(self, node: ast.Name) -> object:
        value = self.scopes.lookup(node.id)
        remark = self.scopes.hidden(node.id)
        if remark is not None:
            self.builder.remark(remark.at(self.where(node)))
        if isinstance(value, RegisterVariable) and value.shape:
            return value
        return value.place if isinstance(value, (Variable, RegisterVariable)) else value

    def _lambda(self, node: ast.Lambda) -> object:
        return _Lambda(self.where(node))

    def _tuple(self, node: ast.Tuple) -> object:
        return tuple(self.evaluate(item) for item in node.elts)

    def _list(self, node: ast.List) -> object:
        return [self.evaluate(item) for item in node.elts]

    def _set(self, node: ast.Set) -> object:
        return {self.evaluate(item) for item in node.elts}

    def _dict(self, node: ast.Dict) -> object:
        made: dict[object, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                made.update(self.mapping(value))
                continue
            place = self.evaluate(key)
            made[place.buffer if isinstance(place, Element) and isinstance(place.buffer, Variable) else place] = (
                self.evaluate(value))
        return made

    def mapping(self, node: ast.expr) -> Mapping[str, object]:
        """Returns the value of an expression after ``**``.

        Raises:
            TileError: T146, the value is no mapping.
        """
        value = self.evaluate(node)
        if not isinstance(value, Mapping):
            raise host_failure(TypeError(f"{type(value).__name__!r} object is not a mapping"), f"`**{ast.unparse(node)}`")
        return value

    def _text(self, node: ast.expr) -> str:
        assert isinstance(node, ast.JoinedStr)
        parts: list[str] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.evaluate(part.value)
                shown = _CONVERSIONS[part.conversion](value)
                layout = self._text(part.format_spec) if part.format_spec is not None else ""
                parts.append(str(value) if is_traced(value) else format(shown, layout))
            else:
                parts.append(str(self.evaluate(part)))
        return "".join(parts)

    # --- access ----------------------------------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> object:
        base = self.evaluate(node.value)
        try:
            return getattr(base, node.attr)
        except TileError:
            raise
        except AttributeError as problem:
            close = difflib.get_close_matches(node.attr, dir(base), n=1)
            what = base.describe() if isinstance(base, (Addressable, Element)) else str(problem)
            text = f"{what} has no attribute {node.attr!r}" if isinstance(base, (Addressable, Element)) else what
            raise TileError(text, code="T140", help=_attribute_advice(base, node.attr, close)) from None

    def _subscript(self, node: ast.Subscript) -> object:
        base: Any = self.evaluate(node.value)
        items = self.subscript_items(node.slice)
        if isinstance(base, Element) and isinstance(base.buffer, Variable):
            base = base.buffer
        if isinstance(base, Addressable):
            return subscript(self.builder, base, items)
        if isinstance(base, (Element, Expr)):
            raise TileError(f"{base} is a scalar and has no elements", code="T111",
                            help="index the buffer from which the scalar was read")
        if is_array(base) and any(is_traced(item) for item in items):
            raise TileError(f"{ast.unparse(node)}: {shown(base)} is on the host, and the index is known on the device only",
                            code="T144", help=ARRAY_OF_THE_HOST)
        try:
            return base[items[0] if not isinstance(node.slice, ast.Tuple) else tuple(items)]
        except TileError:
            raise
        except (LookupError, TypeError, ValueError) as problem:
            raise host_failure(problem, ast.unparse(node)) from None

    def subscript_items(self, node: ast.expr) -> list[object]:
        """Returns the values of the indices and slices in the brackets of a subscript."""
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        found = [self.evaluate(part) for part in parts]
        for item in found:
            if isinstance(item, ThreadIndex):
                operator.index(item)  # which it refuses
        return found

    def _slice(self, node: ast.Slice) -> object:
        return slice(*(None if part is None else self.evaluate(part) for part in (node.lower, node.upper, node.step)))

    # --- operators -------------------------------------------------------------------------------------------------------

    def _binary(self, node: ast.BinOp) -> object:
        name = OPERATORS.get(type(node.op))
        if name is None:
            raise TileError(f"operator `{_KEYWORDS[type(node.op)]}` is not supported in a kernel", code="T141",
                            help="use T.gemm or T.gemm_v0")
        return self.combine(name, self.evaluate(node.left), self.evaluate(node.right), node)

    def combine(self, name: str, left: object, right: object, node: ast.AST) -> object:
        """Returns the result of a binary operator: a traced scalar if an operand is traced, otherwise the result that Python
        computes.

        Args:
            name: the operator, a key of ``BINARY``.
            left: the value of the left operand.
            right: the value of the right operand.
            node: the expression, for errors.
        """
        if isinstance(left, Addressable) or isinstance(right, Addressable):
            number(self.builder, left if isinstance(left, Addressable) else right)
        try:
            return BINARY[name](left, right)
        except TileError:
            raise
        except (TypeError, ValueError, ArithmeticError) as problem:
            raise host_failure(problem, _source_of(node)) from None

    def _unary(self, node: ast.UnaryOp) -> object:
        value = self.evaluate(node.operand)
        if isinstance(value, Addressable):
            number(self.builder, value)
        if isinstance(node.op, ast.Not):
            return arithmetic.logical_not(self.builder, value) if is_traced(value) else not value
        try:
            return _UNARY[type(node.op)](value)
        except TypeError as problem:
            raise host_failure(problem, _source_of(node)) from None

    def _compare(self, node: ast.Compare) -> object:
        left = self.evaluate(node.left)
        result: object = True
        for kind, part in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(part)
            outcome = self._one_comparison(kind, left, right, node)
            if isinstance(outcome, ThreadGuard) and len(node.ops) == 1:
                return outcome
            if not is_traced(outcome) and not outcome:
                return outcome
            if result is True:
                result = outcome
            elif is_traced(outcome):
                result = arithmetic.binary(self.builder, "and", result, outcome)
            left = right
        return result

    def _one_comparison(self, kind: ast.cmpop, left: object, right: object, node: ast.AST) -> object:
        identity = isinstance(kind, (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        if not identity:
            for side in (left, right):
                if isinstance(side, Addressable):
                    number(self.builder, side)
            if isinstance(left, Sym) and isinstance(right, Sym):
                left = self.builder.lift(left)
        try:
            return _COMPARISONS[type(kind)](left, right)
        except TileError:
            raise
        except (TypeError, ValueError) as problem:
            raise host_failure(problem, _source_of(node)) from None

    # --- choices ---------------------------------------------------------------------------------------------------------

    def truth(self, value: object) -> bool | Expr:
        """Returns a condition as a Python bool if its value is known, otherwise as a traced scalar of type ``bool``."""
        if not is_traced(value):
            return bool(value)
        found = arithmetic.truth(self.builder, value)
        return found if found.constant is None else bool(found.constant)

    def _boolean(self, node: ast.BoolOp) -> object:
        stops = isinstance(node.op, ast.Or)
        result = self.evaluate(node.values[0])
        for position, part in enumerate(node.values[1:], 1):
            if isinstance(result, ThreadGuard) and not stops:
                return GuardedTest(result, node.values[position:])
            if not is_traced(result):
                if bool(result) is stops:
                    return result
                result = self.evaluate(part)
                continue
            test = self.truth(result)
            if isinstance(test, bool):
                if test is stops:
                    return test
                result = self.evaluate(part)
                continue
            rest = ast.BoolOp(node.op, node.values[position:]) if position < len(node.values) - 1 else part
            ast.copy_location(rest, part)
            other, decided = (lambda part=rest: self.truth(self.evaluate(part))), (lambda: stops)
            return self.choose(test, decided if stops else other, other if stops else decided)
        return result

    def _ternary(self, node: ast.IfExp) -> object:
        return self.conditional(node.test, node.body, node.orelse)

    def conditional(self, test: ast.expr, chosen: ast.expr, other: ast.expr) -> object:
        """Returns the value of ``chosen if test else other``; if the test is known, only one of the two is evaluated."""
        condition = self.truth(self.evaluate(test))
        if isinstance(condition, bool):
            return self.evaluate(chosen if condition else other)
        return self.choose(condition, lambda: self.evaluate(chosen), lambda: self.evaluate(other))

    def choose(self, condition: Expr, then: Callable[[], object], otherwise: Callable[[], object]) -> Expr:
        """Returns a scalar that is selected at run time by a traced condition.

        If neither side loads from memory or divides by an unknown value, both sides are computed and one is selected. Otherwise
        a branch is emitted, which computes one side.

        Args:
            condition: the condition.
            then: evaluates the value for a true condition.
            otherwise: evaluates the value for a false condition.
        """
        builder = self.builder
        blocks, values = (Block(), Block()), []
        for block, side in zip(blocks, (then, otherwise), strict=True):
            with builder.at(block):
                values.append(number(builder, side()))
        with builder.at(blocks[0]):
            a, _ = arithmetic.pair(builder, values[0], values[1])
        with builder.at(blocks[1]):
            _, b = arithmetic.pair(builder, values[0], values[1])
        if not any(_needs_guard(op) for block in blocks for op in block.ops):
            for block in blocks:
                builder.splice(block)
            return self._without_branch(condition, a, b)
        for block, value in zip(blocks, (a, b), strict=True):
            with builder.at(block):
                builder.emit(scf.YieldOp(value.ssa(builder)))
        made = builder.emit(scf.IfOp(condition.ssa(builder), [scalar_type(a.kind)], region_of(blocks[0]),
                                     region_of(blocks[1])))
        return builder.scalar(made.results[0], a.kind)

    def _without_branch(self, condition: Expr, a: Expr, b: Expr) -> Expr:
        if a.constant is not None and repr(a.constant) == repr(b.constant):  # 0.0 and -0.0 are equal, and differ
            return a
        if a.kind == BOOL and a.constant and b.constant is not None:
            return condition
        if a.kind == BOOL and b.constant is not None and not b.constant:
            return arithmetic.binary(self.builder, "and", condition, a)
        if a.kind == BOOL and a.constant:
            return arithmetic.binary(self.builder, "or", condition, b)
        return arithmetic.select(self.builder, condition, a, b)

    HANDLERS: ClassVar[dict[type[ast.AST], Callable[..., object]]] = {
        ast.Constant: _constant, ast.Name: _name, ast.Tuple: _tuple, ast.List: _list, ast.Set: _set, ast.Dict: _dict,
        ast.JoinedStr: _text, ast.Attribute: _attribute, ast.Subscript: _subscript, ast.Slice: _slice, ast.BinOp: _binary,
        ast.UnaryOp: _unary, ast.Compare: _compare, ast.BoolOp: _boolean, ast.IfExp: _ternary, ast.Lambda: _lambda,
    }


def _attribute_advice(base: object, attribute: str, close: Sequence[str]) -> str:
    """The advice for an attribute that does not exist."""
    if isinstance(base, (Addressable, Element)):
        from tilelang_npu import language

        if attribute in ("sum", "max", "min") and isinstance(base, Addressable):
            return f"use T.reduce_{attribute}(source, destination, dim=-1)"
        if attribute in ("T", "transpose"):
            return "use T.transpose"
        if hasattr(language, attribute):
            return f"use T.{attribute}"
    if close:
        return f"did you mean {close[0]!r}?"
    return "it has " + ", ".join(name for name in dir(base) if not name.startswith("_"))[:200]


def _needs_guard(op: Operation) -> bool:
    """Whether an op may only run if its side is chosen: a load that may be outside its buffer, or a division by a value that
    may be 0.
    """
    if isinstance(op, memref.LoadOp):
        kind = op.memref.type
        return not (isinstance(kind, MemRefType) and kind.get_shape() == (1,) and isinstance(kind.memory_space, tile.ScopeAttr))
    if isinstance(op, DIVISIONS):
        divisor = op.operands[1].owner
        known = divisor.value if isinstance(divisor, arith.ConstantOp) else None
        return not (isinstance(known, IntegerAttr) and known.value.data)
    return isinstance(op, scf.IfOp)


def _source_of(node: ast.AST) -> str:
    return f"`{ast.unparse(node)}`" if isinstance(node, ast.expr) else "augmented assignment"
