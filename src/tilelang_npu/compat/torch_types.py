"""Host functions of TileLang that use torch: they return torch's types by name, and the platform of the chip."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tilelang_npu.runtime.settings import environment, targets
from tilelang_npu.target import family_of

if TYPE_CHECKING:
    import torch

__all__ = ["determine_fp8_type", "determine_platform", "determine_torch_fp8_type", "map_torch_type"]


def map_torch_type(name: str) -> torch.dtype:
    """Returns torch's type with the given name, such as ``float16``; TileLang's names of float8 types are accepted too."""
    import torch

    spelled = {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2", "float8_e4m3": "float8_e4m3fn"}
    found: torch.dtype = getattr(torch, spelled.get(str(name), str(name)))
    return found


def determine_fp8_type(fp8_format: str = "e4m3") -> str:
    """Returns the name of the element type for a float8 format, which must be ``"e4m3"`` or ``"e5m2"``.

    Raises:
        ValueError: the format is unknown.
    """
    formats = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
    if fp8_format not in formats:
        msg = f"there is no float8 format {fp8_format!r}; there are {', '.join(formats)}"
        raise ValueError(msg)
    return formats[fp8_format]


def determine_torch_fp8_type(fp8_format: str = "e4m3") -> torch.dtype:
    """Returns torch's type for a float8 format, which must be ``"e4m3"`` or ``"e5m2"``."""
    return map_torch_type(determine_fp8_type(fp8_format))


def determine_platform(platform: str = "auto") -> str:
    """Returns the platform of a chip: ``A2``, ``A3`` or ``A5``.

    Args:
        platform: the platform itself, or ``"auto"`` for the platform of the chip that CANN's module ``acl`` reports, if it is
            loaded, or torch. If they report no known chip, the result is ``A3``. If neither is loaded, it is the platform of
            the chip for which kernels are compiled by default.

    Raises:
        TileError: T706, the platform is unknown.
    """
    acl, npu = sys.modules.get("acl"), getattr(sys.modules.get("torch"), "npu", None)
    if platform != "auto" or environment.PLATFORM.text() or (acl is None and npu is None):
        return targets.determine_platform(platform)
    if acl is not None:
        return family_of(str(acl.get_soc_name())) or "A3"
    if npu is None or not npu.is_available():
        return "A3"
    named = npu.get_device_name() if hasattr(npu, "get_device_name") else None
    if not isinstance(named, str):  # older tests of TileLang-Ascend replace the properties of the device instead
        named = str(npu.get_device_properties(0).name)
    return family_of(named) or "A3"
