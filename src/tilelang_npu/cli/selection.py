"""Selects kernels of a script: ``FILE``, ``FILE:KERNEL``, ``FILE:KERNEL#N`` or ``FILE:KERNEL[SIZES]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.cli.files import existing
from tilelang_npu.cli.kernel_labels import differing_arguments, fits
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.cli.script import Outcome
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

__all__ = ["HELP", "Asked", "asked", "kernels_of", "labels", "offered", "parameters"]

HELP = ("FILE runs as __main__, and stands for every kernel it compiles. FILE:KERNEL is a kernel or a @T.prim_func at the"
        " top level of the script, which is imported; or else the kernel that the script compiles under that name, or under"
        " its factory's, when it runs. FILE:KERNEL#2 is the second kernel with that name, 'FILE:KERNEL[1024x512]' the one with"
        " a parameter of these sizes; also 'KERNEL[A 64x64, B 64x32]', as `run` prints it, and 'KERNEL[rows=64]', by an"
        " argument of its factory.")
_SPELLED = re.compile(r"(?P<name>\w+)(?:#(?P<number>[0-9]+)|\[(?P<sizes>[^\[\]]+)\])?")


@dataclass(frozen=True)
class Asked:
    """The kernels that the command line names.

    Attributes:
        file: the script.
        name: the name of a kernel; None for all that the script compiles.
        number: which of the kernels with that name, from 1; None where no number is given.
        sizes: the text in brackets, see ``kernel_labels.fits``; empty where there is none.
    """

    file: str
    name: str | None = None
    number: int | None = None
    sizes: str = ""


def asked(spec: str) -> Asked:
    """The file and the kernel of ``FILE[:KERNEL]``, with ``#N`` or ``[SIZES]`` after it. A colon in a path that exists belongs
    to the path.
    """
    file, colon, kernel = spec.rpartition(":")
    match = _SPELLED.fullmatch(kernel.strip())
    if not colon or Path(spec).exists() or match is None or not match["name"].isidentifier():
        return Asked(spec)
    return Asked(file, match["name"], None if match["number"] is None else int(match["number"]), match["sizes"] or "")


def kernels_of(wanted: Asked, run: Callable[[Path, str], Outcome]) -> tuple[Outcome, list[JITKernel]]:
    """The outcome of the script, and the kernels that are named; none where the script failed before it compiled them.

    Args:
        wanted: the kernels that are named.
        run: runs the script as the module with a name.

    Raises:
        TileError: T803, the script compiles no kernel, none with the name or number, or several with the name.
    """
    path = existing(wanted.file)
    if wanted.name is not None and wanted.number is None and not wanted.sizes:
        outcome = run(path, path.stem)
        bound = None if outcome.code else _bound(outcome, wanted.name)
        if outcome.code or bound is not None:
            return outcome, [bound] if bound is not None else []
    outcome = run(path, "__main__")
    kernels = offered(outcome.record.kernels, wanted)
    if outcome.code and not kernels:
        return outcome, []
    if not outcome.record.kernels and wanted.name is None:
        raise TileError(f"{wanted.file} compiles no kernel", code="T803",
                        help=f"call the factory in the script, or name a kernel: {wanted.file}:KERNEL")
    if wanted.name is not None and len(kernels) != 1:
        raise _not_one(wanted, outcome, kernels)
    return outcome, kernels


def offered(compiled: Sequence[JITKernel], wanted: Asked) -> list[JITKernel]:
    """The kernels of a script that match, in the order in which they were compiled."""
    if wanted.name is None:
        return list(compiled)
    named = [kernel for kernel in compiled if wanted.name in (kernel.name, _factory(kernel))]
    if wanted.sizes:
        return [kernel for kernel in named if fits(kernel, wanted.sizes)]
    if wanted.number is None:
        return named
    return named[wanted.number - 1:wanted.number] if wanted.number else []


def _factory(kernel: JITKernel) -> str:
    """The name of the function at the top level that made the kernel, or of the kernel itself where it is at the top level."""
    return kernel.prim_func.function.__qualname__.partition(".")[0]


def _bound(outcome: Outcome, name: str) -> JITKernel | None:
    """The kernel with that name at the top level of a script."""
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.jit import factory
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

    found = outcome.names.get(name)
    return factory.compile(found) if isinstance(found, PrimFunc) else found if isinstance(found, JITKernel) else None


def _not_one(wanted: Asked, outcome: Outcome, kernels: Sequence[JITKernel]) -> TileError:
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.jit.factory import Factory
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

    file, name = wanted.file, wanted.name
    assert name is not None
    compiled = outcome.record.kernels
    alike = offered(compiled, Asked(file, name))
    if wanted.sizes and alike:
        listed = list(_listed(file, alike, name))
        fitting = [line for line, kernel in zip(listed, alike, strict=True) if kernel in kernels]
        return TileError(f"{len(kernels) or 'none'} of the {len(alike)} kernels {name} in {file} fit{'s' * (not kernels)} "
                         f"[{wanted.sizes}]", code="T803", notes=fitting or listed,
                         help="give more of its sizes, or its number" if kernels else
                              f"name one by a size that it has, or by its number: {file}:{name}#1")
    if alike:
        count = f"{len(alike)} kernels" if len(alike) > 1 else "one kernel"
        missing = f", no {name}#{wanted.number}" if not kernels else ""
        return TileError(f"{file} compiles {count} with the name {name}{missing}", code="T803",
                         notes=list(_listed(file, alike, name)),
                         help=f"name one of them: {file}:{name}#{1 if len(alike) == 1 else 2}")
    bound = [key for key, value in outcome.names.items() if isinstance(value, (JITKernel, PrimFunc))]
    notes = [f"at its top level: {', '.join(bound)}"] if bound else []
    notes += _listed(file, compiled)
    if isinstance(outcome.names.get(name), Factory):
        factory = outcome.names[name]
        call = name if factory.eager is None else f"{name}.compile"
        return TileError(f"{name} in {file} is a factory that the script does not call; the sizes to compile it for are not"
                         " known", code="T803", notes=notes,
                         help=f"bind its kernel at the top level, such as kernel = {call}(...), and name that")
    near = get_close_matches(name, [*bound, *(kernel.name for kernel in compiled)], n=1)
    return TileError(f"{file} has no kernel {name!r}", code="T803", notes=notes or ["there is none"],
                     help=f"did you mean {near[0]}?" if near else f"take {file} as a whole")


def _listed(file: str, kernels: Sequence[JITKernel], name: str | None = None) -> Iterator[str]:
    """The text that names each kernel on the command line, and its parameters."""
    typed = [f"{file}:{label}" for label in labels(kernels, name)]
    width = max(map(len, typed), default=0)
    for argument, kernel, differing in zip(typed, kernels, differing_arguments(kernels), strict=True):
        yield f"{argument:<{width}}  {parameters(kernel)}" + "".join(f"; {each}" for each in differing)


def labels(kernels: Sequence[JITKernel], name: str | None = None) -> list[str]:
    """``KERNEL``, or ``KERNEL#N`` where several kernels have that name.

    Args:
        kernels: all that a script compiles, or all that ``name`` stands for.
        name: a name that replaces their own.
    """
    names = [name or kernel.name for kernel in kernels]
    return [one + (f"#{names[:position + 1].count(one)}" if names.count(one) > 1 else "")
            for position, one in enumerate(names)]


def parameters(kernel: JITKernel) -> str:
    """The parameters of a kernel with their sizes, in one line."""
    return ", ".join(f"{one.name} {one.dtype}" + ("" if one.shape is None else f" {'x'.join(map(_size, one.shape))}")
                     for one in kernel.params)


def _size(size: object) -> str:
    text = str(size)
    return f"({text})" if " " in text else text
