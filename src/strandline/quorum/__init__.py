"""Raft in KRaft's form: leaders are elected, followers pull. Pure: events in, effects out."""
