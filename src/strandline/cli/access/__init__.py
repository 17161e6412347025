"""`strandline acls`, `users` and `quotas`: who may do what, and how much.

They work with Apache Kafka. A cluster that has no such API says so: UNSUPPORTED_VERSION, or SECURITY_DISABLED where the
brokers have no authorizer.
"""
