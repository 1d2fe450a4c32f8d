"""Each optimisation switched off by name: another program, the same values, and no fewer cycles; and the remarks of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.cli import main as command
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.transforms.infra.optimisations import OPTIMISATIONS, validate_optimisations

Arrays = list[np.ndarray[Any, Any]]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def drawn(*shapes: tuple[int, ...], dtype: str = "float16") -> Arrays:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def points() -> tuple[Any, Arrays]:
    @T.prim_func
    def main(X: T.Tensor((24, 72), "float32"), Y: T.Tensor((24, 72), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((24, 72), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(24, 72):
                x[i, j] = x[i, j] * x[i, j] + 1.0
            T.copy(x, Y)

    return main, drawn((24, 72), (24, 72), dtype="float32")


def attention(*, serial: bool = False, **schedule: Any) -> tuple[Any, Arrays]:
    """A product, vector work on it, a product of that: to and fro between the cores in each iteration."""
    schedule = schedule or {"num_stages": 2}

    @T.prim_func
    def main(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((448, 64), "float16"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            p = T.alloc_shared((64, 64), "float16")
            scores = T.alloc_fragment((64, 64), "float32")
            product = T.alloc_fragment((64, 64), "float32")
            scaled = T.alloc_shared((64, 64), "float32")
            result = T.alloc_shared((64, 64), "float32")
            T.copy(Q, q)
            T.clear(result)
            for i in T.serial(7) if serial else T.Pipelined(7, **schedule):
                T.copy(K[i * 64, 0], k)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                T.vmul(scores, 0.125, scaled)
                T.vexp(scaled, scaled)
                T.vcast(scaled, p, "rint")
                T.gemm(p, k, product, initC=True)
                T.vadd(result, product, result)
            T.copy(result, O)

    q, k = drawn((64, 64), (448, 64))
    return main, [q * np.float16(0.1), k * np.float16(0.1), np.zeros((64, 64), np.float32)]


def converted_twice() -> tuple[Any, Arrays]:
    """Two loops convert the same tile."""
    @T.prim_func
    def main(X: T.Tensor((70, 72), "float16"), Y: T.Tensor((70, 72), "float32"), Z: T.Tensor((70, 72), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((70, 72), "float16")
            y = T.alloc_shared((70, 72), "float32")
            z = T.alloc_shared((70, 72), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(70, 72):
                y[i, j] = T.cast(x[i, j], "float32") * 3.0
            for i, j in T.Parallel(70, 72):
                z[i, j] = T.cast(x[i, j], "float32") + y[i, j]
            T.copy(y, Y)
            T.copy(z, Z)

    return main, [*drawn((70, 72)), np.zeros((70, 72), np.float32), np.zeros((70, 72), np.float32)]


def rectified() -> tuple[Any, Arrays]:
    """A product that goes to GM by way of a buffer of another type."""
    @T.prim_func
    def main(A: T.Tensor((70, 64), "float16"), B: T.Tensor((64, 72), "float16"), C: T.Tensor((70, 72), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((80, 64), "float16")
            b = T.alloc_shared((64, 80), "float16")
            c = T.alloc_fragment((80, 80), "float32")
            out = T.alloc_shared((80, 80), "float16")
            T.copy(A[0, 0], a)
            T.copy(B[0, 0], b)
            T.gemm(a, b, c, initC=True)
            for i, j in T.Parallel(80, 80):
                out[i, j] = T.max(c[i, j], 0.0)
            T.copy(out, C[0, 0])

    return main, [*drawn((70, 64), (64, 72)), np.zeros((70, 72), np.float16)]


def weighted() -> tuple[Any, Arrays]:
    """Rows by a weight that is loaded anew for each of them."""
    @T.prim_func
    def main(X: T.Tensor((70, 200), "float32"), W: T.Tensor((2, 200), "float32"), Y: T.Tensor((70, 200), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 200), "float32")
            w = T.alloc_shared((1, 200), "float32")
            for i in T.Pipelined(5, num_stages=2):
                T.copy(W[cid, 0], w)
                T.copy(X[(cid * 5 + i) * 8, 0], x)
                T.vmul(x, w, x)
                T.copy(x, Y[(cid * 5 + i) * 8, 0])

    return main, drawn((70, 200), (2, 200), (70, 200), dtype="float32")


def converted() -> tuple[Any, Arrays]:
    """Tiles that are loaded and stored as bfloat16, and computed in float32; two slots of both do not fit."""
    @T.prim_func
    def main(X: T.Tensor((70, 1304), "bfloat16"), Y: T.Tensor((70, 1304), "bfloat16")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 1304), "float32")
            y = T.alloc_shared((8, 1304), "float32")
            for i in T.Pipelined(5, num_stages=2):
                T.copy(X[(cid * 5 + i) * 8, 0], x)
                T.vmul(x, x, y)
                T.copy(y, Y[(cid * 5 + i) * 8, 0])

    return main, drawn((70, 1304), (70, 1304), dtype="bfloat16")


def cleared_and_loaded() -> tuple[Any, Arrays]:
    """A tile that is cleared before it is loaded."""
    @T.prim_func
    def main(X: T.Tensor((40, 250), "float32"), Y: T.Tensor((40, 250), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((40, 250), "float32")
            T.clear(x)
            T.copy(X, x)
            T.vexp(x, x)
            T.copy(x, Y)

    return main, drawn((40, 250), (40, 250), dtype="float32")


def passed_on() -> tuple[Any, Arrays]:
    """The way by a shared buffer and a fragment that kernels for GPUs take."""
    @T.prim_func
    def main(X: T.Tensor((100, 250), "float32"), Y: T.Tensor((100, 250), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            shared = T.alloc_shared((20, 250), "float32")
            x = T.alloc_fragment((20, 250), "float32")
            out = T.alloc_shared((20, 250), "float32")
            for i in T.Pipelined(5, num_stages=2):
                T.copy(X[i * 20, 0], shared)
                T.copy(shared, x)
                T.vexp(x, x)
                T.copy(x, out)
                T.copy(out, Y[i * 20, 0])

    return main, drawn((100, 250), (100, 250), dtype="float32")


def cleared() -> tuple[Any, Arrays]:
    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.serial(4):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return main, [*drawn((64, 128), (128, 64)), np.zeros((64, 64), np.float32)]


def sums() -> tuple[Any, Arrays]:
    @T.prim_func
    def main(A: T.Tensor((32, 256), "float32"), B: T.Tensor((32, 256), "float32"), C: T.Tensor((32, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 256), "float32")
            b = T.alloc_shared((32, 256), "float32")
            c = T.alloc_shared((32, 256), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.vadd(a, b, c)
            T.copy(c, C)

    return main, drawn((32, 256), (32, 256), (32, 256), dtype="float32")


def crowd() -> tuple[Any, Arrays]:
    """Five tiles, while UB has room for three, and rows that are loaded at the same time."""
    @T.prim_func
    def main(A: T.Tensor((5, 56, 256), "float32"), R: T.Tensor((5, 256), "float32"), C: T.Tensor((5, 56, 256), "float32"),
             S: T.Tensor((5, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            for turn in T.serial(5):
                a = T.alloc_shared((56, 256), "float32")
                b = T.alloc_shared((56, 256), "float32")
                c = T.alloc_shared((56, 256), "float32")
                d = T.alloc_shared((56, 256), "float32")
                e = T.alloc_shared((56, 256), "float32")
                row = T.alloc_shared((1, 256), "float32")
                T.copy(A[turn, 0, 0], a)
                T.vexp(a, b)
                T.vadd(a, b, c)
                T.vmul(c, b, d)
                T.copy(R[turn, 0], row)
                T.vadd(d, row, e)
                T.copy(e, C[turn, 0, 0])
                T.vmul(row, 2.0, row)
                T.copy(row, S[turn, 0])

    return main, drawn((5, 56, 256), (5, 256), (5, 56, 256), (5, 256), dtype="float32")


def neighbours() -> tuple[Any, Arrays]:
    """Tiles that fill UB, and a loop that needs temporaries."""
    @T.prim_func
    def main(X: T.Tensor((192, 128), "float32"), Y: T.Tensor((192, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((192, 128), "float32")
            y = T.alloc_shared((192, 128), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(192, 64):
                y[i, 2 * j] = x[i, 2 * j + 1]
                y[i, 2 * j + 1] = -x[i, 2 * j]
            T.copy(y, Y)

    return main, drawn((192, 128), (192, 128), dtype="float32")


def many_tiles() -> tuple[Any, Arrays]:
    """More tiles than Vector cores, each a block of its own."""
    @T.prim_func
    def main(X: T.Tensor((350, 1000), "float32"), Y: T.Tensor((350, 1000), "float32")):
        with T.Kernel(350, is_npu=True) as (row, _):
            x = T.alloc_shared((1, 1000), "float32")
            T.copy(X[row, 0], x)
            T.vexp(x, x)
            T.copy(x, Y[row, 0])

    return main, drawn((350, 1000), (350, 1000), dtype="float32")


def row_by_row() -> tuple[Any, Arrays]:
    @T.prim_func
    def main(X: T.Tensor((24, 72), "float32"), S: T.Tensor((24,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((24, 72), "float32")
            s = T.alloc_shared((24,), "float32")
            T.copy(X, x)
            T.copy(S, s)
            for r in T.serial(24):
                T.vmul(x[r, 0:72], s[r], x[r, 0:72])
            T.copy(x, X)

    return main, drawn((24, 72), (24,), dtype="float32")


KERNELS: dict[str, Callable[[], tuple[Any, Arrays]]] = {
    "split-tiles": neighbours, "vectorise-parallel": points, "drop-dead-stores": cleared_and_loaded,
    "collapse-copies": passed_on,
    "fuse-fixpipe": rectified, "bind-sub-blocks": attention, "make-persistent": many_tiles, "collapse-rows": row_by_row,
    "hoist-loads": weighted,
    "reuse-results": converted_twice, "pipeline-loops": partial(attention, serial=True), "split-conversions": converted,
    "fold-accumulator-clear": cleared,
    "sink-buffers": attention, "multi-buffer": attention,
    "overlap-iterations": attention, "banks": sums, "keep-apart": crowd,
    "schedule-statements": partial(attention, stage=[0, 0, 0, 0, 0, 1, 1]),
}


def compiled(func: Any, *without: str) -> Any:
    return tilelang.compile(func, target="npuir", pass_configs={"tl.disable": list(without)}, sanitize=True)


def reported(kernel: Any) -> dict[str, str]:
    """The section of the page, by the names of the optimisations."""
    found: dict[str, str] = {}
    for line in kernel.explain().sections["optimisations"]:
        name, _, text = line.partition("  ")
        found[name or list(found)[-1]] = found.get(name or list(found)[-1], "") + text.strip() + "\n"
    return found


def test_each_has_a_kernel() -> None:
    assert KERNELS.keys() == OPTIMISATIONS.keys()


@pytest.mark.parametrize("name", OPTIMISATIONS)
def test_switched_off(name: str) -> None:
    func, arrays = KERNELS[name]()
    with_it, without = compiled(func), compiled(func, name)
    left = []
    for kernel in (with_it, without):
        given = [array.copy() for array in arrays]
        kernel(*given)
        left.append(given)
    for one, other in zip(*left, strict=True):
        np.testing.assert_array_equal(one, other)
    assert with_it.mlir() != without.mlir()
    assert with_it.last_launch.cycles <= without.last_launch.cycles
    assert reported(with_it)[name] not in ("no occasion\n", "switched off\n")
    assert reported(without)[name] == "switched off\n"


def test_what_is_told() -> None:
    shown = reported(compiled(attention()[0]))
    assert "each Vector core has half of the rows of p_ub, product_ub, result, scaled, scores_ub" in shown["bind-sub-blocks"]
    assert "scores_ub has 2 slots in the loop at line" in shown["multi-buffer"]
    assert "k has 3 slots, because stages of different iterations use it" in shown["overlap-iterations"]
    assert ": k has" not in shown["multi-buffer"]
    # buffers with slots are in the loop too: the passes that give the slots say so
    assert re.fullmatch(r"line \d+: scaled is now allocated in the loop at line \d+\n", shown["sink-buffers"])
    assert "the loop's body is divided into 4 stages" in shown["overlap-iterations"]
    assert shown["keep-apart"] == "no occasion\n"
    assert list(shown) == list(OPTIMISATIONS)


def test_several_and_one_as_a_string() -> None:
    func = attention()[0]
    both = compiled(func, "banks", "multi-buffer")
    assert both.without == ("banks", "multi-buffer")
    one = tilelang.compile(func, target="npuir", pass_configs={tilelang.PassConfigKey.TL_DISABLE: "banks"})
    assert one.without == ("banks",)
    assert reported(one)["overlap-iterations"] != reported(both)["overlap-iterations"] == "off: multi-buffer is switched off\n"


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(TileError) as caught:
        compiled(points()[0], "multi-bufer")
    assert caught.value.code == "T712"
    assert caught.value.help == "did you mean 'multi-buffer'?"
    assert "keep-apart" in caught.value.notes[0]
    assert validate_optimisations(["banks", "banks"]) == ("banks",)


@pytest.mark.parametrize("value", [True, 3, ["banks", 1], {"banks": True}])
def test_no_list_of_names(value: object) -> None:
    with pytest.raises(TileError, match="must be a list of names of optimisations") as caught:
        tilelang.compile(points()[0], target="npuir", pass_configs={"tl.disable": value})
    assert caught.value.code == "T705"


def test_on_and_off() -> None:
    with pytest.raises(TileError, match=r"is switched on by .* and off by") as caught:
        tilelang.compile(points()[0], target="npuir",
                         pass_configs={"tl.disable": "multi-buffer", "npuir.enable_auto_multi_buffer": True})
    assert caught.value.code == "T720"


def test_for_all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = tilelang.jit(target="npuir")(lambda: points()[0])
    usual = factory()
    monkeypatch.setenv(environment.WITHOUT.name, "vectorise-parallel, banks")
    assert factory().without == ("banks", "vectorise-parallel")
    assert factory().mlir() != usual.mlir()
    monkeypatch.setenv(environment.WITHOUT.name, "vector")
    with pytest.raises(TileError, match="no optimisation 'vector'"):
        factory()


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    gemm = str(EXAMPLES / "gemm.py")
    assert command(["compile", gemm, "--explain", "--without", "multi-buffer", "--without", "banks"]) == 0
    page = capsys.readouterr().out
    assert "multi-buffer            switched off" in page and "banks                   switched off" in page
    assert environment.WITHOUT.text() == ""
    assert command(["run", gemm, "--without", "multi-buffer"]) == 0
    slow = capsys.readouterr().out
    assert command(["run", gemm]) == 0
    assert slow != capsys.readouterr().out
    assert command(["compile", gemm, "--without", "banking"]) == 1
    assert "error[T712]" in capsys.readouterr().err


@pytest.mark.parametrize("name", OPTIMISATIONS)
def test_the_docs_list_each(name: str) -> None:
    listed = (EXAMPLES.parent / "docs" / "performance.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {' | '.join(OPTIMISATIONS[name].split('; without it, '))} |" in listed


def test_a_buffer_of_one_slot_is_not_reported() -> None:
    @T.prim_func
    def main(X: T.Tensor((4, 64), "float32"), Y: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((1, 64), "float32")
            for i in T.Pipelined(4, num_stages=1):
                T.copy(X[i, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[i, 0])

    assert reported(compiled(main))["multi-buffer"] == "no occasion\n"
