"""Invalid casts, comparisons and selects of tensors, with MLIR's messages; valid ones are in ``arith_on_tensors.mlir``."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith

from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError


def _refused(line: str) -> TileError:
    text = ("func.func @f(%i: i32, %c: i1, %t: tensor<8xi32>, %u: tensor<4xi32>, %x: tensor<8xf32>, %v: vector<8xi32>,"
            f" %m: tensor<4xi1>, %n: index) {{\n  %0 = {line}\n  return\n}}")
    with pytest.raises(TileError) as caught:
        parse_module(text, "arith.mlir")
    assert caught.value.location is not None
    assert caught.value.location.line == 2
    return caught.value


@pytest.mark.parametrize(("op", "source", "result"), [
    ("extsi", "%t : tensor<8xi32>", "tensor<8xi32>"), ("extui", "%i : i32", "i16"),
    ("extsi", "%t : tensor<8xi32>", "tensor<4xi64>"),
    ("extsi", "%t : tensor<8xi32>", "i64"), ("extsi", "%t : tensor<8xi32>", "vector<8xi64>"), ("trunci", "%i : i32", "i64"),
    ("trunci", "%v : vector<8xi32>", "vector<4xi8>"), ("sitofp", "%t : tensor<8xi32>", "tensor<8x1xf32>"),
    ("fptosi", "%x : tensor<8xf32>", "i32"), ("index_cast", "%i : i32", "i64"), ("index_cast", "%n : index", "index"),
    ("index_cast", "%t : tensor<8xi32>", "tensor<4xindex>"),
])
def test_casts(op: str, source: str, result: str) -> None:
    error = _refused(f"arith.{op} {source} to {result}")
    kind = source.split(" : ")[1]
    assert error.code == "T602"
    assert error.message == f"'arith.{op}' op operand type '{kind}' and result type '{result}' are cast incompatible"


@pytest.mark.parametrize("cast", [
    '"arith.extsi"(%x) : (tensor<8xf32>) -> tensor<8xi64>', '"arith.sitofp"(%t) : (tensor<8xi32>) -> tensor<8xi64>'])
def test_casts_of_other_elements(cast: str) -> None:
    assert _refused(cast).code == "T602"


@pytest.mark.parametrize(("line", "message"), [
    ('"arith.cmpi"(%t, %t) <{predicate = 2 : i64}> : (tensor<8xi32>, tensor<8xi32>) -> i1',
     "'arith.cmpi' op failed to verify that result type has i1 element type and same shape as operands"),
    ('"arith.cmpf"(%x, %x) <{predicate = 2 : i64, fastmath = #arith.fastmath<none>}> : (tensor<8xf32>, tensor<8xf32>)'
     " -> tensor<4xi1>", "'arith.cmpf' op failed to verify that result type has i1 element type and same shape as operands"),
    ('"arith.cmpi"(%t, %u) <{predicate = 2 : i64}> : (tensor<8xi32>, tensor<4xi32>) -> tensor<8xi1>',
     "'arith.cmpi' op requires all operands to have the same type"),
    ("arith.select %m, %t, %t : tensor<4xi1>, tensor<8xi32>",
     "'arith.select' op expected condition type to have the same shape as the result type, expected 'tensor<8xi1>', but got"
     " 'tensor<4xi1>'"),
    ("arith.select %m, %i, %i : tensor<4xi1>, i32",
     "'arith.select' op expected condition to be a signless i1, but got 'tensor<4xi1>'"),
])
def test_comparisons_and_choices(line: str, message: str) -> None:
    error = _refused(line)
    assert (error.code, error.message) == ("T602", message)


@pytest.mark.parametrize("line", [
    "arith.select %c, %t : tensor<8xi32>", "arith.select %c, %t, %t : tensor<4xi1>, tensor<8xi32>"])
def test_choices_that_are_no_choices(line: str) -> None:
    assert _refused(line).code == "T601"


def test_passes_know_the_ops_as_those_of_xdsl() -> None:
    """Text makes the wider class, a pass xDSL's own: one is a kind of the other."""
    for op in arith.Arith.operations:
        read = make_context().get_optional_op(op.name)
        assert read is not None
        assert issubclass(read, op)
