"""Pictures of a profile: each alone, with what is in the profile; memory with L0A and L0B, which products fill themselves."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

from simulator.test_profile import product
from tilelang_npu import TileError
from tilelang_npu.simulator.result.profile.launch_profile import Profile
from tilelang_npu.simulator.result.profile.occupancy import occupancy
from tilelang_npu.simulator.time.walked import DONE

M, N, K, TILE, DEPTH = 256, 256, 256, 128, 64


@cache
def profiled() -> Profile:
    kernel = product(M, N, K, TILE, DEPTH)
    a, b = np.ones((M, K), np.float16), np.ones((K, N), np.float16)
    return kernel.profile(a, b, np.zeros((M, N), np.float32))


@pytest.mark.parametrize("kind", ["timeline", "memory", "traffic", "roofline", "parts"])
def test_each_picture_stands_alone(kind: str) -> None:
    drawn = profiled().picture(kind)
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert kind in str(root.findtext("{http://www.w3.org/2000/svg}title"))
    assert drawn._repr_html_() == drawn
    numbers = [float(number) for number in re.findall(r' (?:x|y|width|height|cx|cy)="(-?[\d.]+)"', drawn)]
    assert numbers
    assert all(-1 <= number <= 1001 for number in numbers)


def test_a_picture_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TileError, match="T412") as caught:
        profiled().picture("pie")
    assert "timeline, memory, traffic, roofline, parts" in str(caught.value)


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
