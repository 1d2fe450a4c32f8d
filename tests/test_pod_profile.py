"""The profile of a pod: overlap of communication and computation, links of other speeds, its text and its errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from pod_kernels import copying, drive_passing
from tilelang_npu import pods
from tilelang_npu.errors import TileError
from tilelang_npu.pod_timing import length
from tilelang_npu.pods import Card


@tilelang.jit(target="npuir")
def exchange(other: int, turns: int, computes: bool) -> Any:
    """Puts tiles to a card, and computes on another buffer meanwhile if asked for."""
    @T.prim_func
    def exchange(X: T.Tensor((64, 1024), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((16, 1024), "float32")
            own = T.alloc_shared((16, 1024), "float32")
            T.clear(tile)
            T.clear(own)
            for turn in T.serial(turns):
                T.shmem_ub_put_nbi(tile, X[turn % 4 * 16, 0], 16 * 1024, other)
                if computes:
                    for _turn in T.serial(4):
                        T.tile.exp(own, own)

    return exchange


def _exchanged(computes: bool) -> pods.PodProfile:
    return pods.profile(lambda card: exchange(1 - card.rank, 8, computes)(card.tensor((64, 1024))), 2)


def test_overlap_is_the_share_of_transfers_during_which_the_card_computes() -> None:
    blocking, overlapped = _exchanged(False), _exchanged(True)
    assert blocking.overlap is not None
    assert overlapped.overlap is not None
    assert blocking.overlap < 0.05
    assert 0.3 < overlapped.overlap <= 1.0
    for card in overlapped.cards:  # against a fine grid of moments
        moments = np.linspace(0.0, card.end, 200_001)
        moving, computing = (np.any([(first <= moments) & (moments < last) for first, last in spans], axis=0)
                             for spans in (card.transfers, card.computing))
        assert card.overlap == pytest.approx((moving & computing).sum() / moving.sum(), abs=1e-3)


def test_faster_links_shorten_transfers_and_slower_ones_lengthen_them() -> None:
    profile = _exchanged(False)
    fast, slow = profile.with_links(2.0), profile.with_links(0.5)
    assert fast.time_us < profile.time_us < slow.time_us
    assert length(slow.cards[0].transfers) == pytest.approx(2 * length(profile.cards[0].transfers), rel=0.15)
    assert profile.with_links(1.0).to_dict() == profile.to_dict()
    with pytest.raises(TileError, match="T435"):
        profile.with_links(0.0)


def test_the_text_has_a_row_for_each_card_and_the_lines_of_waits() -> None:
    profile = pods.profile(drive_passing(64), 2)
    text = str(profile)
    rows = re.findall(r"\|([=\-#. ]{60})\|", text)
    assert len(rows) == 2
    assert "." not in rows[0]
    assert rows[1].lstrip().startswith(".....")
    assert re.search(r"waits +[\d.]+ us at .*pod_kernels\.py:\d+", text)
    assert f"{profile.time_us:.1f} us" in text


def test_a_pod_that_runs_no_compiled_kernel_has_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TileError, match="T435"):
        pods.profile(lambda card: card.barrier(), 2)
    monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    with pytest.raises(TileError, match="T435"):
        pods.profile(lambda card: copying(1)(card.tensor((128, 128))), 2)


def test_interpreted_kernels_that_signal_have_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    with pytest.raises(TileError, match="T435"):
        pods.profile(drive_passing(2), 2)


def test_a_kernel_whose_error_the_body_catches_has_no_times() -> None:
    @tilelang.jit(target="npuir")
    def failing() -> Any:
        @T.prim_func
        def failing(F: T.Tensor((1,), "int32")) -> None:
            with T.Kernel(1, is_npu=True) as (_, _unused):
                T.shmem_signal_op(F, 0, 1, 0, 0)
                T.shmem_signal_op(F, 0, 1, 0, 7)

        return failing

    def drive(card: Card) -> None:
        f = card.tensor(1, "int32")
        with pytest.raises(TileError, match="T431"):
            failing()(f)
        copying(1)(card.tensor((128, 128)))

    profile = pods.profile(drive, 1)
    assert [launch.name for launch in profile.cards[0].launches] == ["copying"]
