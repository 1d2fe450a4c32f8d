"""``run``: the script as it is, its exit code, the summaries, the files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tilelang_npu.cli.run import own_arguments
from tilelang_npu.cli.script import execute
from tilelang_npu.runtime.settings.file_writing import file_name


def test_output_then_summary(tool, script: Path) -> None:
    done = tool("run", script, "--flag", "7")
    assert done.code == 0, done.err
    assert done.out.startswith("arguments --flag 7\n\ntwice ")
    assert "launches  2" in done.out
    assert "Ascend910B2" in done.out


def test_chip(tool, script: Path) -> None:
    assert "Ascend910B4" in tool("run", script, "--chip", "910b4").out


def test_unknown_chip_is_the_users_error(tool, script: Path) -> None:
    done = tool("run", script, "--chip", "910b9")
    assert done.code == 1
    assert done.err.startswith("error[T701]")


def test_mlir_of_every_kernel_and_stage(tool, script: Path, tmp_path: Path) -> None:
    assert tool("run", script, "--mlir", tmp_path / "out", "--all-stages").code == 0
    assert "hivm.hir.vadd" in (tmp_path / "out" / "twice.mlir").read_text()
    stages = sorted(file.name for file in (tmp_path / "out" / "twice").iterdir())
    assert stages[0] == "00-tile.mlir"
    assert stages[-1].endswith("-hivm.mlir")
    assert (tmp_path / "out" / "twice" / stages[-1]).read_text() == (tmp_path / "out" / "twice.mlir").read_text()


@pytest.mark.parametrize("name", ["../../outside", "/outside", "..", "a/b", "..\\\\outside", ""])
def test_kernels_are_written_inside_the_directory_whatever_their_name(tool, script: Path, tmp_path: Path, name: str) -> None:
    renamed = f"    twice.function.__name__ = {name!r}\n    return twice"
    script.write_text(script.read_text().replace("    return twice", renamed))
    folder = tmp_path / "deep" / "out"
    before = {*tmp_path.iterdir()}
    assert tool("run", script, "--mlir", folder, "--all-stages").code == 0
    assert {*tmp_path.iterdir()} - before == {tmp_path / "deep"}
    assert [*(tmp_path / "deep").iterdir()] == [folder]
    (whole,) = (file for file in folder.iterdir() if file.is_file())
    (stages,) = (file for file in folder.iterdir() if file.is_dir())
    assert (whole.stem, stages.name) == (file_name(name), file_name(name))
    assert max(stages.iterdir()).read_text() == whole.read_text()


def test_trace_is_a_timeline(tool, script: Path, tmp_path: Path) -> None:
    assert tool("run", script, "--trace", tmp_path / "trace.json").code == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(event["ph"] == "X" and event["dur"] > 0 for event in events)
    assert any(event["name"] == "process_name" and event["args"]["name"].startswith("twice ") for event in events)


@pytest.mark.parametrize(
    ("statement", "code", "shown"),
    [("sys.exit(3)", 3, ""), ("sys.exit()", 0, ""), ("sys.exit('no')", 1, "no\n"), ("raise SystemExit(0)", 0, "")],
)
def test_exit_codes_are_the_scripts(tool, tmp_path: Path, statement: str, code: int, shown: str) -> None:
    (tmp_path / "end.py").write_text(f"import sys\n{statement}\n")
    done = tool("run", tmp_path / "end.py")
    assert (done.code, done.err) == (code, shown)


def test_the_scripts_own_exception_shows_as_python_shows_it(tool, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("def f():\n    return 1 / 0\n\n\nf()\n")
    done = tool("run", path)
    assert done.code == 1
    lines = done.err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{path}", line 5, in <module>'
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "runpy" not in done.err


def test_a_syntax_error_shows_its_line(tool, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("x = = 1\n")
    done = tool("run", path)
    assert done.code == 1
    assert "SyntaxError" in done.err
    assert "x = = 1" in done.err


def test_a_mistake_in_a_kernel_is_rendered(tool, tmp_path: Path, script: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(script.read_text().replace("T.tile.add", "T.tile.ad"))
    done = tool("run", path)
    assert done.code == 1
    assert done.err.startswith("error[T")
    assert f"{path}:" in done.err
    assert "Traceback" not in done.err


RACE = """
import numpy as np, tilelang, tilelang.language as T

@T.prim_func
def racing(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, is_npu=True) as (block, half):
        a = T.alloc_ub((64,), "float32")
        T.copy(A, a)
        T.copy(a, B)

tilelang.compile(racing, out_idx=[-1], target="ascendc")(np.ones(64, np.float32))
"""


def test_sanitize_finds_what_runs_by_luck(tool, tmp_path: Path) -> None:
    path = tmp_path / "race.py"
    path.write_text(RACE)
    assert tool("run", path).code == 0
    done = tool("run", path, "--sanitize")
    assert done.code == 1
    text = done.out[done.out.index("race[S201]"):]
    assert text.splitlines() == [
        "race[S201]: UB bytes 0..255 of a are read, but nothing orders the read after the write (read after write)",
        f"  write  {path}:8  T.copy(A, a)  MTE2 of AIV0, iteration 0",
        f"  read   {path}:9  T.copy(a, B)  MTE3 of AIV0, iteration 0",
        "  missing an event MTE2 -> MTE3 between line 8 and line 9",
    ]


def test_the_order_is_every_kernels_for_this_run_alone(tool, script: Path) -> None:
    assert tool("run", script, "--chip", "910B3", "--schedule", "random:3").code == 0
    assert "T413" in tool("run", script, "--schedule", "random").err
    assert "TILELANG_NPU_SCHEDULE" not in os.environ
    assert not os.environ["TILELANG_NPU_CHIP"]


def test_sanitize_is_silent_where_all_is_well(tool, script: Path) -> None:
    done = tool("run", script, "--sanitize")
    assert done.code == 0
    assert done.out.rstrip().endswith("the last one is shown")


def test_no_file(tool) -> None:
    done = tool("run", "nowhere.py")
    assert (done.code, done.err.splitlines()[0]) == (1, "error[T801]: nowhere.py does not exist")


def test_usage(tool) -> None:
    assert tool("run").code == 2
    assert tool().code == 2
    assert tool("fly").code == 2


def test_the_environment_of_a_script(tool, tmp_path: Path) -> None:
    (tmp_path / "lies_beside.py").write_text("value = 5\n")
    path = tmp_path / "main.py"
    path.write_text("import sys, lies_beside\nprint(__name__, lies_beside.value, sys.argv[0] == __file__, *sys.argv[1:])\n")
    assert tool("run", path, "x", "--", "--chip", "y").out == "__main__ 5 True x --chip y\n"


@pytest.mark.parametrize(
    ("words", "own", "script"),
    [
        ("f.py a -b", "f.py", "a -b"),
        ("f.py a --chip X b", "f.py --chip X", "a b"),
        ("--chip X f.py --trace=t a", "--chip X f.py --trace=t", "a"),
        ("f.py --all-stages -- --all-stages --chip", "f.py --all-stages", "--all-stages --chip"),
        ("-h", "-h", ""),
        ("f.py -h", "f.py", "-h"),
    ],
)
def test_whose_argument_it_is(words: str, own: str, script: str) -> None:
    assert own_arguments(words.split()) == (own.split(), script.split())


def test_a_script_keeps_its_own_future_statements(tmp_path: Path) -> None:
    """The module that runs scripts has postponed annotations; a script has them only if it imports them."""
    file = tmp_path / "annotated.py"
    file.write_text("def outer(n):\n    def inner():\n        def f(x: [n] * n): ...\n        return f\n    return inner\n"
                    "assert outer(2)().__annotations__ == {'x': [2, 2]}\n")
    assert execute(file, [], "__main__", transform=lambda tree: tree).code == 0


SOFTMAX = '''
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def softmax(M, N):
    @T.prim_func
    def softmax(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(M, is_npu=True) as (row, _):
            a = T.alloc_shared((1, N), "float16")
            total = T.alloc_shared((1, 1), "float16")
            T.copy(A[row, 0], a)
            T.vexp(a, a)
            T.reduce(a, total, dims=1, reduce_mode="sum")
            T.vdiv(a, total, a)
            T.copy(a, B[row, 0])
    return softmax

x = np.zeros((8, 64), np.float16)
for row in (3, 6):
    x[row, 5] = 20
    softmax(8, 64)(x)
'''


def test_numbers_tell_the_line_once_for_all_launches(tool, tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(SOFTMAX)
    done = tool("run", path, "--numbers")
    assert done.code == 0, done.err
    assert done.out.count("numbers[") == 2
    output = done.out[done.out.index("numbers["):]
    assert output == (
        "numbers[S402]: an op makes an infinity from finite operands: 1 of 64 elements of a\n"
        f"  {path}:14  T.vexp(a, a)\n"
        "  first at [0, 5] in block 3, AIV0: src0 = 20.0 gives inf\n\n"
        "numbers[S401]: an op makes NaN from operands that are no NaN: 1 of 64 elements of a\n"
        f"  {path}:16  T.vdiv(a, total, a)\n"
        "  first at [0, 5] in block 3, AIV0: src0 = inf, src1 = inf gives nan\n")
    assert "numbers[" not in tool("run", path).out
    assert "T413" in tool("run", path, "--numbers", "--schedule", "late").err


def test_numbers_of_an_mlir_file(tool, tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(SOFTMAX)
    assert tool("run", path, "--mlir", tmp_path).code == 0
    x = np.zeros((8, 64), np.float16)
    x[2, 1] = 20
    np.savez(tmp_path / "in.npz", arr_0=x, arr_1=np.zeros_like(x))
    done = tool("sim", tmp_path / "softmax.mlir", "--npz", tmp_path / "in.npz", "--numbers")
    assert done.code == 0, done.err
    assert ["block 2" in line for line in done.out.splitlines() if "first at" in line] == [True, True]


def test_profiles_without_edits(tool, script: Path) -> None:
    assert "no edits were tried: edits=False or --no-edits was given" in tool("run", script, "--profile", "--no-edits").out
    assert "error[T417]: --no-edits has no effect without --profile or --html" in tool("run", script, "--no-edits").err


def test_profiles_are_printed_and_written(tool, script: Path, tmp_path: Path) -> None:
    out = tmp_path / "profiles.json"
    done = tool("run", script, "--profile", "--json", out)
    assert done.code == 0, done.err
    assert "critical path of" in done.out
    assert "what if" in done.out
    (kernel,) = json.loads(out.read_text())["kernels"]
    one = kernel["profile"]
    assert sum(part["us"] for part in one["critical_path"]) == one["time_us"]
    assert {part["file"] for part in one["critical_path"] if "file" in part} == {str(script)}
    assert "critical path of" not in tool("run", script, "--json", out).out
    assert "profile" not in json.loads(out.read_text())["kernels"][0]


def test_kernels_of_one_name_looked_alike(tool, tmp_path: Path) -> None:
    path, out = tmp_path / "three.py", tmp_path / "out.json"
    path.write_text("""
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def factory(n, tile=64):
    @T.prim_func
    def scaled(X: T.Tensor((n, 256), "float32"), Y: T.Tensor((n, 256), "float32")):
        with T.Kernel(n // tile, is_npu=True) as (b, _):
            x = T.alloc_ub((tile, 256), "float32")
            T.copy(X[b * tile, 0], x)
            T.vexp(x, x)
            T.copy(x, Y[b * tile, 0])
    return scaled


for n, tile in ((256, 64), (512, 64), (512, 32), (512, 32)):
    factory(n, tile)(np.ones((n, 256), np.float32), np.zeros((n, 256), np.float32))
""")
    done = tool("run", path, "--json", out)
    labels = ["scaled[X 256x256, Y 256x256]", "scaled[X 512x256, Y 512x256, tile=64]", "scaled[X 512x256, Y 512x256, tile=32]"]
    assert [line.partition("  ")[0] for line in done.out.splitlines() if line.startswith("scaled")] == labels
    data = json.loads(out.read_text())
    assert (data["script"], data["exit_code"]) == (str(path), 0)
    assert [(kernel["label"], kernel["runs"]) for kernel in data["kernels"]] == list(zip(labels, [1, 1, 2], strict=True))
    for kernel in data["kernels"]:
        assert kernel["total_us"] == kernel["runs"] * kernel["last_launch"]["time_us"]
        assert f"{kernel['last_launch']['time_us']:.1f} us +- {100 * kernel['error']:.0f} %" in done.out
