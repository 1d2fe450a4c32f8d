"""Which dialect of TileLang a kernel is written in, and which chip it is for.

``target=`` names the dialect: ``"npuir"``, or ``"ascendc"`` and ``"pto"``, which differ on the device and not here. With
``"auto"``, or ``"npu"`` as torch calls the device, it is npuir where ``TILELANG_ASCEND_MODE`` is set, since only that branch
reads the variable; otherwise the front end tells it from the operations that the kernel names, and takes ascendc where none of
them tells.

The chip is, in this order: ``chip=`` of the decorator, ``platform=`` of the decorator, ``TILELANG_NPU_CHIP`` (which
``--chip`` sets), ``TL_PLATFORM``, and else the one that ``target`` has as usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime import environment
from tilelang_npu.runtime.pointing import find

if TYPE_CHECKING:
    from pathlib import Path

    from tilelang_npu.target import Chip

__all__ = ["determine_platform", "dialect_of", "find_chip", "select_chip"]

_DIALECTS = {"npuir": "npuir", "ascendc": "ascendc", "pto": "ascendc"}
_ELSEWHERE = ("cuda", "hip", "rocm", "metal", "webgpu", "llvm", "cpu", "c", "cutedsl", "musa", "maca", "opencl", "vulkan")


def dialect_of(target: object, at: Location | None) -> str:
    """``"npuir"`` or ``"ascendc"``, or ``"auto"`` where the kernel's source is to tell.

    Raises:
        TileError: T702 the target is another machine, T703 it is unknown.
    """
    if target is None or str(target).strip().lower() in ("auto", "npu"):  # npu: what torch calls the device
        return "npuir" if environment.MODE.text() else "auto"
    name = str(target).strip().split(" ", 1)[0].lower()
    if name in _DIALECTS:
        return _DIALECTS[name]
    where = find("target", at)
    if name in _ELSEWHERE:
        msg = f"target {str(target)!r} is not an Ascend NPU"
        raise TileError(msg, code="T702", location=where,
                        help="change it to target=\"npuir\"; the body of a GPU kernel can stay as it is")
    from difflib import get_close_matches

    near = get_close_matches(name, [*_DIALECTS, "auto"], n=1)
    msg = f"unknown target {str(target)!r}"
    advice = f"did you mean {near[0]!r}?" if near else "the targets are 'auto', 'npuir', 'ascendc' and 'pto'"
    raise TileError(msg, code="T703", location=where, help=advice)


def select_chip(chip: str | Path | Chip | None, platform: object, at: Location | None) -> Chip:
    """The chip to compile for, by the order that the module describes.

    Raises:
        TileError: T701 there is no such chip, T706 no such platform.
    """
    if chip is not None:
        return find_chip(chip, find("chip", at))
    if platform not in (None, "auto"):
        return find_chip(_family(platform, find("platform", at)), None)
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
    """The chip of that name, or of a TOML file; ``Ascend`` in front and the case of letters may be left out. No name is the
    usual chip's.

    Raises:
        TileError: T701 there is none; a note lists those there are. T713 the file is wrong.
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
    """``A2``, ``A3`` or ``A5``: the family of the chip that a kernel with this ``platform=`` is compiled for."""
    return select_chip(None, platform, None).family
