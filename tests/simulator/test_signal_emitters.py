"""The code for signals, waits and calls of quiet: the records that they leave, and their operands at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import pods
from tilelang_npu.pods import Card
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.machine.op_records import PeerSignal, PeerWait, PutsEnd, number_of

BEFORE, LIMIT = 5, 2


@tilelang.jit(target="npuir")
def signalled(adds: int) -> Any:
    """A card signals itself with numbers that only run time knows."""
    @T.prim_func
    def main(F: T.Tensor((8,), "int32"), N: T.Tensor((8,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            T.shmem_quiet()
            T.shmem_signal_op(F, N[0], N[1], adds, N[2])
            T.shmem_signal_wait_until(F, N[0], LIMIT, N[3])
            T.shmem_barrier_all()

    return main


def run(adds: int, word: int, value: int) -> tuple[np.ndarray, Launch]:
    """Returns the words after a run, and its launch; the wait is for a word greater than ``BEFORE``."""
    def body(card: Card) -> tuple[np.ndarray, Launch]:
        flags = card.tensor(8, "int32")
        flags[...] = BEFORE
        kernel = signalled(adds)
        kernel(flags, np.array([word, value, 0, BEFORE, 0, 0, 0, 0], np.int32))
        launch = kernel.last_launch
        assert isinstance(launch, Launch)
        return flags.copy(), launch

    ((words, launch),) = pods.run(body, 1, heap_bytes=1 << 16)
    return words, launch


@pytest.mark.parametrize("word", [0, 3, 7])
@pytest.mark.parametrize(("adds", "value", "expected"), [(0, 9, 9), (1, 4, BEFORE + 4), (0, 2**31 - 1, 2**31 - 1)])
def test_operands_are_those_of_run_time(word: int, adds: int, value: int, expected: int) -> None:
    words, _ = run(adds, word, value)
    after = np.full(8, BEFORE, np.int32)
    after[word] = expected
    np.testing.assert_array_equal(words, after)


def test_each_statement_leaves_a_record_in_the_order_of_the_program() -> None:
    _, launch = run(0, 1, 6)
    (index, _), *_ = launch.recorded.program.lanes
    records = launch.recorded.program.functions[index].records
    works = [type(records[number_of(event)].work) for event in launch.recorded.blocks[0].streams[0]]
    kinds = [work for work in works if work in (PeerSignal, PeerWait, PutsEnd)]
    assert kinds == [PutsEnd, PeerSignal, PeerWait, PeerWait]


def test_a_kernel_that_waits_for_cards_runs_all_its_blocks_at_once() -> None:
    _, launch = run(0, 1, 6)
    assert launch.recorded.program.global_sync
