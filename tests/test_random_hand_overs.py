"""Random kernels of Cube and Vector work, or of Vector work alone, in loops and branches that depend on arguments: on each chip
the values are those of the same statements on whole arrays, for all branches, at any addresses, and the sanitizer finds
nothing.

The compiler inserts all waits, flags and addresses. All numbers are small integers, so that results are exact in any order.
``TILELANG_RANDOM_HAND_OVERS=1000 pytest tests/test_random_hand_overs.py`` sets the number of cases.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
from tilelang_npu.errors import TileError

PROGRAMS = int(os.environ.get("TILELANG_RANDOM_HAND_OVERS", "24"))
CHIPS = ("Ascend910B2", "Ascend910_9391", "Ascend910_95")
TILES = 6  # of each tensor
BOUND = 8.0  # the largest magnitude of elements
COMPUTE = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
VECTORS, MATRICES, PRODUCTS, WEIGHTS = ("a", "b", "c"), ("h", "g"), ("d", "e"), ("w", "v")
NO_ROOM = ("T104", "T241")  # too large for the memories, or for the flags

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@T.prim_func
def main(X: T.Tensor(({length}, {columns}), "float32"), H: T.Tensor(({length}, {columns}), "float16"),
         W: T.Tensor(({width}, {columns}), "float16"), G: T.Tensor(({tiles},), "int32"), n: T.int32,
         O: T.Tensor(({results}, {columns}), "float32")):
    with T.Kernel({blocks}, is_npu=True) as (cid, _):
{buffers}
{body}
"""


@dataclass(frozen=True)
class Statement:
    """A statement of a kernel, with its effect on whole arrays.

    Attributes:
        lines: the text, without indentation.
        act: its effect on the arrays by name, for the arguments of the call and the loop variables.
        body, otherwise: the statements in a loop or a branch.
    """

    lines: tuple[str, ...]
    act: Callable[[dict[str, Any]], Any]
    body: tuple[Statement, ...] = ()
    otherwise: tuple[Statement, ...] = ()

    def text(self, indent: int) -> Iterator[str]:
        """The lines."""
        space = "    " * indent
        yield from (space + line for line in self.lines)
        for one in self.body:
            yield from one.text(indent + 1)
        if self.otherwise:
            yield space + "else:"
            for one in self.otherwise:
                yield from one.text(indent + 1)

    def run(self, state: dict[str, Any]) -> None:
        """Do it."""
        if not self.body:
            self.act(state)
            return
        for found in self.act(state):  # the rounds of a loop; of a branch whether it is taken
            for one in self.otherwise if found is False else self.body:
                one.run(state)


@dataclass(frozen=True)
class Shape:
    """The common properties of the statements of a kernel.

    Attributes:
        rows, columns: the shape of a tile.
        blocks: the number of blocks.
        cube: whether the Cube core has work.
        vectors: the number of tiles of vector work: the fewer, the more often one is reused.
    """

    rows: int
    columns: int
    blocks: int
    cube: bool
    vectors: int


def _bounded(name: str) -> tuple[str, ...]:
    return (f"T.vmax({name}, {-BOUND}, {name})", f"T.vmin({name}, {BOUND}, {name})")


def _row(state: dict[str, Any], number: str) -> slice:
    """The rows of a tile of a tensor."""
    start = int(eval(number, {}, state)) * state["rows"]
    return slice(start, start + state["rows"])


Pick = Callable[[Sequence[Any]], Any]
"""Chooses one of several."""


def _load(pick: Pick, shape: Shape, at: str, tensor: str, name: str) -> Statement:
    """A tile, or its first rows, from one of the tiles of a tensor."""
    rows = pick([shape.rows, shape.rows, shape.rows // 2, shape.rows - 3])

    def act(state: dict[str, Any]) -> None:
        state[name] = state[name].copy()
        state[name][:rows] = state[tensor][_row(state, at)][:rows]
    if rows == shape.rows:
        return Statement((f"T.copy({tensor}[({at}) * {shape.rows}, 0], {name})",), act)
    return Statement((f"T.copy({tensor}[({at}) * {shape.rows}:({at}) * {shape.rows} + {rows}, 0:{shape.columns}], "
                      f"{name}[0:{rows}, 0:{shape.columns}])",), act)


def _compute(a: str, b: str, c: str, word: str) -> Statement:
    """An operation on two tiles."""
    def act(state: dict[str, Any]) -> None:
        state[c] = np.clip(COMPUTE[word](state[a], state[b]), -BOUND, BOUND)
    return Statement((f"T.v{word}({a}, {b}, {c})", *_bounded(c)), act)


def _simple(pick: Pick, shape: Shape, indices: Sequence[str]) -> Statement:
    """A statement without a body."""
    a, b, c = (pick(VECTORS[:shape.vectors]) for _ in range(3))
    h, d, w = pick(MATRICES), pick(PRODUCTS), pick(WEIGHTS)
    at = pick(["0", "1", "cid", "n", *(f"({index} + cid) % {TILES}" for index in indices)])
    kind = pick(["load", "load", "compute", "compute", "compute", "reduce", "spread", "store",
                 *(["load matrix", "load matrix", "weights", "product", "product", "start", "to vector", "to vector", "clear",
                    "to cube", "to cube"] if shape.cube else [])])
    if kind.startswith("load"):
        return _load(pick, shape, at, *(("X", a) if kind == "load" else ("H", h)))
    if kind == "weights":
        part = pick([0, 1])

        def reload(state: dict[str, Any]) -> None:
            state[w] = state["W"][part * shape.columns:(part + 1) * shape.columns].copy()
        return Statement((f"T.copy(W[{part * shape.columns}, 0], {w})",), reload)
    if kind == "compute":
        return _compute(a, b, c, pick(["add", "sub", "min", "max"]))
    if kind == "reduce":
        def reduce(state: dict[str, Any]) -> None:
            state["r"] = state[a].max(axis=1, keepdims=True)
        return Statement((f"T.reduce_max({a}, r, dim=1)",), reduce)
    if kind == "spread":
        def spread(state: dict[str, Any]) -> None:
            state[c] = np.clip(state[a] - state["r"], -BOUND, BOUND)
        return Statement((f"T.vsub({a}, r, {c})", *_bounded(c)), spread)
    if kind in ("product", "start"):
        init = "True" if kind == "start" else pick(["True", "False", *(f"({index} == 0)" for index in indices)])

        def product(state: dict[str, Any]) -> None:
            made = state[h].astype(np.float32) @ state[w].astype(np.float32)
            state[d] = made if eval(init, {}, state) else state[d] + made
        return Statement((f"T.gemm({h}, {w}, {d}, initC={init})",), product)
    if kind in ("to vector", "clear"):
        def to_vector(state: dict[str, Any]) -> None:
            state[d] = state[d] * (kind != "clear")
            state[c] = np.clip(state[d], -BOUND, BOUND)
        return Statement((*([f"T.clear({d})"] if kind == "clear" else []), f"T.copy({d}, {c})", *_bounded(c)), to_vector)
    if kind == "to cube":
        def to_cube(state: dict[str, Any]) -> None:
            state[h] = state[a].astype(np.float16)
        return Statement((f"T.copy({a}, {h})",), to_cube)
    where = pick([0, 1, 2]) * shape.blocks

    def store(state: dict[str, Any]) -> None:
        state["O"][_row(state, f"{where} + cid")] = state[a]
    return Statement((f"T.copy({a}, O[({where} + cid) * {shape.rows}, 0])",), store)


def blocks(pick: Pick, shape: Shape, indices: tuple[str, ...] = (), depth: int = 0) -> tuple[Statement, ...]:
    """The statements of a block."""
    made = []
    for _ in range(pick([2, 3, 4, 5] if depth == 0 else [1, 1, 2, 3])):
        kind = pick(["simple", "simple", "simple", "loop", "loop", "branch", "contended"] if depth < 3 else ["simple"])
        if kind == "contended":
            made += _contended(pick, shape, indices)
        elif kind == "simple":
            made.append(_simple(pick, shape, indices))
        else:
            made.append((_loop if kind == "loop" else _branch)(pick, shape, indices, depth))
    return tuple(made)


def _contended(pick: Pick, shape: Shape, indices: tuple[str, ...]) -> list[Statement]:
    """A tile that is read, that the arms of a branch load or compute with, and that is loaded after the branch."""
    tile, other, result = pick(list(permutations(VECTORS)))

    def load() -> Statement:
        return _load(pick, shape, pick(["0", "1", "cid", "n"]), "X", tile)

    def arm() -> tuple[Statement, ...]:
        first = load() if pick([True, False]) else _compute(tile, other, result, pick(["min", "add"]))
        return (first, *([_simple(pick, shape, indices)] if pick([False, True]) else []))

    branch = _choice(pick, indices, arm(), arm() if pick([True, True, False]) else ())
    return [_compute(tile, tile, other, "max"), branch, load()]


def _loop(pick: Pick, shape: Shape, indices: tuple[str, ...], depth: int) -> Statement:
    name = f"i{len(indices)}"
    trips = pick(["1", "2", "3", "4", "n", "n + 1", "cid + 1"])
    head = pick([f"T.serial({trips})", *(f"T.Pipelined({trips}, num_stages={stages})" for stages in (2, 3))])

    def act(state: dict[str, Any]) -> Iterator[int]:
        for turn in range(eval(trips, {}, state)):
            state[name] = turn
            yield turn
    return Statement((f"for {name} in {head}:",), act, blocks(pick, shape, (*indices, name), depth + 1))


def _branch(pick: Pick, shape: Shape, indices: tuple[str, ...], depth: int) -> Statement:
    """A branch, with or without an ``else``."""
    body = blocks(pick, shape, indices, depth + 1)
    return _choice(pick, indices, body, blocks(pick, shape, indices, depth + 1) if pick([False, True]) else ())


def _choice(pick: Pick, indices: tuple[str, ...], body: tuple[Statement, ...], other: tuple[Statement, ...]) -> Statement:
    left = pick(["n", "cid", *indices])
    test = pick([f"{left} > {pick([0, 1, 2])}", f"{left} % 2 == {pick([0, 1])}", f"G[{left} % {TILES}] > 0"])

    def act(state: dict[str, Any]) -> list[bool]:
        return [True] if eval(test, {}, state) else [False] if other else []
    return Statement((f"if {test}:",), act, body, other)


def shapes(pick: Pick) -> Shape:
    """A shape: with 32 rows the 950 hands tiles over on chip."""
    return Shape(pick([8, 32]), pick([24, 32, 48]), pick([1, 2]), pick([True, True, False]), pick([2, 3]))


def buffers(shape: Shape) -> list[str]:
    """Returns the allocations, and the initial value of every buffer."""
    size, square = f"({shape.rows}, {shape.columns})", f"({shape.columns}, {shape.columns})"
    made = [f'{name} = T.alloc_shared({size}, "float32")' for name in VECTORS]
    made += [f'r = T.alloc_shared(({shape.rows}, 1), "float32")']
    if shape.cube:
        made += [f'{name} = T.alloc_shared({size}, "float16")' for name in MATRICES]
        made += [f'{name} = T.alloc_shared({square}, "float16")' for name in WEIGHTS]
        made += [f'{name} = T.alloc_fragment({size}, "float32")' for name in PRODUCTS]
    made += [f"T.copy(X[{number} * {shape.rows}, 0], {name})" for number, name in enumerate(VECTORS)]
    if shape.cube:
        made += [f"T.copy(H[{number} * {shape.rows}, 0], {name})" for number, name in enumerate(MATRICES)]
        made += [f"T.copy(W[{number * shape.columns}, 0], {name})" for number, name in enumerate(WEIGHTS)]
        made += [f"T.gemm({matrix}, {weight}, {name}, initC=True)"
                 for matrix, weight, name in zip(MATRICES, WEIGHTS, PRODUCTS, strict=True)]
    return [*made, "T.reduce_max(a, r, dim=1)"]


def source(shape: Shape, body: Sequence[Statement]) -> str:
    """The kernel: at the end all tiles and products are stored."""
    lines = [line for one in body for line in one.text(2)]
    for number, name in enumerate((*VECTORS, *(PRODUCTS if shape.cube else ())), 3):
        lines.append(f"        T.copy({name}, O[({number * shape.blocks} + cid) * {shape.rows}, 0])")
    return TEXT.format(length=TILES * shape.rows, columns=shape.columns, width=len(WEIGHTS) * shape.columns, tiles=TILES,
                       results=shape.rows * shape.blocks * 8, blocks=shape.blocks,
                       buffers="\n".join("        " + line for line in buffers(shape)), body="\n".join(lines))


def expected(shape: Shape, body: Sequence[Statement], inputs: Sequence[Any], n: int) -> Any:
    """Returns the expected result of the kernel."""
    x, h, w, g = inputs
    out = np.zeros((shape.rows * shape.blocks * 8, shape.columns), np.float32)
    for cid in range(shape.blocks):
        state: dict[str, Any] = {"X": x, "H": h, "W": w, "G": g, "n": n, "cid": cid, "O": out, "rows": shape.rows}
        parts = [[tensor[number * size:(number + 1) * size].copy() for number in range(len(names))]
                 for tensor, names, size in ((x, VECTORS, shape.rows), (h, MATRICES, shape.rows), (w, WEIGHTS, shape.columns))]
        for names, values in zip((VECTORS, MATRICES, WEIGHTS), parts, strict=True):
            state.update(zip(names, values, strict=True))
        for matrix, weight, name in zip(MATRICES, WEIGHTS, PRODUCTS, strict=True):
            state[name] = state[matrix].astype(np.float32) @ state[weight].astype(np.float32)
        state["r"] = state["a"].max(axis=1, keepdims=True)
        for one in body:
            one.run(state)
        for number, name in enumerate((*VECTORS, *(PRODUCTS if shape.cube else ())), 3):
            out[_row(state, f"{number * shape.blocks} + cid")] = state[name]
    return out


def _function(folder: Path, text: str) -> Any:
    path = folder / f"hand_overs{len(list(folder.iterdir()))}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def check(folder: Path, shape: Shape, body: Sequence[Statement], chip: str, without: Sequence[str], seed: int) -> None:
    """Run a kernel for several choices of its branches."""
    text = source(shape, body)
    try:
        kernel = tilelang.compile(_function(folder, text), target="npuir", chip=chip,
                                  pass_configs={"tl.disable": list(without)})
    except TileError as error:
        if error.code in NO_ROOM:
            return
        raise
    rng = np.random.default_rng(seed)
    x, h = (rng.integers(-4, 5, (TILES * shape.rows, shape.columns)).astype(kind) for kind in (np.float32, np.float16))
    w = rng.integers(-1, 2, (2 * shape.columns, shape.columns)).astype(np.float16)
    for n in (0, 1, 2, 3):
        g = rng.integers(0, 2, TILES).astype(np.int32)
        out = np.zeros((shape.rows * shape.blocks * 8, shape.columns), np.float32)
        kernel(x, h, w, g, n, out)
        assert kernel.last_launch.hazards == [], f"n = {n}, G = {g}: {kernel.last_launch.hazards[0]}\n{text}"
        np.testing.assert_array_equal(out, expected(shape, body, (x, h, w, g), n), err_msg=f"n = {n}, G = {g}\n{text}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hand_overs")


@settings(max_examples=PROGRAMS, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data(), chip=st.sampled_from(CHIPS), without=st.sampled_from([(), (), ("banks", "keep-apart")]),
       seed=st.integers(0, 99))
def test_a_kernel_computes_what_its_statements_do(data: st.DataObject, chip: str, without: tuple[str, ...], seed: int,
                                                  folder: Path) -> None:
    def pick(choices: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(choices))

    shape = shapes(pick)
    check(folder, shape, blocks(pick, shape), chip, without, seed)
