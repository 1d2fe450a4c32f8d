"""``sim``, ``check``, ``run`` and ``compile`` for calls that launch several kernels in sequence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from samples import split_product

Tool = Callable[..., Any]
SCRIPT = """
import numpy as np
import tilelang
import tilelang.language as T

@T.prim_func
def twice(A: T.Tensor((20, 64), "float32"), B: T.Tensor((20, 64), "float32"), C: T.Tensor((20, 64), "float32")):
    with T.Kernel(20, threads=128) as block:
        row = T.alloc_shared((1, 64), "float32")
        T.copy(A[block, 0], row)
        T.copy(row, B[block, 0])
    with T.Kernel(5, threads=128) as block:
        rows = T.alloc_shared((4, 64), "float32")
        T.copy(B[block * 4, 0], rows)
        for i, j in T.Parallel(4, 64):
            rows[i, j] = rows[i, j] * 2
        T.copy(rows, C[block * PLACE, 0])

kernel = tilelang.compile(twice, target="npuir")
a, b, c = np.random.default_rng(0).standard_normal((3, 20, 64)).astype(np.float32)
kernel(a, b, c)
assert (c[:2] == 2 * a[:2]).all()
print("right")
"""


def test_the_text_runs_alone(tool: Tool, tmp_path: Path, rng: np.random.Generator) -> None:
    kernel = split_product(33, 17, 64, 2)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((33, 64), (64, 17)))
    partial = np.full((2, 33, 17), np.nan, np.float32)
    wanted = kernel(a, b, partial)
    np.savez(tmp_path / "all.npz", A=a, B=b, P=np.zeros_like(partial), C=np.zeros_like(wanted))
    for stage in ("hivm", "hivm-auto"):
        file = tmp_path / f"{stage}.mlir"
        file.write_text(kernel.mlir(stage))
        done = tool("sim", file, "--npz", tmp_path / "all.npz", "--save", tmp_path / stage, "--sanitize",
                    "--trace", tmp_path / "t.json")
        assert done.code == 0, done.err
        np.testing.assert_array_equal(np.load(tmp_path / stage / "C.npy"), wanted)
        assert "main_1  4 blocks" in done.out
        assert f"{stage}: 2 launches one after the other" in done.out
        assert json.loads((tmp_path / "t.json").read_text())["otherData"]["blocks"] == 9
        checked = tool("check", file)
        assert checked.code == 0, checked.err
        assert [line.split()[0] for line in checked.out.splitlines() if "blocks" in line] == ["main_1", "main_2"]
    first = tool("sim", file, "--npz", tmp_path / "all.npz", "--kernel", "main_1", "--blocks", 1)
    assert first.out.startswith("main_1  1 block ")
    assert "main_2" not in first.out
    unknown = tool("sim", file, "--kernel", "main_3")
    assert "error[T508]: there is no kernel main_3; the module has main_1, main_2" in unknown.err
    assert "error[T419]: --blocks is given 1 times, and 2 kernels are launched" in tool("sim", file, "--blocks", 3).err
    fewer = tool("sim", file, "--blocks", 2, "--blocks", 1).out
    assert "main_1  2 blocks on" in fewer
    assert "main_2  1 block on" in fewer


def test_kernels_with_different_arguments_are_not_one_call(tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "two.mlir"
    entry = "attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {\n  return\n}\n"
    gm = "memref<16xf32, #hivm.address_space<gm>>"
    file.write_text(f"func.func @one(%a: {gm}) {entry}func.func @two(%a: {gm}, %b: {gm}) {entry}")
    assert "error[T508]: one and two take different arguments" in tool("sim", file).err
    assert tool("sim", file, "--kernel", "two").code == 0


def test_a_script(tool: Tool, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("PLACE", "4"))
    done = tool("run", script, "--sanitize", "--trace", tmp_path / "t.json", "--mlir", tmp_path / "out")
    assert done.code == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines() if line[:1].strip()] == ["right", "twice_1", "twice_2", "twice:"]
    processes = {event["args"]["name"].split()[0] for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"]
                 if event["name"] == "process_name"}
    assert processes == {"twice_1", "twice_2"}
    assert (tmp_path / "out" / "twice.mlir").read_text() == tool("compile", f"{script}:kernel").out
    tiles = tool("compile", f"{script}:kernel", "--stage", "tile").out
    assert tiles.count("tile.launch") == 2
    assert tiles.count("func.func") == 1


def test_a_race_in_the_second_launch(tool: Tool, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("PLACE", "2"))
    for command in (("run", script, "--sanitize"), ("check", script)):
        done = tool(*command)
        assert done.code == 1
        assert "race[S203]" in done.out
        assert f"script.py:{1 + SCRIPT[:SCRIPT.index('T.copy(rows, C')].count(chr(10))}" in done.out
    assert [line for line in done.out.splitlines() if line.startswith("twice")] == [
        f"{'twice_1  20 blocks':<48}  Ascend910B2", f"{'twice_2  5 blocks':<48}  Ascend910B2"]
