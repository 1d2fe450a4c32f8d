"""The environment variables that the package reads, in one place.

Each is read when a kernel is compiled or run, never when one is decorated.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CACHE_DIR", "CHIP", "CLEAR_CACHE", "DISABLE_CACHE", "MODE", "PLATFORM", "SCHEDULE", "VARIABLES", "Variable",
    "cache_directory",
]


@dataclass(frozen=True)
class Variable:
    """An environment variable: its name and what it does, for ``doctor``."""

    name: str
    doc: str

    def text(self) -> str:
        """The value without surrounding blanks; empty where it is not set."""
        return os.environ.get(self.name, "").strip()

    def is_on(self) -> bool:
        """Whether it is set to anything but ``0``, ``false``, ``off`` or ``no``."""
        return self.text().lower() not in ("", "0", "false", "off", "no")


CHIP = Variable("TILELANG_NPU_CHIP", "chip to compile for and to model, unless the kernel names one")
PLATFORM = Variable("TL_PLATFORM", "A2, A3 or A5: the chip family, where no chip is named")
MODE = Variable("TILELANG_ASCEND_MODE", "Developer or Expert; where it is set, target='auto' means the npuir dialect")
CACHE_DIR = Variable("TILELANG_CACHE_DIR", "directory of the kernel cache")
DISABLE_CACHE = Variable("TILELANG_DISABLE_CACHE", "1: neither read nor write the kernel cache on disk")
CLEAR_CACHE = Variable("TILELANG_CLEAR_CACHE", "1: empty the kernel cache before the first kernel is compiled")
SCHEDULE = Variable("TILELANG_NPU_SCHEDULE", "late, early or random:SEED: run kernels in another order that their events allow")

VARIABLES = (CHIP, PLATFORM, MODE, CACHE_DIR, DISABLE_CACHE, CLEAR_CACHE, SCHEDULE)


def cache_directory() -> Path:
    """Where compiled kernels are kept: ``TILELANG_CACHE_DIR``, or the user's cache directory of this system."""
    if named := CACHE_DIR.text():
        return Path(named).expanduser()
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "tilelang_npu"
