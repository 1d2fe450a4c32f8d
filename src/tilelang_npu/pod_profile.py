"""The profile of a pod: when each kernel of each card runs, for how long cards wait for each other, and how much of the
communication overlaps with computation (:mod:`tilelang_npu.pod_timing`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu import display
from tilelang_npu.card_log import CardCall, CardLog
from tilelang_npu.errors import Location, TileError, doors
from tilelang_npu.html_sheet import page
from tilelang_npu.pod_chart import STYLE, pod_chart, trace_events
from tilelang_npu.pod_timing import CardTimes, Spans, common, length, times_of

if TYPE_CHECKING:
    from tilelang_npu.simulator.result import JsonObject
    from tilelang_npu.target import Chip

__all__ = ["PodProfile"]

WIDTH = 60
"""The number of characters of a card's row in the text of a profile."""


class PodProfile:
    """The modelled times of all cards of a pod. ``str`` gives a table with a row for each card.

    Args:
        log: what the cards did.
        results: what the function that drives the cards has returned, by rank.
        links: the factor by which the bytes per second of all links are multiplied.

    Attributes:
        cards: the times of each card, by rank.
        flows: the signals, and arrivals at barriers, that ended waits whose cores had reached them before.
        results: the argument ``results``.
        chips: the names of the cards' chips, without duplicates.

    Raises:
        TileError: T435, no card has run a compiled kernel.
    """

    def __init__(self, log: CardLog, results: Sequence[Any], links: float = 1.0) -> None:
        launches = [part for calls in log.cards for call in calls if isinstance(call, CardCall) and call.launch is not None
                    for part in call.launch.parts]
        if not launches:
            raise TileError("no card of the pod has run a compiled kernel, so it has no times", code="T435",
                            help="call a kernel in the function; kernels that are interpreted have no times")
        self.results = list(results)
        self._log = log
        self.chips = tuple(dict.fromkeys(launch.chip.name for launch in launches))
        self.cards, self.flows = times_of(log, None if links == 1.0 else partial(_with_links, links))

    @property
    def time_us(self) -> float:
        """When the last card ends, in microseconds."""
        return max(card.end for card in self.cards)

    @property
    def overlap(self) -> float | None:
        """The share of the time with transfers in flight in which the card computes, over all cards; None without transfers."""
        moving = sum(length(card.transfers) for card in self.cards)
        both = sum(length(common(card.transfers, card.computing)) for card in self.cards)
        return both / moving if moving else None

    def waits_by_line(self) -> list[tuple[Location | None, float]]:
        """Returns the lines whose waits for other cards hold cores, with the microseconds of the core that waits longest at
        the line, the largest first."""
        held: dict[tuple[Location | None, int, str], float] = defaultdict(float)
        for rank, card in enumerate(self.cards):
            for launch in card.launches:
                for wait in launch.waits:
                    held[wait.location, rank, wait.waiter] += wait.end - wait.start
        most: dict[Location | None, float] = defaultdict(float)
        for (location, _, _), us in held.items():
            most[location] = max(most[location], us)
        return sorted(most.items(), key=lambda item: -item[1])

    def with_links(self, factor: float) -> PodProfile:
        """Returns the profile of the same run with faster or slower links; no kernel runs again.

        Args:
            factor: the bytes per second of all links, relative to those of the chip, also if this profile has other links.
                Latencies do not change.

        Raises:
            TileError: T435, the factor is not positive.
        """
        if not isinstance(factor, int | float) or not factor > 0:
            raise TileError(f"links cannot be {factor} times as fast", code="T435", help="pass a positive number")
        return PodProfile(self._log, self.results, factor)

    def __str__(self) -> str:
        said = [f"pod of {len(self.cards)} cards  {', '.join(self.chips)}, modelled",
                f"  time      {self.time_us:.1f} us"]
        if self.overlap is not None:
            said.append(f"  overlap   {100 * self.overlap:.0f} % of the time with transfers between cards, the card computes")
        said.append(f"  {'card':<5} {'launches':>8} {'compute':>9} {'transfer':>9} {'overlap':>8} {'waits':>9}  in us")
        for rank, card in enumerate(self.cards):
            share = "" if card.overlap is None else f"{100 * card.overlap:.0f} %"
            said.append(f"  {rank:<5} {len(card.launches):>8} {length(card.computing):>9.1f} {length(card.transfers):>9.1f} "
                        f"{share:>8} {length(card.waiting):>9.1f}  |{self._row(card)}|")
        said.append("  = computes   - transfers   # both   . waits for other cards")
        for location, us in self.waits_by_line()[:5]:
            said.append(f"  waits     {us:.1f} us at {'a wait' if location is None else location.shown_line}")
        return "\n".join(said)

    def _row(self, card: CardTimes) -> str:
        """Returns the timeline of a card as a row of characters; each shows what takes most of its share of the time."""
        step = self.time_us / WIDTH
        shares = {"=": _binned(card.computing, step), "-": _binned(card.transfers, step), ".": _binned(card.waiting, step)}
        both = _binned(common(card.computing, card.transfers), step)
        row = []
        for place in range(WIDTH):
            computes, moves, waits = (shares[name][place] for name in "=-.")
            if both[place] >= step / 4:
                row.append("#")
            elif max(computes, moves) >= step / 4:
                row.append("=" if computes >= moves else "-")
            else:
                row.append("." if waits >= step / 4 else " ")
        return "".join(row)

    def to_dict(self) -> JsonObject:
        """Returns the profile as a dict that JSON can hold; times are in microseconds."""
        return {"chips": list(self.chips), "time_us": self.time_us, "overlap": self.overlap,
                "cards": [{"end_us": card.end, "computing_us": length(card.computing), "transfers_us": length(card.transfers),
                           "waiting_us": length(card.waiting), "overlap": card.overlap,
                           "launches": [{"kernel": one.name, "start_us": one.start, "end_us": one.end}
                                        for one in card.launches]} for card in self.cards]}

    def trace(self, file: str | Path) -> None:
        """Writes the timeline in the trace event format of Chrome, which Perfetto reads: a process for each card, with threads
        for its launches, computation, transfers, waits between launches, and the waits of each core; and a flow for each signal
        that ended a wait.

        Args:
            file: the name of the file.

        Raises:
            OSError: the file cannot be written.
        """
        trace = {"traceEvents": trace_events(self.cards, self.flows), "displayTimeUnit": "ns"}
        Path(file).write_text(json.dumps(trace), encoding="utf-8")

    def html(self) -> str:
        """Returns a self-contained HTML page with the timeline of all cards, signals between them, and the table."""
        return page(f"pod of {len(self.cards)} cards", STYLE, f"<main>{self._picture()}<pre>{escape(str(self))}</pre></main>")

    def _picture(self) -> str:
        return pod_chart(self.cards, self.flows, self.time_us)

    def _repr_html_(self) -> str:
        return self._picture() + display.report(str(self))


def _with_links(times: float, chip: Chip) -> Chip:
    """Returns a copy of a chip whose links move ``times`` as many bytes per second."""
    links = chip.links
    return replace(chip, links=replace(links, write=times * links.write, read=times * links.read,
                                       write_all=times * links.write_all, read_all=times * links.read_all))


def _binned(spans: Spans, step: float) -> list[float]:
    """Returns, for each of ``WIDTH`` intervals of ``step`` microseconds, how much of it the spans cover."""
    edges = np.arange(WIDTH + 1) * step
    if not len(spans):
        return [0.0] * WIDTH
    covered = np.concatenate([[0.0], np.cumsum(spans[:, 1] - spans[:, 0])])
    until = np.interp(edges, np.stack([spans[:, 0], spans[:, 1]], axis=1).reshape(-1),
                      np.stack([covered[:-1], covered[1:]], axis=1).reshape(-1))
    return [float(share) for share in np.diff(until)]


doors(globals())
