"""Output of ``T.printf`` and ``T.dump_tensor``: custom ops that print when the core runs them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.tile.calls import facts_of
from tilelang_npu.progress import aside
from tilelang_npu.simulator.codegen.handlers import custom
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.work import ScalarAccess

_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<digits>\.\d+)?(?:hh|h|ll|l|z)?(?P<kind>[diuxXoceEfFgG%])")


@custom("printf")
def _printf(em: PythonEmitter, op: hivm.CustomOp) -> None:
    texts, widths = [], []
    for ssa in op.ins():
        whole = isinstance(ssa.type, (IndexType, IntegerType))
        texts.append(em.spelled(em.integer(ssa)) if whole else em.expression(ssa).text)
        widths.append(ssa.type.width.data if isinstance(ssa.type, IntegerType) else 64)
    show = em.constant(_formatter(str(facts_of(op.attributes)["format"]), widths), "printf")
    em.shown(f"{show}({', '.join(texts)})")


def _formatter(text: str, widths: list[int]) -> Callable[..., None]:
    """Returns the function that prints the text with its numbers."""
    unsigned: list[bool] = []

    def spelled(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%%"
        unsigned.append(kind in "uxXo")
        return f"%{match['flags']}{match['width']}{match['digits'] or ''}{'d' if kind in 'iu' else kind}"

    made = _CONVERSION.sub(spelled, text)

    def show(*values: float) -> None:
        given = [int(value) & ((1 << width) - 1) if bits else int(value) if isinstance(value, (bool, np.bool_)) else value
                 for value, width, bits in zip(values, widths, unsigned, strict=True)]
        with aside():
            print(made % tuple(given), end="")  # noqa: T201 - the kernel asks for the output

    return show


@custom("dump_tensor")
def _dump(em: PythonEmitter, op: hivm.CustomOp) -> None:
    facts = facts_of(op.attributes)
    buffer = em.buffer(op.ins()[0])
    em.step(op, lambda slot: ScalarAccess(store=False), pipe="S", called={"src": "value"})
    show = em.constant(_dumper(facts, str(buffer.element)), "dump_tensor")
    em.shown(f"{show}({em.array(buffer)})")


def in_rows(value: Array, held: Sequence[int]) -> Array:
    """Returns a matrix of ``held`` rows and columns by rows, where it is in zN fractals: columns / c0, rows / 16, 16, c0."""
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
