"""Scalars of a trace: what ``cid // n_num`` is while the kernel is traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from tilelang_npu.dialects.names import spoken, written
from tilelang_npu.language import tracing
from tilelang_npu.language.symbols import Sym
from tilelang_npu.linear import ANY, Interval, Linear
from tilelang_npu.ops import DType, dtype

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from tilelang_npu.frontend.buffers import Element
    from tilelang_npu.frontend.builder import Builder


class IndexKind:
    """The ``index`` type of loop variables, block ids and sizes; it has the questions of a :class:`DType`."""

    mlir = "index"
    bits = 64
    is_float = False
    is_integer = True
    is_signed = True
    is_bool = False

    def __str__(self) -> str:
        return "index"

    __repr__ = __str__


INDEX = IndexKind()
BOOL = dtype("bool")
INT32 = dtype("int32")
INT64 = dtype("int64")
FLOAT32 = dtype("float32")

Kind = DType | IndexKind
"""Type of a scalar."""


class ScalarOperators:
    """Python's operators on what has a scalar value in the trace; each emits an operation."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's scalars leave the operation to these operators

    def __bool__(self) -> bool:
        self._refuse("truth value", "Python cannot branch on it here: use `if` in the kernel's own source or in a @T.macro, "
                     "or T.if_then_else")

    def __index__(self) -> int:
        self._refuse("integer", "a size or a range must be known when the kernel is compiled")

    def __int__(self) -> int:
        self._refuse("integer", "use T.cast(x, 'int32')")

    def __float__(self) -> float:
        self._refuse("number", "use T.cast(x, 'float32')")

    def __iter__(self) -> Any:
        self._refuse("elements", "it is one scalar")

    def __len__(self) -> int:
        self._refuse("length", "it is one scalar")

    def _refuse(self, wanted: str, remedy: str) -> NoReturn:
        tracing.refuse_python_value(f"a traced value ({self})", wanted, remedy)

    def astype(self, element: object) -> Any:
        """The value as another element type."""
        return _builder().cast(self, dtype(element))

    def __neg__(self) -> Any:
        from tilelang_npu.frontend import arithmetic

        return arithmetic.negate(_builder(), self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        from tilelang_npu.frontend import arithmetic

        return arithmetic.math(_builder(), "abs", self)

    def __invert__(self) -> Any:
        from tilelang_npu.frontend import arithmetic

        return arithmetic.invert(_builder(), self)

    if TYPE_CHECKING:
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...

    def __eq__(self, other: object) -> Any:
        return _apply("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return _apply("ne", self, other)

    def __hash__(self) -> int:
        return id(self)


BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift,
}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _builder() -> Builder:
    return tracing.builder("a traced value")


def _apply(name: str, left: Any, right: Any) -> Any:
    from tilelang_npu.frontend import arithmetic

    for part in (left, right):
        if not isinstance(part, (tracing.TracedValue, Sym, int, float)) and not hasattr(part, "item"):
            return NotImplemented
    if name in COMPARISONS:
        return arithmetic.compare(_builder(), name, left, right)
    return arithmetic.binary(_builder(), name, left, right)


def _install() -> None:
    def forward(name: str) -> Callable[[Any, Any], Any]:
        return lambda self, other: _apply(name, self, other)

    def reflected(name: str) -> Callable[[Any, Any], Any]:
        return lambda self, other: _apply(name, other, self)

    for name in BINARY:
        setattr(ScalarOperators, f"__{name}__", forward(name))
        setattr(ScalarOperators, f"__r{name}__", reflected(name))
    for name in COMPARISONS:
        setattr(ScalarOperators, f"__{name}__", forward(name))


_install()


class Expr(tracing.TracedValue, ScalarOperators):
    """A scalar of the trace.

    Attributes:
        kind: its type; ``INDEX`` for loop variables, block ids and sizes.
        constant: its value where the front end knows it. Such a scalar has no operation before one needs it.
        form: its linear form, for integers.
        bounds: between which it is proven to be, for integers.
        symbol: the same value as a host expression of symbolic dimensions and integer parameters, where it is one.
        origin: the element it was loaded from by an assignment: an operand that names a place still means that place.
    """

    __slots__ = ("_value", "bounds", "constant", "form", "kind", "origin", "symbol")

    def __init__(self, kind: Kind, value: SSAValue | None, *, constant: int | float | bool | None = None,
                 form: Linear[int] | None = None, bounds: Interval = ANY, symbol: int | Sym | None = None) -> None:
        self.kind = kind
        self._value = value
        self.constant = constant
        self.form = form
        self.bounds = bounds
        self.symbol = symbol
        self.origin: Element | None = None

    @property
    def dtype(self) -> DType:
        """Element type as the kernel's source sees it; loop variables and sizes are ``int32`` there."""
        return self.kind if isinstance(self.kind, DType) else INT32

    @property
    def non_negative(self) -> bool:
        """Whether the value is proven to be zero or more."""
        return self.bounds.low >= 0

    def ssa(self, builder: Builder) -> SSAValue:
        """The value in the IR; a constant is emitted into the current block unless it is there."""
        if self._value is None:
            assert self.constant is not None
            return builder.constant(self.constant, self.kind)
        return self._value

    def suggest_name(self, name: str) -> None:
        """Show the name in the IR, unless the value has one."""
        if self._value is not None and self._value.name_hint is None and name.strip("_"):
            self._value.name_hint = written(name)

    def __str__(self) -> str:
        if self.constant is not None:
            return f"{self.constant} : {self.kind}"
        name = spoken(self._value) if self._value is not None else None
        return f"{name} : {self.kind}" if name else str(self.kind)

    __repr__ = __str__
