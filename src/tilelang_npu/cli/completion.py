"""The command ``completion``, which prints a shell script that completes commands, options and option values.

The script is generated from the parser of the command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from tilelang_npu.cli.parser import Commands

__all__ = ["add_to", "completion"]

_BASH = """\
_tilelang_npu() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} known=
  COMPREPLY=()
  case "${COMP_WORDS[1]}:$before" in
%(values)s
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    known="%(commands)s"
  elif [ "${word:0:1}" = - ]; then
    case "${COMP_WORDS[1]}" in
%(options)s
    esac
  else
    COMPREPLY=($(compgen -f -- "$word"))
    return
  fi
  COMPREPLY=($(compgen -W "$known" -- "$word"))
}
complete -o filenames -F _tilelang_npu tilelang-npu
"""
_ZSH = """\
(( $+functions[compdef] )) || { autoload -U compinit && compinit -u; }
autoload -U +X bashcompinit && bashcompinit
"""


def add_to(commands: Commands) -> None:
    """Adds the command ``completion`` to the parser."""
    parser = commands.add_parser(
        "completion", help="print a script with which a shell completes commands and options",
        description="Put `eval \"$(tilelang-npu completion bash)\"` into ~/.bashrc, the same with zsh into ~/.zshrc, or"
                    " `tilelang-npu completion fish | source` into fish's configuration.")
    parser.add_argument("shell", choices=sorted(_WRITERS))
    parser.set_defaults(command=partial(completion, commands))


def completion(commands: Commands, args: argparse.Namespace) -> int:
    """Prints the completion script of a shell, and returns the exit code.

    Args:
        commands: the parsers of all commands.
        args: the arguments of the command.
    """
    print(_WRITERS[args.shell](commands), end="")
    return 0


def _values(option: argparse.Action) -> list[str]:
    """Returns the values that an option can have; an empty list if any text is allowed."""
    if option.choices:
        return [str(one) for one in option.choices]
    if "--chip" in option.option_strings:
        from tilelang_npu import target

        return [chip.name for chip in target.chips()]
    return []


def _bash(commands: Commands) -> str:
    values, options = [], []
    for name, command in commands.choices.items():
        known = [option for action in command._actions for option in action.option_strings]
        options.append(f'      {name}) known="{" ".join(known)}" ;;')
        for action in command._actions:
            if given := _values(action):
                places = [f"{name}:{option}" for option in action.option_strings] or [f"{name}:{name}"]
                values.append(f'    {"|".join(places)}) COMPREPLY=($(compgen -W "{" ".join(given)}" -- "$word")); return ;;')
    return _BASH % {"commands": " ".join(commands.choices), "values": "\n".join(values), "options": "\n".join(options)}


def _fish(commands: Commands) -> str:
    lines = []
    helps = {one.dest: one.help or "" for one in commands._choices_actions}
    for name, command in commands.choices.items():
        lines.append(f"complete -c tilelang-npu -n __fish_use_subcommand -f -a {name} -d {_quoted(helps.get(name, ''))}")
        for action in command._actions:
            given = f" -x -a {_quoted(' '.join(_values(action)))}" if _values(action) else ""
            spelled = "".join(f" -l {one[2:]}" if one.startswith("--") else f" -s {one[1:]}" for one in action.option_strings)
            if spelled or given:
                lines.append(f"complete -c tilelang-npu -n '__fish_seen_subcommand_from {name}'{spelled}{given}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_WRITERS: dict[str, Callable[[Commands], str]] = {"bash": _bash, "fish": _fish, "zsh": lambda commands: _ZSH + _bash(commands)}
