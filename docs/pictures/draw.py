"""Draws the pictures of the site: ``python docs/pictures/draw.py``. Sizes are those of the chip tables."""

from __future__ import annotations

import re
import runpy
import tempfile
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilelang_npu import target

HERE = Path(__file__).resolve().parent
STYLE = """text{font-family:system-ui,sans-serif;font-size:14px;fill:#1d2733}
.s{font-size:12px;fill:#51606e}.b{font-weight:600}.m{text-anchor:middle}.w{fill:#fff}
.line{stroke:#51606e;stroke-width:1.5;fill:none;marker-end:url(#head)}"""
CUBE, VECTOR, GLOBAL, PAPER = "#e8f0fb", "#e6f4ec", "#f6efdd", "#ffffff"
PIPES = {"MTE2": "#b5651d", "MTE1": "#7d5ba6", "M": "#1f5fbf", "FIX": "#a03a5c", "V": "#1d7a46", "MTE3": "#5b6b00"}


class Picture:
    """A drawing of that size on a light ground, which is readable on a dark page too."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
            ' orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#51606e"/></marker></defs>',
            f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>']

    def box(self, x: float, y: float, width: float, height: float, lines: Sequence[str], fill: str = PAPER) -> None:
        """Draws a box with centred lines of text, the first in bold."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" stroke="#8a97a5"/>')
        for number, line in enumerate(lines):
            place = y + height / 2 + 5 + (number - (len(lines) - 1) / 2) * 17
            self.text(x + width / 2, place, line, f"m {'b' if not number else 's'}")

    def bar(self, x: float, y: float, width: float, text: str, pipe: str) -> None:
        """Draws an interval in which a pipe is busy."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="24" rx="3" fill="{PIPES[pipe]}"/>')
        self.text(x + width / 2, y + 17, text, "m w")

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        """Draws a line of text that begins at the point, or with the style ``m`` is centred at it."""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{style.strip()}">{escape(text)}</text>')

    def arrow(self, points: Sequence[tuple[float, float]], pipe: str = "", at: tuple[float, float] | None = None) -> None:
        """Draws a path through the points, labelled with the pipe that moves data along it."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" class="line"{f""" style="stroke:{PIPES[pipe]}" """ if pipe else ""}/>')
        if at is not None:
            self.parts.append(f'<text x="{at[0]:g}" y="{at[1]:g}" class="b" style="fill:{PIPES[pipe]}">{pipe}</text>')

    def __str__(self) -> str:
        return "\n".join([*self.parts, "</svg>", ""])


def machine() -> Picture:
    """The cores of a block, their memories, and the pipe of each path between memories."""
    chip = target.chip(target.DEFAULT)
    size = {space: f"{memory.size // 1024} KiB" for space, memory in chip.memory.items()}
    picture = Picture(860, 430, "A block: a Cube core, two Vector cores, and the memories between which their pipes move tiles")
    picture.box(20, 20, 820, 46, ["GM, cached in L2: the tensors of a kernel's parameters"], GLOBAL)
    picture.parts.append(f'<rect x="20" y="120" width="450" height="290" rx="8" fill="{CUBE}"/>')
    picture.text(36, 398, "Cube core (AIC): products", "b")
    picture.box(50, 150, 130, 46, ["L1", size["cbuf"]])
    picture.box(50, 260, 110, 46, ["L0A", size["ca"]])
    picture.box(180, 260, 110, 46, ["L0B", size["cb"]])
    picture.box(340, 260, 110, 46, ["L0C", size["cc"]])
    picture.arrow([(100, 66), (100, 148)], "MTE2", (108, 106))
    picture.arrow([(90, 196), (90, 258)], "MTE1", (98, 232))
    picture.arrow([(150, 196), (150, 228), (235, 228), (235, 258)], "MTE1", (172, 222))
    picture.arrow([(105, 306), (105, 345), (395, 345), (395, 308)], "M", (310, 338))
    picture.arrow([(235, 306), (235, 345)])
    picture.arrow([(420, 260), (420, 68)], "FIX", (384, 106))
    picture.arrow([(380, 260), (380, 172), (182, 172)], "FIX", (270, 166))
    for number, x in enumerate((490, 675)):
        picture.parts.append(f'<rect x="{x}" y="120" width="165" height="290" rx="8" fill="{VECTOR}"/>')
        picture.text(x + 14, 398, f"Vector core (AIV{number})", "b")
        picture.box(x + 28, 210, 110, 46, ["UB", size["ub"]])
        picture.arrow([(x + 52, 66), (x + 52, 208)], "MTE2", (x + 4, 106))
        picture.arrow([(x + 114, 210), (x + 114, 68)], "MTE3", (x + 120, 106))
        picture.arrow([(x + 60, 256), (x + 60, 310), (x + 106, 310), (x + 106, 258)], "V", (x + 78, 330))
    return picture


def pipelining() -> Picture:
    """A loop of loads and products with one slot for each tile, and with two."""
    picture = Picture(860, 300, "With one slot a load waits until the previous tile was read; with two slots it starts earlier")

    def rows(y: int, title: str, loads: Sequence[int], products: Sequence[int]) -> None:
        picture.text(20, y, title, "b")
        for row, (name, pipe, starts, width) in enumerate((("MTE2", "MTE2", loads, 90), ("M", "M", products, 70))):
            top = y + 14 + row * 34
            picture.text(20, top + 17, name, "s")
            for number, start in enumerate(starts):
                picture.bar(80 + start, top, width, f"{'load' if pipe == 'MTE2' else 'mul'} {number}", pipe)

    rows(34, "one slot: each load waits until the previous product has read the tile",
         [0, 180, 360, 540], [100, 280, 460, 640])
    rows(164, "two slots: load 1 uses another slot than load 0; load 2 waits for product 0 alone",
         [0, 100, 200, 300], [100, 200, 300, 400])
    picture.arrow([(80, 274), (840, 274)])
    picture.text(800, 292, "time", "s")
    return picture


def events() -> Picture:
    """A load, the event that is set after it, and the instruction that waits for the event."""
    picture = Picture(860, 170, "MTE2 sets an event after its load; V waits for the event before the addition")
    for row, (name, y) in enumerate((("MTE2", 30), ("V", 100))):
        picture.text(20, y + 17, name, "b")
        picture.parts.append(f'<line x1="80" y1="{y + 12}" x2="840" y2="{y + 12}" stroke="#d5dbe1"/>')
        if not row:
            picture.bar(90, y, 220, "load x", "MTE2")
            picture.box(320, y - 3, 180, 30, ["set_flag MTE2 -> V"])
            picture.bar(510, y, 220, "load of the next tile", "MTE2")
        else:
            picture.box(130, y - 3, 290, 30, ["wait_flag MTE2 -> V"])
            picture.bar(430, y, 200, "add x, x", "V")
    picture.arrow([(410, 58), (424, 96)])
    picture.text(90, 155, "The scalar unit issues all instructions at once; only the event makes V wait for the load.", "s")
    return picture


def softmax() -> object:
    """The timeline of the kernel on the first page of the site."""
    return _of_page("README.md", "softmax", lambda factory: factory(6144, 512).estimate().profile().picture())


def accesses() -> object:
    """The tensor of the page on profiles whose rows are read by two blocks, with the rows of one block in a frame."""
    return _of_page("profiling.md", "overlapping", lambda factory: factory(96, 40, 16, 8).estimate().access_map(
        "X", block=2).picture())


def _of_page(page: str, name: str, draw: Callable[[Any], object]) -> object:
    """Returns the picture that a function draws of a kernel factory, whose code is taken from a page.

    Args:
        page: the file of the page.
        name: the name of the factory.
        draw: the function.
    """
    text = (HERE.parent / page).read_text(encoding="utf-8")
    code = next(block for block in re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
                if f"\ndef {name}(" in block)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.py"  # the tracer reads the source of a kernel from its file
        file.write_text(code, encoding="utf-8")
        return draw(runpy.run_path(str(file))[name])


PICTURES = {"softmax.svg": softmax, "accesses.svg": accesses, "machine.svg": machine, "pipelining.svg": pipelining,
            "events.svg": events}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / name).write_text(str(draw()), encoding="utf-8")
