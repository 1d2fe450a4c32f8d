"""Run-time errors in ops that the compiler generated are reported in the author's terms: call, line, units."""

from __future__ import annotations

import linecache
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tilelang_npu import TileError

KERNEL = '''\
import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", out_idx=[-1], pass_configs={"tl.ascend_auto_sync": True})
def factory(M):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), n: T.int32, I: T.Tensor((64,), "int32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((M, 64), "float32")
            b = T.alloc_ub((M, 64), "float32")
            i = T.alloc_ub((64,), "int32")
            T.copy(A, a)
            T.copy(I, i)
            T.tile.fill(b, 0.0)
{body}
            T.copy(b, B)

    return main
'''
# the invalid statement, the number of the call, the code, the message
ERRORS = [
    ("T.tile.gather(b, a, i, 0)", 8, "T502", "T.tile.gather uses an index or offset that is out of bounds"),
    ("T.tile.add(b[n:n + 2, :], a[0:2, :], a[2:4, :])", 8, "T502",
     "T.tile.add takes 8..9 of axis 0 of b, which has 0..7"),
    ("T.tile.fill(b[n, :], 1.0)", 9, "T502", "T.tile.fill takes 9..9 of axis 0 of b, which has 0..7"),
    ("b[n, 0] = 3.0", 8, "T502", "this statement touches bytes 2048..2051 of b, which has 2048 bytes"),
    ("b[0, 0] = a[n, 0]", 8, "T502", "this statement touches bytes 2048..2051 of a, which has 2048 bytes"),
    ("b[7 // n, 0] = 1.0", 0, "T509", "this statement divides by zero"),
]


@pytest.mark.parametrize(("statement", "number", "code", "report"), ERRORS, ids=[row[0] for row in ERRORS])
def test_an_error_of_a_lowered_op_names_the_call(tmp_path: Path, statement: str, number: int, code: str, report: str) -> None:
    path = tmp_path / "kernel.py"
    text = KERNEL.replace("{body}", textwrap.indent(statement, " " * 12))
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    names: dict[str, object] = {"__name__": "kernel"}
    exec(compile(text, str(path), "exec"), names)
    factory = names["factory"]
    assert callable(factory)
    with pytest.raises(TileError) as caught:
        factory(8)(np.ones((8, 64), np.float32), number, np.full(64, 1 << 20, np.int32))
    error = caught.value
    assert error.code == code, error
    assert error.message == f"{report} in block 0"
    assert error.help
    assert error.location is not None
    assert error.location.source().strip() == statement
    assert not any(dialect in str(error) for dialect in ("hivm.", "memref.", "arith.", "scf."))
