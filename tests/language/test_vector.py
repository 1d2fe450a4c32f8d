"""Vector operations: every name of the op table emits its entry, in its order of operands, under its contract."""

from __future__ import annotations

from typing import Any

import pytest

from tilelang_npu import ops

ONE_OUTPUT = [entry for entry in ops.elementwise() if entry.outputs == 1]
NAMES = [(entry, name) for entry in ONE_OUTPUT for name in (entry.name, *entry.aliases) if name != "cast"]


def call(entry: ops.Elementwise, name: str) -> str:
    """A call of ``name`` on buffers ``a``, ``b`` (inputs) and ``c`` (destination) that the entry allows."""
    extra = {"compare": ", 'lt'"}.get(entry.name, "")
    inputs = ["s0", "s1"][: entry.inputs] if not entry.condition else ["m0", "s0", "s1"]
    target = {"bool": "m0", "any": "h0", "same": "d0"}[entry.result]
    operands = [target, *inputs] if name.startswith("tile.") else [*inputs, target]
    return f"T.{name}({', '.join(operands)}{extra})"


@pytest.mark.parametrize(("entry", "name"), NAMES, ids=[name for _, name in NAMES])
def test_every_alias_emits_its_entry(source: Any, traced: Any, entry: ops.Elementwise, name: str) -> None:
    kind = "float32" if "float32" in entry.dtypes else str(entry.dtypes[-1])
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(n: T.int32):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                s0, s1, d0 = T.alloc_ub((64,), {kind!r}), T.alloc_ub((64,), {kind!r}), T.alloc_ub((64,), {kind!r})
                m0, h0 = T.alloc_ub((64,), "bool"), T.alloc_ub((64,), "float16")
                {call(entry, name)}
    """)
    kernel = traced(module.main)
    made = kernel.only("tile.elementwise")
    assert made.fn.data == entry.name
    labels = [value.owner.label.data for value in (*made.inputs, made.target)]
    wanted = {"bool": "m0", "any": "h0", "same": "d0"}[entry.result]
    assert labels == [*(["m0"] if entry.condition else []), *["s0", "s1"][: entry.inputs - entry.condition], wanted]


@pytest.mark.parametrize(("statement", "expected"), [
    ("T.tile.add(a, b, c)", ['tile.elementwise "add" ins(%b, %c']),
    ("T.vadd(a, b, c)", ['tile.elementwise "add" ins(%a, %b']),
    ("T.exp(a, b)", ['tile.elementwise "exp" ins(%a']),
    ("T.log(a, b)", ['tile.elementwise "ln" ins(%a']),
    ("T.max(a, b, c)", ['tile.elementwise "max" ins(%a, %b']),
    ("T.vsub(a, col, c)", ['tile.elementwise "sub" ins(%a, %col']),
    ("T.vsub(row, a, c)", ['tile.elementwise "sub" ins(%row, %a']),
    ("T.vsub(1.0, a, c)", ['tile.elementwise "sub" ins(%cst, %a']),
    ("T.vmul(a, x, c)", ['tile.elementwise "mul" ins(%a, %x']),
    ("T.vmul(a, cid, c)", ["%0 = arith.index_cast %cid", "%1 = arith.sitofp %0", 'tile.elementwise "mul" ins(%a, %1']),
    ("T.vmul(a, eight[3], c)", ["%0 = memref.load %eight[%c3]", 'tile.elementwise "mul" ins(%a, %0']),
    ("T.vadd(i, n, i)", ['tile.elementwise "add" ins(%i, %n']),
    ("T.vmul(h, x, h)", ["%0 = arith.truncf %x", 'tile.elementwise "mul" ins(%h, %0']),
    # unit axes do not count
    ("T.vexp(stack[1, :, :], a)", ["%0 = tile.region %stack[1, 0, 0] [1, 8, 128] keep [1, 2]",
                                   'tile.elementwise "exp" ins(%0']),
    ("T.vexp(stack[1:2, :, :], a)", ["%0 = tile.region %stack[1, 0, 0] [1, 8, 128] keep [1, 2]",
                                     'tile.elementwise "exp" ins(%0']),
    ("T.vexp(line, row)", ["%0 = tile.view %line", 'tile.elementwise "exp" ins(%0']),
    ("T.vexp(row, line)", ["%0 = tile.region %row[0, 0] [1, 128] keep [1]", 'tile.elementwise "exp" ins(%0']),
    ("T.vexp(a[3, :], a[4, :])", ["%0 = tile.region %a[3, 0] [1, 128] keep [1]", "%1 = tile.region %a[4, 0] [1, 128] keep [1]",
                                  'tile.elementwise "exp" ins(%0']),
    ("T.vexp(a[3, 4], b[5, 6])", ["%0 = tile.region %a[3, 4] [1, 1] keep [0, 1]",
                                  "%1 = tile.region %b[5, 6] [1, 1] keep [0, 1]",
                                  'tile.elementwise "exp" ins(%0']),
    # the ascendc dialect counts elements only
    ("T.tile.exp(flat, a)", ["%0 = tile.view %a", 'tile.elementwise "exp" ins(%0']),
    ("T.tile.add(a, flat, flat)", ["%0 = tile.view %flat", "%1 = tile.view %flat", 'tile.elementwise "add" ins(%0, %1']),
    ("T.tile.exp(col, a[:, 3])", ["%0 = tile.region %a[0, 3] [8, 1] keep [0]", "%1 = tile.view %0",
                                  'tile.elementwise "exp" ins(%1']),
    # comparison, choice, shifts
    ("T.vcmp(a, b, mask, 'eq')", ['tile.elementwise "compare" ins(%a, %b']),
    ("T.vcmp(a, 1, mask, 'GE')", ['tile.elementwise "compare" ins(%a, %cst']),
    ("T.vselect(mask, a, 0, c)", ['tile.elementwise "select" ins(%mask, %a, %cst']),
    ("T.vshr(i, 2, i)", ['tile.elementwise "bitwise_rshift" ins(%i, %c2_i32']),
    ("T.vexp2(a, b, c)", ['tile.elementwise "exp2" ins(%a']),
    # casts
    ("T.vcast(a, h)", ['tile.elementwise "cast" ins(%a']),
    ("T.vcast(a, i, 'floor')", ['tile.elementwise "cast" ins(%a']),
    ("T.vcast(a, h, size=[4, 64])", ["%0 = tile.region %a[0, 0] [4, 64] keep [0, 1]",
                                     "%1 = tile.region %h[0, 0] [4, 64] keep [0, 1]",
                                     'tile.elementwise "cast" ins(%0']),
    ("T.tile.cast(h, a, 'CAST_RINT', 1024)", ['tile.elementwise "cast" ins(%a']),
    ("T.tile.cast(h, a, 'CAST_NONE', 256)", ["%0 = tile.region %a[0, 0] [2, 128] keep [0, 1]",
                                             "%1 = tile.region %h[0, 0] [2, 128] keep [0, 1]",
                                             'tile.elementwise "cast" ins(%0']),
    ("T.tile.cast(h, a, 'CAST_NONE', 100)", ["%0 = tile.view %a", "%1 = tile.view %h", "%2 = tile.region %0[0] [100] keep [0]",
                                             "%3 = tile.region %1[0] [100] keep [0]", 'tile.elementwise "cast" ins(%2']),
    # fills and broadcasts
    ("T.fill(a, 2**30)", ["tile.fill %cst into %a"]),
    ("T.clear(a[0:4, :])", ["%0 = tile.region %a[0, 0] [4, 128] keep [0, 1]", "tile.fill %cst into %0"]),
    ("T.tile.fill(a, eight[0])", ["%0 = memref.load %eight[%c0]", "tile.fill %0 into %a"]),
    ("T.tile.fill(h, -T.infinity('float32'))", ["tile.fill %cst into %h"]),
    ("T.fill(u, n)", ["%0 = arith.trunci %n", "%1 = builtin.unrealized_conversion_cast %0", "tile.fill %1 into %u"]),
    ("T.fill(i, 2.0)", ["tile.fill %c2_i32 into %i"]),
    ("zero = 0\nT.vbrc(zero, a)", ["tile.fill %cst into %a"]),
    ("T.vbrc(col, a)", ["tile.broadcast %col to %a"]),
    ("T.npuir_brc(row, a)", ["tile.broadcast %row to %a"]),
    ("T.tile.broadcast(a, line)", ["%0 = tile.view %line", "tile.broadcast %0 to %a"]),
    ("T.tile.broadcast(a, eight)", ["%0 = tile.view %eight", "tile.broadcast %0 to %a"]),
    ("T.tile.broadcast(a, eight, axis=1)", ["%0 = tile.view %eight", "tile.broadcast %0 to %a"]),
    ("T.tile.broadcast(a, col, 1)", ["tile.broadcast %col to %a"]),
])
def test_forms(lines: Any, statement: str, expected: list[str]) -> None:
    found = lines(statement)
    assert len(found) == len(expected), found
    for have, want in zip(found, expected, strict=True):
        assert have.startswith(want), found


def test_a_square_broadcast_of_one_axis_repeats_rows(source: Any, traced: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(n: T.int32):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a, v = T.alloc_ub((16, 16), "float32"), T.alloc_ub((16,), "float32")
                T.tile.broadcast(a, v)
                T.tile.broadcast(a, v, axis=1)
    """)
    traced(module.main).has("tile.view %v : memref<16xf32, #hivm.address_space<ub>> to memref<1x16xf32",
                            "tile.view %v : memref<16xf32, #hivm.address_space<ub>> to memref<16x1xf32")


@pytest.mark.parametrize(("statement", "clauses"), [
    ("T.vcmp(a, b, mask, 'eq')", {}),
    ("T.npuir_cmp(a, b, mask, 'lt')", {"compare_mode": "lt"}),
    ("T.vcast(a, i)", {}),
    ("T.vcast(a, i, round_mode='trunc')", {"round_mode": "trunc"}),
    ("T.tile.cast(h, a, 'CAST_ODD', 1024)", {"round_mode": "odd"}),
    ("T.vcast(u, h)", {"cast": "cast_unsigned"}),
    ("T.vshr(i, 1, i)", {}),
    ("T.vshr(i, 1, i, round=False)", {"round": False}),
    ("T.tile.bitwise_rshift(i, i, 1)", {"round": False}),
    ("T.vmax(u, u, u)", {"is_signed": False}),
])
def test_clauses(kernel: Any, statement: str, clauses: dict[str, object]) -> None:
    made = kernel(statement).only("tile.elementwise")
    found = {name: value.data if hasattr(value, "data") else bool(value.value.data) for name, value in made.attributes.items()}
    assert found == clauses


@pytest.mark.parametrize(("statement", "code", "message", "help_text"), [
    ("T.vadd(a, line, c)", "T111", r"input 1 has shape \[128\], the destination \[8, 128\]",
     r"shape \[128, 1\] .* or \[1, 128\]"),
    ("T.vadd(a, flat, c)", "T111", r"input 1 has shape \[1024\]", "shape"),
    ("T.vcmp(a, col, mask, 'lt')", "T111", "input 1 has shape", "the shapes must be equal"),
    ("T.vadd(a, b, col)", "T111", r"input 0 has shape \[8, 128\], the destination \[8, 1\]", "."),
    ("T.vadd(h, a, a)", "T110", "the inputs have different element types", "cast one side first"),
    ("T.vrelu(u, u)", "T110", "relu does not work on uint8", "it works on float16, float32, int32: cast the inputs first"),
    ("T.vselect(a, a, b, c)", "T110", "the mask has elements of float32, not bool", "."),
    ("T.vadd(i, 0.5, i)", "T110", "input 1 is 0.5, which int32 does not have", "."),
    ("T.vadd(i, 2**40, i)", "T110", "which int32 does not have", "."),
    ("T.vand(i, 3, i)", "T110", "input 1 must be a buffer, not 3", "."),
    ("T.vcmp(a, b, a, 'lt')", "T110", "the destination has elements of float32, not bool or int8", "."),
    ("T.vcast(a[0:4, :], a[2:6, :])", "T112", "read while it is written", "another"),
    ("T.vadd(a[0:4, :], b[0:4, :], a[2:6, :])", "T112", "read while it is written", "another buffer"),
    ("T.vbrc(col, i)", "T110", "differ in element type", "."),
    ("T.vbrc(a[:, 0:1], a)", "T112", "shares elements", "."),
    ("T.vbrc(eight, a)", "T111" , "cannot be broadcast", "."),
    ("T.tile.broadcast(a, col, axis=0)", "T111", "cannot be broadcast", "."),
    ("T.vbrc(line, stack)", "T111", "cannot be broadcast", "."),
    ("T.tile.cast(h, a, 'CAST_NONE', 0)", "T111", "count is 0", "."),
    ("T.fill(i, float('nan'))", "T110", "the value is nan, which int32 does not have", "."),
    ("T.fill(3, a)", "T110", "the destination must be a buffer, not 3", "."),
    ("T.exp(a)", "T141", r"a \[8, 128\] float32 is not a scalar", "tile operation"),
])
def test_contracts(kernel: Any, refused: Any, statement: str, code: str, message: str, help_text: str) -> None:
    with refused(code, at=statement, message=message, help=help_text):
        kernel(statement, "npuir")


def test_in_place_is_allowed_where_the_table_says(lines: Any) -> None:
    assert len(lines("T.vexp(a, a)\nT.vadd(a, a, a)\nT.vadd(a[0:4, :], a[4:8, :], a[0:4, :])")) == 6
