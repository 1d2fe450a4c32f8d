"""Mutants of modules in the planned form: one thing wrong at a time, drawn by a seed."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from simulator.test_random_mixed_hivm import BINARY, BLOCKS, UNARY, Writer
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.jit.factory import Factory
from tilelang_npu.runtime.kernel.foreign_modules import runnable

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SIZES: dict[str, dict[str, int]] = {
    "flash_attention": {"length": 128, "keys": 128, "dim": 64},
    "flash_attention_expert": {"length": 128, "keys": 256, "dim": 64},
    "gemm": {"M": 128, "N": 128, "K": 192}, "gemm_expert": {"M": 128, "N": 256, "K": 512},
    "linear_relu": {"M": 128, "N": 128, "K": 256, "blocks": 1},
    "linear_relu_expert": {"M": 128, "N": 128, "K": 256, "blocks": 1},
    "minicv": {"M": 128, "N": 256, "K": 128, "blocks": 2}, "minicv_expert": {"M": 128, "N": 256, "K": 128, "blocks": 2},
    "rms_norm": {"rows": 20, "columns": 256, "blocks": 2}, "rms_norm_expert": {"rows": 20, "columns": 256, "blocks": 2},
    "softmax": {"rows": 20, "columns": 256, "blocks": 2}, "softmax_expert": {"rows": 20, "columns": 256, "blocks": 2},
    "w4a8_gemm": {"M": 128, "N": 128, "K": 512}, "w4a8_gemm_expert": {"M": 128, "N": 128, "K": 512}}
SPACE = re.compile(r"memref<[^<>]*(?:<[^<>]*>[^<>]*)?#hivm\.address_space<(\w+)>>")
SYNC = re.compile(r"hivm\.hir\.(set_flag|wait_flag|sync_block_set|sync_block_wait|pipe_barrier|sync_block)\b")
PIPE = re.compile(r"<PIPE_(\w+)>")
EVENT = re.compile(r"<EVENT_ID(\d)>|(?<=flag = )(\d+)")
CONSTANT = re.compile(r"(?<=arith\.constant )(-?\d+)(?= : (?:index|i32|i64))")
INS = re.compile(r"ins\((%\w+), (%\w+)")
SIMILAR = (("vadd", "vsub", "vmul", "vmax", "vmin", "vdiv"), ("vexp", "vln", "vsqrt", "vrsqrt", "vabs", "vrelu"),
           ("load", "copy", "store", "nd2nz", "nz2nd", "fixpipe"), ("set_flag", "wait_flag"),
           ("sync_block_set", "sync_block_wait"))
OP = re.compile(r"hivm\.hir\.(\w+)")


class Mutant(NamedTuple):
    """A module with something wrong in it."""

    base: str
    kind: str
    line: int
    text: str


@cache
def kernel_of(name: str) -> Any:
    """The kernel of an example, at small sizes."""
    spec = importlib.util.spec_from_file_location(f"mutated_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(str(EXAMPLES))
    factory: Any = next(value for value in vars(made).values() if isinstance(value, Factory))
    return factory(**SIZES[name])


@cache
def text_of(name: str) -> str:
    """Returns the HIVM text of an example."""
    text: str = kernel_of(name).mlir()
    return text


def blocks_of(text: str) -> int:
    """The blocks that a module says to launch."""
    report = re.search(r"hacc\.block_dim = (\d+)", text)
    return int(report[1]) if report else BLOCKS


@cache
def random_text(seed: int) -> str:
    """A random module of both cores, planned and synchronised."""
    rng = random.Random(seed)
    writer = Writer(rng.choice((16, 32)), rng.choice((16, 48)), rng.choice((8, 16)))
    return print_module(runnable(parse_module(writer.module(_steps(rng, 2), rng.randrange(1, 3)))))


def _steps(rng: random.Random, depth: int) -> list[tuple[Any, ...]]:
    def tile() -> int:
        return rng.randrange(2)

    def truth() -> bool:
        return rng.random() < 0.5

    made: list[tuple[Any, ...]] = []
    for _ in range(rng.randrange(1, 4)):
        choices: list[tuple[Any, ...]] = [
            ("binary", rng.choice(sorted(BINARY)), tile(), tile(), tile()),
            ("unary", rng.choice(sorted(UNARY)), tile(), tile()),
            ("scaled", tile(), tile()), ("cast", tile(), tile()), ("select", tile(), tile(), tile()), ("row", tile(), tile()),
            ("load", tile()), ("copy", tile(), tile()), ("atomic", tile()), ("product", tile(), truth(), truth()),
            ("direct", truth())]
        if depth:
            choices += [("if", _steps(rng, depth - 1), _steps(rng, depth - 1)),
                        ("for", rng.randrange(3), _steps(rng, depth - 1))]
        made.append(rng.choice(choices))
    return made


def _space(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    kinds = sorted({match[0] for line in lines for match in SPACE.finditer(line)})
    old = rng.choice(kinds)
    space = re.findall(r"address_space<(\w+)>", old)[-1]
    new = rng.choice([other for other in ("gm", "ub", "cbuf", "ca", "cb", "cc") if other != space])
    swapped = old[:old.rindex("<")] + f"<{new}>>"
    return _first(lines, old), [line.replace(old, swapped) for line in lines]


def _first(lines: list[str], part: str) -> int:
    return next(number for number, line in enumerate(lines) if part in line)


def _core(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    places = [number for number, line in enumerate(lines) if re.search(r"func_core_type<AI[CV]>", line)]
    return _changed(rng, lines, places, lambda line: re.sub(
        r"func_core_type<AI(.)>", lambda match: f"func_core_type<AI{'V' if match[1] == 'C' else 'C'}>", line))


def _changed(rng: random.Random, lines: list[str], places: list[int],
             change: Callable[[str], str]) -> tuple[int, list[str]] | None:
    """One of some lines changed."""
    if not places:
        return None
    place = rng.choice(places)
    made = change(lines[place])
    return None if made == lines[place] else (place, [*lines[:place], made, *lines[place + 1:]])


def _with(pattern: re.Pattern[str], lines: list[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if pattern.search(line)]


def _one(rng: random.Random, pattern: re.Pattern[str], line: str, other: Callable[[re.Match[str]], str]) -> str:
    match = rng.choice(list(pattern.finditer(line)))
    return line[:match.start()] + other(match) + line[match.end():]


def _pipe(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    pipes = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL")
    return _changed(rng, lines, _with(PIPE, lines), lambda line: _one(
        rng, PIPE, line, lambda match: f"<PIPE_{rng.choice(pipes)}>"))


def _event(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    places = [number for number in _with(EVENT, lines) if SYNC.search(lines[number])]
    return _changed(rng, lines, places, lambda line: _one(
        rng, EVENT, line, lambda match: f"<EVENT_ID{rng.randrange(8)}>" if match[1] else str(rng.randrange(16))))


def _sync(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    places = _with(SYNC, lines)
    if not places:
        return None
    place = rng.choice(places)
    left, right = lines[:place], lines[place + 1:]
    what = rng.choice(("drop", "drop", "twice", "up", "down"))
    if what == "drop":
        return place, [*left, *right]
    if what == "twice":
        return place, [*left, lines[place], lines[place], *right]
    if what == "up":
        return place, [*left[:-1], lines[place], *left[-1:], *right]
    return place, [*left, *right[:1], lines[place], *right[1:]]


def _number(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    def other(match: re.Match[str]) -> str:
        number = int(match[1])
        return str(rng.choice((number + 1, number - 1, number * 2, number // 2, number + 32, number + 512, 0, -number, 3)))

    return _changed(rng, lines, _with(CONSTANT, lines), lambda line: _one(rng, CONSTANT, line, other))


def _operands(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    places = [number for number in _with(INS, lines) if "hivm.hir" in lines[number]]
    return _changed(rng, lines, places, lambda line: INS.sub(r"ins(\2, \1", line))


def _operand(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    """Another buffer of the same type."""
    place = rng.choice([number for number, line in enumerate(lines) if "hivm.hir" in line and "ins(" in line])
    kinds: dict[str, set[str]] = {}
    for line in lines:
        if (match := re.match(r"\s*(%\w+) = hivm\.hir\.pointer_cast.* : (memref<.*>)", line)):
            kinds.setdefault(match[2], set()).add(match[1])
    families = [sorted(names) for names in kinds.values() if len(names) > 1]
    used = [(name, family) for family in families for name in family if re.search(rf"{name}\b", lines[place])]
    if not used:
        return None
    name, family = rng.choice(used)
    new = rng.choice([other for other in family if other != name])
    return _changed(rng, lines, [place], lambda line: re.sub(rf"{name}\b", new, line))


def _op(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    place = rng.choice(_with(OP, lines))
    name = OP.search(lines[place])[1]  # type: ignore[index]  # it is there
    family = next((family for family in SIMILAR if name in family), None)
    if family is None:
        return None
    new = rng.choice([other for other in family if other != name])
    return _changed(rng, lines, [place], lambda line: line.replace(f"hivm.hir.{name}", f"hivm.hir.{new}"))


def _drop(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    """An op less."""
    place = rng.choice([number for number, line in enumerate(lines) if re.match(r"\s*hivm\.hir\.", line)])
    return place, lines[:place] + lines[place + 1:]


def _move(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    """Moves an op after some ops that follow it."""
    place = rng.choice([number for number, line in enumerate(lines) if re.match(r"\s*hivm\.hir\.", line)])
    end = place + 1 + rng.randrange(1, 6)
    return place, [*lines[:place], *lines[place + 1:end], lines[place], *lines[end:]]


def _truth(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    """A condition that is another."""
    other = {"true": "false", "false": "true", "eq": "ne", "slt": "sle", "minsi": "maxsi"}
    pattern = re.compile(rf"(?<=arith\.constant )(true|false)|(?<=arith\.cmpi )({'|'.join(other)})|(?<=arith\.)(minsi)")
    places = _with(pattern, lines)
    return _changed(rng, lines, places, lambda line: pattern.sub(lambda match: other[match[0]], line))


def _attribute(rng: random.Random, lines: list[str]) -> tuple[int, list[str]] | None:
    """Another layout, another axis, another way to fill up."""
    pairs = (("nz2nd", "normal"), ("_dims = [1]", "_dims = [0]"), ("broadcast = [1]", "broadcast = [0]"), ("<sum>", "<max>"),
             ("pad_mode = <PadValue>", "pad_mode = <PadFirstElem>"), ("a_transpose", "b_transpose"), (" atomic = <add>", ""))
    found = [(number, pair) for number, line in enumerate(lines) for pair in pairs if pair[0] in line]
    if not found:
        return None
    place, (old, new) = rng.choice(found)
    return _changed(rng, lines, [place], lambda line: line.replace(old, new))


KINDS = (_drop, _move, _truth, _attribute, _space, _core, _pipe, _event, _sync, _sync, _number, _number, _operands, _operand,
         _op)


def mutants(name: str, text: str, seed: int) -> Iterator[Mutant]:
    """Mutants of a module, without end; each comes once."""
    rng = random.Random(f"{name} {seed}")
    lines, seen = text.split("\n"), {text}
    while True:
        kind = rng.choice(KINDS)
        made = kind(rng, lines)
        if made is None or (whole := "\n".join(made[1])) in seen:
            continue
        seen.add(whole)
        yield Mutant(name, kind.__name__.strip("_"), made[0] + 1, whole)
