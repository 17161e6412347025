"""The real world: the only package that imports sockets, threads, os, time, random, signal and uvloop."""
