"""``register_pass``, which adds a pass to the pipeline that compiles every kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import TypeVar

from xdsl.passes import ModulePass

from tilelang_npu.errors import TileError, door
from tilelang_npu.plugins.registry import add_registration
from tilelang_npu.transforms.infra.pass_options import options_of, summary_of
from tilelang_npu.transforms.infra.stage_table import AddedStage, add_stage, remove_stage

__all__ = ["register_pass"]

PassT = TypeVar("PassT", bound=type[ModulePass])


def register_pass(given: object = None, /, *, after: str = "", before: str = "") -> Callable[[PassT], PassT]:
    """Returns a decorator that registers the class of a pass. The pipeline that compiles kernels then runs the pass directly
    after or before a stage; ``tilelang-npu opt -p NAME`` runs the pass alone.

    The class must be a frozen dataclass that is derived from xDSL's ``ModulePass``. Its fields are the options of the pass. An
    option with the name of an option of the pipeline (``chip``, ``reuse``, ``synchronise`` ..., see
    ``transforms/infra/pass_options.py``) gets that option's value; any other option has its default.

    Args:
        given: nothing; what is passed here is refused with advice, such as a class below ``@register_pass`` without
            parentheses.
        after: the stage after which the pass runs; ``tilelang-npu stages`` lists the stages.
        before: the stage before which the pass runs. Exactly one of ``after`` and ``before`` must be given.

    Raises:
        TileError: T821, not exactly one of ``after`` and ``before`` is given, the class is no pass or no dataclass, an option
            has no default or has a type that cannot be written as text, or another plug-in has registered the name. T822, when
            the pipeline is next used: there is no such stage, or the pipeline has a pass of this name already.
    """
    if given is not None or bool(after) == bool(before):
        raise TileError("register_pass needs exactly one of after and before", code="T821",
                        help='name the stage next to which the pass runs: @register_pass(after="hoist-loads"), or before=...')

    def decorate(pass_type: PassT) -> PassT:
        name = getattr(pass_type, "name", None)
        if not isinstance(pass_type, type) or not issubclass(pass_type, ModulePass) or not isinstance(name, str):
            raise TileError(f"{pass_type!r} is no pass", code="T821",
                            help="derive the class from xdsl.passes.ModulePass, and give it a `name`")
        if not is_dataclass(pass_type):
            raise TileError(f"the pass {name!r} is no dataclass", code="T821",
                            help="write @dataclass(frozen=True) below @register_pass")
        try:
            options = options_of(pass_type)
        except TypeError as wrong:
            raise TileError(f"the pass {name!r}: {wrong}", code="T821",
                            help="give each field a type that can be written as text on the command line") from None
        if missing := [option.name for option in options if not option.default and not option.kind.startswith("a list")]:
            raise TileError(f"the pass {name!r}: its option {missing[0]} has no default", code="T821",
                            help="give the field a default: the pipeline creates the pass without a value for this option")

        def add() -> Callable[[], None]:
            add_stage(AddedStage(pass_type, after or before, after=bool(after), why=summary_of(pass_type)))
            return lambda: remove_stage(name)

        add_registration("pass", name, pass_type.__module__, pass_type, add)
        return pass_type

    return door(decorate)
