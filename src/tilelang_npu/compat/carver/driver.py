"""The module ``tilelang.carver.arch.driver``, which describes the chip as a GPU's driver does."""

from __future__ import annotations

from tilelang_npu.compat.carver.arch import AscendArch
from tilelang_npu.errors import meant

__all__ = ["get_cuda_device_properties", "get_device_name", "get_max_dynamic_shared_size_bytes", "get_num_sms",
           "get_shared_memory_per_block"]


def get_num_sms(device_id: int = 0) -> int:
    """Returns the number of Cube cores, each of which executes one block at a time."""
    return AscendArch().aicube_core_num


def get_device_name(device_id: int = 0) -> str:
    """Returns the chip's name."""
    return AscendArch().name


def get_shared_memory_per_block(
    device_id: int = 0,
    format: str = "bytes",  # noqa: A002  (TileLang's function has a parameter of this name)
) -> int:
    """Returns the size of the on-chip memory that a block has for its tiles: of the smaller of UB and L1.

    Args:
        device_id: has no effect.
        format: the unit: ``"bytes"``, ``"kb"`` or ``"mb"``.

    Raises:
        ValueError: there is no such unit.
    """
    units = {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20}
    if format not in units:
        msg = f"get_shared_memory_per_block: format={format!r} is not one of {', '.join(units)}"
        raise meant(ValueError(msg))
    return AscendArch().block_cap // units[format]


def get_cuda_device_properties(device_id: int = 0) -> object:
    """Returns the properties of the card, as ``torch.cuda.get_device_properties`` does with ``--gpu``."""
    from tilelang_npu.compat import torch_cuda

    return torch_cuda.get_device_properties(device_id)


get_max_dynamic_shared_size_bytes = get_shared_memory_per_block
