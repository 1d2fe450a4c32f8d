"""What L2 holds: which of the bytes that a launch moves come from HBM, and which are written back there.

L2 keeps what was used last: of a matrix of 302 MB that is read four times over, 0.005 % are found in its 192 MB (DOC
data_copy). Where all that a launch touches fits, each byte is read from HBM once, and none is written back, since the next
launch writes it again. Beyond, the transfers of the cores are walked through side by side, each as one thing that L2 holds or
does not.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tilelang_npu.simulator.time.traffic import Key, Moved

WALKED = 2_000_000
"""Transfers of a launch that are walked through; of a longer one the first."""


class Used(NamedTuple):
    """One transfer: the tensor, whether it is written, where, in which form, and how many bytes."""

    buffer: int
    written: bool
    offset: int
    form: int
    nbytes: int


def touched(moved: Mapping[Key, Moved], sizes: Mapping[int, int]) -> float:
    """Bytes that a launch touches at all."""
    most: dict[int, float] = defaultdict(float)
    for (buffer, _), part in moved.items():
        most[buffer] += part.nbytes
    return sum(min(nbytes, sizes.get(buffer, 0)) for buffer, nbytes in most.items())


def missed_once(moved: Mapping[Key, Moved], sizes: Mapping[int, int], produced: frozenset[int]) -> dict[Key, float]:
    """The shares that miss where all that is touched fits; ``produced`` tensors are read behind their writes."""
    return {(buffer, written): 0.0 if written or buffer in produced else min(1.0, sizes.get(buffer, 0) / max(part.nbytes, 1.0))
            for (buffer, written), part in moved.items()}


@dataclass
class _Held:
    """L2 while a launch is walked through."""

    capacity: float
    lines: OrderedDict[tuple[int, int, int], tuple[int, bool]] = field(default_factory=OrderedDict)
    nbytes: int = 0
    missed: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    moved: dict[Key, float] = field(default_factory=lambda: defaultdict(float))

    def touch(self, one: Used) -> None:
        """Use some bytes; what has not been used for longest makes room."""
        key = one.buffer, one.offset, one.form
        self.moved[one.buffer, one.written] += one.nbytes
        found = self.lines.pop(key, None)
        if found is None:
            self.nbytes += one.nbytes
            if not one.written:
                self.missed[one.buffer, False] += one.nbytes
        self.lines[key] = one.nbytes, one.written or (found is not None and found[1])
        while self.nbytes > self.capacity:
            self._drop()

    def _drop(self) -> None:
        (buffer, _, _), (nbytes, dirty) = self.lines.popitem(last=False)
        self.nbytes -= nbytes
        if dirty:
            self.missed[buffer, True] += nbytes


def side_by_side(cores: Sequence[Sequence[Used]]) -> Iterator[Used]:
    """The transfers of cores that start and end together."""
    order = sorted((place / len(touches), core, place) for core, touches in enumerate(cores) for place in range(len(touches)))
    for _, core, place in order:
        yield cores[core][place]


def missed_by_walk(waves: Iterable[Sequence[Sequence[Used]]], capacity: float) -> dict[Key, float]:
    """The shares that miss, from the transfers of the cores of each wave; what is written and left makes way for the next
    launch."""
    held, left = _Held(capacity), WALKED
    for cores in waves:
        if left <= 0:
            break
        for one in side_by_side(cores):
            held.touch(one)
        left -= sum(map(len, cores))
    while held.lines:
        held._drop()
    return {key: min(1.0, held.missed[key] / nbytes) for key, nbytes in held.moved.items()}
