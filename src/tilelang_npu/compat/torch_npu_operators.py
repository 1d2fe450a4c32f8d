"""The operators of ``torch_npu`` that scripts use as references, implemented with torch's own operators.

The operators compute in float32 and round once to the type of the result, as the vendor's operators do, and torch can
differentiate them. A call of an operator of ``torch_npu`` that is not implemented raises an error that names the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import torch
from torch import Tensor

from tilelang_npu.errors import TileError

__all__ = ["OPERATORS", "missing"]

_ALL = (1 << 31) - 1
"""The default of ``pre_tockens`` and ``next_tockens``, which includes all tokens."""


def npu_swiglu(x: Tensor, dim: int = -1) -> Tensor:
    """Returns ``silu(a) * b``, where ``a`` and ``b`` are the first and the second half of ``x`` along ``dim``."""
    a, b = x.float().chunk(2, dim)
    return (torch.nn.functional.silu(a) * b).to(x.dtype)


def npu_swiglu_backward(grad: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    """Returns the gradient of :func:`npu_swiglu` with respect to ``x``.

    Args:
        grad: the gradient of the result, with half as many elements as ``x``. If it has more elements, the first ones in memory
            are used, as on a card.
        x: the input of :func:`npu_swiglu`.
        dim: the axis that is halved.
    """
    a, b = x.float().chunk(2, dim)
    if grad.numel() > a.numel():
        grad = grad.contiguous().view(-1)[:a.numel()].view(a.shape)
    gate, up = torch.sigmoid(a), grad.float()
    return torch.cat((up * b * gate * (1 + a * (1 - gate)), up * a * gate), dim).to(x.dtype)


def npu_gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Returns the GELU of ``x``: exact if ``approximate`` is ``"none"``, or by the approximation ``"tanh"``."""
    return torch.nn.functional.gelu(x.float(), approximate=approximate).to(x.dtype)


def npu_gelu_backward(dy: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    """Returns the gradient of :func:`npu_gelu` with respect to ``x``, given the gradient ``dy`` of the result."""
    made: Tensor = torch.ops.aten.gelu_backward(dy.float(), x.float(), approximate=approximate).to(x.dtype)
    return made


def npu_fast_gelu(x: Tensor) -> Tensor:
    """Returns the vendor's approximation of GELU: ``x * sigmoid(1.702 |x|) * exp(0.851 (x - |x|))``."""
    wide = x.float()
    size = wide.abs()
    return (wide / (1 + torch.exp(-1.702 * size)) * torch.exp(0.851 * (wide - size))).to(x.dtype)


def npu_rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Returns ``x / rms(x) * gamma`` and ``1 / rms(x)``, where ``rms`` is the root mean square over the last axis."""
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (wide * scale * gamma.float()).to(x.dtype), scale


def npu_cross_entropy_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", ignore_index: int = -100,  # noqa: A002  (torch_npu's name)
    label_smoothing: float = 0.0, lse_square_scale_for_zloss: float = 0.0, return_zloss: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the cross entropy, the logarithms of the probabilities, the z-loss, and the log-sum-exp of each row.

    Args:
        input: the logits, [rows, classes].
        target: the class of each row.
        weight: the weight of each class; None for equal weights.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        ignore_index: the class number of rows that are ignored.
        label_smoothing: the amount of label smoothing, from 0 to 1.
        lse_square_scale_for_zloss: the factor of the squared log-sum-exp in the z-loss.
        return_zloss: has no effect; the z-loss is always returned.
    """
    wide = input.float()
    loss = torch.nn.functional.cross_entropy(wide, target.long(), weight, ignore_index=ignore_index, reduction=reduction,
                                             label_smoothing=label_smoothing)
    lse = torch.logsumexp(wide, -1)
    zloss = lse_square_scale_for_zloss * lse.square()
    return loss.to(input.dtype), torch.log_softmax(wide, -1).to(input.dtype), zloss.to(input.dtype), lse.to(input.dtype)


def npu_rotary_mul(x: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half") -> Tensor:
    """Returns ``x * r1 + rotated(x) * r2``, the rotary position embedding.

    For ``rotary_mode="half"``, ``rotated`` maps the halves ``(a, b)`` of the last axis to ``(-b, a)``; for ``"interleave"``, it
    does so for each pair of neighbouring elements.
    """
    wide = x.float()
    _only("npu_rotary_mul", rotary_mode=rotary_mode in ("half", "interleave"))
    if rotary_mode == "interleave":
        even, odd = wide[..., ::2], wide[..., 1::2]
        rotated = torch.stack((-odd, even), -1).flatten(-2)
    else:
        low, high = wide.chunk(2, -1)
        rotated = torch.cat((-high, low), -1)
    return (wide * r1.float() + rotated * r2.float()).to(x.dtype)


def npu_moe_token_permute(tokens: Tensor, indices: Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
                          ) -> tuple[Tensor, Tensor]:
    """Returns the tokens sorted by expert, and for each pair of token and expert the row in the sorted tokens.

    Args:
        tokens: the tokens, [tokens, hidden].
        indices: the experts of each token, [tokens, k] or [tokens].
        num_out_tokens: the number of sorted rows to return; None or 0 for all.
        padded_mode: must be False, as for the vendor's operator.
    """
    _only("npu_moe_token_permute", padded_mode=not padded_mode)
    flat = indices.reshape(-1)
    choices = 1 if indices.dim() == 1 else indices.shape[1]
    order = torch.argsort(flat, stable=True)
    kept = order[: num_out_tokens or flat.numel()]
    return tokens.index_select(0, kept // choices), torch.argsort(order, stable=True).to(torch.int32)


def npu_moe_token_unpermute(
    permuted_tokens: Tensor, sorted_indices: Tensor, probs: Tensor | None = None, padded_mode: bool = False,
    restore_shape: object = None
) -> Tensor:
    """Reverses :func:`npu_moe_token_permute`; with ``probs``, returns the weighted sum of the rows of each token.

    Args:
        permuted_tokens: the sorted rows, [tokens * k, hidden].
        sorted_indices: the row of each pair of token and expert.
        probs: the weight of each pair, [tokens, k]; None for one expert per token with weight 1.
        padded_mode: must be False.
        restore_shape: must be None.
    """
    _only("npu_moe_token_unpermute", padded_mode=not padded_mode, restore_shape=restore_shape is None)
    choices = 1 if probs is None else probs.shape[1]
    rows = permuted_tokens.index_select(0, sorted_indices.long()).float()
    rows = rows.reshape(-1, choices, permuted_tokens.shape[-1])
    if probs is not None:
        rows = rows * probs.float().unsqueeze(-1)
    return rows.sum(1).to(permuted_tokens.dtype)


def npu_dynamic_quant(x: Tensor, *, smooth_scales: Tensor | None = None, dst_type: object = None) -> tuple[Tensor, Tensor]:
    """Returns each row of ``x`` quantised to int8, and the scale of each row; a row's largest absolute value becomes 127."""
    _only("npu_dynamic_quant", dst_type=dst_type in (None, torch.int8))
    wide = x.float() if smooth_scales is None else x.float() * smooth_scales.float()
    scale = wide.abs().amax(-1) / 127.0
    return torch.round(wide / scale.clamp_min(1e-12).unsqueeze(-1)).to(torch.int8), scale


def npu_fusion_attention(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str, *, scale: float = 1.0,
    atten_mask: Tensor | None = None, keep_prob: float = 1.0, sparse_mode: int = 0, inner_precise: int = 0,
    pre_tockens: int = _ALL, next_tockens: int = _ALL,
    **others: object,
) -> tuple[Tensor | int | None, ...]:
    """Returns the attention of the queries, the softmax's maxima, the softmax's sums, and four placeholders.

    ``input_layout`` must be ``BNSD``, ``BSND`` or ``BSH``. Elements for which ``atten_mask`` is true are hidden. Without a
    mask, nothing is hidden, whatever the values of ``pre_tockens`` and ``next_tockens``; ``inner_precise`` has no effect.

    Raises:
        TileError: T190, an argument has a value that is not modelled.
    """
    _only("npu_fusion_attention", sparse_mode=sparse_mode == 0, **{name: value is None for name, value in others.items()})
    if atten_mask is not None:
        longest = max(query.shape[1], query.shape[-2], key.shape[1], key.shape[-2])
        _only("npu_fusion_attention", pre_tockens=pre_tockens >= longest, next_tockens=next_tockens >= longest)
    if input_layout not in ("BNSD", "BSND", "BSH") or keep_prob != 1.0:
        raise _refused("npu_fusion_attention", f"input_layout={input_layout!r}, keep_prob={keep_prob}")
    parts = [query.float(), key.float(), value.float()]
    if input_layout == "BSH":
        size = query.shape[-1] // head_num
        parts = [part.unflatten(-1, (-1, size)) for part in parts]
    if input_layout != "BNSD":
        parts = [part.transpose(1, 2) for part in parts]
    q, k, v = parts
    k, v = (part.repeat_interleave(q.shape[1] // part.shape[1], 1) for part in (k, v))
    scores = q @ k.transpose(-1, -2) * scale
    if atten_mask is not None:
        scores = scores.masked_fill(atten_mask.bool(), float("-inf"))
    highest = scores.amax(-1, keepdim=True)
    total = torch.exp(scores - highest).sum(-1, keepdim=True)
    out = torch.softmax(scores, -1) @ v
    if input_layout != "BNSD":
        out = out.transpose(1, 2)
    if input_layout == "BSH":
        out = out.flatten(-2)
    return (out.to(query.dtype), *(part.expand(*part.shape[:-1], 8) for part in (highest, total)), None, 0, 0, 0)


def npu_sparse_flash_attention(
    query: Tensor, key: Tensor, value: Tensor, sparse_indices: Tensor, scale_value: float, sparse_block_size: int = 1,
    actual_seq_lengths_query: Tensor | Sequence[int] | None = None,
    actual_seq_lengths_kv: Tensor | Sequence[int] | None = None, query_rope: Tensor | None = None,
    key_rope: Tensor | None = None,
    layout_query: str = "BSND", layout_kv: str = "BSND", sparse_mode: int = 3, block_table: Tensor | None = None,
    attention_mode: int | None = None, **others: object,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the attention of each query over the rows that its sparse indices select, and the softmax's maxima and sums.

    The layout of queries must be ``TND`` (with cumulative lengths of the batches) or ``BSND``. The layout of keys and values,
    which must have one head, must be ``PA_BSND`` (pages, which ``block_table`` lists) or ``BSND``. ``sparse_mode`` 3 hides the
    rows after the query.

    Raises:
        TileError: T190, an argument has a value that is not modelled.
    """
    _only("npu_sparse_flash_attention", sparse_mode=sparse_mode in (0, 3), attention_mode=attention_mode in (None, 0, 2),
          **{name: value is None for name, value in others.items()})
    if layout_query not in ("TND", "BSND") or layout_kv not in ("PA_BSND", "BSND") or key.shape[2] != 1:
        raise _refused("npu_sparse_flash_attention", f"{layout_query}, {layout_kv}, {key.shape[2]} heads of keys")
    keys = key if key_rope is None else torch.cat((key, key_rope), -1)
    queries = query if query_rope is None else torch.cat((query, query_rope), -1)
    batches = [slice(0, queries.shape[0])]
    if layout_query == "TND":
        assert actual_seq_lengths_query is not None
        ends = [int(end) for end in actual_seq_lengths_query]
        batches = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    else:
        batches = [slice(b * queries.shape[1], (b + 1) * queries.shape[1]) for b in range(queries.shape[0])]
        queries, sparse_indices = queries.flatten(0, 1), sparse_indices.flatten(0, 1)
    outs, highs, sums = [], [], []
    for number, rows in enumerate(batches):
        if layout_kv == "PA_BSND":
            assert block_table is not None
            own, seen = (pages[block_table[number].long()].flatten(0, 1) for pages in (keys, value))
        else:
            own, seen = keys[number], value[number]
        length = int(actual_seq_lengths_kv[number]) if actual_seq_lengths_kv is not None else own.shape[0]
        count = rows.stop - rows.start
        for place in range(rows.start, rows.stop):
            blocks = sparse_indices[place, 0].long()
            chosen = (blocks[blocks >= 0, None] * sparse_block_size + torch.arange(sparse_block_size)).flatten()
            last = length - count + place - rows.start if sparse_mode == 3 else length - 1
            chosen = chosen[chosen <= min(last, length - 1)]
            scores = queries[place].float() @ own[chosen, 0].float().T * scale_value
            weights = torch.softmax(scores, -1).to(query.dtype).float()
            outs.append((weights @ seen[chosen, 0].float()).to(query.dtype))
            highs.append(scores.amax(-1))
            sums.append(torch.exp(scores - scores.amax(-1, keepdim=True)).sum(-1))
    out, high, total = torch.stack(outs), torch.stack(highs), torch.stack(sums)
    return out.reshape(query.shape), high, total


OPERATORS = tuple(name for name in list(globals()) if name.startswith("npu_"))


def _only(name: str, **holds: bool) -> None:
    """Refuses a call with an argument that is not modelled: one whose value is false."""
    wrong = [argument for argument, modelled in holds.items() if not modelled]
    if wrong:
        raise _refused(name, f"this {' and '.join(wrong)}")


def _refused(name: str, what: str) -> TileError:
    from tilelang_npu.traced.author import user_location

    return TileError(f"torch_npu.{name} is not modelled for {what}", code="T190", location=user_location(),
                     help="compute the reference with torch's own operators")


def missing(name: str) -> Callable[..., NoReturn]:
    """Returns a function for an operator of ``torch_npu`` that is not implemented; calling the function raises T190.

    Raises:
        AttributeError: the name does not begin with ``npu_``, so it is no operator.
    """
    if not name.startswith("npu_"):
        msg = f"module 'torch_npu' has no attribute {name!r}"
        raise AttributeError(msg, name=name)

    def refuse(*_: object, **__: object) -> NoReturn:
        raise _refused(name, "any arguments")

    return refuse
