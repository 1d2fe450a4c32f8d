"""Makes edited versions of a kernel and compiles them, so that their times can be compared.

Most edits rewrite a copy of the kernel's trace, which has the author's statements with their lines. For example, a loop gets
another ``num_stages``, a statement another buffer, or a load is moved before a loop. Other edits call the factory with other
numbers. :func:`edits_of_refusals` makes the edits that passes propose as data in their refusals (``dialects/ir/changes.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import frontend
from tilelang_npu.analysis.buffer_sizes import nbytes_of
from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.launch_grids import constant_grid
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import InFront, OwnBuffer, Rounds, Smaller, Stages, SwitchedOn, Unpinned
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import Remark
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.reports.number_values import MAX_COUNT, values_to_try
from tilelang_npu.runtime.reports.source_edits import (
    add_own_buffer,
    add_persistent_loop,
    change_number,
    change_stages,
    hoist_load,
    remove_address,
    remove_from_list,
)
from tilelang_npu.runtime.settings.pass_config_keys import PassConfigKey
from tilelang_npu.source_changes import SourceChange
from tilelang_npu.transforms.infra.launch_blocks import loop_over_blocks

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter, Traced
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.settings.jit_settings import MadeBy, Settings

_MAX_DIVISOR = 8
"""Numbers are made smaller at most by this factor, if a refusal asks for smaller tiles."""


class Edit(NamedTuple):
    """A proposed change of a kernel's source.

    Attributes:
        subject: a name for the edited object, such as a loop. Of several edits with one subject, only the best is reported.
        text: the edit in words.
        place: the edited source line; None if the edit has no line.
        make: compiles and returns the edited kernel; None if the edit changes nothing, or the kernel's parameters would differ.
        safe: whether the edit cannot change the kernel's results, so that they need not be compared.
        cause: the reason why the kernel loses time without the edit, in a few words.
        write: returns the edit as changes of the author's file; none if it cannot be written there.
        is_argument: whether the edit passes another argument to the factory. Such an edit can be made even if no line of the
            author's file is known that has the argument.
    """

    subject: str
    text: str
    place: Location | None
    make: Callable[[], CompiledKernel | None]
    safe: bool = True
    cause: str = "no overlap"
    write: Callable[[], Sequence[SourceChange]] = tuple
    is_argument: bool = False


@dataclass(frozen=True)
class EditableKernel:
    """A kernel with the data that is needed to compile it again with an edit.

    Attributes:
        kernel: the compiled kernel.
        traced: the trace of the kernel, which trace edits rewrite.
        settings: the arguments of ``jit``.
        made_by: the factory that returned the ``prim_func``, and the factory's arguments; None for a kernel without a factory.
    """

    kernel: CompiledKernel
    traced: Traced
    settings: Settings
    made_by: MadeBy | None

    def rewritten(self, rewrite: Callable[[ModuleOp], object]) -> CompiledKernel | None:
        """Compiles the kernel from a rewritten copy of its trace.

        Args:
            rewrite: changes a module; it returns False if it has changed nothing.

        Returns:
            The compiled kernel; None if ``rewrite`` returns False.
        """
        module = self.traced.module.clone()
        if rewrite(module) is False:
            return None
        made = replace(self.traced, module=module)
        sizes = [constant_grid(launch) for launch in made.launches]
        grids = tuple(grid if size is None else tuple(size) for grid, size in zip(made.grids, sizes, strict=True))
        return type(self.kernel)(self.kernel.prim_func, self.settings, traced=replace(made, grids=grids))

    def numbers(self) -> dict[str, int]:
        """Returns the factory's arguments and defaults that are positive integers, by name."""
        return {name: value for name, value in self._arguments().items() if type(value) is int and value > 0}

    def retraced(self, numbers: Mapping[str, int]) -> tuple[PrimFunc, Traced] | None:
        """Calls the factory with other numbers, and traces the function that it returns.

        Args:
            numbers: the factory's arguments to replace, by name.

        Returns:
            The function and its trace; None if the factory or the tracing raises an exception, or if the kernel's parameters
            would differ.
        """
        assert self.made_by is not None
        try:
            func = self.made_by.prim_func(numbers)
            assert isinstance(func, PrimFunc)
            traced = frontend.trace(func, dialect=self.kernel.dialect, vector_cores=self.kernel.chip.aiv_per_aic,
                                    chip=self.kernel.chip)
        except Exception:  # noqa: BLE001  (the author's own checks may raise any error)
            return None
        if parameters_for_callers(traced.parameters, self.kernel) != parameters_for_callers(self.kernel.params, self.kernel):
            return None
        return func, traced

    def with_numbers(self, numbers: Mapping[str, int]) -> CompiledKernel | None:
        """Calls the factory with other numbers, and compiles the kernel; None in the same cases as :meth:`retraced`."""
        made = self.retraced(numbers)
        return None if made is None else type(self.kernel)(made[0], self.settings, traced=made[1])

    def _arguments(self) -> dict[str, object]:
        return {} if self.made_by is None else self.made_by.arguments()


def parameters_for_callers(parameters: Sequence[Parameter], kernel: CompiledKernel) -> list[Parameter]:
    """Returns the parameters except those at the positions of the kernel's workspaces."""
    return [parameter for position, parameter in enumerate(parameters) if position not in kernel.workspace_idx]


def number_edits(source: EditableKernel) -> Iterator[Edit]:
    """Yields the edits of the factory's positive integer arguments.

    First, all numbers are doubled and halved; a number up to 4 is increased and decreased by one instead. Then come the numbers
    of cores, and shares of the extents of the kernel's parameters (``number_values.py``).
    """
    kernel = source.kernel
    cores = (kernel.chip.aic, kernel.chip.aiv)
    sizes = [size for parameter in kernel.params for size in parameter.shape or () if isinstance(size, int) and size > 1]
    grids = {size for launch in source.traced.launches for size in constant_grid(launch) or ()}
    later = []
    for name, value in source.numbers().items():
        large = (value + 1, value - 1) if value <= MAX_COUNT else (2 * value, *([value // 2] if value % 2 == 0 else []))
        for number in filter(None, large):
            yield _number_edit(source, name, value, number)
        others = values_to_try(value, cores, dict.fromkeys(sizes), in_grid=value in grids)
        later += [(name, value, step.value) for step in others if step.value not in large]
    for name, value, number in later:
        yield _number_edit(source, name, value, number)


def _number_edit(source: EditableKernel, name: str, value: int, number: int) -> Edit:
    return Edit(name, f"{name}={number} in place of {value}", None, partial(source.with_numbers, {name: number}), safe=False,
                cause="other numbers", write=partial(change_number, source.made_by, name, value, number), is_argument=True)


def loops(module: ModuleOp) -> list[scf.ForOp]:
    """Returns all ``scf.for`` loops of a module, outer loops before inner ones."""
    return [op for op in module.walk() if isinstance(op, scf.ForOp)]


def stages_edit(source: EditableKernel, position: int, stages: int) -> Edit:
    """Returns the edit that sets ``num_stages`` of a loop.

    Args:
        source: the kernel.
        position: the loop's index in :func:`loops`.
        stages: the new number of stages.
    """
    loop = loops(source.traced.module)[position]

    def set_stages(module: ModuleOp) -> None:
        loops(module)[position].attributes[tile.NUM_STAGES] = IntegerAttr(stages, i64)

    text = f"num_stages={stages} in place of {tile.stages_of(loop)}" if tile.NUM_STAGES in loop.attributes else (
        f"T.Pipelined with num_stages={stages} in place of T.serial")
    return Edit(f"loop {position}", text, location_of(loop), partial(source.rewritten, set_stages),
                write=partial(change_stages, location_of(loop), stages))


def fewer_blocks(source: EditableKernel, counts: Sequence[tuple[int, int]]) -> Iterator[Edit]:
    """Yields the edits that launch one block for each core, for launches of more blocks than cores.

    Args:
        source: the kernel.
        counts: the number of blocks of each launch of a call, and the number of cores that run its blocks.
    """
    launches = [op for op in source.traced.module.walk() if isinstance(op, tile.LaunchOp)]
    if len(launches) != len(counts):
        return
    for launch, (blocks, cores) in zip(launches, counts, strict=True):
        place = next((location_of(op) for op in launch.body.block.ops
                      if not isinstance(op, (tile.AllocOp, arith.ConstantOp)) and location_of(op) is not None), None)
        if blocks > cores and place is not None:
            yield _fewer_blocks_edit(source, Rounds(place, cores), location_of(launch))


def _fewer_blocks_edit(source: EditableKernel, change: Rounds, place: Location | None) -> Edit:
    return Edit("grid", f"{change.blocks} blocks, each with a loop over its share of the grid", place,
                partial(source.rewritten, partial(_add_persistent_loop, change)), safe=False,
                cause="more blocks than cores", write=partial(add_persistent_loop, change))


def switched_on(source: EditableKernel, name: str) -> Edit:
    """Returns the edit that removes an optimisation from ``tl.disable``, which switches the optimisation on."""
    key, kernel = PassConfigKey.TL_DISABLE, source.kernel
    configs = {one: value for one, value in (source.settings.pass_configs or {}).items() if one not in (key, key.value)}
    settings = replace(source.settings, pass_configs={**configs, key: [other for other in kernel.without if other != name]})
    return Edit(name, f"{name} out of {key.value}", None, partial(type(kernel), kernel.prim_func, settings),
                cause="switched off", write=partial(remove_from_list, source.settings.at, name))


# -- edits that refusals have as data ------------------------------------------------------------------------------------------


def edits_of_refusals(source: EditableKernel, refused: Sequence[Remark]) -> Iterator[Edit]:
    """Yields the edits that passes propose in their refusals, in the attribute ``change`` of a remark.

    Args:
        source: the kernel.
        refused: the remarks about optimisations that were not done.
    """
    traces = cache(lambda name, number: source.retraced({name: number}))
    for refusal in refused:
        change = refusal.change
        if isinstance(change, Stages):
            for position, loop in enumerate(loops(source.traced.module)):
                if location_of(loop) == change.loop:
                    yield stages_edit(source, position, change.stages)
        elif isinstance(change, Smaller):
            yield from _smaller_tiles(source, change, traces)
        elif isinstance(change, SwitchedOn):
            yield switched_on(source, change.name)
        elif isinstance(change, OwnBuffer):
            at = f" from line {change.at.line} on" if change.at is not None else ""
            yield Edit(f"own {change.label}", f"a separate buffer for {change.label}{at}", change.place,
                       partial(source.rewritten, partial(_add_own_buffer, change)), safe=False, cause="one buffer for several",
                       write=partial(add_own_buffer, change))
        elif isinstance(change, Unpinned):
            yield Edit("address", "no fixed address for the buffer", change.place,
                       partial(source.rewritten, partial(_remove_address, change)), safe=False, cause="fixed address",
                       write=partial(remove_address, change))
        elif isinstance(change, Rounds):
            yield _fewer_blocks_edit(source, change, refusal.place)
        elif isinstance(change, InFront) and change.load is not None and change.loop is not None:
            yield Edit(f"load {change.load.line}", f"the load before the loop at line {change.loop.line}", change.load,
                       partial(source.rewritten, partial(_hoist_load, change)), safe=False, cause="loaded again",
                       write=partial(hoist_load, change))


def _smaller_tiles(source: EditableKernel, change: Smaller, traces: Callable[[str, int], tuple[object, Traced] | None]
                   ) -> Iterator[Edit]:
    """Yields, for each number of the factory, the edit with the largest smaller number for which the tiles are small enough.

    Args:
        source: the kernel.
        change: the lines that allocate the tiles, and the percentage of their bytes that is wanted.
        traces: returns the factory's function for another value of a number, and its trace.
    """
    most_bytes = _bytes_at(source.traced.module, change.places) * change.percent // 100
    for name, value in source.numbers().items():
        number = value - 1 if value <= MAX_COUNT else value // 2
        while number and _MAX_DIVISOR * number >= value:
            made = traces(name, number)
            if made is not None and 0 < _bytes_at(made[1].module, change.places) <= most_bytes:
                yield _number_edit(source, name, value, number)
                break
            number = number - 1 if value <= MAX_COUNT else number // 2


def _allocations(module: ModuleOp, places: Sequence[Location | None]) -> list[tile.AllocOp]:
    return [op for op in module.walk() if isinstance(op, tile.AllocOp) and location_of(op) in places]


def _bytes_at(module: ModuleOp, places: Sequence[Location | None]) -> int:
    """Returns the number of bytes that are allocated at some source lines."""
    return sum(nbytes_of(op.result) for op in _allocations(module, places))


def _remove_address(change: Unpinned, module: ModuleOp) -> bool:
    removed = [op.properties.pop("address", None) for op in _allocations(module, [change.place])]
    return any(address is not None for address in removed)


def _add_own_buffer(change: OwnBuffer, module: ModuleOp) -> bool:
    """Makes the writes of one source line write to a new buffer, which all later lines use in place of the old one.

    Returns False if nothing was changed.
    """
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
                    op.operands[number] = _same_view_of(op.operands[number], own.result, op)
                    made = True
    return made


_VIEWS = (tile.RegionOp, tile.ViewOp)


def _same_view_of(value: SSAValue, root: SSAValue, user: Operation) -> SSAValue:
    """Returns the view of the buffer ``root`` that equals ``value``, a view of another buffer; it is made before ``user``."""
    view = value.owner
    if not isinstance(view, _VIEWS):
        return root
    copy = view.clone()
    copy.operands[0] = _same_view_of(view.operands[0], root, user)
    Rewriter.insert_op(copy, InsertPoint.before(user))
    return copy.results[0]


def _add_persistent_loop(change: Rounds, module: ModuleOp) -> bool:
    """Launches ``change.blocks`` blocks, each with a loop around all statements but its allocations, as ``T.Persistent`` is
    written in the source."""
    def has_line(launch: tile.LaunchOp) -> bool:
        return any(op is not launch and location_of(op) == change.line for op in launch.walk())

    chosen = [op for op in module.walk() if isinstance(op, tile.LaunchOp) and has_line(op) and op.panel is None
              and constant_grid(op) is not None]
    for launch in chosen:
        loop_over_blocks(launch, change.blocks, shared_buffers=True)
    return bool(chosen)


def _hoist_load(change: InFront, module: ModuleOp) -> bool:
    """Moves a load, with the operations that compute its operands, before its loop."""
    for load in [op for op in module.walk() if isinstance(op, tile.CopyOp) and location_of(op) == change.load]:
        loop: Operation | None = load
        while loop is not None and not (isinstance(loop, scf.ForOp) and location_of(loop) == change.loop):
            loop = loop.parent_op()
        if loop is None:
            continue
        moved: list[Operation] = []

        def gather(op: Operation, loop: Operation = loop, moved: list[Operation] = moved) -> bool:
            """Appends an operation, after the operations in the loop that compute its operands, to ``moved``.

        Returns False if the operation is not loop-invariant.
        """
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
