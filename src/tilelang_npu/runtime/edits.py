"""What an edit of a kernel would win, tried: the edited kernel is compiled and timed, and its values are compared.

What a tool can edit is: the edits that passes have as data in what they refuse (``runtime/edited.py``), the ``num_stages`` of
a loop, a number among the factory's arguments that leaves those of the kernel as they are (a tile's size, say), an optimisation
that is switched off, barriers where waits are inserted anyway. What would have to be written differently, the passes say in
what they refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import DONE, REFUSED, Remark
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.tile import NUM_STAGES, CopyOp, stages_of
from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.edited import Edit, Ingredients, changed, deeper, loops, numbers_of, switched_on
from tilelang_npu.runtime.log import unheard
from tilelang_npu.transforms.ir.buffers import space_of
from tilelang_npu.transforms.ir.options import Options

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["Tried", "best_edits", "done_now", "results_of", "same_values", "time_of", "timed_of"]

NEEDED_NO_MORE = ("banks", "hoist-loads", "keep-apart", "sink-buffers")
"""What is as good as done where nothing is refused: nothing meets, is loaded again, shares bytes or outlives an iteration."""
OF_A_LAUNCH = ("bind-sub-blocks",)
"""What says that it is done of a whole launch, not at the line that it refuses."""
COUNT = 3
"""How many edits are told."""

LEAST = 0.01
"""The part of its time that a kernel must win for an edit to be told."""
MOST_TRIALS = 16
"""Edits of one kernel that are tried."""
MOST_EVENTS = 300_000
"""What does more than this, in instructions of all blocks, is not timed again and again in passing."""
DEEPEST = 4
"""The ``num_stages`` up to which is tried."""


@dataclass(frozen=True)
class Tried:
    """An edit that was tried.

    Attributes:
        text: the edit.
        place: the line that it is made at, where it has one.
        before: modelled microseconds of the kernel.
        after: of the edited one.
        cause: what it cures, in a few words.
        gone: what passes have refused in the kernel, and do in the edited one.
        wins: whether it is one of those to tell: it wins, and the kernel computes the same.
    """

    text: str
    place: Location | None
    before: float
    after: float
    cause: str = ""
    gone: tuple[Remark, ...] = ()
    wins: bool = True

    @property
    def gain(self) -> float:
        """The part of the time that it saves."""
        return 1 - self.after / self.before

    def __str__(self) -> str:
        where = f"line {self.place.line}: " if self.place is not None else ""
        return f"{where}{self.text}  {self.before:.1f} us become {self.after:.1f} ({-self.gain:+.0%})"


def best_edits(source: Ingredients, refused: Sequence[Remark], most: int = MOST_TRIALS) -> list[Tried]:
    """Edits, the best one first; none where sizes or data decide what the kernel does.

    Args:
        source: the kernel.
        refused: what passes have refused in it.
        most: how many edits are tried.
    """
    kernel = source.kernel
    before = time_of(kernel)
    if before is None:
        return []
    timed: list[_Timed] = []
    tried: set[tuple[str, Location | None]] = set()
    for edit in _trials(source, refused):
        if len(tried) == most:
            break
        if (edit.text, edit.place) in tried:
            continue
        made, after = timed_of(edit)
        if made is not None:
            tried.add((edit.text, edit.place))
        if made is not None and after is not None:
            timed.append(_Timed(after, edit, made))
    winning = {id(one) for one in islice(_winning(kernel, before, timed), COUNT)}
    found = []
    for one in sorted(timed, key=lambda each: (each.after, each.edit.text)):
        gone = done_now(refused, one.made) if refused else ()
        found.append(Tried(one.edit.text, one.edit.place, before, one.after, one.edit.cause, gone, id(one) in winning))
    return found


def done_now(refused: Sequence[Remark], made: JITKernel) -> tuple[Remark, ...]:
    """Those of the refusals that an edited kernel has no more: not because there is no occasion, but because it is done."""
    remarks = made.explain().remarks
    left = {(each.about, each.place) for each in remarks if each.kind == REFUSED}
    there = {(each.about, place) for each in remarks if each.kind == DONE for place in (each.place, None)}
    return tuple(each for each in refused if (each.about, each.place) not in left and (
        each.about in NEEDED_NO_MORE or (each.about, None if each.about in OF_A_LAUNCH else each.place) in there))


class _Timed(NamedTuple):
    """An edit, the kernel that it makes, and what that takes."""

    after: float
    edit: Edit
    made: JITKernel


def _trials(source: Ingredients, refused: Sequence[Remark]) -> Iterator[Edit]:
    yield from _without_barriers(source)
    yield from changed(source, refused)
    yield from _depths(source)
    for name in source.kernel.without:
        yield switched_on(source, name)
    yield from numbers_of(source)


def timed_of(edit: Edit) -> tuple[JITKernel | None, float | None]:
    """The edited kernel, and its modelled microseconds; None where there is none, or they cannot be told."""
    try:
        with unheard():
            made = edit.make()
            return made, time_of(made) if made is not None else None
    except TileError:  # the edited kernel does not fit, for one
        return None, None


def _winning(kernel: JITKernel, before: float, timed: Sequence[_Timed]) -> Iterator[_Timed]:
    """The edits that win, the best one first: of each thing that can be edited the best, where the kernel computes the same."""
    found: dict[str, _Timed] = {}
    for one in timed:
        best = found[one.edit.subject].after if one.edit.subject in found else before
        if one.after < best * (1 - LEAST):
            found[one.edit.subject] = one
    numbers = {one.after for one in found.values() if not one.edit.safe}  # a loop's stages may be one of these
    for one in sorted(found.values(), key=lambda each: (each.after, each.edit.text)):
        if (one.after not in numbers if one.edit.safe else same_values(kernel, one.made)):
            yield one


def _depths(source: Ingredients) -> Iterator[Edit]:
    """Other numbers of stages, and stages for innermost loops that load and have none."""
    for position, loop in enumerate(loops(source.traced.module)):
        if NUM_STAGES in loop.attributes:
            for depth in range(1, DEEPEST + 1):
                if depth != stages_of(loop):
                    yield deeper(source, position, depth)
        elif _loads(loop) and not any(isinstance(inner, scf.ForOp) for inner in loop.body.walk()):
            yield deeper(source, position, 2)


def _without_barriers(source: Ingredients) -> Iterator[Edit]:
    """The author's barriers left out, where waits are inserted for what needs any."""

    def barriers(module: ModuleOp) -> list[hivm.PipeBarrierOp]:
        return [op for op in module.walk() if isinstance(op, hivm.PipeBarrierOp)]

    def without(module: ModuleOp) -> None:
        for op in barriers(module):
            Rewriter.erase_op(op)

    lines = sorted({place.line for op in barriers(source.traced.module) if (place := location_of(op)) is not None})
    kernel = source.kernel
    options = Options.from_switches(kernel.chip, kernel.dialect, kernel.switches, kernel.without)
    if lines and options.synchronise:
        place = location_of(barriers(source.traced.module)[0])
        yield Edit("barriers", f"no barriers (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})", place,
                   partial(source.rewritten, without), safe=False, cause="redundant barrier")


def _loads(loop: scf.ForOp) -> bool:
    """Whether a loop brings tiles from global memory."""
    return any(isinstance(op, CopyOp) and space_of(op.source) == "gm" for op in loop.body.walk())


def time_of(kernel: JITKernel) -> float | None:
    """Modelled microseconds; None where that takes data, or long."""
    launch = kernel.trace()
    if launch is None:
        return None
    events = sum(len(stream) for part in launch.parts for run in part.recorded.blocks for stream in run.streams)
    return launch.time_us if events <= MOST_EVENTS else None


def same_values(one: JITKernel, other: JITKernel) -> bool:
    """Whether two kernels give the same for random arrays, but for rounding."""
    rng = np.random.default_rng(0)
    made = {*one.out_idx, *one.workspace_idx}
    given = [parameter for position, parameter in enumerate(one.params) if position not in made]
    arrays = [(rng.standard_normal(parameter.shape) if parameter.dtype.is_float else rng.integers(0, 4, size=parameter.shape))
              .astype(parameter.dtype.numpy) for parameter in given]
    try:
        results = [results_of(kernel, [array.copy() for array in arrays]) for kernel in (one, other)]
    except TileError:
        return False
    return all(np.allclose(np.asarray(first, np.float64), np.asarray(second, np.float64), rtol=2e-2, atol=2e-2, equal_nan=True)
               for first, second in zip(*results, strict=True))


def results_of(kernel: JITKernel, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """What a call writes, in the order of the parameters; nobody hears of the run."""
    call = kernel.signature.bind(arrays)
    arguments = kernel.machine_arguments(call)
    for program, blocks in zip(kernel.programs, kernel.blocks(call), strict=True):
        program.run(arguments, blocks=blocks)
    return [call.values[position] for position in sorted(kernel.signature.written) if position not in kernel.workspace_idx]
