"""The table of operations on vector registers: complete, and each step has an op for every element type."""

from __future__ import annotations

import pytest

import tilelang_npu.language as T
from tilelang_npu.interpreter.operation_table import OPERATIONS
from tilelang_npu.ops.register_operations import MLIR, REGISTER_OPERATIONS, RegisterOperation
from tilelang_npu.target.dtypes import DType


def op_of(step: str, kind: DType) -> str:
    floats, signed, unsigned = MLIR[step]
    return floats if kind.is_float else signed if kind.is_signed else unsigned


@pytest.mark.parametrize("entry", REGISTER_OPERATIONS.values(), ids=lambda entry: entry.name)
def test_an_entry_can_be_called_computed_and_lowered(entry: RegisterOperation) -> None:
    assert callable(getattr(T.vmi, entry.name))
    assert f"vmi.{entry.name}" in OPERATIONS, "the interpreter has its own meaning"
    assert set(entry.numbers) <= set(entry.operands)
    assert entry.steps[-1].target == "dst"
    known = set(entry.operands)
    for step in entry.steps:
        assert {part for part in step.operands if isinstance(part, str)} <= known, "a step reads what is computed before"
        known.add(step.target)
    assert entry.doc.endswith(".")


def test_every_element_type_has_an_op() -> None:
    missing = {(entry.name, step.op, kind.mlir) for entry in REGISTER_OPERATIONS.values() for step in entry.steps
               for kind in entry.elements if not op_of(step.op, kind)}
    # The lowering computes these in other ways: products and sums of integers, and negated integers.
    assert {(name, step) for name, step, _ in missing} == {("vmula", "fma"), ("vneg", "neg")}
