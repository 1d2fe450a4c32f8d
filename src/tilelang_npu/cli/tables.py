"""``chips``, ``ops`` and ``stages``: print tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilelang_npu.cli.selection import HELP, asked
from tilelang_npu.errors import TileError

__all__ = ["add_to", "chips", "ops", "stages"]


def add_to(commands: Any) -> None:
    """Adds the three commands."""
    parser = commands.add_parser("chips", help="list the chips",
                                 description="The chips that kernels can be compiled for. The last column names the figures"
                                             " that are not published: estimated, or taken from another chip.")
    parser.add_argument("file", nargs="*", metavar="FILE.toml", help="files that describe further chips")
    parser.set_defaults(command=chips)
    parser = commands.add_parser("ops", help="list the operations of the language", description="The operations under T.")
    parser.add_argument("name", nargs="?", default="", help="only those whose name or alias contains this")
    parser.add_argument("--markdown", action="store_true", help="print the page docs/ops.md")
    parser.add_argument("--language", metavar="DIR", help="write the reference in the pages of docs/language")
    parser.add_argument("--stubs", action="store_true", help="print the stub file of T for type checkers")
    parser.set_defaults(command=ops)
    parser = commands.add_parser(
        "stages", help="list the stages of a compilation, or show what each pass did",
        description="The stages of kernel.mlir(stage) and compile --stage, in order. With FILE and --html, one page that shows"
                    " what each pass changed in a script's kernels. " + HELP)
    parser.add_argument("file", metavar="FILE[:KERNEL[#N]]", nargs="?", help="the script")
    parser.add_argument("--html", metavar="OUT", help="the page to write")
    parser.add_argument("--markdown", action="store_true", help="print the stages as tables: pass, level, and why")
    parser.add_argument("--chip", metavar="NAME", help="chip, or TOML file, of the kernels that name none")
    parser.set_defaults(command=stages)


def chips(args: argparse.Namespace) -> int:
    """Prints the chips."""
    from tilelang_npu import target
    from tilelang_npu.runtime.settings.targets import find_chip

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
    """Prints the operations."""
    from tilelang_npu.cli import language_page, operations_page
    from tilelang_npu.language import stubs
    from tilelang_npu.ops import operations

    pages = {"markdown": operations_page.page, "language": language_page.references, "stubs": stubs.text}
    for option, page in pages.items():
        if getattr(args, option):
            if args.name:
                raise TileError(f"ops --{option} is about all operations", code="T809", help="leave the name out")
            if option == "language":
                language_page.write(Path(args.language))
            else:
                print(page(), end="")
            return 0
    found = [op for op in operations().values() if any(args.name in name for name in (op.name, *op.aliases))]
    if not found:
        raise TileError(f"no operation has a name with {args.name!r}", code="T809", help="`ops` without a name lists all")
    rows = [("operation", "pipe", "HIVM", "cost", "element types", "as T.")]
    rows += [(op.name, op.pipe, op.hivm or "its steps", op.cost, " ".join(kind.mlir for kind in op.dtypes),
              " ".join(operations_page.names(op))) for op in found]
    _print(rows)
    return 0


def stages(args: argparse.Namespace) -> int:
    """Prints the stages, or writes the page."""
    from tilelang_npu.cli.compile_file import compiled
    from tilelang_npu.cli.files import write_text
    from tilelang_npu.cli.stages_page import page
    from tilelang_npu.transforms import pipeline

    if (args.file is None) is not (args.html is None):
        raise TileError("stages takes a script and a page together", code="T417",
                        help="stages FILE --html OUT.html, or stages alone for the list")
    if args.markdown:
        if args.file is not None:
            raise TileError("stages --markdown prints the order, whatever the kernel", code="T417", help="leave the file out")
        print(pipeline.as_markdown(), end="")
        return 0
    if args.file is None:
        for name in pipeline.stage_names():
            print(name)
        return 0
    code, kernels = compiled(args.file, args.chip)
    if kernels:
        write_text(args.html, page(kernels, Path(asked(args.file).file)))
    return code


def _print(rows: Sequence[Sequence[str]]) -> None:
    """Prints aligned columns; the last one is not padded."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
