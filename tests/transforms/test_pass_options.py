"""Pipelines as text: every option of every pass has a value, and ``opt -p`` on a stage's text does the same as a
compilation."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.transforms import pipeline
from tilelang_npu.transforms.infra.optimisations import OPTIMISATIONS
from tilelang_npu.transforms.infra.options import Options
from tilelang_npu.transforms.infra.pass_options import create_pass, options_of, parse_passes, pass_text, summary_of
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial
from transforms.pass_kernels import CALLS

LADDERS = ("softmax_masked", "rms_norm", "split_k")
"""Ladders whose last steps are compared stage by stage; ``benchmarks/stages.py`` compares every kernel of the examples."""


@dataclass(frozen=True)
class Sample(ModulePass):
    """A pass with an option of each type.

    Attributes:
        count: a number of things,
            on two lines.
        factor, shift: two numbers.
    """

    name = "sample"
    count: int
    factor: float = 1.5
    shift: int | None = None
    mode: Literal["fast", "exact"] = "fast"
    label: str = "a b"
    names: tuple[str, ...] = ("x", "y")
    chip: str = "none"
    enabled: bool = True
    banks: bool = True
    reuse: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Plain(ModulePass):
    """The pass."""

    name = "plain"
    level: ClassVar[int] = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Nothing."""


KNOWN = {"sample": Sample, "plain": Plain}


# -- options of the package's passes -----------------------------------------------------------------------------------


def test_a_pass_given_by_name_alone_has_the_options_of_the_default_pipeline() -> None:
    for _, made in (*pipeline.kernel_passes(Options()), *pipeline.foreign_passes(Options())):
        assert made == type(made)()


def test_every_option_has_a_type_a_default_and_a_line() -> None:
    for name, pass_type in pipeline.passes().items():
        assert summary_of(pass_type).endswith((".", ":")) or "." in summary_of(pass_type), name
        for option in options_of(pass_type):
            assert option.kind, (name, option)
            assert option.default or option.kind.startswith("a list"), (name, option)
            assert option.doc, (name, option)


def test_every_option_is_given_its_value_by_its_name() -> None:
    """Of the package's own passes; only ``quiet`` is for trials alone."""
    known = {field.name for field in fields(Options)} | {name.replace("-", "_") for name in OPTIMISATIONS}
    known |= {name for name, value in vars(Options).items() if isinstance(value, property)}
    found = {option.name for pass_type in pipeline.passes().values() for option in options_of(pass_type)}
    assert found - known == {"enabled", "quiet"}


@pytest.mark.parametrize("options", [
    Options(), Options(synchronise=False), Options(dialect="ascendc", divide=False, cross_synchronise=False),
    Options(reuse=False, multi_buffer=False), Options(without=tuple(sorted(OPTIMISATIONS))),
    *(Options(without=(name,)) for name in OPTIMISATIONS)])
def test_the_text_of_a_pipeline_gives_its_passes(options: Options) -> None:
    expected = [made for _, made in pipeline.kernel_passes(options)]
    assert pipeline.passes_of_text(pipeline.pipeline_text(options)) == expected
    for stage in pipeline.stage_names()[1:]:
        assert pipeline.passes_of_text(pipeline.stage_text(stage, options)) == [dict(pipeline.kernel_passes(options))[stage]]


def test_a_chip_of_a_file_is_named_by_its_path() -> None:
    chip = replace(Options().chip, name="Mine", file="/some where/mine.toml")
    text = pipeline.pipeline_text(Options(chip=chip))
    assert 'infer-scopes{chip="/some where/mine.toml"}' in text.replace(",\n", "\n").splitlines()


# -- values and texts --------------------------------------------------------------------------------------------------


def test_names_say_the_values() -> None:
    options = Options(reuse=False, without=("banks",))
    made = create_pass(Sample, options, count=3)
    assert made == Sample(3, chip="Ascend910B2", enabled=True, banks=False, reuse=False)
    assert create_pass(Plain, options, count=3) == Plain()


@pytest.mark.parametrize("made", [
    Sample(1), Sample(-7, factor=1e-05, shift=4, mode="exact", label='say "x" \\ {a=b}, c', names=(), enabled=False),
    Sample(0, label="", names=("a b", "none", "true")), Sample(2, label="none", names=("one",)), Plain()])
def test_text_and_pass_agree(made: ModulePass) -> None:
    text = pass_text(made)
    assert parse_passes(text, KNOWN) == [made]
    assert parse_passes(f"builtin.module( {text} ,\n  plain)", KNOWN) == [made, Plain()]
    assert text == pass_text(parse_passes(text.replace("-", "-"), KNOWN)[0])


def test_spaces_and_hyphens() -> None:
    assert parse_passes("  plain ,\n sample { count = 3  names = a , b\tshift=none }\n", KNOWN) == [
        Plain(), Sample(3, names=("a", "b"))]
    assert parse_passes("", KNOWN) == parse_passes(" \n", KNOWN) == parse_passes("builtin.module()", KNOWN) == []
    made = pipeline.passes_of_text("plan-memory{keep-apart=false}")
    assert made == pipeline.passes_of_text("plan-memory{keep_apart=false}")


@pytest.mark.parametrize(("text", "message", "help_"), [
    ("plian", "there is no pass 'plian'", "did you mean plain?"),
    ("sample{count=1 factr=2}", "pass sample has no option 'factr'", "did you mean factor?"),
    ("plain{depth=3}", "pass plain has no option 'depth'", "opt --list"),
    ("sample", "pass sample needs a value of its option count", "sample{count=...}"),
    ("sample{count=x}", "option count of pass sample is an integer, not 'x'", "opt --list"),
    ("sample{count=1,2}", "option count of pass sample is an integer, not '1,2'", "opt --list"),
    ("sample{count=1.5}", "is an integer, not '1.5'", "opt --list"),
    ("sample{count=}", "is an integer, not ''", "opt --list"),
    ("sample{count=1 factor=fast}", "is a number, not 'fast'", "opt --list"),
    ("sample{count=1 enabled=1}", "option enabled of pass sample is true or false, not '1'", "opt --list"),
    ("sample{count=1 enabled}", "option enabled of pass sample has no value", "VALUE is true or false"),
    ("sample{count=1 mode=slow}", "is fast or exact, not 'slow'", "opt --list"),
    ("sample{count=1 shift=x}", "is an integer or none, not 'x'", "opt --list"),
    ("sample{count=1 count=2}", "option count of pass sample is given twice", "once"),
    ("sample{count=1", "expected the name of an option, or } at the end", "first,second{option=value"),
    ("sample{count=1}}", "expected , before '}'", "first,second{option=value"),
    ("plain plain", "expected , before 'plain'", "first,second{option=value"),
    ("plain,", "expected the name of a pass at the end", "first,second{option=value"),
    (",plain", "expected the name of a pass before ',plain'", "first,second{option=value"),
    ("plain;plain", "expected , before ';plain'", "first,second{option=value"),
    ("sample{count=1 names=a,}", "expected a value after the comma before '}'", "first,second{option=value"),
    ('sample{count=1 label="x}', "expected a value before '\"x}'", "first,second{option=value"),
    ("builtin.module(plain", "expected ) at the end", "first,second{option=value"),
    ("builtin.module(plain),plain", "the text ends after the last pass", "first,second{option=value"),
])
def test_what_cannot_be_read(text: str, message: str, help_: str) -> None:
    with pytest.raises(TileError) as caught:
        parse_passes(text, KNOWN)
    assert caught.value.code == "T805"
    assert message in caught.value.message
    assert help_ in str(caught.value.help)


def test_documentation_comes_from_the_docstring() -> None:
    found = {option.name: option for option in options_of(Sample)}
    assert found["count"] == ("count", "an integer", "", "a number of things, on two lines.")
    assert found["factor"].doc == found["shift"].doc == "two numbers."
    assert (found["names"].kind, found["names"].default) == ("a list of values separated by commas, each a text", "x,y")
    assert (found["shift"].kind, found["shift"].default) == ("an integer or none", "none")
    assert found["label"].default == '"a b"'
    assert summary_of(Sample) == "A pass with an option of each type."
    assert summary_of(Plain).startswith("Pipelines as text")


def test_a_type_that_text_cannot_say_is_refused() -> None:
    @dataclass(frozen=True)
    class WithFunction(ModulePass):
        name = "with-function"
        call: Any = None

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            """Nothing."""

    with pytest.raises(TypeError, match=r"an option of a pass cannot be a typing\.Any"):
        options_of(WithFunction)


# -- the opt command ---------------------------------------------------------------------------------------------------


def differing_stages(kernel: Any) -> list[str]:
    """The stages whose pass, as text, does not make the stage's text of that of the stage before. Only the locations say which
    statements an author's schedule is of."""
    found, locations = [], tile.SCHEDULE in kernel.mlir("tile")
    for before, stage in zip(kernel.stages(), kernel.stages()[1:], strict=False):
        module = parse_module(kernel.mlir(before, locations=locations))
        for made in pipeline.passes_of_text(kernel.pipeline(stage)):
            made.apply(make_context(), module)
        found += [stage] if print_module(module) != kernel.mlir(stage) else []
    return found


@pytest.mark.parametrize("name", CALLS)
def test_the_text_of_a_stage_does_what_the_compilation_does(name: str) -> None:
    assert differing_stages(CALLS[name][0]()) == []


@pytest.mark.parametrize("name", LADDERS)
def test_the_text_of_a_stage_of_an_example_does_what_the_compilation_does(
        name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(root / "examples")
    import ladders

    folder = root / "examples" / name
    kernel = ladders.steps(folder)[-1].factory()(**ladders.load(folder).large[0])
    assert differing_stages(kernel) == []


def test_a_plan_on_trial_decides_as_in_the_pipeline(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations of this kernel overlap only because a plan shows that the memories have room, which ``opt`` finds out too."""
    monkeypatch.syspath_prepend(root / "examples")
    import ladders

    folder = root / "examples" / "attention"
    kernel = ladders.steps(folder)[-1].factory()(**ladders.load(folder).large[0])
    before, after = (kernel.mlir(stage) for stage in ("schedule-statements", "overlap-iterations"))
    plans: list[str | None] = []
    find = PassWithPlanTrial.missing_room

    def noted(self: PassWithPlanTrial, module: ModuleOp) -> str | None:
        plans.append(find(self, module))
        return plans[-1]

    monkeypatch.setattr(PassWithPlanTrial, "missing_room", noted)
    module = parse_module(before)
    (made,) = pipeline.passes_of_text(kernel.pipeline("overlap-iterations"))
    made.apply(make_context(), module)
    assert plans == [None]
    assert print_module(module) == after
