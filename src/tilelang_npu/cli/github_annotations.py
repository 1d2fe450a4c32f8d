"""The output of ``check --format github``: workflow commands of GitHub, which shows them as annotations of the source.

Paths are relative to the root of the checkout, see :mod:`tilelang_npu.runtime.reports.source_root`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.checks.sanitizer import unallowed
from tilelang_npu.runtime.reports.source_root import path_below_root, source_root
from tilelang_npu.simulator.sanitizer.findings import Finding

if TYPE_CHECKING:
    from tilelang_npu.diagnostic_codes import Code

__all__ = ["lines"]


def lines(findings: Sequence[Finding], errors: Sequence[TileError]) -> Iterator[str]:
    """Yields a workflow command for each finding that the user has not allowed, and for each error."""
    for finding in unallowed(findings):
        yield _line(finding.code, finding.location, str(finding))
    for error in errors:
        notes = [*error.notes, *([f"help: {error.help}"] if error.help else [])]
        yield _line(error.code, error.location, "\n".join([error.message, *notes]))


def _line(code: Code, place: Location | None, text: str) -> str:
    where = {}
    if place is not None:
        path = path_below_root(place.file, source_root()) or Path(place.file)
        where = {"file": path.as_posix(), "line": str(place.line)} | ({"col": str(place.column)} if place.column else {})
    properties = ",".join(f"{name}={_escaped(value, property_too=True)}" for name, value in (where | {"title": code}).items())
    return f"::error {properties}::{_escaped(text)}"


def _escaped(text: str, *, property_too: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property_too else text
