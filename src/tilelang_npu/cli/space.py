"""The arguments of ``tune``: the factory, the sizes that are fixed, and the values that are tried."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.factory import Factory
    from tilelang_npu.runtime.tuning.autotune import Tuned

__all__ = ["SPACE", "configs_of", "factory_of", "fixed_of"]

SPACE = "NAME=64,128,256, NAME=1..3, NAME=64..256..64 in steps, NAME=16..256*2 by a factor"
_RANGE = re.compile(r"(?P<first>-?\d+)\.\.(?P<last>-?\d+)(?:\.\.(?P<step>\d+)|\*(?P<factor>\d+))?")


def factory_of(names: Mapping[str, Any], file: str, module: str, wanted: str | None) -> tuple[str, Factory[..., Any] | Tuned]:
    """The factory with a name at a script's top level; the only one where no name is given.

    Args:
        names: the names of the script.
        file: the file, as it was typed.
        module: the name under which the script ran.
        wanted: the name of the factory.

    Raises:
        TileError: T810, there is none, or there are several.
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
                        help=f"did you mean {near[0]}?" if near else "name a function under @tilelang.jit there")
    raise TileError(f"{file} has {len(own) or 'no'} factories at its top level", code="T810", notes=notes,
                    help=f"name one of them: {file}:{next(iter(own))}" if own else
                    "write a function that makes the kernel for its parameters, under @tilelang.jit")


def fixed_of(factory: Factory[..., Any] | Tuned, given: Sequence[str]) -> dict[str, Any]:
    """The arguments of ``--arg NAME=VALUE``.

    Raises:
        TileError: T810, one of them has another form, or is not a parameter.
    """
    return {name: _value(text) for name, text in _pairs(factory, "--arg", given, "--arg M=4096")}


def configs_of(factory: Factory[..., Any] | Tuned, fixed: Mapping[str, Any], given: Sequence[str]) -> list[Mapping[str, Any]]:
    """All configurations of ``--space``; without it those of the factory's ``autotune``.

    Raises:
        TileError: T810, there are none, a value cannot be read, or a parameter is unknown or has no value.
    """
    from tilelang_npu.runtime.tuning.autotune import Tuned, expand_configs

    parameters = inspect.signature(_function(factory)).parameters
    open_ones = [name for name, one in parameters.items() if type(one.default) in (int, float, str, bool) and name not in fixed]
    if given:
        grid = {name: list(_values(name, text)) for name, text in _pairs(factory, "--space", given, f"--space {SPACE}")}
        both = next((name for name in grid if name in fixed), None)
        if both is not None:
            raise TileError(f"{both} is fixed by --arg and varied by --space", code="T810", help="leave out one of them")
        configs: list[Mapping[str, Any]]
        configs = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    elif isinstance(factory, Tuned):
        every = expand_configs(factory.configs, ((), tuple(sorted(fixed.items()))))
        kept = [{name: value for name, value in one.items() if name not in fixed} for one in every]
        configs = [one for place, one in enumerate(kept) if one not in kept[:place]]
    else:
        example = " ".join(f"{name}={parameters[name].default}" for name in open_ones) or "NAME=64,128"
        raise TileError("there is nothing to choose from: no --space, and no configurations above the factory", code="T810",
                        help=f"give values of its parameters, such as --space {example},...")
    if _eager(factory) is None:
        needed = [name for name, one in parameters.items() if one.default is one.empty
                  and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
        missing = [name for name in needed if name not in fixed and not all(name in config for config in configs)]
        if missing:
            raise TileError(f"{_function(factory).__name__} needs {', '.join(missing)}", code="T810",
                            help="give them: " + " ".join(f"--arg {name}=..." for name in missing))
    return configs


def _function(factory: Factory[..., Any] | Tuned) -> Any:
    return factory.__wrapped__  # type: ignore[union-attr]  # functools.wraps sets it on both


def _eager(factory: Factory[..., Any] | Tuned) -> object:
    from tilelang_npu.runtime.tuning.autotune import Tuned

    return (factory.factory if isinstance(factory, Tuned) else factory).eager


def _pairs(factory: Factory[..., Any] | Tuned, option: str, given: Sequence[str], example: str) -> Iterator[tuple[str, str]]:
    """The names and the texts of their values."""
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


def _values(name: str, text: str) -> Iterator[Any]:
    """The values between commas, with ranges expanded."""
    seen = set()
    for part in text.split(","):
        for value in _range(name, part.strip()):
            if repr(value) not in seen:
                seen.add(repr(value))
                yield value


def _range(name: str, part: str) -> list[Any]:
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


def _value(text: str) -> Any:
    """A number, True, False, None or another literal; else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
