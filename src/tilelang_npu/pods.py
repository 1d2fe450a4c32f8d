"""Pods of simulated cards whose ranks are threads of this process: :func:`run` starts them.

Scripts that start a process for each rank, as TileLang-Ascend's do, use ``import shmem`` instead
(:mod:`tilelang_npu.compat.shmem`). Both use the memory of :mod:`tilelang_npu.symmetric_heap`.
"""

from __future__ import annotations

import contextvars
import math
import random
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilelang_npu.card_log import CardLog
from tilelang_npu.card_races import CardRaces, Clock
from tilelang_npu.errors import TileError, doors
from tilelang_npu.pod_profile import PodProfile
from tilelang_npu.runtime.kernel.listeners import Listener, listen
from tilelang_npu.simulator.machine.op_records import (
    CrossWait,
    OpRecord,
    PeerSignal,
    PeerWait,
    PutsEnd,
    Stream,
    accesses_to_gm,
    footprint,
    number_of,
)
from tilelang_npu.symmetric_heap import MAX_TEAMS, PodMemory, SymmetricHeap, is_shared, join

if TYPE_CHECKING:
    from tilelang_npu.runtime.arguments.binding import BoundCall
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding

__all__ = ["Card", "PodProfile", "profile", "run"]

Result = TypeVar("Result")
_CONSEQUENCES = {"S308": 1, "T433": 2}
"""The codes of errors that another card's failure may have caused; an error with a larger number is less likely the first."""


class Card:
    """One card of a pod, as the thread sees it that drives the card.

    Args:
        heap: the card's membership in the pod.
    """

    def __init__(self, heap: SymmetricHeap) -> None:
        self._heap = heap
        self._teams = 0

    @property
    def rank(self) -> int:
        """The number of the card, from 0."""
        return self._heap.rank

    @property
    def ranks(self) -> int:
        """The number of cards of the pod."""
        return self._heap.ranks

    def tensor(self, shape: int | Sequence[int], dtype: DTypeLike = "float32") -> NDArray[Any]:
        """Allocates an array on the symmetric heap, and fills it with zeros. All cards must make the same call.

        Args:
            shape: the shape, or the number of elements.
            dtype: the element type, as NumPy takes it.

        Raises:
            TileError: T432, the cards ask for different numbers of bytes; T433, a card does not make the call; T434, the heap
                is full.
        """
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = np.dtype(dtype)
        made = self._heap.allocate(math.prod(sizes) * kind.itemsize).view(kind).reshape(sizes)
        made[...] = np.zeros((), kind)
        self.barrier()  # no card writes to another one that has yet to write its zeros
        return made

    def free(self, tensor: NDArray[Any]) -> None:
        """Frees an array that :meth:`tensor` has made. All cards must make the same call.

        Raises:
            TileError: T430, the array was not made by :meth:`tensor`; T432 and T433, as :meth:`tensor`.
        """
        self._heap.free(int(tensor.ctypes.data))

    def team(self, ranks: Sequence[int]) -> int:
        """Makes a team of cards, for ``T.shmem_barrier``, and returns its number. All cards must make the same call.

        Args:
            ranks: the cards of the team.

        Raises:
            TileError: T431, there is no such card, or there are too many teams.
        """
        members = tuple(sorted(set(ranks)))
        if not members or not 0 <= members[0] <= members[-1] < self.ranks or self._teams + 1 >= MAX_TEAMS:
            raise TileError(f"a team of the ranks {list(members)} cannot be made in a pod of {self.ranks} cards", code="T431",
                            help=f"pass ranks of the pod, and make at most {MAX_TEAMS - 1} teams")
        self._teams += 1
        if self.rank in members:
            self._heap.teams[self._teams] = members
        return self._teams

    def barrier(self) -> None:
        """Waits until all cards have called this method.

        Raises:
            TileError: T433, a card has ended, or does not call it in time; S231 and S232, as :func:`run`, on rank 0.
        """
        self._heap.barrier()
        if self._heap.memory.log is not None:
            self._heap.memory.log.met(self.rank)
        races = self._heap.memory.races
        if races is not None:
            if self.rank == 0:
                races.clear()
            self._heap.barrier()


class _LocalAccesses(Listener):
    """Notes what the kernels of a card read and write in the card's own part of the heap.

    Args:
        heap: the card's membership in the pod.
        races: finds the races between the cards.
    """

    def __init__(self, heap: SymmetricHeap, races: CardRaces) -> None:
        self.thread = threading.get_ident()
        self._heap, self._races = heap, races

    def on_launched(self, kernel: Any, launch: AnyLaunch, findings: list[Finding]) -> None:
        """Notes the accesses of a run, as far as they are to tensors on the heap.

        Raises:
            TileError: S231, another card has accessed the same bytes, and one of the two writes.
        """
        for part in launch.parts:
            arrays = enumerate(part.recorded.bound.arrays)
            shared = {number: array for number, array in arrays if array is not None and is_shared(array)}
            if shared:
                self._note(part.recorded, shared)
        self._races.complete(self._heap.rank)

    def on_called(self, kernel: Any, call: BoundCall) -> None:
        """States that a kernel begins."""
        self._races.begin_kernel(self._heap.rank)

    def _note(self, recorded: RecordedLaunch, shared: Mapping[int, NDArray[np.uint8]]) -> None:
        """Notes the accesses of a launch to the given arguments, by their numbers."""
        for run in recorded.blocks:
            for stream, offsets, (index, sub) in zip(run.streams, run.gm, recorded.program.lanes, strict=True):
                function = recorded.program.functions[index]
                records = function.records
                whens = self._whens(function.core, run.block, sub, records, stream)
                for place, at, event, access in accesses_to_gm(records, stream, lambda access: access.buffer in shared):
                    where = footprint(access, event, offsets[place]).simplified()
                    if where.empty:
                        continue
                    view = np.ndarray((*where.sizes, where.element), np.uint8, shared[access.buffer], where.offset,
                                      (*where.strides, 1))
                    line = records[number_of(event)].location
                    if access.reads and not records[number_of(event)].polls:
                        self._races.note(self._heap.rank, view, writes=False, location=line, when=whens(at))
                    if access.writes:
                        self._races.note(self._heap.rank, view, writes=True, location=line, when=whens(at))

    def _whens(self, kind: str, block: int, sub: int, records: Sequence[OpRecord], stream: Stream
               ) -> Callable[[int], tuple[Clock, int]]:
        """Returns a function from the position of an event in the stream of a core to what the core knew then, and the time.

        After a core has waited for other cores of its card, it knows what the card knew then, in the simulator's order.
        """
        # Each signal, wait for cards or for cores, read of a loop that polls, and call of quiet logs once.
        places = [0, *(place for place, event in enumerate(stream) if records[number_of(event)].polls
                       or isinstance(records[number_of(event)].work, (CrossWait, PeerSignal, PeerWait, PutsEnd)))]

        def when(place: int) -> tuple[Clock, int]:
            return self._races.clock_after(self._heap.rank, (kind, block, sub), bisect_right(places, place, lo=1) - 1)

        return when


class _Calls(Listener):
    """Notes the kernels that a card calls.

    Args:
        rank: the card.
        log: the log of the pod.
    """

    def __init__(self, rank: int, log: CardLog) -> None:
        self.thread = threading.get_ident()
        self._rank, self._log = rank, log

    def on_called(self, kernel: Any, call: BoundCall) -> None:
        """States that a kernel begins."""
        self._log.begin_kernel(self._rank, kernel.name)

    def on_launched(self, kernel: Any, launch: AnyLaunch, findings: list[Finding]) -> None:
        """States that a kernel has ended."""
        self._log.end_kernel(self._rank, launch)


def run(body: Callable[[Card], Result], ranks: int, *, heap_bytes: int = 256 << 20, timeout: float = 120.0,
        sanitize: bool = False, interleaving: int | None = None) -> list[Result]:
    """Calls ``body`` for each card of a new pod, in a thread of its own, and returns the results in the order of the ranks.

    Args:
        body: the function that drives a card. Kernels that it calls with arrays of :meth:`Card.tensor` reach the other cards.
        ranks: the number of cards.
        heap_bytes: the bytes of each card's part of the symmetric heap. They take memory only where they are used.
        timeout: the seconds after which a card stops waiting for others.
        sanitize: whether to look for races between the cards: bytes of the heap that a kernel of one card writes, and a kernel
            of another card accesses, without a signal or a barrier that orders them.
        interleaving: the seed of short delays before transfers and signals, by which the cards overtake each other in different
            ways; None for no delays.

    Raises:
        TileError: T431, the number of cards is not possible; T434, ``heap_bytes`` is not positive; S231, a race between cards;
            S232, a signal that does not order a put; S308, cards that wait for signals that do not come; and any exception of
            ``body``. If several cards fail, it is that of the lowest rank whose failure does not follow from that of another.
    """
    return _run(body, ranks, heap_bytes, timeout, sanitize, interleaving, None)


def profile(body: Callable[[Card], Any], ranks: int, *, heap_bytes: int = 256 << 20, timeout: float = 120.0,
            interleaving: int | None = None) -> PodProfile:
    """Calls ``body`` for each card of a new pod, as :func:`run` does, and returns the modelled times of all cards: when each
    kernel of each card runs, how long it waits for other cards, and how long the card computes while it transfers data.

    Args:
        body: the function that drives a card. Only its kernels take part in the times, and its calls of :meth:`Card.barrier`
            and :meth:`Card.tensor`, at which all cards meet.
        ranks: the number of cards.
        heap_bytes: the bytes of each card's part of the symmetric heap.
        timeout: the seconds of real time after which a card stops waiting for others.
        interleaving: as for :func:`run`; the modelled times depend on it only where the executed ops do, as in loops that poll.

    Raises:
        TileError: as for :func:`run`; T435, no card has run a compiled kernel.
    """
    log = CardLog(max(ranks, 0))
    results = _run(body, ranks, heap_bytes, timeout, False, interleaving, log)
    return PodProfile(log, results)


def _run(body: Callable[[Card], Result], ranks: int, heap_bytes: int, timeout: float, sanitize: bool, interleaving: int | None,
         log: CardLog | None) -> list[Result]:
    """Runs a pod as :func:`run` does; ``log`` notes what the cards do."""
    if ranks < 1:
        raise TileError(f"a pod cannot have {ranks} cards", code="T431", help="pass a positive number")
    if heap_bytes < 1:
        raise TileError(f"a symmetric heap of {heap_bytes} bytes cannot be made", code="T434", help="pass a positive number")
    memory = PodMemory.of_threads(ranks, heap_bytes)
    memory.delays = None if interleaving is None else [random.Random(f"{interleaving} {rank}") for rank in range(ranks)]
    races = memory.races = CardRaces(memory.data) if sanitize else None
    memory.log = log
    results: list[Any] = [None] * ranks
    errors: list[BaseException | None] = [None] * ranks

    def drive(rank: int) -> None:
        heap = None
        try:
            heap = join(rank, ranks, heap_bytes, memory, timeout)
            with ExitStack() as listeners:
                if races is not None:
                    listeners.enter_context(listen(_LocalAccesses(heap, races)))
                if log is not None:
                    listeners.enter_context(listen(_Calls(rank, log)))
                results[rank] = body(Card(heap))
            heap.finish()
        except BaseException as error:  # noqa: BLE001  the caller of run gets it
            errors[rank] = error
            if heap is not None:
                heap.abandon()

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(drive, rank), name=f"rank {rank}")
               for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if races is not None:
        try:
            races.clear()
        except TileError as race:
            errors.append(race)
        memory.races = None  # last launches keep the memory, and marks take several bytes for each of it
    failed = [error for error in errors if error is not None]
    # A card that fails leaves the others waiting: for its signals, or at a barrier.
    for error in sorted(failed, key=lambda error: _CONSEQUENCES.get(error.code, 0) if isinstance(error, TileError) else 0):
        raise error
    return results


doors(globals())
