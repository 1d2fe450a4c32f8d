"""The geometry of convolutions (``ops/convolution.py``), against a count of the places of the kernel."""

from __future__ import annotations

import itertools

import pytest

from tilelang_npu.ops.convolution import Patches

FIELDS = dict(zip(Patches._fields, Patches(5, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), strict=True))


def places(whole: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """The number of starts at which each element of the kernel is inside of the padded axis."""
    return sum(start + (kernel - 1) * dilation < before + whole + after for start in range(0, before + whole + after, stride))


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_the_output_has_a_pixel_for_each_place_of_the_kernel(stride: int, dilation: int) -> None:
    for size, kernel, before, after in itertools.product(range(1, 8), range(1, 4), range(3), range(3)):
        found = Patches(size, 6, kernel, 1, stride, 1, dilation, 1, 0, 0, before, after)
        turned = Patches(6, size, 1, kernel, 1, stride, 1, dilation, before, after, 0, 0)
        wanted = places(size, kernel, stride, dilation, before, after)
        assert max(0, found.out_height) == max(0, turned.out_width) == wanted
        assert (found.problem() is None) == (turned.problem() is None) == (wanted > 0)


def test_the_elements_of_the_kernel_and_the_adjacent_pixels() -> None:
    assert Patches(**FIELDS).cells == 9 and Patches(**FIELDS).run == 7
    assert Patches(**{**FIELDS, "stride_width": 2}).run == 1


@pytest.mark.parametrize("name", Patches._fields)
def test_a_number_that_is_too_small_is_named(name: str) -> None:
    least = 0 if name in ("left", "right", "top", "bottom") else 1
    assert Patches(**{**FIELDS, name: least}).problem() is None
    assert Patches(**{**FIELDS, name: least - 1}).problem() == f"{name} is {least - 1}, and must be at least {least}"
