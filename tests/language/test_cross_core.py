"""Flags between the cores, and the core that a statement belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


@pytest.mark.parametrize(("statement", "expected"), [
    ("with T.Scope('C'):\n                T.set_cross_flag('FIX', 3)",
     "hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3"),
    ("with T.Scope('V'):\n                T.set_cross_flag('mte3', n, 1)",
     "hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = %"),
    ("with T.Scope('V'):\n                T.wait_cross_flag(0)",
     "hivm.hir.sync_block_wait[<VECTOR>, <PIPE_S>, <PIPE_S>] flag = 0"),
    ("with T.Scope('Cube'), T.rs('PIPE_FIX'):\n                T.sync_block_wait(1)",
     "hivm.hir.sync_block_wait[<CUBE>, <PIPE_S>, <PIPE_FIX>] flag = 1"),
    ("with T.rs('PIPE_V'):\n                T.sync_block_set(2)",
     "hivm.hir.sync_block_set[<VECTOR>, <PIPE_V>, <PIPE_S>] flag = 2"),
    ("T.sync_all()", "hivm.hir.sync_block[<ALL>"),
    ("with T.Scope('V'):\n                T.sync_all()", "hivm.hir.sync_block[<ALL_VECTOR>"),
    ("T.sync_all('AIVOnly')", "hivm.hir.sync_block[<ALL_VECTOR>"),
    ("T.sync_all(mode='AICOnly')", "hivm.hir.sync_block[<ALL_CUBE>"),
    ("with T.Scope('V'):\n                T.sync_all('AIVOnly')", "hivm.hir.sync_block[<ALL_VECTOR>"),
    ("with T.Scope('V'):\n                T.sync_all('Mix')", "hivm.hir.sync_block[<ALL>"),
])
def test_forms(kernel: Any, statement: str, expected: str) -> None:
    assert expected in " ".join(kernel(statement).text.split()).replace("sync_block [", "sync_block[")


@pytest.mark.parametrize(("statement", "message"), [
    ("T.set_cross_flag('mte3', 0)", "the kind of core that executes the statement is not determined"),
    ("with T.Scope('V'):\n                T.set_cross_flag('fix', 0)", "the vector core has no pipe FIX"),
    ("with T.Scope('V'):\n                T.wait_cross_flag(16)", "there is no flag 16"),
    ("with T.Scope('V'):\n                T.set_cross_flag('mte3', 0, 3)", "there is no mode 3"),
    ("T.sync_block_set(0)", "is outside T.rs"),
    ("with T.Scope('V'):\n                T.sync_all('AICOnly')", "no vector core takes part in this barrier"),
    ("with T.Scope('C'):\n                T.sync_all('AIVOnly')", "no cube core takes part in this barrier"),
])
def test_mistakes(kernel: Any, statement: str, message: str) -> None:
    with pytest.raises(TileError, match=message) as caught:
        kernel(statement)
    assert caught.value.code == "T161"


def handed_over(first: str = "C", flag: int = 0, *, scoped: bool = True) -> Any:
    """The product by the Cube core, doubled by two Vector cores; flags both ways, so that a block can loop."""

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), S: T.Tensor((64, 64), "float32"),
             C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 32), "float16")
            b = T.alloc_L1((32, 64), "float16")
            acc = T.alloc_L0C((64, 64), "float32")
            half = T.alloc_ub((32, 64), "float32")
            with T.Scope(first):
                for turn in T.serial(3):
                    T.copy(A, a)
                    T.copy(B, b)
                    T.barrier_all()
                    T.gemm_v0(a, b, acc, init=True)
                    T.barrier_all()
                    T.copy(acc, S)
                    T.set_cross_flag("FIX", turn % 2)
                    T.wait_cross_flag(2)
            if scoped:
                with T.Scope("V"):
                    for turn in T.serial(3):
                        T.wait_cross_flag(turn % 2)
                        T.copy(S[vid * 32, 0], half)
                        T.barrier_all()
                        T.tile.mul(half, half, 2.0)
                        T.barrier_all()
                        T.copy(half, C[vid * 32, 0])
                        T.barrier_all()
                        T.set_cross_flag("MTE3", 2)
            else:
                T.tile.fill(half, 0.0)

    return main


def test_flags_by_hand_order_the_cores(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((64, 32)).astype(np.float16), rng.standard_normal((32, 64)).astype(np.float16)
    kernel = tilelang.compile(handed_over(), out_idx=[3], workspace_idx=[2], target="ascendc")
    np.testing.assert_allclose(kernel(a, b), 2 * (a.astype(np.float32) @ b.astype(np.float32)), rtol=1e-5, atol=1e-5)
    text = kernel.mlir()
    cube, vector = text.split("@main_mix_aic")[-1].split("@main_mix_aiv")[0], text.split("@main_mix_aiv")[-1]
    assert cube.count("sync_block_set") == cube.count("sync_block_wait") == 1
    assert vector.count("sync_block_set") == vector.count("sync_block_wait") == 1
    assert vector.count("pipe_barrier") == 4  # three of the user's, one at the end
    assert "hivm.tcore_type" not in text


@pytest.mark.parametrize(("function", "switches", "code", "message"), [
    (lambda: handed_over(scoped=False), {}, "T248", "belongs to the Vector core, but is in no T.Scope"),
    (lambda: handed_over("V"), {}, "T161", "has no pipe FIX"),
    (handed_over, {"tl.ascend_auto_cv_combine": True, "tl.ascend_auto_cross_core_sync": True}, "T246", "conflicts with"),
], ids=["unscoped", "wrong core", "both"])
def test_refused(function: Any, switches: dict[str, bool], code: str, message: str) -> None:
    with pytest.raises(TileError, match=message) as caught:
        tilelang.compile(function(), out_idx=[3], workspace_idx=[2], target="ascendc", pass_configs=switches).mlir()
    assert caught.value.code == code
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def meeting(of_cube: str | None, of_vector: str | None, blocks: int = 3) -> Any:
    """Barriers in loops of each kind of core, then one of all cores; each block reads the product of the next block."""

    @T.prim_func
    def main(A: T.Tensor((16 * blocks, 16), "float16"), B: T.Tensor((16, 16), "float16"),
             S: T.Tensor((16 * blocks, 16), "float32"), C: T.Tensor((16 * blocks, 16), "float32")):
        with T.Kernel(blocks, is_npu=True) as (cid, vid):
            a = T.alloc_L1((16, 16), "float16")
            b = T.alloc_L1((16, 16), "float16")
            acc = T.alloc_L0C((16, 16), "float32")
            x = T.alloc_ub((16, 16), "float32")
            with T.Scope("C"):
                for _turn in T.serial(2):
                    T.copy(A[cid * 16, 0], a)
                    T.copy(B, b)
                    T.barrier_all()
                    T.gemm_v0(a, b, acc, init=True)
                    T.barrier_all()
                    T.copy(acc, S[cid * 16, 0])
                    T.sync_all(of_cube)
            with T.Scope("V"):
                for _turn in T.serial(2):
                    T.sync_all(of_vector)
            T.sync_all("Mix")
            with T.Scope("V"):
                T.copy(S[(cid + 1) % blocks * 16, 0], x)
                T.barrier_all()
                T.copy(x, C[cid * 16, 0])

    return main


@pytest.mark.parametrize(("of_cube", "of_vector", "within"), [
    ("AICOnly", "AIVOnly", ("ALL_CUBE", "ALL_VECTOR")), ("Mix", "Mix", ("ALL", "ALL")),
    (None, None, ("ALL_CUBE", "ALL_VECTOR"))])
def test_barriers_of_chosen_cores(rng: np.random.Generator, of_cube: str | None, of_vector: str | None,
                                  within: tuple[str, str]) -> None:
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((48, 16), (16, 16)))
    kernel = tilelang.compile(meeting(of_cube, of_vector), target="ascendc")
    expected = np.roll((a.astype(np.float32) @ b.astype(np.float32)).reshape(3, 16, 16), -1, 0).reshape(-1, 16)
    for execute in (kernel, kernel.interpret):
        s, c = np.zeros((2, 48, 16), np.float32)
        execute(a, b, s, c)
        np.testing.assert_array_equal(c, expected)
    text = kernel.mlir().replace("sync_block [", "sync_block[")
    modes = [part.split(">")[0] for part in text.split("sync_block[<")[1:]]
    assert modes == [within[0], "ALL", within[1], "ALL"]


@pytest.mark.parametrize(("modes", "code"), [(("Mix", "AIVOnly"), "S30"), (("AICOnly", "Mix"), "S30")])
def test_a_barrier_that_the_other_cores_never_reach(modes: tuple[str, str], code: str) -> None:
    kernel = tilelang.compile(meeting(*modes), target="ascendc")
    for execute in (kernel, kernel.interpret):
        with pytest.raises(TileError) as caught:
            execute(np.zeros((48, 16), np.float16), np.zeros((16, 16), np.float16), *np.zeros((2, 48, 16), np.float32))
        assert str(caught.value.code).startswith(code)


def shared_row(mode: str, scoped: bool) -> Any:
    """Each block writes its element of a row and reads the elements of all blocks; the kernel has no work for Cube cores."""

    @T.prim_func
    def main(C: T.Tensor((4, 4), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            own = T.alloc_ub((1,), "int32")
            row = T.alloc_ub((4,), "int32")
            T.tile.fill(own, cid + 1)
            T.barrier_all()
            T.copy(own, C[0, cid])
            T.barrier_all()
            if scoped:
                with T.Scope("V"):
                    T.sync_all(mode)
            else:
                T.sync_all(mode)
            T.copy(C[0, :4], row)
            T.barrier_all()
            T.copy(row, C[cid, :4])

    return main


@pytest.mark.parametrize("scoped", [True, False])
@pytest.mark.parametrize("mode", ["AIVOnly", "Mix"])
def test_a_kernel_of_one_kind_of_core_waits_only_for_it(mode: str, scoped: bool) -> None:
    kernel = tilelang.compile(shared_row(mode, scoped), target="ascendc")
    assert "ALL_VECTOR" in kernel.mlir()
    for execute in (kernel, kernel.interpret):
        c = np.zeros((4, 4), np.int32)
        execute(c)
        np.testing.assert_array_equal(c, np.tile(np.arange(1, 5), (4, 1)))


def test_vector_cores_pass_a_barrier_of_cube_cores() -> None:
    text = tilelang.compile(shared_row("AICOnly", scoped=False), target="ascendc").mlir()
    assert "hivm.hir.sync_block" not in text


def fixed_pipe(*, with_product: bool) -> Any:
    """Statements of PIPE_FIX outside of T.Scope: a flag for the Vector cores, and with a product its way to GM."""

    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), W: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((32, 32), "float16")
            acc = T.alloc_L0C((32, 32), "float32")
            x = T.alloc_ub((16, 32), "float32")
            if with_product:
                T.copy(A, a)
                T.gemm(a, a, acc, initC=True)
                with T.rs("PIPE_FIX"):
                    T.copy(acc, W)
            T.pipe_barrier("PIPE_FIX")
            with T.rs("PIPE_FIX"):
                T.sync_block_set(0)
            T.pipe_barrier("PIPE_V")
            with T.Scope("Vector"):
                with T.rs("PIPE_MTE2"):
                    T.sync_block_wait(0)
                    T.copy(W[vid * 16, 0], x)
                T.copy(x, C[vid * 16, 0])

    return main


@pytest.mark.parametrize("with_product", [True, False])
def test_the_pipe_fix_is_of_the_cube_core(rng: np.random.Generator, with_product: bool) -> None:
    a = rng.integers(-3, 4, (32, 32)).astype(np.float16)
    kernel = tilelang.compile(fixed_pipe(with_product=with_product), target="npuir")
    for execute in (kernel, kernel.interpret):
        w, c = np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)
        execute(a, w, c)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ a.astype(np.float32) if with_product else w)
    cube, vector = kernel.mlir().split("@main_mix_aiv")[0], kernel.mlir().split("@main_mix_aiv")[-1]
    for text, own, other in ((cube, "FIX", "V"), (vector, "V", "FIX")):
        assert f"pipe_barrier[<PIPE_{own}>]" in text
        assert f"pipe_barrier[<PIPE_{other}>]" not in text


@pytest.mark.parametrize("pipe", ["PIPE_FIX", "PIPE_M"])
def test_a_barrier_of_a_pipe_that_no_core_of_the_kernel_has(pipe: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((32, 32), "float32")
            T.copy(A, x)
            T.pipe_barrier(pipe)
            T.copy(x, B)

    kernel = tilelang.compile(main, target="npuir")
    assert f"pipe_barrier[<{pipe}>]" not in kernel.mlir()
    for execute in (kernel, kernel.interpret):
        a, b = np.arange(1024, dtype=np.float32).reshape(32, 32), np.zeros((32, 32), np.float32)
        execute(a, b)
        np.testing.assert_array_equal(b, a)
