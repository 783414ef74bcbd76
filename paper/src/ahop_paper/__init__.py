"""The experiments beside the library ahop: baselines, tables and pages of the paper and beyond it."""
