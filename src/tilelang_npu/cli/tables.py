"""The commands ``chips``, ``ops`` and ``stages``, which print the chips, the operations of the language and the stages."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.cli.parser import Commands
from tilelang_npu.cli.script import add_gpu, chosen, gpu_of
from tilelang_npu.cli.selection import HELP, asked, labels
from tilelang_npu.errors import TileError
from tilelang_npu.source_dialects import SourceDialect

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

__all__ = ["add_to", "chips", "ops", "stages"]


def add_to(commands: Commands) -> None:
    """Adds the commands ``chips``, ``ops`` and ``stages`` to the parser."""
    parser = commands.add_parser("chips", help="list the chips",
                                 description="Print a table of the chips that kernels can be compiled for. The last column"
                                             " names the figures that are not published for a chip; they are estimated, or"
                                             " taken from another chip.")
    parser.add_argument("file", nargs="*", metavar="FILE", help="TOML or Python files that describe further chips")
    parser.set_defaults(command=chips)
    parser = commands.add_parser("ops", help="list the operations of the language",
                                 description="Print a table of the operations of T.")
    parser.add_argument("name", nargs="?", default="", help="print only operations whose name or alias contains this text")
    parser.add_argument("--markdown", action="store_true", help="print the page docs/ops.md")
    parser.add_argument("--language", metavar="DIR", help="write the reference in the pages of docs/language")
    parser.add_argument("--stubs", action="store_true", help="print the stub file of T for type checkers")
    parser.set_defaults(command=ops)
    parser = commands.add_parser(
        "stages", help="list the stages of a compilation, or show what each pass did",
        description="Print the stages of kernel.mlir(stage) and compile --stage, in order. With FILE and --html, write a page"
                    " that shows what each pass changed in a script's kernels. With FILE and --diff, print what the passes"
                    " between two stages changed. With --pipeline, print the passes with all their"
                    " options as text for `opt -p`: the passes of a script's kernels or, without FILE, those for the settings"
                    " of the options below. " + HELP)
    parser.add_argument("file", metavar="FILE[:KERNEL[#N]]", nargs="?", help="the script")
    parser.add_argument("--html", metavar="OUT", help="the file of the HTML page to write")
    parser.add_argument("--diff", metavar=("A", "B"), nargs=2,
                        help="print the changes between two stages of the script's kernels, as removed and added lines")
    parser.add_argument("--markdown", action="store_true",
                        help="print the stages as Markdown tables: the pass, the level of the IR, and the reason")
    parser.add_argument("--pipeline", action="store_true", help="print the passes with all their options, one per line")
    parser.add_argument("--chip", metavar="NAME",
                        help="the chip, or a file that describes chips, for kernels that name no chip")
    parser.add_argument("--dialect", choices=("npuir", "ascendc"),
                        help="for --pipeline without FILE: the dialect (default: npuir)")
    parser.add_argument("--config", metavar="KEY=true", action="append", default=[],
                        help="for --pipeline without FILE: a switch of pass_configs, such as tl.ascend_auto_sync=true")
    parser.add_argument("--without", metavar="NAME", action="append", default=[],
                        help="for --pipeline and --html: leave out an optimisation; may be given several times")
    add_gpu(parser)
    parser.set_defaults(command=stages)


def chips(args: argparse.Namespace) -> int:
    """Prints a table of the chips, and returns the exit code."""
    from tilelang_npu import target
    from tilelang_npu.plugin_loading import load_plugins
    from tilelang_npu.runtime.settings.targets import find_chip

    load_plugins()
    for file in args.file:
        find_chip(Path(file), None)
    rows = [("chip", "family", "AIC", "AIV", "clock", "UB", "L1", "L0C", "f16 peak", "estimates")]
    for chip in target.chips():
        kib = {space: f"{memory.size // 1024} KiB" for space, memory in chip.memory.items()}
        name = f"{chip.name} (default)" if chip.name == target.DEFAULT else chip.name
        rows.append((name, chip.family, str(chip.aic), str(chip.aiv), f"{chip.clock / 1e6:.0f} MHz",
                     kib["ub"], kib["cbuf"], kib["cc"], f"{chip.peak_flops('f16') / 1e12:.0f} TFLOP/s",
                     ", ".join(chip.estimates)))
    _print(rows)
    return 0


def ops(args: argparse.Namespace) -> int:
    """Prints a table of the operations, or the page, reference or stub file that an option requests; returns the exit code."""
    from tilelang_npu.cli import language_page, operations_page
    from tilelang_npu.language import stubs
    from tilelang_npu.ops import operations
    from tilelang_npu.plugin_loading import load_plugins

    load_plugins()
    pages = {"markdown": operations_page.page, "language": language_page.references, "stubs": stubs.text}
    for option, page in pages.items():
        if getattr(args, option):
            if args.name:
                raise TileError(f"ops --{option} prints all operations and takes no name", code="T809", help="remove the name")
            if option == "language":
                language_page.write(Path(args.language))
            else:
                print(page(), end="")
            return 0
    found = [op for op in operations().values() if any(args.name in name for name in (op.name, *op.aliases))]
    if not found:
        raise TileError(f"there is no operation whose name contains {args.name!r}", code="T809",
                        help="`ops` without a name lists all operations")
    rows = [("operation", "pipe", "HIVM", "cost", "element types", "as T.")]
    rows += [(op.name, op.pipe, op.hivm or "its steps", op.cost, " ".join(kind.mlir for kind in op.dtypes),
              " ".join(operations_page.names(op))) for op in found]
    _print(rows)
    return 0


def stages(args: argparse.Namespace) -> int:
    """Prints the stages or the pipeline, or writes the page of a script's stages; returns the exit code."""
    from tilelang_npu.cli.compile_file import compiled
    from tilelang_npu.cli.files import write_text
    from tilelang_npu.cli.stages_page import page
    from tilelang_npu.transforms import pipeline

    if (args.dialect or args.config) and (args.file is not None or not args.pipeline):
        raise TileError("--dialect and --config can only be used with --pipeline and without a script", code="T417",
                        help="stages --pipeline --dialect ascendc; a script's kernels have their own")
    if args.pipeline:
        if args.html is not None or args.markdown or args.diff is not None:
            raise TileError("--pipeline cannot be combined with --html, --diff and --markdown", code="T417",
                            help="remove --html, --diff and --markdown")
        return _pipeline(args)
    if args.html is not None and args.diff is not None:
        raise TileError("--html and --diff cannot be combined", code="T417", help="the page shows the changes of all passes")
    if (args.file is None) is not (args.html is None and args.diff is None):
        raise TileError("FILE must be given together with --html or --diff", code="T417",
                        help="stages FILE --html OUT.html, stages FILE --diff A B, stages FILE --pipeline, or stages alone for"
                             " the list")
    if args.markdown:
        if args.file is not None:
            raise TileError("--markdown prints the stages of any kernel and takes no FILE", code="T417", help="remove the file")
        print(pipeline.as_markdown(), end="")
        return 0
    if args.file is None:
        for name in pipeline.stage_names():
            print(name)
        return 0
    code, kernels = compiled(args.file, args.chip, args.without, gpu_of(args))
    if kernels and args.diff is not None:
        print("".join(_difference(kernel, label, *args.diff) for kernel, label in zip(kernels, labels(kernels), strict=True)),
              end="")
    elif kernels:
        write_text(args.html, page(kernels, Path(asked(args.file).file)))
    return code


def _difference(kernel: JITKernel, label: str, first: str, second: str) -> str:
    """Returns the changes of a kernel's text between two stages as a unified diff; empty if the texts are equal.

    Args:
        kernel: the kernel.
        label: the kernel's name among the kernels of the script.
        first: the name of the stage whose lines are removed.
        second: the name of the stage whose lines are added.

    Raises:
        TileError: T710, there is no such stage.
    """
    before, after = (kernel.mlir(stage).splitlines(keepends=True) for stage in (first, second))
    return "".join(difflib.unified_diff(before, after, f"{label}, {first}", f"{label}, {second}"))


def _pipeline(args: argparse.Namespace) -> int:
    """Prints the pipeline of each kernel of a script or, without a script, the pipeline for the settings of the options.

    A pipeline that is the same for several kernels is printed once. If there are several pipelines, a line with the names of
    the kernels is printed above each.
    """
    from tilelang_npu.cli.compile_file import compiled
    from tilelang_npu.runtime.settings.switches import disabled_optimisations, resolve
    from tilelang_npu.runtime.settings.targets import select_chip
    from tilelang_npu.transforms.infra.options import Options
    from tilelang_npu.transforms.pipeline import pipeline_text

    if args.file is not None:
        code, kernels = compiled(args.file, args.chip, args.without, gpu_of(args))
        texts: dict[str, list[str]] = {}
        for label, kernel in zip(labels(kernels), kernels, strict=True):
            texts.setdefault(kernel.pipeline(), []).append(label)
        for text, names in texts.items():
            if len(texts) > 1:
                print(f"// {', '.join(names)}")
            print(text)
        return code
    with chosen(chip=args.chip, without=args.without):
        dialect: SourceDialect = args.dialect or "npuir"
        switches = resolve(dict(map(_switch, args.config)), dialect, None)
        options = Options.from_switches(select_chip(None, None, None), dialect, switches, disabled_optimisations({}, None))
    print(pipeline_text(options))
    return 0


def _switch(text: str) -> tuple[str, bool]:
    """Returns the key and the value of the text ``KEY=true`` or ``KEY=false``.

    Raises:
        TileError: T417, the text has another form, or there is no such switch.
    """
    from tilelang_npu.runtime.settings.pass_config_keys import known_key

    key, _, value = text.partition("=")
    if value not in ("true", "false"):
        raise TileError(f"--config {text}: {value!r} is neither true nor false", code="T417", help=f"--config {key}=true")
    if known_key(key) is None:
        raise TileError(f"--config {text}: there is no key {key!r} of pass_configs", code="T417",
                        help="for example tl.ascend_auto_sync=true, tl.ascend_memory_planning=true")
    return key, value == "true"


def _print(rows: Sequence[Sequence[str]]) -> None:
    """Prints aligned columns; the last one is not padded."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
