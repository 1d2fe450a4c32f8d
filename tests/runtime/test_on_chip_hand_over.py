"""Transfers between the cores on a chip with a path between their memories: no workspace, the same values, and less time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import language as T
from tilelang_npu import target
from tilelang_npu.simulator.run import batched_execution
from tilelang_npu.target import known


def to_and_fro(M: int, N: int, K: int, tile: int = 32, stages: int = 2) -> Any:
    """``exp(exp(A A^T) B)``, each tile with itself: Cube, Vector, Cube, Vector."""
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((tile, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(2, is_npu=True) as (block, _):
            a = T.alloc_shared((tile, K), "float16")
            b = T.alloc_shared((tile, N), "float16")
            p = T.alloc_shared((tile, tile), "float16")
            s = T.alloc_fragment((tile, tile), "float32")
            c = T.alloc_fragment((tile, N), "float32")
            T.copy(B[0, 0], b)
            for i in T.Pipelined(M // tile // 2, num_stages=stages):
                row = (block * (M // tile // 2) + i) * tile
                T.copy(A[row, 0], a)
                T.gemm(a, a, s, initC=True, b_transpose=True)
                T.vexp(s, s)
                T.copy(s, p)
                T.gemm(p, b, c, initC=True)
                T.vmul(c, 0.5, c)
                T.copy(c, C[row, 0])

    return main


def column_sums(M: int, N: int, K: int) -> Any:
    """The sums of the columns of ``A B``: every Vector core needs all rows."""
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((1, N), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_shared((M, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            total = T.alloc_fragment((1, N), "float32")
            T.copy(A[0, 0], a)
            T.copy(B[0, 0], b)
            T.gemm(a, b, c, initC=True)
            T.reduce_sum(c, total, dim=0)
            T.copy(total, C[0, 0])

    return main


def _run(program: Any, chip: str, *inputs: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    kernel = tilelang.compile(program, out_idx=[-1], target="npuir", chip=chip, sanitize=True)
    return kernel, np.array(kernel(*inputs))


def _has_workspace(kernel: Any) -> bool:
    return "alloc_workspace" in kernel.mlir("hivm-auto")


def _expected(a: Any, b: Any, tile: int) -> Any:
    tiles = a.astype(np.float32).reshape(-1, tile, a.shape[1])
    p = np.exp(tiles @ tiles.transpose(0, 2, 1)).astype(np.float16).astype(np.float32)
    return ((p @ b.astype(np.float32)) * 0.5).reshape(-1, b.shape[1])


@pytest.mark.parametrize(("tile", "columns", "stages", "on_chip"), [
    (32, 48, 1, True), (48, 64, 2, True), (16, 16, 3, True), (24, 40, 2, False)])
def test_values_are_those_of_a_chip_that_goes_through_a_workspace(tile: int, columns: int, stages: int, on_chip: bool,
                                                                  rng: np.random.Generator) -> None:
    """A tile that is no whole fractals takes the way through GM into L1, as everything does on A2."""
    a = rng.uniform(-0.3, 0.3, (tile * 6, 32)).astype(np.float16)
    b = rng.uniform(-1, 1, (tile, columns)).astype(np.float16)
    program = to_and_fro(tile * 6, columns, 32, tile, stages)
    one, through_gm = _run(program, "910B2", a, b)
    other, found = _run(program, "950", a, b)
    assert _has_workspace(one)
    assert _has_workspace(other) == (not on_chip)
    np.testing.assert_array_equal(found, through_gm)
    np.testing.assert_allclose(found, _expected(a, b, tile), rtol=2e-3, atol=2e-3)


def test_blocks_that_run_as_one_have_what_the_other_core_wrote_each_for_itself(
        rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks read the same B; the other operand and the transferred data are different for each block."""
    monkeypatch.setattr(batched_execution, "LEAST_BLOCKS", 2)
    monkeypatch.setattr(batched_execution, "LEAST_BYTES", 0)
    monkeypatch.setattr(batched_execution, "AT_ONCE", 0)
    a = rng.uniform(-0.3, 0.3, (32 * 6, 32)).astype(np.float16)
    b = rng.uniform(-1, 1, (32, 48)).astype(np.float16)
    kernel, found = _run(to_and_fro(32 * 6, 48, 32, 32, 1), "950", a, b)
    assert kernel.program._planned[1] is not None
    np.testing.assert_allclose(found, _expected(a, b, 32), rtol=2e-3, atol=2e-3)


def test_hand_overs_on_chip_take_less_time_than_through_a_workspace(rng: np.random.Generator) -> None:
    a5 = target.chip("950")
    ways = {name: path for name, path in a5.paths.items() if not a5.crosses(path)}
    with _known(replace(a5, name="AscendWithout", aliases=(), hivm_target="Ascend950PR_959b", paths=ways)):
        a = rng.uniform(-0.3, 0.3, (64 * 8, 64)).astype(np.float16)
        b = rng.uniform(-1, 1, (64, 64)).astype(np.float16)
        program = to_and_fro(64 * 8, 64, 64, 64)
        (before, first), (after, second) = (_run(program, name, a, b) for name in ("AscendWithout", "950"))
        assert (_has_workspace(before), _has_workspace(after)) == (True, False)
    np.testing.assert_array_equal(first, second)
    assert after.last_launch.cycles < 0.9 * before.last_launch.cycles


def test_what_is_not_divided_goes_to_both_vector_cores(rng: np.random.Generator) -> None:
    a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((32, 64), (64, 48)))
    kernel, found = _run(column_sums(32, 48, 64), "950", a, b)
    assert not _has_workspace(kernel)
    assert "dual_dst_mode" not in kernel.mlir()
    np.testing.assert_allclose(found, (a.astype(np.float32) @ b.astype(np.float32)).sum(0, keepdims=True), rtol=1e-4, atol=1e-4)


def test_both_functions_have_a_shared_buffer_at_one_address() -> None:
    kernel = tilelang.compile(to_and_fro(192, 48, 32), out_idx=[-1], target="npuir", chip="950")
    aic, aiv = kernel.mlir("plan-memory").split("@main_mix_aiv")
    for name in ("%s_ub", "%c_ub", "%p"):
        places = [re.findall(rf"{name} = (hivm.hir.pointer_cast.*)", re.sub(r"(_i64)_\d+", r"\1", text)) for text in (aic, aiv)]
        assert places[0] == places[1] != [], name


class _known:
    """A chip that is known for a while."""

    def __init__(self, chip: target.Chip) -> None:
        self.chip = chip

    def __enter__(self) -> target.Chip:
        self.before = dict(known._CHIPS), dict(known._BY_KEY)
        target.register(self.chip)
        return self.chip

    def __exit__(self, *error: object) -> None:
        known._CHIPS.clear()
        known._BY_KEY.clear()
        known._CHIPS.update(self.before[0])
        known._BY_KEY.update(self.before[1])
        target.register()


@pytest.fixture
def one_path_more() -> Iterator[target.Chip]:
    """An A2 with one row more: from L0C to UB, half as fast as a 950's."""
    a2, a5 = target.chip("910B2"), target.chip("950")
    way = a5.paths["l0c_ub"]
    assert way.move is not None
    mine = replace(way, move=replace(way.move, sustained=64, source="this test"))
    with _known(replace(a2, name="AscendMine", hivm_target="Ascend950PR_959b",
                        paths=target.table(a2.memory, *a2.paths.values(), mine))) as chip:
        yield chip


def test_a_chip_with_one_path_more_uses_it(one_path_more: target.Chip, rng: np.random.Generator) -> None:
    """Only the row of the path is added: data from the Vector cores still goes through GM."""
    a = rng.uniform(-0.3, 0.3, (192, 32)).astype(np.float16)
    b = rng.uniform(-1, 1, (32, 48)).astype(np.float16)
    program = to_and_fro(192, 48, 32)
    kernel, found = _run(program, one_path_more.name, a, b)
    text = kernel.mlir("hivm-auto")
    assert text.count("alloc_workspace") == 1
    assert "%p_workspace = " in text
    assert text.count("dual_dst_mode = <ROW_SPLIT>") == 2
    np.testing.assert_array_equal(found, _run(program, "910B2", a, b)[1])


def other_cores_buffers(kind: str, dtype: str, stages: int, rows: int = 32, columns: int = 48) -> Any:
    """A kernel in which only one core writes a buffer in a memory of the other core, which has other buffers there."""
    @T.prim_func
    def main(X: T.Tensor((rows * 4, columns), "float32"), H: T.Tensor((rows * 4, columns), dtype),
             W: T.Tensor((columns, columns), dtype), O: T.Tensor((rows * 4, columns), "float32"),
             P: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            f = T.alloc_shared((rows, columns), "float32")
            g = T.alloc_shared((rows, columns), "float32")
            h = T.alloc_shared((rows, columns), dtype)
            w = T.alloc_shared((columns, columns), dtype)
            c = T.alloc_fragment((rows, columns), "float32")
            T.copy(W, w)
            T.copy(X[0, 0], f)
            T.copy(X[rows, 0], g)
            if kind == "L1":
                T.copy(H[0, 0], h)
                T.gemm(h, w, c, initC=True)
                for i in T.Pipelined(4, num_stages=stages):
                    T.vadd(f, 1.0, f)
                    T.copy(f, h)  # nothing multiplies it
                    T.copy(f, O[i * rows, 0])
                T.copy(c, P)
            else:
                for i in T.Pipelined(4, num_stages=stages):
                    T.copy(H[i * rows, 0], h)
                    T.gemm(h, w, c, initC=True)
                    T.copy(c, g)  # no vector work reads it
                    T.vadd(f, 1.0, f)
                    T.copy(f, O[i * rows, 0])
                T.copy(f, P)

    return main


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["L1", "UB"])
def test_what_only_the_other_core_writes_has_bytes_of_its_own(kind: str, dtype: str, stages: int,
                                                              rng: np.random.Generator) -> None:
    """The functions of both cores had a plan each, and the other core's buffer began at 0 in both."""
    kernel = tilelang.compile(other_cores_buffers(kind, dtype, stages), target="npuir", chip="950", sanitize=True)
    x, h, w = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((128, 48), (128, 48), (48, 48)))
    o, p = np.zeros((128, 48), np.float32), np.zeros((32, 48), np.float32)
    narrow = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    kernel(x, h.astype(narrow), w.astype(narrow), o, p)
    np.testing.assert_array_equal(o, np.concatenate([x[:32] + step for step in range(1, 5)]))
    np.testing.assert_array_equal(p, h[:32] @ w if kind == "L1" else x[:32] + 4)
