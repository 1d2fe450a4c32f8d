"""The command ``new NAME``, which writes a first kernel, a test that compares it with NumPy, and a check for hazards."""

from __future__ import annotations

import argparse
import keyword
from pathlib import Path

from tilelang_npu.cli.parser import Commands
from tilelang_npu.errors import TileError

__all__ = ["add_to", "new"]

_KERNEL = '''\
"""{name}: what it computes. `tilelang-npu run {name}.py` runs it and says what it takes on the chip."""

import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def {name}(rows, columns, tile=16):
    @T.prim_func
    def {name}(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(rows, tile), is_npu=True) as (block, _):
            x = T.alloc_shared((tile, columns), "float32")
            T.copy(X[block * tile, 0], x)
            for i, j in T.Parallel(tile, columns):
                x[i, j] = x[i, j] * 2.0 + 1.0
            T.copy(x, Y[block * tile, 0])

    return {name}


def reference(x):
    """The same in NumPy."""
    return x * 2 + 1


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal((1000, 512)).astype(np.float32)
    np.testing.assert_allclose({name}(1000, 512)(x), reference(x), rtol=1e-6)
'''
_TEST = '''\
"""What {name} computes, for sizes that its tiles divide and others, and that no order of its work is missing."""

from pathlib import Path

import numpy as np
import pytest
from tilelang_npu.cli import main

import {name} as module


@pytest.mark.parametrize(("rows", "columns"), [(16, 64), (100, 128), (1, 8)])
def test_{name}(rows, columns):
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    np.testing.assert_allclose(module.{name}(rows, columns)(x), module.reference(x), rtol=1e-6)


def test_{name}_has_every_wait():
    assert main(["check", str(Path(module.__file__))]) == 0
'''


def add_to(commands: Commands) -> None:
    """Adds the command ``new`` to the parser."""
    parser = commands.add_parser(
        "new", help="write a first kernel, its test and its check",
        description="Writes NAME.py, which runs as a script, and test_NAME.py, which pytest runs; existing files are not"
                    " overwritten.")
    parser.add_argument("name", metavar="NAME", help="the name of the kernel, a Python identifier")
    parser.add_argument("--dir", metavar="DIR", default=".", help="the folder of the new files (default: the current folder)")
    parser.set_defaults(command=new)


def new(args: argparse.Namespace) -> int:
    """Writes the file with the kernel and the file with the test, and returns the exit code.

    Raises:
        TileError: T417, the name is not a Python name; T801, a file of that name exists.
    """
    if not args.name.isidentifier() or keyword.iskeyword(args.name):
        raise TileError(f"{args.name!r} is not a Python name", code="T417", help="letters, digits and _, such as row_softmax")
    folder = Path(args.dir)
    files = {folder / f"{args.name}.py": _KERNEL, folder / f"test_{args.name}.py": _TEST}
    for path in files:
        if path.exists():
            raise TileError(f"{path} exists", code="T801", help="use another name, or --dir for another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text.replace("{name}", args.name), encoding="utf-8")
        print(path)
    own = folder / args.name
    print(f"\ntilelang-npu run {own}.py\npytest {folder / f'test_{args.name}.py'}")
    return 0
