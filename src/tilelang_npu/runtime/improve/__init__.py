"""Improves a kernel's source: searches edits that make the modelled time shorter and leave the results as they are."""

from __future__ import annotations

from importlib.util import find_spec

from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location


def needed_package() -> None:
    """Checks that LibCST is installed, which edits source text.

    Raises:
        TileError: T735, it is not installed.
    """
    if find_spec("libcst") is None:
        raise TileError("improving a kernel needs the package libcst, which is not installed", code="T735",
                        location=user_location(), help="pip install 'tilelang-npu[improve]'")
