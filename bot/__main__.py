"""`python -m bot`: the same as `nightjar`."""

from bot.cli.main import main

if __name__ == "__main__":
    main()
