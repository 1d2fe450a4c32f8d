"""The types of the package: names of memories, pipes, cores and dialects are Literals, and ``Any`` is used only if
necessary."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import tilelang_npu
from tilelang_npu.dialects.hivm import enums
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr
from tilelang_npu.dialects.tile import OpenMemory
from tilelang_npu.target import chip_data
from tilelang_npu.transforms.hivm.sync.items import core_and_pipe, on_core

PACKAGE = Path(tilelang_npu.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

ANY = {"analysis": 1, "cli": 4, "compat": 1, "dialects": 5, "frontend": 2, "interpreter": 1, "language": 17, "ops": 21,
       "plugins": 6, "runtime": 8, "simulator": 2, "target": 6, "traced": 7, "transforms": 1}
"""The most uses of ``Any`` per 1000 lines of code, by part of the package."""
NAMED = re.compile(r"(^|_)(space|pipe|core|dialect|memory|memorie)s?$")
"""The names of parameters and fields that hold memories, pipes, cores or dialects."""
TEXT = re.compile(
    r"(str|tuple\[str, \.\.\.\]|(list|set|frozenset|Set|Sequence|Iterable|Container|Collection)\[str\])( \| None)?")
PLAIN = {
    "dialects/hivm/attributes.py": 2,  # the pipes of an event, as the text of the attribute spells them
    "dialects/ir/attribute_kinds.py": 1,  # a dialect of MLIR
    "interpreter/host_buffers.py": 4,  # the interpreter shares no code with the compiler, and has its own names
    "interpreter/launch.py": 2,
    "interpreter/running_core.py": 1,
    "interpreter/sync.py": 3,
    "language/launch.py": 1,  # the author's arguments, before they are checked
    "language/sync.py": 3,
    "runtime/reports/export.py": 1,  # the cores of a kernel in a file
    "runtime/reports/memory_report.py": 1,  # a memory by its common name, such as L0A
    "simulator/codegen/code_scopes.py": 1,  # a variable of the generated code
    "simulator/codegen/op_recorder.py": 3,  # variables of the generated code
    "simulator/sanitizer/hazard.py": 2,  # a core with its number, such as AIV0, and a memory by its common name
    "simulator/sanitizer/numerics.py": 1,
    "traced/builder.py": 1,  # the author's arguments, before they are checked
}
"""By file, how many parameters and fields with such a name hold any text."""

WRONG = """\
from tilelang_npu.dialects import hivm
from tilelang_npu.target import DEFAULT, chip, name_of
from tilelang_npu.transforms.infra.options import Options

one = chip(DEFAULT)
name_of("ub")
name_of("shared")
name_of("l1")  # wrong
hivm.address_space("cbuf")
hivm.address_space("shared")  # wrong
hivm.PipeBarrierOp("ALL")
hivm.PipeBarrierOp("PIPE_V")  # wrong
hivm.SetFlagOp("MTE2", "V", 0)
hivm.SetFlagOp("MTE2", "VEC", 0)  # wrong
one.memories("AIC")
one.memories("cube")  # wrong
one.memory["ub"]
one.memory["UB"]  # wrong
one.paths_of("MTE4", "AIV")
one.paths_of("MTE0", "AIV")  # wrong
hivm.SyncBlockSetOp("CUBE", "FIX", "S", 0)
hivm.SyncBlockSetOp("AIC", "FIX", "S", 0)  # wrong
Options(dialect="gpu")
Options(dialect="cuda")  # wrong
"""


def documented(tree: ast.AST) -> set[int]:
    """The lines of docstrings."""
    return {line for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def lines_of_code(text: str) -> int:
    """The lines that are no blank line, comment or docstring."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found = {token.start[0] for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in skipped}
    return len(found - documented(ast.parse(text)))


def texts(file: Path) -> Iterator[str]:
    """The parameters and fields of a file that are named after a memory, a pipe, a core or a dialect, and hold any text."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.arg):
            name, annotation = node.arg, node.annotation
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, (ast.Name, ast.Attribute)):
            name, annotation = (node.target.id if isinstance(node.target, ast.Name) else node.target.attr), node.annotation
        else:
            continue
        if annotation is not None and NAMED.search(name.lower()) and TEXT.fullmatch(ast.unparse(annotation)):
            yield f"{name}: {ast.unparse(annotation)}"


@pytest.mark.parametrize("part", ANY)
def test_any_does_not_grow(part: str) -> None:
    found: Counter[str] = Counter()
    for file in (PACKAGE / part).rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        found["Any"] += sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(text)))
        found["lines"] += lines_of_code(text)
    assert 1000 * found["Any"] <= ANY[part] * found["lines"], f"{found['Any']} in {found['lines']} lines"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_names_have_types(file: Path) -> None:
    found = list(texts(file))
    assert len(found) == PLAIN.get(file.relative_to(PACKAGE).as_posix(), 0), found


def test_plain_text_is_found(tmp_path: Path) -> None:
    (file := tmp_path / "wrong.py").write_text(
        "def f(pipe: str, spaces: tuple[str, ...], line: str) -> None: ...\ncore: str | None", encoding="utf-8")
    assert list(texts(file)) == ["core: str | None", "pipe: str", "spaces: tuple[str, ...]"]


def words(kind: type[EnumAttr]) -> set[str]:
    return {word.removeprefix(kind.PREFIX) for word in kind.CASES}


def test_literals_are_what_the_attributes_have() -> None:
    assert words(enums.AddressSpaceAttr) | {"bt", "fb"} == set(get_args(chip_data.Space))
    assert words(enums.PipeAttr) == set(get_args(chip_data.PipeName))
    assert words(enums.FuncCoreTypeAttr) == set(get_args(chip_data.FunctionCore))
    assert words(enums.CoreTypeAttr) == set(get_args(enums.CoreType))
    assert {memory.value for memory in OpenMemory} == set(get_args(chip_data.OpenScope))
    assert all(memory.scope == memory.value for memory in OpenMemory)
    assert get_args(chip_data.Pipe) == chip_data.PIPES
    assert get_args(chip_data.CoreKind) == chip_data.CORES


def test_a_pipe_with_its_core_is_taken_apart() -> None:
    assert on_core("AIC", "MTE2") == "AIC.MTE2"
    assert core_and_pipe(on_core("AIV", "V")) == ("AIV", "V")


def test_a_misspelt_name_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "names.py").write_text(WRONG, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "names.py"], cwd=tmp_path,
                          env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = {int(line) for line in re.findall(r"^names\.py:(\d+): error", done.stdout, re.MULTILINE)}
    assert found == {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}, done.stdout
