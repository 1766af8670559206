"""The page of a flame graph: what async-profiler's converter wrote in the recorded JVM, in a frame
that can do nothing but draw.

That JVM may be anybody's, and the converter (jfr-converter 4.2) escapes only what would end a text
of its script, not what ends the script. So the frame has no origin, and the page's policy, which is
the frame's too, lets it load and open nothing.
"""

from html import escape
from string import Template

from lab.model import CPU, UNITS, Recording
from lab.report.page.frame import read

# In the frame, which gets its size some time after it is made: the converter's script draws as wide
# as the page is when it runs.
_DRAW = (
    "(function draw() { if (!document.body.clientWidth) return requestAnimationFrame(draw); "
    "const graph = document.body.dataset.graph; "
    "document.open(); document.write(graph); document.close(); })();"
)


def page(trial: str, recording: Recording, graph: str) -> str:
    """The page of a trial's recording; `graph` is the converter's page."""
    called = "" if recording.kind == CPU else ", which the graph calls samples"
    about = (
        f"{recording.samples:,} {', '.join(recording.events)}. Callers are above what they call. "
        f"The width of a frame is its {UNITS[recording.kind]}{called}."
    )
    inside = f'<body data-graph="{escape(graph)}"><script>{_DRAW}</script>'
    return Template(read("flamegraph.html")).substitute(
        trial=escape(trial), about=escape(about), inside=escape(inside)
    )
