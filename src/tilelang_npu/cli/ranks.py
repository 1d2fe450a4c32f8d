"""Runs a script once for each rank, in processes that are forked, as ``torchrun`` does on cards.

Each process has the environment variables that ``torch.distributed`` reads (``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``,
``LOCAL_WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``).
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import socket
import sys
from collections.abc import Callable

from tilelang_npu.errors import TileError

__all__ = ["run_ranks"]

_GRACE = 10.0
"""Seconds that the other ranks have to end after one has failed."""


def run_ranks(ranks: int, body: Callable[[], tuple[int, str]]) -> int:
    """Calls ``body`` in a process for each rank, and waits until all have ended.

    If a rank fails, ranks that still run 10 seconds later are ended, because they may wait for it.

    Args:
        ranks: the number of ranks.
        body: runs the script, and returns its exit code and the text of its error.

    Returns:
        the exit code of the first rank that failed, or 0.

    Raises:
        TileError: T417, the number is not positive, or the system cannot fork processes.
    """
    if ranks < 1 or "fork" not in multiprocessing.get_all_start_methods():
        raise TileError(f"{ranks} ranks cannot be started here", code="T417",
                        help="pass a positive number, on a system that forks processes (Linux, macOS)")
    given = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_port())}
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_rank, args=(rank, given, body), name=f"rank {rank}") for rank in range(ranks)]
    sys.stdout.flush()
    sys.stderr.flush()
    for one in processes:
        one.start()
    code, left = 0, list(processes)
    while left:
        if not multiprocessing.connection.wait([one.sentinel for one in left], _GRACE if code else None):
            for one in left:
                one.terminate()
        for one in [one for one in left if one.exitcode is not None]:
            left.remove(one)
            code = code or one.exitcode or 0
    return code


def _rank(rank: int, given: dict[str, str], body: Callable[[], tuple[int, str]]) -> None:
    os.environ.update(given, RANK=str(rank), LOCAL_RANK=str(rank))
    code, complaint = body()
    sys.stdout.flush()
    if complaint:
        print(f"rank {rank}: {complaint}", file=sys.stderr, flush=True)
    sys.exit(code)


def _port() -> int:
    """Returns the number of a port that is free."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
