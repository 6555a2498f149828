"""fastsim/1: Fast Similarity Sketching, the default for Jaccard over texts and sets."""

import numpy as np

from simindex import kernels
from simindex.sketch.family import Params, register
from simindex.sketch.params import check_names, choice, integer
from simindex.sketch.slotted import Slotted, check_states
from simindex.types import U8, U32, U64, Features


@register("fastsim/1")
class FastSim(Slotted):
    """k slots that behave like MinHash, made in about n + k ln k steps instead of n * k.

    Parameters: k (1 to 4096, default 128), slots (8, 16 or 32 bits a slot, default 8).
    P[slot equal] is the Jaccard similarity plus the accident of the width; the variance is that of MinHash
    for sets much larger than k and about half of it for sets up to k.
    Source: Dahlgaard, Knudsen, Thorup, "Fast similarity sketching", arXiv 1704.04370. Deviates: slots are
    cut to 32 bits and less; one mixed 64-bit hash gives slot and rank of a round.
    """

    name = "fastsim/1"

    def __init__(self, params: Params) -> None:
        check_names(self.name, params, ("k", "slots"))
        k = integer(self.name, "k", params.get("k", 128), 1, kernels.MAX_SLOTS)
        slots = choice(self.name, "slots", params.get("slots", 8), (8, 16, 32))
        super().__init__({"k": k, "slots": slots}, k, slots)

    def sign(self, features: Features) -> U8:
        """Return signatures: uint8, shape (n, width); rows of EMPTY and ABSENT items are zero.

        Releases the GIL. Raises FeatureError if offsets or states are inconsistent.
        """
        check_states(features)
        return kernels.fastsim_packed(features.hashes, features.ptr, self.k, self.slot_bits)

    def stream(self) -> "FastSimStream":
        """Return a signer for one document that arrives in pieces."""
        return FastSimStream(self)


class FastSimStream:
    """Signs one set piece by piece, in O(k) memory and with the bytes of a single call.

    The signature is a minimum over hashes and rounds, so pieces may be cut, repeated and ordered at will.
    """

    def __init__(self, family: FastSim) -> None:
        self._family = family
        self._slots: U32 = np.full(family.k, 0xFFFFFFFF, np.uint32)
        self._is_empty = True

    def update(self, hashes: U64) -> None:
        """Take in more hashes (uint64, one dimension, uniform: kernels.mix64 or hash_bytes made them)."""
        kernels.fastsim_update(self._slots, hashes)
        self._is_empty = self._is_empty and len(hashes) == 0

    def merge(self, other: "FastSimStream") -> None:
        """Become the signature of the union of both sets."""
        np.minimum(self._slots, other._slots, out=self._slots)
        self._is_empty = self._is_empty and other._is_empty

    def signature(self) -> U8:
        """Return the signature so far: uint8, shape (width,); zero while nothing came in."""
        if self._is_empty:
            return np.zeros(self._family.width, np.uint8)
        signature: U8 = kernels.pack_slots(self._slots.reshape(1, -1), self._family.slot_bits)[0]
        return signature
