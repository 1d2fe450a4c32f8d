"""Output is coloured only in a terminal, and only if colours are not disabled."""

from __future__ import annotations

import io

import pytest

from tilelang_npu.display import painted

TEXT = "race[S201]: bytes are read too early\n  --> kernel.py:3:5\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _nothing_forbids_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_has_colours_and_a_file_has_none() -> None:
    assert "\x1b[" in painted(TEXT, Terminal())
    assert painted(TEXT, io.StringIO()) == TEXT


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_forbids_colours_gets_none(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert painted(TEXT, Terminal()) == TEXT
