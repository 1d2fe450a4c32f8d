"""Copies and clears left out, and those that must not be: the same values as with all of them, and as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

NAMES = ["drop-dead-stores", "collapse-copies"]


def both(func: Any, *arrays: Any) -> tuple[Any, list[Any]]:
    """The kernel with all optimisations, and its arrays; they are those without."""
    left = []
    for off in (NAMES, []):
        kernel = tilelang.compile(func, target="npuir", sanitize=True, pass_configs={"tl.disable": off})
        given = [array.copy() for array in arrays]
        kernel(*given)
        left.append(given)
    for one, other in zip(*left, strict=True):
        np.testing.assert_array_equal(one, other)
    return kernel, left[1]


def done(kernel: Any, name: str) -> str:
    lines = "\n".join(kernel.explain().sections["optimisations"])
    return str(lines.partition(name)[2].split("\n", 1)[0].strip())


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize(("rows", "columns"), [(8, 16), (21, 50), (3, 7)])
def test_shared_and_fragment(rows: int, columns: int, stages: int, dtype: str) -> None:
    """The partial tile is padded once, and old contents of a tile are not visible."""
    @T.prim_func
    def main(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            shared = T.alloc_shared((8, columns), dtype)
            x = T.alloc_fragment((8, columns), dtype)
            out = T.alloc_shared((8, columns), dtype)
            for i in T.Pipelined(-(-rows // 8), num_stages=stages):
                T.clear(shared)
                T.copy(X[i * 8, 0], shared)
                T.copy(shared, x)
                T.vmul(x, x, x)
                T.copy(x, out)
                T.copy(out, Y[i * 8, 0])

    x = np.random.default_rng(0).integers(0, 9, (rows, columns)).astype(dtype)
    kernel, (_, y) = both(main, x, np.zeros_like(x))
    np.testing.assert_array_equal(y, x * x)
    assert "write to shared is removed" in done(kernel, "drop-dead-stores")
    assert ("are one buffer" in done(kernel, "collapse-copies")) == (stages > 1 or rows <= 8)  # a loop of one iteration is none


def test_an_operand_of_a_gemm_goes_to_l1_at_once() -> None:
    @T.prim_func
    def main(A: T.Tensor((30, 50), "float16"), C: T.Tensor((30, 30), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            staged = T.alloc_shared((32, 64), "float16")
            a = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A[0, 0], staged)
            T.copy(staged, a)
            T.gemm(a, a, c, initC=True, b_transpose=True)
            T.copy(c, C[0, 0])

    a = np.random.default_rng(0).standard_normal((30, 50)).astype(np.float16)
    kernel, (_, c) = both(main, a, np.zeros((30, 30), np.float32))
    assert done(kernel, "collapse-copies").endswith("staged and a are one buffer")
    assert "hivm.hir.nd2nz" in kernel.mlir() and "hivm.hir.store" not in kernel.mlir()
    np.testing.assert_allclose(c, a.astype(np.float32) @ a.astype(np.float32).T, rtol=1e-3, atol=1e-3)


def test_what_is_converted_as_it_is_loaded_comes_to_ub() -> None:
    @T.prim_func
    def main(A: T.Tensor((30, 50), "float32"), C: T.Tensor((30, 30), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            staged = T.alloc_shared((32, 64), "float16")
            a = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A[0, 0], staged)
            T.copy(staged, a)
            T.gemm(a, a, c, initC=True, b_transpose=True)
            T.copy(c, C[0, 0])

    a = np.random.default_rng(0).standard_normal((30, 50)).astype(np.float32)
    kernel, (_, c) = both(main, a, np.zeros((30, 30), np.float32))
    (kept,) = (one for one in kernel.explain().refused if one.about == "collapse-copies")
    assert "is loaded from f32 as f16" in kept.text
    half = a.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(c, half @ half.T, rtol=1e-3, atol=1e-3)


def test_what_is_not_seen_twice_is_not_left_out() -> None:
    """A loop-carried value; a buffer of which half is overwritten; a buffer that a branch may fill."""
    @T.prim_func
    def main(X: T.Tensor((4, 8, 16), "float32"), Y: T.Tensor((4, 8, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 16), "float32")
            held = T.alloc_fragment((8, 16), "float32")
            part = T.alloc_shared((8, 16), "float32")
            T.clear(held)
            for i in T.Pipelined(4, num_stages=2):
                T.vbrc(7.0, part)
                T.copy(X[i, 0, 0], part[0:4, 0:16])
                T.vadd(part, held, part)
                T.copy(X[i, 0, 0], x)
                if i != 2:
                    T.copy(x, held)
                T.copy(part, Y[i, 0, 0])

    x = np.random.default_rng(0).integers(0, 9, (4, 8, 16)).astype(np.float32)
    kernel, (_, y) = both(main, x, np.zeros_like(x))
    expected, held = np.full((4, 8, 16), 7, np.float32), np.zeros((8, 16), np.float32)
    for i in range(4):
        expected[i, :4] = x[i, :4]
        expected[i] += held
        held = x[i] if i != 2 else held
    np.testing.assert_array_equal(y, expected)
    assert done(kernel, "drop-dead-stores") == "no occasion"
    (kept,) = (one for one in kernel.explain().refused if one.about == "collapse-copies")
    assert "in another loop or branch" in kept.text


@pytest.mark.parametrize("switches", [{}, {"tl.ascend_memory_planning": True}])
def test_expert_kernels_keep_every_statement(switches: dict[str, bool]) -> None:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            y = T.alloc_ub((64,), "float32")
            T.tile.fill(x, 0.0)
            T.barrier_all()
            T.copy(X, x)
            T.barrier_all()
            T.copy(x, y)
            T.barrier_all()
            T.copy(y, Y)

    kernel = tilelang.compile(main, target="ascendc", pass_configs=switches)
    text = kernel.mlir()
    assert [text.count(f"hivm.hir.{name} ") for name in ("vbrc", "copy", "load", "store")] == [1, 1, 1, 1]
    off = "off: its author sets the waits inside the cores"
    assert all(done(kernel, name) == off for name in (*NAMES, "hoist-loads", "fuse-fixpipe"))


def test_a_copy_that_transposes_is_not_left_out() -> None:
    """It is refused, between tiles of one shape too; as a plain copy it would be one buffer for both."""
    @T.prim_func
    def main(X: T.Tensor((32, 32), "float16"), Y: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            T.copy(X, a)
            T.copy(a, b, transpose=True)
            T.copy(b, Y)

    with pytest.raises(TileError, match="T231"):
        tilelang.compile(main, target="npuir")
