"""Loops without order, maps and loops over maps in modules of other tools: they run, with the numbers that they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang_npu import TileError, simulator
from tilelang_npu.cli import main
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.runtime.kernel.foreign_modules import runnable

GM = "#hivm.address_space<gm>"
ENTRY = ("attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, "
         "hivm.func_core_type = #hivm.func_core_type<AIV>}")


def _kernel(arguments: str, body: str) -> str:
    return (f"func.func @k({arguments}) {ENTRY} {{\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
            f"{body}\nreturn\n}}\n")


def _run(text: str, *args: Any, blocks: int = 1) -> simulator.Launch:
    return simulator.simulate(runnable(parse_module(text)), list(args), blocks=blocks, hazards=True)


def _refused(text: str) -> TileError:
    with pytest.raises(TileError) as caught:
        _run(text, np.zeros((5, 7), np.float32), np.zeros((5, 7), np.float32), 3)
    return caught.value


MATRICES = f"%x: memref<5x7xf32, {GM}>, %y: memref<5x7xf32, {GM}>, %n: index"
MATRIX = f"memref<5x7xf32, {GM}>"


def _x() -> Any:
    return np.random.default_rng(3).standard_normal((5, 7)).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_iterations_without_order(n: int) -> None:
    x, y = _x(), np.zeros((5, 7), np.float32)
    _run(_kernel(MATRICES, f"""
      scf.forall (%i, %j) = (0, 1) to (%n, 7) step (1, 2) {{
        %v = memref.load %x[%i, %j] : {MATRIX}
        memref.store %v, %y[%i, %j] : {MATRIX}
      }}"""), x, y, n)
    expected = np.zeros_like(x)
    expected[:n, 1::2] = x[:n, 1::2]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("blocks", [1, 2, 5, 24])
@pytest.mark.parametrize("bounds", ["in (%n, 7)", "= (0, 0) to (%n, 7) step (1, 1)", "= (0, 1) to (%n, 7) step (2, 3)"])
def test_iterations_dealt_out_to_blocks(blocks: int, bounds: str) -> None:
    """Each iteration is executed once, for any number of blocks: it adds to its element."""
    x, y = _x(), _x()
    _run(_kernel(MATRICES, f"""
      scf.forall (%i, %j) {bounds} {{
        %v = memref.load %x[%i, %j] : {MATRIX}
        %w = memref.load %y[%i, %j] : {MATRIX}
        %s = arith.addf %v, %w : f32
        memref.store %s, %y[%i, %j] : {MATRIX}
      }} {{mapping = [#hivm.block, #hivm.block]}}"""), x, y, 4, blocks=blocks)
    expected = x.copy()
    part = (slice(0, 4, 2), slice(1, 7, 3)) if "(2, 3)" in bounds else (slice(0, 4), slice(0, 7))
    expected[part] += x[part]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_that_iterations_fold(n: int) -> None:
    x, y, s = _x(), np.zeros(2, np.float32), 0.25
    _run(_kernel(f"%x: {MATRIX}, %y: memref<2xf32, {GM}>, %n: index, %s: f32", f"""
      %c7 = arith.constant 7 : index
      %least = arith.constant 100.0 : f32
      %a, %b = scf.parallel (%i, %j) = (%c0, %c1) to (%n, %c7) step (%c1, %c1) init (%s, %least) -> (f32, f32) {{
        %v = memref.load %x[%i, %j] : {MATRIX}
        scf.reduce(%v, %v : f32, f32) {{
        ^bb0(%l: f32, %r: f32):
          %t = arith.addf %l, %r : f32
          scf.reduce.return %t : f32
        }}, {{
        ^bb0(%l: f32, %r: f32):
          %t = arith.minimumf %l, %r : f32
          scf.reduce.return %t : f32
        }}
      }}
      memref.store %a, %y[%c0] : memref<2xf32, {GM}>
      memref.store %b, %y[%c1] : memref<2xf32, {GM}>"""), x, y, n, s)
    total = np.float32(s)
    for value in x[:n, 1:].flat:
        total = np.float32(total + value)
    np.testing.assert_array_equal(y, [total, min([100.0, *x[:n, 1:].flat])])


@pytest.mark.parametrize(("expression", "meaning"), [
    ("affine.apply affine_map<(d0)[s0] -> (d0 * 3 - s0 + 2)>(%i)[%n]", lambda i, n: 3 * i - n + 2),
    ("affine.apply affine_map<(d0)[s0] -> ((d0 - s0) mod 4)>(%i)[%n]", lambda i, n: (i - n) % 4),
    ("affine.apply affine_map<(d0)[s0] -> ((d0 - s0) floordiv 4)>(%i)[%n]", lambda i, n: (i - n) // 4),
    ("affine.apply affine_map<(d0)[s0] -> ((d0 - s0) ceildiv 4)>(%i)[%n]", lambda i, n: -((n - i) // 4)),
    ("affine.apply affine_map<(d0)[s0] -> (d0 mod s0 + d0 floordiv s0)>(%i)[%n]", lambda i, n: i % n + i // n),
    ("affine.min affine_map<(d0)[s0] -> (d0, s0 - 2, 4)>(%i)[%n]", lambda i, n: min(i, n - 2, 4)),
    ("affine.max affine_map<(d0)[s0] -> (d0, s0 - 2, 1)>(%i)[%n]", lambda i, n: max(i, n - 2, 1)),
])
@pytest.mark.parametrize("n", [1, 3, 6])
def test_maps(expression: str, meaning: Any, n: int) -> None:
    y = np.zeros(7, np.int32)
    _run(_kernel(f"%y: memref<7xi32, {GM}>, %n: index", f"""
      affine.for %i = 0 to 7 {{
        %v = {expression}
        %w = arith.index_cast %v : index to i32
        affine.store %w, %y[%i] : memref<7xi32, {GM}>
      }}"""), y, n)
    np.testing.assert_array_equal(y, [meaning(i, n) for i in range(7)])


@pytest.mark.parametrize("n", [0, 2, 5, 9])
def test_loops_over_maps(n: int) -> None:
    """Bounds that are maxima and minima of several maps, carried values, and accesses with maps."""
    x, y = _x(), np.zeros((5, 7), np.float32)
    _run(_kernel(MATRICES, f"""
      %z = arith.constant 0.5 : f32
      %s = affine.for %i = max affine_map<()[s0] -> (1, s0 - 4)>()[%n] to min affine_map<()[s0] -> (5, s0)>()[%n] step 2
          iter_args(%u = %z) -> (f32) {{
        %v = affine.load %x[%i - 1, %i + 1] : {MATRIX}
        %w = arith.addf %u, %v : f32
        affine.yield %w : f32
      }}
      memref.store %s, %y[%c0, %c1] : {MATRIX}"""), x, y, n)
    total = np.float32(0.5)
    for i in range(max(1, n - 4), min(5, n), 2):
        total = np.float32(total + x[i - 1, i + 1])
    assert y[0, 1] == total


@pytest.mark.parametrize("own", [False, True])
def test_tensors_that_iterations_share(own: bool) -> None:
    """Each iteration writes a row, and may read its old contents."""
    x, y = _x(), np.zeros((5, 7), np.float32)
    old = "tensor.extract_slice %o[%i, 0] [1, 7] [1, 1] : tensor<5x7xf32> to tensor<1x7xf32>"
    new = "tensor.extract_slice %t[%i, 0] [1, 7] [1, 1] : tensor<5x7xf32> to tensor<1x7xf32>"
    _run(_kernel(MATRICES.replace(f", {GM}", ""), f"""
      %t = bufferization.to_tensor %x restrict writable : memref<5x7xf32>
      %r = scf.forall (%i) in (3) shared_outs(%o = %t) -> (tensor<5x7xf32>) {{
        %e = tensor.empty() : tensor<1x7xf32>
        %a = {old if own else new}
        %b = hivm.hir.vabs ins(%a : tensor<1x7xf32>) outs(%e : tensor<1x7xf32>) -> tensor<1x7xf32>
        scf.forall.in_parallel {{
          tensor.parallel_insert_slice %b into %o[%i, 0] [1, 7] [1, 1] : tensor<1x7xf32> into tensor<5x7xf32>
        }}
      }}
      bufferization.materialize_in_destination %r in writable %y : (tensor<5x7xf32>, memref<5x7xf32>) -> ()"""), x, y, 0)
    expected = x.copy()
    expected[:3] = np.abs(x[:3])
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("body", "line", "message"), [
    (f"scf.forall (%i) in (%n) {{\nmemref.copy %x, %y : {MATRIX} to {MATRIX}\n}} {{mapping = [1]}}", 4,
     "an scf.forall with a mapping must be mapped to #hivm.block only, and must have no shared_outs"),
    ("%t = tensor.empty() : tensor<5x7xf32>\n%r = scf.forall (%i) in (3) shared_outs(%o = %t) -> (tensor<5x7xf32>) {\n"
     "%a = tensor.extract_slice %o[0, 0] [1, 7] [1, 1] : tensor<5x7xf32> to tensor<7xf32>\nscf.forall.in_parallel {\n"
     "tensor.parallel_insert_slice %a into %o[%i, 0] [1, 7] [1, 1] : tensor<7xf32> into tensor<5x7xf32>\n}\n}", 6,
     "an iteration of scf.forall reads more of a shared tensor than the slice that the iteration inserts"),
    ("%a = affine.apply affine_map<(d0) -> (d0 mod 0)>(%n)", 4, "affine.apply divides by 0, which is not positive"),
    ("%a = affine.max affine_map<(d0) -> (d0 floordiv -2)>(%n)", 4, "affine.max divides by -2, which is not positive"),
    ('"affine.if"(%n) <{condition = affine_set<(d0) : (d0 >= 0)>}> ({\n^bb0:\n"affine.yield"() : () -> ()\n}, {\n})'
     " : (index) -> ()", 4, "affine.if is not supported"),
    (f"%g = memref.get_global @table : {MATRIX}\nmemref.copy %g, %y : {MATRIX} to {MATRIX}", 4,
     "the simulator does not execute memref.get_global"),
    ("%s = memref.alloca() : memref<1xindex>\n%f = memref.reshape %x(%s) :"
     f" ({MATRIX}, memref<1xindex>) -> memref<35xf32, {GM}>\n%v = memref.load %f[%n] : memref<35xf32, {GM}>\n"
     f"memref.store %v, %y[%c0, %c0] : {MATRIX}", 5, "the simulator does not execute memref.reshape"),
    (f"%p = ub.poison : f32\nmemref.store %p, %y[%c0, %c0] : {MATRIX}", 4, "the simulator does not execute ub.poison"),
])
def test_refused(body: str, line: int, message: str) -> None:
    table = f"memref.global \"private\" constant @table : {MATRIX} = dense<1.0>\n" if "@table" in body else ""
    error = _refused(_kernel(MATRICES, body) + table)
    assert (error.code, error.message) == ("T501", message)
    assert error.location is not None
    assert error.location.line == line


def test_the_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A buffer without a rank is refused before anything runs."""
    file = tmp_path / "k.mlir"
    file.write_text(_kernel(f"%x: memref<*xf32, {GM}>, %n: index", "scf.forall (%i) in (%n) {\n}"))
    assert main(["sim", str(file), "--size", "n=3"]) == 1
    assert "argument x is a buffer without a rank: memref<*xf32" in capsys.readouterr().err
