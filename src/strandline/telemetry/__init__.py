"""Counters, histograms, metrics as text and log events that belong to a node object; nothing here is global."""
