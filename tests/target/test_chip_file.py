"""Chips that users describe: the effect of their files, and the errors of invalid ones."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from samples import doubled
from tilelang_npu.cli import main
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.simulator import Launch
from tilelang_npu.target import chip, chip_data, chips, known
from tilelang_npu.target.chip_file import figures

GOOD = """
name = "My910"
like = "910B3"   # the table that it starts from
aic = 16
aiv = 32
clock = 1.6e9
estimates = ["clock", "traffic.hbm_read"]

[traffic]
hbm_read = 1_200_000_000_000

[paths.gm_ub]
near = { rate = 100, sustained = 90 }

[memory.ub]
size = 262144

[vector.exp]
slope32 = 3

[cube.k_step]
f16 = 32
"""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Any:
    """No test knows another's chips."""
    for table in ("_CHIPS", "_BY_KEY", "_USUAL"):
        monkeypatch.setattr(known, table, dict(getattr(known, table)))
    yield
    known._described.cache_clear()
    chip_data.UNPICKLED.clear()
    for derived in (known._memories, known._filled, known.pipes_of):
        derived.cache_clear()


def written(folder: Path, text: str = GOOD) -> Path:
    path = folder / "my.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_chip_is_another_one_with_the_figures_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    made, base = chip(path), chip("910B3")
    assert made is chip(str(path)) is chip("my910") and made in chips() and chip("910B3") is base
    assert (made.name, made.aic, made.aiv, made.clock, made.family) == ("My910", 16, 32, 1.6e9, "A2")
    assert made.traffic == replace(base.traffic, hbm_read=1.2e12)
    near = base.paths["gm_ub"].near
    assert near is not None
    assert made.paths["gm_ub"] == replace(base.paths["gm_ub"], near=replace(near, rate=100.0, sustained=90.0))
    assert made.memory == {**base.memory, "ub": replace(base.memory["ub"], size=262144)}
    assert made.vector == {**base.vector, "exp": replace(base.vector["exp"], slope32=3.0)}
    assert made.cube.k_step == {**base.cube.k_step, "f16": 32}
    assert made.peak_flops("f16") == 2 * 16 * 16 * 32 * 16 * 1.6e9
    assert made.estimates == (*base.estimates, "clock", "traffic.hbm_read")
    for name in ("sync", "scalar", "launch", "banks", "hbm", "l2", "units"):
        assert getattr(made, name) == getattr(base, name)


def test_kernels_are_compiled_and_timed_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    launch = doubled(16 * 480, 2048).trace()
    monkeypatch.setenv(environment.CHIP.name, str(path))
    mine = doubled(16 * 480, 2048)
    assert mine.chip is chip(path)
    assert mine.trace().cores == 32 and mine.trace().error is None
    assert mine.trace().time_us > launch.time_us
    assert mine.trace().cycles == Launch(mine.trace().recorded, chip=replace(chip(path), file="")).cycles
    written(tmp_path, GOOD.replace("1.6e9", "0.8e9")).touch()
    slower = doubled(16 * 480, 2048)
    assert slower.chip.clock == 0.8e9 and slower.trace().time_us > mine.trace().time_us


def test_at_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    script = tmp_path / "script.py"
    example = Path(__file__).parents[2] / "examples" / "softmax.py"
    script.write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["run", str(script), "--chip", str(path)]) == 0
    assert "My910, warm L2, modelled\n" in (out := capsys.readouterr().out) and "us +- ? %" in out
    assert main(["compile", str(script), "--chip", str(path)]) == 0
    (tmp_path / "softmax.mlir").write_text(capsys.readouterr().out)
    assert main(["chips", str(path)]) == 0
    assert "clock, traffic.hbm_read" in capsys.readouterr().out.splitlines()[-1]


WRONG = {
    "no name": ('like = "910B3"', "name is missing", 'begin with name = "My910"', 0),
    "no base": ('name = "My"\nlike = "910B9"', "unknown chip '910B9'", "start from one of the chips", 2),
    "a base in a file": ('name = "My"\nlike = "x.toml"', "x.toml is a file", "start from one of the chips", 2),
    "no such figure": (f"{GOOD}\n[traffic2]\n", "a chip file has no key traffic2", "allowed keys are name, like, estimates",
                       GOOD.count("\n") + 2),
    "no such key": (GOOD.replace("hbm_read =", "hbm ="), "traffic has no key hbm", "allowed keys are hbm_read, hbm_write", 10),
    "no such path": (GOOD.replace("gm_ub", "gm_ux"), "paths has no key gm_ux", "allowed keys are gm_ub, gm_l1", 12),
    "a path without a law for hits": (GOOD.replace("gm_ub]", "ub_gm]"), "paths.ub_gm has no key near", "keys are move", 13),
    "text": (GOOD.replace("aic = 16", 'aic = "16"'), "aic must be a whole number, not '16'", "has aic = 20", 4),
    "a part of a core": (GOOD.replace("aic = 16", "aic = 16.5"), "aic must be a whole number, not 16.5", "has aic = 20", 4),
    "no core": (GOOD.replace("aic = 16", "aic = 0"), "aic must not be 0", "of at least 1", 4),
    "less than nothing": (GOOD.replace("slope32 = 3", "slope32 = -1"), "slope32 must be a number, not -1", "at least 0", 19),
    "endless": (GOOD.replace("1.6e9", "inf"), "clock must be a number, not inf", "of at least 0", 6),
    "a number for a table": (GOOD.replace("aic = 16", "scalar = 16"), "scalar is a table", "write [scalar]", 4),
    "odd cores": (GOOD.replace("aiv = 32", "aiv = 33"), "33 Vector cores for 16 Cube cores", "a multiple of aic", 5),
    "an estimate of nothing": (GOOD.replace('"clock", ', '"watts", '), "watts is no figure of a chip", "keys are aic", 7),
    "a key twice": (GOOD.replace("aiv = 32", "aic = 32"), "the chip's file is no TOML", "KEY = NUMBER", 5),
    "not TOML": ("name 910", "the chip's file is no TOML", "KEY = NUMBER", 1),
    "a known name": (GOOD.replace("My910", "ascend910B2"), "the name ascend910B2 is taken", "another name", 0),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_file_is_reported_with_its_line_and_the_allowed_values(name: str, tmp_path: Path) -> None:
    text, message, advice, line = WRONG[name]
    path = written(tmp_path, text)
    before = chips()
    with pytest.raises(TileError) as found:
        chip(path)
    error = found.value
    assert error.code == "T713" and message in error.message and advice in (error.help or "")
    where = error.location
    assert (where is not None and (where.file, where.line) == (str(path), line)) if line else str(path) in error.message
    assert chips() == before


FAMILY = """
name = "Ascend960"
like = "910_95"
family = "A6"
hivm_target = "Ascend960"
aiv = 32
without = ["l1_ub"]

[paths.gm_l0a]
like = "910B2"
move = { fixed = 300 }

[paths.l0c_ub]
splits = 1

[features]
vector_modes = false
element_types = ["float16", "f32", "int32"]
"""


def test_a_family_in_a_file(tmp_path: Path) -> None:
    made, base = chip(written(tmp_path, FAMILY)), chip("910_95")
    assert (made.family, made.target_name, made.aiv_per_aic) == ("A6", "Ascend960", 1)
    assert base.paths.keys() - made.paths.keys() == {"l1_ub"} and made.paths.keys() - base.paths.keys() == {"gm_l0a"}
    a2 = chip("910B2").paths["gm_l0a"]
    assert a2.move is not None and made.paths["gm_l0a"] == replace(a2, move=replace(a2.move, fixed=300.0))
    assert made.features == replace(base.features, vector_modes=False, element_types=("f16", "f32", "i32"), fixpipe_splits=1)
    assert known.features_of("Ascend960") == made.features and known.usual("A6") is made
    assert known.features_of(base.hivm_target) == base.features


def test_a_chip_with_more_features_than_its_target_has_its_own_name_in_hivm(tmp_path: Path) -> None:
    """AscendNPU-IR's verifiers would refuse, for a 910B3, the additional features of the chip."""
    text = GOOD + "[features]\nvector_registers = true\n"
    assert chip(written(tmp_path, text)).target_name == "My910"
    assert chip(written(tmp_path, GOOD.replace("My910", "Other910"))).target_name == "Ascend910B3"


WRONG_FAMILIES = {
    "no text": (FAMILY.replace('family = "A6"', "family = 6"), "family is no text", 'write family = "..."', 4),
    "a path that there is not": (FAMILY.replace('["l1_ub"]', '["l1_xx"]'), "without is no list of paths", "it has gm_ub", 7),
    "a path of nobody": (FAMILY.replace("gm_l0a", "gm_l0x"), "910B2 has no path gm_l0x", "it has gm_ub", 9),
    "a path of no chip": (FAMILY.replace('like = "910B2"', 'like = "910B9"'), "unknown chip '910B9'", "start from one", 9),
    "no truth": (FAMILY.replace("vector_modes = false", "vector_modes = 0"), "vector_modes must be true or false, not 0",
                 "has vector_modes = true", 17),
    "no element types": (FAMILY.replace('"f32"', '"f33"'), "element_types must be a list of element types", "chip has", 18),
    "no such feature": (FAMILY.replace("vector_modes", "fixpipe_to_ub"), "features has no key fixpipe_to_ub", "keys are vector",
                        17),
    "a target without the features": (FAMILY.replace('hivm_target = "Ascend960"', 'hivm_target = "Ascend910B3"'),
                                      "which its HIVM target Ascend910B3 lacks", "leave hivm_target out", 5),
}


@pytest.mark.parametrize("name", WRONG_FAMILIES)
def test_a_family_in_a_wrong_file(name: str, tmp_path: Path) -> None:
    text, message, advice, line = WRONG_FAMILIES[name]
    path = written(tmp_path, text)
    with pytest.raises(TileError) as found:
        chip(path)
    error = found.value
    assert error.code == "T713" and message in error.message and advice in (error.help or "")
    assert error.location is not None and (error.location.file, error.location.line) == (str(path), line)


def test_the_chips_of_the_documentation(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/hardware.md").read_text(encoding="utf-8")
    ratios = {}
    for kind, text in re.findall(r"```(toml|python)\n(.*?)```", page, re.DOTALL):
        file = tmp_path / f"{len(ratios)}.{'py' if kind == 'python' else kind}"
        file.write_text(text, encoding="utf-8")
        made = chip(file)
        ratios[file.name] = made.name, made.family, made.aiv_per_aic
    assert ratios == {"0.toml": ("My910", "A2", 2), "1.toml": ("FourVectors", "A2", 4), "2.toml": ("Ascend960", "A6", 1),
                      "3.py": ("Ascend960", "A6", 1)}
    assert chip("Ascend964").aiv_per_aic == 4


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TileError, match=r"none\.toml: No such file") as found:
        chip(str(tmp_path / "none.toml"))
    assert found.value.code == "T713"


def test_estimates_are_figures_of_the_chip() -> None:
    for one in chips():
        for key in one.estimates:
            row: Any = one
            for part in key.split("."):
                row = figures(row)[part]
        assert isinstance(one.estimates, tuple) and len(set(one.estimates)) == len(one.estimates)
    assert {name: set(chip(name).estimates) - set(chip("910B1").estimates) for name in ("910B4", "910B4-1", "910_9362")} == {
        "910B4": set(), "910B4-1": {"traffic.hbm_write"}, "910_9362": {"traffic.hbm_read", "traffic.hbm_write"}}
    assert np.all([figures(one) for one in chips()])
