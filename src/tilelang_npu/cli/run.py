"""The command ``run``, which executes a script unmodified and then prints a summary of each kernel."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tilelang_npu.cli.files import existing, write_text
from tilelang_npu.cli.forked_kernels import summaries
from tilelang_npu.cli.kernel_labels import labelled
from tilelang_npu.cli.parser import Commands
from tilelang_npu.cli.sanitizing import FLAGS, VALUED, add_sanitizer, conclude, sanitizer_of, show
from tilelang_npu.cli.script import (
    Outcome,
    add_as,
    add_gpu,
    add_interpreter,
    add_l2,
    add_numbers,
    add_schedule,
    add_without,
    chosen,
    execute,
    gpu_of,
)
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings.file_writing import file_names

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.jit.recording import Record, Tally
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

__all__ = ["add_to", "own_arguments", "run"]

_VALUED = ("--as", "--chip", "--gpu-capability", "--html", "--json", "--l2", "--load", "--mlir", "--ranks", "--schedule",
           "--trace", "--without", *VALUED)
_FLAGS = ("--against-interpreter", "--all-stages", "--gpu", "--interpret", "--no-edits", "--numbers", "--profile", *FLAGS)


def add_to(commands: Commands) -> None:
    """Adds the command ``run`` to the parser."""
    parser = commands.add_parser(
        "run", help="run a script and time its kernels", usage="tilelang-npu run FILE [ARGS ...] [options]",
        description="Run a Python script as __main__, with `import tilelang` meaning tilelang_npu. The output of the script"
                    " comes first, then a summary of every kernel that the script ran. The options below may be anywhere; all"
                    " other arguments, and all arguments after --, are passed to the script.",
    )
    parser.add_argument("file", metavar="FILE", help="the script")
    parser.add_argument("--chip", metavar="NAME",
                        help="the chip, or a file that describes chips, for kernels that name no chip; see `chips`")
    parser.add_argument("--json", metavar="OUT",
                        help="write the kernels that ran and their times (with --profile also the profiles) as JSON; see"
                             " docs/accuracy.md")
    parser.add_argument("--mlir", metavar="DIR", help="write every kernel's HIVM to DIR/NAME.mlir")
    parser.add_argument("--all-stages", action="store_true", help="with --mlir, write every stage: DIR/NAME/NN-STAGE.mlir")
    parser.add_argument("--trace", metavar="FILE", help="write a timeline of the kernels, for Perfetto or chrome://tracing")
    parser.add_argument("--profile", action="store_true",
                        help="print for every kernel what its time is spent on, and which changes would save time")
    parser.add_argument("--html", metavar="FILE",
                        help="write the profiles as one HTML page: timelines, rooflines, and the time of each source line")
    parser.add_argument("--no-edits", action="store_true",
                        help="with --profile or --html, try no edits of the source, which takes from seconds to minutes")
    parser.add_argument("--ranks", metavar="N", type=int,
                        help="run the script in N processes, each with the variables RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR"
                             " and MASTER_PORT, as torchrun does")
    add_gpu(parser)
    add_sanitizer(parser)
    add_schedule(parser)
    add_l2(parser)
    add_as(parser)
    add_numbers(parser)
    add_without(parser)
    add_interpreter(parser)
    parser.set_defaults(command=run, arguments=[])


def own_arguments(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits the words after ``run`` into the arguments of this command and the arguments of the script."""
    own: list[str] = []
    script: list[str] = []
    words = iter(argv)
    file: str | None = None
    for word in words:
        if word == "--" and file is not None:
            script.extend(words)
        elif word in _VALUED:
            own.extend([word, *[value for value in [next(words, None)] if value is not None]])
        elif word in _FLAGS or word.startswith(tuple(f"{name}=" for name in _VALUED)):
            own.append(word)
        elif file is None:
            own.append(word)
            file = None if word.startswith("-") and word != "-" else word
        else:
            script.append(word)
    return own, script


def run(args: argparse.Namespace) -> int:
    """Runs the script, prints and writes what the options request, and returns the exit code.

    The exit code is that of the script, or 1 if the script succeeded and the sanitizer found a hazard.
    """
    session = sanitizer_of(args)
    _refuse_without_effect(args)
    with chosen(chip=args.chip, schedule=args.schedule, l2=args.l2, numbers=args.numbers, without=args.without,
                interpret=args.interpret, against=args.against_interpreter, compiler=args.compiler,
                gpu=gpu_of(args)):
        outcome = execute(existing(args.file), args.arguments, "__main__", sanitizer=session, ranks=args.ranks)
    sys.stdout.flush()
    labels = labelled(outcome.record.tallies)
    for tally, label in zip(outcome.record.tallies, labels, strict=True):
        print("\n" + _summary(tally, label))
        show(tally.findings)
        for number in tally.numbers.values():
            print(f"\n{number}")
    for text in summaries(outcome.forked):
        print(f"\n{text}")
    if args.compiler is not None:
        _show_comparisons(outcome.record)
    profiles = _profiles(outcome.record, edits=not args.no_edits) if args.profile or args.html is not None else []
    for profile in profiles if args.profile else ():
        print(f"\n{profile}")
    if args.mlir is not None:
        _write_mlir(args.mlir, outcome.record.kernels, args.all_stages)
    if args.trace is not None:
        kernels = [tally.last.trace()["otherData"] for tally in outcome.record.tallies]
        write_text(args.trace, json.dumps({"traceEvents": list(_timeline(outcome.record)), "displayTimeUnit": "ns",
                                           "otherData": {"kernels": kernels}}))
    if args.json is not None:
        write_text(args.json, json.dumps(_as_data(args, outcome, labels, profiles), indent=1) + "\n")
    if args.html is not None:
        _write_page(args, profiles, labels)
    if outcome.complaint:
        sys.stdout.flush()
        print(outcome.complaint, file=sys.stderr)
    found = 0 if session is None else conclude(session, args.report, outcome.error)
    return outcome.code or found or int(any(kernel.findings for kernel in outcome.forked))


_OF_COMPILED = ("sanitize", "json", "mlir", "trace", "profile", "html", "schedule", "l2", "numbers", "without", "compiler")
"""The options that only affect compiled kernels, not interpreted ones."""


def _refuse_without_effect(args: argparse.Namespace) -> None:
    """Checks that every given option has an effect together with the others.

    Raises:
        TileError: T417, ``--interpret`` is combined with an option for compiled kernels, or ``--no-edits`` is given without an
            option that shows edits.
    """
    if args.no_edits and not args.profile and args.html is None:
        raise TileError("--no-edits has no effect without --profile or --html: edits are tried for these alone", code="T417",
                        help="add --profile, or remove --no-edits")
    idle = next((name for name in _OF_COMPILED if getattr(args, name)), None)
    idle = "as" if idle == "compiler" else idle
    if args.interpret and idle is not None:
        raise TileError(f"--{idle} has no effect with --interpret, which compiles no kernel", code="T417",
                        help=f"remove one of the two; --against-interpreter takes --{idle}")


def _summary(tally: Tally, label: str) -> str:
    """Returns the summary of a kernel's last run, and the number and total time of all its runs."""
    text = "".join([tally.last.summary(label), *(f"\n  strips    {note}" for note in tally.kernel.strips)])
    if tally.count > 1:
        text += f"\n  launches  {tally.count}, together {tally.total_us:.1f} us; the last one is shown"
    return text


def _show_comparisons(record: Record) -> None:
    """Prints a comparison of the times of each kernel as TileLang-Ascend's compiler and as this compiler compile it."""
    from tilelang_npu.runtime.reports.upstream_comparison import compare_with_own

    for tally in record.tallies:
        found = compare_with_own(tally.kernel, tally.last)
        print(f"\n{found or f'{tally.kernel.name}: sizes or data decide its time, so there is nothing to compare with'}")


def _profiles(record: Record, *, edits: bool) -> list[Profile]:
    """Returns the profile of each kernel's last run; ``edits`` says whether edits of the source are tried."""
    from tilelang_npu.runtime.reports.launches import profile_of

    return [profile_of(tally.kernel, tally.last, edits=edits) for tally in record.tallies]


def _write_page(args: argparse.Namespace, profiles: Sequence[Profile], labels: Sequence[str]) -> None:
    from tilelang_npu.simulator.result.profile.profile_page import page

    if not profiles:
        raise TileError(f"{args.file} ran no kernel: there is nothing to show", code="T803", help="run a script that calls one")
    write_text(args.html, page(profiles, labels))


def _as_data(args: argparse.Namespace, outcome: Outcome, labels: Sequence[str],
             profiles: Sequence[Profile]) -> dict[str, object]:
    """Returns the data that ``--json`` writes. The number ``version`` increases when the meaning of a key changes."""
    kernels = [
        {"name": tally.kernel.name, "label": label, "runs": tally.count, "total_us": tally.total_us, "error": tally.last.error,
         "findings": [str(finding) for finding in tally.findings], "last_launch": tally.last.to_dict()}
        for tally, label in zip(outcome.record.tallies, labels, strict=True)]
    for kernel, profile in zip(kernels, profiles if args.profile else (), strict=False):
        kernel["profile"] = profile.to_dict()
    return {"version": 1, "script": args.file, "exit_code": outcome.code, "kernels": kernels}


def _write_mlir(directory: str, kernels: Sequence[JITKernel], all_stages: bool) -> None:
    for name, kernel in zip(file_names(kernel.name for kernel in kernels), kernels, strict=True):
        write_text(f"{directory}/{name}.mlir", kernel.mlir())
        if all_stages:
            for number, stage in enumerate(kernel.stages()):
                write_text(f"{directory}/{name}/{number:02}-{stage}.mlir", kernel.mlir(stage))


def _timeline(record: Record) -> Iterator[dict[str, object]]:
    """Yields the trace events of the last run of each kernel, one kernel after the other."""
    from tilelang_npu.simulator.result.call_launches import in_a_row

    return in_a_row((part, f"{part.name} ") for tally in record.tallies for part in tally.last.parts)
