"""What a kernel is, as a text that is the same in every process: for the key of its entry on disk.

The text is made of the states of what the kernel's code reads (:mod:`tilelang_npu.runtime.captures`). Identity means nothing
from one process to the next. So a function counts by the text of its file and its place there, as that is what tracing reads,
and what a library has counts by its name, in the libraries whose versions are in the key. Of anything else, nobody can tell
whether it is the same in another process: it is refused, and each process traces the kernel.
"""

from __future__ import annotations

import builtins
import functools
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.captures import Reader, Same
from tilelang_npu.runtime.code_reads import Chain
from tilelang_npu.runtime.libraries import OWN, find_by_name, is_fixed, name_of, package_of

__all__ = ["disk_key"]

_PURE = {
    "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "enum", "fractions", "functools", "heapq", "itertools",
    "math", "numbers", "operator", "re", "reprlib", "string", "struct", "types", "typing", "weakref", "__future__",
    "_bisect", "_collections", "_collections_abc", "_functools", "_heapq", "_operator", "_struct"}
"""Modules of Python that give the same for the same, and read nothing from outside."""
_KNOWN = {*OWN, *_PURE, "numpy", "builtins", "ml_dtypes"}
_BUILTINS = {
    "abs", "all", "any", "bin", "bool", "bytes", "callable", "chr", "classmethod", "complex", "dict", "divmod", "enumerate",
    "filter", "float", "format", "frozenset", "hex", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max",
    "min", "next", "object", "oct", "ord", "pow", "print", "property", "range", "reversed", "round", "set", "slice", "sorted",
    "staticmethod", "str", "sum", "super", "tuple", "type", "zip", "Ellipsis", "NotImplemented",
    *(name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException))}
"""Names of Python itself that give the same for the same."""
_NO_FILE = ("<string>", "<stdin>")


def disk_key(func: PrimFunc) -> str:
    """The kernel as a text.

    Raises:
        TypeError: it reads what may be something else in another process.
    """
    if func.definition is not None:
        raise TypeError("it is a part of its function")
    if sys.flags.optimize:
        raise TypeError("Python leaves assertions out of its code, and tracing does not")
    reader = _DiskReader(package_of(func.function.__module__))
    known = (reader.state_of_function(func), tuple((name, reader.state_of(value)) for name, value in func.annotations.items()),
             reader.state_of(dict(func.options)), func.__name__)
    return "".join(_written(known))


class _DiskReader(Reader):
    """Reads what lasts from one process to the next, and refuses the rest."""

    def identify(self, value: object) -> object:
        if isinstance(value, np.ufunc):  # that NumPy has it is known by now
            return Same(value)
        module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", None)
        if name is None:
            raise TypeError(f"it reads a {name_of(type(value))}")
        same = is_fixed(value) if isinstance(value, type) else find_by_name(module, name) is value
        if package_of(module) not in _KNOWN or not same:
            raise TypeError(f"it reads {module}.{name}")
        return Same(value)

    def state_of_code(self, value: CodeType) -> object:
        return "code", value.co_filename, value.co_name, value.co_firstlineno, *_place_of(value)

    def state_of_library_code(self, value: CodeType, module: str) -> object:
        if package_of(module) not in _KNOWN:
            raise TypeError(f"it reads a function of {module}")
        return "code", module, value.co_name, value.co_firstlineno

    def check_builtin(self, name: str, function: FunctionType) -> None:
        super().check_builtin(name, function)
        if name not in _BUILTINS and not (name == "hash" and function.__name__ == "__hash__"):
            raise TypeError(f"it uses {name}")

    def check_import(self, name: str) -> None:
        raise TypeError(f"it imports {name}")

    def state_of_module(self, value: ModuleType) -> object:
        raise TypeError(f"it reads the module {value.__name__} as a whole")

    def state_of_compiled(self, value: object) -> object:
        raise TypeError(f"it reads a {name_of(type(value))}")

    def state_of_library_function(self, value: Any) -> object:
        if value.__module__ == "builtins" and value.__name__ not in _BUILTINS:
            raise TypeError(f"it uses {value.__name__}")
        return super().state_of_library_function(value)

    def state_of_library_name(self, module: ModuleType, chain: Chain, place: int) -> object:
        package = package_of(module.__name__)
        found = vars(module).get(chain[place])
        if package == "numpy" and not isinstance(found, (type, np.ufunc, np.dtype, int, float)):
            raise TypeError(f"it reads {'.'.join(chain)}")
        if package not in _PURE and package != "numpy" and package not in OWN:
            raise TypeError(f"it reads {'.'.join(chain)}, of a library")
        return super().state_of_library_name(module, chain, place)


def _written(value: object) -> Iterator[str]:
    """A state as text."""
    if value is None or value is ... or value is NotImplemented or type(value) in (bool, int, str, bytes):
        yield f"{value!r};"
    elif type(value) is tuple:
        yield "("
        for one in value:
            yield from _written(one)
        yield ")"
    elif isinstance(value, Same):
        yield f"<{name_of(value.thing)}>;"
    elif isinstance(value, type) or callable(value):  # what says which kind of state it is
        yield f"[{name_of(value)}];"
    else:
        raise TypeError(f"it reads a {name_of(type(value))}")


def _place_of(code: CodeType) -> tuple[object, ...]:
    """A digest of the text of the file that code stands in, which is what tracing reads, and which of its codes it is: one line
    may have several lambdas. Code that was made without a file, as that of a dataclass, by its instructions.

    Raises:
        TypeError: the code is not what that text says.
    """
    linecache.checkcache(code.co_filename)
    text = "" if code.co_filename in _NO_FILE else "".join(linecache.getlines(code.co_filename))
    if not text:
        return _instructions_of(code)
    digest, codes = _compiled(text, code.co_filename)
    if code not in codes:
        raise TypeError(f"{code.co_filename} does not say what {code.co_name} was made from")
    return digest, codes[code]


def _instructions_of(code: CodeType) -> tuple[object, ...]:
    """All of a code object that decides what it does."""
    reader = Reader("")
    constants = tuple(_instructions_of(one) if isinstance(one, CodeType) else reader.state_of(one) for one in code.co_consts)
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
            code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, getattr(code, "co_exceptiontable", b""))


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
