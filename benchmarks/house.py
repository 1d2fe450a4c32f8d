"""Counts properties of the package's source by its syntax tree: sizes, rewrite patterns, types, literals, files.

    python benchmarks/house.py             # of this checkout
    python benchmarks/house.py OTHER ...   # and of other checkouts, a column for each

- lines: all lines of ``src``; lines of code exclude blank lines, comments and docstrings.
- rewrite patterns: subclasses of xDSL's ``RewritePattern``.
- ``Any``: uses of the name per 1000 lines of code.
- literals: strings that name a memory space, a pipe, a core or a source dialect, and diagnostic codes.
- private functions with one caller: private functions whose name occurs once in their module, besides the definition.
- suppressed checks without a reason: ``type: ignore`` and ``noqa`` with no text after them.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPACES = {"gm", "l1", "l0a", "l0b", "l0c", "ub", "cbuf", "ca", "cb", "cc"}
PIPES = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"}
CORES = {"AIC", "AIV"}
DIALECTS = {"npuir", "ascendc", "gpu"}
CODE = re.compile(r"[ST]\d{3}")
SHORT = 60
"""Files with fewer lines are short."""
IGNORED = re.compile(r"#\s*(?:type:\s*ignore|noqa)(?:[:\[][^#\s]*(?:,\s*\w+)*\]?)?\s*(.*)")


def _docstrings(tree: ast.AST) -> set[int]:
    """Returns the line numbers of docstrings, and of strings that follow an assignment."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def figures(root: Path) -> dict[str, float]:
    """Returns the figures of a checkout, by their name."""
    found: Counter[str] = Counter()
    files = sorted((root / "src" / "tilelang_npu").rglob("*.py"))
    patterns = 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        tree, lines = ast.parse(text), text.splitlines()
        documented = _docstrings(tree)
        code = {token.start[0] for token in tokenize.generate_tokens(io.StringIO(text).readline)
                if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
                                      tokenize.ENDMARKER)} - documented
        found["lines"] += len(lines)
        found["lines of code"] += len(code)
        found[f"files under {SHORT} lines"] += len(lines) < SHORT
        names = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        names.update(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id == "Any":
                found["Any"] += 1
            elif isinstance(node, ast.ClassDef):
                patterns += any(ast.unparse(base).endswith("RewritePattern") for base in node.bases)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("_") and not (
                    node.name.endswith("__")):
                found["private functions"] += 1
                found["of these with one caller"] += names[node.name] == 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno not in documented:
                if node.value in SPACES | PIPES | CORES | DIALECTS:
                    found["literals of spaces, pipes, cores, dialects"] += 1
                elif CODE.fullmatch(node.value):
                    found["literals of diagnostic codes"] += 1
        for line in lines:
            match = IGNORED.search(line)
            if match is not None:
                found["suppressed checks"] += 1
                found["of these without a reason"] += not match[1].strip(" ()")
    return {
        "files": len(files), **found, "rewrite patterns": patterns,
        "Any per 1000 lines of code": round(1000 * found["Any"] / found["lines of code"], 1),
        "files in src/tilelang_npu/transforms": len([file for file in files if "transforms" in file.parts]),
    }


def main(roots: list[Path]) -> None:
    columns = [figures(root) for root in roots]
    names = list(dict.fromkeys(name for column in columns for name in column))
    width = max(map(len, names))
    for name in names:
        print(f"{name:<{width}}", *(f"{column.get(name, 0):>10g}" for column in columns))


if __name__ == "__main__":
    main([ROOT, *map(Path, sys.argv[1:])])
