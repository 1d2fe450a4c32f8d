"""TileLang's host functions that use torch: types by name, and the platform of the chip that torch reports."""

from __future__ import annotations

import sys
from typing import Any

from tilelang_npu.runtime.settings import targets

__all__ = ["determine_fp8_type", "determine_platform", "determine_torch_fp8_type", "map_torch_type"]


def map_torch_type(name: str) -> Any:
    """The type of torch with that name."""
    import torch

    spelled = {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2", "float8_e4m3": "float8_e4m3fn"}
    return getattr(torch, spelled.get(str(name), str(name)))


def determine_fp8_type(fp8_format: str = "e4m3") -> str:
    """The element type of a float8 format, ``"e4m3"`` or ``"e5m2"``.

    Raises:
        ValueError: there is no such format.
    """
    formats = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
    if fp8_format not in formats:
        msg = f"there is no float8 format {fp8_format!r}; there are {', '.join(formats)}"
        raise ValueError(msg)
    return formats[fp8_format]


def determine_torch_fp8_type(fp8_format: str = "e4m3") -> Any:
    """The type of torch of a float8 format; see ``determine_fp8_type``."""
    return map_torch_type(determine_fp8_type(fp8_format))


def determine_platform(platform: str = "auto") -> str:
    """``A2``, ``A3`` or ``A5``. ``"auto"`` gives that of the chip that torch reports, ``A3`` where torch reports none.

    Without torch it is that of the chip that kernels are compiled for.

    Raises:
        TileError: T706, there is no such platform.
    """
    npu: Any = getattr(sys.modules.get("torch"), "npu", None)
    if platform != "auto" or npu is None:
        return targets.determine_platform(platform)
    if not npu.is_available():
        return "A3"
    name = str(npu.get_device_properties(0).name)
    if "910_95" in name or "950" in name:
        return "A5"
    return "A2" if "910B" in name else "A3"
