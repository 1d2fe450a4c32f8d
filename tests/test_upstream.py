"""What benchmarks/upstream.py finds missing: names, arguments, modules and keys; nothing of what is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """\
import tilelang as tl
import tilelang.language as T
from tilelang import language, nothing
from tilelang.language.fp8 import determine_fp8_type
from tilelang.unknown import thing
import torch_npu

PASSES = {"tl.ascend_auto_sync": True}


@tl.jit(out_idx=[-1], pass_configs={"tl.ascend_auto_sync": True, "tl.no_such_key": 1})
def factory():
    T.copy(a, b, strange=1)
    T.copy(a, b, annotations={})
    T.WSSync.of_a_gpu
    T.tile.add(a, b, c)
    T.tile.no_such_op(a)
    language.serial(4)
    T.no_such_op(a, b)
    T.float32.as_torch
    other.attribute
"""


def test_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "tilelang").mkdir()
    (tmp_path / "testing" / "npuir").mkdir(parents=True)
    (tmp_path / "testing" / "cuda").mkdir()
    (tmp_path / "examples" / "script.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "examples" / "broken.py").write_text("def", encoding="utf-8")
    (tmp_path / "testing" / "npuir" / "test.py").write_text("import tilelang.language as T\nT.no_such_op()\n", encoding="utf-8")
    (tmp_path / "testing" / "cuda" / "test.py").write_text("import tilelang.language as T\nT.gpu_only()\n", encoding="utf-8")
    (tmp_path / "tilelang" / "own.py").write_text("import tilelang.language as T\nT.internal()\n", encoding="utf-8")
    done = subprocess.run([sys.executable, ROOT / "benchmarks" / "upstream.py", tmp_path, "--only", "examples,testing/npuir",
                           "--markdown", tmp_path / "table.md"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ") and "kind" not in line]
    assert rows == [
        "| name | `T.no_such_op` | 2 | `examples/script.py` |",
        "| argument | `T.copy(strange=)` | 1 | `examples/script.py` |",
        "| key | `tl.no_such_key` | 1 | `examples/script.py` |",
        "| name | `T.tile.no_such_op` | 1 | `examples/script.py` |",
        "| name | `tilelang.nothing` | 1 | `examples/script.py` |",
        "| name | `tilelang.unknown.thing` | 1 | `examples/script.py` |"]
    assert "2 files" in done.stdout
    assert (tmp_path / "table.md").read_text(encoding="utf-8").strip() == done.stdout.strip()


def test_nothing_is_missing(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import tilelang.language as T\nT.copy(a, b)\n", encoding="utf-8")
    done = subprocess.run([sys.executable, ROOT / "benchmarks" / "upstream.py", tmp_path], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, "0 missing" in done.stdout) == (0, True), done.stderr
