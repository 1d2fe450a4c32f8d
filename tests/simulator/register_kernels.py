"""Kernels with one vector function, which the simulator and the interpreter both execute."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

import tilelang_npu as tilelang
from tilelang_npu.ops import dtype

Arrays = Mapping[str, np.ndarray]


def text_of(statements: str, given: Arrays, made: Arrays, frame: str = "T.SimdVF()", around: str = "",
            parameters: str = "") -> str:
    """The source of a kernel that copies its inputs to UB, calls a vector function and copies its results to GM.

    Args:
        statements: the body of the vector function; the buffer of a tensor ``A`` is ``a``.
        given: the inputs, by the tensors' names.
        made: arrays as the results, by the tensors' names.
        frame: the expression after ``with``.
        around: a statement that ends in a colon, such as a loop, which encloses the vector function.
        parameters: further parameters of the kernel.
    """
    tensors = [f'{name}: T.Tensor({array.shape}, "{dtype(array.dtype)}")' for name, array in {**given, **made}.items()]
    lines = [f'{name.lower()} = T.alloc_shared({array.shape}, "{dtype(array.dtype)}")' for name, array in {
        **given, **made}.items()]
    lines += [f"T.copy({name}, {name.lower()})" for name in (*given, *made)]
    inner = f"with {frame}:\n" + textwrap.indent(textwrap.dedent(statements).strip("\n"), "    ")
    lines.append(f"{around}\n{textwrap.indent(inner, '    ')}" if around else inner)
    lines += [f"T.copy({name.lower()}, {name})" for name in made]
    body = textwrap.indent("\n".join(lines), " " * 8)
    return ("import tilelang_npu.language as T\n\n\n@T.prim_func\n"
            f"def main({', '.join([*tensors, *([parameters] if parameters else [])])}):\n    with T.Kernel(1) as _:\n{body}\n")


def compiled(source: Any, text: str, chip: str = "950", target: str = "pto") -> Any:
    """The kernel ``main`` of a source text."""
    return tilelang.compile(source(text).main, target=target, chip=chip)


def executed(source: Any, statements: str, given: Arrays, made: Arrays, *scalars: object, **options: str
             ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The results of the simulator and of the interpreter; they begin as ``made``."""
    kernel = compiled(source, text_of(statements, given, made, **options))
    results = []
    for run in (kernel, kernel.interpret):
        arrays = {name: array.copy() for name, array in made.items()}
        run(*(array.copy() for array in given.values()), *arrays.values(), *scalars)
        results.append(arrays)
    return results[0], results[1]


def assert_results(source: Any, statements: str, given: Arrays, expected: Arrays, *scalars: object,
                   before: Arrays | None = None, **options: str) -> None:
    """Checks the bits of the results of the simulator and of the interpreter.

    Args:
        source: the fixture that imports a source text.
        statements: the body of the vector function.
        given: the inputs.
        expected: the results; the tensors begin with the values ``before``, by default all 1.
        scalars: the arguments of further parameters.
        before: the tensors' values before the call.
        options: see :func:`text_of`.
    """
    made = before or {name: np.ones(array.shape, array.dtype) for name, array in expected.items()}
    for arrays in executed(source, statements, given, made, *scalars, **options):
        for name, array in expected.items():
            assert arrays[name].dtype == array.dtype
            bits = np.dtype(f"u{array.dtype.itemsize}")
            numbers = [one.astype(np.float64) if one.dtype.kind not in "iub" else one for one in (arrays[name], array)]
            same = (arrays[name].view(bits) == array.view(bits)) | ((numbers[0] != numbers[0]) & (numbers[1] != numbers[1]))
            assert same.all(), (f"{name} differs at {np.argwhere(~same)[:5].tolist()}: {arrays[name][~same][:5]} instead of"
                                f" {array[~same][:5]}")
