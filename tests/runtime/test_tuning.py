"""A tuning gives the same winner and the same table, wherever it is done, however often it is interrupted."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
from runtime.tuned_rows import GRID, SIZE, doubled
from tilelang_npu import TileError, progress
from tilelang_npu.runtime.kernel.draft import Draft, time_draft
from tilelang_npu.runtime.kernel.executors import open_executor
from tilelang_npu.runtime.tuning import tuning
from tilelang_npu.runtime.tuning.autotune import AutoTuner, AutotuneResult

MANY = int(os.environ.get("TILELANG_TUNED", "0"))
"""The number of configurations in the test that kills a worker; the acceptance test has 500."""


def _tuned(grid: Any = GRID, **run: Any) -> AutotuneResult:
    tuner = AutoTuner(doubled, grid)
    tuner.args = (SIZE,)
    return tuner.run(**run)


def _reports(result: AutotuneResult) -> tuple[Any, ...]:
    return result.config, result.latency, result.tried, result.rejected


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tuning times all for itself."""
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    monkeypatch.setattr("tilelang_npu.runtime.cache.entries.load", lambda _: None)


def _not_again(*_: object, **__: object) -> Any:
    raise AssertionError("it is time_draft once more")


def test_nothing_is_written_unless_requested(tmp_path: Path) -> None:
    _tuned({"tile": [1024, 2048]})
    assert list(tmp_path.iterdir()) == []


def test_the_winner_is_the_least_time_of_kernels_compiled_by_hand() -> None:
    times = {}
    for tile in GRID["tile"][:-1]:
        for stages in GRID["stages"]:
            launch = doubled(SIZE, tile, stages).trace()
            assert launch is not None
            times[tile, stages] = launch.time_us
    result = _tuned()
    assert {(config["tile"], config["stages"]): latency * 1000 for latency, config in result.tried} == pytest.approx(times)
    assert tuple(result.config.values()) == min(times, key=lambda one: times[one])
    assert [one.code for one in result.rejected] == ["T104"] * 3


@pytest.mark.usefixtures("nothing_known")
def test_executors_and_numbers_of_workers_give_one_table(tmp_path: Path) -> None:
    alone = _reports(_tuned(table=tmp_path / "alone"))
    for executor in ("threads:2", "processes:1", "processes:2"):
        assert _reports(_tuned(executor=executor, table=tmp_path / executor)) == alone
        assert (tmp_path / executor).read_bytes() == (tmp_path / "alone").read_bytes()


def test_hash_seeds_give_one_table(tmp_path: Path, root: Path) -> None:
    output = []
    for seed, executor in (("1", "processes:2"), ("2", "threads:1")):
        file = tmp_path / seed
        code = (f"from runtime.test_tuning import _tuned\nresult = _tuned(executor={executor!r}, table={str(file)!r})\n"
                "print(result.tried, result.rejected)")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={
            **os.environ, "PYTHONHASHSEED": seed, "TILELANG_CACHE_DIR": str(tmp_path / f"cache{seed}"),
            "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root / "tests")])})
        output.append((done.stdout, file.read_bytes()))
    assert output[0] == output[1]
    assert output[0][1].count(b"\n") == 19


def test_a_table_has_a_line_for_each_configuration_in_order(tmp_path: Path) -> None:
    result = _tuned(table=tmp_path / "table.jsonl")
    title, *rows = [json.loads(line) for line in (tmp_path / "table.jsonl").read_text().splitlines()]
    assert title["tuning"]["factory"] == "doubled"
    assert [tuple(row["config"].values()) for row in rows] == [*itertools.product(*GRID.values())]
    assert {json.dumps(row["config"]): row["us"] for row in rows if "us" in row} == {
        json.dumps(config): pytest.approx(latency * 1000) for latency, config in result.tried}
    assert [row["code"] for row in rows if "us" not in row] == ["T104"] * 3


@pytest.mark.usefixtures("nothing_known")
def test_a_tuning_that_was_interrupted_goes_on_with_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table.jsonl"
    whole = _reports(_tuned(table=table))
    lines = table.read_bytes().splitlines(keepends=True)
    table.write_bytes(b"".join([*lines[:1], *lines[9:12], *lines[2:5]]) + lines[7][:20])
    counted = []
    monkeypatch.setattr(tuning, "time_draft", lambda draft, seconds: counted.append(draft.key) or time_draft(draft, seconds))
    assert _reports(_tuned(table=table)) == whole
    assert len(counted) == 18 - 6
    assert table.read_bytes().splitlines(keepends=True) == lines


@pytest.mark.usefixtures("nothing_known")
def test_ctrl_c_leaves_a_table_to_go_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(draft: Draft, seconds: float) -> Any:
        calls.append(draft)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return time_draft(draft, seconds)

    calls: list[Draft] = []
    table = tmp_path / "table.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(tuning, "time_draft", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _tuned(table=table)
    assert table.read_text().count("\n") == 1 + 4
    _tuned(table=table)
    assert table.read_text().count("\n") == 19


def test_a_file_that_is_another_table_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine\n")
    with pytest.raises(TileError, match="is not the table of a tuning") as caught:
        _tuned(table=other)
    assert caught.value.code == "T736"
    assert other.read_text() == "mine\n"
    tuner = AutoTuner(doubled, {"tile": [1024]})
    tuner.args = (1 << 16,)
    tuner.run(table=tmp_path / "table")
    with pytest.raises(TileError, match="is the table of another tuning"):
        _tuned(table=tmp_path / "table")


def test_what_was_timed_before_is_not_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _reports(_tuned())
    monkeypatch.setattr(tuning, "time_draft", _not_again)
    monkeypatch.setattr(tuning.ResultCheck, "measure", _not_again)
    assert _reports(_tuned()) == first
    monkeypatch.setenv("TILELANG_NPU_CHIP", "Ascend910B4")
    with pytest.raises(AssertionError, match="once more"):
        _tuned()


def test_a_factory_in_a_function_is_tuned_by_processes() -> None:
    def local() -> Any:
        return doubled.function

    factory = tilelang.jit(out_idx=[-1], target="npuir")(lambda tile, stages: local()(SIZE, tile, stages))
    assert _reports(AutoTuner(factory, GRID).run(executor="processes:2")) == _reports(AutoTuner(factory, GRID).run())


def test_what_gives_other_values_than_the_defaults_is_left_out() -> None:
    result = _tuned([{"tile": 8192, "factor": 3.0}, {"tile": 8192, "factor": 2.0}, {"tile": 1024, "factor": 2.0}])
    assert result.config == {"tile": 8192, "factor": 2.0}
    wrong, = result.rejected
    assert wrong.config == {"tile": 8192, "factor": 3.0}
    assert "elements differ" in wrong.reason
    assert "from the result with {'tile': 1024, 'factor': 2.0}" in wrong.reason


def test_configurations_with_other_parameters_are_reported_as_not_comparable() -> None:
    tuner = AutoTuner(doubled, [{"M": SIZE, "tile": 512}, {"M": SIZE // 2, "tile": 4096}])
    with pytest.warns(tilelang.TileWarning, match="T732: the results of doubled are not checked: with {'M': 262144, 't"):
        assert tuner.run().config["tile"] == 4096


def _with_optuna(**run: Any) -> AutotuneResult:
    pytest.importorskip("optuna", reason="Optuna is not installed")
    return _tuned({"tile": [256, 512, 1024, 1536, 2048, 4096, 8192, 16384], "stages": [1, 2, 3, 4]}, **run)


@pytest.mark.usefixtures("nothing_known")
def test_trials_are_those_of_the_seed_wherever_they_are_timed() -> None:
    first = _with_optuna(trials=12, seed=3)
    assert len(first.tried) + len(first.rejected) == 12
    assert len({json.dumps(config) for _, config in first.tried}) == len(first.tried)
    assert _reports(_with_optuna(trials=12, seed=3, executor="threads:2")) == _reports(first)
    assert {json.dumps(config) for _, config in _with_optuna(trials=12, seed=4).tried} != {
        json.dumps(config) for _, config in first.tried}


def test_trials_find_one_of_the_best() -> None:
    best = _with_optuna().tried
    found = _with_optuna(trials=16, seed=0)
    assert found.latency <= best[3][0]


def test_as_many_trials_as_configurations_are_all_of_them() -> None:
    assert _reports(_tuned(trials=18)) == _reports(_tuned())


def test_trials_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(TileError, match="needs the package optuna, which is not installed") as caught:
        _tuned(trials=3)
    assert caught.value.code == "T735"


class _Killing(Executor):
    """An executor over others; when a few are done, one of the workers, by its process, is killed."""

    def __init__(self, executor: Any, one: int, later: int) -> None:
        self._executor, self._one, self._behind = executor, one, later
        self.killed = False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(fn, *args, **kwargs)
        future.add_done_callback(self._count)
        return future

    def _count(self, _: object) -> None:
        self._behind -= 1
        if self._behind == 0:
            os.kill(self._one, signal.SIGKILL)
            self.killed = True


@pytest.fixture
def dask() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with (distributed.LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
          distributed.Client(cluster) as client):
        yield client


@pytest.mark.filterwarnings("ignore")  # of packages that are not this one's
@pytest.mark.usefixtures("nothing_known")
def test_a_dask_worker_that_is_killed_in_the_middle_changes_nothing(dask: Any, tmp_path: Path) -> None:
    grid = GRID if not MANY else {"tile": [512, 1024, 2048, 4096, 8192, 16384], "stages": [1, 2, 3, 4], "factor": [
        2.0 + number for number in range(MANY // 24 + 1)]}
    profile = {"skip_check": bool(MANY)}
    tuner = AutoTuner(doubled, grid).set_profile_args(**profile)
    tuner.args = (SIZE,)
    alone = tuner.run(table=tmp_path / "alone")
    executor = _Killing(dask.get_executor(), next(iter(dask.run(os.getpid).values())), 5)
    assert _reports(tuner.run(executor=executor, table=tmp_path / "dask")) == _reports(alone)
    assert executor.killed
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "dask").read_bytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("nothing_known")
def test_ray_gives_the_same_table(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    alone = _reports(_tuned(table=tmp_path / "alone"))
    assert _reports(_tuned(executor="ray:2", table=tmp_path / "ray")) == alone
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "ray").read_bytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("nothing_known")
def test_a_ray_worker_that_is_killed_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    alone = _reports(_tuned(table=tmp_path / "alone"))
    with open_executor("ray:2") as workers:
        assert workers is not None
        executor = _Killing(workers, workers.submit(os.getpid).result(), 5)
        assert _reports(_tuned(executor=executor, table=tmp_path / "ray")) == alone
        assert executor.killed
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "ray").read_bytes()


def test_progress_is_shown_only_on_a_terminal_and_for_long_tunings(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_EVERY", 0.001)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    _tuned({"tile": [1024, 2048]})
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _tuned({"tile": [1024, 4096]})
    output = capsys.readouterr().err
    assert "tuning 2 configurations" in output
    assert output.endswith("\r\033[K")
    monkeypatch.setattr(progress, "AFTER", 60.0)
    _tuned({"tile": [1024, 512]})
    assert capsys.readouterr().err == ""


def test_switches_of_a_configuration(nothing_known: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration's ``pass_configs`` are those of its kernel, and win over those of ``jit``."""
    seen = []
    original = Draft.of

    def noted(func: Any, settings: Any) -> Draft:
        seen.append(settings.pass_configs)
        return original(func, settings)

    monkeypatch.setattr(Draft, "of", noted)
    key, other = tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED, tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER
    factory = tilelang.jit(doubled.function, out_idx=[-1], target="npuir", pass_configs={key: True, other: True})
    tuner = AutoTuner(factory, [{"tile": 1024, "pass_configs": {key: value}} for value in (True, False)])
    tuner.args = (SIZE,)
    result = tuner.run()
    assert seen == [{key: True, other: True}, {key: False, other: True}]
    assert result.config["tile"] == 1024
    assert result.rejected == []
