"""Defines all environment variables that the package reads.

The variables are read when a kernel is compiled or run, never when a function is decorated.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from tilelang_npu import errors, plugin_loading
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from pathlib import Path


_OVERRIDES: ContextVar[Mapping[str, str]] = ContextVar("overrides", default=MappingProxyType({}))
"""Values that take precedence over those of the process's environment, by the names of variables: :meth:`EnvVar.overridden`."""


@dataclass(frozen=True)
class EnvVar:
    """An environment variable that the package reads.

    Attributes:
        name: the variable's name.
        doc: its possible values and its effect, as ``tilelang-npu doctor`` prints them.
    """

    name: str
    doc: str

    def text(self) -> str:
        """Returns the variable's value without surrounding blanks; an empty string if the variable is not set."""
        overrides = _OVERRIDES.get()
        return (overrides[self.name] if self.name in overrides else os.environ.get(self.name, "")).strip()

    @contextmanager
    def overridden(self, value: str) -> Iterator[None]:
        """Returns a context manager in whose ``with`` statement the variable has another value for the current thread.

        Other threads and child processes see the value of the process's environment.
        """
        token = _OVERRIDES.set({**_OVERRIDES.get(), self.name: value})
        try:
            yield
        finally:
            _OVERRIDES.reset(token)

    def is_on(self) -> bool:
        """Whether the variable is set to a value other than ``0``, ``false``, ``off``, ``no`` and the empty string."""
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
L2 = EnvVar("TILELANG_NPU_L2", "cold: L2 holds nothing when a launch begins; warm (default): what the same launch left")
AS = EnvVar("TILELANG_NPU_AS", "upstream: compile and time kernels as TileLang-Ascend's own compilers do")
SANITIZE = EnvVar("TILELANG_NPU_SANITIZE", "1: look for hazards after every run of a kernel, and raise an error for them")
WITHOUT = EnvVar("TILELANG_NPU_WITHOUT", "names of optimisations that are off in every kernel, separated by commas")
MAX_OPS = EnvVar("TILELANG_NPU_MAX_OPS", "ops that a core may issue in one block before any loop counts as endless")
JOBS = EnvVar("TILELANG_NPU_JOBS", "threads that compute the blocks of a launch; if it is not set, it depends on the launch")
INTERPRET = EnvVar("TILELANG_NPU_INTERPRET", "1: execute kernels as Python, without compiling them")
AGAINST = EnvVar("TILELANG_NPU_AGAINST_INTERPRETER", "1: compute every call compiled and interpreted, and compare the results")
GPU = EnvVar("TILELANG_NPU_GPU", "1, or a compute capability such as 9.0 (1 means 8.0): run scripts for CUDA on the NPU")
TRACEBACK = EnvVar(errors.TRACEBACK, "full: an error shows the frames of this package too, not only the user's")
LOAD = EnvVar(plugin_loading.LOAD, f"plug-in files to load, separated by {os.pathsep!r}")
PLUGINS = EnvVar(plugin_loading.PLUGINS, "0: leave installed plug-ins out")
WORKSPACE = EnvVar("GITHUB_WORKSPACE", "set by GitHub: the directory that paths in reports of findings are relative to")
SURVEY = EnvVar("TILELANG_NPU_SURVEY", "set by `survey`: the file that a pytest run adds its outcomes to")
SURVEY_ROOT = EnvVar("TILELANG_NPU_SURVEY_ROOT", "set by `survey`: the folder that it surveys")

VARIABLES = (CHIP, PLATFORM, MODE, CACHE_DIR, CACHE_KEY, DISABLE_CACHE, CLEAR_CACHE, SCHEDULE, NUMBERS, L2, AS, SANITIZE,
             WITHOUT,
             INTERPRET, AGAINST, MAX_OPS, JOBS, GPU, LOAD, PLUGINS, TRACEBACK,
             WORKSPACE)

_PREFIX = "TILELANG_NPU_"
_OF_UPSTREAM = tuple(f"{_PREFIX}PROFILE{part}" for part in ("", "_DIR", "_SKIP_FIRST", "_WARMUP", "_ACTIVE", "_ANALYSE",
                                                            "_STRICT"))
"""Variables of TileLang-Ascend, which runs a call in a session of ``torch_npu.profiler`` if the first one is not 0. They have
no effect here: each launch has its times."""


def check() -> None:
    """Checks that every environment variable whose name begins with ``TILELANG_NPU_`` is known, to find misspelt names.

    Raises:
        TileError: T721 there is an unknown variable with this prefix.
    """
    known = [variable.name for variable in (*VARIABLES, SURVEY, SURVEY_ROOT)]
    for name in os.environ:
        if name in _OF_UPSTREAM:
            _say_that_profiles_are_not_written()
        elif name.startswith(_PREFIX) and name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            raise TileError(f"there is no variable {name}", code="T721",
                            help=f"did you mean {near[0]}?" if near else "`tilelang-npu doctor` lists the variables")


@cache
def _say_that_profiles_are_not_written() -> None:
    """Issues a warning, once, if the variable is set with which TileLang-Ascend writes a profile of each call."""
    if os.environ.get(_OF_UPSTREAM[0], "0") not in ("", "0"):
        from tilelang_npu.runtime.settings.log import TileWarning

        warnings.warn(f"{_OF_UPSTREAM[0]} has no effect here, and no profile is written: kernel.profile() and `tilelang-npu "
                      "run --trace FILE` have the times of a call", TileWarning, stacklevel=2)


def gpu_capability() -> tuple[int, int]:
    """Returns the compute capability that scripts for CUDA are told: the value of ``TILELANG_NPU_GPU``, or (8, 0).

    Raises:
        TileError: T418, the value is neither a switch nor a capability such as ``9.0``.
    """
    text = GPU.text().lower()
    major, dot, minor = text.partition(".")
    if dot and major.isdecimal() and minor.isdecimal():
        return int(major), int(minor)
    if text in ("", "0", "1", "true", "on", "yes", "false", "off", "no"):
        return 8, 0
    raise TileError(f"{GPU.name}={text} is not a compute capability", code="T418",
                    help="set it to 1, or to a capability with a dot, for example 9.0")


def most_ops() -> int | None:
    """Returns the value of ``TILELANG_NPU_MAX_OPS``, the most ops that a core can issue in one block; None if it is not set.

    Raises:
        TileError: T418, the value is not a positive integer.
    """
    return _number(MAX_OPS, "ops", 20000000)


def as_upstream() -> bool:
    """Whether ``TILELANG_NPU_AS`` is ``upstream``: kernels are compiled and timed as TileLang-Ascend's own compilers do.

    Raises:
        TileError: T418, the variable has another value.
    """
    if (text := AS.text()) in ("", "upstream"):
        return bool(text)
    raise TileError(f"{AS.name}={text} is not a compiler that this package knows", code="T418",
                    help="set it to upstream, or unset it")


def l2_state() -> Literal["warm", "cold"]:
    """Returns the value of ``TILELANG_NPU_L2``, the state of the L2 cache when a launch begins; ``warm`` if it is not set.

    Raises:
        TileError: T418, the value is neither ``warm`` nor ``cold``.
    """
    text = L2.text() or "warm"
    if text == "warm":
        return "warm"
    if text == "cold":
        return "cold"
    raise TileError(f"{L2.name}={text} is neither warm nor cold", code="T418", help=f"set {L2.name} to warm or cold")


def jobs() -> int | None:
    """Returns the value of ``TILELANG_NPU_JOBS``, the number of threads that compute a launch's blocks; None if it is not set.

    Raises:
        TileError: T418, the value is not a positive integer.
    """
    return _number(JOBS, "threads", 2)


def _number(variable: EnvVar, what: str, example: int) -> int | None:
    text = variable.text()
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise TileError(f"{variable.name}={text} is not a positive number of {what}", code="T418",
                        help=f"set it to a positive integer, for example {example}")
    return int(text)


def cache_directory() -> Path:
    """Returns the directory of the kernel cache: ``TILELANG_CACHE_DIR``, or ``tilelang_npu`` in the user's cache directory."""
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
    """Returns the path of the file with the secret that signs cache entries.

    The path is ``TILELANG_NPU_CACHE_KEY``, or ``cache.key`` in a directory for this user's application state, which is not the
    cache directory. None if the user has no home directory.
    """
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
