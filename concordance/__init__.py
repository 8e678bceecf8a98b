"""Concordance: a hybrid index over many projects' documentation, decisions and session logs."""
