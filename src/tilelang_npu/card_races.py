"""Finds races between the cards of a pod: bytes that one card writes and another one accesses, with no barrier between.

The barriers of all cards divide the run of a pod into periods. Accesses of two cards in one period are not ordered: neither a
put nor the return of a launch tells another card anything. Of each byte of the symmetric heap, marks state which card has
written it in the running period and which have read it, so the result does not depend on which thread runs first.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import Location, TileError

__all__ = ["CardRaces"]

_NO_RANK, _SEVERAL = -1, -2
"""Marks in place of a rank: no card, and more than one."""


class CardRaces:
    """The accesses of all cards in the running period.

    Args:
        data: the bytes of the symmetric heap, one row for each rank.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._start, self._part = int(data.ctypes.data), data.shape[1]
        self._size = data.size
        self._marks: dict[str, NDArray[np.int16]] = {}
        self._touched: list[NDArray[np.int16]] = []
        self._sites: dict[tuple[str, int], Location | None] = {}
        self._lock = threading.Lock()

    def note(self, rank: int, array: NDArray[Any], *, writes: bool, location: Location | None = None) -> None:
        """Records an access of a card, in any card's part of the heap.

        Args:
            rank: the card that makes the access.
            array: the bytes, as an array that lies in the heap.
            writes: whether the card writes them; otherwise it reads them.
            location: the line of the access; None if it is not known.

        Raises:
            TileError: S231, another card has written the bytes in this period, or has read bytes that this card writes.
        """
        if not array.size:
            return
        with self._lock:
            written, read = self._view("written", array), self._view("read", array)
            self._look(rank, array, written, "writes", writes, location)
            if writes:
                self._look(rank, array, read, "reads", writes, location)
                written[...] = rank
            else:
                read[...] = np.where((read == _NO_RANK) | (read == rank), np.int16(rank), np.int16(_SEVERAL))
            self._touched += [written, read]
            self._sites["writes" if writes else "reads", rank] = location

    def clear(self) -> None:
        """Begins a new period; called by one card between two barriers of all cards."""
        with self._lock:
            for view in self._touched:
                view[...] = _NO_RANK
            self._touched.clear()
            self._sites.clear()

    def _view(self, kind: str, array: NDArray[Any]) -> NDArray[np.int16]:
        """Returns the marks of the bytes of an array."""
        marks = self._marks.get(kind)
        if marks is None:
            marks = self._marks[kind] = np.full(self._size, _NO_RANK, np.int16)
        offset = int(array.__array_interface__["data"][0]) - self._start
        steps = (*(2 * step for step in array.strides), 2)
        return np.ndarray((*array.shape, array.itemsize), np.int16, marks, 2 * offset, steps)

    def _look(self, rank: int, array: NDArray[Any], marks: NDArray[np.int16], other: str, writes: bool,
              location: Location | None) -> None:
        """Raises an error if another card has marked the bytes."""
        found = marks[(marks != _NO_RANK) & (marks != rank)]
        if not found.size:
            return
        card = next((int(one) for one in found if one != _SEVERAL), _SEVERAL)
        holder = (int(array.__array_interface__["data"][0]) - self._start) // self._part
        does = "writes" if writes else "reads"
        if card == _SEVERAL:
            raise TileError(
                f"rank {rank} {does} {found.size} bytes of rank {holder} that several cards read, and nothing orders these "
                "accesses", code="S231", location=location, help=_HELP)
        # In the order of the ranks, so that the message does not depend on which thread was first.
        (one, did, first), (two, then, second) = sorted(
            [(rank, does, location), (card, other, self._sites.get((other, card)))], key=lambda access: access[0])
        raise TileError(
            f"rank {one} {did} and rank {two} {then} the same {found.size} bytes of rank {holder}, and nothing orders the "
            "two", code="S231", location=first, help=_HELP,
            notes=() if second is None else (f"rank {two} {then} them at {second.shown_line}",))


_HELP = "let all cards call barrier() between the two launches"
