"""Custom forms of llvm: their properties are in the op, and survive printing in the generic form."""

from __future__ import annotations

import pytest

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError


def _op(text: str, name: str) -> str:
    """The line of an op in the text that we write, which is read again to the same."""
    module = parse_module(f"llvm.func @f(%p: !llvm.ptr<11>, %v: i32, %n: i64) {{\n  {text}\n  llvm.return\n}}")
    written = print_module(module)
    assert print_module(parse_module(written)) == written
    return next(line.strip() for line in written.splitlines() if f'"{name}"' in line)


@pytest.mark.parametrize("type_", ["i8", "i32", "f16", "!llvm.ptr", "vector<4xf32>"])
def test_a_volatile_load(type_: str) -> None:
    assert "volatile_" in _op(f"%0 = llvm.load volatile %p : !llvm.ptr<11> -> {type_}", "llvm.load")
    assert "volatile_" not in _op(f"%0 = llvm.load %p : !llvm.ptr<11> -> {type_}", "llvm.load")


@pytest.mark.parametrize(("text", "facts"), [
    ("%0 = llvm.load volatile %p atomic syncscope(\"s\") acquire {alignment = 4 : i64} : !llvm.ptr<11> -> i32",
     ["volatile_", 'syncscope = "s"', "ordering = 4 : i64", "alignment = 4 : i64"]),
    ("%0 = llvm.load %p invariant {nontemporal} : !llvm.ptr<11> -> i32", ["invariant", "nontemporal", "ordering = 0 : i64"]),
    ("llvm.store volatile %v, %p : i32, !llvm.ptr<11>", ["volatile_", "ordering = 0 : i64"]),
    ("llvm.store %v, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr<11>", ["ordering = 5 : i64"]),
    ("%0 = llvm.getelementptr inbounds %p[%n] : (!llvm.ptr<11>, i64) -> !llvm.ptr<11>, f32",
     ["inbounds", "noWrapFlags = 3 : i32"]),
    ("%0 = llvm.getelementptr %p[%n] : (!llvm.ptr<11>, i64) -> !llvm.ptr<11>, f32", ["noWrapFlags = 0 : i32"]),
    ('%0 = llvm.inline_asm has_side_effects asm_dialect = intel operand_attrs = [] "nop", "=r" : () -> i32',
     ["has_side_effects", "asm_dialect = 1 : i64", "operand_attrs = []", 'asm_string = "nop"']),
    ('%0 = llvm.mlir.constant("abc") : !llvm.array<3 x i8>', ['value = "abc"']),
])
def test_facts_that_an_llvm_op_is_written_with(text: str, facts: list[str]) -> None:
    name = next(word for word in text.split() if word.startswith("llvm.")).partition("(")[0]
    written = _op(text, name)
    for fact in facts:
        assert fact in written


@pytest.mark.parametrize(("text", "message"), [
    ("%0 = llvm.load %p atomic never : !llvm.ptr<11> -> i32", "expected one of"),
    ("%0 = llvm.load %p atomic release {alignment = 4 : i64} : !llvm.ptr<11> -> i32", "unsupported ordering"),
    ("llvm.store %v, %p atomic acquire {alignment = 4 : i64} : i32, !llvm.ptr<11>", "unsupported ordering"),
    ("%0 = llvm.load %p atomic acquire : !llvm.ptr<11> -> i32", "expected alignment"),
    ('%0 = llvm.inline_asm asm_dialect = other "nop", "=r" : () -> i32', "expected one of att, intel"),
    ('%0 = llvm.mlir.constant("abc") : !llvm.array<4 x i8>', "expected array type of 3 i8 elements"),
    ('%0 = llvm.mlir.constant("abc") : i32', "expected array type of 3 i8 elements"),
])
def test_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        _op(text, "")
