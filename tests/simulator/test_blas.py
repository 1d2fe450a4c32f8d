"""The number of BLAS threads while kernels run."""

from __future__ import annotations

import threadpoolctl

from tilelang_npu.simulator.machine.blas import one_blas_thread


def test_the_number_of_blas_threads_comes_back_when_the_last_run_ends() -> None:
    def counts() -> list[int]:
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, "blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(counts()) == {1}
        second.__exit__(None, None, None)
        assert set(counts()) == {2}
