"""Names of the author in the text of the IR, which knows ASCII alone, and back.

A character outside of ASCII is written ``$``, its code point in hexadecimal, ``.``: ``Ä`` is ``%$c4.``.
"""

from __future__ import annotations

import re

from xdsl.ir import SSAValue

_ESCAPED = re.compile(r"\$([0-9a-f]+)\.")


def written(name: str) -> str | None:
    """A name as a value or a symbol of the text has it; None for a text that is no name."""
    if not name.isidentifier():
        return None
    return "".join(one if one.isascii() else f"${ord(one):x}." for one in name)


def spoken(name: str | SSAValue | None, otherwise: str = "") -> str:
    """A value's name as the author wrote it, for messages; ``otherwise`` for a value without one."""
    hint = name.name_hint if isinstance(name, SSAValue) else name
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), hint) if hint else otherwise
