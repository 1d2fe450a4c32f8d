"""Selects the dialect of TileLang that a kernel is written in, and the chip that it is compiled for.

``target=`` names the dialect: ``"npuir"``, or ``"ascendc"`` or ``"pto"``, which are the same dialect here. With ``"auto"``, or
``"npu"`` as torch calls the device, the dialect is npuir if ``TILELANG_ASCEND_MODE`` is set, as only the npuir branch of
TileLang-Ascend reads this variable. Otherwise the front end finds the dialect from the operations that the kernel uses; if
these exist in both dialects, it is ascendc.

The chip is the first that is given of: ``chip=`` of the decorator, ``platform=`` of the decorator, ``TILELANG_NPU_CHIP`` (which
``--chip`` sets), ``TL_PLATFORM``; else the default chip of :mod:`tilelang_npu.target`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.argument_location import location_of_word

if TYPE_CHECKING:
    from pathlib import Path

    from tilelang_npu.target import Chip

_DIALECTS = {"npuir": "npuir", "ascendc": "ascendc", "pto": "ascendc"}
_OTHER_MACHINES = ("cuda", "hip", "rocm", "metal", "webgpu", "llvm", "cpu", "c", "cutedsl", "musa", "maca", "opencl", "vulkan")


def dialect_of(target: object, at: Location | None) -> str:
    """Returns the dialect of a ``target=``: ``"npuir"``, ``"ascendc"``, or ``"auto"`` if the front end has to find it.

    Raises:
        TileError: T702 the target is another machine, T703 it is unknown.
    """
    if target is None or str(target).strip().lower() in ("auto", "npu"):  # npu is the name of the device in torch
        return "npuir" if environment.MODE.text() else "auto"
    name = str(target).strip().split(" ", 1)[0].lower()
    if name in _DIALECTS:
        return _DIALECTS[name]
    where = location_of_word("target", at)
    if name in _OTHER_MACHINES:
        msg = f"target {str(target)!r} is not an Ascend NPU"
        raise TileError(msg, code="T702", location=where,
                        help="change it to target=\"npuir\"; the body of a GPU kernel can stay as it is")
    from difflib import get_close_matches

    near = get_close_matches(name, [*_DIALECTS, "auto"], n=1)
    msg = f"unknown target {str(target)!r}"
    advice = f"did you mean {near[0]!r}?" if near else "the targets are 'auto', 'npuir', 'ascendc' and 'pto'"
    raise TileError(msg, code="T703", location=where, help=advice)


def select_chip(chip: str | Path | Chip | None, platform: object, at: Location | None) -> Chip:
    """Returns the chip to compile for, see the module's text.

    Raises:
        TileError: T701 there is no such chip, T706 no such platform.
    """
    if chip is not None:
        return find_chip(chip, location_of_word("chip", at))
    if platform not in (None, "auto"):
        return find_chip(_family(platform, location_of_word("platform", at)), None)
    if named := environment.CHIP.text():
        return find_chip(named, None)
    if family := environment.PLATFORM.text():
        return find_chip(_family(family, None), None)
    return find_chip("", None)


def _family(platform: object, at: Location | None) -> Chip:
    from tilelang_npu import target

    chip = target.usual(str(platform).upper())
    if chip is None:
        msg = f"unknown platform {str(platform)!r}"
        raise TileError(msg, code="T706", location=at, help="the platforms are 'A2', 'A3', 'A5' and 'auto'")
    return chip


def find_chip(name: str | Path | Chip, at: Location | None) -> Chip:
    """Returns the chip of a name or a TOML file. The prefix ``Ascend`` may be left out, and case does not count. An empty name
    gives the default chip.

    Raises:
        TileError: T701 there is no such chip; a note lists all chips. T713 the file is wrong.
    """
    from tilelang_npu import target

    try:
        return target.chip(name or target.DEFAULT)
    except TileError as error:
        from difflib import get_close_matches

        near = get_close_matches(str(name), [chip.name for chip in target.chips()], n=1)
        if near and error.code == "T701":
            error.help = f"did you mean {near[0]}?"
        raise (error if error.code == "T713" else error.at(at)) from None


def determine_platform(platform: str = "auto") -> str:
    """Returns the family (``A2``, ``A3`` or ``A5``) of the chip that a kernel with this ``platform=`` is compiled for."""
    return select_chip(None, platform, None).family
