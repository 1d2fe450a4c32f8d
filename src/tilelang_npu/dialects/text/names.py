"""Names of the kernel's author in the text of the IR, which allows only ASCII.

A character outside of ASCII is ``$``, its code point in hexadecimal, and ``.``: ``Ä`` is ``%$c4.``.
"""

from __future__ import annotations

import re

from xdsl.ir import SSAValue

_ESCAPED = re.compile(r"\$([0-9a-f]+)\.")


def escape_name(name: str) -> str | None:
    """The name of a value or a symbol in the text for a name of the author; None if it is not an identifier."""
    if not name.isidentifier():
        return None
    return "".join(one if one.isascii() else f"${ord(one):x}." for one in name)


def author_name(name: str | SSAValue | None, otherwise: str = "") -> str:
    """The author's name of a value or of a name in the text, for messages; ``otherwise`` for a value without a name."""
    hint = name.name_hint if isinstance(name, SSAValue) else name
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), hint) if hint else otherwise
