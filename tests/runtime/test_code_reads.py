"""The outside names that code reads, for every kind of instruction."""

from __future__ import annotations

import ast
import dis
import textwrap
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tilelang_npu.runtime.cache import code_reads
from tilelang_npu.runtime.cache.code_reads import chains_in, reads, reads_of_parameters


def _function(text: str, *, inner: bool = False, future: bool = False) -> FunctionType:
    """The function ``f`` of a text; with ``inner``, the one that it returns."""
    names: dict[str, Any] = {}
    head = "from __future__ import annotations\n" if future else ""
    exec(compile(head + textwrap.dedent(text), "<text>", "exec", dont_inherit=True), names)
    found = names["f"]() if inner else names["f"]
    assert isinstance(found, FunctionType)
    return found


OUTSIDE: dict[str, tuple[str, set[tuple[str, ...]]]] = {
    "a global": ("def f(): return A", {("A",)}),
    "an attribute": ("def f(): return A.b.c", {("A", "b", "c")}),
    "a method": ("def f(): return A.b()", {("A", "b")}),
    "an attribute of a result": ("def f(): return A().b", {("A",)}),
    "an element": ("def f(): return A.b[0].c", {("A", "b")}),
    "two": ("def f(): return A.b + B", {("A", "b"), ("B",)}),
    "an inner function": ("def f(): return lambda: A.b", {("A", "b")}),
    "a comprehension": ("def f(): return [A.b for _ in B]", {("A", "b"), ("B",)}),
    "a class": ("def f():\n    class C(A):\n        b = B.c", {("A",), ("B", "c"), ("__name__",)}),
    "an augmented assignment": ("def f():\n    global A\n    A += 1", {("A",)}),
    "an assignment to an attribute": ("def f(): A.b = 1", {("A",)}),
    "a default": ("def f():\n    def g(a=A.b): pass", {("A", "b")}),
    "a decorator": ("def f():\n    @A.b\n    def g(): pass", {("A", "b")}),
    "a with": ("def f():\n    with A.b as c: pass", {("A", "b")}),
    "a pattern": ("def f(x):\n    match x:\n        case A.b: pass", {("A", "b")}),
    "a deleted name": ("def f():\n    global A\n    del A", set()),
    "one that is local elsewhere": (
        "def f():\n    A = 1\n    def g(): return A\n    def h():\n        global A\n        return A", {("A",)}),
    "many names": ("def f():\n    " + "\n    ".join(f"x = N{n}.a{n}" for n in range(300)),
                   {(f"N{n}", f"a{n}") for n in range(300)}),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_reads_from_outside(what: str) -> None:
    text, expected = OUTSIDE[what]
    assert set(reads(_function(text).__code__).outside) - {("__name__",)} == expected - {("__name__",)}


def test_reads_of_a_closure() -> None:
    inner = _function("""
        def f():
            a, b, c = 1, 2, 3
            def inner():
                d = 4
                def deeper(): return a.x + d
                return b, deeper
            return inner
    """, inner=True)
    assert set(reads(inner.__code__).closure) == {("a", "x"), ("b",)}
    assert ("a", "x") not in reads(inner.__code__).outside


@pytest.mark.parametrize(("text", "expected"), [
    ("import a", ("a",)), ("import a.b as c", ("a.b",)), ("from a.b import c", ("a.b",)), ("from . import a", (".",)),
    ("from .a import b", (".a",)), ("from ..a import b", ("..a",))])
def test_imports_where_code_runs(text: str, expected: tuple[str, ...]) -> None:
    assert reads(_function(f"def f():\n    {text}").__code__).imports == expected
    assert reads(_function(f"def f():\n    def g():\n        {text}").__code__).imports == expected


@pytest.mark.parametrize("name", sorted(code_reads._ESCAPES))
def test_attributes_that_lead_out(name: str) -> None:
    assert reads(_function(f"def f(a): return a[0].{name}").__code__).escape == name
    assert reads(_function(f"def f(a): return lambda: a.{name}()").__code__).escape == name
    assert reads(_function("def f(a): return a.b").__code__).escape == ""


PARAMETERS: dict[str, tuple[str, set[tuple[str, ...]]]] = {
    "attributes": ("def f(a, b): return a.x.y + a.z", {("a", "x", "y"), ("a", "z")}),
    "whole": ("def f(a): return g(a)", {("a",)}),
    "stored and read": ("def f(a):\n    b = 1\n    c = a.x\n    return c + b", {("a", "x")}),
    "both": ("def f(a, b): return a + b", {("a",), ("b",)}),
    "in a closure": ("def f(a): return lambda: a.x", {("a", "x")}),
    "by name": ("def f(*, a): return a.x", {("a", "x")}),
    "an attribute that is set": ("def f(a): a.x = 1", {("a",)}),
    "another name": ("def f(a):\n    b = a\n    return b.x", {("a",)}),
}


@pytest.mark.parametrize("what", PARAMETERS)
def test_reads_of_parameters(what: str) -> None:
    text, expected = PARAMETERS[what]
    assert set(reads_of_parameters(_function(text).__code__)) == expected


def test_super_without_arguments_reads_the_first_parameter() -> None:
    names: dict[str, Any] = {}
    exec("class C(list):\n    def f(self): return super().pop", names)
    assert ("self",) in reads_of_parameters(names["C"].f.__code__)


def test_annotations_as_texts_are_read() -> None:
    text = "def f():\n    def g(a: T.Tensor((A.m, B), C)): pass"
    assert {("A", "m"), ("B",), ("C",), ("T", "Tensor")} <= set(reads(_function(text, future=True).__code__).texts)
    assert reads(_function("def f(): return 'A.m'").__code__).texts == ()


def test_chains_of_an_expression() -> None:
    tree = ast.parse("T.Tensor((M, c.n * 2), d.types[e.f].g)", mode="eval")
    assert set(chains_in(tree)) == {("T", "Tensor"), ("M",), ("c", "n"), ("d", "types"), ("e", "f")}


def test_every_instruction_with_a_name_is_a_read_or_known_to_be_none() -> None:
    names = {dis.opname[number] for number in dis.hasname}
    assert names <= code_reads._GLOBAL | code_reads._OTHER_NAMES
    assert {"LOAD_GLOBAL", "LOAD_NAME"} <= code_reads._GLOBAL
    assert not {name for name in code_reads._GLOBAL if not name.startswith("LOAD_")}
    assert {"LOAD_DEREF"} <= code_reads._CLOSURE
    assert not {name for name in code_reads._CLOSURE if "STORE" in name or "DELETE" in name}


def test_all_names_of_a_large_module_are_found() -> None:
    """The names that Python's symbol table calls global are those that are found."""
    import symtable

    text = Path(code_reads.__file__).read_text(encoding="utf-8")
    expected: set[str] = set()

    def walk(table: symtable.SymbolTable) -> None:
        if table.get_type() == "function":
            expected.update(one.get_name() for one in table.get_symbols() if one.is_global() and one.is_referenced())
        for child in table.get_children():
            walk(child)

    walk(symtable.symtable(text, "code_reads.py", "exec"))
    module = compile(text, "code_reads.py", "exec", dont_inherit=True)
    found: set[str] = set()
    for constant in module.co_consts:
        if isinstance(constant, CodeType):
            found |= {chain[0] for chain in reads(constant).outside}
    assert expected <= found | {"annotations"}
