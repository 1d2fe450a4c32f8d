"""Whether a literal of a kernel is a size, an index or a part of the computation, decided by the syntax tree."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

import libcst as cst

from improve.scripts import EDITABLE, FACTS
from tilelang_npu.runtime.improve.subjects.literal_uses import Use, literal_uses
from tilelang_npu.runtime.improve.subjects.source_numbers import numbers
from tilelang_npu.runtime.improve.subjects.subject import ScriptTree

HEAD = '''
SHIFT = 20
WIDTH = 640


@T.macro
def doubled(x, n, factor):
    for j in T.Parallel(n):
        x[j] = x[j] * factor


@tilelang.jit
def kernel(n):
    @T.prim_func
    def main(X: T.Tensor((n,), "int32")):
        with T.Kernel(48, is_npu=True) as (b, _):
            x = T.alloc_shared((256,), "int32")
'''


def uses_of(statement: str) -> dict[int, set[Use]]:
    """The uses of the integers of a statement of a kernel, by value; the integers of the rest of the kernel are left out."""
    tree = ScriptTree(f"{HEAD}            {statement}\n\n    return main\n", "kernel")
    found = literal_uses(tree).of_literal
    first = len(HEAD.splitlines())
    made: dict[int, set[Use]] = {}
    for literal in tree.all(cst.Integer):
        if tree.line(literal) > first:
            made.setdefault(literal.evaluated_value, set()).add(found[id(literal)])
    return made


@pytest.mark.parametrize(("statement", "expected"), [
    ("x[0] = x[0] << 28 >> 24", {0: {Use.INDEX}, 28: {Use.VALUE}, 24: {Use.VALUE}}),
    ("T.copy(x, X[b * 256])", {256: {Use.INDEX}}),
    ("T.copy(x, X[b * 256:b * 256 + 32])", {256: {Use.SIZE}, 32: {Use.SIZE}}),
    ("T.copy(x, X[(b << 18) & 255])", {18: {Use.VALUE}, 255: {Use.VALUE}}),
    ("T.vmul(x, 64, x)", {64: {Use.VALUE}}),
    ("T.fill(T.alloc_shared([T.ceildiv(1000, 16)], 'int32'), 17)", {1000: {Use.SIZE}, 16: {Use.SIZE}, 17: {Use.VALUE}}),
    ("for i in T.serial(T.ceildiv(n, 48)): x[i] = x[i] + 48", {48: {Use.SIZE, Use.VALUE}}),
    ("row = b * 256; T.copy(X[row], x)", {256: {Use.INDEX}}),
    ("mask = 255; x[0] = x[0] & mask", {255: {Use.VALUE}, 0: {Use.INDEX}}),
    ("wide, mask = 32, 31; y = T.alloc_shared((wide,), 'int32')", {32: {Use.SIZE}, 31: {Use.VALUE}}),
    ("doubled(x, 256, 96)", {256: {Use.SIZE}, 96: {Use.VALUE}}),
    ("doubled(x, factor=96, n=256)", {256: {Use.SIZE}, 96: {Use.VALUE}}),
    ("x[0] = T.if_then_else(b * 64 < n, 17, T.if_then_else(x[0] < 19, 21, 23))",
     {0: {Use.INDEX}, 64: {Use.INDEX}, 17: {Use.VALUE}, 19: {Use.VALUE}, 21: {Use.VALUE}, 23: {Use.VALUE}}),
    ("for i in T.Pipelined(18, num_stages=2): pass", {18: {Use.SIZE}, 2: {Use.VALUE}}),
])
def test_uses_of_literals(statement: str, expected: dict[int, set[Use]]) -> None:
    assert uses_of(statement) == expected


def test_constants_of_the_computation_are_no_numbers_to_edit() -> None:
    text = HEAD + '''\
            for i in T.Parallel(WIDTH):
                x[i] = ((x[i] << 28 >> 28) & 255) * 48 + SHIFT
            T.copy(x, X[b * 256])

    return main
'''
    by_name = {one.name: one for one in numbers(ScriptTree(text, "kernel"), FACTS)}
    assert by_name.keys() == {"WIDTH", "'48'", "'256'"}
    assert [len(by_name[name].places) for name in by_name] == [1, 1, 2], "the factor 48 stays"


def test_uses_of_names_flow_into_macros() -> None:
    uses = literal_uses(ScriptTree(EDITABLE, "kernel")).of_name
    assert {name for name, use in uses.items() if use is Use.SIZE} >= {"BLOCK", "tile", "wide", "rows", "n"}
    assert uses.get("x") is None and uses.get("UNUSED") is None
