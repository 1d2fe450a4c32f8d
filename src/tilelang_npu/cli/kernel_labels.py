"""Labels of kernels that share a name: the name with the sizes or arguments that differ; and the kernels that such a label
names.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.jit.recording import Tally

__all__ = ["differing_arguments", "fits", "labelled"]

_EXTENTS = re.compile(r"\d+(?:x\d+)*")


def labelled(tallies: Sequence[Tally]) -> list[str]:
    """A label for each kernel: its name, with the sizes of its arrays in brackets where several kernels have that name; where
    the sizes are equal too, with the arguments of its factory that differ.
    """
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


def differing_arguments(kernels: Sequence[JITKernel]) -> list[list[str]]:
    """For each kernel the arguments of its factory that differ from those of a kernel with the same name and parameters."""
    made = [_made_with(kernel) for kernel in kernels]
    what = [(kernel.name, [(one.name, one.shape) for one in kernel.params]) for kernel in kernels]
    return [[f"{name}={value}" for name, value in mine.items()
             if any(other.get(name) != value for other, said in zip(made, what, strict=True) if said == what[place])]
            for place, mine in enumerate(made)]


def fits(kernel: JITKernel, said: str) -> bool:
    """Whether the text in brackets of a label describes a kernel: parts separated by commas, which all hold.

    ``A 64x32`` gives the sizes of a parameter, ``64x32`` those of any parameter, ``rows=64`` an argument of the factory; a
    number is any of these.
    """
    shapes = {parameter.name: parameter.shape for parameter in kernel.params if parameter.shape is not None}
    made = _made_with(kernel)

    def holds(part: str) -> bool:
        if _EXTENTS.fullmatch(part):
            if any(_is_of(shape, part) for shape in shapes.values()):
                return True
            return part.isdecimal() and (part in made.values()
                                         or any(part == str(size) for shape in shapes.values() for size in shape))
        name, _, value = re.sub(r"\s*=\s*|\s+", "=", part, count=1).partition("=")
        if name in shapes:
            return _is_of(shapes[name], value)
        return name in made and value.strip("'\"") == made[name].strip("'\"")

    return all(holds(part.strip()) for part in said.split(","))


def _is_of(shape: Sequence[object], extents: str) -> bool:
    """Whether a parameter has these sizes; a symbolic size matches any number."""
    given = extents.split("x")
    return len(given) == len(shape) and all(
        str(size) == one or (one.isdecimal() and not isinstance(size, int)) for size, one in zip(shape, given, strict=True))


def _sizes(tally: Tally) -> str:
    """The sizes of the arrays that the last call was given, or returned."""
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
