"""The grammar: one interpreter per file. A transformation is a trace that handles primitives by one of their rules."""
