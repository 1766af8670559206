"""Verdicts in words: what a request waited for, and what is not known. All made from codes."""

from lab.model import NONE, UNEXPLAINED, UNKNOWN, Missing, Standing, Verdict, three, use_text
from lab.report.remarks import MISSING, UNJUDGED

# Further resources of a share of the excess below this are left out of a sentence.
NAMED = 0.05


def sentence(verdict: Verdict) -> str:
    """What limited a trial."""
    if verdict.basis in UNJUDGED:
        return f"{UNKNOWN}: {UNJUDGED[verdict.basis]}"
    excess, named = verdict.excess, verdict.named
    if verdict.basis == "errors":
        if named is None:
            return f"{UNKNOWN}: no resource explains the errors"
        if named.failed:
            return f"{_subject(named)}: {named.failed:.0%} of the requests failed for want of it"
    if verdict.bottleneck == NONE and (excess is None or excess.r0_ms is None):
        return f"{NONE}: the load is answered; R0 is not known"
    if excess is None or verdict.basis == "unanswered":
        text = "" if excess is None else f", and those that are take {three(excess.ms)} ms above R0"
        return f"{UNKNOWN}: too few requests are answered{text}"
    if verdict.bottleneck == NONE:
        r0 = three(excess.r0_ms or 0.0)
        return (
            f"{NONE}: answers take {three(excess.ms)} ms above R0 ({r0} ms), and "
            f"this trial resolves {three(excess.resolved_ms)} ms"
        )
    subject = UNKNOWN if named is None else _subject(named)
    tail = "; the mean is as expected, the slowest 1 % are not" if verdict.basis == "tail" else ""
    what = f"{three(excess.ms)} ms above R0" if excess.r0_ms is not None else "the whole time"
    return f"{subject}: {what} are {shares_text(verdict)}{tail}"


def shares_text(verdict: Verdict) -> str:
    """The shares of the excess that are worth naming, and what is unexplained."""
    shares = verdict.shares
    found = [
        f"{name} {share:.0%}"
        for name, share in shares.items()
        if share >= NAMED or name in (verdict.bottleneck, UNEXPLAINED)
    ]
    return ", ".join(found)


def missing_text(gap: Missing) -> str:
    return f"not known: {MISSING.get(gap.code, gap.code).format(gap.detail).strip()}"


def _subject(standing: Standing) -> str:
    which = f" ({standing.detail})" if standing.detail else ""
    in_use = use_text(standing)
    return f"{standing.resource}{which}{f', {in_use}' if in_use else ''}"
