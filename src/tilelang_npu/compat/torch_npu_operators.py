"""The operators of ``torch_npu`` that scripts use as references, written with torch's own operators.

They compute in float32 and round once to the type of the result, as the vendor's do, and torch can differentiate them. An
operator that is not here raises an error that names it when it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tilelang_npu.errors import TileError

torch: Any = import_module("torch")

__all__ = ["OPERATORS", "missing"]

_ALL = (1 << 31) - 1
"""The number of tokens that stands for all of them."""


def npu_swiglu(x: Any, dim: int = -1) -> Any:
    """``silu(a) * b``, where a and b are the halves of ``x`` along ``dim``."""
    a, b = x.float().chunk(2, dim)
    return (torch.nn.functional.silu(a) * b).to(x.dtype)


def npu_swiglu_backward(grad: Any, x: Any, dim: int = -1) -> Any:
    """The gradient of :func:`npu_swiglu` with respect to ``x``.

    ``grad`` has half the elements of ``x``; of a larger one the first elements are read, as the card reads its memory.
    """
    a, b = x.float().chunk(2, dim)
    if grad.numel() > a.numel():
        grad = grad.contiguous().view(-1)[:a.numel()].view(a.shape)
    gate, up = torch.sigmoid(a), grad.float()
    return torch.cat((up * b * gate * (1 + a * (1 - gate)), up * a * gate), dim).to(x.dtype)


def npu_gelu(x: Any, approximate: str = "none") -> Any:
    """``gelu``; ``approximate`` is ``"none"`` or ``"tanh"``."""
    return torch.nn.functional.gelu(x.float(), approximate=approximate).to(x.dtype)


def npu_gelu_backward(dy: Any, x: Any, *, approximate: str = "none") -> Any:
    """The gradient of :func:`npu_gelu`."""
    return torch.ops.aten.gelu_backward(dy.float(), x.float(), approximate=approximate).to(x.dtype)


def npu_fast_gelu(x: Any) -> Any:
    """``x * sigmoid(1.702 |x|) * exp(0.851 (x - |x|))``, the vendor's approximation."""
    wide = x.float()
    size = wide.abs()
    return (wide / (1 + torch.exp(-1.702 * size)) * torch.exp(0.851 * (wide - size))).to(x.dtype)


def npu_rms_norm(x: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Any, Any]:
    """``x / rms(x) * gamma`` over the last axis, and the reciprocal of the root mean square."""
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (wide * scale * gamma.float()).to(x.dtype), scale


def npu_cross_entropy_loss(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", ignore_index: int = -100,  # noqa: A002  (torch_npu's name)
    label_smoothing: float = 0.0, lse_square_scale_for_zloss: float = 0.0, return_zloss: bool = False,
) -> tuple[Any, Any, Any, Any]:
    """Cross entropy: the loss, the logarithms of the probabilities, the z-loss and the log-sum-exp for it."""
    wide = input.float()
    loss = torch.nn.functional.cross_entropy(wide, target.long(), weight, ignore_index=ignore_index, reduction=reduction,
                                             label_smoothing=label_smoothing)
    lse = torch.logsumexp(wide, -1)
    zloss = lse_square_scale_for_zloss * lse.square()
    return loss.to(input.dtype), torch.log_softmax(wide, -1).to(input.dtype), zloss.to(input.dtype), lse.to(input.dtype)


def npu_rotary_mul(x: Any, r1: Any, r2: Any, rotary_mode: str = "half") -> Any:
    """``x * r1 + rotated(x) * r2``: the halves swapped, or the pairs with ``"interleave"``; the first of the two is negated."""
    wide = x.float()
    _only("npu_rotary_mul", rotary_mode=rotary_mode in ("half", "interleave"))
    if rotary_mode == "interleave":
        even, odd = wide[..., ::2], wide[..., 1::2]
        rotated = torch.stack((-odd, even), -1).flatten(-2)
    else:
        low, high = wide.chunk(2, -1)
        rotated = torch.cat((-high, low), -1)
    return (wide * r1.float() + rotated * r2.float()).to(x.dtype)


def npu_moe_token_permute(tokens: Any, indices: Any, num_out_tokens: int | None = None, padded_mode: bool = False) -> Any:
    """Tokens sorted by their experts, and for each (token, choice) its row among the sorted tokens.

    Args:
        tokens: [tokens, hidden].
        indices: the experts of each token, [tokens, k] or [tokens].
        num_out_tokens: the number of rows to keep; all where None or 0.
        padded_mode: False, as for the vendor's operator.
    """
    _only("npu_moe_token_permute", padded_mode=not padded_mode)
    flat = indices.reshape(-1)
    choices = 1 if indices.dim() == 1 else indices.shape[1]
    order = torch.argsort(flat, stable=True)
    kept = order[: num_out_tokens or flat.numel()]
    return tokens.index_select(0, kept // choices), torch.argsort(order, stable=True).to(torch.int32)


def npu_moe_token_unpermute(
    permuted_tokens: Any, sorted_indices: Any, probs: Any = None, padded_mode: bool = False, restore_shape: Any = None
) -> Any:
    """The inverse of :func:`npu_moe_token_permute`; with ``probs`` [tokens, k] the weighted sum of a token's rows."""
    _only("npu_moe_token_unpermute", padded_mode=not padded_mode, restore_shape=restore_shape is None)
    choices = 1 if probs is None else probs.shape[1]
    rows = permuted_tokens.index_select(0, sorted_indices.long()).float()
    rows = rows.reshape(-1, choices, permuted_tokens.shape[-1])
    if probs is not None:
        rows = rows * probs.float().unsqueeze(-1)
    return rows.sum(1).to(permuted_tokens.dtype)


def npu_dynamic_quant(x: Any, *, smooth_scales: Any = None, dst_type: Any = None) -> tuple[Any, Any]:
    """Each row as int8, and its scale: the largest absolute value of a row becomes 127."""
    _only("npu_dynamic_quant", dst_type=dst_type in (None, torch.int8))
    wide = x.float() if smooth_scales is None else x.float() * smooth_scales.float()
    scale = wide.abs().amax(-1) / 127.0
    return torch.round(wide / scale.clamp_min(1e-12).unsqueeze(-1)).to(torch.int8), scale


def npu_fusion_attention(
    query: Any, key: Any, value: Any, head_num: int, input_layout: str, *, scale: float = 1.0, atten_mask: Any = None,
    keep_prob: float = 1.0, sparse_mode: int = 0, inner_precise: int = 0, pre_tockens: int = _ALL, next_tockens: int = _ALL,
    **others: object,
) -> tuple[Any, ...]:
    """Attention; ``atten_mask`` is true for hidden elements. Layouts are ``BNSD``, ``BSND`` and ``BSH``.

    Without a mask nothing is hidden, whatever ``pre_tockens`` and ``next_tockens`` are; ``inner_precise`` has no effect.
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
    query: Any, key: Any, value: Any, sparse_indices: Any, scale_value: float, sparse_block_size: int = 1,
    actual_seq_lengths_query: Any = None, actual_seq_lengths_kv: Any = None, query_rope: Any = None, key_rope: Any = None,
    layout_query: str = "BSND", layout_kv: str = "BSND", sparse_mode: int = 3, block_table: Any = None,
    attention_mode: int | None = None, **others: object,
) -> tuple[Any, Any, Any]:
    """Attention of each query over the rows that its indices choose: the result, and the softmax's maxima and sums.

    Queries are ``TND`` (with cumulative lengths of the batches) or ``BSND``; keys and values ``PA_BSND`` (pages, which
    ``block_table`` lists) or ``BSND``, with one head. ``sparse_mode`` 3 hides the rows after the query.
    """
    _only("npu_sparse_flash_attention", sparse_mode=sparse_mode in (0, 3), attention_mode=attention_mode in (None, 0, 2),
          **{name: value is None for name, value in others.items()})
    if layout_query not in ("TND", "BSND") or layout_kv not in ("PA_BSND", "BSND") or key.shape[2] != 1:
        raise _refused("npu_sparse_flash_attention", f"{layout_query}, {layout_kv}, {key.shape[2]} heads of keys")
    keys = key if key_rope is None else torch.cat((key, key_rope), -1)
    queries = query if query_rope is None else torch.cat((query, query_rope), -1)
    batches = [slice(0, queries.shape[0])]
    if layout_query == "TND":
        ends = [int(end) for end in actual_seq_lengths_query]
        batches = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    else:
        batches = [slice(b * queries.shape[1], (b + 1) * queries.shape[1]) for b in range(queries.shape[0])]
        queries, sparse_indices = queries.flatten(0, 1), sparse_indices.flatten(0, 1)
    outs, highs, sums = [], [], []
    for number, rows in enumerate(batches):
        paged = layout_kv == "PA_BSND"
        own = keys[block_table[number].long()].flatten(0, 1) if paged else keys[number]
        seen = value[block_table[number].long()].flatten(0, 1) if paged else value[number]
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


def missing(name: str) -> Any:
    """A function that refuses the call of an operator which is not here; other names do not exist."""
    if not name.startswith("npu_"):
        msg = f"module 'torch_npu' has no attribute {name!r}"
        raise AttributeError(msg, name=name)

    def refuse(*_: object, **__: object) -> Any:
        raise _refused(name, "any arguments")

    return refuse
