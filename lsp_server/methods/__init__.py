"""One inbound method each, named after it. A handler validates, calls the runtime, converts; it never owns work.

To add one: a module with `async def handle(session, params)`, a row in `table.TABLE`, and what the package page says.
"""
