"""Emitters of vector ops: elementwise ops of the op table, reductions, and ops that change the shape or order of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from tilelang_npu import ops
from tilelang_npu.dialects import hivm
from tilelang_npu.ops import meaning, rearrange
from tilelang_npu.ops.recipes import made
from tilelang_npu.simulator.codegen.code_scopes import Int
from tilelang_npu.simulator.codegen.handlers import effect, unsupported
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import Buffer, StridedView, alternatives, element_of, mapped
from tilelang_npu.simulator.machine.op_records import Fold, Lanes, Slot, Sorting
from tilelang_npu.target.dtypes import DType


def _transposed(buffer: Buffer, permutation: Sequence[int]) -> Buffer:
    def turn(view: StridedView) -> StridedView:
        return replace(view, sizes=tuple(view.sizes[axis] for axis in permutation),
                       strides=tuple(view.strides[axis] for axis in permutation))

    return mapped(buffer, turn) if permutation else buffer


def _kernel(op: ops.Operation, sources: Sequence[DType], target: DType, clauses: Mapping[str, object]) -> Callable[..., object]:
    found: Callable[..., object] = made(meaning.kernel_of, op.name, tuple(sources), target, tuple(sorted(clauses.items())))
    return found


@effect(hivm.ElementwiseOp)
def elementwise(em: PythonEmitter, op: hivm.ElementwiseOp) -> None:
    """Emits the code of an op of HIVM that is an elementwise entry of the op table."""
    clauses = {clause.name: op.fact(clause.name) for clause in op.ENTRY.clauses}
    _emit_elementwise(em, op, op.ENTRY, op.src, op.dst, clauses, op.transpose_axes)


def emit_custom(em: PythonEmitter, op: hivm.CustomOp, entry: ops.Elementwise) -> None:
    """Emits the code of a custom op whose symbol is an elementwise entry of the op table."""
    _emit_elementwise(em, op, entry, op.ins(), op.outs(), {clause.name: clause.default for clause in entry.clauses})


def _emit_elementwise(em: PythonEmitter, op: hivm.ElementwiseOp | hivm.CustomOp, entry: ops.Elementwise,
                      operands: Sequence[SSAValue], outputs: Sequence[SSAValue], clauses: Mapping[str, object],
                      permutation: Sequence[int] = ()) -> None:
    inputs: list[Buffer | str] = []
    buffers: list[Buffer] = []
    held: dict[str, Sequence[Buffer]] = {}
    sources: list[DType] = []
    for number, ssa in enumerate(operands):
        sources.append(element_of(ssa.type))
        if isinstance(ssa.type, MemRefType):
            buffer = _transposed(em.buffer(ssa), permutation)
            inputs.append(buffer)
            buffers.append(buffer)
            if isinstance(op, hivm.ElementwiseOp):
                held[f"src{number}"] = (buffer,)
        else:
            inputs.append(em.expression(ssa).text)
    targets = [em.buffer(ssa) for ssa in outputs]
    scalar = any(isinstance(value, str) for value in inputs)
    cost = entry.cost + "s" if scalar and entry.cost + "s" in em.chip.vector else entry.cost
    rate = ops.rate_of(em.chip, cost)
    banked = (0, 1) if rate.banked and len(buffers) == 2 else None
    bits = max(8 * element.nbytes for element in (*sources, targets[0].element))
    spread = _spread(buffers, targets[0])

    def work(slot: Callable[[Int], Slot]) -> Lanes:
        return Lanes(cost, bits, len(buffers), banked, slot(spread))

    em.record_op(op, work, held=held)
    texts = [value if isinstance(value, str) else em.array(value) for value in inputs]
    target = targets[0].element
    direct = meaning.ufunc(entry, sources, target, clauses)
    if direct is not None and len(targets) == 1:
        em.emit_batched(f"{em.constant(direct, entry.name)}({', '.join(texts)}, out={em.array(targets[0])})", *buffers,
                        *targets)
        return
    kernel = em.constant(_kernel(entry, sources, target, clauses), entry.name)
    written = em.array(targets[0]) if len(targets) == 1 else f"({', '.join(em.array(one) for one in targets)})"
    text = f"{kernel}({written}, {', '.join(texts)})"
    if len(targets) > 1 or entry.result == "bool" or entry.condition:
        em.line(text)  # bits of several elements may share a byte, so blocks must be computed one by one
    else:
        em.emit_batched(text, *buffers, *targets)


def emit_instruction(em: PythonEmitter, op: hivm.CustomOp, entry: ops.Composite) -> None:
    """Emits the code of a custom op whose symbol is a composite entry of the op table, as one vector instruction."""
    sources, target = [em.buffer(ssa) for ssa in op.ins() if isinstance(ssa.type, MemRefType)], em.buffer(op.outs()[0])
    em.record_op(op, lambda slot: Lanes(entry.cost, 8 * target.element.nbytes, len(sources)))
    texts = [em.array(em.buffer(ssa)) if isinstance(ssa.type, MemRefType) else em.expression(ssa).text for ssa in op.ins()]
    kernel = em.constant(_kernel(entry, [target.element] * len(texts), target.element, {}), entry.name)
    em.emit_batched(f"{kernel}({em.array(target)}, {', '.join(texts)})", *sources, target)


def _spread(sources: Sequence[Buffer], target: Buffer) -> Int:
    """Returns the number of rows of the source that is broadcast along the last axis; 0 if no source is."""
    goal = alternatives(target)[0]
    for source in sources:
        view = alternatives(source)[0]
        if view.rank and view.sizes[-1] == Int(1) and goal.sizes[-1] != Int(1):
            rows = Int(1)
            for size in view.sizes[:-1]:
                rows = rows * size.constant if size.known else size * rows.constant if rows.known else rows
            return rows
    return Int(0)


@effect(hivm.VReduceOp)
def _reduce(em: PythonEmitter, op: hivm.VReduceOp) -> None:
    source = em.buffer(op.src)
    targets = [em.buffer(ssa) for ssa in op.dst]
    mode: str = op.mode
    base = mode.split("_")[0]
    entry = meaning.reduction(base)
    if entry is None:
        raise unsupported(op, f"mode {mode} is not modelled")
    if op.indices is not None:
        raise unsupported(op, "an operand for indices as an input is not modelled")
    axes = tuple(op.dims)
    bits = 8 * source.element.nbytes
    em.record_op(op, lambda slot: Fold(entry.cost, ops.operation(entry.combine).cost, bits, axes))
    read = em.array(source)
    if "_with_index" in mode:
        left = mode.endswith("left") or (not mode.endswith("right") and bool(op.tie_break_left.value.data))
        facts = em.constant({"mode": f"{base}_with_index_{'left' if left else 'right'}", "dim": axes[0]}, "facts")
        call = em.constant(ops.operation("reduce_with_index").meaning, "reduce_with_index")
        em.line(f"{call}(({em.array(targets[0])}, {em.array(targets[1])}), ({read},), {facts})")
        return
    clauses: dict[str, object] = {"unsigned_src": bool(op.unsigned_src.value.data)}
    kernel = em.constant(_kernel(entry, [source.element], targets[0].element, clauses), entry.name)
    places = tuple(axis + em.batch_axes for axis in axes)
    em.emit_batched(f"{kernel}({em.array(targets[0])}, {read}, {places})", source, targets[0])


def _lanes(em: PythonEmitter, op: Operation, cost: str, sources: Sequence[SSAValue], targets: Sequence[SSAValue],
           times: int = 1) -> tuple[list[str], list[str]]:
    """Records a vector op, and returns the names of the arrays of its sources and of its destinations."""
    reads, writes = [em.buffer(ssa) for ssa in sources], [em.buffer(ssa) for ssa in targets]
    bits = max(8 * buffer.element.nbytes for buffer in (*reads, *writes))
    place = len(reads) if writes else 0
    em.record_op(op, lambda slot: Lanes(cost, bits, place, times=times))
    return [em.array(buffer) for buffer in reads], [em.array(buffer) for buffer in writes]


def _structured(em: PythonEmitter, op: Operation, name: str, sources: Sequence[SSAValue], targets: Sequence[SSAValue],
                facts: dict[str, object], scalars: Sequence[str] = (), times: int = 1) -> None:
    """Emits an op that is a structured entry of the op table: records the cost, and emits a call of the entry's NumPy function.
    """
    entry = ops.operation(name)
    reads, writes = _lanes(em, op, entry.cost, sources, targets, times)
    call, given = em.constant(entry.meaning, name), em.constant(facts, "facts")
    outs, ins = "".join(f"{text}, " for text in writes), "".join(f"{text}, " for text in (*reads, *scalars))
    em.line(f"{call}(({outs}), ({ins}), {given})")


@effect(hivm.VTransposeOp)
def _transpose(em: PythonEmitter, op: hivm.VTransposeOp) -> None:
    _structured(em, op, "transpose", [op.src], [op.dst], {"permutation": [int(axis) for axis in op.permutation.get_values()]})


@effect(hivm.VArangeOp)
def _arange(em: PythonEmitter, op: hivm.VArangeOp) -> None:
    offset = em.text_of(em.integer(op.offset)) if op.offset is not None else "0"
    _structured(em, op, "arange", [], [op.dst], {}, [offset, *(em.text_of(em.integer(stride)) for stride in op.strides)])


@effect(hivm.VFlipOp)
def _flip(em: PythonEmitter, op: hivm.VFlipOp) -> None:
    _structured(em, op, "flip", [op.src], [op.dst], {"axis": op.flip_axis.value.data})


@effect(hivm.VConcatOp)
def _concat(em: PythonEmitter, op: hivm.VConcatOp) -> None:
    _structured(em, op, "concat", list(op.src), [op.dst], {"dim": op.dim.value.data})


@effect(hivm.VPadOp)
def _pad(em: PythonEmitter, op: hivm.VPadOp) -> None:
    rest = iter(op.low)
    lows = [em.integer(next(rest)) if int(low) < 0 else Int(int(low)) for low in op.static_low.get_values()]
    _structured(em, op, "pad", [op.src], [op.dst], {}, [em.expression(op.pad_value).text, *map(em.text_of, lows)])


@effect(hivm.VInterleaveOp)
def _interleave(em: PythonEmitter, op: hivm.VInterleaveOp) -> None:
    _structured(em, op, "interleave", list(op.src), [op.dst], {})


@effect(hivm.VDeinterleaveOp)
def _deinterleave(em: PythonEmitter, op: hivm.VDeinterleaveOp) -> None:
    mode = "ALL_CHANNELS" if op.index_mode is None else op.index_mode.data
    channels = op.channel_num.value.data if op.channel_num is not None else 2
    _structured(em, op, "deinterleave", [op.src], list(op.dst), {"index_mode": mode, "channels": channels})


@effect(hivm.VGatherOp)
def _gather(em: PythonEmitter, op: hivm.VGatherOp) -> None:
    axis = op.gather_axis.value.data if op.gather_axis is not None else -1
    _structured(em, op, "gather", [op.src, op.indices], [op.dst], {"axis": axis})


@effect(hivm.VGatherMaskOp)
def _gather_mask(em: PythonEmitter, op: hivm.VGatherMaskOp) -> None:
    (source, mask), targets = _lanes(em, op, "reducev2", [op.src, op.mask], list(op.dst))
    em.line(f"{em.constant(rearrange.pack, 'pack')}({', '.join(targets)}, {source}, {mask})")


_Scan = hivm.VCumsumOp | hivm.VCumprodOp | hivm.VCummaxOp | hivm.VCumminOp


def _scan_steps(em: PythonEmitter, op: _Scan) -> int:
    """Returns the number of passes over the data that a scan takes: the logarithm to base 2 of the axis length,
    rounded up, and at least 1. Each pass adds elements at twice the distance of the pass before.

    The result is 1 if the length is known only at run time.
    """
    size = alternatives(em.buffer(op.src))[0].sizes[int(op.cum_dims.get_values()[0])]
    return max(1, (size.constant - 1).bit_length()) if size.known else 1


def _is_reverse(op: _Scan) -> bool:
    return op.reverse is not None and bool(op.reverse.value.data)


def _scan(name: str, em: PythonEmitter, op: _Scan) -> None:
    facts: dict[str, object] = {"dim": int(op.cum_dims.get_values()[0]), "reverse": _is_reverse(op)}
    _structured(em, op, name, [op.src], [op.dst], facts, times=_scan_steps(em, op))


effect(hivm.VCumsumOp)(partial(_scan, "cumsum"))
effect(hivm.VCummaxOp)(partial(_scan, "cummax"))


def _cumulate(kind: str, cost: str, em: PythonEmitter, op: _Scan) -> None:
    (source,), (target,) = _lanes(em, op, cost, [op.src], [op.dst], times=_scan_steps(em, op))
    axis = int(op.cum_dims.get_values()[0])
    em.line(f"{em.constant(rearrange.cumulate, 'cumulate')}({target}, {source}, {kind!r}, {axis}, {_is_reverse(op)})")


effect(hivm.VCumprodOp)(partial(_cumulate, "prod", "mul"))
effect(hivm.VCumminOp)(partial(_cumulate, "min", "min"))


@effect(hivm.VSortOp)
def _sort(em: PythonEmitter, op: hivm.VSortOp) -> None:
    entry = ops.operation("vsort")
    source, *targets = (em.array(em.buffer(ssa)) for ssa in (op.src, *op.dst))
    em.record_op(op, lambda slot: Sorting(entry.cost, 0, merged=True))
    descending = op.descending is not None and bool(op.descending.value.data)
    facts = em.constant({"axis": op.sort_axis.value.data, "descending": descending}, "facts")
    outs = ", ".join([*targets, "None"][:2])
    em.line(f"{em.constant(entry.meaning, 'vsort')}(({outs}), ({source},), {facts})")


@effect(hivm.VMulextendedOp)
def _multiply_extended(em: PythonEmitter, op: hivm.VMulextendedOp) -> None:
    sources, targets = _lanes(em, op, "mul", list(op.src), list(op.dst), times=3)
    em.line(f"{em.constant(rearrange.multiply_extended, 'mulext')}({', '.join(targets)}, {', '.join(sources)})")
