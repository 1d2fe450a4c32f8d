"""Printing in kernels: text with numbers, and tensors, by every core that executes the statement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
KERNEL = """
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((4, 16), "{kind}"), n: T.int32, x: T.float32):
        {above}
        with T.Kernel(2, is_npu=True) as (cid, vid):
            a = T.alloc_ub((4, 16), "{kind}")
            if vid == 0:
                T.copy(A, a)
                {inside}
        {below}
"""


def printed(source: Any, capsys: Any, inside: str = "pass", above: str = "pass", below: str = "pass", kind: str = "float32",
            a: np.ndarray | None = None) -> str:
    text = KERNEL.format(kind=kind, above=above, inside=inside.replace("\n", "\n                "), below=below)
    kernel = tilelang.compile(source(text.replace("pass\n", "\n")).main, target="ascendc", pass_configs=SYNC)
    kernel(np.arange(64).reshape(4, 16).astype(ops_type(kind)) if a is None else a, -5, 2.5)
    return str(capsys.readouterr().out)


def ops_type(kind: str) -> Any:
    return tilelang.DataType(kind).numpy


@pytest.mark.parametrize(("call", "expected"), [
    ("'n = %d|'", None),
    ("'%d|', n", "-5|"),
    ("'%5i|%-4u|%03d|', n, 7, cid", "   -5|7   |{cid:03d}|"),
    ("'%x %#X %o|', n, 255, 8", "fffffffffffffffb 0XFF 10|"),
    ("'%f %.2f %8.3e %g|', x, x, x, x", "2.500000 2.50 2.500e+00 2.5|"),
    ("'%ld %lld %hd|', n, n, n", "-5 -5 -5|"),
    ("'100%% of %s|', 'it'", "100% of it|"),
    ("'%s %d|', '50%', n", "50% -5|"),
    ("'%c%c|', 72, 105", "Hi|"),
    ("'%f|', a[1, 3]", "19.000000|"),
    ("'%d|', cid * 10 + 1", "{ten}|"),
    ("'plain'", "plain"),
])
def test_printf(source: Any, capsys: Any, call: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(tilelang.TileError, match=r"T145.*%d has no argument"):
            printed(source, capsys, f"T.printf({call})")
        return
    if "x %#X" in call:
        expected = expected.replace("fffffffffffffffb", "fffffffb")  # a 32-bit number
    found = printed(source, capsys, f"T.printf({call})")
    blocks = [expected.format(cid=cid, ten=cid * 10 + 1) for cid in range(2)]
    assert sorted([found[:len(blocks[0])], found[len(blocks[0]):]]) == sorted(blocks)


def test_printf_before_and_after_the_kernel(source: Any, capsys: Any) -> None:
    """Each of the four Vector cores prints the first and the last line."""
    found = printed(source, capsys, "T.printf('inside %d\\n', cid)", "T.printf('first %d\\n', n)", "T.printf('last\\n')")
    lines = found.splitlines()
    assert sorted(lines) == sorted(["first -5"] * 4 + ["inside 0", "inside 1"] + ["last"] * 4)
    assert lines[0] == "first -5"
    assert lines[-1] == "last"


@pytest.mark.parametrize(("call", "code", "problem"), [
    ("T.printf('%d', x)", "T110", "%d takes an integer, and a float is given"),
    ("T.printf('%f', n)", "T110", "%f takes a float, and an integer is given"),
    ("T.printf('%s', n)", "T110", "%s takes a text"),
    ("T.printf('%d', 'n')", "T110", "%d of 'n'"),
    ("T.printf('%d', a)", "T110", r"%d of a \[4, 16\] float32"),
    ("T.printf('%p', a)", "T110", r"%p of a \[4, 16\] float32"),
    ("T.printf('%d', n, n)", "T145", "2 arguments for 1 conversions"),
    ("T.printf('%y', n)", "T145", "not known"),
    ("T.printf(n)", "T145", "the format is"),
    ("T.dump_tensor(a, -1, 4)", "T145", "desc is -1"),
    ("T.dump_tensor(a, 1, 65)", "T111", r"dump_size is 65, but a \[4, 16\] float32 has 64 elements"),
    ("T.dump_tensor(a, 1, n)", "T111", "dump_size is n : int32, which is not a positive constant"),
    ("T.dump_tensor(a, 1, 64, (4, 15))", "T111", r"64 elements do not fill the shape \[4, 15\]"),
    ("T.dump_tensor(n, 1, 4)", "T110", "must be a buffer"),
])
def test_mistakes(source: Any, capsys: Any, refused: Any, call: str, code: str, problem: str) -> None:
    with refused(code, at=call, message=problem):
        printed(source, capsys, call)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8", "uint16", "int32"])
def test_dump_of_a_buffer_and_a_tensor(source: Any, capsys: Any, kind: str) -> None:
    found = printed(source, capsys, "if cid == 1:\n    T.dump_tensor(a, 7, 64, (4, 16))\n    T.dump_tensor(A, 8, 20)\n"
                                    "    T.dump_tensor(a[2, :], 9, 3)", kind=kind)
    heads = [line for line in found.splitlines() if line.startswith("DumpTensor")]
    assert heads == [f"DumpTensor: desc={desc}, position={place}, data_type={kind}, dump_size={count}"
                     for desc, place, count in ((7, "UB", 64), (8, "GM", 20), (9, "UB", 3))]
    bodies = [np.array(eval(body.split("\n", 1)[1].strip())) for body in found.split("DumpTensor")[1:]]
    np.testing.assert_array_equal(bodies[0], np.arange(64).reshape(4, 16))
    np.testing.assert_array_equal(bodies[1], np.arange(20))
    np.testing.assert_array_equal(bodies[2], [32, 33, 34])


def test_a_large_dump_is_whole(source: Any, capsys: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((50, 100), "int32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                if vid == 0:
                    T.dump_tensor(A, 1, 5000)
    """)
    tilelang.compile(module.main, target="ascendc", pass_configs=SYNC)(np.arange(5000, dtype=np.int32).reshape(50, 100))
    found = capsys.readouterr().out.split("\n", 1)[1]
    np.testing.assert_array_equal(np.array(eval(found)), np.arange(5000))


def test_dump_of_the_matrices_of_the_cube_core(source: Any, capsys: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((32, 48), "float16"), B: T.Tensor((48, 32), "float16"), C: T.Tensor((32, 32), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((32, 48), "float16")
                b = T.alloc_L1((48, 32), "float16")
                c = T.alloc_L0C((32, 32), "float32")
                with T.Scope("C"):
                    T.copy(A, a)
                    T.copy(B, b)
                    T.dump_tensor(a, 1, 32 * 48, (32, 48))
                    T.gemm_v0(a, b, c, init=True)
                    T.dump_tensor(c, 2, 32 * 32, (32, 32))
                    T.copy(c, C)
    """)
    a, b = np.arange(32 * 48).reshape(32, 48) % 7, np.arange(48 * 32).reshape(48, 32) % 5
    c = np.zeros((32, 32), np.float32)
    tilelang.compile(module.main, target="ascendc", pass_configs=SYNC)(a.astype(np.float16), b.astype(np.float16), c)
    bodies = capsys.readouterr().out.split("DumpTensor")[1:]
    assert "position=L1" in bodies[0]
    np.testing.assert_array_equal(np.array(eval(bodies[0].split("\n", 1)[1].strip())), a)
    assert "position=L0C" in bodies[1]
    np.testing.assert_array_equal(np.array(eval(bodies[1].split("\n", 1)[1].strip())), a @ b)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("dumped", [True, False])
def test_a_dump_waits_for_its_tensor_and_later_stores_wait_for_the_dump(source: Any, *, dumped: bool) -> None:
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((32, 64), "float16")
                b = T.alloc_L1((64, 64), "float16")
                with T.Scope("V"):
                    T.copy(A[vid * 32, 0], a)
                    {"T.dump_tensor(a, 1, 2048)" if dumped else "pass"}
                    T.copy(a, B[vid * 32, 0])
                with T.Scope("C"):
                    T.copy(A, b)
                    {"T.dump_tensor(b, 1, 2048)" if dumped else "pass"}
                    T.copy(A, b)
    """)
    kernel = tilelang.compile(module.main, target="ascendc")
    a, b = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float16)
    kernel(a, b)
    np.testing.assert_array_equal(b, a)
    missing = {hazard.missing.split(" between")[0] for hazard in kernel.trace(a, b).hazards}
    assert missing == ({"an event MTE2 -> MTE3", "pipe_barrier[PIPE_MTE2]"} if not dumped else set())


def test_print_of_tiles_in_a_kernel_of_both_cores(source: Any, capsys: Any) -> None:
    """Each is printed once, by a core that has it."""
    kernel = tilelang.compile(source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_shared((16, 16), "float16")
                b = T.alloc_fragment((16, 16), "float32")
                T.copy(A, a)
                T.gemm(a, a, b, initC=True)
                T.vadd(b, 1.0, b)
                T.print(b, msg="b")
                T.copy(b, B)
        """).main, target="npuir")
    kernel(np.eye(16, dtype=np.float16), np.zeros((16, 16), np.float32))
    out = str(capsys.readouterr().out)
    assert out.count("b 16x16 float32") == 1
    assert out.startswith("[AIV line ")
    assert "[[2. 1. 1. 1." in out
