"""The benchmark of refusals: it finds each with its line and edit, and the number with which it is gone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = """
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def make(rows, tile=112):
    @T.prim_func
    def main(X: T.Tensor((rows, 256), "float32"), Y: T.Tensor((rows, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((tile, 256), "float32")
            for i in T.Pipelined(T.ceildiv(rows, tile), num_stages=2):
                T.copy(X[i * tile, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[i * tile, 0])
    return main

make(448)(np.zeros((448, 256), np.float32))
"""


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    added = str(Path(__file__).resolve().parent.parent / "benchmarks")
    sys.path.insert(0, added)
    try:
        import refusals

        yield refusals
    finally:
        sys.path.remove(added)


def test_a_tile_too_large_for_two_slots_is_halved_and_the_loop_overlaps(benchmark: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "large.py"
    script.write_text(SCRIPT)
    (one,) = [found for found in benchmark.refusals([script]) if found.remark.about == "multi-buffer"]
    assert one.remark.place.line == SCRIPT.splitlines().index('            x = T.alloc_shared((tile, 256), "float32")') + 1
    tried = benchmark.edited(one)
    assert tried.text == "tile=56 in place of 112"
    assert tried.before == pytest.approx(one.kernel.trace().time_us)
    assert tried.after < 0.8 * tried.before  # loads, exponentials and stores one after the other, and then overlapped
    assert tried.gone
    head, costs, _, _, _, row = benchmark.table([script], 1)
    assert head == "1 refusals in 1 of 1 scripts, 0 of them without a line or an edit"
    assert costs == "0 cost nothing, 1 may cost something"
    assert f" of {tried.before:.1f} | shrink the tiles" in row
    assert row.endswith(f"| tile=56 in place of 112 | {tried.before:.1f} | {tried.after:.1f} |")


def test_scripts_given_by_relative_paths_import_from_their_folders(benchmark: ModuleType, tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    for name, tile in (("one", 112), ("two", 56)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sizes.py").write_text(f"TILE = {tile}")
        (tmp_path / name / "run.py").write_text("from sizes import TILE\n" + SCRIPT.replace("tile=112", "tile=TILE"))
    monkeypatch.chdir(tmp_path)
    assert benchmark.main(["one/run.py", "two/run.py", "--count", "0"]) == 0
    assert capsys.readouterr().out.startswith("1 refusals in 1 of 2 scripts")  # two slots of the small tile have room


def test_a_sample_takes_of_each_optimisation_in_turn(benchmark: ModuleType) -> None:
    from tilelang_npu.dialects.ir.remarks import REFUSED, Remark

    kinds = ["banks"] * 5 + ["keep-apart"] * 2 + ["hoist-loads"]
    found = [benchmark.Refused(Path("x.py"), None, Remark("a pass", REFUSED, kind, text=str(number)))
             for number, kind in enumerate(kinds)]
    for seed in range(3):
        assert [one.remark.about for one in benchmark.sampled(found, 6, seed)] == [
            "banks", "hoist-loads", "keep-apart", "banks", "keep-apart", "banks"]
    assert benchmark.sampled(found, 6, 1) == benchmark.sampled(found, 6, 1)
    assert len({tuple(one.remark.text for one in benchmark.sampled(found, 6, seed)) for seed in range(9)}) > 1
