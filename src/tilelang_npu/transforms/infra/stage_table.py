"""The table of the pipeline's stages: those of ``transforms/pipeline.py``, and those that plug-ins add.

Passes that run the rest of the pipeline on a copy (:mod:`tilelang_npu.transforms.infra.plan_trial`) read the table too.
Therefore this module imports no pass; ``pipeline.py`` enters the stages into the table when it is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from xdsl.passes import ModulePass

from tilelang_npu.errors import InternalError, TileError
from tilelang_npu.plugin_loading import load_plugins
from tilelang_npu.transforms.infra.levels import Level
from tilelang_npu.transforms.infra.options import Options
from tilelang_npu.transforms.infra.pass_options import create_pass

__all__ = ["AddedStage", "Row", "add_stage", "define_rows", "kernel_rows", "remove_stage"]


@dataclass(frozen=True)
class Row:
    """One stage of a pipeline: a pass at a position.

    Attributes:
        name: the name of the stage.
        pass_type: the class of the stage's pass. ``create_pass`` describes the values of the pass's options.
        level: the level of the module after the stage (see ``levels``).
        why: why the stage is at this position, as text.
    """

    name: str
    pass_type: type[ModulePass]
    level: Level
    why: str

    def create_pass(self, options: Options, **values: object) -> ModulePass:
        """Creates the stage's pass for a compilation.

        Args:
            options: the options of the compilation.
            values: values of the pass's options, which take precedence over those that follow from ``options``.
        """
        return create_pass(self.pass_type, options, **values)


@dataclass(frozen=True)
class AddedStage:
    """A stage that a plug-in adds.

    Attributes:
        pass_type: the class of the stage's pass; the name of the pass is the name of the stage.
        neighbour: the name of the stage next to which the new stage is inserted.
        after: whether the new stage is inserted after ``neighbour``; otherwise it is inserted before it.
        why: why the new stage is at this position, as text.
    """

    pass_type: type[ModulePass]
    neighbour: str
    after: bool
    why: str


_ROWS: list[Row] = []
_ADDED: list[AddedStage] = []


def define_rows(rows: Iterable[Row]) -> None:
    """Sets the stages of the package's own pipeline, in order; replaces those that were set before."""
    _ROWS[:] = rows


def add_stage(stage: AddedStage) -> None:
    """Adds the stage of a plug-in to the pipeline, and removes an earlier added stage of the same name.

    Stages that are added before, or after, the same stage keep the order in which they were added.
    """
    remove_stage(stage.pass_type.name)
    _ADDED.append(stage)


def remove_stage(name: str) -> None:
    """Removes the stage with a name that a plug-in added; does nothing if there is none."""
    _ADDED[:] = [stage for stage in _ADDED if stage.pass_type.name != name]


def kernel_rows() -> tuple[Row, ...]:
    """Returns the stages that compile a kernel from the tile dialect to HIVM, in order, those of plug-ins included.

    Plug-ins are loaded first.

    Raises:
        TileError: T822, a plug-in added a stage next to a stage that does not exist, or a stage whose name is that of another
            stage or pass of the pipeline.
        InternalError: ``pipeline.py`` is not imported.
    """
    load_plugins()
    if not _ROWS:
        raise InternalError("the table of stages is empty: import tilelang_npu.transforms.pipeline first")
    rows = list(_ROWS)
    for stage in _ADDED:
        names, name = [row.name for row in rows], stage.pass_type.name
        if name in names or any(row.pass_type.name == name for row in rows):
            raise TileError(f"the pass {name!r} of a plug-in has the name of a pass of the pipeline", code="T822",
                            help="give the pass another name")
        if stage.neighbour not in names:
            near = get_close_matches(stage.neighbour, names, n=1)
            raise TileError(f"the pass {name!r} of a plug-in is to be next to {stage.neighbour!r}, which is no stage",
                            code="T822", notes=["the stages are " + ", ".join(names)],
                            help=f"did you mean {near[0]!r}?" if near else f"before={names[0]!r} is the place before all passes"
                            if stage.neighbour == "tile" else "`tilelang-npu stages` lists the stages")
        place = names.index(stage.neighbour)
        if stage.after:
            # Passes that were added after the same stage come first.
            place += 1
            while place < len(rows) and any(one.neighbour == stage.neighbour and one.after
                                            and one.pass_type is rows[place].pass_type for one in _ADDED):
                place += 1
        level = rows[place - 1].level if place else rows[0].level
        rows.insert(place, Row(name, stage.pass_type, level, stage.why))
    return tuple(rows)
