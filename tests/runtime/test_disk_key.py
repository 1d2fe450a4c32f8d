"""A kernel never uses an outdated captured value, neither from the disk nor from memory, in any way of capturing.

Each way is tested at one place of a kernel, alternately, and some also in its factory; ``TILELANG_CAPTURED=all`` tests every
place.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu.language as T
from captured_values import CONF, FOLDER, WAYS, Way, module_of, places_of
from tilelang_npu.runtime.cache.disk_key import disk_key

PROGRAM = Path(__file__).parents[1] / "run_captured_values.py"
ALL = os.environ.get("TILELANG_CAPTURED") == "all"


def _chosen(number: int, way: Way) -> list[str]:
    places = places_of(way)
    if ALL:
        return places
    *kernels, factory = places
    return [kernels[number % len(kernels)], *([factory] if number % 3 == 0 else [])]


CASES = [(number, way, place) for number, way in enumerate(WAYS) for place in _chosen(number, way)]
KERNELS = [case for case in CASES if case[2] != "factory"]


def _name(number: int, place: str) -> str:
    return f"way_{number:03}_{place}"


def _ids(cases: list[tuple[int, Way, str]]) -> list[str]:
    return [f"{way.name}, {place}" for _, way, place in cases]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Returns the values that three processes with one cache directory read: the value is 1; then 2, changed to 1 afterwards;
    and 1 again. The second process also reads it in factories."""
    home = tmp_path_factory.mktemp("ways")
    for number, way, place in CASES:
        (home / f"{_name(number, place)}.py").write_text(module_of(way, place), encoding="utf-8")
    (home / "conf.py").write_text(CONF, encoding="utf-8")
    (home / "folder").mkdir()
    (home / "folder" / "__init__.py").write_text(FOLDER, encoding="utf-8")
    (home / "folder" / "conf2.py").write_text(CONF, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TILELANG_", "TL_"))}
    environment |= {"TILELANG_CACHE_DIR": str(home / "kernels"), "TILELANG_NPU_CACHE_KEY": str(home / "cache.key")}
    found = []
    for value, changed in (("1", ""), ("2", "1"), ("1", "")):
        target = home / "found.json"
        subprocess.run([sys.executable, PROGRAM, value, changed, target], cwd=home, env=environment, check=True)
        found.append(json.loads(target.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize(("number", "way", "place"), KERNELS, ids=_ids(KERNELS))
def test_a_captured_value_is_the_one_of_the_process(number: int, way: Way, place: str, runs: list[dict[str, Any]]) -> None:
    assert [run[_name(number, place)]["value"] for run in runs] == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(("number", "way", "place"), CASES, ids=_ids(CASES))
def test_a_captured_value_that_changes_is_the_new_one(number: int, way: Way, place: str, runs: list[dict[str, Any]]) -> None:
    read = runs[1][_name(number, place)]
    assert (read["value"], read["after"]) == (2.0, 1.0 if way.change else 2.0)


@pytest.mark.parametrize(("number", "way", "place"), KERNELS, ids=_ids(KERNELS))
def test_a_kernel_is_kept_where_all_that_it_reads_is_known(
        number: int, way: Way, place: str, runs: list[dict[str, Any]]) -> None:
    assert runs[2][_name(number, place)]["whole"] == way.kept


def test_there_are_many_ways() -> None:
    assert len(WAYS) > 250
    assert len({way.name for way in WAYS}) == len(WAYS)


# -- one by one -------------------------------------------------------------------------------------------------------


def _kernel(read: Callable[[], Any]) -> T.PrimFunc:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32")):  # type: ignore[no-untyped-def]
        with T.Kernel(read(), is_npu=True) as (block, _):
            x = T.alloc_shared((64,), "float32")
            T.clear(x)
            T.copy(x, A)

    return kernel


def test_the_key_says_why_there_is_none() -> None:
    def imports() -> Any:
        import json

        return json

    refused: list[tuple[Callable[[], Any], str]] = [
        (imports, "it imports json"), (lambda: open("a"), "it uses open"),  # noqa: SIM115, PTH123  (nobody calls it)
        (lambda: T, "it reads the module tilelang_npu.language as a whole"),
        (lambda: json.loads("1"), "it reads json.loads, of a library"),
        (lambda: getattr(WAYS, "a"), "it uses getattr"), (lambda: PROGRAM, "it reads pathlib"),  # noqa: B009  (the call of getattr is the case)
        (lambda: _kernel.__globals__, "it reads __globals__")]
    for read, why in refused:
        with pytest.raises(TypeError, match=why):
            disk_key(_kernel(read))


def test_equal_kernels_have_equal_keys() -> None:
    def other() -> Any:
        return WAYS

    read = [lambda: ALL] * 2
    assert disk_key(_kernel(read[0])) == disk_key(_kernel(read[1]))
    assert disk_key(_kernel(read[0])) != disk_key(_kernel(other))


def test_without_assertions_in_python_there_is_no_key(tmp_path: Path) -> None:
    """Tracing evaluates an assertion, whose names Python has then left out of the code."""
    file = tmp_path / "kernels.py"
    file.write_text('''
import tilelang_npu.language as T
from tilelang_npu.runtime.cache.disk_key import disk_key
LIMIT = 1

@T.prim_func
def kernel(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, is_npu=True) as (block, _):
        assert LIMIT
        T.copy(A, T.alloc_shared((64,), "float32"))

try:
    disk_key(kernel)
    print("a key")
except TypeError as error:
    print(error)
''')
    output = [subprocess.run([sys.executable, *flags, file], check=True, capture_output=True, text=True).stdout.strip()
            for flags in ([], ["-O"])]
    assert output == ["a key", "Python leaves assertions out of its code, and tracing does not"]
