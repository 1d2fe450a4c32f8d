"""``AnnealTemplate``, which recommends tile sizes with the interface of TileLang-Ascend's simulated annealing.

TileLang-Ascend searches randomly. Here all candidates are enumerated, since there are few, so equal calls return equal results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilelang_npu.compat.carver.arch import AscendArch
from tilelang_npu.compat.carver.templates import ElementwiseTemplate, FlashAttentionTemplate, Hint, MatmulTemplate
from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location

__all__ = ["AnnealTemplate", "Annealparam"]


@dataclass(frozen=True)
class Annealparam:
    """The parameters of TileLang-Ascend's search. ``topk`` is the number of results; the other parameters have no effect."""

    expand_neighbour: int = 2
    onestep_chance: float = 0.7
    topk: int = 10
    number: int = 100
    steps: int = 60
    temperature: float = 100
    alpha: float = 0.97
    custom_mem_multiply: float = 0.7


class AnnealTemplate:
    """Recommends tile sizes for an operation.

    Args:
        shape: the sizes of the operation: [M, N, K] for ``"Matmul"``; [rows, keys, row length] for ``"FlashAttention"``; the
            shape of the array for ``"Elementwise"``.
        use_template: the operation: ``"Matmul"``, ``"FlashAttention"`` or ``"Elementwise"``.
        annealparam: the parameters, of which only ``topk`` is used; None for the defaults.

    Raises:
        TileError: T190, ``use_template`` is another name.
    """

    def __init__(self, shape: Sequence[int], use_template: str = "Matmul", annealparam: Annealparam | None = None) -> None:
        self.shape = list(shape)
        self.topk = (annealparam or Annealparam()).topk
        if use_template not in ("Matmul", "FlashAttention", "Elementwise"):
            raise TileError(f"AnnealTemplate has no template {use_template!r}", code="T190", location=user_location(),
                            help="use 'Matmul', 'FlashAttention' or 'Elementwise', or list the configurations by hand")
        self.use_template = use_template

    def get_configs(self) -> list[Hint]:
        """Returns the recommended tile sizes, fastest estimate first: the sizes in ``kwargs``, the estimated cycles in
        ``value``.
        """
        arch = AscendArch()
        if self.use_template == "Elementwise":
            return ElementwiseTemplate(self.shape).with_arch(arch).recommend_hints(self.topk)
        if self.use_template == "Matmul":
            m, n, k = self.shape[:3]
            return MatmulTemplate(m, n, k).with_arch(arch).recommend_hints(self.topk)
        rows, keys, dim = self.shape[:3]
        template = FlashAttentionTemplate(head_dim=dim, seq_length=rows, seq_kv_length=keys)
        return template.with_arch(arch).recommend_hints(self.topk)
