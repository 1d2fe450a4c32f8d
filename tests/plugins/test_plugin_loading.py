"""Sources of plug-ins: files, packages, entry points; errors of broken ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.conftest import GOOD
from tilelang_npu import plugin_loading, target
from tilelang_npu.errors import TileError
from tilelang_npu.ops import operations
from tilelang_npu.plugins.registry import generation, registrations


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder on ``sys.path`` in a process in which no plug-in was looked for."""
    for name, value in (("loaded", False), ("loading", False), ("failed", None)):
        monkeypatch.setattr(plugin_loading._Loaded, name, value)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def install(folder: Path, name: str, points: str, version: str = "1.0", group: str = "tilelang_npu.plugins") -> None:
    """Writes the metadata of entry points as installing a distribution does."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[{group}]\n{points}\n\n[other]\na = b\n")


def names() -> list[str]:
    return [f"{one.kind} {one.name}" for one in registrations()]


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_file_is_executed_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(GOOD)
    module = plugin_loading.load_file(file)
    count = generation()
    assert plugin_loading.load_file(str(file)) is module
    assert generation() == count
    file.write_text(GOOD.replace("softsign", "softsign2"))
    os.utime(file, ns=(1, 1))
    assert plugin_loading.load_file(file) is not module
    assert names() == ["op softsign", "op softsign2"]


def test_a_file_may_import_what_lies_next_to_it_and_another_may_have_its_name(tmp_path: Path) -> None:
    for folder, factor in (("a", 2), ("b", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"factor_{folder}.py").write_text(f"FACTOR = {factor}\n")
        (tmp_path / folder / "plug.py").write_text(f"from factor_{folder} import FACTOR\n")
    one, other = (plugin_loading.load_file(tmp_path / folder / "plug.py") for folder in ("a", "b"))
    assert (one.FACTOR, other.FACTOR) == (2, 3)
    assert one.__name__ != other.__name__


def test_a_package_is_loaded_under_its_name(sample: Path) -> None:
    module = plugin_loading.load_file(sample)
    assert module.__name__ == "sample_plugin"
    assert {"op softsign", "op rotate", "op load_reversed", "pass drop-repeated-relu"} <= set(names())


@pytest.mark.parametrize(("text", "message", "line"), [
    ("import nothing_there\n", "ModuleNotFoundError: No module named 'nothing_there'", 1),
    ("x = 1\n\ny = 1 / 0\n", "ZeroDivisionError: division by zero", 3), ("x = (\n", "SyntaxError: '(' was never closed", 1),
    (GOOD + "\nraise RuntimeError('late')\n", "RuntimeError: late", 10)])
def test_a_file_that_fails(tmp_path: Path, text: str, message: str, line: int) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    with pytest.raises(TileError) as caught:
        plugin_loading.load_file(file)
    error = caught.value
    assert (error.code, error.message) == ("T820", f"the plug-in {file} cannot be loaded: {message}")
    assert error.location is not None
    assert (error.location.file, error.location.line) == (str(file), line)
    assert file not in plugin_loading.loaded_modules()


def test_an_error_of_a_registration_is_shown_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(GOOD.replace('"exp"', '"nothing"'))
    with pytest.raises(TileError) as caught:
        plugin_loading.load_file(file)
    assert caught.value.code == "T821"
    assert caught.value.location is not None
    assert caught.value.location.line == 5


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="cannot be read: No such file"):
        plugin_loading.load_file(tmp_path / "nothing.py")
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(TileError, match="is not a Python file"):
        plugin_loading.load_file(tmp_path / "text.txt")


# -- entry points ------------------------------------------------------------------------------------------------------


def test_an_installed_module_is_imported_when_something_asks(fresh: Path) -> None:
    (fresh / "their_ops.py").write_text(GOOD)
    install(fresh, "their-ops", "ours = their_ops")
    assert "softsign" not in operations()
    import tilelang_npu.language as T

    assert callable(T.softsign)
    assert plugin_loading.load_plugins() is False
    assert names() == ["op softsign"]


def test_a_function_is_called(fresh: Path) -> None:
    (fresh / "their_ops.py").write_text("def register():\n" + "".join(f"    {line}\n" for line in GOOD.splitlines()))
    install(fresh, "their-ops", "ours = their_ops:register")
    assert plugin_loading.load_plugins() is True
    assert names() == ["op softsign"]


def test_an_unknown_chip_loads_plug_ins(fresh: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("TOML is read by Python 3.11 and later")
    install(fresh, "sample-plugin", "sample = sample_plugin")
    monkeypatch.syspath_prepend(sample.parent)
    monkeypatch.delitem(sys.modules, "sample_plugin", raising=False)
    assert target.chip("sample910").aic == 10


def test_what_is_found(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two distributions of one name, the first on ``sys.path`` counts; other groups, and other files, do not."""
    second = fresh / "second"
    second.mkdir()
    monkeypatch.setattr(sys, "path", [str(fresh), str(second), str(fresh / "nothing")])
    install(fresh, "one_thing", "a = one.a [extra]\n# b = c\n b = one.b : f\n", "2.0")
    install(second, "one.thing", "a = other.a", "1.0")
    install(second, "another", "c = another", group="pytest11")
    (second / "no-1.dist-info").mkdir()
    found = list(plugin_loading.find_entry_points())
    assert [(point.name, point.distribution) for point in found] == [("a", "one_thing 2.0"), ("b", "one_thing 2.0")]
    assert [point.value for point in found] == ["one.a", "one.b : f"]


def test_a_broken_one_names_its_distribution_each_time(fresh: Path) -> None:
    (fresh / "their_ops.py").write_text("\nraise ValueError('no licence')\n")
    install(fresh, "their-ops", "ours = their_ops", "3.1")
    for _ in range(2):
        with pytest.raises(TileError) as caught:
            plugin_loading.load_plugins()
        error = caught.value
        assert error.message == (
            "the plug-in 'ours' of the distribution their_ops 3.1 cannot be loaded: ValueError: no licence")
        assert error.location is not None
        assert (error.location.file, error.location.line) == (str(fresh / "their_ops.py"), 2)
        assert "uninstall their_ops" in error.help
        assert "TILELANG_NPU_PLUGINS=0" in error.help


def test_one_whose_module_is_missing(fresh: Path) -> None:
    install(fresh, "their-ops", "ours = nothing_here")
    with pytest.raises(TileError, match="No module named 'nothing_here'"):
        plugin_loading.load_plugins()


def test_installed_ones_can_be_left_out(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh / "their_ops.py").write_text("1 / 0\n")
    install(fresh, "their-ops", "ours = their_ops")
    monkeypatch.setenv("TILELANG_NPU_PLUGINS", "0")
    assert plugin_loading.load_plugins() is False


def test_the_environment_names_files(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (fresh / f"{name}.py").write_text(GOOD.replace("softsign", f"softsign_{name}"))
    monkeypatch.setenv("TILELANG_NPU_LOAD", os.pathsep.join(str(fresh / f"{name}.py") for name in ("one", "two")))
    assert plugin_loading.load_plugins() is True
    assert names() == ["op softsign_one", "op softsign_two"]


def test_a_plug_in_may_ask_for_plug_ins_while_it_is_loaded(fresh: Path) -> None:
    (fresh / "their_ops.py").write_text(
        "import tilelang_npu.language as T\nfrom tilelang_npu.dialects.context import make_context\nmake_context()\n"
        "assert not hasattr(T, '_no_such_name')\n" + GOOD)
    install(fresh, "their-ops", "ours = their_ops")
    assert plugin_loading.load_plugins() is True


def test_two_plug_ins_with_one_operation(fresh: Path) -> None:
    for name in ("one", "two"):
        (fresh / f"ops_{name}.py").write_text(GOOD)
        install(fresh, name, f"{name} = ops_{name}")
    with pytest.raises(TileError) as caught:
        plugin_loading.load_plugins()
    assert caught.value.code == "T821"
    assert "the operation 'softsign' is registered by two plug-ins, ops_one and ops_two" in caught.value.message
    assert caught.value.message.startswith("the plug-in 'two' of the distribution two 1.0: ")


def test_a_process_that_compiles_nothing_loads_no_plug_in(fresh: Path, python: str) -> None:
    """Nor does it look for one; nor load the package of plug-ins' registration."""
    (fresh / "their_ops.py").write_text("1 / 0\n")
    install(fresh, "their-ops", "ours = their_ops")
    code = ("import sys, tilelang_npu, tilelang_npu.language as T\nfrom tilelang_npu.cli import main\n"
            "assert main(['explain']) == 0\nT.copy\n"
            "late = ('their_ops', 'tilelang_npu.plugins.operations', 'importlib.metadata')\n"
            "print([name for name in late if name in sys.modules], file=sys.stderr)")
    path = os.pathsep.join([str(fresh), *filter(None, sys.path)])
    done = subprocess.run([python, "-S", "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.stderr.strip() == "[]"
