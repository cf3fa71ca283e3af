"""`python -m nightjar_lab`."""

from nightjar_lab.main import main

main()
