from __future__ import annotations

import pytest

from dialects.helpers import Kernel


@pytest.fixture
def k() -> Kernel:
    return Kernel()
