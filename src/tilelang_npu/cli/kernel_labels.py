"""What kernels of a run are called where several have one name: their names with what differs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.runtime.listeners import Tally

__all__ = ["labelled"]


def labelled(tallies: Sequence[Tally]) -> list[str]:
    """A label for each kernel: its name, and behind it in brackets, where others have it too, the sizes of its arrays; where
    these are equal as well, the arguments of its factory that differ."""
    names = [tally.kernel.name for tally in tallies]
    sizes = [_sizes(tally) for tally in tallies]
    made = [_made_with(tally.kernel) for tally in tallies]
    labels = []
    for place, name in enumerate(names):
        alike = [other for other, called in enumerate(names) if called == name]
        same = [other for other in alike if sizes[other] == sizes[place]]
        said = [sizes[place]] if len(alike) > 1 else []
        if len(same) > 1:
            said += [f"{argument}={value}" for argument, value in made[place].items()
                     if any(made[other].get(argument) != value for other in same)]
        labels.append(f"{name}[{', '.join(said)}]" if any(said) else name)
    return labels


def _sizes(tally: Tally) -> str:
    """The sizes of the arrays that the last call was given, or gave back."""
    kernel = tally.kernel
    given = tally.last.parts[0].recorded.bound.given
    return ", ".join(f"{parameter.name} {'x'.join(map(str, value.shape)) or 'scalar'}"
                     for position, (parameter, value) in enumerate(zip(kernel.params, given, strict=False))
                     if isinstance(value, np.ndarray) and position not in kernel.workspace_idx)


def _made_with(kernel: JITKernel) -> Mapping[str, str]:
    """The arguments of the kernel's factory, as text."""
    if kernel.made_by is None:
        return {}
    function, args, named = kernel.made_by
    bound = inspect.signature(function).bind(*args, **named)
    bound.apply_defaults()
    return {name: repr(value) for name, value in bound.arguments.items()}
