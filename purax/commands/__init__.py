"""The subcommands of `purax` that have a file of their own."""
