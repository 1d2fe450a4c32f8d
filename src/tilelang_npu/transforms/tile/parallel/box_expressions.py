"""From the scalar expressions of a ``T.Parallel`` body to vector operations over the whole box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import (
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnrealizedConversionCastOp,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu import ops
from tilelang_npu.dialects import hacc, hivm, tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.linear import Interval, Linear
from tilelang_npu.target import Chip, name_of
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.cast_paths import cast_path
from tilelang_npu.transforms.ir.emit import float_type
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.whole_blocks import in_blocks
from tilelang_npu.transforms.tile.parallel.between import Between, interleavings
from tilelang_npu.transforms.tile.parallel.box_tiles import I16, BoxTiles
from tilelang_npu.transforms.tile.parallel.index_widths import I64, INT32, IndexWidths
from tilelang_npu.transforms.tile.parallel.indices import (
    MADE,
    Invariants,
    Multiples,
    NotVector,
    NotVectorWhole,
    indices_of,
    plain,
    region_of,
)
from tilelang_npu.transforms.tile.parallel.nests import I32, called, element_of
from tilelang_npu.transforms.tile.parallel.rearranged import takes

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
_COMPARISONS = {0: "eq", 1: "ne", 2: "lt", 3: "le", 4: "gt", 5: "ge"}  # arith.cmpi, signed
_UNSIGNED_COMPARISONS = {6: "lt", 7: "le", 8: "gt", 9: "ge"}
_FLOAT_COMPARISONS = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 6: "ne"}  # arith.cmpf, ordered
_FLOAT_COMPARISONS |= {8: "eq", 9: "gt", 10: "ge", 11: "lt", 12: "le", 13: "ne"}  # unordered: NaN aside the same

I8 = IntegerType(8)
_IN_INT16 = "bitwise_lshift"
"""What is computed in int16 for int8, which the Vector core does not shift left: the low byte of the result is the same."""
_EXACT = 1 << 24
"""Up to here float32 has every integer."""


def _power(owner: arith.DivUIOp | arith.FloorDivSIOp | arith.RemUIOp) -> int | None:
    """The power of two that an integer is divided by; None for other numbers."""
    by = constant_value(owner.rhs)
    if by is None or by <= 0 or by & (by - 1):
        return None
    return by.bit_length() - 1


class Vectoriser(BoxTiles):
    """Turns the expressions of one loop into tile operations in front of it."""

    def __init__(self, loop: tile.ParallelOp, extents: list[int], chip: Chip, ranges: Ranges):
        super().__init__(loop, extents)
        self.chip = chip
        self.invariants = Invariants(loop)
        self.widths = IndexWidths(ranges)
        loads = [op for op in loop.body.block.ops if isinstance(op, memref.LoadOp)]
        self.detours = Between(loop, extents, chip, {(load.memref, self.places(load)) for load in loads})
        self.early: dict[SSAValue, SSAValue] = {}
        self._brought: dict[tuple[SSAValue, tuple[Multiples | None, ...]], SSAValue] = {}
        groups = interleavings(loop, self.invariants, extents, ranges)
        self._in_turn = {store: group for group in groups for store in group.stores}
        self._held: dict[memref.StoreOp, SSAValue] = {}

    def places(self, access: memref.LoadOp | memref.StoreOp) -> tuple[Multiples | None, ...]:
        """What the index expressions of an access say."""
        return tuple(self.invariants.sum(value) for value in access.indices)

    def read(self, load: memref.LoadOp) -> SSAValue:
        """The tile that a load covers; data in GM is brought to UB first, as is what does not begin at a block there,
        or comes in another order."""
        places = self.places(load)
        if plain(places) is None:
            return self._elsewhere(load, places)
        found = indices_of(self.invariants, load.memref, list(load.indices), self.extents, every_axis=False)
        region = region_of(self.loop, load.memref, found, self.extents)
        if space_of(load.memref) != "gm" and in_blocks(region):
            return region
        kind = region.type
        assert isinstance(kind, MemRefType)
        here = MemRefType(kind.element_type, kind.shape, memory_space=hivm.address_space("ub"))
        if space_of(load.memref) == "gm":
            landing = self.emit(tile.AllocOp(MADE, here)).results[0]
            self.emit(tile.CopyOp(region, landing))
            return landing
        self.drop(region)
        known = self._brought.get((load.memref, places))
        if known is None:
            known = self._brought[load.memref, places] = self.emit(tile.AllocOp(MADE, here)).results[0]
            self.detours.bring(load.memref, found, known)
        return known

    def _elsewhere(self, load: memref.LoadOp, places: tuple[Multiples | None, ...]) -> SSAValue:
        """The tile of an access that is no rectangle in the order of the box."""
        space = space_of(load.memref)
        if space not in ("gm", "ub", "shared", "fragment"):
            msg = f"{called(load.memref)} is in {name_of(space)}, out of which elements come in their order alone"
            raise NotVector(msg, "T.copy it to a buffer in UB first (T.alloc_ub)")
        sums = [place for place in places if place is not None]
        if len(sums) < len(places):
            return self._numbered(load, places)
        known = self._brought.get((load.memref, places))
        if known is None:
            known = self._brought[load.memref, places] = self.detours.read(load.memref, sums)
        return known

    def _numbered(self, load: memref.LoadOp, places: tuple[Multiples | None, ...]) -> SSAValue:
        """Elements whose numbers are computed: ``x[i // 2]``, ``x[idx[i]]``."""
        source, detours = load.memref, self.detours
        strides = detours.strides(source) if space_of(source) != "gm" else None
        kind, last = dtype_of(element_of(source)), places[-1]
        if strides is None or not takes("gather", kind):
            msg = f"{called(source)} ({kind} in {'GM' if strides is None else 'UB'}) is read at places that are computed"
            raise NotVectorWhole(msg, "T.copy what is read to a buffer in UB of a type that T.vgather takes, and read that")
        cycles, row = detours.numbered_cycles(kind.nbytes)
        moving = [value for value, place in zip(load.indices, places, strict=True) if place is None]
        inner = self.loop.body.block.args[len(self.extents) - 1]
        if len(self.extents) > 1 and last is not None and last.terms == ((len(self.extents) - 1, 1),) and not any(
                self.invariants.depends_on(value, inner) for value in moving):
            by_rows = detours.rows_of_copies(kind.nbytes)
            if by_rows < cycles:
                msg = f"{called(source)} is read at rows that are computed"
                raise NotVectorWhole(msg, "gather whole rows with T.vgather")
        numbers = detours.made(detours.front, I32, row)
        part = detours.part(numbers, self.extents)
        if part is not numbers:
            self.emit(tile.FillOp(self.number(0), numbers))
        try:
            self._number_of(load, places, strides, part)
        except NotVector as reason:
            msg = f"{called(source)} is read at places that are computed, and {reason}"
            edit = "compute the places into a tile of int32 in front of it, and index with that; or divide by a power of two"
            raise NotVectorWhole(msg, edit) from None
        return detours.gather(source, numbers, cycles)

    def _number_of(self, load: memref.LoadOp, places: Sequence[Multiples | None], strides: Sequence[int],
                   target: SSAValue) -> None:
        """The number of the element that each point reads."""
        steps, offset = [0] * len(self.extents), cast("SSAValue | int", 0)
        front = self.detours.front
        for place, stride in zip(places, strides, strict=True):
            if place is not None:
                offset = self.detours.sum(front, offset, self.detours.times(front, place.offset, stride))
                for axis, factor in place.terms:
                    steps[axis] += factor * stride
        self.detours.count(front, offset, target, *steps)
        for value, place, stride in zip(load.indices, places, strides, strict=True):
            if place is None:
                part = self.operand(value, index=I32)
                if stride != 1:
                    scaled = self.scratch(I32)
                    wide = self.broadcast(part)
                    self.emit(tile.ElementwiseOp("mul", [wide, self.number(stride)], scaled))
                    part = scaled
                self.emit(tile.ElementwiseOp("add", [target, self.broadcast(part)], target))

    def keep(self, load: memref.LoadOp) -> None:
        """Read now what a later statement wants from before a store in between."""
        source = self.read(load)
        kind = source.type
        assert isinstance(kind, MemRefType)
        copy = self.emit(tile.AllocOp(MADE, MemRefType(kind.element_type, kind.shape,
                                                             memory_space=hivm.address_space("ub")))).results[0]
        self.emit(tile.CopyOp(source, copy))
        self.early[load.res] = copy

    def store(self, store: memref.StoreOp) -> None:
        """One statement ``target[...] = expression`` over the box."""
        places = self.places(store)
        if store in self._in_turn or plain(places) is None:
            self._put_elsewhere(store, places)
            self._forget(root_of(store.memref))
            return
        found = indices_of(self.invariants, store.memref, list(store.indices), self.extents, every_axis=True)
        target = region_of(self.loop, store.memref, found, self.extents)
        value = store.value
        if isinstance(value.owner, UnrealizedConversionCastOp):
            value = value.owner.operands[0]
        kind = target.type
        assert isinstance(kind, MemRefType)
        element, place = kind.element_type, target
        owner, adds = value.owner, tile.ATOMIC in store.attributes
        if space_of(store.memref) == "gm":
            if isinstance(owner, memref.LoadOp) and space_of(owner.memref) != "gm" and self.invariants.depends(value):
                held = self.operand(value)
                if tile.shape_of(held) == tile.shape_of(target):
                    self.emit(tile.CopyOp(held, target, atomic=adds))
                    return
            if isinstance(owner, Operation) and _CASTS.get(owner.name) == "rint" and self._is_accumulator(owner.operands[0]):
                self.emit(tile.CopyOp(self.operand(owner.operands[0]), target, atomic=adds))
                return
            place = self.scratch(element)
            self._compute_into(store.value, value, place)
            self.emit(tile.CopyOp(place, target, atomic=adds))
            return
        if in_blocks(target):
            self._compute_into(store.value, value, target)
        else:
            self.drop(target)
            place = self.scratch(element)
            self._compute_into(store.value, value, place)
            self.detours.put(place, store.memref, found)
        self._forget(root_of(store.memref))

    def _forget(self, root: SSAValue) -> None:
        """A buffer was written: what was read of it is what it was."""
        self._brought = {key: held for key, held in self._brought.items() if root_of(key[0]) is not root}
        self.detours.forget(root)

    def _put_elsewhere(self, store: memref.StoreOp, places: tuple[Multiples | None, ...]) -> None:
        """One statement whose target is no rectangle in the order of the box, or one of several that write in turn."""
        sums = [place for place in places if place is not None]
        if len(sums) < len(places):
            shape = "x".join(map(str, tile.shape_of(store.memref)))
            msg = f"{called(store.memref)} ({shape}) is written at places that are computed"
            raise NotVectorWhole(msg, "compute the element that each place takes instead, and T.vgather those")
        value = store.value
        if isinstance(value.owner, UnrealizedConversionCastOp):
            value = value.owner.operands[0]
        kind = store.memref.type
        assert isinstance(kind, MemRefType)
        held = None
        if isinstance(value.owner, memref.LoadOp) and self.invariants.depends(value) and value.type == kind.element_type:
            held = self.operand(value)
        written = {root_of(op.memref) for op in self.loop.body.block.ops if isinstance(op, memref.StoreOp)}
        if held is None:
            held = self.scratch(kind.element_type)
            self._compute_into(store.value, value, held)
        elif tile.shape_of(held) != tuple(self.extents):
            held = self.broadcast(held)
        elif store in self._in_turn and root_of(held) in written:
            beside = self.scratch(kind.element_type)
            self.emit(tile.CopyOp(held, beside))
            held = beside
        group = self._in_turn.get(store)
        if group is None:
            self.detours.put_elsewhere(held, store.memref, sums, adds=tile.ATOMIC in store.attributes)
            return
        self._held[store] = held
        if all(each in self._held for each in group.stores):
            self.detours.put_in_turn([self._held[each] for each in group.stores], store.memref, group.places)

    def _compute_into(self, stored: SSAValue, value: SSAValue, place: SSAValue) -> None:
        """The value of a statement, ``stored`` with its conversion, in a tile of the box's shape."""
        owner = value.owner
        if isinstance(owner, memref.LoadOp) and space_of(owner.memref) == "gm" and self.invariants.depends(value) and (
                plain(self.places(owner)) is not None):
            found = indices_of(self.invariants, owner.memref, list(owner.indices), self.extents, every_axis=False)
            source = region_of(self.loop, owner.memref, found, self.extents)
            if tile.shape_of(source) == tile.shape_of(place) and value not in self.early:
                self.emit(tile.CopyOp(source, place))
                return
        if self.invariants.depends(value):
            self.into(value, self.as_element(place, value.type))
        else:
            self.into(stored, place)

    def _is_accumulator(self, value: SSAValue) -> bool:
        """Whether a value is an element of L0C, whose way out converts."""
        owner = value.owner
        return isinstance(owner, memref.LoadOp) and space_of(owner.memref) == "cc" and value not in self.early

    def into(self, value: SSAValue, target: SSAValue) -> None:
        """Compute an expression into a tile."""
        if not self.invariants.depends(value):
            self.emit(tile.FillOp(self._scalar(value), target))
            return
        owner = value.owner
        if isinstance(owner, (arith.IndexCastOp, arith.BitcastOp, memref.LoadOp, UnrealizedConversionCastOp)):
            source = self.operand(value)
            if tile.shape_of(source) == tile.shape_of(target):
                self.emit(tile.CopyOp(source, target))
            else:
                self.emit(tile.BroadcastOp(source, target))
            return
        self._compute(owner, target)

    def operand(self, value: SSAValue, into: SSAValue | None = None, *, index: IntegerType | None = None) -> SSAValue:
        """An input of a vector operation: a scalar, a tile, or the tile that a subexpression was computed into, which is
        ``into`` or one of its own.

        Args:
            value: the expression.
            into: where to compute it, if an operation does.
            index: the type whose bits of an index are wanted; by default one that holds it.
        """
        if isinstance(value.type, IndexType):
            return self._index(value, into, index or self.widths.holding(value))
        if not self.invariants.depends(value):
            return self._scalar(value)
        early = self.early.get(value)
        if early is not None:
            return early
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp):
            wide = value.type == I64 and self.widths.holding(owner.input) == I64
            return self.resized(self._index(owner.input, None, I64 if wide else I32), value.type)
        if isinstance(owner, (UnrealizedConversionCastOp, arith.BitcastOp)):
            return self.as_element(self.operand(owner.operands[0]), value.type)
        if isinstance(owner, memref.LoadOp):
            return self.read(owner)
        place = self.scratch(value.type) if into is None else into
        self._compute(owner, place)
        return place

    def _index(self, value: SSAValue, into: SSAValue | None, element: IntegerType) -> SSAValue:
        """An index as int32 or int64, by its low bits."""
        if not self.invariants.depends(value):
            return self._scalar(value, element)
        places = self._places(value, element)
        if places is not None:
            place = self.scratch(element)
            self._count(places, place)
            return place
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp):
            given, inner = owner.input, owner.input.owner
            if not isinstance(inner, (arith.ExtSIOp, arith.ExtUIOp)) or inner.input.type == IntegerType(1):
                return self.resized(self.operand(given), element)
            narrow = self.operand(inner.input)
            if isinstance(inner, arith.ExtSIOp):
                return self.resized(narrow, element)
            made = self.resized(self.as_unsigned(narrow), element)
            self.drop(narrow)
            return made
        assert isinstance(owner, Operation)
        computed = self.widths.computed_in(owner, element)
        place = into if into is not None and computed == element else self.scratch(computed)
        self._compute(owner, place)
        return self.resized(place, element)

    def _in_target(self, entry: ops.Elementwise, operands: list[SSAValue], target: SSAValue) -> int | None:
        """Which of the operands can be computed where the result will be: one that has its values from there, as a whole, and
        beside which nothing is yet to be read there. (Another one would have to wait until the place is free.)
        """
        kind, root = target.type, root_of(target)
        assert isinstance(kind, MemRefType)
        if not entry.in_place or root is not target:
            return None
        readers = [position for position, value in enumerate(operands) if self._reads(value, root)]
        if len(readers) != 1 or not self._is_computed(operands[readers[0]]):
            return None
        read = operands[readers[0]].type
        element = self._element(entry, operands, target) if isinstance(read, IndexType) else read
        return readers[0] if element == kind.element_type else None

    def _element(self, entry: ops.Elementwise, operands: Sequence[SSAValue], target: SSAValue) -> Attribute:
        """The element type of an operation's operands; that of indices is their result's, or what holds them all."""
        values = operands[1:] if entry.condition else operands
        if not isinstance(values[0].type, IndexType):
            return values[0].type
        return self.widths.holding(*values) if entry.result == "bool" else element_of(target)

    def _is_computed(self, value: SSAValue) -> bool:
        """Whether a vector operation makes a value."""
        owner = value.owner
        if not isinstance(owner, Operation) or value in self.early or not self.invariants.depends(value):
            return False
        made = any(owner.name in names for names in (_FUNCTIONS, _CASTS, _ROUNDINGS)) or isinstance(owner, arith.NegfOp)
        return made and self._places(value, I32) is None

    def _reads(self, value: SSAValue, root: SSAValue) -> bool:
        """Whether a value that changes from point to point is computed from what a buffer holds now."""
        owner = value.owner
        if isinstance(owner, memref.LoadOp):
            return value not in self.early and root_of(owner.memref) is root
        return isinstance(owner, Operation) and self.invariants.depends(value) and any(
            self._reads(operand, root) for operand in owner.operands)

    def _scalar(self, value: SSAValue, index: IntegerType = I32) -> SSAValue:
        """An invariant value in front of the loop; an index as an integer that tiles hold."""
        found = self.invariants.hoist(value)
        if not isinstance(found.type, IndexType):
            return found
        return self.emit(arith.IndexCastOp(found, index)).results[0]

    def _places(self, value: SSAValue, element: IntegerType = I64) -> Linear[SSAValue] | None:
        """An index as a sum of multiples of loop variables and of what is the same for all points, by the bits of ``element``;
        None where it is none."""
        if not isinstance(value.type, IndexType) or not (element == I32 or self.widths.is_exact(value)):
            return None
        form = affine(value)
        return form if self.invariants.parted(form) is not None else None

    def _count(self, form: Linear[SSAValue], target: SSAValue) -> None:
        """A sum of loop variables as data: its value at each point."""
        kind = target.type
        assert isinstance(kind, MemRefType)
        assert kind.element_type in (I32, I64)
        parts = self.invariants.parted(form)
        assert parts is not None
        terms, first = parts
        self._arange(self.invariants.total(first) if first.terms else first.constant, terms, target)

    def _arange(self, first: SSAValue | int, terms: Sequence[tuple[int, int]], target: SSAValue) -> None:
        steps = (dict(terms).get(axis, 0) for axis in range(len(self.extents)))
        values = [self.emit(arith.ConstantOp(IntegerAttr(value, IndexType()))).results[0] if isinstance(value, int) else value
                  for value in (first, *steps)]
        self.emit(tile.CallOp("arange", values, [target]))

    def _compare_places(self, op: arith.CmpiOp, mode: str, target: SSAValue) -> bool:
        """Compare sums of loop variables, as a mask does; whether that is what the sides are.

        What changes from point to point is compared with what does not: as float32 where that is exact, as the vector unit
        orders no integers.
        """
        left, right = self._places(op.lhs), self._places(op.rhs)
        if left is None or right is None:
            return False
        parts = self.invariants.parted(left - right)
        assert parts is not None
        terms, rest = parts
        low, high = Multiples(terms, 0).bounds(self.extents)
        exact, small = max(-low, high) <= _EXACT - 2, Interval(low - 1, high + 1).within(INT32)
        element = Float32Type() if exact else I32 if small else I64
        place = self.scratch(element)
        self._arange(0, terms, place)
        bound = self.invariants.total(rest * -1)
        for limit, nearer in ((low - 1, arith.MaxSIOp), (high + 1, arith.MinSIOp)):  # beyond, all is decided
            end = self.emit(arith.ConstantOp(IntegerAttr(limit, IndexType()))).results[0]
            bound = self.emit(nearer(bound, end)).results[0]
        scalar = self.emit(arith.IndexCastOp(bound, I64 if element == I64 else I32)).results[0]
        if exact:
            scalar = self.emit(arith.SIToFPOp(scalar, Float32Type())).results[0]
        self.emit(tile.ElementwiseOp("compare", [place, scalar], target, {"compare_mode": mode}))
        return True

    def _compute(self, owner: object, target: SSAValue) -> None:
        if isinstance(owner, (arith.CmpiOp, arith.CmpfOp)):
            table = _COMPARISONS | _UNSIGNED_COMPARISONS if isinstance(owner, arith.CmpiOp) else _FLOAT_COMPARISONS
            predicate = owner.predicate.value.data
            mode = table.get(predicate)
            if mode is None:
                msg = "a comparison has no vector form"
                raise NotVector(msg, "compare with <, <=, >, >=, == or !=")
            if isinstance(owner, arith.CmpiOp) and self._compare_places(owner, mode, target):
                return
            unsigned = isinstance(owner, arith.CmpiOp) and predicate in _UNSIGNED_COMPARISONS
            self._apply("compare", [owner.lhs, owner.rhs], target, {"compare_mode": mode}, unsigned=unsigned)
        elif isinstance(owner, arith.NegfOp):
            minus_one = self.emit(arith.ConstantOp(FloatAttr(-1.0, float_type(owner.operand.type)))).results[0]
            source = self.operand(owner.operand, target if self._is_computed(owner.operand) else None)
            self.emit(tile.ElementwiseOp("mul", [source, minus_one], target))
        elif isinstance(owner, (arith.DivUIOp, arith.FloorDivSIOp, arith.RemUIOp)) and (by := _power(owner)) is not None:
            rest = isinstance(owner, arith.RemUIOp)
            name, number = ("bitwise_and", (1 << by) - 1) if rest else ("bitwise_rshift", by)
            shifts: dict[str, str | bool] = {} if rest else {"round": False, "is_signed": not isinstance(owner, arith.DivUIOp)}
            kind = owner.lhs.type
            if not isinstance(kind, IntegerType):
                held = element_of(target)
                assert isinstance(held, IntegerType)
                index = [self.broadcast(self.operand(owner.lhs, index=held)), self.number(number, held)]
                self.emit(tile.ElementwiseOp(name, index, target, {**shifts, "is_signed": True} if shifts else shifts))
            else:
                kept = self.emit(arith.ConstantOp(IntegerAttr(number, kind))).results[0]
                self._apply(name, [owner.lhs, kept], target, shifts)
        elif isinstance(owner, Operation) and owner.name in _CASTS:
            self._cast(owner, target)
        elif isinstance(owner, Operation) and owner.name in _ROUNDINGS:
            self._convert(owner.operands[0], target, _ROUNDINGS[owner.name])
        elif isinstance(owner, Operation) and owner.name in _FUNCTIONS:
            clauses: dict[str, str | bool] = {}
            if isinstance(owner, (arith.ShRSIOp, arith.ShRUIOp)):
                clauses = {"round": False, "is_signed": isinstance(owner, arith.ShRSIOp)}
            unsigned = isinstance(owner, (arith.MaxUIOp, arith.MinUIOp))
            self._apply(_FUNCTIONS[owner.name], list(owner.operands), target, clauses, unsigned=unsigned)
        else:
            name = owner.name if isinstance(owner, Operation) else "a loop variable as a value"
            msg = f"{name} has no vector form"
            raise NotVector(msg, "compute it outside of T.Parallel, by an operation on whole tiles")

    def _cast(self, owner: Operation, target: SSAValue) -> None:
        given, mode = owner.operands[0], _CASTS[owner.name]
        if mode == "trunc" and isinstance(given.owner, math.RoundEvenOp):
            given, mode = given.owner.operand, "rint"
        if isinstance(owner, arith.FPToUIOp):
            self._convert(given, self.as_unsigned(target), mode)
            self.drop(target)
        else:
            self._convert(given, target, mode, unsigned=isinstance(owner, (arith.ExtUIOp, arith.UIToFPOp)))

    def _convert(self, given: SSAValue, target: SSAValue, mode: str, *, unsigned: bool = False) -> None:
        read = self.operand(given)
        source = self.as_unsigned(read) if unsigned else read
        kinds = dtype_of(element_of(source)), dtype_of(element_of(target))
        if kinds[0] == kinds[1]:
            self.emit(tile.ElementwiseOp("cast", [self.broadcast(source)], target, {"round_mode": mode}))
            return
        if cast_path(*kinds, mode, hacc.is_register_based(self.chip.hivm_target)) is None:
            msg = f"{kinds[0]} becomes {kinds[1]}, for which the Vector core has no conversion"
            raise NotVector(msg, "T.cast to int64 or uint32 first")
        self.emit(tile.CopyOp(self.broadcast(source), target, round_mode=mode))
        self.drop(read)

    def _apply(self, name: str, operands: list[SSAValue], target: SSAValue, clauses: Mapping[str, str | bool], *,
               unsigned: bool = False) -> None:
        entry = ops.operation(name)
        assert isinstance(entry, ops.Elementwise)
        element = self._element(entry, operands, target)
        widened = ops.computed_in(entry, dtype_of(element)) is None
        if widened and not (name == _IN_INT16 and element == I8):
            msg = f"{name} on {dtype_of(element)} has no vector form"
            raise NotVector(msg, f"T.cast to a type that it has first: {', '.join(map(str, entry.dtypes))}")
        if entry.commutes and not self.invariants.depends(operands[0]):  # a scalar stands second
            operands = [*reversed(operands)]
        inside = None if widened else self._in_target(entry, operands, target)
        index = element if isinstance(element, IntegerType) else None
        inputs = [self.operand(operand, target if position == inside else None, index=index)
                  for position, operand in enumerate(operands)]
        place = self.scratch(I16) if widened else target
        if widened:
            inputs = [self.in_int16(value) for value in inputs]
        for position, value in enumerate(inputs):
            shaped = isinstance(value.type, MemRefType)
            if not shaped and position not in entry.scalar:
                filled = self.scratch(value.type)
                self.emit(tile.FillOp(value, filled))
                inputs[position] = filled
            elif shaped and not entry.broadcast and tile.shape_of(value) != tile.shape_of(target):
                wide = self.scratch(element_of(value))
                self.emit(tile.BroadcastOp(value, wide))
                inputs[position] = wide
        if unsigned:  # the elements themselves say so, which are seen as signed elsewhere
            inputs, place = list(map(self.as_unsigned, inputs)), self.as_unsigned(place)
        self.emit(tile.ElementwiseOp(name, inputs, place, dict(clauses)))
        if widened:
            self.emit(tile.CopyOp(place, target, round_mode=_CASTS["arith.trunci"]))



__all__ = ["Vectoriser"]
