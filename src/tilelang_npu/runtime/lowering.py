"""One traced kernel on its way to HIVM: lowered once, its stages on demand.

What the cache keeps is the text of the last stage, and what passes remarked on its ops. The others are made again when
somebody asks for one: lowering is a function of the traced module and the options, so they come out the same.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime import cache
from tilelang_npu.runtime.log import logger
from tilelang_npu.sharing import once, state_of
from tilelang_npu.transforms.ir.launch_names import names_of
from tilelang_npu.transforms.ir.options import Options

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.frontend import Traced
    from tilelang_npu.target import Chip

__all__ = ["FINAL", "Lowering"]

FINAL = "hivm"


class Lowering:
    """A kernel in all its stages.

    Args:
        traced: what the front end made of it.
        chip, switches, without: what it is compiled for, and how.
        tried: whether it is timed and forgotten: then it is verified behind the last pass alone, and the cache is not asked.

    Attributes:
        name: the kernel's name.
        dialect: the dialect of its source.
        names: of its launches, in the module.
        grids: of each ``T.Kernel`` its sizes.
        options: what the passes are told.
        from_cache: whether the last stage was found in the cache.
        tried: see above.

    Raises:
        TileError: the kernel cannot be compiled; the pass says why and where.
    """

    def __init__(self, traced: Traced, chip: Chip, switches: Mapping[str, bool], without: tuple[str, ...] = (),
                 *, tried: bool = False) -> None:
        started = time.perf_counter()
        self._traced: Traced | bytes = traced
        self.tried, self.name, self.dialect, self.grids = tried, traced.name, traced.dialect, traced.grids
        self.names = tuple(names_of(traced.symbol, len(traced.grids)))
        self.options = Options.from_switches(chip, traced.dialect, switches, without)
        key = "" if tried else cache.digest(self._source(), {"options": self.options})
        entry = cache.load(key) if key else None
        self.from_cache = entry is not None
        if entry is None:
            from tilelang_npu.dialects.text import serialise_module
            from tilelang_npu.transforms import pipeline  # loads all passes, which a kernel from the cache needs none of

            made = pipeline.lower(traced.module.clone(), self.options, each=not tried)
            self._final: ModuleOp | Mapping[str, str] = made
            if key:
                cache.store(key, serialise_module(made))
        else:
            self._final = entry
            _ = self.final  # an entry that cannot be read is found here
        self._switches = dict(switches)
        self.log((time.perf_counter() - started) * 1000)

    def log(self, milliseconds: float) -> None:
        """Tell who listens that the kernel is there."""
        logger.info("%s: dialect %s, %s, switches %s, %s in %.0f ms", self.name, self.dialect, self.options.chip.name,
                    self._switches or "none", "from the cache" if self.from_cache else "lowered", milliseconds)

    def place(self, number: int) -> Location | None:
        """Where one of its ``T.Kernel`` is written."""
        from tilelang_npu.traced.locations import place_of

        return place_of(self.traced.launches[number].location)

    def _source(self) -> str:
        """The text of the kernel as traced, with what its lines are."""
        from tilelang_npu.dialects.text import print_module

        return print_module(self.traced.module, generic=True, locations=True)

    def __getstate__(self) -> dict[str, Any]:
        from tilelang_npu.dialects.text import serialise_module

        traced = self._traced if isinstance(self._traced, bytes) else pickle.dumps(self._traced)
        return {**state_of(self), "from_cache": True, "_traced": traced,
                "_final": self._final if isinstance(self._final, Mapping) else serialise_module(self._final)}

    @once
    def traced(self) -> Traced:
        """What the front end made of it; behind a pickle it is read when somebody asks."""
        if not isinstance(self._traced, bytes):
            return self._traced
        read: Traced = pickle.loads(self._traced)
        return read

    @once
    def final(self) -> ModuleOp:
        """The last stage; behind a pickle, and from the cache, it is read when somebody asks."""
        if not isinstance(self._final, Mapping):
            return self._final
        from tilelang_npu.dialects.text import deserialise_module

        return deserialise_module(dict(self._final))

    def stages(self) -> list[str]:
        """Names of the stages in order, from ``tile`` to ``hivm``."""
        from tilelang_npu.transforms import pipeline

        return pipeline.stage_names(self.options)

    def module(self, stage: str = FINAL) -> ModuleOp:
        """The kernel as it is after that stage.

        Raises:
            TileError: T710 there is no such stage.
        """
        if stage == FINAL:
            return self.final
        if stage not in self.stages():
            from difflib import get_close_matches

            near = get_close_matches(stage, self.stages(), n=1)
            msg = f"there is no stage {stage!r}"
            raise TileError(msg, code="T710", notes=["the stages are " + ", ".join(self.stages())],
                            help=f"did you mean {near[0]!r}?" if near else "kernel.stages() lists them")
        return self._between[stage]

    @once
    def _between(self) -> dict[str, ModuleOp]:
        """Every stage but the last, by lowering once more."""
        from tilelang_npu.transforms import pipeline

        seen = {"tile": self.traced.module}

        def keep(stage: str, module: ModuleOp) -> None:
            seen[stage] = module.clone()

        pipeline.lower(self.traced.module.clone(), self.options, observer=keep)
        return seen
