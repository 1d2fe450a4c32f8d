"""Kernels of one name are told apart by what differs."""

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
def test_sizes_are_said_where_the_name_is_not_enough_and_arguments_where_sizes_are_not(
        calls: list[tuple[int, int]], labels: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("CALLS", repr(calls)))
    assert main(["run", str(script)]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("doubled")]
    assert len(said) == len(labels)
    assert all(line.startswith(label) for line, label in zip(said, labels, strict=True))
