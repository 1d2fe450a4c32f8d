"""The options of passes as text, in MLIR's form: ``plan-memory{chip=Ascend910B2 reuse=true},tidy``.

An option is a field of the pass's dataclass, with a type, a default and a line in the class's docstring (``Attributes``). Where
the pipeline creates a pass, :func:`create_pass` gives each option its value:

- ``chip``: the name of the chip that is compiled for;
- ``enabled``: whether the optimisation with the pass's name is on;
- the name of an optimisation, with underscores (``keep_apart``): whether that optimisation is on;
- the name of an attribute of :class:`Options` (``reuse``, ``by_hand``): the value of the attribute;
- any other name: the option's default.

xDSL's ``parse_pipeline`` is not used: it accepts no spaces and line breaks between passes and no quotes
inside of a quoted value, and its errors do not name the options that a pass has.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, NoReturn, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass

from tilelang_npu.errors import TileError
from tilelang_npu.transforms.infra.optimisations import OPTIMISATIONS
from tilelang_npu.transforms.infra.options import Options

__all__ = ["PassOption", "create_pass", "options_of", "parse_passes", "pass_text", "summary_of"]

_PLAIN = re.compile(r"[\w.+-]+")
"""Texts that need no quotes as the value of an option."""
_TOKENS = re.compile(r'\s*(?:(?P<word>[\w.+-]+)|(?P<quoted>"(?:[^"\\\n]|\\.)*")|(?P<mark>[{}=,()])|(?P<end>\Z))')


class PassOption(NamedTuple):
    """An option of a pass, described by texts.

    Attributes:
        name: the name of the option, which is a field of the pass's class.
        kind: the type of the option, in words.
        default: the default value of the option; empty where the option has no default.
        doc: what the docstring of the pass's class says about the option; empty where it says nothing.
    """

    name: str
    kind: str
    default: str
    doc: str


def create_pass(pass_type: type[ModulePass], options: Options, **values: object) -> ModulePass:
    """Creates a pass whose option values follow from the options of a compilation, as the module's docstring describes.

    Args:
        pass_type: the class of the pass.
        options: the options of the compilation.
        values: values of the pass's options, which take precedence over those that follow from ``options``. Names that are no
            options of the pass are ignored.
    """
    found: dict[str, object] = {}
    for field in _option_fields(pass_type):
        optimisation = pass_type.name if field.name == "enabled" else field.name.replace("_", "-")
        if field.name in values:
            found[field.name] = values[field.name]
        elif field.name == "chip":
            found[field.name] = options.chip.name
        elif field.name == "enabled" or optimisation in OPTIMISATIONS:
            found[field.name] = options.does(optimisation)
        elif hasattr(options, field.name):
            found[field.name] = getattr(options, field.name)
    return pass_type(**found)


def options_of(pass_type: type[ModulePass]) -> list[PassOption]:
    """Returns the options of a pass, in the order of the class's fields."""
    docs, types = _attribute_docs(pass_type), get_type_hints(pass_type)
    return [PassOption(field.name, _kind(types[field.name]), "" if _is_required(field) else _value_text(_default(field)),
                       docs.get(field.name, "")) for field in _option_fields(pass_type)]


def summary_of(pass_type: type[ModulePass]) -> str:
    """Returns the first paragraph of the docstring of a pass.

    If the docstring of the class begins with "The pass", the first paragraph of the docstring of the class's module is
    returned.
    """
    texts = (pass_type.__doc__ or "", sys.modules[pass_type.__module__].__doc__ or "")
    own, of_module = (inspect.cleandoc(text).partition("\n\n")[0].replace("\n", " ") for text in texts)
    return of_module if own.startswith("The pass") and of_module else own


def pass_text(made: ModulePass) -> str:
    """Returns a pass with all its option values as text: ``hoist-loads{chip=Ascend910B2 enabled=true}``."""
    texts = [f"{field.name}={_value_text(getattr(made, field.name))}" for field in _option_fields(type(made))]
    return made.name + (f"{{{' '.join(texts)}}}" if texts else "")


def parse_passes(text: str, known: Mapping[str, type[ModulePass]]) -> list[ModulePass]:
    """Parses a list of passes with options, as MLIR writes it: ``first,second{option=value other=1}``.

    Each pass is written as :func:`pass_text` writes it. Spaces and line breaks are allowed between the parts.
    ``builtin.module(...)`` around the list is accepted. Names of options may be written with hyphens or underscores.

    Args:
        text: the list.
        known: the classes of the passes that may occur, by name.

    Raises:
        TileError: T805, the text is no list of passes, or has an unknown pass, an unknown option, or a value that the option
            cannot have; or a required option has no value.
    """
    return _PassReader(text, known).passes()


class _PassReader:
    """Reads a list of passes.

    Args:
        text: the list.
        known: the classes of passes by name.
    """

    def __init__(self, text: str, known: Mapping[str, type[ModulePass]]) -> None:
        self._text, self._known, self._place = text, known, 0

    def passes(self) -> list[ModulePass]:
        wrapped = self._text.lstrip().startswith("builtin.module")
        if wrapped:
            self._take("word")
            self._expect("(")
        found: list[ModulePass] = []
        while not self._is_at_end(wrapped=wrapped) or found:
            found.append(self._pass())
            if self._is_at_end(wrapped=wrapped):
                break
            self._expect(",")
        if wrapped:
            self._expect(")")
            if not self._peek("end"):
                self._fail("the text ends after the last pass")
        return found

    def _is_at_end(self, *, wrapped: bool) -> bool:
        return self._peek("end") or (wrapped and self._peek("mark", ")"))

    def _pass(self) -> ModulePass:
        name = self._take("word")
        if name is None:
            self._fail("expected the name of a pass")
        pass_type = self._known.get(name)
        if pass_type is None:
            near = get_close_matches(name, self._known, n=1)
            raise TileError(f"there is no pass {name!r}", code="T805", notes=["the passes are " + ", ".join(self._known)],
                            help=f"did you mean {near[0]}?" if near else "opt --list shows them with their options")
        values: dict[str, object] = {}
        if self._peek("mark", "{"):
            self._expect("{")
            while not self._peek("mark", "}"):
                self._option(pass_type, values)
            self._expect("}")
        missing = [field.name for field in _option_fields(pass_type) if field.name not in values and _is_required(field)]
        if missing:
            raise TileError(f"pass {name} needs a value of its option {missing[0]}", code="T805",
                            help=f"write {name}{{{missing[0]}=...}}; opt --list shows the options")
        return pass_type(**values)

    def _option(self, pass_type: type[ModulePass], values: dict[str, object]) -> None:
        spelled = self._take("word")
        if spelled is None:
            self._fail("expected the name of an option, or }")
        name, types = spelled.replace("-", "_"), get_type_hints(pass_type)
        known = [field.name for field in _option_fields(pass_type)]
        if name not in known:
            near = get_close_matches(name, known, n=1)
            listed = f"its options are {', '.join(known)}" if known else "it has no options"
            raise TileError(f"pass {pass_type.name} has no option {spelled!r}", code="T805", notes=[listed],
                            help=f"did you mean {near[0]}?" if near else "opt --list shows the passes with their options")
        if name in values:
            raise TileError(f"option {spelled} of pass {pass_type.name} is given twice", code="T805", help="give it once")
        if not self._peek("mark", "="):
            raise TileError(f"option {spelled} of pass {pass_type.name} has no value", code="T805",
                            help=f"write {spelled}=VALUE; VALUE is {_kind(types[name])}")
        self._expect("=")
        words: list[str] = []
        # The list may be empty: `without=` is followed by the next option or by the end of the options.
        while (word := self._value(after_comma=bool(words))) is not None:
            words.append(word)
            if not self._peek("mark", ","):
                break
            self._expect(",")
        if not words and not self._peek("word") and not self._peek("mark", "}"):
            self._fail("expected a value")
        try:
            values[name] = _converted(words, types[name])
        except ValueError:
            given = ",".join(words)
            raise TileError(f"option {spelled} of pass {pass_type.name} is {_kind(types[name])}, not {given!r}",
                            code="T805", help="opt --list shows the options with their types and defaults") from None

    def _value(self, *, after_comma: bool) -> str | None:
        """The next value of a list; None where there is none."""
        if (quoted := self._take("quoted")) is not None:
            return re.sub(r"\\(.)", r"\1", quoted[1:-1])
        start = self._place
        word = self._take("word")
        if word is not None and not after_comma and self._peek("mark", "="):
            self._place = start  # the name of the next option
            return None
        if word is None and after_comma:
            self._fail("expected a value after the comma")
        return word

    def _match(self) -> re.Match[str] | None:
        return _TOKENS.match(self._text, self._place)

    def _peek(self, kind: str, text: str | None = None) -> bool:
        found = self._match()
        return found is not None and found.lastgroup == kind and (text is None or found[kind] == text)

    def _take(self, kind: str) -> str | None:
        """The next token, if it is of a kind; then it is consumed."""
        found = self._match()
        if found is None or found.lastgroup != kind:
            return None
        self._place = found.end()
        return found[kind]

    def _expect(self, mark: str) -> None:
        if not self._peek("mark", mark):
            self._fail(f"expected {mark}")
        self._take("mark")

    def _fail(self, what: str) -> NoReturn:
        rest = self._text[self._place:].strip()
        where = f"before {rest.splitlines()[0][:40]!r}" if rest else "at the end"
        raise TileError(f"the list of passes cannot be read: {what} {where}", code="T805",
                        help="write passes as first,second{option=value other=1}")


def _option_fields(pass_type: type[ModulePass]) -> list[Field[object]]:
    return [field for field in fields(pass_type) if field.init and field.name != "name"]


def _default(field: Field[object]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _is_required(field: Field[object]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _value_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_value_text, value))
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if _PLAIN.fullmatch(text) and not (isinstance(value, str) and text == "none"):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


_SCALARS: Mapping[object, tuple[str, re.Pattern[str]]] = {
    bool: ("true or false", re.compile("true|false")), int: ("an integer", re.compile(r"[+-]?\d+")),
    float: ("a number", re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")), str: ("a text", re.compile(".*", re.DOTALL))}
"""The types of options that have one value: in words, and the texts of their values."""


def _kind(type_: object) -> str:
    """The type of an option, in words."""
    if type_ in _SCALARS:
        return _SCALARS[type_][0]
    arguments = get_args(type_)
    if get_origin(type_) is Literal:
        return " or ".join(map(str, arguments))
    if get_origin(type_) is tuple:
        return f"a list of values separated by commas, each {_kind(arguments[0])}"
    if get_origin(type_) in (Union, UnionType):
        return " or ".join("none" if one is NoneType else _kind(one) for one in arguments)
    raise TypeError(f"an option of a pass cannot be a {type_}: it is a bool, int, float or str, a Literal, a tuple[X, ...] of"
                    " these, or one of them or None")


def _converted(words: Sequence[str], type_: Any) -> Any:
    """The value that the words of an option mean.

    Raises:
        ValueError: they are no value of the type.
    """
    arguments = get_args(type_)
    if get_origin(type_) is tuple:
        return tuple(_converted([word], arguments[0]) for word in words)
    (word,) = words
    if get_origin(type_) in (Union, UnionType):
        if NoneType in arguments and word == "none":
            return None
        (type_,) = (one for one in arguments if one is not NoneType)
        return _converted(words, type_)
    if get_origin(type_) is Literal:
        if word not in arguments:
            raise ValueError(word)
        return word
    if not _SCALARS[type_][1].fullmatch(word):
        raise ValueError(word)
    return word == "true" if type_ is bool else type_(word)


def _attribute_docs(pass_type: type[ModulePass]) -> dict[str, str]:
    """What the docstrings of a class and of its bases say of their attributes, in the section ``Attributes``."""
    found: dict[str, str] = {}
    for base in reversed(pass_type.__mro__):
        _, mark, section = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")
        for match in re.finditer(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", section if mark else "", re.MULTILINE):
            text = " ".join(line.strip() for line in match[2].splitlines())
            found.update(dict.fromkeys(match[1].split(", "), text))
    return found
