"""Translates the scalar expressions in the body of a ``T.Parallel`` into vector operations over the whole iteration space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import frexp
from typing import TypeGuard, cast

import numpy as np
from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import (
    Float16Type,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnrealizedConversionCastOp,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilelang_npu import ops
from tilelang_npu.analysis.block_alignment import is_block_aligned
from tilelang_npu.analysis.buffer_sizes import buffer_name
from tilelang_npu.analysis.buffers import PARALLEL_LABEL, element_type_of, root_of, space_of, users_of
from tilelang_npu.analysis.cast_paths import cast_path
from tilelang_npu.analysis.index_sums import IndexSum, region_indices
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.linear import Interval, Linear
from tilelang_npu.target import Chip, name_of
from tilelang_npu.transforms.infra.op_builder import float_type
from tilelang_npu.transforms.tile.vectorise_parallel.accumulations import (
    Accumulation,
    accumulation_of,
    without_cast,
)
from tilelang_npu.transforms.tile.vectorise_parallel.detours import I32
from tilelang_npu.transforms.tile.vectorise_parallel.index_widths import I64, INT32, IndexWidths
from tilelang_npu.transforms.tile.vectorise_parallel.indices import (
    Invariants,
    NotVectorisable,
    NotVectorisableAtOnce,
    indices_of,
    region_of,
)
from tilelang_npu.transforms.tile.vectorise_parallel.rearranged_loads import is_dtype_supported
from tilelang_npu.transforms.tile.vectorise_parallel.rearranged_stores import (
    Detours,
    find_interleavings,
)
from tilelang_npu.transforms.tile.vectorise_parallel.shared_values import is_shared, operations_of
from tilelang_npu.transforms.tile.vectorise_parallel.vector_tiles import I16, VectorTiles

_FUNCTIONS: dict[str, str] = {
    "arith.addf": "add", "arith.addi": "add", "arith.subf": "sub", "arith.subi": "sub", "arith.mulf": "mul",
    "arith.muli": "mul", "arith.divf": "div", "arith.maximumf": "max", "arith.maxnumf": "max", "arith.maxsi": "max",
    "arith.maxui": "max", "arith.minui": "min",
    "arith.minimumf": "min", "arith.minnumf": "min", "arith.minsi": "min", "arith.andi": "bitwise_and",
    "arith.ori": "bitwise_or", "arith.xori": "bitwise_xor", "arith.shli": "bitwise_lshift",
    "arith.shrsi": "bitwise_rshift", "arith.shrui": "bitwise_rshift",
    "arith.select": "select", "math.exp": "exp", "math.log": "ln", "math.sqrt": "sqrt",
    "math.rsqrt": "rsqrt", "math.absf": "abs", "math.absi": "abs", "math.exp2": "exp2", "math.expm1": "expm1",
    "math.log2": "log2", "math.log10": "log10", "math.log1p": "log1p", "math.powf": "pow", "math.tanh": "tanh",
    "math.sin": "sin", "math.cos": "cos", "math.tan": "tan", "math.atan": "atan", "math.erf": "erf",
}
_CASTS: dict[str, str] = {
    "arith.extf": "rint", "arith.truncf": "rint", "arith.sitofp": "rint", "arith.extsi": "rint", "arith.extui": "rint",
    "arith.uitofp": "rint", "arith.fptosi": "trunc", "arith.fptoui": "trunc", "arith.trunci": "truncwithoverflow",
}
_ROUNDINGS: dict[str, str] = {
    "math.floor": "floor", "math.ceil": "ceil", "math.roundeven": "rint", "math.round": "round", "math.trunc": "trunc",
}
_COMPARISONS = {0: "eq", 1: "ne", 2: "lt", 3: "le", 4: "gt", 5: "ge"}  # predicates of arith.cmpi, signed
_UNSIGNED_COMPARISONS = {6: "lt", 7: "le", 8: "gt", 9: "ge"}
_FLOAT_COMPARISONS = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 6: "ne"}  # predicates of arith.cmpf, ordered
_FLOAT_COMPARISONS |= {8: "eq", 9: "gt", 10: "ge", 11: "lt", 12: "le", 13: "ne"}  # unordered, which differ for NaN only

I1, I8 = IntegerType(1), IntegerType(8)
_COMPUTED_IN_INT16 = "bitwise_lshift"
"""The operation that is computed in int16 for int8, which the Vector core does not shift left; the low byte of the result is
the same.
"""
_MAX_EXPONENT = 14
"""All element types that are divided have the powers of two up to this one, and their reciprocals, as normal numbers."""
_LARGEST_F16 = 65504
"""The largest number of float16."""
_EXACT_IN_F32 = 1 << 24
"""float32 represents every integer up to this one."""


def _log2_of_divisor(owner: arith.DivUIOp | arith.FloorDivSIOp | arith.RemUIOp) -> int | None:
    """Returns the exponent of the power of two by which an integer is divided; None for other divisors."""
    by = constant_value(owner.rhs)
    if by is None or by <= 0 or by & (by - 1):
        return None
    return by.bit_length() - 1


def _exact_reciprocal(divisor: SSAValue) -> float | None:
    """Returns the reciprocal of a constant power of two, by which a product is rounded like the quotient; None for any other
    divisor. A division takes four times as long as a product.
    """
    if not isinstance(divisor.owner, arith.ConstantOp) or not isinstance(divisor.owner.value, FloatAttr):
        return None
    value = divisor.owner.value.value.data
    mantissa, exponent = frexp(value)
    return 1 / value if abs(mantissa) == 0.5 and abs(exponent - 1) <= _MAX_EXPONENT else None


def _without_element_view(value: SSAValue) -> SSAValue:
    """Returns the tile of which a value is a view with another element type; the value itself if it is no such view."""
    owner = value.owner
    is_view = isinstance(owner, tile.ViewOp) and element_type_of(owner.source) != element_type_of(value)
    return owner.source if is_view and isinstance(owner, tile.ViewOp) else value


class Vectoriser(VectorTiles):
    """Emits, before a loop, the vector operations that replace the loop.

    Args:
        loop: the loop.
        extents: the sizes of the loop's iteration space.
        chip: the chip whose cycle counts decide between detours.
        ranges: bounds of scalars.
        shares_values: whether a value that is used several times is computed once, and kept in a tile until the last use.

    Attributes:
        detours: emits the loads and stores whose elements, in the order of the loop, are no aligned region.
        kept: values with the tiles that hold them: loaded values that are used after a store overwrites the element, and
            computed values that are used several times.
    """

    def __init__(self, loop: tile.ParallelOp, extents: list[int], chip: Chip, ranges: Ranges, *,
                 shares_values: bool) -> None:
        super().__init__(loop, extents)
        self.chip = chip
        self.invariants = Invariants(loop)
        self.widths = IndexWidths(ranges)
        loads = [op for op in loop.body.block.ops if isinstance(op, memref.LoadOp)]
        self.detours = Detours(loop, extents, chip, {(load.memref, self.index_sums(load)) for load in loads})
        self.kept: dict[SSAValue, SSAValue] = {}
        self._shares_values = shares_values
        self._axes: dict[SSAValue, frozenset[int] | None] = {}
        self._stored_later: set[SSAValue] = set()
        self._loaded: dict[tuple[SSAValue, tuple[IndexSum | None, ...]], SSAValue] = {}
        groups = find_interleavings(loop, self.invariants, extents, ranges)
        self._interleavings = {store: group for group in groups for store in group.stores}
        self._interleaved_values: dict[memref.StoreOp, SSAValue] = {}

    def index_sums(self, access: memref.LoadOp | memref.StoreOp) -> tuple[IndexSum | None, ...]:
        """Returns, for each axis of an access, the index as an ``IndexSum`` (multiples of loop variables plus an offset); None
        for an axis whose index is no such sum.
        """
        return tuple(self.invariants.index_sum(value) for value in access.indices)

    def load(self, load: memref.LoadOp) -> SSAValue:
        """Returns the tile with the elements that a load loads at all points.

        The tile is a region of the buffer if possible. Otherwise the elements are copied to a new tile: if they are in GM, if
        they do not begin at a block of UB, or if they are no region in the order of the loop.

        Raises:
            NotVectorisable: the elements cannot be brought to a tile.
        """
        places = self.index_sums(load)
        if region_indices(places) is None:
            return self._load_rearranged(load, places)
        found = indices_of(self.invariants, load.memref, list(load.indices), self.extents, every_axis=False)
        region = region_of(self.loop, load.memref, found, self.extents)
        if space_of(load.memref) != "gm" and is_block_aligned(region):
            return region
        kind = region.type
        assert isinstance(kind, MemRefType)
        here = MemRefType(kind.element_type, kind.shape, memory_space=hivm.address_space("ub"))
        known = self._loaded.get((load.memref, places))
        if known is None:
            known = self._loaded[load.memref, places] = self.emit(tile.AllocOp(PARALLEL_LABEL, here)).results[0]
            if space_of(load.memref) == "gm":
                self.emit(tile.CopyOp(region, known))
                return known
            self.detours.load_unaligned(load.memref, found, known)
        self.erase_unused_view(region)
        return known

    def _load_rearranged(self, load: memref.LoadOp, places: tuple[IndexSum | None, ...]) -> SSAValue:
        """Returns the tile of a load that is no region in the order of the loop."""
        space = space_of(load.memref)
        if space not in ("gm", "ub", "shared", "fragment"):
            msg = f"{buffer_name(load.memref)} is in {name_of(space)}, from which elements can be read in their order only"
            raise NotVectorisable(msg, "T.copy it to a buffer in UB first (T.alloc_ub)")
        sums = [place for place in places if place is not None]
        if len(sums) < len(places):
            return self._load_indexed(load, places)
        known = self._loaded.get((load.memref, places))
        if known is None:
            known = self._loaded[load.memref, places] = self.detours.load_rearranged(load.memref, sums)
        return known

    def _load_indexed(self, load: memref.LoadOp, places: tuple[IndexSum | None, ...]) -> SSAValue:
        """Returns the tile of a load whose indices are computed: ``x[i // 2]``, ``x[idx[i]]``."""
        source, detours = load.memref, self.detours
        strides = detours.strides_of(source) if space_of(source) != "gm" else None
        kind, last = dtype_of(element_type_of(source)), places[-1]
        if strides is None or not is_dtype_supported("gather", kind):
            msg = (f"{buffer_name(source)} ({kind} in {'GM' if strides is None else 'UB'}) is read at computed indices, for "
                   "which there is no gather")
            raise NotVectorisableAtOnce(msg, "T.copy the elements to a buffer in UB of a type that T.vgather takes, "
                                        "and read that buffer")
        cycles, row = detours.indexed_gather_cycles(kind.nbytes)
        moving = [value for value, place in zip(load.indices, places, strict=True) if place is None]
        inner = self.loop.body.block.args[len(self.extents) - 1]
        if len(self.extents) > 1 and last is not None and last.terms == ((len(self.extents) - 1, 1),) and not any(
                self.invariants.depends_on(value, inner) for value in moving):
            by_rows = detours.row_copy_cycles(kind.nbytes)
            if by_rows < cycles:
                msg = f"rows of {buffer_name(source)} are read at computed indices, and copying row by row takes less time"
                raise NotVectorisableAtOnce(msg, "gather whole rows with T.vgather")
        numbers = detours.allocate(detours.before_loop, I32, row)
        part = detours.leading_part(numbers, self.extents)
        if part is not numbers:
            self.emit(tile.FillOp(self.constant(0), numbers))
        try:
            self._emit_element_numbers(load, places, strides, part)
        except NotVectorisable as reason:
            msg = f"{buffer_name(source)} is read at computed indices, and {reason}"
            edit = ("compute the indices into a tile of int32 before the loop, and index with its elements; or divide by a "
                    "power of two")
            raise NotVectorisableAtOnce(msg, edit) from None
        return detours.gather_indexed(source, numbers, cycles)

    def _emit_element_numbers(self, load: memref.LoadOp, places: Sequence[IndexSum | None], strides: Sequence[int],
                              target: SSAValue) -> None:
        """Emits the number, in its buffer, of the element that each point loads."""
        steps, offset = [0] * len(self.extents), cast("SSAValue | int", 0)
        before_loop = self.detours.before_loop
        for place, stride in zip(places, strides, strict=True):
            if place is not None:
                offset = self.detours.emit_sum(before_loop, offset,
                                               self.detours.emit_product(before_loop, place.offset, stride))
                for axis, factor in place.terms:
                    steps[axis] += factor * stride
        self.detours.fill_arange(before_loop, offset, target, *steps)
        for value, place, stride in zip(load.indices, places, strides, strict=True):
            if place is None:
                part = self.operand(value, index=I32)
                if stride != 1:
                    scaled = self.allocate(I32, tile.shape_of(part))
                    self.emit(tile.ElementwiseOp("mul", [part, self.constant(stride)], scaled))
                    part = scaled
                self.emit(tile.ElementwiseOp("add", [target, part], target))

    def keep_values_before(self, store: memref.StoreOp, later: Sequence[Operation]) -> None:
        """Emits, before a statement, tiles of the values that later statements use and that the statement would change.

        Args:
            store: the statement, which overwrites elements.
            later: the operations of the body after the statement.
        """
        root, after = root_of(store.memref), set(later)
        stores = [op for op in later if isinstance(op, memref.StoreOp)]
        self._stored_later = {root_of(op.memref) for op in stores}

        def is_old(owner: Operation | Block) -> TypeGuard[memref.LoadOp]:
            return isinstance(owner, memref.LoadOp) and root_of(owner.memref) is root and owner not in after

        def dependent() -> set[SSAValue]:
            """Returns the values that are computed from old elements, but from no value that is kept."""
            found = set[SSAValue]()
            for op in self.loop.body.block.ops:
                if is_old(op) or any(operand in found for operand in op.operands):
                    found.update(value for value in op.results if value not in self.kept)
            return found

        pending, old = [value for op in stores for value in op.operands], dependent()
        while pending:
            value = pending.pop()
            if value not in old:
                continue
            owner = value.owner
            if is_old(owner):
                self._keep_old_value(owner)
                old = dependent()
            elif isinstance(owner, Operation) and owner not in after and self._is_kept_when_computed(value):
                self.operand(value)
                old = dependent()
            elif isinstance(owner, Operation):
                old.discard(value)  # its operands decide
                pending.extend(owner.operands)

    def _keep_old_value(self, load: memref.LoadOp) -> None:
        """Emits a copy of the tile of a load, because the element is overwritten before the last use of the loaded value."""
        source = self.load(load)
        kind = source.type
        assert isinstance(kind, MemRefType)
        copy = self.emit(tile.AllocOp(PARALLEL_LABEL, MemRefType(kind.element_type, kind.shape,
                                                                 memory_space=hivm.address_space("ub")))).results[0]
        self.emit(tile.CopyOp(source, copy))
        self.kept[load.res] = copy

    def _is_kept_when_computed(self, value: SSAValue) -> bool:
        """Whether the tile of a value is kept for its other uses. Indices are not: they have no element type of their own."""
        return (self._shares_values and not isinstance(value.type, IndexType) and is_shared(value)
                and self._is_computed(value))

    def _keeps_elements(self, target: SSAValue) -> bool:
        """Whether a tile keeps its elements until the end of the body, and vector operations can read it.

        A buffer that is an operand of a matrix product is possibly in L1, which they cannot read.
        """
        root = root_of(target)
        return (tile.shape_of(target) == tuple(self.extents) and root not in self._stored_later
                and not any(isinstance(user, tile.GemmOp) for user in users_of(root)))

    def _is_worth_a_copy(self, value: SSAValue) -> bool:
        """Whether computing a value again takes longer than copying its tile."""
        computed = [op for op in operations_of(value, self.loop.body.block) if self._is_computed(op.results[0])]
        return len(computed) > 1 or any(op.name == "arith.divf" or op.name.startswith("math.") for op in computed)

    def store(self, store: memref.StoreOp) -> None:
        """Emits the vector operations for one statement ``target[...] = expression``, for all points.

        Raises:
            NotVectorisable: no vector operations can compute the expression, or write the target.
        """
        places = self.index_sums(store)
        if store in self._interleavings or region_indices(places) is None:
            self._store_rearranged(store, places)
            self._invalidate(root_of(store.memref))
            return
        accumulation = accumulation_of(store, self.invariants, self.extents)
        if accumulation is not None:
            self._accumulate(store, accumulation)
            self._invalidate(root_of(store.memref))
            return
        found = indices_of(self.invariants, store.memref, list(store.indices), self.extents, every_axis=True)
        target = region_of(self.loop, store.memref, found, self.extents)
        value = without_cast(store.value)
        kind = target.type
        assert isinstance(kind, MemRefType)
        element, place = kind.element_type, target
        owner, atomic = value.owner, tile.atomic_kind_of(store)
        if space_of(store.memref) == "gm":
            if isinstance(owner, memref.LoadOp) and space_of(owner.memref) != "gm" and self.invariants.is_variant(value):
                held = self.operand(value)
                if tile.shape_of(held) == tile.shape_of(target):
                    self.emit(tile.CopyOp(held, target, atomic=atomic))
                    return
            if isinstance(owner, Operation) and _CASTS.get(owner.name) == "rint" and self._is_accumulator(owner.operands[0]):
                self.emit(tile.CopyOp(self.operand(owner.operands[0]), target, atomic=atomic))
                return
            place = self.allocate(element)
            self._compute_statement(store.value, value, place)
            self.emit(tile.CopyOp(place, target, atomic=atomic))
            return
        if is_block_aligned(target):
            self._compute_statement(store.value, value, target)
        else:
            self.erase_unused_view(target)
            place = self.allocate(element)
            self._compute_statement(store.value, value, place)
            self.detours.store_unaligned(place, store.memref, found)
        self._invalidate(root_of(store.memref))

    def _accumulate(self, store: memref.StoreOp, accumulation: Accumulation) -> None:
        """Emits a statement that combines the values of several points in one element.

        Raises:
            NotVectorisable: no vector operations can compute the values.
        """
        combine = accumulation.combine
        found = indices_of(self.invariants, store.memref, list(store.indices), self.extents, every_axis=False)
        values = self.operand(accumulation.value)
        if not isinstance(values.type, MemRefType):
            filled = self.allocate(values.type)
            self.emit(tile.FillOp(values, filled))
            values = filled
        element, values = element_type_of(values), self.broadcast(values)

        def typed(held: SSAValue) -> SSAValue:
            return self.as_unsigned(held) if accumulation.is_unsigned else self.view_as(held, element)

        for axis in accumulation.axes:
            if self.extents[axis] > 1:
                shape = [1 if axis == each else size for each, size in enumerate(tile.shape_of(values))]
                reduced = self.allocate(element, shape)
                self.emit(tile.ReduceOp(accumulation.reduction, typed(values), typed(reduced), [axis]))
                self.detours.record_reduction(accumulation.reduction, values)
                values = reduced
        target = region_of(self.loop, store.memref, found, self.extents)
        if is_block_aligned(target):
            elements = typed(target)
            self.emit(tile.ElementwiseOp(_FUNCTIONS[combine.name], [elements, typed(values)], elements))
        else:
            self.erase_unused_view(target)
            self.detours.combine_elements(values, store.memref, [index.sum for index in found], combine, accumulation.value)

    def _invalidate(self, root: SSAValue) -> None:
        """Forgets the tiles that hold elements of a buffer that is stored to."""
        self._loaded = {key: held for key, held in self._loaded.items() if root_of(key[0]) is not root}
        self.detours.invalidate(root)

    def _store_rearranged(self, store: memref.StoreOp, places: tuple[IndexSum | None, ...]) -> None:
        """Emits a statement whose target is no region in the order of the loop, or is one of an interleaving."""
        sums = [place for place in places if place is not None]
        if len(sums) < len(places):
            shape = "x".join(map(str, tile.shape_of(store.memref)))
            msg = (f"{buffer_name(store.memref)} ({shape}) is written at computed indices, and no vector instruction scatters "
                   "elements")
            advice = ("to count or add up by computed indices, multiply one-hot tiles (docs/cookbook.md, A histogram of many "
                      "bins)"
                      if tile.ATOMIC in store.attributes else
                      "compute for each element the index of its source instead, and use T.vgather")
            raise NotVectorisableAtOnce(msg, advice)
        value = without_cast(store.value)
        kind = store.memref.type
        assert isinstance(kind, MemRefType)
        held = None
        if isinstance(value.owner, memref.LoadOp) and self.invariants.is_variant(value) and value.type == kind.element_type:
            held = self.operand(value)
        written = {root_of(op.memref) for op in self.loop.body.block.ops if isinstance(op, memref.StoreOp)}
        if held is None:
            held = self.allocate(kind.element_type)
            self._compute_statement(store.value, value, held)
        elif tile.shape_of(held) != tuple(self.extents):
            held = self.broadcast(held)
        elif store in self._interleavings and root_of(held) in written:
            copied = self.allocate(kind.element_type)
            self.emit(tile.CopyOp(held, copied))
            held = copied
        group = self._interleavings.get(store)
        if group is None:
            self.detours.store_rearranged(held, store.memref, sums, atomic=tile.atomic_kind_of(store))
            return
        self._interleaved_values[store] = held
        if all(each in self._interleaved_values for each in group.stores):
            self.detours.store_interleaved([self._interleaved_values[each] for each in group.stores], store.memref,
                                           group.places)

    def _compute_statement(self, stored: SSAValue, value: SSAValue, place: SSAValue) -> None:
        """Computes the right side of a statement, ``value``, into the tile ``place``.

        ``stored`` is ``value`` after its conversion to the element type that the statement stores.
        """
        owner = value.owner
        if isinstance(owner, memref.LoadOp) and space_of(owner.memref) == "gm" and self.invariants.is_variant(value) and (
                region_indices(self.index_sums(owner)) is not None):
            found = indices_of(self.invariants, owner.memref, list(owner.indices), self.extents, every_axis=False)
            source = region_of(self.loop, owner.memref, found, self.extents)
            if tile.shape_of(source) == tile.shape_of(place) and value not in self.kept:
                self.emit(tile.CopyOp(source, place))
                return
        if self.invariants.is_variant(value):
            self.compute(value, self.view_as(place, value.type))
        else:
            self.compute(stored, place)

    def _is_accumulator(self, value: SSAValue) -> bool:
        """Whether a value is an element of L0C, which is converted on its way out."""
        owner = value.owner
        return isinstance(owner, memref.LoadOp) and space_of(owner.memref) == "cc" and value not in self.kept

    def compute(self, value: SSAValue, target: SSAValue) -> None:
        """Emits the vector operations that compute an expression, for all points, into a tile.

        Raises:
            NotVectorisable: no vector operations can compute the expression.
        """
        if not self.invariants.is_variant(value):
            self.emit(tile.FillOp(self._scalar_operand(value), target))
            return
        owner = value.owner
        keeps, is_whole = self._is_kept_when_computed(value), self._shape_to_compute(value) == self.shape
        if keeps and is_whole and self._keeps_elements(target):
            kept = _without_element_view(target)  # the view is erased if nothing uses it
            self._compute_op(owner, target)
            self.kept[value] = kept
            return
        if value in self.kept or (keeps and (not is_whole or self._is_worth_a_copy(value))) or isinstance(
                owner, (arith.IndexCastOp, arith.BitcastOp, memref.LoadOp, UnrealizedConversionCastOp)):
            source = self.operand(value)
            if tile.shape_of(source) == tile.shape_of(target):
                self.emit(tile.CopyOp(source, target))
            else:
                self.emit(tile.BroadcastOp(source, target))
            return
        self._compute_op(owner, target)

    def operand(self, value: SSAValue, into: SSAValue | None = None, *, index: IntegerType | None = None) -> SSAValue:
        """Returns an expression as an input of a vector operation: a scalar if it is loop-invariant, otherwise a tile.

        Args:
            value: the expression.
            into: a tile into which the expression may be computed; by default, a new tile is allocated if one is needed.
            index: the integer type to which an expression of type index is converted; by default, one that holds all its
                values.

        Raises:
            NotVectorisable: no vector operations can compute the expression.
        """
        if isinstance(value.type, IndexType):
            return self._index_tile(value, into, index or self.widths.type_holding(value))
        if not self.invariants.is_variant(value):
            return self._scalar_operand(value)
        early = self.kept.get(value)
        if early is not None:
            return self.view_as(early, value.type)
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp):
            wide = value.type == I64 and self.widths.type_holding(owner.input) == I64
            return self.convert_integers(self._index_tile(owner.input, None, I64 if wide else I32), value.type)
        if isinstance(owner, (UnrealizedConversionCastOp, arith.BitcastOp)):
            return self.view_as(self.operand(owner.operands[0]), value.type)
        if isinstance(owner, memref.LoadOp):
            return self.load(owner)
        kept, shape, around = self._is_kept_when_computed(value), self._shape_to_compute(value), self.shape
        self.shape = shape
        place = self.allocate(value.type) if into is None or kept or tile.shape_of(into) != shape else into
        self._compute_op(owner, place)
        self.shape = around
        if kept:
            self.kept[value] = place
        return place

    def _shape_to_compute(self, value: SSAValue) -> tuple[int, ...]:
        """Returns the shape of the tile into which a value is computed: 1 for each axis on which the value does not depend.

        Conditions, and values that are computed from elements that must be rearranged, have tiles of the whole iteration space.
        """
        if value not in self._axes:
            self._axes[value] = self._axes_of(value)
        axes = self._axes[value]
        return tuple(extent if axes is None or axis in axes else 1 for axis, extent in enumerate(self.extents))

    def _axes_of(self, value: SSAValue) -> frozenset[int] | None:
        """Returns the axes on which a value depends; None for a value that needs a tile of the whole iteration space."""
        owner = value.owner
        if isinstance(owner, Block):
            if owner is self.loop.body.block and isinstance(value, BlockArgument):
                return frozenset({value.index})
            return frozenset()
        if not self.invariants.is_variant(value):
            return frozenset()
        is_region = not isinstance(owner, memref.LoadOp) or region_indices(self.index_sums(owner)) is not None
        if value.type == I1 or not is_region:
            return None
        found = frozenset[int]()
        for operand in owner.operands:
            if isinstance(operand.type, MemRefType):
                continue
            if operand not in self._axes:
                self._axes[operand] = self._axes_of(operand)
            axes = self._axes[operand]
            if axes is None:
                return None
            found |= axes
        return found

    def _index_tile(self, value: SSAValue, into: SSAValue | None, element: IntegerType) -> SSAValue:
        """Returns an index as int32 or int64, by its low bits."""
        if not self.invariants.is_variant(value):
            return self._scalar_operand(value, element)
        shape, around = self._shape_to_compute(value), self.shape
        self.shape = shape
        made = self._emit_index(value, into if into is not None and tile.shape_of(into) == shape else None, element)
        self.shape = around
        return made

    def _emit_index(self, value: SSAValue, into: SSAValue | None, element: IntegerType) -> SSAValue:
        places = self._index_form(value, element)
        if places is not None:
            place = self.allocate(element)
            self._emit_index_form(places, place)
            return place
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp):
            given, inner = owner.input, owner.input.owner
            if not isinstance(inner, (arith.ExtSIOp, arith.ExtUIOp)) or inner.input.type == I1:
                return self.convert_integers(self.operand(given), element)
            narrow = self.operand(inner.input)
            if isinstance(inner, arith.ExtSIOp):
                return self.convert_integers(narrow, element)
            made = self.convert_integers(self.as_unsigned(narrow), element)
            self.erase_unused_view(narrow)
            return made
        assert isinstance(owner, Operation)
        computed = self.widths.type_to_compute(owner, element)
        place = into if into is not None and computed == element else self.allocate(computed)
        self._compute_op(owner, place)
        return self.convert_integers(place, element)

    def _operand_in_target(self, entry: ops.Elementwise, operands: list[SSAValue], target: SSAValue) -> int | None:
        """Returns the position of the operand that can be computed in the tile of the result; None where there is none.

        Only an operand may be computed there that alone reads the old elements of the result. Any other operand would overwrite
        elements that are still to be read.
        """
        kind, root = target.type, root_of(target)
        assert isinstance(kind, MemRefType)
        if not entry.in_place or root is not target:
            return None
        readers = [position for position, value in enumerate(operands) if self._reads_buffer(value, root)]
        if len(readers) != 1 or not self._is_computed(operands[readers[0]]):
            return None
        if self._is_kept_when_computed(operands[readers[0]]) or (
                self._shape_to_compute(operands[readers[0]]) != tile.shape_of(target)):
            return None
        read = operands[readers[0]].type
        element = self._operand_element_type(entry, operands, target) if isinstance(read, IndexType) else read
        return readers[0] if element == kind.element_type else None

    def _operand_element_type(self, entry: ops.Elementwise, operands: Sequence[SSAValue], target: SSAValue) -> Attribute:
        """Returns the element type of an operation's operands; of indices that of the result, or one that holds them all."""
        values = operands[1:] if entry.condition else operands
        if not isinstance(values[0].type, IndexType):
            return values[0].type
        return self.widths.type_holding(*values) if entry.result == "bool" else element_type_of(target)

    def _is_computed(self, value: SSAValue) -> bool:
        """Whether a vector operation computes a value."""
        owner = value.owner
        if not isinstance(owner, Operation) or value in self.kept or not self.invariants.is_variant(value):
            return False
        made = any(owner.name in names for names in (_FUNCTIONS, _CASTS, _ROUNDINGS)) or isinstance(owner, arith.NegfOp)
        return made and self._index_form(value, I32) is None

    def _reads_buffer(self, value: SSAValue, root: SSAValue) -> bool:
        """Whether a variant value is computed from the present elements of a buffer."""
        owner = value.owner
        if isinstance(owner, memref.LoadOp):
            return value not in self.kept and root_of(owner.memref) is root
        return isinstance(owner, Operation) and value not in self.kept and self.invariants.is_variant(value) and any(
            self._reads_buffer(operand, root) for operand in owner.operands)

    def _scalar_operand(self, value: SSAValue, index: IntegerType = I32) -> SSAValue:
        """Returns an invariant value before the loop; an index as an integer of the given type."""
        found = self.invariants.hoist(value)
        if not isinstance(found.type, IndexType):
            return found
        return self.emit(arith.IndexCastOp(found, index)).results[0]

    def _index_form(self, value: SSAValue, element: IntegerType = I64) -> Linear[SSAValue] | None:
        """Returns an index as a linear form of loop variables and invariants, by the bits of ``element``; None where it is
        none.
        """
        if not isinstance(value.type, IndexType) or not (element == I32 or self.widths.is_exact(value)):
            return None
        form = affine(value)
        return form if self.invariants.split_form(form) is not None else None

    def _emit_index_form(self, form: Linear[SSAValue], target: SSAValue) -> None:
        """Emits the value of a linear form at each point."""
        kind = target.type
        assert isinstance(kind, MemRefType)
        assert kind.element_type in (I32, I64)
        parts = self.invariants.split_form(form)
        assert parts is not None
        terms, first = parts
        self._emit_arange(self.invariants.emit_form(first) if first.terms else first.constant, terms, target)

    def _emit_arange(self, first: SSAValue | int, terms: Sequence[tuple[int, int]], target: SSAValue) -> None:
        steps = (dict(terms).get(axis, 0) for axis in range(len(self.extents)))
        values = [self.emit(arith.ConstantOp(IntegerAttr(value, IndexType()))).results[0] if isinstance(value, int) else value
                  for value in (first, *steps)]
        self.emit(tile.CallOp("arange", values, [target]))

    def _compare_index_forms(self, op: arith.CmpiOp, mode: str, target: SSAValue) -> bool:
        """Emits a comparison of two linear forms; returns False where the sides are none.

        The variant part is compared with the invariant rest: as float32 where that is exact, because the vector unit orders no
        integers.
        """
        left, right = self._index_form(op.lhs), self._index_form(op.rhs)
        if left is None or right is None:
            return False
        parts = self.invariants.split_form(left - right)
        assert parts is not None
        terms, rest = parts
        low, high = IndexSum(terms, 0).bounds(self.extents)
        exact, small = max(-low, high) <= _EXACT_IN_F32 - 2, Interval(low - 1, high + 1).within(INT32)
        element = Float32Type() if exact else I32 if small else I64
        place = self.allocate(element)
        self._emit_arange(0, terms, place)
        bound = self.invariants.emit_form(rest * -1)
        for limit, nearer in ((low - 1, arith.MaxSIOp), (high + 1, arith.MinSIOp)):  # beyond these bounds the outcome is fixed
            end = self.emit(arith.ConstantOp(IntegerAttr(limit, IndexType()))).results[0]
            bound = self.emit(nearer(bound, end)).results[0]
        scalar = self.emit(arith.IndexCastOp(bound, I64 if element == I64 else I32)).results[0]
        if exact:
            scalar = self.emit(arith.SIToFPOp(scalar, Float32Type())).results[0]
        self.emit(tile.ElementwiseOp("compare", [place, scalar], target, {"compare_mode": mode}))
        return True

    def _compute_op(self, owner: object, target: SSAValue) -> None:
        if isinstance(owner, (arith.CmpiOp, arith.CmpfOp)):
            table = _COMPARISONS | _UNSIGNED_COMPARISONS if isinstance(owner, arith.CmpiOp) else _FLOAT_COMPARISONS
            predicate = owner.predicate.value.data
            mode = table.get(predicate)
            if mode is None:
                msg = "a comparison has no vector instruction"
                raise NotVectorisable(msg, "compare with <, <=, >, >=, == or !=")
            if isinstance(owner, arith.CmpiOp) and self._compare_index_forms(owner, mode, target):
                return
            unsigned = isinstance(owner, arith.CmpiOp) and predicate in _UNSIGNED_COMPARISONS
            self._emit_elementwise("compare", [owner.lhs, owner.rhs], target, {"compare_mode": mode}, unsigned=unsigned)
        elif isinstance(owner, arith.NegfOp):
            minus_one = self.emit(arith.ConstantOp(FloatAttr(-1.0, float_type(owner.operand.type)))).results[0]
            source = self.operand(owner.operand, target if self._is_computed(owner.operand) else None)
            self.emit(tile.ElementwiseOp("mul", [source, minus_one], target))
        elif (isinstance(owner, (arith.DivUIOp, arith.FloorDivSIOp, arith.RemUIOp))
              and (by := _log2_of_divisor(owner)) is not None):
            rest = isinstance(owner, arith.RemUIOp)
            name, number = ("bitwise_and", (1 << by) - 1) if rest else ("bitwise_rshift", by)
            shifts: dict[str, str | bool] = {} if rest else {"round": False, "is_signed": not isinstance(owner, arith.DivUIOp)}
            kind = owner.lhs.type
            if not isinstance(kind, IntegerType):
                held = element_type_of(target)
                assert isinstance(held, IntegerType)
                index = [self.broadcast(self.operand(owner.lhs, index=held)), self.constant(number, held)]
                self.emit(tile.ElementwiseOp(name, index, target, {**shifts, "is_signed": True} if shifts else shifts))
            else:
                kept = self.emit(arith.ConstantOp(IntegerAttr(number, kind))).results[0]
                self._emit_elementwise(name, [owner.lhs, kept], target, shifts)
        elif (isinstance(owner, arith.FloorDivSIOp) and isinstance(owner.lhs.type, IntegerType)
              and (divisor := constant_value(owner.rhs)) not in (None, 0, -1)):
            assert divisor is not None
            self._emit_floor_division(owner, divisor, target)
        elif isinstance(owner, arith.DivfOp) and (factor := _exact_reciprocal(owner.rhs)) is not None:
            scale = self.emit(arith.ConstantOp(FloatAttr(factor, float_type(owner.rhs.type)))).results[0]
            self._emit_elementwise("mul", [owner.lhs, scale], target, {})
        elif isinstance(owner, Operation) and owner.name in _CASTS:
            self._emit_cast(owner, target)
        elif isinstance(owner, Operation) and owner.name in _ROUNDINGS:
            self._emit_conversion(owner.operands[0], target, _ROUNDINGS[owner.name])
        elif isinstance(owner, Operation) and owner.name in _FUNCTIONS:
            clauses: dict[str, str | bool] = {}
            if isinstance(owner, (arith.ShRSIOp, arith.ShRUIOp)):
                clauses = {"round": False, "is_signed": isinstance(owner, arith.ShRSIOp)}
            unsigned = isinstance(owner, (arith.MaxUIOp, arith.MinUIOp))
            self._emit_elementwise(_FUNCTIONS[owner.name], list(owner.operands), target, clauses, unsigned=unsigned)
        elif isinstance(owner, (arith.FloorDivSIOp, arith.DivUIOp, arith.RemUIOp)):
            if not isinstance(owner.lhs.type, IntegerType):
                msg = "// and % of a value that is computed from loop variables have no vector instruction"
                raise NotVectorisable(msg, "T.cast the loop variables to int32 first")
            msg = "// and % have vector instructions only for signed elements and a constant divisor other than 0 and -1"
            raise NotVectorisable(msg, "divide outside of T.Parallel by T.vfloordiv, where a divisor of 0 gives 0")
        else:
            name = owner.name if isinstance(owner, Operation) else "a loop variable as a value"
            msg = f"{name} has no vector instruction"
            raise NotVectorisable(msg, "compute it outside of T.Parallel, by an operation on whole tiles")

    def _emit_floor_division(self, owner: arith.FloorDivSIOp, divisor: int, target: SSAValue) -> None:
        """Emits a signed division that rounds down, by a constant that is not 0 and not -1.

        The division of the Vector core truncates. Where the remainder is not 0 and has the other sign than the divisor, the
        result is one less.
        """
        kind = element_type_of(target)
        assert isinstance(kind, IntegerType)
        quotient, rest = self.allocate(kind), self.allocate(kind)
        self._emit_elementwise("div", [owner.lhs, owner.rhs], quotient, {})
        by = self.constant(divisor, kind)
        self.emit(tile.ElementwiseOp("mul", [quotient, by], rest))
        self.emit(tile.ElementwiseOp("sub", [self.broadcast(self.operand(owner.lhs)), rest], rest))
        if divisor < 0:
            self.emit(tile.ElementwiseOp("mul", [rest, self.constant(-1, kind)], rest))
        self.emit(tile.ElementwiseOp("max", [rest, self.constant(-1, kind)], rest))
        self.emit(tile.ElementwiseOp("min", [rest, self.constant(0, kind)], rest))
        self.emit(tile.ElementwiseOp("add", [quotient, rest], target))

    def _emit_cast(self, owner: Operation, target: SSAValue) -> None:
        given, mode = owner.operands[0], _CASTS[owner.name]
        if mode == "trunc" and isinstance(given.owner, math.RoundEvenOp):
            given, mode = given.owner.operand, "rint"
        if self._select_converted(given, target):
            return
        if isinstance(owner, arith.FPToUIOp):
            self._emit_conversion(given, self.as_unsigned(target), mode)
            self.erase_unused_view(target)
        else:
            self._emit_conversion(given, target, mode, unsigned=isinstance(owner, (arith.ExtUIOp, arith.UIToFPOp)))

    def _select_converted(self, given: SSAValue, target: SSAValue) -> bool:
        """Emits a choice between two constants in float16, if a choice in float32 is converted and both are exact in float16;
        returns whether it is so."""
        chosen, element = given.owner, element_type_of(target)
        if not isinstance(chosen, arith.SelectOp) or not isinstance(element, Float16Type) or is_shared(given):
            return False
        numbers = [held.value.data for value in (chosen.lhs, chosen.rhs) if isinstance(value.owner, arith.ConstantOp)
                   and isinstance(held := value.owner.value, FloatAttr) and abs(held.value.data) <= _LARGEST_F16]
        if len(numbers) < 2 or any(float(np.float16(number)) != number for number in numbers):
            return False
        values = [self.emit(arith.ConstantOp(FloatAttr(number, element))).results[0] for number in numbers]
        self._emit_elementwise("select", [chosen.cond, *values], target, {})
        return True

    def _emit_conversion(self, given: SSAValue, target: SSAValue, mode: str, *, unsigned: bool = False) -> None:
        read = self.operand(given)
        source = self.as_unsigned(read) if unsigned else read
        kinds = dtype_of(element_type_of(source)), dtype_of(element_type_of(target))
        if kinds[0] == kinds[1]:
            self.emit(tile.ElementwiseOp("cast", [self.broadcast(source)], target, {"round_mode": mode}))
            return
        if cast_path(*kinds, mode, self.chip.features.vector_registers) is None:
            msg = f"the Vector core has no conversion from {kinds[0]} to {kinds[1]}"
            raise NotVectorisable(msg, "T.cast to int64 or uint32 first")
        self.emit(tile.CopyOp(self.broadcast(source), target, round_mode=mode))
        self.erase_unused_view(read)

    def _emit_elementwise(self, name: str, operands: list[SSAValue], target: SSAValue, clauses: Mapping[str, str | bool], *,
                          unsigned: bool = False) -> None:
        entry = ops.operation(name)
        assert isinstance(entry, ops.Elementwise)
        element = self._operand_element_type(entry, operands, target)
        widened = ops.computed_in(entry, dtype_of(element)) is None
        if widened and not (name == _COMPUTED_IN_INT16 and element == I8):
            msg = f"{name} on {dtype_of(element)} has no vector instruction"
            raise NotVectorisable(msg, f"T.cast to a type that it has first: {', '.join(map(str, entry.dtypes))}")
        if entry.commutes and not self.invariants.is_variant(operands[0]):  # a scalar must be the second operand
            operands = [*reversed(operands)]
        inside = None if widened else self._operand_in_target(entry, operands, target)
        index = element if isinstance(element, IntegerType) else None
        inputs = [self.operand(operand, target if position == inside else None, index=index)
                  for position, operand in enumerate(operands)]
        shapes = {tile.shape_of(value) for value in inputs if isinstance(value.type, MemRefType)}
        part = next(iter(shapes)) if len(shapes) == 1 and not entry.broadcast and entry.result != "bool" else self.shape
        own = target if part == self.shape else self.allocate(element_type_of(target), part)
        place = self.allocate(I16, part) if widened else own
        if widened:
            inputs = [self.in_int16(value) for value in inputs]
        for position, value in enumerate(inputs):
            shaped = isinstance(value.type, MemRefType)
            if not shaped and position not in entry.scalar:
                filled = self.allocate(value.type, part)
                self.emit(tile.FillOp(value, filled))
                inputs[position] = filled
            elif shaped and not entry.broadcast and tile.shape_of(value) != part:
                inputs[position] = self.broadcast(value)
        if unsigned:  # unsignedness is in the element type, and tiles are kept as signed
            inputs, place = list(map(self.as_unsigned, inputs)), self.as_unsigned(place)
        self.emit(tile.ElementwiseOp(name, inputs, place, dict(clauses)))
        if widened:
            self.emit(tile.CopyOp(place, own, round_mode=_CASTS["arith.trunci"]))
        if own is not target:
            self.emit(tile.BroadcastOp(own, target))


__all__ = ["Vectoriser"]
