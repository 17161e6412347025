"""Scenarios of elections: clean and unclean, preferred leaders, logs that part."""
