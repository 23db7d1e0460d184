"""The calculus: functions recorded as programs, and programs transformed: jvp, linearize, transpose, vmap, simplify."""
