"""The inferred dialect of a kernel, wherever the operations that determine it are written."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.frontend import trace
from tilelang_npu.frontend.dialects import detect
from tilelang_npu.traced import source as sources

from frontend import macros_elsewhere as elsewhere  # isort: skip
from tilelang_npu.language import Kernel, alloc_ub, copy, tile, vexp  # isort: skip

N = 32


@T.macro
def launches(A: Any, B: Any) -> Any:
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_fragment((N,), "float32")
        T.copy(A, a)
        for i in T.Parallel(N):
            a[i] = a[i] * 2.0
        T.copy(a, B)


@T.macro
def through_another(A: Any, B: Any) -> Any:
    launches(A, B)


@T.macro
def applies(what: Any, A: Any, B: Any) -> Any:
    what(A, B)


@T.macro
def defaults(A: Any, B: Any, what: Any = launches) -> Any:
    what(A, B)


@T.macro(hygienic=False)
def of_the_caller(A: Any, B: Any) -> Any:
    chosen(A, B)


class Bodies:
    launches = launches

    def body(self, A: Any, B: Any) -> Any:
        launches(A, B)


def made(_: int) -> Any:
    return launches


MEMBERS, BY_NAME, HELD = [None, launches], {"body": launches}, SimpleNamespace(body=launches)
BOUND = functools.partial(launches)
ANONYMOUS = lambda A, B: launches(A, B)  # noqa: E731


def kernels() -> dict[str, Any]:
    """Kernels whose ``T.Kernel`` is in a macro, by the way to it."""
    local = launches
    found: dict[str, Any] = {}

    def keep(function: Any) -> Any:
        found[function.__name__] = function
        return function

    @keep
    @T.prim_func
    def macro(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        launches(A, B)

    @keep
    @T.prim_func
    def closure(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        local(A, B)

    @keep
    @T.prim_func
    def macro_in_a_macro(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        through_another(A, B)

    @keep
    @T.prim_func
    def argument_of_a_macro(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        applies(launches, A, B)

    @keep
    @T.prim_func
    def default_of_a_parameter(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        defaults(A, B)

    @keep
    @T.prim_func
    def member_of_a_list(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        MEMBERS[1](A, B)

    @keep
    @T.prim_func
    def member_of_a_dict(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        BY_NAME["body"](A, B)

    @keep
    @T.prim_func
    def attribute_of_an_object(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        HELD.body(A, B)

    @keep
    @T.prim_func
    def attribute_of_a_class(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        Bodies.launches(A, B)

    @keep
    @T.prim_func
    def chosen_by_a_branch(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        body = launches if N > 8 else through_another
        body(A, B)

    @keep
    @T.prim_func
    def returned_by_a_function(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        made(3)(A, B)

    @keep
    @T.prim_func
    def partial_function(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        BOUND(A, B)

    @keep
    @T.prim_func
    def lambda_function(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        ANONYMOUS(A, B)

    @keep
    @T.prim_func
    def attribute_of_a_module(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        elsewhere.doubles(A, B)

    return found


KERNELS = kernels()


@pytest.mark.parametrize("way", sorted(KERNELS))
def test_a_gpu_launch_in_a_macro_is_npuir(way: str) -> None:
    kernel = tilelang.compile(KERNELS[way], out_idx=[1], target="npu")
    assert kernel.dialect == "npuir"
    a = np.arange(N, dtype=np.float32)
    np.testing.assert_array_equal(kernel(a), 2 * a)


def test_a_macro_that_takes_its_names_from_the_caller() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        chosen = launches
        of_the_caller(A, B)

    assert trace(main).dialect == "npuir"


@pytest.mark.parametrize("target", [None, "npu", "auto"])
@pytest.mark.parametrize("n", [16, 40, 64])
@pytest.mark.parametrize("interpreted", [False, True])
def test_a_matrix_kernel_in_a_macro(n: int, target: str | None, interpreted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpreted:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")

    @T.macro
    def body(A: Any, B: Any, C: Any) -> Any:
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((n, n), "float16")
            b = T.alloc_shared((n, n), "float16")
            c = T.alloc_fragment((n, n), "float")
            o = T.alloc_shared((n, n), "float16")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            for i, j in T.Parallel(n, n):
                o[i, j] = T.cast(c[i, j] * 2.0, "float16")
            T.copy(o, C)

    @T.prim_func
    def main(A: T.Tensor((n, n), "float16"), B: T.Tensor((n, n), "float16"), C: T.Tensor((n, n), "float16")):
        body(A, B, C)

    kernel = tilelang.compile(main, out_idx=[2], **({} if target is None else {"target": target}))
    assert kernel.dialect == "npuir"
    a = np.random.default_rng(n).integers(-2, 3, (n, n)).astype(np.float16)
    expected = 2 * (a.astype(np.float32) @ a.astype(np.float32))
    np.testing.assert_array_equal(kernel(a, a), expected.astype(np.float16))


@T.macro
def destination_first(a: Any) -> Any:
    T.tile.add(a, a, 1.0)


@T.macro
def destination_last(a: Any) -> Any:
    T.vadd(a, 1.0, a)


def helper_destination_last(a: Any) -> Any:
    T.vexp(a, a)


def names_taken_from_the_language(a: Any) -> Any:
    vexp(a, a)


def the_namespace_taken_from_the_language(a: Any) -> Any:
    tile.exp(a, a)


class Operations:
    def exponential(self, a: Any) -> Any:
        T.vexp(a, a)


OPERATIONS = Operations()
WAYS: dict[str, tuple[Any, str]] = {
    "macro, destination first": (destination_first, "ascendc"),
    "macro, destination last": (destination_last, "npuir"),
    "helper": (helper_destination_last, "npuir"),
    "imported operation": (names_taken_from_the_language, "npuir"),
    "imported namespace": (the_namespace_taken_from_the_language, "ascendc"),
    "method": (OPERATIONS.exponential, "npuir"),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_operations_in_functions_that_the_kernel_calls(way: str) -> None:
    operation, dialect = WAYS[way]

    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N,), "float32")
            T.copy(A, a)
            operation(a)
            T.copy(a, A)

    assert trace(main).dialect == dialect


def test_a_method_by_its_object() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N,), "float32")
            OPERATIONS.exponential(a)

    assert trace(main).dialect == "npuir"


def test_names_imported_from_the_language_tell_the_form_of_the_launch() -> None:
    @T.prim_func
    def gpu(A: T.Tensor((N,), "float32")):
        with Kernel(1) as block:
            copy(A, alloc_ub((N,), "float32"))

    @T.prim_func
    def npu(A: T.Tensor((N,), "float32")):
        with Kernel(1, is_npu=True) as (cid, vid):
            copy(A, alloc_ub((N,), "float32"))

    assert T.npuir_copy is copy  # an alias that implies npuir has been looked up
    assert trace(gpu).dialect == "npuir"
    assert trace(npu).dialect == "ascendc"


@pytest.mark.parametrize(("options", "dialect"), [
    ({}, "npuir"), ({"is_npu": None}, "npuir"), ({"is_npu": False}, "npuir"), ({"is_npu": True}, "ascendc")])
def test_is_npu_in_keywords_that_are_computed(options: dict[str, Any], dialect: str) -> None:
    form = options.get("is_npu")

    @T.prim_func
    def spread(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, **options):
            T.copy(A, T.alloc_ub((N,), "float32"))

    @T.prim_func
    def named(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=form):
            T.copy(A, T.alloc_ub((N,), "float32"))

    assert trace(spread).dialect == dialect
    assert trace(named).dialect == ("ascendc" if form else "npuir")


def test_attributes_of_the_authors_objects_are_no_operations() -> None:
    config = SimpleNamespace(tile=N, printf=1, vexp=2)

    @T.prim_func
    def neither(A: T.Tensor((N,), "float32")):
        with T.Kernel(config.printf, is_npu=True) as (cid, vid):
            T.copy(A, T.alloc_ub((config.tile * config.vexp // 2,), "float32"))

    @T.prim_func
    def npuir(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((config.tile,), "float32")
            T.vexp(a, a)

    assert trace(neither).dialect == "ascendc"
    assert trace(npuir).dialect == "npuir"


def test_macros_that_call_each_other_are_followed_once() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            elsewhere.endless(A)

    found = sources.find(main.function)
    assert detect(found.node, main.function) == "ascendc"
    with pytest.raises(TileError):
        trace(main)


def test_without_its_function_only_the_definition_is_read() -> None:
    found = sources.find(KERNELS["macro"].function)
    assert detect(found.node) == "ascendc"
    assert detect(found.node, KERNELS["macro"].function) == "npuir"


def vector_function() -> Any:
    @T.prim_func
    def copied(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((64,), "float32")
            b = T.alloc_shared((64,), "float32")
            T.copy(A, a)
            with T.SimdVF():
                T.vmi.vstore(T.vmi.vload(a[0], size=64), b[0])
            T.copy(b, B)

    return copied


@pytest.mark.parametrize("target", ["pto", "tile", "auto", "npu"])
def test_a_kernel_with_a_vector_function_has_waits_by_the_compiler(target: str) -> None:
    """``target="pto"`` requests the dialect in which the author writes the waits, but ``tilelang.ascend`` has none."""
    kernel = tilelang.compile(vector_function(), target=target, chip="950")
    assert kernel.dialect == "npuir"
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(a, b)
