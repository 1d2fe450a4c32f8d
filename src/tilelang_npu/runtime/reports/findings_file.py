"""Writes findings of the sanitizer to files for other programs: in a JSON format of this package, or as SARIF 2.1.0 (OASIS),
which code hosts and editors display.

A file name that ends in ``.sarif`` or ``.sarif.json`` selects SARIF, any other name in ``.json`` selects JSON. Both formats
also contain the findings that the user allows, with the reasons, and errors that ended a run, such as a deadlock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from tilelang_npu import __version__
from tilelang_npu.errors import Location, TileError, render
from tilelang_npu.runtime.reports.source_root import path_below_root, source_root
from tilelang_npu.runtime.settings.file_writing import write_whole
from tilelang_npu.simulator.sanitizer.findings import Finding
from tilelang_npu.simulator.sanitizer.hazard import CODES, Hazard, Site

Json = dict[str, object]
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
"""The schema of version 2.1.0, at its place in the standard."""
_ROOT = "SRCROOT"
"""The name, in a SARIF log, of the directory that the paths of source files are relative to."""


def check_name(path: str) -> None:
    """Checks that the name of a report file ends in ``.json`` or ``.sarif``.

    Raises:
        TileError: T416 the name has another ending.
    """
    if not path.endswith((".json", ".sarif")):
        raise TileError(f"{path} is not a name for a report file", code="T416",
                        help="choose a name that ends in .json or .sarif")


def write_report(path: str, as_json: Callable[[], Json], as_sarif: Callable[[], Json]) -> None:
    """Writes a report file atomically, in the format that the ending of the file's name selects.

    Args:
        path: the file.
        as_json: returns the report in the JSON format of this package.
        as_sarif: returns the report as a SARIF log.

    Raises:
        TileError: T416 the name ends neither in .json nor in .sarif.
        OSError: the file cannot be written.
    """
    check_name(path)
    made = as_sarif() if path.endswith((".sarif", ".sarif.json")) else as_json()
    write_whole(path, json.dumps(made, indent=1) + "\n")


def write_findings(path: str, findings: Sequence[Finding], errors: Sequence[TileError]) -> None:
    """Writes a report of the sanitizer's findings, see :func:`write_report`.

    Args:
        path: the file; its ending selects the format.
        findings: the findings, including those that the user allows.
        errors: other errors, such as the error that ended the run, or an allowance that matched no hazard.
    """
    write_report(path, lambda: as_json(findings, errors), lambda: as_sarif(findings, errors))


# -- JSON --------------------------------------------------------------------------------------------------------------


def as_json(findings: Iterable[Finding], errors: Iterable[TileError]) -> Json:
    """Returns findings and errors as data in the JSON format of this package.

    The entry ``version`` is the version of the format, which increases when the meaning of a key changes.
    """
    return {"version": 1, "tool": "tilelang_npu", "tool_version": __version__,
            "findings": [_finding(finding) for finding in findings], "errors": [_error(error) for error in errors]}


def _finding(finding: Finding) -> Json:
    allowed = None if finding.allowed is None else {
        "reason": finding.allowed, "where": "source" if finding.in_source else "option"}
    return {"kernel": finding.kernel, "chip": finding.chip, **_hazard(finding.hazard),
            "others": [_hazard(hazard) for hazard in finding.others], "allowed": allowed}


def _hazard(hazard: Hazard) -> Json:
    return {"code": hazard.code, "kind": hazard.kind, "text": str(hazard), "first": _site(hazard.first),
            "second": None if hazard.second is None else _site(hazard.second), "memory": hazard.memory, "buffer": hazard.buffer,
            "start": hazard.start, "end": hazard.end, "missing": hazard.missing, "near": hazard.near, "block": hazard.block}


def _site(site: Site) -> Json:
    return {"op": site.op, "pipe": site.pipe, "core": site.core, "iteration": site.iteration, "operand": site.operand,
            **_place(site.location)}


def _place(location: Location | None) -> Json:
    return {"file": None, "line": None, "column": None} if location is None else {
        "file": location.file, "line": location.line, "column": location.column or None}


def _error(error: TileError) -> Json:
    return {"code": error.code, "text": render(error), "message": error.message, "notes": list(error.notes), "help": error.help,
            **_place(error.location)}


# -- SARIF -------------------------------------------------------------------------------------------------------------


def as_sarif(findings: Sequence[Finding], errors: Sequence[TileError]) -> Json:
    """Returns findings and errors as the data of a SARIF log."""
    named = {**CODES, "S301": "cores that wait for ever"}
    codes = sorted({finding.code for finding in findings} | {error.code for error in errors})
    rules = [{"id": code, "shortDescription": {"text": named.get(code, "mistake in a kernel or a launch")},
              "defaultConfiguration": {"level": "error"}} for code in codes]
    number = {code: place for place, code in enumerate(codes)}
    results = [*(_result(finding, number[finding.code]) for finding in findings),
               *(_error_result(error, number[error.code]) for error in errors)]
    return sarif_log(rules, results)


def sarif_log(rules: Sequence[Mapping[str, object]], results: Sequence[Mapping[str, object]]) -> Json:
    """Returns the data of a SARIF 2.1.0 log with one run of this package.

    Args:
        rules: the descriptions of the kinds of results.
        results: the results.
    """
    driver = {"name": "tilelang_npu", "version": __version__, "semanticVersion": __version__, "rules": rules}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints",
                      "originalUriBaseIds": {_ROOT: {"uri": source_root().as_uri().rstrip("/") + "/"}}, "results": results}]}


def _result(finding: Finding, rule: int) -> Json:
    sites = [site for hazard in finding.hazards for site in (hazard.second, hazard.first) if site is not None]
    related = []
    for site in sites:
        place = sarif_location(site.location, f"{site.op}, {site.pipe} of {site.core}, iteration {site.iteration}")
        if place is not None and place not in related:
            related.append(place)
    result: Json = {"ruleId": finding.code, "ruleIndex": rule, "level": "error", "message": {"text": str(finding)},
                    "partialFingerprints": {"cause/v1": _fingerprint(finding)},
                    "properties": {"kernel": finding.kernel, "chip": finding.chip}}
    place = sarif_location(finding.location)
    if place is not None:
        result["locations"] = [place]
    if related:
        result["relatedLocations"] = [{**one, "id": place} for place, one in enumerate(related)]
    if finding.allowed is not None:
        kind = "inSource" if finding.in_source else "external"
        result["suppressions"] = [{"kind": kind, "status": "accepted", "justification": finding.allowed}]
    return result


def _error_result(error: TileError, rule: int) -> Json:
    result: Json = {"ruleId": error.code, "ruleIndex": rule, "level": "error", "message": {"text": render(error)}}
    place = sarif_location(error.location)
    if place is not None:
        result["locations"] = [place]
    return result


def sarif_location(location: Location | None, message: str = "") -> Json | None:
    """Returns a source location as the data of a SARIF location; None if ``location`` is None.

    The path of a file below the root of the checkout is relative to the root, whose place the log's ``originalUriBaseIds``
    has; the path of another file is absolute.

    Args:
        location: the location.
        message: the message of the SARIF location; empty for none.
    """
    if location is None:
        return None
    below = path_below_root(location.file, source_root())
    artifact: Json = {"uri": Path(location.file).absolute().as_uri()} if below is None else {
        "uri": quote(below.as_posix()), "uriBaseId": _ROOT}
    region: Json = {"startLine": max(location.line, 1)}
    if location.column:
        region["startColumn"] = location.column
        if location.end_column > location.column:
            region["endColumn"] = location.end_column
    text = location.source()
    if text:
        region["snippet"] = {"text": text}
    place: Json = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
    if message:
        place["message"] = {"text": message}
    return place


def _fingerprint(finding: Finding) -> str:
    """Returns a digest of codes, ops, pipes and the lines' texts, which stays the same when earlier lines are added or
    removed."""
    parts = [finding.kernel, finding.code]
    for site in (finding.hazard.first, finding.hazard.second):
        if site is not None:
            text = site.location.source().strip() if site.location is not None else ""
            parts += [site.op, site.pipe, site.core[:3], text]
    return sha256("\0".join(parts).encode()).hexdigest()[:32]
