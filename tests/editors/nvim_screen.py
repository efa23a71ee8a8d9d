"""What a Neovim shows, kept from the redraw events that any of its user interfaces gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, field

Cell = tuple[str, int]
"""Text and the number of its highlight."""


@define
class Screen:
    cells: list[list[Cell]] = field(factory=list)
    highlights: dict[int, dict[str, Any]] = field(factory=dict)
    colors: tuple[int, int] = (0xFFFFFF, 0x000000)
    cursor: tuple[int, int] = (0, 0)

    def feed(self, batches: Iterable[list[Any]]) -> None:
        """The arguments of one `redraw` notification."""
        for name, *calls in batches:
            handler = getattr(self, f"_{name}", None)
            for call in calls if handler else ():
                handler(*call)

    @property
    def lines(self) -> list[str]:
        return ["".join(text for text, _ in row) for row in self.cells]

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)

    def _grid_resize(self, _: int, width: int, height: int) -> None:
        self.cells = [[(" ", 0)] * width for _ in range(height)]

    def _grid_clear(self, _: int) -> None:
        self.cells = [[(" ", 0)] * len(row) for row in self.cells]

    def _grid_line(self, _: int, row: int, column: int, cells: list[list[Any]], *__: Any) -> None:
        highlight = 0
        for text, *more in cells:
            highlight = more[0] if more else highlight
            for _repeat in range(more[1] if len(more) > 1 else 1):
                self.cells[row][column] = (text, highlight)
                column += 1

    def _grid_scroll(self, _: int, top: int, bottom: int, left: int, right: int, rows: int, __: int) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self.cells[row][left:right] = self.cells[row + rows][left:right]

    def _grid_cursor_goto(self, _: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _hl_attr_define(self, number: int, rgb: dict[str, Any], *_: Any) -> None:
        self.highlights[number] = rgb

    def _default_colors_set(self, foreground: int, background: int, *_: Any) -> None:
        self.colors = (foreground, background)
