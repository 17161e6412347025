"""Identities: SASL exchanges of both sides, users and their credentials, names from certificates. Pure."""
