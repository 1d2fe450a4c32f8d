"""Kernels on pods whose ranks are threads: values over the whole pod against NumPy, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError, pods
from tilelang_npu.pods import Card

AUTO = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(pass_configs=AUTO)
def all_to_all(rank: int, ranks: int, rows: int, columns: int, dtype: str) -> Any:
    """Block ``b`` writes the rows for card ``b`` to the rows of this card there."""
    @T.prim_func
    def main(A: T.Tensor((ranks * rows, columns), dtype), B: T.Tensor((ranks * rows, columns), dtype)) -> None:
        with T.Kernel(ranks, is_npu=True) as (to, vid):
            if vid == 0:
                tile = T.alloc_ub((rows, columns), dtype)
                T.copy(A[to * rows, 0], tile)
                T.shmem_ub_put_nbi(tile, B, rows * columns, to, rank * rows * columns)

    return main


@tilelang.jit(target="npuir")
def all_gather(rank: int, ranks: int, rows: int, columns: int) -> Any:
    """Each block reads the rows of another card."""
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((ranks * rows, columns), "float32")) -> None:
        with T.Kernel(ranks, is_npu=True) as (block, _):
            tile = T.alloc_shared((rows, columns), "float32")
            other = (rank + block) % ranks
            T.shmem_ub_get_nbi(tile, A, rows * columns, other)
            T.copy(tile, B[other * rows:other * rows + rows, 0:columns])

    return main


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_all_to_all(dtype: str) -> None:
    ranks, rows, columns = 4, 3, 64
    rng = np.random.default_rng(0)
    given = rng.integers(-9, 9, (ranks, ranks * rows, columns)).astype(dtype)

    def body(card: Card) -> np.ndarray:
        a, b = card.tensor((ranks * rows, columns), dtype), card.tensor((ranks * rows, columns), dtype)
        a[...] = given[card.rank]
        all_to_all(card.rank, ranks, rows, columns, dtype)(a, b)
        card.barrier()
        return b.copy()

    found = np.stack(pods.run(body, ranks))
    np.testing.assert_array_equal(found.reshape(ranks, ranks, rows, columns),
                                  given.reshape(ranks, ranks, rows, columns).swapaxes(0, 1))


@pytest.mark.parametrize("interpreted", [False, True])
def test_all_gather(interpreted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpreted:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    ranks, rows, columns = 3, 8, 32
    given = np.random.default_rng(1).standard_normal((ranks, rows, columns), np.float32)

    def body(card: Card) -> np.ndarray:
        a = card.tensor((rows, columns))
        a[...] = given[card.rank]
        card.barrier()
        b = np.zeros((ranks * rows, columns), np.float32)
        all_gather(card.rank, ranks, rows, columns)(a, b)
        card.barrier()
        return b

    for found in pods.run(body, ranks):
        np.testing.assert_array_equal(found, given.reshape(-1, columns))


def test_the_results_are_in_the_order_of_the_ranks() -> None:
    assert pods.run(lambda card: (card.rank, card.ranks), 5) == [(rank, 5) for rank in range(5)]


def test_a_tensor_is_zero_and_can_be_freed() -> None:
    def body(card: Card) -> list[float]:
        first = card.tensor(1000)
        first[...] = 3
        card.free(first)
        return [float(card.tensor((10, 100)).sum()), float(card.tensor(1000).sum())]

    assert pods.run(body, 2, heap_bytes=8192) == [[0, 0]] * 2


def test_the_error_of_the_card_that_failed_first_is_raised() -> None:
    def body(card: Card) -> None:
        if card.rank == 2:
            msg = "of rank 2"
            raise ValueError(msg)
        card.barrier()

    with pytest.raises(ValueError, match="of rank 2"):
        pods.run(body, 3)


@pytest.mark.parametrize(("arguments", "code"), [({"ranks": 0}, "T431"), ({"ranks": 1, "heap_bytes": 0}, "T434")])
def test_a_pod_that_cannot_be(arguments: dict[str, int], code: str) -> None:
    with pytest.raises(TileError) as caught:
        pods.run(lambda card: None, **arguments)
    assert caught.value.code == code


@tilelang.jit(target="npuir")
def shifted(peer: int, first: int, count: int) -> Any:
    """Writes ``count`` elements of A, from ``first`` on, to B of another card."""
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            T.shmem_put_nbi(B[first], A[first], count, peer)

    return main


@tilelang.jit(target="npuir", out_idx=[-1])
def copied() -> Any:
    @T.prim_func
    def main(B: T.Tensor((256,), "float32"), C: T.Tensor((128,), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((128,), "float32")
            T.copy(B[0:128], tile)
            T.copy(tile, C)

    return main


def races(body: Any, ranks: int = 2) -> TileError | None:
    try:
        pods.run(body, ranks, heap_bytes=1 << 16, sanitize=True)
    except TileError as error:
        return error
    return None


@pytest.mark.parametrize(("first", "ordered", "found"), [
    (0, False, True), (0, True, False), (128, False, False), (100, False, True)])
def test_a_read_of_what_another_card_writes(first: int, ordered: bool, found: bool) -> None:
    def body(card: Card) -> None:
        a, b = card.tensor(256), card.tensor(256)
        if card.rank == 0:
            shifted(1, first, 64)(a, b)
        if ordered:
            card.barrier()
        if card.rank == 1:
            copied()(b)

    error = races(body)
    assert (error is not None) is found
    if error is not None:
        assert error.code == "S231"
        assert f"rank 0 writes and rank 1 reads the same {4 * min(64, 128 - first)} bytes of rank 1" in error.message
        assert error.location is not None
        assert "T.shmem_put_nbi" in error.location.source()
        assert "rank 1 reads them at" in error.notes[0]


def test_two_cards_that_write_to_one_place() -> None:
    def body(card: Card) -> None:
        a, b = card.tensor(256), card.tensor(256)
        if card.rank:
            shifted(0, 10, 20)(a, b)

    error = races(body, 3)
    assert error is not None
    assert error.code == "S231"
    assert "rank 1 writes and rank 2 writes the same 80 bytes of rank 0" in error.message


def test_cards_that_write_to_places_of_their_own_do_not_race() -> None:
    def body(card: Card) -> None:
        a, b = card.tensor(256), card.tensor(256)
        for _ in range(3):
            for peer in range(card.ranks):
                shifted(peer, 64 * card.rank, 64)(a, b)
            card.barrier()
            copied()(b)
            card.barrier()

    assert races(body, 3) is None


def test_cards_that_read_one_place_do_not_race() -> None:
    def body(card: Card) -> None:
        a, b = card.tensor((8, 32)), np.zeros((card.ranks * 8, 32), np.float32)
        all_gather(card.rank, card.ranks, 8, 32)(a, b)

    assert races(body, 3) is None
