"""Identities: both sides of SASL exchanges, users and their credentials, names from certificates. Pure."""
