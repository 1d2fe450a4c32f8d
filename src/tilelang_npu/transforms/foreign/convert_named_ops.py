"""Converts named operations of linalg and HFusion on tensors or memrefs to the corresponding HIVM operations.

The mapping is that of AscendNPU-IR's pass HFusionToHIVM (docs/hivm.md#named-ops). Operations without a corresponding HIVM
operation are refused: the toolchain decomposes them before this conversion. An HIVM reduction keeps the reduced axes with size
1 and does not read its destination. So the pass emits another operation that combines the result with the destination, unless
the destination is uninitialised. Runs before tensors are bufferised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, linalg, memref, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    ShapedType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.toolchain_arguments import kernels
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr
from tilelang_npu.transforms.infra.op_builder import float_type

_UNARY = {"exp": "vexp", "log": "vln", "abs": "vabs", "sqrt": "vsqrt", "rsqrt": "vrsqrt", "rec": "vrec", "reciprocal": "vrec",
          "relu": "vrelu", "vnot": "vnot", "tanh": "vtanh", "sin": "vsin", "cos": "vcos", "absi": "vabs", "erf": "verf"}
_BINARY: dict[str, tuple[str, dict[str, Any]]] = {
    "add": ("vadd", {}), "sub": ("vsub", {}), "mul": ("vmul", {}), "div": ("vdiv", {}),
    "div_unsigned": ("vdiv", {"isSigned": False}), "max_signed": ("vmax", {}), "min_signed": ("vmin", {}),
    "max_unsigned": ("vmax", {"is_signed": False}),
    "min_unsigned": ("vmin", {"is_signed": False}), "vor": ("vor", {}), "vand": ("vand", {}), "vxor": ("vxor", {}),
    "minf": ("vmin", {}), "maxf": ("vmax", {}), "powi": ("vpow", {}), "shli": ("vshl", {}), "shrsi": ("vshr", {}),
    "shrui": ("vshr", {"is_signed": False}), "divfhp": ("vdiv", {"isHP": True}), "mod": ("vmod", {}), "modui": ("vmodui", {})}
_NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (_UNARY[name], {}) for name in ("exp", "log", "abs", "sqrt", "rsqrt", "reciprocal", "tanh", "erf")},
    **{name: _BINARY[name] for name in ("add", "sub", "mul", "div", "div_unsigned")}, "max": ("vmax", {}), "min": ("vmin", {})}
"""For linalg operations with one fixed function, the HIVM operation and its attributes; other functions are an attribute of
``linalg.elemwise_unary`` and ``linalg.elemwise_binary``."""
_REDUCE = {"arith.addf": ("sum", "vadd"), "arith.addi": ("sum", "vadd"), "arith.mulf": ("prod", "vmul"),
           "arith.muli": ("prod", "vmul"), "arith.maximumf": ("max", "vmax"), "arith.maxnumf": ("max", "vmax"),
           "arith.maxsi": ("max", "vmax"), "arith.minimumf": ("min", "vmin"), "arith.minnumf": ("min", "vmin"),
           "arith.minsi": ("min", "vmin"), "arith.andi": ("andi", "vand"), "arith.ori": ("ori", "vor"),
           "arith.xori": ("xori", "vxor")}
_PRODUCTS = {"matmul": (False, False), "matmul_transpose_a": (True, False), "matmul_transpose_b": (False, True)}
_PRODUCTS |= {f"batch_{name}": turned for name, turned in _PRODUCTS.items()}
_YIELD: type[Operation] = next(op for op in linalg.Linalg.operations if op.name == "linalg.yield")


def _enum_property(op: Operation, name: str, default: str) -> str:
    found = op.properties.get(name)
    return found.data if isinstance(found, EnumAttr) else default


class _Converter:
    """Converts the ops of one module."""

    def __init__(self) -> None:
        self.rewriter = Rewriter()

    def convert(self, op: Operation) -> None:
        """Replace one op, if it is a named one.

        Raises:
            TileError: T501 HIVM has no op for it.
        """
        if op.dialect_name() not in ("linalg", "hfusion") or isinstance(op, _YIELD):
            return
        made = self._hivm_ops(op)
        if made is None:
            raise refuse(op, f"{op.name} has no corresponding HIVM operation", "T501",
                         help="decompose it with AscendNPU-IR first: bishengir-opt -hfusion-normalize-ops")
        for one in made:
            one.location = op.location
        results: list[SSAValue | None] = list(made[-1].results) if op.results else []
        self.rewriter.replace_op(op, made, results)

    def _hivm_ops(self, op: Operation) -> list[Operation] | None:
        kind = op.name.partition(".")[2]
        ins, outs = self._operands_of(op)
        if kind == "elemwise_unary":
            name = _enum_property(op, "fun", "exp" if op.name.startswith("linalg") else "sqrt")
            if name == "negf":
                return self._negation(ins[0], outs)
            return [hivm.elementwise_op(_UNARY[name])(ins, outs)] if name in _UNARY else None
        if op.name == "linalg.negf":
            return self._negation(ins[0], outs)
        if op.name.startswith("linalg") and kind in _NAMED:
            name, facts = _NAMED[kind]
            return [hivm.elementwise_op(name)(ins, outs, **facts)]
        if kind == "elemwise_binary":
            mapped = _BINARY.get(_enum_property(op, "fun", "add" if op.name.startswith("linalg") else "vand"))
            return None if mapped is None else [hivm.elementwise_op(mapped[0])(ins, outs, **mapped[1])]
        if kind == "compare":
            mode = _enum_property(op, "compare_fn", "veq")
            signed: dict[str, Any] = {} if not mode.startswith("vu") else {"is_signed": False}
            return [hivm.elementwise_op("vcmp")(ins, outs, compare_mode=mode.removeprefix("vu").removeprefix("v"), **signed)]
        if kind == "select":
            return [hivm.elementwise_op("vsel")(ins, outs)]
        if kind == "cast":
            return [hivm.elementwise_op("vcast")(ins, outs, round_mode=_enum_property(op, "round_mode", "rint"),
                                                 cast=_enum_property(op, "cast", "cast_signed"))]
        if kind == "fill":
            return [hivm.VBrcOp(ins[0], outs[0])]
        if kind == "transpose":
            return [hivm.VTransposeOp(ins[0], outs[0], _axes_of(op, "permutation"))]
        if kind == "broadcast":
            return self._convert_broadcast(op, ins[0], outs[0])
        if kind == "reduce":
            return self._convert_reduce(op, ins, outs)
        if kind in _PRODUCTS:
            return self._convert_product(op, ins, outs)
        if kind == "arange":
            strides = ins[1:] if getattr(op, "offset", None) is not None else ins
            return [hivm.VArangeOp(outs[0], strides, offset=getattr(op, "offset", None))]
        if op.name == "hfusion.load":
            return [hivm.LoadOp(ins[0], outs[0])]
        if op.name == "hfusion.store":
            atomic = _enum_property(op, "atomic_kind", "none")
            return [hivm.StoreOp(ins[0], outs[0], atomic=None if atomic == "none" else atomic)]
        return [hivm.CopyOp(ins[0], outs[0])] if op.name == "linalg.copy" else None

    @staticmethod
    def _operands_of(op: Operation) -> tuple[list[SSAValue], list[SSAValue]]:
        """Returns the operands that an op reads and those that it writes: its last operand, if its class does not say."""
        if isinstance(op, hivm.StructuredOp):
            return list(op.ins()), list(op.outs())
        if hasattr(op, "src") and hasattr(op, "dst"):
            return [*op.src], [*op.dst]
        return list(op.operands[:-1]), [op.operands[-1]]

    @staticmethod
    def _negation(source: SSAValue, outs: list[SSAValue]) -> list[Operation]:
        element = _element_type(source)
        minus = arith.ConstantOp(IntegerAttr(-1, element) if isinstance(element, IntegerType)
                                 else FloatAttr(-1.0, float_type(element)))
        return [minus, hivm.elementwise_op("vmul")([source, minus.result], outs)]

    def _convert_product(self, op: Operation, ins: list[SSAValue], outs: list[SSAValue]) -> list[Operation]:
        """A product: the matrix unit starts from zero, or adds to its own accumulator, so the destination must be zero or
        uninitialised."""
        a, b = ins
        turned_a, turned_b = _PRODUCTS[op.name.partition(".")[2]]
        if not isinstance(outs[0].type, TensorType) or any(size < 0 for value in (a, b) for size in _shape_of(value)):
            raise refuse(op, f"{op.name} must have tensor operands of constant sizes", "T501", help="write hivm.hir.mmadL1")
        if not _starts_from_zero(outs[0]):
            raise refuse(op, f"the destination of {op.name} must be a tensor of zeros or tensor.empty", "T501",
                         help="write the product to tensor.empty, and add it to the present destination in a separate "
                              "operation")
        m, k = _shape_of(a)[-2:][::-1] if turned_a else _shape_of(a)[-2:]
        n = _shape_of(b)[-2 if turned_b else -1]
        room = tensor.EmptyOp([], outs[0].type)
        start = arith.ConstantOp(IntegerAttr(1, 1))
        sizes = [arith.ConstantOp(IntegerAttr(size, IndexType())) for size in (m, k, n)]
        unit = hivm.MmadL1Op if len(_shape_of(a)) == 2 else hivm.BatchMmadL1Op
        made = unit(a, b, room.results[0], start.result, *(size.result for size in sizes), a_transpose=turned_a,
                             b_transpose=turned_b)
        return [room, start, *sizes, made]

    def _convert_broadcast(self, op: Operation, source: SSAValue, out: SSAValue) -> list[Operation]:
        axes = _axes_of(op, "dimensions")
        widened = _with_unit_axes(source, axes)
        return [widened, hivm.VBrcOp(widened.results[0], out, dims=axes)]

    def _convert_reduce(self, op: Operation, ins: list[SSAValue], outs: list[SSAValue]) -> list[Operation] | None:
        """A reduction: into new memory with axes of size 1; then drop the axes, and combine with the destination."""
        body = op.regions[0].block
        first = body.first_op
        known = _REDUCE.get(first.name) if first is not None else None
        if known is None or len(ins) != 1 or len(list(body.ops)) != 2:
            return None
        axes = _axes_of(op, "dimensions")
        shape = [1 if axis in axes else size for axis, size in enumerate(_shape_of(ins[0]))]
        if any(size < 0 for size in shape):
            raise refuse(op, "the input of this reduction has dynamic sizes", "T501", help="give it constant sizes")
        on_tensors = isinstance(ins[0].type, TensorType)
        groups = _reassociation(len(shape), axes)
        element = _element_type(outs[0])
        room: Operation = (tensor.EmptyOp([], TensorType(element, shape)) if on_tensors
                           else memref.AllocOp([], [], MemRefType(element, shape)))
        folded = hivm.VReduceOp(ins[0], room.results[0], known[0], dims=axes)
        whole = folded.results[0] if on_tensors else room.results[0]
        narrow_type = TensorType(element, _shape_of(outs[0])) if on_tensors else MemRefType(element, _shape_of(outs[0]))
        collapse = tensor.CollapseShapeOp if on_tensors else memref.CollapseShapeOp
        narrow = collapse.create(operands=[whole], result_types=[narrow_type], properties={"reassociation": groups})
        combined: Operation = (hivm.CopyOp(narrow.results[0], outs[0]) if _is_uninitialised(outs[0])
                               else hivm.elementwise_op(known[1])([narrow.results[0], outs[0]], outs))
        return [room, folded, narrow, combined]


def _starts_from_zero(value: SSAValue) -> bool:
    """Whether a tensor is uninitialised, or filled with zeros."""
    filled = value.owner
    if isinstance(filled, hivm.VBrcOp) and isinstance(filled.src.owner, arith.ConstantOp):
        number = filled.src.owner.value
        return isinstance(number, (FloatAttr, IntegerAttr)) and number.value.data == 0
    return _is_uninitialised(value)


def _is_uninitialised(value: SSAValue) -> bool:
    """Whether memory was made just to be written."""
    return isinstance(value.owner, tensor.EmptyOp)


def _element_type(value: SSAValue) -> Attribute:
    kind = value.type
    element: Attribute = kind.element_type if isinstance(kind, (MemRefType, TensorType)) else kind
    return element


def _shape_of(value: SSAValue) -> list[int]:
    kind = value.type
    assert isinstance(kind, ShapedType)
    return list(kind.get_shape())


def _axes_of(op: Operation, name: str) -> list[int]:
    found = op.properties.get(name) or op.attributes.get(name)
    assert isinstance(found, DenseArrayBase)
    return [int(axis) for axis in found.get_values()]


def _reassociation(rank: int, ones: list[int]) -> ArrayAttr[Attribute]:
    """Returns how the axes of a shape fold into those that are not in ``ones``: a unit axis joins the one before it, or else
    after it."""
    groups: list[list[int]] = []
    waiting: list[int] = []
    for axis in range(rank):
        if axis in ones and not groups:
            waiting.append(axis)
        elif axis in ones:
            groups[-1].append(axis)
        else:
            groups.append([*waiting, axis])
            waiting = []
    return ArrayAttr([ArrayAttr([IntegerAttr(axis, i64) for axis in group]) for group in groups])


def _with_unit_axes(source: SSAValue, axes: list[int]) -> Operation:
    """Returns the op that inserts axes of size 1 into the source."""
    shape = iter(_shape_of(source))
    rank = len(_shape_of(source)) + len(axes)
    wide = [1 if axis in axes else next(shape) for axis in range(rank)]
    properties: dict[str, Attribute] = {
        "reassociation": _reassociation(rank, axes), "static_output_shape": DenseArrayBase.from_list(i64, wide)}
    on_tensors = isinstance(source.type, TensorType)
    kind: Attribute = TensorType(_element_type(source), wide) if on_tensors else MemRefType(_element_type(source), wide)
    expand = tensor.ExpandShapeOp if on_tensors else memref.ExpandShapeOp
    return expand.create(operands=[source], result_types=[kind], properties=properties)


@dataclass(frozen=True)
class ConvertNamedOps(ModulePass):
    """Rewrites named operations of linalg and HFusion into the corresponding HIVM operations."""

    name = "convert-named-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        converter = _Converter()
        for function in kernels(op):
            for inner in list(function.walk()):
                if inner.parent is not None:
                    converter.convert(inner)
