"""The picture and the trace of a pod."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pod_kernels import drive_passing
from tilelang_npu import pods


def test_the_trace_has_a_process_for_each_card_and_a_flow_for_each_signal(tmp_path: Path) -> None:
    profile = pods.profile(drive_passing(4), 2)
    profile.trace(tmp_path / "pod.json")
    events = json.loads((tmp_path / "pod.json").read_text(encoding="utf-8"))["traceEvents"]
    assert {event["args"]["name"] for event in events if event["name"] == "process_name"} == {"card 0", "card 1"}
    begins, ends = ([event for event in events if event["ph"] == phase] for phase in "sf")
    assert [(event["id"], event["pid"]) for event in begins] == [(1, 0)]
    assert [(event["id"], event["pid"]) for event in ends] == [(1, 1)]
    for flow in (*begins, *ends):  # viewers need a slice at the ends of a flow
        assert any(event["ph"] == "X" and (event["pid"], event["tid"]) == (flow["pid"], flow["tid"])
                   and event["ts"] <= flow["ts"] <= event["ts"] + event["dur"] for event in events)


def test_the_page_is_one_file_with_bars_and_signals() -> None:
    page = pods.profile(drive_passing(8), 2).html()
    assert page.count('class="flow"') == 1
    assert "card 1 waits for other cards" in page
    assert not re.search(r"(src|href)=", page)
