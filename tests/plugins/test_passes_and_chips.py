"""Passes and chips that plug-ins register: their order, the values of their options, and errors."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.passes import ModulePass

from tilelang_npu import target
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.plugins import register_chip, register_pass, unregister
from tilelang_npu.plugins.registry import plugin_key
from tilelang_npu.target import DEFAULT
from tilelang_npu.transforms import pipeline
from tilelang_npu.transforms.infra.options import Options

EMPTY = "func.func @k() {\n  return\n}\n"


def make_pass(stage: str, **fields: Any) -> Any:
    """A pass class, which notes its options on the module."""
    space: dict[str, Any] = {"__annotations__": {}, "__module__": __name__, "name": stage, "__doc__": f"Notes {stage}.\n\n"}
    for name, default in fields.items():
        space["__annotations__"][name] = type(default)
        space[name] = default

    def apply(self: Any, ctx: Context, op: ModuleOp) -> None:
        for name in fields:
            value = getattr(self, name)
            op.attributes[f"noted.{name}"] = StringAttr(value) if isinstance(value, str) else IntegerAttr(int(value), i64)

    space["apply"] = apply
    return dataclass(frozen=True)(type("Noted", (ModulePass,), space))


def test_passes_stand_next_to_their_stages_in_the_order_of_registration() -> None:
    for name, place in (("a", {"after": "hoist-loads"}), ("b", {"after": "hoist-loads"}), ("c", {"before": "hoist-loads"}),
                        ("d", {"after": "b"}), ("e", {"before": "split-launches"}), ("f", {"after": "hivm"})):
        register_pass(**place)(make_pass(name))
    names = pipeline.stage_names()
    assert names[names.index("hoist-loads") - 1:][:6] == ["c", "hoist-loads", "a", "b", "d", "pipeline-loops"]
    assert names[:3] == ["tile", "e", "split-launches"]
    assert names[-2:] == ["hivm", "f"]
    unregister("pass", "b")
    with pytest.raises(TileError, match="is to be next to 'b', which is no stage"):
        pipeline.stage_names()


def test_options_have_the_values_of_the_compilation() -> None:
    register_pass(after="cross-sync")(make_pass("noting", chip="none", reuse=True, banks=True, enabled=False, level=3))
    options = Options(chip=target.chip("910B3"), reuse=False, without=("keep-apart",))
    assert "noting{chip=Ascend910B3 reuse=false banks=false enabled=true level=3}," in pipeline.pipeline_text(options)
    module = pipeline.complete(parse_module(EMPTY), options)
    assert {name: str(value) for name, value in module.attributes.items() if name.startswith("noted.")} == {
        "noted.chip": '"Ascend910B3"', "noted.reuse": "0 : i64", "noted.banks": "0 : i64", "noted.enabled": "1 : i64",
        "noted.level": "3 : i64"}


def test_the_key_has_the_pass() -> None:
    register_pass(after="tidy-not")(make_pass("noting", level=3))
    first = plugin_key()
    register_pass(after="tidy-not")(make_pass("noting", level=4))
    assert plugin_key() != first


class Plain:
    """No pass."""


@dataclass(frozen=True)
class Needy(ModulePass):
    """Needs a number."""

    name = "needy"
    count: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Odd(ModulePass):
    """Takes anything."""

    name = "odd"
    thing: Any = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Nothing."""


class Open(ModulePass):
    """A pass that is not a dataclass itself."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Nothing."""


@pytest.mark.parametrize(("made", "text"), [
    (Plain, "is no pass"), (3, "3 is no pass"), (Open, "is no pass"), (Needy, "its option count has no default"),
    (Odd, "an option of a pass cannot be a typing.Any")])
def test_a_pass_that_is_wrong(made: Any, text: str) -> None:
    with pytest.raises(TileError) as caught:
        register_pass(after="tidy")(made)
    assert caught.value.code == "T821"
    assert text in caught.value.message


@pytest.mark.parametrize("place", [{}, {"after": "hivm", "before": "hivm"}])
def test_a_pass_needs_one_place(place: dict[str, str]) -> None:
    with pytest.raises(TileError, match="exactly one of after and before"):
        register_pass(**place)


@pytest.mark.parametrize(("name", "place", "text"), [
    ("noting", {"after": "hoist-load"}, "is to be next to 'hoist-load', which is no stage"),
    ("tidy", {"after": "hoist-loads"}, "the pass 'tidy' of a plug-in has the name of a pass of the pipeline"),
    ("hivm", {"before": "hoist-loads"}, "has the name of a pass of the pipeline")])
def test_a_place_that_is_wrong(name: str, place: dict[str, str], text: str) -> None:
    register_pass(**place)(make_pass(name))
    with pytest.raises(TileError) as caught:
        pipeline.lower(parse_module(EMPTY), Options())
    assert caught.value.code == "T822"
    assert text in caught.value.message


# -- chips -------------------------------------------------------------------------------------------------------------

needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="TOML is read by Python 3.11 and later")


@needs_toml
def test_a_chip_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "Mine910"\nlike = "910B3"\naic = 4\naiv = 8\n')
    plugin = tmp_path / "mine.py"
    names = {"__name__": "mine", "__file__": str(plugin)}
    text = "from tilelang_npu.plugins import register_chip\nchip = register_chip('mine.toml')\n"
    exec(compile(text, str(plugin), "exec"), names)
    assert target.chip("mine910") is names["chip"]
    assert target.chip("Mine910").aic == 4
    assert "Mine910" in [chip.name for chip in target.chips()]
    unregister("chip", "Mine910")
    with pytest.raises(TileError, match="unknown chip 'mine910'"):
        target.chip("mine910")


@needs_toml
def test_a_chip_file_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "Mine910"\nlike = "910B3"\naik = 4\n')
    with pytest.raises(TileError, match="a chip file has no key aik"):
        register_chip(tmp_path / "mine.toml")


def test_a_chip_as_data() -> None:
    from dataclasses import replace

    mine = replace(target.chip(DEFAULT), name="Mine911", aliases=("m911",), hivm_target="")
    assert register_chip(mine) is mine
    assert target.chip("M911") is mine
    unregister("chip", "Mine911")
    assert target.chip(DEFAULT).name == DEFAULT
