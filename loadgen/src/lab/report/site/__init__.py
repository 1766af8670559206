"""A site of many runs: one page with filters in its address, and the reports of the runs beside it.

The same runs give the same bytes: no time but the runs' own, nothing of where they lie.
"""

from lab.report.site.page import NAME, page
from lab.report.site.told import UNTOLD, Machine, SiteRun, commit

__all__ = ["NAME", "UNTOLD", "Machine", "SiteRun", "commit", "page"]
