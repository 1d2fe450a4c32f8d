"""Emitters of loops and branches (``scf``) and of ops that return block and sub-block indices.

This module also registers the ops that have no effect in the simulator, such as annotations.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilelang_npu.card_signals import PollWait
from tilelang_npu.dialects import annotation, hivm
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.mlir.arith import IndexCastUIOp
from tilelang_npu.dialects.scope import ReturnOp, ScopeOp
from tilelang_npu.dialects.text import location_of
from tilelang_npu.linear import NATURAL, Interval
from tilelang_npu.simulator.codegen.code_scopes import CodeScope, Int, ScalarExpr
from tilelang_npu.simulator.codegen.handlers import Value, effect, ignore, pure, unsupported
from tilelang_npu.simulator.codegen.integers import CARRIED, is_truth, wrapped_if_large
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import Choice, Local, StridedView, alternatives, bounds
from tilelang_npu.simulator.machine.core_coroutines import MAX_BLOCKS
from tilelang_npu.simulator.machine.op_records import CrossSet, CrossWait

FEW = 16
"""A loop nest with at most this many iterations in total runs without the checks of ``LoopGuard``: it cannot be endless."""


class Carried:
    """A loop-carried value, or a result of a loop or branch, as a variable of the generated code.

    For a memref, the variable holds the byte offset; memory, sizes and strides must be equal in all iterations and branches.

    Args:
        em: the emitter.
        kind: the type of the value.
        op: the loop or branch.
    """

    def __init__(self, em: PythonEmitter, kind: Attribute, op: Operation) -> None:
        self.em = em
        self.kind = kind
        self.op = op
        self.name = em.fresh("c")
        self.shape: StridedView | None = None

    def assignment(self, ssa: SSAValue) -> str:
        """Returns the expression that assigns ``ssa`` to the variable: the value of a scalar, the byte offset of a memref.

        Raises:
            TileError: T501, the memory, sizes or strides of the memref differ from those of an earlier assignment.
        """
        if isinstance(self.kind, IndexType):  # wrapped to 64 bits, or it could grow in every iteration
            number = self.em.integer(ssa)
            return self.em.name_of(wrapped_if_large(self.em, number, self.kind, CARRIED))
        if not isinstance(self.kind, MemRefType):
            return self.em.expression(ssa).text
        buffer = self.em.buffer(ssa)
        view = buffer
        while isinstance(view, Choice):
            view = view.true
        if self.shape is None:
            self.shape = view
        known = (self.shape.base, self.shape.sizes, self.shape.strides)
        if (view.base, view.sizes, view.strides) != known:
            raise unsupported(self.op, "the memrefs that it carries or yields must differ in nothing but their address")
        self.em.buffer_numbers.join((self.shape, *alternatives(buffer)))
        return self.em.offset_of(buffer)

    def value(self, scope: CodeScope) -> Value:
        """Returns the representation of the variable's value: an integer, an expression, or a view at the variable's offset.

        Args:
            scope: the scope in which the variable is assigned; code that uses the value is placed in it.
        """
        if isinstance(self.kind, MemRefType):
            assert self.shape is not None
            offset = self.em.atom(self.name, scope, NATURAL)
            return StridedView(self.shape.base, self.shape.element, offset, offset, self.shape.sizes, self.shape.strides)
        if isinstance(self.kind, IndexType):
            return self.em.atom(self.name, scope, Interval(-CARRIED, CARRIED))
        if isinstance(self.kind, IntegerType) and not is_truth(self.kind):
            return self.em.atom(self.name, scope, bounds(self.kind))
        return ScalarExpr(self.name, scope)


def _assign(em: PythonEmitter, carried: Sequence[Carried], values: Sequence[SSAValue], op: Operation) -> None:
    """Emits one statement that assigns values to the variables of several carried values at once."""
    if not carried:
        return
    texts = [one.assignment(value) for one, value in zip(carried, values, strict=True)]
    if [one.name for one in carried] == texts:
        return
    em.flush()
    em.line(f"{', '.join(one.name for one in carried)} = {', '.join(texts)}", op)


def _terminator(block: Block) -> Operation:
    last = block.last_op
    assert last is not None
    return last


@effect(scf.ForOp)
def _for(em: PythonEmitter, op: scf.ForOp) -> None:
    low, high, step = em.integer(op.lb), em.integer(op.ub), em.integer(op.step)
    if not step.at_least(1):
        raise unsupported(op, "its step is not known to be positive")
    carried = [Carried(em, arg.type, op) for arg in op.iter_args]
    _assign(em, carried, op.iter_args, op)
    texts = [em.text_of(low), em.text_of(high), em.text_of(step)]
    span = high - low
    certain = span.at_least(1)
    em.flush()
    outer = em.scope
    scope = em.enter("loop", certain=certain)
    index = em.fresh("i")
    variable = em.atom(index, scope, Interval(low.interval.low, high.interval.high - 1))
    body = op.body.block
    em.values[body.args[0]] = variable
    em.open_loops[op] = (variable, low, step)
    for one, arg in zip(carried, body.args[1:], strict=True):
        em.values[arg] = one.value(scope)
    em.depth += 1
    em.scalar_work.open_loop(body.args[0])
    outer_trips, em.unguarded_trips = em.unguarded_trips, 1
    first = len(em.records)
    em.emit_block(body)
    _assign(em, carried, _terminator(body).operands, op)
    alone = em.scalar_work.take_pending() if len(em.records) == first else 0  # no op in the loop can carry its instructions
    em.depth -= 1
    ahead = em.scalar_work.close_loop()
    bounds_text = ", ".join(texts) if step != Int(1) else ", ".join(texts[:2]) if low != Int(0) else texts[1]
    em.flush()
    trips = f"range({bounds_text})"
    inner_trips, em.unguarded_trips = em.unguarded_trips, outer_trips
    if low.known and high.known and step.known and (high.constant - low.constant) * inner_trips <= FEW * step.constant:
        em.unguarded_trips = max(outer_trips, inner_trips * len(range(low.constant, high.constant, step.constant)))
    else:
        trips = f"guard.guarded_range({trips}, ev, bid, sid{'' if em.knows_length(op) else ', known=False'})"
    if ahead:
        outer.line(em.scalars_statement(op, ahead), op)
    outer.line(f"for {index} in {trips}:", op)
    em.leave()
    if alone:
        known = low.known and high.known and step.known
        times = len(range(low.constant, high.constant, step.constant)) if known else f"len(range({bounds_text}))"
        outer.line(em.scalars_statement(op, alone, times), op)
    for one, result in zip(carried, op.results, strict=True):
        em.values[result] = one.value(em.scope)


@effect(scf.IfOp)
def _if(em: PythonEmitter, op: scf.IfOp) -> None:
    condition = em.expression(op.cond)
    branches = [region.block for region in (op.true_region, op.false_region) if region.blocks]
    carried = [Carried(em, result.type, op) for result in op.results]
    if condition.value is not None:
        if condition.value or len(branches) == 2:  # only the branch that runs is generated
            _inline_block(em, op, branches[0 if condition.value else 1])
        return
    em.scalar_work.pending += 1
    em.flush()
    outer = em.scope
    scopes = [_branch(em, op, block, carried) for block in branches]
    for number, scope in enumerate(scopes):
        if scope.lines or number == 0:
            outer.line("else:" if number else f"if {em.condition_text(op, condition.text)}:", op)
            if not scope.lines:
                scope.line("pass")
            scope.close()
    for one, result in zip(carried, op.results, strict=True):
        em.values[result] = one.value(em.scope)


def _branch(em: PythonEmitter, op: scf.IfOp, block: Block, carried: Sequence[Carried]) -> CodeScope:
    """Emits one branch of an ``scf.if`` into a separate scope and returns this scope.

    The lines are not yet appended to the enclosing scope, so that definitions which they need can still be emitted before the
    branch.
    """
    outer = em.scope
    scope = em.enter("branch")
    atomic = em.atomic
    em.emit_block(block)
    if em.atomic != atomic:
        raise unsupported(op, "a branch leaves the atomic mode changed", "set and reset the mode in the same branch")
    _assign(em, carried, _terminator(block).operands if carried else (), op)
    em.flush()
    em.scope = outer
    return scope


def _inline_block(em: PythonEmitter, op: Operation, block: Block) -> None:
    """Emits a block in the current scope; the results of ``op`` are the values that it yields."""
    em.emit_block(block)
    for result, value in zip(op.results, _terminator(block).operands if op.results else (), strict=True):
        em.values[result] = em.value(value)


@effect(scf.WhileOp)
def _while(em: PythonEmitter, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    carried = [Carried(em, arg.type, op) for arg in before.args]
    results = [Carried(em, result.type, op) for result in op.results]
    _assign(em, carried, op.arguments, op)
    storage = {value.name for value in em.values.values() if isinstance(value, Local)}
    first, before_loop, em.written_memories = len(em.records), em.written_memories, set()
    read_before, em.read_memories = em.read_memories, set()
    loaded_before, em.scalar_read_memories = em.scalar_read_memories, set()
    watch = em.fresh("watch")
    em.flush()
    outer = em.scope
    outer.line(f"{watch} = guard.watch(bid, sid)")
    poll = em.fresh("poll") if em.computes and not em.stepwise and _reads_tensors(op) else ""
    if poll:
        em.polls.append(poll)
        acts = any(_acts(inner) for inner in op.walk())
        outer.line(f"{poll} = {em.constant(PollWait, 'PollWait')}({acts}, {em.constant(location_of(op), 'line')}, "
                   f"{em.core_text()})")
        em.switches = True
        em.global_sync = em.global_sync or em.reaches_cards
    outer.line("while True:", op)
    scope = em.enter("branch")
    header = outer.lines.pop()
    for one, arg in zip(carried, before.args, strict=True):
        em.values[arg] = one.value(scope)
    em.depth += 1
    em.scalar_work.open_loop()
    em.emit_block(before)
    asked, em.read_memories = em.read_memories, read_before | em.read_memories
    condition = _terminator(before)
    test = em.expression(condition.operands[0])
    _assign(em, results, condition.operands[1:], op)
    em.flush()
    em.line(f"if not {em.condition_text(op, test.text)}: break", op)
    if poll:
        em.line(f"if {poll}.shared: yield 0, {poll}", op)
        em.line(f"while not {poll}.ready(): yield 0, {poll}", op)
        em.line(f"if {poll}.is_given_up(): break", op)
        em.line(f"{poll}.begin()", op)
    for one, arg in zip(results, after.args, strict=True):
        em.values[arg] = one.value(scope)
    em.emit_block(after)
    _assign(em, carried, _terminator(after).operands, op)
    em.depth -= 1
    em.flush()
    if em.stepwise:  # ops that run later may end the loop
        em.line(f"{watch}.passed()", op)
    else:
        # the scalar unit's variables decide when the loop ends, and the memories that it reads numbers from
        memories = sorted((em.written_memories & em.scalar_read_memories) - storage) if em.computes else []
        variables = [*(one.name for one in carried), *sorted(em.written_memories & storage)]
        state = (f"({''.join(f'{name}, ' for name in variables)}), ", f"({''.join(f'{name}, ' for name in memories)})")
        if poll:
            em.line(f"if {poll}.iterated(guard.state_of({''.join(state)}) if {poll}.shared else None): "
                    "guard.check(ev, bid, sid)", op)
        otherwise = "else: " if poll else ""
        if any(isinstance(record.work, CrossSet | CrossWait) for record in em.records[first:]):
            em.line(f"{otherwise}guard.check(ev, bid, sid)", op)  # other cores may change its state
        elif em.computes and not carried and not asked & em.written_memories:
            em.line(f"{otherwise}{watch}.never()", op)
        else:
            em.line(f"{otherwise}{watch}(ev, {''.join(state)})", op)
    if poll:
        em.polls.pop()
    em.written_memories |= before_loop
    em.scalar_read_memories |= loaded_before
    if ahead := em.scalar_work.close_loop():
        outer.line(em.scalars_statement(op, ahead), op)
    outer.lines.append(header)
    em.leave()
    for one, result in zip(results, op.results, strict=True):
        em.values[result] = one.value(em.scope)


def _reads_tensors(loop: scf.WhileOp) -> bool:
    """Whether an op in a loop loads from global memory, so that the loop can poll."""
    return any(isinstance(op, (hivm.LoadOp, memref.LoadOp)) and _is_global(op.operands[0]) for op in loop.walk())


def _acts(op: Operation) -> bool:
    """Whether an op writes to global memory or to other cards, or sets a flag of other cores."""
    if isinstance(op, hivm.CustomOp) and (op.symbol or "").startswith("shmem_"):
        return True
    return isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockOp)) or any(
        effect.writes and _is_global(effect.value) for effect in effects_of(op))


def _is_global(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType) and value.type.memory_space == hivm.address_space("gm")


@effect(ScopeOp, scf.ExecuteRegionOp)
def _region(em: PythonEmitter, op: Operation) -> None:
    _inline_block(em, op, op.regions[0].block)


@pure(hivm.GetBlockIdxOp)
def _block_index(em: PythonEmitter, op: hivm.GetBlockIdxOp) -> Value:
    return em.caller_value("bid", em.block, Interval(0, MAX_BLOCKS * _per_point(em) - 1))


@pure(hivm.GetBlockNumOp)
def _block_count(em: PythonEmitter, op: hivm.GetBlockNumOp) -> Value:
    return em.caller_value("nblocks", em.launch, Interval(1, MAX_BLOCKS * _per_point(em)))


def _per_point(em: PythonEmitter) -> int:
    return blocks_per_point(em.function, em.chip.aiv_per_aic) if em.core == "AIV" else 1


@pure(hivm.GetSubBlockIdxOp)
def _sub_block_index(em: PythonEmitter, op: hivm.GetSubBlockIdxOp) -> Value:
    return em.caller_value("sid", em.launch, Interval(0, em.parallel - 1)) if em.parallel > 1 else Int(0)


@pure(hivm.GetSubBlockNumOp)
def _sub_block_count(em: PythonEmitter, op: hivm.GetSubBlockNumOp) -> Value:
    return Int(em.parallel)


@effect(hivm.GetSysCntOp)
def _system_counter(em: PythonEmitter, op: hivm.GetSysCntOp) -> None:
    raise unsupported(op, "the simulator computes values without a clock, so there is no counter to read")


@pure(hivm.MultiBufferCounterOp)
def _counter(em: PythonEmitter, op: hivm.MultiBufferCounterOp) -> Value:
    return iteration_number(em, op)


def iteration_number(em: PythonEmitter, op: Operation) -> Int:
    """Returns the iteration number of the innermost counted loop around an op; 0 outside of loops."""
    parent = op.parent_op()
    while parent is not None and parent not in em.open_loops:
        parent = parent.parent_op()
    if parent is None:
        return Int(0)
    variable, low, step = em.open_loops[parent]
    span = variable - low
    if step == Int(1):
        return span
    return em.define_integer(f"({em.text_of(span)}) // {em.name_of(step)}", em.scope_of(span, step),
                             (span.interval // step.interval).meet(NATURAL))


_CASTS = (arith.IndexCastOp, IndexCastUIOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)
_REMAINDERS = (arith.RemUIOp, arith.RemSIOp)
_QUOTIENTS = (arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp)


def blocks_per_point(function: FuncOp, vector_cores: int) -> int:
    """Returns the number of blocks of a Vector function that together compute one point of the kernel's grid.

    If n blocks compute one point, the function uses the block index only as ``index % n`` (the number of the Vector core) and
    as ``index // (k * n)`` (for the point). The result is that n, or ``vector_cores`` if the index is only divided. The result
    is 1 if the index is used in any other way, if a divisor is no multiple of n, or if n does not divide ``vector_cores``.

    Args:
        function: a function of the Vector core.
        vector_cores: the number of Vector cores of an AI core.
    """
    pending: list[SSAValue] = [op.results[0] for op in function.walk() if isinstance(op, hivm.GetBlockIdxOp)]
    remainders, quotients = set[int](), set[int]()
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, _CASTS):
                pending.append(op.results[0])
                continue
            by = _constant(op.operands[1]) if isinstance(op, (*_REMAINDERS, *_QUOTIENTS)) and use.index == 0 else None
            if by is None or by < 1:
                return 1
            (remainders if isinstance(op, _REMAINDERS) else quotients).add(by)
    found = max(remainders, default=vector_cores if quotients else 1)
    divides = vector_cores % found == 0 and all(by == found for by in remainders) and all(by % found == 0 for by in quotients)
    return found if divides else 1


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)
    return None


ignore(annotation.MarkOp, hivm.AnchorOp, hivm.DCCIOp, hivm.FinishDebugOp, hivm.InitDebugOp, hivm.SetCtrlOp,
       hivm.SetFftsBaseAddrOp, hivm.SetMaskNormOp, memref.AssumeAlignmentOp, memref.DeallocOp)
ignore(func.ReturnOp, scf.ConditionOp, scf.YieldOp, ReturnOp)
