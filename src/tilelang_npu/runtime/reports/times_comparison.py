"""Compares two files of modelled times, such as those of a pull request and of its base branch.

A file of times is JSON: for each test, the microseconds of each kernel that the test runs. The comparison is written as
Markdown (a table for a comment on the pull request), as JSON or as a self-contained HTML page.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tilelang_npu import html_sheet

Times = dict[str, dict[str, float]]
"""The modelled microseconds of each kernel of each test."""
Verdict = Literal["slower", "faster", "same", "new", "gone"]
FORMATS = (".md", ".json", ".html")
"""The endings of files that a comparison can be written to."""
_ORDER: tuple[Verdict, ...] = ("slower", "faster", "new", "gone", "same")
_MOST_ROWS = 200
"""The most rows of a table in Markdown: GitHub takes comments of at most 65 536 characters."""
_STYLE = """
:root { color-scheme: light dark }
body { margin: 2em auto; max-width: 75em; padding: 0 1em; font: 14px/1.5 system-ui, sans-serif }
table { border-collapse: collapse; width: 100% } th, td { padding: 3px 10px; text-align: left; border-bottom: 1px solid #8885 }
td.r, th.r { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
code { font: 12px ui-monospace, monospace; overflow-wrap: anywhere }
tr.slower td:first-child { color: #d1242f; font-weight: 600 } tr.faster td:first-child { color: #1a7f37; font-weight: 600 }
tr.same { opacity: 0.65 }
"""


def read_times(path: Path) -> Times:
    """Reads a file of times.

    Raises:
        ValueError: the file is not JSON, or holds something other than positive times of kernels by test.
        OSError: the file cannot be read.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # also of text that is not UTF-8
        raise ValueError(f"{path} is no JSON: {error}") from None
    tests = data.items() if isinstance(data, dict) else [("", None)]
    for test, kernels in tests:
        times = kernels.values() if isinstance(kernels, dict) else [None]
        if not all(isinstance(us, (int, float)) and not isinstance(us, bool) and 0 < us < float("inf") for us in times):
            where = f" ({test})" if test else ""
            raise ValueError(f"{path} is no file of times{where}: it must hold the microseconds of each kernel of each test")
    return {test: {kernel: float(us) for kernel, us in kernels.items()} for test, kernels in data.items()}


def times_text(times: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the text of a file of times, which is the same for equal times, so that it can be committed."""
    return json.dumps(times, indent=1, sort_keys=True) + "\n"


def verdict_of(before: float, after: float, tolerance: float) -> Verdict:
    """Returns whether a kernel became slower or faster.

    Args:
        before: the former time.
        after: the present time, in the same unit.
        tolerance: the share of the former time by which the present time can differ and count as the same.
    """
    if after > before * (1 + tolerance):
        return "slower"
    return "faster" if after < before * (1 - tolerance) else "same"


@dataclass(frozen=True)
class TimesRow:
    """A kernel of a test in a comparison.

    Attributes:
        test: the test's name, as pytest prints it.
        kernel: the kernel's name, arguments and chip.
        before: the microseconds in the first file; None if the kernel is not in it.
        after: the microseconds in the second file; None if the kernel is not in it.
        verdict: ``slower``, ``faster``, ``same``, ``new`` (not in the first file) or ``gone`` (not in the second file).
    """

    test: str
    kernel: str
    before: float | None
    after: float | None
    verdict: Verdict

    @property
    def change(self) -> float | None:
        """The change of the time as a share of the former time, such as 0.1 for 10 % longer; None without one of the times."""
        return None if self.before is None or self.after is None else self.after / self.before - 1


@dataclass(frozen=True)
class TimesComparison:
    """The comparison of two files of times.

    Attributes:
        old, new: the names of the files.
        tolerance: the share of the former time by which a time can differ and count as the same.
        rows: the kernels: slower ones first, then faster, new, gone and unchanged ones, the largest changes first.
    """

    old: str
    new: str
    tolerance: float
    rows: tuple[TimesRow, ...]

    @property
    def has_slower(self) -> bool:
        """Whether a kernel became slower by more than the tolerance."""
        return any(row.verdict == "slower" for row in self.rows)

    @property
    def summary(self) -> str:
        """The number of kernels of each verdict, as a line of text."""
        counts = Counter(row.verdict for row in self.rows)
        words = [f"{counts[verdict]} {verdict}" for verdict in _ORDER[:-1] if counts[verdict]]
        return ", ".join([*words, f"{counts['same']} within {100 * self.tolerance:g} %"])

    def markdown(self) -> str:
        """Returns a heading, the summary and a table of the kernels that changed."""
        changed = [row for row in self.rows if row.verdict != "same"]
        lines = ["### Modelled times of kernels", "", f"{_code(self.old)} to {_code(self.new)}: {self.summary}"]
        if changed:
            lines += ["", "| | test | kernel | before (us) | after (us) | change |", "|---|---|---|---:|---:|---:|"]
            lines += [f"| {' | '.join([row.verdict, _code(row.test), _code(row.kernel), *_numbers(row)])} |"
                      for row in changed[:_MOST_ROWS]]
        if len(changed) > _MOST_ROWS:
            lines += ["", f"{len(changed) - _MOST_ROWS} more rows are left out."]
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        """Returns all rows as JSON. The entry ``version`` increases when the meaning of a key changes."""
        rows = [{"test": row.test, "kernel": row.kernel, "before_us": row.before, "after_us": row.after, "change": row.change,
                 "verdict": row.verdict} for row in self.rows]
        return json.dumps({"version": 1, "old": self.old, "new": self.new, "tolerance": self.tolerance, "kernels": rows},
                          indent=1) + "\n"

    def html(self) -> str:
        """Returns a self-contained HTML page with all rows."""
        shown = ["<tr><th></th><th>test</th><th>kernel</th>"
                 '<th class="r">before (us)</th><th class="r">after (us)</th><th class="r">change</th></tr>']
        shown += [f'<tr class="{row.verdict}"><td>{row.verdict}</td><td><code>{html.escape(row.test)}</code></td>'
                  f"<td><code>{html.escape(row.kernel)}</code></td>"
                  + "".join(f'<td class="r">{text}</td>' for text in _numbers(row)) + "</tr>" for row in self.rows]
        title, old, new = "Modelled times of kernels", html.escape(self.old), html.escape(self.new)
        return html_sheet.page(title, _STYLE, (
            f"<h1>{title}</h1><p><code>{old}</code> to <code>{new}</code>: {self.summary}</p>"
            f"<table>{''.join(shown)}</table>"))

    def text_for(self, path: str) -> str:
        """Returns the comparison in the format that the ending of a file's name selects.

        Raises:
            ValueError: the name has another ending than ``.md``, ``.json`` and ``.html``.
        """
        check_report_name(path)
        return {".md": self.markdown, ".json": self.json, ".html": self.html}[Path(path).suffix]()


def check_report_name(path: str) -> None:
    """Checks that a comparison can be written to a file of this name.

    Raises:
        ValueError: the name does not end in ``.md``, ``.json`` or ``.html``.
    """
    if Path(path).suffix not in FORMATS:
        raise ValueError(f"{path} is not a name for a comparison of times: choose one that ends in {', '.join(FORMATS)}")


def compare_times(old: Times, new: Times, tolerance: float, names: tuple[str, str] = ("before", "after")) -> TimesComparison:
    """Compares two files of times.

    Args:
        old: the former times.
        new: the present times.
        tolerance: the share of a former time by which a time can differ and count as the same.
        names: the names of the two files, as reports show them.
    """
    rows = sorted(_rows(old, new, tolerance), key=lambda row: (_ORDER.index(row.verdict), -abs(row.change or 0.0)))
    return TimesComparison(*names, tolerance, tuple(rows))


def _rows(old: Times, new: Times, tolerance: float) -> Iterator[TimesRow]:
    for test in _in_order(old, new):
        kernels_before, kernels_after = old.get(test, {}), new.get(test, {})
        for kernel in _in_order(kernels_before, kernels_after):
            before, after = kernels_before.get(kernel), kernels_after.get(kernel)
            verdict: Verdict = "same"
            if before is None or after is None:
                verdict = "new" if before is None else "gone"
            else:
                verdict = verdict_of(before, after, tolerance)
            yield TimesRow(test, kernel, before, after, verdict)


def _in_order(first: Iterable[str], second: Iterable[str]) -> Iterable[str]:
    return sorted({*first, *second})


def _numbers(row: TimesRow) -> tuple[str, str, str]:
    before, after = ("" if us is None else f"{us:.3f}" for us in (row.before, row.after))
    return before, after, "" if row.change is None else f"{row.change:+.1%}"


def _code(text: str) -> str:
    """Returns text as a code span of Markdown that is valid in a table."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")
