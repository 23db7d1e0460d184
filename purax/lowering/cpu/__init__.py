"""Passes over programs for the CPU: repeated layers become functions, and what lies between products row programs."""
