"""The timeline of all cards of a pod: as SVG text, and as events of Chrome's trace format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tilelang_npu.pod_timing import CardTimes, SignalFlow, Spans

__all__ = ["STYLE", "pod_chart", "trace_events"]

STYLE = """
main { padding: 12px 20px; display: block; overflow: auto }
svg.pod { width: 100%; min-width: 640px; font: 12px system-ui, sans-serif; fill: currentColor }
"""
WIDTH, MARGIN = 1000, 64
"""The width of the picture and of the column with the names of its rows, in units of the SVG's view box."""
CARD, BAR = 40, 10
"""The heights of a card's row and of one of its three bars, in units of the view box."""
COLOURS = (("computes", "#4e79d8"), ("transfers", "#d0a52c"), ("waits for other cards", "#cf5b9d"))
"""The colour of each bar of a card."""
MOST = 4000
"""The number of bars of one kind and card, and of flows, after which further ones are left out: browsers become slow."""
SIGNAL = 0.001
"""The length of the slice of a signal in a trace, in microseconds; signals of one core are farther apart."""
_Event = dict[str, object]


def pod_chart(cards: Sequence[CardTimes], flows: Sequence[SignalFlow], us: float) -> str:
    """Returns the SVG of the timeline: for each card its launches, and bars for computation, transfers and waits; a line for
    each signal from one card to another that ended a wait.

    Args:
        cards: the times of the cards, by rank.
        flows: the signals.
        us: the duration that the picture shows, in microseconds.
    """
    scale = (WIDTH - MARGIN) / max(us, 1e-9)

    def bar(start: float, end: float, top: int, height: int, style: str, said: str) -> str:
        wide = max((end - start) * scale, 0.3)
        return (f'<rect x="{MARGIN + start * scale:.2f}" y="{top}" width="{wide:.2f}" height="{height}" {style}>'
                f"<title>{escape(said)}, {start:.2f} to {end:.2f} us</title></rect>")

    shown = []
    for rank, card in enumerate(cards):
        top = rank * CARD
        shown.append(f'<text x="0" y="{top + 18}">card {rank}</text>')
        frame = 'fill="none" stroke="currentColor" stroke-opacity="0.4"'
        for one in card.launches:
            last = one.end - one.overhead
            shown.append(bar(one.start, last, top + 1, 3 * BAR + 4, frame, one.name))
            shown.append(bar(last, one.end, top + 1, 3 * BAR + 4, f'{frame} stroke-dasharray="3"', "launch overhead"))
        kinds = zip(COLOURS, (card.computing, card.transfers, card.waiting), strict=True)
        for row, ((name, colour), spans) in enumerate(kinds):
            shown += [bar(first, last, top + 3 + row * BAR, BAR - 1, f'fill="{colour}"', f"card {rank} {name}")
                      for first, last in spans[:MOST].tolist()]
    for flow in flows[:MOST]:
        if flow.sender != flow.receiver:
            (x, y), (to, down) = ((MARGIN + time * scale, rank * CARD + 28)
                                  for time, rank in ((flow.sent, flow.sender), (flow.ended, flow.receiver)))
            shown.append(f'<path class="flow" fill="none" stroke="currentColor" stroke-opacity="0.4" d="M{x:.2f} {y}L{to:.2f} '
                         f'{down}"><title>signal of card {flow.sender} to card '
                         f"{flow.receiver}, {flow.sent:.2f} to {flow.ended:.2f} us</title></path>")
    low = len(cards) * CARD
    shown += [f'<text x="{MARGIN + place * 150}" y="{low + 34}" fill="{colour}">{name}</text>'
              for place, (name, colour) in enumerate(COLOURS)]
    for part in range(6):
        last = part == 5
        x = MARGIN + part * (WIDTH - MARGIN) / 5 - (40 if last else 0)
        shown.append(f'<text x="{x:.0f}" y="{low + 14}">{us * part / 5:.1f}{" us" if last else ""}</text>')
    return f'<svg class="pod" viewBox="0 0 {WIDTH} {low + 40}" role="img" aria-label="pod">{"".join(shown)}</svg>'


def trace_events(cards: Sequence[CardTimes], flows: Sequence[SignalFlow]) -> list[_Event]:
    """Returns the timeline as Chrome trace events, in microseconds: a process for each card; threads for its launches,
    computation, transfers, waits at barriers between launches and signals; and a thread for the waits of each core. A flow
    leads from each signal that ended a wait to the end of the wait.

    Args:
        cards: the times of the cards, by rank.
        flows: the signals that ended waits.
    """
    events: list[_Event] = []
    for rank, card in enumerate(cards):
        events += _named(rank, f"card {rank}", ("launches", "computing", "transfers", "barriers", "signals", "waits ended"))
        for one in card.launches:
            events.append(_slice(rank, 0, one.name, one.start, one.end - one.overhead))
            events.append(_slice(rank, 0, "launch overhead", one.end - one.overhead, one.end))
        events += _slices(rank, 1, "computes", card.computing)
        events += _slices(rank, 2, "transfers", card.transfers)
        events += [_slice(rank, 3, "barrier of all cards", start, end) for start, end in card.barriers]
        threads: dict[str, int] = {}
        for wait in (wait for launch in card.launches for wait in launch.waits):
            if wait.waiter not in threads:
                threads[wait.waiter] = 6 + len(threads)
                events.append(_name("thread_name", rank, f"waits of {wait.waiter}", threads[wait.waiter]))
            line = "" if wait.location is None else f" at {wait.location.shown_line}"
            events.append(_slice(rank, threads[wait.waiter], f"waits for other cards{line}", wait.start, wait.end))
    for number, flow in enumerate(flows, 1):
        ends = ((flow.sender, 4, "signal", flow.sent, "s"), (flow.receiver, 5, "wait is over", flow.ended, "f"))
        for rank, thread, name, us, phase in ends:
            events.append(_slice(rank, thread, name, us, us + SIGNAL))
            events.append({"name": "signal", "ph": phase, "id": number, "pid": rank, "tid": thread, "cat": "signal",
                           "ts": us + SIGNAL / 2, **({"bp": "e"} if phase == "f" else {})})
    return events


def _named(rank: int, name: str, threads: Sequence[str]) -> Iterator[_Event]:
    yield _name("process_name", rank, name)
    for number, thread in enumerate(threads):
        yield _name("thread_name", rank, thread, number)


def _name(what: str, rank: int, name: str, thread: int = 0) -> _Event:
    return {"name": what, "ph": "M", "pid": rank, "tid": thread, "args": {"name": name}}


def _slice(rank: int, thread: int, name: str, start: float, end: float) -> _Event:
    return {"name": name, "ph": "X", "pid": rank, "tid": thread, "cat": "pod", "ts": start, "dur": end - start}


def _slices(rank: int, thread: int, name: str, spans: Spans) -> Iterator[_Event]:
    for start, end in spans.tolist():
        yield _slice(rank, thread, name, start, end)
