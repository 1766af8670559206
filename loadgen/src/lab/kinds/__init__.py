"""Kinds of experiment: each in one file, from the words and files that describe it to its findings.

A kind reads its settings, plans the next trial from the rows so far, and draws findings from them.
It starts nothing and changes nothing. `registry` finds every Kind that a file defines. `plans`
reads what the user asks for, with `reading`; `app` runs the trials. `proving` has the parts of
`explain`.
"""
