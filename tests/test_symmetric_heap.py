"""The symmetric heap: allocation, barriers, ranks that disagree or do not come, and arrays of other ranks."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_npu import TileError, symmetric_heap
from tilelang_npu.symmetric_heap import PodMemory, SymmetricHeap, join, peer_to_read, peer_to_write, pod_path, rehearsal

KIB = 1 << 10


def in_threads(ranks: int, body: Callable[[SymmetricHeap], Any], part: int = 64 * KIB, timeout: float = 5.0) -> list[Any]:
    """Calls ``body`` for each rank, in a thread of its own; returns the results, and exceptions as results."""
    memory = PodMemory.of_threads(ranks, part)
    results: list[Any] = [None] * ranks

    def drive(rank: int) -> None:
        try:
            results[rank] = body(join(rank, ranks, part, memory, timeout))
        except TileError as error:
            results[rank] = error

    threads = [threading.Thread(target=drive, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def alone(part: int = 64 * KIB) -> SymmetricHeap:
    return join(0, 1, part, PodMemory.of_threads(1, part))


def offset_of(heap: SymmetricHeap, array: np.ndarray) -> int:
    found = symmetric_heap.part_of(int(array.ctypes.data))
    assert found is not None
    assert found[:2] == (heap.memory, heap.rank)
    return found[2]


def test_a_tensor_begins_at_the_same_offset_on_every_rank() -> None:
    def body(heap: SymmetricHeap) -> list[int]:
        return [offset_of(heap, heap.allocate(size)) for size in (100, 1, 513)]

    assert in_threads(3, body) == [[0, 512, 1024]] * 3


def test_freed_bytes_are_joined_and_used_again() -> None:
    heap = alone()
    parts = [heap.allocate(16 * KIB) for _ in range(4)]
    with pytest.raises(TileError, match="of whose 65536 bytes 0 are free") as caught:
        heap.allocate(1)
    assert caught.value.code == "T434"
    for one in (1, 2):
        heap.free(int(parts[one].ctypes.data))
    assert offset_of(heap, heap.allocate(32 * KIB)) == 16 * KIB


def test_an_alignment_leaves_the_bytes_before_it_free() -> None:
    heap = alone()
    heap.allocate(100)
    assert offset_of(heap, heap.allocate(4, align=4 * KIB)) == 4 * KIB
    assert offset_of(heap, heap.allocate(100)) == 512


@pytest.mark.parametrize("address", ["twice", "inside"])
def test_only_an_allocation_can_be_freed(address: str) -> None:
    heap = alone()
    made = heap.allocate(2 * KIB)
    if address == "twice":
        heap.free(int(made.ctypes.data))
    with pytest.raises(TileError) as caught:
        heap.free(int(made.ctypes.data) + (0 if address == "twice" else 512))
    assert caught.value.code == "T430"


def test_ranks_that_allocate_different_sizes_are_an_error() -> None:
    def body(heap: SymmetricHeap) -> None:
        heap.allocate(100 + heap.rank)

    errors = in_threads(2, body)
    assert [error.code for error in errors] == ["T432", "T432"]
    assert "rank 0 allocates 100 bytes and rank 1 allocates 101 bytes" in errors[0].message


def test_a_barrier_orders_the_accesses_before_it() -> None:
    rounds = 50

    def body(heap: SymmetricHeap) -> bool:
        mine = heap.allocate(8).view(np.int64)
        mine[0] = 0
        heap.barrier()
        right = (heap.rank + 1) % heap.ranks
        for number in range(1, rounds):
            peer_to_write(mine, right)[0] = number
            heap.barrier()
            if mine[0] != number:
                return False
            heap.barrier()
        return True

    assert in_threads(4, body) == [True] * 4


def test_a_barrier_of_a_team_waits_for_its_members_alone() -> None:
    def body(heap: SymmetricHeap) -> str:
        if heap.rank != 1:
            heap.barrier(1, (0, 2))
        return "passed"

    assert in_threads(3, body) == ["passed"] * 3


def test_the_largest_value_of_a_team() -> None:
    assert in_threads(3, lambda heap: heap.agree_on_largest(10 * heap.rank, 0, range(3))) == [20, 20, 20]


def test_a_rank_that_does_not_come_is_named() -> None:
    def body(heap: SymmetricHeap) -> None:
        if heap.rank == 0:
            heap.barrier()
        else:
            time.sleep(1.0)

    error, _ = in_threads(2, body, timeout=0.3)
    assert error.code == "T433"
    assert "rank 0 waits for rank 1 to reach the barrier, which did not within 0.3 s" in error.message


def test_a_rank_that_has_left_is_not_waited_for() -> None:
    def body(heap: SymmetricHeap) -> None:
        if heap.rank == 0:
            heap.barrier()
        else:
            heap.abandon()

    began = time.monotonic()
    error, _ = in_threads(2, body, timeout=60)
    assert error.code == "T433"
    assert "which has ended" in error.message
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(("rank", "ranks"), [(2, 2), (-1, 2), (0, 0), (0, 5000)])
def test_a_rank_that_there_is_not(rank: int, ranks: int) -> None:
    with pytest.raises(TileError) as caught:
        join(rank, ranks, KIB, PodMemory.of_threads(max(1, ranks), KIB))
    assert caught.value.code == "T431"


def test_a_heap_needs_bytes() -> None:
    with pytest.raises(TileError) as caught:
        join(0, 1, 0, PodMemory.of_threads(1, KIB))
    assert caught.value.code == "T434"
    with pytest.raises(TileError, match="cannot be allocated"):
        alone().allocate(0)


# --- ranks that are processes ----------------------------------------------------------------------------------------------


def _exchange(rank: int, ranks: int, name: str, queue: Any) -> None:
    try:
        heap = join(rank, ranks, 64 * KIB, pod_path(name), timeout=20)
        mine = heap.allocate(8 * ranks).view(np.int64)
        for other in range(ranks):
            peer_to_write(mine, other)[rank] = 100 * rank + other
        heap.barrier()
        queue.put((rank, mine.tolist()))
        heap.leave()
    except TileError as error:
        queue.put((rank, error.code))


def _sizes(rank: int, ranks: int, name: str, queue: Any) -> None:
    try:
        join(rank, ranks, (rank + 1) * 64 * KIB, pod_path(name), timeout=20)
        queue.put((rank, "joined"))
    except TileError as error:
        queue.put((rank, error.code))


def _ends(rank: int, ranks: int, name: str, queue: Any) -> None:
    heap = join(rank, ranks, 64 * KIB, pod_path(name), timeout=60)
    if rank:
        os._exit(3)
    try:
        heap.barrier()
    except TileError as error:
        queue.put((rank, error.code))


def in_processes(target: Callable[..., None], ranks: int, answers: int | None = None) -> dict[int, Any]:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    name = f"test-{target.__name__}-{os.getpid()}"
    processes = [context.Process(target=target, args=(rank, ranks, name, queue)) for rank in range(ranks)]
    for process in processes:
        process.start()
    found = dict(queue.get(timeout=60) for _ in range(ranks if answers is None else answers))
    for process in processes:
        process.join()
    return found


forked = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")


@forked
def test_processes_write_to_each_other_and_leave_no_file() -> None:
    found = in_processes(_exchange, 3)
    assert found == {rank: [100 * other + rank for other in range(3)] for rank in range(3)}
    assert not list(Path(pod_path("x")).parent.glob(f"{pod_path(f'test-_exchange-{os.getpid()}').name}*"))


@forked
def test_processes_that_disagree_about_the_bytes() -> None:
    assert in_processes(_sizes, 2) == {0: "T432", 1: "T432"}


@forked
def test_a_process_that_has_ended_is_not_waited_for() -> None:
    began = time.monotonic()
    assert in_processes(_ends, 2, answers=1) == {0: "T433"}
    assert time.monotonic() - began < 20


@forked
def test_a_number_is_given_to_one_process() -> None:
    memory = PodMemory.of_threads(2, KIB)
    memory.words[0, :2] = 1, os.getpid()
    with pytest.raises(TileError, match="rank 0 is in the pod already") as caught:
        join(0, 2, KIB, memory, timeout=0.2)
    assert caught.value.code == "T431"


# --- arrays of other ranks -------------------------------------------------------------------------------------------------


def test_an_array_of_another_rank_has_the_same_shape_and_strides() -> None:
    def body(heap: SymmetricHeap) -> bool:
        whole = heap.allocate(6 * 8 * 4).view(np.float32).reshape(6, 8)
        whole[...] = heap.rank
        heap.barrier()
        part = peer_to_read(whole[1:5:2, ::3], 1 - heap.rank)
        return part.shape == (2, 3) and part.strides == whole[1:5:2, ::3].strides and bool((part == 1 - heap.rank).all())

    assert in_threads(2, body) == [True, True]


def test_other_memory_has_no_peer() -> None:
    with pytest.raises(TileError, match="not on the symmetric heap") as caught:
        peer_to_read(np.zeros(4), 0)
    assert caught.value.code == "T430"
    assert peer_to_read(np.zeros((0, 4)), 0).shape == (0, 4)


def test_a_rank_outside_of_the_pod() -> None:
    with pytest.raises(TileError, match="names rank 1, and the pod has one card, rank 0") as caught:
        peer_to_write(alone().allocate(8), 1)
    assert caught.value.code == "T431"


def test_a_rehearsal_reads_other_ranks_and_writes_to_none() -> None:
    def body(heap: SymmetricHeap) -> tuple[int, int, int, int]:
        mine = heap.allocate(4).view(np.int32)
        mine[0] = heap.rank + 1
        heap.barrier()
        other = 1 - heap.rank
        copy = mine.copy()
        with rehearsal([copy], [mine]):
            read = int(peer_to_read(copy, other)[0])
            peer_to_write(copy, other)[0] = 77
            peer_to_write(mine, heap.rank)[0] = 78  # an argument that the run has not copied
            peer_to_write(copy, heap.rank)[0] = 79
        heap.barrier()
        with rehearsal():
            unknown = int(peer_to_read(np.full(1, 5, np.int32), other)[0])
        return int(mine[0]), read, int(copy[0]), unknown

    assert in_threads(2, body) == [(1, 2, 79, 5), (2, 1, 79, 5)]
