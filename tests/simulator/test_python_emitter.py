"""The source of a device function: Python that nests as the ops do, and names the op that nothing executes."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp

from simulator import texts
from tilelang_npu import TileError
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import Program
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.target import chip

N = f"memref<8xi32, {texts.GM}>"
# adds to N[7] in loops and branches, whose bounds are arguments of the kernel or loaded numbers
BODY = f"""\
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : index
    %bound = memref.load %N[%c0] : {N}
    %open = arith.index_cast %bound : i32 to index
    scf.for %i = %c0 to %open step %c1 {{
      scf.for %j = %c0 to %c7 step %c2 {{
        %even = arith.remui %i, %c2 : index
        %is = arith.cmpi eq, %even, %c0 : index
        scf.if %is {{
          %old = memref.load %N[%c7] : {N}
          %k = arith.index_cast %j : index to i32
          %new = arith.addi %old, %k : i32
          memref.store %new, %N[%c7] : {N}
        }} else {{
        }}
      }}
    }}
    scf.for %e = %c0 to %c2 step %c1 {{
    }}"""


def emitted(body: str = BODY) -> tuple[FuncOp, PythonEmitter]:
    module = parse_module(texts.module(texts.kernel("AIV", [f"%N: {N}"], body)))
    function = next(op for op in module.walk() if isinstance(op, FuncOp))
    return function, PythonEmitter(function, "AIV", chip("Ascend910B2"), 1)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_loops_and_branches_do_what_they_do_in_python(count: int) -> None:
    numbers = np.array([count, 0, 0, 0, 0, 0, 0, 100], np.int32)
    Program(parse_module(texts.module(texts.kernel("AIV", [f"%N: {N}"], BODY)))).run([numbers], blocks=1)
    assert numbers[7] == 100 + sum(j for i in range(count) for j in range(0, 7, 2) if i % 2 == 0)


def test_the_source_is_python_with_a_scope_for_each_of_the_ops() -> None:
    function, _ = emitted()
    module = parse_module(texts.module(texts.kernel("AIV", [f"%N: {N}"], BODY)))
    (compiled,) = Program(module).functions
    made = list(ast.walk(ast.parse(compiled.source)))
    loops = [op for op in function.walk() if isinstance(op, scf.ForOp)]
    assert sum(isinstance(node, (ast.For, ast.While)) for node in made) == len(loops)
    branch = next(node for node in made if isinstance(node, ast.If))
    assert branch.body


def test_only_the_loop_that_memory_bounds_has_a_length_by_data() -> None:
    function, emitter = emitted()
    loops = [op for op in function.walk() if isinstance(op, scf.ForOp)]
    assert [emitter.knows_length(loop) for loop in loops] == [False, True, True]


def test_an_empty_scope_is_a_statement_and_scopes_nest() -> None:
    _, emitter = emitted()
    emitter.line("if True:")
    outer = emitter.enter("branch")
    emitter.line("for x in range(3):")
    emitter.enter("loop")
    emitter.leave()
    assert emitter.scope is outer
    emitter.leave()
    lines = [line.text for line in emitter.scope.lines]
    assert lines == ["if True:", "for x in range(3):", "pass"]
    indents = [line.indent for line in emitter.scope.lines]
    assert indents == [indents[0] + depth for depth in range(3)]


def test_an_op_that_nothing_executes_is_named() -> None:
    function, emitter = emitted(BODY + "\n    %t = tensor.empty() : tensor<4xf32>")
    with pytest.raises(TileError, match=r"tensor\.empty") as caught:
        emitter.emit_block(function.body.block)
    assert caught.value.code == "T501"
