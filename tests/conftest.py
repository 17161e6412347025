"""What holds for all tests: how long an example of a property takes says nothing on a busy machine."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("strandline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("strandline")
