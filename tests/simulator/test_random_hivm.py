"""Random legal HIVM: the module, its printed and parsed text, and the module that the passes make without addresses are
equivalent.

A module is a straight line of vector work, with loops, over a few buffers; the reference computes it with NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.kernel.foreign_modules import runnable

BINARY = {"vadd": np.add, "vsub": np.subtract, "vmul": np.multiply, "vmax": np.maximum, "vmin": np.minimum}
UNARY = {"vabs": np.abs, "vrelu": lambda a: np.maximum(a, 0)}
BUFFERS = 3
Step = tuple[str, int, int, int]


@st.composite
def programs(draw: Any) -> tuple[list[Step], int, tuple[int, int]]:
    """Steps of (op, destination, two sources), how often they are repeated, and the shape of all buffers."""
    place = st.integers(0, BUFFERS - 1)
    names = st.sampled_from([*BINARY, *UNARY, "row", "wide"])
    steps = draw(st.lists(st.tuples(names, place, place, place), min_size=1, max_size=6))
    return steps, draw(st.integers(0, 3)), (draw(st.integers(1, 5)), draw(st.sampled_from([8, 24, 40, 64])))


def text_of(steps: list[Step], times: int, shape: tuple[int, int]) -> str:
    rows, columns = shape
    ub, gm, row = (f"memref<{rows}x{width}xf32, #hivm.address_space<{space}>>"
                   for width, space in ((columns, "ub"), (columns, "gm"), (1, "ub")))
    lines = [f"func.func @k({', '.join(f'%g{i}: {gm}' for i in range(BUFFERS))}) attributes {{hacc.entry, "
             "hacc.function_kind = #hacc.function_kind<DEVICE>} {",
             "%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index",
             f"%n = arith.constant {times} : index", f"%r = memref.alloc() : {row}"]
    lines += [f"%b{i} = memref.alloc() : {ub}" for i in range(BUFFERS)]
    lines += [f"hivm.hir.load ins(%g{i} : {gm}) outs(%b{i} : {ub})" for i in range(BUFFERS)]
    lines.append("scf.for %i = %c0 to %n step %c1 {")
    for name, target, first, second in steps:
        out = f"outs(%b{target} : {ub})"
        if name == "row":
            lines.append(f"hivm.hir.vreduce <max> ins(%b{first} : {ub}) outs(%r : {row}) reduce_dims = [1]")
            lines.append(f"hivm.hir.vsub ins(%b{first}, %r : {ub}, {row}) {out} broadcast = [1]")
        elif name == "wide":
            lines.append(f"hivm.hir.load ins(%g{first} : {gm}) {out}")
        elif name in UNARY:
            lines.append(f"hivm.hir.{name} ins(%b{first} : {ub}) {out}")
        else:
            lines.append(f"hivm.hir.{name} ins(%b{first}, %b{second} : {ub}, {ub}) {out}")
    lines.append("}")
    lines += [f"hivm.hir.store ins(%b{i} : {ub}) outs(%g{i} : {gm})" for i in range(BUFFERS)]
    return "\n".join([*lines, "return", "}"])


def expected(steps: list[Step], times: int, given_: list[Any]) -> list[Any]:
    held = [array.copy() for array in given_]
    for _ in range(times):
        for name, target, first, second in steps:
            if name == "row":
                held[target] = held[first] - held[first].max(1, keepdims=True)
            elif name == "wide":
                held[target] = given_[first].copy()
            else:
                held[target] = UNARY[name](held[first]) if name in UNARY else BINARY[name](held[first], held[second])
    return held


@settings(max_examples=40, deadline=None)
@given(programs())
def test_the_numbers_the_text_and_the_cycles(program: tuple[list[Step], int, tuple[int, int]]) -> None:
    steps, times, shape = program
    rng = np.random.default_rng(0)
    before = [rng.uniform(-1, 1, shape).astype(np.float32) for _ in range(BUFFERS)]
    module = runnable(parse_module(text_of(steps, times, shape)))
    again = parse_module(print_module(module))
    results = []
    for one in (module, again):
        arrays = [array.copy() for array in before]
        launch = simulator.simulate(one, arrays, blocks=1, hazards=True)
        assert launch.hazards == []
        results.append((launch.cycles, [array.tobytes() for array in arrays]))
    assert results[0] == results[1]
    for array, right in zip(arrays, expected(steps, times, before), strict=True):
        np.testing.assert_array_equal(array, right)
