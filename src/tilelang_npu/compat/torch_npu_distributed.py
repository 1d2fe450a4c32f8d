"""``torch.distributed`` between simulated cards: the backend ``hccl`` is torch's gloo, on tensors in host memory.

Ranks are processes. ``torch.multiprocessing.spawn`` forks them, because a process that starts afresh has no device ``npu``.
After a fork a rank has what the script has imported and ``install()`` has changed.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module

import torch

from tilelang_npu.compat.replacements import Replacements

__all__ = ["install", "uninstall"]

HCCL = "hccl"
"""The backend of torch_npu for collectives between cards."""
# read as modules without types, which torch's functions for processes do not have
_distributed, _processes = import_module("torch.distributed"), import_module("torch.multiprocessing")
_replaced = Replacements()


def _gloo(store: object, rank: int, size: int, timeout: timedelta) -> object:
    """Returns a group of processes that implements ``hccl``."""
    found: object = _distributed.ProcessGroupGloo(store, rank, size, timeout=timeout)
    return found


def _forking(spawn: Callable[..., object]) -> Callable[..., object]:
    """Returns ``torch.multiprocessing.spawn`` with processes that are forked."""

    @functools.wraps(spawn)
    def start(fn: Callable[..., object], args: tuple[object, ...] = (), nprocs: int = 1, join: bool = True,
              daemon: bool = False, start_method: str = "spawn") -> object:
        found: object = _processes.start_processes(fn, args, nprocs, join, daemon, start_method="fork")
        return found

    return start


def install() -> None:
    """Makes ``hccl`` a backend of ``torch.distributed``, and lets ``torch.multiprocessing.spawn`` fork. Calling it again has no
    effect."""
    if _replaced or not _distributed.is_available():
        return
    backend = _distributed.Backend
    if HCCL.upper() not in backend._plugins and _distributed.is_gloo_available():
        backend.register_backend(HCCL, _gloo, devices=["cpu"])
    # barrier() asks for the accelerator, which torch cannot name for a device that has only a name
    _replaced.replace(torch._C, "_get_accelerator", lambda check=None: torch.device("cpu"))
    if "fork" in multiprocessing.get_all_start_methods():
        _replaced.replace(_processes, "spawn", _forking(_processes.spawn))


def uninstall() -> None:
    """Undoes :func:`install`, except that ``hccl`` stays a backend, which torch cannot remove."""
    _replaced.undo()
