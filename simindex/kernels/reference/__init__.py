"""Plain numpy twins of the kernels: slow, obvious, and the oracle of the tests."""
