"""Pure functions, checked: guards on what a traced function reads from outside, and reports of its side effects."""
