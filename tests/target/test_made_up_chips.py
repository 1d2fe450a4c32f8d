"""The invented chips of tests/target/chips: other numbers of Vector cores for each Cube core, and new families.

Here are a few examples for each chip; ``benchmarks/chips.py`` runs all of them.
"""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import frontend, target
from tilelang_npu.cli import main
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.simulator import Program
from tilelang_npu.target import chip_data, known

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "examples"))

import ladders  # noqa: E402  (found through the path above)

FILES = {"OneToOne": "one_to_one.toml", "OneToFour": "one_to_four.toml",
         **dict.fromkeys(("Ascend960", "Ascend961", "Ascend964", "Ascend970"), "families.py")}
RATIOS = {"OneToOne": 1, "OneToFour": 4, "Ascend960": 2, "Ascend961": 1, "Ascend964": 4, "Ascend970": 2}
STEPS = [
    "attention/step2_overlapped", "attention/step7_persistent", "atomic_add/step4_whole_tiles",
    "decoding/step2_split_keys", "gated_delta/step2_chunks", "gather/step3_whole_tiles", "gelu_int8/step2_one_launch",
    "linear/step2_one_launch", "linear_attention/step3_state_in_l0c", "reduce/step5_one_launch", "softmax/step3_eight_rows",
    "split_k/step2_six_splits", "w4a8/step2_one_launch"]
BY_HAND = {"attention/step7_persistent"}
"""Steps whose authors divide the work between two Vector cores."""


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The chips are known in each test of this file, and in no other."""
    for table in ("_CHIPS", "_BY_KEY", "_USUAL"):
        monkeypatch.setattr(known, table, dict(getattr(known, table)))
    for file in dict.fromkeys(FILES.values()):
        target.chip(HERE / "chips" / file)
    before = list(sys.path)
    yield
    sys.path[:] = before
    sys.modules.pop("ladder", None)
    known._described.cache_clear()
    chip_data.UNPICKLED.clear()
    for derived in (known._memories, known._filled, known.pipes_of):
        derived.cache_clear()


@pytest.mark.parametrize("name", FILES)
def test_the_number_of_vector_cores_for_each_cube_core(name: str) -> None:
    assert target.chip(name).aiv_per_aic == RATIOS[name]
    assert target.chip(name).file == str((HERE / "chips" / FILES[name]).resolve())


@pytest.mark.parametrize("chip", FILES)
@pytest.mark.parametrize("step", STEPS)
def test_steps_of_ladders_are_right_and_clean(step: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.CHIP.name, chip)
    monkeypatch.setenv(environment.SANITIZE.name, "1")
    folder, _, name = step.partition("/")
    ladder = ladders.load(ladders.HERE / folder)
    found = next(one for one in ladders.steps(ladders.HERE / folder) if one.file.stem == name)
    case = min(ladder.cases, key=lambda case: math.prod(size for size in case.values() if isinstance(size, int)))
    small = replace(ladder, cases=[case])
    if step in BY_HAND and RATIOS[chip] < 2:
        with pytest.raises(TileError, match=rf"counts 2 Vector cores of a block, and {chip} has 1 Vector core"):
            small.check_values(found.factory())
        return
    small.check_values(found.factory())
    factory = found.factory()
    assert target.chip(chip).target_name in factory(**case).mlir()


# -- kernels whose work is divided -----------------------------------------------------------------------------------------


def exponentials(launch: str, rows: int = 48, dialect: str = "npuir") -> Any:
    """``exp(A B)``; ``launch`` is the text after the number of blocks in ``T.Kernel``."""
    threads = int(launch) if launch else None

    @T.prim_func
    def main(A: T.Tensor((rows * 2, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((rows * 2, 32), "float32")):
        with T.Kernel(2, is_npu=True, threads=threads) as cid:
            a = T.alloc_shared((rows, 64), "float16")
            b = T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((rows, 32), "float32")
            T.copy(A[cid * rows, 0], a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            T.vexp(c, c)
            T.copy(c, C[cid * rows, 0])

    return main


def by_hand(rows: int, cores: int, threads: int | None) -> Any:
    """``exp(A B)`` through a workspace, each Vector core with its rows."""
    part = rows // cores

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float16"), B: T.Tensor((64, 32), "float16"), W: T.Tensor((rows, 32), "float32"),
             C: T.Tensor((rows, 32), "float32")):
        with T.Kernel(1, is_npu=True, threads=threads) as (cid, vid):
            a = T.alloc_L1((rows, 64), "float16")
            b = T.alloc_L1((64, 32), "float16")
            c = T.alloc_L0C((rows, 32), "float32")
            x = T.alloc_ub((part, 32), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(B, b)
                T.barrier_all()
                T.gemm_v0(a, b, c, init=True)
                T.barrier_all()
                T.copy(c, W)
                T.set_cross_flag("fix", 0)
            with T.Scope("V"):
                T.wait_cross_flag(0)
                T.copy(W[vid * part, 0], x)
                T.barrier_all()
                T.tile.exp(x, x)
                T.barrier_all()
                T.copy(x, C[vid * part, 0])

    return main


def vectors(rows: int, cores: int, threads: int | None) -> Any:
    """``A + A``, each Vector core with its rows; no Cube core."""
    part = rows // cores

    @T.prim_func
    def main(A: T.Tensor((rows * 3, 32), "float32"), B: T.Tensor((rows * 3, 32), "float32")):
        with T.Kernel(3, is_npu=True, threads=threads) as (cid, vid):
            x = T.alloc_ub((part, 32), "float32")
            T.copy(A[cid * rows + vid * part, 0], x)
            T.tile.add(x, x, x)
            T.copy(x, B[cid * rows + vid * part, 0])

    return main


def operands(rng: np.random.Generator, rows: int) -> tuple[Any, Any, Any]:
    a, b = (rng.uniform(-0.3, 0.3, shape).astype(np.float16) for shape in ((rows, 64), (64, 32)))
    return a, b, np.exp(a.astype(np.float32) @ b.astype(np.float32))


AUTO = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
        tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True}


def vector_cores(kernel: Any) -> int:
    """How many Vector cores of a block work."""
    return len(kernel.program.lanes) - 1


@pytest.mark.parametrize("chip", FILES)
@pytest.mark.parametrize("rows", [48, 24, 6, 5])
def test_the_compiler_divides_by_what_the_chip_has(chip: str, rows: int, rng: np.random.Generator) -> None:
    a, b, wanted = operands(rng, rows * 2)
    kernel = tilelang.compile(exponentials("", rows), out_idx=[-1], target="npuir", chip=chip, sanitize=True)
    np.testing.assert_allclose(kernel(a, b), wanted, rtol=2e-3)
    most = RATIOS[chip]
    assert vector_cores(kernel) == max(parts for parts in range(1, most + 1) if rows % parts == 0)
    assert kernel.last_launch.cores == target.chip(chip).aic


@pytest.mark.parametrize(("chip", "threads", "used"), [
    ("OneToOne", 1, 1), ("OneToOne", 2, 1), ("OneToFour", 1, 1), ("OneToFour", 2, 2), ("OneToFour", 3, 3), ("OneToFour", 4, 4),
    ("Ascend961", 2, 1), ("Ascend964", 2, 2), ("Ascend964", 4, 4), ("Ascend970", 2, 2)])
def test_threads_are_vector_cores(chip: str, threads: int, used: int, rng: np.random.Generator) -> None:
    if chip not in FILES:
        pytest.skip("TOML")
    a, b, wanted = operands(rng, 96)
    kernel = tilelang.compile(exponentials(str(threads)), out_idx=[-1], target="ascendc", chip=chip, sanitize=True,
                              pass_configs=AUTO)
    np.testing.assert_allclose(kernel(a, b), wanted, rtol=2e-3)
    assert vector_cores(kernel) == used


@pytest.mark.parametrize(("chip", "threads"), [("OneToOne", 3), ("OneToFour", 5), ("Ascend964", 5), ("Ascend961", 3)])
def test_more_threads_than_vector_cores(chip: str, threads: int) -> None:
    if chip not in FILES:
        pytest.skip("TOML")
    counts = "1 vector core" if RATIOS[chip] == 1 else "1 to 4 vector cores"
    with pytest.raises(TileError, match=rf"T150.*threads={threads}; a block has {counts}"):
        tilelang.compile(exponentials(str(threads)), out_idx=[-1], target="ascendc", chip=chip, pass_configs=AUTO)


@pytest.mark.parametrize(("chip", "cores", "threads"), [
    ("OneToFour", 2, None), ("OneToFour", 4, 4), ("Ascend964", 2, None), ("Ascend964", 4, 4), ("Ascend960", 2, None),
    ("Ascend970", 2, None)])
def test_work_that_is_divided_by_hand(chip: str, cores: int, threads: int | None, rng: np.random.Generator) -> None:
    """Two Vector cores of a block, unless ``threads`` says more; the interpreter has as many."""
    if chip not in FILES:
        pytest.skip("TOML")
    a, b, wanted = operands(rng, 64)
    kernel = tilelang.compile(by_hand(64, cores, threads), target="ascendc", chip=chip, sanitize=True)
    for run in (kernel, kernel.interpret):
        w, c = (np.zeros((64, 32), np.float32) for _ in range(2))
        run(a, b, w, c)
        np.testing.assert_allclose(c, wanted, rtol=2e-3)
    assert vector_cores(kernel) == cores
    assert kernel.last_launch.blocks == 1


@pytest.mark.parametrize("chip", [name for name in FILES if RATIOS[name] == 1])
def test_a_kernel_for_two_vector_cores_is_refused_where_there_is_one(chip: str) -> None:
    with pytest.raises(TileError) as caught:
        tilelang.compile(by_hand(64, 2, None), target="ascendc", chip=chip)
    error = caught.value
    assert error.code == "T150"
    assert error.message == f"vid counts 2 Vector cores of a block, and {chip} has 1 Vector core for each Cube core"
    assert "T.Kernel(...) as (cid, _)" in error.help
    assert "T.Kernel(1, is_npu=True" in error.location.source()


@pytest.mark.parametrize("chip", FILES)
def test_vector_work_alone_has_a_block_for_each_index(chip: str, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((48, 32)).astype(np.float32), np.zeros((48, 32), np.float32)
    for cores, threads in ((2, None), (4, 4)):
        if cores > max(2, RATIOS[chip]):
            continue
        kernel = tilelang.compile(vectors(16, cores, threads), target="ascendc", chip=chip, sanitize=True,
                                  pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
        for run in (kernel, kernel.interpret):
            b[:] = 0
            run(a, b)
            np.testing.assert_array_equal(b, a + a)
        assert kernel.last_launch.blocks == 3 * cores


def test_a_missing_flag_is_found_on_each_vector_core(rng: np.random.Generator) -> None:
    """Each of four Vector cores reads data that the Cube core may not have written yet."""
    a, b, _ = operands(rng, 64)
    text = tilelang.compile(by_hand(64, 4, 4), target="ascendc", chip="Ascend964").mlir()
    assert "sub_blocks = 4" in text
    lines = [line for line in text.splitlines() if "sync_block_wait" not in line]
    from tilelang_npu.dialects.text import parse_module
    from tilelang_npu.simulator import Launch

    program = Program(parse_module("\n".join(lines)), "Ascend964")
    launch = Launch(program.run([a, b, np.zeros((64, 32), np.float32), np.zeros((64, 32), np.float32)], blocks=1))
    found = {hazard.second.core for hazard in launch.hazards if hazard.second is not None and hazard.kind == "RAW"}
    assert found == {"AIV0", "AIV1", "AIV2", "AIV3"}


def test_the_text_runs_by_itself_where_the_chip_has_the_cores(rng: np.random.Generator) -> None:
    from tilelang_npu.dialects.text import parse_module

    text = tilelang.compile(by_hand(64, 2, None), target="ascendc", chip="910B2").mlir()
    with pytest.raises(TileError, match=r"T508.*needs 2 Vector cores \(task type 32\), but Ascend961 has 1 for each Cube core"):
        Program(parse_module(text), "Ascend961")
    assert len(Program(parse_module(text), "Ascend964").lanes) == 3


def test_a_trace_counts_the_cores_of_its_chip() -> None:
    for cores, wanted in ((1, 1), (2, 2), (4, 2)):
        (launch,) = frontend.trace(exponentials("2"), dialect="ascendc", vector_cores=cores).launches
        assert launch.sub_blocks.value.data == wanted


def test_a_kernel_on_half_of_the_vector_cores_is_reported(rng: np.random.Generator) -> None:
    """A kernel whose Vector work is long, for two of four Vector cores, has advice for all."""
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((64, 128), "float32")):
        with T.Kernel(1, is_npu=True, threads=2) as cid:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((64, 128), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            for _ in T.serial(200):
                T.vexp(c, c)
                T.vmul(c, 0.25, c)
            T.copy(c, C)

    kernel = tilelang.compile(main, out_idx=[-1], target="ascendc", chip="Ascend964", pass_configs=AUTO)
    kernel(np.zeros((64, 64), np.float16), np.zeros((64, 128), np.float16))
    assert vector_cores(kernel) == 2
    (report,) = [one.text for one in kernel.profile().causes if one.cause == "one Vector core"]
    assert "2 of the 4 Vector cores of a block have 100 % of the Vector work" in report
    assert "T.Kernel(..., threads=4)" in report


# -- families --------------------------------------------------------------------------------------------------------------


def test_a_family_has_its_own_name_in_hivm_and_its_own_features() -> None:
    assert target.usual("A6") is target.chip("a6") is target.chip("Ascend960")
    assert target.features_of("Ascend960").vector_registers
    assert target.features_of("Ascend970").vector_registers and not target.features_of("Ascend970").vector_modes
    assert target.families()[-2:] == ("A6", "A7")
    assert [target.family_of(name) for name in ("Ascend96", "Ascend970", "Ascend98")] == ["A6", "A7", None]


def test_a_pickled_kernel_brings_its_chip(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process that has not read the chip's file, such as a worker of a tuning."""
    a, b, wanted = operands(rng, 96)
    data = pickle.dumps(tilelang.compile(exponentials(""), out_idx=[-1], target="npuir", chip="Ascend964"))
    for table in (known._CHIPS, known._BY_KEY):
        for name in [name for name, one in table.items() if one.file]:
            table.pop(name)
    kernel = pickle.loads(data)
    np.testing.assert_allclose(kernel(a, b), wanted, rtol=2e-3)
    assert "fixpipe" in kernel.mlir("hivm-auto") and vector_cores(kernel) == 4
    assert target.chip("Ascend964").aiv_per_aic == 4


def test_a_family_at_the_shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(HERE / "chips" / "families.py")
    assert main(["run", str(ROOT / "examples" / "softmax.py"), "--chip", file]) == 0
    assert "Ascend960, warm L2, modelled\n" in capsys.readouterr().out
    assert main(["chips", file]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[-4:]] == ["A6", "A6", "A6", "A7"]
    monkeypatch.setenv(environment.PLATFORM.name, "A7")
    kernel = tilelang.compile(vectors(16, 2, None), target="ascendc",
                              pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
    assert kernel.chip.name == "Ascend970" and "Ascend970" in kernel.mlir()


@pytest.mark.parametrize(("text", "message"), [
    ("", "CHIPS is missing"), ("CHIPS = []", "CHIPS is no tuple of chips"),
    ("from tilelang_npu.target import chip\nCHIPS = (chip('910B2'),)", "the name Ascend910B2 is taken"),
    ("from tilelang_npu.target import chip\nCHIPS = (chip('910B2'),)\nUSUAL = chip('910B3')", "USUAL is not among CHIPS"),
    ("from dataclasses import replace\nfrom tilelang_npu.target import chip\n"
     "CHIPS = (replace(chip('910B2'), name='X', aiv=25),)", "X has 25 Vector cores for 24 Cube cores"),
    ("from dataclasses import replace\nfrom tilelang_npu.target import chip\na = chip('910B2')\n"
     "CHIPS = (replace(a, name='X', features=replace(a.features, vector_registers=True)),)",
     "X has vector_registers, which its HIVM target Ascend910B2 lacks")])
def test_a_python_file_that_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TileError, match=message) as caught:
        target.chip(file)
    assert caught.value.code == "T713"
