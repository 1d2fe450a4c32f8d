"""Labels that distinguish kernels of the same name by their sizes or arguments, and the search for the kernels of such a label.
"""

from __future__ import annotations

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
    """Returns a label for each kernel.

    The label is the kernel's name. If several kernels have the name, the sizes of the kernel's arrays follow in brackets. If
    the sizes are equal too, the arguments of the kernel's factory that differ follow.
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
    """Returns, for each kernel, those arguments of its factory (as ``name=value``) that distinguish it from another kernel with
    the same name and the same parameters."""
    made = [_made_with(kernel) for kernel in kernels]
    what = [(kernel.name, [(one.name, one.shape) for one in kernel.params]) for kernel in kernels]
    return [[f"{name}={value}" for name, value in mine.items()
             if any(other.get(name) != value for other, said in zip(made, what, strict=True) if said == what[place])]
            for place, mine in enumerate(made)]


def fits(kernel: JITKernel, said: str) -> bool:
    """Whether a kernel fits the text in brackets of a label, which is a list of conditions separated by commas.

    The condition ``A 64x32`` states the sizes of the parameter ``A``, ``64x32`` the sizes of any parameter, and ``rows=64`` an
    argument of the kernel's factory. A single number must be a size of a parameter or an argument of the factory. All
    conditions must hold.

    Args:
        kernel: the kernel.
        said: the text in brackets.
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
    """Returns the sizes of the arrays that were passed to, or returned by, the last call of a kernel, as text."""
    kernel = tally.kernel
    given = tally.last.parts[0].recorded.bound.given
    return ", ".join(f"{parameter.name} {'x'.join(map(str, value.shape)) or 'scalar'}"
                     for position, (parameter, value) in enumerate(zip(kernel.params, given, strict=False))
                     if isinstance(value, np.ndarray) and position not in kernel.workspace_idx)


def _made_with(kernel: JITKernel) -> Mapping[str, str]:
    """Returns the arguments of the kernel's factory, by name, as text."""
    if kernel.made_by is None:
        return {}
    return {name: repr(value) for name, value in kernel.made_by.arguments().items() if not hasattr(value, "shape")}
