"""The sanitizer's command line options, and the output of its findings."""

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
"""The sanitizer's options with a value, and its options without a value."""


def add_sanitizer(parser: argparse.ArgumentParser, *, always: bool = False) -> None:
    """Adds the sanitizer's options to the parser of a command.

    Args:
        parser: the command's parser.
        always: whether the command always sanitizes, so that it has no option ``--sanitize``.
    """
    if not always:
        parser.add_argument("--sanitize", action="store_true",
                            help="check every launch for races, broken flags and results of unwritten bytes; the exit code is 1"
                                 " if something is found")
    parser.add_argument("--allow", metavar="CODE:FILE:LINE=REASON", action="append", default=[],
                        help="allow the hazard CODE at a source line, for a reason; may be given several times. The comment"
                        " `# tilelang: allow CODE -- REASON` at the end of the line does the same")
    parser.add_argument("--report", metavar="FILE", help="write the findings to FILE.json, or to FILE.sarif as SARIF 2.1.0")


def sanitizer_of(args: argparse.Namespace, *, always: bool = False) -> Sanitizer | None:
    """Returns a sanitizer with the settings of the command line; None if the command line does not request a sanitizer.

    Args:
        args: the arguments of the command.
        always: whether the command always sanitizes.

    Raises:
        TileError: T414, an ``--allow`` cannot be read or has no reason; T416, the format of the report is unknown; T417, an
            option has no effect without ``--sanitize``.
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
    """Prints findings. A finding that the user has allowed is printed as one line."""
    for finding in findings:
        if finding.allowed is None:
            print(painted(f"\n{finding}", sys.stdout))
        else:
            print(f"\nallowed[{finding.code}]: {finding.location or finding.hazard.first.op}: {finding.allowed}")


def conclude(session: Sanitizer, report: str | None, ended: BaseException | Sequence[TileError] | None = None) -> int:
    """Ends the use of a sanitizer: writes the report, prints each ``--allow`` that matched no finding, and returns the exit
    code.

    The exit code is 1 if there is a finding that is not allowed, or an ``--allow`` that matched no finding, otherwise 0.

    Args:
        session: the sanitizer.
        report: the file of the report; None for no report.
        ended: the exception that ended the run, or other errors, which are added to the report. Then possibly not all of the
            kernel has run, so an ``--allow`` without a finding is not reported.
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
