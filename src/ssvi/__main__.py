"""`python -m ssvi` is the same as `ssvi`."""

from ssvi.cli import main

main()
