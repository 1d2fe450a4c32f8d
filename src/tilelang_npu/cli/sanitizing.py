"""The options and the output of commands with a sanitizer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tilelang_npu.display import painted
from tilelang_npu.errors import TileError, render
from tilelang_npu.runtime.checks.allowances import parse
from tilelang_npu.runtime.checks.sanitizer import Sanitizer, unallowed
from tilelang_npu.simulator.sanitizer.findings import Finding

__all__ = ["FLAGS", "VALUED", "add_sanitizer", "conclude", "sanitizer_of", "show"]

VALUED, FLAGS = ("--allow", "--report"), ("--sanitize",)
"""The options with a value, and those without."""


def add_sanitizer(parser: argparse.ArgumentParser, *, always: bool = False) -> None:
    """Adds the options.

    Args:
        parser: the command's parser.
        always: whether the command always sanitizes, and has no ``--sanitize``.
    """
    if not always:
        parser.add_argument("--sanitize", action="store_true",
                            help="look for races, broken flags and results of unwritten bytes; exit code 1 if there are any")
    parser.add_argument("--allow", metavar="CODE:FILE:LINE=REASON", action="append", default=[],
                        help="allow a hazard at that line, for that reason; may be given more than once. In the source,"
                        " `# tilelang: allow CODE -- REASON` at the end of the line does the same")
    parser.add_argument("--report", metavar="FILE", help="write what is found to FILE.json, or to FILE.sarif as SARIF 2.1.0")


def sanitizer_of(args: argparse.Namespace, *, always: bool = False) -> Sanitizer | None:
    """The session that the options ask for; None where they ask for none.

    Raises:
        TileError: T414, an allowance cannot be read or has no reason; T416, the report's name has no known format; T417, an
            option that has no effect without ``--sanitize``.
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
    """Prints findings; an allowed one takes one line."""
    for finding in findings:
        if finding.allowed is None:
            print(painted(f"\n{finding}", sys.stdout))
        else:
            print(f"\nallowed[{finding.code}]: {finding.location or finding.hazard.first.op}: {finding.allowed}")


def conclude(session: Sanitizer, report: str | None, ended: BaseException | Sequence[TileError] | None = None) -> int:
    """Ends a session: prints allowances that were not used, writes the report, and returns the exit code.

    Args:
        session: the session.
        report: the file to write, or None.
        ended: the exception that ended the run, or errors besides the findings. They are in the report. As a part of the kernel
            may not have run, unused allowances are then not reported.
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
