"""Named tuples without a call of Python.

`Place(a, b)` calls a function that Python has written for the class; `new_tuple(Place, (a, b))` makes the same in half
of the time, and does not count the fields. Only where thousands a second are made.
"""

from __future__ import annotations

from typing import Final

new_tuple: Final = tuple.__new__
