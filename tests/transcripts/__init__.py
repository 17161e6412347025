"""Transcripts of the pure cores: commands in, what the core did out, in text files that are read like a protocol."""
