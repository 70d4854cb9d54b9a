"""`python -m ssvi` is `ssvi`."""

from ssvi.cli import main

main()
