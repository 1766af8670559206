"""Kinds of experiment: one file each, from the words and files that describe it to what it found.

A kind reads its settings, plans the next trial from the rows so far, and draws findings from them.
It starts nothing and changes nothing. `registry` finds the kinds: the files that define KIND.
`plans` reads what the user asks for, with `reading`; `app` runs the trials. `proving` has the
parts of `explain`.
"""
