"""Ids, errors and limits that everything else shares."""
