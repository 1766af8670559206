"""The page of a flame graph: what async-profiler's converter wrote in the recorded JVM, in a frame
that can do nothing but draw.

That JVM may be anybody's, and the converter (jfr-converter 4.2) escapes only what would end a text
of its script, not what ends the script. So the frame has no origin, and the page's policy, which is
the frame's too, lets it load and open nothing.
"""

from __future__ import annotations

from html import escape

from lab.model import CPU, UNITS, Recording

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
# In the frame, which gets its size some time after it is made: the converter's script draws as wide
# as the page is when it runs.
_DRAW = (
    "(function draw() { if (!document.body.clientWidth) return requestAnimationFrame(draw); "
    "const graph = document.body.dataset.graph; "
    "document.open(); document.write(graph); document.close(); })();"
)
_STYLE = (
    "html,body{height:100%;margin:0}body{display:flex;flex-direction:column;"
    "font:14px Arial,sans-serif}p{margin:.5rem .7rem}iframe{flex:1;border:0}"
)


def page(trial: str, of: Recording, graph: str) -> str:
    """The page of a trial's recording; `graph` is the converter's page."""
    unit = UNITS[of.kind]
    about = (
        f"{of.samples:,} {', '.join(of.events)}. Callers are above what they call. The width of a "
        f"frame is its {unit}{'' if of.kind == CPU else ', which the graph calls samples'}."
    )
    inside = f'<body data-graph="{escape(graph)}"><script>{_DRAW}</script>'
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(trial)}: flame graph</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<p><strong>{escape(trial)}</strong>: {escape(about)}</p>\n"
        '<iframe title="Flame graph" sandbox="allow-scripts allow-modals" '
        f'srcdoc="{escape(inside)}"></iframe>\n</body>\n</html>\n'
    )
