"""Scripts that tests improve, and versions of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.improve.script_version import ScriptVersion
from tilelang_npu.runtime.improve.subjects.subject import ScriptTree, Subject, SubjectFacts

FACTS = SubjectFacts({"rows": 1024}, (24, 48), (1024, 96))


def program(text: str, factory: str, **kwargs: object) -> ScriptVersion:
    """A version of a script whose text is indented, and a call of its factory."""
    names: dict[str, Any] = {"tilelang": tilelang, "T": T, "__name__": "script"}
    return ScriptVersion(textwrap.dedent(text), Path("script.py"), factory, names, (), kwargs)


def edited(tree: ScriptTree, subject: Subject, value: int) -> Mapping[int, tuple[str, str]]:
    """The lines that an edit changes, before and after, by number."""
    before, after = tree.text.splitlines(), tree.edited(subject.replacements(value)).splitlines()
    assert len(before) == len(after)
    return {number: (one.strip(), other.strip()) for number, (one, other) in enumerate(zip(before, after, strict=True), 1)
            if one != other}


ROWS = '''
@tilelang.jit(target="npuir")
def scaled(rows, columns, tile=1):
    @T.prim_func
    def scaled(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), "float32")
            for i in T.serial(T.ceildiv(rows, tile * 48)):
                T.copy(X[(i * 48 + core) * tile, 0], x)
                for r, c in T.Parallel(tile, columns):
                    x[r, c] = x[r, c] * 2 + 1  # in place
                T.copy(x, Y[(i * 48 + core) * tile, 0])

    return scaled
'''
SCRIPT = '''\
import numpy as np
import tilelang
import tilelang.language as T

{rows}

if __name__ == "__main__":
    x = np.ones((3000, 200), np.float32)
    y = np.zeros_like(x)
    scaled(3000, 200)(x, y)
    assert (y == 3).all()
    print("ran")
'''.replace("{rows}", ROWS)
DATA_DEPENDENT = '''
@tilelang.jit(target="npuir")
def chosen(n):
    @T.prim_func
    def chosen(I: T.Tensor((n,), "int32"), X: T.Tensor((n, 64), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((64,), "float32")
            for i in T.serial(I[0]):
                T.copy(X[i, 0], x)
                T.copy(x, Y)

    return chosen
'''
EDITABLE = '''\
import tilelang
import tilelang.language as T

BLOCK = 64  # of rows
UNUSED = 5


@T.macro
def scaled(x, n):
    for j in T.Parallel(n):
        x[j] = x[j] * 3  # no size


def other(z=7):
    return z


@tilelang.jit
def kernel(rows=512, dtype="float32", tile=8, *, stages=2):
    wide = 128 if dtype == "float32" else 256

    @T.prim_func
    def main(X: T.Tensor((rows, wide), dtype)):
        with T.Kernel(rows // BLOCK, is_npu=True) as (block, _):
            x = T.alloc_shared((tile, wide), dtype)
            # a comment that stays
            for i in T.serial(4):  # of tiles
                T.copy(X[block * BLOCK, 0], x)
                for s in T.Pipelined(2, num_stages=stages):
                    T.copy(x, X[s, 0])
                for r in range(3):
                    scaled(x, 32)

    return main
'''
EAGER = '''
@tilelang.jit
def scaled(X, tile, factor=2):
    rows, columns = T.const("rows, columns")
    X: T.Tensor((rows, columns), "float32")
    Y = T.empty((rows, columns), "float32")
    with T.Kernel(T.ceildiv(rows, tile), threads=128) as block:
        x = T.alloc_shared((tile, columns), "float32")
        T.copy(X[block * tile, 0], x)
        for r, c in T.Parallel(tile, columns):
            x[r, c] = x[r, c] * factor + 1
        T.copy(x, Y[block * tile, 0])
    return Y
'''
"""A function that contains its kernel."""
