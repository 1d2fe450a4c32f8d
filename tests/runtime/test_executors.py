"""Tasks run on every kind of executor, and are repeated if their process dies."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import pytest

from tilelang_npu import TileError
from tilelang_npu.runtime.kernel.executors import Processes, compute_each, open_executor


def doubled(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return 2 * number


def _dying(places: tuple[str, int]) -> int:
    """Ends its process the first time that it gets an odd number; each time for 5."""
    folder, number = places
    mark = Path(folder, str(number))
    if number == 5 or (number % 2 and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def _of(executor: Executor | None) -> dict[int, object]:
    return {number: repr(made) if isinstance(made, BaseException) else made
            for number, made in compute_each(executor, doubled, [1, 2, 3, 4])}


@pytest.mark.parametrize("name", ["threads", "processes:2"])
def test_each_gives_what_is_made_and_what_is_raised(name: str) -> None:
    with open_executor(name, 2) as executor:
        assert _of(executor) == {0: 2, 1: 4, 2: "ValueError('three')", 3: 8}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_a_process_was_at_when_it_died_is_done_once_more(tmp_path: Path) -> None:
    items = [(str(tmp_path), number) for number in range(7)]
    with Processes(2) as processes:
        made = dict(compute_each(processes, _dying, items))
        assert {number: one for number, one in made.items() if number != 5} == {n: 2 * n for n in range(7) if n != 5}
        assert isinstance(made[5], RuntimeError)
        assert "two processes died while they computed this item" in str(made[5])
        assert processes.submit(doubled, 4).result() == 8  # fresh ones took the place of the dead


def _waiting(path: str) -> None:
    Path(path).touch()
    time.sleep(60)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.skipif(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="a background job ignores Ctrl-C")
def test_an_interrupt_ends_a_call_and_no_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Processes(1) as processes:
        number = processes.submit(os.getpid).result()
        os.kill(number, signal.SIGINT)  # it is idle
        assert processes.submit(os.getpid).result() == number
        call = processes.submit(_waiting, str(tmp_path / "started"))
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        os.kill(number, signal.SIGINT)
        assert isinstance(call.exception(timeout=30), KeyboardInterrupt)
        assert processes.submit(os.getpid).result() == number
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_pool_of_the_users_that_breaks_loses_no_work(tmp_path: Path) -> None:
    items = [(str(tmp_path), number) for number in range(5)]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert dict(compute_each(pool, _dying, items)) == {number: 2 * number for number in range(5)}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.filterwarnings("ignore")  # of packages that are not this one's
def test_what_a_ray_worker_was_at_when_it_died_is_done_again(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    items = [(str(tmp_path), number) for number in range(5)]
    with open_executor("ray:2") as executor:
        assert dict(compute_each(executor, _dying, items)) == {number: 2 * number for number in range(5)}
    assert sorted(mark.name for mark in tmp_path.iterdir()) == ["1", "3"]


def test_what_takes_too_long_is_given_up() -> None:
    from threading import Event

    gate = Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(gate.wait)
        (number, made), = compute_each(pool, doubled, [1], 0.05)
        gate.set()
    assert (number, type(made), str(made)) == (0, TimeoutError, "longer than 0.05 s")


@pytest.mark.parametrize(("name", "advice"), [
    ("thread", "did you mean threads?"), ("prozesses", "did you mean processes?"), ("threads:0", "the executors are threads"),
    ("processes:here", "the executors are threads, processes, dask, ray"), ("x", "the executors are threads"),
])
def test_an_executor_that_there_is_not(name: str, advice: str) -> None:
    with pytest.raises(TileError, match=f"there is no executor '{name}'") as caught, open_executor(name):
        pass
    assert caught.value.code == "T707"
    assert caught.value.help.startswith(advice)


@pytest.mark.parametrize(("name", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_package_that_is_not_there(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TileError, match=f"the executor {name} needs a package") as caught, open_executor(name):
        pass
    assert caught.value.code == "T735"
    assert f"tilelang-npu[{name}]" in caught.value.help


def reports_of(example: str) -> dict[str, bytes]:
    """Returns the results of a call of an example, and all reports on it and its kernel.

    ``explain()`` compiles the kernel with each edit that it tries: it is called for softmax, which compiles fast.
    """
    module = runpy.run_path(example)
    factory = next(value for value in module.values() if hasattr(value, "draft"))
    shape = module["SHAPES"][0]
    kernel = factory(*shape)
    made = kernel(*module["inputs"](*shape))
    launch = kernel.last_launch
    texts = {"sync": kernel.sync_report(), "memory": kernel.memory_report(), "text": kernel.mlir(), "times": launch.profile,
             "trace": launch.trace, "hazards": launch.hazards, "all": launch.to_dict()}
    if Path(example).stem == "softmax":
        texts["why"] = kernel.explain()
    return {"results": b"".join(one.tobytes() for one in (made if isinstance(made, (tuple, list)) else (made,))),
            **{name: str(text).encode() for name, text in texts.items()}}


reports_here = cache(reports_of)


@pytest.mark.parametrize("executor", ["threads:2", "processes:2", "dask", "ray:2"])
@pytest.mark.filterwarnings("ignore")  # of packages that are not this one's
def test_results_and_reports_do_not_depend_on_the_executor(executor: str, root: Path) -> None:
    for name, package, of in (("dask", "distributed", "Dask"), ("ray:2", "ray", "Ray")):
        if executor == name:
            pytest.importorskip(package, reason=f"{of} is not installed")
    examples = [str(root / "examples" / f"{example}.py") for example in ("gemm", "softmax", "flash_attention")]
    with open_executor(executor, 2) as pool:
        elsewhere = dict(compute_each(pool, reports_of, examples))
    for number, example in enumerate(examples):
        reported, found = reports_here(example), elsewhere[number]
        assert isinstance(reported, dict) and isinstance(found, dict), found
        assert [name for name in reported if reported[name] != found[name]] == []
        assert all(reported[name] for name in ("results", "sync", "memory", "text", "times", "trace", "all"))
