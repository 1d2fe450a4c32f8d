"""Every op carries file, line and column of the statement or call that it comes from."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc

TEXT = '''
import tilelang_npu.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), S: T.Tensor((T.symbolic("M"), 64), "float16"), n: T.int32):
    blocks = n + 7
    with T.Kernel(T.ceildiv(64, 8), is_npu=True) as (cid, vid):
        a = T.alloc_ub((8, 64), "float16")
        m, v = T.alloc_ub((8, 1), "float16"), T.alloc_var("int32", init=cid + blocks)
        with T.Scope("C"):
            l1 = T.alloc_L1((16, 16), "float16"); c = T.alloc_L0C((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.gemm_v0(l1, l1, c, init=(k == 0))
        if cid > n:
            T.copy(A[cid * 8, 0],
                   a)
        while v > 0:
            v -= 1
        for i, j in T.Parallel(8, 64):
            a[i, j] = a[i, j] * 2 + T.exp(a[i, j])
        T.reduce_max(a, m, dim=-1)
        T.tile.sub(a, a, m); T.fill(m, S[3, v])
        T.barrier_all()
        T.set_flag("v", "mte3", 0)
'''

EXPECTED = {  # statement or call: the ops that carry its first character
    "S: T.Tensor(": {"tile.tensor"},
    "blocks = n + 7": {"arith.constant", "arith.addi"},
    "T.Kernel(": {"arith.constant", "tile.launch"},
    'T.alloc_ub((8, 64), "float16")': {"tile.alloc"},
    'T.alloc_ub((8, 1), "float16")': {"tile.alloc"},
    "m, v = T": {"arith.index_cast", "arith.addi"},
    'T.alloc_var("int32"': {"tile.alloc", "memref.store", "arith.constant", "arith.index_cast"},
    'T.Scope("C")': {"tile.on_core"},
    "T.alloc_L1(": {"tile.alloc"},
    "T.alloc_L0C(": {"tile.alloc"},
    "for k in": {"scf.for", "scf.yield", "arith.constant"},
    "T.gemm_v0(l1": {"tile.gemm", "arith.cmpi", "arith.constant"},
    "if cid > n": {"arith.index_cast", "arith.cmpi", "scf.if", "scf.yield"},
    "T.copy(A[cid": {"arith.constant", "arith.muli", "tile.region", "tile.copy"},
    "while v > 0": {"tile.alloc", "scf.while", "memref.load", "memref.store", "arith.constant", "arith.cmpi", "scf.condition",
                    "scf.yield"},
    "v -= 1": {"memref.load", "arith.constant", "arith.subi", "memref.store"},
    "for i, j in": {"tile.parallel"},
    "a[i, j] = a": {"memref.load", "memref.store", "arith.constant", "arith.mulf", "arith.addf"},
    "T.exp(a[i, j])": {"memref.load", "math.exp"},
    "T.reduce_max(": {"tile.reduce"},
    "T.tile.sub(": {"tile.elementwise"},
    "T.fill(m": {"memref.load", "arith.constant", "arith.index_cast", "tile.fill"},
    "T.barrier_all()": {"hivm.hir.pipe_barrier"},
    'T.set_flag("v"': {"hivm.hir.set_flag"},
    "def main(": {"func.func", "func.return"},
}


def test_every_op_has_the_place_of_its_statement_or_call(source: Any, traced: Any) -> None:
    kernel = traced(source(TEXT).main)
    found: dict[str, set[str]] = {}
    for op in kernel.traced.module.walk():
        if op.name == "builtin.module":
            continue
        where = op.location
        assert isinstance(where, FileLineColLoc), op
        lines = Path(where.filename.data).read_text().splitlines()
        rest = lines[where.line.data - 1][where.column.data - 1 :]
        key = next((text for text in EXPECTED if rest.startswith(text)), rest)
        found.setdefault(key, set()).add(op.name)
    for key, names in EXPECTED.items():
        assert names <= found.get(key, set()), (key, names - found.get(key, set()))
    for key, names in found.items():
        assert key in EXPECTED, (key, names)
        assert names <= EXPECTED[key] | {"arith.constant"}, (key, names - EXPECTED[key])


def test_statements_start_where_python_says(source: Any, traced: Any) -> None:
    kernel = traced(source(TEXT).main)
    starts = {(node.lineno, node.col_offset + 1) for node in ast.walk(ast.parse(TEXT)) if hasattr(node, "lineno")}
    for op in kernel.traced.module.walk():
        if isinstance(op.location, FileLineColLoc):
            assert (op.location.line.data, op.location.column.data) in starts
