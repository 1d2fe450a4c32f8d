"""Turn linalg's and HFusion's named ops into HIVM's, one for one, on tensors and on buffers.

The mapping is AscendNPU-IR's (HFusionToHIVM; docs/hivm.md#named-ops). What has no counterpart there is refused: the toolchain
takes it apart before. A reduction keeps its axes in HIVM, with size 1, and does not read where it writes: what is there is
combined with the result, unless it is nothing yet. Runs before tensors become buffers.
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

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr
from tilelang_npu.transforms.hivm.toolchain_arguments import kernels
from tilelang_npu.transforms.ir.locations import refuse

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
"""linalg's ops that are one function; the same as its ``elemwise_unary`` and ``elemwise_binary``."""
_REDUCE = {"arith.addf": ("sum", "vadd"), "arith.addi": ("sum", "vadd"), "arith.mulf": ("prod", "vmul"),
           "arith.muli": ("prod", "vmul"), "arith.maximumf": ("max", "vmax"), "arith.maxnumf": ("max", "vmax"),
           "arith.maxsi": ("max", "vmax"), "arith.minimumf": ("min", "vmin"), "arith.minnumf": ("min", "vmin"),
           "arith.minsi": ("min", "vmin"), "arith.andi": ("andi", "vand"), "arith.ori": ("ori", "vor"),
           "arith.xori": ("xori", "vxor")}
_PRODUCTS = {"matmul": (False, False), "matmul_transpose_a": (True, False), "matmul_transpose_b": (False, True)}
_PRODUCTS |= {f"batch_{name}": turned for name, turned in _PRODUCTS.items()}
_YIELD: Any = next(op for op in linalg.Linalg.operations if op.name == "linalg.yield")


def _word(op: Operation, name: str, default: str) -> str:
    found = op.properties.get(name)
    return found.data if isinstance(found, EnumAttr) else default


class _Converter:
    """Converts the ops of one module."""

    def __init__(self) -> None:
        self.rewriter = Rewriter()

    def convert(self, op: Operation) -> None:
        """Replace one op, where it is one of those that are named.

        Raises:
            TileError: T501 HIVM has no op for it.
        """
        if op.dialect_name() not in ("linalg", "hfusion") or isinstance(op, _YIELD):
            return
        made = self._made(op)
        if made is None:
            raise refuse(op, f"{op.name} has no counterpart in HIVM", "T501",
                         help="AscendNPU-IR takes it apart before it gets to HIVM: bishengir-opt -hfusion-normalize-ops")
        for one in made:
            one.location = op.location
        results: list[SSAValue | None] = list(made[-1].results) if op.results else []
        self.rewriter.replace_op(op, made, results)

    def _made(self, op: Operation) -> list[Operation] | None:
        kind = op.name.partition(".")[2]
        ins, outs = self._sides(op)
        if kind == "elemwise_unary":
            name = _word(op, "fun", "exp" if op.name.startswith("linalg") else "sqrt")
            if name == "negf":
                return self._negated(ins[0], outs)
            return [hivm.elementwise_op(_UNARY[name])(ins, outs)] if name in _UNARY else None
        if op.name == "linalg.negf":
            return self._negated(ins[0], outs)
        if op.name.startswith("linalg") and kind in _NAMED:
            name, facts = _NAMED[kind]
            return [hivm.elementwise_op(name)(ins, outs, **facts)]
        if kind == "elemwise_binary":
            mapped = _BINARY.get(_word(op, "fun", "add" if op.name.startswith("linalg") else "vand"))
            return None if mapped is None else [hivm.elementwise_op(mapped[0])(ins, outs, **mapped[1])]
        if kind == "compare":
            mode = _word(op, "compare_fn", "veq")
            signed: dict[str, Any] = {} if not mode.startswith("vu") else {"is_signed": False}
            return [hivm.elementwise_op("vcmp")(ins, outs, compare_mode=mode.removeprefix("vu").removeprefix("v"), **signed)]
        if kind == "select":
            return [hivm.elementwise_op("vsel")(ins, outs)]
        if kind == "cast":
            return [hivm.elementwise_op("vcast")(ins, outs, round_mode=_word(op, "round_mode", "rint"),
                                                 cast=_word(op, "cast", "cast_signed"))]
        if kind == "fill":
            return [hivm.VBrcOp(ins[0], outs[0])]
        if kind == "transpose":
            return [hivm.VTransposeOp(ins[0], outs[0], _axes(op, "permutation"))]
        if kind == "broadcast":
            return self._broadcast(op, ins[0], outs[0])
        if kind == "reduce":
            return self._reduce(op, ins, outs)
        if kind in _PRODUCTS:
            return self._product(op, ins, outs)
        if kind == "arange":
            strides = ins[1:] if getattr(op, "offset", None) is not None else ins
            return [hivm.VArangeOp(outs[0], strides, offset=getattr(op, "offset", None))]
        if op.name == "hfusion.load":
            return [hivm.LoadOp(ins[0], outs[0])]
        if op.name == "hfusion.store":
            atomic = _word(op, "atomic_kind", "none")
            return [hivm.StoreOp(ins[0], outs[0], atomic=None if atomic == "none" else atomic)]
        return [hivm.CopyOp(ins[0], outs[0])] if op.name == "linalg.copy" else None

    @staticmethod
    def _sides(op: Operation) -> tuple[list[SSAValue], list[SSAValue]]:
        """What an op reads and what it writes; its last operand, where the class does not say."""
        if isinstance(op, hivm.StructuredOp):
            return list(op.ins()), list(op.outs())
        if hasattr(op, "src") and hasattr(op, "dst"):
            return [*op.src], [*op.dst]
        return list(op.operands[:-1]), [op.operands[-1]]

    @staticmethod
    def _negated(source: SSAValue, outs: list[SSAValue]) -> list[Operation]:
        element = _element(source)
        minus = arith.ConstantOp(IntegerAttr(-1, element) if isinstance(element, IntegerType) else FloatAttr(-1.0, element))
        return [minus, hivm.elementwise_op("vmul")([source, minus.result], outs)]

    def _product(self, op: Operation, ins: list[SSAValue], outs: list[SSAValue]) -> list[Operation]:
        """The matrix unit starts from zero, or adds to its own accumulator: what is there must be the one or the other."""
        a, b = ins
        turned_a, turned_b = _PRODUCTS[op.name.partition(".")[2]]
        if not isinstance(outs[0].type, TensorType) or any(size < 0 for value in (a, b) for size in _shape(value)):
            raise refuse(op, f"{op.name} on buffers, or of open sizes", "T501", help="write hivm.hir.mmadL1")
        if not _starts_from_zero(outs[0]):
            raise refuse(op, f"{op.name} adds to a tensor that is not zero", "T501", help="add to it in an op behind")
        m, k = _shape(a)[-2:][::-1] if turned_a else _shape(a)[-2:]
        n = _shape(b)[-2 if turned_b else -1]
        room = tensor.EmptyOp([], outs[0].type)
        start = arith.ConstantOp(IntegerAttr(1, 1))
        sizes = [arith.ConstantOp(IntegerAttr(size, IndexType())) for size in (m, k, n)]
        unit = hivm.MmadL1Op if len(_shape(a)) == 2 else hivm.BatchMmadL1Op
        made = unit(a, b, room.results[0], start.result, *(size.result for size in sizes), a_transpose=turned_a,
                             b_transpose=turned_b)
        return [room, start, *sizes, made]

    def _broadcast(self, op: Operation, source: SSAValue, out: SSAValue) -> list[Operation]:
        axes = _axes(op, "dimensions")
        widened = _with_ones(source, axes)
        return [widened, hivm.VBrcOp(widened.results[0], out, dims=axes)]

    def _reduce(self, op: Operation, ins: list[SSAValue], outs: list[SSAValue]) -> list[Operation] | None:
        """Reduce into fresh memory of size 1, combine, and drop the axes."""
        body = op.regions[0].block
        first = body.first_op
        known = _REDUCE.get(first.name) if first is not None else None
        if known is None or len(ins) != 1 or len(list(body.ops)) != 2:
            return None
        axes = _axes(op, "dimensions")
        shape = [1 if axis in axes else size for axis, size in enumerate(_shape(ins[0]))]
        if any(size < 0 for size in shape):
            raise refuse(op, "a reduction of open sizes", "T501", help="give it constant sizes")
        on_tensors = isinstance(ins[0].type, TensorType)
        groups = _groups(len(shape), axes)
        element = _element(outs[0])
        room: Operation = (tensor.EmptyOp([], TensorType(element, shape)) if on_tensors
                           else memref.AllocOp([], [], MemRefType(element, shape)))
        folded = hivm.VReduceOp(ins[0], room.results[0], known[0], dims=axes)
        whole = folded.results[0] if on_tensors else room.results[0]
        narrow_type = TensorType(element, _shape(outs[0])) if on_tensors else MemRefType(element, _shape(outs[0]))
        collapse = tensor.CollapseShapeOp if on_tensors else memref.CollapseShapeOp
        narrow = collapse.create(operands=[whole], result_types=[narrow_type], properties={"reassociation": groups})
        combined: Operation = (hivm.CopyOp(narrow.results[0], outs[0]) if _is_nothing(outs[0])
                               else hivm.elementwise_op(known[1])([narrow.results[0], outs[0]], outs))
        return [room, folded, narrow, combined]


def _starts_from_zero(value: SSAValue) -> bool:
    """Whether a tensor is nothing yet, or filled with zeros."""
    filled = value.owner
    if isinstance(filled, hivm.VBrcOp) and isinstance(filled.src.owner, arith.ConstantOp):
        number = filled.src.owner.value
        return isinstance(number, (FloatAttr, IntegerAttr)) and number.value.data == 0
    return _is_nothing(value)


def _is_nothing(value: SSAValue) -> bool:
    """Whether memory was made just to be written."""
    return isinstance(value.owner, tensor.EmptyOp)


def _element(value: SSAValue) -> Any:
    kind = value.type
    return getattr(kind, "element_type", kind)


def _shape(value: SSAValue) -> list[int]:
    kind = value.type
    assert isinstance(kind, ShapedType)
    return list(kind.get_shape())


def _axes(op: Operation, name: str) -> list[int]:
    found = op.properties.get(name) or op.attributes.get(name)
    assert isinstance(found, DenseArrayBase)
    return [int(axis) for axis in found.get_values()]


def _groups(rank: int, ones: list[int]) -> ArrayAttr[Attribute]:
    """How the axes of a shape fold into those that are not ``ones``: one of size 1 goes to the axis in front, or behind."""
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


def _with_ones(source: SSAValue, axes: list[int]) -> Operation:
    """The source with axes of size 1 put in."""
    shape = iter(_shape(source))
    rank = len(_shape(source)) + len(axes)
    wide = [1 if axis in axes else next(shape) for axis in range(rank)]
    properties: dict[str, Attribute] = {
        "reassociation": _groups(rank, axes), "static_output_shape": DenseArrayBase.from_list(i64, wide)}
    on_tensors = isinstance(source.type, TensorType)
    kind: Attribute = TensorType(_element(source), wide) if on_tensors else MemRefType(_element(source), wide)
    expand = tensor.ExpandShapeOp if on_tensors else memref.ExpandShapeOp
    return expand.create(operands=[source], result_types=[kind], properties=properties)


@dataclass(frozen=True)
class ConvertNamedOps(ModulePass):
    """The pass; see the module's text."""

    name = "convert-named-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        converter = _Converter()
        for function in kernels(op):
            for inner in list(function.walk()):
                if inner.parent is not None:
                    converter.convert(inner)
