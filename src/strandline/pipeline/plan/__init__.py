"""The plan: from the values of a spec to DataFrames."""
