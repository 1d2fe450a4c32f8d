"""Passes and chips that plug-ins register: their order, the values of their options, and errors."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.passes import ModulePass

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import target
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of, parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.plugins import register_chip, register_pass, unregister
from tilelang_npu.plugins.registry import plugin_key
from tilelang_npu.runtime.reports.remarks_file import write_remarks
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
    assert names[names.index("hoist-loads") - 1:][:6] == ["c", "hoist-loads", "a", "b", "d", "reuse-results"]
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


@dataclass(frozen=True)
class CountCopies(ModulePass):
    """Counts the copies of a kernel, in a remark about the first one."""

    name = "count-copies"
    refuses: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        copies = [inner for inner in op.walk() if isinstance(inner, tile.CopyOp)]
        if self.refuses:
            record_refusal(op, self.name, location_of(copies[0]), f"{len(copies)} copies", "write fewer")
        else:
            record_done(op, self.name, location_of(copies[0]), f"{len(copies)} copies are counted")


@pytest.mark.parametrize("refuses", [False, True])
def test_reports_show_the_remarks_of_a_pass(refuses: bool, tmp_path: Path) -> None:
    register_pass(after="collapse-copies")(dataclass(frozen=True)(
        type("Counting", (CountCopies,), {"__annotations__": {"refuses": bool}, "refuses": refuses, "__module__": __name__,
                                          "__doc__": CountCopies.__doc__})))

    @tilelang.jit(out_idx=[-1], target="npuir")
    def doubled() -> Any:
        @T.prim_func
        def main(X: T.Tensor((1024,), "float32"), Y: T.Tensor((1024,), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                x = T.alloc_shared((1024,), "float32")
                T.copy(X, x)
                T.vadd(x, x, x)
                T.copy(x, Y)

        return main

    page = doubled().explain()
    line = next(remark.place.line for remark in page.remarks if remark.about == "count-copies" and remark.place is not None)
    shown = str(page).splitlines()
    if refuses:
        assert f"  count-copies  line {line}: 2 copies" in shown
        assert shown[shown.index(f"  count-copies  line {line}: 2 copies") + 1:][0].strip().endswith("to have it: write fewer")
        assert any(one.startswith("  count-copies ") and one.endswith("1 refused, see 'refused' below") for one in shown)
    else:
        assert any(one.startswith("  count-copies ") and one.endswith(f"line {line}: 2 copies are counted") for one in shown)
    write_remarks(str(tmp_path / "out.sarif"), [page])
    (run,) = json.loads((tmp_path / "out.sarif").read_text(encoding="utf-8"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert ("count-copies" in [rule["id"] for rule in rules]) is refuses
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_decorators_without_parentheses_are_refused() -> None:
    with pytest.raises(TileError, match="needs exactly one of after and before") as reported:
        register_pass(make_pass("bare"))
    assert reported.value.code == "T821" and "@register_pass(after=" in reported.value.help


def test_the_place_before_all_passes() -> None:
    register_pass(after="tile")(make_pass("first"))
    with pytest.raises(TileError, match="is to be next to 'tile', which is no stage") as reported:
        pipeline.stage_names()
    assert reported.value.help == "before='split-launches' is the place before all passes"
