"""The page of a profile: self-contained, opened in a real browser, with the figures of the profile."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from simulator.test_profile import profile
from tilelang_npu.simulator.result.profile.launch_profile import Profile

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
OPENED = (BROWSER or "", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")
NAMES = ["mixed", "two launches", "waves of two kinds", "one addition"]


@pytest.fixture(params=NAMES)
def shown(request: pytest.FixtureRequest) -> tuple[Profile, str]:
    one = profile(request.param)
    return one, one.html()


def test_the_page_needs_nothing_from_elsewhere(shown: tuple[Profile, str]) -> None:
    assert not re.search(r"(src|href)=|@import|url\(|https?:", shown[1])


def test_every_reason_of_the_path_is_drawn(shown: tuple[Profile, str]) -> None:
    one, text = shown
    section = text.partition("<h2>Critical path")[2].partition("</section>")[0]
    widths = [float(width) for width in re.findall(r'<rect x="[\d.]+" y="2" width="([\d.]+)"', section)]
    assert len(widths) == len(one.critical_path)
    assert sum(widths) == pytest.approx(1000, abs=0.01 * len(widths))
    for part in one.critical_path:
        assert f"<title>{html.escape(str(part.reason))}, {part.us:.3f} us</title>" in section


def test_all_cores_and_waves_are_drawn_to_scale(shown: tuple[Profile, str]) -> None:
    one, text = shown
    section = text.partition("<h2>All cores and waves")[2].partition("</section>")[0]
    bars = re.findall(r'<rect x="([\d.]+)" y="(\d+)" width="[\d.]+"[^>]*><title>core (\d+), block (\d+), wave (\d+), '
                      r"([\d.]+) to ([\d.]+) us</title>", section)
    assert len(bars) == one.launch.blocks
    for launch, balance in zip(one.launch.parts, one.balance, strict=True):
        assert html.escape(f"{launch.name}: {balance}") in section
        own, bars = bars[:launch.blocks], bars[launch.blocks:]
        total = launch.chip.microseconds(launch.cycles)
        for number, (x, _, core, block, wave, first, last) in enumerate(own):
            assert (int(core), int(block), int(wave)) == (number % balance.cores, number, number // balance.cores + 1)
            assert float(x) == pytest.approx(92 + 908 * float(first) / total, abs=1)
            assert float(last) <= total + 0.001
        assert len({row for _, row, *_ in own}) == balance.cores


def test_the_page_has_rules_for_narrow_screens_and_for_paper() -> None:
    text = profile("mixed").html()
    assert text.count("@media (max-width: 720px)") == 2
    assert "@media print" in text


def test_each_cause_of_lost_time_is_listed(shown: tuple[Profile, str]) -> None:
    one, text = shown
    section = text.partition("<h2>Causes of lost time, with the time without each</h2>")[2].partition("</section>")[0]
    assert [html.unescape(text) for text in re.findall("<li[^>]*>(.*?)</li>", section)] == [
        f"{cause.problem}<br><b>{cause.times}</b>" for cause in one.causes]
    assert [str(cause) for cause in one.causes] == [f"{cause.problem}  {cause.times}" for cause in one.causes]
    assert ("<p>None.</p>" in section) is not one.causes


def test_each_line_has_its_time(shown: tuple[Profile, str]) -> None:
    one, text = shown
    python = text.partition('<div id="python">')[2].partition("</pre>")[0]
    times = {line.place.line: line.us for line in one.lines if line.place is not None and line.us}
    reported = {int(number): float(us) for us, number in
            re.findall(r'">([\d.]+) us</span><span class="n">(\d+)</span>', python)}
    if one.kernel == "main":  # the others are of texts that are no files
        assert reported.keys() == times.keys()
        for number, us in reported.items():
            assert us == pytest.approx(times[number], abs=0.006)


def test_what_lies_in_a_memory_is_what_fits_there() -> None:
    """A tile of 128 x 64 and one of 64 x 128 in float16, two slots each, and the accumulator in float32."""
    text = profile("waves of two kinds").html()
    l1 = re.search(r"AIC L1, at most (\d+) of 512 KB", text)
    l0c = re.search(r"AIC L0C, at most (\d+) of 128 KB", text)
    assert l1 is not None
    assert l0c is not None
    assert int(l0c[1]) == 64
    assert 32 <= int(l1[1]) <= 64


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed (apt-get install chromium)")
def test_a_browser_opens_it_without_network_and_without_an_error(tmp_path: Path) -> None:
    """The browser's own requests do not have a page as their initiator. The page forbids loading; an attempt would be an error
    on the console."""
    file, log, picture = (tmp_path / name for name in ("profile.html", "net.json", "page.png"))
    profile("mixed").save_html(file)
    done = subprocess.run(
        [*OPENED, f"--user-data-dir={tmp_path / 'user'}", "--window-size=1400,1000", f"--log-net-log={log}", "--dump-dom",
         f"--screenshot={picture}", file.as_uri()],
        check=True, capture_output=True, text=True, timeout=300)
    assert 'data-ready="yes"' in done.stdout, "its script ran to the end"
    assert "CONSOLE" not in done.stderr, done.stderr
    asked = re.findall(r'"initiator":"([^"]*)"[^{}]*"url":"(http[^"]*)"', log.read_text())
    assert [url for initiator, url in asked if initiator != "not an origin"] == []
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000, "more than an empty page"


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed (apt-get install chromium)")
def test_a_page_that_loads_something_or_fails_would_be_noticed(tmp_path: Path) -> None:
    file = tmp_path / "profile.html"
    text = profile("one addition").html().replace("<main>", '<main><img src="http://127.0.0.1:9/x.png">')
    file.write_text(text.replace("<script>", "<script>nothing.there();"))
    done = subprocess.run(
        [*OPENED, f"--user-data-dir={tmp_path / 'user'}", "--dump-dom", file.as_uri()], check=True, capture_output=True,
        text=True, timeout=300)
    assert 'data-ready="yes"' not in done.stdout
    assert done.stderr.count("CONSOLE") >= 2, done.stderr


def test_the_page_of_the_command_has_all_kernels(tool, script: Path, tmp_path: Path) -> None:
    out = tmp_path / "profile.html"
    done = tool("run", script, "--html", out, "--json", tmp_path / "profile.json")
    assert done.code == 0, done.err
    text = out.read_text()
    kernels = [one["last_launch"] for one in json.loads((tmp_path / "profile.json").read_text())["kernels"]]
    assert all(f"{one['kernel']} on {one['chip']}: {one['time_us']:.2f} us" in text for one in kernels)
    rows = re.findall(r'<span class="n">\d+</span>(.*?)</span>', text.partition('<div id="python">')[2].partition("</pre>")[0])
    assert [html.unescape(row) for row in rows] == script.read_text().splitlines()


def test_a_script_that_runs_no_kernel_has_no_page(tool, tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("print('nothing')\n")
    done = tool("run", empty, "--html", tmp_path / "out.html")
    assert done.code != 0
    assert "T803" in done.err
