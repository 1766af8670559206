"""What is kept in results/: the folder of a run, its manifest, rows and records.

Here is every file format of the lab. Nothing is computed here.
"""
