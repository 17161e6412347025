"""The configurations of producer, topic and cluster, each with a dead leader."""
