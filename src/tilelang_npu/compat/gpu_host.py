"""Host functions of TileLang for GPUs that ask for the machine, or that change what only a GPU's compiler makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tilelang_npu.compat.tvm import Target
from tilelang_npu.runtime.settings import environment

if TYPE_CHECKING:
    import torch

F = TypeVar("F")

__all__ = [
    "apply_simplify", "check_cuda_availability", "check_hip_availability", "determine_target", "get_current_device",
    "register_cuda_postproc_callback", "simplify_prim_func", "suppress_stdout_stderr",
]


def determine_target(target: object = "auto", return_object: bool = False) -> str:
    """Returns the target of a kernel: ``target`` if it names one; for ``"auto"``, ``"cuda"`` while ``TILELANG_NPU_GPU`` is set,
    which then means this chip, and ``"npu"`` otherwise.

    Args:
        target: the target.
        return_object: whether to return a :class:`Target`, which is a string too.
    """
    name = str(target)
    if target is None or name == "auto":
        name = "cuda" if environment.GPU.is_on() else "npu"
    return Target(name) if return_object else name


def check_cuda_availability() -> bool:
    """Whether ``cuda`` means the simulated card: whether ``TILELANG_NPU_GPU`` is set."""
    return environment.GPU.is_on()


def check_hip_availability() -> bool:
    """Returns False: no GPU of AMD is simulated."""
    return False


def get_current_device() -> torch.device:
    """Returns torch's device of the card: ``cuda:0`` or ``npu:0``; ``cpu`` if torch has no such device."""
    import torch

    placement = sys.modules.get("tilelang_npu.compat.torch_npu_placement")
    if placement is None or not hasattr(torch, "npu"):
        return torch.device("cpu")
    card: torch.device = placement.card()
    return card


def register_cuda_postproc_callback(function: Callable[..., object] | None = None, override: bool = True) -> object:
    """Returns the function unchanged, as a decorator: there is no CUDA code that it could change."""
    return (lambda decorated: decorated) if function is None or isinstance(function, bool) else function


def apply_simplify(program: F, inline_let: bool = False) -> F:
    """Returns a kernel unchanged: the compiler simplifies every kernel. ``inline_let`` has no effect."""
    return program


def simplify_prim_func(function: F) -> F:
    """Returns the function unchanged, as a decorator: the compiler simplifies every kernel."""
    return function


@contextmanager
def suppress_stdout_stderr() -> Iterator[None]:
    """A context manager that does nothing: compiling and timing a kernel prints nothing."""
    yield
