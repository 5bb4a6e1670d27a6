"""A line chart as SVG: both axes logarithmic to the base 2, labelled where the points are."""

import html
import math

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 36, 48
COLOURS = ("#1f6feb", "#d1242f", "#2da44e", "#bf8700", "#8250df", "#57606a")


def label(value):
    if value >= 1024 and value % 1024 == 0:
        return f"{value // 1024:.0f}k"
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


class Axis:
    def __init__(self, values, start, end):
        self.low, self.high = math.log2(min(values)), math.log2(max(values))
        if self.high == self.low:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        self.start, self.end = start, end

    def at(self, value):
        share = (math.log2(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def powers(values):
    """Powers of two around the values, for the y axis."""
    low, high = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
    return [2.0 ** e for e in range(low, max(high, low + 1) + 1)]


def chart(title, x_label, y_label, series):
    """`series`: name -> list of (x, y), both above 0."""
    xs = sorted({x for points in series.values() for x, _ in points})
    ticks = powers([y for points in series.values() for _, y in points])
    x_axis = Axis(xs, LEFT, WIDTH - RIGHT)
    y_axis = Axis(ticks, HEIGHT - BOTTOM, TOP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             text(LEFT, 20, title, "start", 'font-weight="bold" font-size="14"'),
             text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label),
             text(14, HEIGHT / 2, y_label, "middle",
                  f'transform="rotate(-90 14 {HEIGHT / 2:.0f})"')]
    for x in xs:
        parts.append(line(x_axis.at(x), TOP, x_axis.at(x), HEIGHT - BOTTOM))
        parts.append(text(x_axis.at(x), HEIGHT - BOTTOM + 16, label(x)))
    for y in ticks:
        parts.append(line(LEFT, y_axis.at(y), WIDTH - RIGHT, y_axis.at(y)))
        parts.append(text(LEFT - 6, y_axis.at(y) + 4, label(y), "end"))
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + 14 + 18 * number
        parts.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 9}" width="10" height="10" '
                     f'fill="{colour}"/>')
        parts.append(text(WIDTH - RIGHT + 28, y, name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def text(x, y, content, anchor="middle", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#24292f" {more}>'
            f"{html.escape(content)}</text>")


def line(x1, y1, x2, y2):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            'stroke="#d0d7de" stroke-width="1"/>')
