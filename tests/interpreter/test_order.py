"""Order between cores, and operations without a value: kernels whose results change if one operation has no effect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import TileError
from tilelang_npu.interpreter.operation_table import operations

OPERATIONS = operations()
HEAD = """
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), W: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32"), n: T.int32):
        with T.Kernel({blocks}, is_npu=True) as (cid, vid):
"""
# In the next two kernels the Vector cores' statements are written before the Cube core's: only the flag orders them.
CROSS_FLAGS = """
x = T.alloc_ub((16, 32), "float32")
a = T.alloc_L1((32, 32), "float16")
c = T.alloc_L0C((32, 32), "float32")
with T.Scope("V"):
    T.wait_cross_flag(1)
    T.copy(W[vid * 16, 0], x)
    T.copy(x, C[vid * 16, 0])
with T.Scope("C"):
    T.copy(A, a)
    T.gemm_v0(a, a, c, init=True)
    T.copy(c, W)
    T.set_cross_flag("FIX", 1)
"""
BLOCK_FLAGS = """
x = T.alloc_ub((16, 32), "float32")
a = T.alloc_L1((32, 32), "float16")
c = T.alloc_L0C((32, 32), "float32")
with T.Scope("Vector"):
    with T.rs("PIPE_MTE2"):
        T.sync_block_wait(1)
    T.copy(W[vid * 16, 0], x)
    T.copy(x, C[vid * 16, 0])
with T.Scope("Cube"):
    T.copy(A, a)
    T.gemm(a, a, c, initC=True)
    T.copy(c, W)
    with T.rs("PIPE_FIX"):
        T.sync_block_set(1)
"""
# Each block writes a row of W and reads the next block's.
AROUND = """
x = T.alloc_ub((1, 32), "float32")
with T.Scope("{scope}"):
    if vid == 0:
        T.{fill}(x, cid + 1.0)
        T.copy(x, W[cid, 0])
    T.{barrier}
    if vid == 0:
        T.copy(W[(cid + 1) % 3, 0], x)
        T.copy(x, C[cid, 0])
"""
# The Vector core that reads is above the one that writes.
BETWEEN = """
x = T.alloc_ub((1, 32), "float32")
with T.Scope("Vector"):
    if vid == 0:
        T.subblock_barrier(2)
        T.copy(W[5, 0], x)
        T.copy(x, C[5, 0])
    else:
        T.fill(x, 7.0)
        T.copy(x, W[5, 0])
        T.subblock_barrier(2)
"""


def product(a: Any) -> Any:
    return a.astype(np.float32) @ a.astype(np.float32)


def rows(values: list[float], first: int = 0) -> Any:
    made = np.zeros((32, 32), np.float32)
    made[first:first + len(values)] = np.array(values, np.float32)[:, None]
    return made


CASES: dict[str, tuple[str, str, int, Any]] = {
    "set_cross_flag": ("ascendc", CROSS_FLAGS, 2, product), "wait_cross_flag": ("ascendc", CROSS_FLAGS, 1, product),
    "sync_block_set": ("npuir", BLOCK_FLAGS, 1, product), "sync_block_wait": ("npuir", BLOCK_FLAGS, 1, product),
    "sync_all": ("ascendc", AROUND.format(scope="V", fill="tile.fill", barrier="sync_all()"), 3, lambda _: rows([2, 3, 1])),
    "block_barrier": ("npuir", AROUND.format(scope="Vector", fill="fill", barrier="block_barrier(3)"), 3,
                      lambda _: rows([2, 3, 1])),
    "subblock_barrier": ("npuir", BETWEEN, 1, lambda _: rows([7], 5)),
}


def interpreted(source: Any, dialect: str, statements: str, blocks: int) -> tuple[Any, Any]:
    """The kernel's result, and its first input."""
    text = HEAD.format(blocks=blocks) + "".join(f"            {line}\n" for line in statements.strip().splitlines())
    kernel = tilelang.compile(source(text).main, target=dialect, interpret=True)
    a = (np.random.default_rng(0).integers(-4, 5, (32, 32)) / 2).astype(np.float16)
    c = np.zeros((32, 32), np.float32)
    kernel(a, np.full((32, 32), -1, np.float32), c, 3)
    return c, a


@pytest.mark.parametrize("name", CASES)
def test_flags_and_barriers_order_the_cores(source: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    dialect, statements, blocks, expected = CASES[name]
    c, a = interpreted(source, dialect, statements, blocks)
    np.testing.assert_array_equal(c, expected(a))
    monkeypatch.setitem(OPERATIONS, name, lambda *_, **__: None)
    if name.startswith("set") or name.endswith("set"):  # the wait never ends
        with pytest.raises(TileError, match="cores wait for each other"):
            interpreted(source, dialect, statements, blocks)
        return
    c, a = interpreted(source, dialect, statements, blocks)
    assert (c != expected(a)).any()


def test_a_flag_that_is_never_set_is_a_deadlock_with_both_lines(source: Any) -> None:
    with pytest.raises(TileError) as caught:
        interpreted(source, "ascendc", CROSS_FLAGS.replace('T.set_cross_flag("FIX", 1)', "pass"), 1)
    assert caught.value.code == "S301"
    assert "vector core 0 of block 0 waits for flag 1 at line 11" in str(caught.value)


def test_a_tensor_of_the_launch_is_one_for_all_blocks(source: Any) -> None:
    statements = """
t = T.alloc_global((3, 32), "float32")
x = T.alloc_ub((1, 32), "float32")
T.tile.fill(x, cid + 1.0)
T.copy(x, t[cid, 0])
T.copy(t[0, 0], x)
T.copy(x, C[cid, 0])
"""
    c, _ = interpreted(source, "ascendc", statements, 3)
    np.testing.assert_array_equal(c, rows([1, 1, 1]))


def test_a_swizzle_is_a_permutation_of_the_blocks(source: Any) -> None:
    statements = """
x = T.alloc_ub((1, 32), "float32")
tile = T.use_swizzle(cid, 64, 96, 32, 16, 32, 2)
T.tile.fill(x, tile + 1.0)
T.copy(x, C[cid, 0])
"""
    c, _ = interpreted(source, "ascendc", statements, 12)
    order = [1, 4, 2, 5, 3, 6, 9, 12, 8, 11, 7, 10]
    np.testing.assert_array_equal(np.sort(c[:12, 0]), np.arange(1, 13))
    np.testing.assert_array_equal(c[:12, 0], order)


def test_what_is_printed(source: Any, capsys: pytest.CaptureFixture[str]) -> None:
    statements = """
x = T.alloc_ub((1, 4), "float32")
T.tile.fill(x, 2.5)
T.printf("n is %d\\n", n)
T.dump_tensor(x, 7, 3)
T.print(x, "x:")
"""
    interpreted(source, "ascendc", statements, 1)
    assert capsys.readouterr().out == "n is 3\ndump 7: [2.5 2.5 2.5]\nx: [[2.5 2.5 2.5 2.5]]\n"


def test_an_assertion_names_its_line(source: Any) -> None:
    with pytest.raises(TileError, match="the assertion does not hold: too few") as caught:
        interpreted(source, "ascendc", 'T.assert_(n > 3, "too few")', 1)
    assert caught.value.code == "T148"
    assert caught.value.location is not None
