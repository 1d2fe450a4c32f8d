"""What an edit of a kernel would win, tried: the edited kernel is compiled and timed, and its values are compared.

Only numbers and switches are edited, and barriers: the ``num_stages`` of a loop, a number among the factory's arguments that
leaves those of the kernel as they are (a tile's size, say), an optimisation that is switched off, barriers where waits are
inserted anyway. What would have to be written differently,
the passes say in what they refuse.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.rewriter import Rewriter

from tilelang_npu import frontend
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.tile import NUM_STAGES, CopyOp, stages_of
from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.log import unheard
from tilelang_npu.runtime.switches import PassConfigKey
from tilelang_npu.transforms.ir.buffers import space_of
from tilelang_npu.transforms.ir.options import Options

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter, Traced
    from tilelang_npu.runtime.factory import MadeBy, Settings
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["Tried", "best_edits", "results_of", "seen_by_callers"]

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
    """

    text: str
    place: Location | None
    before: float
    after: float
    cause: str = ""

    @property
    def gain(self) -> float:
        """The part of the time that it saves."""
        return 1 - self.after / self.before

    def __str__(self) -> str:
        where = f"line {self.place.line}: " if self.place is not None else ""
        return f"{where}{self.text}  {self.before:.1f} us become {self.after:.1f} ({-self.gain:+.0%})"


class _Edit(NamedTuple):
    """Something to try.

    Attributes:
        subject: what it changes; of several changes of one thing the best is told.
        text: the change.
        place: its line.
        make: gives the edited kernel; None where that is another kernel, for other arguments.
        safe: whether no value can change, so that none is compared.
        cause: what it cures, in a few words.
    """

    subject: str
    text: str
    place: Location | None
    make: Callable[[], JITKernel | None]
    safe: bool = True
    cause: str = "no overlap"


def best_edits(kernel: JITKernel, traced: Traced, settings: Settings, made_by: MadeBy | None, count: int = 3) -> list[Tried]:
    """The edits that win most, the best one first; none where sizes or data decide what the kernel does.

    Args:
        kernel: the kernel.
        traced: what the front end made of it.
        settings: what it was compiled with.
        made_by: the factory that made it, and with what.
        count: of how many to tell.
    """
    before = _time(kernel)
    if before is None:
        return []
    trials = [*_without_barriers(kernel, traced, settings), *_depths(kernel, traced, settings), *_switched_on(kernel, settings)]
    if made_by is not None:
        trials += _other_numbers(kernel, settings, made_by)
    found: dict[str, tuple[float, _Edit, JITKernel]] = {}
    tried = 0
    for edit in trials:
        try:
            with unheard():
                made = edit.make() if tried < MOST_TRIALS else None
                after = _time(made) if made is not None else None
        except TileError:  # the edited kernel does not fit, for one
            continue
        tried += made is not None
        best = found[edit.subject][0] if edit.subject in found else before
        if made is not None and after is not None and after < best * (1 - LEAST):
            found[edit.subject] = after, edit, made
    numbers = {after for after, edit, _ in found.values() if not edit.safe}  # a loop's stages may be one of these
    best_first = sorted((one for one in found.values() if not (one[1].safe and one[0] in numbers)),
                        key=lambda one: (one[0], one[1].text))
    told = (one for one in best_first if one[1].safe or _equal(kernel, one[2]))
    return [Tried(edit.text, edit.place, before, after, edit.cause) for after, edit, _ in islice(told, count)]


def _depths(kernel: JITKernel, traced: Traced, settings: Settings) -> Iterator[_Edit]:
    """Other numbers of stages, and stages for innermost loops that load and have none."""
    loops = [op for op in traced.module.walk() if isinstance(op, scf.ForOp)]

    def deeper(position: int, depth: int) -> JITKernel:
        module = traced.module.clone()
        loop = [op for op in module.walk() if isinstance(op, scf.ForOp)][position]
        loop.attributes[NUM_STAGES] = IntegerAttr(depth, i64)
        return type(kernel)(kernel.prim_func, settings, traced=replace(traced, module=module))

    for position, loop in enumerate(loops):
        place, stages = location_of(loop), stages_of(loop)
        subject = f"loop {position}"
        if NUM_STAGES in loop.attributes:
            for depth in range(1, DEEPEST + 1):
                if depth != stages:
                    text = f"num_stages={depth} in place of {stages}"
                    yield _Edit(subject, text, place, partial(deeper, position, depth))
        elif _loads(loop) and not any(isinstance(inner, scf.ForOp) for inner in loop.body.walk()):
            yield _Edit(subject, "T.Pipelined with num_stages=2 in place of T.serial", place, partial(deeper, position, 2))


def _without_barriers(kernel: JITKernel, traced: Traced, settings: Settings) -> Iterator[_Edit]:
    """The author's barriers left out, where waits are inserted for what needs any."""

    def barriers(module: ModuleOp) -> list[hivm.PipeBarrierOp]:
        return [op for op in module.walk() if isinstance(op, hivm.PipeBarrierOp)]

    def without() -> JITKernel:
        module = traced.module.clone()
        for op in barriers(module):
            Rewriter.erase_op(op)
        return type(kernel)(kernel.prim_func, settings, traced=replace(traced, module=module))

    lines = sorted({place.line for op in barriers(traced.module) if (place := location_of(op)) is not None})
    options = Options.from_switches(kernel.chip, kernel.dialect, kernel.switches, kernel.without)
    if lines and options.synchronise:
        place = location_of(barriers(traced.module)[0])
        yield _Edit("barriers", f"no barriers (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})", place, without,
                    safe=False, cause="redundant barrier")


def _loads(loop: scf.ForOp) -> bool:
    """Whether a loop brings tiles from global memory."""
    return any(isinstance(op, CopyOp) and space_of(op.source) == "gm" for op in loop.body.walk())


def _switched_on(kernel: JITKernel, settings: Settings) -> Iterator[_Edit]:
    """Optimisations that the author has switched off."""
    key = PassConfigKey.TL_DISABLE
    for name in kernel.without:
        configs = {one: value for one, value in (settings.pass_configs or {}).items() if one not in (key, key.value)}
        rest = replace(settings, pass_configs={**configs, key: [other for other in kernel.without if other != name]})
        yield _Edit(name, f"{name} out of {key.value}", None, partial(type(kernel), kernel.prim_func, rest),
                    cause="switched off")


def _other_numbers(kernel: JITKernel, settings: Settings, made_by: MadeBy) -> Iterator[_Edit]:
    """Numbers that the factory was given, or has by default: doubled and halved, small ones one more and one less."""
    function, args, kwargs = made_by
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()

    def other(name: str, value: int) -> JITKernel | None:
        arguments: Mapping[str, Any] = {**bound.arguments, name: value}
        func = function(**arguments)
        traced = frontend.trace(func, dialect=kernel.dialect)
        if seen_by_callers(traced.parameters, kernel) != seen_by_callers(kernel.params, kernel):
            return None
        return type(kernel)(func, settings, traced=traced)

    for name, value in bound.arguments.items():
        if type(value) is int and value > 0:
            others = (value + 1, value - 1) if value <= DEEPEST else (2 * value, *([value // 2] if value % 2 == 0 else []))
            for number in filter(None, others):
                yield _Edit(name, f"{name}={number} in place of {value}", None, partial(other, name, number), safe=False,
                            cause="other numbers")


def seen_by_callers(parameters: Sequence[Parameter], kernel: JITKernel) -> list[Parameter]:
    """Those of the parameters that a caller of the kernel sees."""
    return [parameter for position, parameter in enumerate(parameters) if position not in kernel.workspace_idx]


def _time(kernel: JITKernel) -> float | None:
    """Modelled microseconds; None where that takes data, or long."""
    launch = kernel.trace()
    if launch is None:
        return None
    events = sum(len(stream) for part in launch.parts for run in part.recorded.blocks for stream in run.streams)
    return launch.time_us if events <= MOST_EVENTS else None


def _equal(one: JITKernel, other: JITKernel) -> bool:
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
