"""Random ``T.Parallel`` loops whose accesses have arbitrary offsets: the values are right, and the sanitizer finds nothing.

``TILELANG_RANDOM_STENCILS=1000 pytest tests/test_random_stencils.py`` sets the number of cases.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

STENCILS = int(os.environ.get("TILELANG_RANDOM_STENCILS", "60"))

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir", sanitize=True)
def make():
    @T.prim_func
    def main(X: T.Tensor({shape}, "{dtype}"), Y: T.Tensor({shape}, "{dtype}"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared({shape}, "{dtype}")
            own = T.alloc_shared({shape}, "{dtype}")
            y = T.alloc_shared({shape}, "{dtype}")
            T.copy(X, x)
            T.copy(Y, y)
            T.vmul(x, 3, own)
            for {names} in T.Parallel({box}):
                {target} = {value}
            T.copy(y, Y)
    return main
"""


@dataclass
class Stencil:
    """A loop over a box, with one statement that reads some elements and writes one.

    Attributes:
        shape: the shape of all buffers.
        box: extents of the loop.
        dtype: the type of all elements.
        reads: buffer and position along each axis: an offset from the loop variable, or a constant index (``fixed``).
        target: the offsets of the written element.
        late: the axis whose offset is an argument of the call, or -1.
    """

    shape: tuple[int, ...]
    box: tuple[int, ...]
    dtype: str
    reads: list[tuple[str, tuple[int, ...], tuple[bool, ...]]]
    target: tuple[int, ...]
    late: int

    def text(self) -> str:
        names = "ijk"[:len(self.box)]

        def place(offsets: tuple[int, ...], fixed: tuple[bool, ...]) -> str:
            return ", ".join(str(offset) if still else f"{name} + n" if axis == self.late else f"{name} + {offset}"
                             for axis, (name, offset, still) in enumerate(zip(names, offsets, fixed, strict=True)))

        value = " + ".join(f"{buffer}[{place(offsets, fixed)}]" for buffer, offsets, fixed in self.reads)
        return TEXT.format(shape=self.shape, dtype=self.dtype, names=", ".join(names), box=", ".join(map(str, self.box)),
                           target=f"y[{place(self.target, (False,) * len(names))}]", value=value)

    def expected(self, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
        def part(offsets: tuple[int, ...], fixed: tuple[bool, ...]) -> tuple[slice, ...]:
            first = [n if axis == self.late and not still else offset
                     for axis, (offset, still) in enumerate(zip(offsets, fixed, strict=True))]
            return tuple(slice(start, start + (1 if still else size))
                         for start, size, still in zip(first, self.box, fixed, strict=True))

        held = {"x": x, "own": x * np.asarray(3, x.dtype)}
        total = sum(held[buffer][part(offsets, fixed)] for buffer, offsets, fixed in self.reads)
        result = y.copy()
        result[part(self.target, (False,) * len(self.box))] = total
        return result


@st.composite
def stencils(draw: st.DrawFn) -> Stencil:
    rank = draw(st.integers(1, 3))
    box = tuple(draw(st.integers(1, 40 if axis == rank - 1 else 5)) for axis in range(rank))
    room = tuple(draw(st.integers(0, 9 if axis == rank - 1 else 2)) for axis in range(rank))
    shape = tuple(size + more for size, more in zip(box, room, strict=True))
    offsets = st.tuples(*(st.integers(0, more) for more in room))
    reads = draw(st.lists(st.tuples(st.sampled_from(["x", "own"]), offsets, st.tuples(*[st.booleans()] * rank)),
                          min_size=1, max_size=3))
    return Stencil(shape, box, draw(st.sampled_from(["float32", "float16", "int32", "int16"])), reads, draw(offsets),
                   draw(st.sampled_from([-1, -1, *range(rank)])))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stencils")


@settings(max_examples=STENCILS, suppress_health_check=list(HealthCheck))
@given(stencil=stencils(), seed=st.integers(0, 99))
def test_a_random_stencil(stencil: Stencil, seed: int, folder: Path) -> None:
    file = folder / f"stencil{len(list(folder.iterdir()))}.py"
    file.write_text(stencil.text(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0, 50, stencil.shape).astype(stencil.dtype) for _ in range(2))
    room = stencil.shape[stencil.late] - stencil.box[stencil.late]
    n = int(rng.integers(0, room + 1))
    expected = stencil.expected(x, y, n)
    module.make()(x, y, n)
    np.testing.assert_array_equal(y, expected)
