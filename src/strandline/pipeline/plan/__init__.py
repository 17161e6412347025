"""The plan of a pipeline: DataFrames from the values of a spec."""
