"""A faster way to make named tuples, without a call of a Python function.

`Place(a, b)` calls a function that Python has written for the class; `new_tuple(Place, (a, b))` makes the same in half
of the time, and does not count the fields. It is for code that makes thousands in a second.
"""

from __future__ import annotations

from typing import Final

new_tuple: Final = tuple.__new__
