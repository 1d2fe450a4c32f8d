"""Evaluates calls in a kernel: of functions of the language, macros, Python builtins on traced values, and the author's
helpers."""

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
    """Evaluates the calls in one function's source, in addition to all other expressions."""

    def _call(self, node: ast.Call) -> object:
        function = self.evaluate(node.func)
        if function is scalar.if_then_else and len(node.args) == 3 and not node.keywords:
            return self.conditional(*node.args)
        arguments = self._arguments(node)
        keywords: dict[str, object] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                keywords.update(self.mapping(keyword.value))
            else:
                keywords[keyword.arg] = self.evaluate(keyword.value)
        outer = self.builder.location
        self.builder.location = self.where(node)
        try:
            return self.call(function, arguments, keywords, ast.unparse(node.func))
        finally:
            self.builder.location = outer

    def _arguments(self, node: ast.Call) -> list[object]:
        found: list[object] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                values: Any = self.evaluate(argument.value)
                found.extend(values)
            else:
                found.append(self.evaluate(argument))
        return found

    def call(self, function: object, arguments: Sequence[object], keywords: dict[str, object], text: str) -> object:
        """Calls a function, a macro or another object, and returns the result.

        Args:
            function: the called object.
            arguments: the values of the positional arguments.
            keywords: the values of the keyword arguments by name.
            text: the source of the called expression, for error messages.

        Raises:
            TileError: T141, T144, T145, T146, the object cannot be called with these arguments in a kernel; or an error that
                the called function raised.
            InternalError: a function of this package failed.
        """
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

    def _of_the_host(self, function: object, library: str, arguments: Sequence[object], text: str) -> TileError:
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
"""For names of functions in array libraries, the name of the same function in ``T``."""


_DEBUGGERS = ("pdb.set_trace", "ipdb.set_trace", "pudb.set_trace", "debugpy.breakpoint")


def _is_debugger(function: object) -> bool:
    """Whether a function stops the program in a debugger."""
    return function is builtins.breakpoint or any(
        function is getattr(sys.modules.get(module), name, None)
        for module, _, name in (called.partition(".") for called in _DEBUGGERS))


def _library(function: object) -> str:
    """The library of a function that computes with numbers or arrays on the host; empty for other functions."""
    root = str(getattr(function, "__module__", None) or "").partition(".")[0]
    if root == "builtins":
        return "Python" if function in (builtins.sum, builtins.round, builtins.sorted, builtins.divmod) else ""
    return root if root in ("math", "cmath", "numpy", "torch", "scipy") else ""


def _failed_call(function: Callable[..., object], arguments: Sequence[object], keywords: dict[str, object], text: str,
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
"""The exceptions that Python raises if a function is called with an argument of a wrong type or value."""


def _shown(value: object) -> str:
    if isinstance(value, Expr):
        return str(value) if ":" in str(value) else f"a computed {value}"
    return shown(value)


def _meant(signature: inspect.Signature, keywords: dict[str, object]) -> str:
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
"""For parameter names of NumPy and other libraries, the name of the parameter here, if the two names are not similar."""


def _length(_: Calls, value: Any) -> object:
    if isinstance(value, Element) and not isinstance(value.buffer, Variable):
        raise TileError(f"an {value.describe()} has no length", code="T111",
                        help="an element is one number; take len() of the buffer")
    return value.shape[0]


def _fold(function: Callable[..., object]) -> Callable[..., object]:
    def fold(_: Calls, *values: Any) -> object:
        return functools.reduce(function, values if len(values) > 1 else tuple(values[0]))

    return fold


_STAND_INS: dict[object, Callable[..., object]] = {
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


def _on_traced(function: object) -> Callable[..., object] | None:
    """The replacement of a Python builtin on traced values; None for other functions."""
    if isinstance(function, ScalarType):
        return None
    try:
        return _STAND_INS.get(function)
    except TypeError:  # not hashable
        return None


Calls.HANDLERS = {**Expressions.HANDLERS, ast.Call: Calls._call}
