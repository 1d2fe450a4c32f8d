"""Transfers between cards: values of every element type, and invalid operands, at the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from ops.test_values import numbers
from tilelang_npu import TileError, ops, pods
from tilelang_npu.pods import Card

AUTO = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True}
ENTRIES = [entry for entry in ops.operations().values() if isinstance(entry, ops.PeerMove)]
BY_HAND: dict[Any, Any] = {}
N = 200


def kernel(name: str, dtype: str, count: int, configs: dict[Any, Any], start: int = 0, size: int = N, after: int = 3) -> Any:
    """A kernel that moves ``count`` elements of A on one card to B on another, with ``T.<name>``."""
    @tilelang.jit(pass_configs=configs)
    def factory(peer: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((4, size), dtype), B: T.Tensor((4, size), dtype)) -> None:
            with T.Kernel(1, is_npu=True) as (_, vid), T.Scope("V"):
                if vid == 0:
                    if name == "shmem_put_nbi":
                        T.shmem_put_nbi(B[1, 3], A[1, start], count, peer)
                    elif name == "shmem_get_nbi":
                        T.shmem_get_nbi(B[1, 3], A[1, start], count, peer)
                    elif name == "shmem_ub_atomic_add_nbi":
                        tile = T.alloc_ub((3, size), dtype)
                        T.copy(A[1:4, 0:size], tile)
                        T.barrier_all()
                        T.shmem_ub_atomic_add_nbi(tile[0, start], B, count, peer, size + after)
                    elif name == "shmem_ub_put_nbi":
                        tile = T.alloc_ub((3, size), dtype)
                        T.copy(A[1:4, 0:size], tile)
                        T.barrier_all()
                        T.shmem_ub_put_nbi(tile[0, start], B, count, peer, size + after)
                    else:
                        tile = T.alloc_ub((3, size), dtype)
                        T.copy(B[1:4, 0:size], tile)
                        T.barrier_all()
                        T.shmem_ub_get_nbi(tile[0, 3], A[1, start], count, peer)
                        T.barrier_all()
                        T.copy(tile, B[1, 0])

        return main

    return factory


def moved(name: str, a: np.ndarray, configs: dict[Any, Any], dtype: str, count: int, start: int) -> list[np.ndarray]:
    """The tensors B of all cards, of which each has moved elements of its own A, or of the A of the next card."""
    ranks, size = len(a), a.shape[-1]

    def body(card: Card) -> np.ndarray:
        own, b = card.tensor((4, size), a.dtype), card.tensor((4, size), a.dtype)
        own[...] = a[card.rank]
        card.barrier()
        kernel(name, dtype, count, configs, start, size)((card.rank + 1) % ranks)(own, b)
        card.barrier()
        return b.copy()

    return pods.run(body, ranks)


@pytest.mark.parametrize("configs", [AUTO, BY_HAND], ids=["auto", "by hand"])
@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES])
@pytest.mark.parametrize("interpreted", [False, True], ids=["compiled", "interpreted"])
def test_values(name: str, configs: dict[Any, Any], interpreted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The elements are consecutive in memory, past the end of a row, and no other element changes."""
    if interpreted:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    ranks, count, start = 3, 333, 7
    a = np.random.default_rng(2).integers(-99, 99, (ranks, 4, N)).astype(np.int32)
    found = moved(name, a, configs, "int32", count, start)
    for rank, b in enumerate(found):
        wanted = np.zeros(4 * N, np.int32)
        source = (rank + 1 if "get" in name else rank - 1) % ranks
        wanted[N + 3:N + 3 + count] = a[source].reshape(-1)[N + start:N + start + count]
        np.testing.assert_array_equal(b.reshape(-1), wanted)


@pytest.mark.parametrize("interpreted", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("element", ops.operation("shmem_ub_atomic_add_nbi").dtypes, ids=str)
def test_all_cards_add_to_one_place(element: ops.DType, interpreted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpreted:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    ranks = 4
    a = np.random.default_rng(5).integers(-9, 9, (ranks, 4, N))

    def body(card: Card) -> np.ndarray:
        kind = np.dtype(element)
        own, b = card.tensor((4, N), kind), card.tensor((4, N), kind)
        own[...] = a[card.rank].astype(kind)
        card.barrier()
        kernel("shmem_ub_atomic_add_nbi", str(element), 70, AUTO)(0)(own, b)
        card.barrier()
        return b.astype(np.float32)

    found = pods.run(body, ranks, sanitize=True, interleaving=1)
    wanted = np.zeros(4 * N, np.float32)
    wanted[N + 3:N + 73] = a.sum(0).reshape(-1)[N:N + 70]
    np.testing.assert_array_equal(found[0].reshape(-1), wanted)
    assert not found[1].any()


@pytest.mark.parametrize("element", ops.operation("shmem_put_nbi").dtypes, ids=str)
@pytest.mark.parametrize("name", ["shmem_ub_put_nbi", "shmem_ub_get_nbi"])
def test_element_types(name: str, element: ops.DType) -> None:
    rng = np.random.default_rng(3)
    a = np.stack([numbers(rng, "", 0, element, (4, 64)) for _ in range(2)])
    for rank, b in enumerate(moved(name, a, AUTO, str(element), 70, 0)):
        wanted = a[1 - rank].reshape(-1)[64:134]
        assert b.reshape(-1)[67:137].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", ["shmem_put_nbi", "shmem_get_nbi"])
def test_a_tensor_larger_than_a_strip(name: str) -> None:
    a = np.random.default_rng(4).integers(-99, 99, (2, 4, 20000)).astype(np.float32)
    for rank, b in enumerate(moved(name, a, AUTO, "float32", 50001, 5)):
        np.testing.assert_array_equal(b.reshape(-1)[20003:70004], a[1 - rank].reshape(-1)[20005:70006])


def test_the_entries_have_the_types_of_the_library() -> None:
    assert {entry.name for entry in ENTRIES} == {"shmem_put_nbi", "shmem_get_nbi", "shmem_ub_put_nbi", "shmem_ub_get_nbi",
                                                 "shmem_ub_atomic_add_nbi"}
    assert {str(kind) for kind in ops.operation("shmem_put_nbi").dtypes} >= {"int8", "float16", "bfloat16", "float32", "int64"}


@pytest.mark.parametrize(("statement", "code", "words"), [
    ("T.shmem_ub_put_nbi(x, A, 64, 1)", "T110", "the source has elements of float16, the destination of float32"),
    ("T.shmem_put_nbi(A, A, 5000, 1)", "T111", "5000 elements from element 0 of A"),
    ("T.shmem_ub_get_nbi(y, A, 513, 1)", "T111", "513 elements from element 0 of y"),
    ("T.shmem_ub_put_nbi(y, A, 512, 1, 600)", "T111", "512 elements from element 600 of A"),
    ("T.shmem_get_nbi(A, A, -1, 1)", "T145", "the number of elements is -1"),
    ("T.shmem_ub_put_nbi(y, A, 1, 1, -1)", "T145", "strelem is -1"),
    ("T.shmem_get_nbi(A, A, 8, 1.5)", "T145", "the rank is 1.5"),
    ("T.shmem_put_nbi(y, A, 8, 1)", "T201", "the destination y"),
    ("T.shmem_ub_put_nbi(A, A, 8, 1)", "T201", "input A"),
    ("T.shmem_ub_get_nbi(y, y, 8, 1)", "T201", "input y"),
])
def test_invalid_operands(refusal: Any, statement: str, code: str, words: str) -> None:
    refused = refusal(["x = T.alloc_ub((8, 64), 'float16')", "y = T.alloc_ub((8, 64), 'float32')"], statement, "npuir",
                      codes=[code], mentions=[words], parameters="A: T.Tensor((8, 64), 'float32')")
    assert refused.help


@pytest.mark.parametrize("interpreted", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(("peer", "on_heap", "code"), [(1, True, "T431"), (0, False, "T430")])
def test_errors_while_the_kernel_runs(peer: int, on_heap: bool, code: str, interpreted: bool, monkeypatch: pytest.MonkeyPatch
                                      ) -> None:
    if interpreted:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")

    def body(card: Card) -> None:
        a = card.tensor((4, N), "int32") if on_heap else np.zeros((4, N), np.int32)
        kernel("shmem_ub_put_nbi", "int32", 8, AUTO)(peer)(a, a.copy() if not on_heap else card.tensor((4, N), "int32"))

    with pytest.raises(TileError) as caught:
        pods.run(body, 1)
    assert caught.value.code == code
    assert caught.value.location is not None
    assert "T.shmem_ub_put_nbi" in caught.value.location.source()
