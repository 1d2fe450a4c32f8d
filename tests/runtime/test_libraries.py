"""Which modules are libraries, and which of their names give something else from one call to the next."""

from __future__ import annotations

import collections
import dataclasses
import math
import os
import sys

import numpy as np
import pytest

from tilelang_npu.runtime.cache import libraries
from tilelang_npu.runtime.cache.libraries import find_by_name, is_fixed, is_library, may_change, name_of


@pytest.mark.parametrize(("package", "expected"), [
    ("numpy", True), ("math", True), ("_thread", True), ("json", True), ("tilelang_npu", True), ("tilelang", True),
    ("__main__", False), ("captured_values", False), ("nothing_of_this_name", False)])
def test_what_is_installed_is_a_library(package: str, expected: bool) -> None:
    assert is_library(package) == expected


@pytest.mark.parametrize(("module", "name", "expected"), [
    ("random", "random", True), ("time", "time", True), ("os", "environ", True), ("os", "sep", False),
    ("posixpath", "join", False), ("posixpath", "exists", True), ("numpy", "random", True),
    ("numpy.random", "rand", True),
    ("numpy", "sum", False), ("torch", "randn", True), ("torch", "float16", False), ("typing", "get_type_hints", True),
    ("math", "floor", False), ("sys", "argv", True)])
def test_what_changes(module: str, name: str, expected: bool) -> None:
    assert may_change(module, name) == expected


def test_things_are_found_by_their_names() -> None:
    assert find_by_name("math", "floor") is math.floor
    assert find_by_name("collections", "OrderedDict.fromkeys") is vars(collections.OrderedDict).get("fromkeys")
    assert find_by_name("math", "nothing.more") is None
    assert find_by_name("no.such.module", "floor") is None
    assert find_by_name(None, "floor") is None
    assert name_of(np.add) == "numpy.add"
    assert name_of(collections.Counter) == "collections.Counter"


def test_a_class_that_a_library_has_made_is_not_its_own() -> None:
    assert is_fixed(int)
    assert is_fixed(type(None))
    assert is_fixed(collections.UserDict)
    made = dataclasses.make_dataclass("Made", ["a"])
    made.__module__ = "types"
    assert not is_fixed(made)


def test_the_places_of_libraries_exist() -> None:
    assert all(place.exists() for place in libraries._library_places())
    assert os.__name__ in sys.stdlib_module_names
