"""Runs the kernels of the pages of docs/diagnostics.

``python tests/diagnostics/pages.py [CODE ...]`` runs the wrong kernel of every page, and writes its output into the page,
and the title of the code into its first line.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tilelang_npu.diagnostic_codes import TITLES

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "diagnostics"
PAGES = sorted(path for path in FOLDER.glob("*.md") if re.fullmatch(r"[ST]\d{3}", path.stem))
FENCE = re.compile(r"^```(\w+) ?([\w.]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Part(NamedTuple):
    """The wrong or the repaired half of a page: its files, the command lines, the text that it says is shown, and whether it is
    about numbers, which are watched only on demand."""

    files: dict[str, str]
    commands: list[str]
    shown: str
    numbers: bool


def parts(page: Path) -> tuple[Part, Part]:
    """Both halves of a page."""
    text = page.read_text(encoding="utf-8")
    wrong, marker, repaired = text.partition("\n## Repair\n")
    assert marker, f"{page.name} has no repair"
    return _part(wrong, page.stem), _part(repaired, page.stem)


def _part(text: str, code: str) -> Part:
    files: dict[str, str] = {}
    commands: list[str] = []
    shown = ""
    for kind, name, body in FENCE.findall(text):
        if kind == "console":
            commands += [line.removeprefix("$ tilelang-npu ") for line in body.splitlines() if line.startswith("$ ")]
        elif kind == "text":
            shown = body
        else:
            files[name or "kernel.py"] = body
    return Part(files, commands, shown, code.startswith("S4"))


def outcome(part: Part) -> tuple[int, str]:
    """Returns the exit code and the error output of the commands. Without a command, kernel.py is run with the sanitizer."""
    linecache.clearcache()  # another page's file of this name
    with tempfile.TemporaryDirectory() as place, _inside(Path(place)):
        for name, body in part.files.items():
            Path(name).write_text(body, encoding="utf-8")
        if not part.commands:
            return _run(Path("kernel.py"), numbers=part.numbers)
        errors = io.StringIO()
        code = 0
        for command in part.commands:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                code = code or _command(command.split())
        return code, errors.getvalue()


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before, environment = Path.cwd(), dict(os.environ)
    os.chdir(folder)
    os.environ["TILELANG_CACHE_DIR"] = str(folder / "cache")
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


def _command(words: list[str]) -> int:
    from tilelang_npu.cli import main

    try:
        return main(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


def _run(path: Path, *, numbers: bool) -> tuple[int, str]:
    from tilelang_npu.cli.script import chosen, execute
    from tilelang_npu.runtime.checks.sanitizer import Sanitizer

    with (warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(io.StringIO()),
          chosen(numbers=numbers)):
        warnings.simplefilter("always")
        done = execute(path, [], "__main__", sanitizer=Sanitizer())
    report = [done.complaint] if done.complaint else []
    report += [str(finding) for tally in done.record.tallies for finding in tally.findings]
    report += [str(number) for tally in done.record.tallies for number in tally.numbers.values()]
    report += [str(one.message) for one in warned]
    return done.code or int(bool(report)), "".join(f"{text}\n" for text in "\n\n".join(report).splitlines())


def title(code: str) -> str:
    """The first line of a page."""
    titles: Mapping[str, str] = TITLES
    return f"# {code}: {titles[code]}\n"


def refresh(page: Path) -> None:
    """Writes the title of the code into the first line, and the output of the wrong kernel into its text block."""
    text = title(page.stem) + page.read_text(encoding="utf-8").partition("\n")[2]
    shown = outcome(parts(page)[0])[1]
    made = re.sub(r"^```text\n.*?^```$", lambda _: f"```text\n{shown}```", text, count=1, flags=re.MULTILINE | re.DOTALL)
    page.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    for one in PAGES:  # these two depend on what is installed
        if one.stem not in ("T711", "T735") and (not sys.argv[1:] or one.stem in sys.argv[1:]):
            refresh(one)
