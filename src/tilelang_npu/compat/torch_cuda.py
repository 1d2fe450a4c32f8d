"""Makes ``cuda`` a name of the simulated card, for scripts that were written for a GPU.

After ``install()``, the devices ``cuda`` and ``cuda:0``, ``x.cuda()`` and the functions of ``torch.cuda`` mean the card that
``npu`` means: :mod:`.torch_npu_placement` places the tensors, and the functions are those of :mod:`.torch_npu_device`. Only
the functions that ``torch.npu`` does not have are defined here. ``tensor.device`` is ``cuda:0`` and ``tensor.is_cuda`` is True
for a tensor on the card.

torch's own code keeps its functions: it asks ``torch.cuda.is_available()`` to decide whether it can call CUDA, which it cannot.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace

import torch

from tilelang_npu.compat import torch_npu_device as npu
from tilelang_npu.compat import torch_npu_placement as placement
from tilelang_npu.compat.carver.arch import AscendArch
from tilelang_npu.compat.replacements import Replacements, answers_scripts, is_called_by
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.log import TileWarning

__all__ = ["CUDAGraph", "CudaProperties", "CudaStream", "ExternalStream", "get_device_capability", "get_device_properties",
           "install", "uninstall"]

_replaced = Replacements()
_undo_name: list[Callable[[], None]] = []


@dataclass(frozen=True)
class CudaProperties:
    """The properties of the chip in the terms of a GPU, as ``torch.cuda.get_device_properties`` returns them.

    Attributes:
        name: the chip's name.
        major: the first number of the compute capability that scripts are told.
        minor: the second number of the compute capability.
        total_memory: the bytes of device memory.
        multi_processor_count: the number of Cube cores.
        L2_cache_size: the bytes of the L2 cache.
        shared_memory_per_block: the bytes of on-chip memory that a block has for its tiles: those of the smaller of UB and L1.
        shared_memory_per_block_optin: the same.
        shared_memory_per_multiprocessor: the same.
        warp_size: 32, as of a GPU; a core has no threads.
        max_threads_per_block: 1024, as of a GPU.
        max_threads_per_multi_processor: 2048, as of a GPU.
        regs_per_multiprocessor: 65536, as of a GPU.
        is_integrated: 0.
        is_multi_gpu_board: 0.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    L2_cache_size: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    warp_size: int = 32
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 65536
    is_integrated: int = 0
    is_multi_gpu_board: int = 0


def get_device_properties(device: object = None) -> CudaProperties:
    """Returns the properties of the chip for which kernels are compiled by default."""
    arch = AscendArch()
    return CudaProperties(arch.name, *environment.gpu_capability(), arch.chip.hbm, arch.aicube_core_num, arch.l2_cap,
                          *[arch.block_cap] * 3)


def get_device_capability(device: object = None) -> tuple[int, int]:
    """Returns the compute capability that scripts are told: ``TILELANG_NPU_GPU`` where it names one, else (8, 0)."""
    return environment.gpu_capability()


class CudaStream(npu.Stream):
    """A stream of torch. It is always empty, because all operations are executed immediately."""

    cuda_stream = 0


class ExternalStream(CudaStream):
    """A stream that another library made; it is a :class:`CudaStream` like any other."""

    def __init__(self, stream_ptr: int = 0, device: object = None, **_: object) -> None:
        super().__init__(device)


_STREAM = CudaStream()


def current_stream(device: object = None) -> CudaStream:
    """Returns the current stream."""
    return _STREAM


class CUDAGraph(npu.NPUGraph):
    """A captured sequence of operations, which is executed only once, while it is captured."""

    def replay(self) -> None:
        """Issues a warning: the results remain those of the capture, even if inputs have changed since then."""
        warnings.warn("CUDAGraph.replay() computes nothing: the results remain those of the capture", TileWarning, stacklevel=2)

    def capture_begin(self, *_: object, **__: object) -> None:
        """Does nothing: operations are executed while they are captured."""

    def capture_end(self) -> None:
        """Does nothing: operations were executed while they were captured."""


def device_count() -> int:
    """Returns 1: scripts for several GPUs exchange data by libraries of theirs, which need real ones."""
    return 1


def is_current_stream_capturing() -> bool:
    """Returns False: operations are executed immediately, also while a graph is captured."""
    return False


def get_arch_list() -> list[str]:
    """Returns the architecture of the compute capability that scripts are told, such as ``["sm_80"]``."""
    return ["sm_{}{}".format(*environment.gpu_capability())]


def _lazy_init() -> None:
    """Does nothing: nothing needs to be started."""


def _sleep(cycles: int) -> None:
    """Does nothing: the card's work takes modelled time, which this call does not change."""


def set_per_process_memory_fraction(fraction: float, device: object = None) -> None:
    """Does nothing: the use of memory is not counted."""


def get_sync_debug_mode() -> int:
    """Returns 0: synchronisations are not reported."""
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Does nothing: synchronisations are not reported."""


def is_tf32_supported() -> bool:
    """Returns False: products of float32 are computed in float32."""
    return False


def _done(*_: object, **__: object) -> int:
    """Returns 0, the code of success."""
    return 0


def cudart() -> SimpleNamespace:
    """Returns the functions of the CUDA runtime that start and stop a profiler and pin memory, which do nothing here."""
    return SimpleNamespace(cudaProfilerStart=_done, cudaProfilerStop=_done, cudaHostRegister=_done, cudaHostUnregister=_done)


@contextmanager
def _profile() -> Iterator[None]:
    """A context manager that does nothing: a profiler of GPUs has nothing to see."""
    yield


_SHARED = [name for name in npu.__all__ if hasattr(torch.cuda, name) and name not in (
    "Stream", "current_stream", "default_stream", "device_count", "get_device_capability", "get_device_properties", "profiler")]
"""The names that ``torch.cuda`` takes from ``torch.npu``."""
_OWN: dict[str, object] = {
    "CUDAGraph": CUDAGraph, "ExternalStream": ExternalStream, "Stream": CudaStream, "_lazy_init": _lazy_init, "_sleep": _sleep,
    "check_error": _done, "cudart": cudart, "current_stream": current_stream, "default_stream": current_stream,
    "device_count": device_count, "get_arch_list": get_arch_list, "get_device_capability": get_device_capability,
    "get_device_properties": get_device_properties, "get_sync_debug_mode": get_sync_debug_mode,
    "is_current_stream_capturing": is_current_stream_capturing, "is_tf32_supported": is_tf32_supported,
    "set_per_process_memory_fraction": set_per_process_memory_fraction, "set_sync_debug_mode": set_sync_debug_mode}
_MARKS = ("mark", "range_end", "range_pop", "range_push", "range_start")
"""Functions of ``torch.cuda.nvtx`` that mark a time in the profile of a GPU."""


def _is_cuda_property() -> property:
    real = vars(torch._C.TensorBase)["is_cuda"].__get__

    def is_cuda(self: torch.Tensor) -> bool:
        """Whether a script would have the tensor on the card."""
        return bool(real(self)) or (not is_called_by(placement.TRUTHFUL, 1) and placement.is_on_card(self))

    return property(is_cuda)


def _get_device(original: Callable[..., int]) -> Callable[..., int]:
    def get_device(self: torch.Tensor) -> int:
        """The index of the tensor's device; -1 on the CPU."""
        return original(self) if is_called_by(placement.TRUTHFUL, 1) or placement.is_on_host(self) else 0

    return get_device


def _record_stream(self: torch.Tensor, stream: object) -> None:
    """Does nothing: memory is freed when no tensor uses it."""


def _compile(model: object = None, **_: object) -> object:
    """Returns a function or module unchanged, or a decorator that does: torch's compiler has no code generator for the card."""
    return (lambda function: function) if model is None else model


def install() -> None:
    """Makes ``cuda`` a name of the card, and ``torch.cuda`` a module that describes it. Calling it again has no effect."""
    if _replaced:
        return
    _undo_name.append(placement.also_accept("cuda"))
    cuda, tensor = torch.cuda, torch.Tensor
    ours = {**{name: getattr(npu, name) for name in _SHARED}, **_OWN}
    for name, value in ours.items():
        original = getattr(cuda, name)
        if isinstance(value, FunctionType) and callable(original) and not isinstance(original, type):
            value = answers_scripts(value, original, placement.TRUTHFUL)
        _replaced.replace(cuda, name, value)
    for name in _MARKS:
        _replaced.replace(cuda.nvtx, name, _done)
    _replaced.replace(cuda.profiler, "start", _done)
    _replaced.replace(cuda.profiler, "stop", _done)
    _replaced.replace(cuda.profiler, "profile", _profile)
    _replaced.replace(tensor, "cuda", placement.move_to_card)
    _replaced.replace(tensor, "is_cuda", _is_cuda_property())
    _replaced.replace(tensor, "get_device", _get_device(tensor.get_device))
    _replaced.replace(tensor, "record_stream", _record_stream)
    _replaced.replace(torch.nn.Module, "cuda", vars(torch.nn.Module)["npu"])
    _replaced.replace(torch, "compile", _compile)


def uninstall() -> None:
    """Restores ``torch.cuda`` and the methods of tensors that :func:`install` has replaced."""
    _replaced.undo()
    while _undo_name:
        _undo_name.pop()()
