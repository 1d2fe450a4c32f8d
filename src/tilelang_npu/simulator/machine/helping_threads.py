"""Threads that help with a launch.

They are begun anew for each: the system puts a new thread where a processor has the least to do. One that waits it wakes on the
processor of whoever wakes it, where others have something to do on the rest, and the two take turns there.
"""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue

Ended = SimpleQueue[BaseException | None]
"""Takes of each thread what went wrong, when it is done."""


@contextmanager
def helped(works: Sequence[Callable[[], object]]) -> Iterator[None]:
    """While this lasts, other threads do some work, each a part of it; it ends when they have.

    Where the system has no room for as many threads, there are fewer: what is inside does what nobody else has done.

    Raises:
        BaseException: what one of them raised, where nothing was raised inside.
    """
    ended: Ended = SimpleQueue()
    begun = 0
    failed: list[BaseException | None] = []
    try:
        with suppress(RuntimeError):
            for work in works:
                start_new_thread(_help, ([work], ended))  # threading's would wait here until the other one has begun
                begun += 1
        yield
    finally:
        failed += [ended.get() for _ in range(begun)]
    for error in failed:
        if error is not None:
            raise error


def _help(given: list[Callable[[], object]], ended: Ended) -> None:
    failed: BaseException | None = None
    try:
        given.pop()()  # so that nothing here has the launch's arrays any more when that goes on
    except BaseException as error:  # noqa: BLE001 - the launch raises it
        failed = error
    ended.put(failed)
