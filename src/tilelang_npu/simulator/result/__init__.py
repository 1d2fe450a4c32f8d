"""The results of a launch: times, hazards, timeline, reports and profile."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
"""Data that JSON can hold."""
