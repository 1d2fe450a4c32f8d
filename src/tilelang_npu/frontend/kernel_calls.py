"""Calls in a kernel: functions of the language, macros, builtins on traced values, and the user's own helpers."""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tilelang_npu.errors import InternalError, TileError, shown
from tilelang_npu.frontend.expressions import Expressions, host_failure, is_traced
from tilelang_npu.language import launch, scalar
from tilelang_npu.language.elements import ScalarType
from tilelang_npu.language.functions import Macro, PrimFunc
from tilelang_npu.language.table_functions import plain
from tilelang_npu.language.types import Tensor
from tilelang_npu.traced import arithmetic
from tilelang_npu.traced.active_trace import TracedValue
from tilelang_npu.traced.author import follows_kernels
from tilelang_npu.traced.buffers import Addressable, Buffer, Element, Variable
from tilelang_npu.traced.kinds import BOOL, FLOAT32, INT32
from tilelang_npu.traced.scalars import Expr

follows_kernels(__file__)


class Calls(Expressions):
    """Evaluates calls."""

    def _call(self, node: ast.Call) -> Any:
        function = self.evaluate(node.func)
        if function is scalar.if_then_else and len(node.args) == 3 and not node.keywords:
            return self.conditional(*node.args)
        arguments = self._arguments(node)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            keywords.update(value if keyword.arg is None else {keyword.arg: value})
        outer = self.builder.location
        self.builder.location = self.where(node)
        try:
            return self.call(function, arguments, keywords, ast.unparse(node.func))
        finally:
            self.builder.location = outer

    def _arguments(self, node: ast.Call) -> list[Any]:
        found: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                found.extend(self.evaluate(argument.value))
            else:
                found.append(self.evaluate(argument))
        return found

    def call(self, function: Any, arguments: Sequence[Any], keywords: dict[str, Any], text: str) -> Any:
        """Calls the value of an expression; ``text`` is its source, for messages."""
        if isinstance(function, Macro):
            return self.builder.inline(function, arguments, keywords)
        if isinstance(function, PrimFunc):
            raise TileError(f"a kernel cannot call the kernel {function.function.__name__!r}", code="T141",
                            help="make it a @T.macro")
        if not callable(function):
            value = f"the {function.describe()}" if isinstance(function, (Buffer, Element)) else f"a {type(function).__name__}"
            raise TileError(f"{text} is {value} and cannot be called", code="T146",
                            help="call a function, a macro or a name of T")
        if _is_debugger(function):
            if function is not builtins.breakpoint or os.environ.get("PYTHONBREAKPOINT") != "0":
                self.builder.remark(TileError(
                    f"{text}() is left out: a compiled kernel cannot stop in a debugger", code="T422",
                    location=self.builder.location, help="execute it as Python: kernel.interpret(...), jit(interpret=True), "
                    "TILELANG_NPU_INTERPRET=1 or `tilelang-npu run FILE --interpret`"))
            return None
        stand_in = _on_traced(function)
        if stand_in is not None and any(is_traced(value) for value in (*arguments, *keywords.values())):
            if keywords:
                raise TileError(f"{text} takes no keyword arguments on traced values", code="T145",
                                help="give the arguments by position")
            return stand_in(self, *arguments)
        try:
            return function(*arguments, **keywords)
        except Exception as problem:
            library = _library(function)
            if library and any(isinstance(value, TracedValue) for value in (*arguments, *keywords.values())):
                raise self._of_the_host(function, library, arguments, text) from None
            if isinstance(problem, TileError):
                raise
            failed = _failed_call(function, arguments, keywords, text, problem)
            raise failed from (problem if isinstance(failed, InternalError) else None)

    def _of_the_host(self, function: Any, library: str, arguments: Sequence[Any], text: str) -> TileError:
        """The error of a call of a Python or array library function with a value that is known on the device only."""
        from tilelang_npu import language

        value = next((value for value in arguments if isinstance(value, TracedValue)), arguments[0] if arguments else None)
        name = str(getattr(function, "__name__", ""))
        name = _ALSO_CALLED.get(name, name)
        whole = isinstance(value, Addressable)
        if whole and name in ("max", "min", "sum"):
            advice = f"use T.reduce_{name}(source, destination, dim=-1)"
        elif whole and self.builder.dialect == "ascendc" and hasattr(language.tile, name):
            advice = f"use T.tile.{name}(destination, source)"
        elif whole and self.builder.dialect != "ascendc" and hasattr(language, f"v{name}"):
            advice = f"use T.v{name}(source, destination)"
        elif hasattr(language, name):
            advice = f"use T.{name}" + (", for each element in T.Parallel" if whole else "")
        else:
            advice = "compute it in the factory, of sizes and numbers that are known there, or with the operations of T"
        given = _shown(value) if value is not None else "this"
        return TileError(f"{text} is a function of {library}, which runs while the kernel is compiled; {given} has no value "
                         "there", code="T144", help=advice)


_ALSO_CALLED = {"maximum": "max", "minimum": "min", "amax": "max", "amin": "min", "fabs": "abs", "absolute": "abs",
                "where": "if_then_else", "power": "pow", "arctan": "atan", "arcsin": "asin", "arccos": "acos", "dot": "gemm",
                "matmul": "gemm", "rint": "round"}
"""The names in ``T`` of functions of array libraries."""


_DEBUGGERS = ("pdb.set_trace", "ipdb.set_trace", "pudb.set_trace", "debugpy.breakpoint")


def _is_debugger(function: Any) -> bool:
    """Whether a function stops the program in a debugger."""
    return function is builtins.breakpoint or any(
        function is getattr(sys.modules.get(module), name, None)
        for module, _, name in (called.partition(".") for called in _DEBUGGERS))


def _library(function: Any) -> str:
    """The library of a function that computes with numbers or arrays on the host; empty for other functions."""
    root = str(getattr(function, "__module__", None) or "").partition(".")[0]
    if root == "builtins":
        return "Python" if function in (builtins.sum, builtins.round, builtins.sorted, builtins.divmod) else ""
    return root if root in ("math", "cmath", "numpy", "torch", "scipy") else ""


def _failed_call(function: Any, arguments: Sequence[Any], keywords: dict[str, Any], text: str,
                 problem: Exception) -> Exception:
    """The error for an exception of a call: wrong arguments, a fault of this package, or an error of the user's helper."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    if isinstance(problem, TypeError) and signature is not None:
        try:
            signature.bind(*arguments, **keywords)
        except TypeError as wrong:
            return TileError(f"{text}: {wrong}", code="T145",
                             help=f"{_meant(signature, keywords)}it is called as {text}{plain(signature)}")
    is_ours = str(getattr(function, "__module__", "")).startswith("tilelang_npu.")
    if is_ours and not isinstance(function, type(Tensor)):
        what = f"{type(problem).__name__}: {problem}"
        if not isinstance(problem, _OF_A_WRONG_KIND):
            return InternalError(f"{text} failed: {what}")
        given = [*map(_shown, arguments), *(f"{name}={_shown(value)}" for name, value in keywords.items())]
        called = f"it is called as {text}{plain(signature)}; " if signature is not None else ""
        return TileError(f"{text} cannot work with ({', '.join(given)})", code="T145", notes=[what],
                         help=f"{called}if these arguments are right, please report this")
    return host_failure(problem, f"{text} raised")


_OF_A_WRONG_KIND = (TypeError, AttributeError, ValueError, ArithmeticError, StopIteration)
"""Exceptions that Python raises where a function cannot use an argument of this kind."""


def _shown(value: Any) -> str:
    if isinstance(value, Expr):
        return str(value) if ":" in str(value) else f"a computed {value}"
    return shown(value)


def _meant(signature: inspect.Signature, keywords: dict[str, Any]) -> str:
    """A hint at the parameter that a misspelled keyword argument is closest to."""
    lowered = {name.lower(): name for name in signature.parameters}
    for keyword in keywords:
        if keyword in signature.parameters:
            continue
        meant = _ELSEWHERE.get(keyword)
        if meant in signature.parameters:
            return f"did you mean {meant}? "
        close = difflib.get_close_matches(keyword.lower(), lowered, n=1)
        if close:
            return f"did you mean {lowered[close[0]]}? "
    return ""


_ELSEWHERE = {"axis": "dim", "stages": "num_stages", "output": "out"}
"""Names of parameters in NumPy and other libraries that are not similar to the name here."""


def _length(_: Calls, value: Any) -> Any:
    if isinstance(value, Element) and not isinstance(value.buffer, Variable):
        raise TileError(f"an {value.describe()} has no length", code="T111",
                        help="it is one element; take len() of the buffer")
    return value.shape[0]


def _fold(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def fold(_: Calls, *values: Any) -> Any:
        return functools.reduce(function, values if len(values) > 1 else tuple(values[0]))

    return fold


_STAND_INS: dict[Any, Callable[..., Any]] = {
    builtins.len: _length,
    builtins.min: _fold(scalar.min),
    builtins.max: _fold(scalar.max),
    builtins.abs: lambda calls, value: arithmetic.math(calls.builder, "abs", value),
    builtins.float: lambda calls, value: calls.builder.cast(value, FLOAT32),
    builtins.int: lambda calls, value: calls.builder.cast(value, INT32),
    builtins.bool: lambda calls, value: calls.builder.cast(value, BOOL),
    builtins.pow: lambda calls, base, exponent: arithmetic.power(calls.builder, base, exponent),
    builtins.range: lambda _, *bounds: launch.range_loop(*bounds),
}


def _on_traced(function: Any) -> Callable[..., Any] | None:
    """The replacement of a Python builtin on traced values; None for other functions."""
    if isinstance(function, ScalarType):
        return None
    try:
        return _STAND_INS.get(function)
    except TypeError:  # not hashable
        return None


Calls.HANDLERS = {**Expressions.HANDLERS, ast.Call: Calls._call}
