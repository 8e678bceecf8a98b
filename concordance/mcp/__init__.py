"""The MCP interface: the index as tools for a language model, over stdio and over HTTP.

What belongs here: from a tool's arguments to a call of the front door, and from what it gives to a
short result. An outer room: the command line and the HTTP interface start it, and hand it the index
of whoever asks and what limits work.
"""
