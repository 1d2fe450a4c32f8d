"""The results of a launch (``Launch``): times, hazards, timeline, text reports, and the profile."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
"""A dict that ``json.dumps`` can serialise."""
