"""Python control flow on traced values: functions rewritten so that it is recorded."""
