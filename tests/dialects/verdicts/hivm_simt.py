"""The rules for ops that access single elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dialects.verdicts.hivm_judged import Judged, element_of, need


def _elements(judged: Judged, names: str) -> None:
    types = [type_ for type_ in map(judged.one, names.split(",")) if type_ is not None]
    need(len(set(map(element_of, types))) <= 1, f"one element type of {names}")


def _shapes(judged: Judged, names: str) -> None:
    """An open size is another than any known one here."""
    shapes = {judged.shape(name) for name in names.split(",") if judged.one(name) is not None}
    need(len(shapes) <= 1, f"one shape of {names}")


def _strides(judged: Judged, name: str) -> None:
    rank = len(judged.shape(name))
    need(rank in (1, 2, 3), "one to three axes")
    need(len(judged.held["stride"]) == len(judged.held["numel"]) == rank, "a stride and a number for each axis")
    need(len({*judged.held["offset"], *judged.held["stride"], *judged.held["numel"]}) == 1, "one type of numbers")
    other, result = judged.one("other"), judged.one("result")
    source = judged.one("src")
    assert source is not None
    need(other is None or str(other) == element_of(source), "type of the other value")
    need(result is None or result == judged.one("dst"), "type of the result")


def _rows(judged: Judged, _: str) -> None:
    rank = len(judged.shape("index"))
    need(rank in (1, 2) and len(judged.shape("dst")) == rank + 1, "an axis more than the indices")
    need(len(judged.held["offsets"]) == len(judged.held["numels"]) == rank + 1, "an offset and a number for each axis")


SIMT: dict[str, Callable[[Any, str], None]] = {"alike": _elements, "shape": _shapes, "strides": _strides, "rows": _rows}
