"""Shows the progress of work that takes longer than two seconds.

A progress line names the work, how much of it is done, how fast, and the time left. If standard error is a terminal, the line
is drawn there and is removed when the work ends. If it is a file, a pipe or a notebook, in CI, and with ``TERM=dumb``, a line
is added every 10 seconds. Nothing is shown in a test of pytest, in other threads than the main one, and in processes that this
package starts. The working code only counts the items that are done; a background thread writes the line.
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
"""The number of seconds between drawings in a terminal."""
_LOGGED_EVERY = 10.0
"""The number of seconds between lines in a log."""


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
        self.logged = 0.0
        self.held = 0
        self._process = 0

    def begin(self, step: Underway) -> None:
        """Adds work to the line, as a part of the work that began last and still runs; starts the drawing thread if needed."""
        if not self.steps:
            self.logged = step.started
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
                steps, now = self.steps[:], time.monotonic()
                if not steps or self.held:
                    continue
                if not _is_terminal():
                    if now - self.logged >= _LOGGED_EVERY:
                        self.logged = now
                        _write(f"{text_of(steps, now)}\n")
                elif now - steps[0].started >= AFTER:
                    self._draw(text_of(steps, now))

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
    """Returns the text of the progress line: the running work with its counts, the seconds it has taken, the items that are
    done in a second, and the seconds left.

    Args:
        steps: the running work, from the outermost to the innermost step.
        now: the time, in seconds of ``time.monotonic()``.
    """
    parts = [f"{step.what} {step.done} of {step.total} {step.of}".rstrip() if step.total > 1 else step.what.rstrip(",:")
             for step in steps]
    text = f"{': '.join(parts)}, {now - steps[0].started:.0f} s"
    counted = next((step for step in steps if step.total > 1 and step.done), None)
    if counted is not None and counted.done < counted.total:
        each = max(now - counted.started, 1e-9) / counted.done
        text += f", {1 / each:.3g}/s, about {each * (counted.total - counted.done):.0f} s more"
    return text


def _is_terminal() -> bool:
    """Whether a line can be drawn and erased on standard error; otherwise lines are added."""
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
    except (AttributeError, ValueError):  # no stream, or a closed one
        return False


def _is_shown() -> bool:
    """Whether the work of this process and thread is shown."""
    processes = sys.modules.get("multiprocessing.process")
    return (sys.stderr is not None and (_is_terminal() or not os.environ.get("PYTEST_CURRENT_TEST"))
            and threading.current_thread() is threading.main_thread()
            and (processes is None or processes.parent_process() is None))


@contextmanager
def shown(what: str, total: int = 0, of: str = "") -> Iterator[Underway]:
    """Shows the progress of the body of the ``with`` statement while it runs.

    Args:
        what: the text that names the work.
        total: the number of items to process; 0 if it is not known.
        of: the noun for the items.

    Yields:
        The work; the body increments its attribute ``done`` for each finished item.
    """
    step = Underway(what, total, of)
    if not _is_shown():
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
