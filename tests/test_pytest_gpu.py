"""``pytest --tilelang-gpu``: tests that were written for a GPU run on the simulated card."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

TEST = '''
import torch
import tilelang
import tilelang.testing

MADE = torch.zeros(2, device="cuda" if torch.cuda.is_available() else "cpu")  # when the file is imported

@tilelang.testing.requires_cuda
def test_it():
    assert MADE.is_cuda
    print("capability", torch.cuda.get_device_capability())

@tilelang.testing.requires_cuda_compute_version(9, 0)
def test_hopper():
    pass
'''


@pytest.mark.parametrize(("options", "shown"), [
    (("--tilelang-gpu",), ("1 passed, 1 skipped", "capability (8, 0)")),
    (("--tilelang-gpu-capability", "9.0"), ("2 passed", "capability (9, 0)")), ((), ("1 error",)),
])
@pytest.mark.parametrize("plugin", ["tilelang_npu.pytest_gpu", "tilelang_npu.pytest_plugin"])
def test_the_option(plugin: str, options: tuple[str, ...], shown: tuple[str, ...], tmp_path: Path, root: Path) -> None:
    if plugin.endswith("_plugin") and not options:
        shown = ("2 skipped",)
    (tmp_path / "test_gpu_kernels.py").write_text(TEST)
    path = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-s", "-p", plugin, "-p", "no:cacheprovider", *options,
                           str(tmp_path)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
                          check=False)
    for text in shown:
        assert text in done.stdout, done.stdout + done.stderr
