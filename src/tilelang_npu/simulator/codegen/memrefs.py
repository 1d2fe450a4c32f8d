"""Evaluation of ops that create views of memrefs, and emitters of accesses to single elements.

A view moves no data. A ``memref.alloc`` or ``memref.alloca`` without an address space is scalar storage of the core, a Python
list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hivm import space_of
from tilelang_npu.dialects.ir.index_lists import mixed_values
from tilelang_npu.dialects.ir.remarks import Placed, remark_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen.code_scopes import Int, ScalarExpr
from tilelang_npu.simulator.codegen.control import iteration_number
from tilelang_npu.simulator.codegen.data_dependence import STORAGE, VIEWS
from tilelang_npu.simulator.codegen.data_starts import data_start, unclamped_start
from tilelang_npu.simulator.codegen.handlers import Value, effect, pure, unsupported
from tilelang_npu.simulator.codegen.integers import is_truth
from tilelang_npu.simulator.codegen.operand_checks import check_address
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import (
    Buffer,
    Choice,
    Cut,
    Local,
    StridedView,
    alternatives,
    bounds,
    element_of,
    mapped,
)
from tilelang_npu.simulator.machine.op_records import ScalarAccess
from tilelang_npu.target import is_fractal


def _mixed(em: PythonEmitter, static: DenseArrayBase[IntegerType], dynamic: Sequence[SSAValue]) -> list[Int]:
    """Returns the entries of a list of an op: static entries are in an attribute, dynamic entries are operands."""
    return [Int(one) if isinstance(one, int) else em.integer(one) for one in mixed_values(static, dynamic)]


def _type(op: Operation) -> MemRefType:
    kind = op.results[0].type
    assert isa(kind, MemRefType)
    return kind


@pure(memref.SubviewOp)
def _subview(em: PythonEmitter, op: memref.SubviewOp) -> Value:
    offsets = _mixed(em, op.static_offsets, op.offsets)
    sizes = _mixed(em, op.static_sizes, op.sizes)
    steps = _mixed(em, op.static_strides, op.strides)
    kept = _kept_axes(sizes, _type(op).get_shape())

    def cut(view: StridedView) -> StridedView:
        start = view.offset
        for offset, stride in zip(offsets, view.strides, strict=True):
            start = start + em.multiplied(offset, stride)
        strides = [em.multiplied(step, stride) for step, stride in zip(steps, view.strides, strict=True)]
        cuts = view.cuts if 0 in (size.constant if size.known else -1 for size in sizes) else (
            *view.cuts, *_uncertain(view, offsets, sizes, steps), *_read_starts(em, view, op, kept))
        return replace(view, offset=start, sizes=tuple(sizes[axis] for axis in kept),
                       strides=tuple(strides[axis] for axis in kept), cuts=cuts)

    return mapped(em.buffer(op.source), cut)


def _uncertain(view: StridedView, offsets: Sequence[Int], sizes: Sequence[Int], steps: Sequence[Int]) -> Iterator[Cut]:
    """Yields the slices of a subview that are not known to lie inside their axis of the source.

    In GM only the starts of slices are checked: the lowering clips slices of tensors, and the end of the whole view is checked
    when its array is created.
    """
    for axis, (offset, size, step, extent) in enumerate(zip(offsets, sizes, steps, view.sizes, strict=True)):
        reach = offset + (size - 1) * step.constant + 1 if step.known and view.base.memory != "gm" else None
        if reach is not None and (extent - reach).at_least(0):
            reach = None
        if reach is not None or not offset.at_least(0):
            called, unit = _called(view, axis)
            yield Cut(called, offset * unit, None if reach is None else reach * unit, extent * unit)


def _read_starts(em: PythonEmitter, view: StridedView, op: memref.SubviewOp, kept: Sequence[int]) -> Iterator[Cut]:
    """Yields the starts of a slice of a global tensor that the kernel has read and that may lie outside of their axis.

    A tile of several elements may start at the end of its axis, as the tile of an empty last segment does; an index may not.
    Only tiles of ``T.copy`` are checked: an element ``X[i, j]`` in a ``T.Parallel`` and a page of ``T.copy_pa`` read as 0 past
    the end of the tensor.
    Code that computes no values has made-up numbers in place of those that are read, and does not check.
    """
    user = em.current_op()
    location = location_of(user)
    if not em.computes or view.base.memory != "gm" or location is None:
        return
    if location.names(user.name) != "T.copy":
        return
    sizes = mixed_values(op.static_sizes, op.sizes)
    for axis, (offset, extent) in enumerate(zip(mixed_values(op.static_offsets, op.offsets), view.sizes, strict=True)):
        if isinstance(offset, int):
            continue
        start = offset if axis in kept else unclamped_start(offset, op.sizes) or offset
        part = data_start(start)
        if part is None:
            continue
        first = Int(part.constant)
        for term, factor in part.terms:
            first = first + em.integer(term) * factor
        size = sizes[axis]
        element = part.whole and (Int(size) if isinstance(size, int) else em.integer(size)).at_most(1)
        reach = first + 1 if element else first
        if not (first.at_least(0) and (extent - reach).at_least(0)):
            yield Cut(f"axis {axis}", first, reach, extent, read=True)


def _called(view: StridedView, axis: int) -> tuple[str, int]:
    """Returns the name of an axis of a view in messages, and the number of matrix elements per index of this axis.

    An axis of a matrix in fractals (``[C1, R1, r0, c0]`` or ``[C1, rows, c0]``) is called ``the columns`` if an index is a
    panel of c0 columns, and ``the rows`` if an index is a fractal of r0 rows or a single row.
    """
    inner, sizes = view.rank - axis, view.sizes
    fractals = is_fractal(view.base.memory) and view.rank >= 3 and sizes[-1].known and sizes[-2].known
    if not fractals or inner == 1:
        return f"axis {axis}", 1
    blocks = view.rank > 3 and view.strides[-3] == view.strides[-2] * sizes[-2].constant
    if inner == (4 if blocks else 3):
        return "the columns", sizes[-1].constant
    return ("the rows", sizes[-2].constant if inner == 3 else 1) if inner < 4 else (f"axis {axis}", 1)


def _kept_axes(sizes: Sequence[Int], shape: Sequence[int]) -> list[int]:
    """Returns the axes of the source that a subview keeps; the other axes have size 1 (rank-reducing subview)."""
    kept: list[int] = []
    surplus = len(sizes) - len(shape)
    for axis, size in enumerate(sizes):
        place = len(kept)
        matches = place < len(shape) and (shape[place] == size.constant if size.known else shape[place] < 0)
        if surplus and size == Int(1) and not (matches and len(sizes) - axis > len(shape) - place + surplus - 1):
            surplus -= 1
            continue
        kept.append(axis)
    return kept


@pure(memref.ReinterpretCastOp)
def _reinterpret(em: PythonEmitter, op: memref.ReinterpretCastOp) -> Value:
    (offset,) = _mixed(em, op.static_offsets, op.offsets)
    sizes = _mixed(em, op.static_sizes, op.sizes)
    strides = _mixed(em, op.static_strides, op.strides)

    def place(view: StridedView) -> StridedView:
        width = view.element.nbytes
        return replace(view, offset=view.origin + offset * width, sizes=tuple(sizes),
                       strides=tuple(stride * width for stride in strides))

    return mapped(em.buffer(op.source), place)


@pure(memref.CastOp, memref.MemorySpaceCastOp)
def _cast(em: PythonEmitter, op: Operation) -> Value:
    return em.value(op.operands[0])


@pure(memref.ViewOp)
def _byte_view(em: PythonEmitter, op: memref.ViewOp) -> Value:
    kind = _type(op)
    element = element_of(kind)
    rest = iter(op.sizes)
    sizes = tuple(em.integer(next(rest)) if size < 0 else Int(size) for size in kind.get_shape())
    shift = em.integer(op.byte_shift)

    def place(view: StridedView) -> StridedView:
        start = view.offset + shift
        return replace(view, element=element, origin=start, offset=start, sizes=sizes,
                       strides=tuple(em.row_major(sizes, element.nbytes)))

    return mapped(em.buffer(op.source), place)


@pure(hivm.BitcastOp)
def _bitcast(em: PythonEmitter, op: hivm.BitcastOp) -> Value:
    element = element_of(op.results[0].type)
    return mapped(em.buffer(op.operands[0]),
                  lambda view: replace(view, element=element))


def _groups(op: memref.AlterShapeOperation) -> list[list[int]]:
    groups: ArrayAttr[ArrayAttr[IntegerAttr]] = op.reassociation
    return [[axis.value.data for axis in group] for group in groups]


@pure(memref.CollapseShapeOp)
def _collapse(em: PythonEmitter, op: memref.CollapseShapeOp) -> Value:
    groups = _groups(op)

    def merge(view: StridedView) -> StridedView:
        sizes, strides = [], []
        for group in groups:
            size = Int(1)
            for axis in group:
                size = em.multiplied(size, view.sizes[axis])
            for outer, inner in zip(group, group[1:], strict=False):
                fits = view.strides[outer] == em.multiplied(view.strides[inner], view.sizes[inner])
                if view.strides[outer].known and view.strides[inner].known and not fits and view.sizes[outer] != Int(1):
                    raise unsupported(op, "the axes that it merges are not contiguous in memory")
            sizes.append(size)
            strides.append(view.strides[group[-1]] if group else Int(view.element.nbytes))
        return replace(view, sizes=tuple(sizes), strides=tuple(strides))

    return mapped(em.buffer(op.src), merge)


@pure(memref.ExpandShapeOp)
def _expand(em: PythonEmitter, op: memref.ExpandShapeOp) -> Value:
    shape = _mixed(em, op.static_output_shape, op.output_shape)
    groups = _groups(op)

    def split(view: StridedView) -> StridedView:
        strides: list[Int] = [Int(0)] * len(shape)
        for axis, group in enumerate(groups):
            step = view.strides[axis]
            for place in reversed(group):
                strides[place] = step
                step = em.multiplied(step, shape[place])
        return replace(view, sizes=tuple(shape), strides=tuple(strides))

    return mapped(em.buffer(op.src), split)


@pure(memref.DimOp)
def _dim(em: PythonEmitter, op: memref.DimOp) -> Value:
    axis = em.integer(op.index)
    buffer = em.buffer(op.source)
    while isinstance(buffer, Choice):
        buffer = buffer.true
    if not axis.known:
        raise unsupported(op, "the axis is not a constant")
    if not 0 <= axis.constant < buffer.rank:
        raise unsupported(op, f"axis {axis.constant} does not exist in a memref of rank {buffer.rank}")
    return buffer.sizes[axis.constant]


@pure(memref.RankOp)
def _rank(em: PythonEmitter, op: memref.RankOp) -> Value:
    return Int(em.buffer(op.source).rank)


@pure(hivm.PointerCastOp)
def _pointer_cast(em: PythonEmitter, op: hivm.PointerCastOp) -> Value:
    kind = _type(op)
    element = element_of(kind)
    memory = space_of(kind)
    if memory is None or memory == "gm" or memory not in em.chip.memory:
        raise unsupported(op, f"its address space must be an on-chip memory, and is {memory or 'not given'}")
    rest = iter(op.dynamicSizes)
    sizes = tuple(em.integer(next(rest)) if size < 0 else Int(size) for size in kind.get_shape())
    remark = remark_of(op)
    base = em.on_chip(memory, author_name(op.results[0]),
                      remark.facts if remark is not None and isinstance(remark.facts, Placed) else None)
    strides = tuple(em.row_major(sizes, element.nbytes))
    places = [em.integer(address) for address in op.addrs]
    bytes_ = element.nbytes * math.prod(size.constant for size in sizes) if all(size.known for size in sizes) else None
    views = [StridedView(base, element, place, place, sizes, strides,
                         (place.constant, place.constant + bytes_) if place.known and bytes_ is not None else None)
             for place in places]
    for view in views:
        check_address(em, view)
    made: StridedView | Choice = views[-1]
    if len(views) > 1:
        iteration = iteration_number(em, op)
        if iteration.known:
            return views[iteration.constant % len(views)]
        for number in reversed(range(len(views) - 1)):
            scope = em.scope_of(iteration)
            text = f"{em.name_of(iteration)} % {len(views)} == {number}"
            made = Choice(ScalarExpr(em.define(text, scope, "c"), scope), views[number], made)
    return made


MOST_SCALARS = 1 << 16
"""Limit of the elements of one allocation of scalar storage, of which a core has some kilobytes."""


@effect(memref.AllocOp, memref.AllocaOp)
def _alloc(em: PythonEmitter, op: Operation) -> None:
    kind = _type(op)
    memory = space_of(kind)
    if memory is not None:
        raise TileError(
            f"a buffer in {memory} has no address: the simulator runs modules whose buffers have addresses", code="T501",
            location=location_of(op), help="run memory planning first (the stage hivm), or write hivm.hir.pointer_cast")
    if any(size < 0 for size in kind.get_shape()):
        raise unsupported(op, "the size of scalar storage must be constant")
    count = 1
    for size in kind.get_shape():
        count *= size
    if count > MOST_SCALARS:
        raise unsupported(op, f"scalar storage of {count} elements is too large", f"allocate at most {MOST_SCALARS} elements")
    name = em.fresh("s")
    truth = is_truth(kind.element_type)
    zero = "False" if truth else "0" if isinstance(kind.element_type, IntegerType) else "0.0"
    em.line(f"{name} = [{zero}] * {count}", op)
    em.values[op.results[0]] = Local(name, kind.element_type, tuple(kind.get_shape()))


def _inside(em: PythonEmitter, op: Operation, numbers: Sequence[Int], sizes: Sequence[Int], name: str) -> None:
    """Emits bounds checks for those indices of an element that are possibly outside of their axes."""
    for axis, (number, size) in enumerate(zip(numbers, sizes, strict=True)):
        if not (number.at_least(0) and (size - number).at_least(1)):
            index, extent = em.name_of(number), em.name_of(size)
            em.line(f"if not 0 <= {index} < {extent}: raise {em.constant(_outside, 'fault')}({index}, {extent}, {axis}, "
                    f"{name!r}, bid)", op)


def _outside(index: int, size: int, axis: int, name: str, block: int) -> TileError:
    valid = f"valid are 0 to {size - 1}" if size > 0 else "it has no elements"
    return TileError(f"index {index} is outside of axis {axis} of {name} in block {block}: {valid}", code="T502",
                     help="check the index against the shape, or the data that it comes from")


def _place(em: PythonEmitter, op: Operation, local: Local, indices: Sequence[SSAValue]) -> str:
    shape = local.shape
    _inside(em, op, [em.integer(index) for index in indices], [Int(size) for size in shape], "a local buffer")
    total = Int(0)
    for size, index in zip(shape, indices, strict=True):
        total = em.multiplied(total, Int(size)) + em.integer(index)
    return em.text_of(total)


def _element(em: PythonEmitter, op: Operation, buffer: Buffer, indices: Sequence[SSAValue]) -> Buffer:
    numbers = [em.integer(index) for index in indices]
    first = alternatives(buffer)[0]
    _inside(em, op, numbers, first.sizes, first.base.label or first.base.memory)

    def pick(view: StridedView) -> StridedView:
        start = view.offset
        for number, stride in zip(numbers, view.strides, strict=True):
            start = start + em.multiplied(number, stride)
        return replace(view, offset=start, sizes=(), strides=())

    return mapped(buffer, pick)


_CALLED = {"scalar": "memref"}
"""The op's operand is the memref, not its element; messages name the memref."""


def _is_first_poll(op: memref.LoadOp) -> bool:
    """Whether the number that is loaded decides if a ``while`` loop has a first iteration, and the loop loads from the same
    memref again: the condition of such a loop is computed once before it, and then in each iteration."""
    if not isinstance(op.memref.type, MemRefType) or op.memref.type.memory_space != hivm.address_space("gm"):
        return False
    source = _without_views(op.memref)
    return any(isinstance(inner, memref.LoadOp) and _without_views(inner.memref) is source
               for loop in _loops_decided_by(op.results[0]) for inner in loop.walk())


def _loops_decided_by(number: SSAValue) -> Iterator[scf.WhileOp]:
    """Yields the ``while`` loops with an argument that is computed from a number, or whose condition loads from scalar storage
    in which a value is stored that is computed from it."""
    found, waiting = {number}, [number]
    while waiting:
        value = waiting.pop()
        for user in [use.operation for use in value.uses]:
            if isinstance(user, scf.WhileOp):
                yield user
            elif isinstance(user, memref.StoreOp):
                if user.value is value and isinstance(user.memref.owner, STORAGE):
                    yield from _loops_with_condition_in(user.memref)
            elif not user.regions:
                fresh = [result for result in user.results if result not in found]
                found.update(fresh)
                waiting += fresh


def _loops_with_condition_in(storage: SSAValue) -> Iterator[scf.WhileOp]:
    """Yields the ``while`` loops whose condition loads from scalar storage."""
    for reader in [use.operation for use in storage.uses]:
        loop = reader.parent_op()
        if isinstance(reader, memref.LoadOp) and isinstance(loop, scf.WhileOp) and reader.parent_region() is loop.before_region:
            yield loop


def _without_views(value: SSAValue) -> SSAValue:
    """Returns the memref of which a value is a view, or a view of a view."""
    while isinstance(value.owner, (*VIEWS, memref.CastOp)):
        value = value.owner.operands[0]
    return value


@effect(memref.LoadOp)
def _load(em: PythonEmitter, op: memref.LoadOp) -> None:
    source = em.value(op.memref)
    result = op.results[0]
    kind = result.type
    name = em.fresh("r")
    if isinstance(source, Local):
        em.read_memories.add(source.name)
        em.line(f"{name} = {source.name}[{_place(em, op, source, op.indices)}]")
    else:
        place = _element(em, op, em.buffer(op.memref), op.indices)
        em.scalar_read_memories.update(view.base.name for view in alternatives(place))
        em.record_op(op, lambda slot: ScalarAccess(store=False), pipe="S", held={"scalar": (place,)}, called=_CALLED)
        if em.polls:
            em.emit_read_of(place, f"{name} = {em.array(place)}.item()")
        else:
            em.emit_scalar_read(name, em.array(place))
            if em.computes and not em.stepwise and _is_first_poll(op):
                em.note_poll(place)
    if isinstance(kind, (IntegerType, IndexType)) and not is_truth(kind):
        em.values[result] = em.atom(name, em.scope, bounds(kind))
    else:
        em.values[result] = ScalarExpr(name, em.scope)


@effect(memref.StoreOp)
def _store(em: PythonEmitter, op: memref.StoreOp) -> None:
    target = em.value(op.memref)
    text = em.expression(op.value).text
    if isinstance(target, Local):
        em.written_memories.add(target.name)
        em.line(f"{target.name}[{_place(em, op, target, op.indices)}] = {text}")
        return
    place = _element(em, op, em.buffer(op.memref), op.indices)
    em.record_op(op, lambda slot: ScalarAccess(store=True), pipe="S", held={"scalar": (place,)}, called=_CALLED)
    em.emit_batched(f"{em.array(place)}[()] = {text}")
