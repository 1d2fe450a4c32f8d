"""Records the arguments of TileLang for GPUs that have no effect on an NPU, for the kernel's note (T191)."""

from __future__ import annotations

from typing import Any

from tilelang_npu.traced.active_trace import active

__all__ = ["note_gpu_arguments"]


def note_gpu_arguments(name: str, /, **arguments: object) -> None:
    """Records arguments of a call that have no effect, if a kernel is being traced.

    Args:
        name: the function's name after ``T.``.
        arguments: the arguments; None or False means that an argument was not given.
    """
    trace: Any = active()
    if trace is not None:
        for argument, value in arguments.items():
            if value is not None and value is not False:
                trace.ignore(f"{argument}= of T.{name}")
