"""Tools for tests: the laws every primitive obeys, the table of cases they are tried on, and `check_grads`."""
