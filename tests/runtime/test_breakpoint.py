"""``breakpoint()`` in a kernel: where a run stops, with which values, and on which terms."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

Seen = list[dict[str, Any]]


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The variables of each stop, as a debugger finds them, with its file and line."""
    found: Seen = []

    def hook() -> None:
        frame = sys._getframe(1)
        found.append({**frame.f_locals, "place": (frame.f_code.co_filename, frame.f_lineno), "name": frame.f_code.co_name})

    monkeypatch.setattr(sys, "breakpointhook", hook)
    return found


def line_of(function: Callable[..., object], text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    first = function.__code__.co_firstlineno
    return next(number for number in range(first, len(lines)) if text in lines[number - 1])


def test_a_stop_has_the_tiles_the_indices_and_the_line_of_the_source(stops: Seen) -> None:
    @tilelang.jit(out_idx=[-1], target="npuir")
    def scaled(rows: int, tile: int, factor: float) -> Any:
        @T.prim_func
        def scaled(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):  # type: ignore[no-untyped-def]
            with T.Kernel(2, is_npu=True) as (bx, _):
                a = T.alloc_ub((tile, 64), "float32")
                b = T.alloc_ub((tile, 64), "float32")
                for i in T.serial(rows // tile // 2):
                    T.copy(A[(bx * 2 + i) * tile, 0], a)
                    T.vmul(a, factor, a)
                    breakpoint()  # here
                    T.vadd(a, 1.0, b)
                    T.copy(b, B[(bx * 2 + i) * tile, 0])

        return scaled

    a = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    made = scaled(32, 8, 2.5)(a)
    np.testing.assert_allclose(made, a * 2.5 + 1, rtol=1e-6)
    assert [(stop["bx"], stop["i"]) for stop in stops] == [(0, 0), (0, 1)]  # the first block, and that one to its end
    for stop in stops:
        np.testing.assert_array_equal(stop["a"], a[8 * stop["i"]:8 * stop["i"] + 8] * np.float32(2.5))
        np.testing.assert_array_equal(stop["A"], a)
        assert (stop["tile"], stop["factor"], stop["name"]) == (8, 2.5, "scaled")
        assert repr(stop["b"]) == "<b [8, 64] float32: nothing above this line has written it>"
        assert stop["place"][0] == __file__
        for name in ("a", "A"):
            with pytest.raises(ValueError, match="read-only"):
                stop[name][0, 0] = 1
    line = line_of(test_a_stop_has_the_tiles_the_indices_and_the_line_of_the_source, "# here")
    assert stops[0]["place"][1] in (line, line - 1)  # of the call; the debugger's next line is this one


@tilelang.jit(out_idx=[-1], target="npuir")
def scores(length: int, keys: int) -> Any:
    @T.prim_func
    def scores(Q: T.Tensor((length, 64), "float16"), K: T.Tensor((keys, 64), "float16"),  # type: ignore[no-untyped-def]
               S: T.Tensor((length, keys), "float32")):
        with T.Kernel(length // 64, is_npu=True) as (block, _):
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            s = T.alloc_fragment((64, 64), "float32")
            T.copy(Q[block * 64, 0], q)
            for i in T.Pipelined(keys // 64, num_stages=2):
                T.copy(K[i * 64, 0], k)
                T.gemm(q, k, s, initC=True, b_transpose=True)
                T.vexp(s, s)
                breakpoint()
                T.vmul(s, 0.5, s)
                T.copy(s, S[block * 64, i * 64])

    return scores


def test_a_pipelined_kernel_of_both_cores_stops_once_with_the_tiles_of_both(
        stops: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_BREAK", "1")
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((rows, 64)).astype(np.float16) / 8 for rows in (128, 192))
    made = scores(128, 192)(q, k)
    wanted = np.exp(q.astype(np.float32) @ k.astype(np.float32).T)
    np.testing.assert_allclose(made, wanted * 0.5, rtol=1e-5)
    assert [(stop["block"], stop["i"]) for stop in stops] == [(1, 0), (1, 1), (1, 2)]
    for stop in stops:
        part = slice(64 * stop["i"], 64 * stop["i"] + 64)
        np.testing.assert_array_equal(stop["q"], q[64:])
        np.testing.assert_array_equal(stop["k"], k[part])
        np.testing.assert_allclose(stop["s"], wanted[64:, part], rtol=1e-5)


def test_each_vector_core_shows_its_own_tiles_where_its_author_numbers_them(stops: Seen) -> None:
    @tilelang.jit(target="ascendc")
    def factory() -> Any:
        @T.prim_func
        def halves(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):  # type: ignore[no-untyped-def]
            with T.Kernel(1, is_npu=True) as (cid, vid):
                parts = [T.alloc_ub((32, 64), "float32"), T.alloc_ub((32, 64), "float32")]
                count = T.alloc_var("int32", init=7)
                with T.Scope("V"):
                    T.copy(A[vid * 32, 0], parts[0])
                    T.barrier_all()
                    T.tile.add(parts[1], parts[0], parts[0])
                    T.barrier_all()
                    if vid == 1:
                        breakpoint()
                    T.copy(parts[1], B[vid * 32, 0])

        return halves

    a, b = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    factory()(a, b)
    np.testing.assert_array_equal(b, a + a)
    (stop,) = stops
    assert (stop["cid"], stop["vid"], stop["count"]) == (0, 1, 7)
    np.testing.assert_array_equal(stop["parts"][0], a[32:])
    np.testing.assert_array_equal(stop["parts"][1], a[32:] * 2)


def test_the_cube_core_shows_all_matrices_of_a_buffer_in_l1(stops: Seen) -> None:
    @tilelang.jit(target="ascendc", pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
    def factory() -> Any:
        @T.prim_func
        def product(A: T.Tensor((2, 32, 48), "float16"), C: T.Tensor((32, 32), "float32")):  # type: ignore[no-untyped-def]
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((2, 32, 48), "float16")
                c = T.alloc_L0C((32, 32), "float32")
                with T.Scope("C"):
                    T.copy(A[0, 0, 0], a[0, :, :])
                    T.copy(A[1, 0, 0], a[1, :, :])
                    T.gemm_v0(a[0, :, :], a[1, :, :], c, transpose_B=True, init=True)
                    breakpoint()
                    T.copy(c, C[0, 0])

        return product

    a = np.random.default_rng(0).standard_normal((2, 32, 48)).astype(np.float16)
    factory()(a, np.zeros((32, 32), np.float32))
    (stop,) = stops
    np.testing.assert_array_equal(stop["a"], a)
    np.testing.assert_allclose(stop["c"], a[0].astype(np.float32) @ a[1].astype(np.float32).T, rtol=1e-4, atol=1e-4)


def test_a_macro_stops_in_its_own_lines_with_its_own_names(stops: Seen) -> None:
    @T.macro
    def doubled(x: Any) -> None:
        T.vadd(x, x, x)
        breakpoint()

    @tilelang.jit(out_idx=[-1], target="npuir")
    def factory() -> Any:
        @T.prim_func
        def outer(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")):  # type: ignore[no-untyped-def]
            with T.Kernel(1, is_npu=True) as (_, _):
                tile = T.alloc_ub((16, 16), "float32")
                T.copy(A, tile)
                doubled(tile)
                T.copy(tile, B)

        return outer

    a = np.ones((16, 16), np.float32)
    factory()(a)
    assert (stops[0]["name"], "tile" in stops[0]) == ("doubled", False)
    np.testing.assert_array_equal(stops[0]["x"], a * 2)


SCRIPT = '''
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def factory():
    @T.prim_func
    def copied(A: T.Tensor((64, 16), "float32"), B: T.Tensor((64, 16), "float32")):
        with T.Kernel(2, 2, is_npu=True) as (x, y):
            a = T.alloc_ub((16, 16), "float32")
            T.copy(A[(x * 2 + y) * 16, 0], a)
            breakpoint()
            T.copy(a, B[(x * 2 + y) * 16, 0])
    return copied

print("sum", factory()(np.ones((64, 16), np.float32)).sum())
'''


_OURS = ("CI", "PYTHONBREAKPOINT", "TILELANG_NPU_BREAK")


def typed(tmp_path: Path, text: str | None, **variables: str) -> tuple[int, str, str]:
    """What a script with a stop does where someone types this."""
    file = tmp_path / "stopping.py"
    file.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], input=text, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL if text is None else None,
                          env={name: value for name, value in os.environ.items() if name not in _OURS} | variables)
    return done.returncode, done.stdout, done.stderr


def test_pdb_stands_at_the_users_line_and_goes_on(tmp_path: Path) -> None:
    code, out, _ = typed(tmp_path, "w\np a.sum(), x, y\n!a[0] = 2\nc\n")
    assert code == 0
    assert "breakpoint in copied: block 0, 0, Vector core 0" in out
    assert f"> {tmp_path / 'stopping.py'}(13)copied()\n-> breakpoint()" in out
    assert "256.0), 0, 0)" in out
    assert "read-only" in out
    assert "sum 1024.0" in out


def test_a_step_in_pdb_goes_to_the_next_stop_and_not_into_the_simulator(tmp_path: Path) -> None:
    code, out, _ = typed(tmp_path, "n\nn\nn\nn\n")
    assert code == 0
    assert "machine/stops.py" not in out
    assert "sum 1024.0" in out


def test_the_block_is_chosen_by_its_indices(tmp_path: Path) -> None:
    _, out, _ = typed(tmp_path, "p x, y\nc\n", TILELANG_NPU_BREAK="1,0")
    assert "(1, 0)" in out
    _, _, told = typed(tmp_path, "", TILELANG_NPU_BREAK="5,0")
    assert "TILELANG_NPU_BREAK=5,0: no such block came to breakpoint()" in told
    code, _, told = typed(tmp_path, "", TILELANG_NPU_BREAK="5")
    assert (code, "TILELANG_NPU_BREAK=5 names no block" in told, "such as 0,0" in told) == (1, True, True)


@pytest.mark.parametrize(("text", "said"), [
    ("q\n", "error[T423]: the run was ended in the debugger"),
    ("", "error[T423]: the run was ended in the debugger"),  # nothing more to read
    ("x = 3\nc\n", "error[T422]: 'x' was set in the debugger"),
    (None, "error[T422]: breakpoint() has nobody to ask: standard input is /dev/null"),
])
def test_a_run_that_is_ended_or_has_nobody_to_ask_says_so(tmp_path: Path, text: str | None, said: str) -> None:
    code, out, told = typed(tmp_path, text)
    assert (code, said in told, "sum" in out) == (1, True, False)
    assert "stopping.py:13:13" in told


def test_in_ci_nobody_is_asked_and_pythonbreakpoint_0_passes_by(tmp_path: Path) -> None:
    code, _, told = typed(tmp_path, "c\n", CI="true")
    assert (code, "this is a run of CI" in told) == (1, True)
    assert typed(tmp_path, None, PYTHONBREAKPOINT="0")[:2] == (0, "sum 1024.0\n")


def test_nothing_stops_where_blocks_run_for_other_ends(stops: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k = np.ones((2, 64, 64), np.float16)
    kernel = scores.compile(64, 64)
    kernel.estimate()
    assert not stops
    monkeypatch.setenv("TILELANG_NPU_SANITIZE", "1")
    kernel(q, k)
    assert len(stops) == 1


def test_a_schedule_refuses_to_stop(monkeypatch: pytest.MonkeyPatch, stops: Seen) -> None:
    monkeypatch.setenv("TILELANG_NPU_SCHEDULE", "early")
    with pytest.raises(TileError, match="T413"):
        scores(64, 64)(*np.ones((2, 64, 64), np.float16))
    assert not stops


def refused(body: str) -> str:
    """The error of a kernel with these lines."""
    import linecache

    text = SCRIPT.split("\nprint")[0].replace("            breakpoint()\n", body)
    linecache.cache["<refused>"] = (len(text), None, text.splitlines(keepends=True), "<refused>")
    place: dict[str, Any] = {}
    exec(compile(text, "<refused>", "exec"), place)
    with pytest.raises(TileError) as caught:
        place["factory"]()
    return str(caught.value)


def test_stops_that_cannot_be_are_refused_with_their_line() -> None:
    assert "error[T141]" in refused("            for i, j in T.Parallel(16, 16):\n                breakpoint()\n"
                                    "                a[i, j] = 0.0\n")
    assert "error[T145]" in refused("            breakpoint(3)\n")
    told = refused("            import_pdb()\n".replace("import_pdb", "__import__('pdb').set_trace"))
    assert "error[T144]" in told
    assert "PYTHONBREAKPOINT=pdb.set_trace chooses this one" in told
