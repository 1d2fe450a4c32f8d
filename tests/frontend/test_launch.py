"""``T.Kernel``: its forms in each dialect, and the number of sub-blocks."""

from __future__ import annotations

from typing import Any

import pytest

from tilelang_npu.frontend import trace

FORMS = [
    # dialect, launch, names of the block arguments, sub-blocks, explicit, grid
    ("ascendc", "T.Kernel(8, is_npu=True) as (cid, vid)", ["cid", "vid"], 2, True, (8,)),
    ("ascendc", "T.Kernel(8, is_npu=True) as (cid, _)", ["cid"], 2, False, (8,)),
    ("ascendc", "T.Kernel(8, is_npu=True) as cid", ["cid"], 2, False, (8,)),
    ("ascendc", "T.Kernel(8, is_npu=True) as (cid)", ["cid"], 2, False, (8,)),
    ("ascendc", "T.Kernel(8, is_npu=True)", [None], 2, False, (8,)),
    ("ascendc", "T.Kernel(8, threads=2, is_npu=True) as (cid)", ["cid"], 2, False, (8,)),
    ("ascendc", "T.Kernel(8, threads=[2], is_npu=True) as cid", ["cid"], 2, False, (8,)),
    ("ascendc", "T.Kernel(8, threads=1, is_npu=True) as cid", ["cid"], 1, False, (8,)),
    ("npuir", "T.Kernel(8, is_npu=True) as (cid, vid)", ["cid"], 1, False, (8,)),
    ("npuir", "T.Kernel(8, is_npu=True) as (cid, _)", ["cid"], 1, False, (8,)),
    ("npuir", "T.Kernel(8, is_npu=True)", [None], 1, False, (8,)),
    ("npuir", "T.Kernel(8, 4, is_npu=True) as (bx, by, vid)", ["bx", "by"], 1, False, (8, 4)),
    ("npuir", "T.Kernel(8, 4, is_npu=True) as (bx, by, _)", ["bx", "by"], 1, False, (8, 4)),
    ("npuir", "T.Kernel(8, 4, threads=128) as (bx, by)", ["bx", "by"], 1, False, (8, 4)),
    ("npuir", "T.Kernel(8, 4, 2, threads=(32, 4)) as (bx, by, bz)", ["bx", "by", "bz"], 1, False, (8, 4, 2)),
    ("npuir", "T.Kernel(8, threads=256) as i", ["i"], 1, False, (8,)),
]


@pytest.mark.parametrize(("dialect", "launch", "names", "sub_blocks", "explicit", "grid"), FORMS)
def test_forms(source: Any, traced: Any, dialect: str, launch: str, names: list[str], sub_blocks: int, explicit: bool,
               grid: tuple[int, ...]) -> None:
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(n: T.int32):
            with {launch}:
                pass
    """)
    kernel = traced(module.main, dialect)
    opened = kernel.only("tile.launch")
    assert [argument.name_hint for argument in opened.body.block.args] == names
    assert opened.sub_blocks.value.data == sub_blocks
    assert (opened.explicit_sub_block is not None) is explicit
    assert kernel.traced.grids == (grid,)


def test_a_sub_block_index_that_is_read_makes_two_sub_blocks(source: Any, traced: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(n: T.int32):
            with T.Kernel(8, is_npu=True) as (cid, vid):
                half = T.alloc_var("int32", init=vid)
    """)
    opened = traced(module.main, "npuir").only("tile.launch")
    assert [argument.name_hint for argument in opened.body.block.args] == ["cid", "vid"]
    assert opened.sub_blocks.value.data == 2


@pytest.mark.parametrize(("dialect", "launch", "message"), [
    ("ascendc", "T.Kernel(0, is_npu=True)", "block count 0 of axis 0 is not a positive integer"),
    ("ascendc", "T.Kernel(8 / 2, is_npu=True)", r"block count 4\.0 of axis 0 is not a positive integer"),
    ("ascendc", "T.Kernel(True, is_npu=True)", "block count True"),
    ("ascendc", "T.Kernel(is_npu=True)", "takes 1 to 3 block counts, not 0"),
    ("ascendc", "T.Kernel(2, 2, is_npu=True)", "2 block counts; an ascendc kernel has a one-dimensional grid"),
    ("ascendc", "T.Kernel(2, threads=4, is_npu=True)", "threads=4; a block has 1 or 2 vector cores"),
    ("ascendc", "T.Kernel(2, threads=0, is_npu=True)", "threads=0 is not a positive integer"),
    ("npuir", "T.Kernel(2, threads=-1)", "threads=-1 is not a positive integer"),
    ("npuir", "T.Kernel(A[0], is_npu=True)", "is computed on the device"),
    ("npuir", "T.Kernel(N - 4, is_npu=True)", "block count 0"),
])
def test_bad_launches(source: Any, refused: Any, dialect: str, launch: str, message: str) -> None:
    module = source(f"""
        import tilelang_npu.language as T

        N = 4

        @T.prim_func
        def main(A: T.Tensor((8,), "int32")):
            with {launch}:
                pass
    """)
    with refused("T150", at=launch, message=message):
        trace(module.main, dialect=dialect)


@pytest.mark.parametrize(("dialect", "launch", "names", "message"), [
    ("ascendc", "T.Kernel(8, threads=2, is_npu=True)", "(cid, vid)", "yields the block id alone here; 2 names are given"),
    ("ascendc", "T.Kernel(8, is_npu=True)", "(cid, vid, x)", "3 names are given"),
    ("npuir", "T.Kernel(8, 4, threads=128)", "(bx, by, bz)", "yields 2 block ids here; 3 names are given"),
])
def test_names_that_do_not_match(source: Any, refused: Any, dialect: str, launch: str, names: str, message: str) -> None:
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(n: T.int32):
            with {launch} as {names}:
                pass
    """)
    with refused("T150", at=launch, message=message):
        trace(module.main, dialect=dialect)


@pytest.mark.parametrize(("statements", "caret", "message"), [
    ("a = T.alloc_ub((8,), 'int32')", "T.alloc_ub((8,), 'int32')", "T.alloc_ub is outside T.Kernel"),
    ("T.copy(A, A[0])", "T.copy(A, A[0])", "T.copy .*"),
    ("A[0] = 1", "A[0] = 1", "a store to A is outside T.Kernel"),
    ("T.barrier_all()", "T.barrier_all()", "T.barrier_all is outside T.Kernel"),
    ("for i in range(n):\n                pass", "for i in range(n):", "a loop is outside T.Kernel"),
])
def test_what_must_stand_inside(source: Any, refused: Any, statements: str, caret: str, message: str) -> None:
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((8,), "int32"), n: T.int32):
            {statements}
            with T.Kernel(2, is_npu=True):
                pass
    """)
    with refused("T160", at=caret, message=message):
        trace(module.main)


def test_statements_above_the_launch(source: Any, traced: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((64,), "int32"), n: T.int32):
            '''A docstring.'''
            step = 8
            first = A[3] + n
            with T.Kernel(64 // step, is_npu=True) as (cid, vid):
                a = T.alloc_ub((step,), "int32")
                T.fill(a, first)
                T.copy(a, A[cid * step])
    """)
    kernel = traced(module.main)
    kernel.has("memref.load %A[%c3]", "%first = arith.addi", "tile.launch(%c8)", "tile.fill %first into %a")


def test_a_launch_inside_a_branch(source: Any, refused: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(n: T.int32):
            if n > 3:
                with T.Kernel(2, is_npu=True):
                    pass
    """)
    with refused("T150", at="T.Kernel(2, is_npu=True)", message="inside a loop or a branch"):
        trace(module.main)


@pytest.mark.parametrize("use", ["T.copy(1, 2)", "T.alloc_ub((8,), 'int8')", "T.Kernel(1).__enter__()", "T.barrier_all()"])
def test_language_functions_on_the_host(source: Any, refused: Any, use: str) -> None:
    module = source(f"""
        import tilelang_npu.language as T

        def host():
            return {use}
    """)
    with refused("T160", at=use):
        module.host()
