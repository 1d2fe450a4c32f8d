"""Two compilations give the same bytes: in two processes, and wherever objects lie in memory."""

from __future__ import annotations

import gc
import os
import random
import runpy
import subprocess
from pathlib import Path

import pytest

SIZES = {"multi_head_attention": {"heads": 2, "length": 512, "keys": 1024},
         "causal_attention": {"heads": 2, "length": 512, "dim": 64},
         "flash_attention": {"length": 256, "keys": 512, "dim": 64}}


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


@pytest.mark.parametrize("example", SIZES)
def test_text_does_not_depend_on_where_objects_lie(root: Path, example: str) -> None:
    """Sets of values are in the order of their addresses, which no seed of hashes settles."""
    module = runpy.run_path(str(root / "examples" / f"{example}.py"))
    factory = next(value for value in module.values() if hasattr(value, "draft"))
    texts, chance, garbage = set(), random.Random(0), []
    for _ in range(5):
        garbage.append([[object() for _ in range(chance.randrange(9))] for _ in range(chance.randrange(20_000))])
        for kept in garbage:  # holes of all sizes, which the next compilation fills
            del kept[chance.randrange(2)::chance.randint(2, 5)]
        kernel = factory.draft(**SIZES[example]).kernel()
        texts.add(kernel.mlir(locations=True))
        gc.collect()
    assert len(texts) == 1
