"""Replaces what a command made in a page that people write: the part between two marks."""

from __future__ import annotations

from dataclasses import dataclass

from data.errors import UserError


@dataclass(frozen=True)
class Marks:
    """The lines before and after what a command makes.

    Attributes
    ----------
    begin, end : str
        The first one is in the page once; the second is the next one after it.
    """

    begin: str
    end: str = "<!-- end -->"

    def inside(self, page: str, where: str) -> str:
        """What stands between the marks, from the end of the first one on.

        Raises
        ------
        UserError
            When the page, whose name is ``where``, has no such marks.
        """
        if self.begin not in page or self.end not in page.split(self.begin)[1]:
            raise UserError(
                f"{where}: no place for the table: lines {self.begin!r} and {self.end!r} mark it"
            )
        return page.split(self.begin)[1].split(self.end)[0]

    def placed(self, page: str, made: str, where: str) -> str:
        """The page with other text, which ends with a line's end, between the marks.

        Raises
        ------
        UserError
            As `inside`.
        """
        self.inside(page, where)
        before, rest = page.split(self.begin)
        return f"{before}{self.begin}\n{made}{self.end}{rest.split(self.end, 1)[1]}"
