"""Integer arithmetic for tile sizes, on the host side of a kernel."""

from __future__ import annotations

from typing import Any, overload

__all__ = ["cdiv", "next_power_of_2"]


@overload
def cdiv(dividend: int, divisor: int) -> int: ...
@overload
def cdiv(dividend: Any, divisor: Any) -> Any: ...  # symbolic dimensions
def cdiv(dividend: Any, divisor: Any) -> Any:
    """Returns ``dividend / divisor`` rounded up: the number of tiles of ``divisor`` elements that cover ``dividend`` elements.

    The arguments are integers or symbolic dimensions (``T.dyn``).
    """
    return -(-dividend // divisor)


def next_power_of_2(value: int) -> int:
    """Returns the smallest power of two that is at least ``value``; 1 for values below 1."""
    return 1 << max(value - 1, 0).bit_length()
