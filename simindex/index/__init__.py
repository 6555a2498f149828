"""Schemas, writing, searching: what an item means, and which rows answer a question.

Imports lsh, store, sketch, features and kernels; knows nothing of files on disk or of databases.
"""
