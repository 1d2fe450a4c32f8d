"""Names that a package imports when they are first used."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import pytest

import tilelang_npu
from tilelang_npu.deferred import deferred

ROOT = Path(tilelang_npu.__file__).parent


def test_a_name_is_imported_once_and_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lazily"
    folder.mkdir()
    (folder / "__init__.py").write_text("from tilelang_npu.deferred import deferred\n"
                                        "__getattr__ = deferred(__name__, {'Value': 'values'})\n")
    (folder / "values.py").write_text("class Value: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("lazily")
    assert "lazily.values" not in sys.modules
    value = package.Value
    assert value is sys.modules["lazily.values"].Value
    assert vars(package)["Value"] is value
    for name in ("lazily", "lazily.values"):
        monkeypatch.delitem(sys.modules, name)


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(AttributeError, match=r"module 'tilelang_npu\.target' has no attribute 'chop'"):
        deferred("tilelang_npu.target", {"chip": "known"})("chop")


@pytest.mark.parametrize("package", ["ops", "target", "frontend", "simulator"])
def test_every_public_name_of_a_package_is_there_and_no_submodule(package: str) -> None:
    module = importlib.import_module(f"tilelang_npu.{package}")
    submodules = {file.stem for file in (ROOT / package).glob("*.py")} | {file.name for file in (ROOT / package).iterdir()}
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name not in submodules or name == "simulate"


def test_dir_of_the_package_has_the_public_names_alone() -> None:
    names = dir(tilelang_npu)
    assert set(tilelang_npu.__all__) <= set(names)
    assert [name for name in names if name.startswith("_")] == ["__version__"]
    for name in names:
        value = getattr(tilelang_npu, name)
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "tilelang_npu")
        assert home.startswith("tilelang_npu"), f"{name} is of {home}"
