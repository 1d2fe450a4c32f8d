"""Checks a script for an editor: ``python -m tilelang_npu.cli.editor_check FILE``, which the language server runs in a process.

The process runs the script as ``check`` does, and prints a JSON object a line to its standard output, each as soon as it is
known. The script's own output, also that of processes that the script starts, goes to standard error. The objects are:

- ``{"kind": "diagnostics", "diagnostics": [...]}``: the findings, errors and warnings, with ``file``, ``line``, ``column``,
  ``end_column`` (from 1; None if unknown), ``severity`` (``error``, ``warning`` or ``information``), ``code``, ``message``,
  ``fix`` and ``related`` (further lines, each with a ``message``);
- ``{"kind": "kernels", "kernels": [...], "lines": [...]}``: for each kernel its ``name``, ``file``, ``line`` and modelled time
  as ``text``, and for each line a ``text`` in Markdown;
- ``{"kind": "edits", "edits": [...]}``: the edits that ``kernel.explain()`` tried and that make a kernel faster: ``title``, and
  ``changes`` with ``file``, ``line``, ``before`` and ``after``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tilelang_npu.cli import loaded
from tilelang_npu.cli.check import ScriptCheck, check_script
from tilelang_npu.cli.script import chosen
from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.checks.sanitizer import Sanitizer, unallowed
from tilelang_npu.runtime.reports.static_checker import Checker
from tilelang_npu.runtime.settings.log import TileWarning

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding

Json = dict[str, object]


def main(words: Sequence[str] | None = None) -> int:
    """Checks the script that the arguments name, prints the objects, and returns the exit code: 0 also if something was found.

    Args:
        words: the command line arguments without the program's name; None for ``sys.argv[1:]``.
    """
    parser = argparse.ArgumentParser(prog="python -m tilelang_npu.cli.editor_check")
    parser.add_argument("file")
    parser.add_argument("--chip")
    parser.add_argument("--load", action="append", default=[])
    args = parser.parse_args(words)
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # prints of the script's own processes, too, are not to be read as objects
    with loaded(args.load), chosen(chip=args.chip):
        for made in results(args.file):
            _write(output, made)
    return 0


def _write(output: TextIO, made: Json) -> None:
    output.write(json.dumps(made) + "\n")
    output.flush()


def results(file: str) -> Iterator[Json]:
    """Runs and checks a script, and yields the objects that the process prints.

    Args:
        file: the path of the script.
    """
    warned: list[warnings.WarningMessage]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", TileWarning)
        try:
            done = check_script(file, lambda wanted: Checker(Sanitizer([]), {}, wanted))
        except TileError as error:
            yield {"kind": "diagnostics", "diagnostics": [_of_error(error, file), *_of_warnings(warned, file)]}
            return
    yield {"kind": "diagnostics", "diagnostics": [*_of_check(done, file), *_of_warnings(warned, file)]}
    launches = [(kernel, done.checker.launch_of(kernel)) for kernel in done.kernels]
    yield {"kind": "kernels", "kernels": [_kernel(kernel, launch) for kernel, launch in launches],
           "lines": [line for kernel, launch in launches for line in _lines(kernel, launch)]}
    yield {"kind": "edits", "edits": list(_edits(done.kernels))}


# -- diagnostics -------------------------------------------------------------------------------------------------------


def _of_check(done: ScriptCheck, file: str) -> Iterator[Json]:
    for finding in unallowed(done.checker.session.findings):
        yield _of_finding(finding, file)
    for error in [*done.errors, *(error for look in done.checker.looks for error in look.done.errors)]:
        yield _of_error(error, file)
    ended = done.outcome.error
    if ended is not None and not isinstance(ended, TileError) and done.code:
        yield _of_exception(ended, file)


def _of_finding(finding: Finding, file: str) -> Json:
    related = []
    for hazard in finding.hazards:
        for site in (hazard.first, hazard.second):
            if site is not None and site.location is not None and site.location != finding.location:
                row = {**_place(site.location, file), "message": f"{site.op}, {site.pipe} of {site.core}"}
                if row not in related:
                    related.append(row)
    first = finding.hazard
    missing = first.missing if first.kind in ("RAW", "WAR", "WAW") else ""
    fix = "; ".join(filter(None, [missing and f"add {missing}", first.near]))
    return _diagnostic(finding.location, file, "error", finding.code, str(finding), fix, related)


def _of_error(error: TileError, file: str) -> Json:
    text = "\n".join([error.message, *error.notes])
    severity = "information" if error.code == "T803" else "error"  # a script without kernels is no mistake
    return _diagnostic(error.location, file, severity, error.code, text, error.help)


def _of_exception(error: BaseException, file: str) -> Json:
    """Returns the diagnostic of an exception that ended the script, at the script's line that raised it."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        place = Location(error.filename, error.lineno or 1, error.offset or 0)
        return _diagnostic(place, file, "error", "python", f"SyntaxError: {error.msg}")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == Path(file)]
    place = Location(file, own[-1].lineno or 1) if own else Location(file, 1)
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    note = "A check computes no values, and did not go on after this line."
    return _diagnostic(place, file, "error", "python", f"{text}\n{note}")


def _of_warnings(warned: Iterable[warnings.WarningMessage], file: str) -> Iterator[Json]:
    seen = set()
    for one in warned:
        if isinstance(one.message, TileWarning) and (key := (str(one.message), one.filename, one.lineno)) not in seen:
            seen.add(key)
            code, colon, text = str(one.message).partition(": ")
            place = Location(one.filename, one.lineno) if Path(one.filename).is_file() else None
            yield _diagnostic(place, file, "warning", code if colon else "", text if colon else code)


def _diagnostic(place: Location | None, file: str, severity: str, code: str, message: str, fix: str = "",
                related: Sequence[Json] = ()) -> Json:
    return {**_place(place, file), "severity": severity, "code": code, "message": message, "fix": fix, "related": list(related)}


def _place(place: Location | None, file: str) -> Json:
    """Returns a place as data; the first line of the script for an error without a place."""
    if place is None:
        return {"file": file, "line": 1, "column": None, "end_column": None}
    return {"file": str(Path(place.file).absolute()), "line": place.line, "column": place.column or None,
            "end_column": place.end_column or None}


# -- facts and edits ---------------------------------------------------------------------------------------------------


def _kernel(kernel: JITKernel, launch: AnyLaunch | None) -> Json:
    from tilelang_npu.simulator.result.report import time_text

    code = kernel.prim_func.function.__code__
    if launch is None:
        text = f"{kernel.name}: the time depends on data or was not modelled"
    else:
        bounds = "; ".join(dict.fromkeys(part.bound_by for part in launch.parts))
        text = f"{kernel.name}: {time_text(launch.time_us, launch.error)} modelled, bound by {bounds}"
    return {"name": kernel.name, "file": str(Path(code.co_filename).absolute()), "line": code.co_firstlineno, "text": text}


def _lines(kernel: JITKernel, launch: AnyLaunch | None) -> Iterator[Json]:
    from tilelang_npu.runtime.reports.line_facts import line_facts

    if kernel.is_interpreted:
        return
    for one in line_facts(kernel, launch):
        yield {"file": str(Path(one.file).absolute()), "line": one.line, "text": one.markdown()}


def _edits(kernels: Iterable[JITKernel]) -> Iterator[Json]:
    for kernel in kernels:
        if kernel.is_interpreted:
            continue
        for edit in kernel.explain().tried:
            if edit.changes:
                title = f"{kernel.name}: {edit.text}, {edit.before:.1f} us become {edit.after:.1f} ({-edit.gain:+.0%})"
                yield {"title": title, "changes": [{**change.to_dict(), "file": str(Path(change.file).absolute())}
                                                   for change in edit.changes]}


if __name__ == "__main__":
    sys.exit(main())
