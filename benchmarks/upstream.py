"""What a checkout of an upstream repository uses of TileLang that this package lacks.

    python benchmarks/upstream.py CHECKOUT [CHECKOUT...] [--only examples,testing/npuir] [--markdown FILE]

reads all Python files of the checkouts (of https://github.com/tile-ai/tilelang-ascend, tile-ai/tilelang-mlir-ascend or their
forks) without running them, and lists, with the number of files and one of them:

- names of the language (``T.copy``, ``T.tile.add``, ``T.vmi.vload``) that are missing here,
- keyword arguments of its calls that the function of this package does not take,
- modules and names of ``tilelang`` and ``torch_npu`` that are imported or read and missing here,
- keys of ``pass_configs`` that are unknown here.

Names that are refused on purpose, such as the warps of a GPU, are not missing. Names of ``torch_npu`` are only looked up
where torch is installed. Implementations of TileLang itself (folders ``tilelang`` and ``3rdparty``) are not read, as they are
not programs of its users. ``--markdown`` writes the table with the commits of the checkouts. The command exits with 1 if
something is missing.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import tilelang_npu
from tilelang_npu import compat, language
from tilelang_npu.dispatch import WITHOUT_EFFECT
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings.pass_config_keys import PassConfigKey

NOT_USERS = {"tilelang", "3rdparty", "src", "docs", "maint", ".git", "build"}
"""Folders of a checkout that hold no programs of users."""
LANGUAGE = ("tilelang.language", "tilelang.ascend.language")
"""Modules whose alias is the language."""
HAS_TORCH = importlib.util.find_spec("torch") is not None
PACKAGES = ("tilelang", "torch_npu") if HAS_TORCH else ("tilelang",)
"""Packages whose modules and names are looked up; the module ``torch_npu`` of this package needs torch."""

REFUSED = object()
"""Stands for a name of the language that exists here only to be refused, as the warps of a GPU are (T190)."""

Found = Mapping[tuple[str, str], list[str]]
"""By (kind, name), the files that use the name."""


def used(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a program uses of TileLang: the kind, the name, and for an argument the name of the argument.

    Args:
        text: the source of the program.
    """
    tree = ast.parse(text)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.partition(".")[0] in PACKAGES:
                    yield "module", one.name, ""
                    aliases[one.asname or one.name.partition(".")[0]] = one.name if one.asname else one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and node.module.partition(".")[0] in PACKAGES:
            for one in node.names:
                yield "name", f"{node.module}.{one.name}", ""
                aliases[one.asname or one.name] = f"{node.module}.{one.name}"
    inner = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in inner and (name := dotted(node, aliases)):
            yield "name", name, ""
        if isinstance(node, ast.Call) and (name := dotted(node.func, aliases)):
            for keyword in node.keywords:
                if keyword.arg is not None:
                    yield "argument", name, keyword.arg
        if isinstance(node, ast.keyword) and node.arg == "pass_configs" and isinstance(node.value, ast.Dict):
            for key in node.value.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield "key", key.value, ""


def dotted(node: ast.AST, aliases: Mapping[str, str]) -> str:
    """Return the full name of an attribute of an imported module, such as ``tilelang.language.tile.add``; empty for others.

    Args:
        node: the expression.
        aliases: the full names of the imported names.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join([aliases[node.id], *parts])


def is_missing(kind: str, name: str, argument: str) -> bool:
    """Whether this package lacks a module, a name, an argument of a function, or a key."""
    if kind == "key":
        return name not in {member.value for member in PassConfigKey}
    found = looked_up(name)
    if kind != "argument":
        return found is None
    if found is None or found is REFUSED:
        return False  # the name itself is listed, or refused as a whole
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError, TileError):  # a name that is refused where it is used
        return False
    if argument in WITHOUT_EFFECT.get(name.rpartition(".")[2], ()):
        return False
    return argument not in parameters and not any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def looked_up(name: str) -> Any:
    """Return the object of this package that stands for an upstream name; None if there is none."""
    for one in LANGUAGE:
        if name == one or name.startswith(f"{one}."):
            found = reached(language, name[len(one) + 1:])
            if found is not None or "." not in name[len(one) + 1:]:
                return found
    pieces = name.split(".")
    for end in range(len(pieces), 0, -1):
        try:
            module = importlib.import_module(".".join(pieces[:end]))
        except ImportError:
            continue
        return reached(module, ".".join(pieces[end:]))
    return None


def reached(root: ModuleType, rest: str) -> Any:
    """Return the attribute of a module at a path; None if it is missing. Attributes of functions are taken to be there."""
    found: Any = root
    for piece in filter(None, rest.split(".")):
        try:
            following = getattr(found, piece, None)
        except ImportError:  # a module that says in one line why it is not here
            return None
        except TileError:  # refused on purpose, with a message that says what takes its place
            return REFUSED
        if following is None:
            return found if callable(found) and not isinstance(found, type) else None
        found = following
    return found


def scan(checkout: Path, only: set[str]) -> tuple[int, dict[tuple[str, str], list[str]]]:
    """Return the number of files of a checkout, and what is missing with the files that use it."""
    missing: dict[tuple[str, str], list[str]] = defaultdict(list)
    files = 0
    for path in sorted(checkout.rglob("*.py")):
        parts = path.relative_to(checkout).parts
        chosen = not only or any(parts[:len(Path(one).parts)] == Path(one).parts for one in only)
        if NOT_USERS & set(parts[:-1]) or not chosen:
            continue
        try:
            names = set(used(path.read_text(encoding="utf-8")))
        except (SyntaxError, UnicodeDecodeError):
            continue
        files += 1
        for kind, name, argument in names:
            if is_missing(kind, name, argument):
                shown = name.removeprefix("tilelang.language.")
                shown = f"T.{shown}" if shown != name else name
                missing[kind, f"{shown}({argument}=)" if argument else shown].append("/".join(parts))
    return files, missing


def table(missing: Found) -> list[str]:
    """Return the table of what is missing as Markdown, the most used first."""
    rows = ["| kind | missing | files | such as |", "|---|---|---:|---|"]
    for (kind, name), files in sorted(missing.items(), key=lambda item: (-len(item[1]), item[0])):
        rows.append(f"| {kind} | `{name}` | {len(files)} | `{files[0]}` |")
    return rows


def commit_of(checkout: Path) -> str:
    """Return the abbreviated commit of a checkout; ``no commit`` if it is no repository."""
    done = subprocess.run(["git", "-C", str(checkout), "log", "-1", "--format=%h of %cs"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "no commit"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", nargs="+", type=Path, metavar="CHECKOUT")
    parser.add_argument("--only", default="", help="folders of the checkouts, by commas")
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    compat.install()
    lines, count = [], 0
    for checkout in args.checkouts:
        files, missing = scan(checkout, set(filter(None, args.only.split(","))))
        count += len(missing)
        lines += [f"`{checkout.name}` at {commit_of(checkout)}, {files} files, tilelang_npu {tilelang_npu.__version__}: "
                  f"{len(missing)} missing", "", *(table(missing) if missing else []), ""]
    if not HAS_TORCH:
        lines += ["torch is not installed: names of torch_npu were not looked up", ""]
    text = "\n".join(lines)
    print(text)
    if args.markdown is not None:
        args.markdown.write_text(text, encoding="utf-8")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
