"""Emitters of matrix products.

``mmadL1`` and ``batchMmadL1`` load L0A and L0B from L1, multiply, and wait for and set the events between these loads and
multiplications. The custom ops ``load_l0a``, ``load_l0b`` and ``mma`` do the same loads and multiplications as separate ops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf

from xdsl.ir import Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.linear import TRUTH
from tilelang_npu.simulator.codegen.code_scopes import Int
from tilelang_npu.simulator.codegen.handlers import custom, effect, op_name, unsupported
from tilelang_npu.simulator.codegen.moves import panels, settled, transfer
from tilelang_npu.simulator.codegen.operand_checks import path_of
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import Buffer, StridedView, alternatives, mapped
from tilelang_npu.simulator.machine import datapath
from tilelang_npu.simulator.machine.axis_bounds import check_product_size
from tilelang_npu.simulator.machine.cube_products import Product, depth_of
from tilelang_npu.simulator.machine.op_records import Mmad, Multiply, Slot
from tilelang_npu.target.chip_data import Space

_NONE = Int(-1)


def matrix_shape(op: Operation, buffer: Buffer, name: str) -> tuple[int, ...]:
    """Returns the shape of a matrix; for a size that is only known at run time, the largest one possible."""
    view = alternatives(buffer)[0]
    shape = [size.constant if size.known else _most(view, axis) for axis, size in enumerate(view.sizes)]
    if len(shape) not in (2, 4) or inf in shape:
        raise unsupported(op, f"{name} must be a matrix (rank 2, or rank 4 in fractals) whose sizes have known bounds")
    return tuple(map(int, shape))


def _most(view: StridedView, axis: int) -> float:
    """Returns an upper bound of the size of a view's axis, from the bounds of the size and the size of the buffer."""
    size, stride = view.sizes[axis].interval.high, view.strides[axis]
    if view.limit is None or not stride.known or stride.constant <= 0:
        return size
    return min(size, (view.limit[1] - view.limit[0]) // stride.constant)


def logical_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns the numbers of rows and columns of a matrix, given the shape of its buffer: ``[C1, R1, r0, c0]`` or two sizes."""
    if len(shape) == 2:
        return shape[0], shape[1]
    return shape[1] * shape[2], shape[0] * shape[3]


def _check_element(em: PythonEmitter, op: Operation, a: Buffer, b: Buffer) -> None:
    """Checks that the chip's Cube core can multiply operands of these element types."""
    known = [name for name in em.chip.cube.k_step if name != "hf32"]
    for element in (a.element.mlir, b.element.mlir):
        if element not in known:
            raise unsupported(op, f"the Cube core of {em.chip.name} does not multiply {element}",
                              f"it multiplies {', '.join(known)}")


def _check(em: PythonEmitter, op: Operation, sizes: dict[str, tuple[Int, int, int, str]]) -> None:
    """Checks that the constant sizes of a product do not exceed its buffers.

    Args:
        em: the emitter.
        op: the op that multiplies.
        sizes: by name (``m``, ``k``, ``n``): the size, its limits in the two buffers that have this axis, and the unit of the
            limits for the error message.
    """
    for name, (size, first, second, what) in sizes.items():
        if size.known and size.constant > min(first, second):
            raise TileError(f"{op_name(op)} multiplies {name} = {size.constant}, but its buffers have {first} and {second}"
                            f" {what}", code="T507", location=location_of(op))


def _check_when_run(em: PythonEmitter, op: Operation, sizes: dict[str, tuple[Int, int, int, str]]) -> None:
    """Emits the same checks as ``_check`` for sizes that are only known at run time."""
    for name, (size, first, second, what) in sizes.items():
        if not size.known and not size.at_most(min(first, second)):
            check = em.constant(check_product_size, "check_size")
            em.line(f"{check}({name!r}, {em.name_of(size)}, {first}, {second}, {what!r})", op)


def check_sizes(em: PythonEmitter, op: Operation, sizes: dict[str, tuple[Int, int, int, str]]) -> None:
    """Checks that the sizes of a product do not exceed its buffers, now or, if only run time knows them, when it is executed.

    Args:
        em, op, sizes: as for ``_check``.

    Raises:
        TileError: T507, a constant size exceeds a buffer.
    """
    _check(em, op, sizes)
    _check_when_run(em, op, sizes)


@effect(hivm.MmadL1Op)
def _mmad(em: PythonEmitter, op: hivm.MmadL1Op) -> None:
    bias = None if op.per_channel_bias is None else em.buffer(op.per_channel_bias)
    given = [em.integer(value) for value in op.sync_related_args] or [_NONE] * 7
    _product(em, op, (em.buffer(op.a), em.buffer(op.b), em.buffer(op.c), bias), given)


@effect(hivm.BatchMmadL1Op)
def _batch(em: PythonEmitter, op: hivm.BatchMmadL1Op) -> None:
    """Emits the products of a batch one after the other.

    The first product waits for the operands, and the last one sets the events that free them. Successive products use different
    halves of L0A and L0B.
    """
    whole = [em.buffer(op.a), em.buffer(op.b), em.buffer(op.c)]
    shapes = [alternatives(buffer)[0].shape for buffer in whole]
    if any(shape is None or len(shape) != 3 for shape in shapes):
        raise unsupported(op, "its operands must be batches of matrices (rank 3) of constant sizes")
    if len({shape[0] for shape in shapes if shape}) != 1:
        raise TileError(f"batchMmadL1 has batches of {', '.join(str(shape[0]) for shape in shapes if shape)} matrices",
                        code="T507", location=location_of(op), help="give a, b and c the same size along the first axis")
    if op.per_channel_bias is not None:
        raise unsupported(op, "the op does not define whether all matrices share its bias", "add the bias in a later op")
    sync = [em.integer(value) for value in op.sync_related_args] or [_NONE] * 7
    count = shapes[0][0] if shapes[0] else 0
    for number in range(count):
        given = [*([_NONE] * 2 if number else sync[:2]), *(sync[2:4] if number == count - 1 else [_NONE] * 2),
                 sync[4] * count + number if sync[4].at_least(0) else sync[4], *sync[5:]]
        a, b, c = (mapped(buffer, partial(_matrix, number)) for buffer in whole)
        _product(em, op, (a, b, c, None), given)


def _matrix(number: int, batch: StridedView) -> StridedView:
    """Returns one matrix of a batch."""
    start = batch.offset + batch.strides[0] * number
    return replace(batch, offset=start, sizes=batch.sizes[1:], strides=batch.strides[1:])


def _product(em: PythonEmitter, op: hivm.MmadL1Op | hivm.BatchMmadL1Op, buffers: tuple[Buffer, Buffer, Buffer, Buffer | None],
             given: list[Int]) -> None:
    """Emits one matrix product.

    Args:
        em: the emitter.
        op: mmadL1 or batchMmadL1.
        buffers: a, b, c and the bias.
        given: the seven integer operands of the op, which are numbers of events and counters; -1 for an operand that is absent.
    """
    a, b, c, bias = buffers
    m, k, n = em.integer(op.real_m), em.integer(op.real_k), em.integer(op.real_n)
    a_shape, b_shape, c_shape = matrix_shape(op, a, "a"), matrix_shape(op, b, "b"), matrix_shape(op, c, "c")
    packed = op.enable_I4 is not None
    if packed:
        a_shape, b_shape = (*a_shape[:-1], 2 * a_shape[-1]), (*b_shape[:-1], 2 * b_shape[-1])
    kind = "i4" if packed else a.element.mlir
    _check_element(em, op, a, b)
    a_turned, b_turned = op.a_transpose is not None, op.b_transpose is not None
    rows, depth = logical_shape(a_shape)[::-1] if a_turned else logical_shape(a_shape)
    deep, columns = logical_shape(b_shape)[::-1] if b_turned else logical_shape(b_shape)
    c_rows, c_columns = logical_shape(c_shape)
    limits = {"m": (m, rows, c_rows, "rows"), "k": (k, depth, deep, "elements along k"),
              "n": (n, columns, c_columns, "columns")}
    check_sizes(em, op, limits)
    wide = op.enable_HF32 is not None
    exact = c.element == "int32"
    unit_flag = hivm.unit_flag_use(op)
    init = em.expression(op.init_condition)
    if given[4].at_least(0) and not given[4].known:  # only its parity matters; fewer values give fewer distinct events
        given[4] = em.define_integer(f"({em.text_of(given[4])}) % 2", em.scope_of(given[4]), TRUTH)

    def work(slot: Callable[[Int], Slot]) -> Mmad:
        sync = [slot(value) for value in given]
        return Mmad(kind, wide, slot(m), slot(k), slot(n), (sync[0], sync[1]), (sync[2], sync[3]), sync[4],
                    (sync[5], sync[6]), unit_flag, bias is not None, (a_turned, b_turned))

    # For a batch, each operand is one matrix. On their way to M the operands pass through L0, which the op does not mention.
    em.record_op(op, work, held={"a": (a,), "b": (b,), "c": (c,)}, into={"a": "ca", "b": "cb", "bias": "bt"}, anew=("c", init))
    product = Product(a_shape, b_shape, c_shape, a_transposed=a_turned, b_transposed=b_turned, wide=wide, exact=exact,
                               packed=packed, depth=depth_of(a.element, b.element))
    _multiply(em, product, (a, b, c), (m, k, n), init.text, bias)


def _multiply(em: PythonEmitter, product: Product, buffers: tuple[Buffer, Buffer, Buffer], sizes: tuple[Int, Int, Int],
              init: str, bias: Buffer | None = None) -> None:
    """Emits the call that computes a product; its multiplier is made once per launch."""
    matrices = [panels(buffer) or buffer for buffer in buffers]
    em.note_product_operands(*matrices, rows=True)
    texts = [em.array(matrix) for matrix in matrices]
    numbers = [em.text_of(size) for size in sizes]
    extra = [em.array(bias)] if bias is not None else []
    multiplier = em.define(f"products({em.constant(product, 'product')})", em.launch, "mmad")
    em.emit_batched(f"{multiplier}({', '.join([*texts, init, *numbers, *extra])})")
    if em.settles_products:
        em.emit_batched(settled(em, texts[2]))


@custom("load_l0a", "load_l0b", "load_l0a_transposed", "load_l0b_transposed")
def _load_l0(em: PythonEmitter, op: hivm.CustomOp) -> None:
    """Emits a load from L1 to L0A or L0B.

    The simulator keeps the fractal layout of L1 in L0A and L0B, which is possible because only these loads write L0A and L0B
    and only pipe M reads them.
    """
    source, target = em.buffer(op.ins()[0]), em.buffer(op.outs()[0])
    ends: tuple[Space, ...] = ("ca",) if op.symbol.startswith("load_l0a") else ("cb",)
    turned = op.symbol.endswith("_transposed")
    transfer(em, op, path_of(em, op, "MTE1", source, target, ends=ends), turned=turned)
    if turned:
        em.line(f"{em.constant(datapath.transpose_fractals, 'transpose')}({em.array(target)}, {em.array(source)})")
    else:
        em.emit_batched(f"{em.array(target)}[...] = {em.array(source)}", source, target)


@custom("mma")
def _mma(em: PythonEmitter, op: hivm.CustomOp) -> None:
    a_value, b_value, init_value, *size_values = op.ins()
    flag = em.integer(size_values.pop()) if len(size_values) > 3 else Int(0)  # ``0b10`` or ``0b11``
    a, b, c = em.buffer(a_value), em.buffer(b_value), em.buffer(op.outs()[0])
    _check_element(em, op, a, b)
    m, k, n = (em.integer(value) for value in size_values)
    a_shape, b_shape, c_shape = matrix_shape(op, a, "a"), matrix_shape(op, b, "b"), matrix_shape(op, c, "c")
    (rows, depth), (deep, columns), (c_rows, c_columns) = map(logical_shape, (a_shape, b_shape, c_shape))
    _check_when_run(em, op, {"m": (m, rows, c_rows, "rows"), "k": (k, depth, deep, "elements along k"),
                             "n": (n, columns, c_columns, "columns")})
    init = em.expression(init_value)
    use = hivm.unit_flag_use(op)
    em.record_op(op, lambda slot: Multiply(a.element.mlir, slot(m), slot(k), slot(n), use, slot(flag)), pipe="M",
                 anew=("c", init))
    product = Product(a_shape, b_shape, c_shape, a_transposed=False, b_transposed=False, wide=False,
                               exact=c.element == "int32", depth=depth_of(a.element, b.element))
    _multiply(em, product, (a, b, c), (m, k, n), init.text)
