"""The time of transfers between cards: one transfer, many to one card and to several, and what reports say of them."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import pods
from tilelang_npu.pods import Card
from tilelang_npu.target import chip, chips

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import links as links_benchmark

ROOT = Path(__file__).resolve().parents[2]

A2, A3 = chip("910B2"), chip("910C")


@tilelang.jit(target="npuir")
def moving(blocks: int, times: int, rows: int, cards: int, gets: bool = False) -> Any:
    """Each block moves ``times`` tiles of ``rows`` KB to or from one of the cards."""
    @T.prim_func
    def moving(X: T.Tensor((rows, 256), "float32")) -> None:
        with T.Kernel(blocks, is_npu=True) as (block, _):
            tile = T.alloc_shared((rows, 256), "float32")
            if not gets:
                T.clear(tile)
            for _turn in T.serial(times):
                if gets:
                    T.shmem_ub_get_nbi(tile, X, rows * 256, block % cards)
                else:
                    T.shmem_ub_put_nbi(tile, X, rows * 256, block % cards)

    return moving


def seconds(one: Any, blocks: int, times: int, rows: int, cards: int, gets: bool = False) -> float:
    """The modelled time without launch overhead."""
    launch = moving(blocks, times, rows, cards, gets).estimate().retimed(one)
    return float(launch.cycles / one.clock)


@pytest.mark.parametrize("one", [A2, A3], ids=["A2", "A3"])
@pytest.mark.parametrize("gets", [False, True], ids=["put", "get"])
def test_many_tiles_to_one_card_reach_the_published_rate(one: Any, gets: bool) -> None:
    nbytes = 24 * 32 * 64 * 1024
    rate = nbytes / seconds(one, 24, 32, 64, 1, gets)
    assert rate == pytest.approx(one.links.read if gets else one.links.write, rel=0.05)


def test_cards_of_a_mesh_do_not_share_a_link_and_those_of_a_switch_do() -> None:
    for one, faster in ((A2, 6.0), (A3, 1.0)):
        assert seconds(one, 24, 32, 64, 1) / seconds(one, 24, 32, 64, 6) == pytest.approx(faster, rel=0.05)


@tilelang.jit(target="npuir")
def moving_beside(blocks: int, movers: int) -> Any:
    """The last ``movers`` of the blocks put 32 tiles of 64 KB to card 0, the others copy a tile."""
    @T.prim_func
    def moving(X: T.Tensor((64, 256), "float32"), Y: T.Tensor((blocks, 64, 256), "float32")) -> None:
        with T.Kernel(blocks, is_npu=True) as (block, _):
            tile = T.alloc_shared((64, 256), "float32")
            if block < blocks - movers:
                T.copy(Y[block, 0, 0], tile)
                T.copy(tile, Y[block, 0, 0])
            else:
                T.clear(tile)
                for _turn in T.serial(32):
                    T.shmem_ub_put_nbi(tile, X, 64 * 256, 0)

    return moving


def test_blocks_that_move_nothing_do_not_share_the_links() -> None:
    launch = moving_beside(24, 2).estimate().retimed(A2)
    assert launch.cycles / A2.clock == pytest.approx(seconds(A2, 2, 32, 64, 1), rel=0.05)


def test_a_small_transfer_takes_the_latency() -> None:
    late = replace(A2, links=replace(A2.links, latency=A2.links.latency + 5e-6))
    assert seconds(late, 1, 1, 1, 1) - seconds(A2, 1, 1, 1, 1) == pytest.approx(5e-6, rel=1e-6)
    assert seconds(late, 1, 1, 1, 1, gets=True) - seconds(A2, 1, 1, 1, 1, gets=True) == pytest.approx(10e-6, rel=1e-6)


@pytest.mark.parametrize("gets", [False, True], ids=["put", "get"])
def test_faster_links_are_never_slower(gets: bool) -> None:
    before = float("inf")
    for factor in (0.5, 1, 2, 8, 64):
        rates = {name: factor * getattr(A2.links, name) for name in ("read", "write", "read_all", "write_all")}
        links = replace(A2.links, **rates)
        now = seconds(replace(A2, links=links), 24, 4, 64, 3, gets)
        assert now <= before
        before = now


def test_reports_say_what_moves_between_cards() -> None:
    launch = moving(24, 8, 64, 3).estimate()
    assert launch.linked == {(card, True): 8 * 8 * 64 * 1024 for card in range(3)}
    least = 8 * 8 * 64 * 1024 / A2.links.write
    assert launch.to_dict()["links"]["least_us"] == pytest.approx(1e6 * least)
    assert f"links     12288 KB to 3 cards   at least {1e6 * least:.1f} us" in launch.summary()
    assert launch.bound_by == "MTE3 (waiting for links)"
    assert launch.error is None
    profile = launch.profile()
    assert "link AIV MTE3" in str(profile)
    faster = next(row for row in profile.what_if if row.change == "links twice as fast")
    assert 0.4 < faster.gain < 0.55


def test_a_launch_without_transfers_has_no_links() -> None:
    @tilelang.jit(target="npuir")
    def alone() -> Any:
        @T.prim_func
        def alone(X: T.Tensor((8, 256), "float32")) -> None:
            with T.Kernel(1, is_npu=True) as (_, _unused):
                tile = T.alloc_shared((8, 256), "float32")
                T.copy(X, tile)

        return alone

    launch = alone().estimate()
    assert launch.linked == {}
    assert "links " not in launch.summary()
    assert launch.error is not None


def test_a_run_takes_as_long_as_its_estimate() -> None:
    kernel = moving(4, 3, 16, 2)

    def body(card: Card) -> float:
        kernel(card.tensor((16, 256)))
        card.barrier()
        return float(kernel.last_launch.time_us)

    assert pods.run(body, 2) == [kernel.estimate().time_us] * 2


def test_the_links_of_all_chips() -> None:
    for one in chips():
        links = one.links
        assert 0 < links.write <= links.write_all <= links.cards * links.write
        assert 0 < links.read <= links.read_all <= links.cards * links.read
        assert 0 < links.latency < 1e-5


@tilelang.jit(target="npuir")
def in_phases(blocks: int, rows: int, times: int, computes: int) -> Any:
    """All blocks read from another card, meet, and then compute."""
    @T.prim_func
    def in_phases(X: T.Tensor((rows, 256), "float32")) -> None:
        with T.Kernel(blocks, is_npu=True) as (_block, _):
            tile = T.alloc_shared((rows, 256), "float32")
            for _turn in T.serial(times):
                T.shmem_ub_get_nbi(tile, X, rows * 256, 1)
            T.sync_all()
            for _turn in T.serial(computes):
                T.vexp(tile, tile)

    return in_phases


def test_links_are_not_faster_because_they_are_idle_in_another_phase() -> None:
    alone, both = (in_phases(24, 64, 8, computes).estimate() for computes in (1, 2000))
    least = 1e6 * 24 * 8 * 64 * 1024 / A2.links.read
    assert alone.time_us > least
    assert both.time_us - in_phases(24, 64, 0, 2000).estimate().time_us > 0.95 * least


def test_published_bandwidths_and_the_errors_of_the_page() -> None:
    rows = list(links_benchmark.rows())
    errors = [modelled / measured - 1 for _, _, measured, modelled in rows]
    assert max(map(abs, errors[:-1])) < 0.06
    text = (ROOT / "docs/hardware.md").read_text(encoding="utf-8")
    shown = [int(found) for found in re.findall(r"GB/s \| ([+-]\d+) % \|$", text, re.MULTILINE)]
    assert shown == [round(100 * error) for error in errors]
