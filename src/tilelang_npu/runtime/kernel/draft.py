"""A draft: a kernel that is traced and not yet lowered. Tuning hands drafts to the executors that compile and time them.

A draft can be pickled. The process that loads it needs neither the kernel's factory nor the factory's module. It contains all
that the caller's environment decides: chip, dialect, and optimisations that are switched off.
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
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.settings.log import silenced
from tilelang_npu.runtime.settings.pass_config_keys import PassConfigKey
from tilelang_npu.runtime.settings.switches import disabled_optimisations, resolve
from tilelang_npu.runtime.settings.targets import dialect_of, select_chip
from tilelang_npu.transforms.ir.collector import collector_waits

if TYPE_CHECKING:
    from tilelang_npu.frontend import Traced
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.settings.jit_settings import Settings


@dataclass(frozen=True)
class Timing:
    """The outcome of compiling and timing a configuration.

    Attributes:
        us: modelled microseconds; None if data decide them, or if the configuration failed.
        code: code of the diagnostic with which it failed; empty if it failed for another reason or did not fail.
        reason: why it failed; empty if it did not.
    """

    us: float | None = None
    code: str = ""
    reason: str = ""

    @property
    def works(self) -> bool:
        """Whether the configuration compiles."""
        return not self.reason

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}" if self.code else self.reason


@dataclass(frozen=True)
class Draft:
    """A kernel before it is lowered.

    Attributes:
        func: the function.
        settings: its settings; none of them depends on the environment.
        traced: the traced kernel.
        key: equal for drafts of equal kernels in one version of this package.
    """

    func: PrimFunc
    settings: Settings
    traced: Traced
    key: str

    @classmethod
    def of(cls, func: PrimFunc, settings: Settings) -> Draft:
        """Traces a function.

        Raises:
            TileError: the function or its settings are wrong.
        """
        dialect, chip = dialect_of(settings.target, settings.at), select_chip(settings.chip, settings.platform, settings.at)
        traced = frontend.trace(func, dialect=dialect)
        switches = resolve(settings.pass_configs, dialect, settings.at)
        off = disabled_optimisations(settings.pass_configs, settings.at)
        configs = {name: value for name, value in (settings.pass_configs or {}).items()
                   if name not in (PassConfigKey.TL_DISABLE, PassConfigKey.TL_DISABLE.value)}
        fixed = replace(settings, target=dialect, chip=chip, verbose=False, debug_root_path=None,
                        pass_configs={**configs, PassConfigKey.TL_DISABLE: list(off)} if off else configs or None)
        facts = {"chip": chip, "dialect": dialect, "switches": sorted(switches.items()), "off": off,
                 "out_idx": settings.out_idx, "workspace_idx": settings.workspace_idx}
        return cls(func, fixed, traced, entries.digest(print_module(traced.module, generic=True, locations=True), facts))

    def compile(self) -> CompiledKernel:
        """Compiles the kernel for a trial.

        Raises:
            TileError: it cannot be compiled.
        """
        from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel

        return CompiledKernel(self.func, self.settings, traced=self.traced, trial=True)


def time_draft(draft: Draft, seconds: float) -> Timing:
    """Compiles a draft and times it without values, within the limit of :func:`time_limit`."""
    try:
        with silenced(), time_limit(seconds), collector_waits():
            launch = draft.compile().trace()
    except Exception as error:  # noqa: BLE001  (any error means that this configuration fails)
        return failure(error)
    return Timing(None if launch is None else launch.time_us)


def failure(error: BaseException) -> Timing:
    """Returns the outcome of a configuration that failed with an error; the reason is one line."""
    if isinstance(error, TileError):
        return Timing(code=error.code or "", reason=error.message)
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return Timing(reason=f"{type(error).__name__}: {text}")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the ``with`` after so many seconds. It has no effect outside of the main thread of a POSIX
    process, where no alarm signal can be received."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread() or seconds <= 0:
        yield
        return

    def interrupt(*_: object) -> None:
        msg = f"longer than {seconds:g} s"
        raise TimeoutError(msg)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
