"""Reports of a run: tables on the console, REPORT.md, report.html with its figures.

Nothing here is measured, judged or compared, and nothing asks the lab: the same run gives the same
bytes. What a file of results holds is in `store`.
"""
