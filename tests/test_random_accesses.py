"""Random ``T.Parallel`` loops with arbitrary accesses: strided, transposed, reversed, diagonal, with computed or loaded
indices. The values are right with and without vectorisation, and the sanitizer finds nothing.

``TILELANG_RANDOM_ACCESSES=1000 pytest tests/test_random_accesses.py`` sets the number of cases.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang

ACCESSES = int(os.environ.get("TILELANG_RANDOM_ACCESSES", "25"))

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@T.prim_func
def main(X: T.Tensor({x}, "{dtype}"), Y: T.Tensor({y}, "{dtype}"), I: T.Tensor((512,), "int32"), n: T.int32):
    with T.Kernel(1, is_npu=True{threads}) as {cores}:
        x = T.alloc_shared({x}, "{dtype}")
        y = T.alloc_shared({y}, "{dtype}")
        idx = T.alloc_shared((512,), "int32")
        T.copy(X, x)
        T.copy(I, idx)
{before}
        for {names} in T.Parallel({box}):
{body}
{after}
"""

Index = tuple[str, int]
"""An expression of loop variables, and the largest number that it takes."""


@dataclass
class Loop:
    """A loop over a box.

    Attributes:
        box: its extents.
        dtype: of all elements.
        x, y: shapes.
        lines: its statements.
        direct: whether they write the tensor and no tile.
        threads: Vector cores.
    """

    box: tuple[int, ...]
    dtype: str
    x: tuple[int, ...]
    y: tuple[int, ...]
    lines: list[str]
    direct: bool
    threads: int

    @property
    def names(self) -> str:
        return ", ".join("ijk"[:len(self.box)]) + ("," if len(self.box) == 1 else "")

    def text(self) -> str:
        body = "\n".join(" " * 12 + (line.replace("y[", "Y[") if self.direct else line) for line in self.lines)
        return TEXT.format(
            x=self.x, y=self.y, dtype=self.dtype, names=self.names.rstrip(","), box=", ".join(map(str, self.box)), body=body,
            before="" if self.direct else "        T.copy(Y, y)", after="" if self.direct else "        T.copy(y, Y)",
            threads=", threads=2" if self.threads == 2 else "", cores="cid" if self.threads == 2 else "(cid, _)")

    def expected(self, x: Any, y: Any, idx: Any, n: int) -> Any:
        """The points one by one."""
        result = y.copy()
        code = compile("\n".join(self.lines), "points", "exec")
        for point in itertools.product(*map(range, self.box)):
            exec(code, {**dict(zip("ijk", point, strict=False)), "x": x, "X": x, "y": result, "idx": idx, "n": n})
        return result


def _reads(draw: st.DrawFn, box: tuple[int, ...]) -> Index:
    axis = draw(st.integers(0, len(box) - 1))
    name, most = "ijk"[axis], box[axis] - 1
    step, offset = draw(st.integers(2, 5)), draw(st.integers(0, 9))
    other = draw(st.integers(0, len(box) - 1))
    return draw(st.sampled_from([
        (name, most), (f"{name} + {offset}", most + offset), (f"{step} * {name}", step * most),
        (f"2 * {name} + {offset % 2}", 2 * most + offset % 2), (f"4 * {name} + {offset % 4}", 4 * most + offset % 4),
        (f"{step} * {name} + {offset}", step * most + offset), (f"{most + offset} - {name}", most + offset),
        (f"{name} // 2", most // 2), (f"{name} % 4", min(most, 3)), (f"{name} // 3", most // 3), (f"idx[{name}]", 7),
        (f"{step} * {name} + {'ijk'[other]}", step * most + box[other] - 1), (str(offset), offset),
        (f"{name} + n", most + 3), (f"2 * {name} + 2 * n", 2 * most + 6), (f"n - {name} + {most}", most + 3),
    ]))


def _room(shape: tuple[int, ...], nbytes: int) -> int:
    """Bytes of a tile in UB, whose rows begin at blocks of 32 bytes."""
    return int(np.prod(shape[:-1])) * -(-shape[-1] * nbytes // 32) * 32


@st.composite
def loops(draw: st.DrawFn) -> Loop:
    rank = draw(st.integers(1, 3))
    box = tuple(draw(st.sampled_from([1, 2, 3, 5, 8, 16, 17, 33, 40, 300] if axis == rank - 1 else [1, 2, 3, 4, 8, 9]))
                for axis in range(rank))
    dtype = draw(st.sampled_from(["float16", "float32", "bfloat16", "int8", "int16", "int32", "int64"]))
    order = draw(st.permutations(range(rank)))
    kinds = [draw(st.sampled_from(["", "", "", "back", "2", "2", "3", "4"])) for _ in order]
    offset = draw(st.sampled_from([0, 0, 0, 1, 8]))
    wheres: list[list[Index]] = [[] for _ in order]
    for position, (axis, kind) in enumerate(zip(order, kinds, strict=True)):
        name, most = "ijk"[axis], box[axis] - 1
        if kind == "":
            wheres[position] = [(f"{name} + {offset}", most + offset)]
        elif kind == "back":
            wheres[position] = [(f"{most + offset} - {name}", most + offset)]
        else:
            channels = draw(st.permutations(range(int(kind))))[:draw(st.sampled_from([1, int(kind)]))]
            wheres[position] = [(f"{kind} * {name} + {channel}", int(kind) * most + channel) for channel in channels]
    places = list(itertools.product(*wheres))[:8]
    y = tuple(max(place[axis][1] for place in places) + 1 + draw(st.integers(0, 3)) for axis in range(rank))
    sources = draw(st.integers(1, 3))
    reads = [[[_reads(draw, box) for _ in range(sources)] for _ in range(draw(st.integers(1, 2)))] for _ in places]
    every = [read for each in reads for read in each]
    x = tuple(max(read[axis][1] for read in every) + 1 + draw(st.integers(0, 3)) for axis in range(sources))
    lines = []
    for place, each in zip(places, reads, strict=True):
        values = [f"{draw(st.sampled_from('xxxX'))}[{', '.join(text for text, _ in read)}]" for read in each]
        lines.append(f"y[{', '.join(text for text, _ in place)}] = {' + '.join(values)}")
    nbytes = 8 if dtype.endswith("64") else 4 if dtype.endswith("32") else 2
    if max(_room(x, nbytes), _room(y, nbytes)) > 60_000:
        lines, x, y = ["y[" + ", ".join("ijk"[:rank]) + "] = x[" + ", ".join("ijk"[:rank]) + "]"], box, box
    return Loop(box, dtype, x, y, lines, draw(st.sampled_from([False, False, True])), draw(st.sampled_from([1, 1, 2])))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("accesses")


@settings(max_examples=ACCESSES, suppress_health_check=list(HealthCheck))
@given(loop=loops(), seed=st.integers(0, 99))
@example(loop=Loop((3, 1, 300), "float16", (3,), (1, 300, 3), ["y[j + 0, 299 - k, 2 - i] = x[i]"], False, 1), seed=0)
def test_a_random_access(loop: Loop, seed: int, folder: Path) -> None:
    file = folder / f"loop{len(list(folder.iterdir()))}.py"
    file.write_text(loop.text(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(seed)
    kind = ml_dtypes.bfloat16 if loop.dtype == "bfloat16" else np.dtype(loop.dtype)
    x, y = (rng.integers(0, 50, shape).astype(kind) for shape in (loop.x, loop.y))
    idx = rng.integers(0, 8, 512).astype(np.int32)
    n = int(rng.integers(0, 4))
    expected = loop.expected(x, y, idx, n)
    ways: list[list[str]] = [[]]
    if np.prod(loop.box) * len(loop.lines) < 300:
        ways.append(["vectorise-parallel"])
    for without in ways:
        left = y.copy()
        tilelang.compile(module.main, target="npuir", sanitize=True, pass_configs={"tl.disable": without})(x, left, idx, n)
        np.testing.assert_array_equal(left, expected, err_msg=f"without {without}")
