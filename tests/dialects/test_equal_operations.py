"""Operations that compute the same have one key; others have different ones."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

from tilelang_npu.dialects.ir.equal_operations import attributes_of, operation_key
from tilelang_npu.dialects.text import parse_module

TEXT = """
func.func @k(%x: f32, %y: f32) {{
  %a = {first}
  %b = {second}
  return
}}
"""


def operations(first: str, second: str) -> list[Operation]:
    return [op for op in parse_module(TEXT.format(first=first, second=second)).walk() if op.name.startswith("arith.")]


@pytest.mark.parametrize(("second", "equal"), [
    ("arith.addf %x, %y : f32", True), ("arith.addf %y, %x : f32", False), ("arith.mulf %x, %y : f32", False),
    ("arith.addf %x, %y fastmath<fast> : f32", False)])
def test_operands_names_and_attributes_decide(second: str, equal: bool) -> None:
    one, other = operations("arith.addf %x, %y : f32", second)
    assert (operation_key(one) == operation_key(other)) is equal


@pytest.mark.parametrize(("second", "equal"), [
    ("arith.constant 0.0 : f32", True), ("arith.constant -0.0 : f32", False), ("arith.constant 0.0 : f16", False)])
def test_constants(second: str, equal: bool) -> None:
    one, other = operations("arith.constant 0.0 : f32", second)
    assert (operation_key(one) == operation_key(other)) is equal
    assert (attributes_of(one) == attributes_of(other)) is equal
