"""Fixtures of the tests of the interpreter: those of the op table."""

from __future__ import annotations

from ops.conftest import batch, source  # noqa: F401  (fixtures)
