"""Emitters of custom ops whose symbol is an entry of the op table, and of the ops that print: debug ops, ``T.printf`` and
``T.dump_tensor``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType

from tilelang_npu import ops
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.tile.calls import facts_of
from tilelang_npu.progress import aside
from tilelang_npu.simulator.codegen.handlers import CUSTOM, custom, effect, unsupported
from tilelang_npu.simulator.codegen.moves import read_array, transfer
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import Buffer
from tilelang_npu.simulator.codegen.vector import emit_custom, emit_instruction
from tilelang_npu.simulator.machine.memory import Array, poison_elements
from tilelang_npu.simulator.machine.op_records import Lanes, PeerTransfer, ScalarAccess, ScratchUse, Sorting
from tilelang_npu.target.chip_data import CoreKind

SORTS = {"sort": True, "topk": True, "sort32": False}
"""The ops that sort their first source; for each, whether it merges the sorted groups of 32 elements into one sequence."""
Shown = Array | float
"""A value that a kernel prints: a buffer or a number."""


@effect(hivm.CustomOp)
def _custom(em: PythonEmitter, op: hivm.CustomOp) -> None:
    if op.symbol in CUSTOM:
        CUSTOM[op.symbol](em, op)
        return
    entry = ops.operation_of_symbol(op.symbol)
    if isinstance(entry, ops.Composite):
        emit_instruction(em, op, entry)
    elif isinstance(entry, ops.Elementwise):
        emit_custom(em, op, entry)
    elif isinstance(entry, ops.Structured):
        _structured(em, op, entry)
    else:
        raise unsupported(op, f"no operation has the name {op.symbol or op.function!r}",
                          "`python -m tilelang_npu ops` lists the known operations; --load FILE.py loads a plug-in that adds"
                          " operations")


@effect(hivm.EntryOp)
def _entry_op(em: PythonEmitter, op: hivm.EntryOp) -> None:
    _structured(em, op, op.ENTRY)


def _structured(em: PythonEmitter, op: hivm.CustomOp | hivm.EntryOp, entry: ops.Structured) -> None:
    """Emits an op that is a structured entry of the op table.

    Records the op with its cost, and emits a call of the entry's NumPy function.
    """
    sources: list[Buffer] = []
    given: list[int | str] = []  # for an operand in memory its position among the sources, for a number its text
    for ssa in op.ins():
        if isinstance(ssa.type, MemRefType):
            given.append(len(sources))
            sources.append(em.buffer(ssa))
        elif isinstance(ssa.type, (IndexType, IntegerType)):
            given.append(em.text_of(em.integer(ssa)))
        else:
            given.append(em.expression(ssa).text)
    first = len(sources)
    buffers = [*sources, *(em.buffer(ssa) for ssa in op.outs())]
    bits = max(8 * buffer.element.nbytes for buffer in buffers)
    if isinstance(entry, ops.MemoryMove) and entry.path not in em.chip.paths:
        raise unsupported(op, f"{em.chip.name} has no path {entry.path}", "choose a chip that has this path")
    if isinstance(entry, ops.PeerMove):
        # The operand in GM states an address of another card. This card does not access it.
        card = em.integer(op.ins()[-1])
        em.record_op(op, lambda slot: PeerTransfer(entry.path, slot(card)), pipe=entry.pipe, path=em.chip.paths[entry.path],
                     without="src" if entry.peer == "inputs" else "dst")
    elif isinstance(entry, ops.MemoryMove):
        transfer(em, op, em.chip.paths[entry.path])
    else:
        em.record_op(op, lambda slot: _work(entry, bits, first, len(buffers)), pipe=entry.pipe)
    arrays = [read_array(em, buffer) for buffer in buffers]
    texts = [arrays[one] if isinstance(one, int) else one for one in given]
    known: dict[str, object] = {name: fact for name, fact in facts_of(op.attributes).items() if name != "symbol"}
    if isinstance(entry, ops.PeerMove):
        known["location"] = location_of(op)  # for the report of a race between cards, as the core is
        texts.append(em.core_text())
    facts = em.constant(known, "facts")
    call = em.constant(entry.meaning, entry.name)
    if facts_of(op.attributes).get("exhausted_suspension"):  # what the merge does not reach is undefined
        em.line(f"{em.constant(poison_elements, 'undefine')}({arrays[first]})")
    em.line(f"{call}(({''.join(f'{name}, ' for name in arrays[first:])}), ({''.join(f'{name}, ' for name in texts)}), {facts})")


def _work(entry: ops.Structured, bits: int, first: int, count: int) -> Lanes | Sorting:
    """Returns the amount of work from which the cost of an op is computed: its lanes, or the description of a sort.

    Args:
        entry: the op's entry in the op table.
        bits: the width in bits of the widest element type of the op's operands.
        first: the index of the op's first destination among its operands.
        count: the number of operands.
    """
    if entry.name in SORTS:
        return Sorting(entry.cost, 0, merged=SORTS[entry.name])
    place = 0 if entry.cost in ("cmpv", "reducev2") or entry.name == "pack_int4" else first
    return Lanes(entry.cost, bits, min(place, count - 1))


@effect(hivm.DebugOp)
def _debug(em: PythonEmitter, op: hivm.DebugOp) -> None:
    where = location_of(op)
    line = f"line {where.line}" if where is not None else "no line"
    show = em.constant(_printer(em.core, line, op.prefix.data, bool(op.hex.value.data)), "show")
    if isinstance(op.arg.type, MemRefType):
        buffer = em.buffer(op.arg)
        em.record_op(op, lambda slot: ScalarAccess(store=False))
        em.line(f"{show}({read_array(em, buffer)})")
    elif isinstance(op.arg.type, (IndexType, IntegerType)):
        em.line(f"{show}({em.text_of(em.integer(op.arg))})")
    else:
        em.line(f"{show}({em.expression(op.arg).text})")


def _printer(core: CoreKind, line: str, prefix: str, hexadecimal: bool) -> Callable[[Shown], None]:
    def show(value: Shown) -> None:
        text = _hexadecimal(value) if hexadecimal else _plain(value)
        with aside():
            print(f"[{core} {line}]", *([prefix] if prefix else []), text)  # noqa: T201 - the kernel asks for the output

    return show


def _plain(value: Shown) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    shape: Sequence[int] = value.shape
    wide = value.astype(np.float32) if value.dtype.kind not in "iubf" else value
    return f"{'x'.join(map(str, shape))} {value.dtype}\n{np.array2string(wide, threshold=256)}"


def _hexadecimal(value: Shown) -> str:
    if not isinstance(value, np.ndarray):
        return hex(value) if isinstance(value, int) else float(value).hex()
    bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
    return np.array2string(bits, formatter={"int": lambda item: f"0x{item:0{2 * value.dtype.itemsize}x}"}, threshold=256)


_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<digits>\.\d+)?(?:hh|h|ll|l|z)?(?P<kind>[diuxXoceEfFgG%])")


@custom("printf")
def _printf(em: PythonEmitter, op: hivm.CustomOp) -> None:
    texts, widths = [], []
    for ssa in op.ins():
        whole = isinstance(ssa.type, (IndexType, IntegerType))
        texts.append(em.text_of(em.integer(ssa)) if whole else em.expression(ssa).text)
        widths.append(ssa.type.width.data if isinstance(ssa.type, IntegerType) else 64)
    show = em.constant(_formatter(str(facts_of(op.attributes)["format"]), widths), "printf")
    em.emit_print(f"{show}({', '.join(texts)})")


def _formatter(text: str, widths: list[int]) -> Callable[..., None]:
    """Returns the function that prints a format text with the numbers that are its arguments."""
    unsigned: list[bool] = []

    def conversion(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%%"
        unsigned.append(kind in "uxXo")
        return f"%{match['flags']}{match['width']}{match['digits'] or ''}{'d' if kind in 'iu' else kind}"

    made = _CONVERSION.sub(conversion, text)

    def show(*values: float) -> None:
        given = [int(value) & ((1 << width) - 1) if bits else int(value) if isinstance(value, (bool, np.bool_)) else value
                 for value, width, bits in zip(values, widths, unsigned, strict=True)]
        with aside():
            print(made % tuple(given), end="")  # noqa: T201 - the kernel asks for the output

    return show


@custom("scratch")
def _scratch(em: PythonEmitter, op: hivm.CustomOp) -> None:
    """Emits the use of a buffer as scratch memory: it takes no time of its own, and leaves uninitialised bytes."""
    (buffer,) = (em.buffer(value) for value in op.temp_buffers)
    em.record_op(op, lambda slot: ScratchUse())
    em.line(f"{em.constant(poison_elements, 'undefine')}({em.array(buffer)})")


@custom("dump_tensor")
def _dump(em: PythonEmitter, op: hivm.CustomOp) -> None:
    facts = facts_of(op.attributes)
    buffer = em.buffer(op.ins()[0])
    em.record_op(op, lambda slot: ScalarAccess(store=False), pipe="S", called={"src": "value"})
    show = em.constant(_dumper(facts, str(buffer.element)), "dump_tensor")
    em.emit_print(f"{show}({read_array(em, buffer)})")


def in_rows(value: Array, held: Sequence[int]) -> Array:
    """Returns an array whose last two axes are the rows and the columns of matrices.

    An array with two axes more than ``held`` contains matrices in zN fractals ``[..., columns / c0, rows / 16, 16, c0]``, which
    are rearranged to rows and columns. Any other array is returned unchanged.

    Args:
        value: the array.
        held: the shape to return; the last two sizes are rows and columns, beyond which fractals are cut off.
    """
    if value.ndim != len(held) + 2:
        return value
    order = (*range(value.ndim - 4), value.ndim - 3, value.ndim - 2, value.ndim - 4, value.ndim - 1)
    rows, columns = value.shape[-3] * value.shape[-2], value.shape[-4] * value.shape[-1]
    return value.transpose(order).reshape(*value.shape[:-4], rows, columns)[..., :held[-2], :held[-1]]


def _dumper(facts: dict[str, Any], element: str) -> Callable[[Array], None]:
    def show(value: Array) -> None:
        value = in_rows(value, facts["held"])
        flat = value.reshape(-1)[:facts["count"]]
        if flat.dtype.kind not in "iubf":
            flat = flat.astype(np.float32)
        if facts["shape"]:
            flat = flat.reshape(facts["shape"])
        with aside():
            print(f"DumpTensor: desc={facts['desc']}, position={facts['place']}, data_type={element}, "  # noqa: T201 - as above
                  f"dump_size={facts['count']}")
            print(np.array2string(flat, threshold=sys.maxsize, separator=", "))  # noqa: T201 - the kernel asks for the output

    return show
