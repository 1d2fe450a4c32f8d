"""Functions under ``jit`` that hold their kernel themselves, as TileLang writes them for GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError

RNG = np.random.default_rng(0)


@tilelang.jit(target="npuir")
def product(A, B, block: int = 32, transposed: bool = False, dtype=T.float16):  # type: ignore[no-untyped-def]
    """``relu(A @ B)``."""
    M, N, K = T.const("M, N, K")
    columns = [N, K] if transposed else [K, N]
    assert block % 16 == 0, "whole fractals"
    A: T.Tensor((M, K), dtype)
    B: T.Tensor(columns, dtype)
    C = T.empty((M, N), dtype)
    tile = [block, block]

    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        a = T.alloc_shared(tile, dtype)
        b = T.alloc_shared(tile, dtype)
        c = T.alloc_fragment(tile, T.float32)
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
            T.copy(A[by * block, k * block], a)
            if transposed:
                T.copy(B[bx * block, k * block], b)
                T.gemm(a, b, c, transpose_B=True)
            else:
                T.copy(B[k * block, bx * block], b)
                T.gemm(a, b, c)
        for i, j in T.Parallel(block, block):
            c[i, j] = T.max(c[i, j], 0)
        T.copy(c, C[by * block, bx * block])

    return C


def normal(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (50, 70, 90), (1, 16, 33)])
@pytest.mark.parametrize("transposed", [False, True])
def test_values_and_sizes(m: int, n: int, k: int, transposed: bool) -> None:
    a, b = normal(m, k), normal(*((n, k) if transposed else (k, n)))
    c = product(a, b, transposed=transposed)
    wanted = np.maximum(a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32), 0)
    assert c.shape == (m, n) and c.dtype == np.float16
    np.testing.assert_allclose(c.astype(np.float32), wanted, rtol=5e-3, atol=5e-3)


def test_the_same_sizes_give_the_same_kernel() -> None:
    a, b = normal(64, 64), normal(64, 64)
    first = product.compile(a, b)
    assert product.compile(b, a) is first
    assert product.compile(M=64, N=64, K=64) is first
    assert product.compile(normal(32, 64), b) is not first
    assert product.compile(a, b, block=16) is not first
    np.testing.assert_array_equal(first(a, b), product(a, b))


def test_torch(request: pytest.FixtureRequest) -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.randn(40, 40).half(), torch.randn(40, 40).half()
    c = product(a, b)
    torch.testing.assert_close(c, torch.relu(a.float() @ b.float()).half(), rtol=5e-3, atol=5e-3)


@tilelang.jit(target="npuir")
def moments(X, scale: float, block: int = 16):  # type: ignore[no-untyped-def]
    """Row sums and row maxima of ``scale * X``; the scaled rows are in a tensor that the caller does not see."""
    M = T.dynamic("M")
    N = T.const("N")
    X: T.Tensor((M, N), "float32")
    largest = T.empty((M,), dtype="float32")
    scaled = T.empty((M, N), "float32")
    total = T.empty([M])

    @T.macro
    def fold(source, sums, maxima):  # type: ignore[no-untyped-def]
        T.reduce_sum(source, sums, dim=1)
        T.reduce_max(source, maxima, dim=1)

    with T.Kernel(T.ceildiv(M, block), threads=128) as b:
        x = T.alloc_fragment((block, N), "float32")
        s = T.alloc_fragment((block,), "float32")
        m = T.alloc_fragment((block,), "float32")
        T.copy(X[b * block, 0], x)
        for i, j in T.Parallel(block, N):
            x[i, j] = x[i, j] * scale
        T.copy(x, scaled[b * block, 0])
        T.copy(scaled[b * block, 0], x)
        fold(x, s, m)
        T.copy(s, total[b * block])
        T.copy(m, largest[b * block])

    return total, largest


def test_several_results_in_the_order_of_return() -> None:
    for rows in (32, 50):
        x = normal(rows, 40, dtype=np.float32)
        total, largest = moments(x, 2.0)
        np.testing.assert_allclose(total, 2 * x.sum(axis=1), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(largest, 2 * x.max(axis=1))
    kernel = moments.compile(x, 2.0)
    assert [parameter.name for parameter in kernel.params] == ["X", "total", "largest", "scaled"]
    assert (kernel.out_idx, kernel.workspace_idx) == ([1, 2], [3])
    assert moments.compile(normal(16, 40, dtype=np.float32), 2.0) is kernel  # any number of rows
    assert moments.compile(normal(16, 48, dtype=np.float32), 2.0) is not kernel


def in_place(amount: int) -> Callable[..., Any]:
    @tilelang.jit(target="npuir")
    def add(X):  # type: ignore[no-untyped-def]
        N = T.const("N")
        X: T.Tensor((N,), X.dtype)  # the host part can read the shape and type of an argument

        with T.Kernel(T.ceildiv(N, 64)) as b:
            x = T.alloc_shared((64,), X.dtype)
            T.copy(X[b * 64], x)
            for i in T.Parallel(64):
                x[i] += amount
            T.copy(x, X[b * 64])

    return add


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_an_argument_that_is_written(dtype: str) -> None:
    x = np.arange(100).astype(dtype)
    assert in_place(3)(x) is None
    np.testing.assert_array_equal(x, (np.arange(100) + 3).astype(dtype))


def test_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # tuning writes its log there
    tuned = tilelang.autotune(configs=[{"block": 16}, {"block": 64}])(product)
    a, b = normal(128, 128), normal(128, 128)
    c = tuned(a, b)
    np.testing.assert_allclose(c.astype(np.float32), np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0), rtol=5e-3,
                               atol=1e-2)
    assert tuned.last_result.config == {"block": 64}
    assert tuned.compile(a, b) is tuned.compile(b, a)


def failing(code: str, call: Callable[[], Any]) -> TileError:
    with pytest.raises(TileError) as raised:
        call()
    assert raised.value.code == code
    return raised.value


def test_what_is_missing() -> None:
    a = normal(16, 16)
    error = failing("T401", lambda: product(a))
    assert error.message == "product is called without B"
    error = failing("T151", lambda: product.compile(M=16, N=16))
    assert "'K'" in error.message
    assert error.location is not None and error.location.source().strip() == 'M, N, K = T.const("M, N, K")'
    assert "compile(K=...)" in error.help
    error = failing("T401", lambda: product(a, a, blocks=3))
    assert "blocks" in error.message
    error = failing("T401", lambda: moments(normal(4, 4, dtype=np.float32)))
    assert error.message == "moments is called without scale"


def test_sizes_that_do_not_fit() -> None:
    error = failing("T403", lambda: product(normal(16, 32), normal(48, 16)))
    assert error.message == "K is 32 in axis 1 of A and 48 in axis 0 of B"
    assert error.location is not None and error.location.source().strip() == "B: T.Tensor(columns, dtype)"


def test_asserts_of_the_host_part() -> None:
    with pytest.raises(AssertionError, match="whole fractals"):
        product(normal(16, 16), normal(16, 16), block=24)


@tilelang.jit(target="npuir", out_idx=[-1])
def both(X):  # type: ignore[no-untyped-def]
    N = T.const("N")
    X: T.Tensor((N,), "float32")
    with T.Kernel(1):
        x = T.alloc_shared((N,), "float32")
        T.copy(X, x)
        T.copy(x, X)


@tilelang.jit(target="npuir")
def returned(X):  # type: ignore[no-untyped-def]
    N = T.const("N")
    X: T.Tensor((N,), "float32")
    with T.Kernel(1):
        x = T.alloc_shared((N,), "float32")
        T.copy(X, x)
        T.copy(x, X)
    return X


def test_what_cannot_be_returned() -> None:
    x = normal(16, dtype=np.float32)
    assert "out_idx" in failing("T709", lambda: both(x)).message
    error = failing("T708", lambda: returned(x))
    assert error.message == "`X` is returned, but is no tensor of a T.empty above the kernel"
    assert error.location is not None and error.location.source().strip() == "return X"


@tilelang.jit(target="npuir")
def renamed(X):  # type: ignore[no-untyped-def]
    N = T.const("N")
    X: T.Tensor((N,), "float32")
    C = T.empty((N,))
    result = C
    with T.Kernel(1):
        x = T.alloc_shared((N,), "float32")
        T.copy(X, x)
        T.copy(x, result)
    return C


@tilelang.jit(target="npuir")
def late(X, most: int):  # type: ignore[no-untyped-def]
    N = T.const("N")
    if most < N:
        msg = "too long"
        raise ValueError(msg)
    X: T.Tensor((N,), "float32")
    with T.Kernel(1):
        x = T.alloc_shared((N,), "float32")
        T.copy(X, x)
        T.copy(x, X)


def test_a_second_name() -> None:
    error = failing("T151", lambda: renamed(normal(16, dtype=np.float32)))
    assert error.message == "'result' is a second name of the tensor 'C'"
    assert error.location is not None and error.location.source().strip() == "result = C"


def test_a_host_part_that_stops_before_it_declares() -> None:
    error = failing("T151", lambda: late(normal(16, dtype=np.float32), 99))
    assert error.message.endswith("stops before it declares a tensor that has it: ValueError: too long")
    late.compile(N=16, most=99)
    with pytest.raises(ValueError, match="too long"):
        late.compile(N=16, most=9)


def test_what_the_documentation_shows(root: Path, tmp_path: Path) -> None:
    text = (root / "docs" / "compatibility.md").read_text(encoding="utf-8")
    (shown,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "T.const" in block]
    file = tmp_path / "shown.py"
    file.write_text("import tilelang_npu as tilelang\nimport tilelang_npu.language as T\n" + shown)
    names: dict[str, Any] = {"np": np, "__name__": "shown"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert (names["c"] == 256).all()
    a, b = normal(100, 130), normal(130, 70)
    wanted = np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)
    np.testing.assert_allclose(names["relu_product"](a, b).astype(np.float32), wanted, rtol=5e-3, atol=2e-2)
    assert "relu_product(A, B, C)" in str(names["kernel"])


def test_only_there() -> None:
    assert "T.const" in failing("T160", lambda: T.const("M")).message
    assert "T.empty" in failing("T160", lambda: T.empty((3,))).message
