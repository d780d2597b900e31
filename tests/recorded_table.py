"""Tables of the documentation that are written from records of tests, between two comments."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "internals.md"


def with_table(text: str, name: str, table: str) -> str:
    """A page with a table between the comments that name it."""
    begin, end = (f"<!-- {name}: {place} -->" for place in ("begin", "end"))
    between = re.compile(f"{begin}.*{end}", re.DOTALL)
    return between.sub(lambda _: f"{begin}\n\n{table}\n\n{end}", text)
