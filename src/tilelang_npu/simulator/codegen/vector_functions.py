"""Emitter of calls of vector functions (``hivm.vector_function``): the body becomes a Python function on NumPy arrays.

A register is an array whose last axis has the lanes; arrays of a batch of blocks have further axes before it, so every op works
on the last axes. A call is one op of pipe V. Its cycles are the sum of those of the instructions in its body, which a second
function counts if the number of iterations of a loop depends on a parameter.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    UnrealizedConversionCastOp,
    VectorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilelang_npu.dialects.hfusion.enums import RoundModeAttr
from tilelang_npu.dialects.ir.effects import called_function, is_vector_call
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.mlir.vector import GatherOp, MultiDimReductionOp, ScatterOp, ShapeCastOp
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location, TileError
from tilelang_npu.ops.rounding import conversion
from tilelang_npu.simulator.codegen.code_scopes import Int
from tilelang_npu.simulator.codegen.handlers import effect, unsupported
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.memory import POISON, Array
from tilelang_npu.simulator.machine.op_records import RegisterWork
from tilelang_npu.target import Chip
from tilelang_npu.target.dtypes import DType, dtype

REGISTER = 256
"""The number of bytes of a vector register."""
FUNCTION = "vector_function"
"""The row of the rate table with the cycles of a vector function besides its instructions."""

_ROWS: Mapping[str, str] = {
    "arith.addf": "add", "arith.addi": "add", "arith.subf": "sub", "arith.subi": "sub", "arith.mulf": "mul",
    "arith.muli": "mul", "arith.divf": "div", "arith.maximumf": "max", "arith.maxsi": "max", "arith.maxui": "max",
    "arith.minimumf": "min", "arith.minsi": "min", "arith.minui": "min", "arith.andi": "and", "arith.ori": "or",
    "arith.xori": "and", "arith.shli": "shift", "arith.shrui": "shift", "arith.shrsi": "shift", "arith.negf": "mul",
    "math.absf": "abs", "math.absi": "abs", "math.exp": "exp", "math.log": "ln", "math.sqrt": "sqrt", "math.fma": "mul",
    "arith.cmpf": "vcmp", "arith.cmpi": "vcmp", "arith.select": "vsel", "arith.extf": "conv", "arith.truncf": "conv",
    "arith.extsi": "conv", "arith.extui": "conv", "arith.trunci": "conv", "arith.sitofp": "conv", "arith.uitofp": "conv",
    "arith.fptosi": "conv", "arith.fptoui": "conv", "arith.mulsi_extended": "mul", "arith.mului_extended": "mul",
    "vector.load": "vld", "vector.store": "vst", "vector.maskedstore": "vst", "vector.transfer_write": "vst",
    "vector.gather": "gather", "vector.scatter": "gather", "vector.shuffle": "vintlv", "vector.broadcast": "dup",
}
"""The row of the chip's rate table for each op that is an instruction. The other ops are none: constants and masks of a
function are made once, and another shape or type of the same bits is the same register."""


# --- values ------------------------------------------------------------------------------------------------------------------


def _numpy(kind: Attribute) -> np.dtype[np.generic]:
    """The NumPy type of the elements of a type; the bits of signless integers are signed ones."""
    element = kind.element_type if isinstance(kind, (VectorType, MemRefType)) else kind
    if isinstance(element, IndexType):
        return np.dtype(np.int64)
    if isinstance(element, IntegerType) and element.width.data == 1:
        return np.dtype(np.bool_)
    if isinstance(element, IntegerType):
        sign = "u" if element.signedness.data == Signedness.UNSIGNED else "i"
        return np.dtype(f"{sign}{element.width.data // 8}")
    return dtype_of(element).numpy


def _load(array: Array, first: int, lanes: int, name: str, where: Location | None) -> Array:
    _check(array, first, lanes, name, where)
    return array[..., first:first + lanes].copy()


def _check(array: Array, first: int, lanes: int, name: str, where: Location | None) -> None:
    size = array.shape[-1]
    if not 0 <= first <= size - lanes:
        raise TileError(f"lanes {first} to {first + lanes - 1} of a register are not all inside {name}, which has {size}"
                        " elements", code="T502", location=where,
                        help="allocate the buffer with as many elements as the registers have lanes")


def _store(array: Array, first: int, value: Array, mask: Array | None, name: str, where: Location | None) -> None:
    lanes = value.shape[-1]
    if mask is None:
        _check(array, first, lanes, name, where)
        array[..., first:first + lanes] = value
        return
    chosen = np.flatnonzero(mask.reshape(-1, lanes).any(axis=0))
    if chosen.size:  # lanes that the mask does not select may lie beyond the buffer
        low, high = int(chosen[0]), int(chosen[-1]) + 1
        _check(array, first + low, high - low, name, where)
        target = array[..., first + low:first + high]
        np.copyto(target, value[..., low:high], where=mask[..., low:high])


def _rows(array: Array, first: int, rows: int, size: int, stride: int, name: str, where: Location | None) -> Array:
    total = array.shape[-1]
    last = first + max(0, (rows - 1) * stride) + size
    if first < 0 or stride < 0 or last > total:
        raise TileError(f"{rows} groups of {size} elements that lie {stride} apart, from element {first} on, are not all inside"
                        f" {name}, which has {total} elements", code="T502", location=where,
                        help="check the stride and the number of groups")
    step = array.strides[-1]
    return np.lib.stride_tricks.as_strided(array[..., first:], (*array.shape[:-1], rows, size),
                                           (*array.strides[:-1], stride * step, step))


def _masked_rows(target: Array, value: Array, mask: Array | None) -> None:
    if mask is None:
        target[...] = value
    else:
        np.copyto(target, value, where=mask)


def _indices(array: Array, first: int, index: Array, mask: Array, name: str, where: Location | None) -> Array:
    places = index.astype(np.int64) + first
    used = places[np.broadcast_to(mask, places.shape)]
    size = array.shape[-1]
    if used.size and not (used.min() >= 0 and used.max() < size):
        wrong = int(used[(used < 0) | (used >= size)][0])
        raise TileError(f"a lane accesses element {wrong} of {name}, which has {size} elements", code="T502", location=where,
                        help="check the offsets, or leave these lanes out of the mask")
    return np.where(mask, places, 0)


def _gather(array: Array, first: int, index: Array, mask: Array, other: Array, name: str, where: Location | None) -> Array:
    places = _indices(array, first, index, mask, name, where)
    if places.ndim == 1:
        found = array[..., places]
    else:
        lead = np.broadcast_shapes(array.shape[:-1], places.shape[:-1])
        found = np.take_along_axis(np.broadcast_to(array, (*lead, array.shape[-1])),
                                   np.broadcast_to(places, (*lead, places.shape[-1])), -1)
    return np.where(mask, found, other)


def _scatter(array: Array, first: int, index: Array, mask: Array, value: Array, name: str, where: Location | None) -> None:
    places = _indices(array, first, index, mask, name, where)
    lead = array.shape[:-1]
    places, chosen, values = (np.broadcast_to(one, (*lead, one.shape[-1])) for one in (places, mask, value))
    for at in np.ndindex(*lead):
        array[at][places[at][chosen[at]]] = values[at][chosen[at]]


def _joined(first: Array, second: Array, places: Array) -> Array:
    lead = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    both = [np.broadcast_to(one, (*lead, one.shape[-1])) for one in (first, second)]
    return np.concatenate(both, axis=-1)[..., places]


def _reshaped(value: Array, axes: int, shape: tuple[int, ...]) -> Array:
    return value.reshape(value.shape[:value.ndim - axes] + shape)


def _spread(value: object, axes: int, shape: tuple[int, ...], kind: np.dtype[np.generic]) -> Array:
    found = np.asarray(value, kind)
    lead = found.shape[:found.ndim - axes]
    aligned = _reshaped(found, axes, (1,) * (len(shape) - axes) + found.shape[found.ndim - axes:])
    return np.broadcast_to(aligned, (*lead, *shape))


def _bits(value: Array, kind: np.dtype[np.generic]) -> Array:
    return np.ascontiguousarray(value).view(kind)


def _reduced(fold: Callable[..., Array], value: Array, start: Array) -> Array:
    """Reduces the last axis; f16 is summed in f32 and rounded once."""
    narrow = value.dtype.kind not in "iub" and value.dtype.itemsize < 4
    wide = value.astype(np.float32) if narrow else value
    kind = np.float32 if narrow else value.dtype
    return fold(np.concatenate([wide, np.broadcast_to(start[..., None], (*wide.shape[:-1], 1)).astype(kind)], axis=-1),
                axis=-1).astype(value.dtype)


def _add(values: Array, axis: int) -> Array:
    found: Array = np.add.reduce(values, axis=axis, dtype=values.dtype)
    return found


def _wide(compute: Callable[..., Array]) -> Callable[..., Array]:
    """Computes on f32 what NumPy does not compute on narrower floats with one rounding."""
    def run(*values: Array) -> Array:
        kind = values[0].dtype
        if kind.itemsize >= 4:
            return compute(*values)
        return np.asarray(compute(*[value.astype(np.float32) for value in values])).astype(kind)

    return run


def _unsigned(compute: Callable[..., Array]) -> Callable[..., Array]:
    def run(*values: Array) -> Array:
        kind = values[0].dtype
        bits = np.dtype(f"u{kind.itemsize}")
        return np.asarray(compute(*[_bits(np.asarray(value), bits) for value in values])).view(kind)

    return run


def _shifted(shift: Callable[..., Array]) -> Callable[..., Array]:
    """A shift by as many bits as the element has, or more, gives 0."""
    def run(value: Array, amount: Array) -> Array:
        width = 8 * value.dtype.itemsize
        return np.where(amount < width, shift(value, np.minimum(amount, width - 1)), 0).astype(value.dtype)

    return run


def _extended(one: Array, other: Array, *, unsigned: bool) -> tuple[Array, Array]:
    wide = np.uint64 if unsigned else np.int64
    narrow = np.uint32 if unsigned else np.int32
    product = _bits(one, np.dtype(narrow)).astype(wide) * _bits(other, np.dtype(narrow)).astype(wide)
    return product.astype(np.uint32).view(np.int32), (product >> wide(32)).astype(np.uint32).view(np.int32)


def _fused(one: Array, other: Array, third: Array) -> Array:
    """The product and the sum with one rounding: float64 holds the product of two f32 exactly."""
    wide = one.astype(np.float64) * other.astype(np.float64) + third.astype(np.float64)
    return wide.astype(one.dtype)


_COMPUTE: dict[str, Callable[..., object]] = {
    "arith.addf": _wide(np.add), "arith.subf": _wide(np.subtract), "arith.mulf": _wide(np.multiply),
    "arith.divf": _wide(np.divide), "arith.maximumf": _wide(np.maximum), "arith.minimumf": _wide(np.minimum),
    "arith.negf": np.negative, "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum, "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum), "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor, "arith.shli": _unsigned(_shifted(np.left_shift)),
    "arith.shrui": _unsigned(_shifted(np.right_shift)), "arith.select": np.where, "math.absf": _wide(np.abs),
    "math.absi": np.abs, "math.exp": _wide(np.exp), "math.log": _wide(np.log), "math.sqrt": _wide(np.sqrt),
    "math.fma": _fused, "arith.mulsi_extended": lambda a, b: _extended(a, b, unsigned=False),
    "arith.mului_extended": lambda a, b: _extended(a, b, unsigned=True),
}
_FOLDS: dict[str, Callable[..., Array]] = {
    "add": _add, "maximumf": np.maximum.reduce, "maxsi": np.maximum.reduce, "minimumf": np.minimum.reduce,
    "minsi": np.minimum.reduce,
    "maxui": lambda values, axis: np.maximum.reduce(values.view(f"u{values.dtype.itemsize}"), axis=axis).view(values.dtype),
    "minui": lambda values, axis: np.minimum.reduce(values.view(f"u{values.dtype.itemsize}"), axis=axis).view(values.dtype),
}
_FLOAT_ORDERS = {1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal, 13: np.not_equal}
_WHOLE_ORDERS = {0: np.equal, 1: np.not_equal, 2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal,
                 6: _unsigned(np.less), 7: _unsigned(np.less_equal), 8: _unsigned(np.greater), 9: _unsigned(np.greater_equal)}
_ON_INDEX: dict[str, Callable[..., object]] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul, "arith.maxsi": max, "arith.minsi": min,
    "arith.divsi": lambda a, b: math.trunc(a / b), "arith.floordivsi": operator.floordiv, "arith.divui": operator.floordiv,
    "arith.ceildivsi": lambda a, b: -(-a // b), "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.remsi": math.fmod, "arith.remui": operator.mod, "arith.andi": operator.and_, "arith.ori": operator.or_,
    "arith.xori": operator.xor, "arith.maxui": max, "arith.minui": min,
}
_INDEX_ORDERS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.lt, operator.le,
                 operator.gt, operator.ge)


def _compare_unsigned(compute: Callable[..., Array]) -> Callable[..., Array]:
    return lambda a, b: compute(_bits(a, np.dtype(f"u{a.dtype.itemsize}")), _bits(b, np.dtype(f"u{b.dtype.itemsize}")))


for _number, _order in ((6, np.less), (7, np.less_equal), (8, np.greater), (9, np.greater_equal)):
    _WHOLE_ORDERS[_number] = _compare_unsigned(_order)


@cache
def _converter(name: str, source: DType, target: DType, mode: str, saturates: bool) -> Callable[[Array], Array]:
    """The function of a conversion of ``arith``, as an op with these attributes."""
    made = target.numpy
    if name == "arith.trunci":
        return lambda value: value.astype(made)
    if name in ("arith.extsi", "arith.extf"):
        return lambda value: value.astype(made)
    if name == "arith.extui":
        held = np.dtype(f"u{max(1, source.bits // 8)}")
        return lambda value: (value if value.dtype == np.bool_ else _bits(value, held)).astype(f"u{made.itemsize}").view(made)
    if name == "arith.uitofp":
        unsigned = dtype(f"ui{source.bits}")
        plain = conversion(unsigned, target, mode)
        return lambda value: plain(_bits(value, unsigned.numpy))
    if name == "arith.fptoui":
        unsigned = dtype(f"ui{target.bits}")
        plain = conversion(source, unsigned, mode)
        return lambda value: plain(value).view(made)
    convert = conversion(source, target, mode)
    if not (saturates and source.is_float and target.is_float):
        return convert
    import ml_dtypes

    most = float(ml_dtypes.finfo(made).max)  # type: ignore[no-untyped-call]  # ml_dtypes has no types here
    return lambda value: convert(np.clip(value.astype(np.float32), -most, most))


# --- the generated function --------------------------------------------------------------------------------------------------


class _Writer:
    """Writes the source of a Python function that executes a vector function, or that counts its cycles.

    Args:
        function: the vector function.
        chip: the chip, which gives the rates.
        counts: whether the source counts cycles, and computes only the numbers that loops and branches depend on.
    """

    def __init__(self, function: FuncOp, chip: Chip, *, counts: bool) -> None:
        self.chip, self.counts = chip, counts
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.globals: dict[str, Any] = {"np": np, "load": _load, "store": _store, "rows": _rows, "masked_rows": _masked_rows,
                                        "gather": _gather, "scatter": _scatter, "within": _within}
        self.views: dict[SSAValue, tuple[str, str, str, str]] = {}
        self.depth = 1
        arguments = function.body.block.args
        for number, argument in enumerate(arguments):
            self.names[argument] = f"p{number}"
        chosen = [argument for argument in arguments if not (counts and isinstance(argument.type, MemRefType))]
        self.lines.append(f"def run({', '.join(self.names[argument] for argument in chosen)}):")
        if counts:
            self.line("cycles = 0")
        for argument in chosen:
            if not isinstance(argument.type, (MemRefType, IndexType)):
                name = self.names[argument]
                self.line(f"{name} = {self.kept(_numpy(argument.type))}.type({name})")
        self.block(function.body.block)
        self.line("return cycles" if counts else "return")

    def made(self) -> Callable[..., Any]:
        """Returns the function."""
        exec(compile("\n".join(self.lines), "<vector function>", "exec"), self.globals)
        found: Callable[..., Any] = self.globals["run"]
        return found

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def kept(self, thing: object) -> str:
        """Makes an object a global variable of the source, and returns its name."""
        name = f"k{len(self.globals)}"
        self.globals[name] = thing
        return name

    def name(self, value: SSAValue) -> str:
        return self.names[value]

    def given(self, op: Operation) -> str:
        return ", ".join(self.names[value] for value in op.operands)

    def define(self, result: SSAValue, text: str) -> None:
        self.names[result] = name = f"v{len(self.names)}"
        self.line(f"{name} = {text}")

    def block(self, block: Block) -> None:
        """Writes the ops of a block."""
        total = 0.0
        for op in block.ops:
            total += self._cycles(op)
            if isinstance(op, (scf.ForOp, scf.IfOp)):
                self._region(op)
            elif not isinstance(op, (scf.YieldOp, func.ReturnOp)) and not (self.counts and self._is_register_op(op)):
                self._op(op)
        if self.counts and total:
            self.line(f"cycles += {total!r}")
        if self.lines[-1].endswith(":"):
            self.line("pass")

    def _region(self, op: scf.ForOp | scf.IfOp) -> None:
        if op.results:
            raise unsupported(op, "a loop or a branch of a vector function has no results")
        if isinstance(op, scf.ForOp):
            index = self.names[op.body.block.args[0]] = f"i{len(self.names)}"
            low, high, step = (self.name(value) for value in (op.lb, op.ub, op.step))
            self.line(f"for {index} in range({low}, {high}, {step}):")
            self._nested(op.body.block)
            return
        self.line(f"if {self.name(op.cond)}:")
        self._nested(op.true_region.block)
        if op.false_region.blocks:
            self.line("else:")
            self._nested(op.false_region.block)

    def _nested(self, block: Block) -> None:
        self.depth += 1
        self.block(block)
        self.depth -= 1

    @staticmethod
    def _is_register_op(op: Operation) -> bool:
        values = (*op.operands, *op.results)
        return any(isinstance(value.type, VectorType) or (isinstance(value.type, MemRefType) and (
            isinstance(value.type.element_type, VectorType) or not isinstance(op, (memref.LoadOp, memref.StoreOp,
                                                                                  memref.AllocaOp)))) for value in values)

    def _cycles(self, op: Operation) -> float:
        """The cycles for which an op occupies the Vector unit."""
        row = _ROWS.get(op.name)
        if isinstance(op, MultiDimReductionOp):
            return self._reduction_cycles(op)
        kinds = [value.type for value in (*op.operands, *op.results) if isinstance(value.type, VectorType)]
        if row is None or not kinds or (row == "vsel" and _is_zero(op.operands[2])):
            return 0.0  # an operation with a mask sets the other lanes to 0 itself
        if row == "dup" and not isinstance(op.operands[0].type, VectorType) and all(
                use.operation.name.startswith(("arith.", "math.")) for use in op.results[0].uses):
            return 0.0  # the operation takes the number itself
        if row == "vintlv" and isinstance(op, vector.ShuffleOp) and not isinstance(op.v1.owner, vector.LoadOp):
            return self._slope(row, kinds) / 2  # one instruction makes both halves
        if row in ("and", "or") and all(_numpy(kind) == np.bool_ for kind in kinds):
            return 0.0  # a comparison takes the mask itself
        return self._slope(row, kinds)

    def _slope(self, row: str, kinds: Sequence[VectorType]) -> float:
        widths = [_numpy(kind).itemsize for kind in kinds if _numpy(kind) != np.bool_] or [1]
        lanes = max(math.prod(kind.get_shape()) for kind in kinds)
        rate = self.chip.vector.get(row, self.chip.vector["add"])
        slope = rate.slope32 if max(widths) >= 4 else rate.slope16
        return slope * math.ceil(lanes * max(widths) / REGISTER)

    def _reduction_cycles(self, op: MultiDimReductionOp) -> float:
        kind = op.source.type
        assert isinstance(kind, VectorType)
        word = str(op.kind.data)
        how = "add" if word == "add" else "max" if word.startswith("max") else "min"
        registers = math.ceil(math.prod(kind.get_shape()) * _numpy(kind).itemsize / REGISTER)
        return (registers - 1) * self._slope(how, [VectorType(kind.element_type, [1])]) + self._slope(
            f"c{how}", [VectorType(kind.element_type, [1])])

    # -- ops ---------------------------------------------------------------------------------------------------------------

    def _op(self, op: Operation) -> None:
        writer = _WRITERS.get(op.name)
        if writer is not None:
            writer(self, op)
        elif op.name in _CONVERSIONS:
            self._convert(op)
        elif op.name in _COMPUTE or op.name in _ON_INDEX:
            self._compute(op)
        else:
            raise unsupported(op, "a vector function of this package has no such op")

    def _compute(self, op: Operation) -> None:
        on_index = isinstance(op.results[0].type, IndexType)
        table = _ON_INDEX if on_index else _COMPUTE
        if op.name not in table:
            raise unsupported(op, "in a vector function, it works on integers of type index")
        function = self.kept(table[op.name])
        if len(op.results) == 1:
            text = f"{function}({self.given(op)})"
            self.define(op.results[0], f"int({text})" if on_index else text)
            return
        names = [f"v{len(self.names) + number}" for number in range(len(op.results))]
        self.line(f"{', '.join(names)} = {function}({self.given(op)})")
        for result, name in zip(op.results, names, strict=True):
            self.names[result] = name

    def _convert(self, op: Operation) -> None:
        source, target = (_element(value.type) for value in (op.operands[0], op.results[0]))
        mode, saturate = op.attributes.get("round_mode"), op.attributes.get("enable_saturate")
        usual = "trunc" if op.name in ("arith.fptosi", "arith.fptoui") else "rint"
        word = mode.data if isinstance(mode, RoundModeAttr) else usual
        saturates = isinstance(saturate, IntegerAttr) and bool(saturate.value.data)
        function = self.kept(_converter(op.name, source, target, word, saturates))
        self.define(op.results[0], f"{function}(np.asarray({self.name(op.operands[0])}))")

    def place(self, op: Operation, base: SSAValue, indices: Sequence[SSAValue]) -> str:
        """Returns the arguments ``array, first element`` of an access to a buffer."""
        return f"{self.name(base)}, {self.name(indices[0])}"

    def where(self, op: Operation, base: SSAValue) -> str:
        """Returns the arguments with the name of a buffer and the line of an op, for messages."""
        return f"{base.name_hint or 'the buffer'!r}, {self.kept(location_of(op))}"


def _element(kind: Attribute) -> DType:
    element = kind.element_type if isinstance(kind, VectorType) else kind
    return dtype("int64") if isinstance(element, IndexType) else dtype_of(element)


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, DenseIntOrFPElementsAttr):
        return False
    return not any(owner.value.iter_values())


def _constant(writer: _Writer, op: arith.ConstantOp) -> None:
    value, kind = op.value, op.result.type
    if isinstance(value, DenseIntOrFPElementsAttr):
        assert isinstance(kind, VectorType)
        items = np.array(list(value.iter_values()))
        held = _numpy(kind)
        made = (items.astype(np.int64).astype(held) if held.kind in "iu" else items.astype(held))
        writer.names[op.result] = writer.kept(np.broadcast_to(made.reshape(-1) if made.size == 1 else made.reshape(
            kind.get_shape()), kind.get_shape()))
    elif isinstance(value, (IntegerAttr, FloatAttr)):
        number = value.value.data
        if isinstance(kind, IndexType):
            writer.names[op.result] = repr(int(number)) if number >= 0 else f"({int(number)})"
        else:
            writer.names[op.result] = writer.kept(np.asarray(number).astype(_numpy(kind))[()])
    else:
        raise unsupported(op, "its value is neither a number nor a vector of numbers")


def _compare(writer: _Writer, op: Operation) -> None:
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    number, kind = predicate.value.data, op.operands[0].type
    table: Any = _FLOAT_ORDERS if op.name == "arith.cmpf" else _INDEX_ORDERS if isinstance(kind, IndexType) else _WHOLE_ORDERS
    writer.define(op.results[0], f"{writer.kept(table[number])}({writer.given(op)})")


def _index_cast(writer: _Writer, op: Operation) -> None:
    source, kind = writer.name(op.operands[0]), op.results[0].type
    if isinstance(kind, IndexType):
        writer.define(op.results[0], f"int({source})")
    else:
        writer.define(op.results[0], f"np.asarray(int({source})).astype({writer.kept(_numpy(kind))})[()]")


def _vector_load(writer: _Writer, op: vector.LoadOp) -> None:
    kind = op.result.type
    assert isinstance(kind, VectorType)
    if op.base in writer.views:
        writer.define(op.result, f"{writer.views[op.base][0]}.copy()")
        return
    writer.define(op.result, f"load({writer.place(op, op.base, op.indices)}, {kind.get_shape()[0]}, "
                             f"{writer.where(op, op.base)})")


def _vector_store(writer: _Writer, op: vector.StoreOp | vector.MaskedStoreOp) -> None:
    value = op.vector if isinstance(op, vector.StoreOp) else op.value_to_store
    mask = "None" if isinstance(op, vector.StoreOp) else writer.name(op.mask)
    if op.base in writer.views:
        writer.line(f"masked_rows({writer.views[op.base][0]}, {writer.name(value)}, {mask})")
        return
    writer.line(f"store({writer.place(op, op.base, op.indices)}, {writer.name(value)}, {mask}, {writer.where(op, op.base)})")


def _rows_store(writer: _Writer, op: vector.TransferWriteOp) -> None:
    """A store with a mask to rows that do not follow one another."""
    if op.mask is None or op.source not in writer.views:
        raise unsupported(op, "a vector.transfer_write of a vector function has a mask, and writes rows")
    writer.line(f"masked_rows({writer.views[op.source][0]}, {writer.name(op.vector)}, {writer.name(op.mask)})")


def _view(writer: _Writer, op: memref.ReinterpretCastOp) -> None:
    rest = iter(op.offsets)
    offset = op.static_offsets.get_values()[0]
    first = writer.name(next(rest)) if offset < 0 else str(offset)
    strides = iter(op.strides)
    step = op.static_strides.get_values()[0]
    stride = writer.name(next(strides)) if step < 0 else str(step)
    size = list(op.static_sizes.get_values())
    writer.define(op.result, f"rows({writer.name(op.source)}, {first}, {size[0]}, {size[1]}, {stride}, "
                             f"{writer.where(op, op.source)})")
    writer.views[op.result] = (writer.name(op.result), first, stride, "")


def _gathered(writer: _Writer, op: GatherOp) -> None:
    writer.define(op.result, f"gather({writer.place(op, op.base, op.offsets)}, {writer.name(op.index_vec)}, "
                             f"{writer.name(op.mask)}, {writer.name(op.pass_thru)}, {writer.where(op, op.base)})")


def _scattered(writer: _Writer, op: ScatterOp) -> None:
    writer.line(f"scatter({writer.place(op, op.base, op.offsets)}, {writer.name(op.index_vec)}, {writer.name(op.mask)}, "
                f"{writer.name(op.value_to_store)}, {writer.where(op, op.base)})")


def _create_mask(writer: _Writer, op: vector.CreateMaskOp) -> None:
    kind = op.mask_vector.type
    assert isinstance(kind, VectorType)
    lanes = writer.kept(np.arange(kind.get_shape()[0]))
    writer.define(op.mask_vector, f"{lanes} < {writer.name(op.mask_dim_sizes[0])}")


def _broadcast(writer: _Writer, op: vector.BroadcastOp) -> None:
    kind, source = op.vector.type, op.source.type
    assert isinstance(kind, VectorType)
    axes = len(source.get_shape()) if isinstance(source, VectorType) else 0
    writer.define(op.vector, f"{writer.kept(_spread)}({writer.name(op.source)}, {axes}, {tuple(kind.get_shape())}, "
                             f"{writer.kept(_numpy(kind))})")


def _shape_cast(writer: _Writer, op: ShapeCastOp) -> None:
    source, kind = op.source.type, op.result.type
    assert isinstance(source, VectorType)
    assert isinstance(kind, VectorType)
    writer.define(op.result, f"{writer.kept(_reshaped)}({writer.name(op.source)}, {len(source.get_shape())}, "
                             f"{tuple(kind.get_shape())})")


def _bitcast(writer: _Writer, op: Operation) -> None:
    writer.define(op.results[0], f"{writer.kept(_bits)}(np.asarray({writer.name(op.operands[0])}), "
                                 f"{writer.kept(_numpy(op.results[0].type))})")


def _shuffle(writer: _Writer, op: vector.ShuffleOp) -> None:
    places = writer.kept(np.array(op.mask.get_values()))
    writer.define(op.result, f"{writer.kept(_joined)}({writer.name(op.v1)}, {writer.name(op.v2)}, {places})")


def _reduction(writer: _Writer, op: MultiDimReductionOp) -> None:
    dims = list(op.reduction_dims.get_values())
    source = op.source.type
    assert isinstance(source, VectorType)
    if dims != [len(source.get_shape()) - 1] or not isinstance(op.dest.type, VectorType):
        raise unsupported(op, "a reduction of a vector function is along the last of several axes")
    fold = writer.kept(_FOLDS[str(op.kind.data)])
    writer.define(op.dest, f"{writer.kept(_reduced)}({fold}, {writer.name(op.source)}, {writer.name(op.acc)})")


def _storage(writer: _Writer, op: memref.AllocaOp) -> None:
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    element, count = kind.element_type, math.prod(kind.get_shape())
    if not isinstance(element, VectorType):
        writer.define(op.memref, f"[{writer.kept(np.zeros((), _numpy(element))[()])}] * {count}")
        return
    undefined = np.empty(element.get_shape(), _numpy(element))
    undefined.view(np.uint8).fill(POISON)
    writer.define(op.memref, f"[{writer.kept(undefined)}] * {count}")


def _cell(writer: _Writer, op: Operation, storage: SSAValue, indices: Sequence[SSAValue]) -> str:
    kind = storage.type
    assert isinstance(kind, MemRefType)
    place, text = writer.kept(location_of(op)), "0"
    for size, index in zip(kind.get_shape(), indices, strict=True):
        text = f"({text}) * {size} + within({writer.name(index)}, {size}, {place})"
    return f"{writer.name(storage)}[{text}]"


def _within(index: int, size: int, where: Location | None) -> int:
    if not 0 <= index < size:
        raise TileError(f"there is no register {index} along an axis of {size} registers", code="T502", location=where,
                        help="check the size of the allocation")
    return index


def _read_cell(writer: _Writer, op: memref.LoadOp) -> None:
    writer.define(op.res, _cell(writer, op, op.memref, op.indices))


def _write_cell(writer: _Writer, op: memref.StoreOp) -> None:
    writer.line(f"{_cell(writer, op, op.memref, op.indices)} = {writer.name(op.value)}")


_CONVERSIONS = frozenset({"arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp",
                          "arith.uitofp", "arith.fptosi", "arith.fptoui"})
_WRITERS: dict[str, Callable[[_Writer, Any], None]] = {
    "arith.constant": _constant, "arith.cmpf": _compare, "arith.cmpi": _compare, "arith.index_cast": _index_cast,
    "arith.index_castui": _index_cast, "arith.bitcast": _bitcast, "vector.bitcast": _bitcast,
    UnrealizedConversionCastOp.name: _bitcast, "vector.load": _vector_load, "vector.store": _vector_store,
    "vector.maskedstore": _vector_store, "vector.transfer_write": _rows_store, "memref.reinterpret_cast": _view,
    "vector.gather": _gathered,
    "vector.scatter": _scattered, "vector.create_mask": _create_mask, "vector.broadcast": _broadcast,
    "vector.shape_cast": _shape_cast, "vector.shuffle": _shuffle, "vector.multi_reduction": _reduction,
    "memref.alloca": _storage, "memref.load": _read_cell, "memref.store": _write_cell,
}


def _quiet(run: Callable[..., None]) -> Callable[..., None]:
    """Overflow and NaN in lanes are no warnings, as on the chip."""
    def call(*given: object) -> None:
        with np.errstate(all="ignore"):
            run(*given)

    return call


def _depends_on_parameters(function: FuncOp) -> bool:
    """Whether the number of iterations of a loop, or the condition of a branch, may depend on a parameter or on memory."""
    constant: set[SSAValue] = set()
    for op in function.walk():
        if op.results and all(value in constant for value in op.operands) and (
                isinstance(op, arith.ConstantOp) or (op.operands and op.name.startswith("arith."))):
            constant.update(op.results)
        elif isinstance(op, scf.ForOp):
            if any(value not in constant for value in (op.lb, op.ub, op.step)):
                return True
            constant.add(op.body.block.args[0])
        elif isinstance(op, scf.IfOp) and op.cond not in constant:
            return True
    return False


@effect(func.CallOp)
def _call(em: PythonEmitter, op: func.CallOp) -> None:
    function = called_function(op)
    if not is_vector_call(op) or not isinstance(function, FuncOp) or not function.body.blocks:
        raise unsupported(op, "it calls no vector function", "inline the called function")
    run = em.constant(_quiet(_Writer(function, em.chip, counts=False).made()), "vector_function")
    numbers = [em.text_of(em.integer(value)) if isinstance(value.type, (IndexType, IntegerType)) else em.expression(value).text
               for value in op.operands if not isinstance(value.type, MemRefType)]
    cycles = _cycles_of(em, op, function, numbers)
    em.record_op(op, lambda slot: RegisterWork(slot(cycles)), pipe="V")
    rest = iter(numbers)
    given = [em.array(em.buffer(value)) if isinstance(value.type, MemRefType) else next(rest) for value in op.operands]
    em.emit_batched(f"{run}({', '.join(given)})")


def _cycles_of(em: PythonEmitter, op: func.CallOp, function: FuncOp, numbers: Sequence[str]) -> Int:
    """The cycles of a call: those that the author measured, or those of starting and ending the function and of its body."""
    measured = function.attributes.get("latency")
    if isinstance(measured, IntegerAttr):
        return Int(measured.value.data)
    fixed = em.chip.vector[FUNCTION].fixed
    count = _Writer(function, em.chip, counts=True).made()
    if not _depends_on_parameters(function):
        return Int(math.ceil(fixed + count(*[0 for _ in numbers])))
    total = em.constant(lambda *given: math.ceil(fixed + count(*given)), "cycles")
    scope = em.scope_of(*(em.value(value) for value in op.operands if not isinstance(value.type, MemRefType)))
    return em.define_integer(f"{total}({', '.join(numbers)})", scope, safe=False)


__all__ = ["FUNCTION", "REGISTER"]
