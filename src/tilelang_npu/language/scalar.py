"""Functions of scalars in ``T``.

A function of Python numbers or sizes is computed on the host. A function of a value of the kernel becomes an operation of the
kernel. Some names are also vector operations (``T.exp``, ``T.max``): a call with buffers and a destination, such as
``T.exp(source, destination)``, is the vector operation.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from tilelang_npu.errors import TileError, shown
from tilelang_npu.language.elements import ElementType, Whole, element_type
from tilelang_npu.traced import numbers
from tilelang_npu.traced.active_trace import Scalar, Trace, TracedValue, active
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.linear_forms import bounds_of
from tilelang_npu.traced.symbols import Dimension, Number, Sym, larger, smaller

if TYPE_CHECKING:
    from tilelang_npu.traced.buffers import Operand, Tile

ValueT = TypeVar("ValueT")


class OfOne(Protocol):
    """The type of a function of one scalar. Many of these functions are a vector operation if they are called with a source and
    a destination buffer.
    """

    @overload
    def __call__(self, value: float, /) -> float: ...
    @overload
    def __call__(self, value: Sym | Scalar, /) -> Scalar: ...
    @overload
    def __call__(self, value: Number, /) -> float | Scalar: ...
    @overload
    def __call__(self, src: Tile, dst: Tile, /) -> None: ...


class OfTwo(Protocol):
    """The type of a function of two scalars. Some of these functions are a vector operation if they are called with two sources
    and a destination buffer.
    """

    @overload
    def __call__(self, left: int, right: int, /) -> Integer: ...
    @overload
    def __call__(self, left: Number, right: Number, /) -> Any: ...
    @overload
    def __call__(self, src0: Operand, src1: Operand, dst: Tile, /) -> None: ...


def _traced(*values: object) -> bool:
    return any(isinstance(value, TracedValue) for value in values)


def _binary(name: str, left: object, right: object) -> Scalar:
    return Trace.running(f"T.{name}").binary(name, left, right)


def assert_(condition: object, message: str = "") -> None:
    """Check a condition that is known when the kernel is compiled, such as one on sizes.

    Example: ``T.assert_(M % 128 == 0, "M is a multiple of 128")``

    Raises:
        TileError: T148, the condition is false; T190, the condition is computed on the device, which cannot report it.
    """
    if _traced(condition) or isinstance(condition, Sym):
        raise TileError("T.assert_ of a value that is known only on the device is not supported", code="T190",
                        location=user_location(), help="check it on the host before the call, or T.print it")
    if not condition:
        raise TileError(f"T.assert_: {message or 'the condition does not hold'}", code="T148", location=user_location(),
                        help="the kernel does not support these arguments")


def meta_var(value: ValueT) -> ValueT:
    """Return the value itself, so that a name bound to it is the value and no variable of the kernel.

    A name in a kernel is always bound to a value here, so the call changes nothing; it exists for kernels written for TVM's
    parser, where any other assignment defines a variable. ``value`` may be a number, a size, a computed scalar, a buffer or any
    Python object.

    Example: ``T.meta_var(M // 4)``

    Raises:
        TileError: T145, the value is an element of a buffer: a name bound to an element holds what was read at that line, while
            TVM reads the element anew wherever the name is used.
    """
    if _traced(value) and _is_element(value):
        raise TileError(f"T.meta_var of {shown(value)}: the name would refer to the element, not to its value", code="T145",
                        location=user_location(), help="bind the element itself, which is read once, or bind its indices")
    return value


def evaluate(value: object) -> None:
    """Evaluate an expression and discard its value, as TVM's statement of this name does.

    Example: ``T.evaluate(T.max(n, 1))``
    """


def _is_element(value: object) -> bool:
    from tilelang_npu.traced.scalars import Place  # imports xDSL, which functions of the host do without

    return isinstance(value, Place)


@overload
def ceildiv(left: int, right: int) -> int: ...
@overload
def ceildiv(left: Whole, right: Whole) -> Whole: ...
def ceildiv(left: Whole, right: Whole) -> Whole:
    """Return the quotient ``left / right`` of two integers, rounded up.

    Example: ``T.ceildiv(M, 128)``
    """
    return (left + (right - 1)) // right


@overload
def align_up(left: int, right: int) -> int: ...
@overload
def align_up(left: Whole, right: Whole) -> Whole: ...
def align_up(left: Whole, right: Whole) -> Whole:
    """Return the smallest multiple of the integer ``right`` that is not less than the integer ``left``.

    Example: ``T.align_up(M, 128)``
    """
    return (left + (right - 1)) // right * right


@overload
def floordiv(left: int, right: int) -> int: ...
@overload
def floordiv(left: Whole, right: Whole) -> Whole: ...
def floordiv(left: Whole, right: Whole) -> Whole:
    """Return the quotient ``left / right`` of two integers, rounded toward minus infinity.

    Example: ``T.floordiv(M, 128)``
    """
    return left // right


@overload
def floormod(left: int, right: int) -> int: ...
@overload
def floormod(left: Whole, right: Whole) -> Whole: ...
def floormod(left: Whole, right: Whole) -> Whole:
    """Return the remainder of ``T.floordiv``, which has the sign of the divisor.

    Example: ``T.floormod(M, 128)``
    """
    return left % right


@overload
def truncdiv(left: int, right: int) -> int: ...
@overload
def truncdiv(left: Whole, right: Whole) -> Whole: ...
def truncdiv(left: Whole, right: Whole) -> Whole:
    """Return the quotient ``left / right`` of two integers, rounded toward zero.

    Example: ``T.truncdiv(n, 2)``
    """
    if isinstance(left, TracedValue) or isinstance(right, TracedValue):
        return _binary("truncdiv", left, right)
    if isinstance(left, Sym) or isinstance(right, Sym):
        return left // right  # sizes are not negative
    quotient = builtins.abs(left) // builtins.abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


@overload
def truncmod(left: int, right: int) -> int: ...
@overload
def truncmod(left: Whole, right: Whole) -> Whole: ...
def truncmod(left: Whole, right: Whole) -> Whole:
    """Return the remainder of ``T.truncdiv``, which has the sign of the dividend.

    Example: ``T.truncmod(n, 2)``
    """
    if _traced(left, right):
        return _binary("truncmod", left, right)
    return left - truncdiv(left, right) * right


class Integer(int):
    """An integer with a property ``value``, as TVM's integer constants have, for scripts that read it."""

    @property
    def value(self) -> int:
        """The integer as an ``int``."""
        return int(self)


def _extreme(name: str, host: Callable[[float, float], float], symbolic: Callable[[Dimension, Dimension], Dimension]) -> OfTwo:
    def function(*operands: Any) -> Any:  # what OfTwo says
        if len(operands) == 3 and _traced(*operands):
            return _vector(name)(*operands)
        if len(operands) != 2:
            raise TileError(f"T.{name} takes two scalars, or two inputs and a destination; {len(operands)} are given",
                            code="T145", help="nest the calls for more than two")
        left, right = operands
        if _traced(left, right):
            return _binary(name, left, right)
        if isinstance(left, Sym) or isinstance(right, Sym):
            return symbolic(left, right)
        found = host(left, right)
        return Integer(found) if isinstance(found, int) and not isinstance(found, bool) else found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"Return the {'smaller' if name == 'min' else 'larger'} of two scalars; ``T.{name}(src0, src1, dst)``"
                        f" is ``T.v{name}``.\n\nExample: ``T.{name}(x, 1.0)``")
    return function


def _vector(name: str) -> Callable[..., object]:
    from tilelang_npu.language import vector  # here: it loads the IR framework, which declaring a kernel does not need

    return vector.function(name)


min = _extreme("min", builtins.min, smaller)  # noqa: A001  (the language's name)
max = _extreme("max", builtins.max, larger)  # noqa: A001  (the language's name)


def _function(name: str, host: Callable[[float], float], doc: str, operation: str | None) -> OfOne:
    def function(*operands: Any) -> Any:  # what OfOne says
        if operation is not None and len(operands) >= 2 and _traced(*operands):
            return _vector(operation)(*operands)
        if len(operands) != 1:
            raise TileError(f"T.{name} takes one scalar, or an input and a destination; {len(operands)} are given", code="T145",
                            help="call it once for each value")
        value = operands[0]
        if isinstance(value, (TracedValue, Sym)):
            return Trace.running(f"T.{name}").math(name, value)
        if not hasattr(value, "__float__"):
            raise TileError(f"T.{name} takes a scalar, not {shown(value)}", code="T110", location=user_location(),
                            help="a scalar is a number, an element of a buffer or a computed value")
        return host(value)

    function.__name__ = function.__qualname__ = name
    tiles = f"; ``T.{name}(src, dst)`` is ``T.v{operation}``" if operation is not None else ""
    function.__doc__ = f"Return {doc} of a scalar{tiles}.\n\nExample: ``T.{name}(x)``"
    return function


exp = _function("exp", math.exp, "e to the power", "exp")
exp2 = _function("exp2", lambda value: 2.0**value, "2 to the power", "exp2")
log = _function("log", math.log, "the natural logarithm", "ln")
log2 = _function("log2", math.log2, "the logarithm to base 2", "log2")
sqrt = _function("sqrt", math.sqrt, "the square root", "sqrt")
rsqrt = _function("rsqrt", lambda value: 1.0 / math.sqrt(value), "the reciprocal of the square root", "rsqrt")
abs = _function("abs", builtins.abs, "the absolute value", "abs")  # noqa: A001  (the language's name)
sin = _function("sin", math.sin, "the sine", "sin")
cos = _function("cos", math.cos, "the cosine", "cos")
tanh = _function("tanh", math.tanh, "the hyperbolic tangent", "tanh")
erf = _function("erf", math.erf, "the error function", "erf")
floor = _function("floor", math.floor, "the largest integer that is not greater", None)
ceil = _function("ceil", math.ceil, "the smallest integer that is not less", None)
round = _function("round", builtins.round, "the nearest integer, ties to even,", None)  # noqa: A001  (the language's name)
trunc = _function("trunc", math.trunc, "the integer part", None)


tan = _function("tan", math.tan, "the tangent", "tan")
asin = _function("asin", math.asin, "the inverse sine", None)
acos = _function("acos", math.acos, "the inverse cosine", None)
atan = _function("atan", math.atan, "the inverse tangent", "atan")
sinh = _function("sinh", math.sinh, "the hyperbolic sine", None)
cosh = _function("cosh", math.cosh, "the hyperbolic cosine", None)
asinh = _function("asinh", math.asinh, "the inverse hyperbolic sine", None)
acosh = _function("acosh", math.acosh, "the inverse hyperbolic cosine", None)
atanh = _function("atanh", math.atanh, "the inverse hyperbolic tangent", None)
log10 = _function("log10", math.log10, "the logarithm to base 10", "log10")
log1p = _function("log1p", math.log1p, "the natural logarithm of 1 plus the value", "log1p")
fabs = abs
nearbyint = round


def _of_two(name: str, host: Callable[[float, float], float], doc: str) -> Callable[[Number, Number], float | Scalar]:
    def function(left: Number, right: Number) -> float | Scalar:
        if isinstance(left, (TracedValue, Sym)) or isinstance(right, (TracedValue, Sym)):
            return Trace.running(f"T.{name}").math_of_two(name, left, right)
        return host(left, right)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\nExample: ``T.{name}(y, x)``"
    return function


atan2 = _of_two("atan2", math.atan2, "Return the angle of the point (right, left), in radians.")
copysign = _of_two("copysign", math.copysign, "Return the magnitude of the first value with the sign of the second.")


def exp10(value: float | Scalar) -> float | Scalar:
    """Return 10 to the power of a scalar.

    Example: ``T.exp10(x)``
    """
    return exp(value * math.log(10.0)) if isinstance(value, TracedValue) else 10.0**value


def hypot(left: float | Scalar, right: float | Scalar) -> float | Scalar:
    """Return ``sqrt(left * left + right * right)``.

    Example: ``T.hypot(x, y)``
    """
    return sqrt(left * left + right * right)


@overload
def isnan(value: float, /) -> bool: ...
@overload
def isnan(value: Scalar, /) -> bool | Scalar: ...
@overload
def isnan(src: Tile, dst: Tile, /) -> None: ...
def isnan(*operands: Any) -> object:  # of one operand a truth value, of two none
    """Return whether a scalar is NaN; ``T.isnan(src, dst)`` with buffers is ``T.visnan``.

    Example: ``T.isnan(x)``
    """
    if len(operands) == 2:
        return _vector("isnan")(*operands)
    value, = operands
    if not _traced(value):
        return math.isnan(value)
    return Trace.running("T.isnan").compare("ne", value, value)


@overload
def isinf(value: float, /) -> bool: ...
@overload
def isinf(value: Scalar, /) -> bool | Scalar: ...
@overload
def isinf(src: Tile, dst: Tile, /) -> None: ...
def isinf(*operands: Any) -> object:  # as isnan
    """Return whether a scalar is an infinity; ``T.isinf(src, dst)`` with buffers is ``T.visinf``.

    Example: ``T.isinf(x)``
    """
    if len(operands) == 2:
        return _vector("isinf")(*operands)
    value, = operands
    return abs(value) == math.inf if _traced(value) else math.isinf(value)


def isfinite(value: float | Scalar) -> bool | Scalar:
    """Return whether a scalar is neither an infinity nor NaN.

    Example: ``T.isfinite(x)``
    """
    return abs(value) < math.inf if isinstance(value, TracedValue) else math.isfinite(value)


def _bit_count(name: str, host: Callable[[int], int], doc: str) -> Callable[[Whole], Whole]:
    def function(value: Whole) -> Whole:
        if _traced(value) or isinstance(value, Sym):
            return Trace.running(f"T.{name}").count_bits(name, value)
        return host(int(value))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\nExample: ``T.{name}(n)``"
    return function


popcount = _bit_count("popcount", lambda value: (value & 0xFFFFFFFF).bit_count(), "Return the number of set bits.")
clz = _bit_count("clz", lambda value: 32 - (value & 0xFFFFFFFF).bit_length(),
                 "Return the number of zero bits above the highest set bit.")


def shift_left(value: int | Scalar, amount: int | Scalar) -> int | Scalar:
    """Return the integer ``value << amount``.

    Example: ``T.shift_left(n, 2)``
    """
    return value << amount


def shift_right(value: int | Scalar, amount: int | Scalar) -> int | Scalar:
    """Return the integer ``value >> amount``.

    Example: ``T.shift_right(n, 2)``
    """
    return value >> amount


def _bitwise(name: str, doc: str, combine: Callable[[int, int], int]) -> OfTwo:
    def function(*operands: Any) -> Any:  # what OfTwo says
        return _vector(name)(*operands) if len(operands) == 3 else combine(*operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"Return {doc} of two integers; ``T.{name}(src0, src1, dst)`` is ``T.v{name}``."
                        f"\n\nExample: ``T.{name}(n, 7)``")
    return function


bitwise_and = _bitwise("bitwise_and", "the bitwise and", lambda left, right: left & right)
bitwise_or = _bitwise("bitwise_or", "the bitwise or", lambda left, right: left | right)
bitwise_xor = _bitwise("bitwise_xor", "the bitwise exclusive or", lambda left, right: left ^ right)


@overload
def bitwise_not(value: int, /) -> int: ...
@overload
def bitwise_not(value: Scalar, /) -> Scalar: ...
@overload
def bitwise_not(src: Tile, dst: Tile, /) -> None: ...
def bitwise_not(*operands: Any) -> object:  # of one operand its complement, of two none
    """Return the bitwise complement of an integer; ``T.bitwise_not(src, dst)`` with buffers is ``T.vbitwise_not``.

    Example: ``T.bitwise_not(n)``
    """
    return _vector("bitwise_not")(*operands) if len(operands) == 2 else ~operands[0]


@overload
def clamp(dst: Number, min_val: Number, max_val: Number) -> Any: ...
@overload
def clamp(src: Tile, dst: Tile, min_val: Operand, max_val: Operand) -> None: ...
def clamp(*operands: Any, **keywords: object) -> object:  # of three operands a scalar, of four none
    """Return a scalar limited to a range: ``T.clamp(value, low, high)``; ``T.clamp(src, dst, low, high)`` with buffers is
    ``T.vclamp``.

    Example: ``T.clamp(x, 0.0, 6.0)``
    """
    if len(operands) + len(keywords) == 4:
        return _vector("clamp")(*operands, **keywords)
    values = [*operands, *(keywords[key] for key in ("dst", "min_val", "max_val")[len(operands):] if key in keywords)]
    if len(values) != 3:
        raise TileError(f"T.clamp takes a value and two bounds, or an input, a destination and two bounds; {len(values)} are"
                        " given", code="T145", help="write T.clamp(value, low, high)")
    return min(max(values[0], values[1]), values[2])


def reinterpret(dtype: ElementType | Number, value: ElementType | Number) -> Scalar:
    """Return the bits of the scalar ``value`` read as another element type of the same width.

    The arguments can also be in the order of TileLang for GPUs: ``T.reinterpret(x, "int32")``.

    Example: ``T.reinterpret("int32", x)``

    Raises:
        TileError: T110, the widths differ, or ``value`` is not a scalar.
    """
    if isinstance(dtype, (TracedValue, int, float, Sym)):
        dtype, value = value, dtype
    kind = element_type(dtype, "T.reinterpret")
    if not isinstance(value, (TracedValue, int, float, Sym)):
        raise TileError(f"T.reinterpret takes a scalar, not {shown(value)}", code="T110",
                        help="T.view(buffer, dtype=...) reads the bits of a buffer as another type")
    return Trace.running("T.reinterpret").bits_as(value, kind)


def max_value(dtype: ElementType) -> float:
    """Return the largest finite value of an element type.

    Example: ``T.max_value("float16")``
    """
    return _limit(dtype, "T.max_value", "max")


def min_value(dtype: ElementType) -> float:
    """Return the smallest finite value of an element type.

    Example: ``T.min_value("float16")``
    """
    return _limit(dtype, "T.min_value", "min")


def _limit(dtype: object, what: str, end: str) -> float:
    kind = element_type(dtype, what)
    if not kind.is_float:
        return bounds_of(kind).high if end == "max" else bounds_of(kind).low
    import ml_dtypes

    info: Any = ml_dtypes.finfo  # which declares no type
    return float(getattr(info(kind.numpy), end))


def sigmoid(value: float | Scalar) -> float | Scalar:
    """Return ``1 / (1 + exp(-value))`` of a scalar.

    Example: ``T.sigmoid(x)``
    """
    return 1.0 / (1.0 + exp(-value))


@overload
def pow(base: Number, exponent: Number, /) -> Any: ...  # noqa: A001  (the language's name)
@overload
def pow(src0: Operand, src1: Operand, dst: Tile, /) -> None: ...  # noqa: A001  (the language's name)
def pow(*operands: Any) -> object:  # noqa: A001  (the language's name; of three operands none)
    """Return ``base ** exponent`` of two scalars; ``T.pow(src0, src1, dst)`` with buffers is ``T.vpow``.

    Example: ``T.pow(x, 2.0)``
    """
    if len(operands) == 3 and _traced(*operands):
        return _vector("pow")(*operands)
    if len(operands) != 2:
        raise TileError(f"T.pow takes two scalars, or two inputs and a destination; {len(operands)} are given", code="T145",
                        help="T.pow(base, exponent) is a scalar")
    return operands[0] ** operands[1]


def if_then_else(condition: object, chosen: Any, other: Any) -> Any:  # one of the two, of any type
    """Return ``chosen`` if ``condition`` is true, else ``other``.

    In the source of a kernel, only the returned argument is evaluated; in ``T.Parallel`` this holds for each iteration.

    Example: ``T.if_then_else(n < 64, x, 0.0)``
    """
    return Select(condition, chosen, other)


def Select(condition: object, chosen: Any, other: Any) -> Any:  # as if_then_else
    """Return ``chosen`` if ``condition`` is true, else ``other``; both arguments are evaluated.

    Example: ``T.Select(n < 64, x, 0.0)``
    """
    if isinstance(condition, (TracedValue, Sym)):
        return Trace.running("T.Select").select(condition, chosen, other)
    return chosen if condition else other


def _logical(name: str, operands: tuple[object, ...], stops: bool) -> bool | Scalar:
    result: bool | Scalar = not stops
    for operand in operands:
        if not isinstance(operand, (TracedValue, Sym)):
            if bool(operand) is stops:
                return stops
            continue
        trace = Trace.running(f"T.{name}")
        test = trace.truth(operand)
        result = test if isinstance(result, bool) else trace.binary("or" if stops else "and", result, test)
    return result


def And(*operands: object) -> bool | Scalar:
    """Return whether all conditions are true; all conditions are evaluated.

    Example: ``T.And(n > 0, n < 64)``
    """
    return _logical("And", operands, False)


def Or(*operands: object) -> bool | Scalar:
    """Return whether at least one condition is true; all conditions are evaluated.

    Example: ``T.Or(n < 0, n > 64)``
    """
    return _logical("Or", operands, True)


def Not(operand: object) -> bool | Scalar:
    """Return whether a condition is false.

    Example: ``T.Not(n > 0)``
    """
    if isinstance(operand, (TracedValue, Sym)):
        return Trace.running("T.Not").logical_not(operand)
    return not operand


def cast(value: Any, dtype: ElementType) -> Any:  # a number of the host, or a scalar of the trace
    """Return a scalar converted to another element type.

    A float that becomes an integer loses its fraction, an integer that does not fit wraps around, and a float that becomes a
    narrower float is rounded to nearest even.

    Example: ``T.cast(x, "float16")``
    """
    kind = element_type(dtype, "T.cast")
    current = active()
    if current is not None:
        return current.cast(value, kind)
    return numbers.cast(value, kind)


def Cast(dtype: ElementType, value: Any) -> Any:  # as cast
    """Return a scalar converted to another element type; the same as ``T.cast`` with the arguments exchanged.

    Example: ``T.Cast("float16", x)``
    """
    return cast(value, dtype)
