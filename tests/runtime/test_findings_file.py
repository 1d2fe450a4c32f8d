"""Reports for other programs: JSON, and SARIF 2.1.0, checked against the standard's rules for its objects."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.reports.findings_file import as_sarif, write_findings
from tilelang_npu.simulator.sanitizer.findings import Finding
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Site

# The rules of sections 3.13 to 3.58 of the standard for the written objects: required and optional properties, each with its
# kind: a type, a set of words, another object, or a list of one of these.
URI = re.compile(r"([a-z][a-z0-9+.-]*:)?[^\s\\]*")
ONE, ZERO, MINUS = range(1, 1 << 40), range(1 << 40), range(-1, 1 << 40)
RULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "log": ({"version": {"2.1.0"}, "runs": ["run"]}, {"$schema": URI}),
    "run": ({"tool": "tool"}, {"results": ["result"], "columnKind": {"utf16CodeUnits", "unicodeCodePoints"},
                               "originalUriBaseIds": dict}),
    "tool": ({"driver": "component"}, {}),
    "component": ({"name": str}, {"version": str, "semanticVersion": re.compile(r"\d+\.\d+\.\d+.*"), "informationUri": URI,
                                  "rules": ["rule"]}),
    "rule": ({"id": str}, {"shortDescription": "text", "defaultConfiguration": "configuration", "helpUri": URI}),
    "configuration": ({}, {"level": {"none", "note", "warning", "error"}}),
    "text": ({"text": str}, {}),
    "result": ({"message": "text"}, {
        "ruleId": str, "ruleIndex": MINUS, "level": {"none", "note", "warning", "error"}, "locations": ["location"],
        "relatedLocations": ["location"], "suppressions": ["suppression"], "partialFingerprints": dict, "properties": dict}),
    "location": ({}, {"id": MINUS, "physicalLocation": "physical", "message": "text"}),
    "physical": ({"artifactLocation": "artifact"}, {"region": "region"}),
    "artifact": ({"uri": URI}, {"uriBaseId": str}),
    "region": ({"startLine": ONE}, {"startColumn": ONE, "endColumn": ONE, "snippet": "text"}),
    "suppression": ({"kind": {"inSource", "external"}},
                    {"status": {"accepted", "underReview", "rejected"}, "justification": str}),
}
UNIQUE = {"rules", "relatedLocations", "suppressions"}


def check(name: str, thing: Any) -> None:
    """Hold an object against the table."""
    required, optional = RULES[name]
    assert isinstance(thing, dict)
    assert required.keys() <= thing.keys() <= {**required, **optional}.keys(), name
    for key, value in thing.items():
        wanted = {**required, **optional}[key]
        for one in value if isinstance(wanted, list) else [value]:
            check_value(key, one, wanted[0] if isinstance(wanted, list) else wanted)
        if key in UNIQUE:
            texts = [json.dumps(one, sort_keys=True) for one in value]
            assert len(set(texts)) == len(texts), key


def check_value(key: str, value: Any, wanted: Any) -> None:
    if isinstance(wanted, str):
        check(wanted, value)
    elif isinstance(wanted, re.Pattern):
        assert wanted.fullmatch(value), (key, value)
    elif isinstance(wanted, (set, range)):
        assert value in wanted, (key, value)
    else:
        assert isinstance(value, wanted) and value, (key, value)


@pytest.fixture
def findings(tmp_path: Path) -> list[Finding]:
    """A race with two pairs, a flag that is let pass, a hazard of a text without lines."""
    source = tmp_path / "my kernel.py"
    source.write_text("a\nload(a)\nadd(a, b)\n")
    load, add = (Site(op, Location(str(source), line, 1), pipe, "AIV0", 1, "dst", line)
                 for op, line, pipe in (("load", 2, "MTE2"), ("vadd", 3, "V")))
    race = Hazard("S201", "RAW", load, add, "UB", 0, 64, "an event MTE2 -> V", 3, "a")
    flag = Hazard("S211", "flag", load, None, "", 0, 0, "EVENT_ID0 for V is set and never waited for", 0)
    nowhere = Hazard("S202", "WAR", Site("fixpipe", None, "FIX", "AIC", 0), Site("load", None, "MTE2", "AIV1", 0), "GM", 8, 9,
                     "a flag", 0)
    return [Finding(race, (Hazard("S201", "WAW", load, load, "UB", 0, 64, "", 0),), "k", "Ascend910B2"),
            Finding(flag, (), "k", "Ascend910B2", "the next kernel takes it", True), Finding(nowhere, allowed="no")]


ERROR = TileError("block 0: AIC waits", code="S301", location=Location("on_no_disk.py", 7, 3, 9), notes=["AIC"], help="set it")


def test_sarif_is_what_the_standard_asks_for(findings: list[Finding]) -> None:
    log = as_sarif(findings, [ERROR, TileError("nothing", code="T415")])
    check("log", json.loads(json.dumps(log)))
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["S201", "S202", "S211", "S301", "T415"]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    race, flag, nowhere, hang, idle = run["results"]
    place = race["locations"][0]["physicalLocation"]
    assert re.fullmatch(r"file:///.*/my%20kernel\.py", place["artifactLocation"]["uri"])
    assert place["region"] == {"startLine": 3, "startColumn": 1, "snippet": {"text": "add(a, b)"}}
    assert [one["physicalLocation"]["region"]["startLine"] for one in race["relatedLocations"]] == [3, 2]
    assert race["message"]["text"] == str(findings[0])
    assert "suppressions" not in race
    assert flag["suppressions"] == [{"kind": "inSource", "status": "accepted", "justification": "the next kernel takes it"}]
    assert nowhere["suppressions"][0]["kind"] == "external" and "locations" not in nowhere
    assert hang["locations"][0]["physicalLocation"]["region"] == {"startLine": 7, "startColumn": 3, "endColumn": 9}
    assert "locations" not in idle


def test_sarif_of_nothing() -> None:
    log = as_sarif([], [])
    check("log", log)
    assert log["runs"][0]["results"] == []


def test_a_fingerprint_does_not_depend_on_lines_above(findings: list[Finding], tmp_path: Path) -> None:
    before = as_sarif(findings, [])["runs"][0]["results"]
    other = tmp_path / "moved.py"
    other.write_text("\n\n\nload(a)\nadd(a, b)\n")
    sites = [site._replace(location=Location(str(other), site.location.line + 2)) for site in
             (findings[0].hazard.first, findings[0].hazard.second)]
    moved = Finding(Hazard("S201", "RAW", *sites, "UB", 64, 128, "an event", 9), (), "k")
    after = as_sarif([moved], [])["runs"][0]["results"][0]
    assert after["partialFingerprints"] == before[0]["partialFingerprints"] != before[1]["partialFingerprints"]


def test_json_has_all(findings: list[Finding], tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    write_findings(str(path), findings, [ERROR])
    made = json.loads(path.read_text())
    assert (made["version"], made["tool"]) == (1, "tilelang_npu")
    race, flag, nowhere = made["findings"]
    assert (race["kernel"], race["code"], race["kind"], race["buffer"], race["start"], race["end"]) == (
        "k", "S201", "RAW", "a", 0, 64)
    assert (race["first"]["line"], race["second"]["line"], race["second"]["pipe"]) == (2, 3, "V")
    assert race["allowed"] is None and len(race["others"]) == 1
    assert flag["allowed"] == {"reason": "the next kernel takes it", "where": "source"} and flag["second"] is None
    assert nowhere["allowed"]["where"] == "option" and nowhere["first"]["file"] is None
    assert (made["errors"][0]["code"], made["errors"][0]["line"], made["errors"][0]["help"]) == ("S301", 7, "set it")


@pytest.mark.parametrize("below", ["", "sub folder"])
def test_paths_are_relative_to_the_checkout(below: str, findings: list[Finding], tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub folder").mkdir()
    monkeypatch.chdir(tmp_path / below)
    if below:
        monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (run,) = as_sarif(findings, [ERROR])["runs"]
    check("run", run)
    root = run["originalUriBaseIds"]["SRCROOT"]["uri"]
    assert root == tmp_path.as_uri() + "/"
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "my%20kernel.py", "uriBaseId": "SRCROOT"}
    assert run["results"][3]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "on_no_disk.py"


def test_a_file_outside_of_the_checkout_has_its_whole_path(findings: list[Finding], tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkout").mkdir()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "checkout"))
    (run,) = as_sarif(findings, [])["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": (tmp_path / "my kernel.py").as_uri()}


@pytest.mark.parametrize("name", ["report.sarif", "report.sarif.json"])
def test_the_name_decides(name: str, findings: list[Finding], tmp_path: Path) -> None:
    write_findings(str(tmp_path / name), findings, [])
    check("log", json.loads((tmp_path / name).read_text()))


def test_another_name(tmp_path: Path) -> None:
    with pytest.raises(TileError) as caught:
        write_findings(str(tmp_path / "report.xml"), [], [])
    assert caught.value.code == "T416"
    assert list(tmp_path.iterdir()) == []
