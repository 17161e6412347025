"""Scenarios on real processes of this machine, in real time, with clients of several libraries.

Clients of other libraries are programs of their own. One gets `producer TOPIC` or `consumer TOPIC` and its settings as
`key=value` arguments, says `ready`, takes a command on each line of its input, and prints a line for each event:

    producer    send NUMBER PARTITION SIZE    ok NUMBER | failed NUMBER ERROR
                begin, commit, abort          done | refused ERROR
    consumer    commit, leave                 done | refused ERROR
                                              seen NUMBER…, assigned PARTITION…, revoked PARTITION…, lost PARTITION…,
                                              error NAME, after which it reads no more

Settings that it does not have end it with `refused MESSAGE` instead of `ready`.
"""
