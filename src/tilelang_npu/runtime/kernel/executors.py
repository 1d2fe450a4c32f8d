"""Runs many independent work items in threads of this process, in other processes, or on other machines.

Any ``concurrent.futures`` executor can be used. The names ``threads`` and ``processes`` are executors on this machine,
and ``dask`` and ``ray`` for executors on a cluster. If a process dies, another process computes its item again.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import queue
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, cast

from tilelang_npu.errors import TileError
from tilelang_npu.plugins.registry import load_sources, sources
from tilelang_npu.traced.author import user_location

Item = TypeVar("Item")
Made = TypeVar("Made")

_NAMES = ("threads", "processes", "dask", "ray")
_PACKAGES = {"dask": "distributed", "ray": "ray"}
HELP = ("threads or processes for workers on this machine, dask or ray for a new cluster on this machine, dask:ADDRESS or"
        " ray:ADDRESS for a running cluster")
_EXECUTOR = re.compile(r"(?P<name>\w+)(?::(?P<rest>.+))?")
_PRELOADED = ["tilelang_npu.runtime.kernel.draft", "tilelang_npu.runtime.kernel.compiled_kernel", "tilelang_npu.simulator"]
"""Modules that each process of a pool needs. The fork server loads them once."""


class Processes(Executor):
    """An executor with several processes on this machine, which survives the death of a process.

    If a process dies during a call, a new process repeats the call. If that process dies too, the call fails with a
    RuntimeError. Each process is a pool with one worker, so that it is known which call the process was computing.

    Ctrl-C reaches all processes of a terminal: a call that a process computes ends with a KeyboardInterrupt, and an idle
    process ignores it.

    Args:
        count: the number of processes. A process is started when it gets its first call.
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
        return ProcessPoolExecutor(1, mp_context=self._context, initializer=_ignore_interrupts)

    def submit(self, fn: Callable[..., Made], /, *args: object, **kwargs: object) -> Future[Made]:
        """Schedules a call in one of the processes, and returns its future; see :meth:`concurrent.futures.Executor.submit`."""
        return self._threads.submit(self._call, fn, args, kwargs)

    def _call(self, fn: Callable[..., Made], args: tuple[object, ...], kwargs: dict[str, object]) -> Made:
        process = self._idle.get()
        try:
            for _ in range(2):
                try:
                    return process.submit(_interruptible, fn, args, kwargs).result()
                except BrokenExecutor:
                    process = self._new_process()
            msg = "two processes died while they computed this item"
            raise RuntimeError(msg)
        finally:
            self._idle.put(process)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stops all processes after their calls; see :meth:`concurrent.futures.Executor.shutdown`.

        Args:
            wait: whether to return only when all processes have ended.
            cancel_futures: whether to cancel the calls that have not started.
        """
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        while not self._idle.empty():
            self._idle.get().shutdown(wait, cancel_futures=cancel_futures)


_INTERRUPT_HANDLERS: list[signal.Handlers | int | Callable[..., object] | None] = []
"""In a process of a pool, the handler of SIGINT with which the process has started."""


def _ignore_interrupts() -> None:
    """Lets this process ignore SIGINT between calls: it would end in the pool's code, with a traceback."""
    _INTERRUPT_HANDLERS.append(signal.signal(signal.SIGINT, signal.SIG_IGN))


def _interruptible(fn: Callable[..., Made], args: tuple[object, ...], kwargs: dict[str, object]) -> Made:
    """Calls a function in a process of a pool; SIGINT ends the call as it would in a process of its own."""
    signal.signal(signal.SIGINT, _INTERRUPT_HANDLERS[-1])
    try:
        return fn(*args, **kwargs)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class _OnRay(Executor):
    """Ray's tasks as an executor. Ray itself computes the tasks of a dead worker again."""

    def __init__(self, ray: ModuleType) -> None:
        self._run = ray.remote(max_retries=3)(_apply)

    def submit(self, fn: Callable[..., Made], /, *args: object, **kwargs: object) -> Future[Made]:
        """Schedules a call as a Ray task, and returns its future; see :meth:`concurrent.futures.Executor.submit`."""
        made: Future[Made] = self._run.remote(fn, args, kwargs).future()
        return made


def _apply(fn: Callable[..., Made], args: tuple[object, ...], kwargs: dict[str, object]) -> Made:
    return fn(*args, **kwargs)


def compute_each(executor: Executor | None, work: Callable[[Item], Made], items: Sequence[Item], seconds: float | None = None
                 ) -> Iterator[tuple[int, Made | BaseException]]:
    """Computes a function of each item on an executor, and yields each result as soon as it is ready.

    If a process of a pool dies, new processes compute the pool's unfinished items again.

    Args:
        executor: the executor; None to compute the items one after the other in this thread.
        work: the function of an item; it must be picklable unless the executor has threads.
        items: the items; they must be picklable unless the executor has threads.
        seconds: if no item becomes ready for this number of seconds, the remaining items fail with a TimeoutError; None for no
            limit. It has no effect without an executor.

    Yields:
        The index of an item, with the result of ``work`` or the exception that was raised.
    """
    if executor is None:
        for number, item in enumerate(items):
            yield number, work(item)
        return
    in_this_process = isinstance(executor, ThreadPoolExecutor)
    plugins = [] if in_this_process else sources()
    waiting: dict[Future[Made], int] = {}
    again: list[int] = []
    try:
        for number, item in enumerate(items):
            try:
                call = (functools.partial(work, item) if in_this_process
                        else functools.partial(_call_pickled, pickle.dumps((work, item)), plugins))
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


def _call_pickled(pickled: bytes, plugins: Sequence[tuple[str, str]]) -> Any:
    """Calls a pickled function on its pickled arguments, after loading plug-ins, and returns the result.

    The call is sent to the process as bytes, because clusters compare the objects that they send.

    Args:
        pickled: the function and its arguments.
        plugins: the plug-ins of the sending process, for :func:`load_sources`.
    """
    load_sources(plugins)
    work, item = pickle.loads(pickled)
    return work(item)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_executor(given: object, count: int | None = None) -> AbstractContextManager[Executor | None]:
    """Returns a context manager that yields an executor. It closes an executor that it has created from a name.

    Args:
        given: a ``concurrent.futures`` executor, which is used as it is; None, for which None is yielded; or a name:
            ``threads``, ``processes``, ``dask`` or ``ray``, optionally with a number of workers (``processes:4``) or the
            address of a cluster (``dask:ADDRESS``).
        count: the number of workers if the name has no number; None for one worker per CPU core of this machine.

    Raises:
        TileError: T707 there is no such executor, T735 the executor needs a package that is not installed.
    """
    if given is None or callable(getattr(given, "submit", None)):
        return nullcontext(cast("Executor | None", given))  # only its submit is used
    match = _EXECUTOR.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise TileError(f"executor={given!r} is not an executor: it has no method submit", code="T707",
                        location=user_location(), help="pass a concurrent.futures executor or a name such as \"processes\", or "
                                                       "remove executor")
    name, rest = match["name"], match["rest"] or ""
    address = "" if rest.isdecimal() else rest
    workers = int(rest) if rest.isdecimal() else count or _cores()
    if name not in _NAMES or (address and name in ("threads", "processes")) or workers < 1:
        near = get_close_matches(name, [one for one in _NAMES if one != name], n=1)
        advice = (f"did you mean {near[0]}?" if near else
                  f"the executors are {', '.join(_NAMES)}; processes:4 has 4 workers, dask:ADDRESS uses a running cluster")
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
