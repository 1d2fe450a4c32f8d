"""Values of a trace are looked at in kernels that are traced, as in the tests of the front end."""

from __future__ import annotations

from frontend.conftest import body, refused, source, traced  # noqa: F401  (fixtures)
