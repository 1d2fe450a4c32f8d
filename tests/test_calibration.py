"""The kernels that measured times are compared with compute what they should, and the tables are what they say."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tilelang_npu import JITKernel
from tilelang_npu.target import accuracies, chip

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
calibrate = importlib.import_module("calibrate")
attention, fused, matmul, vector = (importlib.import_module(f"calibration.{name}")
                                    for name in ("attention", "fused", "matmul", "vector"))

RNG = np.random.default_rng(5)


def run(kernel: JITKernel, *arrays: np.ndarray) -> None:
    """Run it, and hold that its flags order all it does."""
    kernel(*arrays)
    assert kernel.last_launch is not None
    assert not kernel.last_launch.hazards


def halves(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float16)


def test_every_measurement_has_its_kernel_and_its_source() -> None:
    table = json.loads(calibrate.MEASURED.read_text(encoding="utf-8"))
    assert set(table["rows"]) == set(calibrate.CASES)
    for name, row in table["rows"].items():
        assert row["source"].split(":")[0] in table["sources"], name
        assert row["us"] > 0 and row["tiling"], name
        assert chip(row["chip"]).aic == 24, name


@pytest.mark.parametrize("how", [
    {"over": (2, 2), "steps": (4, 2)}, {"over": (1, 2), "slots": 1, "tile": (128, 128)},
    {"over": (1, 2), "steps": (2, 2), "passes": 2, "wide": True},
    {"over": (1, 3), "slots": 1, "part": (512, 171), "tile": (128, 64)},
], ids=["even", "one slot", "passes", "narrow tiles"])
def test_gemms(how: dict[str, object]) -> None:
    size = 512
    a, b = halves(size, size), halves(size, size)
    c = np.zeros((size, size), np.float32 if how.get("wide") else np.float16)
    run(matmul.matmul(size, **how), a, b, c)
    np.testing.assert_allclose(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).T, rtol=2e-3, atol=5e-2)


def weighted(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q, k, v = (part.astype(np.float32) for part in (q, k, v))
    scores = q @ k.T / np.sqrt(q.shape[1])
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True) @ v


@pytest.mark.parametrize(("tile", "ahead", "ring"), [(256, 4, 8), (512, 2, 4)])
def test_attention_by_rows(tile: int, ahead: int, ring: int) -> None:
    q, k, v = halves(128, 128), halves(tile * (ring + 2), 128), halves(tile * (ring + 2), 128)
    out = np.zeros((128, 128), np.float32)
    run(attention.by_rows(128, len(k), tile=tile, ahead=ahead, ring=ring, chip="910B2"), q, k, v, out)
    np.testing.assert_allclose(out, weighted(q, k, v), rtol=1e-2, atol=2e-3)


def test_attention_in_batches() -> None:
    q, k, v = halves(512, 128), halves(2176, 128), halves(2176, 128)
    out = np.zeros((512, 128), np.float16)
    run(attention.in_batches(2, len(k), cores=2, chip="910B2"), q, k, v, out)
    np.testing.assert_allclose(out.astype(np.float32), weighted(q, k, v), rtol=2e-2, atol=3e-3)


def test_additions() -> None:
    x, y = halves(16 * 1024), halves(16 * 1024)
    for kernel in (vector.add(16, 1024, 4, 1024, slots=2, chip="910B1"), vector.add(16, 1024, 3, 1024, chip="910B1")):
        z = np.zeros_like(x)
        run(kernel, x, y, z)
        np.testing.assert_array_equal(z[: len(z) // 3 * 3], (x + y)[: len(z) // 3 * 3])
    z = np.zeros(64, np.float16)
    run(vector.add_scalar(32, 2, chip="910B1"), x[:64], y[:64], z)
    np.testing.assert_array_equal(z, x[:64] + y[:64])


def test_the_best_of_rows() -> None:
    x = RNG.permutation(4 * 320).astype(np.float32).reshape(4, 320)
    index, values, places = np.arange(192, dtype=np.uint32), np.zeros((4, 160), np.float32), np.zeros((4, 160), np.float32)
    run(vector.top_k(4, 192, 320, 160, cores=2, chip="910B1"), x, index, values, places)
    order = np.argsort(-x[:, :160], axis=1)  # as the source: only as many elements as are asked for are merged
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(places.view(np.uint32), order)
    assert vector.lists_of(1000) == [512, 128, 128, 128, 32, 32, 32]


@pytest.mark.parametrize("vectors", [1, 2])
def test_grouped_products(vectors: int) -> None:
    x, w = RNG.integers(-8, 8, (256, 256), np.int8), RNG.integers(-8, 8, (2, 1024, 256), np.int8)
    scale, tokens = RNG.uniform(1e-3, 4e-3, (2, 1024)).astype(np.float32), RNG.uniform(0.5, 2, (256, 1)).astype(np.float32)
    y = np.zeros((256, 1024), np.float16)
    run(fused.grouped(256, 256, 1024, 2, vectors=vectors, cores=2, chip="910B1"), x, w, scale, tokens, y)
    for group in range(2):
        rows = slice(128 * group, 128 * (group + 1))
        z = x[rows].astype(np.float32) @ w[group].astype(np.float32).T * scale[group] * tokens[rows]
        np.testing.assert_allclose(y[rows], z / (1 + np.exp(-1.702 * z)), rtol=3e-3, atol=2e-3)


def test_rank_correlation_shares_ranks() -> None:
    assert calibrate.rank_correlation([1, 2, 3, 4], [10, 40, 50, 60]) == pytest.approx(1)
    assert calibrate.rank_correlation([1, 2, 3, 4], [9, 7, 5, 1]) == pytest.approx(-1)
    assert calibrate.rank_correlation([1, 2, 3], [5, 5, 6]) == pytest.approx(0.75**0.5)


def test_a_time_along_a_line_is_that_of_the_whole() -> None:
    case = calibrate.Case(lambda count: vector.add_scalar(64, count, chip="910B1"), (2, 3), 6)
    whole = case.modelled(case.launches())
    launch = vector.add_scalar(64, 6, chip="910B1").trace()
    assert launch is not None
    assert whole.us == pytest.approx(launch.time_us, rel=0.01)


# -- what is written ---------------------------------------------------------------------------------------------------

TABLE = json.loads(calibrate.ACCURACY.read_text(encoding="utf-8"))


def test_the_errors_are_of_all_measurements_and_the_page_is_made_of_them() -> None:
    measured = json.loads(calibrate.MEASURED.read_text(encoding="utf-8"))["rows"]
    assert {name: (row["us"], row["class"], row["source"], row["chip"]) for name, row in measured.items()} == {
        name: (row["measured"], row["class"], row["source"], row["chip"]) for name, row in TABLE["rows"].items()}
    assert calibrate.PAGE.read_text(encoding="utf-8") == calibrate.page(TABLE), "python benchmarks/calibrate.py --page"
    assert calibrate.classes(TABLE["rows"]) == TABLE["classes"]
    for kind, found in accuracies().items():
        rows = [row for row in TABLE["rows"].values() if row["class"] == kind]
        medians = [float(np.median([row["left_out"] for row in rows])),
                   float(np.median([abs(row["modelled"] / row["measured"] - 1) for row in rows]))]
        assert found.error == pytest.approx(max(medians), abs=1e-4) and found.rows == len(rows)


@pytest.mark.parametrize(("kind", "most"), [("vector", 0.15), ("gemm", 0.05), ("attention", 0.25), ("fused", 0.25)])
def test_the_model_is_as_near_as_its_pages_promise(kind: str, most: float) -> None:
    """The larger of both medians: as fitted, and where the constants are fitted without a row's own source."""
    assert accuracies()[kind].error <= most


def test_the_steps_of_an_experiment_have_their_order() -> None:
    """What is slower when measured is slower when modelled, by rank, along each experiment of three steps or more."""
    ladders: dict[str, list[dict[str, float]]] = {}
    for name, row in json.loads(calibrate.MEASURED.read_text(encoding="utf-8"))["rows"].items():
        ladders.setdefault(row["ladder"], []).append(TABLE["rows"][name])
    long = {ladder: rows for ladder, rows in ladders.items() if len(rows) >= calibrate.FEWEST}
    assert len(long) > 5
    for ladder, rows in long.items():
        found = calibrate.rank_correlation([row["measured"] for row in rows], [row["modelled"] for row in rows])
        assert found >= 0.9, ladder


@pytest.mark.parametrize("name", ["matmul_c3", "gemm_1536", "add_2", "ub_64x64", "l1_unaligned", "grouped_2", "topk_3456"])
def test_the_errors_are_those_of_the_model_as_it_is(name: str) -> None:
    (row,) = calibrate.rows([name])
    shown = "python benchmarks/calibrate.py --write"
    assert row.modelled.us == pytest.approx(TABLE["rows"][name]["modelled"], rel=0.02), shown


@pytest.mark.parametrize("name", ["matmul_c3", "gemm_1536", "grouped_2", "ub_64x64", "l1_64x64"])
def test_a_measured_kernel_is_of_the_class_that_its_error_counts_for(name: str) -> None:
    launch = calibrate.CASES[name].launches()[-1]
    kind = TABLE["rows"][name]["class"]
    assert launch.kind == kind or (name == "matmul_c3" and launch.kind == "small gemm")  # a part of it
