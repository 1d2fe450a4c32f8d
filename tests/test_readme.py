"""What README shows is what happens: its kernel runs, its output and its MLIR are those of the example."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_npu.cli import main


def _blocks(root: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def shown(root: Path, tmp_path: Path) -> Any:
    """The module that README's kernel makes."""
    file = tmp_path / "readme_kernel.py"
    file.write_text(_blocks(root, "python")[0])
    spec = importlib.util.spec_from_file_location("readme_kernel", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_kernel_runs(shown: Any) -> None:
    expected = shown.a.astype(np.float32) @ shown.b.astype(np.float32)
    np.testing.assert_allclose(shown.c.astype(np.float32), expected, rtol=2e-3, atol=2e-2)


def test_the_output_is_the_examples(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(root / "examples" / "gemm.py")]) == 0
    assert _blocks(root, "text")[0] in capsys.readouterr().out


def test_the_mlir_is_the_examples(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(root / "examples" / "gemm.py")]) == 0
    text = capsys.readouterr().out
    place = 0
    for line in _blocks(root, "mlir")[0].splitlines():
        place = text.find(line, place)
        assert place >= 0, line


def test_the_mistake_reads_like_that(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "softmax.py"
    lines = ["import numpy as np", "import tilelang_npu as tilelang", "import tilelang_npu.language as T", "", "",
             '@tilelang.jit(target="npuir")', "def softmax(M, N):", "    @T.prim_func",
             '    def main(X: T.Tensor((M, N), "float32")):', "        with T.Kernel(1, is_npu=True) as (cid, _):",
             "            # the whole matrix at once",
             '            x_ub = T.alloc_ub((64, 1024), "float32")', "            T.copy(X[0, 0], x_ub)",
             "            T.vexp(x_ub, x_ub)", "            T.copy(x_ub, X[0, 0])", "", "    return main", "", "",
             "softmax(64, 1024)(np.zeros((64, 1024), np.float32))"]
    file.write_text("\n".join(lines))
    assert main(["run", str(file)]) == 1
    told = capsys.readouterr().err.replace(str(tmp_path) + "/", "")
    for line in _blocks(root, "text")[1].splitlines():
        assert line in told
