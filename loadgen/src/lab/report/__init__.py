"""Reports: render what was computed, compute nothing."""
