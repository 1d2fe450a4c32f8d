"""Chips that users describe: what their files change, and what is said of wrong ones."""

from __future__ import annotations

import sys
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
from tilelang_npu.target import chip, chips, known
from tilelang_npu.target.chip_file import figures

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 reads no TOML")

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
    monkeypatch.setattr(known, "_CHIPS", dict(known._CHIPS))
    monkeypatch.setattr(known, "_BY_KEY", dict(known._BY_KEY))
    yield
    known._described.cache_clear()
    for derived in (known.memory, known.memories, known.filled_from, known.pipes_of):
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
    assert "My910, modelled\n" in (out := capsys.readouterr().out) and "us +- ? %" in out
    assert main(["compile", str(script), "--chip", str(path)]) == 0
    (tmp_path / "softmax.mlir").write_text(capsys.readouterr().out)
    assert main(["chips", str(path)]) == 0
    assert "clock, traffic.hbm_read" in capsys.readouterr().out.splitlines()[-1]


WRONG = {
    "no name": ('like = "910B3"', "name is missing", 'begin with name = "My910"', 0),
    "no base": ('name = "My"\nlike = "910B9"', "unknown chip '910B9'", "start from one of the chips", 2),
    "a base in a file": ('name = "My"\nlike = "x.toml"', "x.toml is a file", "start from one of the chips", 2),
    "no such figure": (f"{GOOD}\n[traffic2]\n", "a chip has no traffic2", "allowed are name, like, estimates, aic, aiv",
                       GOOD.count("\n") + 2),
    "no such key": (GOOD.replace("hbm_read =", "hbm ="), "traffic has no hbm", "allowed are hbm_read, hbm_write, l2_read", 10),
    "no such path": (GOOD.replace("gm_ub", "gm_ux"), "paths has no gm_ux", "allowed are gm_ub, gm_l1", 12),
    "a path without a law for hits": (GOOD.replace("gm_ub]", "ub_gm]"), "paths.ub_gm has no near", "allowed are move", 13),
    "text": (GOOD.replace("aic = 16", 'aic = "16"'), "aic is a whole number, not '16'", "aic was 20", 4),
    "a part of a core": (GOOD.replace("aic = 16", "aic = 16.5"), "aic is a whole number, not 16.5", "aic was 20", 4),
    "no core": (GOOD.replace("aic = 16", "aic = 0"), "aic is 0", "from 1 on", 4),
    "less than nothing": (GOOD.replace("slope32 = 3", "slope32 = -1"), "vector.exp.slope32 is a number, not -1", "from 0", 19),
    "endless": (GOOD.replace("1.6e9", "inf"), "clock is a number, not inf", "from 0 on", 6),
    "a number for a table": (GOOD.replace("aic = 16", "scalar = 16"), "scalar is a table", "write [scalar]", 4),
    "odd cores": (GOOD.replace("aiv = 32", "aiv = 33"), "33 Vector cores for 16 Cube cores", "a multiple of aic", 5),
    "an estimate of nothing": (GOOD.replace('"clock", ', '"watts", '), "watts is no figure of a chip", "allowed are aic", 7),
    "a key twice": (GOOD.replace("aiv = 32", "aic = 32"), "the chip's file is no TOML", "KEY = NUMBER", 5),
    "not TOML": ("name 910", "the chip's file is no TOML", "KEY = NUMBER", 1),
    "a known name": (GOOD.replace("My910", "ascend910B2"), "the name ascend910B2 is taken", "give another name", 0),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_told_with_its_line_and_what_is_allowed(name: str, tmp_path: Path) -> None:
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
    assert chip("910B4").estimates[-2:] == ("traffic.hbm_read", "traffic.hbm_write")
    assert np.all([figures(one) for one in chips()])
