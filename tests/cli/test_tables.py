"""``chips``, ``ops``, ``stages`` and ``doctor``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilelang_npu
from tilelang_npu import target
from tilelang_npu.cli import COMMANDS, language_page, operations_page
from tilelang_npu.language import stubs, vmi
from tilelang_npu.language.elements import TOKENS
from tilelang_npu.ops import operations
from tilelang_npu.transforms import pipeline


def test_chips(tool) -> None:
    lines = tool("chips").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [chip.name for chip in target.chips()]
    assert "(default)" in next(line for line in lines if line.startswith("Ascend910B2 "))


def test_ops(tool) -> None:
    assert "vexp" in tool("ops").out
    assert [line.split()[0] for line in tool("ops", "rsqrt").out.splitlines()] == ["operation", "rsqrt"]


def test_ops_columns(tool) -> None:
    rows = [line.split() for line in tool("ops").out.splitlines()]
    named = {row[0]: row for row in rows}
    assert named["exp"] == ["exp", "V", "vexp", "exp", "f16", "f32", "tile.exp", "vexp", "npuir_exp"]
    assert set(operations()) == set(named) - {"operation"}
    assert tool("ops", "no-such-operation").code == 1


def test_the_page_of_operations_is_what_the_table_gives(tool, root: Path) -> None:
    made = tool("ops", "--markdown").out
    assert (root / "docs" / "ops.md").read_text(encoding="utf-8") == made, "run `tilelang-npu ops --markdown > docs/ops.md`"
    for entry in operations().values():
        assert f"| `{entry.name}` |" in made
        for name in operations_page.names(entry):
            assert f"`{name}`" in made
    assert tool("ops", "exp", "--markdown").code == 1


def test_the_page_of_the_language_is_what_the_functions_say(tool, root: Path) -> None:
    folder = root / "docs" / "language"
    for group, made_of_it in language_page.references().items():
        _, mark, below = (folder / f"{group}.md").read_text(encoding="utf-8").partition(language_page.MARK)
        assert mark
        assert below == f"\n{made_of_it}", "run `tilelang-npu ops --language docs/language`"
    assert {path.stem for path in folder.glob("*.md")} == {*language_page.GROUPS, "README"}
    made = "\n".join(language_page.references().values())
    headings = [line for line in made.splitlines() if line.startswith("## ")]
    named = {name for line in made.splitlines() if line.startswith(("## ", "Other names: "))
             for name in re.findall(r"`T\.([\w.]+)`", line)}
    registers = {f"vmi.{name}" for name in vmi.NAMES}
    assert {*stubs.callables()} - {*TOKENS, "dtype", *stubs.BUFFERS} | registers == named
    assert {"## `kernel.trace(*args: object, **named: object)`", "## `kernel.mlir_module(stage: str = 'hivm')`"} <= {*headings}
    assert "- `workspace_idx`: " in made
    assert tool("ops", "exp", "--language", str(folder)).code == 1


def test_the_pages_of_the_language_keep_what_is_written_by_hand(tool, root: Path, tmp_path: Path) -> None:
    for page in (root / "docs" / "language").glob("*.md"):
        above, mark, below = page.read_text(encoding="utf-8").partition(language_page.MARK)
        (tmp_path / page.name).write_text(above + mark)
        if mark:
            assert below
    assert tool("ops", "--language", str(tmp_path)).code == 0
    for page in tmp_path.glob("*.md"):
        assert page.read_text(encoding="utf-8") == (root / "docs" / "language" / page.name).read_text(encoding="utf-8")
    (tmp_path / "moving.md").write_text("no mark")
    done = tool("ops", "--language", str(tmp_path))
    assert (done.code, "has no mark after which it is generated" in done.err) == (1, True)


def test_the_stubs_are_printed(tool, root: Path) -> None:
    assert tool("ops", "--stubs").out == stubs.text()
    assert tool("ops", "exp", "--stubs").code == 1


def test_stages(tool) -> None:
    assert tool("stages").out.split() == pipeline.stage_names()


def test_stages_as_tables(tool) -> None:
    made = tool("stages", "--markdown").out
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in made.splitlines() if line.startswith("| ")]
    ours = cells[1:len(pipeline.ROWS) + 1]
    assert cells[0] == ["stage", "pass", "level", "why"]
    assert [(row[0], row[1]) for row in ours] == [(name, one.name) for name, one in pipeline.kernel_passes(pipeline.Options())]
    assert ["assign-cores", "assign-cores", "cored"] in [row[:3] for row in ours]
    others = [row[0] for row in cells[len(ours) + 2:]]
    shared = len(pipeline.foreign_rows()) - len(others)
    assert [*others, *(row[0] for row in ours[-shared:])] == [row.name for row in pipeline.foreign_rows()]
    assert tool("stages", "gemm.py", "--markdown").code == 1


def test_doctor(tool, monkeypatch: pytest.MonkeyPatch) -> None:
    done = tool("doctor")
    assert done.code == 0, done.out
    for fact in ("numpy", "xdsl", "torch", "BLAS", "kernel cache", "TILELANG_NPU_CHIP"):
        assert fact in done.out
    monkeypatch.setattr(tilelang_npu.cli.doctor, "_REQUIRED", ("numpy", "no-such-package"))
    assert tool("doctor").code == 1


@pytest.mark.parametrize(
    "command", [["-m", "tilelang_npu"], ["-c", "import sys; from tilelang_npu.cli import main; sys.exit(main())"]]
)
def test_as_a_process(python: str, command: list[str]) -> None:
    done = subprocess.run([python, *command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tilelang-npu {tilelang_npu.__version__}\n"


def test_a_command_loads_its_own_file_alone(python: str) -> None:
    code = ("import sys\nfrom tilelang_npu.cli import main\nassert main(['explain', 'T104']) == 0\n"
            "from tilelang_npu.cli import COMMANDS\n"
            "print({one for one in COMMANDS.values() if f'tilelang_npu.cli.{one}' in sys.modules}, file=sys.stderr)")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "{'explain'}"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_in_the_file_of_its_name(command: str, tool) -> None:
    done = tool(command, "--help")
    assert done.code == 0
    assert done.out.startswith(f"usage: tilelang-npu {command} ")
    assert re.search(rf"\n    {command}\s", tool("--help").out)


@pytest.mark.kept
def test_a_kernel_from_the_cache_loads_no_pass(python: str, root: Path, tmp_path: Path) -> None:
    code = ("import runpy, sys\nrunpy.run_path(sys.argv[1], run_name='__main__')\n"
            "print([one for one in sys.modules if one == 'tilelang_npu.transforms.pipeline'], file=sys.stderr)")
    words = [python, "-c", code, str(root / "examples" / "gemm.py")]
    environment = {**os.environ, "TILELANG_CACHE_DIR": str(tmp_path)}
    output = [subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stderr.strip()
              for _ in range(2)]
    assert output == ["['tilelang_npu.transforms.pipeline']", "[]"]


def test_importing_the_package_with_jit_and_the_language_loads_nothing_that_only_a_call_needs(python: str) -> None:
    code = ("import sys, numpy\nbefore = set(sys.modules)\nimport tilelang_npu, tilelang_npu.language\n"
            "from tilelang_npu import compile, jit\n"
            "late = {'xdsl', 'ml_dtypes', 'typing_extensions', 'importlib.resources', 'tilelang_npu.ops.spec'}\n"
            "print(sorted((set(sys.modules) - before) & late))")
    done = subprocess.run([python, "-S", "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout.strip() == "[]"
