"""Matplotlib figures as SVG for a page: in the colours of its theme and in its font, and equal for equal data.

Colours are drawn as stand-ins and then replaced by the page's CSS variables `--NAME`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float

from aa_core.errors import InputError

try:
    from matplotlib import style
    from matplotlib.axes import Axes
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
except ImportError as error:
    raise InputError(
        "a page with plots needs matplotlib, which is not installed: run pip install -c constraints.txt -e '.[report]'"
    ) from error

SERIES = tuple(f"series-{number}" for number in range(1, 9))
COLOURS = {name: f"#0000{i:02x}" for i, name in enumerate(("ink", "muted", "grid", "positive", "negative", *SERIES), 1)}
WIDTH = 3.6  # inches; text of 8.5 points stays readable where a phone shows the whole width

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "assign-and-add",
    "savefig.transparent": True,
    "figure.constrained_layout.use": True,
    "font.size": 8.5,
    "text.parse_math": False,
    "text.color": COLOURS["ink"],
    "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.6,
    "xtick.color": COLOURS["muted"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.color": COLOURS["muted"],
    "ytick.labelcolor": COLOURS["ink"],
    "legend.frameon": False,
    "legend.borderpad": 0,
    "lines.linewidth": 1.4,
}


def panel(name: str, description: str, draw: Callable[[Figure], None], height: float = 2.6) -> str:
    """A drawing as an `<svg>` element without a fixed size.

    Args:
        name: unique on the page; its ids begin with it.
        description: what it shows, for those who do not see it.
        draw: draws on an empty figure.
        height: in inches, of a width of `WIDTH`.
    """
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(WIDTH, height))
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _for_page(buffer.getvalue(), name, description)


def heat(axes: Axes, values: Float[np.ndarray, "rows columns"], limit: float) -> None:
    """Draw cells from clear (0) to full colour (`limit`), in another colour where negative; row 0 is at the top."""
    cells = np.empty((*values.shape, 4))
    cells[..., :3] = np.where(values[..., None] < 0, to_rgb(COLOURS["negative"]), to_rgb(COLOURS["positive"]))
    cells[..., 3] = np.clip(np.abs(values) / limit, 0, 1)
    axes.pcolormesh(cells)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)


def logarithmic(axes: Axes) -> None:
    """Make the horizontal axis logarithmic, with plain numbers."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")


def _for_page(svg: str, name: str, description: str) -> str:
    """The element alone, without what would fix its size and font, clash with other drawings, or load anything."""
    head, body = svg[svg.index("<svg") :].split(">", 1)
    view = head.split('viewBox="')[1].split('"')[0]
    body = re.sub(r"font-family: [^;]*; ", "", body)
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", body)
    for colour, stand_in in COLOURS.items():
        body = body.replace(stand_in, f"var(--{colour})")
    return f'<svg viewBox="{view}" role="img" aria-label="{escape(description)}">{body}'
