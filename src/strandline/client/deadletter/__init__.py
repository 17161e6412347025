"""Dead letters: a handler over a consumer that tries failed records again later, and puts aside those that cannot
succeed.
"""

from __future__ import annotations

from strandline.client.deadletter.handler import DeadLetters, Output

__all__ = ["DeadLetters", "Output"]
