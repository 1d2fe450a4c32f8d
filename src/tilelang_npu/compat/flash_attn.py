"""The attention functions of the package ``flash_attn`` that GPU scripts use as references, computed by torch's own operators.

With ``--gpu``, ``import flash_attn`` imports this module if the package is not installed. The functions compute in float32 and
round once. An argument that is not modelled is refused with T190.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location

__all__ = ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"]

__version__ = "2.7.4"


def _attention(q: Tensor, k: Tensor, v: Tensor, scale: float | None, causal: bool, window: tuple[int, int]) -> Tensor:
    """The attention of one sequence: [queries, heads, dim] over [keys, heads of keys, dim].

    With ``causal``, the last query sees all keys, and each query before it one key less. ``window`` has the number of keys
    before and the number of keys after its own position that a query sees; -1 for all.
    """
    rows, heads, dim = q.shape
    keys = k.shape[0]
    group = heads // k.shape[1]
    wide = [part.float().transpose(0, 1) for part in (q, k, v)]
    scores = wide[0] @ wide[1].repeat_interleave(group, 0).transpose(1, 2) * (dim**-0.5 if scale is None else scale)
    place = torch.arange(rows).unsqueeze(1) + keys - rows
    other = torch.arange(keys).unsqueeze(0)
    left, right = window[0], 0 if causal else window[1]
    hidden = torch.zeros(rows, keys, dtype=torch.bool)
    if right >= 0:
        hidden |= other > place + right
    if left >= 0:
        hidden |= other < place - left
    weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), -1).nan_to_num(0.0)  # a query that sees no key gives 0
    return (weights @ wide[2].repeat_interleave(group, 0)).transpose(0, 1).to(q.dtype)


def _only(name: str, **holds: bool) -> None:
    """Refuses a call with an argument that is not modelled: one whose value is false."""
    wrong = [argument for argument, modelled in holds.items() if not modelled]
    if wrong:
        raise TileError(f"flash_attn.{name} is not modelled for this {' and '.join(wrong)}", code="T190",
                        location=user_location(), help="compute the reference with torch's own operators")


def flash_attn_func(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: object = None, deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Tensor:
    """Returns the attention of [batch, queries, heads, dim] over [batch, keys, heads of keys, dim].

    Args:
        q, k, v: the queries, keys and values.
        dropout_p: must be 0.
        softmax_scale: the factor of the scores; None for 1 / sqrt(dim).
        causal: whether a query sees no key after its own position; the last query is at the last key.
        window_size: the numbers of keys before and after its own position that a query sees; -1 for all.
        softcap: must be 0.
        alibi_slopes: must be None.
        deterministic: has no effect.
        return_attn_probs: must be False.

    Raises:
        TileError: T190, an argument has a value that is not modelled.
    """
    _only("flash_attn_func", dropout_p=dropout_p == 0, softcap=softcap == 0, alibi_slopes=alibi_slopes is None,
          return_attn_probs=not return_attn_probs)
    return torch.stack([_attention(*parts, softmax_scale, causal, window_size) for parts in zip(q, k, v, strict=True)])


def flash_attn_varlen_func(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
    dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False, window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0, **others: object,
) -> Tensor:
    """Returns the attention of sequences of different lengths, which follow each other: [all queries, heads, dim].

    Args:
        q, k, v: the queries, keys and values of all sequences.
        cu_seqlens_q, cu_seqlens_k: where each sequence begins, and the end of the last one.
        max_seqlen_q, max_seqlen_k: have no effect.
        dropout_p, softmax_scale, causal, window_size, softcap: as of :func:`flash_attn_func`.
        others: must be None or False, except ``deterministic``, which has no effect.

    Raises:
        TileError: T190, an argument has a value that is not modelled.
    """
    others.pop("deterministic", None)
    _only("flash_attn_varlen_func", dropout_p=dropout_p == 0, softcap=softcap == 0,
          **{name: value is None or value is False for name, value in others.items()})
    out = torch.zeros(*q.shape[:2], v.shape[-1], dtype=q.dtype)
    rows, keys = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    for start, end, first, last in zip(rows, rows[1:], keys, keys[1:], strict=False):
        out[start:end] = _attention(q[start:end], k[first:last], v[first:last], softmax_scale, causal, window_size)
    return out


def flash_attn_with_kvcache(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: object = None, v: object = None, *,
    cache_seqlens: Tensor | int | None = None, block_table: Tensor | None = None,
    softmax_scale: float | None = None, causal: bool = False, window_size: tuple[int, int] = (-1, -1), **others: object,
) -> Tensor:
    """Returns the attention of [batch, queries, heads, dim] over the keys and values of a cache.

    Args:
        q: the queries.
        k_cache, v_cache: the cache: [batch, keys, heads of keys, dim], or with ``block_table`` [pages, page size, ...].
        k, v: must be None: nothing is added to the cache.
        cache_seqlens: the number of keys of each sequence, or one number for all; None for all keys of the cache.
        block_table: the pages of each sequence.
        softmax_scale, causal, window_size: as of :func:`flash_attn_func`.
        others: must be None, False or 0, except ``num_splits``, which has no effect.

    Raises:
        TileError: T190, an argument has a value that is not modelled.
    """
    others.pop("num_splits", None)
    _only("flash_attn_with_kvcache", k=k is None, v=v is None,
          **{name: value is None or (isinstance(value, (bool, int, float)) and not value) for name, value in others.items()})
    found = []
    for number, queries in enumerate(q):
        pages = slice(number, number + 1) if block_table is None else block_table[number].long()
        keys, values = (cache[pages].flatten(0, 1) for cache in (k_cache, v_cache))
        lengths = cache_seqlens if cache_seqlens is None or isinstance(cache_seqlens, int) else int(cache_seqlens[number])
        found.append(_attention(queries, keys[:lengths], values[:lengths], softmax_scale, causal, window_size))
    return torch.stack(found)
