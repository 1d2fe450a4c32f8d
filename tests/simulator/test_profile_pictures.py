"""Pictures of a profile: each is self-contained and has the profile's figures; memory includes L0A and L0B, which products
fill."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

from simulator.test_profile import product
from tilelang_npu import TileError
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.result.profile import svg_charts
from tilelang_npu.simulator.result.profile.launch_profile import Profile
from tilelang_npu.simulator.result.profile.occupancy import occupancy
from tilelang_npu.simulator.time.critical_path import DONE

M, N, K, TILE, DEPTH = 256, 256, 256, 128, 64


@cache
def profiled() -> Profile:
    kernel = product(M, N, K, TILE, DEPTH)
    a, b = np.ones((M, K), np.float16), np.ones((K, N), np.float16)
    return kernel.profile(a, b, np.zeros((M, N), np.float32))


@cache
def cold() -> Profile:
    """Returns the profile with an empty L2, so that data is loaded from HBM."""
    launch = profiled().launch
    assert isinstance(launch, Launch)
    return launch.retimed(l2_state="cold").profile()


@pytest.mark.parametrize("kind", ["cores", "timeline", "memory", "traffic", "roofline", "parts"])
def test_each_picture_is_self_contained(kind: str) -> None:
    drawn = cold().picture(kind)
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert kind in str(root.findtext("{http://www.w3.org/2000/svg}title"))
    assert drawn._repr_html_() == drawn
    numbers = [float(number) for number in re.findall(r' (?:x|y|width|height|cx|cy)="(-?[\d.]+)"', drawn)]
    assert numbers
    assert all(-1 <= number <= 1001 for number in numbers)
    high = float(drawn.split('viewBox="0 0 1000 ')[1].split('"')[0])
    assert all(0 <= float(y) <= high for y in re.findall(r' y="(-?[\d.]+)"', drawn)), "the view box contains all rows and texts"


def test_a_picture_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TileError, match="T412") as caught:
        profiled().picture("pie")
    assert "timeline, memory, traffic, roofline, parts" in str(caught.value)


def test_the_roofline_is_that_of_l2_where_hbm_moves_nothing() -> None:
    profile = profiled()
    assert (profile.roofline.memory, profile.roofline.hbm_bytes) == ("L2", 0)
    assert "per byte of L2" in profile.picture("roofline")


def test_l0a_and_l0b_hold_what_products_load_until_it_is_multiplied() -> None:
    """Each block loads its K slices of A and of B into L0 once, two at a time at most, and all is gone in the end."""
    parts = profiled().parts[0]
    block = parts.blocks[0]
    found = occupancy(block.traced)
    end = max(point.times[DONE] for point in block.traced.walked.points)
    for memory in ("ca", "cb"):
        steps = found["AIC", memory]
        sizes = [size for _, size in steps]
        chunk = TILE * DEPTH * 2
        assert max(sizes) in (chunk, 2 * chunk)
        rises = sum(max(second - first, 0) for first, second in zip(sizes, sizes[1:], strict=False))
        assert rises <= TILE * K * 2
        assert rises % chunk == 0
        assert sizes[-1] == 0
        assert all(0 <= time <= end for time, _ in steps)
        assert [time for time, _ in steps] == sorted(time for time, _ in steps)
    assert {memory for core, memory in found if core == "AIC"} == {"ca", "cb", "cbuf", "cc"}


# --- positions in pictures are those of the numbers ------------------------------------------------------------------------

TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" class="t">([\d.e+-]+)(?: us)?</text>')
RIGHT = 1000.0
"""Where a picture ends."""


def ticks_of(drawn: str) -> list[tuple[float, float]]:
    """Number and position of each tick of the horizontal axis."""
    return [(float(number), float(x)) for x, _, number in TEXT.findall(drawn)]


def per_us(drawn: str) -> tuple[float, float]:
    """Position of time 0, and units for a microsecond."""
    (first, start), *_, (last, end) = ticks_of(drawn)
    assert first == 0
    return start, (end - start) / last


@pytest.mark.parametrize("kind", ["cores", "timeline", "memory", "traffic"])
def test_ticks_are_round_and_in_even_steps(kind: str) -> None:
    ticks = ticks_of(profiled().picture(kind))
    numbers, places = zip(*ticks, strict=True)
    step = numbers[1]
    assert float(f"{step:e}".split("e")[0]) in (1, 2, 5)
    assert 4 <= len(ticks) <= 12
    assert numbers == pytest.approx([step * number for number in range(len(ticks))])
    apart = (places[-1] - places[0]) / (len(places) - 1)
    assert places == pytest.approx([places[0] + apart * number for number in range(len(places))], abs=0.1)
    assert places[-1] <= RIGHT < places[-1] + apart, "the last tick is the last that there is room for"


@pytest.mark.parametrize(("us", "most"), [(0.05, 12), (0.9, 12), (1.0, 12), (3.7, 12), (12.0, 12), (70.0, 12), (950.0, 12)])
def test_times_of_any_size_have_round_ticks(us: float, most: int) -> None:
    from tilelang_npu.simulator.result.profile.svg_charts import _time_axis

    ticks = ticks_of(_time_axis(us, 0))
    assert 3 <= len(ticks) <= most
    assert float(f"{ticks[1][0]:e}".split("e")[0]) in (1, 2, 5)
    start, scale = per_us(_time_axis(us, 0))
    assert start + scale * us == pytest.approx(RIGHT, rel=0.01)


def test_a_bar_of_the_timeline_is_where_its_times_are() -> None:
    drawn = profiled().picture("timeline")
    start, scale = per_us(drawn)
    bars = re.findall(r'<rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"[^>]*><title>[^<]*?, ([\d.]+) to ([\d.]+) us</title>',
                      drawn)
    assert len(bars) > 40
    for x, _, width, first, last in bars:
        begins, ends = float(first), float(last)
        assert float(x) == pytest.approx(start + scale * begins, abs=0.3)
        assert float(width) == pytest.approx(max(scale * (ends - begins), 0.4), abs=0.5)
    names = dict(re.findall(r'<text x="0" y="(\d+)">([^<]*)</text>', drawn))
    by_row: dict[str, list[tuple[float, float]]] = {}
    for _, y, _, first, last in bars:
        row = min(names, key=lambda place: abs(int(place) - int(y) - 11))
        by_row.setdefault(names[row], []).append((float(first), float(last)))
    assert set(by_row) == set(names.values())
    for row in by_row.values():  # a pipe does one thing at a time
        assert all(second[0] >= first[1] - 0.0011 for first, second in zip(sorted(row), sorted(row)[1:], strict=False))


def strips(drawn: str) -> dict[str, list[tuple[float, float]]]:
    """Returns, by the title of each strip, the positions at which it changes, from left to right, and its new heights, in
    units."""
    found = {}
    for title, path in re.findall(r'<text x="[\d.]+" y="[\d.]+">([^<]*)</text><path class="area" d="([^"]*)"/>', drawn):
        head, *_ = re.findall(r"^M[\d.]+ ([\d.]+)", path)
        moves = re.findall(r"H([\d.]+)V([\d.]+)", path)
        found[title] = [(float(x), float(head) - float(y)) for x, y in moves]
    return found


def test_the_strips_of_traffic_have_the_bytes_of_the_block() -> None:
    drawn = profiled().picture("traffic")
    start, scale = per_us(drawn)
    wanted = {"read": 2 * TILE * K * 2, "written": TILE * TILE * 4}
    rows = strips(drawn)
    tops = {title: max(height for _, height in steps) for title, steps in rows.items()}
    fastest = max(float(title.split()[-2]) for title in rows)
    for title, steps in rows.items():
        most = float(title.split()[-2])
        assert tops[title] == pytest.approx(max(tops.values()) * most / fastest, rel=0.02), "both are drawn to one scale"
        edges = [x for x, _ in steps] + [RIGHT]
        area = sum(height * (right - left) for (_, height), left, right in zip(steps, edges, edges[1:], strict=False))
        nbytes = area / tops[title] * most * 1e9 / scale / 1e6
        assert nbytes == pytest.approx(wanted[title.split()[1].rstrip(",")], rel=0.03)
    assert start == min(x for steps in rows.values() for x, _ in steps)


def test_the_strips_of_memory_have_the_sizes_that_their_titles_say() -> None:
    rows = strips(profiled().picture("memory"))
    assert {title.split(",")[0] for title in rows} == {"AIC L0A", "AIC L0B", "AIC L1", "AIC L0C"}
    for title, steps in rows.items():
        most, room = map(float, re.findall(r"at most (\d+) of (\d+) KB", title)[0])
        assert max(height for _, height in steps) == pytest.approx(34 * most / room, abs=0.06)
        assert [x for x, _ in steps] == sorted(x for x, _ in steps)
    found = occupancy(profiled().parts[0].blocks[0].traced)
    most = max(size for _, size in found["AIC", "cbuf"]) // 1024
    assert 2 * TILE * DEPTH * 2 // 1024 <= most <= 2 * 2 * TILE * DEPTH * 2 // 1024, "a tile of A and of B, or a second of each"
    assert len(rows[f"AIC L1, at most {most} of 512 KB"]) == len(found["AIC", "cbuf"]) + 1  # and the end


def test_the_point_of_the_roofline_is_where_its_numbers_are() -> None:
    drawn, roofline = cold().picture("roofline"), cold().roofline
    across = [(np.log10(number), x) for number, x in ticks_of(drawn)]
    up = [(np.log10(float(number) * 1e12), float(y) - 4)
          for y, number in re.findall(r'<text x="0" y="([\d.]+)">([\d.e+-]+) T/s</text>', drawn)]
    (x, y), = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="6"/>', drawn)

    def place(axis: list[tuple[float, float]], number: float) -> float:
        (one, first), (other, second) = axis[0], axis[-1]
        return first + (np.log10(number) - one) * (second - first) / (other - one)

    assert float(x) == pytest.approx(place(across, roofline.intensity), abs=0.3)
    assert float(y) == pytest.approx(place(up, roofline.achieved), abs=0.3)
    points = re.findall(r"([\d.]+) ([\d.]+)", re.findall(r'class="roof" d="M([^"]*)"', drawn)[0].replace("L", " L "))
    (_, low), (ridge, peak), (end, flat) = [(float(a), float(b)) for a, b in points]
    assert ridge == pytest.approx(place(across, roofline.peak / roofline.hbm_rate), abs=0.3)
    assert peak == flat == pytest.approx(place(up, roofline.peak), abs=0.3)
    assert end == RIGHT
    assert low > peak
    assert f"{100 * roofline.achieved / roofline.attainable:.1f} % of attainable" in drawn


def test_parts_of_a_time_lie_side_by_side_in_proportion() -> None:
    drawn = profiled().picture("parts")
    parts = [tuple(map(float, part)) for part in
             re.findall(r'<rect x="([\d.]+)" y="2" width="([\d.]+)"[^>]*><title>[^<]*?, ([\d.]+) us</title>', drawn)]
    total = sum(us for _, _, us in parts)
    assert total == pytest.approx(profiled().time_us, rel=0.01)
    position = 0.0
    for x, width, us in parts:
        assert x == pytest.approx(position, abs=0.2)
        assert width == pytest.approx(RIGHT * us / total, abs=1.0)
        position = x + width
    assert position == pytest.approx(RIGHT, abs=0.5)


def test_lines_lead_from_work_before_a_set_to_work_after_its_wait() -> None:
    """Each line begins where a bar ends and ends where a bar begins; lines between cores are wider; without ``flows`` there
    are none."""
    one = cold()
    launch = one.launch
    assert isinstance(launch, Launch)
    block = one.parts[0].blocks[0]
    drawn = svg_charts.timeline(launch, block, flows=True)
    root = ElementTree.fromstring(drawn)
    bars = {(float(bar.get("x", "")), float(bar.get("x", "")) + float(bar.get("width", ""))) for bar in root.iter("rect")}
    lines = [path for path in root.iter("path") if path.get("class") == "flow"]
    assert len(lines) == len(block.traced.flows) > 0
    for path in lines:
        x, to = (float(number) for number in re.findall(r"[ML]([\d.]+) ", path.get("d", "")))
        assert any(abs(end - x) < 0.5 for _, end in bars), "begins at the end of work"
        assert any(abs(start - to) < 0.5 for start, _ in bars), "ends at the start of work"
        assert path.get("stroke-width") == "1", "this kernel runs on one core"
    assert 'class="flow"' not in svg_charts.timeline(launch, block)
