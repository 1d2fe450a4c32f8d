"""The symmetric heap of a pod of simulated cards: memory of which each card has a part, and which all cards can access.

A *pod* is a number of cards, its *ranks*. Each rank is a process of its own, or a thread of one process. The parts of all ranks
have the same size, and a tensor begins at the same offset in the part of each rank; the address of the tensor in a rank's own
part, and the number of another rank, therefore give the address in that rank's part (CANN's ``aclshmem_ptr``).

The parts lie one after another in one file that every process maps (:class:`PodMemory`). The file is sparse: pages that no rank
accesses take no space, and it has a name only until all ranks have joined. Its first bytes hold one record for each rank, which
only this rank writes: whether it has joined, its process, how many barriers it has reached, and whether it waits for other
ranks. A rank waits by reading the records of the others, so barriers need no locks. Additions to another rank's memory take a
lock (:meth:`PodMemory.exclusive`).

Kernels reach another rank by :func:`peer_to_read` and :func:`peer_to_write`, which are given an array in the caller's own part.
Every thread of a process can use them, because the address tells the rank that calls.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # Windows has no such locks; additions of several processes to one place may then be lost
    fcntl = None  # type: ignore[assignment]

from tilelang_npu.card_log import CardLog
from tilelang_npu.card_races import CardRaces, Core
from tilelang_npu.errors import Location, TileError

__all__ = ["PodMemory", "SymmetricHeap", "add_to_peer", "address_of", "card_of_word", "current_heap", "is_rehearsed",
           "is_shared", "join", "part_of", "peer_to_read", "peer_to_write", "peer_word", "pod_path", "rehearsal"]

Array = NDArray[Any]
ALIGN = 512
"""The alignment in bytes of allocations, which is that of CANN's allocator for tensors in GM."""
MAX_RANKS = 1024
"""The largest number of ranks of a pod: a rank that waits looks at the records of all others."""
TIMEOUT = 120.0
"""Seconds after which a rank stops waiting for others; the default of CANN's ``control_operation_timeout``."""
_PAGE = mmap.ALLOCATIONGRANULARITY
_WORDS = 128
_STATE, _PROCESS, _RANKS, _BYTES, _CALL_KIND, _CALL_SIZE, _ARRIVALS = 0, 1, 2, 3, 4, 5, 6
"""The positions in a rank's record of 128 words: state, process, number of ranks and bytes of a part as this rank knows them,
the kind and the size of its last collective call, and the counts of barriers that it has reached, one for each team."""
MAX_TEAMS = 58
_WAITS, _WAIT_NUMBER, _LOOKS, _LINE = range(_ARRIVALS + MAX_TEAMS, _ARRIVALS + MAX_TEAMS + 4)
"""Further positions in a record: the kind of wait in which the rank is (``_RUNS`` if it does not wait), the number of waits
that it has begun, how often it has found in this wait that it cannot go on, and the line of the kernel at which it waits."""
_RUNS, _IN_SIGNAL, _IN_BARRIER, _DONE = 0, 1, 2, 3
_ABSENT, _JOINED, _LEFT = 0, 1, 2
_CALLS = {1: "allocates", 2: "frees", 3: "leaves"}


class PodMemory:
    """The memory of all ranks of a pod, as this process maps it.

    Args:
        ranks: the number of ranks.
        part: the bytes of each rank's part.
        file: the file that the processes share; None for memory of this process alone, whose threads are the ranks.

    Attributes:
        words: the records of the ranks, one row of 64-bit integers for each rank.
        data: the bytes of all parts, as an array with one row for each rank.
        races: finds races between the ranks, if they are threads and their run asks for it; else None.
        log: notes what the ranks do, if they are threads and the pod is timed; else None.
        hung: for each rank that is a thread of this process and waits for signals that do not come, a description of its waits.
        delays: for each rank the generator of the delays before its transfers and signals; None for no delays.
    """

    def __init__(self, ranks: int, part: int, file: Path | None) -> None:
        self.ranks, self.part, self.file = ranks, part, file
        size = _file_size(ranks, part)
        front = size - ranks * part
        self._handle = -1
        if file is None:
            self._mapped = mmap.mmap(-1, size)
        else:
            self._handle = os.open(file, os.O_RDWR)  # kept open for the lock: the file has no name later
            self._mapped = mmap.mmap(self._handle, size)
        self.words: NDArray[np.int64] = np.frombuffer(self._mapped, np.int64, ranks * _WORDS).reshape(ranks, _WORDS)
        self.data: NDArray[np.uint8] = np.frombuffer(self._mapped, np.uint8, ranks * part, front).reshape(ranks, part)
        self.races: CardRaces | None = None
        self.log: CardLog | None = None
        self.hung: dict[int, object] = {}
        self.delays: Sequence[random.Random] | None = None
        self._lock = threading.Lock()
        self.start = int(self.data.ctypes.data)
        self.end = self.start + ranks * part

    @classmethod
    def of_threads(cls, ranks: int, part: int) -> PodMemory:
        """Returns memory for a pod whose ranks are threads of this process, with at least ``part`` bytes for each."""
        return cls(ranks, _in_pages(part), None)

    def delay(self, rank: int) -> None:
        """Lets the thread of a rank sleep for up to a millisecond, if the run asks for delays."""
        if self.delays is not None:
            time.sleep(self.delays[rank].choice((0, 0, 1e-4, 1e-3)))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While the context is open, no other rank of the pod is in it: for updates that read and write another rank's memory.
        """
        with self._lock:
            if self._handle < 0 or fcntl is None:
                yield
                return
            fcntl.lockf(self._handle, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._handle, fcntl.LOCK_UN)

    @staticmethod
    def create(file: Path, ranks: int, part: int) -> None:
        """Creates the file of a pod, unless it exists.

        The complete file gets its name in one step, so no process sees a part of it.
        """
        if file.exists():
            return
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")
        try:
            os.truncate(handle, _file_size(ranks, part))
            with suppress(FileExistsError):
                os.link(name, file)
        finally:
            os.close(handle)
            Path(name).unlink()


@dataclass
class _Block:
    """A range of a rank's part: its first byte, its length, and whether it is allocated."""

    start: int
    size: int
    used: bool = False


@dataclass
class SymmetricHeap:
    """The membership of one rank in a pod.

    Every rank must call ``allocate``, ``free`` and ``leave`` in the same order with the same sizes: these calls are collective,
    and each ends with a barrier of all ranks.

    Attributes:
        memory: the memory of the pod.
        rank: the number of this rank.
        timeout: the seconds after which the rank stops waiting for others.
        teams: the ranks of each team that this rank has made; team 0 has all ranks.
    """

    memory: PodMemory
    rank: int
    timeout: float = TIMEOUT
    _blocks: list[_Block] = field(default_factory=list)
    left: bool = False
    teams: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._blocks.append(_Block(0, self.memory.part))
        self.teams[0] = tuple(range(self.ranks))

    @property
    def ranks(self) -> int:
        """The number of ranks of the pod."""
        return self.memory.ranks

    @property
    def _record(self) -> NDArray[np.int64]:
        record: NDArray[np.int64] = self.memory.words[self.rank]
        return record

    def allocate(self, nbytes: int, align: int = ALIGN) -> Array:
        """Allocates ``nbytes`` bytes in the part of every rank, and returns those of this rank.

        Raises:
            TileError: T432, the ranks ask for different numbers of bytes; T433, other ranks do not call; T434, the heap has no
                such range.
        """
        found = next((block for block in self._blocks if not block.used and
                      -(-block.start // align) * align + nbytes <= block.start + block.size), None)
        if found is None or nbytes <= 0:
            free = sum(block.size for block in self._blocks if not block.used)
            raise TileError(f"{nbytes} bytes cannot be allocated on the symmetric heap, of whose {self.memory.part} bytes "
                            f"{free} are free", code="T434",
                            help="state more bytes when the cards join (heap_bytes, local_mem_size), or free tensors")
        self._collective(1, nbytes)
        start = -(-found.start // align) * align
        at = self._blocks.index(found)
        parts = [_Block(found.start, start - found.start), _Block(start, nbytes, used=True),
                 _Block(start + nbytes, found.start + found.size - start - nbytes)]
        self._blocks[at:at + 1] = [part for part in parts if part.size or part.used]
        made: Array = self.memory.data[self.rank, start:start + nbytes]
        return made

    def free(self, address: int) -> None:
        """Frees the allocation that begins at an address in this rank's part.

        Raises:
            TileError: T430, no allocation begins there; T432, T433, as :meth:`allocate`.
        """
        start = address - self.memory.start - self.rank * self.memory.part
        at = next((at for at, block in enumerate(self._blocks) if block.used and block.start == start), None)
        if at is None:
            raise TileError("the memory to free is no allocation of the symmetric heap", code="T430",
                            help="pass what aclshmem_malloc or aclshmem_create_tensor has returned, once")
        self._collective(2, self._blocks[at].size)
        self._blocks[at].used = False
        joined: list[_Block] = []
        for block in self._blocks:
            if joined and not joined[-1].used and not block.used:
                joined[-1].size += block.size
            else:
                joined.append(block)
        self._blocks = joined

    def leave(self) -> None:
        """Leaves the pod, after a barrier. Arrays on the heap stay readable."""
        if self.left:
            return
        self._collective(3, 0)
        self._record[_STATE] = _LEFT
        self.left = True

    def finish(self) -> None:
        """States that this rank makes no further calls, so that other ranks do not wait for its signals."""
        self._record[_WAITS] = _DONE

    def abandon(self) -> None:
        """Leaves the pod at once. Ranks that wait for this one, now or later, get the error T433."""
        self._record[_STATE] = _LEFT
        self.left = True

    def barrier(self, team: int = 0, members: Sequence[int] | None = None) -> None:
        """Waits until all members of a team have reached the barrier.

        Args:
            team: the number of the team, less than ``MAX_TEAMS``.
            members: the ranks of the team; None for all.

        Raises:
            TileError: T433, a member has ended, or does not come within the timeout.
        """
        self._wait(self.arrive(team, members), "reach the barrier")

    def arrive(self, team: int, members: Sequence[int] | None = None) -> Callable[[], list[int]]:
        """Reaches a barrier without waiting for the other members of the team.

        Args:
            team, members: as for :meth:`barrier`.

        Returns:
            a function that returns the members that have not reached the barrier yet.
        """
        column = self.memory.words[:, _ARRIVALS + team]
        count = int(column[self.rank]) + 1
        column[self.rank] = count
        return lambda: [rank for rank in (range(self.ranks) if members is None else members) if column[rank] < count]

    def agree_on_largest(self, value: int, team: int, members: Sequence[int]) -> int:
        """Returns the largest of the values with which the members of a team call this method.

        Raises:
            TileError: T433, as :meth:`barrier`.
        """
        self._record[_CALL_SIZE] = value
        self.barrier(team, members)
        found = int(self.memory.words[list(members), _CALL_SIZE].max())
        self.barrier(team, members)
        return found

    def _collective(self, kind: int, size: int) -> None:
        """Compares a collective call with those of the other ranks, between two barriers.

        Raises:
            TileError: T432, another rank makes another call, or one with another size; T433, as :meth:`barrier`.
        """
        self._record[_CALL_KIND], self._record[_CALL_SIZE] = kind, size
        self.barrier()
        calls = self.memory.words[:, _CALL_KIND:_CALL_SIZE + 1].copy()
        self.barrier()
        other = next((rank for rank in range(self.ranks) if tuple(calls[rank]) != (kind, size)), None)
        if other is not None:
            made = [f"rank {rank} {_CALLS[int(calls[rank, 0])]}" + (f" {calls[rank, 1]} bytes" if calls[rank, 1] else "")
                    for rank in (self.rank, other)]
            raise TileError(f"the ranks of the pod make different calls: {' and '.join(made)}", code="T432",
                            help="let all ranks allocate and free the same sizes in the same order, and leave together")

    def _wait(self, missing: Callable[[], list[int]], what: str) -> None:
        if not missing():
            return
        self.begin_wait(_IN_BARRIER)
        try:
            self._wait_for_ranks(missing, what)
        finally:
            self._record[_WAITS] = _RUNS

    def _wait_for_ranks(self, missing: Callable[[], list[int]], what: str) -> None:
        began, checked, pause = time.monotonic(), 0.0, 2e-5
        while absent := missing():
            self._record[_LOOKS] += 1
            now = time.monotonic() - began
            if now - checked > 0.2:
                checked = now
                gone = [rank for rank in absent if self._has_ended(rank)]
                if gone or now > self.timeout:
                    names = ", ".join(map(str, gone or absent))
                    why = "has ended" if gone else f"did not within {self.timeout:g} s"
                    raise TileError(f"rank {self.rank} waits for rank {names} to {what}, which {why}", code="T433",
                                    notes=(f"{self.ranks - len(absent)} of the {self.ranks} ranks did",),
                                    help="let every rank make the call; look for an error of the rank that is missing")
            time.sleep(pause)
            pause = min(2 * pause, 2e-3)

    def begin_wait(self, kind: int, line: int = 0) -> None:
        """Enters a wait in this rank's record.

        Args:
            kind: ``_IN_SIGNAL`` or ``_IN_BARRIER``.
            line: the line of the kernel at which the rank waits; 0 if it is not known.
        """
        record = self._record
        record[_LOOKS], record[_LINE] = 0, line
        record[_WAIT_NUMBER] += 1
        record[_WAITS] = kind

    def wait_until(self, ready: Callable[[], bool], line: int) -> str:
        """Waits until ``ready`` returns True, which another rank brings about.

        All ranks of the pod hang if each of them waits and none can go on. A rank writes to the memory of others only while it
        does not wait, so that is certain once every rank has looked at its own condition after all of them had begun to wait.

        Args:
            ready: returns whether the wait is over.
            line: the line of the kernel.

        Returns:
            empty if the wait is over; otherwise ``deadlock`` if all ranks hang, or ``timeout``.
        """
        began, pause = time.monotonic(), 2e-5
        seen: list[tuple[int, int]] = []
        self.begin_wait(_IN_SIGNAL, line)
        try:
            while not ready():
                record = self._record
                record[_LOOKS] += 1
                waits = [self._wait_of(rank) for rank in range(self.ranks)]
                stuck = [found for found in waits if found is not None]
                if len(stuck) < self.ranks or [number for number, _ in stuck] != [number for number, _ in seen]:
                    seen = stuck if len(stuck) == self.ranks else []
                elif all(now >= before + 2 or number < 0 for (number, now), (_, before) in zip(stuck, seen, strict=True)):
                    record[_LOOKS] += 2  # so that the others find it too; the record goes on to say that this rank waits
                    return "deadlock"
                if time.monotonic() - began > self.timeout:
                    return "timeout"
                time.sleep(pause)
                pause = min(2 * pause, 2e-3)
        except BaseException:
            self._record[_WAITS] = _RUNS
            raise
        self._record[_WAITS] = _RUNS
        return ""

    def _wait_of(self, rank: int) -> tuple[int, int] | None:
        """Returns the number of a rank's wait and how often the rank has found its condition false; None if it does not wait.

        A rank that has ended waits for ever: its number is -1.
        """
        record = self.memory.words[rank]
        if record[_WAITS] == _DONE or record[_STATE] == _LEFT:
            return -1, 0
        if record[_WAITS] == _RUNS:
            return (-1, 0) if not _is_alive(int(record[_PROCESS])) else None
        return int(record[_WAIT_NUMBER]), int(record[_LOOKS])

    def state_of(self, rank: int) -> str:
        """Returns what a rank does, for messages: that it waits, where and for what, or that it has ended.

        Of a rank that has ended because its wait has no end, the result is the wait.
        """
        record = self.memory.words[rank]
        if record[_WAITS] == _IN_SIGNAL:
            return "waits for a signal" + (f" at line {record[_LINE]}" if record[_LINE] else "")
        if record[_WAITS] == _DONE or self._has_ended(rank):
            return "has ended"
        return "waits at a barrier" if record[_WAITS] == _IN_BARRIER else "runs"

    def ranks_in_signals(self) -> set[int]:
        """Returns the ranks that wait for a signal, or that have just found that it does not come."""
        return {rank for rank in range(self.ranks) if self.memory.words[rank, _WAITS] == _IN_SIGNAL}

    def _has_ended(self, rank: int) -> bool:
        """Whether a rank has left the pod, or its process has ended."""
        state, process = int(self.memory.words[rank, _STATE]), int(self.memory.words[rank, _PROCESS])
        return state == _LEFT or (state == _JOINED and not _is_alive(process))


def _is_alive(process: int) -> bool:
    """Whether a process runs; on systems without ``/proc`` and POSIX signals, True.

    A process that has ended and whose parent has not waited for it does not run.
    """
    if Path("/proc/self/stat").exists():
        try:
            return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


_CURRENT: ContextVar[SymmetricHeap | None] = ContextVar("tilelang_npu_card", default=None)
_OF_PROCESS: list[SymmetricHeap] = []
"""The memberships of this process in pods whose ranks are processes."""


def current_heap() -> SymmetricHeap | None:
    """Returns the membership of the card that the calling thread drives; None if the thread has joined no pod.

    A thread of a process that is a rank drives the card of the process.
    """
    return _CURRENT.get() or (_OF_PROCESS[-1] if _OF_PROCESS else None)


_MEMORIES: list[PodMemory] = []
"""The memory of every pod that this process has mapped. It is kept after the ranks have left: arrays may still refer to it."""
_LOCK = threading.RLock()


def _after_fork() -> None:
    """Replaces the lock in a forked process, because a thread of the parent may have held it."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def pod_path(name: str) -> Path:
    """Returns the file of the pod with a name, in the directory for temporary files.

    Processes with the same name, the same parent process and the same user find the same file. The parent is part of it because
    scripts contain fixed names, such as an address, and may run twice at a time.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    key = hashlib.sha256(f"{name} {user} {os.getppid()}".encode()).hexdigest()[:20]
    return Path(tempfile.gettempdir()) / f"tilelang-npu-pod-{key}"


def join(rank: int, ranks: int, part: int, memory: PodMemory | Path, timeout: float = TIMEOUT) -> SymmetricHeap:
    """Makes the caller a rank of a pod, and waits until all ranks have joined.

    Args:
        rank: the number of the rank, from 0.
        ranks: the number of ranks of the pod.
        part: the bytes of each rank's part of the heap; rounded up to whole pages.
        memory: the file of the pod (:func:`pod_path`), which the first rank creates; or memory of this process, if the ranks
            are its threads.
        timeout: the seconds after which the rank stops waiting for others, here and later.

    Raises:
        TileError: T431, there is no such rank, or another process is this rank; T432, the ranks disagree on their number or on
            the bytes; T433, ranks do not join; T434, the number of bytes is not positive.
    """
    if not 0 < ranks <= MAX_RANKS or not 0 <= rank < ranks:
        raise TileError(f"there is no rank {rank} in a pod of {ranks} ranks", code="T431",
                        help=f"ranks are numbered from 0, and a pod has at most {MAX_RANKS}")
    if part <= 0:
        raise TileError(f"a symmetric heap of {part} bytes cannot be made", code="T434", help="pass a positive number of bytes")
    part = _in_pages(part)
    with _LOCK:
        if isinstance(memory, Path):
            memory = _mapped(memory, rank, ranks, part)
        elif memory not in _MEMORIES:
            _MEMORIES.append(memory)
        record = memory.words[rank]
        if record[_STATE] == _JOINED and _is_alive(int(record[_PROCESS])):
            raise TileError(f"rank {rank} is in the pod already, as process {record[_PROCESS]}", code="T431",
                            help="give each process or thread its own rank")
        heap = SymmetricHeap(memory, rank, timeout)
        _CURRENT.set(heap)
        if memory.file is not None:
            _OF_PROCESS.append(heap)
        record[:] = 0
        record[_PROCESS], record[_RANKS], record[_BYTES] = os.getpid(), ranks, part
        record[_STATE] = _JOINED
    try:
        heap._wait(lambda: [one for one in range(ranks) if memory.words[one, _STATE] == _ABSENT], "join the pod")
        other = next((one for one in range(ranks) if tuple(memory.words[one, _RANKS:_BYTES + 1]) != (ranks, part)), None)
        if other is not None:
            raise _disagreement(rank, ranks, part, other, int(memory.words[other, _RANKS]), int(memory.words[other, _BYTES]))
    except TileError:
        record[_STATE] = _LEFT
        raise
    finally:
        if rank == 0 and memory.file is not None:  # all ranks have mapped the file, so its name is not needed any more
            with suppress(OSError):
                memory.file.unlink()
    return heap


def _in_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _disagreement(rank: int, ranks: int, part: int, other: int, others: int, other_part: int) -> TileError:
    return TileError(f"rank {rank} has a pod of {ranks} ranks with {part} bytes each, and rank {other} one of {others} with "
                     f"{other_part}", code="T432", help="give all ranks the same n_ranks and local_mem_size")


def _mapped(file: Path, rank: int, ranks: int, part: int) -> PodMemory:
    """Maps the file of a pod. The file is created if it does not exist, or if all processes in its records have ended.

    Raises:
        TileError: T432, the file of a running pod has another size. The rank then enters itself in the file as one that has
            left, so that the other ranks report the same.
    """
    while True:
        PodMemory.create(file, ranks, part)
        with suppress(FileNotFoundError):
            with file.open("r+b") as opened:
                size = os.fstat(opened.fileno()).st_size
                records = np.fromfile(opened, np.int64, min(ranks, size // (8 * _WORDS)) * _WORDS).reshape(-1, _WORDS)
                running = [one for one, record in enumerate(records)
                           if record[_STATE] == _JOINED and _is_alive(int(record[_PROCESS]))]
                if running and size != _file_size(ranks, part):
                    opened.seek(rank * _WORDS * 8)
                    np.array([_LEFT, os.getpid(), ranks, part], np.int64).tofile(opened)
                    first = records[running[0]]
                    raise _disagreement(rank, ranks, part, running[0], int(first[_RANKS]), int(first[_BYTES]))
            if running or not records[:, _PROCESS].any():
                memory = PodMemory(ranks, part, file)
                _MEMORIES.append(memory)
                return memory
            file.unlink()


def _file_size(ranks: int, part: int) -> int:
    """Returns the bytes of the file of a pod: whole pages of records, and the parts of the ranks."""
    return _in_pages(ranks * _WORDS * 8) + ranks * part


# --- peers of an array -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rehearsal:
    """A run of a kernel whose effects on other cards are dropped.

    Attributes:
        copies: for each copy of an argument the address of its first byte, its length, and the address of the original.
        puts: a list to which each put is added: the rank, the offsets in its part of the first byte and after the last one, and
            the line; None to drop them.
    """

    copies: tuple[tuple[int, int, int], ...] = ()
    puts: list[tuple[int, int, int, Location | None]] | None = None


_REHEARSAL: ContextVar[_Rehearsal | None] = ContextVar("tilelang_npu_rehearsal", default=None)


@contextmanager
def rehearsal(copies: Sequence[object] = (), originals: Sequence[object] = (),
              puts: list[tuple[int, int, int, Location | None]] | None = None) -> Iterator[None]:
    """While the context is open, kernels of this thread do not write to other cards.

    It is for checks that execute a kernel once more on copies of its arguments. A transfer from another card reads that card's
    memory if the copied argument is in ``copies``; otherwise it reads the caller's own array.

    Args:
        copies: arrays, and objects of other kinds, which are ignored.
        originals: the array of which each is a copy.
        puts: a list to which each put is added: the rank, the offsets in its part of the first byte and after the last one, and
            the line; None to drop them.
    """
    pairs = tuple((address_of(one), one.nbytes, address_of(other)) for one, other in zip(copies, originals, strict=True)
                  if isinstance(one, np.ndarray) and isinstance(other, np.ndarray))
    before = _REHEARSAL.set(_Rehearsal(pairs, puts))
    try:
        yield
    finally:
        _REHEARSAL.reset(before)


def address_of(array: Array) -> int:
    """Returns the address of the first byte of an array."""
    return int(array.__array_interface__["data"][0])


def byte_span(array: Array) -> int:
    """Returns the number of bytes from the first byte of an array to its last one; strides must not be negative."""
    if not array.size:
        return 0
    return int(array.itemsize + sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)))


def is_rehearsed() -> bool:
    """Whether the calling thread executes a kernel in a :func:`rehearsal`, so that it neither signals nor waits."""
    return _REHEARSAL.get() is not None


def part_of(address: int) -> tuple[PodMemory, int, int] | None:
    """Returns the pod in whose memory an address lies, the rank that has this part, and the offset in the part; None for an
    address in other memory."""
    for memory in reversed(_MEMORIES):
        if memory.start <= address < memory.end:
            rank, offset = divmod(address - memory.start, memory.part)
            return memory, rank, offset
    return None


def is_shared(array: Array) -> bool:
    """Returns whether an array is on the symmetric heap of a pod, so that other cards can access it."""
    return array.size > 0 and part_of(address_of(array)) is not None


def peer_to_read(array: Array, rank: int, location: Location | None = None) -> Array:
    """Returns the array of another rank that corresponds to an array in the caller's part of the symmetric heap.

    Args:
        array: an array in the caller's part; it may have any strides that are not negative.
        rank: the number of the other rank, or of the caller's own.
        location: the line of the transfer, for the report of a race; None if it is not known.

    Raises:
        TileError: T430, the array is not on the symmetric heap; T431, the pod does not have the rank; S231, the pod looks for
            races, and another rank accesses the elements too.
    """
    rehearsed = _REHEARSAL.get()
    address = address_of(array)
    if not array.size:  # it has no memory, and NumPy gives it any address
        return array
    if rehearsed is not None:
        origin = next((original + address - start for start, size, original in rehearsed.copies if 0 <= address - start < size),
                      address)
        found = part_of(origin)
        if found is None or found[1] == rank:
            return array
        address = origin
    return _peer(array, address, rank, location, None, writes=False)


def peer_to_write(array: Array, rank: int, location: Location | None = None, core: Core = None) -> Array:
    """Returns the array of another rank that corresponds to an array of the caller, as :func:`peer_to_read`.

    In a :func:`rehearsal`, writes to the returned array have no effect, unless the rank is the caller's own.

    Args:
        array, rank, location: as for :func:`peer_to_read`.
        core: the core that writes, for the detection of races between a put and a signal after it.

    Raises:
        TileError: as :func:`peer_to_read`.
    """
    rehearsed = _REHEARSAL.get()
    if rehearsed is None:
        return _peer(array, address_of(array), rank, location, core, writes=True) if array.size else array
    found = peer_to_read(array, rank)
    place = part_of(address_of(found))
    if rehearsed.puts is not None and place is not None:
        rehearsed.puts.append((place[1], place[2], place[2] + byte_span(found), location))
    return np.empty_like(found) if found is not array or part_of(address_of(array)) is not None else found


def add_to_peer(array: Array, values: Array, rank: int, location: Location | None = None, core: Core = None) -> None:
    """Adds values to the array of another rank that corresponds to an array of the caller, without interruption by other ranks.

    Args:
        array, rank, location, core: as for :func:`peer_to_write`.
        values: as many values.

    Raises:
        TileError: as :func:`peer_to_write`.
    """
    if not array.size:
        return
    if _REHEARSAL.get() is not None:
        peer_to_write(array, rank)
        return
    made, memory, caller = _counterpart(array, address_of(array), rank)
    if memory.races is not None:
        memory.races.note(caller, made, writes=True, adds=True, location=location, core=core)
    with memory.exclusive():
        made += values


def peer_word(array: Array, rank: int) -> Array:
    """Returns the word of another rank that corresponds to a word of the caller, for a signal; no race is looked for.

    Raises:
        TileError: T430, the word is not on the symmetric heap; T431, the pod does not have the rank.
    """
    return _counterpart(array, address_of(array), rank)[0]


def card_of_word(array: Array) -> tuple[int, int]:
    """Returns the rank in whose part of the symmetric heap an array is, and its offset there.

    Raises:
        TileError: T430, the array is not on the symmetric heap.
    """
    found = part_of(address_of(array))
    if found is None:
        raise _not_shared("a signal")
    return found[1], found[2]


def _not_shared(what: str) -> TileError:
    return TileError(f"{what} uses a tensor that is not on the symmetric heap", code="T430",
                     help="make the tensor with shmem.aclshmem_create_tensor, on every rank, and pass it or a slice of it")


def _peer(array: Array, address: int, rank: int, location: Location | None, core: Core, *, writes: bool) -> Array:
    made, memory, caller = _counterpart(array, address, rank)
    if memory.races is not None and _REHEARSAL.get() is None:
        memory.races.note(caller, made, writes=writes, location=location, core=core if writes else None)
    return made


def _counterpart(array: Array, address: int, rank: int) -> tuple[Array, PodMemory, int]:
    found = part_of(address)
    if found is None:
        raise _not_shared("a transfer between cards")
    memory, caller, offset = found
    if not 0 <= rank < memory.ranks:
        has = f"ranks 0 to {memory.ranks - 1}" if memory.ranks > 1 else "one card, rank 0"
        raise TileError(f"a transfer names rank {rank}, and the pod has {has}", code="T431",
                        help="compute the rank modulo the number of ranks")
    memory.delay(caller)
    made: Array = np.ndarray(array.shape, array.dtype, memory.data[rank], offset, array.strides)
    return made, memory, caller
