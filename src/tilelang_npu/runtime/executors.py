"""Where work is done that comes in many equal parts: in this process, in others, or on other machines.

Any ``concurrent.futures`` executor will do. By name there are ``threads`` and ``processes`` of this machine, and ``dask`` and
``ray``, which run on a cluster. A process that dies takes no work with it: what it was at is done once more by another one.
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

__all__ = ["HELP", "Processes", "each", "opened"]

Item = TypeVar("Item")
Made = TypeVar("Made")

_NAMES = ("threads", "processes", "dask", "ray")
_PACKAGES = {"dask": "distributed", "ray": "ray"}
HELP = ("threads or processes of this machine, or a cluster of its own that dask or ray starts here; dask:ADDRESS and"
        " ray:ADDRESS are clusters that run")
_PARTED = re.compile(r"(?P<name>\w+)(?::(?P<rest>.+))?")
_PRELOADED = ["tilelang_npu.runtime.draft", "tilelang_npu.runtime.kernel", "tilelang_npu.simulator"]
"""What each process of a pool needs, loaded once."""


class Processes(Executor):
    """So many processes of this machine, each a pool of its own, so that it is known what one was at when it died: that is done
    once more by a fresh one. Whatever kills that one, too, is at fault itself.

    Args:
        count: of processes; each starts with its first work.
    """

    def __init__(self, count: int) -> None:
        methods = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload(_PRELOADED)
        self._threads = ThreadPoolExecutor(count)
        self._idle: queue.SimpleQueue[ProcessPoolExecutor] = queue.SimpleQueue()
        for _ in range(count):
            self._idle.put(self._fresh())

    def _fresh(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=self._context)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :meth:`concurrent.futures.Executor.submit`."""
        return self._threads.submit(self._done, fn, args, kwargs)

    def _done(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        process = self._idle.get()
        try:
            try:
                return process.submit(fn, *args, **kwargs).result()
            except BrokenExecutor:
                process = self._fresh()
            try:
                return process.submit(fn, *args, **kwargs).result()
            except BrokenExecutor:
                process = self._fresh()
                msg = "two processes died of it"
                raise RuntimeError(msg) from None
        finally:
            self._idle.put(process)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See :meth:`concurrent.futures.Executor.shutdown`."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        while not self._idle.empty():
            self._idle.get().shutdown(wait, cancel_futures=cancel_futures)


class _OnRay(Executor):
    """Ray's tasks as an executor; Ray itself does again what a dead worker was at."""

    def __init__(self, ray: Any) -> None:
        self._run = ray.remote(max_retries=3)(_call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :meth:`concurrent.futures.Executor.submit`."""
        made: Future[Any] = self._run.remote(fn, args, kwargs).future()
        return made


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


def each(executor: Executor | None, work: Callable[[Item], Made], items: Sequence[Item], seconds: float | None = None
         ) -> Iterator[tuple[int, Made | BaseException]]:
    """The numbers of items with what was made of them, or with what was raised, as they are ready.

    What was under way in a pool whose process died is done again by fresh processes.

    Args:
        executor: where; in this thread, one after the other, without one.
        work: a function that the executor can be given.
        items: what it takes.
        seconds: when no item has become ready for so long, the rest is given up.
    """
    if executor is None:
        for number, item in enumerate(items):
            yield number, work(item)
        return
    here = isinstance(executor, ThreadPoolExecutor)
    waiting: dict[Future[Made], int] = {}
    again: list[int] = []
    try:
        for number, item in enumerate(items):
            try:
                call = functools.partial(work, item) if here else functools.partial(_unpacked, pickle.dumps((work, item)))
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
                except Exception as error:  # noqa: BLE001  (of the work, or of who was to do it)
                    made = error
                yield number, made
    finally:
        for future in waiting:
            future.cancel()
    if again:
        again.sort()
        with Processes(getattr(executor, "_max_workers", None) or _cores()) as processes:
            for place, result in each(processes, work, [items[number] for number in again], seconds):
                yield again[place], result


def _unpacked(packed: bytes) -> Any:
    """What is made of an item. It travels in bytes, since clusters look into objects to tell whether they are equal."""
    work, item = pickle.loads(packed)
    return work(item)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def opened(given: object, count: int | None = None) -> AbstractContextManager[Executor | None]:
    """An executor for the ``with``: what is given, or what that names, which is closed behind it.

    Args:
        given: an executor; None; or a name, with a colon and the number of workers, or the address of a cluster.
        count: workers, where the name has no number; those that this machine has cores for without it.

    Raises:
        TileError: T707 there is no such executor, T735 it needs a package that is not installed.
    """
    if given is None or callable(getattr(given, "submit", None)):
        return nullcontext(cast("Executor | None", given))  # that it submits is all that is asked of it
    match = _PARTED.fullmatch(given) if isinstance(given, str) else None
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
    of_its_own = {"num_cpus": workers, "include_dashboard": False}
    ray.init(log_to_driver=False, **({"address": address} if address else of_its_own))
    try:
        yield _OnRay(ray)
    finally:
        ray.shutdown()
