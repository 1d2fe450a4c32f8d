"""``compile``: all kernels that a script compiles, or one kernel at its top level."""

from __future__ import annotations

import re
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


def test_the_generated_code_is_printed(tool, script: Path) -> None:
    done = tool("compile", f"{script}:copied", "--python")
    assert done.code == 0, done.err
    assert done.out.startswith("# copied on AIV\ndef bind(")
    compile(done.out, "generated.py", "exec")
    assert re.search(r"^ +v\d+\[\.\.\.\] = v\d+$", done.out, re.MULTILINE), "a copy"
    mixed = tool("compile", script, "--python", "--annotate")
    assert (mixed.code, "--python prints no MLIR" in mixed.err) == (2, True)


def test_annotated_text_says_who_inserted_an_op_and_why(tool, script: Path) -> None:
    plain, annotated = tool("compile", script).out, tool("compile", script, "--annotate").out
    assert [line.partition("  // ")[0] for line in annotated.splitlines()] == plain.splitlines()
    for line in annotated.splitlines():
        name, _, comment = line.partition("  // ")
        if "pointer_cast" in name:
            assert re.search(r"plan-memory: \w+( \(slot \d\))?, \d+ B of UB, alive \d+\.\.\d+$", comment), line
        elif "wait_flag" in name or "set_flag" in name:
            assert re.search(r"insert-sync: \w.* \((RAW|WAR|WAW)\)$", comment), line
        elif "pipe_barrier" in name:
            assert re.search(r"(complete-kernel: the kernel ends after all pipes are done|insert-sync: .*)$", comment), line
    assert "set_flag" in plain and "pointer_cast" in plain


def test_mistakes(tool, script: Path, tmp_path: Path) -> None:
    assert "T710" in tool("compile", f"{script}:copied", "--stage", "hivmm").err
    missing = tool("compile", f"{script}:copid")
    assert missing.code == 1
    assert "error[T803]" in missing.err
    assert "did you mean copied?" in missing.err
    script.write_text(script.read_text().replace("doubled(32, 64)", "(lambda a: a + 1)"))
    assert "doubled in" in tool("compile", f"{script}:doubled").err
    assert "is a factory that the script does not call" in tool("compile", f"{script}:doubled").err
    (tmp_path / "none.py").write_text("pass\n")
    assert "compiles no kernel" in tool("compile", tmp_path / "none.py").err
    assert "T801" in tool("compile", "nowhere.py:kernel").err


def test_a_script_that_fails_after_its_kernels(tool, script: Path) -> None:
    script.write_text(script.read_text() + "\nkernel = doubled(16, 64)\nkernel.mlir()\nraise ValueError('numbers differ')\n")
    done = tool("compile", script)
    assert done.code == 1
    assert "numbers differ" in done.err
    assert "hivm.hir.vadd" in done.out


def test_a_kernel_that_the_script_compiles_is_named_by_its_own_name_or_its_factorys(tool, script: Path) -> None:
    for name in ("twice", "doubled", "twice#1"):
        done = tool("compile", f"{script}:{name}")
        assert done.code == 0, done.err
        assert "memref<32x64xf32" in done.out


def test_several_kernels_of_one_name_are_selected_by_number(tool, script: Path) -> None:
    script.write_text(script.read_text() + "    doubled(16, 128)\n")
    done = tool("compile", f"{script}:twice")
    assert done.code == 1
    lines = done.err.splitlines()
    assert lines[-4:] == [
        f"error[T803]: {script} compiles 2 kernels with the name twice",
        f"   = {script}:twice#1  A float32 32x64, B float32 32x64",
        f"   = {script}:twice#2  A float32 16x128, B float32 16x128",
        f"   = help: name one of them: {script}:twice#2",
    ]
    for argument, size in re.findall(r"= (\S+)  A float32 (\S+),", done.err):  # the suggestion of the message works
        assert f"memref<{size}xf32" in tool("compile", argument).out
    for number in (0, 3):
        assert f"no twice#{number}" in tool("compile", f"{script}:twice#{number}").err


def test_a_page_without_edits(tool, script: Path) -> None:
    page = tool("compile", script, "--explain", "--no-edits")
    assert page.code == 0
    assert "no edits were tried: edits=False or --no-edits was given" in page.out
    alone = tool("compile", script, "--no-edits")
    assert (alone.code, "--no-edits has no effect without --explain" in alone.err) == (2, True)
