"""Shows a progress line in the terminal during work that takes longer than two seconds.

The line names the work, how much of it is done, and the time left. It is written to standard error if that is a terminal, and
is removed when the work ends. It is not written to files, pipes and notebooks, in CI, or with ``TERM=dumb``. The working code
only counts the items that are done; a background thread draws the line every 0.25 seconds.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["AFTER", "Underway", "aside", "shown", "text_of"]

AFTER = 2.0
"""The number of seconds of work after which the progress line is shown."""
_EVERY = 0.25
"""The number of seconds between drawings."""


@dataclass
class Underway:
    """Work that is running, such as the compilation of several configurations.

    Attributes:
        what: the text that names the work in the progress line.
        total: the number of items to process; 0 if it is not known.
        of: the noun for the items, such as ``changes``.
        done: the number of items that are done; the working code increments this attribute.
        started: the start of the work, in seconds of ``time.monotonic()``.
    """

    what: str
    total: int = 0
    of: str = ""
    done: int = 0
    started: float = field(default_factory=time.monotonic)


class _Line:
    """The progress line of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.steps: list[Underway] = []
        self.busy = threading.Event()
        self.drawn = False
        self.held = 0
        self._process = 0

    def begin(self, step: Underway) -> None:
        """Adds work to the line, as a part of the work that began last and still runs; starts the drawing thread if needed."""
        self.steps.append(step)
        if self._process != os.getpid():  # a forked process does not have the thread
            self._process, self.lock, self.busy = os.getpid(), threading.RLock(), threading.Event()
            threading.Thread(target=self._draw_on, name="progress", daemon=True).start()
        self.busy.set()

    def end(self, step: Underway) -> None:
        """Removes work that has ended from the line, and erases the line if no work is left."""
        self.steps.remove(step)
        if not self.steps:
            self.busy.clear()
            self.wipe()

    def _draw_on(self) -> None:
        while self.busy.wait():
            time.sleep(_EVERY)
            with self.lock:
                steps = self.steps[:]
                if steps and not self.held and time.monotonic() - steps[0].started >= AFTER:
                    self._draw(text_of(steps, time.monotonic()))

    def _draw(self, text: str) -> None:
        self.drawn = True
        from shutil import get_terminal_size

        _write(f"\r\033[K{text[:max(20, get_terminal_size().columns - 1)]}")

    def wipe(self) -> None:
        """Erases the line from the terminal if it is drawn."""
        with self.lock:
            if self.drawn:
                self.drawn = False
                _write("\r\033[K")


_line = _Line()


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # the terminal has gone
        return


def text_of(steps: list[Underway], now: float) -> str:
    """Returns the text of the progress line: the running work with its counts, the seconds it has taken and the seconds left.

    Args:
        steps: the running work, from the outermost to the innermost step.
        now: the time, in seconds of ``time.monotonic()``.
    """
    parts = [f"{step.what} {step.done} of {step.total} {step.of}".rstrip() if step.total > 1 else step.what.rstrip(",")
             for step in steps]
    text = f"{': '.join(parts)}, {now - steps[0].started:.0f} s"
    counted = next((step for step in steps if step.total > 1 and step.done), None)
    if counted is not None and counted.done < counted.total:
        text += f", about {(now - counted.started) / counted.done * (counted.total - counted.done):.0f} s more"
    return text


def _is_seen() -> bool:
    """Whether a line of this process and thread would be visible."""
    processes = sys.modules.get("multiprocessing.process")
    try:
        return (sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
                and threading.current_thread() is threading.main_thread()
                and (processes is None or processes.parent_process() is None))
    except (AttributeError, ValueError):  # no stream, or a closed one
        return False


@contextmanager
def shown(what: str, total: int = 0, of: str = "") -> Iterator[Underway]:
    """Shows a progress line while the body of the ``with`` statement runs.

    Args:
        what: the text that names the work.
        total: the number of items to process; 0 if it is not known.
        of: the noun for the items.

    Yields:
        The work; the body increments its attribute ``done`` for each finished item.
    """
    step = Underway(what, total, of)
    if not _is_seen():
        yield step
        return
    _line.begin(step)
    try:
        yield step
    finally:
        _line.end(step)


@contextmanager
def aside() -> Iterator[None]:
    """Hides the progress line while the body of the ``with`` statement writes to the terminal or reads from it."""
    with _line.lock:
        _line.held += 1
        _line.wipe()
    try:
        yield
    finally:
        with _line.lock:
            _line.held -= 1
