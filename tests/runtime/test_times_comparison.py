"""Comparisons of two files of modelled times: verdicts, order, and the three formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilelang_npu.runtime.reports.times_comparison import compare_times, read_times, times_text, verdict_of

OLD = {"t.py::a": {"k": 10.0, "same": 5.0, "gone": 1.0}, "t.py::b[x|`y`]": {"k": 4.0}, "t.py::c": {"k": 2.0}}
NEW = {"t.py::a": {"k": 11.0, "same": 5.1}, "t.py::b[x|`y`]": {"k": 8.0}, "t.py::c": {"k": 1.0}, "t.py::d": {"<k>": 3.0}}
ROWS = [("t.py::b[x|`y`]", "k", 4.0, 8.0, "slower"), ("t.py::a", "k", 10.0, 11.0, "slower"),
        ("t.py::c", "k", 2.0, 1.0, "faster"), ("t.py::d", "<k>", None, 3.0, "new"), ("t.py::a", "gone", 1.0, None, "gone"),
        ("t.py::a", "same", 5.0, 5.1, "same")]


@pytest.mark.parametrize(("before", "after", "verdict"), [
    (100.0, 102.0, "same"), (100.0, 102.1, "slower"), (100.0, 98.0, "same"), (100.0, 97.9, "faster"),
])
def test_verdicts_by_the_tolerance(before: float, after: float, verdict: str) -> None:
    assert verdict_of(before, after, 0.02) == verdict


def test_rows_are_ordered_by_verdict_and_change() -> None:
    compared = compare_times(OLD, NEW, 0.02)
    assert [(row.test, row.kernel, row.before, row.after, row.verdict) for row in compared.rows] == ROWS
    assert compared.summary == "2 slower, 1 faster, 1 new, 1 gone, 1 within 2 %"
    assert compared.has_slower and not compare_times(OLD, OLD, 0.0).has_slower
    assert not compare_times({}, NEW, 0.0).has_slower  # what has no former time is not slower


def test_markdown_is_a_table_of_what_changed() -> None:
    assert compare_times(OLD, NEW, 0.02, ("base.json", "new.json")).markdown() == """\
### Modelled times of kernels

`base.json` to `new.json`: 2 slower, 1 faster, 1 new, 1 gone, 1 within 2 %

| | test | kernel | before (us) | after (us) | change |
|---|---|---|---:|---:|---:|
| slower | ``t.py::b[x\\|`y`]`` | `k` | 4.000 | 8.000 | +100.0% |
| slower | `t.py::a` | `k` | 10.000 | 11.000 | +10.0% |
| faster | `t.py::c` | `k` | 2.000 | 1.000 | -50.0% |
| new | `t.py::d` | `<k>` |  | 3.000 |  |
| gone | `t.py::a` | `gone` | 1.000 |  |  |
"""
    unchanged = compare_times(OLD, OLD, 0.02).markdown()
    assert "5 within 2 %" in unchanged and "|" not in unchanged


def test_a_table_is_short_enough_for_a_comment() -> None:
    times = {f"tests/test_file.py::test_{number}": {"kernel(float16 1024x1024) on Ascend910B2": 1.0} for number in range(1000)}
    text = compare_times({}, times, 0.02).markdown()
    assert len(text) < 65536 and "800 more rows are left out." in text


def test_json_has_all_rows() -> None:
    made = json.loads(compare_times(OLD, NEW, 0.02, ("base.json", "new.json")).json())
    assert (made["version"], made["old"], made["new"], made["tolerance"]) == (1, "base.json", "new.json", 0.02)
    assert [(row["test"], row["kernel"], row["before_us"], row["after_us"], row["verdict"]) for row in made["kernels"]] == ROWS
    assert made["kernels"][1]["change"] == pytest.approx(0.1) and made["kernels"][3]["change"] is None


def test_a_page_has_all_rows_and_loads_nothing() -> None:
    page = compare_times(OLD, NEW, 0.02, ("a<b", "new.json")).html()
    assert page.count("<tr") == 1 + len(ROWS) and "<code>&lt;k&gt;</code>" in page and "<code>a&lt;b</code>" in page
    assert "default-src 'none'" in page and "http:" not in page and "https:" not in page


def test_times_survive_a_file(tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text(times_text(OLD))
    assert read_times(tmp_path / "times.json") == OLD
    assert times_text(OLD) == times_text(dict(reversed(OLD.items())))


@pytest.mark.parametrize("text", ["[]", "3", '{"a": 3}', '{"a": {"k": "3"}}', '{"a": {"k": true}}', '{"a": {"k": -1}}',
                                  '{"a": {"k": NaN}}', "{", "\udcff"])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"times\.json is no (file of times|JSON)"):
        read_times(path)
