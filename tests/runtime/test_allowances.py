"""Allowances: their scope, and that each has a reason and matches a finding."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.checks import allowances
from tilelang_npu.runtime.checks.allowances import Allowance, allowances_in, has_comments, parse
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Site


def hazard(file: str, first: int, second: int, code: str = "S203") -> Hazard:
    sites = [Site("store", Location(file, line), "MTE3", "AIV0", 0) for line in (first, second)]
    return Hazard(code, "WAW", *sites, "GM", 0, 4, "", 0)


def test_an_option() -> None:
    allowance = parse("S203:sub/kernel.py:41=two blocks write the same halo: by design")
    assert allowance == Allowance(("S203",), "sub/kernel.py", 41, 41, "two blocks write the same halo: by design")
    for file, line, covered in (("/home/me/sub/kernel.py", 41, True), ("/home/me/kernel.py", 41, False),
                                ("/home/me/sub/kernel.py", 42, False), ("/home/me/mysub/kernel.py", 41, False)):
        assert allowance.allows(hazard(file, 3, line)) == covered
        assert allowance.allows(hazard(file, line, 3)) == covered
    assert not allowance.allows(hazard("sub/kernel.py", 41, 41, "S201"))


def test_a_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse("S203:./k.py:4=why").allows(hazard(str(tmp_path / "k.py"), 4, 4))


@pytest.mark.parametrize(("option", "message"), [
    ("S203:kernel.py:41", "has no reason"), ("S203:kernel.py:41=  ", "has no reason"), ("S203:kernel.py=why", "cannot read"),
    ("S203:kernel.py:x=why", "cannot read"), ("S299:kernel.py:41=why", "no hazard 'S299'"), ("T104:kernel.py:41=why", "'T104'"),
    ("", "cannot read")])
def test_a_wrong_option(option: str, message: str) -> None:
    with pytest.raises(TileError, match=message) as caught:
        parse(option)
    assert caught.value.code == "T414"


SOURCE = '''\
def kernel():
    x = 1
    load(x)  # tilelang: allow S201 -- the reader does not mind
    # tilelang: allow S203, S202 -- two blocks
    # write the same halo
    store(x,
          1)
    copy(x,
         2,  # tilelang: allow S221 -- the padding is cut off
         3)
    y = "# tilelang: allow S201"
    load(y)  # an ordinary comment, tilelang: allow nothing
'''


def test_comments(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE)
    found = allowances_in(str(path), 1, 99)
    assert [(one.codes, one.first, one.last, one.reason) for one in found] == [
        (("S201",), 3, 3, "the reader does not mind"), (("S203", "S202"), 6, 7, "two blocks"),
        (("S221",), 8, 10, "the padding is cut off")]
    assert found[1].at == Location(str(path), 4, 5, 47)
    assert found[1].allows(hazard(str(path), 6, 1)) and found[1].allows(hazard(str(path), 1, 7, "S202"))
    assert not found[1].allows(hazard(str(path), 4, 5)) and not found[1].allows(hazard("kernel.py", 6, 6))
    assert [one.codes for one in allowances_in(str(path), 4, 8)] == [("S203", "S202")]


def test_comments_of_mlir(tmp_path: Path) -> None:
    path = tmp_path / "kernel.mlir"
    path.write_text("a\nb // tilelang: allow S201 -- one\n// tilelang: allow S202 -- two\n// more\nc\n// plain\n")
    assert [(one.codes, one.first, one.reason) for one in allowances_in(str(path), 1, 99)] == [
        (("S201",), 2, "one"), (("S202",), 5, "two")]


@pytest.mark.parametrize(("comment", "message"), [
    ("# tilelang: allow S201", "without a reason"), ("# tilelang: allow S201 --", "without a reason"),
    ("# tilelang: allow", "cannot read"), ("# tilelang: alow S201 -- x", "cannot read"),
    ("# tilelang: allow S999 -- x", "no hazard 'S999'"), ("# tilelang: allow S201 because", "cannot read")])
def test_a_wrong_comment(comment: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(f"x = 1\nload(x)  {comment}\n")
    linecache.checkcache(str(path))
    with pytest.raises(TileError, match=message) as caught:
        allowances_in(str(path), 1, 2)
    assert caught.value.code == "T414"
    assert (caught.value.location.line, caught.value.location.column) == (2, 10)
    assert allowances_in(str(path), 1, 1) == []


def test_a_file_that_is_no_longer_python(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("x = (1,  # tilelang: allow S201 -- x\n")
    assert allowances_in(str(path), 1, 2) == []


def test_an_allowance_that_allows_nothing_names_its_line(tmp_path: Path) -> None:
    error = parse("S203:k.py:41=why").idle()
    assert (error.code, error.location) == ("T415", None)
    assert error.message == "an allowance of S203 at k.py:41 has no effect: no kernel had this hazard there"
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE)
    assert allowances_in(str(path), 3, 3)[0].idle().location.line == 3


def test_a_script_without_a_comment_to_this_package_is_not_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken_apart(readline: object) -> None:
        raise AssertionError("taken apart")

    monkeypatch.setattr(allowances.tokenize, "generate_tokens", taken_apart)
    (tmp_path / "plain.py").write_text("import tilelang  # tile by tile\n" * 3)
    assert allowances_in(str(tmp_path / "plain.py"), 1, 3) == []
    assert not has_comments(str(tmp_path / "plain.py"))
    (tmp_path / "told.py").write_text("x = 1  # tilelang: allow S203 -- by design\n")
    assert has_comments(str(tmp_path / "told.py"))
    with pytest.raises(AssertionError, match="taken apart"):
        allowances_in(str(tmp_path / "told.py"), 1, 1)
