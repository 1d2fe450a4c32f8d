"""Parameters, symbolic dimensions, grid: the signature of a traced kernel."""

from __future__ import annotations

import functools
import linecache
from typing import Any

import pytest

import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.frontend import trace


def test_parameters_and_module(traced: Any) -> None:
    byte = "uint8"

    @T.prim_func
    def main(A: T.Tensor((16, 8), "float16"), B: T.Tensor[(16, 8), byte], n: T.int32, x: T.float32, flag: T.bool):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            T.func_attr({"x": 1})

    kernel = traced(main)
    names = [(p.name, p.kind, str(p.dtype), p.shape) for p in kernel.traced.parameters]
    assert names == [("A", "tensor", "float16", (16, 8)), ("B", "tensor", "uint8", (16, 8)), ("n", "scalar", "int32", None),
                     ("x", "scalar", "float32", None), ("flag", "scalar", "bool", None)]
    assert kernel.traced.name == "main"
    assert kernel.traced.location.source().lstrip().startswith("def main(")
    where = kernel.traced.parameters[2].location
    assert where.source()[where.column - 1 : where.end_column - 1] == "n: T.int32"
    kernel.has("func.func @main(%A: memref<16x8xf16, #hivm.address_space<gm>>, %B: memref<16x8xui8, #hivm.address_space<gm>>, "
               '%n: i32, %x: f32, %flag: i1) attributes {tile.dialect = "ascendc"}')


def test_symbolic_dimensions_are_index_arguments_after_the_parameters(traced: Any) -> None:
    K, M = T.dynamic("K, M")

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), n: T.int32, B: T.Tensor((K, T.ceildiv(M, 4), T.symbolic("L")), "float16")):
        with T.Kernel(T.ceildiv(M, 128) * 2, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8, 16), "float16")
            T.copy(A[cid * 8, 0], a)
            T.copy(a, B[0, 0, 0])

    kernel = traced(main)
    assert kernel.traced.symbols == ("M", "K", "L")
    assert [argument.name_hint for argument in kernel.only("func.func").body.block.args] == ["A", "n", "B", "M", "K", "L"]
    kernel.has("%A: memref<?xf16, #hivm.address_space<gm>>, %n: i32, %B: memref<?xf16, #hivm.address_space<gm>>, %M: index, "
               "%K: index, %L: index")
    kernel.has("= tile.tensor %A [%M, %K]", "%0 = arith.addi %M, %c3", "%1 = arith.divui %0, %c4",
               "= tile.tensor %B [%K, %1, %L]", "tile.launch")
    ((grid,),) = kernel.traced.grids
    assert [grid.evaluate({"M": m}) for m in (1, 128, 129)] == [2, 2, 4]
    assert kernel.traced.parameters[2].shape[1].evaluate({"M": 9}) == 3


def test_a_dimension_of_one_name_is_one_dimension(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((T.symbolic("M"), 8), "float16"), B: T.Tensor((8, T.symbolic("M")), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8, 8), "float16")
            T.copy(A[0, 0], a)
            T.copy(a, B[0, 0])

    assert traced(main).traced.symbols == ("M",)


def test_the_grid_may_depend_on_integer_parameters(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float16"), n: T.int32):
        blocks = T.min((n + 15) // 16, 40)
        with T.Kernel(blocks, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8,), "float16")
            T.copy(A[cid], a)
            T.copy(a, A[cid])

    kernel = traced(main)
    assert [kernel.traced.grids[0][0].evaluate({"n": n}) for n in (1, 33, 10_000)] == [1, 3, 40]
    kernel.has("%n: i32", "arith.addi %n, %c15_i32", "arith.minsi", "arith.index_cast", "tile.launch(")


def test_annotations_that_are_text() -> None:
    """This file has ``from __future__ import annotations``: sizes are locals of the factory and must still be found."""
    def factory(rows: int, dtype: str) -> Any:
        columns = rows * 2

        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), n: T.int32):
            with T.Kernel(rows, is_npu=True) as (cid, vid):
                pass

        return main

    found = trace(factory(8, "int8"))
    assert found.parameters[0].shape == (8, 16)
    assert found.parameters[0].dtype == "int8"


def test_assigning_a_type_on_the_module_does_no_harm(source: Any) -> None:
    module = source("""
        import tilelang_npu.language as T
        kept = T.float16
        T.float16 = "float16"

        @T.prim_func
        def main(A: T.Tensor((8,), T.float16), x: T.float16):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((8,), T.float16)
                T.copy(A, a)
    """)
    try:
        found = trace(module.main)
    finally:
        T.float16 = module.kept
    assert [str(p.dtype) for p in found.parameters] == ["float16", "float16"]


@pytest.mark.parametrize(("parameters", "code", "caret", "message"), [
    ("A", "T151", "A", "'A' has no annotation"),
    ("A: [1, 2]", "T151", "A: [1, 2]", "'A' is annotated with"),
    ("A: T.Tensor((8,), 'float17')", "T110", "A: T.Tensor((8,), 'float17')", "unknown element type 'float17'"),
    ("A: T.Tensor((8 / 2,), 'int8')", "T151", "A: T.Tensor((8 / 2,), 'int8')", r"size 4\.0 of axis 0 of 'A' is not an integer"),
    ("A: T.Tensor((8, -1), 'int8')", "T150", "A: T.Tensor((8, -1), 'int8')", "size -1 of axis 1 of 'A' is negative"),
    ("n: T.int32 = 3", "T151", "3", "must not have defaults"),
    ("*A", "T151", "A", "positional parameters only"),
    ("*, A: T.int32", "T151", "A: T.int32", "positional parameters only"),
    ("A: T.handle", "T190", "A: T.handle", r"T\.handle is not supported"),
])
def test_bad_parameters(source: Any, refused: Any, parameters: str, code: str, caret: str, message: str) -> None:
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main({parameters}):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                pass
    """)
    with refused(code, at=caret, message=message, line="def main("):
        trace(module.main)


def test_an_annotation_whose_name_the_factory_does_not_keep(source: Any, refused: Any) -> None:
    module = source("""
        from __future__ import annotations
        import tilelang_npu.language as T

        def outer(size):
            def factory():
                @T.prim_func
                def main(A: T.Tensor((size,), "float32")):
                    with T.Kernel(1, is_npu=True) as (cid, vid):
                        pass
                return main
            return factory
    """)
    with refused("T151", at='A: T.Tensor((size,), "float32")', message="the annotation of 'A' names 'size', which is not known",
                 line="def main("):
        trace(module.outer(8)())


def test_a_kernel_without_a_launch(source: Any, refused: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((8,), "int8")):
            pass
    """)
    with refused("T150", at='def main(A: T.Tensor((8,), "int8")):', message="'main' has no `with T.Kernel"):
        trace(module.main)


def test_a_file_that_was_changed(source: Any, tmp_path: Any) -> None:
    text = """
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((8,), "int8")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                pass
    """
    module = source(text, "changes")
    file = tmp_path / "changes.py"
    file.write_text("# a line more\n" + file.read_text())
    with pytest.raises(TileError, match="was changed since it was imported") as caught:
        trace(module.main)
    assert caught.value.code == "T143"
    file.write_text("def (")
    with pytest.raises(TileError, match="is no longer valid Python"):
        trace(module.main)


def test_code_without_source() -> None:
    names: dict[str, Any] = {}
    exec("import tilelang_npu.language as T\n@T.prim_func\ndef main(n: T.int32):\n  with T.Kernel(1): pass", names)
    with pytest.raises(TileError, match="no source for 'main'") as caught:
        trace(names["main"])
    assert caught.value.code == "T143"


def test_a_notebook_cell_is_read_through_linecache() -> None:
    import linecache

    text = ('import tilelang_npu.language as T\n\n@T.prim_func\ndef main(n: T.int32):\n    with T.Kernel(1) as b:\n'
            '        x = nothing\n')
    linecache.cache["<ipython-input-1>"] = (len(text), None, text.splitlines(True), "<ipython-input-1>")
    names: dict[str, Any] = {}
    exec(compile(text, "<ipython-input-1>", "exec"), names)
    with pytest.raises(TileError) as caught:
        trace(names["main"])
    assert str(caught.value.location) == "<ipython-input-1>:6:13"


@pytest.mark.parametrize(("body", "dialect"), [
    ("T.tile.exp(a, a)", "ascendc"), ("T.vexp(a, a)", "npuir"), ("T.npuir_exp(a, a)", "npuir"), ("T.copy(a, A)", "ascendc"),
    ("T.barrier_all()", "ascendc"), ("T.atomic_add(A[0], a)", "npuir"), ("T.tile.atomic_add(A[0], a)", "ascendc"),
    ("T.printf('here')", "ascendc"), ("T.dump_tensor(a, 1, 8)", "ascendc"), ("T.set_deq_scale(2)", "ascendc"),
])
def test_the_dialect_is_inferred_from_the_operations(source: Any, body: str, dialect: str) -> None:
    text = f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((8,), "float16")):
            with T.Kernel(1, is_npu=NPU) as (cid, vid):
                a = T.alloc_ub((8,), "float16")
                {body}
        NPU = True
    """
    assert trace(source(text).main).dialect == dialect
    gpu = source(text.replace(", is_npu=NPU) as (cid, vid)", ") as cid"))
    assert trace(gpu.main).dialect == "npuir"
    assert trace(gpu.main, dialect="gpu").dialect == "npuir"


def test_an_unknown_dialect_and_a_call_of_a_kernel() -> None:
    @T.prim_func
    def main(n: T.int32):
        with T.Kernel(1, is_npu=True):
            pass

    with pytest.raises(TileError, match="unknown dialect 'cuda'"):
        trace(main, dialect="cuda")
    with pytest.raises(TileError, match="cannot be called directly") as caught:
        main(3)
    assert caught.value.location.source().strip() == "main(3)"


def test_the_decorators_take_arguments() -> None:
    @T.prim_func(private=True, check_well_formed=False)
    def main(n: T.int32):
        with T.Kernel(1, is_npu=True):
            pass

    assert trace(main).name == "main"
    assert main.__name__ == "main"
    with pytest.raises(TileError, match="decorates a Python function, not int"):
        T.prim_func(3)


def test_an_async_kernel_is_no_changed_file() -> None:
    @T.prim_func
    async def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            T.copy(A, T.alloc_ub((64,), "float32"))

    with pytest.raises(TileError, match="'main' is an `async def`") as caught:
        trace(main)
    assert caught.value.code == "T141"
    assert caught.value.location is not None
    assert caught.value.help == "write def"


def test_a_decorator_between_prim_func_and_the_kernel_is_named() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*arguments: Any) -> Any:
            return function(*arguments)

        return wrapper

    @T.prim_func
    @logged
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            T.copy(A, T.alloc_ub((64,), "float32"))

    with pytest.raises(TileError, match="a decorator has wrapped 'main' in 'wrapper'") as caught:
        trace(main)
    assert caught.value.code == "T141"
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


TEXT = """\
@T.prim_func
def main(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a = T.alloc_ub((64,), "float32")
        T.copy(A, a)
"""


def test_a_kernel_compiled_from_a_text_says_so_and_the_advice_works() -> None:
    names: dict[str, Any] = {"T": T}
    exec(compile(TEXT, "<string>", "exec"), names)
    with pytest.raises(TileError, match="no source for 'main'") as caught:
        trace(names["main"])
    assert caught.value.location is not None  # of who asked
    assert "linecache.cache[name] = (len(text), None, text.splitlines(True), name)" in caught.value.help
    text, name = TEXT, "<a kernel of the test>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), names)
    trace(names["main"]).module.verify()


def test_a_kernel_compiled_under_the_name_of_another_file() -> None:
    names: dict[str, Any] = {"T": T}
    exec(compile(TEXT, __file__, "exec"), names)
    with pytest.raises(TileError, match="was changed since it was imported, or the kernel was compiled from a text"):
        trace(names["main"])
