"""``torch.npu``: the chip that kernels are compiled for, as torch describes a device.

Calls are synchronous, so streams need no order and waits do nothing. Events measure modelled time: the time on the chip of the
kernels between two events.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from tilelang_npu.compat import torch_npu_profiler as profiler
from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.settings import targets

torch: Any = import_module("torch")

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "ExternalEvent", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "NPUGraph", "ShortTensor", "Stream", "StreamContext", "can_device_access_peer",
    "current_device", "current_stream", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "graph",
    "graph_pool_handle", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized",
    "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot",
    "memory_stats", "memory_summary", "profiler", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all", "set_compile_mode", "set_device", "set_option",
    "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize", "utilization",
]

_DEVICES = 16  # scripts choose among the cards of a server; all of them are the same model
_MEMORY = 64 << 30  # bytes of HBM of an Ascend910B card
config = SimpleNamespace(allow_internal_format=False)
amp = torch.amp
matmul = SimpleNamespace(allow_hf32=False)
conv = SimpleNamespace(allow_hf32=True)


class _DeviceState:
    device = 0


@dataclass(frozen=True)
class Properties:
    """The result of ``get_device_properties``.

    Attributes:
        name: the chip's name.
        cube_core_num: the number of Cube cores.
        vector_core_num: the number of Vector cores.
        total_memory: the bytes of device memory.
        L2_cache_size: the bytes of the L2 cache.
        multi_processor_count: the number of Cube cores.
    """

    name: str
    cube_core_num: int
    vector_core_num: int
    total_memory: int
    L2_cache_size: int
    multi_processor_count: int


def is_available() -> bool:
    """True: the modelled NPU is always available."""
    return True


is_initialized = is_available


def init() -> None:
    """Does nothing: nothing needs to be started."""


def synchronize(device: object = None) -> None:
    """Does nothing: all work is finished."""


def empty_cache() -> None:
    """Does nothing: no memory is cached."""


reset_peak_memory_stats = reset_accumulated_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = synchronize
ipc_collect = empty_cache


def memory_allocated(device: object = None) -> int:
    """0: device memory is the host's, and is not counted."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated
utilization = memory_allocated


def memory_stats(device: object = None) -> dict[str, int]:
    """Empty: memory is not counted."""
    return {}


def memory_snapshot() -> list[dict[str, Any]]:
    """Empty: memory is not counted."""
    return []


def memory_summary(device: object = None, abbreviated: bool = False) -> str:
    """One line that says that memory is not counted."""
    return "device memory is the host's: none of it is counted"


def mem_get_info(device: object = None) -> tuple[int, int]:
    """The free and the total bytes of device memory."""
    return _MEMORY, _MEMORY


def device_count() -> int:
    """The number of devices that a script may choose from."""
    return _DEVICES


def current_device() -> int:
    """The device that was set last."""
    return _DeviceState.device


def set_device(device: object) -> None:
    """Chooses a device; all devices are the same model."""
    if isinstance(device, int):
        _DeviceState.device = device
    else:
        _DeviceState.device = torch.device(device).index or 0


def can_device_access_peer(device: object, peer: object) -> bool:
    """True: all devices are the host's memory."""
    return True


class device:
    """Chooses a device for the body of a ``with``."""

    def __init__(self, device: object) -> None:
        self.chosen = device
        self.before = 0

    def __enter__(self) -> None:
        self.before = current_device()
        set_device(self.chosen)

    def __exit__(self, *_: object) -> None:
        set_device(self.before)


class device_of(device):
    """Chooses the device of a tensor for the body of a ``with``."""

    def __init__(self, obj: Any) -> None:
        super().__init__(max(obj.get_device(), 0))


def get_device_properties(device: object = None) -> Properties:
    """The chip of kernels that name none."""
    chip = targets.select_chip(None, "auto", None)
    return Properties(chip.name, chip.aic, chip.aiv, _MEMORY, chip.l2, chip.aic)


def get_device_name(device: object = None) -> str:
    """The chip's name."""
    return get_device_properties().name


def get_device_capability(device: object = None) -> None:
    """None, with a warning, as in torch_npu: NPUs have no such number."""
    warnings.warn("torch.npu.get_device_capability isn't implemented!", stacklevel=2)  # torch_npu's words


def is_bf16_supported() -> bool:
    """True: all modelled chips have bfloat16."""
    return True


def set_compile_mode(jit_compile: bool = False) -> None:
    """Does nothing: it is for the vendor's operators, which are not compiled here."""


def set_option(option: object) -> None:
    """Does nothing: it is for the vendor's operator compiler."""


def manual_seed(seed: int) -> None:
    """Seeds the device's random numbers, which come from the host's generator."""
    torch.default_generator.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> int:
    """Seeds the device's random numbers with a random number, and returns it."""
    return int(torch.default_generator.seed())


def seed_all() -> None:
    """Seeds the random numbers of all devices with a random number."""
    seed()


def initial_seed() -> int:
    """The seed of the device's random numbers."""
    return int(torch.default_generator.initial_seed())


def get_rng_state(device: object = "npu") -> Any:
    """The state of the device's random numbers."""
    return torch.default_generator.get_state()


def set_rng_state(new_state: Any, device: object = "npu") -> None:
    """Sets the state of the device's random numbers."""
    torch.default_generator.set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of all devices' random numbers, which share one state."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Any) -> None:
    """Sets the states of all devices' random numbers, which share one state."""
    for state in new_states:
        set_rng_state(state)


def _typed(name: str) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        return getattr(torch, name)(*args, **kwargs).to("npu")

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A tensor on the device, as ``torch.{name}`` makes one on the CPU."
    return make


BFloat16Tensor, HalfTensor, FloatTensor, DoubleTensor = map(
    _typed, ("BFloat16Tensor", "HalfTensor", "FloatTensor", "DoubleTensor"))
BoolTensor, ByteTensor, CharTensor, ShortTensor, IntTensor, LongTensor = map(
    _typed, ("BoolTensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor"))


def _is_in_bad_fork() -> bool:
    return False


class Stream:
    """A queue of work, which is always empty: work is executed at once."""

    npu_stream = 0
    _as_parameter_ = 0

    def __init__(self, device: object = None, priority: int = 0, **_: object) -> None:
        self.device = torch.device("npu", 0)

    def synchronize(self) -> None:
        """Does nothing: the work is finished."""

    def wait_stream(self, stream: object) -> None:
        """Does nothing: the other stream's work is finished."""

    def wait_event(self, event: object) -> None:
        """Does nothing: the event has happened."""

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, and returns it."""
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        """Whether all work is finished."""
        return True


_STREAM = Stream()


def current_stream(device: object = None) -> Stream:
    """The current stream."""
    return _STREAM


default_stream = current_stream


def set_stream(stream: object) -> None:
    """Does nothing: all streams keep the program's order."""


@contextmanager
def stream(stream: object) -> Iterator[None]:
    """A ``with`` that does nothing: all streams keep the program's order."""
    yield


StreamContext = stream


class Event:
    """A point in time on the device. Two of them give the modelled time of the kernels between them."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._at: float | None = None

    def record(self, stream: object = None) -> None:
        """Records the current time."""
        self._at = listeners.clock_us()

    def elapsed_time(self, end: Event) -> float:
        """The milliseconds to another event: the modelled time of the kernels between them; torch's own operators take none.

        Raises:
            RuntimeError: one of the events was not recorded.
        """
        if self._at is None or end._at is None:
            msg = "both events must be recorded before the time between them is asked for"
            raise RuntimeError(msg)
        return (end._at - self._at) / 1000

    def synchronize(self) -> None:
        """Does nothing: the event has happened."""

    wait = synchronize

    def query(self) -> bool:
        """Whether the event has happened."""
        return True


ExternalEvent = Event


class NPUGraph:
    """A captured sequence. It is executed while it is captured, so its results exist before the first replay."""

    def replay(self) -> None:
        """Does nothing: the results are those of the capture; inputs that changed since then are not read."""

    def reset(self) -> None:
        """Does nothing."""

    def pool(self) -> tuple[int, int]:
        """The identity of a memory pool; graphs share no memory."""
        return (0, 0)


@contextmanager
def graph(npu_graph: NPUGraph, *_: object, **__: object) -> Iterator[None]:
    """Captures a sequence, by executing it."""
    yield


def graph_pool_handle() -> tuple[int, int]:
    """The identity of a memory pool; graphs share no memory."""
    return (0, 0)


def make_graphed_callables(callables: Any, *_: object, **__: object) -> Any:
    """The callables themselves."""
    return callables
