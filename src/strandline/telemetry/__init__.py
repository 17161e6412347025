"""Counters, gauges and log events that belong to a node object; nothing here is global."""
