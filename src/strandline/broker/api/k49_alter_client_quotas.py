"""AlterClientQuotas (key 49), versions 0 and 1: sets and removes quotas of users, client ids and addresses (KIP-546).

The controller decides. Errors by entity: CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST. Differs from Kafka: an IP
entity must be an address; a host name is refused.
"""

from __future__ import annotations

from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.controller.client_quotas import refuse_alter_client_quotas
from strandline.wire.api.k49_alter_client_quotas import AlterClientQuotasRequest

REQUEST = AlterClientQuotasRequest

handle = decided_by_controller
refuse = refuse_alter_client_quotas
