"""`make bench`: latency and memory of the installed command over stdio, next to a floor with the same SDK, in one run.

Times are taken in the model service's process (arrival of a request, end of an answer) and in the client's. Medians of
several runs; read ratios rather than milliseconds on a machine that does other work.
"""
