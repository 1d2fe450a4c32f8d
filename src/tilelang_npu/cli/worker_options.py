"""The options ``--jobs`` and ``--executor``, which say where the commands ``tune`` and ``improve`` compile kernels."""

from __future__ import annotations

import argparse

from tilelang_npu.runtime.kernel.executors import HELP

__all__ = ["add_worker_options", "executor_of"]


def add_worker_options(parser: argparse.ArgumentParser, compiled: str) -> None:
    """Adds the options to the parser of a command.

    Args:
        parser: the parser of the command.
        compiled: the name of the things that the command compiles, in the plural.
    """
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="the number of workers (default: 1)")
    parser.add_argument("--executor", metavar="NAME", help=f"where {compiled} are compiled: {HELP} (default: processes)")


def executor_of(args: argparse.Namespace) -> str | None:
    """Returns the name of the executor for ``open_executor``, with the number of workers; None for work in this process."""
    executor: str | None = args.executor or ("processes" if args.jobs > 1 else None)
    return f"{executor}:{args.jobs}" if executor is not None and ":" not in executor else executor
