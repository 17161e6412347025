"""Commands about brokers: which there are, their directories, features and leaders."""
