"""The ops that have a custom form."""

from __future__ import annotations

import pytest
from xdsl.dialects import memref
from xdsl.ir import Operation

from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.mlir import llvm
from tilelang_npu.dialects.text.formats import FORMATS, GENERIC, format_of, has_custom_form


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_each_format_is_one_of_an_op(name: str) -> None:
    op = make_context().get_optional_op(name)
    assert op is not None and format_of(op) is not None and has_custom_form(op)


def test_what_xdsl_writes_itself_has_no_format() -> None:
    assert format_of(memref.AllocOp) is None and has_custom_form(memref.AllocOp)


def test_what_its_text_would_leave_out_is_generic() -> None:
    kept: list[type[Operation]] = [op for op in llvm.LLVM.operations if op.name in GENERIC]
    assert kept and not any(has_custom_form(op) for op in kept)
