"""How operations and programs run: plans of eager operations, straight-line NumPy programs, dispatch, placement."""
