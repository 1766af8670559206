"""The search of `capacity`: which rate a server holds, and what gave way above it."""
