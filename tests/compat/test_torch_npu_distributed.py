"""Collectives between simulated cards: scripts with a process for each rank, under ``tilelang-npu run``."""

from __future__ import annotations

import multiprocessing
import subprocess
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")

SCRIPT = """
    import os

    import tilelang
    import tilelang.language as T
    import torch
    import torch.distributed as dist
    import torch_npu

    @tilelang.jit(out_idx=[1], target="npuir")
    def doubled(n):
        @T.prim_func
        def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _unused):
                tile = T.alloc_shared((n,), "float32")
                T.copy(X, tile)
                T.vadd(tile, tile, tile)
                T.copy(tile, Y)
        return main

    def work(rank, ranks):
        torch.npu.set_device(rank)
        y = doubled(256)(torch.full((256,), 1.0 + rank).npu())
        dist.all_reduce(y)
        assert y.cpu().tolist() == [ranks * (ranks + 1.0)] * 256, y
        parts = [torch.zeros(4).npu() for _ in range(ranks)]
        dist.all_gather(parts, torch.full((4,), float(rank)).npu())
        assert [int(part[0]) for part in parts] == list(range(ranks))
        found = torch.zeros(ranks).npu()
        dist.all_to_all_single(found, torch.arange(ranks).float().npu() + 10 * rank)
        assert found.tolist() == [10.0 * other + rank for other in range(ranks)], found
        dist.barrier()
        assert dist.get_backend() == "hccl"
        print(f"rank {rank} of {ranks} passed\\n", end="", flush=True)  # one write, also where streams have no buffer
        dist.destroy_process_group()
"""
LAUNCHED = """
    dist.init_process_group(backend="hccl")
    work(dist.get_rank(), int(os.environ["WORLD_SIZE"]))
"""
SPAWNS = """
    def worker(rank, ranks):
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29653")
        dist.init_process_group("hccl", rank=rank, world_size=ranks)
        work(rank, ranks)

    if __name__ == "__main__":
        torch.multiprocessing.spawn(worker, args=(2,), nprocs=2)
"""


def run(tmp_path: Path, python: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "ranks.py"
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    return subprocess.run([python, "-m", "tilelang_npu", "run", *options, str(script)], capture_output=True, text=True,
                          check=False, timeout=300)


@pytest.mark.parametrize(("end", "options"), [(LAUNCHED, ("--ranks", "2")), (SPAWNS, ())], ids=["ranks", "spawn"])
def test_two_ranks_exchange_the_results_of_kernels(end: str, options: tuple[str, ...], python: str, tmp_path: Path) -> None:
    found = run(tmp_path, python, SCRIPT + end, *options)
    assert found.returncode == 0, found.stdout + found.stderr
    assert sorted(line for line in found.stdout.splitlines() if line.endswith("passed")) == [
        "rank 0 of 2 passed", "rank 1 of 2 passed"]
    assert "processes 2, with 2 launches" in found.stdout
