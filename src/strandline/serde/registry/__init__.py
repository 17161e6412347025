"""The client of a schema registry: Confluent's, Karapace's or ours, over the port `Web`."""
