"""Lowers a traced kernel to HIVM.

The cache stores the text of the last stage, with the remarks of the passes on its operations. If an earlier stage is requested,
the kernel is lowered again. The result is the same, because it depends only on the traced module and the options.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.settings.file_writing import file_name, replacing
from tilelang_npu.runtime.settings.log import logger
from tilelang_npu.sharing import once, state_of
from tilelang_npu.transforms.infra.launch_names import launch_function_names
from tilelang_npu.transforms.infra.options import Options

if TYPE_CHECKING:
    from pathlib import Path

    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.frontend import Traced
    from tilelang_npu.target import Chip

FINAL = "hivm"
"""The name of the last stage."""


class Lowering:
    """A kernel's module after each stage of compilation.

    Args:
        traced: the traced kernel.
        chip: the chip to compile for.
        switches: the compiler switches, by their string keys.
        without: the names of the optimisations that are switched off.
        trial: whether the kernel is compiled only to time it: the verifier then runs only after the last pass, and the cache is
            not used.

    Attributes:
        name: the kernel's name.
        dialect: the dialect of TileLang in which the kernel is written.
        names: the names of the functions in the module that start the launches, one for each ``T.Kernel``.
        grids: the sizes of the grid of each ``T.Kernel``.
        options: the options of the passes.
        from_cache: whether the last stage was found in the cache.
        trial: the argument ``trial``.

    Raises:
        TileError: the kernel cannot be compiled.
    """

    def __init__(self, traced: Traced, chip: Chip, switches: Mapping[str, bool], without: tuple[str, ...] = (),
                 *, trial: bool = False) -> None:
        started = time.perf_counter()
        self._traced: Traced | bytes = traced
        self.trial, self.name, self.dialect, self.grids = trial, traced.name, traced.dialect, traced.grids
        self.names = tuple(launch_function_names(traced.symbol, len(traced.grids)))
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
        """Logs at level INFO that the kernel is compiled: its dialect, chip and switches, and the milliseconds that it took."""
        logger.info("%s: dialect %s, %s, switches %s, %s in %.0f ms", self.name, self.dialect, self.options.chip.name,
                    self._switches or "none", "from the cache" if self.from_cache else "lowered", milliseconds)

    def location_of_launch(self, number: int) -> Location | None:
        """Returns the source location of a ``T.Kernel`` by its number, from 0; None if it is not known."""
        from tilelang_npu.traced.locations import place_of

        return place_of(self.traced.launches[number].location)

    def __getstate__(self) -> dict[str, object]:
        from tilelang_npu.dialects.text import serialise_module

        traced = self._traced if isinstance(self._traced, bytes) else pickle.dumps(self._traced)
        return {**state_of(self), "from_cache": True, "_traced": traced,
                "_final": self._final if isinstance(self._final, Mapping) else serialise_module(self._final)}

    @once
    def traced(self) -> Traced:
        """The traced kernel. In an unpickled object, it is decoded on first use."""
        if not isinstance(self._traced, bytes):
            return self._traced
        traced: Traced = pickle.loads(self._traced)
        return traced

    @once
    def final(self) -> ModuleOp:
        """The module of the last stage. In an unpickled object, its text is parsed on first use."""
        if not isinstance(self._final, Mapping):
            return self._final
        from tilelang_npu.dialects.text import deserialise_module

        return deserialise_module(dict(self._final))

    def stages(self) -> list[str]:
        """Returns the names of the stages in order, from ``tile`` to ``hivm``."""
        from tilelang_npu.transforms import pipeline

        return pipeline.stage_names()

    def pipeline(self, stage: str | None = None) -> str:
        """Returns the passes with all their options as text for ``tilelang-npu opt -p``.

        Args:
            stage: the name of a stage, to get only the pass whose result is this stage; None for all passes, one per line.

        Raises:
            TileError: T710 there is no such stage, or the stage is ``tile``, which is not the result of a pass.
        """
        from tilelang_npu.transforms import pipeline

        if stage is None:
            return pipeline.pipeline_text(self.options)
        names = self.stages()[1:]
        if stage not in names:
            raise self._unknown_stage(stage, names)
        return pipeline.stage_text(stage, self.options)

    def module(self, stage: str = FINAL) -> ModuleOp:
        """Returns the kernel's module after a stage.

        Raises:
            TileError: T710 there is no such stage.
        """
        if stage == FINAL:
            return self.final
        if stage not in self.stages():
            raise self._unknown_stage(stage, self.stages())
        return self._earlier_stages[stage]

    @staticmethod
    def _unknown_stage(stage: str, names: list[str]) -> TileError:
        from difflib import get_close_matches

        near = get_close_matches(stage, names, n=1)
        return TileError(f"there is no stage {stage!r}", code="T710", notes=["the stages are " + ", ".join(names)],
                         help=f"did you mean {near[0]!r}?" if near else "kernel.stages() lists the stages")

    @once
    def _earlier_stages(self) -> dict[str, ModuleOp]:
        """The module of every stage but the last, by name; computed by lowering the kernel once more."""
        from tilelang_npu.transforms import pipeline

        stages = {"tile": self.traced.module}

        def observe(stage: str, module: ModuleOp) -> None:
            stages[stage] = module.clone()

        pipeline.lower(self.traced.module.clone(), self.options, observer=observe)
        return stages

    def write_texts(self, directory: Path) -> None:
        """Writes the text of the first stage to ``NAME.tile.mlir`` and that of the last stage to ``NAME.mlir`` in a
        directory."""
        from tilelang_npu.dialects.text import print_module

        directory.mkdir(parents=True, exist_ok=True)
        for stage, suffix in (("tile", "tile.mlir"), (FINAL, "mlir")):
            with replacing(directory / f"{file_name(self.name)}.{suffix}") as file:
                file.write(print_module(self.module(stage)).encode())
        logger.info("%s: texts written to %s", self.name, directory)
