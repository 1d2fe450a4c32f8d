"""The options that every command with a sanitizer has, and what it prints and writes behind a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tilelang_npu.cli.colours import painted
from tilelang_npu.errors import TileError, render
from tilelang_npu.runtime.checks.allowances import parse
from tilelang_npu.runtime.checks.sanitizer import Sanitizer, unallowed
from tilelang_npu.simulator.sanitizer.findings import Finding

__all__ = ["FLAGS", "VALUED", "add_sanitizer", "conclude", "sanitizer_of", "show"]

VALUED, FLAGS = ("--allow", "--report"), ("--sanitize",)
"""The options with a value, and those without."""


def add_sanitizer(parser: argparse.ArgumentParser, *, always: bool = False) -> None:
    """Declare the options.

    Args:
        parser: of the command.
        always: the command does nothing else, and needs no ``--sanitize``.
    """
    if not always:
        parser.add_argument("--sanitize", action="store_true",
                            help="look for races, broken flags and results of unwritten bytes; exit code 1 if there are any")
    parser.add_argument("--allow", metavar="CODE:FILE:LINE=REASON", action="append", default=[],
                        help="let a hazard at that line pass, for that reason; may be given more than once. In the source,"
                        " `# tilelang: allow CODE -- REASON` behind the line does the same")
    parser.add_argument("--report", metavar="FILE", help="write what is found to FILE.json, or to FILE.sarif as SARIF 2.1.0")


def sanitizer_of(args: argparse.Namespace, *, always: bool = False) -> Sanitizer | None:
    """The session that the options ask for; None where none is.

    Raises:
        TileError: T414 an allowance cannot be read or has no reason; T416 the report's name says no format; T417 an option
            that does nothing without ``--sanitize``.
    """
    if not always and not args.sanitize:
        idle = next((name for name in VALUED if getattr(args, name[2:])), None)
        if idle is not None:
            raise TileError(f"{idle} does nothing without --sanitize", code="T417", help=f"add --sanitize, or remove {idle}")
        return None
    if args.report is not None:
        from tilelang_npu.runtime.reports.findings_file import check_name

        check_name(args.report)
    return Sanitizer([parse(option) for option in args.allow])


def show(findings: Sequence[Finding]) -> None:
    """Print findings; of those that are let pass one line each."""
    for finding in findings:
        if finding.allowed is None:
            print(painted(f"\n{finding}", sys.stdout))
        else:
            print(f"\nallowed[{finding.code}]: {finding.location or finding.hazard.first.op}: {finding.allowed}")


def conclude(session: Sanitizer, report: str | None, ended: BaseException | Sequence[TileError] | None = None) -> int:
    """What comes at the end of a session: allowances that let nothing pass, the report, and the exit code.

    Args:
        session: the session.
        report: the file to write, or None.
        ended: what the run ended with, or errors beside the findings; they are in the report too, and as something may not have
            been reached, allowances are not judged.
    """
    errors = [ended] if isinstance(ended, TileError) else list(ended) if isinstance(ended, Sequence) else []
    idle = [] if ended else session.idle()
    if report is not None:
        from tilelang_npu.runtime.reports.findings_file import write_findings

        write_findings(report, session.findings, [*errors, *idle])
    sys.stdout.flush()
    for error in idle:
        print(painted(f"\n{render(error)}", sys.stderr), file=sys.stderr)
    return int(bool(unallowed(session.findings) or idle))
