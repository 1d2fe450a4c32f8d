"""Operations with repeats and strides, or with counts: the elements that they access. tests/ops tests their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import ops
from tilelang_npu.errors import TileError

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
KERNEL = """
    import tilelang_npu.language as T

    @T.prim_func
    def main({parameters}):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            {statements}
"""


@pytest.fixture
def run(source: Any) -> Callable[..., None]:
    """``run("T.tile.brcb(d, a, 2, 1, 8)", a=array, d=array)``: load all arrays, do it, store ``d``."""

    def execute(statement: str, **arrays: np.ndarray) -> None:
        kinds = {name: str(ops.dtype(array.dtype)) for name, array in arrays.items()}
        parameters = ", ".join(f"{name.upper()}: T.Tensor({array.shape}, {kinds[name]!r})" for name, array in arrays.items())
        lines = [f"{name} = T.alloc_ub({array.shape}, {kinds[name]!r})" for name, array in arrays.items()]
        work = [*(f"T.copy({name.upper()}, {name})" for name in arrays), *statement.splitlines(), "T.copy(d, D)"]
        lines += ["if vid == 0:", *(f"    {line}" for line in work)]
        module = source(KERNEL.format(parameters=parameters, statements="\n            ".join(lines)))
        tilelang.compile(module.main, target="ascendc", pass_configs=SYNC)(*arrays.values())

    return execute


@pytest.mark.parametrize("kind", [np.int16, np.uint16, np.int32, np.uint32, np.float16, np.float32])
@pytest.mark.parametrize("count", [64, 13])
def test_progressions(run: Any, kind: Any, count: int) -> None:
    d = np.zeros(count, kind)
    run("T.tile.createvecindex(d, 3)", d=d)
    np.testing.assert_array_equal(d, np.arange(3, 3 + count).astype(kind))
    d[:] = 1
    run(f"T.tile.arith_progression(d, 5, 2, {count - 4})", d=d)
    np.testing.assert_array_equal(d, np.concatenate([5 + 2 * np.arange(count - 4), np.ones(4)]).astype(kind))


def test_operands_may_be_slices_in_the_middle(run: Any) -> None:
    a, d = np.arange(1, 41, dtype=np.float32).reshape(5, 8), np.zeros((8, 64), np.float32)
    run("T.tile.brcb_experiment(d[2, :], a[1, :], 2, 1, 8)", a=a, d=d)
    expected = np.zeros((8, 64), np.float32)
    expected[2:4] = np.repeat(a[1:3], 8, axis=1)
    np.testing.assert_array_equal(d, expected)


def test_what_constants_reach_is_checked_at_the_line(run: Any) -> None:
    with pytest.raises(TileError, match="T111") as caught:
        run("T.tile.brcb(d, a, 2, 1, 9)", a=np.zeros(16, np.float32), d=np.zeros(128, np.float32))
    assert "136 elements from element 0 of d" in caught.value.message


def test_what_a_run_reaches_is_checked_in_the_run(run: Any) -> None:
    """How often only the run knows: the number is read from a buffer."""
    a, d = np.zeros(16, np.float32), np.zeros(128, np.float32)
    run("n = k[0]\nT.tile.brcb(d, a, n, 1, 8)", a=a, d=d, k=np.full(8, 2, np.int32))
    with pytest.raises(TileError, match="T502") as caught:
        run("n = k[0]\nT.tile.brcb(d, a, n, 1, 8)", a=a, d=d, k=np.full(8, 3, np.int32))
    assert any("of the input, which has 16" in note for note in caught.value.notes)


@pytest.mark.parametrize(("lines", "kind"), [("SINGLE_CACHE_LINE", "CACHELINE_OUT"), ("ENTIRE_DATA_CACHE", "CACHELINE_ALL")])
def test_the_data_cache_is_written_back(source: Any, lines: str, kind: str) -> None:
    module = source(KERNEL.format(parameters="D: T.Tensor((8,), 'int32')", statements="if vid == 0:\n"
                                  "                D[3] = 7\n"
                                  f"                T.tile.datacachecleanandinvalid_experiment(D, '{lines}', '{kind}')"))
    kernel = tilelang.compile(module.main, target="ascendc", pass_configs=SYNC)
    d = np.zeros(8, np.int32)
    kernel(d)
    np.testing.assert_array_equal(d, [0, 0, 0, 7, 0, 0, 0, 0])
    words = {"SINGLE_CACHE_LINE": "single_cache_line", "ENTIRE_DATA_CACHE": "all_cache_lines"}
    assert f"hivm.hir.dcci(<{words[lines]}>, <{kind.removeprefix('CACHELINE_').lower()}>, %D" in kernel.mlir()


def test_the_data_cache_is_one_of_global_memory(run: Any) -> None:
    for call, problem in [("(d, 'SINGLE_CACHE_LINE', 'CACHELINE_OUT')", "T110.*on the chip"),
                          ("(D, 'LINE', 'CACHELINE_OUT')", "T145.*'LINE' is not known"),
                          ("(D, 'SINGLE_CACHE_LINE', 'OUT')", "T145.*'OUT' is not known")]:
        with pytest.raises(TileError, match=problem):
            run(f"T.tile.datacachecleanandinvalid_experiment{call}", d=np.zeros(8, np.float32))
