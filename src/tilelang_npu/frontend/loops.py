"""Traces the loops of a kernel: ``for`` over loops of the language or Python's ``range``, ``while``, ``break``, ``continue``.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, UnitAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.errors import TileError
from tilelang_npu.frontend.kernel_calls import Calls
from tilelang_npu.frontend.races import order_matters, refuse_races
from tilelang_npu.frontend.tile_loads import take_tile_loads
from tilelang_npu.language import launch
from tilelang_npu.linear import Interval
from tilelang_npu.traced import jumps
from tilelang_npu.traced.arithmetic import binary, compare
from tilelang_npu.traced.arithmetic import truth as traced_truth
from tilelang_npu.traced.buffers import Variable
from tilelang_npu.traced.conversions import Extent, bounds_of_index, extent
from tilelang_npu.traced.emitter import region_of
from tilelang_npu.traced.jumps import Jumps
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.locations import place_of
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.statement_numbers import StatementNumbers

FOR, WHILE = "`for` loop", "`while` loop"
_IN_PARALLEL = ("cannot be used in T.Parallel, whose points are computed in no order",
                "choose each point's value with T.if_then_else")
_OF_LAUNCHES = ("leaves a loop of launches", "put the launches that are left out under an `if` on constants")
_MOST_LAUNCHES = 256
"""The most launches of one loop; each is compiled by itself."""
_BY_HAND = ("skips statements of a loop whose order or stage is given",
            "put the statements after it under `if`, which is one statement, or leave order and stage out")
_IN_GRID = ("in T.grid would leave the innermost of its loops only", "write the loops one inside another with T.serial")


def _refuse_reads_of_unset_variables(around: Block, last_before: Operation | None, body: Block) -> None:
    """Refuses a ``T.Parallel`` that reads a scalar variable of its points before any statement of the point has written it.

    The variable is allocated once, above the loop. Such a read would find the value of another point.

    Args:
        around: the block in which the loop will be.
        last_before: the last operation of ``around`` before the loop's body was traced; the operations after it are the
            allocations of the points' variables.
        body: the body of the loop.

    Raises:
        TileError: T160, there is such a read.
    """
    first = around.first_op if last_before is None else last_before.next_op
    unset = set[SSAValue]()
    while first is not None:
        unset.update(first.results)
        first = first.next_op
    for op in body.walk():
        if isinstance(op, memref.StoreOp):
            unset.discard(op.memref)
        elif isinstance(op, memref.LoadOp) and op.memref in unset:
            allocation = op.memref.owner
            assert isinstance(allocation, tile.AllocOp)
            name = allocation.label.data
            raise TileError(f"{name} is read before the point of T.Parallel has set it", code="T160",
                            location=place_of(op.location),
                            help=f"assign {name} before it is read; T.alloc_var has the argument init")


def _constant_numbers(loop: launch.Loop[object]) -> range | None:
    """Returns the numbers of a serial loop with constant bounds; None for any other loop."""
    if loop.kind not in ("range", "serial", "unroll") or len(loop.extents) != 3:
        return None
    bounds = [bound for bound in loop.extents if isinstance(bound, int) and not isinstance(bound, bool)]
    return range(*bounds) if len(bounds) == 3 and bounds[2] != 0 else None


class Loops(Calls, ABC):
    """Traces the loops of one function's source; a subclass traces the statements in the loops."""

    @abstractmethod
    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Traces the statements of a block."""

    @contextmanager
    def _inside(self, loop: Jumps) -> Iterator[None]:
        """Makes ``loop`` the loop that jumps in the body of the ``with`` leave."""
        self.builder.loops.append(loop)
        try:
            yield
        finally:
            self.builder.loops.pop()

    def _break(self, _node: ast.Break) -> None:
        self.builder.jump("`break`", leaves=True)

    def _continue(self, _node: ast.Continue) -> None:
        self.builder.jump("`continue`", leaves=False)

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise TileError("statement `for ... else` is not supported in a kernel", code="T141",
                            help="put the `else` part after the loop")
        loop = self.evaluate(node.iter)
        if isinstance(loop, range):
            loop = launch.range_loop(loop.start, loop.stop, loop.step)
        if not isinstance(loop, launch.Loop):
            loops = "range(...), T.serial, T.grid, T.Pipelined, T.Parallel, T.Persistent or T.unroll"
            one = f"range({loop})" if isinstance(loop, int) else loops
            kind = type(loop).__name__
            article = "an" if kind[0] in "aeiou" else "a"
            raise TileError(f"`for` over {article} {kind} is not supported in a kernel", code="T141",
                            help=f"loop over {one}" + ("" if isinstance(loop, int) else ", and index in the body"),
                            ).at(self.where(node.iter))
        if not self.builder.in_kernel and (numbers := _constant_numbers(loop)) is not None:
            self._launches(node, numbers)
            return
        self.builder.require_kernel(f"T.{loop.kind}" if loop.kind != "range" else "a loop")
        if self.builder.in_parallel and loop.kind == "Parallel":
            raise TileError("a T.Parallel inside T.Parallel is not supported", code="T141",
                            help="write its extents into one T.Parallel")
        if loop.kind == "Parallel":
            self._parallel(node, loop)
        elif loop.kind == "Persistent":
            self._persistent(node, loop)
        elif loop.kind == "grid":
            self._grid(node, loop)
        else:
            self._serial(node, loop)

    def _serial(self, node: ast.For, loop: launch.Loop[object]) -> None:
        if not isinstance(node.target, ast.Name):
            raise TileError(f"T.{loop.kind} must have exactly one loop variable", code="T141",
                            help="write `for i in`").at(self.where(node.target))
        self._counted(node, loop, [node.target], loop.extents)

    def _launches(self, node: ast.For, numbers: range) -> None:
        """Traces the body of a loop around ``T.Kernel`` once for each number: every launch is one of the function."""
        if not isinstance(node.target, ast.Name):
            raise TileError("a loop of launches must have exactly one loop variable", code="T141",
                            help="write `for i in`").at(self.where(node.target))
        if len(numbers) > _MOST_LAUNCHES:
            raise TileError(f"a loop over {len(numbers)} launches; {_MOST_LAUNCHES} are the most", code="T160",
                            help="put the loop into T.Kernel")
        for number in numbers:
            with self.scopes.frame(FOR, repeats=True), self._inside(Jumps(self.builder.block, _OF_LAUNCHES)):
                self.scopes.bind(node.target.id, number, self.where(node.target))
                self.body(node.body)

    def _variables(self, node: ast.For, kind: str, count: int) -> list[ast.expr]:
        """The names of the variables of a loop with ``count`` axes."""
        names = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
        if len(names) != count or not all(isinstance(name, ast.Name) for name in names):
            raise TileError(f"T.{kind} over {count} extents needs {count} loop variables, not {len(names)}", code="T141",
                            help="write one name per extent: `for i, j in`").at(self.where(node.target))
        return names

    def _grid(self, node: ast.For, loop: launch.Loop[object]) -> None:
        """Emits nested loops, one for each axis."""
        self._counted(node, loop, self._variables(node, "grid", len(loop.extents)),
                      [bound for size in loop.extents for bound in (0, size, 1)])

    def _counted(self, node: ast.For, loop: launch.Loop[object], names: Sequence[ast.expr], bounds: Sequence[object]) -> None:
        """Emits the loop of the first name, around those of the other names; ``bounds`` has start, stop and step of each."""
        builder, location = self.builder, self.builder.location
        start, stop, step = (extent(builder, bound) for bound in bounds[:3])
        lower, upper, stride = (builder.index(bound) for bound in (start, stop, step))
        block = Block(arg_types=[IndexType()])
        jumps_here = Jumps(builder.block, _IN_GRID if len(loop.extents) > 1 and loop.kind == "grid" else None)
        rest = names[1:]
        walk = (lambda: self._counted(node, loop, rest, bounds[3:])) if rest else (lambda: self.body(node.body))
        counted, outer = None, builder.counted
        if loop.schedule is not None:
            builder.schedules += 1
            builder.counted = counted = StatementNumbers(block, builder.schedules)
            jumps_here.refusal = _BY_HAND
        self._loop_body(walk, block, names[:1], [bounds_of_index(stop, start)], jumps_here)
        builder.location, builder.counted = location, outer
        jumps.close(builder, block, jumps_here)
        with builder.at(block):
            builder.emit(scf.YieldOp(), location)
        made = scf.ForOp(lower, upper, stride, [], region_of(block))
        if loop.num_stages is not None:
            made.attributes[tile.NUM_STAGES] = IntegerAttr(max(loop.num_stages, 1), i64)
        if loop.schedule is not None and counted is not None:
            stages, order = loop.schedule.of_statements(counted.places)
            made.attributes[tile.SCHEDULE] = IntegerAttr(counted.number, i64)
            for name, numbers in ((tile.STAGE, stages), (tile.ORDER, order)):
                made.attributes[name] = DenseArrayBase.from_list(i64, numbers)
        if loop.cross_interval > 1:
            made.attributes[tile.CROSS_INTERVAL] = IntegerAttr(loop.cross_interval, i64)
        if loop.kind == "unroll":
            made.attributes[tile.UNROLL] = UnitAttr()
        builder.emit(made, location)

    def _persistent(self, node: ast.For, loop: launch.Loop[object]) -> None:
        """Emits a loop over the waves, whose body is executed if the wave has a tile for this block."""
        builder, location = self.builder, self.builder.location
        *domain, wave, group = (extent(builder, size) for size in loop.extents)
        assert isinstance(wave, int) and isinstance(group, int), "T.Persistent takes no others"
        names = self._variables(node, "Persistent", len(domain))
        last_size = domain[-1]  # along the only axis, tiles have the same order in bands of any width
        group = min(group, last_size) if isinstance(last_size, int) else 1
        group = group if isinstance(last_size, int) and last_size % group == 0 else 1
        total: Extent = 1
        for size in domain:
            total = extent(builder, size if isinstance(total, int) and total == 1 else total * size)
        waves = -(-total // wave) if isinstance(total, int) else extent(builder, (total + (wave - 1)) // wave)
        lower, upper, step = (builder.index(bound) for bound in (0, waves, 1))
        block, inner, jumps_here = Block(arg_types=[IndexType()]), Block(), Jumps(builder.block)
        builder.epoch += 1
        with builder.at(block):
            number = builder.scalar(block.args[0], INDEX, None, bounds_of_index(waves))
            linear = binary(builder, "add", binary(builder, "mul", number, wave), loop.index)
            condition = traced_truth(builder, compare(builder, "lt", linear, total)).ssa(builder)
            with builder.at(inner), self.scopes.frame(FOR, repeats=True), self._inside(jumps_here):
                rest = linear
                places: list[Expr] = []
                for size in (group, *domain[-2::-1]):
                    places.insert(0, binary(builder, "mod", rest, size))
                    rest = binary(builder, "floordiv", rest, size)
                *places, last = places
                places.append(binary(builder, "add", binary(builder, "mul", rest, group), last))
                for name, place in zip(names, places, strict=True):
                    assert isinstance(name, ast.Name)
                    self.scopes.bind(name.id, place, self.where(name))
                self.body(node.body)
            builder.location = location
            jumps.close(builder, inner, jumps_here)
            with builder.at(inner):
                builder.emit(scf.YieldOp(), location)
            builder.emit(scf.IfOp(condition, [], region_of(inner), None), location)
            builder.emit(scf.YieldOp(), location)
        builder.emit(scf.ForOp(lower, upper, step, [], region_of(block)), location)

    def _parallel(self, node: ast.For, loop: launch.Loop[object]) -> None:
        names = self._variables(node, "Parallel", len(loop.extents))
        builder, location = self.builder, self.builder.location
        if builder.dialect == "ascendc" and len(loop.extents) > 2:
            raise TileError(f"T.Parallel over {len(loop.extents)} extents; in the ascendc dialect, at most two are allowed",
                            code="T141", help="loop over the outer extents with T.serial")
        extents = [extent(builder, size) for size in loop.extents]
        values = [size if isinstance(size, int) else size.ssa(builder) for size in extents]
        block = Block(arg_types=[IndexType()] * len(extents))
        bounds = [bounds_of_index(size) for size in extents]
        last_before = builder.block.last_op
        builder.around_parallel = builder.block
        try:
            self._loop_body(lambda: self.body(node.body), block, names, bounds, Jumps(builder.block, _IN_PARALLEL))
        finally:
            builder.around_parallel = None
        _refuse_reads_of_unset_variables(builder.block, last_before, block)
        spoken, known = [name.id for name in names if isinstance(name, ast.Name)], [
            size if isinstance(size, int) else None for size in extents]
        refuse_races(block, spoken, known)
        for remark in order_matters(block, spoken, known):
            builder.remark(remark)
        take_tile_loads(builder, block, known)
        builder.emit(tile.ParallelOp(values, region_of(block)), location)

    def _loop_body(self, walk: Callable[[], None], block: Block, names: Sequence[ast.expr], bounds: Sequence[Interval],
                   loop: Jumps) -> None:
        builder = self.builder
        builder.epoch += 1
        if builder.in_parallel:
            loop.refusal = _IN_PARALLEL
        with builder.at(block), self.scopes.frame(FOR, repeats=True), self._inside(loop):
            for name, argument, known in zip(names, block.args, bounds, strict=True):
                assert isinstance(name, ast.Name)
                argument.name_hint = escape_name(name.id) if name.id != "_" else None
                self.scopes.bind(name.id, builder.scalar(argument, INDEX, None, known), self.where(name))
            walk()

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise TileError("statement `while ... else` is not supported in a kernel", code="T141",
                            help="put the `else` part after the loop")
        builder, location = self.builder, self.builder.location
        builder.require_kernel("a loop")
        if builder.in_parallel:
            raise TileError("a `while` inside T.Parallel is not supported", code="T141",
                            help="put T.Parallel inside the loop")
        test = self.truth(self.evaluate(node.test))
        if test is False:
            return
        before, after, loop = Block(), Block(), Jumps(builder.block)
        goes_on = jumps.flag(builder, "goes_on", test)
        with builder.at(before):
            builder.emit(scf.ConditionOp(goes_on.place.load().ssa(builder)))
        builder.epoch += 1
        with builder.at(after), self.scopes.frame(WHILE, repeats=True), self._inside(loop):
            self.body(node.body)
        if isinstance(test, bool) and loop.left is None:
            raise TileError(f"`while {ast.unparse(node.test)}` never ends: its condition is known before the kernel runs",
                            code="T141", location=self.where(node.test),
                            help="test a T.alloc_var scalar or an element of a buffer, or leave the loop with `break`")
        builder.location = location
        left, loop.left = loop.left, None  # tested by the loop's own condition
        jumps.close(builder, after, loop)
        with builder.at(after):
            self._ask_again(node.test, goes_on, left)
            builder.emit(scf.YieldOp(), location)
        builder.emit(scf.WhileOp([], [], region_of(before), region_of(after)), location)

    def _ask_again(self, test: ast.expr, goes_on: Variable, left: Variable | None) -> None:
        """Evaluates the condition at the end of an iteration. A loop that was left does not evaluate it."""
        builder, location = self.builder, self.builder.location
        builder.epoch += 1
        if left is None:
            goes_on.place.store(self.truth(self.evaluate(test)))
            return
        asked, ended = Block(), Block()
        with builder.at(asked):
            goes_on.place.store(self.truth(self.evaluate(test)))
            builder.emit(scf.YieldOp(), location)
        with builder.at(ended):
            goes_on.place.store(False)
            builder.emit(scf.YieldOp(), location)
        condition = jumps.is_unset(builder, left).ssa(builder)
        builder.emit(scf.IfOp(condition, [], region_of(asked), region_of(ended)), location)


