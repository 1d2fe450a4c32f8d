"""The arguments that a factory needs: the check that all of them have a value."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.cli.space import check_complete


@tilelang.jit
def factory(M: int, N: int, tile: int = 8, *, stages: int) -> Any:
    raise NotImplementedError


@tilelang.jit
def eager(A: Any, B: Any) -> None:
    M = T.const("M")
    A: T.Tensor((M,), "float32")
    B: T.Tensor((M,), "float32")
    with T.Kernel(1, is_npu=True) as (block, _):
        pass


@pytest.mark.parametrize(("fixed", "configs", "missing"), [
    ({}, None, ["M", "N", "stages"]), ({"M": 1}, None, ["N", "stages"]), ({"M": 1, "N": 2, "stages": 3}, None, []),
    ({"M": 1}, [{"N": 1, "stages": 1}, {"N": 2}], ["stages"]), ({"M": 1}, [{"N": 1, "stages": 1}], [])])
def test_parameters_without_a_value(fixed: dict[str, object], configs: Any, missing: list[str]) -> None:
    given = () if configs is None else (configs,)
    if not missing:
        check_complete(factory, fixed, *given)
        return
    with pytest.raises(TileError) as caught:
        check_complete(factory, fixed, *given)
    assert caught.value.code == "T810" and caught.value.message == f"factory needs {', '.join(missing)}"
    assert caught.value.help == "give them: " + " ".join(f"--arg {name}=..." for name in missing)


def test_the_arrays_of_an_eager_function_are_not_needed() -> None:
    check_complete(eager, {})
