"""Optional properties with a default: stated explicitly they are written, be it with the default; not stated they are not."""

from __future__ import annotations

import re

import pytest
from xdsl.irdl import OptPropertyDef

from dialects.every_op import known_ops
from tilelang_npu.dialects.ir.declaration import DialectOp
from tilelang_npu.dialects.text import parse_module, print_module

A, B, I, L = "memref<16xf32>", "memref<16xf32>", "memref<16xi32>", "memref<32xf32>"
BLOCK = "[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3"
OPS: dict[str, tuple[str, list[str]]] = {
    "hivm.hir.load": (f"ins(%a : {A}) outs(%b : {B})", [
        "init_out_buffer = false", "may_implicit_transpose_with_last_axis = false", "core_type = <CUBE_OR_VECTOR>"]),
    "hivm.hir.nd2nz": ("{dst_continuous} ins(%m : memref<16x16xf32>) outs(%n : memref<2x1x16x8xf32>)",
                        ["init_out_buffer = false"]),
    "hivm.hir.load_scale": ("ins(%s : memref<16x4xi8, #hivm.address_space<gm>>)"
                            " outs(%d : memref<1x1x16x16xi8, #hivm.address_space<cbuf>>)", ["is_transposed = false"]),
    "hivm.hir.vdeinterleave": (f"ins(%l : {L}) outs(%a, %b : {A}, {B})", ["channel_num = 2", "index_mode = <ALL_CHANNELS>"]),
    "hivm.hir.vshr": (f"ins(%i, %i : {I}, {I}) outs(%i : {I})", ["round : true"]),
    "hivm.hir.sync_block_set": (BLOCK, ["sync_instr_mode = <INTRA_BLOCK_SYNCHRONIZATION>"]),
    "hivm.hir.sync_block_wait": (BLOCK, ["sync_instr_mode = <INTRA_BLOCK_SYNCHRONIZATION>"]),
}
"""The ops with such clauses: the operands, and each clause with its default."""
CASES = [(op, [clause]) for op, (_, clauses) in OPS.items() for clause in clauses] + [
    (op, clauses) for op, (_, clauses) in OPS.items() if len(clauses) > 1]


def _written(op: str, clauses: list[str]) -> str:
    operands, known = OPS[op]
    text = " ".join([op + " " * (not operands.startswith("[")) + operands, *(each for each in known if each in clauses)])
    module = parse_module(f"""
        func.func @f(%a: {A}, %b: {B}, %i: {I}, %l: {L}, %m: memref<16x16xf32>, %n: memref<2x1x16x8xf32>,
                     %s: memref<16x4xi8, #hivm.address_space<gm>>, %d: memref<1x1x16x16xi8, #hivm.address_space<cbuf>>) {{
          {text}
          return
        }}""")
    written = print_module(module)
    again = parse_module(written)
    assert print_module(again, generic=True) == print_module(module, generic=True)
    assert print_module(parse_module(print_module(module, generic=True))) == written
    return next(line for line in written.splitlines() if op in line)


@pytest.mark.parametrize(("op", "clauses"), CASES)
def test_what_is_stated_is_written_again(op: str, clauses: list[str]) -> None:
    line = _written(op, clauses)
    for clause in OPS[op][1]:
        assert (clause in line) is (clause in clauses)


@pytest.mark.parametrize("op", OPS)
def test_what_is_not_stated_is_not_written(op: str) -> None:
    line = _written(op, [])
    assert not any(clause.partition(" ")[0] in line for clause in OPS[op][1])


def test_every_optional_clause_with_a_default_is_among_the_cases() -> None:
    found = set()
    for op in known_ops().values():
        text = getattr(op, "assembly_format", None) or ""
        if not issubclass(op, DialectOp) or not op.name.startswith("hivm."):
            continue
        for name, definition in op.get_irdl_definition().properties.items():
            if isinstance(definition, OptPropertyDef) and definition.default_value is not None and (
                    f"${name}^" in text or f"InstrMode>(${name})" in text):
                found.add((op.name, name))
    spelled = {"tcoretype": "core_type", "tsync_instr_mode": "sync_instr_mode"}
    assert {(op, re.split(r"[ :=]", clause)[0]) for op, (_, clauses) in OPS.items() for clause in clauses} == {
        (op, spelled.get(name, name)) for op, name in found}
