"""Places tensors that a script wants on ``npu`` in the CPU's memory.

Functions that take a device are replaced by functions that read ``npu`` as ``cpu``, in the whole process and in all of its
threads. Registering the name of the device would not be enough: torch could parse it, but would have no memory for it.

A tensor is copied where a device would copy it. ``x.npu()`` is another tensor than ``x``, so that a kernel that works in place
does not change the input of the reference; ``y.cpu()`` is another tensor than ``y``. The side of a tensor is known for tensors
that were copied between the sides or made with a device, and for views and clones of them; others count as on the device.
``tensor.device`` gives that side to a script, and the real device to torch's own code.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["install", "is_npu", "is_on_host", "uninstall"]

torch: Any = import_module("torch")

_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
_FURTHER = ("as_nested_tensor", "from_dlpack", "from_file", "normal")
"""Functions with a device that are not among torch's own list of constructors."""
_NEW = ("new", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
_TRUTHFUL = frozenset({"torch", "tilelang_npu"})
"""Packages whose code sees the real device of a tensor."""

_replaced: list[tuple[Any, str, Any]] = []
"""Owner, name and former value of each replaced attribute; None where the owner did not have it itself."""
_inside = threading.local()  # .original: a replaced method is running; under a mode torch calls it by name once more
_sides: Any = None  # tensor -> "npu" or "cpu", for tensors whose side is known
_pinned: Any = None  # tensor -> True, for tensors that a script pinned; the memory is not really pinned


def is_npu(device: object) -> bool:
    """Whether a device is an NPU: ``"npu"``, ``"npu:1"``, ``torch.device("npu")``, or an index."""
    if isinstance(device, str):
        return device.partition(":")[0] == "npu"
    if isinstance(device, int):
        return not isinstance(device, bool)
    return getattr(device, "type", None) == "npu"


def _host(device: Any) -> Any:
    return "cpu" if is_npu(device) else device


def _side_of(device: Any) -> str:
    if is_npu(device):
        return "npu"
    return "cpu" if getattr(device, "type", str(device).partition(":")[0]) == "cpu" else ""


def _known_side(tensor: Any) -> str:
    """The side of a tensor, or of the tensor that it is a view of; empty where neither is known."""
    found = _sides.get(tensor)
    if found is None and tensor._base is not None:
        found = _sides.get(tensor._base)
    return found or ""


def is_on_host(tensor: Any) -> bool:
    """Whether a script moved the tensor to the CPU, or made it there, by name."""
    return _known_side(tensor) == "cpu"


def _put(tensor: Any, side: str) -> Any:
    if side and isinstance(tensor, torch.Tensor):
        _sides[tensor] = side
    return tensor


def _moved(before: Any, after: Any, side: str) -> Any:
    """``after``, or a copy of it where it is the same tensor as before the move and was on another side."""
    if after is before and side and _known_side(before) != side:
        after = before.clone()
    return _put(after, side)


def _real(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    _inside.original = True
    try:
        return original(*args, **kwargs)
    finally:
        _inside.original = False


def _is_inside() -> bool:
    return getattr(_inside, "original", False)


def _maker(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a tensor on the device, or in pinned memory, of its keywords."""

    @functools.wraps(original)
    def made(*args: Any, **kwargs: Any) -> Any:
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


def _pin(tensor: Any) -> Any:
    if isinstance(tensor, torch.Tensor):
        _pinned[tensor] = True
    return tensor


def _is_pinned(self: Any, device: object = None) -> bool:
    """Whether a script pinned the tensor, or the tensor that it is a view of."""
    return self in _pinned or (self._base is not None and self._base in _pinned)


def _pin_memory(self: Any, device: object = None) -> Any:
    """The tensor in pinned memory: a copy, unless it is pinned."""
    if _known_side(self) == "npu":
        msg = f"cannot pin '{self.type()}' only dense CPU tensors can be pinned"  # torch's words
        raise RuntimeError(msg)
    return self if _is_pinned(self) else _pin(_put(self.clone(), "cpu"))


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        first = kwargs.get("device", args[0] if args else None)
        if _is_inside() or not isinstance(first, (str, int, torch.device)):
            return original(self, *args, **kwargs)
        if "device" in kwargs:
            kwargs["device"] = _host(first)
        else:
            args = (_host(first), *args[1:])
        if not isinstance(self, torch.Tensor):  # a module, which moves its tensors by their own method
            return original(self, *args, **kwargs)
        return _moved(self, _real(original, self, *args, **kwargs), _side_of(first))

    return to


def _clone(original: Callable[..., Any]) -> Callable[..., Any]:
    """A copy is on the tensor's side."""

    @functools.wraps(original)
    def clone(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        return made if _is_inside() else _put(made, _known_side(self))

    return clone


def _npu(self: Any, device: object = None, non_blocking: bool = False, **_: object) -> Any:
    """The tensor on the NPU: a copy, unless it is there."""
    return _moved(self, self, "npu")


def _cpu(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def cpu(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_inside():
            return original(self, *args, **kwargs)
        return _moved(self, _real(original, self, *args, **kwargs), "cpu")

    return cpu


def _setitem(original: Callable[..., Any]) -> Callable[..., Any]:
    """Assignment to elements. An integer that the type does not have wraps, as on the device; torch's CPU refuses it."""

    @functools.wraps(original)
    def setitem(self: Any, key: Any, value: Any) -> None:
        if type(value) is int and not (self.is_floating_point() or self.is_complex() or self.dtype is torch.bool):
            held = torch.iinfo(self.dtype)
            if not held.min <= value <= held.max and -(1 << 63) <= value < 1 << 63 and _sides.get(self) != "cpu":
                value = (value - held.min) % (1 << held.bits) + held.min
        original(self, key, value)

    return setitem


def _device_property() -> property:
    real = torch._C.TensorBase.device.__get__

    def device(self: Any) -> Any:
        """The device: ``npu:0`` for a tensor that a script would have there."""
        found = real(self)
        asking = sys._getframe(1).f_globals.get("__name__", "")
        if found.type != "cpu" or asking.partition(".")[0] in _TRUTHFUL or _known_side(self) == "cpu":
            return found
        return torch.device("npu", 0)

    return property(device)


def _is_npu_property() -> property:
    def is_on_npu(self: Any) -> bool:
        """Whether a script would have the tensor on the NPU."""
        return bool(_known_side(self) != "cpu")

    return property(is_on_npu)


def _loader(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, Mapping):
            map_location = {_host(source): _host(target) for source, target in map_location.items()}
        elif not callable(map_location):
            map_location = _host(map_location)
        return original(f, map_location, *args, **kwargs)

    return load


def _first_device(original: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose first argument is a device."""

    @functools.wraps(original)
    def called(self: Any, device: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, _host(device), *args, **kwargs)

    return called


def _autocast(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def init(self: Any, device_type: Any = "cpu", *args: Any, **kwargs: Any) -> None:
        original(self, _host(device_type), *args, **kwargs)

    return init


def _default_device(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def set_default_device(device: Any) -> None:
        original(_host(device))

    return set_default_device


def _generator(original: Any) -> Any:
    class Generator(original):  # type: ignore[misc]  # torch's class, known once torch is there
        """A source of random numbers; one for the NPU is one for the CPU."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, device=_host(device))

    return Generator


def _replace(owner: Any, name: str, new: Any) -> None:
    _replaced.append((owner, name, vars(owner).get(name)))
    setattr(owner, name, new)


def install() -> None:
    """Adds the device to torch."""
    global _sides, _pinned
    if _replaced:
        return
    _sides, _pinned = (import_module("torch.utils.weak").WeakIdKeyDictionary() for _ in range(2))
    try:
        torch.device("npu")
    except RuntimeError:
        torch.utils.rename_privateuse1_backend("npu")
    constructors = import_module("torch.utils._device")
    tensor, module = torch.Tensor, torch.nn.Module
    makers = {function.__name__.removeprefix("fft_") for function in constructors._device_constructors()} | {*_LIKE, *_FURTHER}
    for place in (torch, torch.fft, torch.nested):
        for name in sorted(makers):
            if callable(vars(place).get(name)):
                _replace(place, name, _maker(vars(place)[name]))
    for name in _NEW:
        _replace(tensor, name, _maker(getattr(tensor, name)))
    _replace(torch, "npu", import_module("tilelang_npu.compat.torch_npu_device"))
    sys.modules["torch.npu"] = torch.npu
    _replace(tensor, "to", _to(tensor.to))
    _replace(tensor, "npu", _npu)
    _replace(tensor, "clone", _clone(tensor.clone))
    _replace(tensor, "cpu", _cpu(tensor.cpu))
    _replace(tensor, "__setitem__", _setitem(tensor.__setitem__))
    _replace(tensor, "pin_memory", _pin_memory)
    _replace(tensor, "is_pinned", _is_pinned)
    _replace(tensor, "device", _device_property())
    _replace(tensor, "is_npu", _is_npu_property())
    _replace(module, "to", _to(module.to))
    _replace(module, "npu", lambda self, *_, **__: self.to("cpu"))
    _replace(torch, "load", _loader(torch.load))
    _replace(torch, "Generator", _generator(torch.Generator))
    _replace(torch, "set_default_device", _default_device(torch.set_default_device))
    _replace(constructors.DeviceContext, "__init__", _first_device(constructors.DeviceContext.__init__))
    _replace(torch.amp.autocast_mode.autocast, "__init__", _autocast(torch.amp.autocast_mode.autocast.__init__))
    from tilelang_npu.compat import torch_npu_operators

    space = types.ModuleType("npu")
    vars(space).update({name: getattr(torch_npu_operators, name) for name in torch_npu_operators.OPERATORS})
    vars(space)["__getattr__"] = torch_npu_operators.missing
    _replace(torch.ops, "npu", space)


def uninstall() -> None:
    """Removes the device; a default device that was set remains the CPU."""
    while _replaced:
        owner, name, old = _replaced.pop()
        if old is None:
            delattr(owner, name)
        else:
            setattr(owner, name, old)
    sys.modules.pop("torch.npu", None)
