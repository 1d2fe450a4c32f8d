"""The summary of ``run`` says which tiles do not fit at once; also for a kernel from the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_npu.cli import main

SCRIPT = '''
import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(target="npuir")
def scaled(rows):
    @T.prim_func
    def scaled(X: T.Tensor((rows, 1024), "float32"), Y: T.Tensor((rows, 1024), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((rows, 1024), "float32")
            y = T.alloc_shared((rows, 1024), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(rows, 1024):
                y[i, j] = x[i, j] * 2.0
            T.copy(y, Y)

    return scaled


for rows in (8, 64):
    x = np.ones((rows, 1024), np.float32)
    y = np.zeros_like(x)
    scaled(rows)(x, y)
    assert (y == 2).all()
'''


def test_the_summary_names_the_strips(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "strips.py"
    script.write_text(SCRIPT)
    for _ in range(2):  # the second run reads the kernels from the cache
        assert main(["run", str(script)]) == 0
        shown = capsys.readouterr().out
        (line,) = [line for line in shown.splitlines() if line.startswith("  strips")]
        assert "line 14: the tiles do not fit at once: " in line and "of their 64 rows" in line, shown
