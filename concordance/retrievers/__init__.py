"""The index as a retriever of other frameworks, for programs that are made of their parts.

What belongs here: a module for each framework, which needs the package's extra of that name, and
what they share. They ask by the front door; nothing else imports them.
"""
