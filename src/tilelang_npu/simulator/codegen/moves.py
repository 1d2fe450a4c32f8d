"""Emitters of data movement ops: load, store, copy, nd2nz, nz2nd, fixpipe and broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from xdsl.dialects import memref
from xdsl.ir import Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.linear import TRUTH
from tilelang_npu.ops import dtype
from tilelang_npu.ops.products import FRACTAL
from tilelang_npu.ops.recipes import made
from tilelang_npu.ops.rounding import conversion, is_plain
from tilelang_npu.simulator.codegen.code_scopes import Int
from tilelang_npu.simulator.codegen.handlers import effect, unsupported
from tilelang_npu.simulator.codegen.operand_checks import path_of
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import Buffer, StridedView, alternatives, mapped, of_vector_core
from tilelang_npu.simulator.machine import datapath
from tilelang_npu.simulator.machine.op_records import Lanes, Transfer
from tilelang_npu.target import Path, name_of, pipes_of
from tilelang_npu.target.chip_data import PipeName, UnitFlagUse

_NEVER = Int(0)
_BLOCK = np.dtype("V32")
"""NumPy type of one row of a fractal, which is copied as one element of 32 bytes."""


def transfer(em: PythonEmitter, op: Operation, path: Path, *, unit_flag: UnitFlagUse = "", turned: bool = False,
             targets: Sequence[Buffer] = (), fills: Int = _NEVER) -> None:
    """Records a data movement.

    Args:
        em: the emitter.
        op: the op that moves data.
        path: the path of the chip between two memories that the op uses.
        unit_flag: how the op synchronises with M block by block, by unit flags.
        turned: whether the op exchanges rows and columns.
        targets: the memrefs that the op writes; empty for the op's operand ``dst``.
        fills: 1 if the op fills its whole destination with a value before, otherwise 0.
    """
    em.record_op(op, lambda slot: Transfer(path.name, unit_flag=unit_flag, turned=turned, fills=slot(fills)), pipe=path.pipe,
                 path=path, held={"dst": targets})


def settled(em: PythonEmitter, array: str) -> str:
    """Returns the expression of an array in L0C, which an op is to read, after the sums of products are written to L0C.

    Products are added up in chunks (``machine/cube_products.py``), so that L0C is not always up to date.
    """
    return f"{em.define('products.settle', em.launch, 'settle')}({array})"


def read_array(em: PythonEmitter, source: Buffer) -> str:
    """Returns the expression of the array of an operand that an op reads, which may be in L0C."""
    array = em.array(source)
    return settled(em, array) if alternatives(source)[0].base.memory == "cc" else array


def _move(em: PythonEmitter, op: Operation, source: Buffer, target: Buffer, pipe: PipeName, *, atomic: str = "none") -> None:
    transfer(em, op, path_of(em, op, pipe, source, target))
    write = em.array(target)
    if atomic == "none":
        em.emit_batched(f"{write}[...] = {read_array(em, source)}", source, target)
    else:
        combine = em.constant(datapath.ATOMICS[atomic], "atomic")
        em.line(f"{em.constant(datapath.store_atomic, 'store_atomic')}({write}, {read_array(em, source)}, {combine})")


def _atomic(em: PythonEmitter, op: hivm.StoreOp | hivm.CopyOp | hivm.FixpipeOp) -> str:
    """Returns the operation that combines stored values with those in the destination, or ``none``.

    The op states the operation; if it states none, the core's atomic mode applies to stores to GM.
    """
    kind = op.atomic_kind if isinstance(op, hivm.StoreOp) else None
    if kind is not None:
        return str(kind.data)
    return em.atomic if em.atomic != "none" and op.reads_destination(op.dst) else "none"


@effect(hivm.SetAtomicOp)
def _set_atomic(em: PythonEmitter, op: hivm.SetAtomicOp) -> None:
    em.atomic = op.kind.data


@effect(hivm.LoadOp)
def _load(em: PythonEmitter, op: hivm.LoadOp) -> None:
    source, target = em.buffer(op.src), em.buffer(op.dst)
    mode = "PadNull" if op.pad_mode is None else op.pad_mode.data
    transfer(em, op, path_of(em, op, op.pipes()[0], source, target))
    _initialise(em, op, target)
    if mode == "PadNull" and not em.polls:
        em.emit_batched(f"{em.array(target)}[...] = {em.array(source)}", source, target)
        return
    if mode == "PadNull":
        em.emit_read_of(source, f"{em.array(target)}[...] = {em.array(source)}")
        return
    left = em.text_of(em.integer(op.left_padding_num)) if op.left_padding_num is not None else "0"
    right = em.text_of(em.integer(op.right_padding_num)) if op.right_padding_num is not None else "None"
    value = em.expression(op.pad_value).text if mode == "PadValue" and op.pad_value is not None else "None"
    helper = em.constant(datapath.load_padded, "load_padded")
    em.emit_read_of(source, f"{helper}({em.array(target)}, {em.array(source)}, {left}, {right}, {value})")


def _fills(em: PythonEmitter, op: hivm.Nd2NzOp) -> Int:
    """Returns 1 if a load fills its destination before (``init_out_buffer``), or 0; possibly only run time knows."""
    if not op.init_out_buffer.value.data:
        return _NEVER
    if op.init_condition is None:
        return Int(1)
    condition = em.expression(op.init_condition)
    if condition.value is not None:
        return Int(int(condition.value))
    return em.define_integer(f"1 if {condition.text} else 0", condition.scope, TRUTH)


def _initialise(em: PythonEmitter, op: hivm.LoadOp | hivm.Nd2NzOp, target: Buffer) -> None:
    """Emits the fill of the destination before a load (``init_out_buffer``), which runs only if the op's condition holds."""
    flag = op.init_out_buffer
    if flag is None or not flag.value.data:
        return
    if op.pad_value is None:
        raise unsupported(op, "init_out_buffer has no pad_value")
    text = f"{em.array(target)}[...] = {em.expression(op.pad_value).text}"
    if op.init_condition is not None:
        condition = em.expression(op.init_condition)
        if condition.value is None:
            text = f"if {condition.text}: {text}"
        elif not condition.value:
            return
    em.emit_batched(text)


@effect(hivm.StoreOp)
def _store(em: PythonEmitter, op: hivm.StoreOp) -> None:
    _move(em, op, em.buffer(op.src), em.buffer(op.dst), op.pipes()[0], atomic=_atomic(em, op))


@effect(hivm.CopyOp, memref.CopyOp)
def _copy(em: PythonEmitter, op: Operation) -> None:
    source, target = em.buffer(op.operands[0]), em.buffer(op.operands[1])
    spaces = (alternatives(source)[0].base.memory, alternatives(target)[0].base.memory)
    pipe = pipes_of("copy").get(spaces)
    if pipe is None:
        raise unsupported(op, f"no pipe copies from {name_of(spaces[0])} to {name_of(spaces[1])}")
    if pipe == "V":
        bits = 8 * source.element.nbytes
        em.record_op(op, lambda slot: Lanes("copy", bits, 1), pipe=pipe)
        em.emit_batched(f"{em.array(target)}[...] = {em.array(source)}", source, target)
    elif isinstance(op, hivm.CopyOp):
        _move(em, op, source, target, pipe, atomic=_atomic(em, op))
    elif spaces[1] == "gm" and em.atomic != "none":
        raise unsupported(op, "an atomic mode is set, and the op ignores the mode",
                          "write hivm.hir.store, which follows the atomic mode")
    else:
        _move(em, op, source, target, pipe)


def blocks_view(view: StridedView) -> StridedView | None:
    """Returns the view ``[C1, R1 * r0, c0]`` of a fractal buffer ``[C1, R1, r0, c0]``; None if no strides describe it."""
    if view.rank != 4:
        return None
    outer, inner = view.strides[1], view.strides[2]
    if not (view.sizes[2].known and inner.known) or (outer != inner * view.sizes[2].constant and view.sizes[1] != Int(1)):
        return None
    rows = view.sizes[1] * view.sizes[2].constant
    return replace(view, sizes=(view.sizes[0], rows, view.sizes[3]), strides=(view.strides[0], inner, view.strides[3]))


def panels(buffer: Buffer) -> Buffer | None:
    """Returns a fractal buffer ``[C1, R1, r0, c0]`` as ``[C1, R1 * r0, c0]``; None if one of the views that it selects between
    has no such view."""
    made = [blocks_view(view) for view in alternatives(buffer)]
    if any(view is None for view in made):
        return None
    return mapped(buffer, lambda view: blocks_view(view) or view)


def _whole_rows(source: StridedView, target: StridedView) -> tuple[StridedView, StridedView] | None:
    """Returns both operands of nd2nz as views with rows of 32 bytes; None if rows of the source are no multiple of 32 bytes."""
    width, run = target.sizes[3], source.element.nbytes
    merged = blocks_view(target)
    if merged is None or not width.known or width.constant * run != _BLOCK.itemsize or source.rank != 2:
        return None
    rows, columns = source.sizes
    if not columns.known or columns.constant % width.constant or source.strides[1] != Int(run) or merged.strides[2] != Int(run):
        return None
    count = Int(columns.constant // width.constant)
    shape = (count, rows)
    first = replace(source, sizes=shape, strides=(Int(_BLOCK.itemsize), source.strides[0]))
    second = replace(target, sizes=shape, strides=merged.strides[:2])
    return first, second


@effect(hivm.Nd2NzOp)
def _nd2nz(em: PythonEmitter, op: hivm.Nd2NzOp) -> None:
    source, target = em.buffer(op.src), em.buffer(op.dst)
    fills = _fills(em, op)
    transfer(em, op, path_of(em, op, op.pipes()[0], source, target, ("nd2nz",)), fills=fills)
    _initialise(em, op, target)
    if alternatives(target)[0].rank == 2:
        em.emit_batched(f"{em.array(target)}[...] = {em.array(source)}", source, target)
        return
    fast = [_whole_rows(first, second) for first in alternatives(source) for second in alternatives(target)]
    if all(views is not None for views in fast) and isinstance(source, StridedView):
        write = mapped(target, lambda view: _whole_rows(source, view)[1])  # type: ignore[index]  # none of ``fast`` is None
        read = fast[0][0]  # type: ignore[index]  # none of ``fast`` is None
        em.emit_batched(f"{em.array(write, _BLOCK)}[...] = {em.array(read, _BLOCK)}")
    else:
        helper = em.constant(datapath.nd2nz, "nd2nz")
        em.line(f"{helper}({em.array(target)}, {em.array(source)})")


@effect(hivm.Nz2NdOp)
def _nz2nd(em: PythonEmitter, op: hivm.Nz2NdOp) -> None:
    source, target = em.buffer(op.src), em.buffer(op.dst)
    transfer(em, op, path_of(em, op, op.pipes()[0], source, target, ("nz2nd",)))
    helper = em.constant(datapath.nz2nd, "nz2nd")
    em.line(f"{helper}({em.array(target)}, {em.array(source)})")


_QUANT = {"F322F16": "f16", "F322BF16": "bf16", "S322I8": "i8", "QF322F32_PRE": "f32"}


@effect(hivm.FixpipeOp)
def _fixpipe(em: PythonEmitter, op: hivm.FixpipeOp) -> None:
    source, target = em.buffer(op.src), em.buffer(op.dst)
    relu = "NO_RELU" if op.pre_relu is None else op.pre_relu.data
    quant = "NO_QUANT" if op.pre_quant is None else op.pre_quant.data
    if relu not in ("NO_RELU", "NORMAL_RELU"):
        raise unsupported(op, f"pre_relu {relu} needs a slope, and the op has no operand for it")
    if quant != "NO_QUANT" and target.element != dtype(_QUANT[quant]):
        raise TileError(f"fixpipe with pre_quant {quant} converts to {_QUANT[quant]}, but dst has elements of type "
                        f"{target.element.mlir}", code="T506", location=location_of(op))
    if quant == "NO_QUANT" and target.element != source.element:
        raise TileError(f"fixpipe without pre_quant does not convert {source.element.mlir} to {target.element.mlir}",
                        code="T506", location=location_of(op),
                        help="set pre_quant, such as F322F16 for a conversion from f32 to f16")
    if any(view.rank not in (2, 4) for view in alternatives(source)):
        raise unsupported(op, "its source in L0C is not a matrix (rank 2 or 4)", "use one op for each matrix of a batch")
    if op.sub_block_idx is not None:
        target = of_vector_core(target, op.vector_core())
    rows = op.dma_mode.data == "nz2nd"
    if op.dma_mode.data == "nz2dn":
        raise unsupported(op, "dma_mode nz2dn is not modelled")
    atomic = _atomic(em, op)
    path = path_of(em, op, op.pipes()[0], source, target, ("nz2nd", "") if rows else ("",))
    parts = _destinations(em, op, target, atomic)
    transfer(em, op, path, unit_flag=hivm.unit_flag_use(op), targets=parts)
    scale = None if op.quant_scale is None else em.expression(op.quant_scale).text
    if rows and scale is None and atomic == "none" and _drain_rows(em, source, parts, op, relu=relu != "NO_RELU"):
        return
    convert = "None"
    if not is_plain(source.element, target.element, "rint") and source.element != target.element:
        convert = em.constant(made(conversion, dtype("f32") if scale else source.element, target.element, "rint"), "convert")
    combine = "None" if atomic == "none" else em.constant(datapath.ATOMICS[atomic], "atomic")
    if len(parts) > 1:
        helper, targets = em.constant(datapath.fixpipe_to_all, "fixpipe_to_all"), ", ".join(map(em.array, parts))
        em.line(f"{helper}(({targets}), {_by_rows(op)}, {read_array(em, source)}, {relu != 'NO_RELU'}, {scale}, {convert})")
        return
    helper = em.constant(datapath.fixpipe, "fixpipe")
    em.line(f"{helper}({em.array(target)}, {read_array(em, source)}, {relu != 'NO_RELU'}, {scale}, {convert}, {combine})")


def _destinations(em: PythonEmitter, op: hivm.FixpipeOp, target: Buffer, atomic: str) -> list[Buffer]:
    """Returns the destinations of a fixpipe: its ``dst`` or, with ``dual_dst_mode``, the same bytes of each Vector core."""
    if op.dual_dst_mode is None or op.dual_dst_mode.data == "NO_DUAL":
        return [target]
    if op.dma_mode.data != "nz2nd" or atomic != "none" or any(view.rank != 2 for view in alternatives(target)):
        raise unsupported(op, "dual_dst_mode needs dma_mode nz2nd, destinations of rank 2, and no atomic mode",
                          "write to each Vector core by a separate op")
    return [of_vector_core(target, sub) for sub in range(hivm.sub_blocks_of(op, em.chip.aiv_per_aic))]


def _by_rows(op: hivm.FixpipeOp) -> bool:
    return op.dual_dst_mode is not None and op.dual_dst_mode.data == "ROW_SPLIT"


def _drain_rows(em: PythonEmitter, source: Buffer, targets: list[Buffer], op: hivm.FixpipeOp, *, relu: bool) -> bool:
    """Emits a fixpipe from L0C to row-major destinations as one assignment of NumPy views per destination.

    Returns False, and emits nothing, if this is not possible.
    """
    target, panel = targets[0], panels(source)
    if len(targets) > 1 and not _by_rows(op):
        return False
    views = alternatives(target)
    if panel is None or any(view.rank != 2 or not view.sizes[1].known or view.sizes[1].constant % FRACTAL
                            for view in views):
        return False
    if not is_plain(source.element, target.element, "rint") and source.element != target.element:
        return False
    width = FRACTAL

    def blocks(view: StridedView) -> StridedView:
        count = Int(view.sizes[1].constant // width)
        return replace(view, sizes=(count, view.sizes[0], Int(width)),
                       strides=(view.strides[1] * width, view.strides[0], view.strides[1]))

    shape = blocks(views[0]).sizes

    for number, part in enumerate(targets):
        def crop(view: StridedView, number: int = number) -> StridedView:
            first = view.offset + em.multiplied(shape[1] * number, view.strides[1])
            return replace(view, offset=first, sizes=(shape[0], shape[1], view.sizes[2]))

        read, write = read_array(em, mapped(panel, crop)), em.array(mapped(part, blocks))
        if relu:
            em.emit_batched(f"{em.constant(partial(np.maximum, casting='unsafe'), 'relu')}({read}, 0, out={write})")
        else:
            em.emit_batched(f"{write}[...] = {read}")
    return True


@effect(hivm.VBrcOp)
def _broadcast(em: PythonEmitter, op: hivm.VBrcOp) -> None:
    target = em.buffer(op.dst)
    bits = 8 * target.element.nbytes
    value = em.value(op.src)
    if isinstance(value, StridedView) or hasattr(value, "condition"):
        source = em.buffer(op.src)
        last = alternatives(source)[0].rank - 1
        key = "brcb" if last in op.broadcast_dims.get_values() else "copy"
        em.record_op(op, lambda slot: Lanes(key, bits, 1))
        em.emit_batched(f"{em.array(target)}[...] = {em.array(source)}", source, target)
        return
    text = em.expression(op.src).text
    if op.pipes() == ("V",):
        em.record_op(op, lambda slot: Lanes("dup", bits, 0))
    else:
        em.record_op(op, lambda slot: Transfer("gm_l1"))
    em.emit_batched(f"{em.array(target)}[...] = {text}")


__all__ = ["panels", "read_array", "settled", "transfer"]
