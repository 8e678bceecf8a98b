"""The HTTP interface: questions, coverage and runs for programs, and a page for people.

What belongs here: from a request to a call of the front door, and from what it gives to a
response. An outer room, like the command line, which starts it: nothing else imports it. What needs
Prefect is handed in.
"""
