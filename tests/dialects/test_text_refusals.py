"""Text that is not MLIR: the error is about the text, at its line, and not about Python or xDSL."""

from __future__ import annotations

import re

import pytest

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.dialects.text.refusals import MAX_NESTING
from tilelang_npu.errors import TileError

NO_NAME = "but no name follows. A name is digits, or begins with a letter or one of $ . _ - and may go on with digits"
FOREIGN = re.compile(r"\{\w+\}|recursion|e format|entire input|xdsl|Traceback|^None$", re.IGNORECASE)


def _refusal(text: str) -> TileError:
    with pytest.raises(TileError) as caught:
        parse_module(text)
    assert caught.value.code == "T601"
    assert not FOREIGN.search(str(caught.value.message))
    return caught.value


def _brackets(kind: str, depth: int) -> str:
    opening, inner, closing = {
        "bodies": ("scf.if %c {\n", "", "}\n"), "lists": ("[", "", "]"), "types": ("tuple<", "i32", ">"),
        "functions": ("(", "i32", ") -> i32")}[kind]
    nested = opening * depth + inner + closing * depth
    if kind == "bodies":
        return f"func.func @f(%c: i1) {{\n{nested}return\n}}"
    if kind == "lists":
        return f"module attributes {{a = {nested}}} {{}}"
    return f"func.func private @f({nested})"


@pytest.mark.parametrize(("text", "place", "message"), [
    ("func.func @f() {\n  %", (2, 3), f"% begins the name of a value, {NO_NAME}"),
    ("func.func private @f(! )", (1, 22), f"! begins the name of a type, {NO_NAME}"),
    ("module attributes {a = #} {}", (1, 24), f"# begins the name of an attribute, {NO_NAME}"),
    ("func.func @f() {\n ^ \n}", (2, 2), f"^ begins the name of a block, {NO_NAME}"),
    ("", (1, 1), "the text is empty: a module or a function was expected"),
    ("\n  // nothing\n", (1, 1), "the text has only comments: a module or a function was expected"),
    ("\ufeffmodule {}", (1, 1), "the text begins with a byte order mark (U+FEFF), which MLIR does not have"),
    ("module {\n \x00}", (2, 2), "the character (U+0000, a control character) begins no token of MLIR outside of a string"),
    ("module { \u20ac }", (1, 10), "the character (U+20AC, EURO SIGN) begins no token of MLIR outside of a string"),
    ("module {}\n}", (2, 1), "expected an operation: found '}'"),
    ("func.func @f() {", (1, 17), "expected an operation, a block such as ^bb1, or the '}' of this body: the text ends here"),
    ("func.func @f() {\n  %0 = arith.constant 1.0e9 : f16\n  return\n}", (2, 23),
     "1.0e9 is too large for f16: infinity is 0x7C00"),
])
def test_a_refusal_speaks_of_the_text(text: str, place: tuple[int, int], message: str) -> None:
    error = _refusal(text)
    assert error.message == message
    assert error.location is not None
    assert (error.location.line, error.location.column) == place


@pytest.mark.parametrize("kind", ["bodies", "lists", "types", "functions"])
def test_nesting_is_read_up_to_a_bound_that_is_named(kind: str) -> None:
    """Text at the bound is parsed, verified, printed and parsed again; one more bracket is an error at its position."""
    most = MAX_NESTING - 1  # one level is around it
    print_module(parse_module(_brackets(kind, most)))
    text = print_module(parse_module(_brackets(kind, most - 1)))  # a module around it is one more
    assert print_module(parse_module(text)) == text
    error = _refusal(_brackets(kind, most + 1))
    assert error.message == f"{MAX_NESTING + 1} brackets are open here; at most {MAX_NESTING} may be open at once"
    assert "separate function" in error.help
    assert error.location is not None
    deep = _brackets(kind, 20000)
    assert len(deep) > 40000
    again = _refusal(deep)
    assert (again.message, again.location) == (error.message, error.location)


def test_brackets_in_strings_comments_and_comparisons_do_not_count() -> None:
    text = f'module attributes {{a = "{"[" * 100}", b = affine_set<(d0) : (d0 - 1 >= 0)>}} {{\n  // {"(" * 100}\n}}'
    assert "affine_set" in print_module(parse_module(text))


def test_a_long_line_is_cut_around_its_caret() -> None:
    text = "module attributes {a = \"" + "x" * 140000 + "\"} { foo.bar }"
    shown = str(_refusal(text)).splitlines()
    assert max(map(len, shown)) < 450
    assert f"--> <string>:1:{text.index('foo.bar') + 1}" in shown[1]
    line, caret = shown[3:5]
    assert line[caret.index("^"):].startswith("foo.bar")
    assert caret.count("^") == len("foo.bar")


def test_the_caret_is_below_its_word_after_a_tab() -> None:
    shown = str(_refusal("module {\n\tfoo.bar\n}")).splitlines()
    assert shown[3:5] == [" 2 | \tfoo.bar", "   | \t^^^^^^^"]


def test_the_message_names_the_expected_operand_type() -> None:
    with pytest.raises(TileError) as caught:
        parse_module('func.func @f(%a: index) {\n  "hivm.hir.set_ffts_base_addr"(%a) : (index) -> ()\n  return\n}')
    assert caught.value.message == (
        "'hivm.hir.set_ffts_base_addr' op operand 'ffts_base_addr' at position 0 does not verify: Expected attribute i64 but"
        " got index")
