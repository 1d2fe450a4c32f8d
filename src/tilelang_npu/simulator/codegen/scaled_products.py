"""Emitters of products of MX matrices, ``mmadmxL1`` and the custom op ``mma_mx``, and of the loads of their scales.

A product with matrices in L1 loads each matrix together with its scales into L0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.declaration import TableOp
from tilelang_npu.dialects.ir.mlir_dtypes import dtypes
from tilelang_npu.ops.scale_layouts import FORMATS
from tilelang_npu.simulator.codegen.cube import check_sizes, logical_shape, matrix_shape
from tilelang_npu.simulator.codegen.handlers import custom, effect, unsupported
from tilelang_npu.simulator.codegen.moves import settled, transfer
from tilelang_npu.simulator.codegen.operand_checks import path_of
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import Buffer
from tilelang_npu.simulator.machine.op_records import Mmad, Multiply
from tilelang_npu.simulator.machine.scaled_product import FLOAT4, ScaledProduct

_ELEMENTS = {FORMATS["e5m2"]: "f8E5M2", FORMATS["e4m3"]: "f8E4M3FN", FLOAT4: "f4E2M1FN"}
_FLOAT8 = dtypes("f8E4M3FN", "f8E5M2")
_NONE = (-1, -1)


@effect(hivm.LoadScaleOp)
def _load_scale(em: PythonEmitter, op: TableOp) -> None:
    source, target = em.buffer(op.operands[0]), em.buffer(op.operands[1])
    if op.is_transposed is not None and op.is_transposed.value.data:
        raise unsupported(op, "the layout of transposed scales is not documented",
                          "write a view of the tensor with the groups along k as its last axis")
    if source.rank != target.rank:
        raise unsupported(op, "its operands must have the same rank")
    transfer(em, op, path_of(em, op, "MTE2", source, target))
    em.emit_batched(f"{em.array(target)}[...] = {em.array(source)}", source, target)


def _format(op: Operation, matrix: Buffer, given: Attribute | None) -> int:
    """Returns the number of the format of an operand's bytes; 0 for elements of float8."""
    if matrix.element in _FLOAT8:
        return 0
    if not isinstance(given, IntegerAttr):
        raise unsupported(op, "its operands are bytes, and it does not state their format", "add lhsFormat and rhsFormat")
    return int(given.value.data)


def _element(matrix: Buffer, held: int) -> str:
    return _ELEMENTS.get(held, matrix.element.mlir)


@effect(hivm.MmadMxL1Op)
def _mmad_mx(em: PythonEmitter, op: TableOp) -> None:
    if op.per_channel_bias is not None:
        raise unsupported(op, "its bias is not simulated", "add the bias in a later op")
    if op.sync_related_args:
        raise unsupported(op, "its sync_related_args are not simulated", "set and wait for the events before and after the op")
    formats = tuple(_format(op, em.buffer(value), given) for value, given in ((op.a, op.lhsFormat), (op.b, op.rhsFormat)))
    _emit(em, op, [em.buffer(value) for value in (op.a, op.b, op.c, op.scaleA, op.scaleB)], (formats[0], formats[1]),
          (op.real_m, op.real_k, op.real_n), op.init_condition, (op.a_transpose is not None, op.b_transpose is not None))


@custom(hivm.MMA_MX)
def _mma_mx(em: PythonEmitter, op: hivm.CustomOp) -> None:
    a, b, scale_a, scale_b, init, *sizes = op.ins()
    given = op.attributes.get("format")
    formats = _format(op, em.buffer(a), given), _format(op, em.buffer(b), given)
    _emit(em, op, [em.buffer(value) for value in (a, b, op.outs()[0], scale_a, scale_b)], formats, tuple(sizes), init, None)


def _emit(em: PythonEmitter, op: Operation, buffers: list[Buffer], formats: tuple[int, int], sizes: tuple[SSAValue, ...],
          init_value: SSAValue, turned: tuple[bool, bool] | None) -> None:
    """Emits a product.

    Args:
        em: the emitter.
        op: the op.
        buffers: A, B, C and the scales of A and B.
        formats: the formats of the bytes of A and B.
        sizes: the values of M, K and N.
        init_value: the value that says whether C is cleared first.
        turned: for a product that loads its operands, whether A and B are stored with rows and columns exchanged; else None.
    """
    if not em.chip.features.block_scales:
        raise unsupported(op, f"the Cube core of {em.chip.name} has no products of MX matrices")
    a, b, c = buffers[:3]
    m, k, n = (em.integer(value) for value in sizes)
    shapes = [matrix_shape(op, buffer, name) for buffer, name in ((a, "a"), (b, "b"), (c, "c"))]
    shapes[:2] = [(*shape[:-1], 2 * shape[-1]) if held == FLOAT4 else shape
                  for shape, held in zip(shapes[:2], formats, strict=True)]
    (rows, depth), (deep, columns), (c_rows, c_columns) = map(logical_shape, shapes)
    first, second = turned or (False, False)
    rows, depth = (depth, rows) if first else (rows, depth)
    deep, columns = (columns, deep) if second else (deep, columns)
    check_sizes(em, op, {"m": (m, rows, c_rows, "rows"), "k": (k, depth, deep, "elements along k"),
                         "n": (n, columns, c_columns, "columns")})
    init = em.expression(init_value)
    element = _element(a, formats[0])
    if turned is None:
        em.record_op(op, lambda slot: Multiply(element, slot(m), slot(k), slot(n), scaled=True), pipe="M", anew=("c", init))
    else:
        em.record_op(op, lambda slot: Mmad(element, False, slot(m), slot(k), slot(n), _NONE, _NONE, -1, _NONE, "", False,
                                           turned, scaled=True),
                     into={"a": "ca", "b": "cb", "scaleA": "ca", "scaleB": "cb"}, anew=("c", init))
    product = em.constant(ScaledProduct(first, second, formats), "scaled_product")
    a_text, b_text, c_text, *scales = (em.array(buffer) for buffer in buffers)
    arrays = ", ".join((a_text, b_text, settled(em, c_text), *scales))
    em.line(f"{product}({arrays}, {init.text}, {', '.join(em.text_of(size) for size in (m, k, n))})")
