"""The number of BLAS threads while kernels run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import threadpoolctl

from tilelang_npu.simulator.machine.worker_threads import one_blas_thread

Call = Callable[[Callable[[], Any]], Any]


def counts() -> list[int]:
    """Returns the number of threads of each BLAS library, as seen by the calling thread."""
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def two() -> Iterator[None]:
    """Two BLAS threads, whatever the machine has."""
    with threadpoolctl.threadpool_limits(2, "blas"):
        yield


@pytest.fixture
def others() -> Iterator[tuple[Call, Call]]:
    """Two threads that are not the main one, each to do something in."""
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        yield lambda work: first.submit(work).result(), lambda work: second.submit(work).result()


@pytest.mark.usefixtures("two")
def test_the_number_of_blas_threads_comes_back_when_the_last_run_ends() -> None:
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(counts()) == {1}
    second.__exit__(None, None, None)
    assert set(counts()) == {2}


@pytest.mark.usefixtures("two")
def test_runs_of_other_threads_than_the_main_one_have_one_blas_thread(others: tuple[Call, Call]) -> None:
    with one_blas_thread():
        pass  # the main thread has set the number, once

    def inside() -> list[int]:
        with one_blas_thread():
            return counts()

    for call in others:
        assert set(call(inside)) == {1}
        assert set(call(counts)) == {2}


@pytest.mark.usefixtures("two")
def test_the_number_comes_back_from_the_thread_whose_run_ends_last(others: tuple[Call, Call]) -> None:
    first, second = others
    one, another = one_blas_thread(), one_blas_thread()
    first(one.__enter__)
    second(another.__enter__)
    first(lambda: one.__exit__(None, None, None))
    assert set(second(counts)) == {1}
    second(lambda: another.__exit__(None, None, None))
    assert set(counts()) == {2}
