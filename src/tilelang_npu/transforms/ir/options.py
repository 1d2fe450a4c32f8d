"""What a compilation is for: what the passes are made from, and the key of the cache has. Whoever finds a kernel in the cache
loads no pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilelang_npu import target as chips
from tilelang_npu.target import Chip

__all__ = ["Options"]

_MANAGED = ("drop-dead-stores", "collapse-copies", "fuse-fixpipe", "hoist-loads", "overlap-iterations")
_NEEDED = {"synchronise": (*_MANAGED, "collapse-rows"), "cross_synchronise": _MANAGED, "divide": _MANAGED,
           "reuse": ("hoist-loads", "banks", "keep-apart"), "multi_buffer": ("multi-buffer", "overlap-iterations")}
"""Which optimisations want which of the options on."""
_OFF = {"synchronise": "its author sets the waits inside the cores", "cross_synchronise": "its author orders the cores",
        "divide": "its author puts the work on the cores", "reuse": "memory planning is off",
        "multi_buffer": "multi-buffering is off"}
"""What it means that they are not."""


@dataclass(frozen=True)
class Options:
    """What a compilation is for.

    Attributes:
        chip: the chip.
        dialect: ``npuir``, ``ascendc`` or ``gpu``: whose rules the source follows.
        synchronise: insert the waits inside a core; off where the user writes them, those inside what one statement becomes
            excepted.
        cross_synchronise: insert the flags between the cores around the user's own tensors; those around workspaces that
            the compiler made are always there.
        reuse: let buffers whose lives do not meet share bytes.
        multi_buffer: give pipelined loops several slots per buffer.
        divide: divide work between Cube and Vector where the user does not; off, a kernel of both says it with ``T.Scope``.
        without: optimisations that are off, by name (see ``optimisations``).
    """

    chip: Chip = field(default_factory=lambda: chips.chip(chips.DEFAULT))
    dialect: str = "npuir"
    synchronise: bool = True
    cross_synchronise: bool = True
    reuse: bool = True
    multi_buffer: bool = True
    divide: bool = True
    without: tuple[str, ...] = ()

    @property
    def orders(self) -> bool:
        """Whether the compiler orders what is done to the tensors; off, the author does it all."""
        return self.synchronise or self.cross_synchronise

    def has(self, optimisation: str) -> bool:
        """Whether an optimisation is not switched off."""
        return optimisation not in self.without

    def off(self, optimisation: str) -> str:
        """Why an optimisation that nobody switched off has nothing to act on; empty where it is on."""
        if optimisation == "overlap-iterations" and not self.has("multi-buffer"):
            return "multi-buffer is switched off"
        return next((why for needed, why in _OFF.items() if optimisation in _NEEDED[needed] and not getattr(self, needed)), "")

    def does(self, optimisation: str) -> bool:
        """Whether an optimisation is on."""
        return self.has(optimisation) and not self.off(optimisation)

    @classmethod
    def from_switches(cls, chip: Chip, dialect: str, switches: Mapping[str, object], without: tuple[str, ...] = ()) -> Options:
        """The options that a source dialect's pass switches mean.

        On the ascendc branch synchronisation and memory planning are off unless asked for; on the npuir branch the
        toolchain does both unless told not to.
        """
        if dialect == "ascendc":
            return cls(chip=chip, dialect=dialect, synchronise=bool(switches.get("tl.ascend_auto_sync")),
                       cross_synchronise=bool(switches.get("tl.ascend_auto_cross_core_sync")),
                       reuse=bool(switches.get("tl.ascend_memory_planning")),
                       divide=bool(switches.get("tl.ascend_auto_cv_combine")), without=without)
        return cls(chip=chip, dialect=dialect,
                   synchronise=not switches.get("npuir.disable_hivm_auto_inject_sync", False),
                   multi_buffer=bool(switches.get("npuir.enable_auto_multi_buffer", True)), without=without)
