"""`python -m purax`: the command `purax`."""

import sys

from purax.compat.command_line import main

if __name__ == "__main__":
    sys.exit(main())
