"""``check``: its output, its exit codes, and that it finds the same in every example as a run with the sanitizer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

SCRIPT = """
import numpy as np, tilelang, tilelang.language as T

def made(sync, rows, name="twice"):
    M = T.symbolic("M")

    @T.prim_func
    def twice(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32"), n: T.int32):
        with T.Kernel(T.ceildiv(M, 8), is_npu=True) as (block, _):
            a = T.alloc_ub((rows, 64), "float32")
            T.copy(A[block * 8, 0], a)
            T.tile.add(a, a, a)
            T.copy(a, B[block * 8, 0])

    return tilelang.compile(twice, target="ascendc", pass_configs={"tl.ascend_auto_sync": sync})

right, wrong = made(True, 8), made(False, 8)
if __name__ == "__main__":
    a, b = np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32)
    right(a, b, 3)
    print("ran", b.sum())
    assert (b == 2).all()
    np.testing.assert_allclose(b, 2)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_launches_are_checked_and_compute_nothing(tool, script: Path) -> None:
    done = tool("check", script)
    assert done.code == 1  # for the kernel that is not called
    assert "ran 0.0" in done.err
    heads = re.findall(r"(twice  \d+ blocks).*\n  sizes     (.*)\n  checked   in \d+ ms: (.*) found", done.out)
    assert heads == [("twice  4 blocks", "M=32, n=3", "nothing"), ("twice  32 blocks", "M=256 (assumed), n=1 (assumed)", "2")]
    assert done.out.count("race[S201]") == 2


def test_a_kernel_that_is_called_inside_of_an_assertion_is_checked(tool, script: Path) -> None:
    text = script.read_text().partition("    right(a, b, 3)")[0]
    for line in ("np.testing.assert_allclose(wrong(a, b, 3) or b, np.full(b.shape, 2, np.float32))",
                 "assert not wrong(a, b, 3) and [][b.sum()]"):  # the comparison is evaluated, not its result
        script.write_text(f"{text}    {line}\n    print('after it')\n")
        done = tool("check", str(script))
        assert done.code == 1
        assert "race[S201]" in done.out
        assert "after it" in done.err
    script.write_text(f"{text}    assert wrong(a, b)\n")
    done = tool("check", str(script))
    assert (done.code, "error[T4" in done.err) == (1, True)


def test_assertions_of_imported_modules_are_left_out_too(tool, script: Path, tmp_path: Path) -> None:
    (tmp_path / "judge_of_results.py").write_text("""
import numpy as np

def judge(found):
    assert (found == 2).all()
    np.testing.assert_array_equal(found, 2)
    return "judged"
""")
    text = script.read_text().partition("if __name__")[0]
    script.write_text(f"{text}import judge_of_results\na, b = np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32)\n"
                      "right(a, b, 3)\nwrong(a, b, 3)\nprint(judge_of_results.judge(b))\n")
    done = tool("check", str(script))
    assert "judged" in done.err
    assert "not checked after this line" not in done.err
    assert "judge_of_results" not in sys.modules
    assert not list(tmp_path.glob("__pycache__/judge_of_results*"))  # no other run sees the module without its assertions


def test_github_annotations_are_printed_for_findings(tool, script: Path, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = script.read_text().partition("    right(a, b, 3)")[0]
    script.write_text(f"{text}    wrong(a, b, 3)\n")
    done = tool("check", str(script), "--format", "github")
    notes = [line for line in done.out.splitlines() if line.startswith("::")]
    assert len(notes) == 2 * (done.code == 1)
    assert notes[0].startswith(f"::error file={script.relative_to(tmp_path)},line=12,col=13,title=S201::race[S201]: UB bytes")
    assert "%0A  write " in notes[0]
    script.write_text(f"{text}    wrong(a, b)\n")
    done = tool("check", str(script), "--format", "github")
    assert re.search(r"^::error file=[^,]+,line=\d+,col=\d+,title=T4\d\d::", done.out, re.MULTILINE)
    script.write_text(text.replace("made(False", "made(True") + "    right(a, b, 3)\n")
    done = tool("check", str(script), "--format", "github")
    assert (done.code, "::" in done.out) == (0, False)


def test_several_files_are_checked_and_none_hides_another(tool, script: Path, tmp_path: Path) -> None:
    text = script.read_text().partition("    right(a, b, 3)")[0]
    paths = [tmp_path / f"{name}_file.py" for name in ("empty", "right", "wrong")]
    good = text.replace("made(False", "made(True")
    for path, line in zip(paths, ("", f"{good}    right(a, b, 3)", f"{text}    wrong(a, b, 3)"), strict=True):
        path.write_text(line + "\n")
    done = tool("check", *map(str, paths))
    assert done.code == 1
    assert "compiles no kernel" in done.err
    assert "nothing found" in done.out
    assert "race[S201]" in done.out
    assert tool("check", str(paths[1])).code == 0
    assert "error[T417]" in tool("check", *map(str, paths), "--report", "x.json").err


def test_a_script_is_checked_again_when_it_changes(script: Path, root: Path) -> None:
    text = script.read_text().partition("    right(a, b, 3)")[0]
    script.write_text(f"{text}    wrong(a, b, 3)\n")
    with subprocess.Popen([sys.executable, "-m", "tilelang_npu", "check", str(script), "--watch"], stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "PYTHONPATH": str(root / "src")}) as watching:
        assert watching.stdout is not None
        try:
            output = "".join(iter(watching.stdout.readline, "watching; Ctrl-C ends it\n"))
            assert "race[S201]" in output
            script.write_text(text.replace("made(False", "made(True") + "    right(a, b, 3)\n")
            output = "".join(iter(watching.stdout.readline, "watching; Ctrl-C ends it\n"))
            assert "nothing found" in output
        finally:
            watching.terminate()


def test_a_kernel_by_name(tool, script: Path, tmp_path: Path) -> None:
    done = tool("check", f"{script}:right", "--size", "M=100", "--size", "n=5")
    assert (done.code, done.err) == (0, "")
    assert "M=100, n=5" in done.out and "nothing found" in done.out
    report = tmp_path / "r.sarif"
    assert tool("check", f"{script}:wrong", "--report", report).code == 1
    assert {one["ruleId"] for one in json.loads(report.read_text())["runs"][0]["results"]} == {"S201"}
    line = SCRIPT[:SCRIPT.index("T.tile.add")].count("\n") + 1
    done = tool("check", f"{script}:wrong", "--allow", f"S201:script.py:{line}=on purpose")
    assert done.code == 0 and done.out.count("allowed[S201]") == 2  # both accesses have the comment
    done = tool("check", f"{script}:right", "--allow", f"S201:script.py:{line}=on purpose")
    assert done.code == 1 and "error[T415]" in done.err


def test_a_size_that_no_parameter_has(tool, script: Path) -> None:
    done = tool("check", f"{script}:right", "--size", "K=100")
    assert done.code == 1 and "error[T419]" in done.err and "nothing found" in done.out
    assert "error[T419]" in tool("check", script, "--size", "M=x").err
    assert "error[T417]" in tool("check", script, "--blocks", 3).err


def test_a_text(tool, script: Path, tmp_path: Path) -> None:
    for name, code in (("right", 0), ("wrong", 1)):
        text = tmp_path / f"{name}.mlir"
        assert tool("compile", f"{script}:{name}", "-o", text).code == 0
        assert "error[T807]" in tool("check", text).err
        done = tool("check", text, "--blocks", 8, "--size", "A_0=4096", "--size", "B_0=4096", "--size", "n=1", "--size", "M=64")
        assert done.code == code, done.err
        assert "  sizes     A_0=4096, B_0=4096, n=1, M=64\n" in done.out
        assert tool("check", text, "--blocks", 32).code == code
        assert ("race[S201]" in done.out) == bool(code)
    done = tool("check", text, "--blocks", 8, "--size", "C_0=64", "--size", "A_0=256")
    assert "error[T419]" in done.err and "error[T502]" in done.out


def test_a_mistake_is_an_error_as_in_a_run(tool, script: Path, tmp_path: Path) -> None:
    script.write_text(SCRIPT.replace("made(True, 8)", "made(True, 1024)"))
    report = tmp_path / "r.json"
    done = tool("check", script, "--report", report)
    assert done.code == 1 and "error[T104]" in done.err
    assert [error["code"] for error in json.loads(report.read_text())["errors"]] == ["T104"]


def test_a_script_that_wants_results_says_so(tool, script: Path) -> None:
    script.write_text(SCRIPT.replace("assert (b == 2).all()", "if b[0, 0] != 2: raise ValueError('wrong')"))
    done = tool("check", script)
    assert done.code == 1 and "ValueError: wrong" in done.err
    assert "the script was not checked after this line" in done.err


def test_no_kernel(tool, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert "error[T803]" in tool("check", tmp_path / "empty.py").err
    assert "error[T801]" in tool("check", tmp_path / "none.py").err


@pytest.mark.shared
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples(tool, example: Path) -> None:
    done = tool("check", example)
    assert done.code == 0, done.out + done.err
    assert all(int(ms) < 20_000 for ms in re.findall(r"in (\d+) ms: nothing found", done.out))
    is_open = example.stem.startswith("grouped_gemm")  # whose rows data divide
    assert ("  open      depends on data, checked " in done.out) == is_open
    assert (f"  to do     check a run on real data: tilelang-npu run {example} --sanitize" in done.out) == is_open


def test_one_of_several_kernels_of_a_script_alone(tool, script: Path) -> None:
    script.write_text(script.read_text() + "    wrong(a, b, 3)\n")
    done = tool("check", f"{script}:twice#1")
    assert done.code == 0, done.err
    assert re.findall(r"twice  \d+ blocks.*\n  sizes     (.*)\n", done.out) == ["M=32, n=3"]
    done = tool("check", f"{script}:twice#2")
    assert done.code == 1
    assert re.findall(r"twice  \d+ blocks.*\n  sizes     (.*)\n", done.out) == ["M=32, n=3"]
    assert done.out.count("race[S201]") == 2
    assert f"{script}:twice#2  A float32 Mx64, B float32 Mx64, n int32" in tool("check", f"{script}:twice").err
