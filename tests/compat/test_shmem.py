"""``import shmem``: a pod of one rank in this process, and scripts with a process for each rank under ``tilelang-npu run``."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_npu import TileError, compat

SCRIPT = """
    import multiprocessing as mp
    import sys

    import tilelang
    import tilelang.language as T
    import torch
    import shmem

    RANKS, N = 2, 352

    @tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
    def send(count, peer, dtype="int8"):
        @T.prim_func
        def main(A: T.Tensor((1, N), dtype), B: T.Tensor((1, N), dtype)):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                with T.Scope("V"):
                    if vid == 0:
                        STATEMENT
        return main

    def worker(rank, barrier):
        torch.npu.set_device(rank)
        if shmem.set_conf_store_tls(False, "") != 0:
            raise ValueError("tls")
        attributes = shmem.InitAttr()
        attributes.my_rank = rank
        attributes.n_ranks = RANKS
        attributes.local_mem_size = 1 << 30
        attributes.ip_port = "tcp://127.0.0.1:8666"
        attributes.option_attr.data_op_engine_type = shmem.OpEngineType.MTE
        assert shmem.aclshmem_init(attributes) == 0
        both = shmem.aclshmem_create_tensor([1, 2 * N], dtype=torch.int8, device_id=rank)
        a, b = both[0:1, 0:N].fill_(2 + rank), both[0:1, N:2 * N].fill_(0)
        torch.npu.synchronize()
        barrier.wait()
        send(N, 1 - rank)(a, b)
        barrier.wait()
        assert torch.equal(b, torch.full_like(b, 3 - rank)), b
        shmem.aclshmem_free_tensor(both)
        shmem.aclshmem_finialize()
        print(f"Rank {rank}: Test passed!\\n", end="", flush=True)  # one write, also where streams have no buffer

    barrier = mp.Barrier(RANKS)
    ranks = [mp.Process(target=worker, args=(rank, barrier)) for rank in range(RANKS)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    sys.exit(max(one.exitcode for one in ranks))
"""


SIGNALS = """
    import multiprocessing as mp
    import sys

    import tilelang
    import tilelang.language as T
    import torch
    import shmem

    RANKS = 2


    @tilelang.jit(target="npuir")
    def exchange(rank, before):
        @T.prim_func
        def main(X: T.Tensor((64,), "float32"), F: T.Tensor((8,), "int32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                tile = T.alloc_shared((64,), "float32")
                if before:
                    T.shmem_signal_wait_until(F, 0, 3, 1)
                T.fill(tile, 1.0 + rank)
                T.shmem_ub_put_nbi(tile, X, 64, 1 - rank)
                T.shmem_quiet()
                T.shmem_signal_op(F, 0, 1, 1, 1 - rank)
                T.shmem_signal_wait_until(F, 0, 3, 1)
                T.shmem_barrier_all()
        return main


    def worker(rank):
        attributes = shmem.InitAttr()
        attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = rank, RANKS, 1 << 20
        attributes.ip_port = "tcp://127.0.0.1:8667"
        shmem.aclshmem_init(attributes)
        x = shmem.aclshmem_create_tensor([64], dtype=torch.float32, device_id=rank).fill_(0)
        flags = shmem.aclshmem_create_tensor([8], dtype=torch.int32, device_id=rank).fill_(0)
        shmem.barrier_all()
        exchange(rank, len(sys.argv) > 1)(x, flags)
        assert x.sum() == 64 * (2 - rank)
        shmem.barrier_all()
        print(f"Rank {rank}: Test passed!\\n", end="", flush=True)  # one write, also where streams have no buffer


    ranks = [mp.Process(target=worker, args=(rank,)) for rank in range(RANKS)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    sys.exit(max(one.exitcode for one in ranks))
"""
"""A script whose cards put to each other and signal; with an argument, each waits before it signals."""


@pytest.fixture
def shmem() -> Iterator[Any]:
    compat.install()
    import shmem as module  # type: ignore[import-not-found]  # the finder of compat makes it

    yield module
    module.aclshmem_finalize()


def joined(shmem: Any, **given: Any) -> Any:
    attributes = shmem.InitAttr()
    attributes.local_mem_size = 1 << 20
    attributes.ip_port = "test_shmem"
    for name, value in given.items():
        setattr(attributes, name, value)
    assert shmem.aclshmem_init(attributes) == 0
    return shmem


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.parametrize("statement", ["T.shmem_put_nbi(B, A, count, peer)", "T.shmem_get_nbi(B, A, count, peer)"])
def test_a_script_with_two_processes(statement: str, python: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "ranks.py"
    script.write_text(textwrap.dedent(SCRIPT).replace("STATEMENT", statement), encoding="utf-8")
    found = subprocess.run([python, "-m", "tilelang_npu", "run", str(script)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    lines = found.stdout.splitlines()
    assert sorted(lines[:2]) == ["Rank 0: Test passed!", "Rank 1: Test passed!"]
    assert "  links     " in found.stdout
    assert any(line.startswith("  processes 2, with 2 launches of ") for line in lines), found.stdout


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.parametrize("hangs", [False, True])
def test_signals_between_processes(hangs: bool, python: str, tmp_path: Path) -> None:
    """Cards that wait for each other end at once, and say where the other one waits."""
    pytest.importorskip("torch")
    script = tmp_path / "signals.py"
    script.write_text(textwrap.dedent(SIGNALS), encoding="utf-8")
    found = subprocess.run([python, "-m", "tilelang_npu", "run", str(script), *(["before"] if hangs else [])],
                           capture_output=True, text=True, check=False, timeout=100)
    if not hangs:
        assert found.returncode == 0, found.stdout + found.stderr
        assert "Rank 1: Test passed!" in found.stdout
        return
    assert found.returncode != 0
    lines = script.read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "wait_until" in text)
    for rank in range(2):
        assert f"hang[S308]: rank {rank} waits for F >= 1 (it is 0), and no card that runs can end this wait" in found.stderr
        assert f"rank {rank} waits for a signal at line {line}" in found.stderr


def test_it_is_the_module_of_this_package_until_it_is_uninstalled(shmem: Any) -> None:
    assert shmem.__name__ == "tilelang_npu.compat.shmem"
    compat.uninstall()
    assert "shmem" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        __import__("shmem")
    compat.install()


def test_a_pod_of_one_rank(shmem: Any) -> None:
    assert shmem.aclshmemx_init_status() == shmem.InitStatus.NOT_INITIALIZED
    joined(shmem)
    assert shmem.aclshmemx_init_status() == shmem.InitStatus.INITIALIZED
    assert (shmem.my_pe(), shmem.pe_count()) == (0, 1)
    shmem.barrier_all()
    shmem.aclshmem_finalize()
    shmem.aclshmem_finalize()
    joined(shmem, local_mem_size=1 << 21)


def test_memory_by_addresses(shmem: Any) -> None:
    joined(shmem)
    first, second = shmem.aclshmem_malloc(100), shmem.aclshmem_calloc(25, 4)
    assert shmem.aclshmem_align(4096, 10) % 4096 == 0
    data = np.arange(25, dtype=np.int32)
    shmem.aclshmem_putmem(second, data.ctypes.data, 100, 0)
    back = np.zeros_like(data)
    shmem.aclshmem_getmem(back.ctypes.data, second, 100, 0)
    np.testing.assert_array_equal(back, data)
    assert shmem.aclshmem_ptr(first + 4, 0) == first + 4
    assert shmem.aclshmem_ptr(first, 1) == shmem.aclshmem_ptr(data.ctypes.data, 0) == 0
    shmem.aclshmem_free(first)
    assert shmem.aclshmem_malloc(50) == first


def test_a_tensor_on_the_heap(shmem: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    joined(shmem)
    made = shmem.aclshmem_create_tensor([3, 5], dtype=torch.bfloat16, device_id=0)
    assert (made.shape, made.dtype) == ((3, 5), torch.bfloat16)
    assert shmem.aclshmem_create_tensor([2]).dtype == torch.float32
    assert shmem.aclshmem_ptr(made.data_ptr(), 0) == made.data_ptr()
    shmem.aclshmem_free_tensor(made)


def test_teams(shmem: Any) -> None:
    joined(shmem)
    assert (shmem.team_my_pe(0), shmem.team_n_pes(0)) == (0, 1)
    team = shmem.team_split_strided(0, 0, 1, 1)
    assert (team, shmem.team_my_pe(team), shmem.team_translate_pe(team, 0, 0)) == (1, 0, 0)
    shmem.barrier_team(team)
    shmem.team_destroy(team)
    assert (shmem.team_my_pe(team), shmem.team_n_pes(team), shmem.team_translate_pe(team, 0, 0)) == (-1, -1, -1)


@pytest.mark.parametrize(("call", "code"), [
    (lambda s: s.my_pe(), "T434"),
    (lambda s: s.aclshmem_malloc(1), "T434"),
    (lambda s: joined(s, my_rank=1), "T431"),
    (lambda s: joined(s, local_mem_size=0), "T434"),
    (lambda s: joined(joined(s)), "T431"),
    (lambda s: joined(s).aclshmem_malloc(1 << 30), "T434"),
    (lambda s: joined(s).aclshmem_align(3, 8), "T434"),
    (lambda s: joined(s).aclshmem_free(1), "T430"),
    (lambda s: joined(s).barrier_team(7), "T431"),
    (lambda s: joined(s).team_split_strided(0, 0, 1, 2), "T431"),
])
def test_errors(shmem: Any, call: Any, code: str) -> None:
    with pytest.raises(TileError) as caught:
        call(shmem)
    assert caught.value.code == code


def test_a_name_that_the_pod_does_not_have(shmem: Any) -> None:
    with pytest.raises(AttributeError, match=r"no shmem\.aclshmemx_putmem_signal"):
        _ = shmem.aclshmemx_putmem_signal
