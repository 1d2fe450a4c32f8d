"""Executors for work that consists of many independent items: in this process, in other processes, or on other machines.

Any ``concurrent.futures`` executor can be used. By name there are ``threads`` and ``processes`` of this machine, and ``dask``
and ``ray``, which run on a cluster. If a process dies, its item is computed again by another process.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import queue
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar, cast

from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location

Item = TypeVar("Item")
Made = TypeVar("Made")

_NAMES = ("threads", "processes", "dask", "ray")
_PACKAGES = {"dask": "distributed", "ray": "ray"}
HELP = ("threads or processes of this machine, or a cluster of its own that dask or ray starts here; dask:ADDRESS and"
        " ray:ADDRESS are clusters that run")
_EXECUTOR = re.compile(r"(?P<name>\w+)(?::(?P<rest>.+))?")
_PRELOADED = ["tilelang_npu.runtime.kernel.draft", "tilelang_npu.runtime.kernel.compiled_kernel", "tilelang_npu.simulator"]
"""Modules that each process of a pool needs. The fork server loads them once."""


class Processes(Executor):
    """Processes of this machine. Each is a pool of its own, so that it is known which call a process was computing when it
    died: that call is computed again by a new process. A call that kills two processes is an error.

    Args:
        count: the number of processes; each starts with its first call.
    """

    def __init__(self, count: int) -> None:
        methods = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload(_PRELOADED)
        self._threads = ThreadPoolExecutor(count)
        self._idle: queue.SimpleQueue[ProcessPoolExecutor] = queue.SimpleQueue()
        for _ in range(count):
            self._idle.put(self._new_process())

    def _new_process(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=self._context)

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[Any]:
        """See :meth:`concurrent.futures.Executor.submit`."""
        return self._threads.submit(self._call, fn, args, kwargs)

    def _call(self, fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        process = self._idle.get()
        try:
            for _ in range(2):
                try:
                    return process.submit(fn, *args, **kwargs).result()
                except BrokenExecutor:
                    process = self._new_process()
            msg = "two processes died of it"
            raise RuntimeError(msg)
        finally:
            self._idle.put(process)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See :meth:`concurrent.futures.Executor.shutdown`."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        while not self._idle.empty():
            self._idle.get().shutdown(wait, cancel_futures=cancel_futures)


class _OnRay(Executor):
    """Ray's tasks as an executor. Ray itself computes the tasks of a dead worker again."""

    def __init__(self, ray: Any) -> None:
        self._run = ray.remote(max_retries=3)(_apply)

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[Any]:
        """See :meth:`concurrent.futures.Executor.submit`."""
        made: Future[Any] = self._run.remote(fn, args, kwargs).future()
        return made


def _apply(fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    return fn(*args, **kwargs)


def compute_each(executor: Executor | None, work: Callable[[Item], Made], items: Sequence[Item], seconds: float | None = None
                 ) -> Iterator[tuple[int, Made | BaseException]]:
    """Yields the index of each item with its result, or with the error that was raised, in the order in which they are ready.

    Items of a pool whose process died are computed again by new processes.

    Args:
        executor: the executor; None: the items are computed in this thread, one after the other.
        work: the function that computes an item. It can be pickled.
        items: the items.
        seconds: if no item becomes ready for this time, the remaining items fail with TimeoutError.
    """
    if executor is None:
        for number, item in enumerate(items):
            yield number, work(item)
        return
    in_this_process = isinstance(executor, ThreadPoolExecutor)
    waiting: dict[Future[Made], int] = {}
    again: list[int] = []
    try:
        for number, item in enumerate(items):
            try:
                call = (functools.partial(work, item) if in_this_process
                        else functools.partial(_call_pickled, pickle.dumps((work, item))))
                waiting[executor.submit(call)] = number
            except BrokenExecutor:
                again.append(number)
        while waiting:
            done, _ = wait(waiting, seconds, FIRST_COMPLETED)
            if not done:
                yield from ((number, TimeoutError(f"longer than {seconds:g} s")) for number in waiting.values())
                break
            for future in done:
                number = waiting.pop(future)
                try:
                    made: Made | BaseException = future.result()
                except BrokenExecutor:
                    again.append(number)
                    continue
                except Exception as error:  # noqa: BLE001  (of the work or the executor; the caller gets it)
                    made = error
                yield number, made
    finally:
        for future in waiting:
            future.cancel()
    if again:
        again.sort()
        with Processes(getattr(executor, "_max_workers", None) or _cores()) as processes:
            for index, result in compute_each(processes, work, [items[number] for number in again], seconds):
                yield again[index], result


def _call_pickled(pickled: bytes) -> Any:
    """Computes an item. It is sent as bytes, as clusters inspect objects to find out whether they are equal."""
    work, item = pickle.loads(pickled)
    return work(item)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_executor(given: object, count: int | None = None) -> AbstractContextManager[Executor | None]:
    """Returns a context manager of an executor. An executor that is given by name is closed at the end of the ``with``.

    Args:
        given: an executor; None; or a name, with a colon and the number of workers, or with the address of a cluster.
        count: the number of workers if the name has none; None: one for each core of this machine.

    Raises:
        TileError: T707 there is no such executor, T735 it needs a package that is not installed.
    """
    if given is None or callable(getattr(given, "submit", None)):
        return nullcontext(cast("Executor | None", given))  # only its submit is used
    match = _EXECUTOR.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise TileError(f"executor={given!r} has no submit", code="T707", location=user_location(),
                        help="give a concurrent.futures.ThreadPoolExecutor, or leave it out")
    name, rest = match["name"], match["rest"] or ""
    address = "" if rest.isdecimal() else rest
    workers = int(rest) if rest.isdecimal() else count or _cores()
    if name not in _NAMES or (address and name in ("threads", "processes")) or workers < 1:
        near = get_close_matches(name, [one for one in _NAMES if one != name], n=1)
        advice = f"did you mean {near[0]}?" if near else f"one of {', '.join(_NAMES)}; or processes:4, dask:ADDRESS"
        raise TileError(f"there is no executor {given!r}", code="T707", location=user_location(), help=advice)
    if name in _PACKAGES:
        try:
            import_module(_PACKAGES[name])
        except ImportError:
            raise TileError(f"the executor {name} needs a package that is not installed", code="T735",
                            location=user_location(), help=f"pip install 'tilelang-npu[{name}]', or take processes") from None
        return (_dask if name == "dask" else _ray)(workers, address)
    return ThreadPoolExecutor(workers) if name == "threads" else Processes(workers)


@contextmanager
def _dask(workers: int, address: str) -> Iterator[Executor]:
    from distributed import Client, LocalCluster

    if address:
        with Client(address) as client:
            yield client.get_executor()
        return
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client.get_executor()


@contextmanager
def _ray(workers: int, address: str) -> Iterator[Executor]:
    import ray

    if ray.is_initialized():
        yield _OnRay(ray)
        return
    own_cluster = {"num_cpus": workers, "include_dashboard": False}
    ray.init(log_to_driver=False, **({"address": address} if address else own_cluster))
    try:
        yield _OnRay(ray)
    finally:
        ray.shutdown()
