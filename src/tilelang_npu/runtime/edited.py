"""Edits that a tool can make to a kernel: of each the kernel that comes of it.

What the author wrote stands in the trace of the kernel, with the lines: a loop gets other stages there, a buffer another one
beside it, a load another place; numbers go to the factory again. ``changed`` makes what passes have as data beside their
refusals (``dialects/ir/changes.py``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import frontend
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import InFront, OwnBuffer, Rounds, Smaller, Stages, SwitchedOn, Unpinned
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import Remark
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.runtime.switches import PassConfigKey
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.ir.emit import OpBuilder, Value
from tilelang_npu.transforms.ir.sizes import nbytes_of

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter, Traced
    from tilelang_npu.runtime.factory import MadeBy, Settings
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["Edit", "Ingredients", "changed", "deeper", "loops", "numbers_of", "seen_by_callers", "switched_on"]

FEW = 4
"""Numbers up to this are changed by one, larger ones doubled and halved."""
SMALLEST = 8
"""To what part of themselves numbers are made smaller at most, where smaller tiles are asked for."""


class Edit(NamedTuple):
    """Something to try.

    Attributes:
        subject: what it changes; of several changes of one thing the best is told.
        text: the change.
        place: its line.
        make: gives the edited kernel; None where there is none, or it is one for other arguments.
        safe: whether no value can change, so that none is compared.
        cause: what it cures, in a few words.
    """

    subject: str
    text: str
    place: Location | None
    make: Callable[[], JITKernel | None]
    safe: bool = True
    cause: str = "no overlap"


@dataclass(frozen=True)
class Ingredients:
    """What a kernel is made of, to make it again.

    Attributes:
        kernel: the kernel.
        traced: what the front end made of it.
        settings: what it was compiled with.
        made_by: the factory that made it, and with what; None where none did.
    """

    kernel: JITKernel
    traced: Traced
    settings: Settings
    made_by: MadeBy | None

    def rewritten(self, rewrite: Callable[[ModuleOp], object]) -> JITKernel | None:
        """The kernel with another trace; None where ``rewrite`` says that it is no other (False)."""
        module = self.traced.module.clone()
        if rewrite(module) is False:
            return None
        made = replace(self.traced, module=module)
        sizes = [_grid(launch) for launch in made.launches]
        grids = tuple(grid if size is None else tuple(size) for grid, size in zip(made.grids, sizes, strict=True))
        return type(self.kernel)(self.kernel.prim_func, self.settings, traced=replace(made, grids=grids))

    def numbers(self) -> dict[str, int]:
        """The numbers that the factory was given, or has by default."""
        bound = self._arguments()
        return {name: value for name, value in bound.items() if type(value) is int and value > 0}

    def retraced(self, numbers: Mapping[str, int]) -> tuple[Any, Traced] | None:
        """The author's function with other numbers, and its trace; None where it is for other arguments, or does not take the
        numbers."""
        assert self.made_by is not None
        try:
            func = self.made_by.function(**{**self._arguments(), **numbers})
            traced = frontend.trace(func, dialect=self.kernel.dialect)
        except Exception:  # noqa: BLE001  (whatever the author's own checks raise)
            return None
        if seen_by_callers(traced.parameters, self.kernel) != seen_by_callers(self.kernel.params, self.kernel):
            return None
        return func, traced

    def with_numbers(self, numbers: Mapping[str, int]) -> JITKernel | None:
        """The kernel with other numbers; None where it is one for other arguments."""
        made = self.retraced(numbers)
        return None if made is None else type(self.kernel)(made[0], self.settings, traced=made[1])

    def _arguments(self) -> dict[str, Any]:
        if self.made_by is None:
            return {}
        function, args, kwargs = self.made_by
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)


def seen_by_callers(parameters: Sequence[Parameter], kernel: JITKernel) -> list[Parameter]:
    """Those of the parameters that a caller of the kernel sees."""
    return [parameter for position, parameter in enumerate(parameters) if position not in kernel.workspace_idx]


def numbers_of(source: Ingredients) -> Iterator[Edit]:
    """Other numbers for the factory: doubled and halved, small ones one more and one less."""
    for name, value in source.numbers().items():
        others = (value + 1, value - 1) if value <= FEW else (2 * value, *([value // 2] if value % 2 == 0 else []))
        for number in filter(None, others):
            yield _with_number(source, name, value, number)


def _with_number(source: Ingredients, name: str, value: int, number: int) -> Edit:
    return Edit(name, f"{name}={number} in place of {value}", None, partial(source.with_numbers, {name: number}), safe=False,
                cause="other numbers")


def loops(module: ModuleOp) -> list[scf.ForOp]:
    """The loops of a trace, in order."""
    return [op for op in module.walk() if isinstance(op, scf.ForOp)]


def deeper(source: Ingredients, position: int, depth: int) -> Edit:
    """Other stages for a loop."""
    loop = loops(source.traced.module)[position]

    def deepen(module: ModuleOp) -> None:
        loops(module)[position].attributes[tile.NUM_STAGES] = IntegerAttr(depth, i64)

    text = f"num_stages={depth} in place of {tile.stages_of(loop)}" if tile.NUM_STAGES in loop.attributes else (
        f"T.Pipelined with num_stages={depth} in place of T.serial")
    return Edit(f"loop {position}", text, location_of(loop), partial(source.rewritten, deepen))


def switched_on(source: Ingredients, name: str) -> Edit:
    """An optimisation taken out of those that are switched off."""
    key, kernel = PassConfigKey.TL_DISABLE, source.kernel
    configs = {one: value for one, value in (source.settings.pass_configs or {}).items() if one not in (key, key.value)}
    rest = replace(source.settings, pass_configs={**configs, key: [other for other in kernel.without if other != name]})
    return Edit(name, f"{name} out of {key.value}", None, partial(type(kernel), kernel.prim_func, rest), cause="switched off")


# -- what refusals have as data ------------------------------------------------------------------------------------------------


def changed(source: Ingredients, refused: Sequence[Remark]) -> Iterator[Edit]:
    """The edits that refusals have as data."""
    traces = cache(lambda name, number: source.retraced({name: number}))
    for one in refused:
        change = one.change
        if isinstance(change, Stages):
            for position, loop in enumerate(loops(source.traced.module)):
                if location_of(loop) == change.loop:
                    yield deeper(source, position, change.stages)
        elif isinstance(change, Smaller):
            yield from _smaller(source, change, traces)
        elif isinstance(change, SwitchedOn):
            yield switched_on(source, change.name)
        elif isinstance(change, OwnBuffer):
            at = f" from line {change.at.line} on" if change.at is not None else ""
            yield Edit(f"own {change.label}", f"a buffer of its own for {change.label}{at}", change.place,
                       partial(source.rewritten, partial(_own_buffer, change)), safe=False, cause="one buffer for several")
        elif isinstance(change, Unpinned):
            yield Edit("address", "no address of the author's", change.place,
                       partial(source.rewritten, partial(_unpin, change)), safe=False, cause="fixed address")
        elif isinstance(change, Rounds):
            yield Edit("grid", f"{change.blocks} blocks, each with a loop over its share of what all blocks do", one.place,
                       partial(source.rewritten, partial(_in_rounds, change)), safe=False, cause="more blocks than cores")
        elif isinstance(change, InFront) and change.load is not None and change.loop is not None:
            yield Edit(f"load {change.load.line}", f"the load in front of the loop at line {change.loop.line}", change.load,
                       partial(source.rewritten, partial(_in_front, change)), safe=False, cause="loaded again")


def _smaller(source: Ingredients, change: Smaller, traces: Callable[[str, int], tuple[Any, Traced] | None]) -> Iterator[Edit]:
    """Smaller numbers for the factory, each alone, with which the tiles of the places are as small as asked for.

    Args:
        source: the kernel.
        change: what is asked for.
        traces: the author's function with another number, and its trace.
    """
    asked = _bytes_at(source.traced.module, change.places) * change.percent // 100
    for name, value in source.numbers().items():
        number = value - 1 if value <= FEW else value // 2
        while number and SMALLEST * number >= value:
            made = traces(name, number)
            if made is not None and 0 < _bytes_at(made[1].module, change.places) <= asked:
                yield _with_number(source, name, value, number)
                break
            number = number - 1 if value <= FEW else number // 2


def _allocations(module: ModuleOp, places: Sequence[Location | None]) -> list[tile.AllocOp]:
    return [op for op in module.walk() if isinstance(op, tile.AllocOp) and location_of(op) in places]


def _bytes_at(module: ModuleOp, places: Sequence[Location | None]) -> int:
    """Bytes of what is allocated at some lines."""
    return sum(nbytes_of(op.result) for op in _allocations(module, places))


def _unpin(change: Unpinned, module: ModuleOp) -> bool:
    made = [op for op in _allocations(module, [change.place]) if op.properties.pop("address", None) is not None]
    return bool(made)


def _own_buffer(change: OwnBuffer, module: ModuleOp) -> bool:
    """Give what a line writes a buffer of its own, which those behind it use."""
    made = False
    for allocation in _allocations(module, [change.place]):
        if allocation.label.data != change.label:
            continue
        own = allocation.clone()
        Rewriter.insert_op(own, InsertPoint.after(allocation))
        for op in list(module.walk()):
            where = location_of(op)
            if isinstance(op, _VIEWS) or where is None or change.at is None or (
                    where.file != change.at.file or where.line < change.at.line):
                continue
            first = where.line == change.at.line
            uses = {use.index for use in effects_of(op) if not first or (use.writes and not use.reads)}
            for number in sorted(uses):
                if root_of(op.operands[number]) is allocation.result:
                    op.operands[number] = _seen_through(op.operands[number], own.result, op)
                    made = True
    return made


_VIEWS = (tile.RegionOp, tile.ViewOp)


def _seen_through(value: SSAValue, root: SSAValue, user: Operation) -> SSAValue:
    """A view of another buffer as a value is one of its own, in front of who uses it."""
    view = value.owner
    if not isinstance(view, _VIEWS):
        return root
    copy = view.clone()
    copy.operands[0] = _seen_through(view.operands[0], root, user)
    Rewriter.insert_op(copy, InsertPoint.before(user))
    return copy.results[0]


def _grid(launch: tile.LaunchOp) -> list[int] | None:
    """The blocks of a launch along each axis; None where a size or number of the call says how many."""
    sizes = [constant_value(size) for size in launch.grid]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None


def _in_rounds(change: Rounds, module: ModuleOp) -> bool:
    """Launch fewer blocks, each with a loop around all but what it allocates: it takes every so-manieth that there was."""
    def has_loop(launch: tile.LaunchOp) -> bool:
        return any(isinstance(op, scf.ForOp) and location_of(op) == change.loop for op in launch.walk())

    made = False
    for launch in [op for op in module.walk() if isinstance(op, tile.LaunchOp)]:
        counts = _grid(launch)
        if not has_loop(launch) or launch.panel is not None or counts is None:
            continue
        body, inner = launch.body.block, Block(arg_types=[IndexType()])
        for op in list(body.ops):
            if not isinstance(op, tile.AllocOp):
                op.detach()
                inner.add_op(op)
        inner.add_op(scf.YieldOp())
        first, (left,), head = body.insert_arg(IndexType(), 0), inner.args, inner.first_op
        assert head is not None
        with (emit := OpBuilder(inner)).before(head):
            rest: Value = left
            for axis, count in enumerate(counts, 1):
                body.args[1].replace_all_uses_with(emit.value(rest if axis == len(counts) else emit.modulo(rest, count)))
                body.erase_arg(body.args[1])
                rest = emit.floordiv(rest, count)
        with (emit := OpBuilder(body)).inside(body):
            emit.location = launch.location
            step, end = emit.constant(change.blocks), emit.constant(prod(counts))
            emit.insert(scf.ForOp(first, end, step, [], Region(inner)))
        few = arith.ConstantOp(IntegerAttr(change.blocks, IndexType()))
        Rewriter.insert_op(few, InsertPoint.before(launch))
        launch.operands = [few.result]
        made = True
    return made


def _in_front(change: InFront, module: ModuleOp) -> bool:
    """Move a load, and what it is computed from, in front of its loop."""
    for load in [op for op in module.walk() if isinstance(op, tile.CopyOp) and location_of(op) == change.load]:
        loop: Operation | None = load
        while loop is not None and not (isinstance(loop, scf.ForOp) and location_of(loop) == change.loop):
            loop = loop.parent_op()
        if loop is None:
            continue
        moved: list[Operation] = []

        def gather(op: Operation, loop: Operation = loop, moved: list[Operation] = moved) -> bool:
            """What an operation needs of the loop's body, in order; False where that changes from iteration to iteration."""
            for operand in op.operands:
                owner = operand.owner
                if not isinstance(owner, Operation):
                    if (parent := owner.parent_op()) is loop or (parent is not None and loop.is_ancestor(parent)):
                        return False
                elif loop.is_ancestor(owner) and owner not in moved and not gather(owner):
                    return False
            moved.append(op)
            return True

        if not gather(load):
            continue
        for op in moved:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(loop))
        return True
    return False
