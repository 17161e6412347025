"""Pipelines on Spark, as files: topics in, decoded, transformed and checked, and topics out, exactly once."""
