"""The command ``msprof``, which runs a script and writes modelled times to the files of the vendor's profiler of this name.

``msprof op`` writes ``OPPROF_*/OpBasicInfo.csv`` with the columns of one launch, or a file for each of several launches;
``msprof`` alone writes ``PROF_*/mindstudio_profiler_output/op_summary_*.csv`` with a row for each launch. Of the vendor's
options, those in ``_OPTIONS`` have an effect; counters of the hardware are not written.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.cli.files import existing
from tilelang_npu.cli.parser import Commands
from tilelang_npu.cli.script import execute
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.jit.launched_kernels import ACCELERATORS, LaunchedKernel, csv_text, launched_kernels
from tilelang_npu.runtime.jit.recording import record
from tilelang_npu.runtime.settings.file_writing import file_name, write_whole

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch

__all__ = ["add_to", "msprof"]

_OPTIONS = ("output", "application", "kernel-name", "launch-count")
"""The options that have an effect; the last two only with ``op``."""
_PYTHON = re.compile(r"python[\d.]*(\.exe)?")


@dataclass
class _Request:
    """What a command line of ``msprof`` asks for.

    Attributes:
        by_launch: whether it is ``msprof op``, which writes files by launch.
        options: the values of the options, by name.
        script: the path of the script.
        arguments: the arguments of the script.
    """

    by_launch: bool = False
    options: dict[str, str] = field(default_factory=dict)
    script: str = ""
    arguments: list[str] = field(default_factory=list)


def add_to(commands: Commands) -> None:
    """Adds the command ``msprof`` to the parser."""
    parser = commands.add_parser(
        "msprof", help="run a script, and write modelled times as the vendor's profiler msprof does",
        usage="tilelang-npu msprof [op] [--output=DIR] [--kernel-name=NAME] [--launch-count=N] python SCRIPT [ARGS ...]",
        description="Of the vendor's options, these have an effect: --output, the folder of the results; and with op,"
                    " --kernel-name, a name with wildcards, or several between |, and --launch-count, the number of launches, 1"
                    " by default. --application=\"python SCRIPT\" is another form. Counters of the hardware are not written.")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="options, python, the script and its arguments")
    parser.set_defaults(command=msprof)


def msprof(args: argparse.Namespace) -> int:
    """Runs the script, writes the files, and returns the script's exit code.

    Raises:
        TileError: T805, the command line names no Python script, or a number is wrong; T801, the script does not exist; T803,
            the script launches no kernel, or none with the requested name.
    """
    request = _parsed(args.arguments)
    count = _count(request.options.get("launch-count", "1"))
    effective = _OPTIONS if request.by_launch else _OPTIONS[:2]
    if idle := [f"--{name}" for name in request.options if name not in effective]:
        print(f"no effect on modelled times: {', '.join(idle)}", file=sys.stderr)
    launches: list[LaunchedKernel] = []

    def note(kernel: JITKernel, launch: AnyLaunch) -> None:
        launches.extend(launched_kernels(kernel, launch))

    with record(every_thread=True, each=note):
        outcome = execute(existing(request.script), request.arguments, "__main__")
    sys.stdout.flush()
    if outcome.complaint:
        print(outcome.complaint, file=sys.stderr)
    if outcome.code:
        return outcome.code
    if not launches:
        raise TileError(f"{request.script} launches no kernel", code="T803", help="profile a script that calls its kernels")
    stamp = datetime.now().strftime("%Y%m%d%H%M%S%f")  # local time, as the vendor has it
    output = Path(request.options.get("output", "."))
    if request.by_launch:
        wanted = request.options.get("kernel-name", "*")
        chosen = [one for one in launches if any(
            fnmatchcase(name, pattern) for pattern in wanted.split("|") for name in (one.name, f"{one.name}_kernel"))]
        if not chosen:
            names = ", ".join(dict.fromkeys(one.name for one in launches))
            raise TileError(f"no launched kernel has the name {wanted}", code="T803", help=f"the script launches {names}")
        folder = output / f"OPPROF_{stamp}_{os.getpid()}"
        _write_launches(folder, chosen[:count])
    else:
        folder = output / f"PROF_000001_{stamp}_{os.getpid()}"
        write_whole(folder / "mindstudio_profiler_output" / f"op_summary_{stamp}.csv", _summary(launches))
    print(f"modelled times are in {folder}")
    return 0


def _parsed(words: Sequence[str]) -> _Request:
    """Returns the request of a command line.

    Raises:
        TileError: T805, the command line names no Python script.
    """
    request = _Request(by_launch=words[:1] == ["op"])
    rest = list(words[1:] if request.by_launch else words)
    while rest and rest[0].startswith("--"):
        name, given, value = rest.pop(0)[2:].partition("=")
        if not given and rest and not (rest[0].startswith("-") or rest[0].endswith(".py") or _is_python(rest[0])):
            value = rest.pop(0)
        request.options[name] = value
    command = rest or shlex.split(request.options.get("application", ""))
    if command and _is_python(command[0]):
        command = command[1:]
    if not command or command[0].startswith("-") or not command[0].endswith(".py"):
        raise TileError(f"msprof runs a Python script, and the command line has {' '.join(command) or 'none'}", code="T805",
                        help="write: tilelang-npu msprof op --output=DIR python SCRIPT.py")
    request.script, request.arguments = command[0], command[1:]
    return request


def _is_python(word: str) -> bool:
    return word == sys.executable or _PYTHON.fullmatch(Path(word).name) is not None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise TileError(f"--launch-count is {text}", code="T805", help="give a positive number")
    return int(text)


def _write_launches(folder: Path, launches: Sequence[LaunchedKernel]) -> None:
    for number, one in enumerate(launches):
        place = folder if len(launches) == 1 else folder / file_name(one.name) / str(number)
        head = ("Op Name", "Op Type", "Task Duration(us)", "Block Dim", "Mix Block Dim", "Device Id", "Pid")
        row = (one.name, ACCELERATORS[one.cores], f"{one.duration_us:.6f}", one.blocks, one.mixed_blocks, 0, os.getpid())
        write_whole(place / "OpBasicInfo.csv", csv_text([head, row]))


def _summary(launches: Sequence[LaunchedKernel]) -> str:
    head = ("Device_id", "Task ID", "Stream ID", "Op Name", "OP Type", "Task Type", "Task Start Time(us)", "Task Duration(us)",
            "Block Dim", "Mix Block Dim")
    rows = ((0, task, 0, one.name, one.name, ACCELERATORS[one.cores], f"{one.start_us:.3f}", f"{one.duration_us:.3f}",
             one.blocks, one.mixed_blocks) for task, one in enumerate(launches))
    return csv_text([head, *rows])
