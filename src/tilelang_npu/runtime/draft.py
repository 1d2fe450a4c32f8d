"""A kernel that is traced and not lowered: what tuning hands to whoever compiles and times it, on this machine or another.

It travels as a pickle, whatever it was made from: neither the factory nor the module that has it is needed where it arrives.
What the environment of the caller decides (chip, dialect, optimisations that are off) is settled in it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilelang_npu import frontend
from tilelang_npu.dialects.text import print_module
from tilelang_npu.errors import TileError
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime import cache
from tilelang_npu.runtime.log import unheard
from tilelang_npu.runtime.switches import PassConfigKey, disabled, resolve
from tilelang_npu.runtime.targets import dialect_of, select_chip
from tilelang_npu.transforms.ir.collector import collector_waits

if TYPE_CHECKING:
    from tilelang_npu.frontend import Traced
    from tilelang_npu.runtime.factory import Settings
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["Draft", "Timing", "at_most", "failed", "timed"]


@dataclass(frozen=True)
class Timing:
    """What became of a configuration.

    Attributes:
        us: modelled microseconds; None where data decide them, or where it does not work.
        code: of the diagnostic; empty for any other reason, and where it works.
        reason: why it does not work; empty where it does.
    """

    us: float | None = None
    code: str = ""
    reason: str = ""

    @property
    def works(self) -> bool:
        """Whether it compiles."""
        return not self.reason

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}" if self.code else self.reason


@dataclass(frozen=True)
class Draft:
    """A kernel before it is lowered.

    Attributes:
        func: the function.
        settings: what it is compiled with; nothing in it is left to the environment.
        traced: what the front end made of it.
        key: equal for drafts of equal kernels, under one version of the package.
    """

    func: PrimFunc
    settings: Settings
    traced: Traced
    key: str

    @classmethod
    def of(cls, func: PrimFunc, settings: Settings) -> Draft:
        """Trace a function.

        Raises:
            TileError: it is wrong, or the settings are.
        """
        dialect, chip = dialect_of(settings.target, settings.at), select_chip(settings.chip, settings.platform, settings.at)
        traced = frontend.trace(func, dialect=dialect)
        switches = resolve(settings.pass_configs, dialect, settings.at)
        off = disabled(settings.pass_configs, settings.at)
        configs = {name: value for name, value in (settings.pass_configs or {}).items()
                   if name not in (PassConfigKey.TL_DISABLE, PassConfigKey.TL_DISABLE.value)}
        settled = replace(settings, target=dialect, chip=chip, verbose=False, debug_root_path=None,
                          pass_configs={**configs, PassConfigKey.TL_DISABLE: list(off)} if off else configs or None)
        facts = {"chip": chip, "dialect": dialect, "switches": sorted(switches.items()), "off": off,
                 "out_idx": settings.out_idx, "workspace_idx": settings.workspace_idx}
        return cls(func, settled, traced, cache.digest(print_module(traced.module, generic=True, locations=True), facts))

    def kernel(self) -> JITKernel:
        """The kernel, to be timed and forgotten.

        Raises:
            TileError: it cannot be compiled.
        """
        from tilelang_npu.runtime.kernel import JITKernel

        return JITKernel(self.func, self.settings, traced=self.traced, tried=True)


def timed(draft: Draft, seconds: float) -> Timing:
    """Compile a draft and time it without values; for that it may take so many seconds where :func:`at_most` can hold it."""
    try:
        with unheard(), at_most(seconds), collector_waits():
            launch = draft.kernel().trace()
    except Exception as error:  # noqa: BLE001  (whatever it is, it is this configuration's)
        return failed(error)
    return Timing(None if launch is None else launch.time_us)


def failed(error: BaseException) -> Timing:
    """An error as the reason for which a configuration does not work, in a line."""
    if isinstance(error, TileError):
        return Timing(code=error.code or "", reason=error.message)
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return Timing(reason=f"{type(error).__name__}: {text}")


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End what happens inside after so many seconds, where the system can: in the main thread of a POSIX process."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread() or seconds <= 0:
        yield
        return

    def end(*_: object) -> None:
        msg = f"longer than {seconds:g} s"
        raise TimeoutError(msg)

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
