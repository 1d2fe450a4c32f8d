"""Arguments of a call: binding, allocation, errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.errors import Location
from tilelang_npu.frontend.parameters import Parameter
from tilelang_npu.ops import DType
from tilelang_npu.runtime.arguments import binding
from tilelang_npu.runtime.arguments.binding import Signature, positions_of
from tilelang_npu.runtime.settings.log import TileWarning
from tilelang_npu.traced.symbols import Sym, smaller

M, N = Sym("M"), Sym("N")


def parameter(name: str, dtype: str, shape: tuple[Any, ...] | None) -> Any:
    return Parameter(name, "scalar" if shape is None else "tensor", DType(dtype), shape, Location("kernel.py", ord(name[0])))


def signature(
    *parameters: Any, out: tuple[int, ...] = (), work: tuple[int, ...] = (), symbols: tuple[str, ...] = ()
) -> Signature:
    return Signature("kernel", parameters, symbols, out, work, frozenset(out))


def refused(made: Signature, *arguments: Any) -> TileError:
    with pytest.raises(TileError) as caught:
        made.bind(arguments)
    return caught.value


def test_arrays_are_bound_not_copied() -> None:
    a = np.zeros((4, 8), np.float32)
    call = signature(parameter("A", "float32", (4, 8))).bind([a])
    assert call.values[0] is a


def test_the_place_of_a_call_is_looked_for_where_something_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[None] = []
    monkeypatch.setattr(binding, "user_location", lambda: looked.append(None))
    made = signature(parameter("A", "float32", (M, 8)), parameter("n", "int32", None), symbols=("M",))
    made.bind([np.zeros((4, 8), np.float32), 3])
    assert not looked
    refused(made, np.zeros((4, 8), np.float16), 3)
    assert looked


def test_outputs_and_workspaces_are_allocated_and_poisoned() -> None:
    made = signature(parameter("A", "float16", (4,)), parameter("W", "int32", (2, 2)), parameter("B", "bfloat16", (3,)),
                     out=(2,), work=(1,))
    call = made.bind([np.zeros(4, np.float16)])
    assert call.values[2].dtype == ml_dtypes.bfloat16
    assert np.isnan(call.values[2].astype(np.float32)).all()
    assert call.values[1].shape == (2, 2)
    assert (call.values[1].view(np.uint8) == 0xA5).all()


def test_symbolic_dimensions_come_from_the_arrays() -> None:
    a, b = parameter("A", "float32", (M, 4)), parameter("B", "float32", (M * 2, N))
    made = signature(a, b, parameter("C", "float32", (N, M // 2)), symbols=("M", "N"), out=(2,))
    call = made.bind([np.zeros((6, 4), np.float32), np.zeros((12, 5), np.float32)])
    assert call.symbols == {"M": 6, "N": 5}
    assert call.values[2].shape == (5, 3)


def test_a_symbol_that_two_arrays_disagree_on_names_both() -> None:
    made = signature(parameter("A", "float32", (M, 4)), parameter("B", "float32", (4, M)), symbols=("M",))
    error = refused(made, np.zeros((6, 4), np.float32), np.zeros((4, 7), np.float32))
    assert error.code == "T403"
    assert error.message == "M is 6 according to dimension 0 of A, and 7 according to dimension 1 of B"
    assert error.location == Location("kernel.py", ord("B"))


def test_an_expression_is_checked_against_the_symbol() -> None:
    made = signature(parameter("A", "float32", (M,)), parameter("B", "float32", (M * 2,)), symbols=("M",))
    error = refused(made, np.zeros(3, np.float32), np.zeros(7, np.float32))
    assert error.code == "T403"
    assert "M * 2 = 6" in error.message
    assert "[7]" in error.message


@pytest.mark.parametrize("size", [M // 2, M * M, M % 4 + 8, smaller(M, 16), M * N])
def test_a_symbol_that_no_array_determines(size: Sym) -> None:
    made = signature(parameter("A", "float32", (size,)), symbols=("M",))
    error = refused(made, np.zeros(4, np.float32))
    assert (error.code, error.message) == ("T403", "no array of the call determines M")


@pytest.mark.parametrize(("shape", "given", "symbols"), [
    (((M + 1,),), ((9,),), {"M": 8}),  # offsets of M rows
    (((M * 2,),), ((8,),), {"M": 4}),
    (((3 * M - 2, 4),), ((10, 4),), {"M": 4}),
    (((20 - M,),), ((8,),), {"M": 12}),
    ((((M + 1) * N,), (N,)), ((20,), (4,)), {"M": 4, "N": 4}),  # N is known only after the product that contains it
    (((N + M,), (M + 1,)), ((20,), (4,)), {"M": 3, "N": 17}),
    (((N * (M // 2) + 1,), (M,)), ((13,), (5,)), {"M": 5, "N": 6}),
    ((((8 * M + 7) // 4,),), ((7,),), {"M": 3}),  # a whole number of times whatever M is
    (((M + 1,), (M * 2,), (M,)), ((4,), (6,), (3,)), {"M": 3}),
])
def test_a_symbol_that_occurs_only_in_sums_is_solved(shape: Any, given: Any, symbols: dict[str, int]) -> None:
    made = signature(*(parameter(chr(65 + number), "float32", sizes) for number, sizes in enumerate(shape)),
                     symbols=tuple(symbols))
    assert made.bind([np.zeros(sizes, np.float32) for sizes in given]).symbols == symbols


def test_every_sum_is_the_one_that_a_search_finds() -> None:
    """Random sizes a * M + b * N + c, and products: the solution is the original one, or there is an error."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        m, n = (int(value) for value in rng.integers(1, 40, 2))
        a, b, c = (int(value) for value in rng.integers(1, 6, 3))
        one, two = a * M + b * N + c, (M + c) * b
        given = [np.zeros(size.evaluate({"M": m, "N": n}) + int(rng.integers(0, 2)), np.float32) for size in (one, two)]
        made = signature(parameter("A", "float32", (one,)), parameter("B", "float32", (two,)), symbols=("M", "N"))
        fitting = [(x, y) for x in range(60) if (x + c) * b == given[1].size
                   for y in range(400) if a * x + b * y + c == given[0].size]
        if fitting:
            assert made.bind(given).symbols == dict(zip("MN", fitting[0], strict=True))
        else:
            assert refused(made, *given).code == "T403"


@pytest.mark.parametrize(("shape", "given", "message", "help"), [
    (((M * 2,),), ((7,),), "dimension 0 of A is M * 2; the array's size there is 7, which no value of M gives",
     "pass an array with size 2, 4, 6, ... there"),
    (((M + 4,),), ((3,),), "dimension 0 of A is M + 4; the array's size there is 3, which no value of M gives",
     "pass an array with size 4, 5, 6, ... there"),
    (((N,), (2, M * N)), ((3,), (2, 7)),
     "dimension 1 of B is M * N with N = 3; the array's size there is 7, which no value of M gives",
     "pass an array with size 3, 6, 9, ... there"),
    (((M + 1,), (M * 2,)), ((4,), (7,)), "B has shape [M * 2 = 6]; the array has [7]",
     "pass an array of the declared shape, or make the kernel for the shape of the array"),
])
def test_a_sum_that_no_number_gives_is_refused_with_the_sizes(shape: Any, given: Any, message: str, help: str) -> None:  # noqa: A002
    made = signature(*(parameter(chr(65 + number), "float32", sizes) for number, sizes in enumerate(shape)),
                     symbols=("M", "N") if "N" in str(shape) else ("M",))
    error = refused(made, *(np.zeros(sizes, np.float32) for sizes in given))
    assert (error.code, error.message, error.help) == ("T403", message, help)


def test_a_flattened_array_of_the_same_size_is_seen_in_the_declared_shape() -> None:
    a = np.arange(12, dtype=np.float32)
    value = signature(parameter("A", "float32", (3, 4))).bind([a]).values[0]
    assert value.shape == (3, 4)
    assert np.shares_memory(value, a)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "int64", "bool"])
@pytest.mark.parametrize(("declared", "given"), [
    ((3, 4), (4, 3)), ((3, 4), (2, 6)), ((3, 4), (12, 1)), ((2, 3, 5), (5, 6, 1)), ((7, 3, 2), (1, 21, 2))])
def test_an_array_of_as_many_elements_is_seen_in_the_declared_shape(
        declared: tuple[Any, ...], given: tuple[int, ...], kind: str, flat: bool) -> None:
    made = replace(signature(parameter("A", kind, declared)), flat=flat)
    array = np.arange(np.prod(given)).reshape(given).astype(made.parameters[0].dtype.numpy)
    with pytest.warns(TileWarning, match=r"T403: A has shape \[.*\]; the array has \[.*the kernel views the array") as reported:
        value = made.bind([array]).values[0]
    swapped = given == declared[::-1] and len(given) == 2
    assert ("it does not exchange rows and columns" in str(reported[0].message)) == swapped
    assert value.shape == declared
    assert np.shares_memory(value, array)
    np.testing.assert_array_equal(value.reshape(-1), array.reshape(-1))


@pytest.mark.parametrize(("first", "second"), [((6, 4), (4, 6)), ((6, 4), (8, 3)), ((5, 3), (3, 5)), ((4, 6), (24, 1))])
def test_an_array_of_as_many_elements_may_exchange_symbolic_sizes(first: tuple[int, int], second: tuple[int, int]) -> None:
    made = signature(parameter("A", "float32", (M, N)), parameter("B", "float32", (M, N)), symbols=("M", "N"))
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in (first, second)]
    with pytest.warns(TileWarning, match=r"T403: B has shape \[M = \d, N = \d\]"):
        call = made.bind(arrays)
    assert call.symbols == {"M": first[0], "N": first[1]}
    np.testing.assert_array_equal(call.values[1], arrays[1].reshape(first))


@pytest.mark.parametrize("shape", [(4, 4), (12, 1, 2), (13,), (0,), (3, 3), (0, 4)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    error = refused(signature(parameter("A", "float32", (3, 4))), np.zeros(shape, np.float32))
    assert error.code == "T403"
    assert error.location == Location("kernel.py", ord("A"))


@pytest.mark.parametrize(("shape", "seen"), [((5, 4), (3, 4)), ((2, 4), (8,))])
def test_a_flat_kernel_sees_memory_of_another_size_with_a_warning(shape: tuple[int, ...], seen: tuple[int, ...]) -> None:
    made = replace(signature(parameter("A", "float32", (3, 4))), flat=True)
    array = np.zeros(shape, np.float32)
    with pytest.warns(TileWarning, match=r"T403: A has shape \[3, 4\]; the array has"):
        value = made.bind([array]).values[0]
    assert value.shape == seen
    assert np.shares_memory(value, array)


def test_the_caller_may_bring_the_memory_of_the_outputs() -> None:
    a, b, w = parameter("A", "float32", (3,)), parameter("B", "float32", (3,)), parameter("W", "int8", (1,))
    made = signature(a, b, w, out=(1,), work=(2,))
    given = [np.zeros(3, np.float32), np.zeros(3, np.float32)]
    values = made.bind(given).values
    assert values[1] is given[1]
    assert values[2].shape == (1,)


def test_the_number_of_arguments_lists_what_the_call_allocates() -> None:
    a, b, w = parameter("A", "float32", (3,)), parameter("B", "float32", (3,)), parameter("W", "int8", (1,))
    made = signature(a, b, w, out=(1,), work=(2,))
    error = refused(made)
    assert error.code == "T401"
    assert error.message == "kernel takes 1 argument (A) and got 0"
    assert error.notes == ("B: allocated and returned by the call (out_idx), not passed",
                           "W: allocated by the call (workspace_idx, T.alloc_global), not passed")
    assert error.location is not None
    assert error.location.file == __file__


@pytest.mark.parametrize(
    ("dtype", "given"), [("float16", np.float32), ("bfloat16", np.float16), ("int8", np.uint8), ("bool", np.int8)]
)
def test_other_element_types_are_refused(dtype: str, given: Any) -> None:
    error = refused(signature(parameter("A", dtype, (3,))), np.zeros(3, given))
    assert error.code == "T402"
    assert "A.astype(" in error.help


def test_bytes_in_foreign_order_are_another_type() -> None:
    assert refused(signature(parameter("A", "float32", (3,))), np.zeros(3, ">f4")).code == "T402"


def test_gaps_are_refused_and_the_help_warns_of_the_copy() -> None:
    made = Signature("kernel", (parameter("A", "float32", (3, 2)),), (), (), (), frozenset({0}))
    error = refused(made, np.zeros((3, 4), np.float32)[:, ::2])
    assert error.code == "T404"
    assert "strides [4, 2]" in error.message
    assert "read the result from it" in error.help


def test_a_result_in_read_only_memory_is_refused() -> None:
    made = Signature("kernel", (parameter("A", "float32", (3,)), parameter("B", "float32", (3,))), (), (), (), frozenset({1}))
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    made.bind([frozen, np.zeros(3, np.float32)])
    error = refused(made, frozen, frozen)
    assert error.code == "T404"
    assert error.message == "the kernel writes B, and the array is read-only"


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int32", 7), ("int32", np.int64(7)), ("float32", 1.5), ("float32", 2), ("float16", np.float32(0.5)), ("bool", True)],
)
def test_numbers(dtype: str, value: Any) -> None:
    bound = signature(parameter("n", dtype, None)).bind([value]).values[0]
    assert bound == value
    assert bound.dtype == DType(dtype).numpy


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int32", 1.0), ("int32", True), ("int8", 200), ("uint8", -1), ("float32", "1"), ("bool", 1),
     ("int32", np.zeros(3, np.int32)), ("int32", None)],
)
def test_what_is_no_such_number_is_refused(dtype: str, value: Any) -> None:
    assert refused(signature(parameter("n", dtype, None)), value).code == "T405"


@pytest.mark.parametrize("value", [[1.0, 2.0], 3.0, None, "A"])
def test_what_is_no_array_is_refused(value: Any) -> None:
    error = refused(signature(parameter("A", "float32", (2,))), value)
    assert error.code == "T405"
    assert "A must be an array of float32" in error.message


def test_two_parameters_may_be_one_array() -> None:
    a = np.zeros(3, np.float32)
    values = signature(parameter("A", "float32", (3,)), parameter("B", "float32", (3,))).bind([a, a]).values
    assert values[0] is values[1]


@pytest.mark.parametrize(
    ("given", "expected"), [(None, ()), (-1, (2,)), ([0, -1], (0, 2)), ([], ()), ((1,), (1,))]
)
def test_indices(given: Any, expected: tuple[int, ...]) -> None:
    assert positions_of(given, 3, "out_idx", None) == expected


@pytest.mark.parametrize("given", [3, [-4], [0, -3], ["0"]])
def test_bad_indices(given: Any) -> None:
    with pytest.raises(TileError) as caught:
        positions_of(given, 3, "out_idx", None)
    assert caught.value.code == "T709"


def named_kernel(**settings: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), factor: T.float32, B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64,), "float32")
            T.copy(A, a)
            for i in T.Parallel(64):
                a[i] = a[i] * factor
            T.copy(a, B)

    return tilelang.compile(main, target="npuir", **settings)


def test_arguments_may_be_named_by_their_parameters() -> None:
    kernel = named_kernel(out_idx=[-1])
    ones = np.ones(64, np.float32)
    for result in (kernel(A=ones, factor=3.0), kernel(ones, factor=3.0), kernel(factor=3.0, A=ones),
                   kernel(ones, 3.0, stream=None)):
        assert (result == 3).all()
    mine = np.zeros(64, np.float32)
    assert (kernel(ones, factor=2.0, B=mine) == 2).all()
    assert (mine == 2).all()
    plain = named_kernel()
    plain(ones, B=mine, factor=5.0)
    assert (mine == 5).all()
    assert plain.trace(A=ones, factor=1.0, B=mine).cycles == plain.profile(ones, B=mine, factor=1.0).cycles


@pytest.mark.parametrize(("args", "named", "message", "help_"), [
    ((), {"A": 1, "faktor": 2.0}, "main has no parameter faktor", "did you mean factor?"),
    ((1,), {"A": 1, "factor": 2.0}, "main got A twice, by position and by name", "pass A only once"),
    ((), {"A": 1}, "main is called without factor", "call it with A, factor"),
    ((1, 2.0, 3), {"factor": 2.0}, "main got factor twice, by position and by name", "pass factor only once"),
    ((), {"P": 1, "A": 1, "factor": 2.0}, "main has no parameter P", "its parameters are A, factor"),
])
def test_names_that_do_not_fit_are_refused(args: tuple[Any, ...], named: dict[str, Any], message: str, help_: str) -> None:
    with pytest.raises(TileError) as caught:
        named_kernel(out_idx=[-1])(*args, **named)
    assert (caught.value.code, caught.value.message, caught.value.help) == ("T401", message, help_)


def test_a_workspace_cannot_be_named() -> None:
    with pytest.raises(TileError) as caught:
        named_kernel(workspace_idx=[-1])(A=1, factor=2.0, B=3)
    assert caught.value.message == "main got B, whose array the call allocates"


def test_a_masked_array_is_refused_with_what_to_do() -> None:
    masked = np.ma.masked_array(np.ones(64, np.float32), mask=np.arange(64) > 5)
    with pytest.raises(TileError) as caught:
        named_kernel(out_idx=[-1])(masked, 2.0)
    assert (caught.value.code, caught.value.message) == ("T405", "A is a masked array, and kernels ignore masks")
    assert "A.filled()" in caught.value.help
    assert (named_kernel(out_idx=[-1])(masked.filled(0), 2.0)[:6] == 2).all()


def _scaled(scale: bool):
    rows, pitch = T.dynamic("rows"), T.dynamic("pitch")

    @T.prim_func
    def main(X: T.Tensor((rows, 64), "float32"), S: T.StridedTensor((rows, 4), (pitch, 1), "float32"),
             Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(T.ceildiv(rows, 8)) as block:
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X[block * 8, 0], x)
            if scale:
                s = T.alloc_shared((8, 4), "float32")
                T.copy(S[block * 8, 0], s)
                for i, j in T.Parallel(8, 64):
                    x[i, j] *= s[i, 1]
            T.copy(x, Y[block * 8, 0])

    return main


@pytest.mark.parametrize("interpreted", [False, True])
def test_none_for_a_tensor_that_the_kernel_does_not_use(interpreted: bool) -> None:
    """The distance of its rows is then a number that no array determines, and nothing depends on it."""
    kernel, scaled = (tilelang.compile(_scaled(scale), target="npuir") for scale in (False, True))
    x, y = np.arange(13 * 64, dtype=np.float32).reshape(13, 64), np.zeros((13, 64), np.float32)
    (kernel.interpret if interpreted else kernel)(x, None, y)
    np.testing.assert_array_equal(y, x)
    s = np.arange(13 * 9, dtype=np.float32).reshape(13, 9)[:, :4]
    (scaled.interpret if interpreted else scaled)(x, s, y)
    np.testing.assert_array_equal(y, x * s[:, 1:2])
    message = "the kernel uses S, for which the call passes None" if interpreted else "S must be an array of float32; got None"
    with pytest.raises(TileError, match=f"T405.*{message}"):
        (scaled.interpret if interpreted else scaled)(x, None, y)


def test_a_size_that_only_an_absent_tensor_has_must_not_be_needed() -> None:
    """``columns`` is a size of S alone; ``rows`` of Y too, which the call allocates, so it has no value without S."""
    rows, columns = T.dynamic("rows"), T.dynamic("columns")

    @T.prim_func
    def main(S: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(1):
            y = T.alloc_shared((8, 64), "float32")
            T.clear(y)
            T.copy(y, Y[0, 0])

    kernel = tilelang.compile(main, target="npuir", out_idx=[1])
    assert kernel(np.zeros((8, 3), np.float32)).shape == (8, 64)
    with pytest.raises(TileError, match=r"T403.*no array of the call determines rows"):
        kernel(None)
