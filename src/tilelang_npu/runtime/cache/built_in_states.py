"""Reads the content of instances of built-in types and of their subclasses, for :mod:`tilelang_npu.runtime.cache.captures`.

An instance consists of its slots, its ``__dict__``, and the C fields of the built-in type from which its class derives. The
tables in this module have functions that read the C fields of the listed types; :func:`has_hidden_fields` detects other types
with C fields. The methods of a subclass are never called.
"""

from __future__ import annotations

import collections
import functools
import operator
import re
import struct
import types
import typing
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field
from enum import Enum
from types import (
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)

import numpy as np

from tilelang_npu.runtime.cache.libraries import name_of

StateOf = Callable[[object], object]
"""The type of a function that returns the state of a value, see :class:`tilelang_npu.runtime.cache.captures.Reader`."""

ABSENT: object = object()
"""Is returned in place of the value of a name or of a closure variable that has no value."""

LEAVES = frozenset({type(None), int, str, bytes, type(...), type(NotImplemented), CodeType})
"""Types of immutable values: the state of such a value is the value itself."""

_POINTER = struct.calcsize("P")
_SORTED_BY_REPR = (type(None), bool, int, float, str, bytes)


def namespace_of(kind: type) -> Mapping[str, object]:
    """Returns the ``__dict__`` of a class, even if its metaclass redefines the attribute."""
    found: Mapping[str, object] = type.__dict__["__dict__"].__get__(kind)
    return found


def attributes_of(value: object) -> Iterator[tuple[str, object]]:
    """Yields the names and values of an instance's slots and ``__dict__`` items, even if its class redefines attribute access.

    Raises:
        TypeError: the instance has a ``__dict__`` that cannot be read without calling code of the class.
    """
    held: Mapping[str, object] | None = None
    for one in type(value).__mro__:
        space = namespace_of(one)
        if "__slots__" in space:
            for name, descriptor in space.items():
                if type(descriptor) is MemberDescriptorType:
                    try:
                        yield name, descriptor.__get__(value)
                    except AttributeError:
                        continue
        if held is None and "__dict__" in space:
            found = space["__dict__"]
            if not isinstance(found, (GetSetDescriptorType, MemberDescriptorType)):
                raise TypeError(f"it reads a {name_of(type(value))}")
            held = found.__get__(value)
    if held is None and type(value).__dictoffset__:
        raise TypeError(f"it reads a {name_of(type(value))}")
    yield from (held or {}).items()


def has_hidden_fields(kind: type) -> bool:
    """Whether instances of a class have C fields: fields that are neither slots, nor ``__dict__``, nor fields of the base
    class.
    """
    base = kind.__base__ or object
    space = namespace_of(kind)
    own = bool(kind.__dictoffset__) > bool(base.__dictoffset__), bool(kind.__weakrefoffset__) > bool(base.__weakrefoffset__)
    slots = sum(type(one) is MemberDescriptorType for one in space.values()) if "__slots__" in space else 0
    return kind.__basicsize__ - base.__basicsize__ > _POINTER * (slots + sum(own))


def content_of_cell(cell: CellType) -> object:
    """Returns the value of a closure variable; ``ABSENT`` if it is not assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def items_of(of: StateOf, value: dict[object, object]) -> object:
    """Returns the states of a dictionary's keys and values, in the dictionary's order.

    Args:
        of: returns the state of a key or a value.
        value: the dictionary.
    """
    return tuple((of(key), of(one)) for key, one in dict.items(value))


def _states_of_all(of: StateOf, values: Iterable[object]) -> object:
    return tuple(map(of, values))


def _set_elements(of: StateOf, values: Iterator[object]) -> object:
    """Returns the states of a set's elements in sorted order: a set's own order depends on its history."""
    return tuple(map(of, sorted(values, key=_sort_key)))


def _sort_key(value: object) -> tuple[object, ...]:
    kind = type(value)
    if kind in _SORTED_BY_REPR:
        return (kind.__name__, repr(value))
    if isinstance(value, tuple) and kind is tuple:
        return ("tuple", *map(_sort_key, value))
    if isinstance(value, frozenset) and kind is frozenset:
        return ("frozenset", *sorted(map(_sort_key, value)))
    if isinstance(value, Enum):
        return (name_of(kind), str(value._name_))
    if isinstance(value, type):
        return ("type", name_of(value))
    if isinstance(value, np.generic):
        return (name_of(kind), repr(value))
    raise TypeError(f"it reads a set of {name_of(kind)}")


def dtype_state(of: StateOf, value: np.dtype) -> object:
    """Returns the state of a NumPy ``dtype``."""
    return np.dtype, repr(value), None if value.metadata is None else of(dict(value.metadata))


CONTENTS: dict[type, Callable[..., object]] = {
    object: lambda of, value: (),
    int: lambda of, value: int.__repr__(value),
    float: lambda of, value: float.__repr__(value),
    complex: lambda of, value: complex.__repr__(value),
    str: lambda of, value: str.__str__(value),
    bytes: lambda of, value: bytes.__repr__(value),
    tuple: lambda of, value: _states_of_all(of, tuple.__iter__(value)),
    list: lambda of, value: _states_of_all(of, list.__iter__(value)),
    dict: items_of,
    collections.OrderedDict: lambda of, value: _states_of_all(of, collections.OrderedDict.items(value)),
    collections.defaultdict: lambda of, value: (
        of(collections.defaultdict.__dict__["default_factory"].__get__(value)), items_of(of, value)),
    collections.deque: lambda of, value: (
        collections.deque.__dict__["maxlen"].__get__(value), _states_of_all(of, collections.deque.__iter__(value))),
    set: lambda of, value: _set_elements(of, set.__iter__(value)),
    frozenset: lambda of, value: _set_elements(of, frozenset.__iter__(value)),
    functools.partial: lambda of, value: tuple(
        of(functools.partial.__dict__[name].__get__(value)) for name in ("func", "args", "keywords")),
    staticmethod: lambda of, value: of(value.__func__),
    classmethod: lambda of, value: of(value.__func__),
    property: lambda of, value: tuple(
        of(property.__dict__[name].__get__(value)) for name in ("fget", "fset", "fdel", "__doc__")),
    weakref.ref: lambda of, value: of(weakref.ref.__call__(value)),
    types.GenericAlias: lambda of, value: (of(value.__origin__), of(value.__args__)),
}
"""For each built-in type, a function that returns the state of its C fields, for instances of the type and of its
subclasses."""


def _by(*names: str) -> Callable[..., object]:
    return lambda of, value: (type(value), *(of(getattr(value, name)) for name in names))


def _by_content(kind: type) -> Callable[..., object]:
    content = CONTENTS[kind]
    return lambda of, value: (kind, content(of, value))


def _by_content_and_attributes(kind: type) -> Callable[..., object]:
    content = CONTENTS[kind]
    return lambda of, value: (kind, content(of, value), _states_of_all(of, attributes_of(value)))


def _reduced(of: StateOf, value: object) -> object:
    made = value.__reduce__()
    return type(value), of(made[0]), of(made[1])


def _of_cell(of: StateOf, value: CellType) -> object:
    held = content_of_cell(value)
    return (CellType,) if held is ABSENT else (CellType, of(held))


STATES: dict[type, Callable[..., object]] = {
    **dict.fromkeys((bool, float, complex), lambda of, value: (type(value), repr(value))),
    **{kind: _by_content(kind) for kind in (tuple, list, dict, set, frozenset, collections.defaultdict, collections.deque,
                                            property, weakref.ref, types.GenericAlias)},
    **{kind: _by_content_and_attributes(kind) for kind in (functools.partial, collections.OrderedDict, staticmethod,
                                                           classmethod)},
    **{kind: _by("__objclass__", "__name__") for kind in (
        MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType, GetSetDescriptorType, MemberDescriptorType)},
    **dict.fromkeys((operator.attrgetter, operator.itemgetter, operator.methodcaller,
                     type(vars(collections.namedtuple("Pair", "first second"))["first"])), _reduced),
    range: _by("start", "stop", "step"),
    slice: _by("start", "stop", "step"),
    re.Pattern: _by("pattern", "flags"),
    MethodType: _by("__func__", "__self__"),
    MethodWrapperType: _by("__name__", "__self__"),
    MappingProxyType: lambda of, value: (MappingProxyType, of(value.copy())),
    CellType: _of_cell,
    functools.cached_property: _by("func", "attrname"),
    Field: _by("name", "default", "default_factory", "init", "kw_only", "metadata"),
    type(int | str): _by("__args__"),
    typing.TypeVar: _by("__name__", "__bound__", "__constraints__"),
}
"""For each type, a function that returns the whole state of an instance of exactly this type, not of a subclass."""
