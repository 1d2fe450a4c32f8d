"""Colours in a terminal, where it has them and nobody forbids them (``NO_COLOR``)."""

from __future__ import annotations

import os
from typing import TextIO

from tilelang_npu.display import in_terminal

__all__ = ["painted"]


def painted(text: str, stream: TextIO) -> str:
    """A report with its codes and places in colours, if the stream is a terminal."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else in_terminal(text)
