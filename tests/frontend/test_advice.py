"""The advice for names of Python or of a library that a kernel cannot use: it names what works instead."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tilelang_npu import TileError
from tilelang_npu.frontend import trace

KERNEL = """\
import math
import numpy as np
{library}import tilelang_npu.language as T

scale = 2.0

@T.prim_func
def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        tile = T.alloc_shared((8, 64), "float32")
        row = T.alloc_shared((8, 1), "float32")
        T.copy(A, tile)
        {statement}
"""

# statement, dialect, code, help, the statement as the help has it
ADVICE = [
    ("T.copy(tiel, B)", "npuir", "T140", "did you mean 'tile'", "T.copy(tile, B)"),
    ("x = rang(8)", "npuir", "T140", "did you mean 'range'", "x = range(8)"),
    ("copy(tile, B)", "npuir", "T140", r"did you mean T\.copy\?", "T.copy(tile, B)"),
    ("x = lamda_zzz", "npuir", "T140", "bind it above this line", "lamda_zzz = 1\n        x = lamda_zzz"),
    ("y = later + 1\n        later = 3", "npuir", "T140", "bind it above this line", "later = 3\n        y = later + 1"),
    ("tile[0, 0] = math.exp(tile[0, 0])", "npuir", "T144", r"use T\.exp$", "tile[0, 0] = T.exp(tile[0, 0])"),
    ("tile[0, 0] = np.maximum(tile[0, 0], 0.0)", "npuir", "T144", r"use T\.max$", "tile[0, 0] = T.max(tile[0, 0], 0.0)"),
    ("tile[0, 0] = round(tile[0, 0])", "npuir", "T144", r"use T\.round$", "tile[0, 0] = T.round(tile[0, 0])"),
    ("tile[0, 0] = math.sqrt(cid)", "npuir", "T144", r"use T\.sqrt$", "tile[0, 0] = T.sqrt(cid)"),
    ("tile = np.exp(tile)", "npuir", "T144", r"use T\.vexp\(source, destination\)", "T.vexp(tile, tile)"),
    ("tile = torch.exp(tile)", "ascendc", "T144", r"use T\.tile\.exp\(destination, source\)", "T.tile.exp(tile, tile)"),
    ("row = np.max(tile)", "npuir", "T144", r"use T\.reduce_max\(source, destination, dim=-1\)",
     "T.reduce_max(tile, row, dim=-1)"),
    ("T.vexp(A, B)", "npuir", "T201", r"T\.vexp writes B: let it write a buffer in UB .*, and T\.copy the buffer to B",
     "T.vexp(tile, tile)\n        T.copy(tile, B)"),
    ("T.vexp(A, tile)", "npuir", "T201", r"T\.vexp reads A: T\.copy it into a buffer in UB first",
     "T.copy(A, tile)\n        T.vexp(tile, tile)"),
    ("T.tile.add(A, tile, tile)", "ascendc", "T201", r"T\.tile\.add writes A",
     "T.tile.add(tile, tile, tile)\n        T.copy(tile, A)"),
]


def _written(statement: str) -> str:
    """The kernel with a statement, which may need torch."""
    if "torch." in statement:
        pytest.importorskip("torch", reason="torch is an optional package; its tests need it")
    return KERNEL.replace("{library}", "import torch\n" if "torch." in statement else "").replace("{statement}", statement)


@pytest.mark.parametrize(("statement", "dialect", "code", "advice", "repaired"), ADVICE, ids=[case[0] for case in ADVICE])
def test_the_advice_names_what_works(source: Any, statement: str, dialect: str, code: str, advice: str, repaired: str) -> None:
    with pytest.raises(TileError) as caught:
        trace(source(_written(statement)).main, dialect=dialect)
    assert caught.value.code == code, caught.value
    assert caught.value.location is not None
    assert re.search(advice, caught.value.help), caught.value
    trace(source(_written(repaired)).main, dialect=dialect).module.verify()


def test_an_array_of_the_host_is_not_spelled_out(source: Any) -> None:
    with pytest.raises(TileError, match=r"not a NumPy array of shape \[8, 64\] and type float64") as caught:
        trace(source(_written("T.vadd(np.zeros((8, 64)), tile, tile)")).main, dialect="npuir")
    assert "T.copy its parameter into a buffer" in caught.value.help
