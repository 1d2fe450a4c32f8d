"""Running the command line in this process, and a script for it to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilelang_npu.cli import main


@dataclass
class Done:
    """The result of a command: exit code and both streams."""

    code: int
    out: str
    err: str


Tool = Callable[..., Done]

SCRIPT = '''
import sys
import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1], target="ascendc", pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
def doubled(rows, columns):
    @T.prim_func
    def twice(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows // 16, is_npu=True) as (block, half):
            a = T.alloc_ub((8, columns), "float32")
            T.copy(A[block * 16 + half * 8, 0], a)
            T.tile.add(a, a, a)
            T.copy(a, B[block * 16 + half * 8, 0])

    return twice


@T.prim_func
def copied(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, is_npu=True) as (block, half):
        a = T.alloc_ub((64,), "float32")
        T.copy(A, a)
        T.barrier_all()
        T.copy(a, B)


if __name__ == "__main__":
    a = np.ones((32, 64), np.float32)
    assert (doubled(32, 64)(a) == 2).all()
    assert (doubled(32, 64)(a) == 2).all()
    print("arguments", *sys.argv[1:])
'''


@pytest.fixture
def tool(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tool:
    """``tool("chips")`` runs a command."""

    def call(*words: object) -> Done:
        monkeypatch.setenv("TILELANG_NPU_CHIP", "")
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script of two kernels that imports ``tilelang``."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path
