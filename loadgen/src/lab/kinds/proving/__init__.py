"""The proof of a verdict: levers for what it names, and what pairs of trials say of a change."""
