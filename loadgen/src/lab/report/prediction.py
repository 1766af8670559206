"""A prediction in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lab.judge.predict import DEADLINE, NoTail, Prediction
from lab.model import EXTRAPOLATED

_NO_TAIL: Mapping[NoTail, str] = {
    "arrivals": "arrivals at random (Poisson) queue below every bound",
    "jitter": "a toxic has jitter",
    "queue": "requests with drawn delays queue",
    "no room": "drawn delays keep all connections or threads busy now and then",
}


def text(prediction: Prediction) -> str:
    """The tightest hard bound, then the estimates."""
    if prediction.caveats:
        named = {DEADLINE: "a deadline within the drawn delays"}
        caveats = (named.get(caveat, caveat) for caveat in prediction.caveats)
        return f"none: no bound covers {', '.join(caveats)}"
    return "; ".join(_parts(prediction)) or "none: nothing that is known bounds this load"


def _parts(prediction: Prediction) -> Iterator[str]:
    for bound in [bound for bound in prediction.bounds if not bound.estimate][:1]:
        yield f"≤ {bound.rps:,.0f} req/s ({bound.resource}: {bound.formula})"
    for bound in prediction.bounds:
        if bound.estimate:
            # Two digits: a light load is no more precise.
            rps = float(f"{bound.rps:.2g}")
            yield f"{bound.resource} ≈ {rps:,.0f} req/s ({EXTRAPOLATED}: {bound.formula})"
    if prediction.no_tail:
        yield f"p95 not predicted: {_NO_TAIL[prediction.no_tail]}"
    elif prediction.expected_p95_ms != prediction.expected_p99_ms:
        p95_ms, p99_ms = prediction.expected_p95_ms, prediction.expected_p99_ms
        yield f"p95 {p95_ms:.4g} ms, p99 {p99_ms:.4g} ms"
