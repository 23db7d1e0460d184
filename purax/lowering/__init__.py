"""Programs as StableHLO: lowering, and how effects are ordered and guarded in programs."""
