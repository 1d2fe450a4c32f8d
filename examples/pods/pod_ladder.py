"""Ladders over several cards: one problem of a pod, and a sequence of programs that solve it, from blocking to overlapped.

A ladder is a folder next to this file. Its ``problem.py`` defines the problem (a ``PodLadder``); each ``stepN_NAME.py`` is a
script with one program. A program is a function that returns the launches of a card, one after the other, each a kernel and the
names of its tensors; all cards meet at a barrier before each launch.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu import pods
from tilelang_npu.symmetric_heap import rehearsal

HERE = Path(__file__).resolve().parent
Case = Mapping[str, int]
"""The sizes of a problem, with the number of cards as ``ranks``."""
Launches = Sequence[tuple[Any, Sequence[str]]]
Program = Callable[..., Launches]


@dataclass(frozen=True)
class PodLadder:
    """One problem of a pod.

    Attributes:
        small: the sizes at which values are checked.
        large: the sizes at which time is modelled.
        tensors: returns the tensors of a card for a rank and the sizes, by name.
        shared: the names of the tensors that are on the symmetric heap.
        expected: returns the result of every card for the sizes, by NumPy.
        result: returns the result of a card from its tensors after the program, and the sizes.
        tolerance: the largest absolute error of a result; 0 for results that are exact.
        routed: for a problem whose kernels depend on the elements of tensors that other cards write, these tensors of a card
            with the elements, which are counts; the times of such kernels are those of a run of one card alone, for which the
            sum of the counts is largest.
    """

    small: Case
    large: Case
    tensors: Callable[..., dict[str, NDArray[Any]]]
    shared: frozenset[str]
    expected: Callable[..., Sequence[NDArray[Any]]]
    result: Callable[..., NDArray[Any]]
    tolerance: float = 0.0
    routed: Callable[..., dict[str, NDArray[Any]]] | None = None

    def check_values(self, program: Program, *, interleaving: int | None = None, timeout: float = 120.0,
                     unmet: int = -1) -> None:
        """Runs a program on a pod of the small sizes, with the sanitizer, and compares the results of all cards with NumPy.

        Args:
            program: the program.
            interleaving, timeout: as for ``pods.run``.
            unmet: the number of a launch before which the cards do not meet, for tests of the sanitizer; -1 for none.
        """
        sizes = dict(self.small)

        def body(card: pods.Card) -> NDArray[Any]:
            own = self.tensors(rank=card.rank, **sizes)
            for name in sorted(self.shared):
                made = card.tensor(own[name].shape, own[name].dtype)
                made[...] = own[name]
                own[name] = made
            for number, (kernel, names) in enumerate(program(rank=card.rank, **sizes)):
                if number != unmet:
                    card.barrier()
                kernel(*(own[name] for name in names))
            card.barrier()
            return self.result(own, **sizes).copy()

        found = pods.run(body, sizes["ranks"], sanitize=True, interleaving=interleaving, timeout=timeout)
        for rank, (got, wanted) in enumerate(zip(found, self.expected(**sizes), strict=True)):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=self.tolerance, err_msg=f"rank {rank}")

    def times_us(self, program: Program) -> list[float]:
        """Returns the modelled microseconds of each launch of a card, at the large sizes: of the card that gets the most, if
        the cards do unequal work."""
        if self.routed is None:
            return [float(kernel.estimate().time_us) for kernel, _ in program(rank=0, **self.large)]
        sizes = dict(self.large)
        sent = [self.routed(rank=one, **sizes) for one in range(sizes["ranks"])]
        rank = max(range(sizes["ranks"]), key=lambda one: sum(int(part.sum()) for part in sent[one].values()))
        given = self.tensors(rank=rank, **sizes) | sent[rank]

        def body(card: pods.Card) -> list[float]:
            own = dict(given)
            for name in sorted(self.shared):
                own[name] = card.tensor(given[name].shape, given[name].dtype)
                if card.rank == rank:
                    own[name][...] = given[name]
            times = []
            for kernel, names in program(rank=rank, **sizes) if card.rank == rank else ():
                with rehearsal():  # neither waits for the other cards nor writes to them
                    kernel(*(own[name] for name in names))
                times.append(float(kernel.last_launch.time_us))
            return times

        return pods.run(body, sizes["ranks"])[rank]

    def check(self, program: Program) -> None:
        """The main function of a step's script: checks values, and prints the modelled times."""
        self.check_values(program)
        times = self.times_us(program)
        print(f"{' + '.join(f'{one:.1f}' for one in times)} = {sum(times):.1f} us on {self.large['ranks']} cards, modelled")
        print("PASS")


def folders() -> list[Path]:
    """Returns the folders of all ladders."""
    return sorted(file.parent for file in HERE.glob("*/problem.py"))


def load(folder: Path) -> PodLadder:
    """Returns the ladder of a folder; afterwards the steps of this folder import its module ``problem``, as scripts do."""
    sys.modules.pop("problem", None)
    sys.path[:] = [str(folder), *(place for place in sys.path if Path(place).parent != HERE)]
    import problem

    found = problem.LADDER
    assert isinstance(found, PodLadder)
    return found


def programs(folder: Path) -> dict[str, Program]:
    """Returns the program of each step of a folder, by the name of its file, in order."""
    load(folder)
    return {file.stem: runpy.run_path(str(file), run_name=file.stem)[folder.name] for file in sorted(folder.glob("step*.py"))}
