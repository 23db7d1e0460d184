"""`python -m purax`: the command `purax`."""

import sys

from purax.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
