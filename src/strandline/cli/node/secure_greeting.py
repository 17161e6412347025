"""The banner of `strandline up --secure`, with the way in which each client connects. The password stays in its
file."""

from __future__ import annotations

from strandline.node.development_security import (
    LIBRDKAFKA_PROPERTIES,
    REGISTRY_PROPERTIES,
    DevelopmentSecurity,
)


def secure_greeting(bootstrap: str, security: DevelopmentSecurity, registry: str = "") -> str:
    """Returns the text, and writes the files with the clients' settings."""
    properties = security.write_client_properties(bootstrap)
    password = security.directory / f"{security.user}.password"
    authority = security.directory / "ca.pem"
    return f"""Strandline is ready: {security.protocol}, {security.mechanism}.
  bootstrap.servers  {bootstrap}
  user               {security.user}, password in {password}
  authority          {authority}
  client settings    {properties}
{registry}Java:        kafka-topics.sh --bootstrap-server {bootstrap} --command-config {properties} --list
librdkafka:  kcat -F {security.directory / LIBRDKAFKA_PROPERTIES} -L
aiokafka:    AIOKafkaProducer(bootstrap_servers="{bootstrap}", security_protocol="{security.protocol}",
               sasl_mechanism="{security.mechanism}", sasl_plain_username="{security.user}",
               sasl_plain_password=open("{password}").read(),
               ssl_context=ssl.create_default_context(cafile="{authority}"))
Strandline:  Producer(bootstrap_servers="{bootstrap}", security_protocol="{security.protocol}",
               sasl_mechanism="{security.mechanism}", sasl_username="{security.user}",
               sasl_password=open("{password}").read(),
               ssl_ca_location="{authority}")
{_about_registry(security, registry)}Stop with Ctrl-C."""


def _about_registry(security: DevelopmentSecurity, registry: str) -> str:
    url = registry.strip().rpartition(" ")[2]
    if not url.startswith("http"):
        return ""
    settings = security.directory / REGISTRY_PROPERTIES
    return f"Schemas:     strandline schemas list --registry {url} --registry-config {settings}\n"
