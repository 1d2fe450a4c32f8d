"""The command line itself: examples below every help, guesses at mistyped words, completion, colours, and ``new``."""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilelang_npu import target
from tilelang_npu.cli import parser_of_all
from tilelang_npu.cli.parser import EXAMPLES, commands_of, parse
from tilelang_npu.display import painted

COMMANDS = sorted(commands_of(parser_of_all()))


def test_every_command_has_examples() -> None:
    assert {*EXAMPLES} == {*COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_a_command_stand_in_its_help_and_are_understood(tool: Any, command: str) -> None:
    assert tool(command, "--help").code == 0
    shown = commands_of(parser_of_all())[command].format_help()
    for line in EXAMPLES[command]:
        assert f"  tilelang-npu {line}\n" in shown
        assert line.split()[0] == command
        if command != "run":  # whose arguments are the script's
            parse(parser_of_all(), shlex.split(line))


@pytest.mark.parametrize(("words", "guess"), [
    (["chek", "a.py"], "did you mean check?"), (["check", "a.py", "--reprot", "x"], "did you mean --report for --reprot?"),
    (["sim", "a.mlir", "--sede=1"], "did you mean --seed for --sede=1?"), (["completion", "bsh"], "did you mean bash?")])
def test_a_mistyped_word_is_guessed(words: list[str], guess: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(parser_of_all(), words)
    assert end.value.code == 2
    assert guess in capsys.readouterr().err


def test_a_word_that_is_like_nothing_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["qqqq"], ["check", "a.py", "--zzzzzz"]):
        with pytest.raises(SystemExit):
            parse(parser_of_all(), words)
        assert "did you mean" not in capsys.readouterr().err


def completed(tool: Any, *words: str) -> set[str]:
    """Returns bash's completions of the last word."""
    line = " ".join(map(shlex.quote, ("tilelang-npu", *words)))
    program = (f"{tool('completion', 'bash').out}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n_tilelang_npu\n"
               'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert not done.stderr
    return {*done.stdout.split()}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_their_values(tool: Any) -> None:
    assert completed(tool, "") == {*COMMANDS}
    assert completed(tool, "ch") == {"check", "chips"}
    assert completed(tool, "check", "--re") == {"--report"}
    assert {"--sanitize", "--schedule"} <= completed(tool, "sim", "--s")
    assert completed(tool, "run", "--chip", "") == {chip.name for chip in target.chips()}
    assert completed(tool, "completion", "f") == {"fish"}


def test_the_other_shells_know_the_commands_and_options(tool: Any) -> None:
    assert tool("completion", "zsh").out.endswith(tool("completion", "bash").out)
    fish = tool("completion", "fish").out
    for name, command in commands_of(parser_of_all()).items():
        assert f"-n __fish_use_subcommand -f -a {name} -d" in fish
        for action in command._actions:
            for option in action.option_strings:
                dashed = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                assert any(f"from {name}'" in line and dashed in line for line in fish.splitlines()), (name, option)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    text = "error[T104]: no\n  --> a.py:3:4\n    |  ^^^"
    assert painted(text, io.StringIO()) == text
    coloured = painted(text, Terminal())
    assert coloured == "\x1b[1;31merror[T104]:\x1b[0m no\n  --> \x1b[36ma.py:3:4\x1b[0m\n    |  \x1b[31m^^^\x1b[0m"
    monkeypatch.setenv("TERM", "dumb")
    assert painted(text, Terminal()) == text
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert painted(text, Terminal()) == text


def test_a_new_kernel_runs_passes_its_test_and_its_check(tool: Any, tmp_path: Path) -> None:
    made = tool("new", "row_scale", "--dir", str(tmp_path / "kernels"))
    assert made.code == 0
    folder = tmp_path / "kernels"
    assert {path.name for path in folder.iterdir()} == {"row_scale.py", "test_row_scale.py"}
    assert tool("run", str(folder / "row_scale.py")).code == 0
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_row_scale.py"], cwd=folder,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
    before = (folder / "row_scale.py").read_text()
    (folder / "test_row_scale.py").unlink()
    again = tool("new", "row_scale", "--dir", str(folder))
    assert (again.code, "exists" in again.err) == (1, True)
    assert (folder / "row_scale.py").read_text() == before
    assert not (folder / "test_row_scale.py").exists()


@pytest.mark.parametrize("name", ["2d", "for", "a-b", ""])
def test_a_new_kernel_needs_a_name_of_python(tool: Any, tmp_path: Path, name: str) -> None:
    done = tool("new", name, "--dir", str(tmp_path))
    assert (done.code, "error[T417]" in done.err) == (1, True)
    assert not list(tmp_path.iterdir())
