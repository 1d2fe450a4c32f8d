"""Valid functions of one or two ops: each line of the text files has the arguments, ``=>`` and the body."""

from __future__ import annotations

from pathlib import Path

UPSTREAM = ("arith", "math", "tensor", "memref", "linalg", "named", "scf", "affine", "others", "vector", "llvm", "func")
"""The files of MLIR's own dialects; ``named`` has the ops of linalg whose generic form has a body that we leave out."""


def seeds(name: str) -> list[str]:
    """The lines of a file."""
    return (Path(__file__).parent / f"{name}.txt").read_text().splitlines()


def function(seed: str) -> str:
    """Returns the text of the function for a seed."""
    arguments, _, body = seed.partition("=>")
    text = f"func.func @f({arguments.strip()}) {{\n  {body.strip()}\n  return\n}}\n"
    for short, space in (("UB>", "ub"), ("GM>", "gm")):
        text = text.replace(f", {short}", f", #hivm.address_space<{space}>>")
    return text
