"""Selects the dialect of TileLang that a kernel is written in, and the chip that it is compiled for.

``target=`` names the dialect: ``"npuir"``, or ``"ascendc"`` or ``"pto"``, which are the same dialect here. With ``"auto"``, or
``"npu"`` as torch calls the device, or ``"tile"`` as ``tilelang.ascend`` calls its tile compiler, the dialect is npuir if
``TILELANG_ASCEND_MODE`` is set, as only the npuir branch of TileLang-Ascend reads this variable. Otherwise the front end finds
the dialect from the operations that the kernel uses; if these exist in both dialects, it is ascendc. While ``TILELANG_NPU_GPU``
is set, ``"cuda"`` means ``"auto"``.

The chip is the first that is given of: ``chip=`` of the decorator, ``platform=`` of the decorator, ``TILELANG_NPU_CHIP`` (which
``--chip`` sets), ``TL_PLATFORM``; else the default chip of :mod:`tilelang_npu.target`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.argument_location import location_of_word
from tilelang_npu.source_dialects import TracedDialect

if TYPE_CHECKING:
    from pathlib import Path

    from tilelang_npu.target import Chip

_DIALECTS: dict[str, TracedDialect] = {"npuir": "npuir", "ascendc": "ascendc", "pto": "ascendc"}
_OTHER_MACHINES = ("cuda", "hip", "rocm", "metal", "webgpu", "llvm", "cpu", "c", "cutedsl", "musa", "maca", "opencl", "vulkan")


def dialect_of(target: object, at: Location | None) -> Literal[TracedDialect, "auto"]:
    """Returns the dialect of TileLang that a ``target=`` names.

    Args:
        target: the argument ``target`` of ``jit`` or ``compile``.
        at: the source location of the decorator or call.

    Returns:
        ``"npuir"``, ``"ascendc"``, or ``"auto"`` if the front end is to detect the dialect from the kernel's operations.

    Raises:
        TileError: T702 the target is another machine, such as a GPU; T703 the target is unknown.
    """
    name = str("auto" if target is None else target).strip().split(" ", 1)[0].lower()
    if name in ("auto", "npu", "tile") or (name == "cuda" and environment.GPU.is_on()):  # npu: the device in torch
        return "npuir" if environment.MODE.text() else "auto"
    if name in _DIALECTS:
        return _DIALECTS[name]
    where = location_of_word("target", at)
    if name in _OTHER_MACHINES:
        msg = f"target {str(target)!r} is not an Ascend NPU"
        raise TileError(msg, code="T702", location=where,
                        help="write target=\"npuir\"; or run the script as it is with `tilelang-npu run --gpu`"
                        if name == "cuda" else "write target=\"npuir\"; the body of a GPU kernel can stay as it is")
    from difflib import get_close_matches

    near = get_close_matches(name, [*_DIALECTS, "auto"], n=1)
    msg = f"unknown target {str(target)!r}"
    advice = f"did you mean {near[0]!r}?" if near else "the targets are 'auto', 'npuir', 'ascendc', 'pto' and 'tile'"
    raise TileError(msg, code="T703", location=where, help=advice)


def select_chip(chip: str | Path | Chip | None, platform: object, at: Location | None) -> Chip:
    """Returns the chip to compile for: the first that is given of ``chip``, ``platform``, ``TILELANG_NPU_CHIP`` and
    ``TL_PLATFORM``, else the default chip.

    Args:
        chip: a chip's name, the path of a TOML or Python file, a ``Chip``, or None.
        platform: the name of a chip family (``A2``, ``A3``, ``A5``); None or ``"auto"`` for none.
        at: the source location of the decorator or call.

    Raises:
        TileError: T701 there is no such chip, T706 there is no such platform, T713 the chip's file is wrong.
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
        known = ", ".join(map(repr, target.families()))
        raise TileError(msg, code="T706", location=at, help=f"the platforms are {known} and 'auto'")
    return chip


def find_chip(name: str | Path | Chip, at: Location | None) -> Chip:
    """Returns the chip with a name, or the chip that a TOML or Python file describes.

    Args:
        name: a chip's name, in upper or lower case, with or without the prefix ``Ascend``; the path of a file; a ``Chip``; or
            an empty string for the default chip.
        at: the source location for an error.

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
    """Returns the family (``A2``, ``A3``, ``A5``) of the chip for which a kernel with this ``platform=`` is compiled.

    Raises:
        TileError: T706 there is no such platform.
    """
    return select_chip(None, platform, None).family
