"""Docstrings from the op table: they agree with the entry, and their examples with the signature."""

from __future__ import annotations

import inspect
import re

import pytest

from tilelang_npu import language, ops
from tilelang_npu.language.table_functions import elementwise, from_table, plain


def test_an_elementwise_function_says_what_it_reads_writes_and_takes() -> None:
    entry = ops.operation("add")
    assert isinstance(entry, ops.Elementwise)
    text = elementwise("vadd", entry, inspect.signature(language.vadd))
    target = list(inspect.signature(language.vadd).parameters)[2]
    assert text.startswith(entry.doc)
    assert f"Writes ``{target}``, reads ``" in text
    assert f"Element types: {', '.join(entry.dtypes)}" in text
    assert re.search(r"Example: ``T\.vadd\([^)]*\)``", text)


@pytest.mark.parametrize("name", ["vexp", "vadd", "vselect", "vcmp", "vclamp"])
def test_an_example_gives_each_argument_that_has_no_default(name: str) -> None:
    function = getattr(language, name)
    signature = inspect.signature(function)
    (example,) = re.findall(rf"``T\.{name}\((.*?)\)``", str(function.__doc__), re.DOTALL)[-1:]
    given = [word for word in re.split(r",\s*(?![^(\[]*[)\]])", example) if "=" not in word]
    required = [one for one in signature.parameters.values() if one.default is inspect.Parameter.empty]
    assert len(given) >= len([one for one in required if f"{one.name}=" not in example])


def test_types_stand_between_the_description_and_the_example_of_a_shared_docstring() -> None:
    entry = ops.operation("vgather")
    text = from_table("vgather", "vgather", "Take elements by NAME.\n\nExample: ``NAME(a, i, b)``")
    types = ", ".join(entry.dtypes)
    assert text == f"Take elements by T.vgather.\n\nElement types: {types}.\n\nExample: ``T.vgather(a, i, b)``"
    assert from_table("x", "no such entry", "As NAME.") == "As T.x."


def test_a_plain_signature_has_names_and_defaults_alone() -> None:
    def function(a: int, b: str = "x", *, c: float = 1.5) -> None: ...

    assert plain(inspect.signature(function, eval_str=True)) == "(a, b='x', *, c=1.5)"
