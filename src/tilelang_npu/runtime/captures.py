"""What a factory's kernels depend on beside its arguments: the globals and closure variables that its code reads.

Two calls with the same arguments give the same kernel only where these hold what they held. So they are read before each call,
from the code of the factory, of the kernels and functions inside of it, and of the macros, functions and classes of the user's
that these name. Numbers and containers count by value, arrays by their bytes, the user's objects by their attributes; modules
of libraries, this one among them, do not change.
"""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import zip_longest
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import TileError
from tilelang_npu.language.functions import Macro, PrimFunc
from tilelang_npu.runtime.tensors import as_array, is_tensor

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Chain", "Reader", "Same", "arguments", "captured", "package_of", "reads", "state"]

Chain = tuple[str, ...]
"""A name, and the attributes that are read of it."""

_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}
_CLOSURE = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_WRITES = {"add", "append", "extend", "insert", "update"}
"""Methods that put something into a container and read nothing of it."""


class Same:
    """Equal to itself alone; it keeps the object, so no other one gets its place."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def captured(function: object) -> object:
    """What a function depends on beside its arguments: equal as long as that is equal.

    Raises:
        TypeError: it reads an object of which nobody can tell whether it has changed.
    """
    return Reader(package_of(getattr(function, "__module__", None))).function(function)


def arguments(function: object, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """What a function is given: equal for arguments of equal contents. Of an object of the user's, such as that of a method,
    the attributes count that the function reads.

    Raises:
        TypeError: of an argument nobody can tell whether it has changed.
    """
    reader = Reader(package_of(getattr(function, "__module__", None)))
    code = getattr(function, "__code__", None)
    names = code.co_varnames[:code.co_argcount] if isinstance(code, CodeType) else ()
    given = [*zip_longest(names[:len(args)], args), *sorted(kwargs.items())]
    return len(args), tuple((name, reader.argument(code, name, value)) for name, value in given)


def state(value: object) -> object:
    """What a value holds: equal for values of equal contents.

    Raises:
        TypeError: nobody can tell whether it changes.
    """
    return Reader("").of(value)


class Reader:
    """One look at what is there.

    Args:
        home: the package of the factory, which is the user's even where it is installed.
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._seen: dict[int, tuple[int, object]] = {}  # the object with its number, so that its place stays its own

    def of(self, value: object) -> object:
        """What a value holds."""
        if value is None or isinstance(value, (int, str, bytes, Enum, CodeType, BuiltinFunctionType)):
            return (bool, value) if isinstance(value, bool) else value
        if isinstance(value, (float, complex)):
            return type(value), repr(value)
        if isinstance(value, ModuleType):
            return Same(value)
        before = self._seen.get(id(value))
        if before is not None:
            return Same, before[0]
        self._seen[id(value)] = len(self._seen), value
        if is_tensor(value):
            try:
                array = as_array(value)
            except TileError as error:
                raise TypeError(error.message) from None
            import hashlib  # loads OpenSSL

            return type(value), array.dtype.str, array.shape, hashlib.sha1(array.tobytes(), usedforsecurity=False).digest()
        if isinstance(value, (tuple, list)):
            return type(value), tuple(map(self.of, value))
        if isinstance(value, (set, frozenset)):
            return type(value), frozenset(map(self.of, value))
        if isinstance(value, Mapping):
            return type(value), tuple((self.of(key), self.of(one)) for key, one in value.items())
        if isinstance(value, SimpleNamespace):
            return type(value), self.of(vars(value))
        if isinstance(value, (PrimFunc, Macro)) or (isinstance(value, FunctionType) and self.is_users(value.__module__)):
            return self.function(value)
        if isinstance(value, MethodType):
            return self.of(value.__func__), self.of(value.__self__)
        if isinstance(value, functools.partial):
            return self.of(value.func), self.of(value.args), self.of(value.keywords)
        if isinstance(value, CellType):
            return self.of(value.cell_contents)
        wrapped = getattr(value, "__wrapped__", None)
        if isinstance(wrapped, FunctionType) and self.is_users(wrapped.__module__):  # another factory
            return Same(value), self.function(wrapped)
        if isinstance(value, type):
            return Same(value), *(self.of(dict(vars(one))) for one in value.__mro__ if self.is_users(one.__module__))
        if self.is_users(type(value).__module__):
            return self.of(type(value)), tuple((name, self.of(one)) for name, one in _attributes(value))
        hash(value)
        return value

    def argument(self, code: object, name: str | None, value: object) -> object:
        """What the code reads of an argument."""
        if isinstance(code, CodeType) and name is not None and self._is_object(value):
            chains = [chain for chain in _reads_of_parameters(code) if chain[0] == name]
            if all(len(chain) > 1 for chain in chains):
                read = {chain[1:]: getattr(value, chain[1]) for chain in chains if hasattr(value, chain[1])}
                return Same(type(value)), tuple((chain, self.along(one, chain)) for chain, one in read.items())
        return self.of(value)

    def _is_object(self, value: object) -> bool:
        plain = (ModuleType, SimpleNamespace, FunctionType, MethodType, PrimFunc, Macro, Mapping, type, tuple, list, Enum)
        return not isinstance(value, plain) and not is_tensor(value) and self.is_users(type(value).__module__)

    def function(self, value: object) -> object:
        """What a function is, and what it reads."""
        while isinstance(value, (PrimFunc, Macro)):
            value = value.function
        if not isinstance(value, FunctionType):
            return self.of(value)
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        found = []
        for chain in reads(value.__code__):
            if chain[0] in cells:
                cell = cells[chain[0]]
                found.append((chain, self.along(cell.cell_contents, chain) if _is_filled(cell) else None))
            elif chain[0] in value.__globals__:
                found.append((chain, self.along(value.__globals__[chain[0]], chain)))
        return value.__code__, tuple(found), self.of(value.__defaults__), self.of(value.__kwdefaults__)

    def along(self, value: object, chain: Chain) -> object:
        """What is read of a value: of a module or a class the attribute alone."""
        for name in chain[1:]:
            if isinstance(value, (list, set, dict)) and name in _WRITES:
                return None
            if isinstance(value, ModuleType) and not self.is_users(value.__name__):
                return None
            if not isinstance(value, (ModuleType, type)) or not hasattr(value, name):
                break
            value = getattr(value, name)
        return self.of(value)

    def is_users(self, module: str | None) -> bool:
        return (bool(self._home) and package_of(module) == self._home) or not _is_library(package_of(module))


def _is_filled(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    yield from getattr(value, "__dict__", {}).items()
    for one in type(value).__mro__:
        slots = vars(one).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield name, getattr(value, name)


def package_of(module: str | None) -> str:
    """The package of a module, by its name."""
    return (module or "").partition(".")[0]


@functools.cache
def _library_places() -> tuple[Path, ...]:
    import sysconfig
    from pathlib import Path

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return (*(Path(sysconfig.get_paths()[name]).resolve() for name in names), Path(__file__).resolve().parent.parent)


@functools.lru_cache(maxsize=1024)
def _is_library(package: str) -> bool:
    """Whether a package is installed, or comes with Python."""
    if package in ("__main__", "__mp_main__"):
        return False
    place = getattr(sys.modules.get(package), "__file__", None)
    if place is None:
        return package in sys.builtin_module_names or package in sys.stdlib_module_names
    from pathlib import Path

    return any(Path(place).resolve().is_relative_to(parent) for parent in _library_places())


def _chains(code: CodeType, read: Callable[[dis.Instruction], tuple[str, ...]]) -> Iterator[Chain]:
    """The names that instructions read, each with the attributes that the ones behind it read of it.

    Args:
        code: the code.
        read: the names that an instruction loads, the last one on top; an empty text for one that does not count.
    """
    chain: Chain = ()
    for step in dis.get_instructions(code):
        if chain and step.opname in _ATTRIBUTE:
            chain = (*chain, step.argval)
            continue
        if chain:
            yield chain
        *below, top = read(step) or ("",)
        yield from ((name,) for name in below if name)
        chain = (top,) if top else ()


@functools.lru_cache(maxsize=4096)
def _reads_of_parameters(code: CodeType, names: frozenset[str] | None = None) -> tuple[Chain, ...]:
    """The parameters that code reads, and the code inside of it, with the attributes that are read of each.

    Args:
        code: the code.
        names: those that are read as variables of an outer function; None for the function's own.
    """
    if names is None:
        names = frozenset(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])
    def read(step: dis.Instruction) -> tuple[str, ...]:
        if not step.opname.startswith("LOAD_FAST") and step.opname not in _CLOSURE:
            return ()
        loaded = step.argval if isinstance(step.argval, tuple) else (step.argval,)  # some load two
        return tuple(name if name in names else "" for name in loaded)

    found = dict.fromkeys(_chains(code, read))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(_reads_of_parameters(constant, names & frozenset(constant.co_freevars))))
    if code.co_flags & __future__.annotations.compiler_flag:
        found.update(dict.fromkeys(chain for chain in _names_in_texts(code.co_consts) if chain[0] in names))
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def reads(code: CodeType) -> tuple[Chain, ...]:
    """The names from outside that code reads, and the code inside of it."""
    def read(step: dis.Instruction) -> tuple[str, ...]:
        outside = step.opname in _GLOBAL or (step.opname in _CLOSURE and step.argval in code.co_freevars)
        return (step.argval,) if outside else ()

    found = dict.fromkeys(_chains(code, read))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(one for one in reads(constant) if one[0] not in code.co_cellvars))
    if code.co_flags & __future__.annotations.compiler_flag:  # annotations are texts then, evaluated where they stand
        found.update(dict.fromkeys(_names_in_texts(code.co_consts)))
    return tuple(found)


def _names_in_texts(constants: tuple[Any, ...]) -> Iterator[Chain]:
    for constant in constants:
        if isinstance(constant, tuple):
            yield from _names_in_texts(constant)
        elif isinstance(constant, str) and constant.isprintable():
            try:
                tree = ast.parse(constant, mode="eval")
            except (SyntaxError, ValueError, MemoryError, RecursionError):
                continue
            yield from ((node.id,) for node in ast.walk(tree) if isinstance(node, ast.Name))
