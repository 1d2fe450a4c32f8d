"""Two compilations in two processes give the same bytes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize("example", ["gemm", "softmax", "minicv"])
@pytest.mark.parametrize("stage", ["tile", "hivm-auto", "hivm"])
def test_text_does_not_depend_on_the_process(root: Path, python: str, tmp_path: Path, example: str, stage: str) -> None:
    texts = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TILELANG_DISABLE_CACHE": "1", "PYTHONPATH": str(root / "src")}
        command = [python, "-m", "tilelang_npu", "compile", str(root / "examples" / f"{example}.py"), "--stage", stage]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
        texts.add(done.stdout)
    assert len(texts) == 1
    assert "func.func" in texts.pop()
