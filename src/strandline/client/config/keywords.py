"""The settings of each client as keywords, for editors and type checkers.

Made from the keys by `make docs`; change those. docs/reference/client-configuration.md says what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict


class CommonKeywords(TypedDict, total=False):
    """The settings of every client."""

    bootstrap_servers: str | Sequence[Any]
    bootstrap_resolve_timeout_ms: int | str
    client_id: str
    cluster_id: str | None
    request_timeout_ms: int | str
    retry_backoff_ms: int | str
    retry_backoff_max_ms: int | str
    reconnect_backoff_ms: int | str
    reconnect_backoff_max_ms: int | str
    socket_connection_setup_timeout_ms: int | str
    socket_connection_setup_timeout_max_ms: int | str
    connections_max_idle_ms: int | str
    metadata_max_age_ms: int | str
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int | str
    security_protocol: str
    sasl_mechanism: str
    sasl_jaas_config: str | None
    sasl_username: str | None
    sasl_password: str | None
    sasl_oauthbearer_token: Any
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_scope: str | None
    ssl_ca_location: str | None
    ssl_truststore_location: str | None
    ssl_truststore_type: str
    ssl_truststore_password: str | None
    ssl_truststore_certificates: str | None
    ssl_keystore_location: str | None
    ssl_keystore_type: str
    ssl_keystore_password: str | None
    ssl_keystore_key: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_key_password: str | None
    ssl_enabled_protocols: str | Sequence[Any]
    ssl_cipher_suites: str | Sequence[Any]
    ssl_endpoint_identification_algorithm: str
    client_dns_lookup: str
    send_buffer_bytes: int | str
    receive_buffer_bytes: int | str
    enable_metrics_push: bool | str
    metrics_sample_window_ms: int | str
    metrics_num_samples: int | str
    metrics_recording_level: str
    metric_reporters: str | Sequence[Any]
    security_providers: str | None
    config_providers: str | Sequence[Any]


class ProducerKeywords(CommonKeywords, total=False):
    """The settings of `Producer`."""

    key_serializer: Any
    value_serializer: Any
    acks: str
    batch_size: int | str
    linger_ms: int | str
    buffer_memory: int | str
    max_block_ms: int | str
    max_request_size: int | str
    compression_type: str
    compression_gzip_level: int | str
    compression_lz4_level: int | str
    compression_zstd_level: int | str
    delivery_timeout_ms: int | str
    retries: int | str
    max_in_flight_requests_per_connection: int | str
    enable_idempotence: bool | str
    transactional_id: str | None
    transaction_timeout_ms: int | str
    transaction_two_phase_commit_enable: bool | str
    partitioner_class: Any
    partitioner_ignore_keys: bool | str
    partitioner_adaptive_partitioning_enable: bool | str
    partitioner_availability_timeout_ms: int | str
    interceptor_classes: str | Sequence[Any]
    metadata_max_idle_ms: int | str


class ConsumerKeywords(CommonKeywords, total=False):
    """The settings of `Consumer`."""

    default_api_timeout_ms: int | str
    key_deserializer: Any
    value_deserializer: Any
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    session_timeout_ms: int | str
    heartbeat_interval_ms: int | str
    max_poll_interval_ms: int | str
    max_poll_records: int | str
    partition_assignment_strategy: str | Sequence[Any]
    enable_auto_commit: bool | str
    auto_commit_interval_ms: int | str
    auto_offset_reset: str
    isolation_level: str
    fetch_min_bytes: int | str
    fetch_max_bytes: int | str
    max_partition_fetch_bytes: int | str
    fetch_max_wait_ms: int | str
    check_crcs: bool | str
    client_rack: str
    exclude_internal_topics: bool | str
    allow_auto_create_topics: bool | str
    interceptor_classes: str | Sequence[Any]


class AdminKeywords(CommonKeywords, total=False):
    """The settings of `Admin`."""

    default_api_timeout_ms: int | str
    retries: int | str
