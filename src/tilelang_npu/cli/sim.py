"""The command ``sim``, which runs the kernels of an .mlir file of HIVM on the simulated chip."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.cli.files import existing, read_text, split_modules, write_text
from tilelang_npu.cli.parser import Commands
from tilelang_npu.cli.sanitizing import add_sanitizer, conclude, sanitizer_of, show
from tilelang_npu.cli.script import add_l2, add_numbers, add_schedule
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.profiler import TensorSupplyType, make_array
from tilelang_npu.runtime.settings.environment import jobs, most_ops
from tilelang_npu.runtime.settings.file_writing import file_names, replacing
from tilelang_npu.runtime.settings.targets import find_chip

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from tilelang_npu.runtime.arguments.tensors import Array
    from tilelang_npu.runtime.checks.sanitizer import Sanitizer
    from tilelang_npu.simulator import Program
    from tilelang_npu.simulator.run.arguments import FunctionParameter
    from tilelang_npu.target import Chip

__all__ = ["add_choice", "add_to", "blocks_of", "filled", "parameters_of", "programs_of", "sim", "size_of"]


def add_to(commands: Commands) -> None:
    """Adds the command ``sim`` to the parser."""
    parser = commands.add_parser(
        "sim", help="run an .mlir file of HIVM",
        description="Run the kernels of an .mlir file, in the order of the text, and print their times. All kernels get the"
                    " same arguments. The arguments come from .npy files in order, from an .npz file by name (or arr_0, arr_1,"
                    " ... in order), or are generated from a seed. If the module has no addresses and waits, or works on"
                    " tensors, the passes of the compiler run first.",
    )
    parser.add_argument("file", metavar="FILE.mlir")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--args", metavar="A.npy", nargs="+", default=None,
                        help="one .npy file or one number for each argument")
    source.add_argument("--npz", metavar="F.npz", help="an .npz file with all arguments")
    source.add_argument("--seed", metavar="N", type=int, default=0, help="generate the arguments from this seed (default: 0)")
    parser.add_argument("--size", metavar="NAME=N", action="append", default=[],
                        help="for generated arguments: the value of a number argument, or of a dynamic size; the size of axis 0"
                             " of argument A has the name A_0")
    add_choice(parser)
    parser.add_argument("--chip", metavar="NAME", help="the chip, or a file that describes chips (default: the module's chip)")
    parser.add_argument("--split-input-file", action="store_true",
                        help="run the modules of the file between lines // ----- one after the other, each with its own"
                             " arguments")
    parser.add_argument("--save", metavar="DIR", help="write every array after the run to DIR/NAME.npy")
    parser.add_argument("--trace", metavar="FILE", help="write a timeline, for Perfetto or chrome://tracing")
    add_sanitizer(parser)
    add_schedule(parser)
    add_l2(parser)
    add_numbers(parser)
    parser.set_defaults(command=sim)


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Adds the options ``--kernel`` and ``--blocks``, which select the launched kernels of an .mlir file, to a parser."""
    parser.add_argument("--kernel", metavar="NAME",
                        help="the only kernel of the .mlir file to launch: a function with hacc.entry, or any device function")
    parser.add_argument("--blocks", metavar="N", type=int, action="append", default=[],
                        help="the number of blocks to launch; once for each kernel of the .mlir file (default: the kernel's"
                        " hacc.block_dim, or 1 if no op reads the block id)")


def sim(args: argparse.Namespace) -> int:
    """Runs the kernels of the file, prints their times, and returns the exit code."""
    session = sanitizer_of(args)
    text = read_text(args.file)
    if not args.split_input_file:
        return max(_run(text, args, session), conclude(session, args.report) if session is not None else 0)
    parts = [part for part in split_modules(text) if _has_module(part)]
    if len(parts) > 1 and (given := next((name for name in ("save", "trace") if getattr(args, name) is not None), None)):
        raise TileError(f"--{given} writes the results of one module, and {args.file} has {len(parts)}", code="T417",
                        help=f"remove --{given} or --split-input-file")
    for number, part in enumerate(parts):
        if number:
            print("\n// -----")
        _run(part, args, session)
    return conclude(session, args.report) if session is not None else 0


def _has_module(text: str) -> bool:
    """Whether a text is more than empty lines and comments."""
    return any(line.strip() and not line.strip().startswith("//") for line in text.splitlines())


def _run(text: str, args: argparse.Namespace, session: Sanitizer | None) -> int:
    """Runs the kernels of a module and prints their times and findings; returns 0.

    Raises:
        TileError: the module cannot be run, or the run ended with an error. The sanitizer's report is written before.
    """
    from tilelang_npu.simulator import Launch, Numbers
    from tilelang_npu.simulator.result.call_launches import joined

    programs = programs_of(text, args.file, args.chip, args.kernel)
    parameters = parameters_of(programs[0].device_functions[0])
    values = _values(args, parameters, programs[0].chip)
    parts: list[Launch] = []
    try:
        for program, blocks in zip(programs, blocks_of(programs, args.file, args.blocks), strict=True):
            watch = Numbers() if args.numbers else None
            recorded = program.run(values, blocks=blocks, schedule=args.schedule, observer=watch, most_ops=most_ops(),
                                   jobs=jobs())
            parts.append(Launch(recorded, hazards=session is not None and len(programs) > 1,
                                numbers=watch.findings if watch is not None else (), l2_state=args.l2 or "warm"))
    except TileError as error:
        if session is not None:
            conclude(session, args.report, error)
        raise
    launch = joined(Path(args.file).stem, parts)
    print(launch.summary())
    for number in launch.numbers:
        print(f"\n{number}")
    if args.save is not None:
        directory = Path(args.save)
        directory.mkdir(parents=True, exist_ok=True)
        names = file_names(parameter.name for parameter in parameters)
        for name, value in zip(names, values, strict=True):
            if isinstance(value, np.ndarray):
                with replacing(directory / f"{name}.npy") as file:
                    np.save(file, value)
    if args.trace is not None:
        write_text(args.trace, json.dumps(launch.trace()))
    if session is not None:
        show(session.judge_all(launch))
    return 0


def programs_of(text: str, file: str, chip: str | None, kernel: str | None) -> list[Program]:
    """Returns the kernels of an .mlir file as executable programs, in the order of the file.

    If the module has no addresses and waits, passes add them.

    Args:
        text: the text of the module.
        file: the path of its file; ``-`` for standard input.
        chip: the name of the chip; None for the chip that the module names.
        kernel: the name of the only kernel to return, which then needs no ``hacc.entry``; None for all kernels.

    Raises:
        TileError: the text is not a valid module, or the module cannot be run; T508, there is no kernel, or none with this
            name, or the kernels have different parameters.
    """
    from tilelang_npu.dialects.text import parse_module
    from tilelang_npu.runtime.kernel.foreign_modules import runnable
    from tilelang_npu.simulator import Program
    from tilelang_npu.simulator.run.entry_functions import kernels_of

    found = None if chip is None else find_chip(chip, None)
    module = parse_module(text, file)
    _mark_kernel(module, kernel)
    module = runnable(module, found)
    names = list(kernels_of(module))
    if kernel is None and len(names) < 2:
        return [Program(module, found)]
    made = [Program(module, found, entry=name) for name in (names if kernel is None else [kernel])]
    taken = [[(one.shape, one.element) for one in parameters_of(program.device_functions[0])] for program in made]
    other = next((program for program, own in zip(made, taken, strict=True) if own != taken[0]), None)
    if other is not None:
        raise TileError(f"{made[0].name} and {other.name} take different arguments, and {file} has both", code="T508",
                        help="choose one with --kernel NAME: " + ", ".join(names))
    return made


def _mark_kernel(module: ModuleOp, kernel: str | None) -> None:
    """Marks the functions of a kernel that is chosen by name as ``hacc.entry``, which other tools may leave out.

    Args:
        module: the module, which is changed.
        kernel: the name of the kernel; None if none is chosen.

    Raises:
        TileError: T508, no kernel is chosen, and no function is marked.
    """
    from xdsl.dialects.builtin import UnitAttr

    from tilelang_npu.simulator.run.entry_functions import device_functions_of

    functions = device_functions_of(module)
    if not functions or any("hacc.entry" in function.attributes for each in functions.values() for function in each):
        return
    if kernel is None:
        raise TileError("no function of the module is marked as a kernel (hacc.entry)", code="T508",
                        notes=[f"its device functions: {', '.join(functions)}"],
                        help=f"choose one with --kernel {next(iter(functions))}, or mark it hacc.entry")
    for function in functions.get(kernel, ()):
        function.attributes["hacc.entry"] = UnitAttr()


def blocks_of(programs: Sequence[Program], file: str, given: Sequence[int]) -> list[int]:
    """Returns the number of blocks to launch for each kernel of a file.

    Args:
        programs: the kernels.
        file: the name of the file, for errors.
        given: the values of ``--blocks``: none, or one for each kernel.

    Raises:
        TileError: T807, ``--blocks`` is missing, and the kernel does not declare the number of blocks; T419, the number of
            values differs from the number of kernels.
    """
    if not given:
        return [_declared_blocks(program.device_functions[0], file) for program in programs]
    if len(given) != len(programs):
        names = ", ".join(program.name for program in programs)
        raise TileError(f"--blocks is given {len(given)} times, and {len(programs)} kernels are launched: {names}",
                        code="T419", help="give it once for each, in this order, or choose one kernel with --kernel NAME")
    return list(given)


def _declared_blocks(entry: FuncOp, file: str) -> int:
    """Returns the number of blocks that a kernel declares, or 1 if it declares none and no op reads the block id.

    Raises:
        TileError: T807, the kernel declares no number of blocks, and an op reads the block id.
    """
    from tilelang_npu.dialects import hacc, hivm

    blocks = hacc.block_dim_of(entry)
    if blocks is not None:
        return blocks
    if not any(isinstance(op, (hivm.GetBlockIdxOp, hivm.GetBlockNumOp)) for op in entry.walk()):
        return 1
    raise TileError(f"{file} does not say how many blocks to launch", code="T807",
                    help="give --blocks N, or the attribute hacc.block_dim = N : i64 on the kernel")


def parameters_of(entry: FuncOp) -> list[FunctionParameter]:
    """Returns the parameters of a kernel that a caller passes, without those that the toolchain adds."""
    from tilelang_npu.simulator.run.arguments import GRID
    from tilelang_npu.simulator.run.compile_functions import has_grid, parameters

    declared = parameters(entry)
    own = declared[:-GRID] if has_grid(entry, declared) else declared
    return [parameter for parameter in own if parameter.role == "user"]


def filled(parameter: FunctionParameter, shape: Sequence[int], chip: Chip, fill: Callable[[], Array]) -> Array:
    """Returns a generated array for a parameter for which the command line has no array.

    Args:
        parameter: the parameter.
        shape: the shape of the array.
        chip: the chip; the array must fit into the chip's memory.
        fill: a function that creates the array.

    Raises:
        TileError: T808, the array does not fit into the chip's memory, or into the memory of this machine.
    """
    help_text = "declare the sizes that a launch has, or leave them open"
    nbytes = math.prod(shape) * parameter.element.nbytes
    if nbytes > chip.hbm:
        raise TileError(f"{parameter.spelled} takes {nbytes} bytes, {chip.name} has {chip.hbm}", code="T808", help=help_text)
    try:
        return fill()
    except (MemoryError, ValueError) as error:  # of NumPy: too many bytes, too many axes
        raise TileError(f"{parameter.spelled} cannot be generated: {error}", code="T808", help=help_text) from None


def size_of(text: str) -> tuple[str, int]:
    """Parses ``NAME=N`` and returns the name and the number.

    Raises:
        TileError: T419, the text does not have this form.
    """
    name, _, value = text.partition("=")
    if not name.isidentifier() or not value.lstrip("-").isdigit():
        raise TileError(f"cannot read the size {text!r}", code="T419", help="write it as M=128")
    return name, int(value)


def _values(args: argparse.Namespace, parameters: list[FunctionParameter], chip: Chip) -> list[Array | np.generic]:
    if args.size and (args.args is not None or args.npz is not None):
        raise TileError("--size has an effect on generated arguments only", code="T419",
                        help="remove --size: the files determine the sizes")
    if args.args is not None:
        _check_count(len(args.args), parameters)
        return [_read(text, parameter) for text, parameter in zip(args.args, parameters, strict=True)]
    if args.npz is not None:
        with _load(args.npz) as archive:
            _check_count(len(archive.files), parameters)
            in_order = [f"arr_{number}" for number in range(len(parameters))]
            keys = in_order if set(archive.files) == set(in_order) else [parameter.name for parameter in parameters]
            missing = [key for key in keys if key not in archive.files]
            if missing:
                raise TileError(f"{args.npz} has no array {missing[0]!r}; it has {', '.join(archive.files)}", code="T808",
                                help="name the arrays as the arguments, or arr_0, arr_1, ... in order")
            return [_typed(archive[key], parameter) for key, parameter in zip(keys, parameters, strict=True)]
    rng = np.random.default_rng(args.seed)
    sizes, used = dict(map(size_of, args.size)), set[str]()
    values = [_generated(parameter, rng, sizes, used, chip) for parameter in parameters]
    for name in (name for name in sizes if name not in used):
        raise TileError(f"the kernel has no dynamic size and no number parameter with the name {name}", code="T419",
                        help=f"remove --size {name}; the name of a dynamic size is ARGUMENT_AXIS, such as A_0")
    return values


def _check_count(given: int, parameters: list[FunctionParameter]) -> None:
    if given != len(parameters):
        taken = ", ".join(parameter.spelled for parameter in parameters)
        raise TileError(f"the kernel takes {len(parameters)} arguments and got {given}", code="T808", notes=[taken],
                        help="give one file or number for each argument, in this order")


def _read(text: str, parameter: FunctionParameter) -> Array | np.generic:
    if re.fullmatch(r"[-+0-9.eE]+", text):
        return _typed(np.asarray(float(text)), parameter)
    return _typed(_load(text), parameter)


def _load(name: str) -> Any:  # an array, or the file of several
    try:
        return np.load(existing(name))
    except (ValueError, EOFError) as error:
        raise TileError(f"{name} holds no array: {error}", code="T808",
                        help="pass a .npy or .npz file, as numpy.save and numpy.savez write them") from None


def _typed(array: Array, parameter: FunctionParameter) -> Array | np.generic:
    """Returns an array from a file in the element type of its parameter.

    A .npy file contains the bits of bf16 and float8 elements but not the names of these types, so that such arrays must be
    viewed in the element type of the parameter.
    """
    dtype = parameter.element.numpy
    if parameter.shape is None:
        number: np.generic = dtype.type(array)
        return number
    if array.dtype != dtype and array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    if array.dtype != dtype:
        raise TileError(f"{parameter.name} has elements of {dtype}; the file has {array.dtype}", code="T808",
                        help=f"save it as array.astype({str(dtype)!r})")
    return np.ascontiguousarray(array)


def _generated(parameter: FunctionParameter, rng: np.random.Generator, sizes: dict[str, int], used: set[str],
               chip: Chip) -> Array | np.generic:
    def size(name: str) -> int:
        if name not in sizes:
            raise TileError(f"{parameter.spelled} has no value or size to generate it from", code="T808",
                            help=f"give --size {name}=N, or give the arguments with --args or --npz")
        used.add(name)
        return sizes[name]

    if parameter.shape is None:
        number: np.generic = parameter.element.numpy.type(size(parameter.name))
        return number
    shape = [size(f"{parameter.name}_{axis}") if length < 0 else length for axis, length in enumerate(parameter.shape)]
    return filled(parameter, shape, chip, lambda: make_array(parameter.element, shape, TensorSupplyType.Auto, rng))
