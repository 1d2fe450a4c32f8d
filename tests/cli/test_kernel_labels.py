"""The labels of kernels with the same name contain the parameters that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_npu.cli import main

SCRIPT = """
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def doubled(n, tile=512):
    @T.prim_func
    def doubled(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(n // tile, is_npu=True) as (block, _):
            x = T.alloc_shared((tile,), "float32")
            T.copy(X[block * tile], x)
            T.vadd(x, x, x)
            T.copy(x, Y[block * tile])
    return doubled

for n, tile in CALLS:
    assert (doubled(n, tile)(np.ones(n, np.float32)) == 2).all()
"""


@pytest.mark.parametrize(("calls", "labels"), [
    ([(1024, 512)], ["doubled "]),
    ([(1024, 512), (2048, 512)], ["doubled[X 1024, Y 1024] ", "doubled[X 2048, Y 2048] "]),
    ([(1024, 512), (1024, 256)], ["doubled[X 1024, Y 1024, tile=512] ", "doubled[X 1024, Y 1024, tile=256] "]),
])
def test_labels_have_sizes_if_names_are_ambiguous_and_arguments_if_sizes_are(
        calls: list[tuple[int, int]], labels: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("CALLS", repr(calls)))
    assert main(["run", str(script)]) == 0
    output = [line for line in capsys.readouterr().out.splitlines() if line.startswith("doubled")]
    assert len(output) == len(labels)
    assert all(line.startswith(label) for line, label in zip(output, labels, strict=True))


def compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: str) -> tuple[int, str, str]:
    """Returns the exit code of ``compile`` for one of three kernels, its module and its messages."""
    file = tmp_path / "three.py"
    file.write_text(SCRIPT.replace("CALLS", "[(512, 512), (1024, 512), (1024, 256)]"), encoding="utf-8")
    code = main(["compile", f"{file}:doubled{spec}", "--stage", "tile"])
    done = capsys.readouterr()
    return code, done.out, done.err.replace(str(tmp_path), "")


@pytest.mark.parametrize(("spec", "sizes"), [
    ("[n=512]", (512, 512)), ("[X 512, Y 512]", (512, 512)), ("[1024, tile=256]", (1024, 256)),
    ("[X=1024,tile=512]", (1024, 512)),
    ("[256]", (1024, 256)), ("#2", (1024, 512))])
def test_a_kernel_is_chosen_by_its_sizes_by_what_its_label_reads_or_by_its_number(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: str, sizes: tuple[int, int]) -> None:
    code, module, _ = compiled(tmp_path, capsys, spec)
    assert code == 0
    assert f"memref<{sizes[0]}xf32" in module
    assert f"memref<{sizes[1]}xf32" in module


@pytest.mark.parametrize(("spec", "output", "listed"), [
    ("[1024]", "2 of the 3 kernels doubled in /three.py fit [1024]", [2, 3]),
    ("[7x7]", "none of the 3 kernels doubled in /three.py fits [7x7]", [1, 2, 3]),
    ("", "/three.py compiles 3 kernels with the name doubled", [1, 2, 3])])
def test_sizes_that_do_not_choose_one_kernel_list_what_can_be_typed(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: str, output: str, listed: list[int]) -> None:
    code, module, report = compiled(tmp_path, capsys, spec)
    assert (code, module, f"error[T803]: {output}" in report) == (1, "", True)
    every = {1: "X float32 512, Y float32 512\n", 2: "X float32 1024, Y float32 1024; tile=512\n",
             3: "X float32 1024, Y float32 1024; tile=256\n"}
    assert [number for number in every if f"/three.py:doubled#{number}  {every[number]}" in report] == listed
