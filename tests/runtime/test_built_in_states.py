"""The content of built-in types: complete, also if a subclass overrides methods, and refused if it is not accessible."""

from __future__ import annotations

import array
import collections
import ctypes
import functools
import itertools
import random
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilelang_npu.runtime.cache.built_in_states import CONTENTS, LEAVES, STATES, attributes_of, has_hidden_fields
from tilelang_npu.runtime.cache.captures import Reader


def state(value: object) -> object:
    return Reader("").state_of(value)


def _made(kind: type, one: bool) -> Any:
    """An instance of a class that derives from a built-in one, with one of two contents."""
    given: dict[type, tuple[Any, ...]] = {
        int: (int(one),), float: (float(one),), complex: (complex(one),), str: (str(one),), bytes: (bytes([one]),),
        tuple: ((one,),), list: ([one],), dict: ({"a": one},), collections.OrderedDict: ({"a": one},), set: ({one},),
        frozenset: ({one},), collections.defaultdict: (functools.partial(int, one),), collections.deque: ([one],),
        functools.partial: (int, one), object: (),
        staticmethod: (_first if one else _second,), classmethod: (_first if one else _second,),
        property: (_first if one else _second,), weakref.ref: (_first if one else _second,)}
    return kind(*next(given[base] for base in kind.__mro__ if base in given))


def _first() -> int:
    return 1


def _second() -> int:
    return 2


DERIVED = [kind for kind in CONTENTS if kind not in (object, types.GenericAlias)]


@pytest.mark.parametrize("kind", DERIVED, ids=lambda kind: kind.__name__)
def test_a_subclass_with_its_own_state_methods_has_the_content_of_its_base(kind: type) -> None:
    def lie(*_: object) -> Any:
        return iter(())

    names = ("__repr__", "__str__", "__iter__", "items", "keys", "values", "__len__", "__getitem__", "__eq__", "__reduce__",
             "__call__")
    derived = types.new_class("Derived", (kind,), {}, lambda space: space.update(
        {**dict.fromkeys(names, lie), "__hash__": lambda self: 1}))
    same, other, again = _made(derived, True), _made(derived, False), _made(derived, True)
    assert state(same) == state(again)
    assert state(same) != state(other)


@pytest.mark.parametrize("kind", [*DERIVED, object], ids=lambda kind: kind.__name__)
def test_attributes_and_slots_of_a_subclass_count(kind: type) -> None:
    derived = types.new_class("Derived", (kind,))
    one, other = _made(derived, True), _made(derived, True)
    assert state(one) == state(other)
    one.scale = 1
    assert state(one) != state(other)
    other.scale = 1
    assert state(one) == state(other)
    if kind.__itemsize__ == 0 and kind is not property:  # its docstring cannot be set
        slotted = types.new_class("Slotted", (kind,), {}, lambda space: space.update(__slots__=("scale",)))
        one, other = _made(slotted, True), _made(slotted, True)
        one.scale, other.scale = 1, 2
        assert state(one) != state(other)


class Held:
    """Has slots, one of them private, and a base with one of the same name."""

    __slots__ = ("__private", "same")

    def put(self, value: int) -> None:
        self.__private = value


class Deeper(Held):
    """See above."""

    __slots__ = ("__dict__", "same")


def test_attributes_are_read_past_overridden_access() -> None:
    value = Deeper()
    value.put(3)
    value.same = 4
    Held.same.__set__(value, 5)  # type: ignore[attr-defined]
    value.other = 6
    assert sorted(attributes_of(value)) == [("_Held__private", 3), ("other", 6), ("same", 4), ("same", 5)]

    class Says:
        @property
        def __dict__(self) -> Any:
            return {}

    with pytest.raises(TypeError, match="Says"):
        list(attributes_of(Says()))


HIDDEN: dict[str, Callable[[], Any]] = {
    "bytearray": lambda: bytearray(b"1"), "memoryview": lambda: memoryview(b"1"), "array": lambda: array.array("b"),
    "iterator": lambda: iter([1]), "generator": lambda: (one for one in [1]), "zip": zip, "map": lambda: map(int, []),
    "count": itertools.count, "values": lambda: {}.values(), "lock": threading.Lock, "local": threading.local,
    "random": random.Random, "ctypes": lambda: ctypes.c_int(1), "file": lambda: open(__file__),  # noqa: SIM115, PTH123
    "random of numpy": lambda: np.random.default_rng(0), "exception": lambda: ValueError(1),
    "proxy": lambda: weakref.proxy(_first),
    "ufunc of a function": lambda: np.frompyfunc(_first, 0, 1), "frame": lambda: __import__("sys")._getframe(),
    "subclass of random": lambda: types.new_class("Derived", (random.Random,))(),
    "subclass of bytearray": lambda: types.new_class("Derived", (bytearray,))(),
    "set of objects": lambda: {object()},
}


@pytest.mark.parametrize("what", HIDDEN)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_object_with_hidden_fields_has_no_state(what: str) -> None:
    with pytest.raises(TypeError, match="it reads"):
        state([HIDDEN[what]()])


def test_hidden_fields() -> None:
    class Plain: ...

    class Slotted:
        __slots__ = ("a", "b")

    class Both(Slotted):
        __slots__ = ("__dict__", "__weakref__", "c")

    for kind in (object, Plain, Slotted, Both, types.SimpleNamespace, type("Sub", (int,), {}), type("Sub", (Plain, dict), {})):
        assert not has_hidden_fields(kind)
    for kind in (random.Random.__base__, threading.local, itertools.count, BaseException, bytearray):
        assert kind is not None
        assert has_hidden_fields(kind)


def test_the_tables_know_each_type_once() -> None:
    assert not LEAVES & STATES.keys()
    assert not LEAVES & {bool, float}


def test_sets_are_identified_by_their_elements_alone() -> None:
    many = [str(number) for number in range(100)]
    backwards: set[str] = set()
    for one in many[::-1]:
        backwards.add(one)
    assert state(set(many)) == state(backwards)
    assert state({1, "a", None, (1, "b"), frozenset({2})}) == state({frozenset({2}), (1, "b"), None, "a", 1})
    assert state({1}) != state({"1"})
    assert state({1}) != state(frozenset({1}))
    assert state({(1, 2)}) != state({(1, 3)})
