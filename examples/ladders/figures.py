"""Figures in a text, read from what was measured when the page is made: typed ones grow old with the model.

A text says ``{AIV V}`` for the share of the call in which V of the Vector cores is at work, ``{AIC MTE2 HBM}`` for the share in
which that pipe has this reason (``L2``, ``HBM``, ``short rows``, ``compute``, ... as profiles name them), ``{time}``,
``{launch}`` and ``{launch share}``; ``{1: AIV V}`` is of the second of the large sizes, and what has no
number is of the one that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ladders import Timed

NAMED = re.compile(r"\{(?:(\d+): )?([A-Za-z0-9 ]+)\}")


def with_figures(text: str, times: Sequence[Timed], shown: int) -> str:
    """The text with the figures of a step that was timed at each of the large sizes."""
    return NAMED.sub(lambda found: _figure(found[2], times[int(found[1] or shown)]), text)


def pattern(text: str) -> str:
    """What the text looks like on a page, whatever the figures are."""
    return "[0-9.]+ (?:%|us)".join(re.escape(part) for part in NAMED.split(text)[::3])


def _figure(name: str, timed: Timed) -> str:
    profile = timed.launch.profile()
    if name == "time":
        return f"{timed.us:.0f} us"
    if name in ("launch", "launch share"):
        us = sum(part.us for part in profile.critical_path if part.reason.kind == "launch")
        return f"{us:.0f} us" if name == "launch" else f"{us / timed.us:.0%}".replace("%", " %")
    core, pipe, *kind = name.split(" ", 2)
    (row,) = [row for row in profile.pipes if (row.core, row.pipe) == (core, pipe)]
    us = sum(part.us for part in row.parts if part.reason.kind == kind[0]) if kind else row.busy_us
    return f"{us / timed.us:.0%}".replace("%", " %")
