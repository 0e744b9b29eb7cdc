"""``python -m lachesis`` is the command line."""

from lachesis.cli import main

if __name__ == "__main__":
    main()
