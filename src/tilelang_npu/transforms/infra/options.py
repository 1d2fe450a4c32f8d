"""The options of a compilation.

The passes are created from the options, and the options are a part of the key of a cached kernel. This module imports no pass,
so that a kernel can be read from the cache without loading the passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilelang_npu import target as chips
from tilelang_npu.source_dialects import SourceDialect
from tilelang_npu.target import Chip

__all__ = ["UPSTREAM", "Options"]

_MANAGED = ("split-tiles", "drop-dead-stores", "collapse-copies", "fuse-fixpipe", "make-persistent", "hoist-loads",
            "pipeline-loops", "overlap-iterations")
_NEEDED = {"synchronise": (*_MANAGED, "collapse-rows"), "cross_synchronise": _MANAGED, "divide": _MANAGED,
           "reuse": ("split-tiles", "hoist-loads", "pipeline-loops", "banks", "keep-apart"),
           "multi_buffer": ("multi-buffer", "pipeline-loops", "overlap-iterations")}
"""The optimisations that need an option to be on."""
_OFF = {"synchronise": "its author sets the waits inside the cores", "cross_synchronise": "its author orders the cores",
        "divide": "its author puts the work on the cores", "reuse": "memory planning is off",
        "multi_buffer": "multi-buffering is off"}
"""Why these optimisations are off if the option is."""
UPSTREAM = "tl.upstream"
"""The name of the pass switch for ``Options.upstream``. The environment variable ``TILELANG_NPU_AS`` sets the switch;
``pass_configs`` cannot."""


@dataclass(frozen=True)
class Options:
    """The options of a compilation.

    Attributes:
        chip: the chip to compile for.
        dialect: the source dialect, whose rules the kernel follows: ``npuir``, ``ascendc`` or ``gpu``.
        synchronise: whether to insert the waits between operations of one core. If false, the author writes the waits between
            statements, and the compiler inserts only those between the operations that one statement is lowered to.
        cross_synchronise: whether to insert the flags between the cores that order accesses to the author's tensors. Flags for
            workspaces that the compiler allocated are always inserted.
        reuse: whether buffers whose live ranges do not overlap may share bytes.
        multi_buffer: whether buffers of pipelined loops get several slots.
        divide: whether to divide the work between Cube core and Vector cores where the author does not. If false, the author of
            a kernel of both cores must use ``T.Scope``.
        mask_tails: whether reductions leave out the padding of tiles that reach past the end of a tensor.
        upstream: whether to compile as TileLang-Ascend's own compilers do (``--as upstream``).
        without: the names of the optimisations that are switched off (see ``optimisations``).
    """

    chip: Chip = field(default_factory=lambda: chips.chip(chips.DEFAULT))
    dialect: SourceDialect = "npuir"
    synchronise: bool = True
    cross_synchronise: bool = True
    reuse: bool = True
    multi_buffer: bool = True
    divide: bool = True
    mask_tails: bool = False
    upstream: bool = False
    without: tuple[str, ...] = ()

    @property
    def by_hand(self) -> bool:
        """Whether the author writes the waits between operations of one core: the opposite of ``synchronise``."""
        return not self.synchronise

    @property
    def mixed(self) -> bool:
        """Whether a kernel of both kinds of cores uses all Vector cores of a block without a request of the author.

        False in the ascendc dialect, where the author requests it.
        """
        return self.dialect != "ascendc"

    @property
    def reserve(self) -> bool:
        """Whether memory planning leaves free what TileLang-Ascend's ascendc branch reserves at the end of a memory."""
        return self.dialect == "ascendc" and self.reuse

    @property
    def exclusive(self) -> bool:
        """Whether flags between the cores that the author sets are an error, because the compiler inserts such flags itself."""
        return self.dialect == "ascendc" and self.divide

    @property
    def in_turn(self) -> bool:
        """Whether barriers separate the statements of serial code, as in the code of TileLang-Ascend's ascendc branch."""
        return self.upstream and self.synchronise and self.dialect == "ascendc"

    @property
    def orders(self) -> bool:
        """Whether the compiler inserts any waits or flags; if false, the author writes all of them."""
        return self.synchronise or self.cross_synchronise

    def has(self, optimisation: str) -> bool:
        """Whether an optimisation is not switched off by ``without``. Other options may still leave it nothing to do."""
        return optimisation not in self.without

    def off(self, optimisation: str) -> str:
        """Returns why an optimisation has nothing to do under the other options, as text; empty if there is no such reason."""
        if optimisation in ("pipeline-loops", "overlap-iterations") and not self.has("multi-buffer"):
            return "multi-buffer is switched off"
        return next((why for needed, why in _OFF.items() if optimisation in _NEEDED[needed] and not getattr(self, needed)), "")

    def does(self, optimisation: str) -> bool:
        """Whether an optimisation is on: not switched off by ``without``, and not without effect under the other options."""
        return self.has(optimisation) and not self.off(optimisation)

    @classmethod
    def from_switches(cls, chip: Chip, dialect: SourceDialect, switches: Mapping[str, object],
                      without: tuple[str, ...] = ()) -> Options:
        """Creates options from the pass switches (``pass_configs``) of a source dialect.

        In the ascendc dialect, synchronisation, memory planning and the division of work between the cores are off unless a
        switch turns them on. In the other dialects they are on; switches can turn synchronisation and multi-buffering off.

        Args:
            chip: the chip to compile for.
            dialect: the source dialect.
            switches: the values of the switches by name, such as ``tl.ascend_auto_sync``.
            without: the names of the optimisations that are switched off.
        """
        upstream = bool(switches.get(UPSTREAM))
        if dialect == "ascendc":
            return cls(chip=chip, dialect=dialect, synchronise=bool(switches.get("tl.ascend_auto_sync")),
                       cross_synchronise=bool(switches.get("tl.ascend_auto_cross_core_sync")),
                       reuse=bool(switches.get("tl.ascend_memory_planning")),
                       divide=bool(switches.get("tl.ascend_auto_cv_combine")),
                       mask_tails=bool(switches.get("tl.ascend_tail_mask")), upstream=upstream, without=without)
        return cls(chip=chip, dialect=dialect,
                   synchronise=not switches.get("npuir.disable_hivm_auto_inject_sync", False),
                   multi_buffer=bool(switches.get("npuir.enable_auto_multi_buffer", True)), upstream=upstream, without=without)
