"""The parameters of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilelang_npu.errors import Location
from tilelang_npu.ops import DType
from tilelang_npu.traced.symbols import Dimension


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    Attributes:
        name: its name.
        kind: ``tensor`` or ``scalar``.
        dtype: element type.
        shape: sizes of a tensor, numbers or symbolic dimensions; None for a scalar.
        location: where it is declared.
    """

    name: str
    kind: Literal["tensor", "scalar"]
    dtype: DType
    shape: tuple[Dimension, ...] | None
    location: Location
