"""Every mode of ``T.reduce`` and its named forms against NumPy, along each axis and with old values combined in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

MODES: dict[str, Any] = {
    "sum": np.add.reduce, "prod": np.multiply.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce,
    "any": lambda x, **how: np.logical_or.reduce(x != 0, **how), "all": lambda x, **how: np.logical_and.reduce(x != 0, **how),
    "xori": np.bitwise_xor.reduce, "ori": np.bitwise_or.reduce, "andi": np.bitwise_and.reduce,
}
COMBINED: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.maximum,
                            "all": np.minimum, "xori": np.bitwise_xor, "ori": np.bitwise_or, "andi": np.bitwise_and}
NAMED = {"prod": "reduce_prod", "any": "reduce_any", "all": "reduce_all", "xori": "reduce_bitxor", "ori": "reduce_bitor",
         "andi": "reduce_bitand"}
KINDS = ["float32", "float16", "int32", "int16", "int8", "uint8", "int64"]


def _data(mode: str, kind: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    if mode == "prod":
        return rng.choice([1, -1, 2] if not kind.startswith("u") else [1, 2], (3, 5, 20), p=None).astype(kind)
    low = 0 if kind.startswith("u") else -3
    return rng.integers(low, 4, (3, 5, 20)).astype(kind)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize(("mode", "kind"), [(mode, kind) for mode in MODES for kind in KINDS
                                            if not (mode.endswith("i") and kind.startswith("float"))])
def test_modes(mode: str, kind: str, axis: int, clear: bool, rng: np.random.Generator) -> None:
    if not clear and kind == "uint8" and mode in ("sum", "prod"):
        pytest.skip("refused: the hardware does not add and multiply unsigned numbers")
    shape = tuple(1 if place == axis % 3 else size for place, size in enumerate((3, 5, 20)))

    @T.prim_func
    def main(X: T.Tensor((3, 5, 20), kind), Y: T.Tensor(shape, kind)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((3, 5, 20), kind)
            y = T.alloc_ub(shape, kind)
            T.copy(X, x)
            T.copy(Y, y)
            T.reduce(x, y, axis, mode, clear=clear)
            T.copy(y, Y)

    x, y = _data(mode, kind, rng), rng.integers(0, 3, shape).astype(kind)
    with np.errstate(over="ignore"):
        expected = MODES[mode](x, axis=axis, keepdims=True).astype(kind)
        expected = expected if clear else COMBINED[mode](y, expected).astype(kind)
    tilelang.compile(main, target="npuir")(x, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("mode", "name"), NAMED.items())
def test_named_forms(mode: str, name: str, rng: np.random.Generator) -> None:
    function = getattr(T, name)

    @T.prim_func
    def main(X: T.Tensor((7, 33), "int32"), Y: T.Tensor((7, 1), "int32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((7, 33), "int32")
            y = T.alloc_ub((7, 1), "int32")
            T.copy(X, x)
            function(x, y)
            T.copy(y, Y)

    x = rng.choice([-1, 1, 2], (7, 33)).astype(np.int32)
    x[0] = 0
    y = tilelang.compile(main, out_idx=[-1], target="npuir")(x)
    np.testing.assert_array_equal(y, MODES[mode](x, axis=-1, keepdims=True).astype(np.int32))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("extreme", ["max", "min"])
@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "int16"])
def test_with_index(extreme: str, side: str, axis: int, kind: str, rng: np.random.Generator) -> None:
    shape = (1, 37) if axis == 0 else (6, 1)

    @T.prim_func
    def main(X: T.Tensor((6, 37), kind), V: T.Tensor(shape, kind), I: T.Tensor(shape, "int32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((6, 37), kind)
            values = T.alloc_ub(shape, kind)
            indices = T.alloc_ub(shape, "int32")
            T.copy(X, x)
            T.reduce(x, (values, indices), axis, f"{extreme}_with_index_{side}")
            T.copy(values, V)
            T.copy(indices, I)

    x = rng.integers(-4, 5, (6, 37)).astype(kind)
    values, indices = tilelang.compile(main, out_idx=[-2, -1], target="npuir")(x)
    best = getattr(x, extreme)(axis=axis, keepdims=True)
    np.testing.assert_array_equal(values, best)
    numbers = np.arange(x.shape[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
    if side == "right":
        np.testing.assert_array_equal(indices, np.where(x == best, numbers, -1).max(axis, keepdims=True))
    else:
        np.testing.assert_array_equal(indices, np.where(x == best, numbers, 99).min(axis, keepdims=True))
