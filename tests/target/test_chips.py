"""The chip tables: complete, consistent with published figures, found by any spelling."""

from __future__ import annotations

import pickle

import pytest

from tilelang_npu import ops
from tilelang_npu.errors import TileError
from tilelang_npu.target import Chip, chip, chips


@pytest.mark.parametrize(("spelling", "name"), [
    ("910B2", "Ascend910B2"), ("ascend910b2", "Ascend910B2"), (" Ascend910B2C ", "Ascend910B2C"), ("910b4-1", "Ascend910B4-1"),
    ("Ascend910B4_1", "Ascend910B4-1"), ("910_9391", "Ascend910_9391"), ("910-9391", "Ascend910_9391"),
    ("Ascend950", "Ascend910_95"), ("Ascend910_9589", "Ascend910_95"), ("910C", "Ascend910_9391"),
    ("Ascend910C", "Ascend910_9391")])
def test_spellings(spelling: str, name: str) -> None:
    assert chip(spelling).name == name
    assert chip(chip(spelling)) is chip(name)


def test_unknown() -> None:
    with pytest.raises(TileError) as raised:
        chip("910A")
    assert raised.value.code == "T701"
    assert all(known.name in raised.value.notes[0] for known in chips() if not known.file)


@pytest.mark.parametrize("name", ["310B", "Ascend310B4", "310b1"])
def test_a_chip_of_which_too_little_is_published_is_refused_and_says_what(name: str) -> None:
    with pytest.raises(TileError) as raised:
        chip(name)
    why, known = raised.value.notes
    assert raised.value.code == "T701"
    assert "UB 256 KiB" in why
    assert "no clock, rate or latency" in why
    assert known.startswith("known are")
    assert "TOML" in raised.value.help


@pytest.mark.parametrize(("name", "teraflops"), [
    ("910B1", 363.7), ("910B2", 353.9), ("910B3", 294.9), ("910B4", 245.8), ("910_9391", 363.7), ("910_9372", 294.9),
    ("910_95", 432.5)])
def test_peaks_are_the_published_ones(name: str, teraflops: float) -> None:
    """docs/hardware.md#cores-and-clocks: cores times MACs per cycle times clock."""
    assert chip(name).peak_flops("f16") / 1e12 == pytest.approx(teraflops, abs=0.1)


@pytest.mark.parametrize("one", chips(), ids=lambda one: one.name)
def test_tables_are_complete(one: Chip) -> None:
    costs = {op.cost for op in ops.operations().values() if op.pipe == "V"}
    assert costs | {"dup", "copy", "brcb", "nchwconv", "gather", "mrgsort4"} <= set(one.vector)
    assert {"gm_ub", "ub_gm", "gm_l1", "gm_l1_nd2nz", "l0c_gm", "l0c_gm_nz2nd", "l1_l0a", "l1_l0b", "l1_bt"} <= set(one.moves)
    assert {"ub", "cbuf", "ca", "cb", "cc", "bt", "fb"} == set(one.memory)
    assert {"f16", "bf16", "f32", "hf32", "i8"} <= set(one.cube.k_step)
    assert all(move.source and move.rate > 0 and move.sustained > 0 for move in one.moves.values())
    assert all(rate.slope16 > 0 and rate.slope32 > 0 and rate.fixed > 0 for rate in one.vector.values())
    assert one.aiv == 2 * one.aic == one.aiv_per_aic * one.aic
    assert set(one.sync.user_flag_ids) <= set(range(one.sync.flag_ids))


def test_families_differ_where_the_hardware_does() -> None:
    a2, a5 = chip("910B1"), chip("910_95")
    assert (a2.memory["ub"].size, a5.memory["ub"].size) == (196608, 253952)
    assert (a2.memory["cc"].size, a5.memory["cc"].size) == (131072, 262144)
    assert "l0c_ub" in a5.moves
    assert "l0c_ub" not in a2.moves
    assert a2.microseconds(1850) == pytest.approx(1.0)


@pytest.mark.parametrize("one", chips(), ids=lambda one: one.name)
def test_paths_lead_from_memories_to_memories(one: Chip) -> None:
    for name, path in one.paths.items():
        assert name == path.name
        assert {path.source, path.target} <= {"gm", *one.memory}
        assert any(memory == "gm" or one.memory[memory].core == path.core for memory in (path.source, path.target)), name
        assert path.pipe in one.pipes[path.core]
    assert {core: set(pipes) for core, pipes in one.pipes.items()} == {
        "AIC": {"S", "M", "MTE1", "MTE2", "MTE3", "FIX"}, "AIV": {"S", "V", "MTE2", "MTE3"}}
    assert one.memories("AIC") == ("cbuf", "ca", "cb", "cc", "bt", "fb")
    assert one.memories("AIV") == ("ub",)
    assert all(set(memories) <= set(one.memories(unit.core)) for unit in one.units
               for memories in (*unit.operands.values(), unit.fills))


def test_paths_that_a_family_has_and_another_has_not() -> None:
    """UB and L1 are connected on A5 only, GM and L0 on A2 and A3 only."""
    a2, a5 = ({(path.source, path.target) for path in chip(name).paths.values()} for name in ("910B2", "910_95"))
    assert a5 - a2 == {("cc", "ub"), ("ub", "cbuf"), ("cbuf", "ub")}
    assert a2 - a5 == {("gm", "ca"), ("gm", "cb")}


@pytest.mark.parametrize("one", chips(), ids=lambda one: one.name)
def test_a_chip_can_be_pickled_and_stays_unchangeable(one: Chip) -> None:
    assert one.pipes and one.moves  # which the chip keeps
    loaded = pickle.loads(pickle.dumps(one))
    assert loaded == one
    assert repr(loaded) == repr(one)
    with pytest.raises(TypeError):
        loaded.vector["ln"] = None
