"""What passes did and refused, for other programs: JSON of this package, or SARIF 2.1.0, in which editors show refusals.

The file's name decides, as for findings: ``.sarif`` (or ``.sarif.json``) is SARIF, ``.json`` is JSON. JSON has every remark of
the kernels as a whole; SARIF those that an author can do something about, each a note at its line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilelang_npu import __version__
from tilelang_npu.dialects.ir.remarks import REFUSED, Remark, remark_as_data
from tilelang_npu.runtime.findings_file import SARIF_SCHEMA, check_name, sarif_place
from tilelang_npu.runtime.writing import write_whole
from tilelang_npu.transforms.ir.optimisations import OPTIMISATIONS

if TYPE_CHECKING:
    from tilelang_npu.dialects.ir.remarks import Remark
    from tilelang_npu.runtime.explanation import Explanation

__all__ = ["is_for_programs", "write_remarks"]

Json = dict[str, Any]


def is_for_programs(path: str | None) -> bool:
    """Whether a file's name says that a program reads it."""
    return path is not None and path.endswith((".json", ".sarif"))


def write_remarks(path: str, pages: Sequence[Explanation]) -> None:
    """Write what the pages of kernels are made of, whole or not at all.

    Args:
        path: the file; its end decides what is written.
        pages: of each kernel.

    Raises:
        TileError: T416 the file's name says neither JSON nor SARIF.
        OSError: it cannot be written.
    """
    check_name(path)
    made = _sarif(pages) if path.endswith((".sarif", ".sarif.json")) else _json(pages)
    write_whole(path, json.dumps(made, indent=1) + "\n")


def _json(pages: Sequence[Explanation]) -> Json:
    return {"version": 1, "tool": "tilelang_npu", "tool_version": __version__,
            "kernels": [{"kernel": page.kernel, "chip": page.chip,
                         "remarks": [remark_as_data(one) | _price(page, one) for one in page.remarks]} for page in pages]}


def _price(page: Explanation, one: Remark) -> Json:
    """What a refusal costs at most, where that can be told."""
    cost = page.costs.get(one) if one.kind == REFUSED else None
    return {} if cost is None else {"costs_us": cost.before - cost.after, "of_us": cost.before}


def _sarif(pages: Sequence[Explanation]) -> Json:
    refused = {(page.kernel, page.chip, one): page for page in pages for one in page.refused}
    names = [name for name in OPTIMISATIONS if any(one.about == name for _, _, one in refused)]
    rules = [{"id": name, "shortDescription": {"text": OPTIMISATIONS[name]}, "defaultConfiguration": {"level": "note"}}
             for name in names]
    driver = {"name": "tilelang_npu", "version": __version__, "semanticVersion": __version__, "rules": rules}
    results = [_result(page, one, names.index(one.about)) for (_, _, one), page in refused.items()]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}]}


def _result(page: Explanation, one: Remark, rule: int) -> Json:
    cost = page.costs.get(one)
    what = f"to have it: {one.edit}" if cost is None or not cost.nothing else str(cost)
    result: Json = {"ruleId": one.about, "ruleIndex": rule, "level": "note", "message": {"text": f"{one.text}\n{what}"},
                    "properties": {"kernel": page.kernel, "chip": page.chip, **_price(page, one)}}
    place = sarif_place(one.place)
    return result if place is None else {**result, "locations": [place]}
