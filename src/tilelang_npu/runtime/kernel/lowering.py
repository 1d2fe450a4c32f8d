"""A traced kernel and its lowering to HIVM.

The cache stores the text of the last stage with the remarks of the passes on its operations. The earlier stages are lowered
again when one of them is asked for: lowering is a function of the traced module and the options, so they come out the same.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.settings.file_writing import file_name, replacing
from tilelang_npu.runtime.settings.log import logger
from tilelang_npu.sharing import once, state_of
from tilelang_npu.transforms.ir.launch_names import names_of
from tilelang_npu.transforms.ir.options import Options

if TYPE_CHECKING:
    from pathlib import Path

    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.frontend import Traced
    from tilelang_npu.target import Chip

FINAL = "hivm"
"""The name of the last stage."""


class Lowering:
    """A kernel in all its stages.

    Args:
        traced: the traced kernel.
        chip, switches, without: the chip, the compiler switches, and the optimisations that are switched off.
        trial: whether the kernel is only timed and then dropped: the verifier then runs after the last pass alone, and the
            cache is not used.

    Attributes:
        name: the kernel's name.
        dialect: the dialect of its source.
        names: the names of its launches in the module.
        grids: the sizes of each ``T.Kernel``.
        options: the options of the passes.
        from_cache: whether the last stage was found in the cache.
        trial: see above.

    Raises:
        TileError: the kernel cannot be compiled.
    """

    def __init__(self, traced: Traced, chip: Chip, switches: Mapping[str, bool], without: tuple[str, ...] = (),
                 *, trial: bool = False) -> None:
        started = time.perf_counter()
        self._traced: Traced | bytes = traced
        self.trial, self.name, self.dialect, self.grids = trial, traced.name, traced.dialect, traced.grids
        self.names = tuple(names_of(traced.symbol, len(traced.grids)))
        self.options = Options.from_switches(chip, traced.dialect, switches, without)
        key = "" if trial else self._cache_key()
        entry = entries.load(key) if key else None
        self.from_cache = entry is not None
        if entry is None:
            from tilelang_npu.dialects.text import serialise_module
            from tilelang_npu.transforms import pipeline  # loads all passes: a kernel from the cache needs none

            lowered = pipeline.lower(traced.module.clone(), self.options, each=not trial)
            self._final: ModuleOp | Mapping[str, str] = lowered
            if key:
                entries.store(key, serialise_module(lowered))
        else:
            self._final = entry
            _ = self.final  # parses the entry, so that one that cannot be read is an error here
        self._switches = dict(switches)
        self.log((time.perf_counter() - started) * 1000)

    def _cache_key(self) -> str:
        from tilelang_npu.dialects.text import print_module

        return entries.digest(print_module(self.traced.module, generic=True, locations=True), {"options": self.options})

    def log(self, milliseconds: float) -> None:
        """Logs that the kernel is compiled."""
        logger.info("%s: dialect %s, %s, switches %s, %s in %.0f ms", self.name, self.dialect, self.options.chip.name,
                    self._switches or "none", "from the cache" if self.from_cache else "lowered", milliseconds)

    def location_of_launch(self, number: int) -> Location | None:
        """Returns where the ``T.Kernel`` of this number stands in the source."""
        from tilelang_npu.traced.locations import place_of

        return place_of(self.traced.launches[number].location)

    def __getstate__(self) -> dict[str, Any]:
        from tilelang_npu.dialects.text import serialise_module

        traced = self._traced if isinstance(self._traced, bytes) else pickle.dumps(self._traced)
        return {**state_of(self), "from_cache": True, "_traced": traced,
                "_final": self._final if isinstance(self._final, Mapping) else serialise_module(self._final)}

    @once
    def traced(self) -> Traced:
        """The traced kernel. After unpickling it is decoded when it is first read."""
        if not isinstance(self._traced, bytes):
            return self._traced
        traced: Traced = pickle.loads(self._traced)
        return traced

    @once
    def final(self) -> ModuleOp:
        """The last stage. After unpickling, and from the cache, it is parsed when it is first read."""
        if not isinstance(self._final, Mapping):
            return self._final
        from tilelang_npu.dialects.text import deserialise_module

        return deserialise_module(dict(self._final))

    def stages(self) -> list[str]:
        """Returns the names of the stages in order, from ``tile`` to ``hivm``."""
        from tilelang_npu.transforms import pipeline

        return pipeline.stage_names(self.options)

    def module(self, stage: str = FINAL) -> ModuleOp:
        """Returns the kernel after a stage.

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
        return self._earlier_stages[stage]

    @once
    def _earlier_stages(self) -> dict[str, ModuleOp]:
        """Every stage but the last, made by lowering the kernel once more."""
        from tilelang_npu.transforms import pipeline

        stages = {"tile": self.traced.module}

        def observe(stage: str, module: ModuleOp) -> None:
            stages[stage] = module.clone()

        pipeline.lower(self.traced.module.clone(), self.options, observer=observe)
        return stages

    def write_texts(self, directory: Path) -> None:
        """Writes the first and the last stage into a directory: ``NAME.tile.mlir`` and ``NAME.mlir``."""
        from tilelang_npu.dialects.text import print_module

        directory.mkdir(parents=True, exist_ok=True)
        for stage, suffix in (("tile", "tile.mlir"), (FINAL, "mlir")):
            with replacing(directory / f"{file_name(self.name)}.{suffix}") as file:
                file.write(print_module(self.module(stage)).encode())
        logger.info("%s: texts written to %s", self.name, directory)
