"""Places the tensors that a script puts on ``npu`` in the CPU's memory.

:func:`also_accept` adds another name of the device, ``cuda``, for scripts that were written for a GPU.

Functions of torch with a device argument are replaced by functions that treat ``npu`` as ``cpu``, in the whole process and in
all of its threads. Registering the device's name would not suffice: torch would accept the name, but has no memory for the
device.

A tensor is copied if a real device would copy it. ``x.npu()`` returns another tensor than ``x``, so that a kernel that works in
place does not change the reference's input; ``y.cpu()`` returns another tensor than ``y``. A tensor is known to be on the host
or on the device if it was copied between them, or created with a device argument, or is a view or clone of such a tensor. All
other tensors count as being on the device. ``tensor.device`` returns this side in a script, and the real device in torch's own
code.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from typing import Any, TypeVar

import torch

from tilelang_npu.compat.replacements import Replacements, is_called_by

__all__ = ["TRUTHFUL", "also_accept", "card", "install", "is_npu", "is_on_card", "is_on_host", "move_to_card", "uninstall"]

V = TypeVar("V")
_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
_FURTHER = ("as_nested_tensor", "from_dlpack", "from_file", "normal")
"""Functions of torch with a device argument that are missing in torch's own list of such functions."""
_NEW = ("new", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
TRUTHFUL = frozenset({"torch", "tilelang_npu"})
"""The packages whose code gets the real device from ``tensor.device``."""

_replaced = Replacements()
_names = ["npu"]
"""The names of the device; ``tensor.device`` gives the last one."""
_inside = threading.local()  # .original: a replaced method is running; under a mode torch calls it by name once more
_sides: MutableMapping[torch.Tensor, str] = {}  # "npu" or "cpu", for tensors whose side is known; weak once installed
_pinned: MutableMapping[torch.Tensor, bool] = {}  # True for tensors that a script pinned; the memory is not really pinned


def is_npu(device: object) -> bool:
    """Whether a device argument means an NPU: ``"npu"``, ``"npu:1"``, ``torch.device("npu")``, or an integer index.

    After ``also_accept("cuda")``, ``"cuda"`` means the NPU too.
    """
    if isinstance(device, str):
        return device.partition(":")[0] in _names
    if isinstance(device, int):
        return not isinstance(device, bool)
    return getattr(device, "type", None) in _names


def also_accept(name: str) -> Callable[[], None]:
    """Makes a name of torch's, such as ``cuda``, a name of the device, which ``tensor.device`` gives.

    Returns:
        a function that undoes it.
    """
    _names.append(name)
    return lambda: _names.remove(name)


def card() -> torch.device:
    """Returns the device of tensors on the card, as torch names it for the script: ``npu:0`` or ``cuda:0``."""
    return torch.device(_names[-1], 0)


def _host(device: object) -> object:
    return "cpu" if is_npu(device) else device


def _side_of(device: object) -> str:
    if is_npu(device):
        return "npu"
    return "cpu" if getattr(device, "type", str(device).partition(":")[0]) == "cpu" else ""


def _known_side(tensor: torch.Tensor) -> str:
    """The side of a tensor, or of the tensor that it is a view of; empty where neither is known."""
    found = _sides.get(tensor)
    if found is None and tensor._base is not None:
        found = _sides.get(tensor._base)
    return found or ""


def is_on_host(tensor: torch.Tensor) -> bool:
    """Whether a script explicitly moved the tensor to the CPU, or created it there."""
    return _known_side(tensor) == "cpu"


def is_on_card(tensor: torch.Tensor) -> bool:
    """Whether a script would have the tensor on the card; it does unless :func:`is_on_host`."""
    return _known_side(tensor) != "cpu"


def _put(tensor: V, side: str) -> V:
    if side and isinstance(tensor, torch.Tensor):
        _sides[tensor] = side
    return tensor


def _moved(before: torch.Tensor, after: torch.Tensor, side: str) -> torch.Tensor:
    """``after``, or a copy of it where it is the same tensor as before the move and was on another side."""
    if after is before and side and _known_side(before) != side:
        after = before.clone()
    return _put(after, side)


def _real(original: Callable[..., V], *args: object, **kwargs: object) -> V:
    _inside.original = True
    try:
        return original(*args, **kwargs)
    finally:
        _inside.original = False


def _is_inside() -> bool:
    return getattr(_inside, "original", False)


def _maker(original: Callable[..., V]) -> Callable[..., V]:
    """A function that makes a tensor on the device, or in pinned memory, of its keywords."""

    @functools.wraps(original)
    def made(*args: object, **kwargs: object) -> V:
        device = kwargs.get("device")
        pins = kwargs.get("pin_memory") is True and (device is None or _side_of(device) != "")
        if _is_inside() or (device is None and not pins):
            return original(*args, **kwargs)
        if pins:
            if is_npu(device):
                msg = "Only dense CPU tensors can be pinned"  # torch's words
                raise RuntimeError(msg)
            kwargs["pin_memory"] = False  # torch pins for an accelerator that it knows
        if device is not None:
            kwargs["device"] = _host(device)
        found = _put(_real(original, *args, **kwargs), "cpu" if pins else _side_of(device))
        return _pin(found) if pins else found

    return made


def _pin(tensor: V) -> V:
    if isinstance(tensor, torch.Tensor):
        _pinned[tensor] = True
    return tensor


def _is_pinned(self: torch.Tensor, device: object = None) -> bool:
    """Whether a script pinned the tensor, or the tensor that it is a view of."""
    return self in _pinned or (self._base is not None and self._base in _pinned)


def _pin_memory(self: torch.Tensor, device: object = None) -> torch.Tensor:
    """The tensor in pinned memory: a copy, unless it is pinned."""
    if _known_side(self) == "npu":
        msg = f"cannot pin '{self.type()}' only dense CPU tensors can be pinned"  # torch's words
        raise RuntimeError(msg)
    return self if _is_pinned(self) else _pin(_put(self.clone(), "cpu"))


def _to(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def to(self: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        first = kwargs.get("device", args[0] if args else None)
        if _is_inside() or not isinstance(first, (str, int, torch.device)):
            return original(self, *args, **kwargs)
        if "device" in kwargs:
            kwargs["device"] = _host(first)
        else:
            args = (_host(first), *args[1:])
        return _moved(self, _real(original, self, *args, **kwargs), _side_of(first))

    return to


def _clone(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A copy is on the tensor's side."""

    @functools.wraps(original)
    def clone(self: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        made = original(self, *args, **kwargs)
        return made if _is_inside() else _put(made, _known_side(self))

    return clone


def move_to_card(self: torch.Tensor, device: object = None, non_blocking: bool = False, **_: object) -> torch.Tensor:
    """Returns the tensor on the card: a copy, unless it is there."""
    return _moved(self, self, "npu")


def _cpu(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def cpu(self: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        if _is_inside():
            return original(self, *args, **kwargs)
        return _moved(self, _real(original, self, *args, **kwargs), "cpu")

    return cpu


def _setitem(original: Callable[..., None]) -> Callable[..., None]:
    """Assignment to elements. An integer that the type does not have wraps, as on the device; torch's CPU refuses it."""

    @functools.wraps(original)
    def setitem(self: torch.Tensor, key: object, value: object) -> None:
        if type(value) is int and not (self.is_floating_point() or self.is_complex() or self.dtype is torch.bool):
            held = torch.iinfo(self.dtype)
            if not held.min <= value <= held.max and -(1 << 63) <= value < 1 << 63 and _sides.get(self) != "cpu":
                value = (value - held.min) % (1 << held.bits) + held.min
        original(self, key, value)

    return setitem


def _device_property() -> property:
    real = torch._C.TensorBase.device.__get__

    def device(self: torch.Tensor) -> torch.device:
        """The device: :func:`card` for a tensor that a script would have there."""
        found: torch.device = real(self)
        if found.type != "cpu" or is_called_by(TRUTHFUL, 1) or is_on_host(self):
            return found
        return card()

    return property(device)


def _is_npu_property() -> property:
    def is_on_npu(self: torch.Tensor) -> bool:
        """Whether a script would have the tensor on the NPU."""
        return is_on_card(self)

    return property(is_on_npu)


def _loader(original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def load(f: object, map_location: object = None, *args: object, **kwargs: object) -> object:
        if isinstance(map_location, Mapping):
            map_location = {_host(source): _host(target) for source, target in map_location.items()}
        elif not callable(map_location):
            map_location = _host(map_location)
        return original(f, map_location, *args, **kwargs)

    return load


def _first_device(original: Callable[..., V]) -> Callable[..., V]:
    """A method whose first argument is a device."""

    @functools.wraps(original)
    def called(self: object, device: object, *args: object, **kwargs: object) -> V:
        return original(self, _host(device), *args, **kwargs)

    return called


def _autocast(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: object, device_type: object = "cpu", *args: object, **kwargs: object) -> None:
        original(self, _host(device_type), *args, **kwargs)

    return init


def _default_device(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def set_default_device(device: object) -> None:
        original(_host(device))

    return set_default_device


def _generator(original: Any) -> type:
    class Generator(original):  # type: ignore[misc]  # torch's class, known once torch is there
        """A source of random numbers; one for the NPU is one for the CPU."""

        def __new__(cls, device: object = "cpu") -> Generator:
            made: Generator = super().__new__(cls, device=_host(device))
            return made

    return Generator


def install() -> None:
    """Makes torch accept the device ``npu`` and place its tensors in the CPU's memory."""
    global _sides, _pinned
    if _replaced:
        return
    _sides, _pinned = (import_module("torch.utils.weak").WeakIdKeyDictionary() for _ in range(2))
    try:
        torch.device("npu")
    except RuntimeError:
        import_module("torch.utils").rename_privateuse1_backend("npu")
    constructors = import_module("torch.utils._device")
    tensor, module = torch.Tensor, torch.nn.Module
    makers = {function.__name__.removeprefix("fft_") for function in constructors._device_constructors()} | {*_LIKE, *_FURTHER}
    for place in (torch, torch.fft, torch.nested):
        for name in sorted(makers):
            if callable(vars(place).get(name)):
                _replaced.replace(place, name, _maker(vars(place)[name]))
    for name in _NEW:
        _replaced.replace(tensor, name, _maker(getattr(tensor, name)))
    device = sys.modules["torch.npu"] = import_module("tilelang_npu.compat.torch_npu_device")
    _replaced.replace(torch, "npu", device)
    _replaced.replace(tensor, "to", _to(tensor.to))
    _replaced.replace(tensor, "npu", move_to_card)
    _replaced.replace(tensor, "clone", _clone(tensor.clone))
    _replaced.replace(tensor, "cpu", _cpu(tensor.cpu))
    _replaced.replace(tensor, "__setitem__", _setitem(tensor.__setitem__))
    _replaced.replace(tensor, "pin_memory", _pin_memory)
    _replaced.replace(tensor, "is_pinned", _is_pinned)
    _replaced.replace(tensor, "device", _device_property())
    _replaced.replace(tensor, "is_npu", _is_npu_property())
    _replaced.replace(module, "npu", lambda self, *_, **__: self.to(card()))  # `to` of a module calls that of its tensors
    _replaced.replace(torch, "load", _loader(torch.load))
    _replaced.replace(torch, "Generator", _generator(torch.Generator))
    _replaced.replace(torch, "set_default_device", _default_device(torch.set_default_device))
    _replaced.replace(constructors.DeviceContext, "__init__", _first_device(constructors.DeviceContext.__init__))
    _replaced.replace(torch.amp.autocast_mode.autocast, "__init__", _autocast(torch.amp.autocast_mode.autocast.__init__))
    from tilelang_npu.compat import torch_npu_operators

    space = types.ModuleType("npu")
    vars(space).update({name: getattr(torch_npu_operators, name) for name in torch_npu_operators.OPERATORS})
    vars(space)["__getattr__"] = torch_npu_operators.missing
    _replaced.replace(torch.ops, "npu", space)


def uninstall() -> None:
    """Restores the functions that :func:`install` replaced. If ``npu`` was set as the default device, the default remains the
    CPU.
    """
    _replaced.undo()
    sys.modules.pop("torch.npu", None)
