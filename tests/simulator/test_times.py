"""Cycles compared with published figures (docs/hardware.md), and their dependence on properties of a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from simulator import texts
from simulator.test_kernel_class import mixed
from simulator.test_sync import GEMM, arguments, without
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import Launch, simulate
from tilelang_npu.simulator.machine.op_records import Access, Fact, Fold, Footprint, Lanes, Mmad, Sorting, Transfer
from tilelang_npu.simulator.time.cost import Cost, CostModel
from tilelang_npu.target import chip


def lone(body: Sequence[str], args: Sequence[str], given: Sequence[Any], core: str = "AIV", name: str = "910B1") -> Launch:
    text = texts.module(texts.kernel(core, args, "\n".join(body)))
    return simulate(parse_module(text), list(given), blocks=1, chip=name)


def load_cycles(nbytes: int, l2_state: Literal["warm", "cold"], name: str) -> float:
    length = nbytes // 4
    outside, inside = f"memref<{length}xf32, {texts.GM}>", f"memref<{length}xf32, {texts.UB}>"
    launch = lone([texts.tile("t", 0, str(length), "f32"), f"    hivm.hir.load ins(%X : {outside}) outs(%t : {inside})"],
                  [f"%X: {outside}"], [np.zeros(length, np.float32)], name=name)
    return launch.retimed(l2_state=l2_state).busy_cycles["AIV"]["MTE2"]


@pytest.mark.parametrize(("nbytes", "cycles"), [(1024, 242), (8192, 330), (32768, 731), (131072, 2877)])
def test_load_from_gm(nbytes: int, cycles: float) -> None:
    """MSKPP, 910B1, single core, L2 holds nothing; the fit's largest error is 10 %."""
    assert load_cycles(nbytes, "cold", "910B1") == pytest.approx(cycles, rel=0.1)


@pytest.mark.parametrize(("nbytes", "microseconds"), [
    (32, 1512), (1024, 1557), (8192, 1843), (14336, 2063), (32768, 2945), (65536, 4696), (131072, 7863)])
def test_store_to_gm(nbytes: int, microseconds: float) -> None:
    """AKL, Ascend910_9382: 10000 stores of one core, each waited for, which takes a tenth of the shortest."""
    cycles = microseconds * 1e-6 / 10_000 * chip("910_9382").clock
    length = nbytes // 4
    outside, inside = f"memref<{length}xf32, {texts.GM}>", f"memref<{length}xf32, {texts.UB}>"
    launch = lone([texts.tile("t", 0, str(length), "f32"), f"    hivm.hir.store ins(%t : {inside}) outs(%X : {outside})"],
                  [f"%X: {outside}"], [np.zeros(length, np.float32)], name="910_9382")
    assert launch.busy_cycles["AIV"]["MTE3"] == pytest.approx(cycles, rel=0.1)


@pytest.mark.parametrize(("repeats", "second", "cycles"), [(32, 8192, 86.1), (128, 32768, 278.5), (127, 127 * 256, 149.6)])
def test_add_and_its_bank_conflicts(repeats: int, second: int, cycles: float) -> None:
    """DOC Add: sources in the same bank groups take two cycles a repeat, others one."""
    length = repeats * 64
    inside = f"memref<{length}xf32, {texts.UB}>"
    body = [texts.tile("a", 0, str(length), "f32"), texts.tile("b", second, str(length), "f32"),
            texts.tile("c", 2 * second, str(length), "f32"),
            f"    hivm.hir.vadd ins(%a, %b : {inside}, {inside}) outs(%c : {inside})"]
    assert lone(body, [], []).busy_cycles["AIV"]["V"] == pytest.approx(cycles, rel=0.01)


@pytest.mark.parametrize("start", [96, 160, 8288])
@pytest.mark.parametrize("apart", [32 * 64 * 4, 32 * 64 * 4 + 128, 32 * 64 * 4 + 1024])
def test_bank_conflicts_depend_on_how_far_sources_are_apart(start: int, apart: int) -> None:
    """They do not depend on the absolute addresses, nor on the order of the sources."""
    def took(one: int, other: int) -> float:
        inside = f"memref<2048xf32, {texts.UB}>"
        tiles = [texts.tile(name, at, "2048", "f32") for name, at in (("a", one), ("b", other), ("c", 131072))]
        body = [*tiles, f"    hivm.hir.vadd ins(%a, %b : {inside}, {inside}) outs(%c : {inside})"]
        return lone(body, [], []).busy_cycles["AIV"]["V"]

    assert took(start, start + apart) == took(0, apart) == took(start + apart, start)


def test_a_tile_times_itself_is_read_once() -> None:
    """A bank group serves one row in each cycle, for both sources if they are the same: one cycle a repeat."""
    one, inside = chip("910B1"), f"memref<8192xf32, {texts.UB}>"
    body = [texts.tile("a", 0, "8192", "f32"), texts.tile("b", 32768, "8192", "f32"), texts.tile("c", 65536, "8192", "f32")]
    squared = f"    hivm.hir.vmul ins(%a, %a : {inside}, {inside}) outs(%c : {inside})"
    product = f"    hivm.hir.vmul ins(%a, %b : {inside}, {inside}) outs(%c : {inside})"
    found = [lone([*body, op], [], []).busy_cycles["AIV"]["V"] for op in (squared, product)]
    assert found == [one.vector["mul"].fixed + 128, one.vector["mul"].fixed + 2 * 128]


@pytest.mark.parametrize(("element", "repeats"), [("f32", 128), ("f16", 64)])
def test_axpy_costs_what_its_row_says(element: str, repeats: int) -> None:
    """One instruction of two cycles a repeat (MSKPP), and not a product and a sum that read the same banks."""
    inside = f"memref<8192x{element}, {texts.UB}>"
    call = ('    hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_V>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, symbol = "axpy"} '
            f'"axpy" ins(%a, %s : {inside}, {element}) outs(%c : {inside})')
    body = [texts.tile("a", 0, "8192", element), texts.tile("c", 32768, "8192", element),
            f"    %s = arith.constant 0.5 : {element}", call]
    assert lone(body, [], []).busy_cycles["AIV"]["V"] == chip("910B1").vector["axpy"].fixed + 2 * repeats


@pytest.mark.parametrize(("op", "cycles"), [
    ("hivm.hir.vexp ins(%a : $w) outs(%c : $w)", 159), ("hivm.hir.vadd ins(%a, %c : $w, $w) outs(%c : $w)", 160),
    ("hivm.hir.vreduce <sum> ins(%a : $w) outs(%r : $t) reduce_dims = [1]", 492),
    ("hivm.hir.vreduce <max> ins(%a : $w) outs(%r : $t) reduce_dims = [1]", 480)])
def test_published_tile_ops(op: str, cycles: float) -> None:
    """Golden cycles of PTO-ISA's cost model for 64 x 64 f32 on 910B3."""
    wide, thin = f"memref<64x64xf32, {texts.UB}>", f"memref<64x1xf32, {texts.UB}>"
    body = [texts.tile("a", 0, "64x64", "f32"), texts.tile("c", 16384, "64x64", "f32"), texts.tile("r", 32768, "64x1", "f32"),
            "    " + op.replace("$w", wide).replace("$t", thin)]
    assert lone(body, [], [], name="910B3").busy_cycles["AIV"]["V"] == pytest.approx(cycles, rel=0.06)


def test_long_rows_are_reduced_by_blocks() -> None:
    """PTO-ISA's instructions for 64 x 128 f32: 128 repeats by blocks, 8 that combine two blocks, 8 by blocks again."""
    one = chip("910B3")
    wide, thin = f"memref<64x128xf32, {texts.UB}>", f"memref<64x1xf32, {texts.UB}>"
    body = [texts.tile("a", 0, "64x128", "f32"), texts.tile("r", 32768, "64x1", "f32"),
            f"    hivm.hir.vreduce <max> ins(%a : {wide}) outs(%r : {thin}) reduce_dims = [1]"]
    expected = 128 + 8 + 8 + 2 * one.vector["cgmax"].fixed + one.vector["max"].fixed
    assert lone(body, [], [], name="910B3").busy_cycles["AIV"]["V"] == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("rows", "columns"), [(2, 64), (5, 100), (8, 64), (9, 64), (64, 200)])
@pytest.mark.parametrize("kind", ["max", "sum"])
def test_rows_are_combined_pairwise(rows: int, columns: int, kind: str) -> None:
    """Each pair of rows costs its repeats once, and each of the log2 rounds costs the latency of one instruction."""
    one = chip("910B3").vector["max" if kind == "max" else "add"]
    wide, flat = f"memref<{rows}x{columns}xf32, {texts.UB}>", f"memref<1x{columns}xf32, {texts.UB}>"
    body = [texts.tile("a", 0, f"{rows}x{columns}", "f32"), texts.tile("r", 65536, f"1x{columns}", "f32"),
            f"    hivm.hir.vreduce <{kind}> ins(%a : {wide}) outs(%r : {flat}) reduce_dims = [0]"]
    rounds, repeats = math.ceil(math.log2(rows)), (rows - 1) * math.ceil(columns * 4 / 256)
    assert lone(body, [], [], name="910B3").busy_cycles["AIV"]["V"] == pytest.approx(rounds * one.fixed + one.slope32 * repeats)


def test_a_reduction_of_all_is_one_of_rows_and_then_of_a_row() -> None:
    costs = CostModel(chip("910B3"))
    tile, row = Footprint(0, (8, 64), (256, 4), 4), Footprint(0, (1, 64), (256, 4), 4)
    both, down, across = (costs._fold(Fold("cmax", "max", 32, axes), of) for axes, of in
                          (((0, 1), tile), ((0,), tile), ((1,), row)))
    assert (both.busy, both.done) == (down.busy + across.busy, down.done + across.done)
    assert both.nbytes == down.nbytes == 8 * 64 * 4


def test_what_is_empty_takes_a_cycle() -> None:
    costs, none = CostModel(chip("910B1")), Footprint(0, (0, 8), (32, 4), 4)
    load = Access("gm", 0, True, False, 4, None, (0, 8), (32, 4), "MTE2", "src")
    found = [costs._sorting(Sorting("mrgsort4", 0, merged=True), none), costs._fold(Fold("cmax", "max", 32, (0,)), none),
             costs._lanes(Lanes("add", 32, 0), [none], 0), costs._transfer(Transfer("gm_ub"), [load], [none])]
    assert found == [Cost(1, 1)] * 4


def test_a_broadcast_along_rows_spreads_them_first() -> None:
    """brcb processes eight rows a repeat; repeated instructions take proportionally longer."""
    one = chip("910B1")
    costs, place = CostModel(one), Footprint(0, (20, 64), (256, 4), 4)
    plain, spread, thrice = (costs._lanes(work, [place], 0) for work in (
        Lanes("add", 32, 0), Lanes("add", 32, 0, spread=20), Lanes("add", 32, 0, times=3)))
    brcb = one.vector["brcb"]
    assert spread.busy - plain.busy == spread.done - plain.done == brcb.fixed + 3 * brcb.slope32
    assert (thrice.busy, thrice.done) == (3 * plain.busy, 3 * plain.done)


@pytest.mark.parametrize(("count", "passes"), [(32, 1), (128, 2), (512, 3), (1024, 4), (2048, 4)])
def test_sorts_are_merged_by_four(count: int, passes: int) -> None:
    """DOC: two pairs a cycle, sorted 32 at a time and merged four lists at a time."""
    costs = CostModel(chip("910B1"))
    done = costs._sorting(Sorting("mrgsort4", 0, merged=True), Footprint(0, (count,), (4,), 4)).done
    assert done == pytest.approx(passes * (count / 2 + chip("910B1").vector["mrgsort4"].fixed))
    assert costs._sorting(Sorting("mrgsort4", 0, merged=False), Footprint(0, (count,), (4,), 4)).done == done / passes


@pytest.mark.parametrize(("rows", "cycles"), [((64, 64), 513.9), ((128, 256), 1380.5)])
def test_loads_by_rows(rows: tuple[int, int], cycles: float) -> None:
    """DOC matmul c0 and c1, one core: MTE2 is busy for so long with rows of 128 bytes of A and of B that L2 holds."""
    near = chip("910B1").paths["gm_l1_nd2nz"].near
    assert near is not None
    first, second = (CostModel.moved(near, 128 * count, count) for count in rows)
    assert first.busy + second.done == pytest.approx(cycles, rel=0.005)


@pytest.mark.parametrize(("nbytes", "requests"), [
    (4, 1), (32, 1), (64, 1), (96, 2), (128, 1), (480, 4), (512, 1), (544, 2), (1024, 2), (1504, 6)])
def test_a_row_is_asked_for_in_powers_of_two(nbytes: int, requests: int) -> None:
    """Of 32 to 512 bytes: 480 are 256, 128, 64 and 32."""
    costs = CostModel(chip("910B1"))
    move = costs.chip.paths["gm_ub"].near
    assert move is not None
    rows = Footprint(0, (100, nbytes // 4), (4096, 4), 4)
    access = Access("gm", 0, True, False, 4, None, (100, nbytes // 4), (4096, 4), "MTE2", "src")
    expected = 100 * max(requests * move.row, nbytes / move.sustained)
    assert costs._transfer(Transfer("gm_ub"), [access], [rows]).busy == pytest.approx(expected)


@pytest.mark.parametrize(("stride", "factor"), [(4096, 1.0), (4096 + 32, (2048 + 480) / 2048), (4096 + 4, 1.3)])
def test_rows_that_begin_at_no_block_take_longer(stride: int, factor: float) -> None:
    """Rows of 2048 bytes: those at 128 bytes take their own, others whole lines (480 bytes more on average, if they begin at
    any of 16 blocks), and DOC's data_copy has 1.28 times as long for some that begin anywhere."""
    costs = CostModel(chip("910B1"))
    rows = Footprint(0, (100, 512), (stride, 4), 4)
    access = Access("gm", 0, True, False, 4, None, (100, 512), (stride, 4), "MTE2", "src")
    (gm,) = costs._transfer(Transfer("gm_ub"), [access], [rows]).gm
    assert gm.far == gm.near == pytest.approx(100 * 2048 * factor)
    assert (gm.nbytes, gm.requests) == (100 * 2048, 100 * math.ceil(2048 * factor / 512))


@pytest.mark.parametrize(("columns", "percent"), [
    (4096, 100), (256, 100), (384, 80), (4224, 80), (8000, 50), (40000, 50), (320, 50), (4000, 40), (272, 40), (4090, 30),
    (4001, 30)])
@pytest.mark.parametrize("length", [64, 128])
def test_rows_of_nd2nz_take_longer_by_their_distance(columns: int, percent: int, length: int) -> None:
    """catlass, examples/102_dynamic_optimized_matmul, GetBandwidth: 100, 80, 50, 40 or 30 % of the rate if the columns of the
    matrix of 16-bit elements are a multiple of 256, 128, 64, 16 or of none of them. L2 sees the bytes that are used."""
    costs = CostModel(chip("910B1"))

    def load(columns: int) -> Cost:
        sizes, strides = (64, length), (2 * columns, 2)
        access = Access("gm", 0, True, False, 2, None, sizes, strides, "MTE2", "src")
        return costs._transfer(Transfer("gm_l1_nd2nz"), [access], [Footprint(0, sizes, strides, 2)])

    best, other = load(8192), load(columns)
    assert other.busy == pytest.approx(best.busy * 100 / percent)
    assert other.done - best.done == pytest.approx(other.busy - best.busy)
    assert other.gm[0].near == best.gm[0].near == 64 * 2 * length
    assert other.busy + other.more_busy >= best.busy + best.more_busy, "from HBM"


def test_a_contiguous_matrix_has_no_distance_of_rows() -> None:
    costs = CostModel(chip("910B1"))
    access = Access("gm", 0, True, False, 2, None, (64, 80), (160, 2), "MTE2", "src")
    found = costs._transfer(Transfer("gm_l1_nd2nz"), [access], [Footprint(0, (64, 80), (160, 2), 2)])
    assert found.busy == pytest.approx(64 * 160 / 84.5)


@pytest.mark.parametrize(("name", "cores"), [("910B1", 1), ("910B1", 24), ("910B3", 20), ("910_9391", 24)])
def test_nd2nz_has_one_rate_for_each_core(name: str, cores: int) -> None:
    """84 to 85 bytes a cycle: DOC matmul c8, where MTE2 of each of 24 cores moves 537 MB in 3436 us at 1.85 GHz; PTO-ISA's
    6144^3, where it is at work for 95 % of 1506 us."""
    times = 64

    @T.prim_func
    def load(X: T.Tensor((cores * 128, 512), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_L1((2, 128, 256), "float16")
            with T.Scope("C"):
                for i in T.serial(times):
                    T.copy(X[core * 128, i % 2 * 256], x[i % 2, :, :])

    launch = tilelang.compile(load, target="ascendc", chip=name).trace()
    assert launch is not None
    assert times * 128 * 512 / launch.cycles == pytest.approx(84.5, rel=0.02)


@pytest.mark.parametrize(("nbytes", "cycles"), [(8192, 246), (32768, 498), (131072, 1263)])
def test_loads_that_l2_holds(nbytes: int, cycles: float) -> None:
    """MSKPP, 910B3, single core; the fit's largest error is 8 %."""
    near = chip("910B3").paths["gm_ub"].near
    assert near is not None
    assert CostModel.moved(near, nbytes).done == pytest.approx(cycles, rel=0.08)
    assert load_cycles(nbytes, "warm", "910B3") == pytest.approx(cycles, rel=0.08)  # the launch before has left it there


def test_two_loads_from_hbm_in_a_row() -> None:
    """DOC Add on one core: 701 cycles for two loads of 8 KB, since the number of bytes in flight is limited."""
    move = chip("910B1").moves["gm_ub"]
    first, second = (CostModel.moved(move, 8192) for _ in range(2))
    assert first.busy + second.done == pytest.approx(701, rel=0.1)


def matmul(element: str = "f16") -> Mmad:
    none = (Fact(0), Fact(0))
    return Mmad(element, False, 0, 0, 0, none, none, 0, none, False, False)


@pytest.mark.parametrize(("m", "k", "n"), [(16, 16, 16), (128, 64, 256), (32, 16, 64)])
def test_mmad(m: int, k: int, n: int) -> None:
    """MSKPP, 910B3: 24 cycles and one per fractal of 16 x 16 x 16; PTO's golden 128 x 128 x 64 takes 262."""
    cost = CostModel(chip("910B3")).multiply(matmul(), m, k, n)
    assert cost.done == pytest.approx(24 + m * k * n / 4096, abs=1)


def test_loads_of_a_real_gemm() -> None:
    """DOC matmul: 429 cycles of MTE1 for 16 KB of A and 32 KB of B, 521 to 522 of M for the product."""
    model = CostModel(chip("910B1"))
    work = matmul()
    assert model.load_a(work, 128, 64).busy + model.load_b(work, 64, 256).busy == pytest.approx(429, rel=0.01)
    assert model.multiply(work, 128, 64, 256).busy == pytest.approx(521.5, abs=1)


@pytest.mark.parametrize(("space", "nbytes", "cycles"), [("ca", 16384, 64), ("cb", 32768, 256)])
def test_a_load_by_hand_holds_mte1_as_long_as_the_macro_s(space: str, nbytes: int, cycles: float) -> None:
    """PTO-ISA's gemm_performance has explicit loads of L0: 46 and 50 cycles of MTE1 in addition to the bytes of each."""
    rows = nbytes // 128
    inside, into = (f"memref<4x{rows // 16}x16x16xf16, #hivm.address_space<{one}>>" for one in ("cbuf", space))
    symbol = "load_l0a" if space == "ca" else "load_l0b"
    tiles = [texts.tile(name, 0, f"4x{rows // 16}x16x16", "f16", f"#hivm.address_space<{one}>")
             for name, one in (("a", "cbuf"), ("b", space))]
    call = ("    hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_MTE1>, hivm.tcore_type = #hivm.tcore_type<CUBE>, "
            f'symbol = "{symbol}"}} "{symbol}" ins(%a : {inside}) outs(%b : {into})')
    one = chip("910B1")
    first, second = (lone([*tiles, *[call] * count], [], [], core="AIC").cycles for count in (1, 2))
    assert second - first == pytest.approx(cycles + one.cube.burst)


@pytest.mark.parametrize(("stride", "rate"), [(1, 256), (2, 32)])
def test_patches_are_loaded_at_the_published_rates(stride: int, rate: float) -> None:
    """DOC load_data_perf: 32 to 256 bytes a cycle. Rows of the output that are adjacent in L1 get the higher one."""
    shapes = {"cbuf": "1x64x16x16", "ca": "9x4x16x16"}
    image, left = (f"memref<{shape}xf16, #hivm.address_space<{space}>>" for space, shape in shapes.items())
    tiles = [texts.tile(name, 0, shape, "f16", f"#hivm.address_space<{space}>")
             for name, (space, shape) in zip("ab", shapes.items(), strict=True)]
    geometry = f"array<i64: 16, {32 * stride}, 3, 3, 1, {stride}, 1, 1, 1, 1, 1, 1>"
    call = ("    hivm.hir.custom {geometry = " + geometry + ", hivm.pipe = #hivm.pipe<PIPE_MTE1>, hivm.tcore_type = "
            '#hivm.tcore_type<CUBE>, symbol = "load_l0a_patches"} "load_l0a_patches" '
            f"ins(%a, %zero, %zero : {image}, i64, i64) outs(%b : {left})")
    one = chip("910B1")
    zero = "    %zero = arith.constant 0 : i64"
    first, second = (lone([*tiles, zero, *[call] * count], [], [], core="AIC").cycles for count in (1, 2))
    assert second - first == pytest.approx(9 * 4 * 512 / rate + one.cube.burst, rel=0.02)


def test_chunks_fit_the_halves_of_l0() -> None:
    model = CostModel(chip("910B1"))
    assert model.chunks(matmul(), 128, 64, 256) == [64]
    assert model.chunks(matmul(), 128, 512, 128) == [128] * 4
    assert model.chunks(matmul(), 128, 200, 256) == [64, 64, 64, 8]
    assert model.chunks(matmul("f32"), 16, 64, 1024) == [8] * 8


def test_footprints_merge_axes_that_touch() -> None:
    plain = Footprint(64, (4, 1, 8, 16), (1024, 7, 64, 4), 4).simplified()
    assert plain == Footprint(64, (4,), (1024,), 512)
    assert Footprint(0, (4, 8), (32, 4), 4).simplified() == Footprint(0, (), (), 128)
    assert plain.end == 64 + 3 * 1024 + 512


def gemm_cycles(text: str = GEMM, **options: Any) -> Launch:
    args, blocks = arguments(GEMM)
    return simulate(parse_module(text), args, blocks=blocks, **options)


def test_double_buffering_pays() -> None:
    """With separate waits for the four slots, the loads of the next step overlap the product; with a barrier they do not. The
    inputs are assumed to be in L2: from HBM the loads would take longer than everything else."""
    one = chip("910B2")
    loads = one.paths["gm_l1_nd2nz"]
    warm = replace(one, paths={**one.paths, loads.name: replace(loads, move=loads.near)})
    fast = texts.gemm(128, 128, 2048)
    slow = fast.replace("    %init = arith.cmpi eq, %kk, %c0 : index",
                        "    %init = arith.cmpi eq, %kk, %c0 : index\n    hivm.hir.pipe_barrier[<PIPE_ALL>]")
    assert slow != fast
    args = [np.zeros(shape, np.float16) for shape in ((128, 2048), (2048, 128), (128, 128))]
    slowly, quickly = (simulate(parse_module(text), args, blocks=1, chip=warm).cycles for text in (slow, fast))
    assert slowly > 1.2 * quickly


def test_faster_chips_are_faster() -> None:
    slow, fast = gemm_cycles(chip="910B4"), gemm_cycles(chip="910B1")
    assert slow.chip.clock < fast.chip.clock
    assert slow.time_us > fast.time_us


def add_time(blocks: int, tile: int, count: int, name: str = "910B1") -> Launch:
    n = blocks * tile * count
    x = np.zeros(n, np.float16)
    return simulate(parse_module(texts.add_tiles(tile, "f16")), [x, x.copy(), x.copy(), n], blocks=blocks * count, chip=name)


def test_gm_is_shared() -> None:
    """One core is bound by its own pipe; 48 of them wait for HBM, and a single one gets less than alone."""
    alone, together = add_time(1, 16384, 1), add_time(48, 16384, 48)
    per_block = together.groups[0].timing.cycles
    assert per_block > 1.5 * alone.cycles
    assert together.bound_by == "MTE2 (waiting for HBM)"
    nbytes = 3 * 2 * 48 * 16384 * 48  # more than L2 holds: writes go to HBM
    achieved = nbytes / (together.groups[0].timing.cycles * 48 / together.chip.clock)
    assert 1.0e12 < achieved < 1.7e12  # DOC: 1.56 TB/s double buffered, reads and writes


def test_waves_and_launch_overhead() -> None:
    one, two = add_time(48, 2048, 1), add_time(48, 2048, 2)
    assert (one.waves, two.waves) == (1, 2)
    (group,) = two.groups
    each, law = group.timing.cycles, one.chip.launch
    dispatch = law.dispatch_us * 1e-6 * one.chip.clock
    assert dispatch < each < 48 * dispatch, "the blocks are shorter than the dispatch of a wave"
    assert two.cycles == pytest.approx(48 * dispatch + each)  # the last block is the 48th after those that begin at once
    assert two.core_cycles[0] == pytest.approx(2 * each)
    assert one.time_us == pytest.approx(one.chip.microseconds(one.cycles) + law.kernel_us + 47 * law.vector_core_us)


def test_blocks_that_are_longer_than_the_dispatch_of_a_wave_do_not_wait_for_it() -> None:
    usual = add_time(48, 16384, 2)
    quick = replace(usual.chip, launch=replace(usual.chip.launch, dispatch_us=usual.chip.launch.dispatch_us / 4))
    launch = usual.retimed(quick)
    each = launch.groups[0].timing.cycles
    assert 48 * launch.dispatch_cycles < each < 48 * usual.dispatch_cycles
    assert launch.block_starts == [0.0] * 48 + [each] * 48


@pytest.mark.parametrize(("blocks", "microseconds"), [(8192, 307), (16384, 605)])
def test_many_short_blocks_take_as_long_as_their_dispatch(blocks: int, microseconds: float) -> None:
    """VT, 910B3: blocks that do little."""
    x = np.zeros(blocks * 64, np.float16)
    launch = simulate(parse_module(texts.add_tiles(64, "f16")), [x, x.copy(), x.copy(), len(x)], blocks=blocks, chip="910B3")
    assert launch.time_us == pytest.approx(microseconds, rel=0.08)
    assert launch.bound_by == "dispatch"


def test_cores_are_started_one_by_one() -> None:
    """An empty kernel on one core was measured as 2.0 to 2.2 us (docs/accuracy.md)."""
    law, launches = chip("910B1").launch, [add_time(cores, 2048, 1) for cores in (1, 2, 48)]
    assert launches[0].launch_us == law.kernel_us == pytest.approx(2.1, rel=0.15)
    assert [launch.launch_us - law.kernel_us for launch in launches] == pytest.approx([0.0, law.vector_core_us,
                                                                                       47 * law.vector_core_us])


def test_a_block_of_several_cores_is_dispatched_core_by_core() -> None:
    launch = mixed("910B1", before=True, between=False, after=True)
    law = launch.chip.launch
    assert [launch.recorded.program.functions[index].core for index, _ in launch.recorded.program.lanes] == ["AIC", "AIV"]
    assert launch.dispatch_cycles == pytest.approx(2 * law.dispatch_us * 1e-6 * launch.chip.clock)
    assert launch.launch_us == pytest.approx(law.kernel_us + law.mixed_us + law.core_us)


def test_leaving_out_a_wait_shortens_the_time() -> None:
    lines = GEMM.splitlines()
    wait = next(n for n, line in enumerate(lines) if "wait_flag[<PIPE_MTE1>, <PIPE_MTE2>, %ea]" in line)
    assert gemm_cycles(without(GEMM, wait)).cycles < gemm_cycles().cycles


def test_of_many_kinds_of_blocks_some_stand_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    import tilelang_npu as tilelang
    import tilelang_npu.language as T

    @T.prim_func
    def main(N: T.Tensor((8,), "int32"), X: T.Tensor((64,), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(8, is_npu=True) as (cid, _):
            x = T.alloc_ub((64,), "float32")
            T.copy(X, x)
            for _ in T.serial(N[cid]):
                T.tile.add(x, x, 1.0)
            T.copy(x, Y[cid, 0])

    def run() -> Launch:
        kernel = tilelang.compile(main, target="ascendc", out_idx=[2], pass_configs={"tl.ascend_auto_sync": True})
        kernel(np.array([1, 1, 4, 4, 40, 41, 5, 40], np.int32), np.zeros(64, np.float32))
        assert kernel.last_launch is not None
        return kernel.last_launch

    whole = run()
    assert whole.sample[0] == whole.sample[1] == len(whole.distinct_blocks) == 5
    assert "kinds of blocks" not in whole.summary()
    monkeypatch.setattr("tilelang_npu.simulator.result.launch_result.TIMED_EVENTS", 60)
    monkeypatch.setattr("tilelang_npu.simulator.result.launch_result.KEPT_STEPS", 0)
    part = run()
    assert part.sample == (3, 5)
    assert "(from 3 of 5 kinds of blocks)" in part.summary()
    assert part.group_of_block[4] is part.group_of_block[5] is part.group_of_block[6]
    assert part.group_of_block[0].timing.cycles == whole.group_of_block[0].timing.cycles
    assert sum(group.count for group in part.groups) == 8


@pytest.mark.parametrize("known", [True, False])
def test_a_loop_of_scalar_instructions_takes_their_time(known: bool) -> None:
    """A product, a sum and two for the loop in each iteration, however often it runs; and it bounds the launch."""
    import tilelang_npu as tilelang
    import tilelang_npu.language as T

    def run(count: int) -> Launch:
        @T.prim_func
        def main(N: T.Tensor((8,), "int32"), X: T.Tensor((8,), "float32"), Y: T.Tensor((8,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                x = T.alloc_ub((8,), "float32")
                a = T.alloc_var("float32", init=1.0)
                T.copy(X, x)
                a = x[0]
                for _ in T.serial(count if known else N[0]):
                    a = a * 1.5 + 0.5
                x[1] = a
                T.copy(x, Y)

        kernel = tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
        kernel(np.full(8, count, np.int32), np.ones(8, np.float32), np.zeros(8, np.float32))
        assert kernel.last_launch is not None
        return kernel.last_launch

    short, long = run(10), run(1010)
    assert long.cycles - short.cycles == pytest.approx(1000 * 4 * long.chip.scalar.alu)
    assert (short.bound_by, long.bound_by) == ("latency (MTE3)", "S")


@pytest.mark.parametrize("blocks", [1, 48])
def test_what_a_kernel_wrote_is_read_from_l2(blocks: int) -> None:
    """A workspace is read from L2 after its first write; a tensor changed in place is read from HBM, if no earlier launch left
    it in L2."""
    length = 16384
    given, outside = f"memref<?xf32, {texts.GM}>", f"memref<{length}xf32, strided<[1], offset: ?>, {texts.GM}>"
    inside = f"memref<{length}xf32, {texts.UB}>"
    own = ["    %bid = hivm.hir.get_block_idx -> i64", "    %bi = arith.index_cast %bid : i64 to index",
           f"    %each = arith.constant {length} : index", "    %off = arith.muli %bi, %each : index",
           f"    %g = memref.reinterpret_cast %X to offset: [%off], sizes: [{length}], strides: [1] : {given} to {outside}"]
    flags = [f"    hivm.hir.{kind}_flag[<PIPE_{{}}>, <PIPE_{{}}>, <EVENT_ID0>]" for kind in ("set", "wait")]
    store, load = (f"    hivm.hir.store ins(%t : {inside}) outs(%g : {outside})",
                   f"    hivm.hir.load ins(%g : {outside}) outs(%t : {inside})")
    loads, warm = [], []
    for first, second, pipes in ((store, load, ("MTE3", "MTE2")), (load, store, ("MTE2", "MTE3"))):
        body = [*own, texts.tile("t", 0, str(length), "f32"), first, *(flag.format(*pipes) for flag in flags), second]
        text = texts.module(texts.kernel("AIV", [f"%X: {given}"], "\n".join(body)))
        launch = simulate(parse_module(text), [np.zeros(blocks * length, np.float32)], blocks=blocks, chip="910B1")
        loads.append(launch.retimed(l2_state="cold").busy_cycles["AIV"]["MTE2"])
        warm.append(launch.busy_cycles["AIV"]["MTE2"])
    assert loads[0] < loads[1]
    assert warm == pytest.approx([loads[0]] * 2)


def added(blocks: int, apart: bool) -> Launch:
    """Each block adds a line of 512 bytes to GM: all to the same one, or each to its own."""
    offset = "%off" if apart else "%zero"
    given, strided, inside = (f"memref<?xf32, {texts.GM}>", f"memref<128xf32, strided<[1], offset: ?>, {texts.GM}>",
                              f"memref<128xf32, {texts.UB}>")
    body = ["    %bid = hivm.hir.get_block_idx -> i64", "    %bi = arith.index_cast %bid : i64 to index",
            "    %zero = arith.constant 0 : index", "    %line = arith.constant 128 : index",
            "    %off = arith.muli %bi, %line : index",
            f"    %g = memref.reinterpret_cast %X to offset: [{offset}], sizes: [128], strides: [1] : {given} to {strided}",
            texts.tile("t", 0, "128", "f32"), "    %one = arith.constant 1.0 : f32",
            f"    hivm.hir.vbrc ins(%one : f32) outs(%t : {inside})", texts.sync("V", "MTE3"),
            f"    hivm.hir.store ins(%t : {inside}) outs(%g : {strided}) atomic = <add>"]
    text = texts.module(texts.kernel("AIV", [f"%X: {given}"], "\n".join(body)))
    x = np.zeros(128 * blocks, np.float32)
    launch = simulate(parse_module(text), [x], blocks=blocks, chip="910B1")
    assert x[0] == (1 if apart else blocks)
    return launch


@pytest.mark.parametrize("blocks", [8, 48])
def test_additions_to_one_line_wait_for_each_other(blocks: int) -> None:
    """DOC data_copy: simultaneous requests of cores for one line are served one after the other, in 25.8 ns each."""
    apart, same = (added(blocks, apart) for apart in (True, False))
    together = apart.cycles / apart.chip.clock
    in_turn = blocks * apart.chip.traffic.same_line
    assert same.cycles / same.chip.clock >= 0.99 * in_turn
    assert same.cycles > apart.cycles
    assert same.cycles / same.chip.clock <= together + 1.05 * in_turn


def test_an_addition_in_gm_takes_l2_twice() -> None:
    one = added(48, apart=True)
    (buffer, written), moved = next(iter(one.moved.items()))
    assert written and moved.near == 2 * moved.nbytes == 2 * 48 * 512


def test_a_flag_to_other_cores_takes_time_of_its_pipe() -> None:
    """Each set delays the next work of its pipe until it has left the core, independently of the flag's latency."""
    outside, inside = f"memref<2048xf32, {texts.GM}>", f"memref<2048xf32, {texts.UB}>"
    load = f"    hivm.hir.load ins(%X : {outside}) outs(%t : {inside})"
    tell = "    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts"
    args = ["%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}", f"%X: {outside}"]
    silent, telling = (lone([texts.tile("t", 0, "2048", "f32"), *lines], args, [np.zeros(2048, np.float32)])
                       for lines in ([load] * 9, [load, *[tell, load] * 8]))
    assert telling.cycles - silent.cycles == pytest.approx(8 * chip("910B1").sync.flag)
