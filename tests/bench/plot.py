# SPDX-License-Identifier: Apache-2.0
"""Draws grouped bars as SVG: for light and dark pages, without a library."""

import math
from html import escape

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 820, 150, 90, 58, 34
BAR, GAP, HEADING = 15, 3, 30
# Of Okabe and Ito, whom colour-blind people thank; readable on white and on near-black.
COLOURS = ["#888888", "#0072b2", "#d98200", "#009e73", "#b65f92", "#d1495b"]
STYLE = """
  .page { fill: #ffffff } text { font: 12px sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: bold } .group { font-weight: bold } .note { fill: #57606a }
  .grid { stroke: #d0d7de }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 } .note { fill: #9198a1 } .grid { stroke: #30363d }
  }
"""
# From here on the largest would hide the smallest.
LOGARITHMIC_RATIO = 20


class Axis:
    """From a value to its x; `ticks` are the values to mark."""

    def __init__(self, values):
        least, most = min(values), max(values)
        self._logarithmic = most / least > LOGARITHMIC_RATIO
        if self._logarithmic:
            low = math.floor(math.log10(least / 1.2))
            high = math.log10(most)
            self.ticks = [10.0**power for power in range(low, math.floor(high) + 1)]
        else:
            low, high = 0, most
            step = 10**math.floor(math.log10(most))
            step /= next(parts for parts in (5, 2, 1) if most / step * parts <= 8 or parts == 1)
            self.ticks = [step * number for number in range(int(most / step) + 1)]
        self._low, self._scale = low, (WIDTH - LEFT - RIGHT) / (high - low)

    def __call__(self, value):
        return LEFT + self._scale * ((math.log10(value) if self._logarithmic else value) - self._low)

    def describe(self):
        return "logarithmic scale" if self._logarithmic else "linear scale"


def text(x, y, content, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(content)}</text>'


def colours_of(names):
    """{name: colour}: the same for the same names in the same order."""
    return {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}


def grouped_bars(title, note, groups, colours, show):
    """An SVG document.

    note: what the values are, their unit and which are good. groups: [(heading, {name: value})] with
    values above 0. colours: {name: colour}. show(value): as text, with its unit.
    """
    axis = Axis([value for _, bars in groups for value in bars.values()])
    body, y = [], TOP
    for heading, bars in groups:
        y += HEADING
        body.append(text(LEFT, y - 8, heading, "group"))
        for name, value in bars.items():
            end = axis(value)
            body.append(text(LEFT - 8, y + BAR - 3, name, anchor="end"))
            body.append(f'<rect x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{BAR}" '
                        f'fill="{colours[name]}"/>')
            body.append(text(end + 6, y + BAR - 3, show(value)))
            y += BAR + GAP
    grid = []
    for tick in axis.ticks:
        x = axis(tick)
        grid.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{y}"/>')
        grid.append(text(x, y + 18, show(tick) if tick else "0", "note", "middle"))
    height = y + BOTTOM
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img">',
            f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{height}"/>',
            text(16, 26, title, "title"), text(16, 46, f"{note}; {axis.describe()}", "note")]
    return "\n".join(head + grid + body + ["</svg>", ""])
