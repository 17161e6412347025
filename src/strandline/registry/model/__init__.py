"""Subjects, versions, ids, contexts, configs and modes: a replicated machine over the records of `_schemas`."""
