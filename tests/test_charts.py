"""Pictures: shapes are at the positions of their numbers, and each picture is self-contained."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tilelang_npu.charts import Bar, Curve, bars, curves, picture, ticks

SVG = "{http://www.w3.org/2000/svg}"


def points(drawn: str) -> list[list[tuple[float, float]]]:
    """Returns the positions of the points of each curve."""
    paths = [each.get("d", "") for each in ElementTree.fromstring(drawn).iter(f"{SVG}path") if each.get("stroke-width") == "2"]
    return [[(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)] for path in paths]


def labels(drawn: str) -> dict[str, tuple[float, float]]:
    """Returns the texts with their positions."""
    return {each.text or "": (float(each.get("x", 0)), float(each.get("y", 0)))
            for each in ElementTree.fromstring(drawn).iter(f"{SVG}text")}


def test_points_lie_between_the_ticks_that_their_numbers_lie_between() -> None:
    drawn = curves([Curve("a", [(0, 10.0), (50, 30.0), (100, 20.0)]), Curve("b", [(0, 40.0), (100, 0.0)])], x="n", y="us")
    first, second = points(drawn)
    at = labels(drawn)
    left, right = at["0"][0], at["100"][0]
    assert [x for x, _ in first] == pytest.approx([first[0][0], (first[0][0] + first[2][0]) / 2, first[2][0]])
    assert first[2][0] == pytest.approx(right)
    assert left < first[0][0] + 1
    per_us = (at["10"][1] - at["40"][1]) / 30
    for (_, y), value in zip([*first, *second], (10, 30, 20, 40, 0), strict=True):
        assert y == pytest.approx(at["10"][1] - 4 - (value - 10) * per_us, abs=0.2)  # a label is 4 below its line


def test_equal_factors_are_equally_far_apart_on_an_axis_of_powers() -> None:
    drawn = curves([Curve("a", [(2**power, 10.0**power) for power in range(3, 8)])], log_x=True, log_y=True)
    (first,) = points(drawn)
    across = [second[0] - one[0] for one, second in zip(first, first[1:], strict=False)]
    down = [one[1] - second[1] for one, second in zip(first, first[1:], strict=False)]
    assert across == pytest.approx([across[0]] * 4, abs=0.11)
    assert down == pytest.approx([down[0]] * 4, abs=0.11)
    assert {"8", "16", "32", "64", "128"} <= labels(drawn).keys()


@pytest.mark.parametrize(("low", "high", "by_powers", "expected"), [
    (0, 47, False, [0, 10, 20, 30, 40]), (0, 0.31, False, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]), (250, 1000, True, [256, 512]),
    (1, 1e6, True, [1, 10, 100, 1e3, 1e4, 1e5, 1e6]), (-3, 3, False, [-3, -2, -1, 0, 1, 2, 3])])
def test_ticks_are_round_numbers(low: float, high: float, by_powers: bool, expected: list[float]) -> None:
    assert ticks(low, high, by_powers=by_powers) == pytest.approx(expected)


def test_whiskers_reach_from_the_low_to_the_high_value() -> None:
    drawn = curves([Curve("a", [(0, 10.0), (1, 20.0)], [(8.0, 12.0), (15.0, 25.0)])])
    whiskers = [(float(one[1]), float(one[2])) for one in re.findall(r'd="M([\d.]+) ([\d.]+)V([\d.]+)" stroke', drawn)]
    (line,) = points(drawn)
    per = (line[0][1] - line[1][1]) / 10
    for (low, high), (_, middle), (below, above) in zip(whiskers, line, ((2, 2), (5, 5)), strict=True):
        assert (low - middle, middle - high) == pytest.approx((below * per, above * per), abs=0.2)


def test_one_point_and_one_value_are_drawn_too_and_nothing_is_not() -> None:
    assert points(curves([Curve("a", [(5, 3.0)])])) != [[]]
    assert points(curves([Curve("a", [(5, 0.0), (6, 0.0)])])) != [[]]
    with pytest.raises(ValueError, match="nothing to draw"):
        curves([])
    with pytest.raises(ValueError, match="needs positive values"):
        curves([Curve("a", [(0, 1.0)])], log_x=True)


def test_bars_have_the_length_of_their_values_and_names_are_next_to_them() -> None:
    drawn = bars([Bar("tile=8", 20.0, "20 us"), Bar("tile=<b>", 10.0, "10 us"), Bar("tile=64", None, "T104")], title="six")
    found = ElementTree.fromstring(drawn).iter(f"{SVG}rect")
    boxes = [(float(each.get("x", 0)), float(each.get("width", 0))) for each in found]
    assert len(boxes) == 2
    assert boxes[0][1] == pytest.approx(2 * boxes[1][1], abs=0.1)
    at = labels(drawn)
    assert at["10 us"][0] > boxes[1][0] + boxes[1][1]
    assert "tile=<b>" in at
    assert at["T104"][0] < boxes[0][0] + 10


def test_a_picture_is_self_contained_and_its_rules_do_not_affect_other_pictures(tmp_path: Path) -> None:
    drawn = picture('<svg class="roofline" viewBox="0 0 10 10"><circle cx="1" cy="1" r="1"/></svg>', "a & b")
    drawn.save(tmp_path / "a.svg")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.get("class") == "tilelang-npu roofline"
    assert root.findtext(f"{SVG}title") == "a & b"
    rules = str(root.findtext(f"{SVG}style"))
    assert "var(" not in rules
    assert all("svg.tilelang-npu" in selector for line in rules.splitlines() for selector in line.partition("{")[0].split(","))
    assert drawn._repr_html_() == drawn


def test_ticks_with_names_are_at_their_places_and_the_only_ones() -> None:
    """Steps have no step 0, and none between two of them."""
    drawn = curves([Curve("a", [(1, 10.0), (2, 30.0), (3, 20.0)]), Curve("goal", [(0, 25.0), (4, 25.0)])], y="%",
                   x_ticks={step: f"step {step} & co" for step in (1, 2, 3)})
    at = labels(drawn)
    first, _ = points(drawn)
    assert [at[f"step {step} & co"][0] for step in (1, 2, 3)] == [x for x, _ in first]
    below = at["step 1 & co"][1]
    assert sum(y == below for _, y in at.values()) == 3
