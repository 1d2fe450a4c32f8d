"""Names leave scope with their block; a load that gets a name is read there."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.frontend import trace


def test_a_loop_variable_is_restored_after_an_inner_loop_of_its_name(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            for i in T.serial(8):
                for i in T.serial(4):
                    a[i] = 1
                a[i] = 2

    kernel = traced(main)
    outer, inner = kernel.ops("scf.for")
    first, second = kernel.ops("memref.store")
    assert first.indices[0] is inner.body.block.args[0]
    assert second.indices[0] is outer.body.block.args[0]


def test_a_block_id_is_restored_after_a_loop_of_its_name(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            for cid in range(2):
                a[cid] = 1
            a[cid] = 2

    kernel = traced(main)
    assert kernel.ops("memref.store")[1].indices[0] is kernel.only("tile.launch").body.block.args[0]


LOOPS = ("T.serial(4)", "range(4)", "T.unroll(4)", "T.Pipelined(4, num_stages=2)", "T.Parallel(4)")
"""Loops with one variable, each as the inner one."""


def shadowing(body: Any, traced: Any, statements: str) -> list[Any]:
    """The remarks on a kernel with these statements and two tiles, ``a`` and ``b``."""
    head = 'a, b = T.alloc_ub((64,), "int32"), T.alloc_ub((64,), "int32")\nv = 3\n'
    return list(traced(body(head + statements.strip("\n"))).traced.remarks)


@pytest.mark.parametrize("inner", LOOPS)
def test_a_read_after_an_inner_loop_of_the_same_name_is_remarked(body: Any, traced: Any, inner: str) -> None:
    """The name keeps the outer loop's index; in Python it would have the inner loop's last one."""
    (remark,) = shadowing(body, traced, f"""
for i in T.serial(8):
    for i in {inner}:
        a[i] = 1
    a[i] = 2
    b[i] = 3
""")
    assert remark.code == "T147"
    lines = remark.location.line - 3, remark.location.line - 2
    assert remark.location.source().strip() == "a[i] = 2"
    assert f"'i' is the variable of the loop at line {lines[0]}; " in remark.message
    assert f"Python would read the last value of the loop at line {lines[1]}," in remark.message
    assert f"give the loop at line {lines[1]} another variable" in remark.help


@pytest.mark.parametrize("statements", [
    # nothing reads the outer index after the inner loop
    "for i in T.serial(8):\n    a[i] = 2\n    for i in T.serial(4):\n        b[i] = 1",
    # the name is bound anew
    "for i in T.serial(8):\n    for i in T.serial(4):\n        b[i] = 1\n    i = 5\n    a[i] = 2",
    # the other branch ran
    "for i in T.serial(8):\n    if n > 0:\n        for i in T.serial(4):\n            b[i] = 1\n    else:\n        a[i] = 2",
    # one loop after the other
    "for i in T.serial(8):\n    a[i] = 2\nfor i in T.serial(4):\n    b[i] = 1",
])
def test_an_inner_loop_of_the_same_name_that_changes_no_read_is_not_remarked(body: Any, traced: Any, statements: str) -> None:
    assert shadowing(body, traced, statements) == []


@pytest.mark.parametrize(("statements", "read", "what"), [
    ("for v in T.serial(4):\n    b[v] = 1\na[v] = 2", "a[v] = 2", "what line"),
    ("for cid in T.serial(4):\n    b[cid] = 1\na[cid] = 2", "a[cid] = 2", "what line"),
    ("for i in T.serial(8):\n    if n > 0:\n        for i in T.serial(4):\n            b[i] = 1\n        a[i] = 2", "a[i] = 2",
     "the variable of the loop"),
    ("for i in T.serial(8):\n    if n > 0:\n        for i in T.serial(4):\n            b[i] = 1\n    a[i] = 2", "a[i] = 2",
     "the variable of the loop"),
    ("for i, j in T.grid(8, 2):\n    for j, i in T.Parallel(4, 3):\n        b[i * 4 + j] = 1\n    a[i] = 2", "a[i] = 2",
     "the variable of the loop"),
    ("for i in T.serial(8):\n    for k in T.serial(2):\n        a[i] = 2\n        for i in T.serial(4):\n            b[i] = 1",
     "for i in T.serial(4):", "also in the next iteration of the loop around that loop"),
])
def test_other_names_that_a_loop_hides(body: Any, traced: Any, statements: str, read: str, what: str) -> None:
    (remark,) = shadowing(body, traced, statements)
    assert remark.code == "T147"
    assert remark.location.source().strip() == read
    assert what in remark.message


def test_a_name_that_a_block_inside_of_a_branch_bound_is_not_read_after_it(body: Any, refused: Any, traced: Any) -> None:
    """Python has the loop's value there; before, the kernel read the one from before the branch."""
    with refused("T142", at="v", line="a[v] = 1", message="'v' is out of scope"):
        shadowing(body, traced, """
if n > 0:
    for k in T.serial(3):
        v = 2
    a[v] = 1
""")


def test_a_name_has_the_value_of_the_block_that_binds_it_anew(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            x = 10
            a[x] = 0
            for i in T.serial(8):
                x = i + 1
                a[x] = 1
            x = 15
            a[x] = 2
            if n > 3:
                x = x + 5
                a[x] = 3
            elif n > 2:
                a[x] = 4
            x = 11
            with T.Scope("V"):
                x = 30
                a[x] = 5
            x = 12
            if True:
                x = 40
                a[x] = 6
            a[x] = 7

    kernel = traced(main)
    kernel.has("store %c0_i32, %a[%c10]", "store %c1_i32, %a[%x]", "store %c2_i32, %a[%c15]", "store %c3_i32_1, %a[%c20]",
               "store %c4_i32, %a[%c15", "store %c5_i32, %a[%c30]", "store %c6_i32, %a[%c40]", "store %c7_i32, %a[%c40]")


def test_a_rebinding_from_its_own_value_in_a_loop_starts_anew_and_is_remarked(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            for i in T.serial(8):
                cid = i * 4 + cid
                a[cid] = 1

    kernel = traced(main)
    kernel.has("%cid_1 = arith.addi %0, %cid")
    (remark,) = kernel.traced.remarks
    assert remark.location.source().strip() == "cid = i * 4 + cid"
    assert "the next iteration reads the value bound at" in remark.message


def test_an_alloc_inside_a_loop_is_the_loops(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            T.fill(a, 2)
            for _ in range(2):
                a = T.alloc_ub((32,), "int32")
                T.fill(a, 1)

    kernel = traced(main)
    first, second = kernel.ops("tile.fill")
    assert [tuple(fill.target.type.get_shape()) for fill in (first, second)] == [(64,), (32,)]


def test_a_buffer_that_a_loop_replaced_is_not_read_after_it(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            for _ in range(2):
                a = T.alloc_ub((32,), "int32")
                T.fill(a, 1)
            T.fill(a, 2)

    with pytest.raises(TileError, match=r"T142.*'a' is out of scope: it was bound in the `for` loop"):
        traced(main)


def test_a_load_is_read_where_it_gets_its_name(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            old = a[3]
            pair = (a[4], a[5])
            a[3] = a[3] + 1
            a[6] = old + pair[0] + pair[1]

    names = [name for name in traced(main).names() if name.startswith("memref")]
    assert names == ["memref.load"] * 4 + ["memref.store"] * 2


def test_a_name_of_the_kernel_hides_one_of_the_module(traced: Any) -> None:
    limit = 3

    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            for i in T.serial(2):
                a[i] = limit
            for T_ in T.serial(2):
                a[T_] = len("four")

    traced(main).has("store %c3_i32", "store %c4_i32")


def test_a_factory_value_that_comes_later_is_found(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            T.fill(a, later)

    later = 7
    traced(main).has("tile.fill %c7_i32")


def test_a_factory_value_that_never_comes(source: Any, refused: Any) -> None:
    from tilelang_npu.frontend import trace

    module = source("""
        import tilelang_npu.language as T

        def factory():
            @T.prim_func
            def main(A: T.Tensor((64,), "int32")):
                with T.Kernel(1, is_npu=True) as (cid, vid):
                    x = later
            if False:
                later = 3
            return main
    """)
    with refused("T140", at="later", message="its assignment in the factory has not run", line="x = later"):
        trace(module.factory())


def test_updates_of_names(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            cid *= 2
            steps = 3
            steps += 1
            a[cid] += steps
            a[cid] <<= 2
            for i in range(2):
                inner = i
                inner += 1
                a[inner] = 0

    traced(main).has("%cid_1 = arith.muli %cid, %c2", "memref.load %a[%cid_1]", "= arith.addi %0, %c4_i32", "memref.store",
                     "= arith.shli %2, %c2_i32", "%inner = arith.addi %i, %c1")


@pytest.mark.parametrize("causal", [False, True])
def test_a_name_bound_in_the_branch_that_the_factory_chooses_stays(traced: Any, *, causal: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            if causal:
                if n is not None:
                    first, last = n + 1, 3
            else:
                last = 5
                first = 4
            for i in T.serial(first, last):
                a[i] = 1

    loop = traced(main).only("scf.for")
    assert (loop.lb.owner.name == "arith.constant") is not causal


WIDTH = 3
"""A global whose name kernels also bind locally."""


def test_a_global_is_not_read_under_a_name_that_the_kernel_binds() -> None:
    """As in Python. Otherwise the read would not be visible in the function's code, from which a kernel's dependences are
    found."""

    @T.prim_func
    def above(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            a[0] = WIDTH  # noqa: F823
            WIDTH = 5
            a[1] = WIDTH

    @T.prim_func
    def below(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            for WIDTH in T.serial(4):
                a[WIDTH] = 1
            a[5] = WIDTH

    for kernel, code, text in ((above, "T140", "read before it is bound"), (below, "T142", "out of scope")):
        with pytest.raises(TileError, match=text) as found:
            trace(kernel, dialect="npuir")
        assert found.value.code == code
