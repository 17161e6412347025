"""The failure lab: each failure of the design documents as a scenario that is run, watched and checked.

A scenario plays on the broker's real code. Its timeline tells who led, what each replica had, what the producer was
told and what the consumer saw; its outcome is compared with the expected one, record by record.
"""
