"""The environment variables that the package reads, in one place.

They are read when a kernel is compiled or run, never when a function is decorated.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilelang_npu import errors
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class EnvVar:
    """An environment variable: its name and what it does, for ``doctor``."""

    name: str
    doc: str

    def text(self) -> str:
        """Returns the value without surrounding blanks; an empty string if it is not set."""
        return os.environ.get(self.name, "").strip()

    def is_on(self) -> bool:
        """Whether it is set to a value other than ``0``, ``false``, ``off`` and ``no``."""
        return self.text().lower() not in ("", "0", "false", "off", "no")


CHIP = EnvVar("TILELANG_NPU_CHIP", "chip to compile for and to model, if the kernel names none")
PLATFORM = EnvVar("TL_PLATFORM", "A2, A3 or A5: the chip family, if no chip is named")
MODE = EnvVar("TILELANG_ASCEND_MODE", "Developer or Expert; if it is set, target='auto' means the npuir dialect")
CACHE_DIR = EnvVar("TILELANG_CACHE_DIR", "directory of the kernel cache")
CACHE_KEY = EnvVar("TILELANG_NPU_CACHE_KEY", "file of the secret that the entries of the kernel cache are signed with")
DISABLE_CACHE = EnvVar("TILELANG_DISABLE_CACHE", "1: neither read nor write the kernel cache on disk")
CLEAR_CACHE = EnvVar("TILELANG_CLEAR_CACHE", "1: empty the kernel cache before the first kernel is compiled")
SCHEDULE = EnvVar("TILELANG_NPU_SCHEDULE", "late, early or random:SEED: run kernels in another order that their waits allow")
NUMBERS = EnvVar("TILELANG_NPU_NUMBERS", "1: report in every run where NaN and infinities appear and what conversions lose")
SANITIZE = EnvVar("TILELANG_NPU_SANITIZE", "1: look for hazards after every run of a kernel, and raise an error for them")
WITHOUT = EnvVar("TILELANG_NPU_WITHOUT", "names of optimisations that are off in every kernel, separated by commas")
MAX_OPS = EnvVar("TILELANG_NPU_MAX_OPS", "ops that a core may issue in one block before any loop counts as endless")
JOBS = EnvVar("TILELANG_NPU_JOBS", "threads that compute the blocks of a launch; if it is not set, it depends on the launch")
INTERPRET = EnvVar("TILELANG_NPU_INTERPRET", "1: execute kernels as Python, without compiling them")
AGAINST = EnvVar("TILELANG_NPU_AGAINST_INTERPRETER", "1: compute every call compiled and interpreted, and compare the results")
TRACEBACK = EnvVar(errors.TRACEBACK, "full: an error shows the frames of this package too, not only the user's")
SURVEY = EnvVar("TILELANG_NPU_SURVEY", "set by `survey`: the file that a pytest run adds its outcomes to")
SURVEY_ROOT = EnvVar("TILELANG_NPU_SURVEY_ROOT", "set by `survey`: the folder that it surveys")

VARIABLES = (CHIP, PLATFORM, MODE, CACHE_DIR, CACHE_KEY, DISABLE_CACHE, CLEAR_CACHE, SCHEDULE, NUMBERS, SANITIZE, WITHOUT,
             INTERPRET, AGAINST, MAX_OPS, JOBS, TRACEBACK)

_PREFIX = "TILELANG_NPU_"


def check() -> None:
    """Checks that the environment has no unknown variable with this package's prefix, which is most likely a misspelt name.

    Raises:
        TileError: T721 there is one.
    """
    known = [variable.name for variable in (*VARIABLES, SURVEY, SURVEY_ROOT)]
    for name in os.environ:
        if name.startswith(_PREFIX) and name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            raise TileError(f"there is no variable {name}", code="T721",
                            help=f"did you mean {near[0]}?" if near else "`tilelang-npu doctor` lists them")


def most_ops() -> int | None:
    """Returns the value of ``TILELANG_NPU_MAX_OPS``; None if it is not set.

    Raises:
        TileError: T418, it is not a positive number.
    """
    return _number(MAX_OPS, "ops", 20000000)


def jobs() -> int | None:
    """Returns the value of ``TILELANG_NPU_JOBS``; None if it is not set.

    Raises:
        TileError: T418, it is not a positive number.
    """
    return _number(JOBS, "threads", 2)


def _number(variable: EnvVar, what: str, example: int) -> int | None:
    text = variable.text()
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise TileError(f"{variable.name}={text} is no number of {what}", code="T418", help=f"for example {example}")
    return int(text)


def cache_directory() -> Path:
    """Returns the directory of the kernel cache: ``TILELANG_CACHE_DIR``, or a directory in the user's cache directory."""
    from pathlib import Path

    if named := CACHE_DIR.text():
        return Path(named).expanduser()
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "tilelang_npu"


def cache_key_file() -> Path | None:
    """Returns the file of the secret that cache entries are signed with: ``TILELANG_NPU_CACHE_KEY``, or a file in the user's
    state directory, which lies outside of the cache directory; None for a user without a home directory."""
    from pathlib import Path

    try:
        if named := CACHE_KEY.text():
            return Path(named).expanduser().absolute()
        if sys.platform == "win32":
            root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "tilelang_npu" / "state"
        elif sys.platform == "darwin":
            root = Path.home() / "Library" / "Application Support" / "tilelang_npu"
        else:
            root = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tilelang_npu"
    except RuntimeError:
        return None
    return root / "cache.key"
