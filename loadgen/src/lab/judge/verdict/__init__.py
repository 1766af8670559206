"""Which wall was hit: from what every resource did in a trial's window to one name, or none.

`evidence` reads numbers, each with the query it came from. `threads`, `locks`, `server_limits`,
`downstream`, `machine` and `load` say what each resource did, `foreign` what is not known of a
service that is not the lab's. `ranking` names the resource that limits. Nothing here reaches
outside.
"""

from lab.judge.verdict.ranking import verdict_of

__all__ = ["verdict_of"]
