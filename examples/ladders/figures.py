"""Placeholders for modelled figures in texts, which are filled in when the page is generated, so that they are up to date.

``{AIV V}`` is the share of the call in which V of the Vector cores is busy, ``{AIC MTE2 HBM}`` the share of the call that the
profile gives to this reason for that pipe (``L2``, ``HBM``, ``short rows``, ``compute``, ... as profiles name them). Others are
``{time}``, ``{launch}`` and ``{launch share}``. ``{1: AIV V}`` is for the second of the large sizes; a placeholder without a
number is for the size that the page shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ladders import Timed

PLACEHOLDER = re.compile(r"\{(?:(\d+): )?([A-Za-z0-9 ]+)\}")


def fill_figures(text: str, times: Sequence[Timed], shown: int) -> str:
    """Returns the text with the figures of a step that was timed at each of the large sizes."""
    return PLACEHOLDER.sub(lambda found: _figure(found[2], times[int(found[1] or shown)]), text)


def figure_pattern(text: str) -> str:
    """Returns a regular expression that matches the text on a page with any figures."""
    return "[0-9.]+ (?:%|us)".join(re.escape(part) for part in PLACEHOLDER.split(text)[::3])


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
