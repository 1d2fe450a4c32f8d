"""The references of GPU scripts: ``flash_attn`` by torch, while scripts for a GPU run and the package is not installed."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from tilelang_npu import TileError, compat
from tilelang_npu.runtime.settings import environment

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(find_spec("flash_attn") is not None, reason="the package is installed")
BATCH, HEADS, DIM = 2, 4, 16


@pytest.fixture
def flash(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv(environment.GPU.name, "1")
    compat.install()
    yield import_module("flash_attn")
    compat.uninstall_gpu()
    sys.modules.pop("flash_attn", None)


def _expected(q: Any, k: Any, v: Any, causal: bool = False, window: tuple[int, int] = (-1, -1), scale: float | None = None
              ) -> Any:
    """The attention, element by element in float64."""
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for b, row, h in np.ndindex(*q.shape[:3]):
        own = h // (q.shape[2] // k.shape[2])
        place = row + k.shape[1] - q.shape[1]
        seen = [key for key in range(k.shape[1]) if (not causal or key <= place)
                and (window[0] < 0 or key >= place - window[0]) and (causal or window[1] < 0 or key <= place + window[1])]
        scores = [float(q[b, row, h] @ k[b, key, own]) * (scale or 1 / math.sqrt(q.shape[-1])) for key in seen]
        weights = np.exp(np.array(scores) - max(scores, default=0.0))
        total = sum(weight * v[b, key, own] for weight, key in zip(weights, seen, strict=True))
        out[b, row, h] = total / max(weights.sum(), 1e-300)
    return out


def _made(seed: int, rows: int, keys: int, own: int = HEADS) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((BATCH, size, heads, DIM)).astype(np.float32) for size, heads in (
        (rows, HEADS), (keys, own), (keys, own))]


@pytest.mark.parametrize(("options", "expected"), [
    ({}, {}), ({"causal": True}, {"causal": True}), ({"softmax_scale": 0.5}, {"scale": 0.5}),
    ({"causal": True, "window_size": (3, 0)}, {"causal": True, "window": (3, 0)}),
    ({"window_size": (2, 1)}, {"window": (2, 1)}),
])
@pytest.mark.parametrize(("rows", "keys", "own"), [(7, 7, HEADS), (3, 9, 2)])
def test_dense(flash: Any, rows: int, keys: int, own: int, options: dict[str, Any], expected: dict[str, Any]) -> None:
    given = _made(0, rows, keys, own)
    found = flash.flash_attn_func(*map(torch.from_numpy, given), **options)
    np.testing.assert_allclose(found.numpy(), _expected(*given, **expected), rtol=2e-5, atol=2e-6)


def test_sequences_of_different_lengths(flash: Any) -> None:
    q, k, v = (part[0] for part in _made(1, 12, 12, 2))
    ends = torch.tensor([0, 5, 12], dtype=torch.int32)
    found = flash.flash_attn_varlen_func(*map(torch.from_numpy, (q, k, v)), ends, ends, 7, 7, causal=True)
    for start, end in ((0, 5), (5, 12)):
        wanted = _expected(*(part[None, start:end] for part in (q, k, v)), causal=True)[0]
        np.testing.assert_allclose(found[start:end].numpy(), wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("paged", [False, True])
def test_a_cache(flash: Any, paged: bool) -> None:
    q, k, v = _made(2, 1, 8, 2)
    lengths, table = torch.tensor([3, 8], dtype=torch.int32), torch.tensor([[1, 3], [0, 2]], dtype=torch.int32)
    caches = [torch.from_numpy(part) for part in (k, v)]
    if paged:
        pages = [torch.zeros(4, 4, 2, DIM) for _ in caches]
        for page, cache in zip(pages, caches, strict=True):
            page[table.long().flatten()] = cache.reshape(4, 4, 2, DIM)
        caches = pages
    found = flash.flash_attn_with_kvcache(torch.from_numpy(q), *caches, cache_seqlens=lengths,
                                          block_table=table if paged else None)
    for number, length in enumerate(lengths.tolist()):
        part = slice(number, number + 1)
        wanted = _expected(q[part], k[part, :length], v[part, :length])[0]
        np.testing.assert_allclose(found[number].numpy(), wanted, rtol=2e-5, atol=2e-6)


def test_an_argument_that_is_not_modelled_is_refused(flash: Any) -> None:
    given = [torch.from_numpy(part) for part in _made(3, 2, 2)]
    with pytest.raises(TileError, match="dropout_p"):
        flash.flash_attn_func(*given, dropout_p=0.5)
    with pytest.raises(TileError, match="rotary_cos"):
        flash.flash_attn_with_kvcache(*given, rotary_cos=torch.ones(2))


def test_it_is_only_there_for_scripts_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.GPU.name, raising=False)
    compat.install()
    with pytest.raises(ModuleNotFoundError):
        import_module("flash_attn")
