"""`strandline acls`, `users` and `quotas`: who may do what, and how much.

They work with Apache Kafka too. A cluster without these APIs gives the error UNSUPPORTED_VERSION, and one without an
authorizer SECURITY_DISABLED.
"""
