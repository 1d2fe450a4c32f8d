"""Custom forms of MLIR's own ops, as other tools write them: they are accepted if MLIR accepts them, and printed again.

A line of ``verdicts/forms.txt`` has one form: its operands, and the op. MLIR verifies them through its Python bindings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.mlir_bindings import new_context

FORMS = (Path(__file__).parent / "verdicts" / "forms.txt").read_text().splitlines()
SINCE_LLVM_19 = (
    r"cannot be parsed from attr-dict when strict properties",  # LLVM 19 reads any property there
    r"out-of-bounds",  # LLVM 19 does not check the end of a slice
    r"'tensor.expand_shape' op invalid output shape",  # LLVM 19 compares the sizes of memrefs alone
    r"'(bufferization.to_memref|linalg.elemwise_\w+)' is unknown|'bufferization.to_tensor' expected 'to'",  # other names now
)
"""Messages of newer versions of MLIR for forms that LLVM 19, on which AscendNPU-IR is built, accepts."""


def _function(form: str) -> str:
    arguments, _, op = form.partition("=>")
    return f"func.func @f({arguments.strip()}) {{\n  {op.strip()}\n  return\n}}"


@pytest.fixture(scope="module")
def ir() -> Iterator[Any]:
    pytest.importorskip("iree.compiler.ir", reason="iree.compiler is not installed")
    found = import_module("iree.compiler.ir")
    with new_context("iree.compiler") as context:
        context.allow_unregistered_dialects = True
        yield found


def _generic(ir: Any, text: str) -> str:
    return str(ir.Module.parse(text).operation.get_asm(print_generic_op_form=True))


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_taken_as_by_mlir(ir: Any, form: str) -> None:
    text = _function(form)
    try:
        theirs = _generic(ir, text)
    except ir.MLIRError as error:
        report = "; ".join(diagnostic.message for diagnostic in error.error_diagnostics)
        if not any(re.search(pattern, report) for pattern in SINCE_LLVM_19):
            with pytest.raises(TileError):
                parse_module(text)
            return
        theirs = ""
    module = parse_module(text)
    generic = print_module(module, generic=True)
    if theirs:
        assert _generic(ir, generic) == theirs
    again = parse_module(print_module(module))
    assert print_module(again, generic=True) == generic
