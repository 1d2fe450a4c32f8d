"""Random ``T.Parallel`` loops of statements under ``if``: the values are those of Python for the same lines point by point, and
the sanitizer finds nothing.

``TILELANG_RANDOM_BRANCHES=1000 pytest tests/test_random_branches.py`` sets the number of cases.
"""

from __future__ import annotations

import importlib.util
import os
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BRANCHES = int(os.environ.get("TILELANG_RANDOM_BRANCHES", "40"))

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir", sanitize=True)
def make():
    @T.prim_func
    def main(X: T.Tensor({shape}, "{dtype}"), S: T.Tensor({rows}, "{dtype}"), Y: T.Tensor({shape}, "{dtype}"),
             Z: T.Tensor({shape}, "{dtype}")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared({shape}, "{dtype}")
            s = T.alloc_shared({rows}, "{dtype}")
            y = T.alloc_shared({shape}, "{dtype}")
            z = T.alloc_shared({shape}, "{dtype}")
            T.copy(X, x)
            T.copy(S, s)
            T.copy(Y, y)
            T.copy(Z, z)
            for i, j in T.Parallel({rows_and_columns}):
{body}
            T.copy(y, Y)
            T.copy(z, Z)
    return main
"""

VALUES = ["x[i, j]", "y[i, j]", "z[i, j]", "s[i]", "3"]


@st.composite
def values(draw: st.DrawFn) -> str:
    one, two = draw(st.sampled_from(VALUES[:4])), draw(st.sampled_from(VALUES))
    return draw(st.sampled_from([one, f"{one} + {two}", f"{one} - {two}", f"{one} * 2 - {two}"]))


@st.composite
def conditions(draw: st.DrawFn) -> str:
    number = draw(st.integers(-2, 20))
    plain = st.sampled_from([f"x[i, j] > {number}", f"y[i, j] <= {number}", "x[i, j] != z[i, j]", f"s[i] >= {number}", "i >= j",
                             f"j < {number}", f"i + j == {number}", f"i > {number}"])
    one = draw(plain)
    return draw(st.sampled_from([one, one, f"{one} and {draw(plain)}", f"not ({one})"]))


@st.composite
def bodies(draw: st.DrawFn, depth: int = 0) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 3 if depth == 0 else 2))):
        if depth < 2 and draw(st.booleans()):
            lines.append(f"if {draw(conditions())}:")
            lines.append(textwrap.indent(draw(bodies(depth + 1)), "    "))
            if draw(st.booleans()):
                lines.append("else:")
                lines.append(textwrap.indent(draw(bodies(depth + 1)), "    "))
        else:
            lines.append(f"{draw(st.sampled_from('yz'))}[i, j] = {draw(values())}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("branches")


@settings(max_examples=BRANCHES, suppress_health_check=list(HealthCheck))
@given(body=bodies(), rows=st.integers(1, 6), columns=st.integers(1, 40),
       dtype=st.sampled_from(["float32", "int32", "float16"]), seed=st.integers(0, 99))
def test_a_random_choice_of_what_to_write(body: str, rows: int, columns: int, dtype: str, seed: int, folder: Path) -> None:
    shape = rows, columns
    text = TEXT.format(shape=shape, rows=f"({rows},)", rows_and_columns=f"{rows}, {columns}", dtype=dtype,
                       body=textwrap.indent(body, " " * 16))
    file = folder / f"branches{len(list(folder.iterdir()))}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(seed)
    x, y, z = (rng.integers(0, 20, shape).astype(dtype) for _ in range(3))
    s = rng.integers(0, 20, rows).astype(dtype)
    held: dict[str, Any] = {"x": x, "s": s, "y": y.copy(), "z": z.copy()}
    point = compile(body, "<point>", "exec")
    for i in range(rows):
        for j in range(columns):
            exec(point, held, {"i": i, "j": j})
    module.make()(x, s, y, z)
    np.testing.assert_array_equal(y, held["y"])
    np.testing.assert_array_equal(z, held["z"])
