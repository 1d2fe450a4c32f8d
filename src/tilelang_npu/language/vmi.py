"""``T.vmi``: the operations on vector registers, inside of ``with T.SimdVF():`` (Ascend 950).

A register has ``lanes`` elements; a register that is wider than the 256 bytes of the hardware takes several of the hardware's
registers. A mask selects lanes: an operation with a mask computes the selected lanes, and the others become 0. Loads take no
mask. The names and the arguments are those of TileLang's ``tilelang.ascend.language.vmi``, the meanings those of the
instruction reference of PTOAS.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    MemRefType,
    StridedLayoutAttr,
    UnrealizedConversionCastOp,
    VectorType,
    i64,
)
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from tilelang_npu.dialects.hfusion.enums import RoundModeAttr
from tilelang_npu.dialects.mlir.arith import Arith
from tilelang_npu.dialects.mlir.math import Math
from tilelang_npu.dialects.mlir.vector import GatherOp, MultiDimReductionOp, ScatterOp, ShapeCastOp
from tilelang_npu.dispatch import dispatched
from tilelang_npu.errors import TileError, door, shown
from tilelang_npu.language.elements import ElementType, element_type
from tilelang_npu.language.gpu_arguments import note_gpu_arguments
from tilelang_npu.language.operands import as_memory, require_vector_memory, scalar_operand
from tilelang_npu.language.unsupported import unknown
from tilelang_npu.ops import DType, dtype
from tilelang_npu.ops.register_operations import MLIR, REGISTER_OPERATIONS, RegisterOperation
from tilelang_npu.target import BLOCK
from tilelang_npu.traced.active_trace import TracedValue
from tilelang_npu.traced.arithmetic import binary
from tilelang_npu.traced.buffers import Buffer, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, extent, scalar
from tilelang_npu.traced.ir_types import element_type as memory_type
from tilelang_npu.traced.kinds import BOOL, INDEX
from tilelang_npu.traced.registers import Register, RegisterPlace, RegisterVariable, masks, register_type
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.vector_region import VectorRegion

WIDTH = 256
"""The number of bytes of a vector register of the hardware."""
_OPS = {op.name: op for op in (*Arith.operations, *Math.operations)}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ORDERED = tuple(f"o{name}" for name in _COMPARISONS)
_ROUNDING = {"R": "rint", "A": "round", "Z": "trunc"}
_INT32 = dtype("int32")


@dataclass(frozen=True)
class RegisterType:
    """The type of a register or a mask: what ``T.vmi.vreg`` and ``T.vmi.mask`` return.

    Attributes:
        element: the element type; ``bool`` for a mask.
        lanes: the number of lanes.
    """

    element: DType
    lanes: int


# --- the region, operands and results ---------------------------------------------------------------------------------------


def _region(what: str) -> tuple[Builder, VectorRegion]:
    builder = Builder.running(what)
    if builder.region is None or builder.region.what != "T.SimdVF":
        raise TileError(f"{what} is outside of a vector function", code="T160",
                        help="put it below `with T.SimdVF():`, inside T.Kernel")
    if builder.in_parallel:
        raise TileError(f"{what} cannot be used inside T.Parallel, whose body computes single elements", code="T141",
                        help="loop over the registers with T.serial")
    builder.region.has_registers = True
    return builder, builder.region


def _refuse(what: str, problem: str, advice: str) -> NoReturn:
    raise TileError(f"{what}: {problem}", code="T190", help=advice)


def _lanes(what: str, lanes: object) -> int:
    if isinstance(lanes, bool) or not isinstance(lanes, int) or not (lanes in (1, 2, 4, 8) or (lanes > 0 and lanes % 64 == 0)):
        raise TileError(f"{what}: {lanes!r} is not a number of lanes", code="T150",
                        help="a register has 1, 2, 4 or 8 lanes, or a multiple of 64")
    return lanes


def _register(what: str, role: str, value: object) -> Register:
    found = value.load() if isinstance(value, RegisterPlace) else (
        value.place.load() if isinstance(value, RegisterVariable) and not value.shape else value)
    if not isinstance(found, Register):
        given = found.describe() if isinstance(found, TracedValue) else shown(found)
        raise TileError(f"{what}: {role} must be a vector register, not {given}", code="T110",
                        help="load one with T.vmi.vload, or fill one with T.vmi.vbrc")
    return found


def _vector(what: str, role: str, value: object) -> Register:
    found = _register(what, role, value)
    if found.is_mask:
        raise TileError(f"{what}: {role} must be a vector register, not {found.describe()}", code="T110",
                        help="a mask is the argument `mask`; T.vmi.vsel makes a register of one")
    return found


def _mask(what: str, value: object, lanes: int, *, needed: bool = False) -> Register | None:
    if value is None:
        if needed:
            raise TileError(f"{what} takes a mask", code="T145",
                            help=f"T.vmi.create_mask({lanes}, size={lanes}) selects all lanes")
        return None
    found = _register(what, "the mask", value)
    if not found.is_mask or found.lanes != lanes:
        raise TileError(f"{what}: the mask is {found.describe()}, and the operands have {lanes} lanes",
                        code="T111" if found.is_mask else "T110", help=f"T.vmi.create_mask(n, size={lanes}) makes one")
    return found


def _alike(what: str, *values: Register) -> None:
    if len({(str(value.element), value.lanes) for value in values}) > 1:
        raise TileError(f"{what}: the operands differ: {', '.join(value.describe() for value in values)}", code="T110",
                        help="give registers with one element type and one number of lanes; T.vmi.vcvt converts")


def _only_zero(what: str, pmode: str | None) -> None:
    if pmode not in (None, "zero"):
        _refuse(what, f"pmode={pmode!r} keeps the lanes of a destination, and a call has none",
                "leave pmode out, and choose the lanes with T.vmi.vsel")


def _apply(builder: Builder, name: str, operands: Sequence[SSAValue], result: Attribute,
           attributes: dict[str, Attribute] | None = None, **properties: Attribute) -> SSAValue:
    """Emits an op of ``arith`` or ``math`` by its name and returns its first result."""
    kind = _OPS[name]
    known = kind.get_irdl_definition().properties if hasattr(kind, "get_irdl_definition") else {}
    if "fastmath" in known:
        properties["fastmath"] = arith.FastMathFlagsAttr("none")
    if "overflowFlags" in known or "overflow_flags" in known:
        properties.setdefault("overflowFlags", arith.IntegerOverflowAttr("none"))
    made = kind.create(operands=operands, result_types=[result], properties=properties, attributes=attributes or {})
    return builder.discardable(made).results[0]


def _constant(builder: Builder, element: DType, lanes: int, value: float) -> SSAValue:
    kind = register_type(element, lanes)
    return _constants(builder, kind, [float(value) if element.is_float else int(value)])


def _constants(builder: Builder, kind: Any, items: Sequence[int] | Sequence[float]) -> SSAValue:
    return builder.discardable(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, items), kind)).results[0]


def _spread(builder: Builder, value: SSAValue, element: DType, lanes: int) -> SSAValue:
    return builder.discardable(vector.BroadcastOp(value, register_type(element, lanes))).results[0]


def _number(builder: Builder, what: str, role: str, value: object, element: DType, lanes: int) -> SSAValue:
    """The register in which all lanes have the value of a number."""
    if isinstance(value, (Register, RegisterPlace, RegisterVariable)):
        raise TileError(f"{what}: {role} must be a number, not {value.describe()}", code="T110",
                        help="T.vmi has an operation on two registers for it")
    known = value.constant if isinstance(value, Expr) else value
    if isinstance(known, (int, float)) and not isinstance(known, bool) and (element.is_float or float(known).is_integer()):
        return _constant(builder, element, lanes, known)
    return _spread(builder, _signless(builder, scalar_operand(builder, what, role, value, element)), element, lanes)


def _signless(builder: Builder, value: SSAValue) -> SSAValue:
    owner = value.owner
    return owner.inputs[0] if isinstance(owner, UnrealizedConversionCastOp) else value


def _selected(builder: Builder, value: SSAValue, mask: Register | None, element: DType, lanes: int) -> SSAValue:
    """The value with 0 in the lanes that the mask does not select."""
    if mask is None:
        return value
    zero = _constant(builder, element, lanes, 0)
    return _apply(builder, "arith.select", [mask.value, value, zero], register_type(element, lanes))


def _shuffled(builder: Builder, first: SSAValue, second: SSAValue, places: Sequence[int], element: DType) -> SSAValue:
    made = vector.ShuffleOp(first, second, DenseArrayBase.from_list(i64, list(places)),
                            result_type=register_type(element, len(places)))
    return builder.discardable(made).results[0]


# --- addresses ---------------------------------------------------------------------------------------------------------------


def _address(builder: Builder, region: VectorRegion, what: str, role: str, value: Tile, offset: object
             ) -> tuple[Buffer, SSAValue, Extent, int]:
    """Returns the buffer of an address, the buffer as an argument of the function, the number of the first element, and the
    number of elements of the buffer.

    Raises:
        TileError: T110, the address is no element of a buffer; T145, there is an offset; T201, the buffer is not in UB.
    """
    if offset is not None:
        raise TileError(f"{what}: a buffer takes no offset", code="T145", help="write the offset in the index: buf[i * 64]")
    memory = as_memory(what, role, value)
    require_vector_memory(what, role, memory)
    buffer, total = memory.buffer, 1
    first: object = 0
    sizes = buffer.sizes
    for axis in reversed(range(len(sizes))):
        size = sizes[axis]
        assert isinstance(size, int)  # on chip
        first = _plus(builder, first, memory.offsets[axis], total)
        total *= size
    return buffer, region.argument(buffer.value, total), extent(builder, first), total


def _plus(builder: Builder, total: object, index: Extent, step: int) -> object:
    if isinstance(index, int) and isinstance(total, int):
        return total + index * step
    term = binary(builder, "mul", index, step) if step != 1 else index
    return term if isinstance(total, int) and total == 0 else binary(builder, "add", total, term)


def _check_inside(what: str, buffer: Buffer, first: Extent, count: int, total: int) -> None:
    if isinstance(first, int) and not 0 <= first <= total - count:
        raise TileError(f"{what}: lanes {first} to {first + count - 1} are not all inside {buffer.describe()}, which has"
                        f" {total} elements", code="T130",
                        help="allocate the buffer with as many elements as the registers have lanes")


def _rows(builder: Builder, argument: SSAValue, first: Extent, rows: int, size: int, stride: Extent) -> SSAValue:
    """Views a buffer as rows of ``size`` elements that lie ``stride`` elements apart."""
    kind = argument.type
    assert isinstance(kind, MemRefType)
    layout = StridedLayoutAttr([stride if isinstance(stride, int) else None, 1], first if isinstance(first, int) else None)
    made = memref.ReinterpretCastOp.from_dynamic(
        argument, [first if isinstance(first, int) else first.ssa(builder)], [rows, size],
        [stride if isinstance(stride, int) else stride.ssa(builder), 1],
        MemRefType(kind.element_type, [rows, size], layout))
    return builder.discardable(made).results[0]


def _access(builder: Builder, what: str, argument: SSAValue, first: Extent, lanes: int, element: DType, group: int | None,
            stride: object, block_stride: object) -> tuple[SSAValue, list[SSAValue], VectorType]:
    """Returns the memref, the indices and the vector type with which a load or a store accesses memory."""
    memory = memory_type(element)
    if group is None and block_stride is None:
        return argument, [builder.index(first)], VectorType(memory, [lanes])
    per_block = BLOCK // element.nbytes
    rows, size = (group, lanes // group) if group is not None else (lanes // per_block, per_block)
    step = extent(builder, stride) if group is not None else extent(builder, _plus(builder, 0, extent(builder, block_stride),
                                                                                  per_block))
    seen = _rows(builder, argument, first, rows, size, step)
    zero = builder.constant(0, INDEX)
    return seen, [zero, zero], VectorType(memory, [rows, size])


def _modes(what: str, lanes: int, element: DType, dist_mode: str | None, allowed: tuple[str, ...], group: object,
           stride: object, block_stride: object, repeat_stride: object) -> None:
    """Checks which modes of an access are given together.

    Raises:
        TileError: T145, the modes exclude each other, or a stride is missing; T150, a group is no number of groups; T190, the
            mode is not supported.
    """
    if dist_mode not in (None, "continuous", *allowed):
        if dist_mode == "unpack":
            _refuse(what, 'dist_mode="unpack" is not supported', "load the narrow elements, and widen them with T.vmi.vcvt")
        raise TileError(f"{what}: there is no dist_mode {dist_mode!r}", code="T145",
                        help=f"the modes are {', '.join(map(repr, ('continuous', *allowed)))}")
    if (group is not None) + (block_stride is not None or repeat_stride is not None) > 1:
        raise TileError(f"{what}: group and block_stride exclude each other", code="T145", help="give one of the two")
    if dist_mode not in (None, "continuous") and (block_stride is not None or (group is not None and dist_mode != "brc")):
        raise TileError(f"{what}: dist_mode={dist_mode!r} excludes group and block_stride", code="T145",
                        help="give one of them")
    if (group is None) != (stride is None):
        raise TileError(f"{what}: group and stride belong together", code="T145", help="give both, or neither")
    if (block_stride is None) != (repeat_stride is None):
        raise TileError(f"{what}: block_stride and repeat_stride belong together", code="T145", help="give both, or neither")
    if repeat_stride is not None and (repeat_stride != 0 or lanes * element.nbytes > WIDTH):
        _refuse(what, "block_stride is supported for one register of the hardware, with repeat_stride=0",
                f"access at most {WIDTH} bytes with one call")
    if group is not None and (isinstance(group, bool) or not isinstance(group, int) or group < 1 or lanes % group):
        raise TileError(f"{what}: {group!r} does not divide {lanes} lanes into groups", code="T150",
                        help="give a number of groups that divides the lanes")


def _as_computed(builder: Builder, value: SSAValue, element: DType, lanes: int) -> SSAValue:
    """A loaded vector as a register: with one axis, and signless integers."""
    if element.is_integer and not element.is_signed:
        shape = value.type.get_shape() if isinstance(value.type, VectorType) else [lanes]
        plain = VectorType(register_type(element, 1).element_type, shape)
        value = builder.discardable(UnrealizedConversionCastOp.get([value], [plain])).results[0]
    kind = register_type(element, lanes)
    return value if value.type == kind else builder.discardable(ShapeCastOp(value, kind)).results[0]


def _as_stored(builder: Builder, value: SSAValue, kind: VectorType, element: DType) -> SSAValue:
    """A register as the vector that a store writes."""
    plain = VectorType(register_type(element, 1).element_type, kind.get_shape())
    if value.type != plain:
        value = builder.discardable(ShapeCastOp(value, plain)).results[0]
    if kind != plain:
        value = builder.discardable(UnrealizedConversionCastOp.get([value], [kind])).results[0]
    return value


# --- masks and types ---------------------------------------------------------------------------------------------------------


def vreg(lanes: int, dtype_like: ElementType) -> RegisterType:
    """Return the type of a register with ``lanes`` elements, for ``T.vmi.alloc_local``.

    Example: ``T.vmi.vreg(64, "float32")``

    Raises:
        TileError: T150, there is no register with that number of lanes; T110, there is no such element type.
    """
    return RegisterType(element_type(dtype_like, "T.vmi.vreg"), _lanes("T.vmi.vreg", lanes))


def mask(lanes: int) -> RegisterType:
    """Return the type of a mask with ``lanes`` lanes.

    Example: ``T.vmi.mask(64)``

    Raises:
        TileError: T150, there is no mask with that number of lanes.
    """
    return RegisterType(BOOL, _lanes("T.vmi.mask", lanes))


def alloc_var(dtype: ElementType, *, size: int) -> Any:
    """Declare a register that the function assigns more than once, such as the sum of a loop: ``acc = T.vmi.vadd(acc, x)``.

    Its lanes are undefined until assigned.

    Example: ``T.vmi.alloc_var("float32", size=64)``

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, there is no such element type; T150, ``size`` is no number
            of lanes.
    """
    return _storage("T.vmi.alloc_var", element_type(dtype, "T.vmi.alloc_var"), _lanes("T.vmi.alloc_var", size), ())


def alloc_local(shape: int | Sequence[int], vreg_type: RegisterType) -> Any:
    """Declare an array of registers, which are read and assigned by index: ``regs[i] = T.vmi.vload(...)``.

    Example: ``T.vmi.alloc_local((4,), T.vmi.vreg(64, "float32"))``

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, ``vreg_type`` is not a ``T.vmi.vreg``; T150, a size is not a
            positive constant.
    """
    what = "T.vmi.alloc_local"
    if not isinstance(vreg_type, RegisterType) or vreg_type.element.is_bool:
        raise TileError(f"{what}: {vreg_type!r} is not the type of a register", code="T110",
                        help='write T.vmi.vreg(64, "float32")')
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not sizes or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
        raise TileError(f"{what}: the shape {shape!r} has a size that is not a positive constant", code="T150",
                        help="give each axis a positive integer")
    return _storage(what, vreg_type.element, vreg_type.lanes, sizes)


def _storage(what: str, element: DType, lanes: int, shape: tuple[int, ...]) -> RegisterVariable:
    builder, _ = _region(what)
    made = builder.emit(memref.AllocaOp.get(register_type(element, lanes), shape=shape or (1,)))
    return RegisterVariable(made.results[0], element, lanes, shape)


def create_mask(active_lanes: object, *, size: int, group: int | None = None) -> Any:
    """Return a mask of ``size`` lanes that selects the first ``active_lanes``.

    Example: ``T.vmi.create_mask(n, size=64)``

    Args:
        active_lanes: the number of selected lanes; a larger number than ``size`` selects all.
        size: the number of lanes of the mask.
        group: divides the lanes into this number of groups, and selects the first lanes of each group.

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T150, ``size`` or ``group`` is no valid number.
    """
    what = "T.vmi.create_mask"
    builder, _ = _region(what)
    lanes = _lanes(what, size)
    if group is None:
        return Register(_prefix(builder, active_lanes, lanes), BOOL, lanes)
    if isinstance(group, bool) or not isinstance(group, int) or group < 1 or lanes % group:
        raise TileError(f"{what}: {group!r} does not divide {lanes} lanes into groups", code="T150",
                        help="give a number of groups that divides the lanes")
    known = active_lanes.constant if isinstance(active_lanes, Expr) else active_lanes
    if isinstance(known, int) and known > lanes // group:
        raise TileError(f"{what}: {known} lanes are selected in groups of {lanes // group}", code="T150",
                        help=f"select at most {lanes // group} lanes of each group")
    one = _prefix(builder, active_lanes, lanes // group)
    return Register(_shuffled(builder, one, one, [lane % (lanes // group) for lane in range(lanes)], BOOL), BOOL, lanes)


def _prefix(builder: Builder, count: object, lanes: int) -> SSAValue:
    return builder.discardable(vector.CreateMaskOp([builder.index(count)], masks(lanes))).results[0]


# --- loads and stores --------------------------------------------------------------------------------------------------------


def vload(source: Tile, offset: None = None, *, size: int, to_dtype: None = None, stride: object = None,
          block_stride: object = None, repeat_stride: object = None, dist_mode: str | None = None, group: int | None = None
          ) -> Any:
    """Load ``size`` elements of a buffer in UB, from the element ``source`` on, to a register. A load takes no mask.

    Example: ``T.vmi.vload(a_ub[i * 64], size=64)``

    Args:
        source: the first element, as in ``a_ub[i * 64]``; elements of a buffer with several axes follow one another row by row.
        offset: not supported; the index of ``source`` states it.
        size: the number of lanes.
        to_dtype: not supported; it belongs to ``dist_mode="unpack"``.
        dist_mode: ``"brc"`` gives all lanes the first element, or with ``group`` each group of lanes one element;
            ``"dintlv"`` loads ``2 * size`` elements, and returns the even and the odd ones as two registers.
        group: loads this number of groups of ``size / group`` elements, which lie ``stride`` elements apart.
        stride: the distance of two groups in elements.
        block_stride: loads blocks of 32 bytes that lie this number of blocks apart.
        repeat_stride: must be 0, if ``block_stride`` is given.

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, ``source`` is no element of a buffer; T201, the buffer is
            not in UB; T130, an element is outside of the buffer; T145, T150, arguments that do not belong together, or a number
            of lanes or groups that does not exist; T190, a mode that is not supported. T502, while the kernel runs, an element
            is outside of the buffer.
    """
    what = "T.vmi.vload"
    builder, region = _region(what)
    lanes = _lanes(what, size)
    buffer, argument, first, total = _address(builder, region, what, "the source", source, offset)
    element = _loadable(what, buffer)
    _modes(what, lanes, element, dist_mode, ("brc", "dintlv", "unpack")[:2], group, stride, block_stride, repeat_stride)
    if dist_mode == "brc":
        return Register(_load_repeated(builder, what, buffer, argument, first, total, lanes, element, group, stride),
                        element, lanes)
    if dist_mode == "dintlv":
        _check_inside(what, buffer, first, 2 * lanes, total)
        one, other = (_loaded(builder, argument, start, lanes, element) for start in (
            first, extent(builder, _plus(builder, lanes, first, 1))))
        return tuple(Register(_shuffled(builder, one, other, range(odd, 2 * lanes, 2), element), element, lanes)
                     for odd in (0, 1))
    if group is None and block_stride is None:
        _check_inside(what, buffer, first, lanes, total)
    seen, indices, kind = _access(builder, what, argument, first, lanes, element, group, stride, block_stride)
    value = builder.discardable(vector.LoadOp(seen, indices, kind)).results[0]
    return Register(_as_computed(builder, value, element, lanes), element, lanes)


def _loaded(builder: Builder, argument: SSAValue, first: Extent, lanes: int, element: DType) -> SSAValue:
    made = vector.LoadOp(argument, [builder.index(first)], VectorType(memory_type(element), [lanes]))
    return _as_computed(builder, builder.discardable(made).results[0], element, lanes)


def _load_repeated(builder: Builder, what: str, buffer: Buffer, argument: SSAValue, first: Extent, total: int, lanes: int,
                   element: DType, group: int | None, stride: object) -> SSAValue:
    """Loads one element per group, and gives all lanes of the group this element."""
    groups = group or 1
    if group is None:
        _check_inside(what, buffer, first, 1, total)
        one = _loaded(builder, argument, first, 1, element)
    else:
        seen, indices, kind = _access(builder, what, argument, first, groups, element, groups, stride, None)
        one = _as_computed(builder, builder.discardable(vector.LoadOp(seen, indices, kind)).results[0], element, groups)
    return _repeated(builder, one, element, groups, lanes)


def _repeated(builder: Builder, value: SSAValue, element: DType, groups: int, lanes: int) -> SSAValue:
    """Gives each group of lanes the lane of a register with one lane per group."""
    if groups == 1:
        return _spread(builder, value, element, lanes)
    plain = register_type(element, 1).element_type
    column = builder.discardable(ShapeCastOp(value, VectorType(plain, [groups, 1]))).results[0]
    wide = builder.discardable(vector.BroadcastOp(column, VectorType(plain, [groups, lanes // groups]))).results[0]
    return builder.discardable(ShapeCastOp(wide, register_type(element, lanes))).results[0]


_LOADABLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32", "float8_e4m3fn",
             "float8_e5m2")


def _loadable(what: str, buffer: Buffer) -> DType:
    if str(buffer.dtype) not in _LOADABLE:
        raise TileError(f"{what}: there are no registers of {buffer.dtype}", code="T110",
                        help=f"the element types are {', '.join(_LOADABLE)}")
    return buffer.dtype


def vstore(values: object, destination: Tile, offset: object = None, mask: object = None, *, stride: object = None,
           block_stride: object = None, repeat_stride: object = None, dist_mode: str | None = None, group: int | None = None,
           pmode: str | None = None) -> None:
    """Store the lanes of a register that the mask selects to a buffer in UB, from the element ``destination`` on.

    Example: ``T.vmi.vstore(x, c_ub[i * 64], mask)``

    Args:
        values: the register; two registers with ``dist_mode="dintlv"``.
        destination: the first element, as in ``c_ub[i * 64]``.
        offset: a mask may be given in its place; an offset is not supported.
        mask: the mask; without one, all lanes are stored.
        dist_mode: ``"dintlv"`` stores two registers as the even and the odd elements.
        group: stores this number of groups of lanes, which lie ``stride`` elements apart; it excludes a mask.
        stride: the distance of two groups in elements.
        block_stride: stores blocks of 32 bytes that lie this number of blocks apart.
        repeat_stride: must be 0, if ``block_stride`` is given.
        pmode: must be ``"zero"``; lanes that the mask does not select are not written.

    Raises:
        TileError: as ``T.vmi.vload``; and T110, ``values`` are no registers with the element type of the buffer.
    """
    what = "T.vmi.vstore"
    builder, region = _region(what)
    if mask is None and isinstance(offset, (Register, RegisterPlace, RegisterVariable)):
        mask, offset = offset, None
    _only_zero(what, pmode)
    pair = dist_mode == "dintlv"
    given = list(values) if isinstance(values, (tuple, list)) else [values]
    if len(given) != (2 if pair else 1):
        raise TileError(f"{what}: {len(given)} registers are given", code="T145",
                        help='dist_mode="dintlv" stores two registers, and any other mode one')
    registers = [_vector(what, "the value", value) for value in given]
    _alike(what, *registers)
    element, lanes = registers[0].element, registers[0].lanes
    buffer, argument, first, total = _address(builder, region, what, "the destination", destination, offset)
    if buffer.dtype != element:
        raise TileError(f"{what}: the register has elements of {element}, and {buffer.describe()} of {buffer.dtype}",
                        code="T110", help="convert the register with T.vmi.vcvt")
    _modes(what, lanes, element, dist_mode, ("dintlv",), group, stride, block_stride, repeat_stride)
    if group is not None and mask is not None:
        raise TileError(f"{what}: a store of groups takes no mask", code="T145", help="leave the mask out")
    chosen = _mask(what, mask, lanes)
    if pair:
        _check_inside(what, buffer, first, 2 * lanes, total)
        for half in (0, 1):
            order = [lane // 2 + lanes * (lane % 2) for lane in range(half * lanes, (half + 1) * lanes)]
            value = _shuffled(builder, registers[0].value, registers[1].value, order, element)
            part = chosen and Register(_shuffled(builder, chosen.value, chosen.value, [place % lanes for place in order], BOOL),
                                       BOOL, lanes)
            start = extent(builder, _plus(builder, half * lanes, first, 1))
            _store(builder, value, element, argument, [builder.index(start)], VectorType(memory_type(element), [lanes]), part)
        return
    if group is None and block_stride is None:
        _check_inside(what, buffer, first, lanes if chosen is None else 1, total)
    seen, indices, kind = _access(builder, what, argument, first, lanes, element, group, stride, block_stride)
    _store(builder, registers[0].value, element, seen, indices, kind, chosen)


def _store(builder: Builder, value: SSAValue, element: DType, target: SSAValue, indices: list[SSAValue], kind: VectorType,
           mask: Register | None) -> None:
    stored = _as_stored(builder, value, kind, element)
    if mask is None:
        builder.emit(vector.StoreOp(stored, target, indices))
        return
    if len(kind.get_shape()) == 1:
        builder.emit(vector.MaskedStoreOp(target, indices, mask.value, stored))
        return
    # vector.maskedstore has one axis
    chosen = builder.discardable(ShapeCastOp(mask.value, VectorType(masks(1).element_type, kind.get_shape()))).results[0]
    rank = len(kind.get_shape())
    builder.emit(vector.TransferWriteOp(stored, target, indices, ArrayAttr([BoolAttr.from_bool(True)] * rank), chosen,
                                        AffineMapAttr(AffineMap.identity(rank))))


def vgather(source: Tile, offsets: object, mask: object, *, pmode: str | None = None) -> Any:
    """Load ``source[offsets[i]]`` for each lane that the mask selects; the other lanes become 0.

    Example: ``T.vmi.vgather(table[0], index, mask)``

    Args:
        source: the element from which the offsets count.
        offsets: a register of int32 or uint32 (uint16 for elements of 16 bits), in elements.
        mask: the mask.
        pmode: must be ``"zero"``.

    Raises:
        TileError: as ``T.vmi.vload``; T190, the elements have 8 bits. T502, while the kernel runs, an offset is outside of the
            buffer.
    """
    what = "T.vmi.vgather"
    builder, region = _region(what)
    _only_zero(what, pmode)
    places = _offsets(what, offsets)
    chosen = _mask(what, mask, places.lanes, needed=True)
    buffer, argument, first, _ = _address(builder, region, what, "the source", source, None)
    element = _loadable(what, buffer)
    if element.bits == 8:
        _refuse(what, "elements of 8 bits are not supported", "gather 16-bit elements")
    assert chosen is not None
    empty = _constant(builder, element, places.lanes, 0)
    kind = VectorType(memory_type(element), [places.lanes])
    made = GatherOp(argument, [builder.index(first)], places.value, chosen.value, _as_stored(builder, empty, kind, element))
    return Register(_as_computed(builder, builder.discardable(made).results[0], element, places.lanes), element, places.lanes)


def vscatter(value: object, destination: Tile, offsets: object, mask: object, *, pmode: str | None = None) -> None:
    """Store each lane that the mask selects to ``destination[offsets[i]]``. If lanes have equal offsets, the
    last of them is stored.

    Example: ``T.vmi.vscatter(x, table[0], index, mask)``

    Raises:
        TileError: as ``T.vmi.vgather``.
    """
    what = "T.vmi.vscatter"
    builder, region = _region(what)
    _only_zero(what, pmode)
    register, places = _vector(what, "the value", value), _offsets(what, offsets)
    if register.lanes != places.lanes:
        raise TileError(f"{what}: the value has {register.lanes} lanes, and the offsets have {places.lanes}", code="T111",
                        help="give both the same number of lanes")
    chosen = _mask(what, mask, register.lanes, needed=True)
    buffer, argument, first, _ = _address(builder, region, what, "the destination", destination, None)
    if buffer.dtype != register.element:
        raise TileError(f"{what}: the register has elements of {register.element}, and {buffer.describe()} of {buffer.dtype}",
                        code="T110", help="convert the register with T.vmi.vcvt")
    assert chosen is not None
    kind = VectorType(memory_type(register.element), [register.lanes])
    builder.emit(ScatterOp(argument, [builder.index(first)], places.value, chosen.value,
                           _as_stored(builder, register.value, kind, register.element)))


def _offsets(what: str, value: object) -> Register:
    found = _vector(what, "the offsets", value)
    if str(found.element) not in ("int32", "uint32", "uint16", "int16"):
        raise TileError(f"{what}: the offsets are {found.describe()}", code="T110", help="give integers of 16 or 32 bits")
    if found.element.bits == 16:
        builder = Builder.running(what)
        return Register(_apply(builder, "arith.extsi" if found.element.is_signed else "arith.extui", [found.value],
                               register_type(_INT32, found.lanes)), _INT32, found.lanes)
    return found


# --- fills and rearrangements ------------------------------------------------------------------------------------------------


def vbrc(value: object, *, size: int, group: int | None = None) -> Any:
    """Return a register of ``size`` lanes that all have the value of a number, or of a register with one lane.

    Example: ``T.vmi.vbrc(T.float32(0), size=64)``

    Args:
        value: a number of the kernel with an element type, such as ``T.float32(0)``, or a register.
        size: the number of lanes.
        group: the number of lanes of ``value``; each of them is repeated ``size / group`` times.

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, the value is neither; T111, the register does not have
            ``group`` lanes; T150, ``size`` is no number of lanes.
    """
    what = "T.vmi.vbrc"
    builder, _ = _region(what)
    lanes = _lanes(what, size)
    if isinstance(value, (Register, RegisterPlace, RegisterVariable)):
        source = _vector(what, "the value", value)
        groups = 1 if group is None else group
        if source.lanes != groups or lanes % groups:
            raise TileError(f"{what}: {source.describe()} has not one lane for each of {groups} groups of {lanes} lanes",
                            code="T111", help="give group the number of lanes of the register")
        return Register(_repeated(builder, source.value, source.element, groups, lanes), source.element, lanes)
    if group is not None:
        raise TileError(f"{what}: group belongs to a register", code="T145", help="leave group out for a number")
    found = scalar(builder, value)
    if str(found.dtype) not in _LOADABLE:
        raise TileError(f"{what}: there are no registers of {found.dtype}", code="T110", help="cast the number: T.int32(x)")
    if found.constant is not None:
        return Register(_constant(builder, found.dtype, lanes, found.constant), found.dtype, lanes)
    return Register(_spread(builder, _number_of(builder, found), found.dtype, lanes), found.dtype, lanes)


def _number_of(builder: Builder, value: Expr) -> SSAValue:
    return value.ssa(builder) if isinstance(value.kind, DType) else builder.cast(value, value.dtype).ssa(builder)


def vci(base: object, *, size: int, order: Literal["ASC", "DESC"] | None = None) -> Any:
    """Return a register with the numbers ``base, base + 1, ...``, or ``base, base - 1, ...`` for ``order="DESC"``.

    Example: ``T.vmi.vci(T.int32(0), size=64)``

    Raises:
        TileError: as ``T.vmi.vbrc``; T145, there is no such order.
    """
    what = "T.vmi.vci"
    builder, _ = _region(what)
    if order not in (None, "ASC", "DESC"):
        raise TileError(f"{what}: there is no order {order!r}", code="T145", help='the orders are "ASC" and "DESC"')
    start = vbrc(base, size=size)
    assert isinstance(start, Register)
    kind = register_type(start.element, start.lanes)
    steps = [float(lane) if start.element.is_float else lane for lane in range(start.lanes)]
    ramp = _constants(builder, kind, steps)
    name = MLIR["sub" if order == "DESC" else "add"][0 if start.element.is_float else 1]
    return Register(_apply(builder, name, [start.value, ramp], kind), start.element, start.lanes)


def vintlv(lhs: object, rhs: object, mask: object, *, pmode: str | None = None) -> Any:
    """Interleave the lanes of two registers; returns the first and the second half as two registers.

    Example: ``low, high = T.vmi.vintlv(a, b, mask)``

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, T111, the operands differ in type or lanes; T190, ``pmode``
            is ``"merge"``.
    """
    return _rearranged("T.vmi.vintlv", lhs, rhs, mask, pmode, lambda lanes: [
        [lane // 2 + lanes * (lane % 2) for lane in range(half * lanes, (half + 1) * lanes)] for half in (0, 1)])


def vdintlv(lhs: object, rhs: object, mask: object, *, pmode: str | None = None) -> Any:
    """Separate the even and the odd elements of two registers that follow one another, the inverse of ``T.vmi.vintlv``.

    Example: ``even, odd = T.vmi.vdintlv(a, b, mask)``

    Raises:
        TileError: as ``T.vmi.vintlv``.
    """
    return _rearranged("T.vmi.vdintlv", lhs, rhs, mask, pmode,
                       lambda lanes: [list(range(odd, 2 * lanes, 2)) for odd in (0, 1)])


def _rearranged(what: str, lhs: object, rhs: object, mask: object, pmode: str | None,
                orders: Callable[[int], list[list[int]]]) -> tuple[Register, ...]:
    builder, _ = _region(what)
    _only_zero(what, pmode)
    one, other = _vector(what, "the first operand", lhs), _vector(what, "the second operand", rhs)
    _alike(what, one, other)
    chosen = _mask(what, mask, one.lanes, needed=True)
    return tuple(Register(_selected(builder, _shuffled(builder, one.value, other.value, order, one.element), chosen,
                                    one.element, one.lanes), one.element, one.lanes) for order in orders(one.lanes))


# --- comparisons and choices -------------------------------------------------------------------------------------------------


def vcmp(lhs: object, rhs: object, seed: object, cmp: str, *, pmode: str | None = None) -> Any:
    """Return the mask of the lanes that ``seed`` selects and in which the comparison holds.

    Example: ``T.vmi.vcmp(a, b, mask, "lt")``

    Args:
        lhs, rhs: the registers.
        seed: the mask.
        cmp: ``"eq"``, ``"ne"``, ``"lt"``, ``"le"``, ``"gt"`` or ``"ge"``; for floats also with ``o`` before it (``"olt"``).
        pmode: must be ``"zero"``.

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, T111, the operands differ in type or lanes; T145, there is
            no such comparison; T190, ``pmode`` is ``"merge"``.
    """
    what = "T.vmi.vcmp"
    builder, _ = _region(what)
    one, other = _vector(what, "the first operand", lhs), _vector(what, "the second operand", rhs)
    _alike(what, one, other)
    return _compared(builder, what, one, other.value, seed, cmp, pmode)


def vcmps(source: object, scalar: object, seed: object, cmp: str, *, pmode: str | None = None) -> Any:
    """Return the mask of the lanes that ``seed`` selects and whose comparison with a number holds.

    Example: ``T.vmi.vcmps(a, T.float32(0), mask, "gt")``

    Raises:
        TileError: as ``T.vmi.vcmp``.
    """
    what = "T.vmi.vcmps"
    builder, _ = _region(what)
    one = _vector(what, "the first operand", source)
    other = _number(builder, what, "the number", scalar, one.element, one.lanes)
    return _compared(builder, what, one, other, seed, cmp, pmode)


def _compared(builder: Builder, what: str, one: Register, other: SSAValue, seed: object, cmp: str, pmode: str | None
              ) -> Register:
    _only_zero(what, pmode)
    chosen = _mask(what, seed, one.lanes, needed=True)
    assert chosen is not None
    allowed = (*_COMPARISONS, *(_ORDERED if one.element.is_float else ()))
    if cmp not in allowed:
        raise TileError(f"{what}: there is no comparison {cmp!r} of {one.element}", code="T145",
                        help=f"the comparisons are {', '.join(allowed)}")
    name = cmp.removeprefix("o") if cmp in _ORDERED else cmp
    made: Operation
    if one.element.is_float:  # NaN is unequal to everything, and no order holds for it
        made = arith.CmpfOp(one.value, other, "une" if cmp == "ne" else f"o{name}")
    else:
        signed = "" if name in ("eq", "ne") else "s" if one.element.is_signed else "u"
        made = arith.CmpiOp(one.value, other, signed + name)
    made = _OPS[made.name].create(operands=made.operands, result_types=[masks(one.lanes)], properties=made.properties)
    found = builder.discardable(made).results[0]
    both = _apply(builder, "arith.andi", [found, chosen.value], masks(one.lanes))
    return Register(both, BOOL, one.lanes)


def vsel(mask: object, true_value: object, false_value: object, *, pmode: str | None = None) -> Any:
    """Return the lanes of ``true_value`` that the mask selects, and the other lanes of ``false_value``.

    Example: ``T.vmi.vsel(mask, a, b)``

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, T111, the operands differ in type or lanes.
    """
    what = "T.vmi.vsel"
    builder, _ = _region(what)
    one, other = _vector(what, "the first value", true_value), _vector(what, "the second value", false_value)
    _alike(what, one, other)
    chosen = _mask(what, mask, one.lanes, needed=True)
    assert chosen is not None
    made = _apply(builder, "arith.select", [chosen.value, one.value, other.value], register_type(one.element, one.lanes))
    return Register(made, one.element, one.lanes)


# --- reductions --------------------------------------------------------------------------------------------------------------


def vcadd(source: object, mask: object, *, group: int | None = None, pmode: str | None = None, reassoc: bool | None = None
          ) -> Any:
    """Return a register of one lane with the sum of the lanes that the mask selects.

    Example: ``T.vmi.vcadd(x, mask, reassoc=True)``

    Args:
        source: the register.
        mask: the mask.
        group: divides the lanes into this number of groups (1, 2, 4 or 8), and returns a lane with the sum of each.
        pmode: must be ``"zero"``.
        reassoc: must be given for floats: whether the sum may be computed in any order. The order here is pairwise.

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, T111, T145, T150, an argument does not fit.
    """
    what = "T.vmi.vcadd"
    one = _vector(what, "the source", source)
    if reassoc is None and one.element.is_float:
        raise TileError(f"{what} of floats takes reassoc", code="T145", help="write reassoc=True")
    return _reduced(what, "add", one, mask, group, pmode)


def vcmax(source: object, mask: object, *, group: int | None = None, pmode: str | None = None) -> Any:
    """Return a register of one lane with the largest of the lanes that the mask selects; with ``group``, one for each group.

    Example: ``T.vmi.vcmax(x, mask)``

    Raises:
        TileError: as ``T.vmi.vcadd``.
    """
    return _reduced("T.vmi.vcmax", "max", _vector("T.vmi.vcmax", "the source", source), mask, group, pmode)


def vcmin(source: object, mask: object, *, group: int | None = None, pmode: str | None = None) -> Any:
    """Return a register of one lane with the smallest of the lanes that the mask selects; with ``group``, one for each group.

    Example: ``T.vmi.vcmin(x, mask)``

    Raises:
        TileError: as ``T.vmi.vcadd``.
    """
    return _reduced("T.vmi.vcmin", "min", _vector("T.vmi.vcmin", "the source", source), mask, group, pmode)


_KINDS = {"add": ("ADD", "ADD", "ADD"), "max": ("MAXIMUMF", "MAXSI", "MAXUI"), "min": ("MINIMUMF", "MINSI", "MINUI")}


def _reduced(what: str, how: str, one: Register, mask: object, group: int | None, pmode: str | None) -> Register:
    builder, _ = _region(what)
    _only_zero(what, pmode)
    if group not in (None, 1, 2, 4, 8) or one.lanes % (group or 1):
        raise TileError(f"{what}: {group!r} is no number of groups of {one.lanes} lanes", code="T150",
                        help="give 1, 2, 4 or 8 groups")
    groups, element = group or 1, one.element
    if str(element) == "bfloat16" or element.bits < (8 if how == "add" else 16) or str(element).startswith("float8"):
        raise TileError(f"{what} does not work on {element}", code="T110", help="convert the register with T.vmi.vcvt")
    chosen = _mask(what, mask, one.lanes, needed=True)
    assert chosen is not None
    neutral = _neutral(how, element)
    kept = _apply(builder, "arith.select", [chosen.value, one.value, _constant(builder, element, one.lanes, neutral)],
                  register_type(element, one.lanes))
    plain = register_type(element, 1).element_type
    rows = builder.discardable(ShapeCastOp(kept, VectorType(plain, [groups, one.lanes // groups])))
    flag = _KINDS[how][0 if element.is_float else 1 if element.is_signed else 2]
    made = MultiDimReductionOp(CombiningKindAttr(CombiningKindFlag[flag]), rows.results[0],
                               _constant(builder, element, groups, neutral), [1])
    return Register(builder.discardable(made).results[0], element, groups)


def _neutral(how: str, element: DType) -> float:
    if how == "add":
        return 0
    if element.is_float:
        return -math.inf if how == "max" else math.inf
    high = (1 << (element.bits - element.is_signed)) - 1
    low = -high - 1 if element.is_signed else 0
    return low if how == "max" else high


# --- conversions -------------------------------------------------------------------------------------------------------------


def vcvt(source: object, to_dtype: ElementType | None = None, mask: None = None, *, rounding: str | None = None,
         saturate: str | None = None, pmode: str | None = None) -> Any:
    """Return a register converted to another element type; the number of lanes stays.

    Example: ``T.vmi.vcvt(x, "float16")``

    Args:
        source: the register.
        to_dtype: the element type.
        mask: not supported.
        rounding: ``"R"`` (to nearest, ties to even), ``"A"`` (to nearest, ties away from zero) or ``"Z"`` (towards zero).
            Between floats the default is ``"R"``; from floats to integers it must be given.
        saturate: ``"SAT"`` or ``"NOSAT"``: whether numbers that the type cannot represent become the nearest number that it
            can. It must be given for integers that become narrower. Floats that become integers always saturate.
        pmode: must be ``"zero"``.

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, there is no such conversion; T145, an argument is missing or
            wrong; T190, an argument that is not supported.
    """
    what = "T.vmi.vcvt"
    builder, _ = _region(what)
    _only_zero(what, pmode)
    if mask is not None:
        _refuse(what, "a mask is not supported", "leave it out: T.vmi.vsel or the store chooses the lanes")
    if to_dtype is None:
        raise TileError(f"{what} takes an element type", code="T145", help='write T.vmi.vcvt(x, "float16")')
    one = _vector(what, "the source", source)
    target = _pto_type(what, to_dtype)
    if str(target) not in _LOADABLE:
        raise TileError(f"{what}: there are no registers of {target}", code="T110",
                        help=f"the element types are {', '.join(_LOADABLE)}")
    mode = _rounding_of(what, one.element, target, rounding)
    if saturate not in (None, "SAT", "NOSAT"):
        raise TileError(f"{what}: there is no saturate={saturate!r}", code="T145", help='write "SAT" or "NOSAT"')
    narrows = one.element.is_integer and target.is_integer and target.bits < one.element.bits
    if narrows and saturate is None:
        raise TileError(f"{what} from {one.element} to {target} takes saturate", code="T145",
                        help='write saturate="SAT" or "NOSAT"')
    return Register(_converted(builder, one, target, mode, saturate == "SAT"), target, one.lanes)


def _pto_type(what: str, spelling: ElementType) -> DType:
    """The element type of a name; ``si8`` to ``si64`` are PTO's names of the signed integers."""
    name = f"int{spelling[2:]}" if isinstance(spelling, str) and spelling in ("si8", "si16", "si32") else spelling
    return element_type(name, what)


def _rounding_of(what: str, source: DType, target: DType, rounding: str | None) -> str:
    if rounding is None:
        if source.is_float and target.is_integer:
            raise TileError(f"{what} from {source} to {target} takes rounding", code="T145",
                            help='write rounding="R" (to nearest) or "Z" (towards zero)')
        return "rint"
    if rounding == "H":
        _refuse(what, 'rounding="H" is not supported', 'write "R", "A" or "Z"')
    if rounding not in _ROUNDING:
        raise TileError(f"{what}: there is no rounding {rounding!r}", code="T145", help='the modes are "R", "A" and "Z"')
    return _ROUNDING[rounding]


def _converted(builder: Builder, one: Register, target: DType, mode: str, saturates: bool) -> SSAValue:
    """Emits the conversion of a register to another element type."""
    source, kind = one.element, register_type(target, one.lanes)
    stated: dict[str, Attribute] = {"round_mode": RoundModeAttr(mode), "enable_saturate": BoolAttr.from_bool(saturates)}
    if source == target:
        return one.value
    if source.is_float and target.is_float:
        if target.bits > source.bits:
            return _apply(builder, "arith.extf", [one.value], kind)
        if target.bits == source.bits:  # f16 and bf16, by way of f32
            wide = Register(_apply(builder, "arith.extf", [one.value], register_type(dtype("float32"), one.lanes)),
                            dtype("float32"), one.lanes)
            return _converted(builder, wide, target, mode, saturates)
        return _apply(builder, "arith.truncf", [one.value], kind, stated)
    if source.is_float:
        return _apply(builder, "arith.fptosi" if target.is_signed else "arith.fptoui", [one.value], kind, stated)
    if target.is_float:
        return _apply(builder, "arith.sitofp" if source.is_signed else "arith.uitofp", [one.value], kind, {
            "round_mode": RoundModeAttr(mode)})
    value = _clamped(builder, one.value, source, target, one.lanes) if saturates else one.value
    if target.bits > source.bits:
        return _apply(builder, "arith.extsi" if source.is_signed else "arith.extui", [value], kind)
    return value if target.bits == source.bits else _apply(builder, "arith.trunci", [value], kind)


def _clamped(builder: Builder, value: SSAValue, source: DType, target: DType, lanes: int) -> SSAValue:
    """Limits integers to the range of another integer type, as far as the source can exceed it."""
    kind, column = register_type(source, lanes), 1 if source.is_signed else 2
    high = (1 << (target.bits - target.is_signed)) - 1
    low = -high - 1 if target.is_signed else 0
    most = (1 << (source.bits - source.is_signed)) - 1
    if high < most:
        value = _apply(builder, MLIR["min"][column], [value, _constant(builder, source, lanes, high)], kind)
    if source.is_signed and low > -most - 1:
        value = _apply(builder, MLIR["max"][column], [value, _constant(builder, source, lanes, low)], kind)
    return value


def vinterpret_cast(source: object, to_dtype: ElementType | None = None) -> Any:
    """Return the bits of a register as another element type; with another width, the number of lanes changes.

    Example: ``T.vmi.vinterpret_cast(x, "int32")``

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, there is no such type; T145, the type is missing; T150, the
            result would have no valid number of lanes.
    """
    what = "T.vmi.vinterpret_cast"
    builder, _ = _region(what)
    if to_dtype is None:
        raise TileError(f"{what} takes an element type", code="T145", help='write T.vmi.vinterpret_cast(x, "int32")')
    one, target = _vector(what, "the source", source), _pto_type(what, to_dtype)
    lanes = _lanes(what, one.lanes * one.element.bits // target.bits)
    kind = register_type(target, lanes)
    if one.value.type == kind:
        return Register(one.value, target, lanes)
    return Register(builder.discardable(vector.BitcastOp(one.value, kind)).results[0], target, lanes)


def vunzip(source: object, to_dtype: ElementType | None = None) -> Any:
    """Return the low and the high half of each element as two registers with as many lanes.

    Example: ``low, high = T.vmi.vunzip(x)``

    Args:
        source: a register with elements of 16 or 32 bits.
        to_dtype: the element type of the halves; by default the unsigned integer.

    Raises:
        TileError: T160, the call is outside of ``T.SimdVF``; T110, a type does not fit.
    """
    what = "T.vmi.vunzip"
    builder, _ = _region(what)
    one = _vector(what, "the source", source)
    if one.element.bits not in (16, 32):
        raise TileError(f"{what}: {one.describe()} has no halves of 8 or 16 bits", code="T110", help="give 16 or 32 bits")
    target = _halved(what, to_dtype, one.element.bits // 2, one.element.bits // 2)
    whole = dtype(f"ui{one.element.bits}")
    bits = _bits(builder, one.value, whole, one.lanes)
    shift = _constant(builder, whole, one.lanes, one.element.bits // 2)
    upper = _apply(builder, "arith.shrui", [bits, shift], register_type(whole, one.lanes))
    half = dtype(f"ui{one.element.bits // 2}")
    parts = [_apply(builder, "arith.trunci", [value], register_type(half, one.lanes)) for value in (bits, upper)]
    return tuple(Register(_bits(builder, part, target, one.lanes), target, one.lanes) for part in parts)


def vzip(low: object, high: object, to_dtype: ElementType | None = None) -> Any:
    """Return a register whose elements have the low and the high halves that two registers hold, the inverse of
    ``T.vmi.vunzip``.

    Example: ``T.vmi.vzip(low, high)``

    Raises:
        TileError: as ``T.vmi.vunzip``.
    """
    what = "T.vmi.vzip"
    builder, _ = _region(what)
    one, other = _vector(what, "the first operand", low), _vector(what, "the second operand", high)
    _alike(what, one, other)
    if one.element.bits not in (8, 16):
        raise TileError(f"{what}: {one.describe()} holds no halves of 16 or 32 bits", code="T110", help="give 8 or 16 bits")
    target = _halved(what, to_dtype, 2 * one.element.bits, 2 * one.element.bits)
    whole, half = dtype(f"ui{2 * one.element.bits}"), dtype(f"ui{one.element.bits}")
    kind = register_type(whole, one.lanes)
    parts = [_apply(builder, "arith.extui", [_bits(builder, value.value, half, one.lanes)], kind) for value in (one, other)]
    upper = _apply(builder, "arith.shli", [parts[1], _constant(builder, whole, one.lanes, one.element.bits)], kind)
    joined = _apply(builder, "arith.ori", [parts[0], upper], kind)
    return Register(_bits(builder, joined, target, one.lanes), target, one.lanes)


def _halved(what: str, spelling: ElementType | None, bits: int, default: int) -> DType:
    found = dtype(f"ui{default}") if spelling is None else _pto_type(what, spelling)
    if found.bits != bits:
        raise TileError(f"{what}: {found} has {found.bits} bits, not {bits}", code="T110", help=f"give a type of {bits} bits")
    return found


def _bits(builder: Builder, value: SSAValue, element: DType, lanes: int) -> SSAValue:
    """The bits of a register as another element type of the same width."""
    kind = register_type(element, lanes)
    return value if value.type == kind else builder.discardable(vector.BitcastOp(value, kind)).results[0]


def vmull(a: object, b: object, mask: object, *, pmode: str | None = None) -> Any:
    """Return the low and the high 32 bits of the products of two registers of 32-bit integers, as two registers.

    Example: ``low, high = T.vmi.vmull(a, b, mask)``

    Raises:
        TileError: as ``T.vmi.vintlv``.
    """
    what = "T.vmi.vmull"
    builder, _ = _region(what)
    _only_zero(what, pmode)
    one, other = _vector(what, "the first operand", a), _vector(what, "the second operand", b)
    _alike(what, one, other)
    if one.element.bits != 32 or one.element.is_float:
        raise TileError(f"{what} works on integers of 32 bits, not on {one.describe()}", code="T110",
                        help="convert the registers with T.vmi.vcvt")
    chosen, kind = _mask(what, mask, one.lanes, needed=True), register_type(one.element, one.lanes)
    made = _OPS["arith.mulsi_extended" if one.element.is_signed else "arith.mului_extended"].create(
        operands=[one.value, other.value], result_types=[kind, kind])
    builder.discardable(made)
    return tuple(Register(_selected(builder, part, chosen, one.element, one.lanes), one.element, one.lanes)
                 for part in made.results)


# --- operations lane by lane -------------------------------------------------------------------------------------------------


def _compute(entry: RegisterOperation, given: Sequence[object], mask: object, pmode: str | None) -> Register:
    """Emits an operation of the table of register operations and returns its result."""
    what = f"T.vmi.{entry.name}"
    builder, _ = _region(what)
    _only_zero(what, pmode)
    registers = {name: _vector(what, f"the operand {name}", value)
                 for name, value in zip(entry.operands, given, strict=True) if name not in entry.numbers}
    first = next(iter(registers.values()))
    _alike(what, *registers.values())
    element, lanes, kind = first.element, first.lanes, register_type(first.element, first.lanes)
    if element not in entry.elements:
        raise TileError(f"{what} does not work on {element}", code="T110",
                        help=f"it works on {', '.join(entry.elements)}: convert the register with T.vmi.vcvt")
    chosen = _mask(what, mask, lanes, needed=entry.needs_mask)
    known: dict[str, SSAValue] = {name: register.value for name, register in registers.items()}
    for name, value in zip(entry.operands, given, strict=True):
        if name in entry.numbers:
            known[name] = _number(builder, what, name, value, element, lanes)
    for step in entry.steps:
        operands = [known[part] if isinstance(part, str) else _constant(builder, element, lanes, part)
                    for part in step.operands]
        name = MLIR[step.op][0 if element.is_float else 1 if element.is_signed else 2]
        if step.op == "neg" and not element.is_float:
            name, operands = MLIR["sub"][1], [_constant(builder, element, lanes, 0), *operands]
        if step.op == "fma" and not element.is_float:
            name, operands = MLIR["add"][1], [_apply(builder, MLIR["mul"][1], operands[:2], kind), operands[2]]
        known[step.target] = _apply(builder, name, operands, kind)
    return Register(_selected(builder, known["dst"], chosen, element, lanes), element, lanes)


def _function(entry: RegisterOperation) -> Callable[..., Any]:
    """Returns the function of ``T.vmi`` for an entry of the table."""
    def call(*arguments: object, **keywords: object) -> object:
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        given = bound.arguments
        return _compute(entry, [given[name] for name in entry.operands], given["mask"], given["pmode"])

    plain, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([
        *(inspect.Parameter(name, plain, annotation="object") for name in entry.operands),
        inspect.Parameter("mask", plain, default=inspect.Parameter.empty if entry.needs_mask else None, annotation="object"),
        inspect.Parameter("pmode", named, default=None, annotation="str | None")], return_annotation="Any")
    call.__name__ = call.__qualname__ = entry.name
    call.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect.signature, help() and messages
    arguments = ", ".join((*entry.operands, "mask"))
    kinds = ", ".join(entry.elements)
    call.__doc__ = (f"{entry.doc} Lanes that the mask does not select become 0.\n\n    Example:"
                    f" ``T.vmi.{entry.name}({arguments})``\n\n    The element types are {kinds}."
                    "\n\n    Raises:\n        TileError: T160, the call is outside of"
                    " ``T.SimdVF``; T110, T111, an operand has another type or number of lanes;\n            T145, a mask is"
                    " missing; T190, ``pmode`` is ``\"merge\"``.\n    ")
    return call


for _entry in REGISTER_OPERATIONS.values():
    globals()[_entry.name] = _function(_entry)

_REFUSED = {
    "vselr": "AscendNPU-IR has no op that permutes the lanes of a register by indices: T.vmi.vgather reads UB by index",
    "vdhist": "AscendNPU-IR has no histogram of a register: count with T.vmi.vcmps and T.vmi.vcadd",
    "vchist": "AscendNPU-IR has no histogram of a register: count with T.vmi.vcmps and T.vmi.vcadd",
    "vgatherb": "the unit of its offsets is not documented: T.vmi.vgather counts in elements",
}


def _refusing(name: str, advice: str) -> Callable[..., NoReturn]:
    def call(*_arguments: object, **_keywords: object) -> NoReturn:
        _refuse(f"T.vmi.{name}", "it is not supported", advice)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Is not supported: {advice}."
    return call


for _name, _advice in _REFUSED.items():
    globals()[_name] = _refusing(_name, _advice)


def inside_vmi() -> bool:
    """Return whether the statement is inside of ``with T.SimdVF():``.

    Example: ``T.vmi.inside_vmi()``
    """
    return Builder.running("T.vmi.inside_vmi").region is not None


def __getattr__(name: str) -> Any:
    """Raises T140 for a name that ``T.vmi`` does not have. Type checkers take the names of the table from this declaration."""
    if name.startswith("__"):
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    raise unknown(f"vmi.{name}", sorted(NAMES))


NAMES = (*REGISTER_OPERATIONS, *_REFUSED, "alloc_local", "alloc_var", "create_mask", "inside_vmi", "mask", "vbrc", "vcadd",
         "vci", "vcmax", "vcmin", "vcmp", "vcmps", "vcvt", "vdintlv", "vgather", "vinterpret_cast", "vintlv", "vload", "vmull",
         "vreg", "vscatter", "vsel", "vstore", "vunzip", "vzip")
"""The names of ``T.vmi``."""
for _name in NAMES:
    globals()[_name] = dispatched(f"vmi.{_name}", door(globals()[_name]), note_gpu_arguments)
__all__ = [*sorted(NAMES)]
