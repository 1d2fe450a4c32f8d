"""Scalars: types, folding, floor semantics, choices, and which ops they become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T

HEAD = """
    import tilelang_npu.language as T

    N = 64
    M = T.symbolic("M")
    table = {"key": 3, "list": [1, 2]}

    def half(x):
        return x // 2

    @T.prim_func
    def main(A: T.Tensor((N, 8), "int32"), H: T.Tensor((N,), "float16"), F: T.Tensor((N,), "float32"),
             U: T.Tensor((N,), "uint8"), L: T.Tensor((N,), "int64"), B: T.Tensor((N,), "bfloat16"), S: T.Tensor((M,), "int8"),
             n: T.int32, m: T.int32, x: T.float32, flag: T.bool):
        with T.Kernel(16, is_npu=True) as (cid, vid):
            f = T.alloc_ub((64,), "float32")
            h = T.alloc_ub((64,), "float16")
            i = T.alloc_ub((64,), "int32")
            i8 = T.alloc_ub((64,), "int8")
            u = T.alloc_ub((64,), "uint8")
            b1 = T.alloc_ub((64,), "bool")
            {statement}
"""


@pytest.fixture
def names(source: Any, traced: Any) -> Any:
    """Names of the ops that a statement becomes, without constants and allocations; ``cmpi`` and ``cmpf`` with predicate."""

    def make(statement: str) -> list[str]:
        lines = "\n            ".join(statement.splitlines())
        kernel = traced(source(HEAD.replace("{statement}", lines)).main)
        found = []
        for op in kernel.only("tile.launch").walk():
            if op.name in ("arith.constant", "tile.launch", "tile.alloc"):
                continue
            if op.name in ("arith.cmpi", "arith.cmpf"):
                predicates = {
                    "arith.cmpi": ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"),
                    "arith.cmpf": ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult",
                                   "ule", "une")}
                found.append(f"{op.name.split('.')[1]}:{predicates[op.name][op.predicate.value.data]}")
            elif op.name == "builtin.unrealized_conversion_cast":
                found.append("sign")
            else:
                found.append(op.name.split(".")[1])
        return found

    return make


@pytest.mark.parametrize(("statement", "expected"), [
    # floor semantics: cheap if both sides are known to be non-negative
    ("i[cid // 3] = 0", ["divui", "store"]),
    ("i[cid % 3] = 0", ["remui", "store"]),
    ("i[0] = n // 3", ["floordivsi", "store"]),
    ("i[0] = n % 3", ["floordivsi", "muli", "subi", "store"]),
    ("i[(cid - 1) % 3] = 0", ["subi", "floordivsi", "muli", "subi", "store"]),
    ("i[(cid * 4 + 3 - vid) // 2] = 0", ["muli", "addi", "subi", "divui", "store"]),
    ("i[T.truncdiv(cid - 1, 2)] = 0", ["subi", "divsi", "store"]),
    ("i[0] = T.truncmod(n, 3)", ["remsi", "store"]),
    ("i[0] = U[0] // 3", ["load", "sign", "divui", "extui", "store"]),
    ("f[0] = x // 2.0", ["divf", "floor", "store"]),
    ("f[0] = x % 2.0", ["divf", "floor", "mulf", "subf", "store"]),
    # division of integers is a float
    ("f[0] = n / m", ["sitofp", "sitofp", "divf", "store"]),
    ("f[0] = cid / 2", ["index_cast", "sitofp", "divf", "store"]),
    # a Python number adopts the other side's type
    ("h[0] = H[0] * 0.5", ["load", "mulf", "store"]),
    ("f[0] = n + 0.5", ["sitofp", "addf", "store"]),
    ("i8[0] = S[0] + 1", ["load", "addi", "store"]),
    ("i[0] = S[0] + 300", ["load", "extsi", "addi", "store"]),
    ("i[0] = U[0] + -1", ["load", "sign", "extui", "addi", "store"]),
    # the common type of two types is the wider one
    ("f[0] = H[0] + F[0]", ["load", "load", "extf", "addf", "store"]),
    ("f[0] = H[0] + B[0]", ["load", "load", "extf", "extf", "addf", "store"]),
    ("i[0] = n + cid", ["index_cast", "addi", "index_cast", "store"]),
    ("i[0] = L[0] + n", ["load", "extsi", "addi", "trunci", "store"]),
    ("f[0] = x + n", ["sitofp", "addf", "store"]),
    ("i[0] = b1[0] + b1[1]", ["load", "load", "extui", "extui", "addi", "store"]),
    # stores convert to the element type
    ("i[0] = x", ["fptosi", "store"]),
    ("h[0] = x", ["truncf", "store"]),
    ("h[0] = B[0]", ["load", "extf", "truncf", "store"]),
    ("u[0] = x", ["fptoui", "sign", "store"]),
    ("u[0] = n", ["trunci", "sign", "store"]),
    ("b1[0] = n", ["cmpi:ne", "store"]),
    ("f[0] = flag", ["uitofp", "store"]),
    ("f[0] = U[0]", ["load", "sign", "uitofp", "store"]),
    ("i[U[0]] = 0", ["load", "sign", "extui", "index_cast", "store"]),
    # comparisons
    ("b1[0] = n < m", ["cmpi:slt", "store"]),
    ("b1[0] = U[0] < 3", ["load", "sign", "cmpi:ult", "store"]),
    ("b1[0] = U[0] > 300", ["load", "sign", "extui", "cmpi:sgt", "store"]),
    ("b1[0] = x != 1.0", ["cmpf:une", "store"]),
    ("b1[0] = x >= n", ["sitofp", "cmpf:oge", "store"]),
    ("b1[0] = 0 < n <= 8", ["cmpi:sgt", "cmpi:sle", "andi", "store"]),
    ("b1[0] = M == 8", ["cmpi:eq", "store"]),
    ("b1[0] = 3 < M", ["cmpi:sgt", "store"]),
    # truth
    ("b1[0] = n > 0 and m > 0", ["cmpi:sgt", "cmpi:sgt", "andi", "store"]),
    ("b1[0] = n > 0 or flag", ["cmpi:sgt", "ori", "store"]),
    ("b1[0] = not flag", ["xori", "store"]),
    ("b1[0] = not n", ["cmpi:ne", "xori", "store"]),
    ("b1[0] = n and m and flag", ["cmpi:ne", "cmpi:ne", "andi", "andi", "store"]),
    ("b1[0] = N > 3 and flag", ["store"]),
    ("b1[0] = N < 3 and A[100, 0] > 0", ["store"]),
    ("b1[0] = flag and N < 3", ["store"]),
    # a side that reads memory is guarded
    ("b1[0] = n > 0 and i[n] > 0", ["cmpi:sgt", "if", "index_cast", "load", "cmpi:sgt", "yield", "yield", "store"]),
    ("b1[0] = n > 0 or i[n] > 0", ["cmpi:sgt", "if", "yield", "index_cast", "load", "cmpi:sgt", "yield", "store"]),
    # and a division by a value that may be 0
    ("b1[0] = n != 0 and m // n > 1", ["cmpi:ne", "if", "floordivsi", "cmpi:sgt", "yield", "yield", "store"]),
    ("i[0] = T.if_then_else(n != 0, m // n, 0)", ["cmpi:ne", "if", "floordivsi", "yield", "yield", "store"]),
    ("i[0] = T.if_then_else(n != 0, m // 4, 0)", ["cmpi:ne", "floordivsi", "select", "store"]),
    # choices
    ("i[0] = n if flag else m", ["select", "store"]),
    ("i[0] = n if N > 3 else A[100, 0]", ["store"]),
    ("f[0] = x if flag else 0", ["select", "store"]),
    ("i[0] = i[n] if n < 64 else 0", ["cmpi:slt", "if", "index_cast", "load", "yield", "yield", "store"]),
    ("i[0] = T.if_then_else(n < 64, i[n], 0)", ["cmpi:slt", "if", "index_cast", "load", "yield", "yield", "store"]),
    ("i[0] = T.Select(n < 4, i[1], i[2])", ["cmpi:slt", "load", "load", "select", "store"]),
    ("for k in T.Parallel(8):\n    i[k] = i[k] if k < n else 0",
     ["parallel", "index_cast", "cmpi:slt", "if", "load", "yield", "yield", "store"]),
    # folding
    ("i[cid * 1 + 0] = 0", ["store"]),
    ("i[cid * 0] = 0", ["store"]),
    ("i[cid - cid] = 0", ["store"]),
    ("i[(cid * 16 + 32) % 16] = 0", ["store"]),
    ("i[0] = n * 16 % 16", ["store"]),
    ("i[0] = n * 7 % 7", ["muli", "floordivsi", "muli", "subi", "store"]),
    ("i[T.int32(3) + T.int32(4)] = 0", ["store"]),
    # functions of scalars
    ("f[0] = T.exp(x)", ["exp", "store"]),
    ("f[0] = T.exp(n)", ["sitofp", "exp", "store"]),
    ("h[0] = T.sqrt(H[0])", ["load", "sqrt", "store"]),
    ("f[0] = T.sigmoid(x)", ["negf", "exp", "addf", "divf", "store"]),
    ("f[0] = T.max(x, 0)", ["maximumf", "store"]),
    ("i[0] = T.min(n, cid)", ["index_cast", "minsi", "index_cast", "store"]),
    ("i[0] = max(n, m, 3)", ["maxsi", "maxsi", "store"]),
    ("i[0] = abs(n)", ["absi", "store"]),
    ("i[0] = abs(U[0])", ["load", "sign", "extui", "store"]),
    ("f[0] = float(n)", ["sitofp", "store"]),
    ("i[0] = int(x)", ["fptosi", "store"]),
    ("f[0] = x ** 2", ["mulf", "store"]),
    ("f[0] = x ** 0.5", ["sqrt", "store"]),
    ("f[0] = x ** -0.5", ["rsqrt", "store"]),
    ("f[0] = x ** 1.5", ["powf", "store"]),
    ("f[0] = 2 ** x", ["powf", "store"]),
    ("i[0] = n ** 3", ["muli", "muli", "store"]),
    ("i[0] = n << 2 | m & 7 ^ 1", ["shli", "andi", "xori", "ori", "store"]),
    ("i[0] = n >> 2", ["shrsi", "store"]),
    ("i[0] = cid >> 2", ["shrui", "index_cast", "store"]),
    ("i[0] = ~n", ["xori", "store"]),
    ("i[0] = -n", ["subi", "store"]),
    ("f[0] = -x", ["negf", "store"]),
    ("i[0] = +n", ["store"]),
    ("f[0] = T.cast(n, 'float32')", ["sitofp", "store"]),
    ("f[0] = T.Cast('float32', n)", ["sitofp", "store"]),
    ("f[0] = n.astype('float32')", ["sitofp", "store"]),
    ("f[0] = A[0, 0].astype(T.float32)", ["load", "sitofp", "store"]),
    ("h[0] = T.float16(x)", ["truncf", "store"]),
    ("b1[0] = T.And(n > 0, m > 0, N > 3)", ["cmpi:sgt", "cmpi:sgt", "andi", "store"]),
    ("b1[0] = T.Or(n > 0, N < 3)", ["cmpi:sgt", "store"]),
    ("b1[0] = T.Not(flag)", ["xori", "store"]),
    ("f[0] = T.floor(x)", ["floor", "store"]),
    # the host's side
    ("i[half(cid)] = table['key'] + table['list'][1]", ["divui", "store"]),
    ("i[len(A) - 1] = 0 if False else len(f'{N:04d}')\ni[A.shape[1]] = 0", ["store", "store"]),
    ("i[0] = M", ["index_cast", "store"]),
    ("i[0] = S.shape[0] * 2", ["index_cast", "store"]),
    ("i[min(M, 4)] = 0", ["store"]),
    ("b1[0] = flag and N > 3", ["store"]),
    ("b1[0] = N < 3 or n > 3 or True", ["store"]),
    ("i[max(*[3, 4])] = 0", ["store"]),
    ("assert f is not None\ni[{1, 2}.__len__()] = 0", ["store"]),
    ("b1[0] = 3 in (1, 2, 3)", ["store"]),
])
def test_what_a_statement_becomes(names: Any, statement: str, expected: list[str]) -> None:
    assert names(statement) == expected


def test_a_constant_is_emitted_once_per_block(source: Any, traced: Any) -> None:
    statements = "i[1] = n + 1\ni[1] = n * 1 + 1\nfor k in range(1):\n    i[1] = 1\n    i[1] = 1"
    kernel = traced(source(HEAD.replace("{statement}", "\n            ".join(statements.splitlines()))).main)
    for block in [kernel.only("tile.launch").body.block, kernel.only("scf.for").body.block]:
        values = [(op.value, op.result.type) for op in block.ops if op.name == "arith.constant"]
        assert len(values) == len(set(values)) >= 2


def test_speculated_constants_are_merged_into_their_block(source: Any, traced: Any) -> None:
    kernel = traced(source(HEAD.replace("{statement}", "b1[0] = n > 7 and m > 7 and n < 7")).main)
    assert len([op for op in kernel.ops("arith.constant") if str(op.result.type) == "i32"]) == 1


def test_what_nothing_uses_is_not_emitted(names: Any) -> None:
    assert names("unused = cid // 3 + n\nother = A[3, 3]\npart = A[0:8, :]") == []


def test_traces_of_one_kernel_are_equal(source: Any) -> None:
    from tilelang_npu.dialects.text import print_module
    from tilelang_npu.frontend import trace

    main = source(HEAD.replace("{statement}", "i[n] = i[n // 3] if n < 64 and flag else m % 5")).main
    texts = {print_module(trace(main).module, locations=True) for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize(("expression", "value"), [
    ("T.int8(127) + T.int8(1)", -128), ("T.uint8(3) - T.uint8(4)", 255), ("T.int32(7) // T.int32(-2)", -4),
    ("T.int32(-7) % T.int32(3)", 2), ("T.float16(0.1)", float(np.float16(0.1))), ("T.int32(2.9)", 2),
    ("T.cast(T.int32(300), 'uint8')", 44),
    ("T.float32(2) ** 3", 8.0), ("T.bool(3)", True), ("-T.infinity('float16')", float("-inf")),
    ("T.truncdiv(T.int32(-7), T.int32(2))", -3), ("T.bfloat16(1.00390625)", 1.0), ("T.float16(float('inf'))", float("inf")),
])
def test_typed_constants_fold(source: Any, traced: Any, expression: str, value: float) -> None:
    kernel = traced(source(HEAD.replace("{statement}", f"f[0] = {expression}")).main)
    kernel.only("memref.store")
    constant = kernel.only("memref.store").value.owner
    assert constant.value.value.data == value


def test_helpers_from_numpy_and_numpy_numbers(traced: Any) -> None:
    sizes = np.array([8, 16])

    @T.prim_func
    def main(A: T.Tensor((sizes[1],), "int32")):
        with T.Kernel(sizes[0], is_npu=True) as (cid, vid):
            a = T.alloc_ub((sizes[1],), "int32")
            a[cid + sizes[0]] = np.int32(5) + cid
            T.fill(a, np.max(sizes))

    kernel = traced(main)
    assert kernel.traced.grids == ((8,),)
    kernel.has("arith.addi %c5, %cid", "arith.addi %cid, %c8", "tile.fill %c16_i32")
