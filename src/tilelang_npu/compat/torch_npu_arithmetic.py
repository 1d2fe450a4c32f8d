"""Replaces operations that torch computes differently on an NPU card than on the CPU.

Products of half-precision matrices are accumulated in float32 in the order that products of kernels have (``ops/products.py``),
and rounded once. (torch's own CPU products have the same results except for rounding, but are 100 times slower on processors
without half-precision arithmetic.) The exponential is that of the simulator's Vector core. So a kernel and its reference agree
in each bit if they round alike.

Losses accept class numbers of type int32, and an assignment between tensors that share memory copies the source first; on the
CPU, torch raises errors in both cases. A card does not check the indices of a gather, and some references mark hidden elements
by an index past the end. A card then reads an unspecified element; here the last element is read, with a warning.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch

from tilelang_npu.compat.replacements import Replacements
from tilelang_npu.compat.torch_npu_placement import is_on_host
from tilelang_npu.ops.products import product
from tilelang_npu.runtime.settings.log import TileWarning

__all__ = ["install", "uninstall"]

_COUNTS = (torch.int64, torch.int32)


_replaced = Replacements()


class _LibraryState:
    library: torch.library.Library | None = None


_LOW = ("float16", "bfloat16")
_FLOATS = (*_LOW, "float32", "float64")


def _named(kinds: tuple[str, ...], *tensors: torch.Tensor) -> bool:
    return all(str(tensor.dtype).removeprefix("torch.") in kinds for tensor in tensors)


def _by_steps(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    found = product(left.detach().float().numpy(), right.detach().float().numpy())
    return torch.from_numpy(found).to(left.dtype)


def _product_of(rank: int, operator: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The kernel of a product of matrices, or of batches of them. torch refuses operands that do not fit."""

    def multiplied(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        fits = (left.dim() == right.dim() == rank and left.shape[:-2] == right.shape[:-2]
                and left.shape[-1] == right.shape[-2])
        if fits and left.dtype is right.dtype and _named(_LOW, left, right) and left.numel() and right.numel():
            return _by_steps(left, right)
        if fits and left.dtype is not right.dtype and _named(_FLOATS, left, right):
            # a card multiplies half-precision matrices by float32 ones; the product has the type of the left one
            kind = torch.promote_types(left.dtype, right.dtype)
            return operator(left.to(kind), right.to(kind)).to(left.dtype)
        return operator(left, right, out=torch.empty(0, dtype=left.dtype, device="cpu"))

    return multiplied


def _exp(values: torch.Tensor) -> torch.Tensor:
    if values.dtype is not torch.float32 or not values.numel():
        inexact = values.dtype.is_floating_point or values.dtype.is_complex
        kind = values.dtype if inexact else torch.get_default_dtype()
        return torch.exp(values, out=torch.empty(0, dtype=kind, device="cpu"))
    with np.errstate(all="ignore"):  # infinities and zeros are results, as torch has it
        found = torch.from_numpy(np.asarray(np.exp(values.detach().contiguous().numpy())))  # of one number NumPy makes a scalar
    return found if values.is_contiguous() else torch.empty_like(values).copy_(found)  # with the strides that torch gives


def _below_subclasses(kernel: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A kernel in which subclasses of tensors are plain tensors: torch has called their ``__torch_function__`` before."""

    @functools.wraps(kernel)
    def computed(*args: object) -> torch.Tensor:
        with torch._C.DisableTorchFunctionSubclass():
            return kernel(*args)

    return computed


def _loss(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def loss(input: torch.Tensor, target: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:  # noqa: A002  (torch's name)
        if target.dtype is torch.int32:
            target = target.long()
        return original(input, target, *args, **kwargs)

    return loss


def _assignment(original: Callable[..., None]) -> Callable[..., None]:
    """``x[i] = y``, also where ``y`` shares memory with ``x``, which the CPU refuses and a card copies."""

    @functools.wraps(original)
    def assign(self: torch.Tensor, key: object, value: object) -> None:
        try:
            original(self, key, value)
        except RuntimeError as error:
            if "single memory location" not in str(error) or not isinstance(value, torch.Tensor):
                raise
            original(self, key, value.clone())

    return assign


def _index(tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """``tensor[indices]`` with index tensors.

    It replaces the operator that ``__getitem__`` calls, not ``__getitem__`` itself: a class with its own ``__getitem__`` is a
    sequence to Python's C functions, and ``torch.tensor([x])`` would ask a 0-d tensor ``x`` for its length.
    """
    if len(indices) > tensor.dim():
        msg = f"too many indices for tensor of dimension {tensor.dim()} (got {len(indices)})"  # torch's words
        raise IndexError(msg)
    try:
        return _gather(tensor, indices)
    except IndexError as error:
        if is_on_host(tensor) or any(index is not None and index.dtype not in _COUNTS for index in indices):
            raise
        inside = [None if index is None else index.clamp(-size, size - 1)
                  for index, size in zip(indices, tensor.shape, strict=False)]
        found = _gather(tensor, inside)
        warnings.warn(f"{error}: a card would read undefined memory, here the last element is read", TileWarning, stacklevel=3)
        return found


def _gather(tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> torch.Tensor:
    found: torch.Tensor = torch.ops.aten.index.Tensor_out(tensor, indices, out=torch.empty(0, dtype=tensor.dtype, device="cpu"))
    return found


def install() -> None:
    """Replaces torch's matrix products, exponential, cross-entropy losses, gathers and assignments by those of this module."""
    if not _replaced:
        _replaced.replace(torch.Tensor, "__setitem__", _assignment(torch.Tensor.__setitem__))
        for name in ("cross_entropy", "nll_loss"):
            _replaced.replace(torch.nn.functional, name, _loss(getattr(torch.nn.functional, name)))
    if _LibraryState.library is None:
        _LibraryState.library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that its own kernel is replaced, which is intended
            kernels: dict[str, Callable[..., torch.Tensor]] = {
                "mm": _product_of(2, torch.mm), "bmm": _product_of(3, torch.bmm), "exp": _exp, "index.Tensor": _index}
            for operator, kernel in kernels.items():
                _LibraryState.library.impl(operator, _below_subclasses(kernel), "CPU")


def uninstall() -> None:
    """Restores torch's own functions that :func:`install` has replaced."""
    _replaced.undo()
    if _LibraryState.library is not None:
        _LibraryState.library._destroy()
        _LibraryState.library = None
