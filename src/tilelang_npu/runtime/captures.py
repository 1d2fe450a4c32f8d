"""What a factory's kernels depend on apart from its arguments: the globals and closure variables that its code reads.

Two calls with the same arguments give the same kernel only where these hold what they held. So they are read before each call,
from the code of the factory, of the kernels and functions inside of it, and of the macros, functions and classes of the user's
that these name (:mod:`tilelang_npu.runtime.code_reads`).

The state of a value is a nested tuple. Equal states mean that code which reads the values computes the same. It consists of

- for numbers, texts and containers, the type and the content;
- for an instance, its class, the content of the built-in type that the class derives from (a subclass of dict has items), the
  slots and the ``__dict__`` (:mod:`tilelang_npu.runtime.built_in_states`);
- for a class of the user's, its bases, its metaclass and its ``__dict__``; for a function, its code, what that reads, its
  defaults and its attributes. Decorators, descriptors, bound methods and partial functions are taken apart;
- for what comes from a library, its identity. A library does not change while a process runs, but for what
  :mod:`tilelang_npu.runtime.libraries` lists.

An object that occurs again is stated by a number, so that ``is`` gives the same for equal states. A value that may change
without a sign has no state: a TypeError says so, there is no key, and the kernel is traced again.
"""

from __future__ import annotations

import abc
import builtins
import functools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, EnumMeta
from itertools import zip_longest
from types import BuiltinFunctionType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.language.functions import Macro, PrimFunc
from tilelang_npu.ops import DType
from tilelang_npu.runtime.built_in_states import (
    ABSENT,
    CONTENTS,
    LEAVES,
    STATES,
    attributes_of,
    content_of_cell,
    dtype_state,
    has_hidden_fields,
    namespace_of,
)
from tilelang_npu.runtime.code_reads import Chain, reads, reads_of_parameters
from tilelang_npu.runtime.libraries import (
    CHANGING_BUILTINS,
    OWN,
    changes,
    find_by_name,
    is_fixed,
    is_own,
    is_users,
    may_change,
    name_of,
    package_of,
)
from tilelang_npu.runtime.tensors import as_array, is_tensor
from tilelang_npu.sharing import state_of
from tilelang_npu.traced.symbols import Sym

__all__ = ["Reader", "Same", "arguments", "captured", "reader_of", "state"]

_WRITES = {
    "builtins.list": frozenset({"append", "extend", "insert"}), "builtins.set": frozenset({"add", "update"}),
    "builtins.dict": frozenset({"update"}), "collections.deque": frozenset({"append", "extend"}),
    "logging.Logger": frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})}
"""By type, methods that put something into an object and read nothing of it."""

_MISSING, _SEEN = "missing", "seen before"
_DATA = LEAVES | {bool, float, complex, tuple, list, dict, set, frozenset}
_NUMBERS = frozenset({bool, float, complex})
_WITHOUT_IDENTITY = frozenset({tuple, frozenset, range, slice, DType, Sym})
"""Types of which it makes no difference whether two equal values are one object."""

_COMPILED = {"tilelang_npu.runtime.kernel.JITKernel", "tilelang_npu.runtime.interpreted.InterpretedKernel"}
_NAMED_BY_TORCH = {"dtype", "device", "layout", "memory_format", "Size"}
_NO_CONTENT = {
    "__dict__", "__weakref__", "__module__", "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__",
    "__conditional_annotations__", "__static_attributes__", "_abc_impl"}
"""Of a class's ``__dict__``, what is stated elsewhere, and what no code reads that has a state (``code_reads`` says why)."""
_MADE_BY_ENUM = {"_value2member_map_", "_unhashable_values_", "_unhashable_values_map_", "_hashable_values_", "__new__"}

_OF_WRAPPERS = {*functools.WRAPPER_ASSIGNMENTS, "__wrapped__", "function", "annotations", "options"}

_SINGLE_DISPATCH: Any = functools.singledispatch(lambda _: None)
_LRU_CACHE = type(functools.lru_cache(lambda: None))
_BUILTINS = dict(vars(builtins))


class Same:
    """Equal to itself alone; it keeps the object, so no other one gets its place."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def captured(function: object) -> object:
    """What a function depends on apart from its arguments: equal as long as that is equal.

    Raises:
        TypeError: it reads something of which nobody can tell whether it has changed.
    """
    return reader_of(function).state_of_function(function)


def arguments(function: object, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """What a function is given: equal for arguments of equal contents. Of an object of the user's, such as that of a method,
    the attributes count that the function reads.

    Raises:
        TypeError: of an argument nobody can tell whether it has changed.
    """
    return reader_of(function).state_of_arguments(function, args, kwargs)


def state(value: object) -> object:
    """What a value holds: equal for values of equal contents.

    Raises:
        TypeError: nobody can tell whether it changes.
    """
    return Reader("").state_of(value)


def reader_of(function: object) -> Reader:
    """The reader for what a function captures and is given. One reader has to read both, as objects may occur in both."""
    return Reader(package_of(getattr(function, "__module__", None)))


class Reader:
    """Reads the states of values, all at one time.

    Args:
        home: the package of the factory, which is the user's even where it is installed.
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._seen: dict[int, tuple[int, object]] = {}  # the object with its number, so that its place stays its own
        self._called_for: set[tuple[int, int]] = set()

    def state_of(self, value: Any) -> object:
        """The state of a value.

        Raises:
            TypeError: it has none.
        """
        kind = type(value)
        if kind in LEAVES:
            return self.state_of_code(value) if kind is CodeType else value
        if kind in _NUMBERS:
            return kind, repr(value)
        if kind not in _WITHOUT_IDENTITY:
            before = self._seen.get(id(value))
            if before is not None:
                return _SEEN, before[0]
            self._seen[id(value)] = len(self._seen), value
        of_built_in = STATES.get(kind)
        if of_built_in is not None:
            return of_built_in(self.state_of, value)
        of_other = _STATES.get(kind)
        if of_other is not None:
            return of_other(self, value)
        if isinstance(value, type):
            return self._class(value)
        return self.state_of_module(value) if isinstance(value, ModuleType) else self._instance(value)

    def is_users(self, module: object) -> bool:
        """Whether a module is the user's, and no library's."""
        return is_users(module if isinstance(module, str) else "", self._home)

    # -- what the key of an entry on disk looks at in another way ------------------------------------------------------

    def identify(self, value: object) -> object:
        """The state of something in a library: its name, or here its identity, stands for its content."""
        return Same(value)

    def state_of_code(self, value: CodeType) -> object:
        """The state of code of the user's."""
        return value

    def state_of_library_code(self, value: CodeType, _module: str) -> object:
        """The state of the code of a function that a library has made for the user."""
        return value

    def state_of_compiled(self, value: object) -> object:
        """The state of a kernel or a factory, which does not change by itself."""
        return self.identify(value)

    def check_builtin(self, name: str, function: FunctionType) -> None:
        """Look at a name that is neither a global nor of a closure: it is one of Python's own, or nothing has it.

        Raises:
            TypeError: it gives something else each time, or was replaced.
        """
        known: dict[str, object] = function.__builtins__  # type: ignore[attr-defined]  # which typeshed does not know
        if name in CHANGING_BUILTINS or known.get(name, ABSENT) is not _BUILTINS.get(name, ABSENT):
            raise TypeError(f"it uses {name}")

    def check_import(self, name: str) -> None:
        """Look at a module that code imports where it runs.

        Raises:
            TypeError: what the module has may change.
        """
        package = package_of(name)
        known = package in sys.modules or package in sys.stdlib_module_names
        if not known or self.is_users(name) or changes(name):
            raise TypeError(f"it imports {name}")

    def state_of_module(self, value: ModuleType) -> object:
        """The state of a module as a whole, of which anything may be read.

        Raises:
            TypeError: what the module has may change.
        """
        if self.is_users(value.__name__) or changes(value.__name__):
            raise TypeError(f"it reads the module {value.__name__} as a whole")
        return self.identify(value)

    def state_of_library_name(self, module: ModuleType, chain: Chain, place: int) -> object:
        """The state of what is read of a library's module. Functions and classes of a library do not change; a value, or what
        the user has put in their place, may.

        Args:
            module: the module.
            chain: what is read.
            place: of the name in the chain that is read of the module.

        Raises:
            TypeError: that gives something else each time.
        """
        name = chain[place]
        value = vars(module).get(name, ABSENT)
        own = is_own(module.__name__)
        if not own:
            if module is sys and name in ("stdout", "stderr"):
                return None  # for messages
            if module.__name__ == "os" and name in ("environ", "getenv"):
                return self.state_of(dict(vars(module)["environ"]))
            if may_change(module.__name__, name) and (module is not sys or callable(value) or name == "modules"):
                raise TypeError(f"it reads {'.'.join(chain)}")
        if isinstance(value, ModuleType) and place + 1 < len(chain):
            return self.state_of_library_name(value, chain, place + 1)
        if type(value) in _DATA or self._is_users_value(value):
            return self.state_of(value)
        if place + 1 < len(chain) and self._is_users_value(put := _found_in(value, chain[place + 1]), data=True):
            return self.state_of(put)
        if value is ABSENT or own:
            return None  # this package loads its names when they are asked for: they are the same before and after
        return self.identify(value) if callable(value) or isinstance(value, ModuleType) else self.state_of(value)

    def state_of_library_function(self, value: Any) -> object:
        """The state of a function that a library's module has.

        Raises:
            TypeError: it gives something else each time.
        """
        module = getattr(value, "__module__", None) or ""
        if may_change(module, value.__name__) or (module == "builtins" and value.__name__ in CHANGING_BUILTINS):
            raise TypeError(f"it uses {name_of(value)}")
        return self.identify(value)

    # -- instances -----------------------------------------------------------------------------------------------------

    def _instance(self, value: Any) -> object:
        kind = type(value)
        if isinstance(value, np.generic):
            return self._numpy_scalar(value)
        if isinstance(value, np.dtype):
            return dtype_state(self.state_of, value)
        if kind in weakref.ProxyTypes:
            raise TypeError("it reads a weak proxy")
        if isinstance(value, np.ndarray):
            return self.state_of(kind), self._array(value), self._attributes(value)
        if not self.is_users(kind.__module__):
            found = self._of_library(value)
            if found is not None:
                return found
        base = kind
        while base not in CONTENTS:
            if has_hidden_fields(base):
                raise TypeError(f"it reads a {name_of(kind)}")
            base = base.__base__ or object
        return self.state_of(kind), CONTENTS[base](self.state_of, value), self._attributes(value)

    def _of_library(self, value: Any) -> object | None:
        """The state of an instance of a library's class; None where it has that of any instance."""
        kind = type(value)
        if isinstance(value, Enum):
            return self.state_of(kind), value._name_, repr(value._value_)
        package = package_of(kind.__module__)
        if package in OWN:
            if name_of(kind) in _COMPILED:
                return self.state_of_compiled(value)
            wrapped = getattr(value, "__wrapped__", None)
            if isinstance(wrapped, FunctionType):  # a factory
                return self.state_of_compiled(value), self.state_of_function(wrapped), self._put_on(value)
            if type(value).__dictoffset__:  # without what it has computed of the rest
                return self.state_of(kind), self.state_of(state_of(value))
        if package == "torch" and kind.__name__ in _NAMED_BY_TORCH:
            return self.state_of(kind), repr(value)
        if is_tensor(value):
            try:
                array = as_array(value)
            except TileError as error:
                raise TypeError(error.message) from None
            return self.state_of(kind), self._array(array), self._attributes(value)
        return None

    def _put_on(self, value: object) -> tuple[object, ...]:
        """The attributes that the user has set on an object of a library that stands for a function."""
        return tuple((name, self.state_of(one)) for name, one in vars(value).items()
                     if name not in _OF_WRAPPERS and (type(one) in _DATA or self._is_users_value(one)))

    def _attributes(self, value: object) -> tuple[object, ...]:
        return tuple((self.state_of(name), self.state_of(one)) for name, one in attributes_of(value))

    def _array(self, value: np.ndarray[Any, Any]) -> object:
        """The content of an array of NumPy, whatever methods a subclass has."""
        dtype, shape, strides = (vars(np.ndarray)[name].__get__(value) for name in ("dtype", "shape", "strides"))
        known = dtype_state(self.state_of, dtype), shape, strides
        if dtype.hasobject:
            return *known, self.state_of(np.ndarray.tolist(value))
        import hashlib  # loads OpenSSL

        return *known, hashlib.sha1(np.ndarray.tobytes(value), usedforsecurity=False).digest()

    def _numpy_scalar(self, value: Any) -> object:
        kind = type(value)
        if package_of(kind.__module__) not in ("numpy", "ml_dtypes") or value.dtype.hasobject:
            raise TypeError(f"it reads a {name_of(kind)}")
        content = repr(value) if kind in (np.longdouble, np.clongdouble) else value.tobytes()  # their bytes are not all used
        return name_of(kind), dtype_state(self.state_of, value.dtype), content

    # -- classes -------------------------------------------------------------------------------------------------------

    def _class(self, value: type) -> object:
        """A class of the user's by its content, one of a library by its name."""
        if not self.is_users(value.__module__) and is_fixed(value):
            if changes(value.__module__):
                raise TypeError(f"it reads {name_of(value)}")
            return self.identify(value), *self._registered(value)
        metaclass = type(value)
        content: list[object] = []
        for name, one in namespace_of(value).items():
            if name not in _NO_CONTENT and not (name in _MADE_BY_ENUM and isinstance(value, EnumMeta)):
                slot = type(one) in (GetSetDescriptorType, MemberDescriptorType)
                content.append(name if slot else (self.state_of(name), self.state_of(one)))
        if isinstance(value, EnumMeta):  # the values of members; combinations of flags are added when they occur
            content += [(self.state_of(key), member._name_) for key, member in value._value2member_map_.items()
                        if member._name_ in value._member_map_]
        return (value.__name__, value.__qualname__, () if metaclass is type else self.state_of(metaclass),
                tuple(map(self.state_of, value.__bases__)), tuple(content), self._registered(value))

    def _registered(self, value: type) -> tuple[object, ...]:
        """The classes of the user's that were registered as subclasses of an abstract one."""
        if type(value) is type or "_abc_impl" not in namespace_of(value):
            return ()
        try:
            registry = abc._get_dump(value)[0]  # type: ignore[attr-defined]
        except (AttributeError, TypeError):
            raise TypeError(f"it reads the abstract class {name_of(value)}") from None
        found = [one for reference in registry if (one := reference()) is not None and self.is_users(one.__module__)]
        return tuple(map(self.state_of, sorted(found, key=name_of)))

    # -- functions -----------------------------------------------------------------------------------------------------

    def state_of_function(self, value: Any) -> object:
        """What a function is, and what it reads."""
        hygienic: tuple[bool, ...] = ()
        while isinstance(value, (PrimFunc, Macro)):
            hygienic = (value.hygienic,) if isinstance(value, Macro) else hygienic
            value = value.function
        if not isinstance(value, FunctionType):
            return self.state_of(value)
        module = value.__globals__.get("__name__")
        if isinstance(module, str) and not self.is_users(module):
            return self._library_function(value, module)
        return *hygienic, *self._users_function(value)

    def _users_function(self, value: FunctionType) -> Iterator[object]:
        found = reads(value.__code__)
        if found.leads_out:
            raise TypeError(f"it reads {found.leads_out}")
        for name in found.imports:
            self.check_import(name)
        yield self.state_of_code(value.__code__)
        yield self._chains(found.outside, found.closure, value)
        if found.texts:
            yield self.state_of_chains(found.texts, value)
        yield self.state_of(value.__defaults__)
        yield self.state_of(value.__kwdefaults__)
        yield value.__name__, value.__qualname__, self.state_of(value.__doc__)
        if vars(value):
            yield self.state_of(vars(value))

    def _chains(self, outside: Iterable[Chain], closure: Sequence[Chain], function: FunctionType) -> tuple[object, ...]:
        names = function.__globals__
        found: list[object] = []
        for chain in outside:
            value = names.get(chain[0], ABSENT)
            if value is not ABSENT:
                found.append((chain, self.state_along(value, chain)))
            else:
                self.check_builtin(chain[0], function)
        if closure:
            cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
            for chain in closure:
                content = content_of_cell(cells[chain[0]])
                found.append((chain, _MISSING if content is ABSENT else self.state_along(content, chain)))
        return tuple(found)

    def state_of_chains(self, chains: Iterable[Chain], function: Any) -> tuple[object, ...]:
        """The states of what chains in annotations read, where they begin with a global or a closure variable of a function. A
        module as a whole annotates nothing."""
        if not chains or not isinstance(function, FunctionType):
            return ()
        names, free = function.__globals__, function.__code__.co_freevars
        known = [chain for chain in chains if chain[0] in free or (
            chain[0] in names and not (len(chain) == 1 and isinstance(names[chain[0]], ModuleType)))]
        return self._chains([chain for chain in known if chain[0] not in free], [chain for chain in known if chain[0] in free],
                            function)

    def _library_function(self, value: FunctionType, module: str) -> object:
        """A function of a library: one that a module has, or one that was made of what the user has given."""
        if value.__code__ is _SINGLE_DISPATCH.__code__:
            registry: Mapping[type, Any] = value.registry  # type: ignore[attr-defined]
            kinds = sorted(registry, key=name_of)
            return (functools.singledispatch, self._put_on(value),
                    tuple((self.state_of(kind), self.state_of(registry[kind])) for kind in kinds))
        if find_by_name(module, value.__qualname__) is value:
            return self.state_of_library_function(value)
        if changes(module):
            raise TypeError(f"it reads {module}.{value.__qualname__}")
        cells = [content_of_cell(cell) for cell in value.__closure__ or ()]
        return (self.state_of_library_code(value.__code__, module),
                tuple(_MISSING if one is ABSENT else self.state_of(one) for one in cells),
                self.state_of(value.__defaults__), self.state_of(value.__kwdefaults__), self.state_of(vars(value)))

    def _builtin_function(self, value: BuiltinFunctionType) -> object:
        owner = value.__self__
        if owner is None or isinstance(owner, ModuleType):
            return self.state_of_library_function(value)
        return value.__name__, self.state_of(owner)

    def _ufunc(self, value: np.ufunc) -> object:
        """A function of NumPy's. One that NumPy has made of a function of the user's does not show that function."""
        if getattr(np, value.__name__, None) is not value:
            raise TypeError(f"it reads the ufunc {value.__name__}")
        return self.identify(value)

    def _lru_cache(self, value: Any) -> object:
        function = value.__wrapped__
        users = not isinstance(function, FunctionType) or self.is_users(function.__globals__.get("__name__"))
        if users and value.cache_info().currsize:
            raise TypeError(f"it reads {name_of(function)}, which has stored results")
        return functools.lru_cache, self.state_of(function), self.state_of(value.cache_parameters()), self._put_on(value)

    # -- chains --------------------------------------------------------------------------------------------------------

    def state_along(self, value: Any, chain: Chain) -> object:
        """The state of what a chain reads, which begins with a value: of a module or a class, that of the attribute alone."""
        for place, name in enumerate(chain[1:], 1):
            if isinstance(value, ModuleType):
                if not self.is_users(value.__name__):
                    return self.state_of_library_name(value, chain, place)
                if type(value) is not ModuleType or name == "__dict__":
                    return self.state_of_module(value)
                found = vars(value).get(name, ABSENT)
                if found is ABSENT:
                    loader = vars(value).get("__getattr__")
                    return _MISSING if loader is None else (name, self.state_of(loader))
                value = found
            elif isinstance(value, type):
                found = self._of_class(value, name)
                if found is ABSENT:
                    return self.state_of(value)
                value = found
            else:
                return None if name in _WRITES.get(name_of(type(value)), ()) else self.state_of(value)
        return self.state_of(value)

    def _of_class(self, value: type, name: str) -> Any:
        """A class's attribute where its read depends on nothing else; ``ABSENT`` where the whole class counts."""
        if isinstance(value, EnumMeta):
            return value._member_map_.get(name, ABSENT)
        if type(value) not in (type, abc.ABCMeta):
            return ABSENT
        if not self.is_users(value.__module__):
            found = _found_in(value, name)
            return found if self._is_users_value(found, data=True) else ABSENT
        for one in value.__mro__:
            found = namespace_of(one).get(name, ABSENT)
            if found is not ABSENT:
                if isinstance(found, staticmethod):
                    return found.__func__
                plain = isinstance(found, (FunctionType, type)) or not hasattr(type(found), "__get__")
                return found if plain and self.is_users(one.__module__) else ABSENT
        return ABSENT

    def _is_users_value(self, value: Any, *, data: bool = False) -> bool:
        """Whether a value in a library is the user's by its class or code; with ``data``, also where it is a plain value."""
        if isinstance(value, FunctionType):
            return self.is_users(value.__globals__.get("__name__"))
        if data and type(value) in _DATA:
            return True
        return value is not ABSENT and self.is_users(value.__module__ if isinstance(value, type) else type(value).__module__)

    # -- arguments -----------------------------------------------------------------------------------------------------

    def state_of_arguments(self, function: object, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """See :func:`arguments`."""
        code = getattr(function, "__code__", None)
        names = code.co_varnames[:code.co_argcount] if isinstance(code, CodeType) else ()
        given = [*zip_longest(names[:len(args)], args), *sorted(kwargs.items())]
        return len(args), tuple((name, self._argument(code, name, value)) for name, value in given)

    def _argument(self, code: object, name: str | None, value: Any) -> object:
        """What the code reads of an argument."""
        if type(value) in LEAVES or not isinstance(code, CodeType) or name is None or not self._has_parts(value):
            return self.state_of(value)
        chains = [chain for chain in reads_of_parameters(code) if chain[0] == name]
        if any(len(chain) == 1 for chain in chains):
            return self.state_of(value)
        parts: list[object] = []
        for chain in chains:
            part = self._part(value, chain[1:])
            if part is ABSENT:
                return self.state_of(value)
            parts.append((chain, part))
        return Same(type(value)), tuple(parts)

    def _has_parts(self, value: Any) -> bool:
        """Whether a value is an object of the user's whose attributes are read one by one."""
        kind = type(value)
        return (kind not in STATES and kind not in _STATES and not isinstance(value, (type, ModuleType, Enum))
                and self.is_users(kind.__module__) and not is_tensor(value)
                and all("__getattribute__" not in namespace_of(one) for one in kind.__mro__[:-1]))

    def _part(self, value: Any, chain: Chain) -> object:
        """The state of an object's attribute, of which code reads a chain; ``ABSENT`` where it may depend on more."""
        name, kind = chain[0], type(value)
        of_class = _found_in(kind, name)
        if type(of_class) is property:
            return self._method(of_class.fget, value)
        slot = type(of_class) is MemberDescriptorType
        if slot or not (hasattr(type(of_class), "__set__") or hasattr(type(of_class), "__delete__")):
            for key, held in attributes_of(value):
                if key == name:
                    return self.state_along(held, chain)
        if of_class is ABSENT or slot:
            return ABSENT if hasattr(kind, "__getattr__") else _MISSING
        if isinstance(of_class, FunctionType):
            return self._method(of_class, value)
        return ABSENT if hasattr(type(of_class), "__get__") else self.state_along(of_class, chain)

    def _method(self, function: Any, value: Any) -> object:
        """A method, and what it reads of the object that it is called for."""
        place = id(function), id(value)
        if not isinstance(function, FunctionType) or place in self._called_for:
            return self.state_of(function), self.state_of(value)
        self._called_for.add(place)
        names = function.__code__.co_varnames[:function.__code__.co_argcount]
        read = self._argument(function.__code__, names[0], value) if names else self.state_of(value)
        return self.state_of(function), read


def _found_in(value: Any, name: str) -> Any:
    """What a class or a function has under a name, as it stands there; ``ABSENT`` where there is nothing."""
    if isinstance(value, type):
        return next((space[name] for one in value.__mro__ if name in (space := namespace_of(one))), ABSENT)
    return vars(value).get(name, ABSENT) if isinstance(value, FunctionType) else ABSENT


_STATES: dict[type, Callable[[Reader, Any], object]] = {
    FunctionType: Reader.state_of_function,
    PrimFunc: lambda reader, value: (PrimFunc, reader.state_of_function(value), reader._put_on(value)),
    Macro: lambda reader, value: (Macro, reader.state_of_function(value), reader._put_on(value)),
    BuiltinFunctionType: Reader._builtin_function,
    _LRU_CACHE: Reader._lru_cache,
    np.ufunc: Reader._ufunc,
    Sym: lambda reader, value: (Sym, reader.state_of(value.key), str(value.dtype)),
    DType: lambda reader, value: (DType, str(value)),
}
