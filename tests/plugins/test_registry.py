"""The registry of plug-ins: replacing, removing, restoring, and the plug-ins that another process must load."""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.conftest import GOOD
from tilelang_npu import plugin_loading
from tilelang_npu.errors import TileError
from tilelang_npu.ops import operations
from tilelang_npu.plugins.registry import (
    add_registration,
    calling_globals,
    generation,
    load_sources,
    plugin_key,
    registrations,
    sources,
    temporary,
    unregister,
)


class Table:
    """A table to which registrations add their things, as the op table and the list of passes are."""

    def __init__(self) -> None:
        self.things: list[object] = []

    def register(self, name: str, thing: object, kind: str = "op", home: str = "mine") -> None:
        add_registration(kind, name, home, thing, self.adder(thing))

    def adder(self, thing: object) -> Callable[[], Callable[[], None]]:
        def add() -> Callable[[], None]:
            if thing == "wrong":
                raise ValueError("a wrong thing")
            self.things.append(thing)
            return lambda: self.things.remove(thing)

        return add


@pytest.fixture
def table() -> Table:
    return Table()


def registered() -> list[tuple[str, str, str, object]]:
    return [(one.kind, one.name, one.home, one.thing) for one in registrations()]


# -- registering and removing ------------------------------------------------------------------------------------------


def test_registrations_are_listed_in_their_order_and_counted(table: Table) -> None:
    count = generation()
    for name, kind in (("b", "op"), ("a", "op"), ("b", "pass")):
        table.register(name, f"{kind} {name}", kind)
    assert registered() == [("op", "b", "mine", "op b"), ("op", "a", "mine", "op a"), ("pass", "b", "mine", "pass b")]
    assert generation() == count + 3
    assert table.things == ["op b", "op a", "pass b"]

    unregister("op", "b")
    assert registered() == [("op", "a", "mine", "op a"), ("pass", "b", "mine", "pass b")]
    assert generation() == count + 4
    assert table.things == ["op a", "pass b"]


@pytest.mark.parametrize(("kind", "name"), [("op", "b"), ("pass", "a"), ("chip", "a")])
def test_what_is_not_registered_cannot_be_removed(table: Table, kind: str, name: str) -> None:
    table.register("a", 1)
    count = generation()
    with pytest.raises(KeyError, match=name):
        unregister(kind, name)
    assert (table.things, generation()) == ([1], count)


def test_a_module_replaces_what_it_registered(table: Table) -> None:
    table.register("a", 1)
    count = generation()
    table.register("a", 2)
    assert registered() == [("op", "a", "mine", 2)]
    assert table.things == [2]
    assert generation() > count


@pytest.mark.parametrize(("kind", "word"), [("op", "operation"), ("pass", "pass"), ("chip", "chip")])
def test_two_modules_may_not_register_one_name(table: Table, kind: str, word: str) -> None:
    table.register("a", 1, kind, "mine")
    count = generation()
    with pytest.raises(TileError) as caught:
        table.register("a", 2, kind, "theirs")
    assert caught.value.code == "T821"
    assert caught.value.message == f"the {word} 'a' is registered by two plug-ins, mine and theirs"
    assert f"rename the {word} in one of the two plug-ins" in str(caught.value)
    assert (registered(), table.things, generation()) == ([(kind, "a", "mine", 1)], [1], count)


def test_after_a_registration_that_fails_the_earlier_one_is_in_effect(table: Table) -> None:
    with pytest.raises(ValueError, match="a wrong thing"):
        table.register("a", "wrong")
    assert registered() == []
    table.register("a", 1)
    with pytest.raises(ValueError, match="a wrong thing"):
        table.register("a", "wrong")
    assert (registered(), table.things) == ([("op", "a", "mine", 1)], [1])
    unregister("op", "a")  # by the function that the second call of ``add`` returned
    assert table.things == []


# -- keys --------------------------------------------------------------------------------------------------------------


def test_the_key_has_the_kind_the_name_and_the_digest(table: Table) -> None:
    table.register("a", 1)
    table.register("b", 2, "chip")
    digests = [one.digest for one in registrations()]
    assert plugin_key() == [f"op a {digests[0]}", f"chip b {digests[1]}"]
    assert digests[0] != digests[1]
    table.register("a", 2)
    assert plugin_key() == [f"chip b {digests[1]}", f"op a {digests[1]}"]  # equal things of equal modules


# -- the calling module ------------------------------------------------------------------------------------------------


def test_frames_of_the_package_do_not_call_into_it() -> None:
    assert calling_globals() is globals()
    text = "def call(function, *arguments):\n    return function(*arguments)\n"
    inner, outer, alike = ({"__name__": name} for name in ("tilelang_npu.anything", "mine", "tilelang_npu_of_mine"))
    for names in (inner, outer, alike):
        exec(text, names)
    call_of: Any = {id(names): names["call"] for names in (inner, outer, alike)}
    assert call_of[id(inner)](calling_globals) is globals()
    assert call_of[id(outer)](calling_globals) is outer
    assert call_of[id(outer)](call_of[id(inner)], calling_globals) is outer
    assert call_of[id(inner)](call_of[id(outer)], calling_globals) is outer
    assert call_of[id(alike)](calling_globals) is alike


def test_a_thread_that_runs_only_the_package_has_no_calling_module() -> None:
    found: Queue[Any] = Queue()
    names: dict[str, Any] = {"__name__": "tilelang_npu.anything", "found": found, "calling_globals": calling_globals}
    exec("def run():\n    found.put(calling_globals())\n", names)
    _thread.start_new_thread(names["run"], ())
    assert found.get(timeout=20) == {}


# -- restoring ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_what_the_body_changes_is_undone(table: Table, fails: bool) -> None:
    table.register("kept", 1)
    table.register("removed", 2)
    table.register("replaced", 3)
    kept, count = registrations()[0], generation()
    with (pytest.raises(ZeroDivisionError) if fails else nullcontext()), temporary():
        unregister("op", "removed")
        table.register("replaced", 4)
        table.register("new", 5, "pass")
        assert sorted(map(str, table.things)) == ["1", "4", "5"]
        assert fails is False or 1 / 0
    assert sorted(registered()) == [("op", "kept", "mine", 1), ("op", "removed", "mine", 2), ("op", "replaced", "mine", 3)]
    assert sorted(map(str, table.things)) == ["1", "2", "3"]
    assert registrations()[0] is kept
    assert generation() > count


def test_a_file_that_the_body_loads_can_be_loaded_again(tmp_path: Path) -> None:
    before, inside = tmp_path / "before.py", tmp_path / "inside.py"
    before.write_text(GOOD.replace("softsign", "softsign_before"))
    inside.write_text(GOOD)
    module = plugin_loading.load_file(before)
    with temporary():
        first = plugin_loading.load_file(inside)
        assert "softsign" in operations()
    assert "softsign" not in operations()
    assert plugin_loading.load_file(inside) is not first
    assert "softsign" in operations()
    assert plugin_loading.load_file(before) is module


# -- other processes ---------------------------------------------------------------------------------------------------


def test_another_process_gets_the_files_to_load(tmp_path: Path, sample: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(GOOD.replace("softsign", "softsign_too"))
    plugin_loading.load_file(file)
    plugin_loading.load_file(sample)
    given = sources()
    assert given == [("file", str(file)), ("file", str(sample / "__init__.py"))]  # once each, with several registrations
    before = registered()
    for one in registrations():
        unregister(one.kind, one.name)
    plugin_loading.forget_files([])
    sys.modules.pop("sample_plugin")
    load_sources(given)
    assert [one[:2] for one in registered()] == [one[:2] for one in before]


def test_a_module_is_imported_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "module_of_mine.py").write_text(GOOD)
    load_sources([("module", "module_of_mine")])
    assert [one[:3] for one in registered()] == [("op", "softsign", "module_of_mine")]
    assert sources() == [("module", "module_of_mine")]
    del sys.modules["module_of_mine"]
    with pytest.raises(ModuleNotFoundError, match="no_module_of_mine"):
        load_sources([("module", "no_module_of_mine")])


@pytest.mark.parametrize("home", ["__main__", "no_module_of_mine", "module_without_file"])
def test_what_a_script_registers_itself_is_in_no_other_process(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setitem(sys.modules, "module_without_file", SimpleNamespace())  # type: ignore[arg-type]
    exec(compile(GOOD, "<cell>", "exec"), {"__name__": home})
    with pytest.raises(TileError) as caught:
        sources()
    assert caught.value.code == "T733"
    assert caught.value.message.startswith("the op 'softsign' is registered by the script itself")


def test_what_is_restored_has_its_place_again(table: Table) -> None:
    """The order decides the order of passes next to one stage, and is part of keys of the kernel cache."""
    for name in "abc":
        table.register(name, name)
    before, key = registered(), plugin_key()
    with temporary():
        unregister("op", "a")
        table.register("d", "d")
    assert (registered(), plugin_key(), table.things) == (before, key, ["a", "b", "c"])
    with pytest.raises(ValueError, match="a wrong thing"):
        table.register("b", "wrong")
    assert (registered(), plugin_key(), table.things) == (before, key, ["a", "b", "c"])
