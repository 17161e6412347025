"""The runtime of a pipeline: its session, topics, queries and state, and the checks before it starts.

The package is not called `run`, because that is a public function of `strandline.pipeline`.
"""
