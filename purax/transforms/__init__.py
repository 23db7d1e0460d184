"""The grammar: one interpreter per file. Each transformation is a trace that handles primitives by one of their rules."""
