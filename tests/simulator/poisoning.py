"""Checks the declared effects of ops: every op of a kernel runs with noise in all bytes that it does not declare to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.simulator import Program
from tilelang_npu.simulator.machine.cube_products import CubeMultiplier
from tilelang_npu.simulator.machine.op_records import OpRecord, number_of
from tilelang_npu.simulator.run.reordered_execution import SteppedCore

Row = tuple[str, bool, bool, str, bool]
"""Pipe, whether it is read, whether it is written, the memory, whether it is scratch: of one operand of one op."""
Bytes = NDArray[np.uint8]
WhileMonitor = Callable[[OpRecord, Sequence[Any]], None]


def stated(op: Operation) -> Counter[Row]:
    """Returns the declared effects of an op on its operands; elements that it only preserves are not read."""
    return Counter((effect.pipe, effect.reads and not effect.partial, effect.writes, hivm.space_of(effect.value.type) or "",
                    effect.scratch) for effect in accesses(op))


def recorded(record: OpRecord) -> Counter[Row]:
    """Returns the accesses that the simulator recorded."""
    return Counter((access.pipe, access.reads, access.writes, access.memory, access.scratch) for access in record.accesses)


class Poisoner:
    """Checks the ops of a program as they run.

    Args:
        program: the kernel.
        times: how often each op is checked; after that it only runs.
        lies: whether to check also that incomplete declarations of effects are detected.
        watch: a callback for each op that runs, with the arrays of its operands.

    Attributes:
        checked: the number of checked ops.
        faults: ops with the effects that they have and do not declare.
        tried, missed: the number of incomplete declarations that were tried, and those that were not detected.
    """

    def __init__(self, program: Program, times: int = 2, watch: WhileMonitor | None = None, *, lies: bool = False) -> None:
        self.program = program
        self.times, self.watch, self.lies = times, watch, lies
        self.ops = {id(function.records): function.recorded for function in self.program.stepwise}
        self.seen: Counter[int] = Counter()
        self.checked = 0
        self.tried = 0
        self.faults: list[str] = []
        self.missed: list[str] = []
        self._rng = np.random.default_rng(0)

    def run(self, arguments: Sequence[Any], blocks: int) -> None:
        """Run the program, op by op."""
        begin = SteppedCore.__init__

        def checked(core: SteppedCore, identity: Any, code: Any, expansion: Any, *rest: Any) -> None:
            begin(core, identity, self.wrapped(code, expansion.records), expansion, *rest)

        with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
            patch.setattr(SteppedCore, "__init__", checked)
            self.program.run(list(arguments), blocks=blocks, schedule="early")

    def wrapped(self, code: Iterator[Any], records: Sequence[OpRecord]) -> Iterator[Any]:
        """The ops of a core, each with a function that runs and checks it."""
        for event, offsets, function, arguments, views in code:
            record = records[number_of(event)]
            op = self.ops[id(records)][record.number]
            yield event, offsets, function and self._checking(op, record, function, arguments, views), arguments, views

    def _checking(self, op: Operation, record: OpRecord, function: Callable[..., None], bound: Sequence[Any],
                  views: Sequence[NDArray[Any]]) -> Callable[..., None]:
        def run(*arguments: Any) -> None:
            if self.watch is not None:
                self.watch(record, views)
            if self.seen[id(op)] < self.times:
                self.seen[id(op)] += 1
                self.checked += 1
                # on the memories themselves: the later steps of a macro get the data of its first pipe as a copy
                self._check(op, record, lambda: _from_memory(function, bound), views)
            function(*arguments)

        return run

    def _check(self, op: Operation, record: OpRecord, function: Callable[[], None], views: Sequence[NDArray[Any]]) -> None:
        if stated(op) != recorded(record):
            self.faults.append(f"{op.name} says {sorted(stated(op))}, the simulator has {sorted(recorded(record))}")
            return
        keeps = any(effect.partial for effect in accesses(op))
        declared = [Declared(access.reads, access.writes, access.scratch) for access in record.accesses]
        memories = Memories(views)
        before = memories.copy()
        function()
        after = memories.copy()
        self.faults += {f"{op}\n{fault}" for fault in self._faults(declared, keeps, function, views, memories, before, after)}
        for lie in _lies(declared) if self.lies else ():
            found = any(True for _ in self._faults(lie, keeps, function, views, memories, before, after))
            self.tried += 1
            self.missed += [] if found else [f"{op}\n{lie}"]
        memories.fill(before)

    def _faults(self, declared: Sequence[Declared], keeps: bool, function: Callable[[], None], views: Sequence[NDArray[Any]],
                memories: Memories, before: dict[int, Bytes], after: dict[int, Bytes]) -> Iterator[str]:
        reads = memories.masks(view for view, does in zip(views, declared, strict=True) if does.reads)
        writes = memories.masks(view for view, does in zip(views, declared, strict=True) if does.writes and not does.scratch)
        scratch = memories.masks(view for view, does in zip(views, declared, strict=True) if does.scratch)
        for noise in (None, self._rng):
            start = {}
            for key, base in memories.bases.items():
                filled = 0xFF if noise is None else noise.integers(0, 256, base.size, np.uint8)
                start[key] = np.where(reads[key], before[key], filled)
            memories.fill(start)
            function()
            for key, base in memories.bases.items():
                same = base == after[key]
                if keeps:  # preserved elements are the noise now, and the old contents in the reference
                    same |= (base == start[key]) & (after[key] == before[key])
                if not same[writes[key]].all():
                    yield "its result depends on what it does not say it reads"
                if not (base == start[key])[~writes[key] & ~scratch[key]].all():
                    yield "it writes what it does not say it writes"


def _from_memory(function: Callable[..., None], arguments: Sequence[Any]) -> None:
    """Runs an op that finds all it needs in memory: no product that is collected for a chunk is added to its result."""
    for each in arguments:
        if isinstance(each, CubeMultiplier):
            each.products.forget()
    function(*arguments)


class ByLine:
    """The effects of each line of a kernel on its buffers, by name.

    Attributes:
        reads: the buffers of which a line reads elements that it has not written before, with the line.
        writes: the buffers that a line writes.
    """

    def __init__(self) -> None:
        self.reads: set[tuple[int, str]] = set()
        self.writes: set[tuple[int, str]] = set()
        self._written: dict[tuple[int, int], NDArray[np.bool_]] = {}

    def __call__(self, record: OpRecord, views: Sequence[NDArray[Any]]) -> None:
        """An op is about to run."""
        line = record.location.line if record.location is not None else 0
        memories = Memories(views)
        for access, view in zip(record.accesses, views, strict=True):
            if access.reads:
                ((key, mask),) = ((key, mask) for key, mask in memories.masks([view]).items() if mask.any())
                if (mask & ~self._written.setdefault((line, key), np.zeros(mask.size, bool))).any():
                    self.reads.add((line, access.label))
        for access, view in zip(record.accesses, views, strict=True):
            if access.writes:
                self.writes.add((line, access.label))
                for key, mask in memories.masks([view]).items():
                    self._written[line, key] = self._written.get((line, key), np.zeros(mask.size, bool)) | mask


class Declared(NamedTuple):
    """The declared effects on an operand."""

    reads: bool
    writes: bool
    scratch: bool


def _lies(declared: Sequence[Declared]) -> Iterator[list[Declared]]:
    """Yields the declarations without one of the effects."""
    for place, one in enumerate(declared):
        if one.reads:
            yield [*declared[:place], one._replace(reads=False), *declared[place + 1:]]
        if one.writes and not one.scratch:
            yield [*declared[:place], one._replace(writes=False), *declared[place + 1:]]


class Memories:
    """The memories that arrays are parts of, as bytes."""

    def __init__(self, views: Sequence[NDArray[Any]]) -> None:
        self.bases: dict[int, Bytes] = {}
        for view in views:
            root = root_of(view)
            self.bases[address(root)] = root.reshape(-1).view(np.uint8)

    def copy(self) -> dict[int, Bytes]:
        """Returns copies of the memories."""
        return {key: base.copy() for key, base in self.bases.items()}

    def fill(self, contents: dict[int, Bytes]) -> None:
        """Put something into them."""
        for key, base in self.bases.items():
            base[...] = contents[key]

    def masks(self, views: Iterable[NDArray[Any]]) -> dict[int, NDArray[np.bool_]]:
        """Which of their bytes are those of the views."""
        found = {key: np.zeros(base.size, bool) for key, base in self.bases.items()}
        for view in views:
            if view.size:
                start = address(root_of(view))
                shape, strides = (*view.shape, view.itemsize), (*view.strides, 1)
                np.ndarray(shape, bool, found[start], address(view) - start, strides)[...] = True
        return found


def root_of(view: NDArray[Any]) -> NDArray[Any]:
    """The memory that an array is a part of."""
    while isinstance(view.base, np.ndarray):
        view = view.base
    assert view.flags.c_contiguous
    return view


def address(array: NDArray[Any]) -> int:
    """Where an array begins."""
    return int(array.__array_interface__["data"][0])
