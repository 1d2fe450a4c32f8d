"""The kernels of published measurements compute the right values, and the tables of errors are consistent."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tilelang_npu import JITKernel
from tilelang_npu.target import chip
from tilelang_npu.target.accuracy import SIDES, MeasuredKernel, error_of, measured_kernels, size_class

with pytest.MonkeyPatch.context() as _path:  # only for these imports: benchmarks/improve.py would hide the folder tests/improve
    _path.syspath_prepend(str(Path(__file__).resolve().parent.parent / "benchmarks"))
    calibrate = importlib.import_module("calibrate")
    covered = importlib.import_module("calibration.page").covered
    version_order = importlib.import_module("calibration.version_order")
    attention, fused, matmul, vector = (importlib.import_module(f"calibration.{name}")
                                        for name in ("attention", "fused", "matmul", "vector"))
    elementwise, handoff, launches, quantisation, reductions, swizzled, templates, transposes = (
        importlib.import_module(f"calibration.{name}") for name in (
            "elementwise", "handoff", "launches", "quantisation", "reductions", "swizzled", "templates", "transposes"))

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
    assert not set(table["rows"]) & set(table["aside"])
    assert set(table["rows"]) | set(table["aside"]) == set(calibrate.CASES)
    assert not {row["source"] for row in table["rows"].values()} & {row["source"] for row in table["aside"].values()}
    for name, row in (table["rows"] | table["aside"]).items():
        assert row["source"].split(":")[0] in table["sources"], name
        assert row["us"] > 0 and row["tiling"], name
        assert chip(row["chip"]).aic in (20, 24), name


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


@pytest.mark.parametrize("how", ["quantised", "by rows", "whole A", "divided"])
def test_quantised_products(how: str) -> None:
    rows = 256 if how == "whole A" else 128
    a, b = RNG.integers(-8, 8, (rows, 1024), np.int8), RNG.integers(-8, 8, (512, 1024), np.int8)
    scale, tokens = RNG.uniform(1e-3, 4e-3, (1, 512)).astype(np.float32), RNG.uniform(0.5, 2, (rows, 1)).astype(np.float32)
    if how == "divided":
        d = np.zeros((rows, 512), bfloat16)
        run(templates.split(rows, 512, 1024, cores=4, chip="910B3"), a, b, scale, tokens, d)
    else:
        by_rows = how != "quantised"
        scale, tokens, d = scale.astype(np.float16), tokens.astype(np.float16), np.zeros((rows, 512), np.float16)
        kernel = templates.quantised(rows, 512, 1024, by_rows=by_rows, whole_a=how == "whole A", cores=2, chip="910B3")
        run(kernel, a, np.ascontiguousarray(b.T) if by_rows else b, scale, tokens, d)
    product = a.astype(np.float32) @ b.astype(np.float32).T * scale.astype(np.float32) * tokens.astype(np.float32)
    np.testing.assert_allclose(d.astype(np.float32), product, rtol=1e-2, atol=1e-2)


def test_products_with_a_shallow_last_load() -> None:
    a, b, c = halves(256, 320), halves(320, 512), np.zeros((256, 512), np.float16)
    run(templates.basic(256, 512, 320, cores=2, chip="910B2"), a, b, c)
    np.testing.assert_allclose(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=5e-2)


def test_products_of_five_columns_of_blocks_at_a_time() -> None:
    a, b, c = halves(384, 1024), halves(1792, 1024), np.zeros((384, 1792), np.float16)
    run(swizzled.product(384, 1792, 1024, cores=4, chip="910B2"), a, b, c)
    np.testing.assert_allclose(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).T, rtol=2e-3, atol=1e-1)


def test_a_clock_in_place_of_the_nominal_one() -> None:
    slow, fast = (calibrate.rows(["gemm_1536"], clock=clock)[0].modelled.us for clock in (1000e6, None))
    assert slow > 1.3 * fast


def test_a_hand_over() -> None:
    a, b = halves(128, 4096), halves(4096, 128)
    c, z = np.zeros((128, 128), np.float32), np.zeros(128, np.float32)
    run(handoff.products(1, steps=2, taken=True, chip="910B3"), a, b, c, z)
    product = a[:, 128:256].astype(np.float32) @ b[128:256].astype(np.float32)
    np.testing.assert_allclose(z, 2 * product[0], rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_comparisons(dtype: str) -> None:
    x, y = (RNG.integers(-50, 50, (8, 1024)).astype(bfloat16 if dtype == "bfloat16" else dtype) for _ in range(2))
    z = np.zeros(x.size, np.uint8)
    run(elementwise.greater(8, 1024, dtype, cores=2, chip="910B4-1"), x.ravel(), y.ravel(), z)
    np.testing.assert_array_equal(z, (x > y).ravel())
    if dtype == "float16":
        run(elementwise.greater(8, 1024, dtype, "row", cores=2, chip="910B4-1"), x.ravel(), y[0].copy(), z)
        np.testing.assert_array_equal(z, (x > y[0]).ravel())
        run(elementwise.greater(8, 1024, dtype, "column", cores=2, chip="910B4-1"), x.ravel(), y[0, :24].copy(), z)
        np.testing.assert_array_equal(z, (x > y[0, :8, None]).ravel())


def test_pairs() -> None:
    angles, x = np.tile(np.arange(64, dtype=np.float32), 32), RNG.standard_normal(8192).astype(np.float32)
    number = np.arange(4096)
    y = np.zeros(16384, np.float32)
    run(elementwise.polar(8192, 64, cores=2, chip="910B4"), x, np.cos(angles), np.sin(angles),
        (4 * (number // 2) + number % 2 * 8192).astype(np.uint32), y)
    np.testing.assert_allclose(y[0::2], x * np.tile(np.cos(angles), 4), rtol=1e-6)
    np.testing.assert_allclose(y[1::2], x * np.tile(np.sin(angles), 4), rtol=1e-6)


def test_reductions() -> None:
    x, y, w, g = RNG.standard_normal((4, 16, 512)).astype(np.float32)
    column, row, one = np.zeros((16, 1), np.float32), np.zeros((1, 512), np.float32), np.zeros((1, 1), np.float32)
    run(reductions.along_rows(16, 512, (4, 128), "max", chip="910B4"), x, column)
    np.testing.assert_array_equal(column, x.max(1, keepdims=True))
    run(reductions.mean_of_rows(16, 512, 8, (4, 128), chip="910B4"), x, column)
    np.testing.assert_allclose(column, x.mean(1, keepdims=True), rtol=1e-4, atol=1e-5)
    run(reductions.along_columns(16, 512, (8, 128), "sum", chip="910B4"), x, row)
    np.testing.assert_allclose(row, x.sum(0, keepdims=True), rtol=1e-4, atol=1e-5)
    run(reductions.least(8192, 4096, 1024, chip="910B4"), x.reshape(1, -1), one)
    np.testing.assert_allclose(one[0, 0], x.reshape(2, -1).min(1).sum(), rtol=1e-6)
    run(reductions.sigmoids(16, 512, 8, (4, 128), chip="910B4"), x, y[:1].copy(), column)
    np.testing.assert_allclose(column, (1 / (1 + np.exp(-2 * x - y[:1]))).sum(1, keepdims=True), rtol=1e-5)
    xw, gw = np.zeros((16, 512), np.float32), np.zeros((16, 512), np.float32)
    run(reductions.weighted(16, 512, 8, (4, 128), chip="910B4"), x, w, g, xw, gw, column)
    np.testing.assert_array_equal(xw, x * w)
    np.testing.assert_array_equal(gw, g * w)
    np.testing.assert_allclose(column, (x * g).sum(1, keepdims=True), rtol=1e-3, atol=1e-3)
    run(reductions.squares(16, 512, "float32", cores=3, chip="910B4-1"), x, column)
    np.testing.assert_allclose(column, (x * x).sum(1, keepdims=True), rtol=1e-5)
    half, out = x.astype(np.float16), np.zeros((16, 512), np.float16)
    run(reductions.minus_column(16, 512, 3, 256, chip="910B4"), half, half[:, :1].copy(), out)
    np.testing.assert_array_equal(out, half - half[:, :1])


def test_launches() -> None:
    x, w = RNG.standard_normal((16, 512)).astype(np.float32), RNG.standard_normal((1, 512)).astype(np.float32)
    y = np.zeros_like(x)
    run(launches.softmax(16, 512, chip="910B3"), x, y)
    shares = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, shares / shares.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
    for centred in (False, True):
        run(launches.normalised(16, 512, centred=centred, chip="910B3"), x, w, w, y)
        around = x - x.mean(1, keepdims=True) if centred else x
        expected = around / np.sqrt((around**2).mean(1, keepdims=True) + 1e-5) * w + (w if centred else 0)
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    z = np.zeros(8192, np.float32)
    run(launches.added(8192, 2048, chip="910B3"), x.ravel(), x.ravel(), z)
    np.testing.assert_array_equal(z, 2 * x.ravel())
    a, b = RNG.integers(0, 255, (2, 200_000), np.uint8)
    run(launches.identity(200_000, 2, chip="910B4-1"), a, b)
    np.testing.assert_array_equal(a, b)


def test_transposes_and_intervals() -> None:
    x, y = halves(2 * 32, 48), np.zeros((96, 32), np.float16)
    run(transposes.transposed(2, 32, 48, cores=3, chip="910B4-1"), x, y)
    np.testing.assert_array_equal(y.reshape(2, 48, 32), x.reshape(2, 32, 48).transpose(0, 2, 1))
    copied = np.zeros_like(x)
    run(transposes.copied(64, 48, "float16", cores=3, chip="910B4-1"), x, copied)
    np.testing.assert_array_equal(copied, x)
    rows, packed = RNG.standard_normal((24, 512)).astype(np.float32), np.zeros((24, 320), np.int8)
    run(quantisation.turbo_quant(24, cores=2, chip="910B4"), rows, np.linspace(-8, 8, 16, dtype=np.float32), packed)
    assert packed[:, :256].min() >= -8
    assert packed[:, :256].max() <= 7


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


# -- the written files -------------------------------------------------------------------------------------------------

TABLE = json.loads(calibrate.ACCURACY.read_text(encoding="utf-8"))


def test_the_errors_cover_all_measurements_and_the_page_is_generated_from_them() -> None:
    measured = json.loads(calibrate.MEASURED.read_text(encoding="utf-8"))["rows"]
    assert {name: (row["us"], row["source"], row["chip"]) for name, row in measured.items()} == {
        name: (row["measured"], row["source"], row["chip"]) for name, row in TABLE["rows"].items()}
    made = calibrate.page(TABLE, calibrate.problems())
    assert calibrate.PAGE.read_text(encoding="utf-8") == made, "python benchmarks/calibrate.py --page"


def median_error(rows: Sequence[MeasuredKernel]) -> float:
    return float(np.median([abs(row.modelled / row.measured - 1) for row in rows]))


@pytest.mark.parametrize(("side", "size", "most"), [
    ("vector", 0, 0.13), ("vector", 1, 0.18), ("vector", 2, 0.08), ("cube", 2, 0.09), ("mixed", 0, 0.1), ("mixed", 1, 0.12),
    ("mixed", 2, 0.1)])
def test_the_model_is_as_near_as_its_page_says(side: str, size: int, most: float) -> None:
    assert median_error([row for row in measured_kernels()
                         if SIDES[row.kind] == side and size_class(row.modelled) == size]) <= most


def test_four_of_five_kernels_of_a_source_are_within_the_intervals_of_the_others() -> None:
    inside = covered(measured_kernels())
    for size in range(3):
        assert np.mean([inside[row.name] for row in measured_kernels() if size_class(row.modelled) == size]) >= 0.8, size


def test_the_steps_of_an_experiment_have_their_order() -> None:
    """If one of two steps of an experiment takes at least 1.2 times as long, it is also slower in the model."""
    ladders: dict[str, list[str]] = {}
    for name, row in json.loads(calibrate.MEASURED.read_text(encoding="utf-8"))["rows"].items():
        ladders.setdefault(row["ladder"], []).append(name)
    pairs = [(TABLE["rows"][slow], TABLE["rows"][fast]) for names in ladders.values() for slow in names for fast in names
             if TABLE["rows"][slow]["measured"] >= 1.2 * TABLE["rows"][fast]["measured"]]
    assert len(pairs) > 300
    right = np.mean([slow["modelled"] > fast["modelled"] for slow, fast in pairs])
    assert right >= 0.97, f"{right:.1%} of {len(pairs)} pairs"


def test_versions_of_a_kernel_were_measured_alike() -> None:
    rows = json.loads(calibrate.MEASURED.read_text(encoding="utf-8"))["rows"]
    conditions: dict[str, set[tuple[str, ...]]] = {}
    for name, problem in calibrate.problems().items():
        row = rows[name]
        conditions.setdefault(problem, set()).add((row["source"].split(":")[0], row["chip"], row.get("l2", "warm")))
    assert all(len(found) == 1 for found in conditions.values()), conditions


def test_the_order_of_two_versions() -> None:
    measured, modelled = {"a": 10.0, "b": 8.0, "c": 5.0, "d": 1.0}, {"a": 8.0, "b": 7.5, "c": 7.5, "d": 9.0}
    problems = {"a": "sum", "b": "sum", "c": "sum", "d": "product"}
    pairs = list(version_order.version_pairs(measured, modelled, problems))
    assert [(one.order, round(one.modelled_difference, 3), one.measured_difference) for one in pairs] == [
        (1.0, 0.062, pytest.approx(0.2)), (1.0, 0.062, 0.5), (0.5, 0.0, 0.375)]
    assert version_order.VersionPair("sum", (3.0, 2.0), (1.0, 2.0)).order == 0.0
    groups = {words: len(group) for words, group in version_order.grouped_pairs(pairs)}
    assert groups == {"below 2 %": 1, "2 % to 5 %": 0, "5 % to 10 %": 2, "10 % to 20 %": 0, "above 20 %": 0}


def test_the_least_gain_of_an_edit_is_where_the_model_begins_to_order_versions() -> None:
    from tilelang_npu.runtime.improve.improvement import LEAST_GAIN

    found = TABLE["rows"]
    pairs = list(version_order.version_pairs({name: row["measured"] for name, row in found.items()},
                                             {name: row["modelled"] for name, row in found.items()}, calibrate.problems()))
    below = [one for one in pairs if one.modelled_difference < LEAST_GAIN]
    above = [one for one in pairs if one.modelled_difference >= LEAST_GAIN]
    assert len(below) >= 20 and np.mean([one.order for one in below]) < 0.6
    assert np.median([one.measured_difference for one in below]) < LEAST_GAIN
    assert len(above) >= 90 and np.mean([one.order for one in above]) > 0.9


@pytest.mark.parametrize("name", ["gemm_1536", "amin_64k_b8", "gt_same_int8", "turbo_quant_2048", "flash_1024", "matmul_c8"])
def test_the_error_is_within_which_four_of_five_measured_kernels_like_it_are(name: str) -> None:
    """Of its class and of under 10, up to 100 or over 100 us; or of its cores and of that size; or of its cores."""
    def size(us: float) -> tuple[bool, bool]:
        return us > 10, us > 100

    rows = {row.name: row for row in measured_kernels() if chip("910B2").family in row.families}
    own = rows[name]
    groups = ([row for row in rows.values() if row.kind == own.kind and size(row.modelled) == size(own.modelled)],
              [row for row in rows.values() if SIDES[row.kind] == SIDES[own.kind] and size(row.modelled) == size(own.modelled)],
              [row for row in rows.values() if SIDES[row.kind] == SIDES[own.kind]])
    like = next(group for group in groups if len(group) >= 8 and len({row.source for row in group}) >= 4)
    error = error_of(own.kind, own.modelled, chip("910B2"))
    assert error is not None
    inside = [row.left_out <= error for row in like]
    assert sum(inside) >= 0.82 * (len(like) + 1), "that share, and of one more that is not among them"
    assert sum(row.left_out < error for row in like) < 0.82 * (len(like) + 1), "and no wider than that"


@pytest.mark.parametrize(("kind", "most"), [("copy", 0.1), ("element-wise", 0.12), ("reduction", 0.17), ("gemm", 0.1),
                                            ("attention", 0.12), ("mixed", 0.12)])
def test_half_of_the_measured_kernels_of_a_class_are_near(kind: str, most: float) -> None:
    assert median_error([row for row in measured_kernels() if row.kind == kind]) <= most


@pytest.mark.parametrize("name", ["matmul_c3", "gemm_1536", "add_2", "ub_64x64", "l1_unaligned", "grouped_2", "topk_3456"])
def test_the_errors_are_those_of_the_model_as_it_is(name: str) -> None:
    (row,) = calibrate.rows([name])
    shown = "python benchmarks/calibrate.py --write"
    assert row.modelled.us == pytest.approx(TABLE["rows"][name]["modelled"], rel=0.02), shown


@pytest.mark.parametrize("name", ["matmul_c3", "gemm_1536", "grouped_2", "ub_64x64", "l1_64x64"])
def test_a_measured_kernel_is_of_the_class_that_its_error_counts_for(name: str) -> None:
    launch = calibrate.CASES[name].launches()[-1]
    kind = TABLE["rows"][name]["kind"]
    assert launch.kind == kind or (name == "matmul_c3" and launch.kind == "small gemm")  # a part of the product
