"""A factory's kernels follow the globals, closure variables, macros and functions that its code reads."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import operator
import random
import sys
import textwrap
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.cache.captures import Reader, reader_of

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


def captured(function: Any) -> object:
    return reader_of(function).state_of_function(function)


def arguments(function: Any, args: Any, kwargs: Any) -> object:
    return reader_of(function).state_of_arguments(function, args, kwargs)


def state(value: object) -> object:
    return Reader("").state_of(value)


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
    """For each factory, a change of the value that it reads, and the kernel's result for an input of ones."""
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


def test_an_object_that_cannot_be_compared_is_no_key() -> None:
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
    assert state(1) == state(1)
    different = [1, np.int64(1), np.int32(1), np.float32(1),
                 1.0, True, -0.0, 0.0, "1", (1,), [1], {"a": 1}, {1}, np.ones(1), np.ones(2), np.ones(1, np.float32), None]
    assert len({state(value) for value in different}) == len(different)
    for value in different:
        assert state(value) == state(value)
    circle: list[Any] = [1]
    circle.append(circle)
    assert state(circle) == state(circle)
    assert state(float("nan")) == state(float("nan"))


def test_equal_arguments_by_position_and_by_name_are_different_keys() -> None:
    def function(a: int, b: int = 2) -> None: ...

    assert arguments(function, (1,), {}) == arguments(function, (1,), {})
    assert arguments(function, (1,), {}) != arguments(function, (), {"a": 1})
    assert arguments(function, (1,), {}) != arguments(function, (2,), {})


# -- reads of arguments ------------------------------------------------------------------------------------------------


class Layer:
    """Has a value in several ways, and weights that no factory reads."""

    __slots__ = ("__dict__", "__hidden", "scale")
    of_class = 1.0

    def __init__(self, scale: float) -> None:
        self.scale = self.__hidden = self.held = scale
        self.weights = np.zeros(8)

    @property
    def doubled(self) -> float:
        return self.held * 2

    def tripled(self) -> float:
        return self.added(self.held)

    def added(self, number: float) -> float:
        return self.held * 2 + number

    def hidden(self) -> float:
        return self.__hidden

    def hide(self, scale: float) -> None:
        self.__hidden = scale

    def everything(self) -> float:
        return len(vars(self)) * self.held


READ = {
    "a slot": (lambda layer: layer.scale, lambda layer: setattr(layer, "scale", 5.0)),
    "an attribute": (lambda layer: layer.held, lambda layer: setattr(layer, "held", 5.0)),
    "a property": (lambda layer: layer.doubled, lambda layer: setattr(layer, "held", 5.0)),
    "a method of a method": (lambda layer: layer.tripled(), lambda layer: setattr(layer, "held", 5.0)),
    "a private slot": (lambda layer: layer.hidden(), lambda layer: layer.hide(5.0)),
    "an attribute of the class": (lambda layer: layer.of_class, lambda layer: setattr(Layer, "of_class", 5.0)),
    "an attribute that is added": (lambda layer: layer.of_class, lambda layer: setattr(layer, "of_class", 5.0)),
}


@pytest.mark.parametrize("what", READ)
def test_what_a_factory_reads_of_an_object_counts_and_nothing_else(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, change = READ[what]
    monkeypatch.setattr(Layer, "of_class", 1.0)
    layer = Layer(2.0)
    before = arguments(read, (layer,), {})
    layer.weights[0] += 1
    layer.unread = 1  # type: ignore[attr-defined]
    assert arguments(read, (layer,), {}) == before
    change(layer)
    assert arguments(read, (layer,), {}) != before


def test_a_method_that_reads_all_of_an_object_makes_all_of_it_count() -> None:
    def read(layer: Any) -> Any:
        return layer.everything()

    with pytest.raises(TypeError, match="it uses vars"):
        arguments(read, (Layer(1.0),), {})


MODE_A, MODE_B = object(), object()


def test_an_argument_that_is_a_global_is_another_one_than_that_which_is_not() -> None:
    def factory(mode: object) -> Any:
        factor = 2.0 if mode is MODE_A else 3.0

        @T.prim_func
        def main(B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=128):
                b = T.alloc_shared((64,), "float32")
                T.fill(b, factor)
                T.copy(b, B)

        return main

    made = tilelang.jit(factory, target="npuir", out_idx=[-1])
    assert [made(mode)()[0] for mode in (MODE_A, MODE_B, MODE_A)] == [2, 3, 2]
    assert made(MODE_A) is made(MODE_A)


SIZE = 64


def test_annotations_in_the_body_of_a_function_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python does not evaluate them, and so no instruction reads their names."""

    @tilelang.jit(target="npuir")
    def doubled(A, B):  # type: ignore[no-untyped-def]
        A: T.Tensor((SIZE,), "float32")  # type: ignore[valid-type]
        B: T.Tensor((SIZE,), "float32")  # type: ignore[valid-type]
        with T.Kernel(1, is_npu=True) as (_, half):
            a = T.alloc_shared((32,), "float32")
            T.copy(A[0], a)
            T.vadd(a, a, a)
            T.copy(a, B[0])

    arrays = np.ones(64, np.float32), np.zeros(64, np.float32)
    first = doubled.compile(*arrays)
    assert doubled.compile(*arrays) is first
    monkeypatch.setattr(sys.modules[__name__], "SIZE", 32)
    assert doubled.compile(*arrays) is not first
    assert doubled.compile(*arrays).params[0].shape == (32,)


# -- changes after which a kernel is still found -----------------------------------------------------------------------


def test_other_effects_of_code_do_not_matter() -> None:
    """Messages, lists that it only adds to, and names that this package loads when they are asked for."""
    import logging

    logger, seen, report = logging.getLogger("captures"), [], {}  # type: ignore[var-annotated]

    def factory(rows: int) -> Any:
        logger.info("%s rows", rows)
        print(rows, file=sys.stderr)
        seen.append(rows)
        report.update(rows=rows)

        @T.prim_func
        def main(B: T.Tensor((rows,), "float32")):
            with T.Kernel(1, threads=128):
                b = T.alloc_shared((rows,), "float32")
                T.clear(b)
                T.copy(b, B)

        return main

    made = tilelang.jit(factory, target="npuir", out_idx=[-1])
    assert made(64) is made(64)
    assert seen == [64]


def test_a_chip_counts_by_what_it_is() -> None:
    from tilelang_npu.target import chip

    first, second = chip("910B2"), chip("910B1")
    assert state(first) == state(first)
    assert state(first) != state(second)


def test_a_kernel_without_a_key_is_traced_again(caplog: pytest.LogCaptureFixture) -> None:
    def factory() -> Any:
        import time

        factor = 1.0 + 0 * time.time()

        @T.prim_func
        def main(B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=128):
                b = T.alloc_shared((64,), "float32")
                T.fill(b, factor)
                T.copy(b, B)

        return main

    made = tilelang.jit(factory, target="npuir", out_idx=[-1])
    with caplog.at_level("DEBUG", "tilelang_npu"):
        assert made() is not made()
    assert "factory is traced in each call: it imports time" in caplog.text


# -- values in values --------------------------------------------------------------------------------------------------


def _instance(**names: Any) -> Any:
    made = type("Made", (), {})()
    vars(made).update(names)
    return made


def _attributed(kind: type, *given: Any) -> Callable[[Any], Any]:
    def make(value: Any) -> Any:
        made = type("Made", (kind,), {})(*given)
        made.held = value
        return made

    return make


def _closed(value: Any) -> Any:
    return lambda: value


def _defaulted(value: Any) -> Any:
    def function(held: Any = value) -> Any:
        return held

    return function


def _marked(value: Any) -> Any:
    def function() -> None: ...

    function.held = value  # type: ignore[attr-defined]
    return function


def _wrapped(value: Any) -> Any:
    @contextlib.contextmanager
    def function() -> Any:
        yield value

    return function


def _dispatched(value: Any) -> Any:
    function = functools.singledispatch(lambda _: 1)
    function.register(int)(_closed(value))
    return function


def _in_array(value: Any) -> Any:
    made = np.empty(1, dtype=object)
    made[0] = value
    return made


HOLDERS: list[Callable[[Any], Any]] = [
    lambda value: [value], lambda value: (value, 1), lambda value: {"a": value},
    lambda value: types.MappingProxyType({"a": value}),
    lambda value: collections.OrderedDict(a=value), lambda value: collections.defaultdict(_closed(value)),
    lambda value: collections.deque([value]), lambda value: collections.ChainMap({}, {1: value}),
    lambda value: collections.UserList([value]), lambda value: collections.namedtuple("Made", "held")(value),
    lambda value: _instance(held=value), lambda value: type("Made", (), {"held": value}),
    lambda value: type("Made", (), {"__slots__": ("held",), "__init__": lambda self: setattr(self, "held", value)})(),
    lambda value: type("Made", (), {"held": property(_closed(value))})(),
    lambda value: type("Meta", (type,), {"held": value})("Made", (), {}),
    lambda value: type("Made", (type("Base", (), {"held": value}),), {}), lambda value: types.SimpleNamespace(held=value),
    *(_attributed(kind) for kind in (dict, list, set, tuple, str, int, float, complex, bytes, collections.deque)),
    lambda value: enum.Enum("Made", {"A": (value, 1)}), lambda value: enum.Enum("Made", {"A": (value, 1)})["A"],
    lambda value: dataclasses.make_dataclass("Made", [("held", object)])(value),
    lambda value: dataclasses.make_dataclass("Made", [("held", object, dataclasses.field(default_factory=_closed(value)))]),
    lambda value: dataclasses.make_dataclass("Made", [("held", object, dataclasses.field(metadata={"a": value}))]),
    _closed, _defaulted, _marked, _wrapped, _dispatched, _in_array, lambda value: functools.partial(print, value),
    lambda value: functools.partial(print, end=value), lambda value: functools.lru_cache(_closed(value)),
    lambda value: types.MethodType(_closed(1), _instance(held=value)), lambda value: {"a": value}.get,
    lambda value: [value].__getitem__, lambda value: operator.methodcaller("get", value),
    lambda value: staticmethod(_closed(value)), lambda value: functools.cached_property(_closed(value)),
    lambda value: slice(None, value),
]


@pytest.mark.parametrize("seed", range(40))
def test_a_value_counts_however_it_is_held(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        holders = [chance.choice(HOLDERS) for _ in range(chance.randint(1, 5))]

        def made(value: Any, holders: Sequence[Callable[[Any], Any]] = holders) -> Any:
            for holder in holders:
                value = holder(value)
            return value

        first, same, other = state(made(1.0)), state(made(1.0)), state(made(2.0))
        assert first == same
        assert first != other


@pytest.mark.parametrize("place", range(len(HOLDERS)))
def test_a_value_counts_in_each_holder(place: int) -> None:
    holder = HOLDERS[place]
    assert state(holder(1.0)) == state(holder(1.0)) != state(holder(2.0))
    with pytest.raises(TypeError, match="it reads a"):
        state(holder(bytearray(b"1")))


def test_values_of_torch_count_by_their_content() -> None:
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, weight: float) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((2,), weight))

    every: list[Callable[[float], Any]] = [
        lambda value: torch.full((2,), value), lambda value: torch.full((2,), value, dtype=torch.bfloat16),
        lambda value: torch.zeros(1, dtype=torch.int8 if value == 1 else torch.uint8), Model,
        lambda value: torch.int8 if value == 1 else torch.uint8, lambda value: torch.Size([int(value)])]
    for made in every:
        assert state(made(1.0)) == state(made(1.0)) != state(made(2.0))
    marked = torch.zeros(1)
    marked.scale = 1
    assert state(marked) != state(torch.zeros(1))
    with pytest.raises(TypeError, match=r"it reads torch\.rand"):
        captured(lambda: torch.rand(1))
