"""Attributes of other libraries are replaced and restored, whatever they were."""

from __future__ import annotations

import types
from typing import Any

from tilelang_npu.compat.replacements import Replacements, answers_scripts, is_called_by


class _Base:
    kept: Any = "inherited"


class _Owner(_Base):
    none: Any = None
    own: Any = 1


def test_all_attributes_are_as_they_were() -> None:
    """Also one whose value was None, one that a class inherits, and one that was replaced twice."""
    before, made = dict(vars(_Owner)), Replacements()
    assert not made
    for name in ("none", "own", "kept", "new", "own"):
        made.replace(_Owner, name, "replaced")
        assert getattr(_Owner, name) == "replaced"
    assert made
    made.undo()
    assert not made
    assert dict(vars(_Owner)) == before
    assert (_Owner.none, _Owner.own, _Owner.kept) == (None, 1, "inherited")


def _in_module(name: str, text: str, **names: Any) -> Any:
    module = types.ModuleType(name)
    vars(module).update(names)
    exec(text, vars(module))
    return module


def test_code_of_a_package_gets_the_original() -> None:
    call = answers_scripts(lambda: "ours", lambda: "original", frozenset({"library"}))
    for name, found in (("library", "original"), ("library.part", "original"), ("library_of_others", "ours"),
                        ("script", "ours")):
        assert _in_module(name, "def ask(): return call()", call=call).ask() == found


def test_the_caller_at_a_depth() -> None:
    def replacement() -> bool:
        return is_called_by(frozenset({"library"}), 1)

    assert _in_module("library.part", "def ask(): return replacement()", replacement=replacement).ask()
    assert not replacement()
