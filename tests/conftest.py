"""What holds for all tests: properties are tried with a fixed sample, however busy the machine is; soaks try others."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.properties.effort import IS_SOAK

settings.register_profile(
    "strandline",
    deadline=None,
    derandomize=not IS_SOAK,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("strandline")
