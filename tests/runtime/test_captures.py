"""A factory's kernels follow the globals, closure variables, macros and functions that its code reads."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.captures import arguments, captured, state

SOURCE = '''
import types
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T
from dataclasses import dataclass

FACTOR = 2.0
TABLE = np.array([1.0, 2.0])
LISTED = [1.0, 5.0]
BY_NAME = {"a": {"b": 4.0}}
SEEN = []

class Config:
    factor = 3.0
    unread = 1

@dataclass
class Settings:
    factor: float = 7.0

settings = Settings()
space = types.SimpleNamespace(inner=Settings(8.0))

def outer():
    return inner()

def inner(default=1.5):
    return FACTOR * default

@T.macro
def add(a, n):
    for i in T.Parallel(n):
        a[i] = a[i] + Config.factor

def kernel_of(read):
    def factory(n: int = 64):
        SEEN.append(n)
        value = float(read())

        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((n,), "float32")
                T.copy(A, a)
                for i in T.Parallel(n):
                    a[i] = a[i] * value
                T.copy(a, B)

        return main

    return tilelang.jit(factory, target="npuir", out_idx=[-1])

def of_global():
    return kernel_of(lambda: FACTOR)

def of_array():
    return kernel_of(lambda: TABLE[1])

def of_list():
    return kernel_of(lambda: LISTED[0])

def of_nested():
    return kernel_of(lambda: BY_NAME["a"]["b"])

def of_class():
    return kernel_of(lambda: Config.factor)

def of_object():
    return kernel_of(lambda: settings.factor)

def of_inner_object():
    return kernel_of(lambda: space.inner.factor)

def of_functions():
    return kernel_of(lambda: outer())

@tilelang.jit(target="npuir", out_idx=[-1])
def of_macro():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64,), "float32")
            T.copy(A, a)
            add(a, 64)
            T.copy(a, B)

    return main

@tilelang.jit(target="npuir", out_idx=[-1])
def of_kernel():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64,), "float32")
            T.copy(A, a)
            for i in T.Parallel(64):
                a[i] = a[i] * FACTOR
            T.copy(a, B)

    return main
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "capturing.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "capturing", raising=False)
    import capturing

    return capturing


def put(owner: Any, name: str, value: Any) -> Any:
    return lambda: setattr(owner, name, value)


def changes(module: Any) -> dict[str, tuple[Any, Any]]:
    """By factory how what it reads is changed, and what the kernel then makes of ones."""
    return {
        "of_global": (put(module, "FACTOR", 9.0), (2, 9)),
        "of_array": (lambda: module.TABLE.__setitem__(1, 9), (2, 9)),
        "of_list": (lambda: module.LISTED.__setitem__(0, 9.0), (1, 9)),
        "of_nested": (lambda: module.BY_NAME["a"].update(b=9.0), (4, 9)),
        "of_class": (put(module.Config, "factor", 9.0), (3, 9)),
        "of_object": (put(module.settings, "factor", 9.0), (7, 9)),
        "of_inner_object": (put(module.space.inner, "factor", 9.0), (8, 9)),
        "of_functions": (put(module, "FACTOR", 6.0), (3, 9)),
        "of_macro": (put(module.Config, "factor", 8.0), (4, 9)),
        "of_kernel": (put(module, "FACTOR", 9.0), (2, 9)),
    }


NAMES = ["of_global", "of_array", "of_list", "of_nested", "of_class", "of_object", "of_inner_object", "of_functions",
         "of_macro", "of_kernel"]


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_global_leads_to_a_new_compilation(module: Any, name: str) -> None:
    change, (before, after) = changes(module)[name]
    factory = getattr(module, name) if name in ("of_macro", "of_kernel") else getattr(module, name)()
    ones = np.ones(64, np.float32)
    first = factory()
    assert (first(ones) == before).all()
    module.Config.unread += 1
    assert factory() is first
    change()
    second = factory()
    assert second is not first
    assert (second(ones) == after).all()
    assert (first(ones) == before).all()
    assert factory() is second


def test_a_function_that_is_defined_anew_leads_to_a_new_compilation(module: Any) -> None:
    factory = module.of_functions()
    first = factory()
    exec(textwrap.dedent("""
        def inner():
            return 5.0
    """), vars(module))
    assert (factory()(np.ones(64, np.float32)) == 5).all()
    assert factory() is not first


def test_an_objects_attributes_count_for_its_methods() -> None:
    class Layer:
        def __init__(self, factor: float) -> None:
            self.factor = factor
            self.calls: list[int] = []
            self.weights = np.zeros(8)

        @tilelang.jit(target="npuir", out_idx=[-1])
        def scaled(self, n: int) -> Any:
            self.calls.append(n)
            factor = self.factor

            @T.prim_func
            def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
                with T.Kernel(1, threads=128):
                    a = T.alloc_shared((n,), "float32")
                    T.copy(A, a)
                    for i in T.Parallel(n):
                        a[i] = a[i] * factor
                    T.copy(a, B)

            return main

    ones = np.ones(64, np.float32)
    layer, other = Layer(2.0), Layer(5.0)
    first = layer.scaled(64)
    layer.weights[0] = 1  # which the method does not read
    assert layer.scaled(64) is first
    assert (first(ones) == 2).all()
    assert (other.scaled(64)(ones) == 5).all()
    layer.factor = 3.0
    assert (layer.scaled(64)(ones) == 3).all()
    assert set(layer.calls) == {64}


def test_what_nobody_can_compare_is_no_key() -> None:
    class Opaque:
        __slots__ = ()

    def reads() -> Any:
        return HOLDER

    global HOLDER
    HOLDER = bytearray(b"1")  # a library's, and it changes without a sign
    with pytest.raises(TypeError):
        captured(reads)
    HOLDER = Opaque()
    assert captured(reads) == captured(reads)


HOLDER: Any = None


def test_values_count_by_what_they_are() -> None:
    assert state(1) == state(np.int64(1)) == state(1)
    different = [1, 1.0, True, -0.0, 0.0, "1", (1,), [1], {"a": 1}, {1}, np.ones(1), np.ones(2), np.ones(1, np.float32), None]
    assert len({state(value) for value in different}) == len(different)
    for value in different:
        assert state(value) == state(value)
    circle: list[Any] = [1]
    circle.append(circle)
    assert state(circle) == state(circle)
    assert state(float("nan")) == state(float("nan"))


def test_equal_arguments_by_place_and_by_name_are_told_apart_as_before() -> None:
    def function(a: int, b: int = 2) -> None: ...

    assert arguments(function, (1,), {}) == arguments(function, (1,), {})
    assert arguments(function, (1,), {}) != arguments(function, (), {"a": 1})
    assert arguments(function, (1,), {}) != arguments(function, (2,), {})
