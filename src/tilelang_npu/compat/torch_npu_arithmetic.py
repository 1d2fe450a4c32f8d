"""Where a card's torch computes otherwise than the CPU's.

Products of half-precision matrices: the CPU's give the same figures to within a rounding, and two orders of magnitude slower
where the processor has no half-precision arithmetic. Here they are added up in float32 in the order of the Cube, as the
simulator does for kernels, and rounded once; the exponential is the one that the simulator's Vector core has. So a kernel and
the library agree to the bit where they do on a card.

Losses take class numbers of int32 on a card, and int64 alone here. An assignment between tensors that share memory is refused
by the CPU and made by a card.
A card does not check the indices of a gather: references mark places to be masked by an index behind the end. What it finds
there is unspecified; here it is the last element, and a warning.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tilelang_npu.ops.products import product
from tilelang_npu.runtime.log import TileWarning

__all__ = ["install", "uninstall"]

torch: Any = import_module("torch")
_COUNTS = (torch.int64, torch.int32, torch.int16)


class _LibraryState:
    library: Any = None
    getitem: Any = None
    losses: dict[str, Any] = {}
    assignment: Any = None


def _is_half(left: Any, right: Any) -> bool:
    return left.dtype in (torch.float16, torch.bfloat16) and left.dtype is right.dtype


def _by_steps(left: Any, right: Any) -> Any:
    found = product(left.detach().float().numpy(), right.detach().float().numpy())
    return torch.from_numpy(found).to(left.dtype)


def _mm(left: Any, right: Any) -> Any:
    if _is_half(left, right):
        return _by_steps(left, right)
    if left.dtype is not right.dtype:
        return torch.mm(*_promoted(left, right)).to(left.dtype)
    return torch.mm(left, right, out=left.new_empty((left.shape[0], right.shape[1])))


def _promoted(left: Any, right: Any) -> tuple[Any, Any]:
    """Both in the type that holds either. A card multiplies half-precision matrices by float32 ones, which the CPU does not;
    the product has the type of the left one."""
    kind = torch.promote_types(left.dtype, right.dtype)
    return left.to(kind), right.to(kind)


def _bmm(left: Any, right: Any) -> Any:
    if _is_half(left, right):
        return _by_steps(left, right)
    if left.dtype is not right.dtype:
        return torch.bmm(*_promoted(left, right)).to(left.dtype)
    return torch.bmm(left, right, out=left.new_empty((left.shape[0], left.shape[1], right.shape[2])))


def _exp(values: Any) -> Any:
    if values.dtype is not torch.float32:
        return torch.exp(values, out=torch.empty_like(values))
    return torch.from_numpy(np.asarray(np.exp(values.detach().contiguous().numpy())))  # of one number NumPy makes a scalar


def _loss(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002  (torch's name)
        if target.dtype is torch.int32:
            target = target.long()
        return original(input, target, *args, **kwargs)

    return loss


def _assignment(original: Callable[..., Any]) -> Callable[..., Any]:
    """``x[i] = y`` also where ``y`` is the same memory seen otherwise, which the CPU refuses and a card copies."""

    @functools.wraps(original)
    def assign(self: Any, key: Any, value: Any) -> None:
        try:
            original(self, key, value)
        except RuntimeError as error:
            if "single memory location" not in str(error) or not isinstance(value, torch.Tensor):
                raise
            original(self, key, value.clone())

    return assign


def _gathered(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def getitem(self: Any, index: Any) -> Any:
        try:
            return original(self, index)
        except IndexError as error:
            inside = _inside(self, index)
            if inside is None:
                raise
            warnings.warn(f"{error}: a card reads whatever lies there, here it is the last element", TileWarning, stacklevel=2)
            return original(self, inside)

    return getitem


def _inside(tensor: Any, index: Any) -> tuple[Any, ...] | None:
    """The index with the tensors of numbers in it cut to the axes; None where it has none, or is no plain one."""
    parts = index if isinstance(index, tuple) else (index,)
    if len(parts) > tensor.ndim or not all(
            isinstance(part, (int, slice)) or (isinstance(part, torch.Tensor) and part.dtype in _COUNTS) for part in parts):
        return None
    if not any(isinstance(part, torch.Tensor) for part in parts):
        return None
    return tuple(part.clamp(-size, size - 1) if isinstance(part, torch.Tensor) else part
                 for part, size in zip(parts, tensor.shape, strict=False))


def install() -> None:
    """Take over products of half-precision matrices, the exponential, losses by classes, gathers and assignments."""
    if _LibraryState.assignment is None:
        _LibraryState.assignment = torch.Tensor.__setitem__
        torch.Tensor.__setitem__ = _assignment(torch.Tensor.__setitem__)
    if _LibraryState.getitem is None:
        _LibraryState.getitem = torch.Tensor.__getitem__
        torch.Tensor.__getitem__ = _gathered(_LibraryState.getitem)
    for name in ("cross_entropy", "nll_loss"):
        if name not in _LibraryState.losses:
            _LibraryState.losses[name] = getattr(torch.nn.functional, name)
            setattr(torch.nn.functional, name, _loss(_LibraryState.losses[name]))
    if _LibraryState.library is None:
        _LibraryState.library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of what is meant here: that a kernel of its own is replaced
            _LibraryState.library.impl("mm", _mm, "CPU")
            _LibraryState.library.impl("bmm", _bmm, "CPU")
            _LibraryState.library.impl("exp", _exp, "CPU")


def uninstall() -> None:
    """Give them back to torch."""
    if _LibraryState.assignment is not None:
        torch.Tensor.__setitem__ = _LibraryState.assignment
        _LibraryState.assignment = None
    if _LibraryState.getitem is not None:
        torch.Tensor.__getitem__ = _LibraryState.getitem
        _LibraryState.getitem = None
    while _LibraryState.losses:
        name, original = _LibraryState.losses.popitem()
        setattr(torch.nn.functional, name, original)
    if _LibraryState.library is not None:
        _LibraryState.library._destroy()
        _LibraryState.library = None
