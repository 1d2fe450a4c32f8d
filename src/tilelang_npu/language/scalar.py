"""Functions of scalars: Python numbers and sizes are computed on the host, traced values become operations.

A name that is also a vector operation (``T.exp``, ``T.max``) is that operation when it is called with its inputs and a
destination: ``T.exp(source, destination)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilelang_npu.errors import TileError, shown
from tilelang_npu.frontend import numbers
from tilelang_npu.frontend.forms import bounds_of
from tilelang_npu.language import tracing
from tilelang_npu.language.symbols import Sym, larger, smaller
from tilelang_npu.language.types import element_type


def _traced(*values: Any) -> bool:
    return any(isinstance(value, tracing.TracedValue) for value in values)


def _binary(name: str, left: Any, right: Any) -> Any:
    from tilelang_npu.frontend import arithmetic

    return arithmetic.binary(tracing.builder(f"T.{name}"), name, left, right)


def assert_(condition: Any, message: str = "") -> None:
    """A condition on sizes and other values that are known when the kernel is compiled.

    Raises:
        TileError: T148, it does not hold; T190, it is only known on the device, which has no way to report it.
    """
    if _traced(condition) or isinstance(condition, Sym):
        raise TileError("T.assert_ of a value that only the device knows", code="T190",
                        location=tracing.user_location(), help="check it on the host before the call, or T.print it")
    if not condition:
        raise TileError(f"T.assert_: {message or 'the condition does not hold'}", code="T148", location=tracing.user_location(),
                        help="the kernel's author has ruled this case out")


def ceildiv(left: Any, right: Any) -> Any:
    """``left / right``, rounded up."""
    return (left + (right - 1)) // right


def floordiv(left: Any, right: Any) -> Any:
    """``left / right``, rounded toward minus infinity."""
    return left // right


def floormod(left: Any, right: Any) -> Any:
    """What ``floordiv`` leaves; it has the divisor's sign."""
    return left % right


def truncdiv(left: Any, right: Any) -> Any:
    """``left / right``, rounded toward zero."""
    if _traced(left, right):
        return _binary("truncdiv", left, right)
    if isinstance(left, Sym) or isinstance(right, Sym):
        return left // right  # sizes are not negative
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def truncmod(left: Any, right: Any) -> Any:
    """What ``truncdiv`` leaves; it has the dividend's sign."""
    if _traced(left, right):
        return _binary("truncmod", left, right)
    return left - truncdiv(left, right) * right


class Integer(int):
    """A host integer that scripts may also ask for its ``value``, as they do with TVM's integer constants."""

    @property
    def value(self) -> int:
        """The number itself."""
        return int(self)


def _extreme(name: str, host: Callable[..., Any], symbolic: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(*operands: Any) -> Any:
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
    function.__doc__ = f"The {'smaller' if name == 'min' else 'larger'} of two scalars, or of each two elements of buffers."
    return function


def _vector(name: str) -> Callable[..., Any]:
    from tilelang_npu.language import vector

    return vector.function(name)


min = _extreme("min", min, smaller)  # noqa: A001  (the language's name)
max = _extreme("max", max, larger)  # noqa: A001  (the language's name)


def _function(name: str, host: Callable[[float], Any], doc: str, operation: str | None) -> Callable[..., Any]:
    def function(*operands: Any) -> Any:
        if operation is not None and len(operands) >= 2 and _traced(*operands):
            return _vector(operation)(*operands)
        if len(operands) != 1:
            raise TileError(f"T.{name} takes one scalar, or an input and a destination; {len(operands)} are given", code="T145",
                            help="call it once for each value")
        value = operands[0]
        if isinstance(value, (tracing.TracedValue, Sym)):
            from tilelang_npu.frontend import arithmetic

            return arithmetic.math(tracing.builder(f"T.{name}"), name, value)
        if not hasattr(value, "__float__"):
            raise TileError(f"T.{name} takes a scalar, not {shown(value)}", code="T110", location=tracing.user_location(),
                            help="a scalar is a number, an element of a buffer or a computed value")
        return host(value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


exp = _function("exp", math.exp, "e to the power of the value.", "exp")
exp2 = _function("exp2", lambda value: 2.0**value, "2 to the power of the value.", "exp2")
log = _function("log", math.log, "Natural logarithm.", "ln")
log2 = _function("log2", math.log2, "Logarithm to base 2.", "log2")
sqrt = _function("sqrt", math.sqrt, "Square root.", "sqrt")
rsqrt = _function("rsqrt", lambda value: 1.0 / math.sqrt(value), "Reciprocal square root.", "rsqrt")
abs = _function("abs", abs, "Absolute value.", "abs")  # noqa: A001  (the language's name)
sin = _function("sin", math.sin, "Sine.", "sin")
cos = _function("cos", math.cos, "Cosine.", "cos")
tanh = _function("tanh", math.tanh, "Hyperbolic tangent.", "tanh")
erf = _function("erf", math.erf, "Error function.", "erf")
floor = _function("floor", math.floor, "The value rounded down.", None)
ceil = _function("ceil", math.ceil, "The value rounded up.", None)
round = _function("round", round, "The value rounded to the nearest integer, ties to even.", None)  # noqa: A001  (the language's name)
trunc = _function("trunc", math.trunc, "The value without its fraction.", None)


tan = _function("tan", math.tan, "Tangent.", "tan")
asin = _function("asin", math.asin, "Inverse sine.", None)
acos = _function("acos", math.acos, "Inverse cosine.", None)
atan = _function("atan", math.atan, "Inverse tangent.", "atan")
sinh = _function("sinh", math.sinh, "Hyperbolic sine.", None)
cosh = _function("cosh", math.cosh, "Hyperbolic cosine.", None)
asinh = _function("asinh", math.asinh, "Inverse hyperbolic sine.", None)
acosh = _function("acosh", math.acosh, "Inverse hyperbolic cosine.", None)
atanh = _function("atanh", math.atanh, "Inverse hyperbolic tangent.", None)
log10 = _function("log10", math.log10, "Logarithm to base 10.", "log10")
log1p = _function("log1p", math.log1p, "Natural logarithm of one plus the value.", "log1p")
fabs = abs
nearbyint = round


def _of_two(name: str, host: Callable[[Any, Any], Any], doc: str) -> Callable[[Any, Any], Any]:
    def function(left: Any, right: Any) -> Any:
        if _traced(left, right) or isinstance(left, Sym) or isinstance(right, Sym):
            from tilelang_npu.frontend import arithmetic

            return arithmetic.math_of_two(tracing.builder(f"T.{name}"), name, left, right)
        return host(left, right)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


atan2 = _of_two("atan2", math.atan2, "The angle of the point (right, left).")
copysign = _of_two("copysign", math.copysign, "The first value's magnitude with the second one's sign.")


def exp10(value: Any) -> Any:
    """10 to the power of the value."""
    return exp(value * math.log(10.0)) if _traced(value) else 10.0**value


def hypot(left: Any, right: Any) -> Any:
    """``sqrt(left * left + right * right)``."""
    return sqrt(left * left + right * right)


def isnan(*operands: Any) -> Any:
    """Whether a scalar is not a number, or each element of a buffer (with a destination)."""
    if len(operands) == 2:
        return _vector("isnan")(*operands)
    value, = operands
    if not _traced(value):
        return math.isnan(value)
    from tilelang_npu.frontend import arithmetic

    return arithmetic.compare(tracing.builder("T.isnan"), "ne", value, value)


def isinf(*operands: Any) -> Any:
    """Whether a scalar is an infinity, or each element of a buffer (with a destination)."""
    if len(operands) == 2:
        return _vector("isinf")(*operands)
    value, = operands
    return abs(value) == math.inf if _traced(value) else math.isinf(value)


def isfinite(value: Any) -> Any:
    """Whether a scalar is neither an infinity nor NaN."""
    return abs(value) < math.inf if _traced(value) else math.isfinite(value)


def _bit_count(name: str, host: Callable[[int], int], doc: str) -> Callable[[Any], Any]:
    def function(value: Any) -> Any:
        if _traced(value) or isinstance(value, Sym):
            from tilelang_npu.frontend import arithmetic

            return arithmetic.count_bits(tracing.builder(f"T.{name}"), name, value)
        return host(int(value))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


popcount = _bit_count("popcount", lambda value: (value & 0xFFFFFFFF).bit_count(), "Number of bits of an integer that are set.")
clz = _bit_count("clz", lambda value: 32 - (value & 0xFFFFFFFF).bit_length(), "Number of zeros in front of an integer's bits.")


def shift_left(value: Any, amount: Any) -> Any:
    """``value << amount`` of integers."""
    return value << amount


def shift_right(value: Any, amount: Any) -> Any:
    """``value >> amount`` of integers."""
    return value >> amount


def _bitwise(name: str, combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(*operands: Any) -> Any:
        return _vector(name)(*operands) if len(operands) == 3 else combine(*operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Of two integers, or of each two elements of buffers (with a destination)."
    return function


bitwise_and = _bitwise("bitwise_and", lambda left, right: left & right)
bitwise_or = _bitwise("bitwise_or", lambda left, right: left | right)
bitwise_xor = _bitwise("bitwise_xor", lambda left, right: left ^ right)


def bitwise_not(*operands: Any) -> Any:
    """The complement of an integer, or of each element of a buffer (with a destination)."""
    return _vector("bitwise_not")(*operands) if len(operands) == 2 else ~operands[0]


def clamp(*operands: Any, **keywords: Any) -> Any:
    """``T.clamp(value, low, high)`` keeps a scalar between two others; with a destination, ``T.clamp(src, dst, low, high)``, it
    is ``T.vclamp``."""
    if len(operands) + len(keywords) == 4:
        return _vector("clamp")(*operands, **keywords)
    values = [*operands, *(keywords[key] for key in ("dst", "min_val", "max_val")[len(operands):] if key in keywords)]
    if len(values) != 3:
        raise TileError(f"T.clamp takes a value and two bounds, or an input, a destination and two bounds; {len(values)} are"
                        " given", code="T145", help="write T.clamp(value, low, high)")
    return min(max(values[0], values[1]), values[2])


def reinterpret(dtype: object, value: Any) -> Any:
    """The bits of a scalar read as another element type of the same width.

    Raises:
        TileError: T110, the widths differ.
    """
    kind = element_type(dtype, "T.reinterpret")
    if not isinstance(value, (tracing.TracedValue, int, float, Sym)):
        raise TileError(f"T.reinterpret takes a scalar, not {shown(value)}", code="T110",
                        help="T.view(buffer, dtype=...) reads the bits of a buffer as another type")
    from tilelang_npu.frontend import arithmetic

    return arithmetic.bits_as(tracing.builder("T.reinterpret"), value, kind)


def max_value(dtype: object) -> Any:
    """The largest finite value of an element type."""
    return _limit(dtype, "T.max_value", "max")


def min_value(dtype: object) -> Any:
    """The smallest finite value of an element type."""
    return _limit(dtype, "T.min_value", "min")


def _limit(dtype: object, what: str, end: str) -> Any:
    kind = element_type(dtype, what)
    if not kind.is_float:
        return bounds_of(kind).high if end == "max" else bounds_of(kind).low
    import ml_dtypes

    info: Any = ml_dtypes.finfo
    return float(getattr(info(kind.numpy), end))


def sigmoid(value: Any) -> Any:
    """``1 / (1 + exp(-value))`` of a scalar."""
    return 1.0 / (1.0 + exp(-value))


def pow(*operands: Any) -> Any:  # noqa: A001  (the language's name)
    """``base ** exponent`` of scalars, or of each two elements of buffers."""
    if len(operands) == 3 and _traced(*operands):
        return _vector("pow")(*operands)
    if len(operands) != 2:
        raise TileError(f"T.pow takes two scalars, or two inputs and a destination; {len(operands)} are given", code="T145",
                        help="T.pow(base, exponent) is a scalar")
    return operands[0] ** operands[1]


def if_then_else(condition: Any, chosen: Any, other: Any) -> Any:
    """``chosen if condition else other``. In a kernel's own source only the chosen side is read, in ``T.Parallel`` too."""
    return Select(condition, chosen, other)


def Select(condition: Any, chosen: Any, other: Any) -> Any:
    """``chosen`` where the condition holds, else ``other``; both are evaluated."""
    if isinstance(condition, (tracing.TracedValue, Sym)):
        from tilelang_npu.frontend import arithmetic

        return arithmetic.select(tracing.builder("T.Select"), condition, chosen, other)
    return chosen if condition else other


def _logical(name: str, operands: tuple[Any, ...], stops: bool) -> Any:
    result: Any = not stops
    for operand in operands:
        if not isinstance(operand, (tracing.TracedValue, Sym)):
            if bool(operand) is stops:
                return stops
            continue
        from tilelang_npu.frontend import arithmetic

        builder = tracing.builder(f"T.{name}")
        test = arithmetic.truth(builder, operand)
        result = test if isinstance(result, bool) else arithmetic.binary(builder, "or" if stops else "and", result, test)
    return result


def And(*operands: Any) -> Any:
    """Whether all conditions hold; all are evaluated."""
    return _logical("And", operands, False)


def Or(*operands: Any) -> Any:
    """Whether any condition holds; all are evaluated."""
    return _logical("Or", operands, True)


def Not(operand: Any) -> Any:
    """Whether the condition does not hold."""
    if isinstance(operand, (tracing.TracedValue, Sym)):
        from tilelang_npu.frontend import arithmetic

        return arithmetic.logical_not(tracing.builder("T.Not"), operand)
    return not operand


def cast(value: Any, dtype: object) -> Any:
    """A scalar as another element type: floats lose their fraction, integers wrap, narrower floats round to nearest even."""
    kind = element_type(dtype, "T.cast")
    current = tracing.active()
    if current is not None:
        return current.cast(value, kind)
    return numbers.cast(value, kind)


def Cast(dtype: object, value: Any) -> Any:
    """``T.cast`` with the type first."""
    return cast(value, dtype)
