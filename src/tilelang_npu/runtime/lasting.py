"""What a kernel is, as a text that is the same in every process: for the key of what is kept of it.

It is made of what :mod:`tilelang_npu.runtime.captures` finds that its code reads. A function counts by the text of its file and
its place there, as that is what tracing reads. All else has to be known to say the same in another process: it is refused, not
guessed at.
"""

from __future__ import annotations

import dis
import functools
import linecache
import sys
from collections.abc import Iterator
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.language.types import Tensor
from tilelang_npu.ops import DType
from tilelang_npu.runtime.captures import Chain, Reader, Same, package_of
from tilelang_npu.traced.symbols import Sym

__all__ = ["lasting"]

_OWN = ("tilelang_npu", "tilelang")
_PURE = {"math", "operator", "functools", "itertools", "collections", "typing", "dataclasses", "enum", "__future__"}
"""Modules of Python that give the same for the same, and read nothing from outside."""
_BUILTINS = {
    "abs", "all", "any", "bool", "bytes", "complex", "dict", "divmod", "enumerate", "filter", "float", "frozenset", "int",
    "isinstance", "issubclass", "len", "list", "map", "max", "min", "pow", "range", "reversed", "round", "set", "slice",
    "sorted", "str", "sum", "tuple", "type", "zip", "Exception", "ValueError", "TypeError", "AssertionError", "KeyError",
    "IndexError", "NotImplementedError", "RuntimeError", "print"}


def lasting(func: PrimFunc) -> str:
    """The kernel as a text.

    Raises:
        TypeError: it reads what may be something else in another process.
    """
    if func.definition is not None:
        raise TypeError("it is a part of its function")
    reader = _Lasting(package_of(func.function.__module__))
    known = (reader.function(func), tuple((name, reader.of(value)) for name, value in func.annotations.items()),
             sorted(func.options.items()), func.__name__)
    return "".join(_written(known))


class _Lasting(Reader):
    """Finds what there is, and refuses what need not last."""

    def of(self, value: object) -> object:
        if isinstance(value, Tensor):
            return Tensor, self.of(value.shape), self.of(value.dtype)
        return super().of(value)

    def function(self, value: object) -> object:
        found = super().function(value)
        plain = value
        while not isinstance(plain, FunctionType) and hasattr(plain, "function"):
            plain = plain.function
        if isinstance(plain, FunctionType):
            for name in _from_outside(plain.__code__):
                if name not in plain.__globals__ and name not in _BUILTINS:
                    raise TypeError(f"it uses {name}")
        return found

    def along(self, value: object, chain: Chain) -> object:
        if isinstance(value, ModuleType) and not self.is_users(value.__name__):
            package = package_of(value.__name__)
            if package == "numpy" and len(chain) > 1:
                return self._of_numpy(value, chain)
            if package not in _OWN and package not in _PURE:
                raise TypeError(f"it reads {'.'.join(chain)}, of a library")
        return super().along(value, chain)

    def _of_numpy(self, module: ModuleType, chain: Chain) -> str:
        value = getattr(module, chain[1], None)
        if isinstance(value, (type, np.ufunc, np.dtype, int, float)) and not isinstance(value, ModuleType):
            return repr(value)
        raise TypeError(f"it reads {'.'.join(chain)}")


def _from_outside(code: CodeType) -> Iterator[str]:
    """The names of globals and of Python's own functions that code reads, and the code inside of it.

    Raises:
        TypeError: it imports something where it runs.
    """
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            raise TypeError(f"it imports {step.argval}")
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _from_outside(constant)


def _written(value: object) -> Iterator[str]:
    """A value of :mod:`captures`, as text."""
    if value is None or (isinstance(value, (bool, int, str, bytes)) and type(value).__module__ == "builtins"):
        yield f"{value!r};"
    elif isinstance(value, tuple) and type(value) is tuple:
        yield "("
        for one in value:
            yield from _written(one)
        yield ")"
    elif isinstance(value, list):
        yield from _written(tuple(value))
    elif isinstance(value, frozenset):
        yield "{" + ",".join(sorted("".join(_written(one)) for one in value)) + "}"
    elif isinstance(value, CodeType):
        yield f"code {value.co_filename!r} {value.co_name!r} {value.co_firstlineno} {_text_of(value)};"
    elif isinstance(value, Same):
        yield from _identity(value.thing)
    elif isinstance(value, (Sym, DType)):
        yield f"{type(value).__name__} {getattr(value, 'key', value)!r} {getattr(value, 'dtype', '')};"
    elif isinstance(value, (np.dtype, np.generic)):
        yield f"{value.dtype!r} {value!r};" if isinstance(value, np.generic) else f"{value!r};"
    elif isinstance(value, Enum):
        yield f"{type(value).__module__}.{type(value).__qualname__}.{value.name};"
    elif isinstance(value, (type, BuiltinFunctionType, FunctionType, np.ufunc)):
        yield from _identity(value)
    else:
        raise TypeError(f"it reads a {type(value).__module__}.{type(value).__qualname__}")


def _identity(thing: Any) -> Iterator[str]:
    """What is the same for its name, in the packages that the key knows the versions of."""
    if isinstance(thing, ModuleType):
        name, package = thing.__name__, package_of(thing.__name__)
    else:
        module = getattr(thing, "__module__", None) or ""
        name, package = f"{module}.{getattr(thing, '__qualname__', thing)}", package_of(module)
    users = isinstance(thing, type) and package not in sys.stdlib_module_names and package != "numpy" and package not in _OWN
    if not users and package not in (*_OWN, *_PURE, "numpy", "builtins", "ml_dtypes"):
        raise TypeError(f"it reads {name}")
    yield f"<{name}>;"


def _text_of(code: CodeType) -> str:
    """A digest of the text of the file that code stands in, which is what tracing reads, and which of its codes it is: one line
    may have several lambdas.

    Raises:
        TypeError: there is none, or the code is not what that text says.
    """
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    digest, codes = _compiled(text, code.co_filename)
    if code not in codes:
        raise TypeError(f"{code.co_filename} does not say what {code.co_name} was made from")
    return f"{digest} {codes[code]}"


@functools.lru_cache(maxsize=16)
def _compiled(text: str, filename: str) -> tuple[str, dict[CodeType, int]]:
    """A digest of a text, and all code in it with its number."""
    import hashlib

    try:
        left = [compile(text, filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return "", {}
    found: dict[CodeType, int] = {}
    while left:
        code = left.pop()
        found[code] = len(found)
        left += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest(), found
