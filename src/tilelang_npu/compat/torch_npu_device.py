"""The module ``torch.npu``, which describes the chip that kernels are compiled for as a device of torch.

All calls are synchronous, so streams and waits have no effect. Two events measure the modelled time that the kernels launched
between them take on the chip.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import torch

from tilelang_npu.compat import torch_npu_profiler as profiler
from tilelang_npu.compat.torch_npu_placement import card
from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.settings import targets

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
config = SimpleNamespace(allow_internal_format=False)
amp = torch.amp
matmul = SimpleNamespace(allow_hf32=False)
conv = SimpleNamespace(allow_hf32=True)


class _DeviceState:
    device = 0


@dataclass(frozen=True)
class Properties:
    """The properties of a chip, as ``get_device_properties`` returns them.

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
    """Returns True: the modelled NPU is always available."""
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
    """Returns 0: device memory is host memory, whose use is not counted."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated
utilization = memory_allocated


def memory_stats(device: object = None) -> dict[str, int]:
    """Returns an empty dictionary: the use of memory is not counted."""
    return {}


def memory_snapshot() -> list[dict[str, object]]:
    """Returns an empty list: the use of memory is not counted."""
    return []


def memory_summary(device: object = None, abbreviated: bool = False) -> str:
    """Returns a line of text which says that the use of memory is not counted."""
    return "device memory is the host's: none of it is counted"


def mem_get_info(device: object = None) -> tuple[int, int]:
    """Returns the size of the chip's memory in bytes twice, as the free and as the total memory."""
    memory = get_device_properties().total_memory
    return memory, memory


def device_count() -> int:
    """Returns the number of devices."""
    return _DEVICES


def current_device() -> int:
    """Returns the index of the current device."""
    return _DeviceState.device


def set_device(device: int | str | torch.device) -> None:
    """Sets the current device. All devices are the same modelled chip."""
    if isinstance(device, int):
        _DeviceState.device = device
    else:
        _DeviceState.device = torch.device(device).index or 0


def can_device_access_peer(device: object, peer: object) -> bool:
    """Returns True: the memory of all devices is host memory."""
    return True


class device:
    """A context manager that sets the current device."""

    def __init__(self, device: int | str | torch.device) -> None:
        self.chosen = device
        self.before = 0

    def __enter__(self) -> None:
        self.before = current_device()
        set_device(self.chosen)

    def __exit__(self, *_: object) -> None:
        set_device(self.before)


class device_of(device):
    """A context manager that sets the current device to the device of a tensor."""

    def __init__(self, obj: torch.Tensor) -> None:
        super().__init__(max(obj.get_device(), 0))


def get_device_properties(device: object = None) -> Properties:
    """Returns the properties of the chip for which kernels are compiled by default."""
    chip = targets.select_chip(None, "auto", None)
    return Properties(chip.name, chip.aic, chip.aiv, chip.hbm, chip.l2, chip.aic)


def get_device_name(device: object = None) -> str:
    """Returns the name of the chip for which kernels are compiled by default."""
    return get_device_properties().name


def get_device_capability(device: object = None) -> None:
    """Returns None and issues a warning, as torch_npu does: NPUs have no compute capability."""
    warnings.warn("torch.npu.get_device_capability isn't implemented!", stacklevel=2)  # torch_npu's words


def is_bf16_supported() -> bool:
    """Returns True: all modelled chips support bfloat16."""
    return True


def set_compile_mode(jit_compile: bool = False) -> None:
    """Does nothing: the option is for the vendor's operators, which are not compiled here."""


def set_option(option: object) -> None:
    """Does nothing: the option is for the vendor's operator compiler."""


def manual_seed(seed: int) -> None:
    """Seeds the device's random number generator, which is the host's generator."""
    torch.default_generator.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> int:
    """Seeds the device's random number generator with a random number, and returns that number."""
    return int(torch.default_generator.seed())


def seed_all() -> None:
    """Seeds the random number generators of all devices with a random number."""
    seed()


def initial_seed() -> int:
    """Returns the seed of the device's random number generator."""
    return int(torch.default_generator.initial_seed())


def get_rng_state(device: object = "npu") -> torch.Tensor:
    """Returns the state of the device's random number generator."""
    return torch.default_generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: object = "npu") -> None:
    """Sets the state of the device's random number generator."""
    torch.default_generator.set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """Returns the state of the random number generator of each device; all devices share one generator."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the state of the random number generator that all devices share, to the last of the given states."""
    for state in new_states:
        set_rng_state(state)


def _typed(name: str) -> Callable[..., torch.Tensor]:
    def make(*args: object, **kwargs: object) -> torch.Tensor:
        made: torch.Tensor = getattr(torch, name)(*args, **kwargs).to("npu")
        return made

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Returns a tensor on the device, with the arguments of ``torch.{name}``."
    return make


BFloat16Tensor, HalfTensor, FloatTensor, DoubleTensor = map(
    _typed, ("BFloat16Tensor", "HalfTensor", "FloatTensor", "DoubleTensor"))
BoolTensor, ByteTensor, CharTensor, ShortTensor, IntTensor, LongTensor = map(
    _typed, ("BoolTensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor"))


def _is_in_bad_fork() -> bool:
    return False


class Stream:
    """A stream of torch. It is always empty, because all operations are executed immediately."""

    npu_stream = 0
    _as_parameter_ = 0

    def __init__(self, device: object = None, priority: int = 0, **_: object) -> None:
        self.device = card()

    def synchronize(self) -> None:
        """Does nothing: all operations are finished."""

    def wait_stream(self, stream: object) -> None:
        """Does nothing: all operations of the other stream are finished."""

    def wait_event(self, event: object) -> None:
        """Does nothing: the event has happened."""

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event (a new one if none is given), and returns the event."""
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        """Returns True: all operations are finished."""
        return True


_STREAM = Stream()


def current_stream(device: object = None) -> Stream:
    """Returns the current stream."""
    return _STREAM


default_stream = current_stream


def set_stream(stream: object) -> None:
    """Does nothing: operations of all streams are executed in program order."""


@contextmanager
def stream(stream: object) -> Iterator[None]:
    """A context manager that does nothing: operations of all streams are executed in program order."""
    yield


StreamContext = stream


class Event:
    """A point in time on the device; two events measure the modelled time of the kernels launched between them."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._at: float | None = None

    def record(self, stream: object = None) -> None:
        """Records the current modelled time."""
        self._at = listeners.clock_us()

    def elapsed_time(self, end: Event) -> float:
        """Returns the time to another event in milliseconds.

        This is the modelled time of the kernels that were launched between the two events. torch's own operators take no time.

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
        """Returns True: all operations are finished."""
        return True


ExternalEvent = Event


class NPUGraph:
    """A captured sequence of operations, which is executed only once, while it is captured."""

    def replay(self) -> None:
        """Does nothing: the results remain those of the capture, even if inputs have changed since then."""

    def reset(self) -> None:
        """Does nothing."""

    def pool(self) -> tuple[int, int]:
        """Returns the identifier of a memory pool, which has no effect."""
        return (0, 0)


@contextmanager
def graph(npu_graph: NPUGraph, *_: object, **__: object) -> Iterator[None]:
    """A context manager that captures the operations in its body as a graph, by executing them."""
    yield


def graph_pool_handle() -> tuple[int, int]:
    """Returns the identifier of a memory pool, which has no effect."""
    return (0, 0)


def make_graphed_callables(callables: object, *_: object, **__: object) -> object:
    """Returns ``callables`` unchanged: they are executed without graphs."""
    return callables
