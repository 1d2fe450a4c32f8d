"""Drafts: kernels that are traced and not yet lowered. Tuning makes a draft of each configuration; an executor compiles and
times it.

A draft can be pickled. The process that loads a draft needs neither the kernel's factory nor the factory's module, nor the
caller's environment variables: the draft contains the chip, the dialect and the optimisations that are switched off.
"""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu import frontend
from tilelang_npu.dialects.text import print_module
from tilelang_npu.errors import TileError
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.checks.rounding_spread import copied
from tilelang_npu.runtime.settings.log import silenced
from tilelang_npu.runtime.settings.pass_config_keys import PassConfigKey
from tilelang_npu.runtime.settings.switches import disabled_optimisations, resolve
from tilelang_npu.runtime.settings.targets import dialect_of, select_chip
from tilelang_npu.transforms.infra.garbage_collection import paused_garbage_collection

if TYPE_CHECKING:
    from tilelang_npu.frontend import Traced
    from tilelang_npu.runtime.arguments.tensors import Argument
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.settings.jit_settings import Settings
    from tilelang_npu.simulator import AnyLaunch


@dataclass(frozen=True)
class Timing:
    """The outcome of compiling and timing one configuration of a kernel's parameters.

    Attributes:
        us: modelled microseconds of a run; None if the time depends on array elements, or if the configuration failed.
        code: the code of the diagnostic with which the configuration failed; empty if it failed with another exception, or did
            not fail.
        reason: the message with which the configuration failed; empty if it did not fail.
    """

    us: float | None = None
    code: str = ""
    reason: str = ""

    @property
    def works(self) -> bool:
        """Whether the configuration compiles and can be timed or run, that is, whether ``reason`` is empty."""
        return not self.reason

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}" if self.code else self.reason


@dataclass(frozen=True)
class Draft:
    """A kernel that is traced and not yet lowered.

    Attributes:
        func: the function under ``@T.prim_func``.
        settings: the kernel's settings; the chip, the dialect and the disabled optimisations are resolved, so that they do not
            depend on environment variables any more.
        traced: the traced kernel.
        key: a digest of the traced kernel and its settings: drafts with equal keys compile to the same kernel, apart from the
            source lines.
    """

    func: PrimFunc
    settings: Settings
    traced: Traced
    key: str

    @classmethod
    def of(cls, func: PrimFunc, settings: Settings) -> Draft:
        """Traces a function, and returns the draft of the kernel.

        Args:
            func: the function under ``@T.prim_func``.
            settings: the arguments of ``jit``.

        Raises:
            TileError: the function or its settings are wrong.
        """
        dialect, chip = dialect_of(settings.target, settings.at), select_chip(settings.chip, settings.platform, settings.at)
        traced = frontend.trace(func, dialect=dialect, vector_cores=chip.aiv_per_aic, chip=chip)
        switches = resolve(settings.pass_configs, dialect, settings.at)
        off = disabled_optimisations(settings.pass_configs, settings.at)
        configs = {name: value for name, value in (settings.pass_configs or {}).items()
                   if name not in (PassConfigKey.TL_DISABLE, PassConfigKey.TL_DISABLE.value)}
        fixed = replace(settings, target=dialect, chip=chip, verbose=False, debug_root_path=None,
                        pass_configs={**configs, PassConfigKey.TL_DISABLE: list(off)} if off else configs or None)
        facts = {"chip": chip, "dialect": dialect, "switches": sorted(switches.items()), "off": off,
                 "out_idx": settings.out_idx, "workspace_idx": settings.workspace_idx}
        return cls(func, fixed, traced, entries.digest(print_module(traced.module, generic=True), facts))

    def compile(self) -> CompiledKernel:
        """Compiles the draft to a kernel that is only timed: the cache is not used.

        Raises:
            TileError: the kernel cannot be compiled.
        """
        from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel

        return CompiledKernel(self.func, self.settings, traced=self.traced, trial=True)


def time_draft(draft: Draft, seconds: float, arguments: Sequence[Argument] | None = None,
               sizes: Mapping[str, int] | None = None) -> Timing:
    """Compiles a draft and models the time of a run, without computing values where the time does not depend on them.

    Args:
        draft: the traced kernel.
        seconds: the time limit for both, see :func:`time_limit`; if it is exceeded, the configuration counts as failed.
        arguments: the arguments of a call whose time is modelled. They are not changed. None for arrays of the declared shapes.
        sizes: without ``arguments``, the values of symbolic sizes and of number parameters, by name.

    Returns:
        The outcome; any exception becomes the reason of a failure.
    """
    try:
        with silenced(), time_limit(seconds), paused_garbage_collection():
            kernel = draft.compile()
            if sizes and arguments is None and kernel._depends_on_call:
                launch = kernel.trace(*_arguments_of_sizes(kernel, sizes))
            else:
                launch = launch_of_call(kernel, arguments)
    except Exception as error:  # noqa: BLE001  (any error means that this configuration fails)
        return failure(error)
    return Timing(None if launch is None else launch.time_us)


def launch_of_call(kernel: CompiledKernel, arguments: Sequence[Argument] | None) -> AnyLaunch | None:
    """Returns the launch of a call with its modelled times; no listener is notified of it, and no argument is changed.

    Values are computed only if the control flow or addresses of the kernel depend on them.

    Args:
        kernel: the kernel.
        arguments: the arguments of the call; None for arrays of the declared shapes.

    Returns:
        The launch; None without arguments, if the time depends on a call's sizes or on the elements of arrays.
    """
    if arguments is None:
        return kernel.trace()
    return kernel.trace(*arguments) or kernel._run_without_listeners(copied(arguments))


def _arguments_of_sizes(kernel: CompiledKernel, sizes: Mapping[str, int]) -> list[Argument]:
    """Returns arguments of a call with given sizes and numbers; the elements of the arrays have no values."""
    made: list[Argument] = []
    for parameter, shape in kernel.input_shapes(sizes):
        if shape is None:
            made.append(parameter.dtype.numpy.type(sizes.get(parameter.name, 1)))
        else:
            made.append(np.empty(parameter.array_shape(shape), parameter.array_dtype))
    return made


def failure(error: BaseException) -> Timing:
    """Returns the outcome of a configuration that failed with an exception; ``reason`` is the first line of the message."""
    if isinstance(error, TileError):
        return Timing(code=error.code or "", reason=error.message)
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return Timing(reason=f"{type(error).__name__}: {text}")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises a TimeoutError in the body of the ``with`` statement after a number of seconds, in any thread.

    In the main thread of a POSIX process, the alarm signal also interrupts calls of the system that wait. Elsewhere the error
    is raised as soon as the thread executes Python code again.

    Args:
        seconds: the limit; there is none if it is not positive.
    """
    if seconds <= 0:
        yield
        return
    has_alarm = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()
    with _alarm_after(seconds) if has_alarm else _exception_after(seconds):
        yield


@contextmanager
def _alarm_after(seconds: float) -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise TimeoutError(_too_long(seconds))

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_UNTIL_RAISED = 100
"""The number of calls during which an exception that another thread has set is raised; the first one or two suffice."""


class _TimeIsUp(TimeoutError):
    """Raised in a thread by another thread, which can pass a class but no message."""


@contextmanager
def _exception_after(seconds: float) -> Iterator[None]:
    """Raises a TimeoutError in the calling thread, by a timer in another thread.

    An exception that is set is not taken back: CPython would then check for it for ever, and hang where code is traced or
    profiled.
    """
    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    thread, lock, ended, fired = ctypes.c_ulong(threading.get_ident()), threading.Lock(), False, False

    def interrupt() -> None:
        nonlocal fired
        with lock:
            if not ended:
                fired = True
                set_exception(thread, ctypes.py_object(_TimeIsUp))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    raised = False
    try:
        try:
            yield
        except _TimeIsUp:
            raised = True
            raise
        finally:
            with lock:
                ended = True
            timer.cancel()
            if fired and not raised:
                for _ in range(_UNTIL_RAISED):  # one that was set and not raised yet would hit what follows
                    time.sleep(0)
    except _TimeIsUp:
        raise TimeoutError(_too_long(seconds)) from None


def _too_long(seconds: float) -> str:
    return f"longer than {seconds:g} s"
