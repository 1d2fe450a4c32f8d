"""The attribute ``hivm.tcore_type`` of lowered operations: loops and branches have it where all their operations agree."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf

from tilelang_npu.analysis.cores import noted_core
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.target import chip
from tilelang_npu.transforms.lower.core_attributes import write_core

UB = "memref<16xf32, #hivm.address_space<ub>>"
ABS = f"hivm.hir.vabs ins(%u : {UB}) outs(%u : {UB})"
FLAG = "hivm.hir.set_flag[<PIPE_MTE1>, <PIPE_M>, <EVENT_ID0>]"
EITHER = "hivm.hir.pipe_barrier[<PIPE_ALL>]"


@pytest.mark.parametrize(("body", "core", "written"), [
    ([ABS], "AIV", "AIV"),  # implied by the memory of the operands
    ([EITHER], "AIV", "AIV"), ([EITHER], "AIC", "AIC"),
    ([ABS, EITHER], "AIV", "AIV"),
    ([ABS, EITHER], "AIC", None),  # an operation that the Cube core cannot execute
    ([FLAG], "AIC", "AIC"), ([FLAG, ABS], "AIC", None)])
def test_a_loop_has_the_core_of_its_operations(body: list[str], core: str, written: str | None) -> None:
    statements = "\n".join(body)
    module = parse_module(f"""func.func @k(%u: {UB}, %n: index, %p: i1) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {{
        scf.if %p {{
          {statements}
        }}
      }}
      return
    }}""")
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    (branch,) = [op for op in module.walk() if isinstance(op, scf.IfOp)]
    write_core(loop, core, chip("Ascend910B2"))
    assert (noted_core(loop), noted_core(branch)) == (written, written)
