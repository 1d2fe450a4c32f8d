"""Computes a text that identifies a kernel in every process, for the key of the kernel's cache entry on disk.

The text consists of the states of the values that the kernel's code reads (:mod:`tilelang_npu.runtime.cache.captures`). The
identity of an object has no meaning in another process. A user's function is therefore represented by the text of its file and
its position there, because tracing reads this text. Functions and classes of libraries whose versions are in the key are
represented by their names. Any other value could differ in another process: a kernel that reads one has no key, and each
process traces the kernel.
"""

from __future__ import annotations

import builtins
import functools
import linecache
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

import numpy as np

from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.cache.captures import Identity, Reader
from tilelang_npu.runtime.cache.code_reads import Chain
from tilelang_npu.runtime.cache.libraries import OWN, find_by_name, is_fixed, name_of, package_of

_PURE = {
    "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "enum", "fractions", "functools", "heapq", "itertools",
    "math", "numbers", "operator", "re", "reprlib", "string", "struct", "types", "typing", "weakref", "__future__",
    "_bisect", "_collections", "_collections_abc", "_functools", "_heapq", "_operator", "_struct"}
"""Modules of Python whose results depend on their arguments alone."""
_KNOWN_PACKAGES = {*OWN, *_PURE, "numpy", "builtins", "ml_dtypes"}
_BUILTINS = {
    "abs", "all", "any", "bin", "bool", "bytes", "callable", "chr", "classmethod", "complex", "dict", "divmod", "enumerate",
    "filter", "float", "format", "frozenset", "hex", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max",
    "min", "next", "object", "oct", "ord", "pow", "print", "property", "range", "reversed", "round", "set", "slice", "sorted",
    "staticmethod", "str", "sum", "super", "tuple", "type", "zip", "Ellipsis", "NotImplemented",
    *(name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException))}
"""Built-ins whose results depend on their arguments alone."""
_NO_FILE = ("<string>", "<stdin>")


def disk_key(func: PrimFunc) -> str:
    """Returns a text that identifies a kernel's function and the values that it reads in every process.

    Raises:
        TypeError: the kernel reads a value that could differ in another process.
    """
    if func.definition is not None:
        raise TypeError("it is a part of its function")
    if sys.flags.optimize:
        raise TypeError("Python leaves assertions out of its code, and tracing does not")
    reader = _DiskReader(package_of(func.function.__module__))
    known = (reader.state_of_function(func), tuple((name, reader.state_of(value)) for name, value in func.annotations.items()),
             reader.state_of(dict(func.options)), func.__name__)
    return "".join(_text(known))


class _DiskReader(Reader):
    """Reads states that are the same in every process, and refuses other values."""

    def identify(self, value: object) -> object:
        if isinstance(value, np.ufunc):  # Reader has checked that NumPy has it under its name
            return Identity(value)
        module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", None)
        if name is None:
            raise TypeError(f"it reads a {name_of(type(value))}")
        same = is_fixed(value) if isinstance(value, type) else find_by_name(module, name) is value
        if package_of(module) not in _KNOWN_PACKAGES or not same:
            raise TypeError(f"it reads {module}.{name}")
        return Identity(value)

    def state_of_code(self, value: CodeType) -> object:
        return "code", value.co_filename, value.co_name, value.co_firstlineno, *_identity_of_code(value)

    def state_of_library_code(self, value: CodeType, module: str) -> object:
        if package_of(module) not in _KNOWN_PACKAGES:
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

    def state_of_library_function(self, value: FunctionType | BuiltinFunctionType) -> object:
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


def _text(value: object) -> Iterator[str]:
    """Yields the text of a state, in parts."""
    if value is None or value is ... or value is NotImplemented or type(value) in (bool, int, str, bytes):
        yield f"{value!r};"
    elif type(value) is tuple:
        yield "("
        for one in value:
            yield from _text(one)
        yield ")"
    elif isinstance(value, Identity):
        yield f"<{name_of(value.thing)}>;"
    elif isinstance(value, type) or callable(value):  # the kind of the state
        yield f"[{name_of(value)}];"
    else:
        raise TypeError(f"it reads a {name_of(type(value))}")


def _identity_of_code(code: CodeType) -> tuple[object, ...]:
    """Returns a tuple that identifies a code object in every process.

    It contains a digest of the text of the code's file, because tracing reads this text, and the number of the code object in
    the file, because one line can have several lambdas. Code without a file, such as that of a dataclass, is identified by its
    instructions.

    Raises:
        TypeError: the file's text does not compile to this code.
    """
    linecache.checkcache(code.co_filename)
    text = "" if code.co_filename in _NO_FILE else "".join(linecache.getlines(code.co_filename))
    if not text:
        return _instructions_of(code)
    digest, codes = _compiled(text, code.co_filename)
    if code not in codes:
        raise TypeError(f"{code.co_filename} does not contain the source of {code.co_name}")
    return digest, codes[code]


def _instructions_of(code: CodeType) -> tuple[object, ...]:
    """Returns all parts of a code object that its behaviour depends on."""
    reader = Reader("")
    constants = tuple(_instructions_of(one) if isinstance(one, CodeType) else reader.state_of(one) for one in code.co_consts)
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
            code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, getattr(code, "co_exceptiontable", b""))


@functools.lru_cache(maxsize=16)
def _compiled(text: str, filename: str) -> tuple[str, dict[CodeType, int]]:
    """Returns a digest of a text, and all code objects in it with their numbers."""
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
