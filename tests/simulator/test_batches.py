"""batchMmadL1: each matrix of a batch is a separate product; in a loop, with real sizes, transposed, and accumulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.kernel.foreign_modules import runnable
from tilelang_npu.simulator import Launch, Program, simulate


def batch(a: Any, b: Any, *, times: int = 1, k: int | None = None, turned: str = "", more: str = "", more_type: str = "",
          events: str = "") -> str:
    """``times`` products of the same batches into one accumulator, whose matrices leave one by one."""
    count, m, depth = a.shape if "a_" not in turned else (a.shape[0], a.shape[2], a.shape[1])
    n = b.shape[1 if "b_" in turned else 2]
    kinds = {name: f"{'x'.join(map(str, shape))}x{element}" for name, shape, element in (
        ("A", a.shape, "f16"), ("B", b.shape, "f16"), ("C", (count, m, n), "f32"))}
    acc = f"memref<{kinds['C']}, {texts.L0C}>"
    inside = f"memref<{kinds['A']}, {texts.L1}>, memref<{kinds['B']}, {texts.L1}>"
    lines = [f"    %{name} = arith.constant {value} : index" for name, value in (
        ("c0", 0), ("c1", 1), ("times", times), ("m", m), ("k", depth if k is None else k), ("n", n))]
    lines += [f"    %{name} = arith.constant {value} : i64" for name, value in (("e0", 0), ("e1", 1), ("unused", -1))]
    for name in "AB":
        lines += [f"    %l{name} = memref.alloc() : memref<{kinds[name]}, {texts.L1}>",
                  f"    hivm.hir.load ins(%{name} : memref<{kinds[name]}, {texts.GM}>) outs(%l{name} : "
                  f"memref<{kinds[name]}, {texts.L1}>)"]
    lines += [f"    %acc = memref.alloc() : {acc}", "    scf.for %i = %c0 to %times step %c1 {",
              "      %init = arith.cmpi eq, %i, %c0 : index\n      %turn = arith.index_cast %i : index to i64",
              f"      hivm.hir.batchMmadL1 {{{turned}}} ins(%lA, %lB, %init, %m, %k, %n{more} : {inside}, "
              f"{texts.SIZES}{more_type}) outs(%acc : {acc}) {events}", "    }"]
    for number in range(count):
        place = f"strided<[{n}, 1], offset: {number * m * n}>"
        parts = {space: f"memref<{m}x{n}xf32, {place}, {space}>" for space in (texts.L0C, texts.GM)}
        for to, of, space in (("p", "acc", texts.L0C), ("o", "C", texts.GM)):
            lines.append(f"    %{to}{number} = memref.subview %{of}[{number}, 0, 0] [1, {m}, {n}] [1, 1, 1] : "
                         f"memref<{kinds['C']}, {space}> to {parts[space]}")
        lines.append(f"    hivm.hir.fixpipe {{dma_mode = #hivm.dma_mode<nz2nd>}} ins(%p{number} : {parts[texts.L0C]}) "
                     f"outs(%o{number} : {parts[texts.GM]})")
    args = [f"%{name}: memref<{kind}, {texts.GM}>" for name, kind in kinds.items()]
    return texts.module(texts.kernel("AIC", args, "\n".join(lines)))


def run(text: str, *args: Any) -> Launch:
    """Runs the completed module and its printed text: equal cycles, no hazards."""
    module = runnable(parse_module(text))
    again = simulate(parse_module(print_module(module)), [array.copy() for array in args], blocks=1)
    launch = simulate(module, list(args), blocks=1, hazards=True)
    assert launch.hazards == []
    assert launch.cycles == again.cycles
    return launch


def small(*shape: int) -> Any:
    return np.random.default_rng([*shape]).integers(-3, 4, shape).astype(np.float16)


@pytest.mark.parametrize("turned", ["", "a_transpose", "b_transpose", "a_transpose, b_transpose"])
@pytest.mark.parametrize("times", [1, 3])
def test_each_matrix_is_a_product(turned: str, times: int) -> None:
    a, b = small(3, 32, 48), small(3, 48, 16)
    c = np.zeros((3, 32, 16), np.float32)
    given = [np.ascontiguousarray(array.swapaxes(1, 2)) if name in turned else array for name, array in (("a_", a), ("b_", b))]
    run(batch(*given, times=times, turned=turned), *given, c)
    np.testing.assert_array_equal(c, times * (a.astype(np.float32) @ b.astype(np.float32)))


def test_sums_of_a_real_length() -> None:
    a, b, c = small(2, 16, 48), small(2, 48, 32), np.zeros((2, 16, 32), np.float32)
    run(batch(a, b, k=20), a, b, c)
    np.testing.assert_array_equal(c, a[..., :20].astype(np.float32) @ b[:, :20].astype(np.float32))


def test_a_batch_takes_the_time_of_its_matrices() -> None:
    """Four times as many products of the same size."""
    cycles = []
    for count in (2, 8):
        a, b, c = small(count, 32, 64), small(count, 64, 32), np.zeros((count, 32, 32), np.float32)
        launch = run(batch(a, b), a, b, c)
        cycles.append(launch.busy_cycles["AIC"]["M"])
    assert cycles[1] == pytest.approx(4 * cycles[0])


def test_the_events_are_of_the_batch() -> None:
    """The first product waits for the operands, the last one lets them go: one wait and one set of each."""
    a, b, c = small(3, 16, 16), small(3, 16, 16), np.zeros((3, 16, 16), np.float32)
    events = texts.related("%unused, %unused, %e0, %e1, %turn, %unused, %unused")
    plain = parse_module(batch(a, b, events=events))
    text = print_module(runnable(plain))
    waits = texts.flags("wait", "MTE1", "MTE2", 0, 1)
    launch = simulate(parse_module(text.replace("    return\n", f"{waits}\n    return\n")), [a, b, c], blocks=1, hazards=True)
    assert launch.hazards == []
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(("shapes", "more", "code", "report"), [
    (((3, 16, 16), (2, 16, 16)), False, "T507", "batches of 3, 2, 3 matrices"),
    (((2, 16, 16), (2, 16, 16)), True, "T501", "the op does not define whether all matrices share its bias"),
    (((2, 16, 16), (2, 32, 16)), False, "", ""),
])
def test_what_is_no_batch_is_refused(shapes: Any, more: bool, code: str, report: str) -> None:
    a, b = (small(*shape) for shape in shapes)
    extra = {"more": ", %acc", "more_type": f", memref<2x16x16xf32, {texts.L0C}>"} if more else {}
    module = runnable(parse_module(batch(a, b, **extra)))
    if not code:  # longer than is asked for
        Program(module)
        return
    with pytest.raises(TileError, match=report) as raised:
        Program(module)
    assert raised.value.code == code
    assert raised.value.location is not None


def test_a_whole_batch_does_not_leave_at_once() -> None:
    acc, out = f"memref<2x16x16xf32, {texts.L0C}>", f"memref<2x16x16xf32, {texts.GM}>"
    body = (texts.tile("c", 0, "2x16x16", "f32", texts.L0C) +
            f"\n    hivm.hir.fixpipe {{dma_mode = #hivm.dma_mode<nz2nd>}} ins(%c : {acc}) outs(%C : {out})")
    with pytest.raises(TileError, match="its source in L0C is not a matrix"):
        Program(parse_module(texts.module(texts.kernel("AIC", [f"%C: {out}"], body))))
