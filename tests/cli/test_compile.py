"""``compile``: all kernels that a script compiles, or one that stands at its top level."""

from __future__ import annotations

from pathlib import Path

from tilelang_npu.dialects.text import parse_module


def test_what_a_script_compiles(tool, script: Path) -> None:
    done = tool("compile", script)
    assert done.code == 0, done.err
    assert "arguments" in done.err
    assert done.out.count("func.func @twice(") == 1
    parse_module(done.out)


def test_one_kernel_without_running_the_script(tool, script: Path, tmp_path: Path) -> None:
    done = tool("compile", f"{script}:copied", "--stage", "tile", "-o", tmp_path / "made" / "copied.mlir")
    assert (done.code, done.out) == (0, ""), done.err
    assert "tile.launch" in (tmp_path / "made" / "copied.mlir").read_text()


def test_a_kernel_object_at_the_top_level(tool, script: Path) -> None:
    script.write_text(script.read_text() + "\nkernel = doubled(16, 64)\n")
    assert "hivm.hir.vadd" in tool("compile", f"{script}:kernel").out


def test_forms(tool, script: Path) -> None:
    assert '"func.func"' in tool("compile", f"{script}:copied", "--generic").out
    located = tool("compile", f"{script}:copied", "--locations").out
    assert f'loc("{script}":' in located


def test_mistakes(tool, script: Path, tmp_path: Path) -> None:
    assert "T710" in tool("compile", f"{script}:copied", "--stage", "hivmm").err
    missing = tool("compile", f"{script}:copid")
    assert missing.code == 1
    assert "error[T803]" in missing.err
    assert "did you mean copied?" in missing.err
    assert "is a factory" in tool("compile", f"{script}:doubled").err
    (tmp_path / "none.py").write_text("pass\n")
    assert "compiles no kernel" in tool("compile", tmp_path / "none.py").err
    assert "T801" in tool("compile", "nowhere.py:kernel").err


def test_a_script_that_fails_behind_its_kernels(tool, script: Path) -> None:
    script.write_text(script.read_text() + "\nkernel = doubled(16, 64)\nkernel.mlir()\nraise ValueError('numbers differ')\n")
    done = tool("compile", script)
    assert done.code == 1
    assert "numbers differ" in done.err
    assert "hivm.hir.vadd" in done.out
