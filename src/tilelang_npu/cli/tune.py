"""The command ``tune``, which finds the arguments of a factory that give the kernel with the lowest modelled time."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.cli.files import existing, write_text
from tilelang_npu.cli.parser import Commands
from tilelang_npu.cli.script import add_gpu, chosen, execute, gpu_of
from tilelang_npu.cli.selection import asked
from tilelang_npu.cli.space import SIZES, SPACE, configs_of, factory_of, fixed_of, sizes_of
from tilelang_npu.cli.worker_options import add_worker_options, executor_of
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.runtime.tuning.autotune import AutotuneResult

__all__ = ["add_to", "tune"]


def add_to(commands: Commands) -> None:
    """Adds the command ``tune`` to the parser."""
    parser = commands.add_parser(
        "tune", help="find the fastest parameters of a kernel's factory, by modelled time",
        description="Model the time of a factory's kernel for every configuration of a space, without computing values, and"
                    " print a table, fastest first. The fastest configuration is then run once, and its results are compared"
                    " with those of the factory's default parameters. Configurations that cannot be compiled for the chip are"
                    " listed with the reason. FILE is imported, not run as __main__.",
    )
    parser.add_argument("file", metavar="FILE[:FACTORY]", help="the script; a script with one factory needs no name")
    parser.add_argument("--space", metavar="VALUES", nargs="+", action="extend", default=[],
                        help=f"the values of parameters to try: {SPACE}; without --space, the configurations of the factory's"
                             " autotune")
    parser.add_argument("--arg", metavar="NAME=VALUE", nargs="+", action="extend", default=[],
                        help="arguments of the factory that are the same in all configurations, such as M=4096")
    parser.add_argument("--size", metavar="NAME=VALUE", nargs="+", action="extend", default=[], help=SIZES)
    parser.add_argument("--inputs", metavar="FUNCTION",
                        help="a function of the script that returns a call's inputs, if elements of tensors decide the time,"
                             " as lengths and page tables do: FUNCTION(parameters), or FUNCTION(parameters, configuration);"
                             " the supply_prog of autotune")
    add_worker_options(parser, "configurations")
    parser.add_argument("--trials", type=int, metavar="N",
                        help="try only N configurations, which an optimiser chooses (pip install 'tilelang-npu[optuna]')")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the seed of the optimiser (default: 0)")
    parser.add_argument("--timeout", type=float, default=100, metavar="S",
                        help="the time limit of a configuration in seconds (default: 100)")
    parser.add_argument("--table", metavar="FILE", help="write each row to the file as a line of JSON; a tuning that was"
                                                        " interrupted continues with it")
    parser.add_argument("--picture", metavar="FILE.svg", help="draw the times of the configurations to this file")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="the number of rows to print; 0 for all (default: 10)")
    parser.add_argument("--no-check", action="store_true", help="do not run the fastest configuration to compare its results")
    parser.add_argument("--chip", metavar="NAME", help="the chip for kernels that name no chip; see `chips`")
    add_gpu(parser)
    parser.set_defaults(command=tune)


def tune(args: argparse.Namespace) -> int:
    """Times the kernel for each configuration, prints the table, and returns the exit code."""
    from tilelang_npu.runtime.tuning.autotune import AutoTuner, Tuned

    wanted = asked(args.file)
    module = Path(wanted.file).stem
    with chosen(chip=args.chip, gpu=gpu_of(args)):
        outcome = execute(existing(wanted.file), [], module)
        sys.stdout.flush()
        if outcome.code:
            print(outcome.complaint, file=sys.stderr)
            return outcome.code
        name, factory = factory_of(outcome.names, wanted.file, module, wanted.name)
        fixed = fixed_of(factory, args.arg)
        configs = configs_of(factory, fixed, args.space)
        tuner = AutoTuner(factory.factory if isinstance(factory, Tuned) else factory, configs)
        profile = dict(factory.profile) if isinstance(factory, Tuned) else {}
        sizes = sizes_of(args.size)
        if sizes:
            profile["sizes"] = sizes
        if args.inputs is not None:
            profile["supply_prog"] = _inputs_function(outcome.names, args.inputs, wanted.file)
        tuner.set_profile_args(**{**profile, **({"skip_check": True} if args.no_check else {})})
        tuner.kwargs = fixed
        result = tuner.run(timeout=args.timeout, executor=executor_of(args), trials=args.trials, seed=args.seed,
                           table=args.table)
    given = ", ".join(f"{key}={value!r}" for key, value in {**fixed, **sizes}.items())
    print(f"{name}({given})  {len(result.tried) + len(result.rejected)} of {len(configs)} configurations tried,"
          f" {result.kernel.chip.name}, modelled\n")
    print("\n".join(_table(result, args.top)))
    print("\n".join(_left_out(result)))
    checked = "not run" if args.no_check else "checked by a run"
    print(f"best {_spelled(result.config)}  {result.latency * 1000:.1f} us, {checked}")
    if args.table:
        print(f"table {args.table}")
    if args.picture:
        write_text(args.picture, result.picture())
        print(f"picture {args.picture}")
    return 0


def _inputs_function(names: Mapping[str, object], name: str, file: str) -> Callable[..., object]:
    """Returns the function of a script that ``--inputs`` names.

    Args:
        names: the global names of the script, with their values.
        name: the name of the function.
        file: the path of the script as the user typed it, for errors.

    Raises:
        TileError: T810, the script has no such function, or it takes neither one parameter nor two.
    """
    found = names.get(name)
    if not callable(found):
        near = get_close_matches(name, [key for key, value in names.items() if callable(value)], n=1)
        raise TileError(f"--inputs: {file} has no function {name!r} at its top level", code="T810",
                        help=f"did you mean {near[0]}?" if near else "write a function that returns the list of the inputs")
    if not 1 <= len(inspect.signature(found).parameters) <= 2:
        raise TileError(f"--inputs: {name}{inspect.signature(found)} takes neither one parameter nor two", code="T810",
                        help="it gets the list of the kernel's parameters, and the configuration if it has a second parameter")
    return found


def _table(result: AutotuneResult, most: int) -> list[str]:
    """Returns the rows of a table of the fastest configurations."""
    shown = result.tried[:most] if most > 0 else result.tried
    names = list(dict.fromkeys(name for _, config in shown for name in config))
    rows = [["us", "slower", *names]]
    rows += [[f"{time * 1000:.1f}", f"{time / result.latency:.2f}x", *(str(config.get(name, "")) for name in names)]
             for time, config in shown]
    lines = _columns(rows)
    if len(shown) < len(result.tried):
        lines.append(f"and {len(result.tried) - len(shown)} more, up to {result.tried[-1][0] * 1000:.1f} us")
    return [*lines, ""]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _left_out(result: AutotuneResult) -> list[str]:
    """Returns lines with the reasons for which configurations were rejected, the most frequent first, each with an example."""
    groups: dict[str, list[int]] = {}
    for place, one in enumerate(result.rejected):
        groups.setdefault(one.code or one.reason.partition(":")[0], []).append(place)
    lines = []
    for places in sorted(groups.values(), key=len, reverse=True):
        first = result.rejected[places[0]]
        lines.append(f"left out {len(places)}, such as {_spelled(first.config)}: {first.reason}")
    return [*lines, ""] if lines else []


def _spelled(config: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in config.items()) or "the only one"
