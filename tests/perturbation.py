"""Perturbed meanings: one operation of the table computes something else, and the tests that use it have to notice.

As a command it runs any suite twice: as it is, noting which tests use which operations, and then once for each operation with
that operation perturbed, only the tests that use it::

    python tests/perturbation.py --ops add,exp --most 20 DIRECTORY -- -p tilelang_npu.pytest_plugin

It prints a row per operation: tests that use it and passed, and how many of them fail when it is perturbed. The exit code
is 1 if some operation can be perturbed without a test failing. As a pytest plugin (``-p perturbation``) it adds
``--perturb NAME`` and ``--perturb-report FILE``. ``perturbed("add")`` does it inside of a test.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from tilelang_npu import ops
from tilelang_npu.ops import meaning, recipes
from tilelang_npu.ops.spec import Step
from tilelang_npu.transforms.tile.expand_composites import ExpandComposite

_USED: set[str] = set()


def disturb(array: Any) -> None:
    """Changes every element by more than a test's tolerance: floats x to 1.25 x + 0.5 (to 0 if that is not finite),
    integers and bools to not x."""
    if isinstance(array, tuple):
        for part in array:
            disturb(part)
    elif array.dtype.kind in "iub":
        np.invert(array, out=array)
    else:
        with np.errstate(all="ignore"):
            changed = (array.astype(np.float32) * np.float32(1.25) + np.float32(0.5)).astype(array.dtype)
        array[...] = np.where(np.isfinite(changed.astype(np.float32)), changed, np.zeros((), array.dtype))


def _noted(name: str, run: Callable[..., None], outputs: Callable[..., Any] | None) -> Callable[..., None]:
    def noted(*operands: Any) -> None:
        _USED.add(name)
        run(*operands)
        if outputs is not None:
            disturb(outputs(operands))

    return noted


def _kernel(name: str | None) -> Callable[..., Any]:
    original = meaning.kernel

    def kernel(op: ops.Operation, *rest: Any, **more: Any) -> Any:
        return _noted(op.name, original(op, *rest, **more), (lambda operands: operands[0]) if op.name == name else None)

    return kernel


def _expand_composite() -> Callable[..., None]:
    original = ExpandComposite.match_and_rewrite

    def match_and_rewrite(pattern: ExpandComposite, op: Operation, rewriter: PatternRewriter) -> None:
        original(pattern, op, rewriter)
        if rewriter.has_done_action:
            _USED.add(op.entry().name)

    return match_and_rewrite


@contextmanager
def _attribute(entry: ops.Operation, attribute: str, value: Any) -> Iterator[None]:
    """Another value of a field of an entry, which is frozen."""
    old = getattr(entry, attribute)
    object.__setattr__(entry, attribute, value)
    try:
        yield
    finally:
        object.__setattr__(entry, attribute, old)


@contextmanager
def perturbed(name: str | None) -> Iterator[set[str]]:
    """Inside, the operation computes something else (None: nothing does); yields the names of the operations that run.

    Kernels must be compiled inside. A composite gets a further step; the others have their results changed.
    """
    _USED.clear()
    with ExitStack() as stack:
        for entry in ops.operations().values():
            if isinstance(entry, ops.Structured):
                outputs = (lambda operands: tuple(operands[0])) if entry.name == name else None
                stack.enter_context(_attribute(entry, "meaning", _noted(entry.name, entry.meaning, outputs)))
            elif isinstance(entry, ops.Composite) and entry.name == name:
                more = (*entry.expansion, Step("add", ("dst", 1.0), "dst"))
                stack.enter_context(_attribute(entry, "expansion", more))
        stack.enter_context(mock.patch.dict(recipes._MADE, clear=True))
        stack.enter_context(mock.patch.dict(recipes._RECIPES))  # it has ids of objects that are freed afterwards
        stack.enter_context(mock.patch.object(meaning, "kernel", _kernel(name)))
        stack.enter_context(mock.patch.object(meaning, "ufunc", return_value=None))
        stack.enter_context(mock.patch.object(ExpandComposite, "match_and_rewrite", _expand_composite()))
        yield _USED


# --- the pytest plugin ---------------------------------------------------------------------------------------------------


class _Reporter:
    """Writes, for each test, its outcome and the operations that ran in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, str] = {}
        self.found: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        _USED.clear()
        name = self.names[item.nodeid] = "::".join([str(item.path), *item.nodeid.split("::")[1:]])
        yield
        self.found[name] = {"ops": sorted(_USED), "passed": True}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.found.setdefault(self.names.get(report.nodeid, report.nodeid), {"ops": []})["passed"] = False

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.found), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--perturb", default=None, metavar="NAME", help="the operation that computes something else")
    parser.addoption("--perturb-report", default=None, metavar="FILE", help="write each test's outcome and operations as JSON")


def pytest_configure(config: pytest.Config) -> None:
    name, report = config.getoption("--perturb"), config.getoption("--perturb-report")
    if name is not None and name not in ops.operations():
        raise pytest.UsageError(f"there is no operation {name!r}")
    if name is not None or report is not None:
        stack = ExitStack()
        stack.enter_context(perturbed(name))
        config.add_cleanup(stack.close)
    if report is not None:
        config.pluginmanager.register(_Reporter(Path(report)))


# --- the command ---------------------------------------------------------------------------------------------------------


def _run(tests: Sequence[str], arguments: Sequence[str], where: str, name: str | None) -> dict[str, dict[str, Any]]:
    """Runs tests in a separate process, and returns the text of the reporter."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        here, cache = str(Path(__file__).parent), str(Path(folder, "cache"))
        paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "perturbation",
                   "--continue-on-collection-errors", *arguments,
                   "--perturb-report", str(report), *(["--perturb", name] if name else []), *tests]
        done = subprocess.run(command, cwd=where, env={**os.environ, "PYTHONPATH": paths, "TILELANG_CACHE_DIR": cache},
                              capture_output=True, text=True, check=False)
        if not report.exists():
            raise SystemExit(f"pytest did not run:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        found: dict[str, dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))
        return found


def _users(found: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    return [test for test, facts in found.items() if facts["passed"] and name in facts["ops"]]


def main() -> int:
    """The command; see the module's text."""
    parser = argparse.ArgumentParser(description="Perturb operations one at a time and see which tests notice.")
    parser.add_argument("where", type=Path, help="a file or directory of tests")
    parser.add_argument("--ops", default="", help="names, separated by commas; default: all that the tests use")
    parser.add_argument("--most", type=int, default=20, help="largest number of tests for each operation")
    parser.add_argument("--json", type=Path, help="write the table there too")
    parser.epilog = "The arguments after -- are those of pytest."
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    args, arguments = parser.parse_args(words[:split]), words[split + 1:]
    where = args.where.resolve()
    folder = where if where.is_dir() else where.parent
    plain = _run([str(where)], arguments, str(folder), None)
    used = sorted({name for facts in plain.values() for name in facts["ops"]})
    names = [name for name in args.ops.split(",") if name] or used
    rows, missed = [], 0
    print(f"{'operation':<16}{'tests that use it':>18}{'run':>6}{'failed':>8}")
    for name in names:
        users = _users(plain, name)
        chosen = users[:: max(1, -(-len(users) // args.most))]
        outcome = _run(chosen, arguments, str(folder), name) if chosen else {}
        failed = sum(not facts["passed"] for facts in outcome.values())
        missed += bool(chosen) and not failed
        rows.append({"operation": name, "users": len(users), "run": len(outcome), "failed": failed})
        print(f"{name:<16}{len(users):>18}{len(outcome):>6}{failed:>8}", flush=True)
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
