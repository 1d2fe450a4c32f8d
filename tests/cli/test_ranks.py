"""``tilelang-npu run --ranks``: a process for each rank, with torchrun's variables; a failed rank ends the others."""

from __future__ import annotations

import multiprocessing
import os
import time

import pytest

from tilelang_npu import TileError
from tilelang_npu.cli import ranks as module
from tilelang_npu.cli.ranks import run_ranks

pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")


def test_each_rank_has_its_variables(capfd: pytest.CaptureFixture[str]) -> None:
    def body() -> tuple[int, str]:
        print(f"rank {os.environ['RANK']} {os.environ['LOCAL_RANK']} of {os.environ['WORLD_SIZE']} {os.environ['MASTER_ADDR']}")
        return 0, ""

    assert run_ranks(3, body) == 0
    assert sorted(capfd.readouterr().out.split("\n")[:-1]) == [f"rank {rank} {rank} of 3 127.0.0.1" for rank in range(3)]
    assert "RANK" not in os.environ


def test_a_failed_rank_ends_those_that_wait_for_it(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "_GRACE", 0.5)

    def body() -> tuple[int, str]:
        if os.environ["RANK"] == "1":
            return 3, "it went wrong"
        time.sleep(100)
        return 0, ""

    began = time.monotonic()
    assert run_ranks(2, body) == 3
    assert time.monotonic() - began < 50
    assert "rank 1: it went wrong" in capfd.readouterr().err


def test_no_ranks_are_refused() -> None:
    with pytest.raises(TileError) as caught:
        run_ranks(0, lambda: (0, ""))
    assert caught.value.code == "T417"
