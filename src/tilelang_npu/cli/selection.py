"""Selects kernels of a script by a command line argument ``FILE``, ``FILE:KERNEL``, ``FILE:KERNEL#N`` or
``FILE:KERNEL[SIZES]``.
"""

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

HELP = ("FILE is run as __main__ and selects every kernel that the script compiles. FILE:KERNEL selects a kernel or a"
        " @T.prim_func at the top level of the script, which is then only imported; if there is none, the script is run, and"
        " the kernel that it compiles with that name, or with that name of the factory, is selected. FILE:KERNEL#2 selects the"
        " second kernel with that name, and 'FILE:KERNEL[1024x512]' the kernel with a parameter of these sizes. Brackets can"
        " also contain sizes by parameter, 'KERNEL[A 64x64, B 64x32]', as `run` prints them, or an argument of the factory,"
        " 'KERNEL[rows=64]'.")
_SPELLED = re.compile(r"(?P<name>\w+)(?:#(?P<number>[0-9]+)|\[(?P<sizes>[^\[\]]+)\])?")


@dataclass(frozen=True)
class Asked:
    """A parsed argument that names a script and optionally one of the script's kernels.

    Attributes:
        file: the path of the script.
        name: the name of the kernel; None for all kernels that the script compiles.
        number: the number of the kernel among the kernels with that name, counted from 1; None if the argument has no number.
        sizes: the text in brackets (see ``kernel_labels.fits``); empty if the argument has no brackets.
    """

    file: str
    name: str | None = None
    number: int | None = None
    sizes: str = ""


def asked(spec: str) -> Asked:
    """Parses an argument ``FILE[:KERNEL]``, where ``#N`` or ``[SIZES]`` can follow ``KERNEL``.

    If a file with the whole argument as its path exists, a colon in the argument belongs to the path.
    """
    file, colon, kernel = spec.rpartition(":")
    match = _SPELLED.fullmatch(kernel.strip())
    if not colon or Path(spec).exists() or match is None or not match["name"].isidentifier():
        return Asked(spec)
    return Asked(file, match["name"], None if match["number"] is None else int(match["number"]), match["sizes"] or "")


def kernels_of(wanted: Asked, run: Callable[[Path, str], Outcome]) -> tuple[Outcome, list[JITKernel]]:
    """Runs a script, and returns its outcome and the selected kernels.

    The list of kernels is empty if the script failed before it compiled them.

    Args:
        wanted: the parsed argument.
        run: a function that runs the script, given the path and the ``__name__`` of the module.

    Raises:
        TileError: T803, the script compiles no kernel, no kernel that the argument selects, or several.
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
    """Returns the kernels of ``compiled`` that an argument selects, in the order in which they were compiled."""
    if wanted.name is None:
        return list(compiled)
    named = [kernel for kernel in compiled if wanted.name in (kernel.name, _factory(kernel))]
    if wanted.sizes:
        return [kernel for kernel in named if fits(kernel, wanted.sizes)]
    if wanted.number is None:
        return named
    return named[wanted.number - 1:wanted.number] if wanted.number else []


def _factory(kernel: JITKernel) -> str:
    """Returns the name of the top-level function of the script that made a kernel.

    For a kernel that is defined at the top level itself, this is the name of the kernel.
    """
    return kernel.prim_func.function.__qualname__.partition(".")[0]


def _bound(outcome: Outcome, name: str) -> JITKernel | None:
    """Returns the kernel that a top-level name of a script refers to; None if the name refers to no kernel."""
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
                         help="state more sizes of the kernel, or its number" if kernels else
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
    factory = outcome.names.get(name)
    if isinstance(factory, Factory):
        call = name if factory.eager is None else f"{name}.compile"
        return TileError(f"{name} in {file} is a factory that the script does not call; the sizes to compile it for are not"
                         " known", code="T803", notes=notes,
                         help=f"bind its kernel at the top level, such as kernel = {call}(...), and name that")
    near = get_close_matches(name, [*bound, *(kernel.name for kernel in compiled)], n=1)
    return TileError(f"{file} has no kernel {name!r}", code="T803", notes=notes or ["the script compiles no kernel"],
                     help=f"did you mean {near[0]}?" if near else f"name only the file: {file}")


def _listed(file: str, kernels: Sequence[JITKernel], name: str | None = None) -> Iterator[str]:
    """Yields a line for each kernel: the argument by which the command line selects it (``FILE:KERNEL#N``), and its parameters.

    Args:
        file: the script.
        kernels: the kernels of the script.
        name: a name to use in place of the kernels' own names; None for their own names.
    """
    typed = [f"{file}:{label}" for label in labels(kernels, name)]
    width = max(map(len, typed), default=0)
    for argument, kernel, differing in zip(typed, kernels, differing_arguments(kernels), strict=True):
        yield f"{argument:<{width}}  {parameters(kernel)}" + "".join(f"; {each}" for each in differing)


def labels(kernels: Sequence[JITKernel], name: str | None = None) -> list[str]:
    """Returns a label for each kernel: ``KERNEL``, or ``KERNEL#N`` if several kernels have the same name.

    Args:
        kernels: all kernels that a script compiles, or all kernels that ``name`` selects.
        name: a name to use instead of the kernels' own names; None for their own names.
    """
    names = [name or kernel.name for kernel in kernels]
    return [one + (f"#{names[:position + 1].count(one)}" if names.count(one) > 1 else "")
            for position, one in enumerate(names)]


def parameters(kernel: JITKernel) -> str:
    """Returns the names, element types and sizes of a kernel's parameters, as one line of text."""
    return ", ".join(f"{one.name} {one.dtype}" + ("" if one.shape is None else f" {'x'.join(map(_size, one.shape))}")
                     for one in kernel.params)


def _size(size: object) -> str:
    text = str(size)
    return f"({text})" if " " in text else text
