"""The table of handlers of op classes: complete, typed, and with one entry for each class."""

from __future__ import annotations

import typing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir import Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import InternalError
from tilelang_npu.simulator import simulate
from tilelang_npu.simulator.codegen import PythonEmitter, handlers

NOT_EXECUTED: dict[str, tuple[type[Operation], ...]] = {
    "atomics on single elements": (hivm.AtomicCasOp, hivm.AtomicRMWOp, hivm.AtomicXchgOp),
    "convolutions, and products of whole tensors in GM": (
        hivm.Conv1dL1Op, hivm.Conv2dL1Op, hivm.Conv3dL1Op, hivm.MatmulOp, hivm.MixGroupMatmulOp, hivm.MixMatmulOp),
    "ops of SIMT code": (
        hivm.EmbeddingGatherOp, hivm.GatherLoadOp, hivm.GatherTOp, hivm.IndexPutOp, hivm.IndirectLoadOp, hivm.IndirectStoreOp,
        hivm.LocalLoadOp, hivm.LocalStoreOp, hivm.ScatterStoreOp, hivm.ScatterTOp, hivm.StrideLoadOp,
        hivm.StrideStoreOp),
    "L1 to UB": (hivm.L12UBOp,),
    "loads from a bare pointer": (hivm.LoadScalarOp,),
    "layouts that a pass has yet to settle, and code that the toolchain has yet to fill in": (
        hivm.ConvertLayoutOp, hivm.CustomMacroOp),
    "what depends on the time": (hivm.GetSysCntOp,),
}
"""The ops of HIVM that nothing executes here, by why."""


def test_each_class_of_hivm_is_executed_or_known_as_not_executed() -> None:
    refused = {kind for kinds in NOT_EXECUTED.values() for kind in kinds}
    unknown = {kind for kind in hivm.OPERATIONS if handlers.handler_of(kind) is None}
    assert unknown == refused - {hivm.GetSysCntOp}  # which has a handler that says why it is refused


def test_the_page_of_the_error_lists_what_is_not_executed(root: Path) -> None:
    page = (root / "docs" / "diagnostics" / "T501.md").read_text(encoding="utf-8")
    for why, kinds in NOT_EXECUTED.items():
        named = ", ".join(f"`{kind.name.removeprefix('hivm.hir.')}`" for kind in kinds)
        assert f"- {why}: {named}" in page


def test_a_second_handler_of_a_class_is_an_error() -> None:
    before = dict(handlers.HANDLERS)
    with pytest.raises(InternalError, match=r"two handlers of .*\.dma\.LoadOp"):
        handlers.effect(hivm.LoadOp)(lambda em, op: None)
    with pytest.raises(InternalError, match=r"two handlers of .*\.dma\.LoadOp"):
        handlers.ignore(hivm.LoadOp)
    assert before == handlers.HANDLERS


def test_a_handler_of_a_class_that_derives_from_one_with_a_handler_is_an_error() -> None:
    with pytest.raises(InternalError, match=r"two handlers of .*\.VAddOp"):
        handlers.effect(hivm.elementwise_op("vadd"))(lambda em, op: None)
    for kind in handlers.HANDLERS:
        assert not any(base in handlers.HANDLERS for base in kind.__mro__[1:]), kind


def test_a_second_handler_of_a_custom_op_is_an_error() -> None:
    with pytest.raises(InternalError, match="two handlers of the custom op printf"):
        handlers.custom("printf")(lambda em, op: None)


def test_an_op_that_derives_from_one_with_a_handler_is_executed_by_it() -> None:
    class Added(arith.AddiOp):
        pass

    assert handlers.handler_of(Added) is handlers.HANDLERS[arith.AddiOp]


@pytest.mark.parametrize("kind", [kind for kind, handler in handlers.HANDLERS.items() if handler.kind != "nothing"],
                         ids=lambda kind: kind.__name__)
def test_a_handler_says_which_ops_it_takes(kind: type[Operation]) -> None:
    run = handlers.HANDLERS[kind].run
    hints = typing.get_type_hints(run.func if isinstance(run, partial) else run)
    assert hints["em"] is PythonEmitter
    assert issubclass(kind, hints["op"])


def test_a_scope_runs_as_its_ops_do() -> None:
    out = np.zeros(1, np.int32)
    simulate(parse_module("""
module attributes {hacc.target = #hacc.target<"Ascend910B2">} {
  func.func @k(%out: memref<1xi32, #hivm.address_space<gm>>) attributes {
      hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    %zero = arith.constant 0 : index
    %found = scope.scope : () -> (i32) {
      %seven = arith.constant 7 : i32
      scope.return %seven : i32
    }
    memref.store %found, %out[%zero] : memref<1xi32, #hivm.address_space<gm>>
    return
  }
}
"""), [out], blocks=1)
    assert out[0] == 7
