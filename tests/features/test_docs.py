from pathlib import Path

from features.docs import page

PAGE = Path(__file__).parents[2] / "docs" / "features.md"


def test_the_page_is_what_the_entries_say():
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/features.md is old: run `python -m features.docs > docs/features.md`"
    )
