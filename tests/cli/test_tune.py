"""``tune``: the table of a factory's configurations, and words that fit no factory."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SCRIPT = '''
import tilelang
import tilelang.language as T


def kernel(M, tile):
    @T.prim_func
    def doubled(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M // tile, is_npu=True) as (block, _):
            a = T.alloc_ub((tile,), "float32")
            T.copy(A[block * tile], a)
            T.vmul(a, 2.0, a)
            T.copy(a, B[block * tile])

    return doubled


@tilelang.jit(out_idx=[-1], target="npuir")
def doubled(M, tile=1024, unused=1):
    return kernel(M, tile)
'''
SECOND = '''

@tilelang.autotune(configs={"tile": [1024, 2048], "M": [16384, 32768]})
@tilelang.jit(out_idx=[-1], target="npuir")
def chosen(M, tile=64):
    return kernel(M, tile)
'''


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A script with one factory."""
    path = tmp_path / "one.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A script with two of them."""
    path = tmp_path / "two.py"
    path.write_text(SCRIPT + SECOND)
    return path


def test_the_table_is_printed_and_kept_where_it_is_asked_for(tool, one: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.jsonl"
    done = tool("tune", one, "--arg", "M=65536", "--space", "tile=512..4096*2,65536", "--table", table,
                "--picture", tmp_path / "bars.svg")
    assert (done.code, done.err) == (0, "")
    title, _, head, *rows = done.out.splitlines()
    assert title == "doubled(M=65536)  5 of 5 configurations tried, Ascend910B2, modelled"
    assert head.split() == ["us", "slower", "tile"]
    kept = [json.loads(line) for line in table.read_text().splitlines()[1:]]
    assert [row["config"]["tile"] for row in kept] == [512, 1024, 2048, 4096, 65536]
    best = sorted((row["us"], row["config"]["tile"]) for row in kept if "us" in row)
    assert [(row.split()[0], row.split()[2]) for row in rows[:4]] == [(f"{us:.1f}", str(tile)) for us, tile in best]
    assert "left out 1, such as tile=65536: T104: the tile does not fit" in done.out
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", (tmp_path / "bars.svg").read_text())
    drawn = [text for us, tile in best for text in (f"tile={tile}", f"{us:.2f} us")]
    assert texts == ["doubled: 4 configurations, 1 that do not work", *drawn, "tile=65536", "T104"]
    assert f"best tile={best[0][1]}  {best[0][0]:.1f} us, checked by a run" in done.out


def test_only_the_fastest_rows_are_printed(tool, one: Path) -> None:
    done = tool("tune", one, "--arg", "M=65536", "--space", "tile=512,1024,2048", "--top", "1", "--no-check")
    assert "and 2 more, up to" in done.out
    assert done.out.rstrip().endswith("us, not run")
    every = tool("tune", one, "--arg", "M=65536", "--space", "tile=512,1024,2048", "--top", "0")
    assert "more" not in every.out


def test_several_workers_print_the_same(tool, one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    words = ["tune", one, "--arg", "M=65536", "--space", "tile=512,1024"]
    assert tool(*words, "--jobs", "2").out == tool(*words).out == tool(*words, "--executor", "threads", "--jobs", "2").out


def test_configurations_of_autotune_are_the_space_where_none_is_given(tool, two: Path) -> None:
    done = tool("tune", f"{two}:chosen", "--arg", "M=16384")
    assert "chosen(M=16384)  2 of 2 configurations tried" in done.out
    other = tool("tune", f"{two}:chosen", "--arg", "M=16384", "--space", "tile=512")
    assert "1 of 1 configurations tried" in other.out


def test_the_chip_is_the_one_that_is_asked_for(tool, one: Path) -> None:
    done = tool("tune", one, "--arg", "M=16384", "--space", "tile=512", "--chip", "910B4")
    assert "Ascend910B4" in done.out


@pytest.mark.parametrize(("words", "message", "advice"), [
    (["--space", "tiles=1"], "doubled has no parameter 'tiles'", "did you mean tile?"),
    (["--space", "Tile=1"], "doubled has no parameter 'Tile'", "did you mean tile?"),
    (["--arg", "rows=1", "--space", "tile=1"], "doubled has no parameter 'rows'", "its parameters are M, tile, unused"),
    (["--space", "tile=512"], "doubled needs M", "give them: --arg M=..."),
    (["--arg", "M=64"], "there is nothing to choose from", "such as --space tile=1024 unused=1,..."),
    (["--arg", "M", "--space", "tile=1"], "--arg M is not NAME=VALUE", "for example --arg M=4096"),
    (["--arg", "M=1", "tile=2", "--space", "tile=1"], "tile is fixed by --arg and varied by --space", "leave out one"),
    (["--space", "tile=1", "tile=2"], "--space has tile twice", "tile=64,128"),
    (["--space", "tile=3..1"], "--space tile=3..1 has no value", "64..256..64"),
    (["--space", "tile=0..8*2"], "--space tile=0..8*2 has no value", "16..256*2"),
    (["--space", "tile=1..x"], "--space tile has '1..x' among its values", "1..3"),
])
def test_words_that_do_not_fit_the_factory(tool, one: Path, words: list[str], message: str, advice: str) -> None:
    done = tool("tune", one, *words)
    assert done.code == 1
    assert f"error[T810]: {message}" in done.err
    assert advice in done.err


def test_one_of_several_factories_has_to_be_named(tool, two: Path, tmp_path: Path) -> None:
    several = tool("tune", two, "--arg", "M=64")
    assert "error[T810]" in several.err
    assert "has 2 factories at its top level" in several.err
    assert f"{two}:doubled(M, tile=1024, unused=1)" in several.err
    assert f"{two}:chosen(M, tile=64)" in several.err
    assert "did you mean chosen?" in tool("tune", f"{two}:choosen").err
    none = tmp_path / "none.py"
    none.write_text("x = 1\n")
    assert "has no factories at its top level" in tool("tune", none).err


def test_values_are_numbers_words_and_ranges(tool, one: Path) -> None:
    from tilelang_npu.cli.space import _values

    assert list(_values("x", "1..3")) == [1, 2, 3]
    assert list(_values("x", "64..256..64")) == [64, 128, 192, 256]
    assert list(_values("x", "16..100*2,20")) == [16, 32, 64, 20]
    assert list(_values("x", "True,None,0.5,float16,1,1")) == [True, None, 0.5, "float16", 1]
    assert list(_values("x", "-2..1")) == [-2, -1, 0, 1]


def test_a_script_that_fails_shows_its_error(tool, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("raise RuntimeError('mine')\n")
    done = tool("tune", path)
    assert done.code == 1
    assert "RuntimeError: mine" in done.err


SYMBOLIC = '''
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def doubled(tile=1024):
    M = T.symbolic("M")

    @T.prim_func
    def doubled(A: T.Tensor((M,), "float32"), times: T.int32, B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, tile), is_npu=True) as (block, _):
            a = T.alloc_ub((tile,), "float32")
            T.copy(A[block * tile], a)
            for _ in T.serial(times):
                T.vmul(a, 2.0, a)
            T.copy(a, B[block * tile])

    return doubled
'''


def test_sizes_that_only_a_call_knows(tool, tmp_path: Path) -> None:
    script = tmp_path / "symbolic.py"
    script.write_text(SYMBOLIC)
    refused = tool("tune", script, "--space", "tile=512,1024")
    assert refused.code == 1
    assert "error[T730]: the time of doubled depends on M, which a call gives" in refused.err
    assert "-->" not in refused.err, "the command is not the author's source"
    assert "--size M=..." in refused.err
    wrong = tool("tune", script, "--space", "tile=512,1024", "--size", "M=64", "N=3")
    assert "error[T707]: doubled has no size or number 'N'" in wrong.err
    assert "M, times" in wrong.err
    done = [tool("tune", script, "--space", "tile=512,1024", "--size", f"M={size}", "times=3").out for size in (1024, 1 << 20)]
    assert done[0].startswith("doubled(M=1024, times=3)  2 of 2")
    first, last = (float(re.search(r"best tile=\d+  ([\d.]+) us, checked by a run", text)[1]) for text in done)
    assert last > 2 * first


@pytest.mark.parametrize("size", ["M", "M=", "M=1.5", "4=4", "M=4 M=5"])
def test_a_size_is_an_integer_with_a_name(tool, one: Path, size: str) -> None:
    assert "error[T810]: --size" in tool("tune", one, "--arg", "M=16384", "--space", "tile=512", "--size", *size.split()).err


BY_DATA = '''
import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(target="npuir")
def rows(tile):
    @T.prim_func
    def rows(L: T.Tensor((1,), "int32"), A: T.Tensor((65536,), "float32"), B: T.Tensor((65536,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_ub((tile,), "float32")
            for i in T.serial(L[0] // tile):
                T.copy(A[i * tile], a)
                T.copy(a, B[i * tile])

    return rows


def long_rows(parameters):
    return [np.full(1, 65536, np.int32), np.ones(65536, np.float32), np.zeros(65536, np.float32)]


def short_rows(parameters, config):
    return [np.full(1, config["tile"], np.int32), np.ones(65536, np.float32), np.zeros(65536, np.float32)]
'''


def test_a_function_of_the_script_gives_the_inputs(tool, tmp_path: Path) -> None:
    script = tmp_path / "by_data.py"
    script.write_text(BY_DATA)
    long, short = (tool("tune", script, "--space", "tile=64,512", "--inputs", name) for name in ("long_rows", "short_rows"))
    assert (long.code, short.code) == (0, 0), long.err + short.err
    slower, faster = (float(re.search(r"best tile=\d+  ([\d.]+) us, checked by a run", one.out)[1]) for one in (long, short))
    assert slower > 1.5 * faster
    assert "did you mean long_rows?" in tool("tune", script, "--space", "tile=64,512", "--inputs", "long_row").err
