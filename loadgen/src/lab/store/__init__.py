"""What is kept in results/: the folder of a run, its manifest, rows and records.

Here is every file format of what is measured. Nothing is computed here.
"""
