"""``--gpu``: commands run a script for CUDA unmodified; without the option, one line names it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tilelang_npu.cli.run import own_arguments
from tilelang_npu.runtime.settings import environment

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real GPU is there")

SCRIPT = '''
import sys
import torch
import tilelang
import tilelang.language as T
from tilelang.profiler import do_bench

@tilelang.jit(out_idx=[-1], target="cuda")
def doubled(M, N):
    @T.prim_func
    def doubled(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 16), threads=128) as block:
            a = T.alloc_shared((16, N), "float32")
            T.copy(A[block * 16, 0], a)
            for i, j in T.Parallel(16, N):
                a[i, j] = a[i, j] * 2
            T.copy(a, B[block * 16, 0])
    return doubled

def main():
    a = torch.randn(24, 32, device="cuda")
    kernel = doubled(24, 32)
    torch.testing.assert_close(kernel(a), a * 2)
    assert kernel(a).is_cuda and do_bench(lambda: kernel(a)) > 0
    print("capability", torch.cuda.get_device_capability(), "arguments", sys.argv[1:])

if __name__ == "__main__":
    main()
'''


@pytest.fixture
def gpu_script(tmp_path: Path) -> Path:
    path = tmp_path / "gpu_script.py"
    path.write_text(SCRIPT)
    return path


def test_a_script_for_cuda_runs_with_the_option(tool, gpu_script: Path) -> None:
    done = tool("run", "--gpu", gpu_script, "--size", "3")
    assert done.code == 0, done.err
    assert "capability (8, 0) arguments ['--size', '3']" in done.out
    assert "doubled" in done.out and "Ascend910B2" in done.out
    assert not torch.cuda.is_available()  # undone
    assert environment.GPU.name not in os.environ


def test_the_capability_can_be_chosen(tool, gpu_script: Path) -> None:
    assert "capability (9, 0)" in tool("run", gpu_script, "--gpu-capability", "9.0").out
    assert own_arguments(["--gpu", "a.py", "--gpu-capability=9.0", "--gpus"]) == (
        ["--gpu", "a.py", "--gpu-capability=9.0"], ["--gpus"])


@pytest.mark.parametrize("target", ['"cuda"', '"auto"'])
def test_without_the_option_one_line_names_it(tool, gpu_script: Path, target: str) -> None:
    gpu_script.write_text(SCRIPT.replace('"cuda")\ndef', f"{target})\ndef"))
    done = tool("run", gpu_script)
    assert done.code == 1
    (line,) = done.err.strip().splitlines()
    number = next(number for number, text in enumerate(SCRIPT.splitlines(), 1) if "torch.randn" in text)
    assert line.startswith(f"{gpu_script}:{number}: ")
    assert "`tilelang-npu run --gpu`" in line


def test_a_target_that_is_a_gpu_names_the_option_too(tool, gpu_script: Path) -> None:
    gpu_script.write_text(SCRIPT.replace(', device="cuda"', ""))
    assert "`tilelang-npu run --gpu`" in tool("run", gpu_script).err


def test_a_missing_library_is_one_line(tool, gpu_script: Path) -> None:
    gpu_script.write_text("import no_such_attention.sub\n")
    done = tool("run", "--gpu", gpu_script)
    assert done.code == 1
    (line,) = done.err.strip().splitlines()
    assert line.startswith(f"{gpu_script}:1: the script imports no_such_attention, which is not installed")
    gpu_script.write_text("import tilelang.none_such\n")
    assert "Traceback" in tool("run", "--gpu", gpu_script).err


@pytest.mark.parametrize(("options", "outcome"), [((), "unsupported"), (("--gpu",), "passed")])
def test_a_survey_of_scripts_for_cuda(tool, gpu_script: Path, options: tuple[str, ...], outcome: str, tmp_path: Path) -> None:
    report = tmp_path / "report" / "out.json"
    done = tool("survey", gpu_script, *options, "--json", report)
    assert done.code == 0, done.err
    (case,) = json.loads(report.read_text())["cases"]
    assert case["outcome"] == outcome
    assert ("survey --gpu" in case["reason"]) == (outcome == "unsupported")


@pytest.mark.parametrize("value", ["9", "hopper"])
def test_another_word_is_no_capability(tool, gpu_script: Path, value: str) -> None:
    done = tool("run", "--gpu-capability", value, gpu_script)
    assert done.code != 0
    assert "compute capability" in done.err


@pytest.mark.parametrize(("words", "text"), [
    (("check",), "doubled"), (("compile",), "hivm.hir"), (("stages", "--pipeline"), "plan-memory"),
    (("tune", "--space", "M=24,48", "--arg", "N=32"), "best M=24")])
def test_other_commands_for_scripts_have_the_option(tool, gpu_script: Path, words: tuple[str, ...], text: str) -> None:
    command, *options = words
    done = tool(command, gpu_script, "--gpu", *options)
    assert done.code == 0, done.err
    assert text in done.out
    assert not torch.cuda.is_available() and environment.GPU.name not in os.environ  # undone
    assert tool(command, gpu_script, *options).code != 0


EAGER = '''
import sys
import torch
import tilelang
import tilelang.language as T

@tilelang.jit
def doubled(A, block_M):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as block:
        a = T.alloc_shared((block_M, N), "float32")
        T.copy(A[block * block_M, 0], a)
        for i, j in T.Parallel(block_M, N):
            a[i, j] = a[i, j] * 2
        T.copy(a, B[block * block_M, 0])
    return B

a = torch.randn(2000, 64, device="cuda")
torch.testing.assert_close(doubled(a, 4), a * 2)
print("checked", *sys.argv[1:])
'''


def test_a_kernel_for_cuda_is_improved_with_the_arguments_of_its_call(tool, gpu_script: Path, tmp_path: Path) -> None:
    pytest.importorskip("libcst", reason="the extra improve is not installed")
    gpu_script.write_text(EAGER)
    written = tmp_path / "faster.py"
    done = tool("improve", "--gpu", gpu_script, "--trials", "12", "--write", written, "--", "--of", "script")
    assert done.code == 0, done.err
    assert "checked --of script" in done.out
    assert "block_M = " in done.out and "results: equal bit by bit" in done.out
    assert "doubled(a, 4)" not in written.read_text()
    assert "checked" in tool("run", "--gpu", written).out
