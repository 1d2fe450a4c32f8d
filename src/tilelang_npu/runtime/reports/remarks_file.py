"""Writes the remarks of passes to files for other programs: in a JSON format of this package, or as SARIF 2.1.0 for editors.

A file name that ends in ``.sarif`` selects SARIF, and a name in ``.json`` selects JSON. JSON contains every remark of the
kernels. SARIF contains the refusals (optimisations that were not done), each as a note at its source line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilelang_npu import __version__
from tilelang_npu.dialects.ir.remarks import REFUSED, Remark, remark_as_data
from tilelang_npu.runtime.reports.findings_file import Json, sarif_location, sarif_log, write_report
from tilelang_npu.transforms.infra.optimisations import OPTIMISATIONS

if TYPE_CHECKING:
    from tilelang_npu.runtime.reports.explanation import Explanation


def is_report_name(path: str | None) -> bool:
    """Whether a file's name has an ending of report files: ``.json`` or ``.sarif``."""
    return path is not None and path.endswith((".json", ".sarif"))


def write_remarks(path: str, pages: Sequence[Explanation]) -> None:
    """Writes the remarks of passes about several kernels to a report file.

    Args:
        path: the file; its ending selects the format.
        pages: the reports of the kernels, which contain the remarks.

    Raises:
        TileError: T416 the file's name ends neither in .json nor in .sarif.
        OSError: the file cannot be written.
    """
    write_report(path, lambda: _json(pages), lambda: _sarif(pages))


def _json(pages: Sequence[Explanation]) -> Json:
    return {"version": 1, "tool": "tilelang_npu", "tool_version": __version__,
            "kernels": [{"kernel": page.kernel, "chip": page.chip,
                         "remarks": [remark_as_data(remark) | _cost(page, remark) for remark in page.remarks]}
                        for page in pages]}


def _cost(page: Explanation, remark: Remark) -> Json:
    """Returns the upper bound of a refusal's cost, if it is known."""
    cost = page.costs.get(remark) if remark.kind == REFUSED else None
    return {} if cost is None else {"costs_us": cost.before - cost.after, "of_us": cost.before}


def _sarif(pages: Sequence[Explanation]) -> Json:
    refused = {(page.kernel, page.chip, remark): page for page in pages for remark in page.refused}
    about = {remark.about: None for _, _, remark in refused}  # optimisations, and other passes, such as those of plug-ins
    names = [*(name for name in OPTIMISATIONS if name in about), *(name for name in about if name not in OPTIMISATIONS)]
    rules = [{"id": name, "shortDescription": {"text": OPTIMISATIONS.get(name, f"the pass {name}")},
              "defaultConfiguration": {"level": "note"}} for name in names]
    results = []
    for (_, _, remark), page in refused.items():
        cost = page.costs.get(remark)
        advice = f"to have it: {remark.edit}" if cost is None or not cost.nothing else str(cost)
        result: Json = {"ruleId": remark.about, "ruleIndex": names.index(remark.about), "level": "note",
                        "message": {"text": f"{remark.text}\n{advice}"},
                        "properties": {"kernel": page.kernel, "chip": page.chip, **_cost(page, remark)}}
        place = sarif_location(remark.place)
        results.append(result if place is None else {**result, "locations": [place]})
    return sarif_log(rules, results)
