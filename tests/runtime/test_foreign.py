"""Modules that other tools write, without addresses and waits: they run, with the numbers that they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

from tilelang_npu import TileError, simulator
from tilelang_npu.analysis.cores import core_of_function
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.kernel.foreign_modules import is_planned, runnable

FOLDER = Path(__file__).parent / "foreign"


def run(name: str, *args: Any, blocks: int = 1, hazards: bool = True) -> simulator.Launch:
    file = FOLDER / f"{name}.mlir"
    return simulator.simulate(runnable(parse_module(file.read_text(), str(file))), list(args), blocks=blocks, hazards=hazards)


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def test_vector_work() -> None:
    a, b, c = normal(48, 40), normal(48, 40, seed=1), np.zeros((48, 40), np.float32)
    assert run("scaled_sum", a, b, c, 0.5).hazards == []
    np.testing.assert_array_equal(c, a * np.float32(0.5) + b)


def test_both_cores_in_one_function() -> None:
    a, b, d = normal(64, 32, dtype=np.float16), normal(32, 48, dtype=np.float16), normal(64, 48)
    o = np.zeros_like(d)
    assert run("product_and_bias", a, b, d, o, blocks=2).hazards == []
    np.testing.assert_allclose(o, a.astype(np.float32) @ b.astype(np.float32) + d, rtol=1e-5, atol=1e-5)


def test_waits_of_the_author_are_kept_and_no_others_made() -> None:
    a, b = normal(256), np.zeros(256, np.float32)
    launch = run("own_waits", a, b)
    np.testing.assert_array_equal(b, np.maximum(a, 0))
    assert [hazard.first.pipe for hazard in launch.hazards] + [hazard.second.pipe for hazard in launch.hazards] == ["V", "MTE3"]


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.mlir")), ids=lambda file: file.stem)
def test_what_is_completed_is_a_planned_module(file: Path) -> None:
    module = parse_module(file.read_text(), str(file))
    assert not is_planned(module)
    runnable(module)
    assert is_planned(module)
    written = print_module(module)
    assert print_module(parse_module(written)) == written


def test_rows_on_tensors() -> None:
    x, y = normal(48, 40), np.zeros((48, 40), np.float32)
    assert run("softmax_of_tensors", x, y).hazards == []
    shifted = np.exp(x - np.maximum(x.max(1, keepdims=True), 0.5))
    np.testing.assert_allclose(y, shifted / shifted.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_tensors_that_loops_and_branches_hand_on(count: int) -> None:
    x, y = normal(64), np.zeros(64, np.float32)
    assert run("carried_tensors", x, y, count).hazards == []
    u, v = x, x * np.float32(2)
    for _ in range(count):
        u, v = v, u + v
    expected = (v - u if count >= 5 else v).copy()
    expected[32:48] = 2 * expected[8:24]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("body", "report"), [
    ("%t = bufferization.to_tensor %x restrict writable : memref<16xf32>\n"
     "%r = hfusion.isnan %t : tensor<16xf32> -> tensor<16xi1>", "hfusion.isnan has no corresponding HIVM operation"),
    ("%f = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>", "a constant tensor must have a single value"),
    ("%a = memref.alloc() : memref<16xf32>\n%b = memref.alloc() : memref<16xf32>\n"
     "%c = scf.if %p -> (memref<16xf32>) {\nscf.yield %a : memref<16xf32>\n} else {\nscf.yield %b : memref<16xf32>\n}",
     "scf.if returns a buffer"),
    ("%a = memref.alloc() : memref<16xf32>\nhivm.hir.vabs ins(%g : memref<?xf32>) outs(%g : memref<?xf32>)",
     "a vector operation uses a memref of dynamic size in global memory"),
    ("%t = bufferization.to_tensor %m restrict writable : memref<16x16xf16>\n%no = arith.constant false\n"
     "%s = arith.constant 16 : index\n%z = arith.constant 2.0 : f32\n%e = tensor.empty() : tensor<16x16xf32>\n"
     "%f = hivm.hir.vbrc ins(%z : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>\n"
     "%r = hivm.hir.mmadL1 ins(%t, %t, %no, %s, %s, %s : tensor<16x16xf16>, tensor<16x16xf16>, i1, index, index, index)"
     " outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>", "a vector operation uses a buffer in cc"),
    ("%t = bufferization.to_tensor %m restrict writable : memref<16x16xf16>\n"
     "%r = tensor.extract_slice %t[1, 0] [1, 16] [1, 1] : tensor<16x16xf16> to tensor<16xf16>\n"
     "%e = tensor.empty() : tensor<16xf16>\n"
     "%a = hivm.hir.vabs ins(%r : tensor<16xf16>) outs(%e : tensor<16xf16>) -> tensor<16xf16>", "a slice must keep all axes"),
    ("%t = bufferization.to_tensor %h restrict writable : memref<16x16xf16, strided<[?, 1]>>\n"
     "%r = tensor.extract_slice %t[1, 0] [2, 16] [1, 1] : tensor<16x16xf16> to tensor<2x16xf16>\n"
     "%e = tensor.empty() : tensor<2x16xf16>\n"
     "%a = hivm.hir.vabs ins(%r : tensor<2x16xf16>) outs(%e : tensor<2x16xf16>) -> tensor<2x16xf16>",
     "its buffer must have constant strides"),
])
def test_what_cannot_be_completed_is_refused_at_its_line(body: str, report: str) -> None:
    head = ("func.func @k(%x: memref<16xf32>, %g: memref<?xf32>, %m: memref<16x16xf16>, %p: i1, "
            "%h: memref<16x16xf16, strided<[?, 1]>>) attributes {hacc.entry} {")
    lines = [head, *body.split("\n"), "return", "}"]
    with pytest.raises(TileError, match=report) as caught:
        runnable(parse_module("\n".join(lines)))
    assert caught.value.location is not None
    assert 1 < caught.value.location.line < len(lines)


@pytest.mark.parametrize(("name", "space", "core"), [
    ("k", "ub", "AIV"), ("k", "cbuf", "AIC"), ("k_mix_aic", "cbuf", "AIC"), ("k_mix_aiv", "ub", "AIV")])
def test_the_core_of_a_finished_function_is_inferred(name: str, space: str, core: str) -> None:
    """A function with addresses and waits runs unchanged; its core is inferred from the memories that it loads."""
    load = "load" if space == "ub" else "nd2nz {dst_continuous}"
    kind = f"memref<16x16xf16, #hivm.address_space<{space}>>" if space == "ub" else (
        f"memref<1x1x16x16xf16, #hivm.address_space<{space}>>")
    module = runnable(parse_module("\n".join([
        f"func.func @{name}(%x: memref<16x16xf16, #hivm.address_space<gm>>) attributes {{hacc.entry}} {{",
        "%a = arith.constant 0 : i64",
        f"%u = hivm.hir.pointer_cast(%a) : {kind}",
        f"hivm.hir.{load} ins(%x : memref<16x16xf16, #hivm.address_space<gm>>) outs(%u : {kind})",
        "return", "}"])))
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    assert core_of_function(function) == core
    assert "hivm.tcore_type" not in print_module(module)


def test_a_product_on_tensors() -> None:
    a, b = normal(32, 48, dtype=np.float16), normal(64, 48, dtype=np.float16)
    c, d = np.zeros((2, 32, 64), np.float32)
    assert run("product_of_tensors", a, b, c, d).hazards == []
    right = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_allclose(c, right, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(d, np.maximum(right, 0), rtol=1e-5, atol=1e-5)


def test_a_batch_of_products_on_tensors() -> None:
    a, b = normal(3, 32, 48, dtype=np.float16), normal(3, 64, 48, dtype=np.float16)
    c, d = np.zeros((2, 3, 32, 64), np.float32)
    assert run("batch_of_products", a, b, c, d).hazards == []
    right = a.astype(np.float32) @ b.astype(np.float32).swapaxes(1, 2)
    np.testing.assert_allclose(c, right, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(d, np.maximum(right, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("value", "is_refused"), [("0.0", False), ("-0.0", False), ("1.0", True)])
def test_a_product_starts_from_zeros(value: str, is_refused: bool) -> None:
    """The matrix unit adds to its own accumulator, and would lose other values of the destination."""
    file = FOLDER / "product_of_tensors.mlir"
    text = file.read_text().replace("%zero = arith.constant 0.0 : f32", f"%zero = arith.constant {value} : f32")
    if is_refused:
        with pytest.raises(TileError, match="must be a tensor of zeros") as caught:
            runnable(parse_module(text, str(file)))
        assert caught.value.code == "T501"
    else:
        runnable(parse_module(text, str(file)))
