"""Runs the code of the pages of docs/ from top to bottom, and compares its output with the page.

The ``python`` blocks of a page are run in order, in one module; with ``title="NAME"`` a block is a file for a later command. A
block of ``sh`` has commands, and ``text`` the whole output of the block above it, in which ``...`` within a line matches any
characters, and alone in a line any lines. Signatures are ``pyi``; settings have the names of their formats.

``python tests/documents/pages.py [PAGE ...]`` runs pages, and writes the output into them.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name not in ("diagnostics", "gallery")
               and path.name != "tuning.md")
"""The tested pages; pages of diagnostics are tested in ``tests/diagnostics``, those of the gallery are generated from their
scripts, and ``tests/test_tuning_page.py`` runs the page on tuning, which needs a cluster."""
FENCE = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
RUN = ("python", "sh")
SHOWN = ("pyi", "mlir", "diff", "ini", "json", "yaml", "toml", "powershell", "lua", "js")
"""Blocks that are not run: signatures, settings of other tools, excerpts that have their own tests."""
INSTALLS = ("pip install", "pip wheel", "pip download", "pre-commit ", "mkdocs ", "eval ", "source ", "python benchmarks/")
"""Commands that need a network, another tool, or minutes."""
OF_TORCH = " --gpu "
"""Commands with this text need torch; they are not run if it is not installed."""


class Block(NamedTuple):
    """A fenced block: its language, its file name, its text and the position of the text in the page."""

    kind: str
    title: str
    text: str
    start: int
    line: int


class Step(NamedTuple):
    """A block that was run, its output, and the block with the expected output."""

    block: Block
    printed: str
    failed: bool
    shown: Block | None


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(match[1], match[2] or "", match[3], match.start(3), text.count("\n", 0, match.start()) + 1)
            for match in FENCE.finditer(text)]


def run(page: Path) -> Iterator[Step]:
    """Runs the blocks of a page in order."""
    every = blocks(page)
    with _inside() as folder:
        module: dict[str, Any] = {"__name__": "__page__"}
        for number, block in enumerate(every):
            below = every[number + 1] if number + 1 < len(every) else None
            shown = below if below is not None and below.kind == "text" and not below.title else None
            if block.title and block.kind != "sh":
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.text, encoding="utf-8")
            elif block.kind in RUN:
                report = io.StringIO()
                with contextlib.redirect_stdout(report), contextlib.redirect_stderr(report):
                    failed = not (_code(block, number, module) if block.kind == "python" else _commands(block.text, report))
                yield Step(block, report.getvalue().replace(f"{folder}/", ""), failed, shown)


def agrees(shown: str, printed: str) -> bool:
    """Whether a block has the expected output."""
    lines = [".*".join(map(re.escape, line.split("..."))) + "\n" if line.strip() != "..." else "(?:.*\n)*?"
             for line in _tidy(shown).splitlines()]
    return re.fullmatch("".join(lines), _tidy(printed)) is not None


def _tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def _code(block: Block, number: int, module: dict[str, Any]) -> bool:
    from tilelang_npu.errors import TileError, render

    path = Path(f"block_{number}.py").resolve()
    path.write_text(block.text, encoding="utf-8")
    module["__file__"] = str(path)
    try:
        exec(compile(block.text, str(path), "exec"), module)
    except TileError as error:
        print(render(error))
    except Exception as error:  # noqa: BLE001, whatever the page wants to show
        print("".join(traceback.format_exception_only(error)))
    else:
        return True
    return False


def needs_torch(page: Path) -> bool:
    """Whether some block of a page imports torch, or a command of it needs torch."""
    texts = (block.text for block in blocks(page) if block.kind in RUN)
    return any(re.search(rf"^import torch$|{OF_TORCH}", text, re.MULTILINE) for text in texts)


def check(page: Path) -> None:
    """Asserts that each block of a page prints what the page shows, and fails only if the page says so."""
    from tilelang_npu.plugins.registry import temporary

    name = page.relative_to(DOCS.parent)
    with temporary():  # no other test has the plug-ins of a page
        for step in run(page):
            where = f"{name}:{step.block.line}"
            if step.shown is not None:
                assert agrees(step.shown.text, step.printed), (
                    f"{where} prints\n{step.printed}\n`python tests/documents/pages.py {name}` writes it there")
            else:
                assert not step.failed, f"{where} fails, and the page does not say so:\n{step.printed}"


def _commands(text: str, report: io.StringIO) -> bool:
    """Whether all commands succeed."""
    good = True
    for line in text.splitlines():
        if line.startswith("printf "):
            good = _typed(line, report) and good
        elif OF_TORCH in line and find_spec("torch") is None:
            continue
        elif line.strip() and not line.startswith(("#", *INSTALLS)):
            good = _command(shlex.split(line, comments=True), report) and good
    return good


def _typed(line: str, report: io.StringIO) -> bool:
    """Whether a command succeeds to which something is typed: ``printf 'text' | tilelang-npu run FILE ...``."""
    _, text, _, *words = shlex.split(line)
    assert words[0] == "tilelang-npu", line
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTHONBREAKPOINT")}
    done = subprocess.run([sys.executable, "-m", "tilelang_npu", *words[1:]], input=text.replace("\\n", "\n"),
                          capture_output=True, text=True, check=False, env=environment)
    report.write(done.stdout + done.stderr)
    return done.returncode == 0


def _command(words: list[str], report: io.StringIO) -> bool:
    from tilelang_npu.cli import main

    linecache.clearcache()
    settings: dict[str, str] = {}
    while "=" in words[0]:
        name, _, settings[name] = words.pop(0).partition("=")
    with _environment(settings):
        if words[:3] == ["python", "-m", "tilelang_npu"] or words[0] == "tilelang-npu":
            try:
                return main(words[3 if words[0] == "python" else 1:]) == 0
            except SystemExit as end:
                return not end.code
        if words[0] == "python":
            runpy.run_path(words[1], run_name="__main__")
            return True
        if words[0] == "pytest":
            plugins = ("sanitizer", "times", "budget")  # the package is not installed, only on the path
            own = [word for name in plugins for word in ("-p", f"tilelang_npu.pytest_{name}")]
            done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *own, *words[1:]],
                                  capture_output=True, text=True, check=False)
            report.write(done.stdout + done.stderr)
            return done.returncode == 0
    raise LookupError(f"this module cannot run the command {' '.join(words)}")


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _inside() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place, _environment({"TILELANG_CACHE_DIR": f"{place}/.cache"}):
        os.chdir(place)
        modules = {*sys.modules}
        sys.path.insert(0, place)  # files of a page import each other
        try:
            yield Path(place).resolve()
        finally:
            sys.path.remove(place)
            os.chdir(before)
            for name in {*sys.modules} - modules:
                if str(getattr(sys.modules[name], "__file__", None)).startswith(place):
                    del sys.modules[name]


def refresh(page: Path) -> None:
    """Writes the output of a page's blocks into the page, if it differs."""
    text = page.read_text(encoding="utf-8")
    for step in reversed(list(run(page))):
        if step.shown is not None and not agrees(step.shown.text, step.printed):
            start = step.shown.start
            kept = [line for line in step.shown.text.splitlines() if "..." in line and line.strip() != "..."]
            lines = (next((one for one in kept if agrees(one, line)), line) for line in _tidy(step.printed).splitlines())
            text = text[:start] + _tidy("\n".join(lines)) + text[start + len(step.shown.text):]
            print(f"{page}:{step.shown.line}: as it is now")
        elif step.shown is None and step.failed:
            print(f"{page}:{step.block.line}: fails\n{step.printed}")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        refresh(page)
