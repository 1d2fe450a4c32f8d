"""Parses the arguments of the commands ``tune`` and ``improve``: the factory, the fixed arguments, and the values to try."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import FunctionType
from typing import TYPE_CHECKING

from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.factory import Factory
    from tilelang_npu.runtime.tuning.autotune import Tuned

__all__ = ["SIZES", "SPACE", "check_complete", "configs_of", "factory_of", "fixed_of", "sizes_of"]

SPACE = "NAME=64,128,256, NAME=1..3, NAME=64..256..64 in steps, NAME=16..256*2 by a factor"
SIZES = "values of sizes and numbers that a call of the kernel gives (T.symbolic, number parameters), such as M=4096"
_RANGE = re.compile(r"(?P<first>-?\d+)\.\.(?P<last>-?\d+)(?:\.\.(?P<step>\d+)|\*(?P<factor>\d+))?")


def factory_of(names: Mapping[str, object], file: str, module: str,
               wanted: str | None) -> tuple[str, Factory[..., object] | Tuned]:
    """Returns the name and the object of a factory (a function that returns kernels) at a script's top level.

    Args:
        names: the global names of the script, with their values.
        file: the path of the script as the user typed it, for errors.
        module: the ``__name__`` with which the script ran.
        wanted: the name of the factory; None for the script's only factory.

    Raises:
        TileError: T810, there is no such factory, or ``wanted`` is None and the script has several factories.
    """
    from tilelang_npu.runtime.jit.factory import Factory
    from tilelang_npu.runtime.tuning.autotune import Tuned

    found = {name: value for name, value in names.items() if isinstance(value, (Factory, Tuned))}
    if wanted in found:
        return wanted, found[wanted]
    own = {name: value for name, value in found.items() if (_function(value)).__module__ == module}
    if wanted is None and len(own) == 1:
        return next(iter(own.items()))
    notes = [f"{file}:{name}{inspect.signature(_function(value))}" for name, value in (own or found).items()]
    if wanted is not None:
        near = get_close_matches(wanted, found, n=1)
        raise TileError(f"{file} has no factory {wanted!r} at its top level", code="T810", notes=notes,
                        help=f"did you mean {near[0]}?" if near else "name a function of the file that is under @tilelang.jit")
    raise TileError(f"{file} has {len(own) or 'no'} factories at its top level", code="T810", notes=notes,
                    help=f"name one of them: {file}:{next(iter(own))}" if own else
                    "write a function under @tilelang.jit that returns a kernel for its parameters")


def fixed_of(factory: Factory[..., object] | Tuned, given: Sequence[str]) -> dict[str, object]:
    """Returns the arguments of a factory that ``--arg NAME=VALUE`` fixes, by name.

    Raises:
        TileError: T810, a text does not have this form, or the factory has no parameter of that name.
    """
    return {name: _value(text) for name, text in _pairs(factory, "--arg", given, "--arg M=4096")}


def sizes_of(given: Sequence[str]) -> dict[str, int]:
    """Returns the values that ``--size NAME=VALUE`` gives to symbolic sizes and number parameters of a kernel, by name.

    Raises:
        TileError: T810, a text does not have this form, or has the name of another one.
    """
    found: dict[str, int] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.isidentifier() or not re.fullmatch(r"-?\d+", value):
            raise TileError(f"--size {text} is not NAME=INTEGER", code="T810", help="for example --size M=4096")
        if name in found:
            raise TileError(f"--size has {name} twice", code="T810", help="give one value")
        found[name] = int(value)
    return found


def configs_of(factory: Factory[..., object] | Tuned, fixed: Mapping[str, object],
               given: Sequence[str]) -> list[Mapping[str, object]]:
    """Returns all configurations to try: all combinations of the values of ``--space``, or those of the factory's ``autotune``.

    Args:
        factory: the factory.
        fixed: the arguments that ``--arg`` fixes, by name.
        given: the texts of ``--space``; if empty, the configurations of ``autotune`` are used.

    Raises:
        TileError: T810, there are no configurations, a value cannot be read, or a parameter is unknown or has no value.
    """
    from tilelang_npu.runtime.tuning.autotune import Tuned, expand_configs

    parameters = inspect.signature(_function(factory)).parameters
    open_ones = [name for name, one in parameters.items() if type(one.default) in (int, float, str, bool) and name not in fixed]
    if given:
        grid = {name: list(_values(name, text)) for name, text in _pairs(factory, "--space", given, f"--space {SPACE}")}
        both = next((name for name in grid if name in fixed), None)
        if both is not None:
            raise TileError(f"{both} is fixed by --arg and varied by --space", code="T810", help="leave out one of them")
        configs: list[Mapping[str, object]]
        configs = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    elif isinstance(factory, Tuned):
        every = expand_configs(factory.configs, ((), tuple(sorted(fixed.items()))))
        kept = [{name: value for name, value in one.items() if name not in fixed} for one in every]
        configs = [one for place, one in enumerate(kept) if one not in kept[:place]]
    else:
        example = " ".join(f"{name}={parameters[name].default}" for name in open_ones) or "NAME=64,128"
        raise TileError("there is nothing to choose from: no --space, and no @autotune above the factory", code="T810",
                        help=f"give values of its parameters, such as --space {example},...")
    check_complete(factory, fixed, configs)
    return configs


def check_complete(factory: Factory[..., object] | Tuned, fixed: Mapping[str, object],
                   configs: Sequence[Mapping[str, object]] = ({},)) -> None:
    """Checks that each parameter of a factory that has no default gets a value.

    Args:
        factory: the factory.
        fixed: the arguments that ``--arg`` fixes, by name.
        configs: the configurations to try, by name; a parameter must be in all of them, or in ``fixed``. By default one
            configuration without values.

    Raises:
        TileError: T810, a parameter has no value.
    """
    if _eager(factory) is not None:
        return  # the parameters of an eager function are the kernel's
    parameters = inspect.signature(_function(factory)).parameters
    missing = [name for name, one in parameters.items() if one.default is one.empty
               and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and name not in fixed
               and not all(name in config for config in configs)]
    if missing:
        raise TileError(f"{_function(factory).__name__} needs {', '.join(missing)}", code="T810",
                        help="give them: " + " ".join(f"--arg {name}=..." for name in missing))


def _function(factory: Factory[..., object] | Tuned) -> FunctionType:
    function: FunctionType = vars(factory)["__wrapped__"]  # set by functools.wraps
    return function


def _eager(factory: Factory[..., object] | Tuned) -> object:
    from tilelang_npu.runtime.tuning.autotune import Tuned

    return (factory.factory if isinstance(factory, Tuned) else factory).eager


def _pairs(factory: Factory[..., object] | Tuned, option: str, given: Sequence[str], example: str) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of the value of each ``NAME=VALUE`` on the command line."""
    parameters = list(inspect.signature(_function(factory)).parameters)
    seen: set[str] = set()
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not value or not name.isidentifier():
            raise TileError(f"{option} {text} is not NAME=VALUE", code="T810", help=f"for example {example}")
        if name not in parameters and _eager(factory) is None:
            spelled = {one.lower(): one for one in parameters}
            near = get_close_matches(name.lower(), spelled, n=1)
            raise TileError(f"{_function(factory).__name__} has no parameter {name!r}", code="T810",
                            help=f"did you mean {spelled[near[0]]}?" if near else f"its parameters are {', '.join(parameters)}")
        if name in seen:
            raise TileError(f"{option} has {name} twice", code="T810", help=f"give all values at once: {name}=64,128")
        seen.add(name)
        yield name, value


def _values(name: str, text: str) -> Iterator[object]:
    """Yields the values of a text in which values and ranges of integers are separated by commas."""
    seen = set()
    for part in text.split(","):
        for value in _range(name, part.strip()):
            if repr(value) not in seen:
                seen.add(repr(value))
                yield value


def _range(name: str, part: str) -> Sequence[object]:
    match = _RANGE.fullmatch(part)
    if match is None:
        if not part or ".." in part:
            raise TileError(f"--space {name} has {part or 'nothing'!r} among its values", code="T810", help=f"write {SPACE}")
        return [_value(part)]
    first, last = int(match["first"]), int(match["last"])
    if match["factor"] is not None:
        values, factor = [first], int(match["factor"])
        while factor > 1 and first > 0 and values[-1] * factor <= last:
            values.append(values[-1] * factor)
        found = values if factor > 1 and 0 < first <= last else []
    else:
        step = int(match["step"] or 1)
        found = list(range(first, last + 1, step)) if step else []
    if not found:
        raise TileError(f"--space {name}={part} has no value", code="T810", help=f"write {SPACE}")
    return found


def _value(text: str) -> object:
    """Returns the value of a text that is a Python literal, such as a number, True or None; otherwise the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
