"""The schema registry: Confluent's REST interface on a compacted topic of any Kafka-protocol cluster.

`formats` parses schemas and compares them, `model` decides as a replicated machine over the records of `_schemas`,
`storage` reads and writes that topic, `service` puts these together, `http` serves the result.
"""
