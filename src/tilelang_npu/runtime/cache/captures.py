"""Reads the states of the values on which a factory's kernels depend: its arguments, globals and closure variables.

Two calls with the same arguments return the same kernel only if the globals and closure variables have not changed. Therefore
their states are read before each call. The variables are found in the code of the factory, of the kernels and functions inside
of it, and of the user's macros, functions and classes that this code names (:mod:`tilelang_npu.runtime.cache.code_reads`).

The state of a value is a nested tuple. If the states of two values are equal, code that reads one value computes the same as
code that reads the other. A state consists of

- for numbers, texts and containers, the type and the content;
- for an instance, its class, the content of the built-in type that the class derives from (a subclass of dict has items), the
  slots and the ``__dict__`` (:mod:`tilelang_npu.runtime.cache.built_in_states`);
- for a user's class, its bases, its metaclass and its ``__dict__``; for a function, its code, the states of the values that the
  code reads, its defaults and its attributes; for decorators, descriptors, bound methods and partial functions, their parts;
- for a module, class or function of a library, its identity. A library is assumed not to change while a process runs, except
  for the functions that :mod:`tilelang_npu.runtime.cache.libraries` lists.

A second occurrence of an object is represented by a number, so that ``is`` gives the same result for equal states. A value
whose changes cannot be detected has no state: reading its state raises a TypeError, the call has no key, and the kernel is
traced again.
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
from operator import attrgetter
from types import BuiltinFunctionType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.language.functions import Macro, PrimFunc
from tilelang_npu.ops import DType
from tilelang_npu.runtime.arguments.tensors import as_array, is_tensor
from tilelang_npu.runtime.cache.built_in_states import (
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
from tilelang_npu.runtime.cache.code_reads import Chain, reads, reads_of_parameters
from tilelang_npu.runtime.cache.libraries import (
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
from tilelang_npu.sharing import state_of
from tilelang_npu.traced.symbols import Sym

_WRITE_METHODS = {
    "builtins.list": frozenset({"append", "extend", "insert"}), "builtins.set": frozenset({"add", "update"}),
    "builtins.dict": frozenset({"update"}), "collections.deque": frozenset({"append", "extend"}),
    "logging.Logger": frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})}
"""By type, methods that write to an object and do not read it."""

_MISSING, _SEEN = "missing", "seen before"
_DATA = LEAVES | {bool, float, complex, tuple, list, dict, set, frozenset}
_NUMBERS = frozenset({bool, float, complex})
_WITHOUT_IDENTITY = frozenset({tuple, frozenset, range, slice, DType, Sym})
"""Types for which it makes no difference whether two equal values are one object."""

_KERNEL_CLASSES = {"tilelang_npu.runtime.jit.jit_kernel.JITKernel",
                   "tilelang_npu.runtime.kernel.interpreted_kernel.InterpretedKernel"}
_NAMED_BY_TORCH = {"dtype", "device", "layout", "memory_format", "Size"}
_NO_CONTENT = {
    "__dict__", "__weakref__", "__module__", "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__",
    "__conditional_annotations__", "__static_attributes__", "_abc_impl"}
"""Names in a class's ``__dict__`` that are read elsewhere, or that no code with a state can read (``_ESCAPES`` of
``code_reads``)."""
_MADE_BY_ENUM = {"_value2member_map_", "_unhashable_values_", "_unhashable_values_map_", "_hashable_values_", "__new__"}

_WRAPPER_ATTRIBUTES = {*functools.WRAPPER_ASSIGNMENTS, "__wrapped__", "function", "annotations", "options"}

_SINGLE_DISPATCH: Any = functools.singledispatch(lambda _: None)
_LRU_CACHE = type(functools.lru_cache(lambda: None))
_builtins_of = attrgetter("__builtins__")  # of a function; some versions of typeshed do not declare it
_BUILTINS = dict(vars(builtins))


class Identity:
    """A state that represents an object by its identity: two such states are equal if they refer to the same object.

    The state holds a reference to the object, so that no later object gets the same address.

    Args:
        thing: the object.
    """

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def reader_of(function: object) -> Reader:
    """Returns a reader for the states of a function's arguments and of the variables that it reads.

    One reader must read both, because the same object can occur in both.
    """
    return Reader(package_of(getattr(function, "__module__", None)))


class Reader:
    """Reads the states of several values at one moment; see the module's docstring for what a state is.

    Args:
        home: the name of the factory's top-level package, whose modules count as the user's even if it is installed.
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._seen: dict[int, tuple[int, object]] = {}  # number and object: the object stays alive, so that its id stays unique
        self._called_for: set[tuple[int, int]] = set()

    def state_of(self, value: object) -> object:
        """Returns the state of a value.

        Raises:
            TypeError: the value has no state, because its changes cannot be detected.
        """
        kind = type(value)
        if kind in LEAVES:
            return self.state_of_code(value) if isinstance(value, CodeType) else value
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
        """Whether a module, given by its name, belongs to the user, and not to a library."""
        return is_users(module if isinstance(module, str) else "", self._home)

    # -- states that the reader for keys on disk overrides --------------------------------------------------------------

    def identify(self, value: object) -> object:
        """Returns the state of an object of a library, which is its identity; the reader for keys on disk returns its name."""
        return Identity(value)

    def state_of_code(self, value: CodeType) -> object:
        """Returns the state of a code object of the user."""
        return value

    def state_of_library_code(self, value: CodeType, _module: str) -> object:
        """Returns the state of the code of a function that a library made for the user."""
        return value

    def state_of_compiled(self, value: object) -> object:
        """Returns the state of a compiled kernel or of a factory object, which is assumed never to change."""
        return self.identify(value)

    def check_builtin(self, name: str, function: FunctionType) -> None:
        """Checks that a name that is neither a global nor a closure variable is an unchanged built-in or undefined.

        Args:
            name: the name.
            function: the function that reads the name.

        Raises:
            TypeError: the built-in's result can change from call to call, or the built-in was replaced.
        """
        known: dict[str, object] = _builtins_of(function)
        if name in CHANGING_BUILTINS or known.get(name, ABSENT) is not _BUILTINS.get(name, ABSENT):
            raise TypeError(f"it uses {name}")

    def check_import(self, name: str) -> None:
        """Checks that a module which code imports when it runs is a library that does not change.

        Raises:
            TypeError: the module belongs to the user, is not known, or has results that change from call to call.
        """
        package = package_of(name)
        known = package in sys.modules or package in sys.stdlib_module_names
        if not known or self.is_users(name) or changes(name):
            raise TypeError(f"it imports {name}")

    def state_of_module(self, value: ModuleType) -> object:
        """Returns the state of a module from which code can read any name, because the code uses the module object itself.

        Raises:
            TypeError: the module belongs to the user, or has results that change from call to call.
        """
        if self.is_users(value.__name__) or changes(value.__name__):
            raise TypeError(f"it reads the module {value.__name__} as a whole")
        return self.identify(value)

    def state_of_library_name(self, module: ModuleType, chain: Chain, place: int) -> object:
        """Returns the state of a name in a library's module.

        Functions and classes of a library are assumed not to change. Other values can change, and the user can have replaced a
        function.

        Args:
            module: the library's module.
            chain: the chain that the code reads, a name followed by attributes.
            place: the index in the chain of the name that is read from the module.

        Raises:
            TypeError: the value of the name, or the function's result, can change from call to call.
        """
        name = chain[place]
        value = vars(module).get(name, ABSENT)
        own = is_own(module.__name__)
        if not own:
            if module is sys and name in ("stdout", "stderr"):
                return None  # code writes messages to them
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
            return None  # this package loads names when they are first read; loading one does not change the package
        return self.identify(value) if callable(value) or isinstance(value, ModuleType) else self.state_of(value)

    def state_of_library_function(self, value: FunctionType | BuiltinFunctionType) -> object:
        """Returns the state of a function that a library's module defines.

        Raises:
            TypeError: the function's result can change from call to call.
        """
        module = getattr(value, "__module__", None) or ""
        if may_change(module, value.__name__) or (module == "builtins" and value.__name__ in CHANGING_BUILTINS):
            raise TypeError(f"it uses {name_of(value)}")
        return self.identify(value)

    # -- instances -----------------------------------------------------------------------------------------------------

    def _instance(self, value: object) -> object:
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

    def _of_library(self, value: object) -> object | None:
        """Returns the state of an instance of a library's class; None if it is read like an instance of any class."""
        kind = type(value)
        if isinstance(value, Enum):
            return self.state_of(kind), value._name_, repr(value._value_)
        package = package_of(kind.__module__)
        if package in OWN:
            if name_of(kind) in _KERNEL_CLASSES:
                return self.state_of_compiled(value)
            wrapped = getattr(value, "__wrapped__", None)
            if isinstance(wrapped, FunctionType):  # a factory
                return self.state_of_compiled(value), self.state_of_function(wrapped), self._user_attributes(value)
            if type(value).__dictoffset__:  # without cached properties
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

    def _user_attributes(self, value: object) -> tuple[object, ...]:
        """Returns the states of the attributes that the user set on a library's wrapper of a function."""
        return tuple((name, self.state_of(one)) for name, one in vars(value).items()
                     if name not in _WRAPPER_ATTRIBUTES and (type(one) in _DATA or self._is_users_value(one)))

    def _attributes(self, value: object) -> tuple[object, ...]:
        return tuple((self.state_of(name), self.state_of(one)) for name, one in attributes_of(value))

    def _array(self, value: np.ndarray) -> object:
        """Returns the content of a NumPy array, whatever methods a subclass defines."""
        dtype, shape, strides = (vars(np.ndarray)[name].__get__(value) for name in ("dtype", "shape", "strides"))
        known = dtype_state(self.state_of, dtype), shape, strides
        if dtype.hasobject:
            return *known, self.state_of(np.ndarray.tolist(value))
        import hashlib  # loads OpenSSL, which takes long

        return *known, hashlib.sha1(np.ndarray.tobytes(value), usedforsecurity=False).digest()

    def _numpy_scalar(self, value: np.generic) -> object:
        kind = type(value)
        if package_of(kind.__module__) not in ("numpy", "ml_dtypes") or value.dtype.hasobject:
            raise TypeError(f"it reads a {name_of(kind)}")
        content = repr(value) if kind in (np.longdouble, np.clongdouble) else value.tobytes()  # some of their bytes are padding
        return name_of(kind), dtype_state(self.state_of, value.dtype), content

    # -- classes -------------------------------------------------------------------------------------------------------

    def _class(self, value: type) -> object:
        """Returns the state of a class: the content of a user's class, the identity of a library's."""
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
        if isinstance(value, EnumMeta):  # the members, without combinations of flags: Python adds these when they occur
            content += [(self.state_of(key), member._name_) for key, member in value._value2member_map_.items()
                        if member._name_ in value._member_map_]
        return (value.__name__, value.__qualname__, () if metaclass is type else self.state_of(metaclass),
                tuple(map(self.state_of, value.__bases__)), tuple(content), self._registered(value))

    def _registered(self, value: type) -> tuple[object, ...]:
        """Returns the states of the user's classes that were registered as subclasses of an abstract class."""
        if type(value) is type or "_abc_impl" not in namespace_of(value):
            return ()
        try:
            registry = abc._get_dump(value)[0]  # type: ignore[attr-defined]  # private to the abc module
        except (AttributeError, TypeError):
            raise TypeError(f"it reads the abstract class {name_of(value)}") from None
        found = [one for reference in registry if (one := reference()) is not None and self.is_users(one.__module__)]
        return tuple(map(self.state_of, sorted(found, key=name_of)))

    # -- functions -----------------------------------------------------------------------------------------------------

    def state_of_function(self, value: object) -> object:
        """Returns the state of a function: its code, its defaults and attributes, and the states of the values that it
        reads."""
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
        if found.escape:
            raise TypeError(f"it reads {found.escape}")
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

    def state_of_chains(self, chains: Iterable[Chain], function: object) -> tuple[object, ...]:
        """Returns the states of the chains in annotations that begin with a global or a closure variable of a function.

        A chain that consists of a module's name alone is left out, because a module is not an annotation.
        """
        if not chains or not isinstance(function, FunctionType):
            return ()
        names, free = function.__globals__, function.__code__.co_freevars
        known = [chain for chain in chains if chain[0] in free or (
            chain[0] in names and not (len(chain) == 1 and isinstance(names[chain[0]], ModuleType)))]
        return self._chains([chain for chain in known if chain[0] not in free], [chain for chain in known if chain[0] in free],
                            function)

    def _library_function(self, value: FunctionType, module: str) -> object:
        """Returns the state of a library's function: a function of a module, or one that was made from the user's values."""
        if value.__code__ is _SINGLE_DISPATCH.__code__:
            registry: Mapping[type, object] = value.registry  # type: ignore[attr-defined]  # of functions under singledispatch
            kinds = sorted(registry, key=name_of)
            return (functools.singledispatch, self._user_attributes(value),
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
        """Returns the state of a ufunc of NumPy. A ufunc that was made from a user's function has none, as that function is
        hidden."""
        if getattr(np, value.__name__, None) is not value:
            raise TypeError(f"it reads the ufunc {value.__name__}")
        return self.identify(value)

    def _lru_cache(self, value: functools._lru_cache_wrapper[object]) -> object:
        function = value.__wrapped__
        users = not isinstance(function, FunctionType) or self.is_users(function.__globals__.get("__name__"))
        if users and value.cache_info().currsize:
            raise TypeError(f"it reads {name_of(function)}, which has stored results")
        return (functools.lru_cache, self.state_of(function), self.state_of(value.cache_parameters()),
                self._user_attributes(value))

    # -- chains --------------------------------------------------------------------------------------------------------

    def state_along(self, value: object, chain: Chain) -> object:
        """Returns the state of the value that a chain of attributes reads from ``value``.

        Of a module or a class in the chain, only the attribute that is read is part of the state; of any other object, the
        whole object is.

        Args:
            value: the value of the chain's first name.
            chain: the name, followed by the attributes.
        """
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
                return None if name in _WRITE_METHODS.get(name_of(type(value)), ()) else self.state_of(value)
        return self.state_of(value)

    def _of_class(self, value: type, name: str) -> object:
        """Returns a class's attribute if its read depends on nothing else; ``ABSENT`` if the whole class counts."""
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

    def _is_users_value(self, value: object, *, data: bool = False) -> bool:
        """Whether a value in a library is the user's, by its class or code; with ``data``, also if it is plain data."""
        if isinstance(value, FunctionType):
            return self.is_users(value.__globals__.get("__name__"))
        if data and type(value) in _DATA:
            return True
        return value is not ABSENT and self.is_users(value.__module__ if isinstance(value, type) else type(value).__module__)

    # -- arguments -----------------------------------------------------------------------------------------------------

    def state_of_arguments(self, function: object, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Returns the state of the arguments of a function's call.

        Of an argument whose class the user has defined, such as ``self``, only the attributes that the function reads are part
        of the state.

        Args:
            function: the function that is called.
            args, kwargs: the positional and the named arguments.

        Raises:
            TypeError: an argument has no state, because its changes cannot be detected.
        """
        code = getattr(function, "__code__", None)
        names = code.co_varnames[:code.co_argcount] if isinstance(code, CodeType) else ()
        given = [*zip_longest(names[:len(args)], args), *sorted(kwargs.items())]
        return len(args), tuple((name, self._argument(code, name, value)) for name, value in given)

    def _argument(self, code: object, name: str | None, value: object) -> object:
        """Returns the state of the parts of an argument that the code reads."""
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
        return Identity(type(value)), tuple(parts)

    def _has_parts(self, value: object) -> bool:
        """Whether a value is a user's object whose attributes are read one by one."""
        kind = type(value)
        return (kind not in STATES and kind not in _STATES and not isinstance(value, (type, ModuleType, Enum))
                and self.is_users(kind.__module__) and not is_tensor(value)
                and all("__getattribute__" not in namespace_of(one) for one in kind.__mro__[:-1]))

    def _part(self, value: object, chain: Chain) -> object:
        """Returns the state of the chain that code reads from an object; ``ABSENT`` if it may depend on the rest of the
        object."""
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

    def _method(self, function: object, value: object) -> object:
        """Returns the state of a method, and of the attributes of its object that it reads."""
        place = id(function), id(value)
        if not isinstance(function, FunctionType) or place in self._called_for:
            return self.state_of(function), self.state_of(value)
        self._called_for.add(place)
        names = function.__code__.co_varnames[:function.__code__.co_argcount]
        read = self._argument(function.__code__, names[0], value) if names else self.state_of(value)
        return self.state_of(function), read


def _found_in(value: object, name: str) -> object:
    """Returns the unbound attribute of a class or a function; ``ABSENT`` if it has none."""
    if isinstance(value, type):
        return next((space[name] for one in value.__mro__ if name in (space := namespace_of(one))), ABSENT)
    return vars(value).get(name, ABSENT) if isinstance(value, FunctionType) else ABSENT


_STATES: dict[type, Callable[..., object]] = {
    FunctionType: Reader.state_of_function,
    PrimFunc: lambda reader, value: (PrimFunc, reader.state_of_function(value), reader._user_attributes(value)),
    Macro: lambda reader, value: (Macro, reader.state_of_function(value), reader._user_attributes(value)),
    BuiltinFunctionType: Reader._builtin_function,
    _LRU_CACHE: Reader._lru_cache,
    np.ufunc: Reader._ufunc,
    Sym: lambda reader, value: (Sym, reader.state_of(value.key), str(value.dtype)),
    DType: lambda reader, value: (DType, str(value)),
}
