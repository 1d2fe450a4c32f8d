"""The fixture that makes a module of source text, for kernels whose text a test writes."""

from __future__ import annotations

from frontend.conftest import source  # noqa: F401  (a fixture)
