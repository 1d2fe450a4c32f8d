"""``survey``: five outcomes, determined by the output of a script or test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilelang_npu import cli
from tilelang_npu.cli.survey import _exit_code
from tilelang_npu.compat.outcomes import Case, of_output

KERNEL = """
import numpy as np
import tilelang
import tilelang.language as T

def double(n):
    @T.prim_func
    def double(A: T.Tensor((n, 64), "float32"), B: T.Tensor((n, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((n // 2, 64), "float32")
            T.copy(A[half * (n // 2), 0], a)
            T.tile.add(a, a, a)
            T.copy(a, B[half * (n // 2), 0])
    return double

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
def run(factor=2.0):
    x = np.arange(512, dtype=np.float32).reshape(8, 64)
    kernel = tilelang.compile(double(8), out_idx=[-1], target="ascendc", pass_configs=SYNC)
    return kernel(x), x * factor
"""
FILES = {
    "a/printed.py": KERNEL + "a, b = run()\nprint('Kernel Output Match!' if (a == b).all() else 'wrong')\n",
    "a/asserted.py": KERNEL + "def main():\n    a, b = run()\n    assert (a == b).all()\nmain()\n",
    "a/silent.py": KERNEL + "assert 1\nrun()\n",
    "a/wrong.py": KERNEL + "a, b = run(3.0)\nnp.testing.assert_allclose(a, b)\nprint('Kernel Output Match!')\n",
    "a/says_wrong.py": KERNEL + "a, b = run(3.0)\nprint('[PASS] 1')\nprint('[FAILED] 2')\n",
    "a/refused.py": KERNEL + "@T.prim_func\ndef f(A: T.Tensor((8,), 'float32')):\n    T.no_such_thing(A)\n\n"
                    "tilelang.compile(f)\n",
    "a/logged.py": KERNEL + "from contextlib import redirect_stderr, redirect_stdout\n"
                   "with open('log.txt', 'w') as log, redirect_stdout(log), redirect_stderr(log):\n    a, b = run()\n"
                   "    print('Test passed!' if (a == b).all() else 'wrong')\nassert 'passed' in open('log.txt').read()\n",
    "a/swallowed.py": KERNEL + "import traceback\nrun()\nprint('Test passed!')\ntry:\n    run('x')\nexcept Exception:\n"
                      "    traceback.print_exc()\n",
    "a/warned.py": KERNEL + "import library\na, b = run()\nlibrary.normalise()\n"
                   "print('Test passed!' if (a == b).all() else 'wrong')\n",
    "a/library.py": "import warnings\ndef normalise():\n    assert warnings\n"  # an assertion that is not the script's own
                    "    warnings.warn('input of 3 channels expected, got 4. Silence this warning by not passing any')\n",
    "a/complains.py": KERNEL + "import logging\na, b = run(3.0)\nprint('Test passed!')\n"
                      "logging.error('FAILED: %s', (a == b).all())\n",
    "b/needs.py": "import no_such_package_at_all\n",
    "b/arguments.py": "import argparse\np = argparse.ArgumentParser()\np.add_argument('x')\np.parse_args()\n",
    "b/broken.py": "import os\nos._exit(7)\n",
    "b/library.py": "def f(): pass\n",
    "t/test_some.py": KERNEL + """
import pytest
def test_right():
    a, b = run()
    assert (a == b).all()
@pytest.mark.parametrize("factor", [3.0, 4.0])
def test_wrong(factor):
    a, b = run(factor)
    assert (a == b).all()
@pytest.mark.skip(reason="no time")
def test_skipped(): pass

@pytest.mark.xfail(reason="known")
def test_expected(): assert False
def test_refused():
    tilelang.compile(double(10**6), target="ascendc", pass_configs=SYNC)
""",
    "t/test_broken.py": "import tilelang.no_such_part\ndef test_it(): pass\n",
    "t/script_test.py": KERNEL + "def test_sizes(size):\n    a, b = run()\n    assert size and (a == b).all()\n"
                        "if __name__ == '__main__':\n    test_sizes(8)\n",
}
EXPECTED = {
    "a/printed.py": ("passed", ""), "a/asserted.py": ("passed", ""), "a/silent.py": ("unsupported", "it checks nothing"),
    "a/wrong.py": ("wrong", "Mismatched elements"), "a/says_wrong.py": ("wrong", "it printed: [FAILED] 2"),
    "a/refused.py": ("refused", "T1"), "a/logged.py": ("passed", ""),
    "a/swallowed.py": ("refused", "it printed a traceback: "),
    "a/library.py": ("unsupported", "a module for other scripts"), "a/warned.py": ("passed", ""),
    "a/complains.py": ("wrong", "it printed: ERROR:root:FAILED: False"),
    "b/needs.py": ("unsupported", "ModuleNotFoundError"),
    "b/arguments.py": ("unsupported", "it needs arguments"), "b/broken.py": ("refused", "the process ended with exit code 7"),
    "b/library.py": ("unsupported", "a module for other scripts"),
    "t/test_some.py::test_right": ("passed", ""), "t/test_some.py::test_wrong[3.0]": ("wrong", ""),
    "t/test_some.py::test_expected": ("unsupported", "expected to fail: known"),
    "t/test_some.py::test_wrong[4.0]": ("wrong", ""), "t/test_some.py::test_skipped": ("unsupported", "no time"),
    "t/test_some.py::test_refused": ("refused", "T104"),
    "t/test_broken.py": ("unsupported", "ModuleNotFoundError"), "t/script_test.py": ("passed", ""),
}


def test_every_outcome(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in FILES.items():
        path = tmp_path / "scripts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    report = tmp_path / "report.json"
    code = cli.main(["survey", str(tmp_path / "scripts"), "--jobs", "2", "--timeout", "120", "--json", str(report)])
    assert code == 1
    cases = {case["path"]: case for case in json.loads(report.read_text())["cases"]}
    assert {path: case["outcome"] for path, case in cases.items()} == {path: outcome for path, (outcome, _) in EXPECTED.items()}
    for path, (_, reason) in EXPECTED.items():
        assert cases[path]["reason"].startswith(reason), cases[path]
        assert set(cases[path]) == {"path", "outcome", "reason", "line", "seconds"}
    line = FILES["a/refused.py"].splitlines().index("    T.no_such_thing(A)") + 1
    assert cases["a/refused.py"]["line"] == f"a/refused.py:{line}: T.no_such_thing(A)"
    assert cases["t/test_some.py::test_refused"]["line"].startswith("t/test_some.py:")
    printed = capsys.readouterr()
    assert "23 cases: 6 passed, 5 wrong numbers, 4 refused, 0 timed out, 8 not simulated" in printed.out
    reasons = printed.out[printed.out.index("reasons, most frequent first") :]
    assert reasons.index("     2  wrong numbers ") < reasons.index("     1  ")
    assert printed.err == ""
    assert not (tmp_path / "report.json.part").exists()


def test_a_test_over_the_time_limit_is_ended_and_later_tests_run(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(600)\n")
    tests = "import time\ndef test_first(): pass\ndef test_slow(): time.sleep(600)\ndef test_last(): assert True\n"
    (tmp_path / "test_slow.py").write_text(tests)
    report = tmp_path / "report.json"
    assert cli.main(["survey", str(tmp_path), "--jobs", "2", "--timeout", "8", "--json", str(report)]) == 4
    cases = [(case["path"], case["outcome"], case["reason"]) for case in json.loads(report.read_text())["cases"]]
    assert cases == [
        ("slow.py", "timeout", "longer than 8 s"), ("test_slow.py::test_first", "passed", ""),
        ("test_slow.py::test_last", "passed", ""), ("test_slow.py::test_slow", "timeout", "longer than 8 s"),
    ]


def test_an_interrupted_survey_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.py").write_text("print(1)\n")
    case = {"path": "two.py", "outcome": "passed", "reason": "", "line": None, "seconds": 1.0}
    (tmp_path / "two.py").write_text("raise SystemExit('it ran again')\n")
    part = tmp_path / "out.json.part"
    part.write_text(json.dumps({"finished": "two.py", "cases": [case]}) + "\n" + '{"finished": "one')
    command = ["survey", str(tmp_path), "--json", str(tmp_path / "out.json")]
    assert cli.main(command) == 0
    assert [case["outcome"] for case in json.loads((tmp_path / "out.json").read_text())["cases"]] == ["unsupported", "passed"]
    assert cli.main([*command, "--restart"]) == 3
    capsys.readouterr()


STRICT = {
    "needs.py": "import no_such_package_at_all\n", "library.py": "def f(): pass\n", "passes.py": FILES["a/asserted.py"],
    "silent.py": FILES["a/silent.py"],
    "test_some.py": "import pytest\ndef test_module(): pytest.importorskip('no_such_package_at_all')\n"
                    "@pytest.mark.xfail(reason='known')\ndef test_expected(): assert False\n",
}


@pytest.mark.parametrize(("files", "code", "idle"), [
    ((), 5, ""), (("passes.py", "library.py", "silent.py"), 0, ""),
    (("needs.py", "library.py", "passes.py"), 5, "1 did not run: needs.py"),
    (("test_some.py",), 5, "1 did not run: test_some.py::test_module"),
])
def test_strict_fails_where_a_script_did_not_run(files: tuple[str, ...], code: int, idle: str, tmp_path: Path,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    for name in files:
        (tmp_path / name).write_text(STRICT[name])
    assert cli.main(["survey", str(tmp_path), "--strict"]) == code
    said = capsys.readouterr().err
    assert idle in said and ("--strict" in said) == bool(code)
    assert cli.main(["survey", str(tmp_path)]) == 0


@pytest.mark.parametrize(("outcomes", "code"), [
    (["passed"], 0), (["passed", "unsupported"], 5), (["unsupported", "timeout"], 4), (["timeout", "refused"], 3),
    (["refused", "wrong", "timeout"], 1),
])
def test_the_worst_outcome_has_the_exit_code(outcomes: list[str], code: int) -> None:
    cases = [Case(f"{place}.py", outcome, "why") for place, outcome in enumerate(outcomes)]
    assert _exit_code(cases, strict=True) == code
    assert _exit_code(cases, strict=False) == (code if code != 5 else 0)


def test_a_folder_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["survey", "no/such/folder"]) == 1
    assert "T801" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "outcome"), [
    ("kernel output MATCH", "passed"), ("Test Passed!", "passed"), ("[PASS] fp16", "passed"), ("PASSED", "passed"),
    ("bypassed", "unsupported"), ("done", "unsupported"), ("Kernel Output Match!\nFAILED: 3", "wrong"),
    ("outputs do not match", "wrong"), ("0 failures\nAll tests passed", "passed"),
])
def test_verdicts(text: str, outcome: str) -> None:
    assert of_output(text, "", kernels_ran=True, held=0, is_program=True)[0] == outcome
    assert of_output(text, "", kernels_ran=False, held=3, is_program=True)[0] != "passed"


@pytest.mark.filterwarnings("ignore")  # of packages that are not this one's
@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_executors_find_the_same_cases(executor: str, tmp_path: Path) -> None:
    if executor == "dask":
        pytest.importorskip("distributed", reason="Dask is not installed")
    for name in ("a/wrong.py", "b/broken.py"):
        path = tmp_path / "scripts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[name])

    def found(*words: str) -> list[dict[str, object]]:
        report = tmp_path / "report.json"
        assert cli.main(["survey", str(tmp_path / "scripts"), "--jobs", "2", "--json", str(report), *words]) == 1
        return [{**case, "seconds": 0} for case in json.loads(report.read_text())["cases"]]

    cases = found("--executor", executor)
    assert cases == found()
    assert {case["path"]: case["outcome"] for case in cases} == {
        path: outcome for path, (outcome, _) in EXPECTED.items() if (tmp_path / "scripts" / path).exists()}
