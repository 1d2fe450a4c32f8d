"""Scalar floats with a value for each block: which scalars they are, and the supported operations."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.dialects.func import FuncOp

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.codegen.per_block_scalars import UnbatchableFunctionError, array_rounder, find_per_block_scalars

X = f"memref<8xf32, {texts.GM}>"
HEAD = """\
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %one = arith.constant 1.0 : f32
    %x = memref.load %X[%c1] : """ + X + "\n"


def function(body: str) -> FuncOp:
    args = [f"%X: {X}", f"%N: memref<8xi32, {texts.GM}>"]
    module = parse_module(texts.module(texts.kernel("AIV", args, HEAD + body)))
    return next(op for op in module.walk() if isinstance(op, FuncOp))


def test_values_derived_from_a_load_depend_on_it_until_they_are_stored() -> None:
    made = function(f"""\
    %y = memref.load %X[%c0] : {X}
    %two = arith.addf %one, %one : f32
    %s = arith.mulf %x, %two : f32
    %t = arith.addf %s, %y : f32
    memref.store %t, %X[%c1] : {X}
""")
    loads = [op for op in made.walk() if isinstance(op, memref.LoadOp)]
    found = find_per_block_scalars(made)
    product, total = (next(op.results[0] for op in made.walk() if isinstance(op, kind) and op.operands[0] in found)
                      for kind in (arith.MulfOp, arith.AddfOp))
    assert found == {loads[0].results[0]: {loads[0]}, loads[1].results[0]: {loads[1]}, product: {loads[0]},
                     total: {loads[0], loads[1]}}


def test_loops_and_storage_hand_them_on() -> None:
    made = function(f"""\
    %v = memref.alloca() : memref<1xf32>
    %z = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %one) -> (f32) {{
      %m = memref.load %X[%i] : {X}
      %n = arith.maximumf %a, %m : f32
      scf.yield %n : f32
    }}
    memref.store %z, %v[%c0] : memref<1xf32>
    %w = memref.load %v[%c0] : memref<1xf32>
    memref.store %w, %X[%c0] : {X}
""")
    found = find_per_block_scalars(made)
    (loop,) = (op for op in made.walk() if isinstance(op, scf.ForOp))
    inner = next(op for op in loop.body.block.ops if isinstance(op, memref.LoadOp))
    assert found[loop.results[0]] == found[loop.body.block.args[1]] == {inner}
    (storage,) = (op.results[0] for op in made.walk() if isinstance(op, memref.AllocaOp))
    assert found[storage] == {inner}
    last = [op for op in made.walk() if isinstance(op, memref.LoadOp)][-1]
    assert found[last.results[0]] == {inner}


@pytest.mark.parametrize("body", [
    "    %b = arith.cmpf ogt, %x, %one : f32\n",
    "    %i = arith.fptosi %x : f32 to i32\n",
    f"    %n = memref.load %N[%c0] : memref<8xi32, {texts.GM}>\n",
    "    %d = arith.divf %one, %x : f32\n",
    "    %b = arith.truncf %x : f32 to bf16\n",
])
def test_what_has_to_be_one_for_all_blocks_keeps_them_apart(body: str) -> None:
    with pytest.raises(UnbatchableFunctionError):
        find_per_block_scalars(function(body))


def test_a_function_that_reads_nothing_has_none() -> None:
    module = parse_module(texts.module(texts.kernel("AIV", [f"%X: {X}"], "    %one = arith.constant 1.0 : f32")))
    assert find_per_block_scalars(next(op for op in module.walk() if isinstance(op, FuncOp))) == {}


def test_arrays_are_rounded_as_single_numbers_are(rng: np.random.Generator) -> None:
    values = rng.standard_normal(200) * 10.0 ** rng.integers(-30, 30, 200)
    assert array_rounder(Float32Type())(values).tolist() == [float(np.float32(value)) for value in values]
    assert array_rounder(Float64Type())(values).tolist() == values.tolist()
